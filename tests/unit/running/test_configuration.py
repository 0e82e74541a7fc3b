"""Every fault of a configuration is one line with its key: generated for single values, listed where they meet."""

import math
import re
from copy import deepcopy

import pytest
from jsonschema import Draft202012Validator

from position_bias.emergence import studies
from position_bias.running import configuration
from position_bias.running.runtime import InputError
from tests.configurations import (
    DEFAULT,
    EVERYTHING,
    FAULTS,
    MODEL,
    ROOT,
    ROTARY,
    SCHEMA,
    TEXT,
    at,
    changed,
    part,
    put,
    refusals,
)
from tests.unit.conftest import SHIPPED


def nodes(node=SCHEMA):
    """Every mapping within the schema."""
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(inner)


def test_the_schema_is_closed_and_says_what_each_of_its_patterns_asks_for():
    """Faults and the page of the configuration end with it."""
    Draft202012Validator.check_schema(SCHEMA)
    objects = [node for node in nodes() if node.get("type") == "object"]
    assert len(objects) > 8
    for node in objects:
        assert node["additionalProperties"] is False or {"type", "$ref"} & set(node["additionalProperties"])
    patterns = [node for node in nodes() if isinstance(node.get("pattern"), str)]
    assert len(patterns) > 4
    assert [node for node in patterns if node["type"] != "string" or len(node["title"]) < 10] == []


def test_what_is_shipped_has_no_fault(shipped):
    assert refusals(shipped) == []


def test_every_overlay_is_among_what_is_shipped():
    files = {str(path.relative_to(ROOT / "config").with_suffix("")) for path in (ROOT / "config").rglob("*.yaml")}
    assert {name for names in SHIPPED for name in names} == {name for name in files if not name.startswith("schema")}


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


TYPED = " = .* is of the wrong type; give "


def never(node, value):
    """Values that a key can never have, of another type or beyond its bounds, and what follows the key in the line."""
    if isinstance(value, dict):
        yield from ((wrong, TYPED + "names with values, as in {") for wrong in (None, 7, "word", [1]))
        yield from (
            ({**value, name: 1}, r"(\.(banana|7|None) = 1 is | has the (name|task) )") for name in ("banana", 7, None)
        )
        if "minProperties" in node:
            yield {}, " = {} is empty; give at least"
    elif isinstance(value, list):
        yield from ((wrong, TYPED + "a list") for wrong in (None, 7, "word", {}))
        yield [*value, value[0]], " = .* names something twice"
        yield [[], *value[1:]], r"\.0 = \[\] is "
        if "minItems" in node:
            yield [], r" = \[\] is empty; give at least "
    elif isinstance(value, str):
        said = f" = .* is not known; use one of {', '.join(map(str, node['enum']))}" if "enum" in node else " = .* is "
        wrong = [[], {}, {"a": 1}, 7, True, math.nan, *([] if "anyOf" in node else [None])]
        yield from ((other, said) for other in wrong)
        if node.keys() & {"enum", "pattern", "anyOf"}:
            yield "", said
    elif isinstance(value, bool):
        yield from ((wrong, TYPED) for wrong in ("", [], {}, 7, 1.0, "word", None))
    else:
        whole = node["type"] == "integer"
        others = [
            "",
            [],
            {},
            {"a": 1},
            None,
            True,
            "word",
            math.nan,
            math.inf,
            -math.inf,
            *([9.0, 9.5] if whole else []),
        ]
        yield from ((wrong, TYPED + ("a whole number" if whole else "a finite number")) for wrong in others)
        for keyword, beyond, direction, words in (
            ("minimum", -1, "small", "at least"),
            ("exclusiveMinimum", 0, "small", "more than"),
            ("maximum", 1, "large", "at most"),
            ("exclusiveMaximum", 0, "large", "less than"),
        ):
            if keyword in node:
                yield node[keyword] + beyond, f" = .* is too {direction}; give {words} {node[keyword]}"
                yield (-1 if direction == "small" else 1) * 10**30, f" = .* is too {direction}; give {words} "


