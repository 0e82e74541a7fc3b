"""What tests of the configuration share: the schema, the faults, and a configuration in which no key is empty."""

from copy import deepcopy
from pathlib import Path

import yaml

from position_bias.card import settings as of_card
from position_bias.emergence import settings as of_emergence
from position_bias.language_models import settings as of_language_models
from position_bias.layernorm import settings as of_layernorm
from position_bias.postnorm import settings as of_postnorm
from position_bias.retrieval import settings as of_retrieval
from position_bias.running import configuration
from position_bias.running.runtime import InputError

ROOT = Path(__file__).parents[1]
SCHEMA = configuration.read_schema(ROOT / "config/schema")
DEFAULT = yaml.safe_load((ROOT / "config.yaml").read_text())
OF_WINGS = (of_emergence, of_layernorm, of_postnorm, of_retrieval, of_card)
FAULTS = (of_language_models.faults, *(wing.faults for wing in OF_WINGS))
SOURCES = ("one", "other")  # folders that stand for released numbers
OF_HUB = {"source": "someone/something", "revision": "0" * 40}
TEXT = {**OF_HUB, "subset": "part", "split": "train", "column": "text", "documents": 1000}
MODEL = {**OF_HUB, "positions": "own", "gpus": 1, "memory": 8, "minutes": 60, "family": "bloom"}
ROTARY = {**MODEL, "family": "llama"}


def everything():
    """The default, with what it leaves empty filled in, so that there is no key without a value."""
    config = deepcopy(DEFAULT)
    config["device"] = "cuda"  # so that jobs ask for GPUs wherever this runs
    stages = SCHEMA["properties"]["devices"]["properties"]
    config["devices"] = dict.fromkeys(stages, "cuda")
    del config["devices"]["layernorm"]  # where every stage has its own, `device` itself decides nothing
    config["hub_datasets"] = {"web": deepcopy(TEXT)}
    config["hub_models"] = {"large": deepcopy(MODEL), "rotary": deepcopy(ROTARY)}
    config["lengths"]["more"] = [{"tokens": 100, "prompts": 8}]
    config["measure"]["models"].append("large")
    config["measure"]["datasets"] = ["standard-library", "web"]
    config["layernorm"]["pretrained"].append("rotary")
    config["released"] |= {"source": SOURCES[0], "sha256": "0" * 64}
    config |= {"model": "bloom", "text": "someone/texts"}
    config["card"] |= {"tokens_per_batch": 512, "memory": 8}
    config["scale"] = "longer"  # of the tables of evidence/
    config["evidence"] = {
        "group": "long",
        "emergence": ["gaussian/plain/depth2", "fixed/ends/depth3"],
        "postnorm": ["set-complement-16", "averaging"],
        "structural": ["bloom", "mpt"],
        "rotary": ["llama"],
        "retrieval": ["plain/depth2", "last/depth2"],
    }
    config["models"]["llama"] = {**deepcopy(config["models"]["bloom"]), "family": "llama"}
    return config


EVERYTHING = everything()


def at(config, path):
    for key in path:
        config = config[key]
    return config


def put(config, path, value):
    """A configuration with `value` at a path, or without the key there where the value is `...`."""
    changed = deepcopy(config)
    around = at(changed, path[:-1])
    if value is ...:
        del around[path[-1]]
    else:
        around[path[-1]] = value
    return changed


def changed(changes):
    """The whole configuration with other values of keys, whose names are joined by dots."""
    config = EVERYTHING
    for key, value in changes.items():
        config = put(config, key.split("."), value)
    return config


def part(path):
    """What the schema says of the key at a path."""
    node = dict(SCHEMA)
    for name in path:
        node = configuration.below(node, name, SCHEMA)
    return node


def refusals(config):
    """The line that the schema refuses a configuration with, or else all faults of values together."""
    configuration.read_numbers(config, SCHEMA)
    try:
        configuration.check(config, SCHEMA)
    except InputError as error:
        return [str(error).removeprefix("config: ")]
    return [line for faults in FAULTS for line in faults(config)]
