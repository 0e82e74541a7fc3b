"""The page of a card in Markdown: figure and caption, findings in words, definitions, distances, and what made it."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from position_bias.card import definitions, lengths, profiles, sentences
from position_bias.card.profiles import LOSS, attention_table
from position_bias.rollout.comparison import summary
from position_bias.rollout.kernels import agreement
from position_bias.rollout.measurement import Measurement
from position_bias.rollout.variants import INFLUENCE, SAME_FOR_EVERY_ESTIMATOR

LAMBDAS = {
    "frobenius": "lambda, whole prompt",
    "token": "lambda, mean over tokens",
    "backward": "lambda from gradients (for comparison)",
}
ENDS = ("first / middle", "last / middle")  # of `comparison.SHAPE`
PERCENT = 100

UNTRAINED = """\
## Is this bias strong?

An untrained model has position bias, too. The residual connection passes every token on to itself, which gives the last
token many times the influence of others, and a causal mask gives the first tokens more than later ones. So compare this
model with untrained copies of it, which have the same shape and random weights. This command measures some beside it;
each takes as long as the model itself:

```bash
{command}
```

The page `results/card/{together}/card.md`, which it makes, says what training changed. One copy alone says nothing of
other seeds.
"""


class Compared(NamedTuple):
    """What `profiles.compare` returns for one length."""

    layers: pd.DataFrame
    profiles: pd.DataFrame
    values: pd.DataFrame


def made(
    measurements: Path,
    model: Path,
    text: Path,
    card: str,
    title: str,
    untrained: Mapping[str, str],
    replicates: int,
    level: float,
    seed: int,
) -> dict[str, pd.DataFrame | str]:
    """The tables of a card, lengths below each other, and its `page`; `model` and `text` are files on their origin."""
    measured, facts = lengths.read(measurements)
    compared = {n: Compared(*profiles.compare(found, replicates, level, seed)) for n, found in measured.items()}

    def together(tables: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
        counted = [table.assign(n=n, prompts=measured[n].prompts) for n, table in tables.items()]
        return pd.concat(counted, ignore_index=True)

    sources = {
        name: origin(json.loads(path.read_text(encoding="utf-8"))) for name, path in (("model", model), ("text", text))
    }
    return {
        "layers": together({n: tables.layers for n, tables in compared.items()}),
        "profile": together({n: tables.profiles for n, tables in compared.items()}),
        "distances": together({n: attention_table(found) for n, found in measured.items()}),
        "statistics": together({n: summary(tables.values, level) for n, tables in compared.items()}),
        "page": page(card, title, measured, compared, facts, sources, untrained, level),
    }


def page(
    card: str,
    title: str,
    measured: Mapping[int, Measurement],
    compared: Mapping[int, Compared],
    facts: Mapping[str, Any],
    sources: Mapping[str, str],
    untrained: Mapping[str, str],
    level: float,
) -> str:
    """The page of a card whose files are called `card`, above all about the longest of the lengths that were measured.

    `title` says what it is of, `facts` are those that the measurement noted, and `sources` says in words where the
    model and the text come from. `untrained` has the `command` that measures untrained copies beside the model, and
    what the files of that are called (`together`).
    """
    longest = measured[max(measured)]
    layers, _, values = compared[longest.n]
    before = facts["before"]
    first = f"{code(before[0])}, which the tokenizer adds" if before else "the first of a window of the text"
    lines = [
        f"# The position card of {title}",
        "",
        f"![Lambda, influence and attention of {title}](../../../figures/card/{card}.png)",
        "",
        f"*From {_drawn(longest.n, longest.prompts, facts)}. {caption(level)}*",
        "",
        sentences.on_lambda(layers, values, level),
        "",
        sentences.on_influence(values, longest.n, first, level),
        "",
        sentences.on_rollouts(values, level),
        "",
        "## At every length",
        "",
        _by_length(measured, compared, facts, level),
        "",
        "## What the words mean",
        "",
        *definitions.definitions(
            values, facts["model"]["vocabulary"], facts["prompts"][str(longest.n)]["entropy"], facts["predicted"]
        ),
        "",
        "## What rollouts predict",
        "",
        "W is the Wasserstein distance between two profiles over positions, divided by the number of tokens less one. "
        "It says how far influence has to be moved to turn one profile into the other, on average over all of it and "
        "in lengths of the prompt: 0 means that they are the same, and 0.1 a tenth of the prompt. A rollout of small W "
        "can still be wrong about a few tokens, such as the first, which *first / middle* and *last / middle* tell; "
        f"both are of the rollout with lambda of the whole prompt. In brackets: {PERCENT * level:g} % bootstrap "
        "intervals over prompts of this text, which say nothing of other texts or of other training runs of the model. "
        "Two rollouts are compared on the same drawn prompts, so one may be closer than the other although their "
        f"intervals overlap; differences of up to {sentences.SAME:g}, half of the last digit that Herasimchyk et al. "
        "print, count as none. Do not read small differences between rollouts as a ranking: another training run of "
        "the same model may reverse them.",
        "",
        _rollouts(values, level),
        "",
        *_of_gradients(values),
        *_kernels(longest),
        *([] if _is_copy(facts) else [UNTRAINED.format(**untrained)]),
        "## What made it",
        "",
        table(("what", "value"), _made_of(measured, facts, sources)),
    ]
    return "\n".join(lines) + "\n"


def caption(level: float) -> str:
    """What the figure of a card shows, with the kind of its intervals."""
    return (
        "Left: the share of attention in the residual stream, layer by layer. "
        "Middle: the share of each token in the influence on the prediction of the next token, on a logarithmic scale, "
        "beside what rollouts predict with lambda of the whole prompt, and two of the baselines. Dots mark the first "
        "and the last token; numbers beside them are their influence over the mean of the middle half (grey, with a "
        "black line at that mean). Right: the mean attention weight on "
        "the token at each distance, one line per layer; the weight that tokens give to themselves is not drawn, and "
        "the right end is noisy, since few tokens have others so far behind them. Uniform attention, which gives all "
        "earlier tokens the same weight, also falls with distance, because only late tokens have others far behind "
        "them. So a fall like that is no sign of recency. Where fewer lines are seen than the legend names, some lie "
        f"on each other. Bands are {PERCENT * level:g} % bootstrap intervals over prompts of this text."
    )


def origin(record: Mapping[str, Any]) -> str:
    """Where a model or a text comes from, in words, by its record: source, commit, and what the text was made of."""
    source = record.get("source") or record["corpus"]
    commit = f" at {record['revision']}" if record.get("revision") else ""
    splits = record.get("splits", {})
    kept = splits.get("test")
    digest = f", {_counted(kept['documents'], 'document')}, sha256 {kept['sha256'][:12]}" if kept else ""
    return f"{source}{commit}{digest}"


def code(token: str) -> str:
    """A token as Markdown shows it whole: HTML would swallow `<s>`."""
    return f"`` {token} ``" if "`" in token else f"`{token}`"


def _by_length(
    measured: Mapping[int, Measurement], compared: Mapping[int, Compared], facts: Mapping[str, Any], level: float
) -> str:
    """The numbers of the sentences, a row a length."""
    rows = []
    for n, found in measured.items():
        layers, _, values = compared[n]
        begin, end = sentences.ends(values, level)
        mean = layers.loc[layers["estimator"] == sentences.ESTIMATOR, "value"].mean()
        loss = sentences.statistics(values, level)[SAME_FOR_EVERY_ESTIMATOR, LOSS, "mean"]
        documents = facts["prompts"][str(n)]["documents"]
        rows.append((n, found.prompts, documents, loss, f"{mean:.3g}", begin, end, _closest(values, level)))
    ratios = ("influence, first / middle", "influence, last / middle")
    return table(
        ("tokens", "prompts", "of documents", "loss, nats a token", "lambda, mean of layers", *ratios, "closest"), rows
    )


def _closest(values: pd.DataFrame, level: float) -> str:
    close = sentences.listed([sentences.NAMES[name].removeprefix("the ") for name in sentences.closest(values, level)])
    return f"{close} ({sentences.span_of_closest(values, level)})"


def _rollouts(values: pd.DataFrame, level: float) -> str:
    """A row for the measured influence, each rollout and each baseline; W has a column a lambda."""
    found = sentences.statistics(values, level)
    estimators = [name for name in LAMBDAS if name in set(values["estimator"])]

    def cells(variant: str, by: Sequence[str]) -> list[str]:
        said = {name: {key: found.get((name, variant, key)) for key in ("wasserstein", *ENDS)} for name in by}
        plain, *others = said.values()
        shown = [plain["wasserstein"], *(plain[end] for end in ENDS), *(other["wasserstein"] for other in others)]
        return ["" if cell is None or math.isnan(cell.value) else str(cell) for cell in shown]

    rows = []
    for variant, said in {INFLUENCE: "measured influence", **sentences.NAMES}.items():
        fixed = (SAME_FOR_EVERY_ESTIMATOR, variant, ENDS[0]) in found
        if fixed or any((name, variant, ENDS[0]) in found for name in estimators):
            of = cells(variant, [SAME_FOR_EVERY_ESTIMATOR] if fixed else estimators)
            rows.append((said, *of, *[""] * (2 + len(estimators) - len(of))))
    others = [f"W, {LAMBDAS[name]}" for name in estimators[1:]]
    return table(("", f"W, {LAMBDAS[estimators[0]]}", *ENDS, *others), rows)


def _of_gradients(values: pd.DataFrame) -> Iterator[str]:
    if "backward" in set(values["estimator"]):
        yield (
            "The last column takes lambda from the gradient that it is compared with, so it predicts nothing. It shows "
            "whether attention's share of the gradient, in place of that of the residual stream, brings rollouts "
            "nearer."
        )
        yield ""


def _kernels(measured: Measurement) -> Iterator[str]:
    """How much of the mean logits by distance the mean query and key explain, where both are known."""
    if set(measured.kernels) != {"toeplitz", "rotary"}:
        return
    pairs = zip(measured.kernels["toeplitz"], measured.kernels["rotary"], measured.windows, strict=True)
    found = np.concatenate([agreement(fitted, predicted, window) for fitted, predicted, window in pairs])
    found = found[np.isfinite(found)]
    if not len(found):
        return
    low, middle, high = np.quantile(found, (0.25, 0.5, 0.75))
    explained = f"{PERCENT * middle:.0f} %" if middle > 0 else "nothing"
    yield (
        "Do rotary positions alone explain how the mean logit changes with distance? In the median of "
        f"{_counted(len(found), 'head')} they explain {explained} of its variance over distances, by turning the mean "
        f"query and the mean key (R^2 = {middle:.2g}; half of the heads lie between {low:.2g} and {high:.2g}; below 0, "
        "a constant would do better)."
    )
    yield ""


def _made_of(
    measured: Mapping[int, Measurement], facts: Mapping[str, Any], sources: Mapping[str, str]
) -> Iterator[Any]:
    model, versions = facts["model"], facts["versions"]
    yield from sources.items()
    if _is_copy(facts):
        yield "weights", f"random, not trained, drawn by seed {model['untrained']}"
    yield (
        "architecture",
        f"{model['type']}: {_counted(model['layers'], 'layer')} of {_counted(model['heads'], 'head')}, "
        f"{model['parameters']:,} parameters",
    )
    yield "lengths", "; ".join(_lengths(measured, facts))
    yield (
        "prompts",
        "each is a window of one document; a document is cut into windows from its start, and what is left at its end "
        "is not used. They are drawn at random from all windows of the text, none twice. Intervals take them as "
        "independent, though several may be of one document",
    )
    before = facts["before"]
    yield (
        "special tokens",
        f"each prompt begins with {' '.join(map(code, before))}, as the tokenizer puts it" if before else "none",
    )
    windows = {window for window in measured[max(measured)].windows if window is not None}
    yield "attention reads", f"the latest {_either(windows)} tokens in some layers" if windows else "all earlier tokens"
    yield "computed", f"in {facts['precision']} on {facts['device']}, {facts['bytes'] / 1e9:.1f} GB of memory estimated"
    yield "versions", ", ".join(f"{name} {versions[name]}" for name in ("python", "torch", "transformers"))


def _is_copy(facts: Mapping[str, Any]) -> bool:
    """Whether a card is of an untrained copy."""
    return facts["model"]["untrained"] is not None


def _lengths(measured: Mapping[int, Measurement], facts: Mapping[str, Any]) -> Iterator[str]:
    """What was measured of the lengths that were asked for, and why it is not all of them."""
    for n, found in measured.items():
        yield _drawn(n, found.prompts, facts)
    for n in facts["asked"]:
        most = facts["longest"]
        if most is not None and n > most:
            few = "" if most in measured else ", of which the text has too few"
            yield f"not {n}, since the model takes {most}{few}"
        elif n not in measured:
            yield f"not {n}, since the text has too few prompts of it"


def _drawn(n: int, prompts: int, facts: Mapping[str, Any]) -> str:
    documents = facts["prompts"][str(n)]["documents"]
    return f"{_counted(prompts, 'prompt')} of {n} tokens of {_counted(documents, 'document')}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _either(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))


def table(header: Sequence[str], rows: Any) -> str:
    """A table; a bar within a cell, as in the names of some tokens, is no border."""
    lines = [[str(cell).replace("|", r"\|") for cell in line] for line in (header, ["---"] * len(header), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
