"""What attention adds to the residual stream of a block, found among all that the block computes.

An update u of attention is right where it reproduces the block: its output is y = x + a u + b v with the output v of
another module and factors a and b, which most architectures have at 1. Or, where norms follow the sums,
y = norm(m + v) with m = norm(x + u). All must hold for every token, within rounding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

Order = Literal["sequential", "parallel", "norm after the sum"]

UNEXPLAINED = 0.25  # of an update, for half of the tokens: more would hide a wrong update behind a large stream
MULTIPLES = 1e-5  # of the determinant of u and v: below, one counts as a multiple of the other


@dataclass(frozen=True)
class Call:
    """A call of a module within a block: what it read first and what it yielded first, float64 [n, width]."""

    module: nn.Module
    argument: Tensor | None  # None where it is of another size
    output: Tensor


@dataclass(frozen=True)
class Update:
    """What `module` yields, times `scale`, is what attention adds to x; `order` is that of attention and MLP."""

    module: nn.Module
    scale: float
    order: Order


def find_update(
    stream: Tensor, output: Tensor, calls: Sequence[Call], attention: nn.Module, tolerance: float
) -> Update | None:
    """Return the update by which a block turned `stream` into `output`, float64 [n, width]; None where none is right.

    `calls` are those within the block, in the order in which they ended. `tolerance` is relative to the norms of a
    token's vectors.
    """
    updates, summands = _candidates(calls, attention)
    for update in updates:
        for second in summands:
            scale = None if second is update else _scale(stream, output, update.output, second.output, tolerance)
            if scale is not None:
                middle = stream + scale * update.output
                sequential = any(_close(call.argument, middle, tolerance) for call in calls)
                return Update(update.module, scale, "sequential" if sequential else "parallel")
        if _norms_follow(stream, output, update, summands, tolerance):
            return Update(update.module, 1.0, "norm after the sum")
    return None


def _candidates(calls: Sequence[Call], attention: nn.Module) -> tuple[list[Call], list[Call]]:
    """Return calls that may have made the update (attention, within it, after it), and all that are not within it.

    What follows attention comes last: where the attention adds the stream itself, the MLP may follow it too.
    """
    inner = set(attention.modules()) - {attention}
    summands = [call for call in calls if call.module not in inner]
    attention_calls = [call for call in summands if call.module is attention]
    after = list(attention_calls)
    for call in summands:
        if call.argument is not None and any(torch.equal(call.argument, before.output) for before in after):
            after.append(call)
    followers = after[len(attention_calls) :]
    return attention_calls + [call for call in reversed(calls) if call.module in inner] + followers, summands


def _scale(stream: Tensor, output: Tensor, update: Tensor, second: Tensor, tolerance: float) -> float | None:
    """Return the factor a with output = stream + a update + b second, 1 if that will do; None where there is none."""
    whole = stream.norm(dim=-1) + update.norm(dim=-1) + second.norm(dim=-1)
    for a, b in _factors(output - stream, update, second):
        remainder = (output - stream - a * update - b * second).norm(dim=-1)
        hidden_share = (remainder / (a * update).norm(dim=-1)).median()
        if a > 0 and bool((remainder <= tolerance * whole).all()) and hidden_share <= UNEXPLAINED:
            return a
    return None


def _factors(difference: Tensor, update: Tensor, second: Tensor) -> Iterator[tuple[float, float]]:
    yield 1.0, 1.0
    columns = torch.stack([update.flatten(), second.flatten()], 1)
    gram = columns.mT @ columns
    if torch.linalg.det(gram) > MULTIPLES * gram.diagonal().prod():
        a, b = torch.linalg.solve(gram, columns.mT @ difference.flatten()).tolist()
        yield a, b


def _norms_follow(stream: Tensor, output: Tensor, update: Call, summands: Sequence[Call], tolerance: float) -> bool:
    middles = [call for call in summands if _close(call.argument, stream + update.output, tolerance)]
    lasts = [call for call in summands if torch.equal(call.output, output)]
    return any(
        _close(last.argument, middle.output + second.output, tolerance)
        for middle in middles
        for last in lasts
        for second in summands
    )


def _close(value: Tensor | None, reference: Tensor, tolerance: float) -> bool:
    if value is None:
        return False
    return bool(((value - reference).norm(dim=-1) <= tolerance * reference.norm(dim=-1)).all())
