# Figures, each as PDF to print, SVG for the report and PNG to look at: figures/{paper}/{figure}.{pdf,svg,png}.


rule structural_fig1:
    """Figure 1: rollout variants (a), (b), (c) beside the measured influence (d)."""
    input:
        library=library("structural_fig1.py"),
        profiles=across_models(
            f"results/rollout/{{model}}/{{checkpoint}}/{config['primary_dataset']}/n{STANDARD}/profiles.csv"
        ),
    output:
        pdf="figures/structural/fig1.pdf",
        svg=report(
            "figures/structural/fig1.svg",
            caption="../report/structural_fig1.rst",
            category="structural",
        ),
        png="figures/structural/fig1.png",
    log:
        "logs/figures/structural/fig1.log",
    benchmark:
        "results/benchmarks/figures/structural/fig1.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/structural_fig1.py"


rule structural_fig4:
    """Figure 4: residual mixing across layers, one panel a data set."""
    input:
        library=library("structural_fig4.py"),
        mixing=expand(
            across_models(
                f"results/measure/{{model}}/{{checkpoint}}/{{dataset}}/n{STANDARD}/lambda.safetensors"
            ),
            dataset=config["datasets"],
        ),
    output:
        pdf="figures/structural/fig4.pdf",
        svg=report(
            "figures/structural/fig4.svg",
            caption="../report/structural_fig4.rst",
            category="structural",
        ),
        png="figures/structural/fig4.png",
    log:
        "logs/figures/structural/fig4.log",
    benchmark:
        "results/benchmarks/figures/structural/fig4.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/structural_fig4.py"
