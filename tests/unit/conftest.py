"""What tests of trainings share."""

import math

import pytest
import torch

from position_bias.drawing import style
from position_bias.running import checkpoint
from position_bias.small_networks import decoder


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
