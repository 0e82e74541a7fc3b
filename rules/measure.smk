# One forward and backward pass over the prompts yields every measured quantity. In: a model directory, prompts.
# Out: results/measure/{model}/{checkpoint}/{dataset}/n{n}/, one quantity a file; {checkpoint} is seed{seed}/step{step}.


rule measure:
    """Measure residual mixing, content logits, attention and influence of a model on one set of prompts."""
    input:
        library=library("measure.py"),
        model="results/models/{model}/{checkpoint}",
        prompts="results/prompts/offline/{dataset}/n{n}.safetensors",
    output:
        mixing="results/measure/{model}/{checkpoint}/{dataset}/n{n}/lambda.safetensors",
        content="results/measure/{model}/{checkpoint}/{dataset}/n{n}/content.safetensors",
        attention="results/measure/{model}/{checkpoint}/{dataset}/n{n}/attention.safetensors",
        influence="results/measure/{model}/{checkpoint}/{dataset}/n{n}/influence.safetensors",
        slopes="results/measure/{model}/{checkpoint}/{dataset}/n{n}/slopes.safetensors",
    log:
        "logs/measure/{model}/{checkpoint}/{dataset}/n{n}.log",
    benchmark:
        "results/benchmarks/measure/{model}/{checkpoint}/{dataset}/n{n}.tsv"
    conda:
        "../envs/language-models.yaml"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=60,
        gpu=GPU,
    params:
        tokens_per_batch=lookup(dpath="measure/tokens_per_batch", within=config),
    script:
        "../scripts/measure.py"
