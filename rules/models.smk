# Language models trained here. In: training text, tokenizer. Out: results/models/{model}/seed{seed}/step{step}/, a
# Hugging Face directory for every kept step, and loss.csv beside them. A killed job resumes from checkpoints/.


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
    log:
        "logs/models/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/models/{model}/seed{seed}.tsv"
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
