# What all stages share: the checked configuration, wildcards, the library as input, the GPU tag, lists of targets.

import os
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(workflow.basedir))

from position_bias import configuration, imports, runtime

ROOT = Path(workflow.basedir)

SCHEMA = yaml.safe_load((ROOT / "config/schema.yaml").read_text())

configuration.read_numbers(config, SCHEMA)
try:
    configuration.check(config, SCHEMA)
except runtime.InputError as error:
    sys.exit(f"error: {error}")


wildcard_constraints:
    dataset="|".join(config["datasets"]),
    model="|".join(config["models"]),
    seed=r"\d+",
    checkpoint=r"seed\d+/step\d+",
    n=r"\d+",


# 1 where a job will hold a GPU, 0 on a machine without one: a GPU limit must not throttle a laptop.
GPU = int(runtime.uses_gpu(config["device"]))

STANDARD = config["lengths"]["standard"]


def library(script):
    """The library files that a rule's script runs, as inputs: editing one rebuilds what was computed with it."""
    files = imports.closure(ROOT / "scripts" / script, ROOT)
    return [os.path.relpath(path) for path in files]


def training_steps():
    """The steps of training whose models are kept, the last one last."""
    return sorted({*config["training"]["snapshots"], config["training"]["steps"]})


def trained(model):
    """The checkpoints of a model at the end of training, one a seed."""
    last = config["training"]["steps"]
    return [f"seed{seed}/step{last}" for seed in config["models"][model]["seeds"]]


def across_models(pattern):
    """`pattern` for every trained model and seed; other wildcards of the rule stay open."""
    return [
        pattern.replace("{model}", model).replace("{checkpoint}", checkpoint)
        for model in config["models"]
        for checkpoint in trained(model)
    ]
