"""What a configuration may not ask of `layernorm`."""

import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from position_bias.layernorm import settings

ROOT = Path(__file__).parents[3]


def overlaid(*names):
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    for name in names:
        update_config(config, yaml.safe_load((ROOT / f"config/{name}.yaml").read_text()))
    return config


def test_what_is_shipped_has_no_faults(shipped):
    assert list(settings.faults(shipped)) == []


def test_the_workflow_reads_it_without_torch():
    program = (
        "import sys, position_bias.layernorm.settings as settings, yaml;"
        "print(list(settings.faults(yaml.safe_load(open('config.yaml')))), 'torch' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["[]", "False"]


@pytest.mark.parametrize(
    ("part", "key", "value", "expected"),
    [
        (
            ("random_weights",),
            "heads",
            7,
            "layernorm.random_weights.width = 256 does not divide into heads = 7; use a multiple of 7",
        ),
        (
            ("trained", "size"),
            "width",
            66,
            "layernorm.trained.size.width = 66 does not divide into heads = 4; use a multiple of 4",
        ),
        (
            ("trained",),
            "warmup",
            700,
            "layernorm.trained.warmup = 700 leaves no iteration after it; "
            "set it below layernorm.trained.iterations = 700",
        ),
        (
            ("trained",),
            "iterations",
            40,
            "layernorm.trained.warmup = 50 leaves no iteration after it; "
            "set it below layernorm.trained.iterations = 40",
        ),
    ],
)
def test_a_fault_is_one_line_that_names_the_key_its_value_and_a_remedy(part, key, value, expected):
    config = overlaid()
    inner = config["layernorm"]
    for step in part:
        inner = inner[step]
    inner[key] = value
    assert list(settings.faults(config)) == [expected]


def test_a_warmup_may_leave_a_single_iteration():
    config = overlaid()
    config["layernorm"]["trained"] |= {"iterations": 51, "warmup": 50}
    assert list(settings.faults(config)) == []


def test_faults_are_all_named_in_the_order_of_the_configuration_and_leave_it_as_it_is():
    config = overlaid()
    config["layernorm"]["random_weights"]["heads"] = 7
    config["layernorm"]["trained"]["size"]["heads"] = 7
    config["layernorm"]["trained"]["warmup"] = 10_000
    before = deepcopy(config)
    assert [fault.split()[0] for fault in settings.faults(config)] == [
        "layernorm.random_weights.width",
        "layernorm.trained.size.width",
        "layernorm.trained.warmup",
    ]
    assert config == before
