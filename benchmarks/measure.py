"""The measuring pass against a bare forward and backward pass, and against separate ones: benchmarks/measure.py

Separate passes, one a quantity, are two forward passes (residual mixing; content) and one forward and backward pass
(influence) of the same batches, without what they would record: less than they really cost. A model of each family at
the size of the default run, 1,024 tokens a batch. The passes take turns, and ratios are those of the medians, so that
what else the machine does falls on all. Exit status 1 where the bound is missed.
"""

import os
import sys
import time
from statistics import median

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np
import torch

from position_bias.language_models import families
from position_card.core import runtime
from position_card.measures.measure import LOSS_TOKENS, Quantities, measure_decoder
from position_card.measures.quantities import influence_and_loss

ARCHITECTURE = {"layers": 12, "heads": 8, "hidden": 64, "initializer_range": 0.1}
TOKENS, BATCH_TOKENS, ROUNDS, BOUND = 4096, 1024, 7, 1.15


def cpu_seconds(function):
    started = time.process_time()
    function()
    return time.process_time() - started


def ratios(model, prompts):
    """Median CPU seconds of the bare pass, the measuring pass over it, and three separate passes over that."""
    batch = BATCH_TOKENS // prompts.shape[1]

    def bare():
        for part in torch.from_numpy(prompts).split(batch):
            influence_and_loss(model, part, LOSS_TOKENS)

    def measuring():
        measure_decoder(model, prompts, BATCH_TOKENS, quantities=Quantities(content=True, gram=True))

    def forward():
        with torch.no_grad():
            for part in torch.from_numpy(prompts).split(batch):
                model(part, use_cache=False)

    passes = (bare, measuring, forward)
    for each in passes:
        each()
    rounds = [[cpu_seconds(each) for each in passes] for _ in range(ROUNDS)]
    alone, one, only_forward = (median(seconds) for seconds in zip(*rounds, strict=True))
    return alone, one / alone, (2 * only_forward + alone) / one


def main():
    torch.set_num_threads(1)
    runtime.keep_freed_memory()  # as in every job that runs a model
    print(f"one measuring pass over a bare forward+backward, {TOKENS} tokens, {BATCH_TOKENS} a batch, one thread")
    print()
    print(f"{'family':8} {'n':>5} {'bare CPU s':>11} {'ratio':>7} {'separate / one':>15}   bound {BOUND}")
    missed = False
    for family in families.BUILDERS:
        model = families.build(family, ARCHITECTURE, 2048, 64, 0).eval().requires_grad_(False)
        for n in (64, 256, 512):
            alone, cost, gain = ratios(model, np.random.default_rng(0).integers(0, 2048, (TOKENS // n, n)))
            missed |= cost > BOUND
            print(
                f"{family:8} {n:5} {alone:11.3f} {cost:7.3f} {gain:15.2f}   {'ok' if cost <= BOUND else 'MISSED'}",
                flush=True,
            )
    sys.exit(missed)


if __name__ == "__main__":
    main()
