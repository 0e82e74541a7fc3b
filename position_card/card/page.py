"""The page of a card in Markdown: figure and caption, findings in words, definitions, distances, and what made it.

What every page says alike is in page.md beside this module.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np

from position_card.card import sentences
from position_card.card.measurements import Measurements
from position_card.card.profiles import ENDS, LEAST, LOSS, RECALL, REPLACEMENT, CardPart
from position_card.core.wording import enumeration, number_of
from position_card.rollout.kernels import agreement
from position_card.rollout.measurement import Measurement
from position_card.rollout.variants import INFLUENCE, SAME_FOR_EVERY_ESTIMATOR

TEMPLATE = resources.files(__package__).joinpath("page.md")
PERCENT = 100
MIXINGS = {
    "frobenius": "lambda, whole prompt",
    "token": "lambda, mean over tokens",
    "backward": "lambda from gradients (for comparison)",
}
KINDS = {  # of rollouts, and the baselines
    "a": "*attention alone (a)*: every token attends to all earlier ones alike but for the positional bias of ALiBi, "
    "and residual mixing is 1",
    "b": "*residual-aware (b)*: the same attention, with the measured residual mixing",
    "c": "*residual-aware with content (c)*: besides, each token attends to itself more or less than to others, by as "
    "much as was measured",
    "content-free": "*without content*: every token attends to itself and to all earlier ones alike, as far back as "
    "the layer reads",
    "logit-by-distance": "*logit by distance*: logits are the mean of those measured at each distance; the largest "
    "distance has one pair alone, the last token and the first, which may be a sink",
    "mean-query-key": "*mean query and key*: logits are those of the mean query and the mean key, turned by the rotary "
    "positions",
    "mean-attention": "*mean attention*: the measured attention, as a mean over prompts and heads; where some of it "
    "goes to no token, the rest is divided by its total",
    "uniform": "*baselines* know nothing of the model, but for its ALiBi bias or how far back its layers read: the "
    "same influence of every token, all influence on the last one, and the rollout without content with residual "
    "mixing of 1/2",
}
OF_GRADIENTS = (
    " *From gradients*, our addition: the same ratio of the two parts of the gradient, that which comes back through "
    "attention and that which passes it by."
)
OF_REPLACEMENT = (
    "- **Replacement**: another prompt's token at the same position takes the place of a token, and what changes is "
    "the total variation between the two distributions of the next token. A gradient says what an infinitely small "
    "change does, replacement what another token does; in trained models the two can differ much. *First / middle* and "
    "*last / middle* are made as those of influence.\n"
)
OF_LAMBDA = "residual mixing (lambda), layer by layer"
OF_INFLUENCE = (
    "the share of each token in the influence on the prediction of the next token, on a logarithmic scale, beside what "
    "some rollouts predict with residual mixing of the whole prompt; the table `profile` has all of them. Diamonds are "
    "what replacing a token changes, where that was measured, with the same mean in the middle half."
)
OF_ATTENTION = (
    "the mean attention weight on the token at each distance, one line per layer; the weight that tokens give to "
    "themselves is not drawn, and the right end is noisy, since few tokens have others so far behind them. There a "
    "weight that rises is a sink: the first token. Uniform attention, which gives all earlier tokens the same weight, "
    "also falls with distance, because only late tokens have others far behind them. So a fall like that is no sign of "
    "recency. Where fewer lines are seen than the legend names, some lie on each other."
)
OF_ENDS = (
    "Numbers in the legend are what an end has over the middle half, which is grey, with their intervals; these are "
    "geometric means, which curves of means need not show. "
)
CAPTION_OF_QUESTIONS = (
    "the probability of the answer to each built-in question (grey), and its geometric mean (green), by the place of "
    "the document that holds the answer; numbers are those of the ends over the middle"
)
CAPTION_OF_RECALL = (
    "how well the model finds a passage that is repeated after a context of random words, by its place there; black "
    "lines are means of the first eighth, the middle half and the last eighth"
)
OF_RECALL = (
    "- **Recall**: the model reads contexts of {material}. The words of a context are different, and are of the "
    "{words} most frequent ones of this text that are one token each. {cue} of them that stand side by side come "
    "again; the word that followed them is the right one. *Accuracy* is how often it is the most probable of the "
    "{words} words. Places are compared by its probability, less the *prior*, which is its probability after {cue} "
    "words that are not in the context. The *first eighth*, the *middle half* and the *last eighth* are those of all "
    "places where a passage can begin; their means over all contexts are divided, since what is left of a "
    "probability may be 0 or less, which has no geometric mean. Influence and replacement ask what changes a "
    "prediction, and recall asks whether it is right.\n"
)
IN_THE_LAST_COLUMN = """
The last column takes lambda from the gradient that it is compared with, so it predicts nothing. It shows whether \
attention's share of the gradient, in place of that of the residual stream, brings rollouts nearer.
"""
COPIES = """
## Is this bias strong?

