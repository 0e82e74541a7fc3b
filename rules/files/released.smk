# Which files the rules of the released numbers read and write, worked out from the configuration.

from position_bias.released import models as released
from position_bias.released import source as released_source

RELEASED_LENGTHS = config["released"]["lengths"]
RELEASED_STANDARD = min(RELEASED_LENGTHS)  # lambda and content were measured at 256
RELEASED_FIG1 = ["bloom-176b", "mpt-7b"]  # as in the paper
RELEASED_FIG2 = [model for model in released.MODELS if model not in RELEASED_FIG1]


def released_schedules(file, models, datasets):
    """A table of the schedules of models on data sets."""
    folder = "results/published/schedules"
    return expand(f"{folder}/{{m}}/{{d}}/{file}", m=models, d=datasets)


def released_slopes(models):
    """The slopes of models, by either rule."""
    return expand("results/published/schedules/{model}/slopes.csv", model=models)


def released_profiles(lengths, models="{model}", datasets="{dataset}"):
    """The profiles of every variant, length by length; model and data set stay open where none is named."""
    return expand(
        "results/published/rollout/{m}/{d}/n{n}/{variant}.csv",
        m=models,
        d=datasets,
        n=lengths,
        variant=[variant.name for variant in released.VARIANTS],
    )


def released_files(_):
    """The files that released.source is read from; where it names nothing, there is nothing to plan."""
    source = config["released"]["source"]
    if source is None:
        sys.exit(f"error: {released_source.fault(None, released_source.UNNAMED)}")
    return released_source.files(source)
