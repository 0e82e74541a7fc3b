"""This module measures what the spans of one prompt weigh, such as its documents, and how that depends on their place.

A span has influence by gradients (the share of its tokens in the influence of the prompt) and by replacement: how far
the prediction of the next token goes, in total variation, where other text of as many tokens stands in its place.
The last span is what the model is asked, and stays at the end. Each of the others is put first, in the middle and last
among them, the others keeping their order. All these prompts have the same tokens, so what differs comes of the order.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from transformers import PreTrainedModel

from position_card.core.runtime import InputError, progress
from position_card.measures.quantities import differentiated, prediction
from position_card.measures.replacement import TokenIds, total_variation
from position_card.probe import forward

AS_GIVEN = "as given"
PLACES = ("first", "middle", "last")
COLUMNS = ("span", "tokens", "place", "begins", "gradient", "replacement")
MEASURES = COLUMNS[-2:]
BLANK = r"\n\s*\n"  # lines between paragraphs


def split(prompt: str, separator: str | None = None) -> list[str]:
    """Split a prompt into spans, each with the separator that follows it: paragraphs, where none is named.

    Together they are the prompt: a piece without words belongs to the span before it, if there is one. Raises
    InputError where there are fewer than three: two that can change places, and what the model is asked.
    """
    if separator == "":
        raise InputError("the separator of spans is empty; name what stands between them, or none for blank lines")
    pieces = re.split(f"({BLANK if separator is None else re.escape(separator)})", prompt)
    spans: list[str] = []
    leading = ""
    for words, between in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        if words.strip():
            spans.append(leading + words + between)
            leading = ""
        elif spans:
            spans[-1] += words + between
        else:
            leading += words + between
    require_three(spans)
    return spans


def require_three(spans: Collection[object]) -> None:
    """Raise InputError where there are fewer than three spans."""
    if len(spans) < 3:
        raise InputError(
            f"the prompt has {len(spans)} {'span' if len(spans) == 1 else 'spans'}, but three are needed: two that can "
            "change places, and what is asked at the end; name another separator"
        )


def places(count: int) -> dict[str, int]:
    """Return the names of the different places of a span among `count`, each with its index: two of two, else three."""
    return dict(zip(PLACES, (0, (count - 1) // 2, count - 1), strict=True)) if count > 2 else {"first": 0, "last": 1}


def orders(count: int) -> Iterator[tuple[int | None, str, tuple[int, ...]]]:
    """Yield the orders of `count` spans: as given, and with each but the last at every place of `places`.

    Each comes with the span that was moved, None in the order as given, and with the name of its place. An order
    occurs again where two moves lead to it.
    """
    yield None, AS_GIVEN, tuple(range(count))
    movable = count - 1
    for span in range(movable):
        others = [other for other in range(movable) if other != span]
        for place, index in places(movable).items():
            yield span, place, (*others[:index], span, *others[index:], movable)


def joined(spans: Sequence[TokenIds], order: Sequence[int], before: Sequence[int] = ()) -> TokenIds:
    """Return the tokens of a prompt that begins with the tokens `before` and has the spans in this order, int64 [n]."""
    return np.concatenate([before, *(spans[span] for span in order)]).astype(np.int64)


def measure_spans(
    model: PreTrainedModel,
    spans: Sequence[TokenIds],
    others: TokenIds,
    *,
    before: Sequence[int] = (),
    target: str | int = "p",
) -> pd.DataFrame:
    """Measure spans of token ids at their own places, and all but the last at `places`: rows with the columns COLUMNS.

    `others` are tokens of other texts, [D, L]: the beginning of each replaces a span, and replacement is the mean over
    the D texts. Prompts begin with the tokens `before`. `begins` is the token at which the span begins, counted from 0.
    Influence is the gradient of the `target` (`quantities.differentiated`). Each order passes through the model once
    for all rows that need it. Raises InputError where `others` are too short.
    """
    model.eval().requires_grad_(False)
    if (longest := max(map(len, spans))) > others.shape[1]:
        raise InputError(f"the other text has {others.shape[1]} tokens, but a span has {longest}; give a longer text")
    by_order = spans_by_order(len(spans))
    weights_by_order = {
        (order, span): weights
        for order, measured_spans in progress(by_order.items(), "measuring orders of spans", len(by_order))
        for span, weights in _weights(model, spans, order, measured_spans, others, before, target)
    }
    rows = [
        (span, len(spans[span]), place, *weights_by_order[order, span])
        for moved_span, place, order in orders(len(spans))
        for span in (order if moved_span is None else [moved_span])
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def spans_by_order(count: int) -> dict[tuple[int, ...], set[int]]:
    """Return the different orders of `count` spans, with the spans that are measured in each."""
    spans_of_order: dict[tuple[int, ...], set[int]] = defaultdict(set)
    for moved_span, _, order in orders(count):
        spans_of_order[order] |= set(order) if moved_span is None else {moved_span}
    return spans_of_order


def explained(table: pd.DataFrame, measure: str) -> dict[str, float]:
    """Return the shares of place, span and rest in the variance of the logarithm of a measure, a column of `table`.

    Spans down and places across are a complete table, so that place, span and the rest add up to 1. NaN where a value
    is 0, which has no logarithm, and where nothing varies.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(placed(table, measure).to_numpy())
        centred = values - values.mean()
        by_place, by_span = centred.mean(0) ** 2, centred.mean(1) ** 2
        shares = np.array([by_place.mean(), by_span.mean()]) / (centred**2).mean()
    return {"place": float(shares[0]), "span": float(shares[1]), "rest": float(1 - shares.sum())}


