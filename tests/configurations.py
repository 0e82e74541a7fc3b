"""Configurations for tests: one in which no key is empty, those that are shipped, and the lines that refuse others."""

from copy import deepcopy
from pathlib import Path

import yaml
from snakemake.utils import update_config

from position_bias import settings
from position_bias.workflow import configuration

ROOT = Path(__file__).parents[1]
DEFAULT = settings.default()
SOURCES = ("one", "other")  # folders that stand for released numbers
OF_HUB = {"source": "someone/something", "revision": "0" * 40}
TEXT = {**OF_HUB, "subset": "part", "split": "train", "column": "text", "documents": 1000}
MODEL = {**OF_HUB, "positions": "own", "gpus": 1, "memory": 8, "minutes": 60, "family": "bloom"}
ROTARY = {**MODEL, "family": "llama"}


def everything():
    """The default, with what it leaves empty filled in, so that there is no key without a value."""
    config = deepcopy(DEFAULT)
    config["device"] = "cuda"  # so that jobs ask for GPUs wherever this runs
    config["devices"] = dict.fromkeys(settings.DEVICES, "cuda")
    del config["devices"]["layernorm"]  # where every stage has its own, `device` itself decides nothing
    config["hub_datasets"] = {"web": deepcopy(TEXT)}
    config["hub_models"] = {"large": deepcopy(MODEL), "rotary": deepcopy(ROTARY)}
    config["lengths"]["more"] = [{"tokens": 100, "prompts": 8}]
    config["measure"]["models"].append("large")
    config["structural"]["pretrained"]["models"] = {"rotary": 0.02}
    config["structural"]["initialization"]["layers"] = [6, 30]
    config["structural"]["sink"]["models"] = ["rotary"]
    config["measure"]["datasets"] = ["standard-library", "web"]
    config["layernorm"]["pretrained"][-2:] = ["llama", "rotary"]
    config["released"] |= {"source": SOURCES[0], "sha256": "0" * 64}
    config["figures"]["width"] = 6.4
    config["scale"] = "longer"  # of the tables of evidence/
    config["evidence"] = {
        "group": "long",
        "emergence": ["gaussian/plain/depth2", "fixed/ends/depth3"],
        "postnorm": ["set-complement-16", "averaging"],
        "structural": ["bloom", "mpt"],
        "pretrained": ["rotary"],
        "curve": ["rotary"],
        "recall": ["rotary"],
        "initialization": ["rotary"],
        "sink": ["rotary"],
    }
    config["models"]["llama"] = {**deepcopy(config["models"]["bloom"]), "family": "llama"}
    return config


EVERYTHING = everything()


def leaves(node, path=()):
    """The place of every value that is no mapping; of a list, that of the whole list."""
    if not isinstance(node, dict):
        yield path
        return
    for name, inner in node.items():
        yield from leaves(inner, (*path, name))


def at(config, path):
    for key in path:
        config = config[key]
    return config


def put(config, path, value):
    """A configuration with `value` at a path, or without the key there where the value is `...`."""
    changed = config.copy()
    if path[1:]:
        changed[path[0]] = put(config[path[0]], path[1:], value)
    elif value is ...:
        del changed[path[0]]
    else:
        changed[path[0]] = value
    return changed


def changed(changes):
    """The whole configuration with other values of keys, whose names are joined by dots."""
    config = EVERYTHING
    for key, value in changes.items():
        config = put(config, key.split("."), value)
    return config


def part(path):
    """What is said of the key at a path."""
    found = configuration.part(settings.Settings)
    for name in path:
        found = configuration.inner_annotation(found, name)
    return found


def refusals(config):
    """Every line that sections refuse a configuration with, or else all faults of values together."""
    lines = configuration.faults_of_sections(config, settings.Settings)
    return lines or [line for faults in settings.FAULTS for line in faults(config)]


def used_with(overlay):
    """Names of overlays as the command of a long run has them: its own, with config/paper.yaml where that says so."""
    on_paper = overlay.read_text().startswith("# With config/paper.yaml, ")
    return ["paper"] * on_paper + [f"evidence/{overlay.stem}"]


def overlaid(names):
    """The default with overlays of config/, as Snakemake puts them together."""
    config = deepcopy(DEFAULT)
    for name in names:
        update_config(config, yaml.safe_load((ROOT / f"config/{name}.yaml").read_text()))
    return config


LONG_RUNS = [used_with(path) for path in sorted((ROOT / "config/evidence").glob("*.yaml"))]
ON_PAPER = [["paper", name] for name in ("paper-available", "paper-one-gpu", "first-rung")]
SHIPPED = [[], ["paper"], ["test"], ["published"], *ON_PAPER, *LONG_RUNS]  # what overlays are used with
