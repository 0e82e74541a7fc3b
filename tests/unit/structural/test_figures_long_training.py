"""The figure of a longer training shows every number of its tables, and makes two seeds and four steps out."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from position_bias.drawing import style
from position_bias.structural.figures_long_training import DISTANCES, SHAPES, long_training
from tests.unit.drawing_checks import assert_drawn, assert_legible

N, LAYERS, HEADS, STEPS, SEEDS = 24, 3, 2, (0, 30, 100, 3000), (0, 1)
LABELS = {"model": "bloom", "dataset": "prose", "n": N, "prompts": 7}


def by_checkpoint(made):
    """One table of what `made` returns for every checkpoint, with its labels."""
    rng = np.random.default_rng(0)
    parts = [
        made(rng, seed, step).assign(checkpoint=f"seed{seed}/step{step}", **LABELS) for seed in SEEDS for step in STEPS
    ]
    return pd.concat(parts, ignore_index=True)


def interval(values):
    return {"value": values, "low": 0.8 * values, "high": 1.2 * values}


def profiles(rng, seed, step):
    def of(variant, estimator):
        values = rng.uniform(0.5, 1.5, N) / N
        return pd.DataFrame({"variant": variant, "estimator": estimator, "position": np.arange(N), **interval(values)})

    return pd.concat([of("d", "none"), of("b", "frobenius"), of("b", "token"), of("a", "none")])


def statistics(rng, seed, step):
    names = list({**SHAPES, **DISTANCES})
    values = rng.uniform(0.5, 2, len(names))
    table = pd.DataFrame(names, columns=["variant", "statistic"]).assign(**interval(values))
    once = table["variant"].isin(["a", "half", "d"])
    of_lambda = [table[~once].assign(estimator=name) for name in ("frobenius", "token")]
    return pd.concat([table[once].assign(estimator="none"), *of_lambda])


def mixing(rng, seed, step):
    quantities = np.repeat(["frobenius", "token"], LAYERS)
    values = rng.uniform(0.1, 0.3, 2 * LAYERS)
    return pd.DataFrame({"quantity": quantities, "layer": np.tile(range(LAYERS), 2), "value": values})


def content(rng, seed, step):
    layer, head = (part.ravel() for part in np.indices((LAYERS, HEADS)))
    parts = [
        pd.DataFrame({"quantity": name, "layer": layer, "head": head, "value": rng.normal(0, 1, LAYERS * HEADS)})
        for name in ("diagonal", "below")
    ]
    return pd.concat(parts)


def losses():
    rows = product(SEEDS, STEPS, ("train", "test"))
    table = pd.DataFrame(rows, columns=["seed", "step", "split"])
    return table.assign(loss=6 - table["step"] / 1000 + table["seed"] / 10)


@pytest.fixture(scope="module")
def tables():
    made = {of.__name__: by_checkpoint(of) for of in (profiles, statistics, mixing, content)}
    return SimpleNamespace(**made, losses=losses())


@pytest.fixture
def figure(tables):
    with style.figure_style():
        yield long_training(**vars(tables))


def test_every_checkpoint_has_its_influence_its_prediction_its_mixing_and_its_content(figure, tables):
    influence, mixed, logits, *_ = figure.axes
    shown = tables.profiles[tables.profiles["estimator"] != "token"].query("variant in ['b', 'd']")
    of_first_seed = shown[(shown["variant"] == "d") & shown["checkpoint"].str.startswith("seed0/")]
    assert_drawn(influence, shown["value"], of_first_seed[["low", "high"]])
    assert_drawn(mixed, tables.mixing.query("quantity == 'frobenius'")["value"])
    wide = tables.content.pivot(index=["checkpoint", "layer", "head"], columns="quantity", values="value")
    shift = wide["diagonal"] - wide["below"]
    of_heads = [shift[f"seed0/step{step}"] for step in STEPS]
    assert_drawn(logits, shift.groupby(["checkpoint", "layer"]).mean(), *of_heads)


def test_statistics_and_losses_stand_at_their_steps_with_intervals_of_the_first_seed(figure, tables):
    *_, ratios, distances, loss = figure.axes
    shown = tables.statistics[tables.statistics["estimator"] != "token"]
    for axes, looks in ((ratios, SHAPES), (distances, DISTANCES)):
        of_panel = shown[[key in looks for key in zip(shown["variant"], shown["statistic"], strict=True)]]
        of_first_seed = of_panel[of_panel["checkpoint"].str.startswith("seed0/")]
        assert_drawn(axes, of_panel["value"], of_first_seed[["low", "high"]])
    assert_drawn(loss, [6 - step / 1000 + seed / 10 for step in STEPS for seed in SEEDS])


def test_it_can_be_read_with_one_seed_and_with_two(tables, figure):
    several = {name: table for name, table in vars(tables).items() if name != "losses"}
    one = {name: table[table["checkpoint"].str.startswith("seed0/")] for name, table in several.items()}
    assert_legible(long_training(**one, losses=tables.losses))
    assert_legible(figure)
