import math
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from snakemake.utils import update_config

from position_bias.card import settings as of_card
from position_bias.emergence import settings as of_emergence
from position_bias.emergence import studies
from position_bias.language_models import settings as of_language_models
from position_bias.layernorm import settings as of_layernorm
from position_bias.postnorm import settings as of_postnorm
from position_bias.retrieval import settings as of_retrieval
from position_bias.running import configuration
from position_bias.running.runtime import InputError

ROOT = Path(__file__).parents[3]
SCHEMA = configuration.read_schema(ROOT / "config/schema")
DEFAULT = yaml.safe_load((ROOT / "config.yaml").read_text())
OF_WINGS = (of_emergence, of_layernorm, of_postnorm, of_retrieval, of_card)
FAULTS = (of_language_models.faults, *(wing.faults for wing in OF_WINGS))
NO_NETWORK = "is not a name; use MASK/ENCODING, as in causal/rope or window5/none ("


def with_value(key, value):
    config = deepcopy(DEFAULT)
    *path, last = key.split("/")
    inner = config
    for step in path:
        inner = inner[step]
    inner[last] = value
    return config


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)


def test_every_object_of_the_schema_is_closed():
    def objects(node):
        if isinstance(node, dict):
            if node.get("type") == "object":
                yield node
            for value in node.values():
                yield from objects(value)

    assert len(list(objects(SCHEMA))) > 8
    for node in objects(SCHEMA):
        assert node["additionalProperties"] is False or {"type", "$ref"} & set(node["additionalProperties"])


def test_the_default_holds_every_key_of_the_schema():
    assert set(DEFAULT) == set(SCHEMA["properties"])
    assert set(DEFAULT["training"]) == set(SCHEMA["properties"]["training"]["properties"])


@pytest.mark.parametrize("overlay", [None, *sorted((ROOT / "config").glob("*.yaml"))], ids=str)
def test_the_default_and_every_overlay_are_valid(overlay):
    config = deepcopy(DEFAULT)
    if overlay is not None:
        if "on top of config/paper.yaml" in overlay.read_text():
            update_config(config, yaml.safe_load((ROOT / "config/paper.yaml").read_text()))
        update_config(config, yaml.safe_load(overlay.read_text()))
    configuration.check(config, SCHEMA, *FAULTS)


def test_overlays_are_valid_together_as_they_are_used(shipped):
    configuration.check(shipped, SCHEMA, *FAULTS)


def test_the_schema_says_what_each_of_its_patterns_asks_for():
    """Faults and the page of the configuration end with it."""

    def patterns(node):
        if isinstance(node, dict):
            if "pattern" in node:
                yield node
            for value in node.values():
                yield from patterns(value)
        if isinstance(node, list):
            for value in node:
                yield from patterns(value)

    found = list(patterns(SCHEMA))
    assert len(found) > 4
    assert [node for node in found if node["type"] != "string" or len(node["title"]) < 10] == []


