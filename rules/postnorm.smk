# Zsamboki et al. 2025: norms after attention, and sequences longer than those of training. Out: results/postnorm/ with
# tests of the trained networks by length, a task a folder, and the experiments that vary width, averaged weights and
# learning rate. A killed training resumes from checkpoints/postnorm/.


wildcard_constraints:
    task="|".join(map(re.escape, POSTNORM_TASKS)),


rule postnorm_train:
    """Train networks of every scheme of norms on short sequences of a task, and test them on longer ones."""
    input:
        library=library("postnorm_train.py"),
    output:
        tests="results/postnorm/{task}/tests.parquet",
        history="results/postnorm/{task}/history.parquet",
        run="results/postnorm/{task}/run.csv",
    log:
        "logs/postnorm/{task}.log",
    benchmark:
        "results/benchmarks/postnorm/{task}.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=1440,
        gpu=GPU,
    params:
        length=lambda wildcards: postnorm_length(wildcards.task),
        numbers=lambda wildcards: postnorm_settings(wildcards.task),
        common=POSTNORM_COMMON,
    script:
        "../scripts/postnorm_train.py"


rule postnorm_train_widths:
    """Train the minimal transformer with widths around v - 1."""
    input:
        library=library("postnorm_train_widths.py"),
    output:
        "results/postnorm/dimension.parquet",
    log:
        "logs/postnorm/dimension.log",
    benchmark:
        "results/benchmarks/postnorm/dimension.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=1440,
        gpu=GPU,
    params:
        numbers=lookup(dpath="postnorm/dimension", within=config),
        length=postnorm_length(WIDTHS_OF),
        minimal=postnorm_settings(WIDTHS_OF),
        common=POSTNORM_COMMON,
    script:
        "../scripts/postnorm_train_widths.py"


rule postnorm_train_averages:
    """Train the minimal transformer and test its last weights, their EMA and their BEMA."""
    input:
        library=library("postnorm_train_averages.py"),
    output:
        tests="results/postnorm/averaging/tests.parquet",
        run="results/postnorm/averaging/run.csv",
    log:
        "logs/postnorm/averaging.log",
    benchmark:
        "results/benchmarks/postnorm/averaging.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=1440,
        gpu=GPU,
    params:
        numbers=lookup(dpath="postnorm/averaging", within=config),
        common=POSTNORM_COMMON,
    script:
        "../scripts/postnorm_train_averages.py"


rule postnorm_train_stability:
    """Follow losses and gradients of shallow and deep networks without warmup, at several learning rates."""
    input:
        library=library("postnorm_train_stability.py"),
    output:
        "results/postnorm/stability.parquet",
    log:
        "logs/postnorm/stability.log",
    benchmark:
        "results/benchmarks/postnorm/stability.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=1440,
        gpu=GPU,
    params:
        numbers=lookup(dpath="postnorm/stability", within=config),
        lengths=lookup(dpath="postnorm/set_complement/lengths", within=config),
        batch=lookup(dpath="postnorm/set_complement/batch", within=config),
        common=POSTNORM_COMMON,
    script:
        "../scripts/postnorm_train_stability.py"


rule postnorm_construct:
    """Test the network that is built by hand."""
    input:
        library=library("postnorm_construct.py"),
    output:
        "results/postnorm/construction.csv",
    log:
        "logs/postnorm/construction.log",
    benchmark:
        "results/benchmarks/postnorm/construction.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        vocabulary=lookup(dpath="postnorm/construction/vocabulary", within=config),
        strength=lookup(dpath="postnorm/construction/strength", within=config),
        sequences=lookup(dpath="postnorm/test_sequences", within=config),
        seed=lookup(dpath="seed", within=config),
    script:
        "../scripts/postnorm_construct.py"


rule postnorm_sweep:
    """Distances at trained lengths for several learning rates, on seeds of their own: what the configuration's come from."""
    input:
        library=library("postnorm_sweep.py"),
    output:
        "results/evidence/postnorm/learning_rates.csv",
    log:
        "logs/evidence/postnorm/learning_rates.log",
    benchmark:
        "results/benchmarks/evidence/postnorm/learning_rates.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=1440,
        gpu=GPU,
    params:
        sweep=lookup(dpath="postnorm/sweep", within=config),
        postnorm=lookup(dpath="postnorm", within=config),
        common=POSTNORM_COMMON,
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/postnorm_sweep.py"
