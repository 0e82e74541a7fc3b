"""These checks judge what Kim et al. 2026 claim of norms and recency, and what we add, on random and trained networks.

Statistics are measured here; published/predictions.csv says what is predicted of them. Networks of one seed share data
and initial weights, so they are compared by seed: intervals are Student's over seeds, unless a function says otherwise.
A seed that diverged is left out of what it would be compared in; where a table of trained networks lacks one, its
claims cannot be tested. A position is the mean relative position of what a head attends to: 0 is the first earlier
token, 1 the last, 1/2 uniform attention. Recency is as in `position_card.measures.recency`.

Statements on theory are estimated where they are simulated (`checks_theory`), and judged here, so that an edited
prediction simulates nothing again. A formula has a number for each setting, which is computed and has no width; a claim
about a mean over sequences has Student's interval for each setting. What speaks most against a prediction is judged.

Predictions and margins were fixed before the runs that they judge; those of claims that we add, after trial runs.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from position_bias.emergence import accuracy_gaps
from position_bias.layernorm.settings import NETWORKS
from position_bias.verdicts.judge import Estimate, Statistic, judge, table, worst
from position_bias.verdicts.registry import PRETRAINED, Prediction, predictions
from position_card.core.artifacts import TensorFile

AT_STEP_0, OF_HUB = "untrained (step 0)", "of the hub"  # states of training of a language model
NUMBERS = ["measured", "low", "high", "n"]  # of an estimate
BOUND = ["bound", "margin"]  # of a prediction, where they depend on how much was simulated
COLUMNS = ["statistic", "setting", "network", "other", *NUMBERS, *BOUND]
RANDOM_WEIGHTS, DECODERS = "random weights", "decoders"  # before the norm, in the names of networks
NORMS = {"residual": "none", "pre-norm": "pre", "post-norm": "post"}  # study of retrieval networks -> norm


def verdicts(
    theory: pd.DataFrame,
    random: pd.DataFrame,
    trained: pd.DataFrame,
    grams: list[TensorFile],
    tests: pd.DataFrame,
    predicted: Path,
    decoders: list[str],
    scale: str,
    level: float,
) -> pd.DataFrame:
    """Return verdicts in the schema of `judge.COLUMNS`, with keys; those on `decoders` have a scale of their own.

    `theory` is the table of `checks_theory.table`, `random` that of `simulation.random_weights`, `trained` joins those
    of `training.train`, `grams` are measured Grams of language models, `tests` joins the tables of retrieval networks,
    and `predicted` is the registry of predictions. Raises InputError where nothing is predicted of a statistic.
    """
    curves = accuracy_gaps.curves(tests[tests["encoding"] == "none"])
    by_statistic, models = predictions(predicted, "layernorm"), recency_of_models(grams)
    pretrained = models["model"].isin(decoders)
    of_networks = chain(read_estimates(theory), norm_statistics(random, trained, models[~pretrained], curves))
    of_this_run = table("layernorm", scale, judge(of_networks, by_statistic, level))
    of_decoders = table("layernorm", PRETRAINED, judge(_language_models(models[pretrained]), by_statistic, level))
    return pd.concat([of_this_run, of_decoders], ignore_index=True)


def norm_statistics(
    random: pd.DataFrame, trained: pd.DataFrame, models: pd.DataFrame, curves: pd.DataFrame
) -> Iterator[Statistic]:
    """Yield what is measured of networks with weights: seeds down, norms across; of language models, documents down.

    `models` is the table of `recency_of_models`; `curves` are those of `emergence.accuracy_gaps`, of causal retrieval
    networks without positional encoding.
    """
    yield from _random_weights(random)
    yield from _trained_decoders(trained)
    yield from _language_models(models)
    yield from _retrieval(curves)


def _by_network(table: pd.DataFrame, *keys: str) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield the means over heads for every combination of `keys`: seeds down, networks across, by their norm."""
    wide = table.pivot_table(index=[*keys, "seed"], columns="norm", values="value")
    for key, group in wide.groupby(level=list(keys)):
        yield key, group.droplevel(list(keys))