def by_chance(spans: int, places: int) -> dict[str, float]:
    """Return what `explained` gives on average where values stand in their table at random: degrees of freedom."""
    return {
        part: freedom / (spans * places - 1)
        for part, freedom in (("place", places - 1), ("span", spans - 1), ("rest", (spans - 1) * (places - 1)))
    }


def placed(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a measure of the spans that change places as a table, spans down and their places across."""
    rows = table[table["place"] != AS_GIVEN].pivot(index="span", columns="place", values=measure)
    return rows[[place for place in PLACES if place in rows]]


@torch.no_grad()
def next_token(model: PreTrainedModel, tokens: TokenIds) -> Tensor:
    """Return the distribution of the next token after tokens [n], float64 [V]."""
    return _distribution(prediction(model, _row(model, tokens), 1)[1])


def _weights(
    model: PreTrainedModel,
    spans: Sequence[TokenIds],
    order: Sequence[int],
    measured_spans: Collection[int],
    others: TokenIds,
    before: Sequence[int],
    target: str | int,
) -> Iterator[tuple[int, tuple[int, float, float]]]:
    """Yield where each measured span begins in this order, its share by gradients, and the effect of replacement."""
    tokens = joined(spans, order, before)
    embeddings, logits = prediction(model, _row(model, tokens), 1)
    (gradient,) = torch.autograd.grad(differentiated(logits[:, -1].float(), target).sum(), embeddings)
    influence = gradient[0].float().norm(dim=-1).double().cpu().numpy()
    expected = _distribution(logits.detach())
    begins = len(before)
    for span in order:
        here = slice(begins, begins + len(spans[span]))
        if span in measured_spans:
            changes = []
            for other in others:
                replaced = tokens.copy()
                replaced[here] = other[: len(spans[span])]
                changes.append(float(total_variation(expected, next_token(model, replaced))))
            yield span, (begins, influence[here].sum() / influence.sum(), float(np.mean(changes)))
        begins = here.stop


def _distribution(logits: Tensor) -> Tensor:
    """Return the distribution of the next token after the only prompt, float64 [V]."""
    return logits[0, -1].double().softmax(-1)


def _row(model: PreTrainedModel, tokens: TokenIds) -> Tensor:
    return torch.from_numpy(tokens[None]).to(forward.device(model))
