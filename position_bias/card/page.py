"""The page of a card in Markdown: figure and caption, three sentences, definitions, distances, and what made it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from position_bias.card import sentences
from position_bias.card.sentences import Interval
from position_bias.language_models.measured import Measured
from position_bias.rollout import comparison
from position_bias.rollout.comparison import SAME_FOR_EVERY_ESTIMATOR
from position_bias.rollout.kernels import agreement

LAMBDAS = {
    "frobenius": "lambda, whole prompt",
    "token": "lambda, mean over tokens",
    "backward": "lambda from gradients (for comparison)",
}
PERCENT = 100

INFLUENCE = (
    "**Influence** of a token: the norm of the gradient of the probability of the most likely next token with respect "
    "to the embedding of that token. The norms are averaged over prompts, and their mean is divided by its sum: shares "
    "add up to 1, and a prompt with larger gradients counts for more. The *middle half* of a prompt is what stays "
    "without its first and its last quarter."
)
LAMBDA = (
    "**Lambda** of a layer: |a| / (|x| + |a|), where x is the residual stream, the vector of a token that every layer "
    "adds to, as it enters the layer, and a what attention adds to it. 0: attention adds nothing; 1/2: as much as was "
    "there. *Whole prompt*: norms over all tokens of a prompt, Eq. 1 of Herasimchyk et al. 2026. *Mean over tokens*: "
    "the same ratio token by token, then the mean."
)
OF_GRADIENTS = (
    " *From gradients*, our addition: the same ratio of the two parts of the gradient, that which comes back through "
    "attention and that which passes it by."
)
NOT_SEPARABLE = (
    "**Not separable**: the interval holds the value that would mean no difference, so these prompts cannot tell."
)
ROLLOUT = (
    "**Attention rollout**: a prediction of influence from attention alone. Each layer mixes a token's own vector, "
    "with weight 1 - lambda, with those that it attends to, with weight lambda; multiplied over the layers this says "
    "how much of each input token arrives at the last one. Rollouts differ in the attention that they take:"
)
KINDS = {  # of rollouts, and the baselines
    "a": "*attention alone (a)*: every token attends to all earlier ones alike but for the ALiBi bias, and lambda is 1",
    "b": "*with lambda (b)*: the same attention, with the measured lambda",
    "c": "*with lambda and content (c)*: besides, each token attends to itself more or less than to others, by as much "
    "as was measured",
    "content-free": "*without content*: every token attends to itself and to all earlier ones alike, as far back as "
    "the layer reads",
    "logit-by-distance": "*logit by distance*: logits are the mean of those measured at each distance",
    "mean-query-key": "*mean query and key*: logits are those of the mean query and the mean key, turned by the rotary "
    "positions",
    "mean-attention": "*mean attention*: the measured attention, as a mean over prompts and heads",
    "uniform": "*baselines* know nothing of the model, but for its ALiBi bias or how far back its layers read: the "
    "same influence of every token, all influence on the last one, and the rollout without content with lambda = 1/2",
}


UNTRAINED = (
    "## Is this bias strong?",
    "",
    "An untrained model has position bias, too. The residual connection passes every token on to itself, which gives "
    "the last token many times the influence of others, and a causal mask gives the first tokens more than later ones. "
    "So compare your model with an untrained copy of it, which this writes:",
    "",
    "```python",
    "import torch",
    "from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer",
    "",
    "torch.manual_seed(0)",
    'AutoTokenizer.from_pretrained("./my-model").save_pretrained("./my-model-untrained")',
    'config = AutoConfig.from_pretrained("./my-model")',
    'AutoModelForCausalLM.from_config(config).save_pretrained("./my-model-untrained")',
    "```",
    "",
    "Then `snakemake card --config model=./my-model,./my-model-untrained` draws both, one below the other; add the "
    "`text=` and `card=` of this card. Compare the ratios and their intervals, not the sentences: where one is "
    "separable from the middle and the other is not, they need not differ. Copies of other seeds differ, too, and "
    "ratios grow with the length of prompts.",
    "",
)


class Compared(NamedTuple):
    """What `profiles.compare` returns for one length."""

    layers: pd.DataFrame
    profiles: pd.DataFrame
    values: pd.DataFrame


def page(
    card: str,
    title: str,
    measured: Mapping[int, Measured],
    compared: Mapping[int, Compared],
    facts: Mapping[str, Any],
    sources: Mapping[str, str],
    level: float,
) -> str:
    """The page of a card whose files are called `card`, above all about the longest of the lengths that were measured.

    `title` says what it is of, `facts` are those that the measurement noted, and `sources` says in words where the
    model and the text come from.
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
        f"*{caption(longest.n, longest.prompts, level)}*",
        "",
        sentences.on_lambda(layers, values, level),
        "",
        sentences.on_influence(values, longest.n, first, level),
        "",
        sentences.on_rollouts(values, level),
        "",
        *_other_lengths(measured, compared, level),
        "## What the words mean",
        "",
        *_definitions(values),
        "",
        "## How far rollouts are from the measured influence",
        "",
        "W is the Wasserstein distance between two profiles over positions, divided by the number of tokens less one: "
        f"0 means that they are the same. In brackets: {PERCENT * level:g} % bootstrap intervals over prompts of this "
        "text, which say nothing of other texts or of other training runs of the model. Two rollouts are compared on "
        "the same drawn prompts, so one may be closer than the other although their intervals overlap; differences of "
        f"up to {sentences.SAME:g}, half of the last digit that Herasimchyk et al. print, count as none. Do not read "
        "small differences between rollouts as a ranking: another training run of the same model may reverse them.",
        "",
        _distances(values, level),
        "",
        *_of_gradients(values),
        *_kernels(longest),
        *UNTRAINED,
        "## What made it",
        "",
        _table(("what", "value"), _made_of(measured, facts, sources)),
    ]
    return "\n".join(lines) + "\n"