def refused(path, wrong):
    """The line on a wrong value, from its section of the schema, which is quicker than all of it."""
    section = path[0]
    schema = {**SCHEMA, "properties": {section: SCHEMA["properties"][section]}, "required": [section]}
    config = put({section: EVERYTHING[section]}, path, wrong)
    configuration.read_numbers(config, schema)
    try:
        configuration.check(config, schema)
    except InputError as error:
        return str(error).removeprefix("config: ")
    return refusals(put(EVERYTHING, path, wrong))[0]  # of values together


@pytest.mark.parametrize("path", list(places(EVERYTHING)), ids=lambda path: ".".join(map(str, path)))
def test_what_a_key_can_never_be_is_refused_by_its_name(path):
    key, node, value = ".".join(map(str, path)), part(path), at(EVERYTHING, path)
    for wrong, said in never(node, value):
        line = refused(path, wrong)
        assert re.match(re.escape(key) + said, line)
        assert "\n" not in line
    if path[-1] in part(path[:-1]).get("required", []):
        line = refused((*path[:-1], f"{path[-1]}z"), value) if path[1:] else refusals({**EVERYTHING, f"{key}z": 1})[0]
        assert re.match(rf"{re.escape(key)}z = .* is not a key of the configuration; ", line)
        assert refused(path, ...).startswith(f"{key} is missing; add it")


# What is wrong by itself in other ways, or beside another value

