# One forward and backward pass over the prompts yields every measured quantity. In: a model directory, prompts.
# Out: results/measure/{model}/{checkpoint}/{dataset}/n{n}/, one quantity a file; {checkpoint} is seed{seed}/step{step} of
# a model trained here, or hub. A job measures one model on one data set at every length: to import and open it costs as
# much as one length. A killed job goes on from checkpoints/measure/.


rule measure:
    """Measure residual mixing, content logits, attention, influence and Gram of a trained model at every length."""
    input:
        library=library("measure.py"),
        model="results/models/{model}/{checkpoint}",
        prompts=expand(
            "results/prompts/offline/{{dataset}}/n{n}.safetensors", n=PROMPTS
        ),
    output:
        mixing=measured("lambda", PROMPTS),
        content=measured("content", PROMPTS),
        attention=measured("attention", PROMPTS),
        influence=measured("influence", PROMPTS),
        gram=measured("gram", PROMPTS),
        slopes=measured("slopes", PROMPTS),
    log:
        "logs/measure/{model}/{checkpoint}/{dataset}.log",
    benchmark:
        "results/benchmarks/measure/{model}/{checkpoint}/{dataset}.tsv"
    wildcard_constraints:
        checkpoint=rf"seed\d+/step{LAST}",
    conda:
        "../envs/language-models.yaml"
    threads: 1
    resources:
        mem_mb=memory(3000),
        runtime=60,
        gpu=GPU,
    params:
        precision=lookup(dpath="measure/precision", within=config),
        positions=positions,
        tokens_per_batch=lookup(dpath="measure/tokens_per_batch", within=config),
        activation_checkpointing=lookup(
            dpath="measure/activation_checkpointing", within=config
        ),
    script:
        "../scripts/measure.py"


use rule measure as measure_snapshot with:
    input:
        library=library("measure.py"),
        model="results/models/{model}/{checkpoint}",
        prompts=[f"results/prompts/offline/{{dataset}}/n{STANDARD}.safetensors"],
    output:
        mixing=measured("lambda", [STANDARD]),
        content=measured("content", [STANDARD]),
        attention=measured("attention", [STANDARD]),
        influence=measured("influence", [STANDARD]),
        gram=measured("gram", [STANDARD]),
        slopes=measured("slopes", [STANDARD]),
    wildcard_constraints:
        checkpoint=rf"seed\d+/step(?!{LAST}/)\d+",


use rule measure as measure_hub with:
    input:
        library=library("measure.py"),
        model="results/hub/{model}.json",
        prompts=expand(
            "results/prompts/{{model}}/{{dataset}}/n{n}.safetensors", n=PROMPTS
        ),
    wildcard_constraints:
        checkpoint="hub",
    resources:
        mem_mb=lambda wildcards, attempt: 1000
        * attempt
        * hub_model(wildcards, "memory"),
        runtime=lambda wildcards: hub_model(wildcards, "minutes"),
        gpu=lambda wildcards: GPU * hub_model(wildcards, "gpus"),
