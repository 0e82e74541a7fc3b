"""What runs in a fork of this process, which has imported what a process of its own would import for seconds."""

import os
import sys
from multiprocessing import get_context
from typing import NamedTuple

import torch

forks = get_context("fork")


class Ended(NamedTuple):
    """The status with which a fork ended, and what it wrote to either stream."""

    status: int | None
    said: str


def _run(work, given, writing):
    torch.set_num_threads(1)  # threads of this process are not there in a fork, which would wait for them
    for stream in (1, 2):
        os.dup2(writing, stream)
    sys.stdout = sys.stderr = os.fdopen(writing, "w", buffering=1)
    work(*given)


def start(work, *given):
    """Start a fork that does `work(*given)`; returns its process, and the file that its streams are read from."""
    reading, writing = os.pipe()
    process = forks.Process(target=_run, args=(work, given, writing))
    process.start()
    os.close(writing)
    return process, os.fdopen(reading)


def run(work, *given):
    """Return how `work(*given)` ends in a fork."""
    process, said = start(work, *given)
    with said:
        words = said.read()
    process.join()
    return Ended(process.exitcode, words)
