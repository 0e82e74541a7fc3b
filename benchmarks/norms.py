"""Theory, simulation and stacked training of the papers on norms: benchmarks/norms.py

CPU seconds of the Gram recursion; by how much the peak of memory grows where ten times the sequences are simulated; and
how many times longer it takes to train seeds one at a time than in one stack, batches included, on one thread. Exit
status 1 where a bound is missed.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import torch

from position_bias.layernorm import simulation, theory
from position_bias.layernorm import training as layernorm
from position_bias.postnorm import training as postnorm
from position_bias.postnorm import trials
from position_bias.running import products, runtime
from position_bias.running.checkpoint import Place

SEEDS = 6
RECURSION_WITHIN = 2.0  # CPU seconds at 512 tokens and 24 layers
GROWTH_BELOW = 50.0  # MB


def seconds(function):
    """CPU seconds of one call."""
    started = time.process_time()
    function()
    return time.process_time() - started


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def growth():
    """Peak memory of a simulation of ten times the sequences, beyond that of a first one."""
    decoder = simulation.Decoder(tokens=50, width=64, layers=4, residual=1.0, strength=1.0, norm="layer")
    simulation.simulate(decoder, 0.2, 2000, seed=0)
    before = peak_megabytes()
    simulation.simulate(decoder, 0.2, 20000, seed=0)
    return peak_megabytes() - before


def peri(name, size, length, batch, iterations, seeds):
    """Train networks under peri on a task."""
    setting = {"length": length, "batch": batch, "longest": length, "sequences": 8}
    recipe = {"iterations": iterations, "learning_rate": 0.01, "weight_decay": 0.01}
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), iterations, "cpu")
        postnorm.train(trials.Trial(name, "peri", size, setting, recipe, list(seeds), {}), place)


def set_complement(vocabulary, length, seeds):
    """Train the minimal transformer."""
    peri(f"set-complement-{vocabulary}", trials.minimal(vocabulary), length, 32, 500, seeds)


def language(seeds):
    """Train a small decoder on a Dyck language."""
    peri("dyck-2-3", {"layers": 2, "width": 16, "heads": 2, "hidden": 32}, 10, 16, 200, seeds)


def exchangeable(seeds):
    """Train a pre-LN decoder on exchangeable sequences."""
    with tempfile.TemporaryDirectory() as folder:
        data, size = layernorm.Data(32, 48, 6.0), layernorm.Size(layers=3, width=64, heads=4, hidden=128)
        setting = layernorm.Setting(data, size, 12, 40, 0, 0.01, 8)
        layernorm.train("pre-layer", setting, 0.002, seeds, Place(Path(folder), 40, "cpu"))


def main():
    torch.set_num_threads(1)
    runtime.keep_freed_memory()
    used = products.fastest()
    recursion = min(seconds(lambda: theory.gram_recursion(512, 0.2, 1.0, 1.0, 24, "pre")) for _ in range(3))
    more = growth()
    print(f"Gram recursion, 512 tokens, 24 layers: {recursion:.2f} CPU s (bound {RECURSION_WITHIN:g})")
    print(f"peak memory, 20,000 over 2,000 sequences: {more:+.1f} MB (bound {GROWTH_BELOW:g})")
    print(f"{SEEDS} seeds one at a time over one stack of them, CPU time (products: {used}):")
    for name, train in {
        "set complement, v = 16": lambda seeds: set_complement(16, 5, seeds),
        "set complement, v = 32": lambda seeds: set_complement(32, 8, seeds),
        "Dyck (2, 3), 2 layers of 16": language,
        "exchangeable, 3 layers of 64": exchangeable,
    }.items():
        train([0])  # what is loaded once
        stacked = seconds(lambda train=train: train(range(SEEDS)))
        alone = sum(seconds(lambda train=train, seed=seed: train([seed])) for seed in range(SEEDS))
        print(f"  {name}: {alone / stacked:.1f} x, {1000 * stacked / SEEDS:.0f} ms a seed")
    sys.exit(recursion > RECURSION_WITHIN or more > GROWTH_BELOW)


if __name__ == "__main__":
    main()
