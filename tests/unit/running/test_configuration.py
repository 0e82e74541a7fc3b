"""Every fault of a configuration is one line with its key: generated from the sections, listed where values meet."""

import json
import math
import re
from copy import deepcopy
from dataclasses import is_dataclass
from typing import Literal, get_args, get_origin

import pytest

from position_bias import settings
from position_bias.running import configuration
from position_bias.running.runtime import InputError
from position_bias.running.section import Bounds, Items, Keys, Words
from tests.configurations import DEFAULT, EVERYTHING, MODEL, ROOT, ROTARY, TEXT, at, changed, part, put, refusals
from tests.unit.conftest import SHIPPED


def test_what_is_shipped_has_no_fault_and_comes_back_as_it_was(shipped):
    before = json.dumps(shipped, sort_keys=True)
    settings.check(shipped)
    assert json.dumps(shipped, sort_keys=True) == before


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
TYPED = " = .* is of the wrong type; give "


def never(said, value):
    """Values that a key can never have, of another type or beyond its bounds, and what follows the key in the line."""
    if said.is_mapping:
        yield from ((wrong, TYPED + "names with values, as in '{") for wrong in (None, 7, "word", [1]))
        for name in ("banana", 7, None):
            yield {**value, name: 1}, r"(\.(banana|7|None) = 1 is | has the (name|task) )"
        if getattr(said.rules.get(Items), "least", 0):
            yield {}, " = {} is empty; give at least "
    elif get_origin(said.kind) is list:
        yield from ((wrong, TYPED + "a list") for wrong in (None, 7, "word", {}))
        yield [*value, value[0]], " = .* names something twice"
        yield [[], *value[1:]], r"\.0 = \[\] is "
        if said.rules[Items].least:
            yield [], r" = \[\] is empty; give at least "
    elif get_origin(said.kind) is Literal:
        known = f" = .* is not known; use one of {', '.join(get_args(said.kind))} "
        yield from ((wrong, known) for wrong in ([], {}, {"a": 1}, 7, True, math.nan, None, "", f"{value}\n"))
    elif said.kind is str:
        wrong = [[], {}, {"a": 1}, 7, True, math.nan, *([] if said.nullable else [None])]
        yield from ((other, TYPED + "text" + " or null" * said.nullable) for other in wrong)
        yield "", " = '' is empty; give text"
        if said.rules[Words] != Words():
            yield f"{value}\n", f" = .* is not a name; use {re.escape(said.rules[Words].form)}"
    elif said.kind is bool:
        yield from ((wrong, TYPED + "true or false") for wrong in ("", [], {}, 7, 1.0, "word", None))
    else:
        whole = said.kind is int
        others = ["", [], {}, {"a": 1}, True, "word", math.nan, math.inf, -math.inf]
        others += [] if said.nullable else [None]
        others += [9.0, 9.5] if whole else []
        yield from ((wrong, TYPED + ("a whole number" if whole else "a finite number")) for wrong in others)
        bounds = said.rules[Bounds]
        for bound, beyond, direction, words in (
            (bounds.least, -1, "small", "at least"),
            (bounds.above, 0, "small", "more than"),
            (bounds.most, 1, "large", "at most"),
            (bounds.below, 0, "large", "less than"),
        ):
            if bound is not None:
                yield bound + beyond * (bounds.multiple or 1), f" = .* is too {direction}; give {words} {bound}"
                yield (-1 if direction == "small" else 1) * 10**30, f" = .* is too {direction}; give {words} "


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_what_a_key_can_never_be_is_refused_by_its_name(path):
    key, said, value = ".".join(map(str, path)), part(path), at(EVERYTHING, path)
    for wrong, words in never(said, value):
        line = refusals(put(EVERYTHING, path, wrong))[0]
        assert re.match(re.escape(key) + words, line), line
        assert "\n" not in line
    around = part(path[:-1])
    if around.is_mapping and around.keys is not None:
        lines = refusals(put(put(EVERYTHING, path, ...), (*path[:-1], f"{path[-1]}z"), value))
        assert re.match(rf"{re.escape(key)}z = .* is not a key of the configuration; ", lines[0])
        if is_dataclass(around.kind) or (Keys in around.rules and around.rules[Keys].needed):
            assert lines[1].startswith(f"{key} is missing; add it")


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

