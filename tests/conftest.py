"""What all tests share. Property tests draw new examples in every run, but the same ones in CI: what fails there failed
for its change. Tests of the workflow need Snakemake; those in tests/position_card pass without it.

`make test` skips the tests with the marker `all`, and `make test-all` runs them besides (`-m all`). The marker says why
a test is not in `make test`, and pytest ends a run with the tests that it skipped and these reasons.

The process that only hands tests to others reads this file, too, so libraries are imported where a fixture needs them.
"""

import gc
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
pytest_plugins = ["tests.projects", "tests.released"] if find_spec("snakemake") else []

REAL_GPUS = "TEST_GPU" in os.environ  # make test-gpu sets it
if not REAL_GPUS:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # results must not depend on a GPU that the machine happens to have

gc.disable()  # until tests are collected: modules stay, and looking for what is free among them takes half of that time

settings.register_profile("here", deadline=None)  # a machine may be slow, or at other work
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


LONGEST_FIRST = (  # so that two processes end together, and what waits for SLURM waits while the graph is built
    "test_whole.py",
    "test_slurm.py",
    "test_cluster_page.py",
    "test_graph.py",
    "test_rebuilds.py",
    "test_kills.py",
    "test_pretended_gpus.py",
    "test_hub_path.py",
    "test_readme.py",
    "test_keys.py",
    "test_published.py",
    "test_recipes.py",
)


def pytest_collection_modifyitems(items):
    names = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: names.get(item.path.name, len(names)))


def pytest_collection_finish():
    """Leave modules out of every later look for what is free."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    marker = item.get_closest_marker("all")
    if marker and not item.config.option.markexpr:
        pytest.skip(f"{item.path.relative_to(ROOT)}: {marker.args[0]}")


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
    from position_card.core import checkpoint

    told = CPUTime()
    monkeypatch.setattr(checkpoint.time, "process_time", lambda: told.now)
    return told


@pytest.fixture
def styled():
    """Draw in the style of the project."""
    from position_card.drawing import style

    with style.figure_style():
        yield


@pytest.fixture(scope="module")
def one_thread():
    """Let torch use one thread, for all tests of a module."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
