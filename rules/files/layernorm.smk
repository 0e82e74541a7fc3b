# Which files the rules of layernorm read, worked out from the configuration.

LAYERNORM_TRAINED = {  # what networks of every norm have alike
    name: value for name, value in config["layernorm"]["trained"].items() if name != "learning_rate"
}
LAYERNORM_NETWORKS = list(config["layernorm"]["trained"]["learning_rate"])
LAYERNORM_TABLES = [f"results/layernorm/trained/{norm}.parquet" for norm in LAYERNORM_NETWORKS]
NORMALISED = {  # norm -> vocabulary and study of emergence with a causal mask alone and residual connections
    "none": ("gaussian", "residual"),
    "pre": ("gaussian", "pre-norm"),
    "post": ("gaussian", "post-norm"),
}
GRAMS = [  # of the language models, untrained where the configuration keeps that, and trained
    path.replace("{dataset}", PRIMARY)
    for path in across_models(
        measured("gram", [STANDARD]),
        config["layernorm"]["pretrained"],
        steps=sorted({STEPS[0], LAST}),
    )
]