ALONE = [  # key, value, and what follows the key in the line
    ("sed", 0, " = 0 is not a key of the configuration; did you mean 'seed'?"),
    ("prompts", 16, " = 16 is not a key of the configuration; it stands below card: card='{prompts: 16}'"),
    ("banana", 1, " = 1 is not a key of the configuration; use one of scale, device, devices, seed,"),
    ("minutes", "{emergence:", " = '{emergence:' is of the wrong type; give names with values, as in '{train:"),
    ("models.bloomz", {"seeds": [0]}, ".family is missing; add it (config.yaml shows how)"),
    ("postnorm.languages.lengths", {7: 9}, " has the name 7, which is of the wrong type; give text"),
    ("models.a_b", EVERYTHING["models"]["bloom"], " has the name 'a_b', which is not a name; use lower-case letters"),
    ("emergence.task.width", 63, " = 63 is not a multiple of 2; give one (coordinates of a token, in pairs for rot"),
    ("emergence.networks.window", ["window0/none", "window5/none"], ".0 = 'window0/none' is not a name; use"),
    ("emergence.depths.isotropic.residual", [2], " = [2] is not a key of the configuration; use one of plain"),
    ("postnorm.languages.learning_rate.middle", 0.1, " = 0.1 is not a key of the configuration; use one of none,"),
    *(
        ("evidence.emergence", [name], f".0 = {name!r} is not a name; use VOCABULARY/STUDY/depthLAYERS, as in")
        for name in ("gaussian/plain", "gausian/plain/depth2", "gaussian/plain/depth0", "gaussian/../depth2")
    ),
]


@pytest.mark.parametrize(("key", "value", "said"), ALONE, ids=[row[0] for row in ALONE])
def test_a_fault_is_one_line_with_key_value_and_remedy(key, value, said):
    line = refusals(changed({key: value}))[0]
    key = "models" if key == "models.a_b" else key
    assert line.startswith(key + said), line
    assert "\n" not in line


HOSTILE = [  # key, value, and what the line begins with
    ("rollout", {**EVERYTHING["rollout"], True: 1}, "rollout.True = 1 is not a key of the configuration; use one of"),
    ("devices", {False: "cpu"}, "devices.False = 'cpu' is not a key of the configuration; use one of"),
    ("devices", {"a\nb": "cpu"}, "devices.'a\\nb' = 'cpu' is not a key of the configuration; use one of"),
    ("postnorm.languages.learning_rate.a", {"b": 1}, "postnorm.languages.learning_rate.a = {'b': 1} is not a key of"),
    ("model", "\udcff", "model has '\\udcff', which is no UTF-8; give text that is"),
    ("scale", "\udcff", "scale has '\\udcff', which is no UTF-8; give text that is"),
    ("hub_models", {"\udcff": 1}, "hub_models."),
    ("\udcff", 1, "a key has '\\udcff', which is no UTF-8; give text that is"),
    ("seed", "x" * 10_000, f"seed = '{'x' * 199}... is of the wrong type; give a whole number"),
    ("prompts", "x" * 10_000, f"prompts = '{'x' * 199}... is not a key of the configuration; it stands below card"),
    ("x" * 10_000, 1, f"'{'x' * 199}... = 1 is not a key of the configuration; use one of scale"),
    ("hub_models", {"x_" * 5_000: MODEL}, f"hub_models has the name '{'x_' * 99}x..., which is not a name; use"),
]


@pytest.mark.parametrize(
    ("key", "value", "begins"), HOSTILE, ids=[f"{key:.20} {value!r:.20}" for key, value, _ in HOSTILE]
)
def test_what_nobody_means_is_one_short_line_that_can_be_printed(key, value, begins):
    line = refusals(changed({key: value}))[0]
    assert line.startswith(begins), line
    assert line.encode()
    assert line.isprintable()
    assert len(line) < 1000


NO_TASKS = {
    "languages": "maximum-1 maximum-100001 maximum-010 tomita-05 tomita-8 dyck-2-03 dyck-2-0 dyck-0-2 copy-3 dyck-2",
    "set_complement": "set-complement-1 set-complement-100001 set-complement-032 maximum-10 set-complement-",
}
RATES = EVERYTHING["postnorm"]["set_complement"]["learning_rate"]["set-complement-16"]