def caption(n: int, prompts: int, level: float) -> str:
    """What the figure of a card shows, with the number of prompts and the kind of its intervals."""
    return (
        f"From {prompts} prompts of {n} tokens. Left: the share of attention in the residual stream, layer by layer. "
        "Middle: the share of each token in the influence on the prediction of the next token, on a logarithmic scale, "
        "beside what rollouts predict with lambda of the whole prompt, and two of the baselines; dots mark the first "
        "and the last token, grey the middle half, which they are compared with. Right: the mean attention weight on "
        "the token at each distance, one line per layer; the weight that tokens give to themselves is not drawn, and "
        "the right end is noisy, since few tokens have others so far behind them. Uniform attention, which gives all "
        "earlier tokens the same weight, also falls with distance, because only late tokens have others far behind "
        f"them. So a fall like that is no sign of recency. Bands are {PERCENT * level:g} % bootstrap intervals over "
        "prompts of this text."
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


def _other_lengths(measured: Mapping[int, Measured], compared: Mapping[int, Compared], level: float) -> Iterator[str]:
    """A line for each length but the longest, where there are any."""
    others = sorted(measured)[:-1]
    for n in others:
        layers, _, values = compared[n]
        prompts = _counted(measured[n].prompts, "prompt")
        yield f"- In prompts of {n} tokens ({prompts}): {sentences.in_short(layers, values, level)}."
    if others:
        yield ""


def _definitions(values: pd.DataFrame) -> Iterator[str]:
    yield f"- {INFLUENCE}"
    yield f"- {LAMBDA}{OF_GRADIENTS if 'backward' in set(values['estimator']) else ''}"
    yield f"- {NOT_SEPARABLE}"
    yield f"- {ROLLOUT}"
    there = set(values["variant"])
    yield from (f"  - {said}." for variant, said in KINDS.items() if variant in there)


def _distances(values: pd.DataFrame, level: float) -> str:
    """A row a rollout or baseline, a column a lambda."""
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


def _of_gradients(values: pd.DataFrame) -> Iterator[str]:
    if "backward" in set(values["estimator"]):
        yield (
            "The last column takes lambda from the gradient that it is compared with, so it predicts nothing. It shows "
            "whether attention's share of the gradient, in place of that of the residual stream, brings rollouts "
            "nearer."
        )
        yield ""


def _kernels(measured: Measured) -> Iterator[str]:
    """How much of the mean logits by distance the mean query and key explain, where both are known."""
    if set(measured.kernels) != {"toeplitz", "rotary"}:
        return
    pairs = zip(measured.kernels["toeplitz"], measured.kernels["rotary"], measured.windows, strict=True)
    found = np.concatenate([agreement(fitted, predicted, window) for fitted, predicted, window in pairs])
    found = found[np.isfinite(found)]
    if not len(found):
        return
    low, middle, high = np.quantile(found, (0.25, 0.5, 0.75))
    explained = f"{PERCENT * middle:.3g} %" if middle > 0 else "nothing"
    of = "R^2" if middle > 0 else f"R^2 = {middle:.3g}, worse than a constant"
    yield (
        "Do rotary positions alone explain how logits change with distance? In the median of "
        f"{_counted(len(found), 'head')} they explain {explained} of it, by turning the mean query and the mean key "
        f"({of}; quartiles {PERCENT * low:.3g} % and {PERCENT * high:.3g} %)."
    )
    yield ""


def _made_of(measured: Mapping[int, Measured], facts: Mapping[str, Any], sources: Mapping[str, str]) -> Iterator[Any]:
    model, versions = facts["model"], facts["versions"]
    yield from sources.items()
    yield (
        "architecture",
        f"{model['type']}: {_counted(model['layers'], 'layer')} of {_counted(model['heads'], 'head')}, "
        f"{model['parameters']:,} parameters",
    )
    yield "lengths", "; ".join(_lengths(measured, facts))
    yield (
        "prompts",
        "windows of one document each, side by side from its start, the tail that fills none left out; drawn at random "
        "from all of the text, none twice. Intervals take them as independent, though several may be of one document",
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


def _lengths(measured: Mapping[int, Measured], facts: Mapping[str, Any]) -> Iterator[str]:
    """What was measured of the lengths that were asked for, and why it is not all of them."""
    for n, found in measured.items():
        yield f"{n} tokens, {_counted(found.prompts, 'prompt')}"
    for n in facts["asked"]:
        most = facts["longest"]
        if most is not None and n > most:
            few = "" if most in measured else ", of which the text has too few"
            yield f"not {n}, since the model takes {most}{few}"
        elif n not in measured:
            yield f"not {n}, since the text has too few prompts of it"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _either(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))


def _table(header: Sequence[str], rows: Any) -> str:
    """A table; a bar within a cell, as in the names of some tokens, is no border."""
    lines = [[str(cell).replace("|", r"\|") for cell in line] for line in (header, ["---"] * len(header), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
