# Kim et al. 2026: where norms point the scores of a causal decoder. Out: results/layernorm/ with the decoder without
# parameters (closed form and simulated), decoders with random weights, and small trained ones. The Gram of language
# models comes from rules/language_models.smk, the position gap of retrieval networks with norms from rules/emergence.smk.


include: "files/layernorm.smk"


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


rule layernorm_theory:
    """Verdicts on the theorems, laws and formulas, and on what is published of them."""
    output:
        "results/theory/layernorm/verdicts.csv",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **SIMULATION,
    params:
        numbers=config["layernorm"]["simulation"],
        level=config["layernorm"]["level"],
        scale=config["scale"],
    script:
        "../scripts/layernorm/theory.py"


rule layernorm_random_weights:
    """Recency of decoders with heads and random weights."""
    output:
        "results/layernorm/random_weights.parquet",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **SIMULATION,
    params:
        numbers=config["layernorm"]["random_weights"],
    script:
        "../scripts/layernorm/random_weights.py"


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
        learning_rate=lookup(
            dpath="layernorm/trained/learning_rate/{norm}", within=config
        ),
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


rule layernorm_draw_scores:
    """Theory: mean scores of the decoder without parameters, layer by layer, by norm and anisotropy."""
    input:
        scores="results/layernorm/simulation/scores.safetensors",
    output:
        **drawn("layernorm/scores"),
    params:
        alphas=config["layernorm"]["simulation"]["anisotropy"],
    script:
        "../scripts/layernorm/draw_scores.py"


rule layernorm_draw_closed_form:
    """Theory: scores of layer 2, the closed form over Monte Carlo."""
    input:
        table="results/layernorm/simulation/closed_form.csv",
    output:
        **drawn("layernorm/closed_form"),
    script:
        "../scripts/layernorm/draw_closed_form.py"


rule layernorm_draw_anisotropy:
    """Embeddings and residual connections: recency against anisotropy, by strength of the residual connection."""
    input:
        table="results/layernorm/simulation/anisotropy.csv",
    output:
        **drawn("layernorm/anisotropy"),
    script:
        "../scripts/layernorm/draw_anisotropy.py"


rule layernorm_draw_depth:
    """Depth (our addition): recency against it, the recursion over Monte Carlo."""
    input:
        table="results/layernorm/simulation/depth.csv",
    output:
        **drawn("layernorm/depth"),
    script:
        "../scripts/layernorm/draw_depth.py"


rule layernorm_draw_moments:
    """Embeddings and mask: recency by layer where moments depend on the position, and with a full mask."""
    input:
        table="results/layernorm/simulation/moments.csv",
    output:
        **drawn("layernorm/moments"),
    script:
        "../scripts/layernorm/draw_moments.py"


rule layernorm_draw_random_weights:
    """Random weights (our addition): recency of decoders with heads."""
    input:
        table="results/layernorm/random_weights.parquet",
    output:
        **drawn("layernorm/random_weights"),
    params:
        level=config["layernorm"]["level"],
    script:
        "../scripts/layernorm/draw_random_weights.py"


rule layernorm_draw_trained:
    """Trained decoders (our addition): where they attend without positional encoding, by norm."""
    input:
        tables=expand(
            "results/layernorm/trained/{norm}.parquet", norm=LAYERNORM_NETWORKS
        ),
    output:
        **drawn("layernorm/trained"),
    params:
        level=config["layernorm"]["level"],
    script:
        "../scripts/layernorm/draw_trained.py"


rule layernorm_draw_pretrained:
    """Language models: recency of their Gram, trained and untrained."""
    input:
        grams=GRAMS,
    output:
        **drawn("layernorm/pretrained"),
    params:
        level=config["layernorm"]["level"],
    script:
        "../scripts/layernorm/draw_pretrained.py"


rule layernorm_draw_emergence:
    """Retrieval (our addition): position gaps without norm, with pre-LN and with post-LN."""
    input:
        curves=emergence_shallow("curves.parquet", *NORMALISED.values()),
    output:
        **drawn("layernorm/emergence"),
    params:
        level=config["layernorm"]["level"],
    script:
        "../scripts/layernorm/draw_emergence.py"


rule layernorm_checks:
    """Verdicts on what norms do to scores: theory, random weights, trained networks, language models."""
    input:
        theory="results/theory/layernorm/verdicts.csv",
        random="results/layernorm/random_weights.parquet",
        trained=expand(
            "results/layernorm/trained/{norm}.parquet", norm=LAYERNORM_NETWORKS
        ),
        grams=GRAMS,
        curves=emergence_shallow("curves.parquet", *NORMALISED.values()),
        predictions=project("published/predictions.csv"),
    output:
        **tabled("layernorm/checks"),
    params:
        level=config["layernorm"]["level"],
        scale=config["scale"],
    script:
        "../scripts/layernorm/checks.py"


rule layernorm:
    """Every figure and table of Kim et al. 2026."""
    input:
        rules.layernorm_checks.output,
        rules.layernorm_draw_scores.output,
        rules.layernorm_draw_closed_form.output,
        rules.layernorm_draw_anisotropy.output,
        rules.layernorm_draw_depth.output,
        rules.layernorm_draw_moments.output,
        rules.layernorm_draw_random_weights.output,
        rules.layernorm_draw_trained.output,
        rules.layernorm_draw_pretrained.output,
        rules.layernorm_draw_emergence.output,
