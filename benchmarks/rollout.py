"""Speed and memory of the rollout against the dense reference: .venv/bin/python benchmarks/rollout.py

The model has the size of BLOOM-176B: 70 layers, its 112 ALiBi slopes, random content in every head, lambda about 0.1.
All times are CPU seconds of one thread. Exit status 1 where a bound is missed. Takes about a minute.
"""

import json
import os
import resource
import subprocess
import sys
import time

for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):  # read when numpy and numba are imported
    os.environ[f"{library}_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np  # noqa: E402

from position_card.rollout.last_row import dense_last_row, last_row  # noqa: E402

LAYERS, HEADS = 70, 112
DENSE_N, DENSE_LAYERS = 2_048, 2
LENGTHS = [2**exponent for exponent in range(10, 21)]


def model(layers=LAYERS):
    powers_of_two, between = np.arange(1, 65) / 64, (2 * np.arange(1, 49) - 1) / 128
    slopes = 2 ** (-8 * np.concatenate([powers_of_two, between]))
    rng = np.random.default_rng(0)
    return rng.uniform(0.05, 0.15, layers), slopes, rng.normal(0, 2, (layers, HEADS))


def cpu_seconds(function, *arguments, least=0.2):
    """Mean over as many calls as take `least` seconds together, and what the last one returned."""
    calls, started = 0, time.process_time()
    while True:
        result = function(*arguments)
        calls, elapsed = calls + 1, time.process_time() - started
        if elapsed >= least:
            return elapsed / calls, result


def longest():
    """The longest rollout in this process alone, which has done nothing else but compile."""
    seconds, row = cpu_seconds(last_row, LENGTHS[-1], *model())
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "megabytes": megabytes, "sum": row.sum()}))


def main():
    last_row(2, *model())  # compile, or load what was compiled
    # First, while this process is small: the peak that a child reports starts from what its parent held.
    child = subprocess.run([sys.executable, __file__, "longest"], capture_output=True, text=True, check=True)
    alone = json.loads(child.stdout)

    print(f"last row of the rollout, {LAYERS} layers x {HEADS} heads, content in every head, one thread\n")
    print(f"{'n':>10} {'CPU s':>9} {'us a token':>11}")
    seconds = [cpu_seconds(last_row, n, *model())[0] for n in LENGTHS]
    for n, each in zip(LENGTHS, seconds, strict=True):
        print(f"{n:>10,} {each:>9.4f} {1e6 * each / n:>11.2f}")
    exponent = np.polyfit(np.log(LENGTHS), np.log(seconds), 1)[0]

    dense, expected = cpu_seconds(dense_last_row, DENSE_N, *model(DENSE_LAYERS), least=0)
    dense *= LAYERS / DENSE_LAYERS
    linear, _ = cpu_seconds(last_row, DENSE_N, *model())
    deviation = np.abs(last_row(DENSE_N, *model(DENSE_LAYERS)) - expected).max()
    print(
        f"\nthe dense way at n = {DENSE_N:,}: {dense:,.0f} CPU s ({DENSE_LAYERS} of {LAYERS} layers timed and scaled);"
        f" linear {linear:.4f}\n"
    )

    bounds = [
        (f"dense / linear at n = {DENSE_N:,}", dense / linear, ">=", 1_000, "x"),
        (f"largest deviation from dense, {DENSE_LAYERS} layers", deviation, "<=", 5e-15, ""),
        ("exponent of CPU s over n", exponent, "<=", 1.1, ""),
        (f"CPU s at n = {LENGTHS[-1]:,}, own process", alone["seconds"], "<=", 10, "s"),
        (f"peak memory at n = {LENGTHS[-1]:,}, own process", alone["megabytes"], "<=", 1_000, "MB"),
        (f"|sum - 1| at n = {LENGTHS[-1]:,}", abs(alone["sum"] - 1), "<=", 1e-12, ""),
    ]
    missed = False
    for what, value, relation, bound, unit in bounds:
        met = value >= bound if relation == ">=" else value <= bound
        missed |= not met
        print(f"{what:<48} {value:>10.4g} {unit:<2} {relation} {bound:<7g} {'ok' if met else 'MISSED'}")
    return int(missed)


if __name__ == "__main__":
    if sys.argv[1:] == ["longest"]:
        longest()
    else:
        sys.exit(main())
