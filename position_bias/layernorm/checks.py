"""These checks judge what Kim et al. 2026 claim of norms and recency, and what we add, on random and trained networks.

Networks of one seed share data and initial weights, so they are compared by seed: intervals are Student's over seeds,
unless a function says otherwise. A seed that diverged is left out of what it would be compared in; where a table lacks
a network, its claims cannot be tested. A position is the mean relative position of what a head attends to: 0 is the
first earlier token, 1 the last, 1/2 uniform attention. Recency is as in `position_bias.recency`.

Predictions and margins were fixed before the runs that they judge; those of claims that we add, after trial runs.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from position_bias.emergence import gaps
from position_bias.layernorm.pretrained import OF_HUB, UNTRAINED
from position_bias.layernorm.settings import NETWORKS
from position_bias.verdicts.verdict import Prediction, mean_row, table

WITHOUT = "none"
NORMED = tuple(name for name in NETWORKS if name != WITHOUT)
STUDIES = {WITHOUT: "residual", "pre": "pre-norm", "post": "post-norm"}  # norm -> study of retrieval networks

MIDDLE = 0.5  # of positions
NEGLIGIBLE = 0.005  # of a position
LATER, EARLIER = Prediction(">", MIDDLE, NEGLIGIBLE), Prediction("<", MIDDLE, NEGLIGIBLE)
UNIFORM = Prediction("=", MIDDLE, 2 * NEGLIGIBLE)
FURTHER = Prediction(">", 0, NEGLIGIBLE)  # of a position than another
SAME_POSITION = Prediction("=", 0, 2 * NEGLIGIBLE)
LEARNS = Prediction(">", 0, 0.05)  # nats

RECENT, PRIMARY = Prediction(">", 0, 0.01), Prediction("<", 0, 0.01)  # of a Gram's recency
NO_RECENCY = Prediction("<", 0.01)
FLAT = Prediction("=", 0, 0.02)  # of the same, over the mean size of what it is the recency of
BALANCED = Prediction("=", 0, 0.05)  # of a mean over heads
HALF = Prediction("=", 0.5, 0.2)  # of a share of heads, whose signs are as random as those of tosses

MORE = Prediction(">", 0, 0.01)  # of a gap of accuracies
FAVOURS_LAST = Prediction("<", 0, 0.01)

THEOREM = "theorem on layer 2"
ABSTRACT = "abstract: LayerNorm induces recency"
EARLY = "abstract: causal attention alone favours early tokens"
SETTLES = "what would settle it: the preference disappears without LayerNorm"
REVIEW = "the paper as its review page reports it: without residuals recency disappears; the margin is our addition"
SIGNS = "our addition: random queries and keys give heads scores of random sign"


def checks(
    random: pd.DataFrame,
    trained: pd.DataFrame,
    models: pd.DataFrame,
    curves: pd.DataFrame,
    scale: str,
    level: float,
) -> pd.DataFrame:
    """Return verdicts in the schema of `verdict.COLUMNS`.

    `random` is the table of `simulation.random_weights`, `trained` joins those of `layernorm.training.train`, `models`
    those of `pretrained.recency_table`; `curves` are those of `emergence.gaps`, of causal retrieval networks without
    positional encoding.
    """
    rows = [
        *_random_weights(random, level),
        *_trained(trained, level),
        *_language_models(models, level),
        *_retrieval(curves, level),
    ]
    return table("layernorm", scale, rows)


def _groups(table: pd.DataFrame, *keys: str) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Rows by what they have in the columns `keys`, in order of appearance."""
    yield from table.groupby(list(keys) if len(keys) > 1 else keys[0], sort=False)


# Random weights


