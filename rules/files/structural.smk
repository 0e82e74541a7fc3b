# Which files the rules of structural read, worked out from the configuration.

FIG1 = [model for model in config["structural"]["fig1"] if model in MODELS]
FIG2 = [model for model in MODELS if model not in FIG1]


def rollouts(file, dataset, n):
    """A file of the rollouts on one data set at one length."""
    return f"results/rollout/{{model}}/{{checkpoint}}/{dataset}/n{n}/{file}"


def structural_profiles(models, missing):
    """Input of the figure that shows these models; where there is none, asking for it is an error, and says why."""

    def found(_):
        if not models:
            sys.exit(
                f"error: config: structural.fig1 = {config['structural']['fig1']} leaves this figure without a model; "
                f"name {missing} of measure.models: {', '.join(MODELS)}"
            )
        return across_models(rollouts("profiles.parquet", PRIMARY, STANDARD), models)

    return found


def evidence_models(file, models):
    """A file of each training of the models that are kept."""
    return [
        f"results/models/{model}/seed{seed}/{file}"
        for model in models
        for seed in config["models"][model]["seeds"]
    ]


def evidence_rungs(path):
    """A file of each checkpoint of the models that are kept."""
    return across_models(
        path.replace("{dataset}", PRIMARY), EVIDENCE["structural"], STEPS
    )


def table5_memory(files):
    """Megabytes for Table 5: twice the mean content logits of the largest measurement, and what every table takes."""
    return 1000 + 2 * max(os.path.getsize(file) for file in files) // 10**6
