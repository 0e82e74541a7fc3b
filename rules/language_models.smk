# Text. Out: results/corpus/{dataset}/{train,test}.parquet (columns id, text), read back by datasets.load_dataset, of the
# hub's data sets test.parquet alone; results/tokenizers/offline/; results/prompts/{tokenizer}/{dataset}/n{n}.safetensors
# (token ids and documents), where {tokenizer} is offline or a model of the hub, which has its own.
#
# Language models. Those trained here, in: training text, tokenizer; out: results/models/{model}/seed{seed}/step{step}/, a
# Hugging Face directory for every kept step, and loss.csv beside them; a killed job resumes from checkpoints/training/.
# Those of the hub, out: results/hub/{model}.json, which says what files they have in the hub's cache.
#
# One forward and backward pass over the prompts yields every measured quantity. In: a model directory, prompts.
# Out: results/measure/{model}/{checkpoint}/{dataset}/n{n}.safetensors, all quantities of a length; {checkpoint} is seed{seed}/step{step} of
# a model trained here, or hub. A job measures one model on one data set at every length: to import and open it costs as
# much as one length. A killed job goes on from checkpoints/measure/.

from position_bias.language_models import runs as language_models_runs

checkpoints = partial(language_models_runs.checkpoints, config)
trainings = partial(language_models_runs.trainings, config)
DATASETS = config["measure"]["datasets"]
MODELS = config["measure"]["models"]
TRAINED = [model for model in MODELS if model in config["models"]]
*SNAPSHOTS, LAST = STEPS = language_models_runs.steps(config)
MEASURED = "results/measure/{model}/{checkpoint}/{dataset}/n{n}.safetensors"
PRETRAINED = config["structural"]["pretrained"]  # which rules/structural.smk measures
hub_model = lambda wildcards: config["hub_models"][wildcards.model]
OF_HUB_MODEL = {  # what jobs ask for that run a model of the hub
    "mem_mb": lambda wildcards, attempt: 1000 * attempt * hub_model(wildcards)["memory"],
    "runtime": lambda wildcards: hub_model(wildcards)["minutes"],
    "gpu": gpus("measure", lambda wildcards: hub_model(wildcards)["gpus"]),
    "nodes": 1,
}
positions = lambda wildcards: config["hub_models"].get(wildcards.model, {"positions": "own"})["positions"]


rule corpus:
    """Collect English prose from sources that every installation has, train and test documents apart."""
    output:
        train="results/corpus/{dataset}/train.parquet",
        test="results/corpus/{dataset}/test.parquet",
        manifest="results/corpus/{dataset}.json",
    log:
        "logs/corpus/{dataset}.log",
    wildcard_constraints:
        dataset=one_of("datasets"),
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=memory(2000),
    params:
        corpus=lookup(dpath="datasets/{dataset}/corpus", within=config),
    script:
        "../scripts/language_models/corpus.py"


rule hub_text:
    """Fetch the first documents of a data set of the hub. Where jobs are sent to a cluster, this one stays."""
    output:
        test="results/corpus/{dataset}/test.parquet",
        manifest="results/corpus/{dataset}.json",
    log:
        "logs/corpus/{dataset}.log",
    wildcard_constraints:
        dataset=one_of("hub_datasets"),
    localrule: True
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=memory(4000),
        runtime=240,
    params:
        described=lookup(dpath="hub_datasets/{dataset}", within=config),
    script:
        "../scripts/language_models/hub_text.py"


rule tokenizer:
    """Make the byte-level BPE tokenizer that all models trained here share."""
    input:
        train=expand(
            "results/corpus/{dataset}/train.parquet",
            dataset=config["tokenizer"]["datasets"],
        ),
    output:
        directory("results/tokenizers/offline"),
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=memory(2000),
    params:
        vocabulary=config["tokenizer"]["vocabulary"],
    script:
        "../scripts/language_models/tokenizer.py"


rule prompts:
    """Sample the prompts of a measurement from test documents, once: every model and rerun sees the same ones."""
    input:
        test="results/corpus/{dataset}/test.parquet",
        tokenizer=lambda wildcards: (
            "results/tokenizers/offline"
            if wildcards.tokenizer == "offline"
            else f"results/hub/{wildcards.tokenizer}.json"
        ),
    output:
        "results/prompts/{tokenizer}/{dataset}/n{n}.safetensors",
    group:
        "prompts"
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=memory(2000),
    params:
        prompts=lambda wildcards: PROMPTS[int(wildcards.n)],
        taken=lambda wildcards: "first" if wildcards.dataset in config["hub_datasets"] else "every",  # window; the first, as the paper
        seed=config["seed"],
    script:
        "../scripts/language_models/prompts.py"


rule hub_model:
    """See that a model of the hub is at hand. Where jobs are sent to a cluster, this one stays."""
    output:
        "results/hub/{model}.json",
    wildcard_constraints:
        model=one_of("hub_models"),
    localrule: True
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=memory(4000),
        runtime=2880,
    params:
        source=lookup(dpath="hub_models/{model}/source", within=config),
        revision=lookup(dpath="hub_models/{model}/revision", within=config),
        family=lookup(dpath="hub_models/{model}/family", within=config),
    script:
        "../scripts/language_models/hub_model.py"


rule train:
    """Train a small language model of a real transformers class, from scratch."""
    input:
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
    wildcard_constraints:
        model=one_of("models"),
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(3000),
        runtime=config["minutes"]["train"],
        gpu=gpus("training"),
    params:
        family=lookup(dpath="models/{model}/family", within=config),
        architecture=lookup(dpath="models/{model}/architecture", within=config),
        training=config["training"],
    script:
        "../scripts/language_models/train.py"


rule measure:
    """Measure residual mixing, content, attention, kernels, influence, loss and Gram of a trained model at every length."""
    input:
        model="results/models/{model}/{checkpoint}",
        prompts=expand("results/prompts/offline/{{dataset}}/n{n}.safetensors", n=PROMPTS),
    output:
        collect(MEASURED, n=PROMPTS, allow_missing=True),
    log:
        "logs/measure/{model}/{checkpoint}/{dataset}.log",
    wildcard_constraints:
        checkpoint=rf"seed\d+/step{LAST}",
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(3000),
        runtime=config["minutes"]["measure"],
        gpu=gpus("measure"),
    params:
        precision=config["measure"]["precision"],
        positions=positions,
        tokens_per_batch=config["measure"]["tokens_per_batch"],
        activation_checkpointing=config["measure"]["activation_checkpointing"],
        matrices_up_to=config["measure"]["matrices_up_to"],
    script:
        "../scripts/language_models/measure.py"


use rule measure as measure_snapshot with:
    input:
        model="results/models/{model}/{checkpoint}",
        prompts=[f"results/prompts/offline/{{dataset}}/n{STANDARD}.safetensors"],
    output:
        collect(MEASURED, n=[STANDARD], allow_missing=True),
    wildcard_constraints:
        checkpoint=rf"seed\d+/step(?!{LAST}/)\d+",


use rule measure as measure_hub with:
    input:
        model="results/hub/{model}.json",
        prompts=expand("results/prompts/{{model}}/{{dataset}}/n{n}.safetensors", n=PROMPTS),
    wildcard_constraints:
        model=any_of(model for model in config["hub_models"] if model not in PRETRAINED["models"]),
        checkpoint="hub",
    resources:
        **OF_HUB_MODEL,
