"""Every fault of a configuration is one line with its key: generated from the sections, listed where values meet."""

import json
import math
from copy import deepcopy
from dataclasses import is_dataclass
from typing import Literal, get_origin

import pytest

from position_bias import settings
from position_bias.workflow import configuration
from position_bias.workflow.section import Bounds, Items, Keys, Words
from tests.configurations import (
    DEFAULT,
    EVERYTHING,
    MODEL,
    ROOT,
    ROTARY,
    SHIPPED,
    TEXT,
    at,
    changed,
    overlaid,
    part,
    put,
    refusals,
)
from tests.refusals import refused


@pytest.mark.parametrize("overlays", SHIPPED, ids=" ".join)
def test_what_is_shipped_has_no_fault_and_stays_as_it_is(overlays):
    config = overlaid(overlays)
    before = deepcopy(config)
    settings.check(config)
    assert config == before


def test_every_overlay_is_among_what_is_shipped():
    files = {str(path.relative_to(ROOT / "config").with_suffix("")) for path in (ROOT / "config").rglob("*.yaml")}
    assert {name for names in SHIPPED for name in names} == files


# What a value can never be, of every key


def places(node, path=()):
    """The place of every mapping, value and first item of a list below a configuration."""
    if path:
        yield path
    if isinstance(node, dict):
        for name, inner in node.items():
            yield from places(inner, (*path, name))
    elif isinstance(node, list) and node:
        yield from places(node[0], (*path, 0))


PLACES = list(places(EVERYTHING))


def names(line, value):
    """Whether a line, behind its key, shows a value or, of a list or a mapping, an item or a name."""
    parts = [value, *value] if isinstance(value, list | dict) else [value]
    return any(
        repr(part)[:100] in line or f" {part} " in line.replace(".", " ", 1) for part in parts
    )  # long ones are cut


def never(said, value):
    """Values that a key can never have: of another type, or beyond its bounds."""
    wrong = [None, [], {}, {"a": 1}, 7, True, math.nan, ""]
    if said.is_mapping:
        yield from (None, 7, "word", [1], *({**value, name: 1} for name in ("banana", 7, None)))
        yield from [{}] if getattr(said.rules.get(Items), "least", 0) else []
    elif get_origin(said.kind) is list:
        yield from (None, 7, "word", {}, [*value, value[0]], [[], *value[1:]])
        yield from [[]] if said.rules[Items].least else []
    elif get_origin(said.kind) is Literal:
        yield from (*wrong, f"{value}\n")
    elif said.kind is str:
        yield from wrong[said.nullable :]
        yield from [f"{value}\n"] if said.rules[Words] != Words() else []
    elif said.kind is bool:
        yield from (None, "", [], {}, 7, 1.0, "word")
    else:
        yield from (*wrong[said.nullable : -4], *wrong[-3:], "word", math.inf, -math.inf)
        yield from (9.0, 9.5) if said.kind is int else ()
        bounds = said.rules[Bounds]
        step = bounds.multiple or 1
        beyond = {"least": (-step, -(10**30)), "above": (0, -(10**30)), "most": (step, 10**30), "below": (0, 10**30)}
        for name, (by, far) in beyond.items():
            if (bound := getattr(bounds, name)) is not None:
                yield from (bound + by, far)


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_what_a_key_can_never_be_is_refused_by_its_name(path):
    key, said, value = ".".join(map(str, path)), part(path), at(EVERYTHING, path)
    for wrong in never(said, value):
        line = refusals(put(EVERYTHING, path, wrong))[0]
        assert line.startswith(key), line
        assert names(line.removeprefix(key), wrong) or f"{key}.banana" in line, line
        assert "\n" not in line
    around = part(path[:-1])
    if around.is_mapping and around.keys is not None:
        lines = refusals(put(put(EVERYTHING, path, ...), (*path[:-1], f"{path[-1]}z"), value))
        assert lines[0].startswith(f"{key}z = ")
        if is_dataclass(around.kind) or (Keys in around.rules and around.rules[Keys].required):
            assert lines[1].startswith(f"{key} is missing")


