"""What a configuration may not ask of `postnorm`."""

import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from position_bias.postnorm import settings, tasks

ROOT = Path(__file__).parents[3]


def overlaid(*names):
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    for name in names:
        update_config(config, yaml.safe_load((ROOT / f"config/{name}.yaml").read_text()))
    return config


def changed(key, value):
    """The default configuration with `value` under `postnorm/key`, or without the key where there is no value.

    What it then has more of tasks gets learning rates, too.
    """
    config = overlaid()
    *path, last = key.split("/")
    inner = config["postnorm"]
    for step in path:
        inner = inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    complement = config["postnorm"]["set_complement"]
    if path == ["set_complement", "lengths"]:
        complement["learning_rate"][last] = complement["learning_rate"]["set-complement-16"]
    return config


def test_what_is_shipped_has_no_faults_and_its_tasks_are_tasks_that_fit(shipped):
    assert list(settings.faults(shipped)) == []
    for part in ("set_complement", "languages"):
        for name, length in shipped["postnorm"][part]["lengths"].items():
            assert settings.part_of(name) == part
            assert tasks.task(name).name == name
            assert tasks.fits(tasks.task(name), length)


def test_the_workflow_reads_it_without_torch():
    program = (
        "import sys, position_bias.postnorm.settings as settings, yaml;"
        "print(list(settings.faults(yaml.safe_load(open('config.yaml')))), 'torch' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["[]", "False"]


COMPLEMENT, LANGUAGES = "postnorm.set_complement.lengths", "postnorm.languages.lengths"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "set_complement/lengths/set-complement-1",
            1,
            f"{COMPLEMENT} has the task 'set-complement-1'; a set and its complement need a vocabulary of at least "
            "2 tokens",
        ),
        (
            "set_complement/lengths/set-complement-8",
            8,
            f"{COMPLEMENT}.set-complement-8 = 8 leaves no token absent; give at most 7",
        ),
        (
            "set_complement/lengths/maximum-10",
            5,
            f"{COMPLEMENT} has the task 'maximum-10'; give set-complement-V with a vocabulary of V tokens",
        ),
        (
            "set_complement/lengths/set-complement-",
            5,
            f"{COMPLEMENT} has the task 'set-complement-'; give set-complement-V with a vocabulary of V tokens",
        ),
        (
            "set_complement/lengths/set-complement-100001",
            5,
            f"{COMPLEMENT} has the task 'set-complement-100001'; give a vocabulary of at most 100000 tokens",
        ),
        (
            "set_complement/learning_rate/set-complement-61",
            {"peri": 0.01},
            "postnorm.set_complement.learning_rate has rates for 'set-complement-61', which has no length; use "
            "set-complement-16, set-complement-32",
        ),
        (
            "languages/lengths/maximum-100001",
            5,
            f"{LANGUAGES} has the task 'maximum-100001'; give at most 100000 classes",
        ),
        *[
            (f"languages/lengths/{name}", 5, f"{LANGUAGES} has the task {name!r}; write it {usual}")
            for name, usual in {"maximum-010": "maximum-10", "tomita-05": "tomita-5", "dyck-2-03": "dyck-2-3"}.items()
        ],
        (
            "languages/lengths/maximum-1",
            5,
            f"{LANGUAGES} has the task 'maximum-1'; there is something to retrieve from 2 classes on",
        ),
        (
            "languages/lengths/tomita-8",
            5,
            f"{LANGUAGES} has the task 'tomita-8': number = 8: Tomita's languages are 1 to 7",
        ),
        (
            "languages/lengths/dyck-2-0",
            5,
            f"{LANGUAGES} has the task 'dyck-2-0': depth = 0: brackets nest to a depth of at least 1",
        ),
        (
            "languages/lengths/dyck-0-2",
            5,
            f"{LANGUAGES} has the task 'dyck-0-2': kinds = 0: a Dyck language has at least 1 kind of brackets",
        ),
        (
            "languages/lengths/dyck-2-60",
            5,
            f"{LANGUAGES} has the task 'dyck-2-60': kinds = 2 and depth = 60: more than 100000 full stacks; "
            "lower one of them",
        ),
        (
            "sweep/languages",
            ["tomita-5", "dyck-9-9"],
            "postnorm.sweep.languages = 'dyck-9-9' is not in postnorm.languages.lengths; use some of maximum-10, "
            "dyck-2-3, tomita-1, tomita-2, tomita-3, tomita-4, tomita-5, tomita-6, tomita-7",
        ),
        (
            "set_complement/learning_rate/set-complement-16/peri",
            None,
            "postnorm.dimension.schemes = 'peri' is not in postnorm.set_complement.learning_rate.set-complement-16: "
            "none, pre, pre-final, post, peri-init",
        ),
        (
            "set_complement/learning_rate/set-complement-32",
            None,
            "postnorm.set_complement.learning_rate.set-complement-32 is missing; add the learning rate of each scheme",
        ),
        (
            "languages/size/heads",
            3,
            "postnorm.languages.size.width = 16 does not divide into heads = 3; use a multiple of 3",
        ),
        (
            "stability/deep/heads",
            5,
            "postnorm.stability.deep.width = 16 does not divide into heads = 5; use a multiple of 5",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "/" in value else "",
)
def test_a_fault_is_one_line_that_names_the_key_its_value_and_a_remedy(key, value, expected):
    assert list(settings.faults(changed(key, value))) == [expected]


