"""Stacked training of the retrieval networks at the paper's setting: benchmarks/emergence.py

CPU milliseconds a member and iteration of 128 sequences, batches included, on one thread; how many times as long one
network takes as a module of torch that follows the formulas; and the share of the machine's matmul peak that is
reached, measured in the same run by square products. The share counts the arithmetic of the formulas as they stand, but
for what is not needed at all (queries of the last layer other than the last token's): folding can lift it above what
the processor does. Then how the cost grows with items and width, and a test of one network on six sets of 10,000 over
the training on as many sequences. Exit status 1 where a bound is missed.
"""

import os
import sys
import time
from itertools import pairwise

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import torch
from torch.nn import functional

from position_bias.emergence import networks, sequences, training
from position_bias.emergence.runs import Network
from position_bias.emergence.task import RetrievalTask
from position_card.core import runtime
from position_card.rollout.attention import rotary_angles

BATCH, ROUNDS = 128, 3
STACKED = (1, 2, 5, 10)  # members
BOUNDS = {False: 1.3, True: 1.1}  # how many times as long a module takes at least, without and with RoPE
TESTED_WITHIN = 0.5  # of training: a forward pass is a third of it


def best(function, seconds=0.5):
    """Least CPU seconds of a call, over rounds of calls that last about `seconds` each."""
    function()
    started = time.process_time()
    function()
    calls = max(1, int(seconds / max(time.process_time() - started, 1e-6)))
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(calls):
            function()
        rounds.append((time.process_time() - started) / calls)
    return min(rounds)


def matmul_peak():
    """Floating-point operations a second of a square product."""
    a = torch.randn(1024, 1024)
    return 2 * 1024**3 / best(lambda: a @ a)


def stack(task, encoding, members, depth, residual):
    """A stack of one network from as many seeds, its batches and its weights."""
    seeds = list(range(members))
    world = sequences.world(task, seeds, "cpu")
    batches = sequences.RetrievalBatches(task, world, seeds, [], BATCH)
    layers = networks.stack(task, [Network("causal", encoding)] * members, depth, residual, "cpu")
    return world, batches, layers, networks.initial(task, depth, seeds, "cpu")


class Module(torch.nn.Module):
    """One network as one would write it, causal mask, with or without RoPE."""

    def __init__(self, task, encoding, depth, residual):
        super().__init__()
        d = task.width
        self.attention = torch.nn.ModuleList(torch.nn.Linear(d, 3 * d, bias=False) for _ in range(depth))
        hidden = [layer for _ in range(networks.MLP) for layer in (torch.nn.Linear(d, d), torch.nn.ReLU())]
        self.classifier = torch.nn.Sequential(*hidden, torch.nn.Linear(d, task.labels))
        self.residual, self.rotary = residual, encoding == "rope"
        mask = torch.ones(task.tokens, task.tokens).triu(1).bool()
        self.register_buffer("mask", torch.zeros(mask.shape).masked_fill(mask, -torch.inf))
        angles = torch.from_numpy(rotary_angles(task.tokens, d)).float().repeat_interleave(2, -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def turned(self, x):
        across = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        return x * self.cos + across * self.sin

    def forward(self, x):
        for projections in self.attention:
            q, k, v = projections(x).chunk(3, -1)
            if self.rotary:
                q, k = self.turned(q), self.turned(k)
            y = functional.scaled_dot_product_attention(q, k, v, self.mask)
            x = x + y if self.residual else y
        return self.classifier(x[:, -1])


def as_a_module(task, encoding, depth, residual):
    """CPU milliseconds of an iteration of one network, batch included, as a module."""
    batches = sequences.RetrievalBatches(task, sequences.world(task, [0], "cpu"), [0], [], BATCH)
    module = Module(task, encoding, depth, residual)

    def loss(tokens, targets):
        return functional.cross_entropy(module(tokens[0]), targets[0])

    return iteration_milliseconds(module.parameters(), batches, loss)


def milliseconds(task, encoding, members, depth, residual=False):
    """CPU milliseconds of an iteration, batch included, over the members."""
    _, batches, layers, weights = stack(task, encoding, members, depth, residual)

    def loss(tokens, targets):
        logits = networks.label_logits(weights, layers, tokens)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").div(BATCH)

    return iteration_milliseconds([value.requires_grad_() for value in weights.values()], batches, loss) / members


def iteration_milliseconds(parameters, batches, loss):
    """CPU milliseconds of an iteration, batch included."""
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=1e-6, fused=True)
    iterations = iter(range(1, 10**9))

    def iteration():
        tokens, targets = batches(next(iterations))
        optimizer.zero_grad()
        loss(tokens, targets).backward()
        optimizer.step()

    return 1e3 * best(iteration)


