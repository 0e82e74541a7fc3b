# The five big models of Herasimchyk et al. 2026 from the numbers that the authors released, asked for by all_published
# alone. In: published_source (position_bias/released/source.py says what it may be). Out, under results/published/:
# schedules/{model}/{dataset}/{lambda,content}.csv, and the profiles that they predict, by every variant, under
# rollout/{model}/{dataset}/n{n}/{variant}.{slopes}.{content}.csv.


rule published_schedules:
    """Read lambda and content of five models on three data sets, and list the slopes of their heads by either rule."""
    input:
        library=library("published_schedules.py"),
        source=released_files,
    output:
        mixing=released_schedules("lambda.csv", released.MODELS, released.DATASETS),
        content=released_schedules("content.csv", released.MODELS, released.DATASETS),
        slopes=released_slopes(released.MODELS),
    log:
        "logs/published/schedules.log",
    benchmark:
        "results/benchmarks/published/schedules.tsv"
    conda:
        "../envs/published.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        source=config["published_source"],
        sha256=config["published_sha256"],
    script:
        "../scripts/published_schedules.py"


rule published_rollout:
    """Roll attention out under every variant, by released and faithful slopes and content, at every length."""
    input:
        library=library("published_rollout.py"),
        mixing="results/published/schedules/{model}/{dataset}/lambda.csv",
        content="results/published/schedules/{model}/{dataset}/content.csv",
        slopes="results/published/schedules/{model}/slopes.csv",
    output:
        released_profiles(RELEASED_LENGTHS),
    log:
        "logs/published/rollout/{model}/{dataset}.log",
    benchmark:
        "results/benchmarks/published/rollout/{model}/{dataset}.tsv"
    wildcard_constraints:
        model="|".join(map(re.escape, released.MODELS)),
        dataset="|".join(released.DATASETS),
    conda:
        "../envs/published.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        lengths=RELEASED_LENGTHS,
    script:
        "../scripts/published_rollout.py"


rule published_lengths:
    """Follow the profiles of every model on the primary data set from a few tokens to very many."""
    input:
        library=library("published_lengths.py"),
        mixing=released_schedules("lambda.csv", released.MODELS, released.PRIMARY),
        content=released_schedules("content.csv", released.MODELS, released.PRIMARY),
        slopes=released_slopes(released.MODELS),
    output:
        samples="results/published/lengths/samples.csv",
        sums="results/published/lengths/sums.csv",
    log:
        "logs/published/lengths.log",
    benchmark:
        "results/benchmarks/published/lengths.tsv"
    conda:
        "../envs/published.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        lengths=config["published_long"],
    script:
        "../scripts/published_lengths.py"


rule published_variants:
    """What the profiles look like, beside the distances that the paper prints, and whether these can be theirs."""
    input:
        library=library("published_variants.py"),
        profiles=released_profiles(
            RELEASED_STANDARD, released.MODELS, released.DATASETS
        ),
        published=project("published/structural_distances.csv"),
    output:
        csv="results/tables/structural/published_variants.csv",
        md=report(
            "results/tables/structural/published_variants.md",
            caption="../report/published_variants.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/published_variants.log",
    benchmark:
        "results/benchmarks/tables/structural/published_variants.tsv"
    conda:
        "../envs/published.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        n=RELEASED_STANDARD,
    script:
        "../scripts/published_variants.py"


rule published_fig1:
    """Figures 1, 2 of the big models: rollout variants (a), (b), (c), and where (d) may lie."""
    input:
        library=library("published_fig1.py"),
        profiles=released_profiles(RELEASED_STANDARD, RELEASED_FIG1, released.PRIMARY),
        table="results/tables/structural/published_variants.csv",
    output:
        pdf="figures/structural/published_fig1.pdf",
        svg=report(
            "figures/structural/published_fig1.svg",
            caption="../report/published_fig1.rst",
            category="structural",
        ),
        png="figures/structural/published_fig1.png",
    log:
        "logs/figures/structural/published_fig1.log",
    benchmark:
        "results/benchmarks/figures/structural/published_fig1.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/published_fig1.py"


use rule published_fig1 as published_fig2 with:
    input:
        library=library("published_fig1.py"),
        profiles=released_profiles(RELEASED_STANDARD, RELEASED_FIG2, released.PRIMARY),
        table="results/tables/structural/published_variants.csv",
    output:
        pdf="figures/structural/published_fig2.pdf",
        svg=report(
            "figures/structural/published_fig2.svg",
            caption="../report/published_fig1.rst",
            category="structural",
        ),
        png="figures/structural/published_fig2.png",
    log:
        "logs/figures/structural/published_fig2.log",
    benchmark:
        "results/benchmarks/figures/structural/published_fig2.tsv"


rule published_fig4:
    """Figure 4 of the big models: residual mixing across layers, one panel a data set."""
    input:
        library=library("published_fig4.py"),
        mixing=released_schedules("lambda.csv", released.MODELS, released.DATASETS),
    output:
        pdf="figures/structural/published_fig4.pdf",
        svg=report(
            "figures/structural/published_fig4.svg",
            caption="../report/published_fig4.rst",
            category="structural",
        ),
        png="figures/structural/published_fig4.png",
    log:
        "logs/figures/structural/published_fig4.log",
    benchmark:
        "results/benchmarks/figures/structural/published_fig4.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/published_fig4.py"


rule published_long:
    """How the predicted profile changes from a few tokens to very many (ours)."""
    input:
        library=library("published_long.py"),
        samples="results/published/lengths/samples.csv",
        sums="results/published/lengths/sums.csv",
    output:
        pdf="figures/structural/published_long.pdf",
        svg=report(
            "figures/structural/published_long.svg",
            caption="../report/published_long.rst",
            category="structural",
        ),
        png="figures/structural/published_long.png",
    log:
        "logs/figures/structural/published_long.log",
    benchmark:
        "results/benchmarks/figures/structural/published_long.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/published_long.py"


rule all_published:
    """Every profile, figure and table of the released numbers."""
    input:
        released_profiles(RELEASED_LENGTHS, released.MODELS, released.DATASETS),
        rules.published_variants.output,
        rules.published_fig1.output,
        rules.published_fig2.output,
        rules.published_fig4.output,
        rules.published_long.output,
