# What all stages share: the checked configuration, wildcards, the library as input, the GPU tag, lists of targets.

import json
import os
import re
import sys
from functools import partial
from pathlib import Path

import yaml

sys.path.insert(0, str(workflow.basedir))

from position_bias.emergence import settings as of_emergence
from position_bias.language_models import settings as of_language_models
from position_bias.layernorm import settings as of_layernorm
from position_bias.postnorm import settings as of_postnorm
from position_bias.released import models as released
from position_bias.released import source as released_source
from position_bias.running import configuration, devices, imports, runtime
from position_bias.verdicts import claim as of_claims

ROOT = Path(workflow.basedir)

SCHEMA = yaml.load(
    (ROOT / "config/schema.yaml").read_text(),
    Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader),  # in C, where it was built
)

configuration.read_numbers(config, SCHEMA)
try:
    configuration.check(
        config,
        SCHEMA,
        of_language_models.faults,
        of_emergence.faults,
        of_layernorm.faults,
        of_postnorm.faults,
    )
    CLAIMS = of_claims.registry(ROOT / "published/claims.csv")
except runtime.InputError as error:
    sys.exit(f"error: {error}")


PRIMARY = config["primary_dataset"]
HEATMAP, STANDARD, LONG = (
    config["lengths"][purpose]["tokens"] for purpose in ("heatmap", "standard", "long")
)
MORE = [length["tokens"] for length in config["lengths"]["more"]]
PROMPTS = {
    length["tokens"]: length["prompts"]
    for length in [
        *(config["lengths"][purpose] for purpose in ("heatmap", "standard", "long")),
        *config["lengths"]["more"],
    ]
}

# 1 where a job will hold a GPU, 0 on a machine without one: a GPU limit must not throttle a laptop.
GPU = int(devices.uses_gpu(config["device"]))

DATASETS = config["measure"]["datasets"]
MODELS = config["measure"]["models"]
TRAINED = [model for model in MODELS if model in config["models"]]
FIG1 = config["fig1"]
FIG2 = [model for model in MODELS if model not in FIG1]

STEPS = sorted({*config["training"]["snapshots"], config["training"]["steps"]})
LAST = config["training"]["steps"]


def named(*parts):
    """A pattern of the names in parts of the configuration."""
    return (
        "|".join(re.escape(name) for part in parts for name in config[part]) or "(?!)"
    )


wildcard_constraints:
    dataset=named("datasets", "hub_datasets"),
    model=named("models", "hub_models"),
    seed=r"\d+",
    checkpoint=r"seed\d+/step\d+|hub",
    tokenizer=f"offline|{named('hub_models')}",
    n="|".join(map(str, PROMPTS)),


def project(file):
    """A file of the project, wherever --directory puts the results."""
    return os.path.relpath(ROOT / file)


def memory(megabytes):
    """What a job asks for: this at first, and as much again each time it is retried."""
    return lambda wildcards, attempt: megabytes * attempt


def library(script):
    """The library files that a script runs, as inputs: editing one rebuilds what was computed with it."""
    return [project(path) for path in imports.closure(ROOT / "scripts" / script, ROOT)]


def checkpoints(model, steps):
    """What is measured of a model: every seed at the given steps of training, or the model of the hub itself."""
    if model in config["hub_models"]:
        return ["hub"] if LAST in steps else []
    return [
        f"seed{seed}/step{step}"
        for seed in config["models"][model]["seeds"]
        for step in steps
    ]


def across_models(patterns, models=MODELS, steps=(LAST,)):
    """The patterns for every checkpoint of the models at the given steps of training; other wildcards stay open."""
    return [
        pattern.replace("{model}", model).replace("{checkpoint}", checkpoint)
        for pattern in ([patterns] if isinstance(patterns, str) else patterns)
        for model in models
        for checkpoint in checkpoints(model, steps)
    ]


def across_datasets(patterns):
    """The patterns for every measured model, checkpoint and data set."""
    return [
        path.replace("{dataset}", dataset)
        for dataset in DATASETS
        for path in across_models(patterns)
    ]


