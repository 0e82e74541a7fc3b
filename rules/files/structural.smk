# Which files the rules of structural read, worked out from the configuration.

FIG1 = [model for model in config["structural"]["fig1"] if model in MODELS]
FIG2 = [model for model in MODELS if model not in FIG1]


# What the figure of a longer training shows -> its file below evidence/structural/
STRUCTURAL_EVIDENCE = {
    "profiles": "profiles",
    "statistics": "statistics",
    "mixing": "lambda",
    "content": "content",
    "losses": "losses",
}


def rollouts(file, dataset, n):
    """A file of the rollouts on one data set at one length."""
    return f"results/rollout/{{model}}/{{checkpoint}}/{dataset}/n{n}/{file}"


def structural_first_seeds(file):
    """A file of the last checkpoint of the first seed of every model, on the primary data set."""
    return [f"results/measure/{model}/{checkpoints(model, [LAST])[0]}/{PRIMARY}/{file}" for model in MODELS]


def evidence_models(file, models):
    """A file of each training of the models that are kept."""
    return [
        f"results/models/{model}/seed{seed}/{file}" for model in models for seed in config["models"][model]["seeds"]
    ]


def evidence_rungs(path):
    """A file of each checkpoint of the models that are kept."""
    return across_models(path.replace("{dataset}", PRIMARY), EVIDENCE["structural"], STEPS)


def table5_memory(files):
    """Megabytes for Table 5: twice the mean content logits of the largest measurement, and what every table takes."""
    return 1000 + 2 * max(os.path.getsize(file) for file in files) // 10**6
