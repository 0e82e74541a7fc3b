"""The measuring pass against a bare forward and backward pass of the same batch: python benchmarks/measure.py

A model of each family at the size of the default run, 1,024 tokens a batch. The two passes take turns, and the ratio is
that of the medians, so that what else the machine does falls on both. Exit status 1 where the bound is missed.
"""

import os
import sys
import time
from statistics import median

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np
import torch

from position_bias import runtime
from position_bias.influence import influence
from position_bias.language_models import families
from position_bias.measure import measure

ARCHITECTURE = {"layers": 12, "heads": 8, "hidden": 64, "initializer_range": 0.1}
TOKENS, BATCH_TOKENS, ROUNDS, BOUND = 4096, 1024, 7, 1.15


def cpu_seconds(function):
    started = time.process_time()
    function()
    return time.process_time() - started


def ratio(model, prompts):
    """Median CPU seconds of the bare pass, and of the measuring pass over it."""
    batch = BATCH_TOKENS // prompts.shape[1]

    def bare():
        for part in torch.from_numpy(prompts).split(batch):
            influence(model, part)

    def measuring():
        measure(model, prompts, BATCH_TOKENS)

    bare(), measuring()
    pairs = [(cpu_seconds(bare), cpu_seconds(measuring)) for _ in range(ROUNDS)]
    alone = median(seconds for seconds, _ in pairs)
    return alone, median(seconds for _, seconds in pairs) / alone


def main():
    torch.set_num_threads(1)
    runtime.keep_freed_memory()  # as in every job that runs a model
    print(f"one measuring pass over a bare forward+backward, {TOKENS} tokens, {BATCH_TOKENS} a batch, one thread\n")
    print(f"{'family':8} {'n':>5} {'bare CPU s':>11} {'ratio':>7}   bound {BOUND}")
    missed = False
    for family in families.FAMILIES:
        model = families.build(family, ARCHITECTURE, 2048, 64, 0).eval().requires_grad_(False)
        for n in (64, 256, 512):
            alone, cost = ratio(model, np.random.default_rng(0).integers(0, 2048, (TOKENS // n, n)))
            missed |= cost > BOUND
            print(f"{family:8} {n:5} {alone:11.3f} {cost:7.3f}   {'ok' if cost <= BOUND else 'MISSED'}", flush=True)
    sys.exit(missed)


if __name__ == "__main__":
    main()
