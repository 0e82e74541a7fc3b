# Kim et al. 2026: where norms point the scores of a causal decoder. Out: results/layernorm/ with the decoder without
# parameters (closed form and simulated), decoders with random weights, and small trained ones. The Gram of language
# models comes from rules/language_models.smk, the accuracy gap of retrieval networks with norms from rules/emergence.smk.

LAYERNORM_NETWORKS = list(config["layernorm"]["trained"]["learning_rate"])
LAYERNORM_TABLES = [f"results/layernorm/trained/{norm}.parquet" for norm in LAYERNORM_NETWORKS]
LAYERNORM_TRAINED = {  # what networks of every norm have alike
    name: value for name, value in config["layernorm"]["trained"].items() if name != "learning_rate"
}
NORMALISED = [  # retrieval networks with a causal mask alone and residual connections: without norm, pre-LN, post-LN
    run
    for run in study_runs(("gaussian", "residual"), ("gaussian", "pre-norm"), ("gaussian", "post-norm"))
    if run.shallow
]
GRAMS = collect(  # of the language models, untrained where the configuration keeps that, and trained
    f"results/measure/{{run}}/{PRIMARY}/n{STANDARD}.safetensors",
    run=checkpoints(config["layernorm"]["pretrained"], sorted({STEPS[0], LAST})),
)


rule layernorm_simulate:
    """Scores of the decoder without parameters: closed forms and the recursion beside Monte Carlo."""
    output:
        scores="results/layernorm/simulation/scores.safetensors",
        closed_form="results/layernorm/simulation/closed_form.csv",
        anisotropy="results/layernorm/simulation/anisotropy.csv",
        depth="results/layernorm/simulation/depth.csv",
        moments="results/layernorm/simulation/moments.csv",
    log:
        "logs/layernorm/simulation.log",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **SIMULATION,
    params:
        numbers=config["layernorm"]["simulation"],
        level=config["layernorm"]["level"],
    script:
        "../scripts/layernorm/simulate.py"


rule layernorm_train:
    """Train small decoders of one norm, every seed of them, on sequences whose order says nothing."""
    output:
        "results/layernorm/trained/{norm}.parquet",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("layernorm"),
    params:
        trained=LAYERNORM_TRAINED,
        learning_rate=lookup(dpath="layernorm/trained/learning_rate/{norm}", within=config),
    script:
        "../scripts/layernorm/train.py"


rule layernorm_sweep:
    """Losses of the decoders at several learning rates, on seeds of their own: what the configuration's come from."""
    output:
        "results/evidence/layernorm/learning_rates.csv",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("layernorm"),
    params:
        trained=LAYERNORM_TRAINED,
        sweep=config["layernorm"]["sweep"],
        scale=config["scale"],
    script:
        "../scripts/layernorm/sweep.py"


# Figures and tables: a row each, see rules/rows.smk.

SIMULATED = "results/layernorm/simulation"
LEVEL = {"level": config["layernorm"]["level"]}

FIGURES |= {
    "layernorm/scores": Row(
        "Theory: mean scores of the decoder without parameters, layer by layer, by norm and anisotropy.",
        "layernorm.figures:scores",
        {"maps": f"{SIMULATED}/scores.safetensors"},
        {"alphas": config["layernorm"]["simulation"]["anisotropy"]},
    ),
    "layernorm/closed_form": Row(
        "Theory: scores of layer 2, the closed form over Monte Carlo.",
        "layernorm.figures:closed_form",
        {"table": f"{SIMULATED}/closed_form.csv"},
    ),
    "layernorm/anisotropy": Row(
        "Embeddings and residual connections: recency against anisotropy, by strength of the residual connection.",
        "layernorm.figures:anisotropy",
        {"table": f"{SIMULATED}/anisotropy.csv"},
    ),
    "layernorm/depth": Row(
        "Depth (our addition): recency against it, the recursion over Monte Carlo.",
        "layernorm.figures:depth",
        {"table": f"{SIMULATED}/depth.csv"},
    ),
    "layernorm/moments": Row(
        "Embeddings and mask: recency by layer where moments depend on the position, and with a full mask.",
        "layernorm.figures:moments",
        {"table": f"{SIMULATED}/moments.csv"},
    ),
    "layernorm/random_weights": Row(
        "Random weights (our addition): recency of decoders with heads.",
        "layernorm.figures:random_weights",
        {"table": "results/layernorm/random_weights.parquet"},
        LEVEL,
    ),
    "layernorm/trained": Row(
        "Trained decoders (our addition): where they attend without positional encoding, by norm.",
        "layernorm.figures:trained_decoders",
        {"table": LAYERNORM_TABLES},
        LEVEL,
    ),
    "layernorm/pretrained": Row(
        "Language models: recency of their Gram, trained and untrained.",
        "layernorm.figures:pretrained",
        {"grams": GRAMS},
        LEVEL,
    ),
    "layernorm/emergence": Row(
        "Retrieval (our addition): accuracy gaps without norm, with pre-LN and with post-LN.",
        "layernorm.figures:emergence",
        {"tests": collect(CURVES, run=NORMALISED)},
        LEVEL,
    ),
}
TABLES["layernorm/checks"] = Row(
    "Verdicts on what norms do to scores: theory, random weights, trained networks, language models.",
    "layernorm.checks:verdicts",
    {
        "theory": f"{SIMULATED}/theory.parquet",
        "random": "results/layernorm/random_weights.parquet",
        "trained": LAYERNORM_TABLES,
        "grams": GRAMS,
        "tests": collect(CURVES, run=NORMALISED),
        "predicted": project("published/predictions.csv"),
    },
    LEVEL | {"scale": config["scale"], "decoders": list(PRETRAINED["models"])},
    readable="verdicts.judge:readable",
)
FILES |= {
    "layernorm_theory": Row(
        "Estimates of what theorems, laws and formulas say, and of what is published of them.",
        "layernorm.checks_theory:table",
        values=LEVEL
        | {
            name: config["layernorm"]["simulation"][name]
            for name in ("tokens", "width", "sequences", "limit_tokens", "seed")
        },
        outputs={"parquet": f"{SIMULATED}/theory.parquet"},
        environment="synthetic",
        needs=SIMULATION,
    ),
    "layernorm_random_weights": Row(
        "Recency of decoders with heads and random weights.",
        "layernorm.simulation:random_weights",
        values=config["layernorm"]["random_weights"],
        outputs={"parquet": "results/layernorm/random_weights.parquet"},
        environment="synthetic",
        needs=SIMULATION,
    ),
}


rule layernorm:
    """Every figure and table of Kim et al. 2026."""
    input:
        wing_outputs("layernorm"),