def test_the_schema_and_the_studies_know_the_same_networks():
    """Of the reaches of windows and prefixes, the schema knows those up to 9999."""
    masks, reaches = ("none", "causal", "window", "prefix", "diagonal"), ("", "0", "1", "12", "9999", "05", "-1", " 1")
    names = [f"{mask}{reach}/{encoding}" for mask in masks for reach in reaches for encoding in ("none", "rope", "al")]
    names += ["", "causal", "/none", "causal/none/rope", "causal/none\n", "\ncausal/none"]
    of_schema = configuration.Validator(SCHEMA["$defs"]["networks"]["items"])
    known = [name for name in names if of_schema.is_valid(name)]
    assert len(known) == 2 * 2 + 2 * 3 * 2
    for name in names:
        if name in known:
            assert f"{studies.network(name).mask_name}/{studies.network(name).encoding}" == name
        else:
            with pytest.raises(ValueError, match="is not a network"):
                studies.network(name)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sed", 0, "sed = 0 is not a key of the configuration; did you mean 'seed'?"),
        ("card/gpus:2", None, "card.gpus:2 = None is not a key of the configuration; write a blank after the colon"),
        ("training/stepz", 9, "training.stepz = 9 is not a key of the configuration; did you mean 'steps'?"),
        ("prompts", 16, "prompts = 16 is not a key of the configuration; it stands below card: card='{prompts: 16}'"),
        ("banana", 1, "banana = 1 is not a key of the configuration; use one of model, text, card, scale"),
        ("seed", "seven", "seed = 'seven' is of the wrong type; give a whole number (seed of sampled prompts"),
        ("seed", -1, "seed = -1 is too small; give at least 0"),
        (
            "layernorm/simulation/anisotropy",
            [1.0],
            "layernorm.simulation.anisotropy.0 = 1.0 is too large; give less than 1",
        ),
        ("layernorm/trained/learning_rate/peri", 0.1, "layernorm.trained.learning_rate.peri = 0.1 is not a key"),
        ("layernorm/trained/size/heads", 5, "layernorm.trained.size.width = 64 does not divide into heads = 5"),
        (
            "postnorm/set_complement/lengths/set-complement-16",
            16,
            "postnorm.set_complement.lengths.set-complement-16 = 16 leaves no token absent; give at most 15",
        ),
        (
            "postnorm/set_complement/lengths",
            {"set-complement-1": 1},
            "postnorm.set_complement.lengths has the task 'set-complement-1'; a set and",
        ),
        (
            "postnorm/languages/lengths/dyck-2-0",
            9,
            "postnorm.languages.lengths has the task 'dyck-2-0': depth = 0: brackets nest",
        ),
        (
            "postnorm/languages/lengths/tomita-8",
            9,
            "postnorm.languages.lengths has the task 'tomita-8': number = 8: Tomita's languages",
        ),
        ("postnorm/languages/learning_rate/middle", 0.1, "postnorm.languages.learning_rate.middle = 0.1 is not a key"),
        ("postnorm/dimension/widths", [0, 5], "postnorm.dimension.widths.0 = 0 is too small; give at least 1"),
        ("device", "tpu", "device = 'tpu' is not known; use one of auto, cpu, cuda"),
        ("training/steps", 0, "training.steps = 0 is too small; give at least 1 (number of optimiser steps)"),
        ("training/steps", 2.5, "training.steps = 2.5 is of the wrong type; give a whole number"),
        ("training/learning_rate", 0, "training.learning_rate = 0 is too small; give more than 0"),
        ("training/clip", None, "training.clip = None is of the wrong type; give a finite number"),
        ("training/warmup", 300, "training.warmup = 300 leaves no step after it; set it below training.steps = 300"),
        ("training/snapshots", [400], "training.snapshots = 400 is never reached; use steps up to"),
        ("training/snapshots", [0, 0], "training.snapshots = [0, 0] names something twice"),
        ("training/datasets", ["wiki"], "training.datasets = 'wiki' is not in datasets; use one of standard-library"),
        ("training/datasets", [], "training.datasets = [] is empty; give at least 1"),
        ("primary_dataset", "wiki", "primary_dataset = 'wiki' is not in measure.datasets"),
        ("training/steps", 300.0, "training.steps = 300.0 is of the wrong type; give a whole number"),
        ("training/steps", True, "training.steps = True is of the wrong type; give a whole number"),
        ("training/learning_rate", math.nan, "training.learning_rate = nan is of the wrong type; give a finite number"),
        ("training/clip", math.inf, "training.clip = inf is of the wrong type; give a finite number"),
        (
            "training",
            [1],
            "training = [1] is of the wrong type; give names with values, as in {datasets: value, "
            "context: value, batch: value, ...}",
        ),
        ("rollout/bootstrap", 10**9, "rollout.bootstrap = 1000000000 is too large; give at most 100000"),
        ("models/bloom/seeds", [2**64], "models.bloom.seeds.0 = 18446744073709551616 is too large; give at most"),
        ("models/a_b", {}, "models has the name 'a_b', which is not a name; use lower-case letters"),
        (
            "lengths/long/tokens",
            4096,
            "lengths.long.tokens = 4096 is more than models.mpt (mpt) takes; give at most 2048",
        ),
        ("rollout/level", 1, "rollout.level = 1 is too large; give less than 1"),
        ("rollout/level", 95, "rollout.level = 95 is too large; give less than 1"),
        ("lengths/standard/tokens", 2, "lengths.standard.tokens = 2 is too small; give at least 9 (tokens of a"),
        (
            "lengths/standard/tokens",
            300,
            "lengths.standard.tokens = 300 is more than measure.matrices_up_to = 256, so that no matrices of content "
            "and attention would be kept; give at most 256, or raise that",
        ),
        ("lengths/long/tokens", 2**21, "lengths.long.tokens = 2097152 is too large; give at most 16384"),
        ("lengths/long/tokens", 256, "lengths.long.tokens = 256 is that of lengths.standard too; give each its own"),
        ("lengths/long/prompts", 1, "lengths.long.prompts = 1 is too small; give at least 2"),
        ("lengths/heatmap/prompts", 1, "lengths.heatmap.prompts = 1 is too small; give at least 2 (prompts that a"),
        ("scale", "laptop\n", "scale = 'laptop\\n' is not known; use one of laptop, longer, paper, test (the size of"),
        (
            "primary_dataset",
            "wiki\n",
            "primary_dataset = 'wiki\\n' is not a name; use lower-case letters, digits, dots and dashes (the data set",
        ),
        (
            "training/datasets",
            ["standard-library", "My Texts"],
            "training.datasets.1 = 'My Texts' is not a name; use lower-case letters, digits, dots and dashes (",
        ),
        ("evidence/group", "My Run", "evidence.group = 'My Run' is not allowed (name of the run)"),
        ("evidence/group", "", "evidence.group = '' is not allowed (name of the run)"),
        ("evidence/emergence", ["gaussian/plain/depth2"] * 2, "evidence.emergence = ['gaussian/plain/depth2', "),
        *(
            (
                "evidence/emergence",
                [name],
                f"evidence.emergence.0 = {name!r} is not a name; use VOCABULARY/STUDY/depthLAYERS, as in "
                "gaussian/plain/depth2 (studies, each VOCABULARY/STUDY/depthLAYERS)",
            )
            for name in (
                "gaussian/plain",
                "gausian/plain/depth2",
                "gaussian/plain/2",
                "gaussian/plain/depth0",
                "gaussian/plain/depth2\n",
                "gaussian/../depth2",
            )
        ),
        (
            "evidence/emergence",
            ["gaussian/plain/depth2", "gaussian/plan/depth2"],
            "evidence.emergence = gaussian/plan/depth2 is of no study that is trained; use one of plain, residual",
        ),
        ("evidence/postnorm", ["copy-3"], "evidence.postnorm = 'copy-3' is not trained; use some of set-complement-16"),
        ("evidence/structural", ["llama"], "evidence.structural = 'llama' is not in models; use one of bloom, mpt"),
        ("evidence/layernorm", [], "evidence.layernorm = [] is not a key of the configuration; use one of group"),
        ("postnorm/languages/lengths", {7: 9}, "postnorm.languages.lengths has the name 7, which is of the wrong type"),
        ("emergence/task/noise", 10**30, "emergence.task.noise = 1000000000000000000000000000000 is too large"),
        ("postnorm/stability/deep/layers", 1, "postnorm.stability.deep.layers = 1 is too small; give at least 2"),
        ("released/source", 5, "released.source = 5 is not allowed (where the released numbers are, a directory"),
        ("released/source", "", "released.source = '' is not allowed (where the released numbers are"),
        ("released/sha256", "abc", "released.sha256 = 'abc' is not allowed (SHA-256 of the files"),
        ("released/lengths", [], "released.lengths = [] is empty; give at least 1"),
        ("released/lengths", [256, 256], "released.lengths = [256, 256] names something twice"),
        ("released/sampled_lengths", [1], "released.sampled_lengths.0 = 1 is too small; give at least 2 (tokens of"),
        ("released/sampled_lengths", [2**25], "released.sampled_lengths.0 = 33554432 is too large; give at most 1677"),
        ("structural/fig1", ["bloom", "gpt2"], "structural.fig1 = 'gpt2' is not in models or hub_models; use one of"),
        ("structural/fig1", [], "structural.fig1 = [] is empty; give at least 1"),
        ("checkpoint_every/measure", 0, "checkpoint_every.measure = 0 is too small; give at least 1 (prompts of a"),
        ("checkpoint_every/rollout", 9, "checkpoint_every.rollout = 9 is not a key of the configuration; use one of"),
        (
            "measure/matrices_up_to",
            128,
            "lengths.standard.tokens = 256 is more than measure.matrices_up_to = 128, so that no matrices of content",
        ),
        ("measure/matrices_up_to", 8, "measure.matrices_up_to = 8 is too small; give at least 9 (tokens of the"),
        (
            "layernorm/random_weights/layers",
            2,
            "layernorm.random_weights.layers = 2 is too small; give at least 3 (layers",
        ),
        ("layernorm/simulation/curve/step", 0, "layernorm.simulation.curve.step = 0 is too small; give at least 0.001"),
        ("layernorm/simulation/curve/last", 1, "layernorm.simulation.curve.last = 1 is too large; give less than 1"),
        ("emergence/testing/last_kept", 0, "emergence.testing.last_kept = 0 is too small; give at least 1 (tests of"),
        ("postnorm/averaging/scheme", "middle", "postnorm.averaging.scheme = 'middle' is not known; use one of none,"),
        ("postnorm/averaging/trained_share", 1, "postnorm.averaging.trained_share = 1 is too large; give less than 1"),
        (
            "postnorm/averaging/trained_share",
            0.01,
            "postnorm.averaging.trained_share = 0.01 gives training sequences of 0 of 8 tokens; give a share that",
        ),
        ("models", {}, "models = {} is empty; give at least 1"),
        ("models/bloom/family", "gpt2", "models.bloom.family = 'gpt2' is not known; use one of bloom, mpt, falcon"),
        ("models/bloom/architecture/hidden", 60, "models.bloom.architecture.hidden = 60 does not divide into heads"),
        ("models/bloom/architecture/layers", -12, "models.bloom.architecture.layers = -12 is too small"),
        ("scale", "My Laptop", "scale = 'My Laptop' is not known; use one of laptop, longer, paper, test (the size of"),
        ("scale", None, "scale = None is not known; use one of laptop, longer, paper, test"),
        ("datasets/standard-library", {}, "datasets.standard-library.corpus is missing; add it"),
        ("models/bloomz", {"seeds": [0]}, "models.bloomz.family is missing; add it, or did you mean 'bloom'?"),
        (
            "minutes/measure_hub",
            720,
            "minutes.measure_hub = 720 is not a key of the configuration; that is hub_models.",
        ),
        (
            "minutes/emergenze",
            720,
            "minutes.emergenze = 720 is not a key of the configuration; did you mean 'emergence'",
        ),
        (
            "minutes",
            "{emergence:",
            "minutes = '{emergence:' is of the wrong type; give names with values, as in {train: value, "
            "measure: value, emergence: value, ...} (close every",
        ),
        (
            "minutes/emergence 720",
            None,
            "minutes.emergence 720 = None is not a key of the configuration; write a colon after",
        ),
        (
            "minutes",
            720,
            "minutes = 720 is of the wrong type; give names with values, as in {train: value, "
            "measure: value, emergence: value, ...} (time that",
        ),
        (
            "devices/emergenze",
            "cpu",
            "devices.emergenze = 'cpu' is not a key of the configuration; did you mean 'emerge",
        ),
        ("devices", {"measure": "gpu"}, "devices.measure = 'gpu' is not known; use one of auto, cpu, cuda (measuring"),
    ],
)
def test_a_fault_is_one_line_with_key_value_and_remedy(key, value, message):
    with pytest.raises(InputError) as error:
        configuration.check(with_value(key, value), SCHEMA, *FAULTS)
    line = str(error.value)
    assert line.startswith(f"config: {message}")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("task/burstiness", 3, "task.burstiness = 3 does not divide items = 8"),
        ("task/burstiness", 16, "task.burstiness = 16 does not divide items = 8"),
        ("task/burstiness", 0, "task.burstiness = 0 is too small; give at least 1 (items of each class in a sequence"),
        ("task/items", 3, "task.items = 3 is too small; give at least 4 (items of a sequence, without the query)"),
        ("task/burstiness", 8, "task.labels = 32, burstiness = 8: without two labels and two classes in a sequence"),
        ("task/labels", 1, "task.labels = 1, burstiness = 4: without two labels and two classes in a sequence"),
        ("task/anisotropy", -0.1, "task.anisotropy = -0.1 is too small; give at least 0 (lambda"),
        ("task/classes", 31, "task.classes = 31: every label has a class, and a sequence 2; give at least 32"),
        ("task/classes", 0, "task.classes = 0 is too small; give at least 1"),
        ("task/width", 63, "task.width = 63 is not allowed (63 is not a multiple of 2) (coordinates of a token; RoPE"),
        ("task/width", 0, "task.width = 0 is too small; give at least 2"),
        ("task/noise", -0.1, "task.noise = -0.1 is too small; give at least 0 (epsilon"),
        ("task/noise", math.inf, "task.noise = inf is of the wrong type; give a finite number"),
        ("task/scale", "variance", "task.scale = 'variance' is not known; use one of paper, released"),
        ("task/middle", 4, "task.middle = 4 is not known; use one of paper, released"),
        ("task/itemz", 8, "task.itemz = 8 is not a key of the configuration; did you mean 'items'?"),
        (
            "networks/window",
            ["window5/none", "window18/none"],
            "networks.window = window18/none reaches over more than a sequence's tokens; give at most 17",
        ),
        ("networks/window", ["window0/none", "window5/none"], f"networks.window.0 = 'window0/none' {NO_NETWORK}"),
        ("networks/window", ["window5/none"] * 2, "networks.window = ['window5/none', 'window5/none'] names something"),
        ("networks/window", "window5/none", "networks.window = 'window5/none' is of the wrong type; give a list"),
        ("networks/window", [5], "networks.window.0 = 5 is of the wrong type; give a string"),
        ("networks/window", ["window/none"], f"networks.window.0 = 'window/none' {NO_NETWORK}"),
        (
            "networks/prefix",
            ["prefix18/none"],
            "networks.prefix = prefix18/none reaches over more than a sequence's tokens; give at most 17",
        ),
        (
            "networks/prefix",
            ["prefix2/none", "prefix0/none"],
            f"networks.prefix.1 = 'prefix0/none' {NO_NETWORK}with pref",
        ),
        ("networks/prefix", ["prefix2.0/none"], f"networks.prefix.0 = 'prefix2.0/none' {NO_NETWORK}"),
        ("networks/prefix", ["prefix10000/none"], f"networks.prefix.0 = 'prefix10000/none' {NO_NETWORK}"),
        ("networks/plain", ["causal/none", "causal/alibi"], f"networks.plain.1 = 'causal/alibi' {NO_NETWORK}"),
        ("networks/plain", ["causal/none", "rope"], f"networks.plain.1 = 'rope' {NO_NETWORK}causal, without"),
        ("networks/plain", ["causal/none\n"], f"networks.plain.0 = 'causal/none\\n' {NO_NETWORK}"),
        (
            "networks/plain",
            ["causal/none", "none/none"],
            "networks.plain = none/none has a mask that this study does not compare; use causal",
        ),
        (
            "networks/ends",
            ["window5/none"],
            "networks.ends = window5/none has a mask that this study does not compare; use none or causal",
        ),
        ("networks/plan", [], "networks.plan = [] is not a key of the configuration; did you mean 'plain'?"),
        (
            "networks",
            ["causal/none"],
            "networks = ['causal/none'] is of the wrong type; give names with values, as in {plain: value, "
            "residual: value, ends: value, ...}",
        ),
        ("networks", {}, "networks.plain is missing; add it (config.yaml has the default)"),
        *(
            (key, [5], f"{key} = [5] is not a key of the configuration; ")
            for key in ("windows", "prefixes", "encodings")
        ),
        ("seeds/shallow", 0, "seeds.shallow = 0 is too small; give at least 1 (seeds of networks of 2 layers)"),
        ("seeds/deep", 0, "seeds.deep = 0 is too small; give at least 1 (seeds of networks of more than 2 layers)"),
        ("seeds/ends", 0, "seeds.ends = 0 is too small; give at least 1 (seeds of networks trained on answers at both"),
        ("seeds/deap", 3, "seeds.deap = 3 is not a key of the configuration; did you mean 'deep'?"),
        ("training/iterations/unbiased", 0, "training.iterations.unbiased = 0 is too small; give at least 1"),
        ("training/iterations/ends", 0, "training.iterations.ends = 0 is too small; give at least 1"),
        ("training/iterations/position", 0, "training.iterations.position = 0 is too small; give at least 1"),
        (
            "training/iterations",
            2000,
            "training.iterations = 2000 is of the wrong type; give names with values, as in {unbiased: value, "
            "ends: value, position: value}",
        ),
        ("training/bach", 64, "training.bach = 64 is not a key of the configuration; did you mean 'batch'?"),
        ("training/learning_rate", 0, "training.learning_rate = 0 is too small; give more than 0"),
        ("testing/every", 0, "testing.every = 0 is too small; give at least 1 (iterations between two tests)"),
        (
            "testing/sequences_along",
            7,
            "testing.sequences_along = 7 leaves positions without a test; give 8 or more",
        ),
        ("testing/sequences", 7, "testing.sequences = 7 leaves positions without a test; give 8 or more"),
        ("testing/settled", 0, "testing.settled = 0 is too small; give more than 0 (last share of the iterations"),
        ("testing/settled", 1.5, "testing.settled = 1.5 is too large; give at most 1"),
        ("decay", -0.2, "decay = -0.2 is too small; give at least 0 (slope of the decay mask, in logits a token)"),
        ("depths/gaussian/plain", [0], "depths.gaussian.plain.0 = 0 is too small; give at least 1"),
        ("depths/fixed/residual", [2, 2], "depths.fixed.residual = [2, 2] names something twice"),
        ("depths/isotropic/residual", [2], "depths.isotropic.residual = [2] is not a key of the configuration"),
        ("depths/gausian", {}, "depths.gausian = {} is not a key of the configuration; did you mean 'gaussian'?"),
        ("sinks/threshold", 0.22, "sinks.threshold = 0.22 is not one of emergence.sinks.thresholds: 0.15, 0.2, 0.25"),
        ("sinks/thresholds", [0.15, 0.3], "sinks.threshold = 0.2 is not one of emergence.sinks.thresholds: 0.15, 0.3"),
        ("sinks/thresholds", [0.2, 1], "sinks.thresholds.1 = 1 is too large; give less than 1"),
        ("sinks/sequences", 0, "sinks.sequences = 0 is too small; give at least 1 (sequences whose attention is"),
        ("theory/draws", 1, "theory.draws = 1 is too small; give at least 2 (draws of random queries and keys)"),
        ("level", 0, "level = 0 is too small; give more than 0 (coverage of the intervals)"),
        ("banana", 1, "banana = 1 is not a key of the configuration; use one of task, training"),
    ],
)
def test_a_fault_of_emergence_is_one_line_with_key_value_and_remedy(key, value, message):
    with pytest.raises(InputError) as error:
        configuration.check(with_value(f"emergence/{key}", value), SCHEMA, of_emergence.faults)
    line = str(error.value)
    assert line.startswith(f"config: emergence.{message}")
    assert "\n" not in line