An untrained model has position bias, too. The residual connection passes every token on to itself, which gives the last
token many times the influence of others, and a causal mask gives the first tokens more than later ones. So compare this
model with untrained copies of it, which have the same shape and random weights. This command measures three beside it;
each takes as long as the model itself, and a page divides what a token weighs in the model by what it weighs in them:

```bash
position-card MODEL --untrained 3
```
"""


def page(
    measurements: Measurements,
    lengths: Mapping[int, CardPart],
    parts: Mapping[str, CardPart],
    question: str,
    answers: str,
) -> str:
    """Return the page of a card, above all about the longest of the lengths that were measured.

    It begins with the `question` where documents belong, and its answer; `answers` are the numbers behind that.
    `lengths` has the part of each length (`profiles.influence_part`), and `parts` those of replacement and recall, by
    their names in `profiles`.
    """
    facts = measurements.facts
    longest = measurements.lengths[max(measurements.lengths)]
    part = lengths[longest.n]
    replacement, recall_part = parts.get(REPLACEMENT), parts.get(RECALL)
    before = facts["before"]
    first = f"{code(before[0])}, which the tokenizer adds" if before else "the first of a window of the text"
    on_recall = of_recall = ""
    if recall_part and (recall := measurements.recall):
        on_recall = sentences.on_recall(recall_part, recall.words)
        of_recall = OF_RECALL.format(material=sentences.recall_material(recall.n), words=recall.words, cue=recall.cue)
    backward = "backward" in set(part.values["estimator"].unique())
    present_variants = set(part.values["variant"].unique())
    uniform, by_frequency = measurements.losses_without_context(longest.n)
    findings = [
        on_recall,
        sentences.on_replacement(replacement, facts["text"]) if replacement else "",
        sentences.on_influence(part, first),
        sentences.on_rollouts(part),
        sentences.on_mixing(part),
        sentences.on_no_token(part),
    ]
    chance = sentences.on_chance(part, uniform, by_frequency)
    return TEMPLATE.read_text(encoding="utf-8").format(
        title=f"{facts['name']} on {facts['text']}",
        alt=_alt(facts, bool(answers), recall_part is not None),
        drawn=_prompts_phrase(longest.n, longest.prompts, facts),
        caption=_caption(part, bool(answers), recall_part is not None),
        question=question,
        answers=answers,
        headline=f"{chance}\n\n" if chance else "",
        findings="" if chance else "\n\n".join(filter(None, findings)) + "\n\n",
        by_length=_by_length(lengths, facts),
        trend_from=sentences.TREND_FROM,
        of_gradients=OF_GRADIENTS if backward else "",
        target=facts["target"],
        vocabulary=facts["model"]["vocabulary"],
        uniform=uniform,
        entropy=by_frequency,
        of_replacement=OF_REPLACEMENT if replacement else "",
        of_recall=of_recall,
        kinds="\n".join(f"  - {meaning}." for variant, meaning in KINDS.items() if variant in present_variants),
        percent=PERCENT * part.level,
        same=sentences.EQUAL_DISTANCE,
        rollouts=_rollouts(part, replacement),
        kernels=(IN_THE_LAST_COLUMN if backward else "") + _kernels(longest),
        copies=COPIES if facts["model"]["untrained"] is None else "",
        made_of=table(("what", "value"), _made_of(measurements)),
    )


def comparison_caption(level: float) -> str:
    """Return what the figure of several cards shows, with the kind of its intervals."""
    return (
        f"Left: {OF_LAMBDA}. Middle: {OF_INFLUENCE} Dots mark the first and the last token; numbers beside them are "
        "what they have over the middle half (grey, with a black line at its mean), as geometric means over documents, "
        "which a curve of means need not show. Right: "
        f"{OF_ATTENTION} {_of_intervals(level)}"
    )


def _alt(facts: Mapping[str, Any], questions: bool, recall: bool) -> str:
    panels = ["answers"] * questions + ["recall"] * recall + ["influence", "residual mixing", "attention"]
    text = enumeration(panels)
    return f"{text[0].upper()}{text[1:]} of {facts['name']} on {facts['text']}"


def _caption(part: CardPart, questions: bool, recall: bool) -> str:
    """Return what the figure of a card shows, from its top, with the kind of its intervals."""
    answers = [CAPTION_OF_QUESTIONS] * questions + [CAPTION_OF_RECALL] * recall
    places = ("Top left", "Top right") if len(answers) > 1 else ("Top",)
    top = "".join(f"{place}: {answer}. " for place, answer in zip(places, answers, strict=False))
    loss = "; right: losses of tokens by position, given all tokens before them" if LOSS in part.tables else ""
    return (
        f"{top}{'Below' if answers else 'Top'}: {OF_INFLUENCE} {OF_ENDS}Last row, left: "
        f"{OF_LAMBDA}{loss}; beside lambda: {OF_ATTENTION} {_of_intervals(part.level)}"
    )


def _of_intervals(level: float) -> str:
    return (
        f"Bands and bars are {PERCENT * level:g} % bootstrap intervals over documents of this text, and over prompts "
        f"where these are of fewer than {LEAST} documents."
    )


def code(token: str) -> str:
    """Return a token as Markdown shows it whole: HTML would swallow `<s>`."""
    return f"`` {token} ``" if "`" in token else f"`{token}`"


def _by_length(lengths: Mapping[int, CardPart], facts: Mapping[str, Any]) -> str:
    """Return a table of the numbers that the sentences have, with a row for each length."""
    rows = []
    for n, part in lengths.items():
        ends = (part.interval(INFLUENCE, end) for end in ENDS)
        loss, mean = part.interval(LOSS, "mean"), f"{sentences.mixings(part).mean():.3g}"
        close, span = sentences.closest(part)
        names = enumeration([sentences.NAMES[name].removeprefix("the ") for name in close])
        rows.append((n, part.prompts, facts["prompts"][str(n)]["documents"], loss, mean, *ends, f"{names} ({span})"))
    ratios = ("influence, first / middle", "influence, last / middle")
    return table(
        ("tokens", "prompts", "of documents", "loss, nats a token", "lambda, mean of layers", *ratios, "closest"), rows
    )


def _rollouts(part: CardPart, replacement: CardPart | None) -> str:
    """Return a table of measured influence, replacement, rollouts and baselines, with a column of W for each lambda."""
    intervals = part.intervals | (replacement.intervals if replacement else {})
    present_estimators = set(part.values["estimator"].unique())
    estimators = [name for name in MIXINGS if name in present_estimators]

    def cell(estimator: str, variant: str, statistic: str) -> str:
        interval = intervals.get((estimator, variant, statistic))
        return "" if interval is None or math.isnan(interval.value) else str(interval)

    rows = []
    for variant, label in {INFLUENCE: "measured influence", REPLACEMENT: "replacement", **sentences.NAMES}.items():
        for estimator in (SAME_FOR_EVERY_ESTIMATOR, estimators[0]):
            if (estimator, variant, ENDS[0]) in intervals:
                cells = [cell(estimator, variant, statistic) for statistic in ("wasserstein", *ENDS)]
                rows.append((label, *cells, *(cell(name, variant, "wasserstein") for name in estimators[1:])))
    columns = [f"W, {MIXINGS[name]}" for name in estimators[1:]]
    return table(("", f"W, {MIXINGS[estimators[0]]}", *ENDS, *columns), rows)


def _kernels(measurement: Measurement) -> str:
    """Return how much of the mean logits by distance the mean query and key explain, where both are known."""
    if set(measurement.kernels) != {"toeplitz", "rotary"}:
        return ""
    pairs = zip(measurement.kernels["toeplitz"], measurement.kernels["rotary"], measurement.windows, strict=True)
    shares = np.concatenate([agreement(kernel, prediction, window) for kernel, prediction, window in pairs])
    shares = shares[np.isfinite(shares)]
    if not len(shares):
        return ""
    low, middle, high = np.quantile(shares, (0.25, 0.5, 0.75))
    explained = f"{PERCENT * middle:.0f} %" if middle > 0 else "nothing"
    return (
        "\nDo rotary positions alone explain how the mean logit changes with distance? In the median of "
        f"{number_of(len(shares), 'head')} they explain {explained} of its variance over distances, by turning the "
        f"mean query and the mean key (R^2 = {middle:.2g}; half of the heads lie between {low:.2g} and {high:.2g}; "
        "below 0, a constant would do better).\n"
    )


def _made_of(measurements: Measurements) -> Iterator[tuple[str, str]]:
    facts = measurements.facts
    model, read, versions = facts["model"], facts["read"], facts["versions"]
    yield "model", facts["sources"]["model"]
    documents = number_of(read["documents"], "document")
    yield "text", f"{facts['sources']['text']}, {documents}, sha256 {read['sha256'][:12]}"
    if model["untrained"] is not None:
        spread = ", with the library's spread, since a GGUF file does not say its own" if model["weights"] else ""
        yield "weights", f"random, not trained, drawn by seed {model['untrained']}{spread}"
    elif model["weights"]:
        yield "weights", model["weights"]
    yield (
        "architecture",
        f"{model['type']}: {number_of(model['layers'], 'layer')} of {number_of(model['heads'], 'head')}, "
        f"{model['parameters']:,} parameters",
    )
    yield "lengths", "; ".join(_lengths(measurements))
    yield (
        "prompts",
        "each is a window of one document; a document is cut into windows from its start, and what is left at its end "
        "is not used. They are drawn at random from all windows of the text, none twice. Intervals resample documents, "
        f"each with all of its prompts; of fewer than {LEAST} documents, they take prompts as independent",
    )
    if recall := measurements.recall:
        material = sentences.recall_material(recall.n)
        yield "recall", f"{number_of(recall.contexts, 'context')} of {material}; cues of {recall.cue}"
    for measure, reason in facts["left out"].items():
        yield measure, f"not measured: {reason}"
    if note := facts.get("tokenizer"):
        yield "tokenizer", note
    before = facts["before"]
    yield (
        "special tokens",
        f"each prompt begins with {' '.join(map(code, before))}, as the tokenizer puts it"
        if before
        else "none: the tokenizer puts no token before a text",
    )
    held = [
        f"{count} of {measurements.lengths[int(n)].prompts} prompts of {n} tokens hold {code(token)}"
        for n, prompts in facts["prompts"].items()
        for token, count in prompts.get("special", {}).items()
    ]
    if held:
        yield "special tokens in the text", "; ".join(held)
    windows = {window for window in measurements.lengths[max(measurements.lengths)].windows if window is not None}
    latest = " or ".join(map(str, sorted(windows)))
    yield "attention reads", f"the latest {latest} tokens in some layers" if windows else "all earlier tokens"
    memory = "memory not estimated" if facts["bytes"] is None else f"{facts['bytes'] / 1e9:.1f} GB of memory estimated"
    widened = "".join(f", {measure} in float32" for measure in facts.get("in float32", ()))
    yield "computed", f"in {facts['precision']} on {facts['device']}{widened}, {memory}"
    yield "versions", ", ".join(f"{name} {versions[name]}" for name in ("python", "torch", "transformers"))


def _lengths(measurements: Measurements) -> Iterator[str]:
    """Yield what was measured of each length, and why a length that was asked for was not."""
    facts = measurements.facts
    for n, measurement in measurements.lengths.items():
        yield _prompts_phrase(n, measurement.prompts, facts)
    for n in facts["asked"]:
        limit = facts["longest"]
        if limit is not None and n > limit:
            shortage = "" if limit in measurements.lengths else ", of which the text has too few"
            yield f"not {n}, since the model takes {limit}{shortage}"
        elif n not in measurements.lengths:
            yield f"not {n}, since the text has too few prompts of it"


def _prompts_phrase(n: int, prompts: int, facts: Mapping[str, Any]) -> str:
    documents = facts["prompts"][str(n)]["documents"]
    return f"{number_of(prompts, 'prompt')} of {n} tokens of {number_of(documents, 'document')}"


def table(header: Sequence[str], rows: Any) -> str:
    """Return a table in Markdown; a bar within a cell, as in the names of some tokens, is no border."""
    lines = [[str(cell).replace("|", r"\|") for cell in line] for line in (header, ["---"] * len(header), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
