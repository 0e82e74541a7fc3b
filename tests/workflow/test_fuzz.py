"""Mutants of the configuration: each is refused in one line that names its key, or changes what runs."""

import math
import random
import re
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, Quietness, ResourceSettings

from position_bias.card import settings as of_card
from position_bias.emergence import settings as of_emergence
from position_bias.language_models import settings as of_language_models
from position_bias.layernorm import settings as of_layernorm
from position_bias.postnorm import settings as of_postnorm
from position_bias.retrieval import settings as of_retrieval
from position_bias.running import configuration
from position_bias.running.runtime import InputError

ROOT = Path(__file__).parents[2]
SCHEMA = configuration.read_schema(ROOT / "config/schema")
OF_WINGS = (of_emergence, of_layernorm, of_postnorm, of_retrieval, of_card)
FAULTS = (of_language_models.faults, *(wing.faults for wing in OF_WINGS))
TARGETS = {"all", "sweeps", "evidence", "all_published", "card"}
SOURCES = ("one", "other")  # folders that stand for released numbers; a plan looks for their files alone


def everything():
    """The default, with what it leaves empty filled in, so that there is no key without a value."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    of_hub = {"source": "someone/something", "revision": "0" * 40}
    of_job = {"positions": "own", "gpus": 1, "memory": 8, "minutes": 60}
    reading = {"subset": "part", "split": "train", "column": "text", "documents": 1000}
    config["device"] = "cuda"  # so that jobs ask for GPUs wherever this runs
    stages = SCHEMA["properties"]["devices"]["properties"]
    config["devices"] = dict.fromkeys(stages, "cuda")
    del config["devices"]["layernorm"]  # where every stage has its own, `device` itself decides nothing
    config["hub_datasets"] = {"web": {**of_hub, **reading}}
    config["hub_models"] = {
        "large": {**of_hub, **of_job, "family": "bloom"},
        "rotary": {**of_hub, **of_job, "family": "llama"},
    }
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
    changed = deepcopy(config)
    at(changed, path[:-1])[path[-1]] = value
    return changed


OTHERS = {  # of keys whose values are names, or have to fit another key
    "device": ["cpu"],
    **{f"devices.{stage}": ["cpu"] for stage in SCHEMA["properties"]["devices"]["properties"]},
    "primary_dataset": ["web"],
    "emergence.sinks.threshold": [0.25],
    "postnorm.dimension.vocabulary": [32],
    "released.source": [SOURCES[1]],
    "released.sha256": ["1" * 64],
    "model": ["mpt"],
    "text": ["standard-library"],
}


def part(path):
    """What the schema says of the key at a path."""
    node = dict(SCHEMA)
    for name in path:
        node = configuration.below(node, name, SCHEMA)
    return node


def others(path, value):
    """Values that a key could have in place of its own."""
    key = ".".join(path)
    if key in OTHERS:
        return OTHERS[key]
    node = part(path)
    if "enum" in node:
        return [choice for choice in node["enum"] if choice != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value, value + 2]
    if isinstance(value, float):
        return [value / 2, value * 2]
    if isinstance(value, list):
        return [value[:-1], value[1:]]
    return ["1" * 40 if path[-1] == "revision" else f"{value}-too"]


def accepted(config):
    try:
        configuration.check(config, SCHEMA, *FAULTS)
    except InputError:
        return False
    return True


EVERYTHING = everything()
KEYS = list(leaves(EVERYTHING))
READ_IN_SCRIPTS = {  # what changes no result, and so is no parameter of a rule: the entries that jobs are opened with
    ("checkpoint_every", kind)
    for path in (ROOT / "scripts").glob("*/*.py")
    if "resumable.job(" in (text := path.read_text())
    for kind in re.findall(r'(?:snakemake\.threads, |path = \()"(\w+)"', text)
}


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """What Snakemake would run of everything, job by job, with a configuration in place of config.yaml."""
    folder = tmp_path_factory.mktemp("plan")
    for source in SOURCES:
        (folder / source).mkdir()
        for name in ("lambda.csv", "content.csv.gz", "models.csv"):
            (folder / source / name).touch()

    def planned(config):
        with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
            opened = api.workflow(
                resource_settings=ResourceSettings(cores=1),
                config_settings=ConfigSettings(config=deepcopy(config), replace_workflow_config=True),
                snakefile=ROOT / "Snakefile",
                workdir=folder,
            )
            workflow = opened._workflow
            opened.dag(DAGSettings(targets=TARGETS))
            workflow._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True, nolock=True)
            workflow.async_run(workflow.dag.init())
            return list(workflow.dag.jobs)

    return planned


def described(jobs):
    """All of jobs that a value may show in."""
    return {
        repr((job.rule.name, job.input, job.output, dict(job.params.items()), dict(job.resources.items())))
        for job in jobs
    }


class Whole(int):
    """A whole number that knows its key."""


class Real(float):
    """A number that knows its key."""


class Text(str):
    """A text that knows its key."""


MARKED = {int: Whole, float: Real, str: Text}


def marked(node, path=()):
    """A configuration whose numbers know their keys."""
    if isinstance(node, dict):
        return {name: marked(inner, (*path, name)) for name, inner in node.items()}
    if isinstance(node, list):
        return [marked(inner, path) for inner in node]
    if type(node) not in MARKED:
        return node
    value = MARKED[type(node)](node)
    value.path = path
    return value


def marks(value):
    """The keys that the numbers within a value come from."""
    if isinstance(value, Whole | Real | Text):
        yield value.path
    elif isinstance(value, dict):
        for inner in value.values():
            yield from marks(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from marks(inner)


def places(node, path=()):
    """The place of every mapping, value and first item of a list below a configuration."""
    if path:
        yield path
    if isinstance(node, dict):
        for name, inner in node.items():
            yield from places(inner, (*path, name))
    elif isinstance(node, list) and node:
        yield from places(node[0], (*path, 0))


def never(node, value):
    """Values that a key can never have: of another type, or beyond its bounds."""
    if isinstance(value, dict):
        return [None, 7, "word", [1], {**value, "banana": 1}, {**value, 7: 1}, {**value, None: 1}]
    if isinstance(value, list):
        return [
            None,
            7,
            "word",
            {},
            [*value, *value[:1]] if value else [7],
            [[]],
            *([[]] if "minItems" in node else []),
        ]
    others = ["", [], {}, {"a": 1}]
    if isinstance(value, str):
        return [*others, 7, True, math.nan, *([] if "anyOf" in node else [None])]
    if isinstance(value, bool):
        return [*others, 7, 1.0, "word", None]
    low = node["minimum"] - 1 if "minimum" in node else node["exclusiveMinimum"]
    high = node["maximum"] + 1 if "maximum" in node else node["exclusiveMaximum"]
    fraction = [low + 1.5] if node["type"] == "integer" else []
    return [*others, None, True, "word", math.nan, math.inf, -math.inf, -(10**30), 10**30, low, high, *fraction]


def refused(config):
    """The line that a configuration is refused with; an exception of any other kind passes through."""
    with pytest.raises(InputError) as error:
        configuration.read_numbers(config, SCHEMA)
        configuration.check(config, SCHEMA, *FAULTS)
    line = str(error.value)
    assert line.startswith("config: ")
    assert "\n" not in line
    return line.removeprefix("config: ")


@pytest.mark.parametrize("path", list(places(EVERYTHING)), ids=lambda path: ".".join(map(str, path)))
def test_what_a_key_can_never_be_is_refused_by_its_name(path):
    key, node, value = ".".join(map(str, path)), part(path), at(EVERYTHING, path)
    chance = random.Random(key)
    for wrong in chance.sample(never(node, value), 2):
        assert re.match(rf"{re.escape(key)}\b", refused(put(EVERYTHING, path, wrong)))
    if path[-1] in part(path[:-1]).get("required", []):
        config = deepcopy(EVERYTHING)
        around = at(config, path[:-1])
        if chance.random() < 0.5:
            around[f"{path[-1]}z"] = value
            assert re.match(rf"{re.escape(key)}z = .* is not a key of the configuration; ", refused(config))
        else:
            del around[path[-1]]
            assert refused(config).startswith(f"{key} is missing; ")


def test_numbers_as_text_are_the_same_numbers():
    def written(node):
        if isinstance(node, dict):
            return {name: written(inner) for name, inner in node.items()}
        if isinstance(node, list):
            return [written(inner) for inner in node]
        return node if isinstance(node, bool) or node is None else str(node)

    config = written(EVERYTHING)
    assert config != EVERYTHING
    configuration.read_numbers(config, SCHEMA)
    assert config == EVERYTHING


ONE_RATE = {"none": 0.01, "peri": 0.01}
SIZE = {"layers": 2, "width": 16, "heads": 1, "hidden": 8}
TOGETHER = [  # values that are possible alone, and what the line begins with
    ({"training.warmup": 300}, "training.warmup = 300 leaves no step"),
    ({"training.steps": 60}, "training.warmup = 60 leaves no step"),
    ({"training.steps": 90}, "training.snapshots = 100 is never reached"),
    ({"training.snapshots": [0, 301]}, "training.snapshots = 301 is never reached"),
    ({"training.datasets": ["web"]}, "training.datasets = 'web' is not in datasets"),
    ({"tokenizer.datasets": ["web"]}, "tokenizer.datasets = 'web' is not in datasets"),
    ({"primary_dataset": "elsewhere"}, "primary_dataset = 'elsewhere' is not in measure.datasets"),
    ({"measure.datasets": ["web"]}, "primary_dataset = 'standard-library' is not in measure.datasets"),
    ({"measure.datasets": ["standard-library", "wiki"]}, "measure.datasets = 'wiki' is not in datasets or hub_"),
    ({"measure.models": ["bloom", "rotary"]}, "measure.models = 'rotary' is of family llama"),
    ({"measure.models": ["bloom", "gpt2"]}, "measure.models = 'gpt2' is not in models or hub_"),
    ({"structural.fig1": ["gpt2"]}, "structural.fig1 = 'gpt2' is not in models or hub_models"),
    ({"lengths.heatmap.tokens": 300}, "lengths.heatmap.tokens = 300 is more than measure.matrices_up_to = 256"),
    ({"measure.matrices_up_to": 200}, "lengths.standard.tokens = 256 is more than measure.matrices_up_to = 200"),
    (
        {"postnorm.averaging.trained_share": 0.01},
        "postnorm.averaging.trained_share = 0.01 gives training sequences of 0",
    ),
    ({"layernorm.pretrained": ["gpt2"]}, "layernorm.pretrained = 'gpt2' is not in models or hub_models"),
    ({"models.bloom.architecture.heads": 5}, "models.bloom.architecture.hidden = 64 does not divide into heads = 5"),
    ({"models.mpt.architecture.hidden": 60}, "models.mpt.architecture.hidden = 60 does not divide into heads = 8"),
    ({"hub_models.large.revision": None}, "hub_models.large.revision = None leaves the hub's"),
    ({"hub_models.large.source": "./here"}, "hub_models.large.revision = '0000"),
    ({"hub_models.large.positions": "none"}, "hub_models.large.positions = 'none', but ALiBi cannot be turned off"),
    ({"hub_models.bloom": EVERYTHING["hub_models"]["large"]}, "hub_models.bloom has the name of models.bloom"),
    ({"hub_models.offline": EVERYTHING["hub_models"]["large"]}, "hub_models.offline has the name of the tokenizer"),
    ({"hub_datasets.web.revision": None}, "hub_datasets.web.revision = None leaves the hub's"),
    ({"hub_datasets.web.source": "/data"}, "hub_datasets.web.revision = '0000"),
    (
        {"hub_datasets.standard-library": EVERYTHING["hub_datasets"]["web"]},
        "hub_datasets.standard-library has the name of datasets.standard-library",
    ),
    ({"lengths.heatmap.tokens": 256}, "lengths.standard.tokens = 256 is that of lengths.heatmap too"),
    ({"lengths.long.tokens": 64}, "lengths.long.tokens = 64 is that of lengths.heatmap too"),
    ({"lengths.more": [{"tokens": 512, "prompts": 9}]}, "lengths.more.0.tokens = 512 is that of lengths.long too"),
    ({"lengths.more": [{"tokens": 2049, "prompts": 9}]}, "lengths.more.0.tokens = 2049 is more than models.mpt (mpt)"),
    ({"emergence.task.burstiness": 3}, "emergence.task.burstiness = 3 does not divide items = 8"),
    ({"emergence.task.items": 6}, "emergence.task.burstiness = 4 does not divide items = 6"),
    ({"emergence.task.items": 4}, "emergence.task.labels = 32, burstiness = 4: without two labels and two classes"),
    ({"emergence.task.classes": 31}, "emergence.task.classes = 31: every label has a class"),
    (
        {"emergence.task.items": 600, "emergence.networks.window": ["window5/none", "window1202/none"]},
        "emergence.networks.window = window1202/none reaches over more than a sequence's tokens; give at most 1201",
    ),
    (
        {"emergence.networks.prefix": ["prefix18/none"]},
        "emergence.networks.prefix = prefix18/none reaches over more than a sequence's tokens; give at most 17",
    ),
    (
        {"emergence.networks.plain": ["none/rope"]},
        "emergence.networks.plain = none/rope has a mask that this study does not compare; use causal",
    ),
    ({"evidence.emergence": ["fixed/ring/depth2"]}, "evidence.emergence = fixed/ring/depth2 is of no study that is"),
    (
        {"emergence.networks.plain": []},
        "evidence.emergence = gaussian/plain/depth2 is of no study that is trained; use one of residual, ends",
    ),
    ({"evidence.postnorm": ["dyck-9-9"]}, "evidence.postnorm = 'dyck-9-9' is not trained; use some of set-complement"),
    ({"evidence.structural": ["large"]}, "evidence.structural = 'large' is not in models; use one of bloom, mpt"),
    ({"emergence.testing.sequences": 7}, "emergence.testing.sequences = 7 leaves positions without a test"),
    ({"emergence.sinks.threshold": 0.21}, "emergence.sinks.threshold = 0.21 is not one of"),
    ({"emergence.sinks.thresholds": [0.3]}, "emergence.sinks.threshold = 0.2 is not one of"),
    ({"layernorm.random_weights.heads": 7}, "layernorm.random_weights.width = 256 does not divide into heads = 7"),
    ({"layernorm.trained.size.width": 62}, "layernorm.trained.size.width = 62 does not divide into heads = 4"),
    ({"layernorm.trained.iterations": 50}, "layernorm.trained.warmup = 50 leaves no iteration"),
    (
        {"postnorm.set_complement.lengths": {"set-complement-16": 16}},
        "postnorm.set_complement.lengths.set-complement-16 = 16 leaves no token absent",
    ),
    (
        {"postnorm.set_complement.lengths.set-complement-8": 4},
        "postnorm.set_complement.learning_rate.set-complement-8 is missing",
    ),
    (
        {"postnorm.set_complement.learning_rate.set-complement-61": ONE_RATE},
        "postnorm.set_complement.learning_rate has rates for 'set-complement-61', which has no length",
    ),
    (
        {"postnorm.languages.lengths.tomita-05": 9},
        "postnorm.languages.lengths has the task 'tomita-05'; write it tomita-5",
    ),
    ({"postnorm.languages.lengths.maximum-10000000": 9}, "postnorm.languages.lengths has the task 'maximum-10000000'"),
    ({"postnorm.sweep.languages": ["tomita-9"]}, "postnorm.sweep.languages = 'tomita-9' is not in"),
    ({"postnorm.languages.lengths": {"tomita-1": 9}}, "postnorm.sweep.languages = 'maximum-10' is not in"),
    ({"postnorm.sweep.iterations": [0.0001]}, "postnorm.sweep.iterations = 0.0001 of postnorm.set_complement."),
    ({"postnorm.averaging.deterministic": ["maximum-9"]}, "postnorm.averaging.deterministic = 'maximum-9' is not in"),
    ({"postnorm.depth.length": 9}, "postnorm.depth.length = 9 has no words of brackets that nest"),
    ({"postnorm.depth.trained": 5}, "postnorm.depth.trained = 5 leaves no deeper words of postnorm.depth.length = 10"),
    ({"postnorm.depth.length": 40}, "postnorm.depth.kinds = 2 with postnorm.depth.length = 40 gives more than"),
    ({"postnorm.dimension.vocabulary": 24}, "postnorm.dimension.vocabulary = 24 is of no task"),
    (
        {"postnorm.set_complement.learning_rate.set-complement-16": {"peri": 0.01}},
        "postnorm.dimension.schemes = 'none' is not in",
    ),
    ({"postnorm.stability.deep": {**SIZE, "heads": 3}}, "postnorm.stability.deep.width = 16 does not divide into"),
    ({"postnorm.stability.deep": {**SIZE, "layers": 1}}, "postnorm.stability.deep.layers = 1 is too small; give at"),
]


@pytest.mark.parametrize(("changes", "begins"), TOGETHER, ids=[begins.split(" ")[0] for _, begins in TOGETHER])
def test_values_that_do_not_fit_each_other_are_refused(changes, begins):
    config = EVERYTHING
    for key, value in changes.items():
        config = put(config, key.split("."), value)
    assert refused(config).startswith(begins)


@pytest.mark.parametrize(
    "arguments",
    [
        "emergence='{task: {burstiness: 3}}'",
        "emergence='{networks: {window: [window18/none]}}'",
        "lengths='{heatmap: {prompts: 1}}'",
        "measure='{models: [gpt2]}'",
        "models='{bloom: {architecture: {heads: 5}}}'",
        "postnorm='{languages: {lengths: {7: 9}}}'",
        "postnorm='{stability: {deep: {layers: 1}}}'",
        "rollout='{level: .nan}'",
        "training='{steps: 2.5}'",
        "training=",
    ],
)
def test_on_the_command_line_it_is_the_last_line(fresh, arguments):
    ended = fresh.dry_run(f"-n all --cores 1 --config {arguments}")
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1].startswith(f"error: config: {arguments.split('=')[0]}")
    assert "Traceback" not in ended.stdout


def test_what_is_filled_in_is_accepted():
    configuration.check(EVERYTHING, SCHEMA, *FAULTS)


def test_every_key_reaches_what_runs(plan):
    """As a number within a parameter of a job, as a value that a script reads, or else by another plan."""
    jobs = plan(marked(EVERYTHING))
    as_it_is = described(jobs)
    seen = {path for job in jobs for _, value in job.params.items() for path in marks(value)}
    assert len(seen) > 100
    left = [path for path in KEYS if path not in seen | READ_IN_SCRIPTS]
    unused = []
    for path in left:
        changed = [put(EVERYTHING, path, value) for value in others(path, at(EVERYTHING, path))]
        if described(plan(next(config for config in changed if accepted(config)))) == as_it_is:
            unused.append(".".join(path))
    assert unused == []
