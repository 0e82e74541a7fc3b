# What all stages share: the checked configuration, wildcards, the library as input, the GPU tag, lists of targets.

import os
import re
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(workflow.basedir))

from position_bias import configuration, imports, runtime
from position_bias.emergence import studies

ROOT = Path(workflow.basedir)

SCHEMA = yaml.safe_load((ROOT / "config/schema.yaml").read_text())

configuration.read_numbers(config, SCHEMA)
try:
    configuration.check(config, SCHEMA, studies.faults)
except runtime.InputError as error:
    sys.exit(f"error: {error}")


PRIMARY = config["primary_dataset"]
HEATMAP, STANDARD, LONG = (
    config["lengths"][purpose]["tokens"] for purpose in ("heatmap", "standard", "long")
)
PROMPTS = {length["tokens"]: length["prompts"] for length in config["lengths"].values()}

# 1 where a job will hold a GPU, 0 on a machine without one: a GPU limit must not throttle a laptop.
GPU = int(runtime.uses_gpu(config["device"]))

FIG1 = config["fig1"]
FIG2 = [model for model in config["models"] if model not in FIG1]

STEPS = sorted({*config["training"]["snapshots"], config["training"]["steps"]})
LAST = config["training"]["steps"]


wildcard_constraints:
    dataset="|".join(map(re.escape, config["datasets"])),
    model="|".join(map(re.escape, config["models"])),
    seed=r"\d+",
    checkpoint=r"seed\d+/step\d+",
    n="|".join(map(str, PROMPTS)),


def project(file):
    """A file of the project, wherever --directory puts the results."""
    return os.path.relpath(ROOT / file)


def library(script):
    """The library files that a script runs, as inputs: editing one rebuilds what was computed with it."""
    return [project(path) for path in imports.closure(ROOT / "scripts" / script, ROOT)]


def across_models(patterns, models=config["models"], steps=(LAST,)):
    """The patterns for every seed of the models at the given steps of training; other wildcards stay open."""
    return [
        pattern.replace("{model}", model)
        .replace("{checkpoint}", f"seed{seed}/step{step}")
        .replace("{seed}", str(seed))
        for pattern in ([patterns] if isinstance(patterns, str) else patterns)
        for model in models
        for seed in config["models"][model]["seeds"]
        for step in steps
    ]


def across_datasets(patterns):
    """The patterns for every trained model, seed and data set."""
    return [
        path.replace("{dataset}", dataset)
        for dataset in config["datasets"]
        for path in across_models(patterns)
    ]


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


def emergence_networks(wildcards):
    """What of the configuration decides which networks a study has."""
    return {
        "plain": EMERGENCE["encodings"],
        "residual": EMERGENCE["encodings"],
        "window": EMERGENCE["windows"],
        "prefix": EMERGENCE["prefixes"],
    }.get(wildcards.study, [])


def emergence_depths(vocabulary, study):
    """The layers that a study is trained with."""
    return EMERGENCE["depths"][vocabulary].get(study, [SHALLOW])


def emergence_curves(*shown):
    """The learning curves of studies, each a pair of vocabulary and study, at every depth."""
    return [
        f"results/emergence/{vocabulary}/{study}/depth{depth}/curves.parquet"
        for vocabulary, study in shown
        for depth in emergence_depths(vocabulary, study)
    ]


def emergence_attention(quantity, *shown):
    """A quantity of the attention of the shallow networks of studies."""
    return [
        f"results/emergence/{vocabulary}/{study}/depth{SHALLOW}/{quantity}"
        for vocabulary, study in shown
    ]


def emergence_figures(figures):
    """Which of the figures show something: a configuration may train no network of a study."""
    return [name for name, shown in figures.items() if emergence_depths(*shown)]
