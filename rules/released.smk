# The five big models of Herasimchyk et al. 2026 from the numbers that the authors released, asked for by all_published
# alone. In: released.source (position_bias/released/sources.py says what it may be). Out, under results/published/:
# schedules/{model}/{dataset}/{lambda,content}.csv, and the profiles that they predict, by every variant, under
# rollout/{model}/{dataset}/n{n}/{variant}.{slopes}.{content}.csv.

from position_bias.released import models as released_models
from position_bias.released import sources as released_sources

RELEASED_LENGTHS = config["released"]["lengths"]
RELEASED_STANDARD = min(RELEASED_LENGTHS)  # lambda and content were measured at 256
RELEASED_FIG1 = ["bloom-176b", "mpt-7b"]  # as in the paper
RELEASED_FIG2 = [model for model in released_models.MODELS if model not in RELEASED_FIG1]
RELEASED_MIXING = "results/published/schedules/{model}/{dataset}/lambda.csv"
RELEASED_CONTENT = "results/published/schedules/{model}/{dataset}/content.csv"
RELEASED_SLOPES = "results/published/schedules/{model}/slopes.csv"
RELEASED_READ = "results/published/schedules/source.csv"
RELEASED_PROFILE = "results/published/rollout/{model}/{dataset}/n{n}/{variant.name}.csv"
EVERY_MODEL = {"model": released_models.MODELS, "dataset": released_models.DATASETS}
ON_PRIMARY = {"model": released_models.MODELS, "dataset": released_models.PRIMARY}


rule released_schedules:
    """Read lambda and content of five models on three data sets, and list the slopes of their heads by either rule."""
    input:
        source=required(
            config["released"]["source"],
            released_sources.files,
            str(released_sources.fault(None, released_sources.UNNAMED)),
        ),
    output:
        mixing=collect(RELEASED_MIXING, **EVERY_MODEL),
        content=collect(RELEASED_CONTENT, **EVERY_MODEL),
        slopes=collect(RELEASED_SLOPES, model=released_models.MODELS),
        source=RELEASED_READ,
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


# Profiles, tables and figures: a row each, see rules/rows.smk.

RELEASED = {"environment": "published", "group": "released"}

FILES |= {
    "released_rollout": Row(
        "Roll attention out under every variant, by released and faithful slopes and content, at every length.",
        "released.profiles:predict",
        {
            "mixing": RELEASED_MIXING,
            "content": RELEASED_CONTENT,
            "slopes": RELEASED_SLOPES,
        },
        {"model": lambda wildcards: wildcards.model, "lengths": RELEASED_LENGTHS},
        outputs={
            "profiles": collect(
                RELEASED_PROFILE, n=RELEASED_LENGTHS, variant=released_models.VARIANTS, allow_missing=True
            )
        },
        log="logs/published/rollout/{model}/{dataset}.log",
        wildcards={"model": any_of(released_models.MODELS), "dataset": any_of(released_models.DATASETS)},
        needs={"runtime": 20},
        **RELEASED,
    ),
    "released_lengths": Row(
        "Follow the profiles of every model on the primary data set from a few tokens to very many.",
        "released.profiles:follow_lengths",
        {
            "mixing": collect(RELEASED_MIXING, **ON_PRIMARY),
            "content": collect(RELEASED_CONTENT, **ON_PRIMARY),
            "slopes": collect(RELEASED_SLOPES, model=released_models.MODELS),
        },
        {"lengths": config["released"]["sampled_lengths"]},
        outputs={name: f"results/published/lengths/{name}.csv" for name in ("samples", "sums")},
        log="logs/published/lengths.log",
        needs={"runtime": 20},
        **RELEASED,
    ),
}
RELEASED_TABLES = {
    "structural/published_variants": Row(
        "What the profiles look like, beside the distances that the paper prints, and whether these can be theirs.",
        "released.variants:tabulate",
        {
            "profiles": collect(RELEASED_PROFILE, **EVERY_MODEL, n=RELEASED_STANDARD, variant=released_models.VARIANTS),
            "printed": project("published/structural_distances.csv"),
        },
        {"n": RELEASED_STANDARD},
        readable="released.variants:readable",
        name="released_variants",
        caption="released/variants",
        **RELEASED,
    ),
    "structural/published_drawn": Row(
        "Rollouts of bloom-176b against the measured influence that its authors drew.",
        "released.shapes:compare_with_drawing",
        {
            "profiles": collect(
                RELEASED_PROFILE,
                model=released_models.DRAWN_MODEL,
                dataset=released_models.PRIMARY,
                n=RELEASED_STANDARD,
                variant=released_models.OF_DRAWN,
            ),
            "curves": project("published/structural_curves.csv"),
        },
        name="released_drawn",
        caption="released/drawn",
        **RELEASED,
    ),
}
RELEASED_EVIDENCE = {
    name: f"results/evidence/structural/released/{name}.csv"
    for name in ("statistics", "profiles", "mixing", "distances", "drawn", "source")
}
FILES["released_evidence"] = Row(
    "What evidence/ keeps of the released numbers: profiles, what is said of them, and where they came from.",
    "released.shapes:evidence",
    {
        "profiles": collect(RELEASED_PROFILE, **EVERY_MODEL, n=RELEASED_STANDARD, variant=released_models.VARIANTS),
        "mixing": collect(RELEASED_MIXING, **EVERY_MODEL),
        "content": collect(RELEASED_CONTENT, **EVERY_MODEL),
        "variants": "results/tables/structural/published_variants.csv",
        "drawn": "results/tables/structural/published_drawn.csv",
        "source": RELEASED_READ,
    },
    outputs=RELEASED_EVIDENCE,
    log="logs/published/evidence.log",
    **RELEASED,
)
RELEASED_FIGURES = {
    f"structural/published_{figure}": Row(
        "Figures 1, 2 of the big models: rollout variants (a), (b), (c), and where (d) may lie.",
        "released.figures:fig1",
        {
            "profiles": collect(
                RELEASED_PROFILE,
                model=models,
                dataset=released_models.PRIMARY,
                n=RELEASED_STANDARD,
                variant=released_models.VARIANTS,
            ),
            "table": "results/tables/structural/published_variants.csv",
        },
        name=f"released_draw_{figure}",
        caption="released/draw_fig1",
        group="released",
    )
    for figure, models in {"fig1": RELEASED_FIG1, "fig2": RELEASED_FIG2}.items()
} | {
    "structural/published_fig4": Row(
        "Figure 4 of the big models: residual mixing across layers, with a panel for each data set.",
        "released.figures:fig4",
        {"mixing": collect(RELEASED_MIXING, **EVERY_MODEL)},
        name="released_draw_fig4",
        caption="released/draw_fig4",
        group="released",
    ),
    "structural/published_long": Row(
        "How the predicted profile changes from a few tokens to very many (our addition).",
        "released.figures:lengths",
        {name: f"results/published/lengths/{name}.csv" for name in ("samples", "sums")},
        name="released_draw_long",
        caption="released/draw_long",
        group="released",
    ),
}
TABLES |= RELEASED_TABLES
FIGURES |= RELEASED_FIGURES


rule all_published:
    """Every profile, figure and table of the released numbers, and what evidence/ keeps of them."""
    input:
        *RELEASED_EVIDENCE.values(),
        collect(RELEASED_PROFILE, **EVERY_MODEL, n=RELEASED_LENGTHS, variant=released_models.VARIANTS),
        row_outputs(RELEASED_FIGURES, RELEASED_TABLES),