ALONE = [  # key, value, and what follows the key in the line
    ("sed", 0, " = 0 is not a key of the configuration; did you mean 'seed'?"),
    ("card.gpus:2", None, " = None is not a key of the configuration; write a blank after the colon"),
    ("training.stepz", 9, " = 9 is not a key of the configuration; did you mean 'steps'?"),
    ("prompts", 16, " = 16 is not a key of the configuration; it stands below card: card='{prompts: 16}'"),
    ("banana", 1, " = 1 is not a key of the configuration; use one of model, text, card, scale, device, devices,"),
    ("minutes.measure_hub", 720, " = 720 is not a key of the configuration; that is hub_models.NAME.minutes,"),
    ("minutes.emergence 720", None, " = None is not a key of the configuration; write a colon after 'emergence'"),
    ("minutes", 720, " = 720 is of the wrong type; give names with values, as in {train: value, measure: value,"),
    ("minutes", "{emergence:", " = '{emergence:' is of the wrong type; give names with values, as in {train:"),
    ("models.bloomz", {"seeds": [0]}, ".family is missing; add it, or did you mean 'bloom'?"),
    ("hub_models.mine", {}, ".source is missing; add it"),
    ("datasets.standard-library", {}, ".corpus is missing; add it"),
    ("measure", {}, ".models is missing; add it (config.yaml has the default)"),
    ("measure.tokens_per_batch", ..., " is missing; add it (config.yaml has the default)"),
    ("postnorm.languages.lengths", {7: 9}, " has the name 7, which is of the wrong type; give a string"),
    ("evidence.layernorm", [], " = [] is not a key of the configuration; use one of group, emergence, postnorm,"),
    ("scale", None, " = None is not known; use one of laptop, longer, paper, test (the size of this run, shown"),
    ("scale", "laptop\n", " = 'laptop\\n' is not known; use one of laptop, longer, paper, test (the size of this"),
    ("device", "tpu", " = 'tpu' is not known; use one of auto, cpu, cuda (where models run; auto takes a GPU if"),
    ("primary_dataset", "wiki\n", " = 'wiki\\n' is not a name; use lower-case letters, digits, dots and dashes"),
    ("training.datasets", ["standard-library", "My Texts"], ".1 = 'My Texts' is not a name; use lower-case"),
    ("evidence.group", "My Run", " = 'My Run' is not allowed (name of the run)"),
    ("evidence.group", "", " = '' is not allowed (name of the run)"),
    ("released.source", 5, " = 5 is not allowed (where the released numbers are, a directory or the https"),
    ("released.sha256", "abc", " = 'abc' is not allowed (SHA-256 of the files that hold the released numbers, 64"),
    ("models.bloom.seeds", [2**64], ".0 = 18446744073709551616 is too large; give at most 4294967295 (training"),
    ("training.snapshots", [0, 0], " = [0, 0] names something twice; name each once (steps after which the model"),
    ("rollout.level", 1, " = 1 is too large; give less than 1 (coverage of the intervals)"),
    ("emergence.task.width", 63, " = 63 is not allowed (63 is not a multiple of 2) (coordinates of a token; RoPE"),
    ("emergence.networks.window", ["window0/none", "window5/none"], ".0 = 'window0/none' is not a name; use"),
    ("emergence.networks.plain", ["causal/none", "rope"], ".1 = 'rope' is not a name; use MASK/ENCODING, as in"),
    ("emergence.networks.prefix", ["prefix10000/none"], ".0 = 'prefix10000/none' is not a name; use"),
    ("emergence.networks.window", [5], ".0 = 5 is of the wrong type; give a string (with sliding windows,"),
    ("emergence.networks.plan", [], " = [] is not a key of the configuration; did you mean 'plain'?"),
    ("emergence.depths.isotropic.residual", [2], " = [2] is not a key of the configuration; use one of plain"),
    ("postnorm.languages.learning_rate.middle", 0.1, " = 0.1 is not a key of the configuration; use one of none,"),
    ("devices", {"measure": "gpu"}, ".measure = 'gpu' is not known; use one of auto, cpu, cuda (measuring"),
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
    ("evidence.structural", ["large"], " = 'large' is not in models; use one of bloom, mpt, falcon, llama"),
    ("evidence.rotary", ["bloom"], " = 'bloom' is of family bloom, which has ALiBi and no rotary positions; name"),
    ("evidence.rotary", ["rotary"], " = 'rotary' is not in models; use one of bloom, mpt, falcon, llama"),
    ("lengths.heatmap.tokens", 300, " = 300 is more than measure.matrices_up_to = 256, so that no matrices of"),
    ("lengths.standard.tokens", 300, " = 300 is more than measure.matrices_up_to = 256, so that no matrices of"),
    ("lengths.long.tokens", 64, " = 64 is that of lengths.heatmap too; give each its own"),
    ("lengths.standard.tokens", 2, " = 2 is too small; give at least 9 (tokens of a prompt)"),
    ("hub_models.large.revision", None, " = None leaves the hub's 'someone/something' unpinned; name a commit"),
    ("hub_datasets.web.revision", None, " = None leaves the hub's 'someone/something' unpinned; name a commit"),
    ("hub_models.large.positions", "none", " = 'none', but ALiBi cannot be turned off; set it to own"),
    ("hub_models.large.source", "~/models/large", " = '~/models/large' is no id of the hub; a directory starts"),
    ("scale", "laptop", " = 'laptop' trains no longer than the default run, and evidence.group = 'long' keeps"),
    ("emergence.task.burstiness", 3, " = 3 does not divide items = 8; give a divisor"),
    ("emergence.networks.window", ["window5/none", "window18/none"], " = window18/none reaches over more than a"),
    ("emergence.networks.prefix", ["prefix18/none"], " = prefix18/none reaches over more than a sequence's"),
    ("emergence.networks.plain", ["causal/none", "none/none"], " = none/none has a mask that this study does not"),
    ("emergence.networks.ends", ["window18/none"], " = window18/none has a mask that this study does not"),
    ("emergence.testing.sequences", 7, " = 7 leaves positions without a test; give 8 or more"),
    ("emergence.testing.sequences_along", 7, " = 7 leaves positions without a test; give 8 or more"),
    ("emergence.sinks.threshold", 0.21, " = 0.21 is not one of emergence.sinks.thresholds: 0.15, 0.2, 0.25, 0.3"),
    (
        "evidence.emergence",
        ["gaussian/plain/depth2", "gaussian/plan/depth2"],
        " = gaussian/plan/depth2 is of no study that",
    ),
    ("layernorm.trained.warmup", 700, " = 700 leaves no iteration after it; set it below"),
    ("postnorm.sweep.languages", ["tomita-5", "dyck-9-9"], " = 'dyck-9-9' is not in postnorm.languages.lengths;"),
    ("postnorm.averaging.deterministic", ["maximum-9"], " = 'maximum-9' is not in postnorm.languages.lengths;"),
    ("postnorm.depth.length", 9, " = 9 has no words of brackets that nest; give an even length from 4 on"),
    ("postnorm.depth.trained", 5, " = 5 leaves no deeper words of postnorm.depth.length = 10; give at most 4"),
    ("postnorm.dimension.vocabulary", 24, " = 24 is of no task in postnorm.set_complement.lengths:"),
    ("evidence.postnorm", ["tomita-5", "copy-3"], " = 'copy-3' is not trained; use some of set-complement-16,"),
    ("postnorm.stability.deep.layers", 1, " = 1 is too small; give at least 2 (layers of attention and MLP; the"),
    ("postnorm.set_complement.lengths.set-complement-16", 16, " = 16 leaves no token absent; give at most 15"),
    ("emergence.task.labels", 7, " = 7 leaves items of the tests of retrieval without their own; give at least 8"),
    ("retrieval.networks.plain/depth2", ["decay-0.1", "decay-0.10"], " has the slope 0.1 twice; name each once"),
    ("retrieval.networks.plain/depth2", ["none", "decay-0"], " has a slope of 0, which is the causal mask alone;"),
    ("evidence.retrieval", ["plain/depth2", "last/depth3"], " = last/depth3 is not trained; use some of"),
]


