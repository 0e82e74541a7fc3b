"""The same work on the CPU and on GPUs, pretended or (`make test-gpu`) real ones, and what tells the two apart."""

from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from position_card.core import checkpoint
from tests.conftest import REAL_GPUS
from tests.interruption import Interruption
from tests.pretend.pretended import gpus

OTHER_DRAWS = np.inf  # a tolerance: a real GPU draws numbers of its own there
if REAL_GPUS and not torch.cuda.is_available():
    raise RuntimeError("make test-gpu needs a GPU that torch sees")


def on_both(work, folder, count=1):
    """Return what `work(folder, device)` gives on the CPU, and on `count` GPUs."""
    if REAL_GPUS and torch.cuda.device_count() < count:
        pytest.skip(f"it needs {count} GPUs, and torch sees {torch.cuda.device_count()}")
    expected = work(folder / "cpu", "cpu")
    with nullcontext() if REAL_GPUS else gpus(count):
        return expected, work(folder / "cuda", "cuda")


def resumed(work, at):
    """Return `work()` after it was killed once its checkpoint after `at` units was written."""
    write = checkpoint.write

    def last(path, run, state):
        write(path, run, state)
        if state.step >= at:
            raise Interruption

    with mock.patch.object(checkpoint, "write", last), pytest.raises(Interruption):
        work()
    return work()


@contextmanager
def untouched_generators():
    """Let nothing read or set the random numbers of a GPU: that would start every GPU that there is."""

    def touched(*_):
        raise AssertionError("the generator of a GPU was touched")

    with mock.patch.multiple(torch.cuda, get_rng_state=touched, set_rng_state=touched):
        yield


def numbers(value, name=""):
    """Every array and number of a result, by name."""
    if isinstance(value, type(None) | str | bool | pd.DataFrame | torch.Tensor | np.ndarray):
        parts = value.to_dict("list") if isinstance(value, pd.DataFrame) else None
    else:
        parts = {one.name: getattr(value, one.name) for one in fields(value)} if is_dataclass(value) else value
        parts = dict(enumerate(parts)) if isinstance(parts, list | tuple) else parts
    if not isinstance(parts, dict):
        return {name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value}
    return {path: leaf for key, part in parts.items() for path, leaf in numbers(part, f"{name}/{key}").items()}


def assert_same(expected, found, within=0.0, real=1e-4):
    """Compare every number; `within`, or `real` on a real GPU, is relative to the largest of its array.

    Of `OTHER_DRAWS` only shapes are compared, and where a number is missing.
    """
    within = real if REAL_GPUS else within
    expected, found = numbers(expected), numbers(found)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray | float) and within:
            size = np.abs(value).max() if np.size(value) else 0
            slack = within * size if within < OTHER_DRAWS else OTHER_DRAWS
            np.testing.assert_allclose(found[name], value, rtol=0, atol=slack, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)
