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


def _run(work, given, file):
    torch.set_num_threads(1)  # threads of this process are not there in a fork, which would wait for them
    with open(file, "w", buffering=1) as streams:
        for stream in (1, 2):
            os.dup2(streams.fileno(), stream)
        sys.stdout = sys.stderr = streams
        work(*given)


def run(work, *given, file):
    """Return how `work(*given)` ends in a fork, whose streams go to a file."""
    process = forks.Process(target=_run, args=(work, given, file))
    process.start()
    process.join()
    return Ended(process.exitcode, file.read_text())
