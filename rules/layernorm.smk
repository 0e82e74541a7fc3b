# Kim et al. 2026: where norms point the scores of a causal decoder. Out: results/layernorm/ with the decoder without
# parameters (closed form and simulated), decoders with random weights, and small trained ones. The Gram of language
# models comes from rules/measure.smk, the position gap of retrieval networks with norms from rules/emergence.smk.


rule layernorm_simulate:
    """Scores of the decoder without parameters: closed forms and the recursion beside Monte Carlo."""
    input:
        library=library("layernorm_simulate.py"),
    output:
        scores="results/layernorm/simulation/scores.safetensors",
        closed_form="results/layernorm/simulation/closed_form.csv",
        anisotropy="results/layernorm/simulation/anisotropy.csv",
        depth="results/layernorm/simulation/depth.csv",
    log:
        "logs/layernorm/simulation.log",
    benchmark:
        "results/benchmarks/layernorm/simulation.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=120,
    params:
        numbers=lookup(dpath="layernorm/simulation", within=config),
        level=lookup(dpath="layernorm/level", within=config),
    script:
        "../scripts/layernorm_simulate.py"


rule layernorm_theory:
    """Verdicts on the theorems, laws and formulas, and on what is published of them."""
    input:
        library=library("layernorm_theory.py"),
    output:
        "results/theory/layernorm/verdicts.csv",
    log:
        "logs/theory/layernorm/verdicts.log",
    benchmark:
        "results/benchmarks/theory/layernorm/verdicts.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=120,
    params:
        numbers=lookup(dpath="layernorm/simulation", within=config),
        level=lookup(dpath="layernorm/level", within=config),
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/layernorm_theory.py"


rule layernorm_random:
    """Recency of decoders with heads and random weights."""
    input:
        library=library("layernorm_random.py"),
    output:
        "results/layernorm/random_weights.parquet",
    log:
        "logs/layernorm/random_weights.log",
    benchmark:
        "results/benchmarks/layernorm/random_weights.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=120,
    params:
        numbers=lookup(dpath="layernorm/random_weights", within=config),
    script:
        "../scripts/layernorm_random.py"


rule layernorm_train:
    """Train small decoders of one norm, every seed of them, on sequences whose order says nothing."""
    input:
        library=library("layernorm_train.py"),
    output:
        "results/layernorm/trained/{norm}.parquet",
    log:
        "logs/layernorm/trained/{norm}.log",
    benchmark:
        "results/benchmarks/layernorm/trained/{norm}.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=1440,
        gpu=GPU,
    params:
        data=lookup(dpath="layernorm/trained/data", within=config),
        size=lookup(dpath="layernorm/trained/size", within=config),
        batch=lookup(dpath="layernorm/trained/batch", within=config),
        iterations=lookup(dpath="layernorm/trained/iterations", within=config),
        warmup=lookup(dpath="layernorm/trained/warmup", within=config),
        learning_rate=lookup(
            dpath="layernorm/trained/learning_rate/{norm}", within=config
        ),
        weight_decay=lookup(dpath="layernorm/trained/weight_decay", within=config),
        held_out=lookup(dpath="layernorm/trained/held_out", within=config),
        seeds=lookup(dpath="layernorm/trained/seeds", within=config),
    script:
        "../scripts/layernorm_train.py"


rule layernorm_sweep:
    """Losses of the decoders at several learning rates, on seeds of their own: what the configuration's come from."""
    input:
        library=library("layernorm_sweep.py"),
    output:
        "results/evidence/layernorm/learning_rates.csv",
    log:
        "logs/evidence/layernorm/learning_rates.log",
    benchmark:
        "results/benchmarks/evidence/layernorm/learning_rates.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=1440,
        gpu=GPU,
    params:
        trained=lookup(dpath="layernorm/trained", within=config),
        sweep=lookup(dpath="layernorm/sweep", within=config),
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/layernorm_sweep.py"
