# The five big models of Herasimchyk et al. 2026 from the numbers that the authors released, asked for by all_published
# alone. In: released.source (position_bias/released/source.py says what it may be). Out, under results/published/:
# schedules/{model}/{dataset}/{lambda,content}.csv, and the profiles that they predict, by every variant, under
# rollout/{model}/{dataset}/n{n}/{variant}.{slopes}.{content}.csv.


include: "files/released.smk"


rule released_schedules:
    """Read lambda and content of five models on three data sets, and list the slopes of their heads by either rule."""
    input:
        source=released_files,
    output:
        mixing=released_schedules("lambda.csv", released.MODELS, released.DATASETS),
        content=released_schedules("content.csv", released.MODELS, released.DATASETS),
        slopes=released_slopes(released.MODELS),
    log:
        "logs/published/schedules.log",
    group:
        "released"
    conda:
        "../envs/published.yaml"
    resources:
        mem_mb=memory(2000),
        runtime=20,
    params:
        source=config["released"]["source"],
        sha256=config["released"]["sha256"],
    script:
        "../scripts/released/schedules.py"


rule released_rollout:
    """Roll attention out under every variant, by released and faithful slopes and content, at every length."""
    input:
        mixing="results/published/schedules/{model}/{dataset}/lambda.csv",
        content="results/published/schedules/{model}/{dataset}/content.csv",
        slopes="results/published/schedules/{model}/slopes.csv",
    output:
        released_profiles(RELEASED_LENGTHS),
    log:
        "logs/published/rollout/{model}/{dataset}.log",
    wildcard_constraints:
        model="|".join(map(re.escape, released.MODELS)),
        dataset="|".join(released.DATASETS),
    group:
        "released"
    conda:
        "../envs/published.yaml"
    resources:
        runtime=20,
    params:
        lengths=RELEASED_LENGTHS,
    script:
        "../scripts/released/rollout.py"


rule released_lengths:
    """Follow the profiles of every model on the primary data set from a few tokens to very many."""
    input:
        mixing=released_schedules("lambda.csv", released.MODELS, released.PRIMARY),
        content=released_schedules("content.csv", released.MODELS, released.PRIMARY),
        slopes=released_slopes(released.MODELS),
    output:
        samples="results/published/lengths/samples.csv",
        sums="results/published/lengths/sums.csv",
    log:
        "logs/published/lengths.log",
    group:
        "released"
    conda:
        "../envs/published.yaml"
    resources:
        runtime=20,
    params:
        lengths=config["released"]["sampled_lengths"],
    script:
        "../scripts/released/lengths.py"


rule released_variants:
    """What the profiles look like, beside the distances that the paper prints, and whether these can be theirs."""
    input:
        profiles=released_profiles(
            RELEASED_STANDARD, released.MODELS, released.DATASETS
        ),
        published=project("published/structural_distances.csv"),
    output:
        **tabled("structural/published_variants", "released/variants"),
    group:
        "released"
    conda:
        "../envs/published.yaml"
    params:
        n=RELEASED_STANDARD,
    script:
        "../scripts/released/variants.py"


rule released_draw_fig1:
    """Figures 1, 2 of the big models: rollout variants (a), (b), (c), and where (d) may lie."""
    input:
        profiles=released_profiles(RELEASED_STANDARD, RELEASED_FIG1, released.PRIMARY),
        table="results/tables/structural/published_variants.csv",
    output:
        **drawn("structural/published_fig1", "released/draw_fig1"),
    group:
        "released"
    script:
        "../scripts/released/draw_fig1.py"


use rule released_draw_fig1 as released_draw_fig2 with:
    input:
        profiles=released_profiles(RELEASED_STANDARD, RELEASED_FIG2, released.PRIMARY),
        table="results/tables/structural/published_variants.csv",
    output:
        **drawn("structural/published_fig2", "released/draw_fig1"),


rule released_draw_fig4:
    """Figure 4 of the big models: residual mixing across layers, one panel a data set."""
    input:
        mixing=released_schedules("lambda.csv", released.MODELS, released.DATASETS),
    output:
        **drawn("structural/published_fig4", "released/draw_fig4"),
    group:
        "released"
    script:
        "../scripts/released/draw_fig4.py"


rule released_draw_long:
    """How the predicted profile changes from a few tokens to very many (our addition)."""
    input:
        samples="results/published/lengths/samples.csv",
        sums="results/published/lengths/sums.csv",
    output:
        **drawn("structural/published_long", "released/draw_long"),
    group:
        "released"
    script:
        "../scripts/released/draw_long.py"


rule all_published:
    """Every profile, figure and table of the released numbers."""
    input:
        released_profiles(RELEASED_LENGTHS, released.MODELS, released.DATASETS),
        rules.released_variants.output,
        rules.released_draw_fig1.output,
        rules.released_draw_fig2.output,
        rules.released_draw_fig4.output,
        rules.released_draw_long.output,
