"""The page of a card in Markdown: its figure with a caption, three sentences, distances of rollouts, what made it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from position_bias.card import sentences
from position_bias.card.sentences import Interval
from position_bias.language_models.measured import Measured
from position_bias.rollout import comparison
from position_bias.rollout.comparison import SAME_FOR_EVERY_ESTIMATOR
from position_bias.rollout.kernels import agreement

LAMBDAS = {
    "frobenius": "lambda of Eq. 1",
    "token": "mean of its tokens' ratios",
    "backward": "lambda of the backward pass (our addition, no prediction)",
}
PERCENT = 100


def page(
    name: str,
    measured: Mapping[int, Measured],
    layers: pd.DataFrame,
    values: pd.DataFrame,
    facts: Mapping[str, Any],
    sources: Mapping[str, str],
    level: float,
) -> str:
    """The page of the model `name`, about the longest of the lengths that were `measured`.

    `layers` and `values` are the first and third table of `profiles.compare` at that length, `facts` those that the
    measurement noted, and `sources` says in words where the model and the text come from.
    """
    longest = measured[max(measured)]
    before = facts["before"]
    first = f"the tokenizer's own {before[0]}" if before else "the first of a passage"
    lines = [
        f"# The position card of {name}",
        "",
        f"![Lambda, influence and attention of {name}](../../../figures/card/{name}.png)",
        "",
        f"*{caption(longest.n, longest.prompts, level)}*",
        "",
        sentences.on_lambda(layers, values, level),
        "",
        sentences.on_influence(values, longest.n, first, level),
        "",
        sentences.on_rollouts(values, level),
        "",
        "## How far rollouts are from the measured influence",
        "",
        "W is the Wasserstein distance between two profiles over positions, divided by the number of tokens less one: "
        f"0 means that they are the same. In brackets: {PERCENT * level:g} % bootstrap intervals over prompts, which "
        "say nothing of other training runs of the model. That one rollout is closer than another here does not mean "
        "that it predicts influence better.",
        "",
        _distances(values, level),
        *_kernels(longest),
        "",
        "## What made it",
        "",
        _table(("what", "value"), _made_of(measured, facts, sources)),
    ]
    return "\n".join(lines) + "\n"


def caption(n: int, prompts: int, level: float) -> str:
    """What the figure of a card shows, with the number of prompts and the kind of its intervals."""
    return (
        f"From {prompts} prompts of {n} tokens. Left: the share of attention in the residual stream, layer by layer. "
        "Middle: the share of each token in the influence on the prediction after the last one, on a logarithmic "
        "scale, beside what rollouts with the lambda of Eq. 1 predict, and two profiles that know nothing of the "
        "model. Right: the mean weight that tokens give to the one so many tokens before, a line a layer; the weight "
        f"that they give to themselves is not drawn. Bands are {PERCENT * level:g} % bootstrap intervals over prompts."
    )


def origin(record: Mapping[str, Any]) -> str:
    """Where a model or a text comes from, in words, by its record: source, commit, and what the text was made of."""
    source = record.get("source") or record["corpus"]
    commit = f" at {record['revision']}" if record.get("revision") else ""
    splits = record.get("splits", {})
    kept = splits.get("test")
    digest = f", {kept['documents']} documents, sha256 {kept['sha256'][:12]}" if kept else ""
    return f"{source}{commit}{digest}"


def _distances(values: pd.DataFrame, level: float) -> str:
    """A row a rollout or null, a column a lambda."""
    table = comparison.summary(values[values["statistic"] == "wasserstein"], level)
    bounds = table[["value", "low", "high"]].to_numpy()
    names = zip(table["variant"], table["estimator"], strict=True)
    shown = {name: str(Interval(*map(float, found))) for name, found in zip(names, bounds, strict=True)}
    estimators = [name for name in LAMBDAS if name in set(table["estimator"])]
    rows = []
    for variant, said in sentences.NAMES.items():
        if fixed := shown.get((variant, SAME_FOR_EVERY_ESTIMATOR)):
            rows.append((said, fixed, *[""] * (len(estimators) - 1)))
        elif any((variant, estimator) in shown for estimator in estimators):
            rows.append((said, *(shown[variant, estimator] for estimator in estimators)))
    return _table(("W of", *(LAMBDAS[name] for name in estimators)), rows)


def _kernels(measured: Measured) -> Iterator[str]:
    """A sentence on how much of the mean logits by distance the mean query and key explain, where both are known."""
    if set(measured.kernels) != {"toeplitz", "rotary"}:
        return
    pairs = zip(measured.kernels["toeplitz"], measured.kernels["rotary"], measured.windows, strict=True)
    found = np.concatenate([agreement(fitted, predicted, window) for fitted, predicted, window in pairs])
    found = found[np.isfinite(found)]
    if not len(found):
        return
    low, middle, high = np.quantile(found, (0.25, 0.5, 0.75))
    yield ""
    yield (
        "How mean logits vary with distance is predicted by the rotation of the mean query and the mean key with an "
        f"R^2 of {middle:.3g} for the median head (quartiles {low:.3g} and {high:.3g}, of {len(found)} heads)."
    )


def _made_of(measured: Mapping[int, Measured], facts: Mapping[str, Any], sources: Mapping[str, str]) -> Iterator[Any]:
    model, versions = facts["model"], facts["versions"]
    yield from sources.items()
    yield (
        "architecture",
        f"{model['type']}: {model['layers']} layers of {model['heads']} heads, {model['parameters']:,} parameters",
    )
    yield "lengths", "; ".join(_lengths(measured, facts))
    before = facts["before"]
    yield (
        "special tokens",
        f"each prompt begins with {' '.join(before)}, as the tokenizer puts it" if before else "none",
    )
    windows = {window for window in measured[max(measured)].windows if window is not None}
    yield "attention reads", f"the latest {_either(windows)} tokens in some layers" if windows else "all earlier tokens"
    yield "computed", f"in {facts['precision']} on {facts['device']}, {facts['bytes'] / 1e9:.1f} GB of memory estimated"
    yield "versions", ", ".join(f"{name} {versions[name]}" for name in ("python", "torch", "transformers"))


def _lengths(measured: Mapping[int, Measured], facts: Mapping[str, Any]) -> Iterator[str]:
    """What was measured of the lengths that were asked for, and why it is not all of them."""
    for n, found in measured.items():
        yield f"{n} tokens, {found.prompts} prompts"
    for n in facts["asked"]:
        if facts["longest"] is not None and n > facts["longest"]:
            yield f"not {n}, since the model takes {facts['longest']}"
        elif n not in measured:
            yield f"not {n}, since the text has too few prompts of it"


def _either(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))


def _table(header: Sequence[str], rows: Any) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