def _depth(layer: int) -> str:
    """Name the layers that the theorem is about, and those that the abstract alone speaks of."""
    return "layer 2" if layer == 2 else "deeper layers"


def _random_weights(table: pd.DataFrame) -> Iterator[Statistic]:
    """Yield what networks with random weights show of recency, from a table of their layers and heads.

    Its columns are layer, quantity (gram, or score or position of a head), residual, norm, seed and value. Grams come
    layer by layer. Of heads come the mean over all layers from the second on, and the share of them whose scores favour
    recent tokens. Norms should point the Gram there, and heads make nothing of it.
    """
    deep = table[table["layer"] > 1]
    is_gram = deep["quantity"] == "gram"
    for (residual, layer), gram in _by_network(deep[is_gram], "residual", "layer"):
        name = f"Gram of {_depth(layer)}, random weights, {'residuals' if residual else 'no residuals'}"
        yield Statistic(name, gram, {"layer": layer, "residual": f"{residual:g}"}, networks_behind=RANDOM_WEIGHTS)
    scores = deep[deep["quantity"] == "score"]
    signs = scores.assign(quantity="share of scores above 0", value=(scores["value"] > 0).astype(float))
    for (residual, quantity), of_heads in _by_network(pd.concat([deep[~is_gram], signs]), "residual", "quantity"):
        yield Statistic(
            f"{quantity}, random weights", of_heads, {"residual": f"{residual:g}"}, networks_behind=RANDOM_WEIGHTS
        )


def _trained_decoders(table: pd.DataFrame) -> Iterator[Statistic]:
    """What would settle the claim: decoders trained with and without norms on sequences whose order says nothing.

    A layer's position is the mean over its heads. What is learnt is the loss before training less that after it, and
    the position after training less that before it.
    """
    of_layers = {
        key: by_norm.reindex(columns=list(NETWORKS))
        for key, by_norm in _by_network(table, "quantity", "state", "layer")
    }
    at_start, at_end = (
        {layer: by_norm for (*key, layer), by_norm in of_layers.items() if key == ["position", state]}
        for state in ("untrained", "trained")
    )
    yield Statistic(
        "loss learnt", of_layers["loss", "untrained", 0] - of_layers["loss", "trained", 0], networks_behind=DECODERS
    )
    yield Statistic(
        "position before training", pd.concat(at_start.values()).groupby("seed").mean(), networks_behind=DECODERS
    )
    yield Statistic("position in layer 1", at_end[1], networks_behind=DECODERS)
    for layer in (layer for layer in at_end if layer > 1):
        setting = {"layer": layer}
        yield Statistic("position", at_end[layer], setting, networks_behind=DECODERS)
        yield Statistic("position learnt", at_end[layer] - at_start[layer], setting, networks_behind=DECODERS)
        yield Statistic(
            f"Gram of {_depth(layer)}, trained", of_layers["gram", "trained", layer], setting, networks_behind=DECODERS
        )


def _language_models(table: pd.DataFrame) -> Iterator[Statistic]:
    """Recency of the cosines between inputs of attention, mean over layers from the second on.

    Units are documents, each with its mean over prompts and over the seeds of a model, so intervals say nothing of
    other seeds. A model that was trained here has a start, too, which cannot be tested where it was not kept.
    """
    for model, of_model in table[table["layer"] > 1].groupby("model", sort=False):
        states = {*of_model["state"]}
        for state in sorted(states if states == {OF_HUB} else states | {AT_STEP_0}):
            by_document = of_model[of_model["state"] == state].groupby("document")["value"].mean()
            yield Statistic("Gram of a model", by_document.to_frame("model"), {"model": model, "state": state})