def _random_weights(table: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Norms point the Gram towards recent tokens; heads with random weights make nothing of it.

    Heads are judged over all layers from the second on, by the mean of each seed.
    """
    item = "Random weights"
    deep = table[table["layer"] > 1]
    for (norm, residual), of_network in _groups(deep, "norm", "residual"):
        setting = f"{norm}, residual {residual:g}"
        for layer, of_layer in _groups(of_network, "layer"):
            gram = _by_seed(of_layer, "gram")
            relative = " over its mean size" if norm == WITHOUT else ""
            for claim, prediction, source in _of_gram(norm, residual, layer):
                quantity = f"recency of the Gram{relative}, layer {layer}; {setting}"
                yield mean_row(claim, item, quantity, prediction, gram, level, source)
        where = f"layers from 2 on; {setting}"
        score, position = _by_seed(of_network, "score"), _by_seed(of_network, "position")
        positive = _by_seed(of_network.assign(value=(of_network["value"] > 0).astype(float)), "score")
        of_heads = (
            ("relative recency of scores, mean over heads", BALANCED, score),
            ("share of heads whose scores favour recent tokens", HALF, positive),
            ("position, mean over heads", UNIFORM, position),
        )
        for name, prediction, values in of_heads:
            yield mean_row("", item, f"{name}, {where}", prediction, values, level, SIGNS)


def _of_gram(norm: str, residual: float, layer: int) -> Iterator[tuple[str, Prediction, str]]:
    """What is predicted of a layer's Gram, of which claim that speaks, and who predicts it."""
    if norm == WITHOUT:
        if layer > 2:
            yield "layernorm-random-primacy", PRIMARY, EARLY
        else:
            yield "", FLAT, "our addition: <o_i, o_j> is the same for all j < i"
    elif residual:
        yield "layernorm-random-recency", RECENT, THEOREM if layer == 2 else ABSTRACT
    else:
        yield "", RECENT, "our addition: norms need no residual connections for it"
        yield "layernorm-residuals", NO_RECENCY, REVIEW


def _by_seed(table: pd.DataFrame, quantity: str) -> pd.Series:
    return table[table["quantity"] == quantity].groupby("seed")["value"].mean()


# Trained decoders


def _trained(table: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """What would settle the claim: decoders trained with and without norms on sequences whose order says nothing.

    A layer's position is the mean over its heads.
    """
    item = "Trained decoders"
    before = _by_network(table, "position", "untrained")
    after = _by_network(table, "position", "trained")
    grams = _by_network(table, "gram", "trained")
    losses = [_by_network(table, "loss", state)[0] for state in ("untrained", "trained")]
    for norm in NETWORKS:
        source = "our addition: where nothing is learnt, nothing is settled; the margin is our addition"
        gain = losses[0][norm] - losses[1][norm]
        yield mean_row("", item, f"loss, untrained - trained; {norm}", LEARNS, gain, level, source)
        everywhere = pd.concat([of_layer[norm] for of_layer in before.values()], axis=1).mean(axis=1)
        yield mean_row("", item, f"position, mean over layers, untrained; {norm}", UNIFORM, everywhere, level, SIGNS)
        source = "our addition: embeddings without positions leave layer 1 nothing to see"
        yield mean_row("", item, f"position, layer 1; {norm}", UNIFORM, after[1][norm], level, source)
    for layer in (layer for layer in after if layer > 1):
        yield from _positions(item, layer, before[layer], after[layer], level)
        for norm in NORMED:
            source = THEOREM if layer == 2 else ABSTRACT
            quantity = f"relative recency of the Gram, layer {layer}; {norm}"
            yield mean_row("layernorm-trained-gram", item, quantity, RECENT, grams[layer][norm], level, source)


def _positions(
    item: str, layer: int, before: pd.DataFrame, after: pd.DataFrame, level: float
) -> Iterator[dict[str, object]]:
    """Positions in one layer, before and after training."""
    name = f"position, layer {layer}"
    without, settled = after[WITHOUT], "layernorm-settled"
    source = f"{SETTLES}; the margin is our addition"
    yield mean_row(settled, item, f"{name}; {WITHOUT}", UNIFORM, without, level, source)
    yield mean_row("layernorm-trained-primacy", item, f"{name}; {WITHOUT}", EARLIER, without, level, EARLY)
    for norm in NORMED:
        yield mean_row("layernorm-trained", item, f"{name}; {norm}", LATER, after[norm], level, ABSTRACT)
        yield mean_row(settled, item, f"{name}, {norm} - {WITHOUT}", FURTHER, after[norm] - without, level, SETTLES)
        source, gain = "our addition: training turns the Gram's recency into attention", after[norm] - before[norm]
        yield mean_row("", item, f"{name}, trained - untrained; {norm}", FURTHER, gain, level, source)
    source = "our addition: LayerNorm is RMSNorm but for one of d directions"
    difference = after["pre-layer"] - after["pre-rms"]
    yield mean_row("", item, f"{name}, pre-layer - pre-rms", SAME_POSITION, difference, level, source)


def _by_network(table: pd.DataFrame, quantity: str, state: str) -> dict[int, pd.DataFrame]:
    """Means over heads, by layer: seeds down, networks across."""
    chosen = table[(table["quantity"] == quantity) & (table["state"] == state)]
    return {
        layer: of_layer.pivot_table(index="seed", columns="norm", values="value").reindex(columns=list(NETWORKS))
        for layer, of_layer in _groups(chosen, "layer")
    }


# Language models


def _language_models(table: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Recency of the cosines between inputs of attention, mean over layers from the second on.

    Intervals are over prompts, each with its mean over the seeds of a model, so they say nothing of other seeds.
    """
    source = f"{ABSTRACT}; but positions, such as ALiBi, favour recent keys, too: not of LayerNorm alone"
    for model, of_model in _groups(table[table["layer"] > 1], "model"):
        states = {*of_model["state"]}
        if states != {OF_HUB}:
            states.add(UNTRAINED)  # of a model trained here
        for state in sorted(states):
            by_prompt = of_model[of_model["state"] == state].groupby("prompt")["value"].mean()
            quantity = f"recency of the Gram, mean over layers from 2 on; {model}, {state}"
            yield mean_row("layernorm-language-models", "Language models", quantity, RECENT, by_prompt, level, source)


# Retrieval networks


def _retrieval(curves: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Gaps of accuracy after training; above 0 where the earlier of two equal items is preferred."""
    item = "Retrieval networks"
    trained = gaps.final_gaps(curves)
    normed = trained[trained["study"].isin([STUDIES["pre"], STUDIES["post"]])]
    for (vocabulary, depth), _ in _groups(normed, "vocabulary", "depth"):
        alike = trained[(trained["vocabulary"] == vocabulary) & (trained["depth"] == depth)]
        where = f"{vocabulary}, {depth} layers"
        by_norm = {
            pair: of_pair.pivot(index="seed", columns="study", values="gap").reindex(columns=list(STUDIES.values()))
            for pair, of_pair in _groups(alike, "pair")
        }
        for norm in ("pre", "post"):
            for pair, of_pair in by_norm.items():
                less = of_pair[STUDIES[WITHOUT]] - of_pair[STUDIES[norm]]
                source = "our addition, after the abstract: LayerNorm moves the preference to recent items"
                quantity = f"{pair} gap, {WITHOUT} - {norm}; {where}"
                yield mean_row("layernorm-retrieval", item, quantity, MORE, less, level, source)
            gap = by_norm["first-last"][STUDIES[norm]]
            source = "our addition, after the abstract: with LayerNorm recent items are preferred"
            yield mean_row("", item, f"first-last gap, {norm}; {where}", FAVOURS_LAST, gap, level, source)
