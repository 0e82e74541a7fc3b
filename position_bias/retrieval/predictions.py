"""What the structural prior says of each item's label: the last row of a rollout at the labels, as shares of 1.

The last token of a sequence is the query. Content-free attention is the softmax of what mask and encoding add to the
logits, which is nothing for sinusoids and RoPE. `agreement.PREDICTORS` says what each predictor knows: nothing of the
network, the network before training, or the trained one.
"""

from collections.abc import Mapping

import numpy as np

from position_bias.attention import Array, layer_products, masked_softmax
from position_bias.retrieval.inside import Inside


def predicted(logits: Array, residual: bool, initial: Inside, trained: Inside) -> dict[str, Array]:
    """Every predictor but `frozen`, `[n]` each, of one network.

    `logits` [T, T] are what mask and encoding add; `initial` is the network before training. uniform: every label
    alike; single: one layer of content-free attention; half: lambda = 1/2; a: attention alone; arch: lambda before
    training; b: trained lambda; c: with content on the diagonal, too; measured: mean attention and trained lambda;
    values: the signed path through value matrices.
    """
    depth, tokens = trained.attention.shape[:2]
    admitted = np.isfinite(logits)
    free = np.stack([masked_softmax(logits, admitted)] * depth)
    own = trained.content[:, None, None] * np.eye(tokens)
    with_content = np.stack([masked_softmax(logits + diagonal, admitted) for diagonal in own])
    rows: Mapping[str, Array] = {
        "single": free[0, -1],
        "half": rolled_out(free, np.full(depth, 0.5)),
        "a": rolled_out(free, np.ones(depth)),
        "arch": rolled_out(free, initial.mixing),
        "b": rolled_out(free, trained.mixing),
        "c": rolled_out(with_content, trained.mixing),
        "measured": rolled_out(trained.attention, trained.mixing),
        "values": signed_path(trained.attention, trained.values, residual),
    }
    labels = (tokens - 1) // 2
    shares = {name: row[1::2] / row[1::2].sum() for name, row in rows.items()}
    return {"uniform": np.full(labels, 1 / labels)} | shares


def rolled_out(attention: Array, mixing: Array) -> Array:
    """The last row `[T]` of the rollout of attention `[depth, T, T]` with lambda `[depth]`, multiplied out.

    `rollout.last_row` does the same for long sequences; these are short.
    """
    share = mixing[:, None, None]
    return np.asarray(layer_products((1 - share) * np.eye(attention.shape[-1]) + share * attention)[-1, -1])


def signed_path(attention: Array, values: Array, residual: bool) -> Array:
    """How much of each token reaches the query through the value matrices `[depth, d, d]`, signed, `[T]`.

    With attention [depth, T, T] held fixed, the query ends as the sum of x_j M_j over tokens j, where M_j sums the
    paths from j. A token's number is the product of its M_j with that of all labels together, over the latter's square.
    """
    depth, tokens = attention.shape[:2]
    paths = np.zeros((tokens, *values.shape[1:]))
    paths[-1] = np.eye(values.shape[1])
    for layer in reversed(range(depth)):
        read = values[layer] @ np.tensordot(attention[layer].T, paths, axes=1)
        paths = paths + read if residual else read
    together = paths[1::2].sum(0)
    return np.asarray(np.tensordot(paths, together, axes=2) / (together**2).sum())
