# Figures, each as PDF to print, SVG for the report and PNG to look at: figures/{paper}/{figure}.{pdf,svg,png}.


rule structural_fig1:
    """Figure 1: rollout variants (a), (b), (c) beside the measured influence (d)."""
    input:
        library=library("structural_fig1.py"),
        profiles=across_models(rollouts("profiles.parquet", PRIMARY, STANDARD), FIG1),
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


use rule structural_fig1 as structural_fig2 with:
    input:
        library=library("structural_fig1.py"),
        profiles=across_models(rollouts("profiles.parquet", PRIMARY, STANDARD), FIG2),
    output:
        pdf="figures/structural/fig2.pdf",
        svg=report(
            "figures/structural/fig2.svg",
            caption="../report/structural_fig1.rst",
            category="structural",
        ),
        png="figures/structural/fig2.png",
    log:
        "logs/figures/structural/fig2.log",
    benchmark:
        "results/benchmarks/figures/structural/fig2.tsv"


rule structural_fig3:
    """Figure 3: measured influence at the long length, every model and data set."""
    input:
        library=library("structural_fig3.py"),
        profiles=across_datasets(rollouts("profiles.parquet", "{dataset}", LONG)),
    output:
        pdf="figures/structural/fig3.pdf",
        svg=report(
            "figures/structural/fig3.svg",
            caption="../report/structural_fig3.rst",
            category="structural",
        ),
        png="figures/structural/fig3.png",
    log:
        "logs/figures/structural/fig3.log",
    benchmark:
        "results/benchmarks/figures/structural/fig3.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/structural_fig3.py"


rule structural_fig4:
    """Figure 4: residual mixing across layers, one panel a data set."""
    input:
        library=library("structural_fig4.py"),
        mixing=across_datasets(
            f"results/measure/{{model}}/{{checkpoint}}/{{dataset}}/n{STANDARD}/lambda.safetensors"
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


rule structural_fig5:
    """Figure 5: mean content logits of representative layers and heads, one seed a model."""
    input:
        library=library("structural_fig5.py"),
        content=[
            f"results/measure/{model}/seed{config['models'][model]['seeds'][0]}/step{LAST}/{PRIMARY}/n{HEATMAP}/content.safetensors"
            for model in config["models"]
        ],
    output:
        pdf="figures/structural/fig5.pdf",
        svg=report(
            "figures/structural/fig5.svg",
            caption="../report/structural_fig5.rst",
            category="structural",
        ),
        png="figures/structural/fig5.png",
    log:
        "logs/figures/structural/fig5.log",
    benchmark:
        "results/benchmarks/figures/structural/fig5.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/structural_fig5.py"


rule structural_training:
    """What training does to the profile: measured influence and (b) at every kept step (ours)."""
    input:
        library=library("structural_training.py"),
        profiles=across_models(
            rollouts("profiles.parquet", PRIMARY, STANDARD), steps=STEPS
        ),
    output:
        pdf="figures/structural/training.pdf",
        svg=report(
            "figures/structural/training.svg",
            caption="../report/structural_training.rst",
            category="structural",
        ),
        png="figures/structural/training.png",
    log:
        "logs/figures/structural/training.log",
    benchmark:
        "results/benchmarks/figures/structural/training.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/structural_training.py"


rule structural_forces:
    """Propositions 4.2-4.5: what depth, mixing, positional bias and diagonal content do to early tokens' share."""
    input:
        library=library("structural_forces.py"),
        forces="results/theory/forces.csv",
    output:
        pdf="figures/structural/forces.pdf",
        svg=report(
            "figures/structural/forces.svg",
            caption="../report/structural_forces.rst",
            category="structural",
        ),
        png="figures/structural/forces.png",
    log:
        "logs/figures/structural/forces.log",
    benchmark:
        "results/benchmarks/figures/structural/forces.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/structural_forces.py"


rule structural_dichotomy:
    """Theorem 5.5: what lies beyond the first token against depth, for summable and other schedules of lambda."""
    input:
        library=library("structural_dichotomy.py"),
        dichotomy="results/theory/dichotomy.csv",
    output:
        pdf="figures/structural/dichotomy.pdf",
        svg=report(
            "figures/structural/dichotomy.svg",
            caption="../report/structural_dichotomy.rst",
            category="structural",
        ),
        png="figures/structural/dichotomy.png",
    log:
        "logs/figures/structural/dichotomy.log",
    benchmark:
        "results/benchmarks/figures/structural/dichotomy.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/structural_dichotomy.py"
