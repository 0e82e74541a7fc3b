"""The networks of Wu et al. as a textbook has them: one sequence, one query, one key at a time, in float64."""

import math

import torch
from torch.nn import functional


def may_read(network, i, j):
    """Whether token i reads token j, both counted from 1."""
    return {
        "none": True,
        "causal": j <= i,
        "window": i - network.reach < j <= i,
        "prefix": j <= i or max(i, j) <= network.reach,
    }[network.mask]


def rotation(i, width):
    """R of Eq. 3 for token i, theta_l = 10000^(-2(l - 1)/d)."""
    R = torch.zeros(width, width, dtype=torch.float64)
    for l in range(1, width // 2 + 1):  # noqa: E741 - the paper's letter
        angle = i * 10000 ** (-2 * (l - 1) / width)
        block = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        R[2 * l - 2 : 2 * l, 2 * l - 2 : 2 * l] = torch.tensor(block, dtype=torch.float64)
    return R


def sinusoid(i, width):
    """The encoding of Vaswani et al. of token i, counted from 0."""
    angles = [i / 10000 ** (2 * pair / width) for pair in range(width // 2)]
    return torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)], dtype=torch.float64)


def textbook(weights, network, depth, residual, sequence, placement="none"):
    """Label logits `[L]` of one sequence `[T, d]`, and attention `[depth, T, T]`."""
    (T, d), maps = sequence.shape, []
    X = [token + sinusoid(i, d) if network.encoding == "sin" else token for i, token in enumerate(sequence)]
    places = {"none": [], "pre": ["input"], "post": ["sum"], "peri": ["input", "output"]}[placement]
    for layer in range(depth):

        def norm(x, place, layer=layer):
            return functional.layer_norm(x, x.shape, weights[f"{place}_gain{layer}"]) if place in places else x

        inputs = [norm(x, "input") for x in X]
        Q, K, V = ([y @ weights[f"{name}{layer}"] for y in inputs] for name in "qkv")
        if network.encoding == "rope":
            Q, K = ([x @ rotation(i, d) for i, x in enumerate(of, start=1)] for of in (Q, K))
        new, A = [], torch.zeros(T, T, dtype=torch.float64)
        for i in range(T):
            keys = [j for j in range(T) if may_read(network, i + 1, j + 1)]
            scores = [Q[i] @ K[j] / math.sqrt(d) - network.slope * max(i - j, 0) for j in keys]
            share = torch.stack(scores).softmax(0)
            A[i, keys] = share.detach()
            read = norm(sum(a * V[j] for a, j in zip(share, keys, strict=True)), "output")
            new.append(norm(X[i] + read, "sum") if residual else read)
        X = new
        maps.append(A)
    hidden = X[-1]
    for layer in range(3):
        hidden = functional.relu(hidden @ weights[f"mlp{layer}"] + weights[f"mlp{layer}_bias"][0])
    return hidden @ weights["readout"] + weights["readout_bias"][0], torch.stack(maps)