@pytest.mark.parametrize(("part", "name"), [(part, name) for part in NO_TASKS for name in NO_TASKS[part].split()])
def test_a_task_that_there_is_not_is_told_what_there_is(part, name):
    lines = refusals(changed({f"postnorm.{part}.lengths.{name}": 5}))
    there = "set-complement-V" if part == "set_complement" else "maximum-CLASSES"
    assert lines[0].startswith(f"postnorm.{part}.lengths has the name {name!r}, which is not a name; use {there} with ")


def test_brackets_that_nest_too_deep_are_refused():
    lines = refusals(changed({"postnorm.languages.lengths.dyck-2-60": 5}))
    said = "kinds = 2 and depth = 60: more than 100000 full stacks; lower one of them"
    assert lines == [f"postnorm.languages.lengths has the task 'dyck-2-60': {said}"]


COMPLEMENT = "postnorm.set_complement"
OF_SWEEP = "postnorm.sweep.languages = {!r} is not in postnorm.languages.lengths; use some of "
PACKAGED = {**MODEL, "source": "package:there"}
ACROSS = [  # key, a value that another excludes, and what follows the key in the line
    ("training.warmup", 300, " = 300 leaves no step after it; set it below training.steps = 300"),
    ("training.snapshots", [0, 301], " = 301 is never reached; use steps up to training.steps = 300"),
    ("training.datasets", ["web"], " = 'web' is not in datasets; use one of standard-library,"),
    ("tokenizer.datasets", ["web"], " = 'web' is not in datasets; use one of standard-library,"),
    ("primary_dataset", "elsewhere", " = 'elsewhere' is not in measure.datasets; use one of standard-library, web"),
    ("measure.datasets", ["standard-library", "wiki"], " = 'wiki' is not in datasets or hub_datasets; use one of"),
    ("measure.models", ["bloom", "gpt2"], " = 'gpt2' is not in models or hub_models; use one of bloom, mpt,"),
    ("measure.models", ["bloom", "rotary"], " = 'rotary' is of family llama, which has no ALiBi: rollouts (a) to"),
    ("structural.fig1", ["gpt2"], " = 'gpt2' is not in models or hub_models; use one of bloom, mpt, falcon,"),
    ("layernorm.pretrained", ["gpt2"], " = 'gpt2' is not in models or hub_models; use one of bloom, mpt, falcon,"),
    ("structural.pretrained.models", {"llama": 0.02}, ".llama = 0.02 is of no model in hub_models; use one of large,"),
    ("structural.pretrained.prompts.replaced", 200, " = 200 is more than standard = 128, of which these are the"),
    ("evidence.structural", ["large"], " = 'large' is not in models; use one of bloom, mpt, falcon, llama"),
    ("evidence.rotary", ["bloom"], " = 'bloom' is of family bloom, which has ALiBi and no rotary positions; name"),
    ("evidence.rotary", ["rotary"], " = 'rotary' is not in models; use one of bloom, mpt, falcon, llama"),
    ("lengths.heatmap.tokens", 300, " = 300 is more than measure.matrices_up_to = 256, so that no matrices of"),
    ("lengths.standard.tokens", 300, " = 300 is more than measure.matrices_up_to = 256, so that no matrices of"),
    ("lengths.long.tokens", 64, " = 64 is that of lengths.heatmap too; give each its own"),
    ("hub_models.large.revision", None, " = None leaves the hub's 'someone/something' unpinned; name a commit"),
    ("hub_datasets.web.revision", None, " = None leaves the hub's 'someone/something' unpinned; name a commit"),
    ("hub_models.large", PACKAGED, f".revision = '{'0' * 40}' does not pin 'package:there': pin a package"),
    ("hub_models.large.revision", "0" * 64, f" = '{'0' * 64}' does not pin 'someone/something': pin the hub's by its"),
    (
        "hub_datasets.web.source",
        "package:there",
        " = 'package:there' is a package, which may hold a model; name a text",
    ),
    ("hub_models.large.positions", "none", " = 'none', but ALiBi cannot be turned off; set it to own"),
    ("hub_models.large.source", "~/models/large", " = '~/models/large' is no id of the hub; a directory starts"),
    ("scale", "laptop", " = 'laptop' trains no longer than the default run, and evidence.group = 'long' keeps"),
    ("emergence.networks.plain", ["causal/decay-0.1"], ".0 = 'causal/decay-0.1' is not a name; use MASK/ENCODING"),
    ("emergence.sinks.threshold", 0.21, " = 0.21 is not one of emergence.sinks.thresholds: 0.15, 0.2, 0.25, 0.3"),
    ("layernorm.trained.warmup", 700, " = 700 leaves no iteration after it; set it below"),
    ("postnorm.depth.length", 9, " = 9 has no words of brackets that nest; give an even length from 4 on"),
    ("postnorm.depth.trained", 5, " = 5 leaves no deeper words of postnorm.depth.length = 10; give at most 4"),
    ("postnorm.dimension.vocabulary", 24, " = 24 is not of a task in postnorm.set_complement.lengths;"),
    ("emergence.task.labels", 7, " = 7 leaves items of the tests of retrieval without their own; give at least 8"),
    ("retrieval.networks.plain/depth2", ["decay-0.1", "decay-0.10"], " has the slope 0.1 twice; name each once"),
    ("retrieval.networks.plain/depth2", ["none", "decay-0"], " has a slope of 0, which is the causal mask alone;"),
    ("evidence.retrieval", ["plain/depth2", "last/depth3"], " = last/depth3 is not trained; use some of"),
]
TOGETHER = [  # changes, and the beginning of every line
    ({"models.bloom.architecture.heads": 5}, "models.bloom.architecture.hidden = 64 does not divide into heads = 5;"),
    ({"hub_models.large.source": "./here"}, f"hub_models.large.revision = '{'0' * 40}', but its source is a directory"),
    ({"hub_datasets.web.source": "/data"}, f"hub_datasets.web.revision = '{'0' * 40}', but its source is a directory"),
    ({"structural.pretrained.models": {"large": 0.02}}, "measure.models = 'large' is in structural.pretrained.models,"),
    ({"hub_models.bloom": MODEL}, "hub_models.bloom has the name of models.bloom; give it another"),
    ({"hub_models.offline": MODEL}, "hub_models.offline has the name of the tokenizer of models trained here; give"),
    ({"hub_datasets.standard-library": TEXT}, "hub_datasets.standard-library has the name of datasets.standard-"),
    (
        {"lengths.more": [{"tokens": 512, "prompts": 9}]},
        "lengths.more.0.tokens = 512 is that of lengths.long too; give",
    ),
    (
        {"lengths.more": [{"tokens": n, "prompts": prompts} for n, prompts in ((4096, 9), (1024, 4))]},
        "lengths.more.0.tokens = 4096 is more than models.mpt (mpt) takes; give at most 2048",
        "lengths.more.0.tokens = 4096 is more than models.llama (llama) takes; give at most 2048",
    ),
    (
        {"lengths.long.tokens": 2049},
        "lengths.long.tokens = 2049 is more than models.mpt (mpt) takes; give at most 2048",
        "lengths.long.tokens = 2049 is more than models.llama (llama) takes; give at most 2048",
    ),
    ({"emergence.task.classes": 31}, "emergence.task.classes = 31: every label has a class, and a sequence 2; give"),
    ({"emergence.task.labels": 1}, "emergence.task.labels = 1, burstiness = 4: without two labels and two classes in"),
    (  # the other faults of emergence depend on its task
        {"emergence.task.burstiness": 5, "emergence.networks.window": ["window1000/none"]},
        "emergence.task.burstiness = 5 does not divide items = 8; give a divisor",
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
        "emergence.networks.plain = window5/none has a mask",
        "emergence.networks.window = window18/none reaches over",
        "emergence.networks.window = causal/none has a mask",
        "emergence.networks.prefix = prefix19/none reaches over",
        "emergence.testing.sequences_along = 7 leaves",
        "emergence.testing.sequences = 1 leaves positions without a test; give 8 or more",
        *(f"evidence.emergence = {name}/figure/depth2 is of no study" for name in ("gaussian", "isotropic")),
    ),
    (
        {"layernorm.random_weights.heads": 7, "layernorm.trained.size.width": 66},
        "layernorm.random_weights.width = 256 does not divide into heads = 7; use a multiple of 7",
        "layernorm.trained.size.width = 66 does not divide into heads = 4; use a multiple of 4",
    ),
    ({f"{COMPLEMENT}.lengths.set-complement-8": 4}, f"{COMPLEMENT}.learning_rate.set-complement-8 is missing; add the"),
    ({f"{COMPLEMENT}.learning_rate.set-complement-32": ...}, f"{COMPLEMENT}.learning_rate.set-complement-32 is miss"),
    (
        {f"{COMPLEMENT}.learning_rate.set-complement-61": RATES},
        f"{COMPLEMENT}.learning_rate = 'set-complement-61' is not in {COMPLEMENT}.lengths; use some of set-com",
    ),
    (
        {f"{COMPLEMENT}.learning_rate.set-complement-16.peri": ...},
        f"postnorm.dimension.schemes = 'peri' is not in {COMPLEMENT}.learning_rate.set-complement-16; use some of none",
    ),
    (
        {"postnorm.averaging.trained_share": 0.01},
        "postnorm.averaging.trained_share = 0.01 gives training sequences of 0 of 8 tokens; give a share that",
    ),
    ({"postnorm.depth.length": 40}, "postnorm.depth.kinds = 2 with postnorm.depth.length = 40 gives more than 100000"),
    (
        {"postnorm.sweep.iterations": [1e-5, 1.0]},
        "postnorm.sweep.iterations = 1e-05 of postnorm.set_complement.iterations = ",
        "postnorm.sweep.iterations = 1e-05 of postnorm.languages.iterations = ",
    ),
    (
        {
            f"{COMPLEMENT}.lengths.set-complement-16": 16,
            f"{COMPLEMENT}.learning_rate.set-complement-16.none": ...,
            "postnorm.languages.lengths": {"tomita-1": 5},
            "evidence.postnorm": ["tomita-2"],
        },
        f"{COMPLEMENT}.lengths.set-complement-16 = 16 leaves no token absent; give at most 15",
        *(OF_SWEEP.format(name) for name in ("maximum-10", "dyck-2-3", "tomita-5")),
        "postnorm.averaging.deterministic = 'maximum-10' is not in",
        "evidence.postnorm = 'tomita-2' is not trained",
        "postnorm.dimension.schemes = 'none' is not in",
    ),
]