def test_every_value_has_a_meaning_and_bounds():
    """Messages and the page of the configuration show them."""
    for path in PLACES:
        said = part(path)
        assert said.meaning or said.is_mapping, path
        if said.kind in (int, float):
            bounds = said.rules[Bounds]
            assert (bounds.least is None) != (bounds.above is None), path
            assert (bounds.most is None) != (bounds.below is None), path
        elif said.kind is str:
            assert len(said.rules[Words].form) > 3, path
        elif get_origin(said.kind) is list:
            assert Items in said.rules, path


# How a fault is said

NO_TASKS = {
    "languages": "maximum-1 maximum-100001 maximum-010 tomita-05 tomita-8 dyck-2-03 dyck-2-0 dyck-0-2 copy-3 dyck-2",
    "set_complement": "set-complement-1 set-complement-100001 set-complement-032 maximum-10 set-complement-",
}
NO_STUDIES = ("gaussian/plain", "gausian/plain/depth2", "gaussian/plain/depth0", "gaussian/../depth2")
COMPLEMENT, LANGUAGES = "postnorm.set_complement", "postnorm.languages"
RATES = f"{COMPLEMENT}.learning_rate"
RATE = (*RATES.split("."), "set-complement-16")
LIMITED = ("mpt", "llama")  # to some number of tokens
LONG = "x" * 10_000
# Changes, and the beginning of every line. Where none is given, the one line begins with the key and has the value.
FAULTS = [
    # a value alone
    ({"sed": 0},),
    ({"prompts": 16},),
    ({"banana": 1},),
    ({"minutes": "{emergence:"},),
    ({"models.bloomz": {"seeds": [0]}}, "models.bloomz.family is missing", "models.bloomz.architecture is missing"),
    ({f"{LANGUAGES}.lengths": {7: 9}},),
    ({"models": {"a_b": EVERYTHING["models"]["bloom"]}},),
    ({"emergence.task.width": 63},),
    ({"emergence.networks.window": ["window0/none", "window5/none"]}, "emergence.networks.window.0 = 'window0/none' "),
    ({"emergence.networks.plain": ["causal/decay-0.1"]}, "emergence.networks.plain.0 = 'causal/decay-0.1' "),
    ({"emergence.depths.isotropic.residual": [2]},),
    ({f"{LANGUAGES}.learning_rate.middle": 0.1},),
    *(({"evidence.emergence": [name]}, f"evidence.emergence.0 = {name!r} ") for name in NO_STUDIES),
    *(
        ({f"postnorm.{part}.lengths.{name}": 5}, f"postnorm.{part}.lengths has the name {name!r}")
        for part in NO_TASKS
        for name in NO_TASKS[part].split()
    ),
    ({f"{LANGUAGES}.lengths.dyck-2-60": 5}, f"{LANGUAGES}.lengths has the task 'dyck-2-60'"),  # nests too deep
    # what nobody means
    ({"rollout": {**EVERYTHING["rollout"], True: 1}}, "rollout.True = 1 "),
    ({"devices": {False: "cpu"}}, "devices.False = 'cpu' "),
    ({"devices": {"a\nb": "cpu"}}, "devices.'a\\nb' = 'cpu' "),
    ({f"{LANGUAGES}.learning_rate.a": {"b": 1}}, *2 * [f"{LANGUAGES}.learning_rate.a = {{'b': 1}} "]),
    ({"primary_dataset": "\udcff"}, "primary_dataset has '\\udcff'"),
    ({"scale": "\udcff"}, "scale has '\\udcff'"),
    ({"hub_models": {"\udcff": 1}}, "hub_models.", "hub_models."),
    ({"\udcff": 1}, "a key has '\\udcff'"),
    ({"seed": LONG}, f"seed = '{LONG[:199]}... "),
    ({"prompts": LONG}, f"prompts = '{LONG[:199]}... "),
    ({LONG: 1}, f"'{LONG[:199]}... = 1 "),
    ({"hub_models": {"x_" * 5_000: MODEL}}, f"hub_models has the name '{'x_' * 99}x..."),
    # a value that another excludes
    ({"training.warmup": 300},),
    ({"training.snapshots": [0, 301]},),
    ({"training.datasets": ["web"]},),
    ({"tokenizer.datasets": ["web"]},),
    ({"primary_dataset": "elsewhere"},),
    ({"measure.datasets": ["standard-library", "wiki"]},),
    ({"measure.models": ["bloom", "gpt2"]},),
    ({"measure.models": ["bloom", "rotary"]},),
    ({"structural.fig1": ["gpt2"]},),
    ({"layernorm.pretrained": ["gpt2"]},),
    ({"structural.pretrained.models": {"llama": 0.02}},),
    ({"structural.pretrained.prompts.replaced": 200},),
    ({"structural.curve.dataset": "wiki"},),
    ({"structural.curve.steps": [0.1, 0.01, 1]},),
    ({"structural.curve.steps": [0.01, 0.5]},),
    ({"structural.curve.donors": 60},),
    ({"structural.curve.documents_of_copies": 61},),
    ({"evidence.structural": ["large"]},),
    ({"evidence.sink": ["large"]},),
    ({"lengths.heatmap.tokens": 300},),
    ({"lengths.standard.tokens": 300},),
    ({"lengths.long.tokens": 64},),
    ({"hub_models.large.revision": None},),
    ({"hub_datasets.web.revision": None},),
    ({"hub_models.large.revision": "0" * 64},),
    ({"hub_datasets.web.source": "package:there"},),
    ({"hub_models.large.positions": "none"},),
    ({"hub_models.large.source": "~/models/large"},),
    ({"scale": "default"},),
    ({"emergence.sinks.threshold": 0.21},),
    ({"layernorm.trained.warmup": 700},),
    ({"postnorm.depth.length": 9},),
    ({"postnorm.depth.trained": 5},),
    ({"postnorm.dimension.vocabulary": 24},),
    # several values
    ({"models.bloom.architecture.heads": 5}, "models.bloom.architecture.hidden = 64 "),
    ({"hub_models.large.source": "package:there"}, f"hub_models.large.revision = '{'0' * 40}'"),
    ({"hub_models.large.source": "./here"}, f"hub_models.large.revision = '{'0' * 40}'"),
    ({"hub_datasets.web.source": "/data"}, f"hub_datasets.web.revision = '{'0' * 40}'"),
    ({"structural.pretrained.models": {"large": 0.02}}, "measure.models = 'large' "),
    ({"hub_models.bloom": MODEL}, "hub_models.bloom has the name of models.bloom"),
    ({"hub_models.offline": MODEL}, "hub_models.offline "),
    ({"hub_datasets.standard-library": TEXT}, "hub_datasets.standard-library has the name of datasets."),
    ({"lengths.more": [{"tokens": 512, "prompts": 9}]}, "lengths.more.0.tokens = 512 is that of lengths.long"),
    (
        {"lengths.more": [{"tokens": n, "prompts": prompts} for n, prompts in ((4096, 9), (1024, 4))]},
        *(f"lengths.more.0.tokens = 4096 is more than models.{name} " for name in LIMITED),
    ),
    ({"lengths.long.tokens": 2049}, *(f"lengths.long.tokens = 2049 is more than models.{of} " for of in LIMITED)),
    ({"emergence.task.classes": 31}, "emergence.task.classes = 31"),
    ({"emergence.task.labels": 1}, "emergence.task.labels = 1, burstiness = 4"),
    (  # the other faults of emergence depend on its task
        {"emergence.task.burstiness": 5, "emergence.networks.window": ["window1000/none"]},
        "emergence.task.burstiness = 5 ",
    ),
    (
        {
            "emergence.networks.prefix": ["prefix19/none"],
            "emergence.networks.window": ["window18/none", "causal/none"],
            "emergence.networks.plain": ["window5/none"],
            "emergence.testing.sequences_along": 7,
            "emergence.testing.sequences": 1,
            "evidence.emergence": ["gaussian/figure/depth2", "isotropic/figure/depth2"],
        },
        "emergence.networks.plain = window5/none ",
        "emergence.networks.window = window18/none ",
        "emergence.networks.window = causal/none ",
        "emergence.networks.prefix = prefix19/none ",
        "emergence.testing.sequences_along = 7 ",
        "emergence.testing.sequences = 1 ",
        *(f"evidence.emergence = {name}/figure/depth2 " for name in ("gaussian", "isotropic")),
    ),
    (
        {"layernorm.random_weights.heads": 7, "layernorm.trained.size.width": 66},
        "layernorm.random_weights.width = 256 ",
        "layernorm.trained.size.width = 66 ",
    ),
    ({f"{COMPLEMENT}.lengths.set-complement-8": 4}, f"{RATES}.set-complement-8 is missing"),
    ({f"{RATES}.set-complement-32": ...}, f"{RATES}.set-complement-32 is missing"),
    ({f"{RATES}.set-complement-61": at(EVERYTHING, RATE)}, f"{RATES} = 'set-complement-61' "),
    ({f"{RATES}.set-complement-16.peri": ...}, "postnorm.dimension.schemes = 'peri' "),
    ({"postnorm.averaging.trained_share": 0.01}, "postnorm.averaging.trained_share = 0.01 "),
    ({"postnorm.depth.length": 40}, "postnorm.depth.kinds = 2 with postnorm.depth.length = 40 "),
    (
        {"postnorm.sweep.iterations": [1e-5, 1.0]},
        *(f"postnorm.sweep.iterations = 1e-05 of postnorm.{of}.iterations" for of in ("set_complement", "languages")),
    ),
    (
        {
            f"{COMPLEMENT}.lengths.set-complement-16": 16,
            f"{RATES}.set-complement-16.none": ...,
            "postnorm.languages.lengths": {"tomita-1": 5},
            "evidence.postnorm": ["tomita-2"],
        },
        f"{COMPLEMENT}.lengths.set-complement-16 = 16 ",
        *(f"postnorm.sweep.languages = {name!r} " for name in ("maximum-10", "dyck-2-3", "tomita-5")),
        "postnorm.averaging.deterministic = 'maximum-10' ",
        "evidence.postnorm = 'tomita-2' ",
        "postnorm.dimension.schemes = 'none' ",
    ),
]