def _retrieval(curves: pd.DataFrame) -> Iterator[Statistic]:
    """Gaps of accuracy after training, above 0 where the earlier of two equal items is preferred.

    Networks with and without norms are compared where their vocabulary and depth are alike.
    """
    alike = ["vocabulary", "depth", "pair"]
    wide = accuracy_gaps.final_gaps(curves).pivot(index=[*alike, "seed"], columns="study", values="gap")
    by_norm = wide.rename(columns=NORMS).reindex(columns=list(NORMS.values()))
    for (vocabulary, depth, pair), gap in by_norm.groupby(level=alike):
        if gap[["pre", "post"]].notna().any(axis=None):
            of_columns = {norm: [f"{vocabulary}/{study}/causal/none/depth{depth}"] for study, norm in NORMS.items()}
            setting = {"vocabulary": vocabulary, "depth": depth}
            yield Statistic(f"{pair} gap", gap.droplevel([0, 1, 2]), setting, networks_behind=of_columns)


# Language models, as a table


def recency_of_models(grams: Iterable[TensorFile]) -> pd.DataFrame:
    """Return recency of every measured Gram, one row per number.

    Columns model, seed, state (of training), document, prompt, layer (from 1), value.
    """
    tables = []
    for gram in grams:
        seed, state = _seed_and_state(gram.labels["checkpoint"])
        tensors = gram.read("recency", "documents")
        prompts, layers = tensors["recency"].shape
        columns = {
            "model": gram.labels["model"],
            "seed": seed,
            "state": state,
            "document": np.repeat(tensors["documents"], layers),
            "prompt": np.repeat(np.arange(prompts), layers),
            "layer": np.tile(np.arange(1, layers + 1), prompts),
            "value": tensors["recency"].ravel().astype(float),
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _seed_and_state(checkpoint: str) -> tuple[str, str]:
    """Return the seed of a checkpoint such as seed0/step300, and in words how far it is trained.

    That of the hub has `hub` as its seed. Raises ValueError for another name.
    """
    if checkpoint == "hub":
        return checkpoint, OF_HUB
    seed, step = re.findall(r"\d+", checkpoint)
    return seed, f"trained (step {step})" if int(step) else AT_STEP_0


# Estimates of statements on theory, and their table


def over_settings(
    name: str, setting: Mapping[str, object], networks: Mapping[Any, Sequence[Estimate]], **numbers: float
) -> Statistic:
    """Return a statistic of estimates of networks, or of one less another (network, other), one for each setting.

    `numbers` are the bound and margin that belong to this much sampling.
    """
    columns = {network: pd.DataFrame(estimates)[NUMBERS].stack() for network, estimates in networks.items()}
    return Statistic(name, pd.DataFrame(columns), setting, least_favourable, numbers=numbers)


def least_favourable(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """Return the estimate that speaks most against the prediction (`judge.worst`); it keeps its interval.

    The units of `values` are settings, each with NUMBERS. Raises ValueError where a number is not finite: as a row
    without verdict it would not be missed among others.
    """
    value = worst(values.xs("measured", level=1), prediction, level).measured
    estimates = values.unstack()
    estimate = estimates[estimates["measured"] == value].iloc[0]
    return Estimate(value, float(estimate["low"]), float(estimate["high"]), int(estimate["n"]))


def tabulate(statistics: Iterable[Statistic]) -> pd.DataFrame:
    """Return a row for each estimate of each network, in COLUMNS."""
    frames = []
    for statistic in statistics:
        for network, values in statistic.table.items():
            label, other = network if isinstance(network, tuple) else (network, "")
            setting = json.dumps(statistic.setting)
            labels = {"statistic": statistic.name, "setting": setting, "network": label, "other": other}
            numbers = {name: statistic.numbers.get(name, float("nan")) for name in BOUND}
            frames.append(values.unstack()[NUMBERS].assign(**labels, **numbers))
    return pd.concat(frames, ignore_index=True)[COLUMNS]


def read_estimates(table: pd.DataFrame) -> Iterator[Statistic]:
    """Yield the statistics of which `tabulate` made this table, in its order."""
    for _, rows in table.groupby(["statistic", "setting", *BOUND], sort=False, dropna=False):
        first = rows.iloc[0]
        networks = {
            network: [Estimate(*numbers) for numbers in of_network[NUMBERS].itertuples(index=False)]
            for network, of_network in rows.groupby(["network", "other"], sort=False)
        }
        numbers = {name: first[name] for name in BOUND if pd.notna(first[name])}
        yield over_settings(first["statistic"], json.loads(first["setting"]), networks, **numbers)