def test_faults_of_values_together_are_looked_for_in_what_fits_the_schema_alone():
    seen = []

    def faults(config):
        seen.append(config)
        return ["one = 1 is wrong; give 2", "two = 2 is wrong; give 3"]

    with pytest.raises(InputError, match="seed = -1 is too small"):
        configuration.check(with_value("seed", -1), SCHEMA, faults)
    assert seen == []
    with pytest.raises(InputError, match=r"^config: one = 1 is wrong; give 2$"):
        configuration.check(DEFAULT, SCHEMA, faults)
    assert seen == [DEFAULT]
    configuration.check(DEFAULT, SCHEMA, lambda config: [], of_emergence.faults)


def test_numbers_of_emergence_given_as_text_are_read_before_they_are_compared():
    """As --config emergence='{sinks: {threshold: 0.25}, depths: {gaussian: {plain: [2, 4]}}}' leaves them."""
    config = with_value("emergence/sinks/threshold", "0.25")
    config["emergence"]["depths"]["gaussian"]["plain"] = ["2", "4"]
    config["emergence"] |= {"seeds": {"shallow": "2", "deep": "2", "ends": "2"}}
    configuration.read_numbers(config, SCHEMA)
    configuration.check(config, SCHEMA, *FAULTS)
    assert config["emergence"]["sinks"]["threshold"] == 0.25
    assert config["emergence"]["depths"]["gaussian"]["plain"] == [2, 4]
    assert config["emergence"]["seeds"] == {"shallow": 2, "deep": 2, "ends": 2}