@pytest.mark.parametrize(("key", "value", "said"), ALONE, ids=[row[0] for row in ALONE])
def test_a_fault_is_one_line_with_key_value_and_remedy(key, value, said):
    (line,) = refusals(changed({key: value}))
    assert line.startswith(key + said)
    assert "\n" not in line


@pytest.mark.parametrize(
    "name",
    [
        "gaussian/plain",
        "gausian/plain/depth2",
        "gaussian/plain/2",
        "gaussian/plain/depth0",
        "gaussian/plain/depth2\n",
        "gaussian/../depth2",
    ],
)
def test_what_cannot_be_kept_of_emergence_is_told_how_it_is_written(name):
    (line,) = refusals(changed({"evidence.emergence": [name]}))
    said = "is not a name; use VOCABULARY/STUDY/depthLAYERS, as in gaussian/plain/depth2"
    assert line.startswith(f"evidence.emergence.0 = {name!r} {said}")


UNKNOWN = ": language = {name!r} is unknown; give dyck-KINDS-DEPTH, or one of tomita-1 to tomita-7"
LANGUAGES = {  # names that no language has, and what is said of each
    "maximum-1": "; there is something to retrieve from 2 classes on",
    "maximum-100001": "; give at most 100000 classes",
    "maximum-010": "; write it maximum-10",
    "tomita-05": "; write it tomita-5",
    "tomita-8": ": number = 8: Tomita's languages are 1 to 7",
    "dyck-2-03": "; write it dyck-2-3",
    "dyck-2-0": ": depth = 0: brackets nest to a depth of at least 1",
    "dyck-0-2": ": kinds = 0: a Dyck language has at least 1 kind of brackets",
    "dyck-2-60": ": kinds = 2 and depth = 60: more than 100000 full stacks; lower one of them",
    **dict.fromkeys(("copy-3", "set-complement-16", "tomita", "dyck-2"), UNKNOWN),
}
COMPLEMENTS = {
    "set-complement-1": "; a set and its complement need a vocabulary of at least 2 tokens",
    "set-complement-100001": "; give a vocabulary of at most 100000 tokens",
    "set-complement-032": "; write it set-complement-32",
    **dict.fromkeys(("maximum-10", "set-complement-"), "; give set-complement-V with a vocabulary of V tokens"),
}
RATES = EVERYTHING["postnorm"]["set_complement"]["learning_rate"]["set-complement-16"]