@pytest.mark.parametrize("name", ["copy-3", "set-complement-16", "tomita", "dyck-2", "Tomita-5"])
def test_languages_that_there_are_not_are_named_with_those_that_there_are(name):
    (fault,) = settings.faults(changed(f"languages/lengths/{name}", 5))
    assert fault.startswith(f"{LANGUAGES} has the task {name!r}: ")
    assert "dyck-KINDS-DEPTH" in fault
    assert "\n" not in fault


@pytest.mark.parametrize("kept", [[], ["averaging"], ["tomita-5", "set-complement-16", "averaging"]], ids=str)
def test_evidence_is_kept_of_tasks_and_of_averaging(kept):
    config = overlaid()
    config["evidence"]["postnorm"] = kept
    assert list(settings.faults(config)) == []


@pytest.mark.parametrize("name", ["set-complement-64", "dyck-3-5", "averages", "dimension", ""])
def test_evidence_of_what_is_not_trained_is_a_fault_and_each_is_named(name):
    config = overlaid()
    config["evidence"]["postnorm"] = ["tomita-5", name, "copy-3"]
    assert list(settings.faults(config)) == [
        f"evidence.postnorm = {one!r} is not trained; use some of set-complement-16, set-complement-32, maximum-10, "
        "dyck-2-3, tomita-1, tomita-2, tomita-3, tomita-4, tomita-5, tomita-6, tomita-7, averaging"
        for one in (name, "copy-3")
    ]


def test_widths_are_those_of_a_task_that_there_is():
    (fault, *_) = settings.faults(changed("dimension/vocabulary", 24))
    assert fault == (
        "postnorm.dimension.vocabulary = 24 is of no task in postnorm.set_complement.lengths: set-complement-16, "
        "set-complement-32"
    )


@pytest.mark.parametrize("length", [1, 7, 8, 100])
def test_a_set_is_a_fault_just_where_it_has_no_complement(length):
    config = changed("set_complement/lengths/set-complement-8", length)
    assert bool(list(settings.faults(config))) == (not tasks.fits(tasks.SetComplement(8), length))


def test_faults_are_all_named_in_the_order_of_the_configuration_and_leave_it_as_it_is():
    config = overlaid()
    postnorm = config["postnorm"]
    postnorm["set_complement"]["lengths"] |= {"set-complement-16": 16}
    del postnorm["set_complement"]["learning_rate"]["set-complement-16"]["none"]
    postnorm["languages"]["lengths"] = {"tomita-0": 5}
    postnorm["languages"]["size"]["heads"] = 3
    postnorm["stability"]["deep"]["heads"] = 3
    config["evidence"]["postnorm"] = ["tomita-1"]
    before = deepcopy(config)
    assert [fault.split()[0] for fault in settings.faults(config)] == [
        "postnorm.set_complement.lengths.set-complement-16",
        "postnorm.languages.lengths",
        *["postnorm.sweep.languages"] * 3,
        "postnorm.averaging.deterministic",
        "postnorm.languages.size.width",
        "postnorm.stability.deep.width",
        "evidence.postnorm",
        "postnorm.dimension.schemes",
    ]
    assert config == before


def test_a_sweep_of_no_iteration_is_a_fault():
    config = overlaid()
    config["postnorm"]["sweep"]["iterations"] = [1e-5, 1.0]
    (of_complement, of_languages) = settings.faults(config)
    assert of_complement.startswith("postnorm.sweep.iterations = 1e-05 of postnorm.set_complement.iterations = ")
    assert of_languages.startswith("postnorm.sweep.iterations = 1e-05 of postnorm.languages.iterations = ")