def taken(dataset):
    """What windows are taken from a document: of a large data set the first, as the paper does."""
    return "first" if dataset in config["hub_datasets"] else "every"


def hub_model(wildcards, key):
    """What the configuration says of a model of the hub."""
    return config["hub_models"][wildcards.model][key]


def positions(wildcards):
    """How a model knows positions: one trained here in its family's own way."""
    trained_here = {"positions": "own"}
    return config["hub_models"].get(wildcards.model, trained_here)["positions"]


def measured(quantity, lengths):
    """Files of one measured quantity, one a length."""
    folder = "results/measure/{model}/{checkpoint}/{dataset}"
    return [f"{folder}/n{n}/{quantity}.safetensors" for n in lengths]


def rollouts(file, dataset, n):
    """A file of the rollouts on one data set at one length."""
    return f"results/rollout/{{model}}/{{checkpoint}}/{dataset}/n{n}/{file}"


# Of emergence

EMERGENCE = config["emergence"]
SHALLOW = 2  # layers of every study but those of depth


def emergence_seeds(wildcards):
    """How many seeds a study has at a depth."""
    if wildcards.study == "ends":
        return EMERGENCE["seeds"]["ends"]
    return EMERGENCE["seeds"]["shallow" if int(wildcards.depth) <= SHALLOW else "deep"]


def emergence_iterations(wildcards):
    """How long the networks of a study train."""
    kinds = {"ends": "ends", **dict.fromkeys(["first", "middle", "last"], "position")}
    return EMERGENCE["training"]["iterations"][kinds.get(wildcards.study, "unbiased")]


def emergence_depths(vocabulary, study):
    """The layers that a study is trained with; none, where the configuration trains no network of it."""
    depths = EMERGENCE["depths"][vocabulary].get(study, [SHALLOW])
    return depths if EMERGENCE["networks"][study] else []


def emergence_curves(*shown):
    """The learning curves of studies, each a pair of vocabulary and study, at every depth."""
    return [
        f"results/emergence/{vocabulary}/{study}/depth{depth}/curves.parquet"
        for vocabulary, study in shown
        for depth in emergence_depths(vocabulary, study)
    ]


def emergence_shallow(file, *shown):
    """A file of the shallow networks of studies, each a pair of vocabulary and study."""
    return [
        f"results/emergence/{vocabulary}/{study}/depth{SHALLOW}/{file}"
        for vocabulary, study in shown
        if SHALLOW in emergence_depths(vocabulary, study)
    ]


def emergence_figures(figures):
    """Which of the figures show something: a configuration may train no network of a study."""
    return [name for name, shown in figures.items() if emergence_depths(*shown)]


def emergence_without_encoding(figures):
    """As `emergence_figures`, of figures that show networks without positional encoding alone."""
    return [
        name
        for name in emergence_figures(figures)
        if any(
            Path(network).name == "none"  # MASK/ENCODING
            for network in EMERGENCE["networks"][figures[name][1]]
        )
    ]


def emergence_shown(figures, files, drawn=emergence_figures):
    """Input of the `drawn` ones among the figures: the files of what each shows. Another is an error, and says why."""

    def found(wildcards):
        vocabulary, study = figures[wildcards.figure]
        if wildcards.figure not in drawn(figures):
            sys.exit(
                f"error: config: emergence.networks.{study} names no network that {wildcards.figure} shows; add one, "
                f"and depths of {vocabulary} {study}"
            )
        return files((vocabulary, study))

    return found


# Of layernorm

LAYERNORM_NETWORKS = list(config["layernorm"]["trained"]["learning_rate"])
NORMALISED = {  # norm -> vocabulary and study of emergence with a causal mask alone and residual connections
    "none": ("gaussian", "residual"),
    "pre": ("gaussian", "pre-norm"),
    "post": ("gaussian", "post-norm"),
}
GRAMS = [  # of the language models, untrained where the configuration keeps that, and trained
    path.replace("{dataset}", PRIMARY)
    for path in across_models(
        measured("gram", [STANDARD]),
        config["layernorm"]["pretrained"],
        steps=sorted({STEPS[0], LAST}),
    )
]


# Of postnorm