@pytest.mark.parametrize(
    ("part", "name", "said"),
    [*(("languages", *row) for row in LANGUAGES.items()), *(("set_complement", *row) for row in COMPLEMENTS.items())],
)
def test_a_task_that_there_is_not_is_told_what_there_is(part, name, said):
    changes = {f"postnorm.{part}.lengths.{name}": 5}
    if part == "set_complement":
        changes[f"postnorm.{part}.learning_rate.{name}"] = RATES
    assert refusals(changed(changes)) == [f"postnorm.{part}.lengths has the task {name!r}{said.format(name=name)}"]


COMPLEMENT = "postnorm.set_complement"
OF_SWEEP = "postnorm.sweep.languages = {!r} is not in postnorm.languages.lengths; use some of "
TOGETHER = [  # changes, and the beginning of every line
    ({"models.a_b": {}}, "models has the name 'a_b', which is not a name; use lower-case letters"),
    ({"training.steps": 60}, "training.warmup = 60 leaves no step", "training.snapshots = 100 is never reached; use"),
    ({"training.steps": 90}, "training.snapshots = 100 is never reached; use steps up to training.steps = 90"),
    ({"measure.datasets": ["web"]}, "primary_dataset = 'standard-library' is not in measure.datasets; use one of web"),
    ({"measure.matrices_up_to": 128}, "lengths.standard.tokens = 256 is more than measure.matrices_up_to = 128, so"),
    ({"models.bloom.architecture.heads": 5}, "models.bloom.architecture.hidden = 64 does not divide into heads = 5;"),
    ({"models.mpt.architecture.hidden": 60}, "models.mpt.architecture.hidden = 60 does not divide into heads = 8;"),
    ({"hub_models.large.source": "./here"}, f"hub_models.large.revision = '{'0' * 40}', but its source is a directory"),
    ({"hub_datasets.web.source": "/data"}, f"hub_datasets.web.revision = '{'0' * 40}', but its source is a directory"),
    ({"hub_models.bloom": MODEL}, "hub_models.bloom has the name of models.bloom; give it another"),
    ({"hub_models.offline": MODEL}, "hub_models.offline has the name of the tokenizer of models trained here; give"),
    ({"hub_datasets.standard-library": TEXT}, "hub_datasets.standard-library has the name of datasets.standard-"),
    ({"lengths.heatmap.tokens": 256}, "lengths.standard.tokens = 256 is that of lengths.heatmap too; give each its"),
    (
        {"lengths.more": [{"tokens": 512, "prompts": 9}]},
        "lengths.more.0.tokens = 512 is that of lengths.long too; give",
    ),
    (
        {"lengths.more": [{"tokens": n, "prompts": prompts} for n, prompts in ((4096, 9), (1024, 4), (1024, 9))]},
        "lengths.more.0.tokens = 4096 is more than models.mpt (mpt) takes; give at most 2048",
        "lengths.more.0.tokens = 4096 is more than models.llama (llama) takes; give at most 2048",
        "lengths.more.2.tokens = 1024 is that of lengths.more.1 too; give each its own",
    ),
    (
        {"lengths.long.tokens": 2049},
        "lengths.long.tokens = 2049 is more than models.mpt (mpt) takes; give at most 2048",
        "lengths.long.tokens = 2049 is more than models.llama (llama) takes; give at most 2048",
    ),
    ({"emergence.task.items": 6}, "emergence.task.burstiness = 4 does not divide items = 6; give a divisor"),
    (
        {"emergence.task.items": 4},
        "emergence.task.labels = 32, burstiness = 4: without two labels and two classes in a",
    ),
    ({"emergence.task.classes": 31}, "emergence.task.classes = 31: every label has a class, and a sequence 2; give"),
    (
        {"emergence.task.labels": 1},
        "emergence.task.labels = 1, burstiness = 4: without two labels and two classes in a sequence",
        "emergence.task.labels = 1 leaves items of the tests of retrieval without their own; give at least 8",
    ),
    (  # the other faults of emergence depend on its task
        {"emergence.task.burstiness": 5, "emergence.networks.window": ["window1000/none"]},
        "emergence.task.burstiness = 5 does not divide items = 8; give a divisor",
    ),
    (
        {"emergence.networks.plain": []},
        "evidence.emergence = gaussian/plain/depth2 is of no study that is trained; use",
    ),
    ({"emergence.sinks.thresholds": [0.15, 0.3]}, "emergence.sinks.threshold = 0.2 is not one of emergence.sinks."),
    (
        {
            "emergence.networks.prefix": ["prefix19/none"],
            "emergence.networks.window": ["window18/none", "causal/none"],
            "emergence.networks.plain": ["window5/none"],
            "emergence.sinks.threshold": 0.4,
            "emergence.testing.sequences_along": 7,
            "emergence.testing.sequences": 1,
            "evidence.emergence": ["gaussian/figure/depth2", "isotropic/figure/depth2"],
        },
        "emergence.networks.plain = window5/none has a mask",
        "emergence.networks.window = window18/none reaches over",
        "emergence.networks.window = causal/none has a mask",
        "emergence.networks.prefix = prefix19/none reaches over",
        "emergence.testing.sequences_along = 7 leaves",
        "emergence.testing.sequences = 1 leaves",
        *(f"evidence.emergence = {name}/figure/depth2 is of no study" for name in ("gaussian", "isotropic")),
        "emergence.sinks.threshold = 0.4 is not one of",
    ),
    ({"layernorm.trained.iterations": 50}, "layernorm.trained.warmup = 50 leaves no iteration after it; set it below"),
    (
        {
            "layernorm.random_weights.heads": 7,
            "layernorm.trained.size.width": 66,
            "layernorm.trained.warmup": 10_000,
        },
        "layernorm.random_weights.width = 256 does not divide into heads = 7; use a multiple of 7",
        "layernorm.trained.size.width = 66 does not divide into heads = 4; use a multiple of 4",
        "layernorm.trained.warmup = 10000 leaves no iteration after it; set it below layernorm.trained.iterations = ",
    ),
    ({f"{COMPLEMENT}.lengths.set-complement-8": 4}, f"{COMPLEMENT}.learning_rate.set-complement-8 is missing; add the"),
    ({f"{COMPLEMENT}.learning_rate.set-complement-32": ...}, f"{COMPLEMENT}.learning_rate.set-complement-32 is miss"),
    (
        {f"{COMPLEMENT}.learning_rate.set-complement-61": RATES},
        f"{COMPLEMENT}.learning_rate has rates for 'set-complement-61', which has no length; use set-complement-16, ",
    ),
    (
        {f"{COMPLEMENT}.learning_rate.set-complement-16.peri": ...},
        f"postnorm.dimension.schemes = 'peri' is not in {COMPLEMENT}.learning_rate.set-complement-16: none, pre, ",
    ),
    (
        {"postnorm.averaging.trained_share": 0.01},
        "postnorm.averaging.trained_share = 0.01 gives training sequences of 0 of 8 tokens; give a share that",
        "postnorm.averaging.trained_share = 0.01 gives training sequences of 0 of 32 tokens; give a share that",
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
            "postnorm.languages.lengths": {"tomita-0": 5},
            "postnorm.languages.size.heads": 3,
            "postnorm.stability.deep.heads": 5,
            "evidence.postnorm": ["tomita-1"],
        },
        f"{COMPLEMENT}.lengths.set-complement-16 = 16 leaves no token absent; give at most 15",
        "postnorm.languages.lengths has the task 'tomita-0'",
        *(OF_SWEEP.format(name) for name in ("maximum-10", "dyck-2-3", "tomita-5")),
        "postnorm.averaging.deterministic = 'maximum-10' is not in",
        "postnorm.languages.size.width = 16 does not divide into heads = 3; use a multiple of 3",
        "postnorm.stability.deep.width = 16 does not divide into heads = 5; use a multiple of 5",
        "evidence.postnorm = 'tomita-1' is not trained",
        "postnorm.dimension.schemes = 'none' is not in",
    ),
    (
        {"emergence.task.classes": 7},
        "emergence.task.classes = 7: every label has a class",
        "emergence.task.classes = 7 leaves items of the tests of retrieval without their own; give at least 8",
    ),
    (
        {"training.warmup": 300, "emergence.sinks.threshold": 0.4, "layernorm.trained.warmup": 700},
        "training.warmup = 300 leaves no step",
        "emergence.sinks.threshold = 0.4 is not one of",
        "layernorm.trained.warmup = 700 leaves no iteration",
    ),
]


