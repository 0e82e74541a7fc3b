"""Predictors against rollouts, one path at a time, and against gradients of a network with frozen attention."""

from itertools import product

import numpy as np
import pytest
import torch

from position_bias.emergence import network as networks
from position_bias.emergence import sequences
from position_bias.emergence.studies import Network
from position_bias.emergence.task import Task
from position_bias.retrieval import inside, observations, predictions

TASK = Task(items=4, burstiness=2, classes=16, labels=8, width=8)
T, N, D = 9, 4, 8
SLOPE = 0.3


def network(depth, residual, seed=0):
    """Weights whose attention is far from uniform, their stack, and tokens of one seed."""
    stack = networks.stack(TASK, [Network("causal", "decay", slope=SLOPE)], depth, residual, "cpu")
    weights = networks.initial(TASK, depth, [seed], "cpu")
    weights = {name: 3 * value if name[0] in "qkv" else value for name, value in weights.items()}
    (drawn,) = observations.distinct(TASK, sequences.world(TASK, [seed], "cpu"), [seed], 5, "test")
    return weights, stack, drawn.unmatched()


def one_path_at_a_time(attention, mixing):
    """The last row of the rollout as the sum over all paths from a token to the last one."""
    depth, tokens = attention.shape[:2]
    row = np.zeros(tokens)
    for path in product(range(tokens), repeat=depth):
        places = (*path, tokens - 1)
        weight = 1.0
        for layer in range(depth):
            own = places[layer] == places[layer + 1]
            weight *= (1 - mixing[layer]) * own + mixing[layer] * attention[layer, places[layer + 1], places[layer]]
        row[places[0]] += weight
    return row


def by_hand(logits):
    """Softmax over the tokens that are not forbidden, row by row."""
    weights = np.exp(logits)
    return weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
def test_predictors_are_rollouts(residual):
    weights, stack, tokens = network(2, residual)
    untrained = networks.initial(TASK, 2, [0], "cpu")
    (trained,), (initial,) = (inside.measured(of, stack, [tokens]) for of in (weights, untrained))
    logits = networks.attention_logits(TASK, Network("causal", "decay", slope=SLOPE))
    found = predictions.predicted(logits, residual, initial, trained)
    free = np.stack([by_hand(logits)] * 2)
    with_content = np.stack([by_hand(logits + content * np.eye(T)) for content in trained.content])
    for name, attention, mixing in (
        ("a", free, [1, 1]),
        ("half", free, [0.5, 0.5]),
        ("arch", free, initial.mixing),
        ("b", free, trained.mixing),
        ("c", with_content, trained.mixing),
        ("measured", trained.attention, trained.mixing),
        ("single", free[:1], [1]),
    ):
        row = one_path_at_a_time(attention, mixing)
        labels = [row[2 * item + 1] for item in range(N)]
        np.testing.assert_allclose(found[name], np.array(labels) / sum(labels), atol=1e-9, err_msg=name)
    assert found["uniform"].tolist() == [0.25] * 4
    different = ("single", "half", "a", "b", "c", "measured", "uniform") if residual else ("single", "half", "a", "c")
    for name, other in product(different, repeat=2):
        assert name == other or np.abs(found[name] - found[other]).max() > 1e-3, (name, other)


def test_without_residual_connections_all_mixing_is_one():
    weights, stack, tokens = network(3, residual=False)
    (found,) = inside.measured(weights, stack, [tokens])
    assert found.mixing.tolist() == [1, 1, 1]
    predicted = predictions.predicted(
        networks.attention_logits(TASK, Network("causal", "decay", slope=SLOPE)), False, found, found
    )
    for name in ("a", "b", "arch"):
        np.testing.assert_allclose(predicted[name], predicted["a"], atol=1e-15)
    np.testing.assert_allclose(predicted["values"], predicted["measured"], atol=1e-12)  # one matrix, the same for all


@pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_signed_path_is_the_gradient_of_the_query_with_frozen_attention(depth, residual):
    """Shares are those of the Jacobians, as one would take them of the network itself."""
    weights, stack, tokens = network(depth, residual)
    (found,) = inside.measured(weights, stack, [tokens])
    values = torch.from_numpy(found.values)

    def query(x):
        for layer, attention in enumerate(torch.from_numpy(found.attention)):
            read = attention @ x @ values[layer]
            x = x + read if residual else read
        return x[-1]

    jacobian = torch.autograd.functional.jacobian(query, torch.randn(T, D, dtype=torch.float64))  # [d out, T, d in]
    together = jacobian[:, 1::2].sum(1)
    expected = torch.einsum("oti,oi->t", jacobian, together) / (together**2).sum()
    row = predictions.signed_path(found.attention, found.values, residual)
    np.testing.assert_allclose(row, expected.numpy(), atol=1e-10)
    assert row[1::2].sum() == pytest.approx(1)


@pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
def test_attention_mixing_and_content_are_means_over_sequences(residual):
    weights, stack, tokens = network(2, residual)
    (found,) = inside.measured(weights, stack, [tokens[:, :8], tokens[:, 8:]])
    attention, mixing, content = [], [], []
    W = {name: value[0].double() for name, value in weights.items()}
    slope_logits = -SLOPE * (torch.arange(T)[:, None] - torch.arange(T)).double()
    for x in tokens[0].double():
        for layer in range(2):
            scores = (x @ W[f"q{layer}"]) @ (x @ W[f"k{layer}"]).T / D**0.5
            forbidden = torch.ones(T, T).triu(1).bool()
            A = (scores + slope_logits).masked_fill(forbidden, -torch.inf).softmax(-1)
            update = A @ x @ W[f"v{layer}"]
            attention.append(A)
            mixing.append(float(update.norm() / (x.norm() + update.norm())) if residual else 1.0)
            content.append(np.mean([float(scores[i, i] - scores[i, :i].mean()) for i in range(1, T)]))
            x = x + update if residual else update
    assert len(tokens[0]) == 20
    for measured, every in (
        (found.attention, torch.stack(attention)),
        (found.mixing, mixing),
        (found.content, content),
    ):
        by_layer = np.asarray(every).reshape(20, 2, *measured.shape[1:])
        np.testing.assert_allclose(measured, by_layer.mean(0), atol=2e-5)
    np.testing.assert_array_equal(found.values, np.stack([W["v0"], W["v1"]]))