def test_numbers_given_as_text_within_a_command_line_value_are_read():
    config = with_value("rollout", {"bootstrap": "200", "level": "0.9"})
    config["training"] |= {"learning_rate": "2e-3", "snapshots": ["0", "100"], "steps": "many"}
    config["primary_dataset"] = "7"  # a name, and a name it stays
    configuration.read_numbers(config, SCHEMA)
    assert config["rollout"] == {"bootstrap": 200, "level": 0.9}
    assert config["training"]["learning_rate"] == 0.002
    assert config["training"]["snapshots"] == [0, 100]
    assert config["primary_dataset"] == "7"
    with pytest.raises(InputError, match=r"training\.steps = 'many' is of the wrong type"):
        configuration.check(config, SCHEMA)


def test_a_model_of_figure_1_need_not_be_measured():
    config = with_value("measure/models", ["falcon"])
    configuration.check(config, SCHEMA, *FAULTS)


def test_a_word_is_a_section_of_one_file_alone(tmp_path):
    (tmp_path / "a.yaml").write_text("$defs: {one: {type: integer}}\nproperties: {first: {$ref: '#/$defs/one'}}\n")
    (tmp_path / "b.yaml").write_text("properties: {second: {type: string}}\nmoved: {third: second}\n")
    schema = configuration.read_schema(tmp_path)
    configuration.check({"first": 1, "second": ""}, schema)
    with pytest.raises(InputError, match=r"^config: second is missing"):
        configuration.check({"first": 1}, schema)
    with pytest.raises(InputError, match=r"^config: third is now second; change what sets it$"):
        configuration.check({"first": 1, "second": "", "third": ""}, schema)
    for text in ("$defs: {one: {type: string}}", "properties: {second: {type: string}}", "moved: {third: first}"):
        (tmp_path / "c.yaml").write_text(text)
        with pytest.raises(ValueError, match=r"c\.yaml: another file has .*(one|second|third) too$"):
            configuration.read_schema(tmp_path)


