"""This module measures what the spans of one prompt weigh, such as its documents, and how that depends on their place.

A span has influence by gradients (the share of its tokens in the influence of the prompt) and by replacement: how far
the prediction of the next token goes, in total variation, where another text of as many tokens stands in its place.
The last span is what the model is asked, and stays at the end. Each of the others is put first, in the middle and last
among them, the others keeping their order. All these prompts have the same tokens, so what differs comes of the order.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from position_bias.language_models.influence import influence_and_loss
from position_bias.language_models.replacement import total_variation
from position_bias.running.runtime import InputError, progress

TokenIds = NDArray[np.int64]

AS_GIVEN = "as given"
PLACES = ("first", "middle", "last")
COLUMNS = ("span", "tokens", "place", "begins", "gradient", "replacement")


def split(prompt: str, separator: str = "\n\n") -> list[str]:
    """The spans of a prompt, in order, each with the separator that follows it: paragraphs, where nothing else is said.

    Raises InputError where there are fewer than three: two that can change places, and what the model is asked.
    """
    pieces = prompt.split(separator)
    spans = [f"{piece}{separator}" for piece in pieces[:-1]] + pieces[-1:]
    spans = [span for span in spans if span.strip()]
    if len(spans) < 3:
        raise InputError(
            f"the prompt has {len(spans)} spans, but three are needed: two that can change places, and what is asked "
            "at the end; name another separator"
        )
    return spans


def orders(count: int) -> Iterator[tuple[int | None, str, list[int]]]:
    """Yield the orders of `count` spans: as given, and with each but the last at every place of PLACES.

    Each comes with the span that was moved, None in the order as given, and with the name of its place.
    """
    yield None, AS_GIVEN, list(range(count))
    movable = count - 1
    for span in range(movable):
        others = [other for other in range(movable) if other != span]
        for place, index in zip(PLACES, (0, (movable - 1) // 2, movable - 1), strict=True):
            yield span, place, [*others[:index], span, *others[index:], movable]


def measure(
    model: PreTrainedModel, spans: Sequence[TokenIds], others: TokenIds, *, before: Sequence[int] = ()
) -> pd.DataFrame:
    """Measure spans of token ids at their own places, and all but the last at PLACES: rows with the columns COLUMNS.

    `others` are tokens of another text, whose beginning replaces a span; prompts begin with the tokens `before`.
    `begins` is the token at which the span begins, counted from 0. Raises InputError where `others` are too few.
    """
    model.eval().requires_grad_(False)
    if (longest := max(map(len, spans))) > len(others):
        raise InputError(f"the other text has {len(others)} tokens, but a span has {longest}; give a longer text")
    rows, asked = [], list(orders(len(spans)))
    for moved, place, order in progress(asked, "measuring orders of spans", len(asked)):
        tokens = np.concatenate([before, *(spans[span] for span in order)]).astype(np.int64)
        lengths = [len(spans[span]) for span in order]
        begins = dict(zip(order, len(tokens) - sum(lengths) + np.cumsum([0, *lengths[:-1]]), strict=True))
        influence = _influence(model, tokens)
        expected = _next_token(model, tokens)
        for span in order if moved is None else [moved]:
            here = slice(begins[span], begins[span] + len(spans[span]))
            replaced = tokens.copy()
            replaced[here] = others[: len(spans[span])]
            change = float(total_variation(expected, _next_token(model, replaced)))
            share = influence[here].sum() / influence.sum()
            rows.append((span, len(spans[span]), place, here.start, share, change))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def explained(table: pd.DataFrame, measure: str) -> dict[str, float]:
    """How much of the variance of the logarithm of a measure of `measure`'s table comes of place, and how much of span.

    Spans down and places across are a complete table, so that place, span and the rest add up to 1. NaN where a value
    is 0, which has no logarithm, and where nothing varies.
    """
    placed = table[table["place"].isin(PLACES)]
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(placed.pivot(index="span", columns="place", values=measure).to_numpy())
        centred = values - values.mean()
        by_place, by_span = centred.mean(0) ** 2, centred.mean(1) ** 2
        shares = np.array([by_place.mean(), by_span.mean()]) / (centred**2).mean()
    return {"place": float(shares[0]), "span": float(shares[1]), "rest": float(1 - shares.sum())}


def _influence(model: PreTrainedModel, tokens: TokenIds) -> NDArray[np.float64]:
    influence, _ = influence_and_loss(model, _row(model, tokens), 1)
    return influence[0].double().cpu().numpy()


@torch.no_grad()
def _next_token(model: PreTrainedModel, tokens: TokenIds) -> Tensor:
    """The distribution of the next token, float64 [V]."""
    distribution: Tensor = model(_row(model, tokens), use_cache=False).logits[0, -1].double().softmax(-1)
    return distribution


def _row(model: PreTrainedModel, tokens: TokenIds) -> Tensor:
    return torch.from_numpy(tokens[None]).to(model.get_input_embeddings().weight.device)