@pytest.mark.parametrize(
    ("changes", "begins"), [(row[0], row[1:]) for row in TOGETHER], ids=[row[1] for row in TOGETHER]
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
        {"evidence.postnorm": []},
        {"evidence.postnorm": ["tomita-5", "set-complement-16", "averaging"]},
        {"emergence.task.labels": 8},
        {"hub_models.other": ROTARY},
    ],
    ids=str,
)
def test_what_fits_is_accepted(changes):
    assert refusals(changed(changes)) == []


def test_faults_of_values_together_are_looked_for_in_what_fits_the_schema_alone():
    seen = []

    def faults(config):
        seen.append(config)
        return ["one = 1 is wrong; give 2", "two = 2 is wrong; give 3"]

    with pytest.raises(InputError, match="seed = -1 is too small"):
        configuration.check(changed({"seed": -1}), SCHEMA, faults)
    assert seen == []
    with pytest.raises(InputError, match=r"^config: one = 1 is wrong; give 2$"):
        configuration.check(DEFAULT, SCHEMA, faults)
    assert seen == [DEFAULT]
    configuration.check(DEFAULT, SCHEMA, lambda config: [], FAULTS[0])


# Numbers, sections, old keys and the order of keys


def written(node):
    """The same values, numbers as the text that the command line leaves."""
    if isinstance(node, dict):
        return {name: written(inner) for name, inner in node.items()}
    if isinstance(node, list):
        return [written(inner) for inner in node]
    return node if isinstance(node, bool) or node is None else str(node)