@pytest.mark.parametrize(
    ("changes", "begins"),
    [(changes, begins) for changes, *begins in FAULTS],
    ids=[ascii(changes)[:60] for changes, *_ in FAULTS],
)
def test_every_fault_is_one_short_line_with_key_and_value(changes, begins):
    config = changed(changes)
    before = deepcopy(config)
    lines = refusals(config)
    assert len(lines) == len(begins or changes), lines
    for line, begin in zip(lines, begins or changes, strict=True):
        assert line.startswith(begin), line
        assert line.isprintable()
        assert len(line) < 1000
        assert begins or names(line.removeprefix(begin), changes[begin]), line
    assert config == before


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"hub_models.rotary.positions": "none"},
        {"measure.models": ["large"], "primary_dataset": "web", "structural.fig1": ["large", "mpt"]},
        {"measure.models": ["falcon"]},  # a model of Figure 1 need not be measured
        {"layernorm.pretrained": ["rotary", "large", "bloom"]},
        {"lengths.more": [{"tokens": tokens, "prompts": 4} for tokens in (1024, 100)]},
        {"hub_models.large": {**MODEL, "source": "./model", "revision": None}},
        {"lengths.standard.tokens": 300, "measure.matrices_up_to": 300},
        {"lengths.long.tokens": 4096, "training.context": 4096},
        {"layernorm.trained.iterations": 51, "layernorm.trained.warmup": 50},
        {"evidence.emergence": ["gaussian/plain/depth2", "fixed/post-norm/depth2", "isotropic/plain/depth2"]},
        {"training.snapshots": [0, 300]},
        {"emergence.networks.window": ["window17/none"], "emergence.networks.prefix": ["prefix17/none"]},
        {"emergence.testing.sequences": 8, "emergence.testing.sequences_along": 8},
        {"evidence.postnorm": []},
        {"evidence.postnorm": ["tomita-5", "set-complement-16", "averaging"]},
        {"emergence.task.labels": 8},
        {"hub_models.other": ROTARY},
    ],
    ids=str,
)
def test_what_fits_is_accepted(changes):
    assert refusals(changed(changes)) == []


