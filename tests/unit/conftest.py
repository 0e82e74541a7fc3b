"""What unit tests share: of training, and of the configurations that are shipped."""

import math
from pathlib import Path

import pytest
import torch
import yaml
from snakemake.utils import update_config

from position_bias.drawing import style
from position_bias.running import checkpoint
from position_bias.small_networks import decoder

ROOT = Path(__file__).parents[2]


def used_with(overlay):
    """Names of overlays as the command of a long run has them: its own, with config/paper.yaml where that says so."""
    on_paper = overlay.read_text().startswith("# With config/paper.yaml, ")
    return ["paper"] * on_paper + [f"evidence/{overlay.stem}"]


LONG_RUNS = [used_with(path) for path in sorted((ROOT / "config/evidence").glob("*.yaml"))]
SHIPPED = [
    [],
    ["paper"],
    ["paper", "paper-available"],
    ["paper", "paper-one-gpu"],
    ["paper", "first-rung"],
    ["test"],
    ["published"],
    *LONG_RUNS,
]


def overlaid(names):
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    for name in names:
        update_config(config, yaml.safe_load((ROOT / f"config/{name}.yaml").read_text()))
    return config


@pytest.fixture(params=SHIPPED, ids=lambda names: "+".join(names) or "default")
def shipped(request):
    """A configuration: the default, and every overlay together with what it is used on."""
    return overlaid(request.param)


@pytest.fixture(params=LONG_RUNS, ids="+".join)
def long_run(request):
    """Overlays of a group of evidence, and the configuration that they make."""
    return request.param, overlaid(request.param)


@pytest.fixture
def spoil(monkeypatch):
    """Make a member of later stacks diverge: `spoil(name, member)` puts a NaN into a parameter of its first weights."""
    original = decoder.initial

    def put(name, member):
        def spoilt(*arguments):
            weights = original(*arguments)
            weights[name][member, 0, 0] = math.nan
            return weights

        monkeypatch.setattr(decoder, "initial", spoilt)

    return put


class CPUTime:
    """What `time.process_time` tells: `now`, which a test sets."""

    def __init__(self):
        self.now = 100.0

    def restart(self):
        """Another process, whose time began elsewhere."""
        self.now = 7.0


@pytest.fixture
def cpu_time(monkeypatch):
    """CPU time that passes only where a test lets it: checkpoints of equal trainings have equal bytes."""
    told = CPUTime()
    monkeypatch.setattr(checkpoint.time, "process_time", lambda: told.now)
    return told


@pytest.fixture
def styled():
    """Draw in the style of the project."""
    with style.figure_style():
        yield


@pytest.fixture(scope="module")
def one_thread():
    """Let torch use one thread, for all tests of a module."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Interruption(BaseException):
    """Like a kill: no handler catches it."""