def in_schema(key):
    node = SCHEMA
    for name in key.split("."):
        if name not in node.get("properties", {}):
            return False
        node = configuration.below(node, name, SCHEMA)
    return True


def test_keys_that_have_moved_are_gone_and_their_new_names_are_there():
    assert len(SCHEMA["moved"]) >= 10
    for old, new in SCHEMA["moved"].items():
        assert not in_schema(old)
        assert in_schema(new.split(",")[0])


@pytest.mark.parametrize("old", SCHEMA["moved"])
def test_an_old_key_ends_with_its_new_name(old):
    config = with_value(old.replace(".", "/"), ["anything"])
    config["seed"] = -1  # what else is wrong comes later
    with pytest.raises(InputError) as error:
        configuration.check(config, SCHEMA, *FAULTS)
    assert str(error.value) == f"config: {old} is now {SCHEMA['moved'][old]}; change what sets it"


def test_all_old_keys_are_said_at_once():
    config = with_value("training/checkpoint_every", 50) | {"fig1": ["bloom"], "postnorm": None}
    with pytest.raises(InputError) as error:
        configuration.check(config, SCHEMA, *FAULTS)
    expected = "fig1 is now structural.fig1; training.checkpoint_every is now checkpoint_every.training"
    assert str(error.value) == f"config: {expected}; change what sets them"