def test_values_are_compared_in_what_fits_its_sections_alone():
    seen = []

    def faults(config):
        seen.append(config)
        return ["one = 1 is wrong", "two = 2 is wrong"]

    with refused("config: seed = -1 "):
        configuration.check(changed({"seed": -1}), settings.Settings, faults=[faults])
    assert seen == []
    with refused("config: one = 1 is wrong"):
        configuration.check(deepcopy(DEFAULT), settings.Settings, faults=[faults])
    assert seen == [DEFAULT]


# Numbers and the order of keys


def written(node):
    """The same values, numbers and truths as the text that the command line leaves."""
    if isinstance(node, dict):
        return {name: written(inner) for name, inner in node.items()}
    if isinstance(node, list):
        return [written(inner) for inner in node]
    return node if node is None else str(node).lower() if isinstance(node, bool) else str(node)


def test_numbers_given_as_text_are_numbers_and_other_text_stays():
    config = written(EVERYTHING)
    assert config != EVERYTHING
    assert configuration.faults_of_sections(config, settings.Settings) == []
    assert json.dumps(config) == json.dumps(EVERYTHING)
    odd = changed({"training.steps": "many", "primary_dataset": "7"})  # a name, and a name it stays
    assert len(configuration.faults_of_sections(odd, settings.Settings)) == 1
    assert (odd["training"]["steps"], odd["primary_dataset"]) == ("many", "7")
    crossed = changed({"training.steps": "true", "figures.transparent": "1"})  # neither is what the other asks for
    assert len(configuration.faults_of_sections(crossed, settings.Settings)) == 2
    assert (crossed["training"]["steps"], crossed["figures"]["transparent"]) == ("true", "1")


