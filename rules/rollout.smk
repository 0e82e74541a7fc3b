# Predictions and their distance to the measurement. In: results/measure/.../. Out, under the same path below
# results/rollout/: profiles.parquet (every variant with its interval), statistics.parquet, and the bootstrap replicates of
# the statistics, from which verdicts on differences are drawn.


rule rollout:
    """Roll attention out under every variant of Section 6.2 and compare with the measured influence."""
    input:
        library=library("rollout.py"),
        mixing="results/measure/{model}/{checkpoint}/{dataset}/n{n}/lambda.safetensors",
        content="results/measure/{model}/{checkpoint}/{dataset}/n{n}/content.safetensors",
        attention="results/measure/{model}/{checkpoint}/{dataset}/n{n}/attention.safetensors",
        influence="results/measure/{model}/{checkpoint}/{dataset}/n{n}/influence.safetensors",
        slopes="results/measure/{model}/{checkpoint}/{dataset}/n{n}/slopes.safetensors",
    output:
        profiles="results/rollout/{model}/{checkpoint}/{dataset}/n{n}/profiles.parquet",
        statistics="results/rollout/{model}/{checkpoint}/{dataset}/n{n}/statistics.parquet",
        replicates="results/rollout/{model}/{checkpoint}/{dataset}/n{n}/replicates.parquet",
    log:
        "logs/rollout/{model}/{checkpoint}/{dataset}/n{n}.log",
    benchmark:
        "results/benchmarks/rollout/{model}/{checkpoint}/{dataset}/n{n}.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=20,
    params:
        bootstrap=lookup(dpath="rollout/bootstrap", within=config),
        level=lookup(dpath="rollout/level", within=config),
        seed=lookup(dpath="seed", within=config),
    script:
        "../scripts/rollout.py"
