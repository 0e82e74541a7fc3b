# Text. Out: results/corpus/{dataset}/{train,test}.parquet (columns id, text), read back by datasets.load_dataset;
# results/tokenizers/offline/; results/prompts/offline/{dataset}/n{n}.safetensors (token ids, int64 [prompts, n]).


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
        tokenizer="results/tokenizers/offline",
    output:
        "results/prompts/offline/{dataset}/n{n}.safetensors",
    log:
        "logs/prompts/offline/{dataset}/n{n}.log",
    benchmark:
        "results/benchmarks/prompts/offline/{dataset}/n{n}.tsv"
    conda:
        "../envs/text.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=10,
    params:
        prompts=lambda wildcards: PROMPTS[int(wildcards.n)],
        seed=lookup(dpath="seed", within=config),
    script:
        "../scripts/prompts.py"
