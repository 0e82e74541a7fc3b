# Text. Out: results/corpus/{dataset}/{train,test}.parquet (columns id, text), read back by datasets.load_dataset, of the
# hub's data sets test.parquet alone; results/tokenizers/offline/; results/prompts/{tokenizer}/{dataset}/n{n}.safetensors
# (token ids, int64 [prompts, n]), where {tokenizer} is offline or a model of the hub, which has its own.


rule corpus:
    """Collect English prose from sources that every installation has, train and test documents apart."""
    input:
        library=library("corpus.py"),
    output:
        train="results/corpus/{dataset}/train.parquet",
        test="results/corpus/{dataset}/test.parquet",
        manifest="results/corpus/{dataset}.json",
    log:
        "logs/corpus/{dataset}.log",
    benchmark:
        "results/benchmarks/corpus/{dataset}.tsv"
    wildcard_constraints:
        dataset=named("datasets"),
    conda:
        "../envs/text.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=10,
    params:
        corpus=lookup(dpath="datasets/{dataset}/corpus", within=config),
    script:
        "../scripts/corpus.py"


rule hub_text:
    """Fetch the first documents of a data set of the hub. Where jobs are sent to a cluster, this one stays."""
    input:
        library=library("hub_text.py"),
    output:
        test="results/corpus/{dataset}/test.parquet",
        manifest="results/corpus/{dataset}.json",
    log:
        "logs/corpus/{dataset}.log",
    benchmark:
        "results/benchmarks/corpus/{dataset}.tsv"
    wildcard_constraints:
        dataset=named("hub_datasets"),
    localrule: True
    conda:
        "../envs/text.yaml"
    threads: 1
    resources:
        mem_mb=memory(4000),
        runtime=240,
    params:
        source=lookup(dpath="hub_datasets/{dataset}/source", within=config),
        revision=lookup(dpath="hub_datasets/{dataset}/revision", within=config),
        subset=lookup(dpath="hub_datasets/{dataset}/subset", within=config),
        split=lookup(dpath="hub_datasets/{dataset}/split", within=config),
        column=lookup(dpath="hub_datasets/{dataset}/column", within=config),
        documents=lookup(dpath="hub_datasets/{dataset}/documents", within=config),
    script:
        "../scripts/hub_text.py"


rule tokenizer:
    """Make the byte-level BPE tokenizer that all models trained here share."""
    input:
        library=library("tokenizer.py"),
        train=expand(
            "results/corpus/{dataset}/train.parquet",
            dataset=config["tokenizer"]["datasets"],
        ),
    output:
        directory("results/tokenizers/offline"),
    log:
        "logs/tokenizers/offline.log",
    benchmark:
        "results/benchmarks/tokenizers/offline.tsv"
    conda:
        "../envs/text.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=10,
    params:
        vocabulary=lookup(dpath="tokenizer/vocabulary", within=config),
    script:
        "../scripts/tokenizer.py"


rule prompts:
    """Sample the prompts of a measurement from test documents, once: every model and rerun sees the same ones."""
    input:
        library=library("prompts.py"),
        test="results/corpus/{dataset}/test.parquet",
        tokenizer=lambda wildcards: (
            "results/tokenizers/offline"
            if wildcards.tokenizer == "offline"
            else f"results/hub/{wildcards.tokenizer}.json"
        ),
    output:
        "results/prompts/{tokenizer}/{dataset}/n{n}.safetensors",
    log:
        "logs/prompts/{tokenizer}/{dataset}/n{n}.log",
    benchmark:
        "results/benchmarks/prompts/{tokenizer}/{dataset}/n{n}.tsv"
    conda:
        "../envs/text.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=10,
    params:
        prompts=lambda wildcards: PROMPTS[int(wildcards.n)],
        taken=lambda wildcards: taken(wildcards.dataset),
        seed=lookup(dpath="seed", within=config),
    script:
        "../scripts/prompts.py"