def test_what_is_looked_for_in_the_wrong_section_is_a_key_elsewhere():
    """Each name leads to a key that there is, in a section that does not have the name itself."""
    found = {name: part["elsewhere"] for name, part in SCHEMA["properties"].items() if "elsewhere" in part}
    assert found
    for section, names in found.items():
        for name, meant in names.items():
            assert name not in SCHEMA["properties"][section]["properties"]
            node = dict(SCHEMA)
            for key in meant.split(",")[0].split("."):
                node = configuration.below(node, key, SCHEMA)
            assert node["type"] == "integer"


def test_a_key_left_out_is_named():
    config = deepcopy(DEFAULT)
    del config["measure"]["tokens_per_batch"]
    with pytest.raises(InputError, match=r"^config: measure\.tokens_per_batch is missing; add it"):
        configuration.check(config, SCHEMA)


def test_no_default_is_promised_below_a_name_that_the_user_gave():
    described = {"hub_models/mine": "hub_models.mine.source is missing; add it", "measure": "measure.models is missing"}
    for key, said in described.items():
        with pytest.raises(InputError) as error:
            configuration.check(with_value(key, {}), SCHEMA)
        assert str(error.value).startswith(f"config: {said}")
        assert ("config.yaml has the default" in str(error.value)) == (key == "measure")