def test_numbers_given_as_text_are_the_same_numbers_and_other_text_stays():
    config = written(EVERYTHING)
    assert config != EVERYTHING
    configuration.read_numbers(config, SCHEMA)
    assert config == EVERYTHING
    odd = changed({"training.steps": "many", "primary_dataset": "7"})  # a name, and a name it stays
    configuration.read_numbers(odd, SCHEMA)
    assert (odd["training"]["steps"], odd["primary_dataset"]) == ("many", "7")


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
def test_an_old_key_ends_with_its_new_name_before_anything_else(old):
    expected = f"{old} is now {SCHEMA['moved'][old]}; change what sets it"
    assert refusals(changed({old: ["anything"], "seed": -1})) == [expected]


def test_all_old_keys_are_said_at_once():
    expected = "fig1 is now structural.fig1; training.checkpoint_every is now checkpoint_every.training"
    config = changed({"training.checkpoint_every": 50, "fig1": ["bloom"], "postnorm": None})
    assert refusals(config) == [f"{expected}; change what sets them"]


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


def test_no_default_is_promised_below_a_name_that_the_user_gave():
    for key, promised in {"hub_models.mine": False, "measure": True}.items():
        (line,) = refusals(changed({key: {}}))
        assert ("config.yaml has the default" in line) == promised


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
    (line,) = refusals(changed({"minutes": "{emergence:"}))
    assert "value, ...} (close every bracket, and put all of it in quotes)" in line