def turned(node):
    """The same values, every key last that was first."""
    if isinstance(node, dict):
        return {key: turned(node[key]) for key in reversed(node)}
    return node


def test_keys_come_in_the_order_of_the_file():
    config = turned(DEFAULT)
    assert repr(config) != repr(DEFAULT)
    settings.check(config)
    assert repr(config) == repr(DEFAULT)


def test_other_names_follow_by_the_alphabet():
    config = {"new": {"b": 1, "a": {"d": 2, "c": 3}}, "known": 4, "another": None}
    configuration.put_in_order(config, {"known": 0, "of other kind": 1})
    assert repr(config) == "{'known': 4, 'another': None, 'new': {'a': {'c': 3, 'd': 2}, 'b': 1}}"
    again = deepcopy(config)
    configuration.put_in_order(again, {"known": {"not": "a number"}, "new": 3})
    assert again == config
    assert list(again) == ["known", "new", "another"]


TWICE = [
    ("seed: 1\nseed: 2\n", "'seed'", 2),
    ("rollout:\n  level: 0.9\n  bootstrap: 8\n  level: 0.8\n", "'level'", 4),
    ("lengths: {more: [{tokens: 9, tokens: 9}]}\n", "'tokens'", 1),
    ('{"seed": 1, "seed": 2}', "'seed'", 1),
]


@pytest.mark.parametrize(("content", "key", "line"), TWICE)
def test_a_file_that_has_a_key_twice_is_refused(content, key, line, tmp_path):
    """Snakemake would take the second."""
    (tmp_path / "overlay.yaml").write_text(content)
    with refused(f"config: {tmp_path}/overlay.yaml ", key, f"line {line}"):
        configuration.require_single_keys(tmp_path / "overlay.yaml")


def test_a_file_whose_keys_are_there_once_is_taken(tmp_path):
    for content in ("", "seed: 1\nrollout: {level: 0.9}\nlengths: {standard: {level: 1}, long: {level: 1}}\n"):
        (tmp_path / "overlay.yaml").write_text(content)
        configuration.require_single_keys(tmp_path / "overlay.yaml")