@pytest.mark.parametrize(
    ("changes", "begins"),
    [
        *(({key: value}, [key + said]) for key, value, said in ACROSS),
        *((changes, begins) for changes, *begins in TOGETHER),
    ],
    ids=str,
)
def test_values_that_do_not_fit_each_other_are_all_named_once_and_left_as_they_are(changes, begins):
    config = changed(changes)
    before = deepcopy(config)
    lines = refusals(config)
    assert len(lines) == len(begins), lines
    assert [line for line, begin in zip(lines, begins, strict=True) if not line.startswith(begin) or "\n" in line] == []
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


def test_faults_of_values_together_are_looked_for_in_what_fits_its_sections_alone():
    seen = []

    def faults(config):
        seen.append(config)
        return ["one = 1 is wrong; give 2", "two = 2 is wrong; give 3"]

    with pytest.raises(InputError, match=r"^config: seed = -1 is too small"):
        configuration.check(changed({"seed": -1}), settings.Settings, faults=[faults])
    assert seen == []
    with pytest.raises(InputError, match=r"^config: one = 1 is wrong; give 2$"):
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


def test_numbers_given_as_text_are_the_same_numbers_and_other_text_stays():
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


def test_keys_come_in_the_order_of_the_file_whatever_order_they_were_given_in():
    config = turned(DEFAULT)
    assert repr(config) != repr(DEFAULT)
    settings.check(config)
    assert repr(config) == repr(DEFAULT)


def test_names_that_the_file_does_not_have_follow_by_the_alphabet():
    config = {"new": {"b": 1, "a": {"d": 2, "c": 3}}, "known": 4, "another": None}
    configuration.put_in_order(config, {"known": 0, "of other kind": 1})
    assert repr(config) == "{'known': 4, 'another': None, 'new': {'a': {'c': 3, 'd': 2}, 'b': 1}}"
    again = deepcopy(config)
    configuration.put_in_order(again, {"known": {"not": "a number"}, "new": 3})
    assert again == config
    assert list(again) == ["known", "new", "another"]
