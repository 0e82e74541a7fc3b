# Which files the rules of language models, and all that build on them, read: names, lengths, checkpoints.

DATASETS = config["measure"]["datasets"]
MODELS = config["measure"]["models"]
TRAINED = [model for model in MODELS if model in config["models"]]

STEPS = sorted({*config["training"]["snapshots"], config["training"]["steps"]})
LAST = config["training"]["steps"]


def checkpoints(model, steps):
    """What is measured of a model: every seed at the given steps of training, or the model of the hub itself."""
    if model in config["hub_models"]:
        return ["hub"] if LAST in steps else []
    return [f"seed{seed}/step{step}" for seed in config["models"][model]["seeds"] for step in steps]


def across_models(patterns, models=MODELS, steps=(LAST,)):
    """The patterns for every checkpoint of the models at the given steps of training; other wildcards stay open."""
    return [
        pattern.replace("{model}", model).replace("{checkpoint}", checkpoint)
        for pattern in ([patterns] if isinstance(patterns, str) else patterns)
        for model in models
        for checkpoint in checkpoints(model, steps)
    ]


def across_datasets(patterns):
    """The patterns for every measured model, checkpoint and data set."""
    return [path.replace("{dataset}", dataset) for dataset in DATASETS for path in across_models(patterns)]


def window_rule(dataset):
    """What windows are taken from a document: of a large data set the first, as the paper does."""
    return "first" if dataset in config["hub_datasets"] else "every"


def hub_model(wildcards, key):
    """What the configuration says of a model of the hub."""
    return config["hub_models"][wildcards.model][key]


def positions(wildcards):
    """How a model knows positions: one trained here in its family's own way."""
    trained_here = {"positions": "own"}
    return config["hub_models"].get(wildcards.model, trained_here)["positions"]


def measured(quantity, lengths):
    """Files of one measured quantity, one a length."""
    folder = "results/measure/{model}/{checkpoint}/{dataset}"
    return [f"{folder}/n{n}/{quantity}.safetensors" for n in lengths]
