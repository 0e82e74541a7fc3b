"""Several models side by side: how much the first and the last token weigh in each, and the quotients of two models.

Models that were measured on the same prompts are compared on the same drawn prompts, replicate by replicate, so that
what a prompt does to both cancels. Others are resampled independently.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from position_bias import statistics
from position_bias.attention import Array
from position_bias.card import lengths
from position_bias.card.page import ENDS, PERCENT, caption, table
from position_bias.card.profiles import QUARTERS, quarters
from position_bias.card.sentences import Interval, listed
from position_bias.card.settings import COPIES
from position_bias.rollout import comparison
from position_bias.rollout.measurement import Measurement
from position_bias.running.runtime import seed

RATIOS = {  # what a reader calls the tokens, by the quantity
    ENDS[0]: "The first token",
    ENDS[1]: "The last token",
    QUARTERS[0]: "An average token of the first quarter, without the first token,",
    QUARTERS[1]: "An average token of the last quarter, without the last token,",
}
QUANTITIES = ("loss", *RATIOS)
BOUNDS = ["value", "low", "high"]
QUOTIENT = [f"quotient {bound}" for bound in BOUNDS]
LOSSES = ("loss", "by frequency", "uniform")


class Model(NamedTuple):
    """What was measured of one of the models, by length, and the facts that the measurement noted."""

    measured: Mapping[int, Measurement]
    facts: Mapping[str, Any]


def made(
    measured: list[Path],
    card: str,
    titles: Mapping[str, str],
    text: str,
    replicates: int,
    level: float,
    seed: int,
) -> dict[str, pd.DataFrame | str]:
    """The table of `ratios` and the `page` of the models that `titles` names in the order of the files."""
    models = {name: Model(*lengths.read(path)) for name, path in zip(titles, measured, strict=True)}
    found = ratios(models, replicates, level, seed)
    return {"ratios": found, "page": page(card, titles, text, models, found, level)}


def ratios(models: Mapping[str, Model], replicates: int, level: float, chosen_by: int) -> pd.DataFrame:
    """Each quantity of each model at each length: value, low, high, and the same of the first model divided by this.

    Columns: model, n, prompts, quantity, value, low, high, quotient, quotient low, quotient high, paired. Quotients of
    the first model by itself are missing, and so are those of losses and of lengths that one of the two lacks. `paired`
    says whether both were measured on the same prompts.
    """
    (first, of_first), *_ = models.items()
    rows = []
    for name, model in models.items():
        for n, found in model.measured.items():
            alike = n in of_first.measured and _prompts(model, n) == _prompts(of_first, n)
            values = _quantities(found, replicates, chosen_by)  # the intervals of its own card
            quotients = {}
            if name != first and n in of_first.measured:
                above = _quantities(of_first.measured[n], replicates, chosen_by)
                below = values if alike else _quantities(found, replicates, seed(chosen_by, "beside", name, n))
                quotients = {ratio: above[ratio] / below[ratio] for ratio in RATIOS}
            for quantity in QUANTITIES:
                row = {"model": name, "n": n, "prompts": found.prompts, "quantity": quantity, "paired": alike}
                row |= _bounds(values[quantity], level, "")
                if quantity in quotients:
                    row |= _bounds(quotients[quantity], level, "quotient ")
                rows.append(row)
    columns = ["model", "n", "prompts", "quantity", "value", "low", "high"]
    return pd.DataFrame(rows).reindex(columns=[*columns, *QUOTIENT, "paired"])


def page(
    card: str, titles: Mapping[str, str], text: str, models: Mapping[str, Model], found: pd.DataFrame, level: float
) -> str:
    """The page of a figure of several models on a text: figure, ratios, quotients, and where the card of each is.

    `card` names the figure, `titles` are what the models are called by the names of their cards, and `found` are the
    `ratios` of these `models`.
    """
    first, *_ = titles.values()
    every = " beside ".join(titles.values())
    lines = [
        f"# {every}, on {text}",
        "",
        f"![Lambda, influence and attention of {every}](../../../figures/card/{card}.png)",
        "",
        f"*A row a model. {caption(level)}*",
        "",
        f"## How does {first} differ?",
        "",
        *_on_training(found, models),
        "*First / middle* and *last / middle*: influence of the first and of the last token, over that of an average "
        "token in the middle half of the prompt. The columns behind them divide that ratio of "
        f"{first} by the one in the row. A quotient above 1 says that the token weighs more in {first}, below 1 that "
        f"it weighs less; if its interval holds 1, these prompts cannot tell. Brackets are {PERCENT * level:g} % "
        "bootstrap intervals over prompts. Models that were measured on the same prompts are resampled together, so "
        "a quotient can differ from 1 although the intervals of the ratios overlap. A quotient says in which model the "
        "token weighs more. How strong the bias is in each of them, its own ratio says: 1 is no bias. `ratios.csv` "
        "beside this page has the same of an average token of the first and of the last quarter.",
        "",
        "*Loss*: cross entropy of the last tokens of each prompt, in nats a token. *By frequency*: about the loss of a "
        "model that knows only how often each token occurs in this text; a model whose loss is not below it cannot "
        "predict this text. *Uniform*: the loss where all tokens of the vocabulary have the same probability. An "
        "untrained model has somewhat more, since its probabilities are random. Losses of models with other "
        "tokenizers cannot be compared, since their tokens are others. Ratios can, since each divides influence by "
        "influence in the same model; but the same number of tokens is then more text in one model than in another.",
        "",
        table(
            ("tokens", "model", "prompts", ENDS[0], f"{first} / this", ENDS[1], f"{first} / this", *LOSSES),
            _rows(found, titles, models),
        ),
        "",
        *_unpaired(found, titles),
        "## The card of each model",
        "",
        *(f"- [{title}](../{name}/card.md)" for name, title in titles.items()),
    ]
    return "\n".join(lines) + "\n"


def _on_training(found: pd.DataFrame, models: Mapping[str, Model]) -> Iterator[str]:
    """What training changed, where the others are untrained copies of the first model: a line a quantity."""
    copies = [name for name, model in models.items() if model.facts["model"]["untrained"] is not None]
    if not copies:
        return
    n = found["n"].max()
    of_copies = found[found["model"].isin(copies) & (found["n"] == n)]
    theirs = "the untrained copy" if len(copies) == 1 else f"the {len(copies)} untrained copies"
    yield f"What training changed, in prompts of {n} tokens:"
    yield ""
    first, *_ = models
    of_model = found[(found["model"] == first) & (found["n"] == n)].set_index("quantity")
    for quantity, tokens in RATIOS.items():
        rows = of_copies[of_copies["quantity"] == quantity]
        trained, *untrained = _intervals(of_model.loc[[quantity]], BOUNDS) + _intervals(rows, BOUNDS)
        quotients = _intervals(rows, QUOTIENT)
        yield (
            f"- {tokens} has {trained} times the influence of an average token in the middle half, and "
            f"{_span(untrained)} times in {theirs}: {_span(quotients)} times as much. "
            f"{changed(trained.side(1), common_side(untrained), common_side(quotients), theirs)}"
        )
    yield ""
    if len(copies) == 1:
        yield f"One copy says nothing of other random weights; card='{{untrained: {COPIES}}}' measures {COPIES}."
        yield ""


def changed(trained: int, untrained: int, quotient: int, theirs: str) -> str:
    """What training did to the weight of a token, by the sides of 1 on which three intervals lie.

    They are those of the ratio in the trained model, of the ratio in all copies, and of the quotient by all copies; 0
    where an interval holds 1, or where copies differ. `theirs` is what the copies are called.
    """
    outweighs = {1: "It outweighs the middle", -1: "The middle outweighs it", 0: "It is not separable from the middle"}
    if not quotient:
        return f"{outweighs[trained]} after training, and training changed this by nothing that is separable."
    if not untrained:
        what = "more" if quotient > 0 else "less"
        return f"{outweighs[trained]} after training, which gave it {what} weight; no bias is certain in {theirs}."
    before = f"{outweighs[untrained]} in {theirs}"
    if trained == untrained:
        return f"{before} already; training made this {'stronger' if quotient == untrained else 'weaker'}."
    return f"{before}; after training {'nothing separable of this is left' if not trained else 'it is the reverse'}."


def common_side(intervals: Sequence[Interval]) -> int:
    """The side of 1 on which all `intervals` lie; 0 where one holds 1, or two differ."""
    side, *others = {interval.side(1) for interval in intervals}
    return 0 if others else side


def _intervals(rows: pd.DataFrame, bounds: list[str]) -> list[Interval]:
    return [Interval(*row) for row in rows[bounds].itertuples(index=False)]


def _span(intervals: Sequence[Interval]) -> str:
    """One value with its interval, or from the least to the greatest of several values."""
    if len(intervals) == 1:
        return str(intervals[0])
    values = sorted({f"{interval.value:.3g}" for interval in intervals}, key=float)
    return " to ".join([values[0], *values[1:][-1:]])


def _rows(found: pd.DataFrame, titles: Mapping[str, str], models: Mapping[str, Model]) -> Iterator[list[str]]:
    for n in sorted(found["n"].unique()):
        for name, title in titles.items():
            rows = found[(found["n"] == n) & (found["model"] == name)].set_index("quantity")
            if len(rows):
                loss, begin, end = (rows.loc[quantity] for quantity in ("loss", *ENDS))
                ends = [cell for row in (begin, end) for cell in (_shown(row), _shown(row, "quotient "))]
                facts = models[name].facts
                scale = (facts["prompts"][str(n)]["entropy"], math.log(facts["model"]["vocabulary"]))
                yield [str(n), title, str(loss["prompts"]), *ends, _shown(loss), *(f"{of:.3g}" for of in scale)]


def _shown(row: pd.Series, prefix: str = "") -> str:
    value, low, high = (float(row[f"{prefix}{bound}"]) for bound in ("value", "low", "high"))
    return "" if np.isnan(value) else str(Interval(value, low, high))


def _unpaired(found: pd.DataFrame, titles: Mapping[str, str]) -> Iterator[str]:
    apart = found[~found["paired"] & found["quotient value"].notna()]
    if len(apart):
        names = [titles[name] for name in apart["model"].unique()]
        first, *_ = titles.values()
        yield (
            f"{listed([first, *names])} were not measured on the same prompts, as when their tokenizers differ; the "
            "prompts of their quotients are drawn independently."
        )
        yield ""


def _quantities(found: Measurement, replicates: int, drawn_by: int) -> dict[str, Array]:
    """Every quantity for all prompts, then for each bootstrap replicate, [1 + replicates]."""
    assert found.influence is not None
    weights = np.concatenate(list(comparison.prompt_weights(found.prompts, replicates, drawn_by).values()))
    influence = np.asarray(weights @ found.influence, np.float64)
    ends = {end: comparison.SHAPE[end](influence) for end in ENDS}
    return {"loss": np.asarray(weights @ found.loss, np.float64), **ends, **quarters(influence)}


def _bounds(values: Array, level: float, prefix: str) -> dict[str, float]:
    low, high = statistics.percentile_interval(values[1:], level)
    return {f"{prefix}value": float(values[0]), f"{prefix}low": float(low), f"{prefix}high": float(high)}


def _prompts(model: Model, n: int) -> str:
    return str(model.facts["prompts"][str(n)]["sha256"])