def turned(node):
    """The same values, every key last that was first."""
    if isinstance(node, dict):
        return {key: turned(node[key]) for key in reversed(node)}
    return node


def test_keys_come_in_the_order_of_the_file_whatever_order_they_were_given_in():
    config = turned(deepcopy(DEFAULT))
    assert repr(config) != repr(DEFAULT)
    configuration.put_in_order(config, DEFAULT)
    assert repr(config) == repr(DEFAULT)


def test_names_that_the_file_does_not_have_follow_by_the_alphabet():
    config = {"new": {"b": 1, "a": {"d": 2, "c": 3}}, "known": 4, "another": None}
    configuration.put_in_order(config, {"known": 0, "of other kind": 1})
    assert repr(config) == "{'known': 4, 'another': None, 'new': {'a': {'c': 3, 'd': 2}, 'b': 1}}"
    again = deepcopy(config)
    configuration.put_in_order(again, {"known": {"not": "a number"}, "new": 3})
    assert again == config
    assert list(again) == ["known", "new", "another"]


def test_what_the_shell_has_cut_is_to_be_quoted():
    with pytest.raises(InputError, match=r"value, \.\.\.\} \(close every bracket, and put all of it in quotes\)"):
        configuration.check(with_value("minutes", "{emergence:"), SCHEMA, *FAULTS)