POSTNORM = config["postnorm"]
POSTNORM_TASKS = [
    *POSTNORM["set_complement"]["lengths"],
    *POSTNORM["languages"]["lengths"],
]
WIDTHS_OF = f"set-complement-{POSTNORM['dimension']['vocabulary']}"
POSTNORM_COMMON = {
    name: POSTNORM[name] for name in ("warmup", "weight_decay", "test_sequences")
}


def postnorm_part(task):
    """What the configuration says of tasks like this one."""
    return POSTNORM[of_postnorm.part_of(task)]


def postnorm_length(task):
    """Length of the training sequences of a task."""
    return postnorm_part(task)["lengths"][task]


def postnorm_rates(task):
    """Learning rate of each scheme."""
    rates = postnorm_part(task)["learning_rate"]
    return rates[task] if task in POSTNORM["set_complement"]["lengths"] else rates


def postnorm_settings(task):
    """All else that decides how the networks of a task train."""
    settings = dict(postnorm_part(task), learning_rate=postnorm_rates(task))
    del settings["lengths"]
    return settings


def postnorm_tests(file, part):
    """A file of every task in a part of the configuration."""
    return [f"results/postnorm/{task}/{file}" for task in POSTNORM[part]["lengths"]]


# Of the released numbers

RELEASED_LENGTHS = config["published_lengths"]
RELEASED_STANDARD = min(RELEASED_LENGTHS)  # lambda and content were measured at 256
RELEASED_FIG1 = ["mpt-30b", "bloom-176b"]
RELEASED_FIG2 = [model for model in released.MODELS if model not in RELEASED_FIG1]


def released_schedules(file, models, datasets):
    """A table of the schedules of models on data sets."""
    folder = "results/published/schedules"
    return expand(f"{folder}/{{m}}/{{d}}/{file}", m=models, d=datasets)


def released_slopes(models):
    """The slopes of models, by either rule."""
    return expand("results/published/schedules/{model}/slopes.csv", model=models)


def released_profiles(lengths, models="{model}", datasets="{dataset}"):
    """The profiles of every variant, length by length; model and data set stay open where none is named."""
    return expand(
        "results/published/rollout/{m}/{d}/n{n}/{variant}.csv",
        m=models,
        d=datasets,
        n=lengths,
        variant=[variant.name for variant in released.VARIANTS],
    )


def released_files(_):
    """The files that published_source is read from; where it names nothing, there is nothing to plan."""
    source = config["published_source"]
    if source is None:
        sys.exit(f"error: {released_source.fault(None, released_source.UNNAMED)}")
    return released_source.files(source)


# Of evidence

EVIDENCE = config["evidence"]


def evidence_emergence(file, studies=EVIDENCE["emergence"]):
    """A file of each study that is kept."""
    return [f"results/emergence/{study}/{file}" for study in studies]


def evidence_postnorm(file):
    """A file of each task that is kept."""
    return [f"results/postnorm/{task}/{file}" for task in EVIDENCE["postnorm"]]


def evidence_structural(file):
    """A file of each training of a model that is kept."""
    return [
        f"results/models/{model}/seed{seed}/{file}"
        for model in EVIDENCE["structural"]
        for seed in config["models"][model]["seeds"]
    ]


def evidence_rungs(path):
    """A file of each checkpoint of the models that are kept."""
    return across_models(
        path.replace("{dataset}", PRIMARY), EVIDENCE["structural"], STEPS
    )


def evidence_tables(_):
    """The tables of the group that the configuration names; where it names none, there is nothing to plan."""
    kept = [
        *(rules.emergence_evidence.output if EVIDENCE["emergence"] else []),
        *(rules.emergence_evidence_sinks.output if EVIDENCE_SINKS else []),
        *(rules.postnorm_evidence.output if EVIDENCE["postnorm"] else []),
        *(rules.structural_evidence.output if EVIDENCE["structural"] else []),
    ]
    if EVIDENCE["group"] is None or not kept:
        sys.exit(
            "error: config: evidence names no group, or nothing to keep of it; add an overlay of config/evidence/ to "
            "--configfile"
        )
    return expand(kept, group=EVIDENCE["group"])