def operations(task, depth):
    """Floating-point operations of an iteration: products with q k and v of all tokens but in the last layer."""
    T, d = task.tokens, task.width
    full = 3 * T * d * d + 2 * T * T * d
    last = 3 * d * d + 2 * T * d
    backward = 3  # twice the forward pass; the first layer needs no gradient of its input
    return 2 * BATCH * (backward * (depth - 1) * full - full / 3 * (depth > 1) + backward * last)


def test_seconds(task):
    """CPU seconds of testing one network of 2 layers on six pair sets of 10,000, and 10,000 without copies."""
    world, _, layers, weights = stack(task, "none", 1, 2, False)
    rows = torch.tensor([0])

    def test():
        with torch.no_grad():
            training.evaluate(
                lambda x: networks.label_logits(weights, layers, x), task, world, [0], rows, 10000, draw=0
            )

    return best(test, seconds=0.1)


def line(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def main():
    torch.set_num_threads(1)
    runtime.keep_freed_memory()
    peak, task, missed = matmul_peak(), RetrievalTask(), False
    print(f"matmul peak: {peak / 1e9:.0f} GFLOP/s")
    print(f"ms a member and iteration of {BATCH} sequences, by stack\n")
    line("layers", "encoding", "residual", "module", *STACKED, "module over best", "bound", "peak", "")
    for rotary in (False, True):
        for residual in (False, True):
            for depth in (2, 4, 6):
                encoding = "rope" if rotary else "none"
                module = as_a_module(task, encoding, depth, residual)
                cost = [milliseconds(task, encoding, members, depth, residual) for members in STACKED]
                share = operations(task, depth) / peak / (min(cost) / 1e3)
                times = module / min(cost)
                missed |= times < BOUNDS[rotary]
                verdict = "ok" if times >= BOUNDS[rotary] else "MISSED"
                shown = [f"{ms:.2f}" for ms in (module, *cost)]
                named = "RoPE" if rotary else "none", "yes" if residual else "no"
                line(depth, *named, *shown, f"{times:.2f} x", f"{BOUNDS[rotary]} x", f"{share:.0%}", verdict)
    print("\ngrowth of the cost, 2 members without residual connections and encoding")
    for name, tasks in (
        ("items", [RetrievalTask(items=n) for n in (8, 16, 32)]),
        ("width", [RetrievalTask(width=d) for d in (64, 128, 256)]),
    ):
        costs = [milliseconds(each, "none", 2, 4) for each in tasks]
        for (small, large), (before, after) in zip(pairwise(tasks), pairwise(costs), strict=True):
            line(
                f"{name} {getattr(small, name)} to {getattr(large, name)}",
                f"{before:.1f} to {after:.1f} ms",
                f"{after / before:.2f} x",
            )
    seconds = test_seconds(task)
    share = seconds / (milliseconds(task, "none", 1, 2) / 1e3 * 70_000 / BATCH)
    missed |= share > TESTED_WITHIN
    print("\nsix pair sets of 10,000, and 10,000 without copies, over the training on as many sequences:")
    print(f"{seconds:.2f} CPU s, {share:.0%}, bound {TESTED_WITHIN:.0%}")
    sys.exit(missed)


if __name__ == "__main__":
    main()
