# Language models. Those trained here, in: training text, tokenizer; out: results/models/{model}/seed{seed}/step{step}/, a
# Hugging Face directory for every kept step, and loss.csv beside them; a killed job resumes from checkpoints/. Those of
# the hub, out: results/hub/{model}.json, which says what files they have in the hub's cache.


rule hub_model:
    """See that a model of the hub is at hand. Where jobs are sent to a cluster, this one stays."""
    input:
        library=library("hub_model.py"),
    output:
        "results/hub/{model}.json",
    log:
        "logs/hub/{model}.log",
    benchmark:
        "results/benchmarks/hub/{model}.tsv"
    wildcard_constraints:
        model=named("hub_models"),
    localrule: True
    conda:
        "../envs/text.yaml"
    threads: 1
    resources:
        mem_mb=memory(4000),
        runtime=2880,
    params:
        source=lookup(dpath="hub_models/{model}/source", within=config),
        revision=lookup(dpath="hub_models/{model}/revision", within=config),
        family=lookup(dpath="hub_models/{model}/family", within=config),
    script:
        "../scripts/hub_model.py"


rule train:
    """Train a small language model of a real transformers class, from scratch."""
    input:
        library=library("train.py"),
        train=expand(
            "results/corpus/{dataset}/train.parquet",
            dataset=config["training"]["datasets"],
        ),
        test=expand(
            "results/corpus/{dataset}/test.parquet",
            dataset=config["training"]["datasets"],
        ),
        tokenizer="results/tokenizers/offline",
    output:
        models=directory(
            expand(
                "results/models/{{model}}/seed{{seed}}/step{step}",
                step=STEPS,
            )
        ),
        loss="results/models/{model}/seed{seed}/loss.csv",
        run="results/models/{model}/seed{seed}/run.csv",
    log:
        "logs/models/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/models/{model}/seed{seed}.tsv"
    wildcard_constraints:
        model=named("models"),
    conda:
        "../envs/language-models.yaml"
    threads: 1
    resources:
        mem_mb=memory(3000),
        runtime=60,
        gpu=GPU,
    params:
        family=lookup(dpath="models/{model}/family", within=config),
        architecture=lookup(dpath="models/{model}/architecture", within=config),
        context=lookup(dpath="training/context", within=config),
        batch=lookup(dpath="training/batch", within=config),
        steps=lookup(dpath="training/steps", within=config),
        learning_rate=lookup(dpath="training/learning_rate", within=config),
        warmup=lookup(dpath="training/warmup", within=config),
        weight_decay=lookup(dpath="training/weight_decay", within=config),
        clip=lookup(dpath="training/clip", within=config),
        held_out=lookup(dpath="training/held_out", within=config),
        snapshots=STEPS,
    script:
        "../scripts/train.py"
