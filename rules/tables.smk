# Tables and verdicts, each as CSV to compute with and Markdown to read, and the named target of each paper.


rule structural_table2:
    """Table 2: Wasserstein distance of every rollout variant to the measured influence, with null profiles."""
    input:
        library=library("structural_table2.py"),
        statistics=across_models(
            f"results/rollout/{{model}}/{{checkpoint}}/{config['primary_dataset']}/n{STANDARD}/statistics.csv"
        ),
    output:
        csv="results/tables/structural/table2.csv",
        md=report(
            "results/tables/structural/table2.md",
            caption="../report/structural_table2.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/table2.log",
    benchmark:
        "results/benchmarks/tables/structural/table2.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/structural_table2.py"


rule structural_checks:
    """Verdicts: each claim of the paper against what was measured, with its interval."""
    input:
        library=library("structural_checks.py"),
        replicates=across_models(
            f"results/rollout/{{model}}/{{checkpoint}}/{config['primary_dataset']}/n{STANDARD}/replicates.parquet"
        ),
    output:
        csv="results/tables/structural/checks.csv",
        md=report(
            "results/tables/structural/checks.md",
            caption="../report/structural_checks.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/checks.log",
    benchmark:
        "results/benchmarks/tables/structural/checks.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        scale=lookup(dpath="scale", within=config),
        level=lookup(dpath="rollout/level", within=config),
    script:
        "../scripts/structural_checks.py"


rule structural:
    """Every figure and table of Herasimchyk et al. 2026."""
    input:
        rules.structural_fig1.output,
        rules.structural_fig4.output,
        rules.structural_table2.output,
        rules.structural_checks.output,
