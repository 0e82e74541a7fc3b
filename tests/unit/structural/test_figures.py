from itertools import product

import numpy as np
import pandas as pd
import pytest

from position_bias.running import artifacts
from position_bias.structural import checks_theory, figures
from tests.unit.drawing_checks import assert_drawn, assert_legible, assert_saved, curves
from tests.unit.structural.conftest import file

pytestmark = pytest.mark.usefixtures("styled")

N, LAYERS, PROMPTS, DOCUMENTS = 32, 5, 1000, 1000
MODELS, SEEDS, DATASETS, STEPS = ("bloom", "small"), (0, 1), ("prose", "web", "scientific-packages"), (0, 3, 9)
OF_LAMBDA = ("b", "c", "measured")
ENDS = ["value", "low", "high"]
TOKENS, BLOOM = 10, {"model": "bloom", "checkpoint": "seed0/step9"}  # of Figure 5


def curve(rng, variant):
    """A U for most variants; (a) falls far below the others."""
    position = np.linspace(-1, 1, N)
    value = 10.0 ** -np.linspace(0, 12, N) if variant == "a" else (0.1 + position**2) * rng.uniform(0.8, 1.2, N)
    value = value / value.sum()
    return {"position": np.arange(N), "value": value, "low": 0.7 * value, "high": 1.3 * value}


@pytest.fixture(scope="module")
def profiles():
    """What the rollouts of two models with two training seeds on two data sets join to, at three steps of training."""
    rng, tables = np.random.default_rng(0), []
    variants = [(variant, "none") for variant in ("d", "a", "half", "uniform")]
    variants += product(OF_LAMBDA, ("frobenius", "token"))
    for model, seed, step, dataset, (variant, estimator) in product(MODELS, SEEDS, STEPS, DATASETS, variants):
        labels = {"model": model, "checkpoint": f"seed{seed}/step{step}", "dataset": dataset, "prompts": PROMPTS}
        labels |= {"resampled": DOCUMENTS, "estimator": estimator, "variant": variant}
        tables.append(pd.DataFrame({**labels, **curve(rng, variant)}))
    return pd.concat(tables)


@pytest.fixture
def trained(profiles):
    return profiles[profiles["checkpoint"].str.endswith("/step9")]


def drawn_of(table, *variants):
    """The rows that figures show of these variants: lambda by the paper's estimator."""
    return table[table["variant"].isin(variants) & table["estimator"].isin(["frobenius", "none"])]


def test_fig1_has_a_panel_for_each_model_and_variant_with_every_seed_and_a_linear_inset(trained):
    table = trained[trained["dataset"] == "prose"]
    figure = figures.fig1(table)
    for model, row in zip(MODELS, np.reshape(figure.axes, (len(MODELS), 4)), strict=True):
        of_model = table[table["model"] == model]
        for variant, log in zip("abcd", row, strict=True):
            shown, (linear,) = drawn_of(of_model, variant), log.child_axes
            assert_drawn(linear, shown[ENDS])
            assert_drawn(log, shown[ENDS], drawn_of(of_model, "d")["value"])
            assert len(curves(linear, points=N)) == len(SEEDS)
            assert (linear.get_yscale(), log.get_yscale()) == ("linear", "log")
    assert_legible(figure)


def test_fig3_has_a_column_for_each_dataset_with_all_tokens_and_the_first_ones(trained, tmp_path):
    figure = figures.fig3(trained)
    for dataset, column in zip(DATASETS, np.reshape(figure.axes, (2, len(DATASETS))).T, strict=True):
        measured = drawn_of(trained[trained["dataset"] == dataset], "d")
        first = measured[measured["position"] < figures.FIRST]
        log, beginning = column
        for axes, shown in ((log, measured), *((inset, measured) for inset in log.child_axes), (beginning, first)):
            assert_drawn(axes, shown[ENDS])
            assert_drawn(axes, shown["position"], along=0)
    assert_saved(figure, tmp_path)


def measured(folder, mixing):
    """Files of measurements, by data set, model and seed of the lambda in them."""
    for (dataset, model, seed), estimators in mixing.items():
        path = folder / f"{dataset}-{model}-{seed}.safetensors"
        tensors = {f"mixing/{name}": values.astype(np.float32) for name, values in estimators.items()}
        artifacts.write_tensors(path, tensors, dataset=dataset, model=model)
        yield artifacts.TensorFile(str(path))


def test_fig4_has_a_panel_a_dataset_with_both_estimators_of_every_seed(tmp_path):
    rng = np.random.default_rng(0)
    mixing = {
        key: {name: rng.uniform(0.1, 0.6, (PROMPTS, LAYERS)) for name in ("frobenius", "token")}
        for key in product(DATASETS, MODELS, SEEDS)
    }
    figure = figures.fig4(list(measured(tmp_path, mixing)))
    for axes, dataset in zip(figure.axes, DATASETS, strict=True):
        every = [each for (of_dataset, *_), each in mixing.items() if of_dataset == dataset]
        means = [values.astype(np.float32).mean(0, dtype=float) for each in every for values in each.values()]
        spreads = [each["frobenius"].astype(np.float32).astype(float) for each in every]
        bands = [values.mean(0) + side * values.std(0, ddof=1) for values in spreads for side in (-2, 2)]
        assert_drawn(axes, *means, *bands)
        assert_drawn(axes, np.arange(1, LAYERS + 1), along=0)
    assert_legible(figure)


def test_training_has_a_panel_a_model_with_both_curves_at_every_step_of_the_first_seed(profiles):
    table = profiles[profiles["dataset"] == "prose"]
    figure = figures.training(table)
    for model, axes in zip(MODELS, figure.axes, strict=True):
        shown = table[(table["model"] == model) & table["checkpoint"].str.startswith("seed0/")]
        assert_drawn(axes, drawn_of(shown, "b")["value"], drawn_of(shown, "d")[ENDS])
    assert_legible(figure)


def content(layers=4, heads=5, diagonal=0.25, base=-3.0):
    return (base + diagonal * np.eye(TOKENS) + np.zeros((layers, heads, 1, 1))).astype(np.float32)


def panels(logits):
    (part,) = figures.fig5([file(BLOOM, content=logits)]).subfigs
    return [axes for axes in part.axes if axes.images]


def test_a_panel_shows_its_own_layer_and_head_the_first_the_middle_and_the_last():
    logits = np.random.default_rng(0).normal(size=(4, 5, TOKENS, TOKENS)).astype(np.float32)
    drawn = panels(logits)
    assert [axes.get_title() for axes in drawn[:3]] == ["head 1", "head 3", "head 5"]
    chosen = [logits[layer, head] for layer in (0, 1, 3) for head in (0, 2, 4)]
    for axes, expected in zip(drawn, chosen, strict=True):
        shown = axes.images[0].get_array()
        np.testing.assert_array_equal(np.ma.getmaskarray(shown), np.triu(np.ones((TOKENS, TOKENS)), 1))
        below = np.tril_indices(TOKENS, -1)
        np.testing.assert_allclose(shown[below], expected[below] - expected[below].mean(dtype=float), atol=1e-6)
    assert len({axes.images[0].get_clim() for axes in drawn}) == 1


def test_content_that_is_constant_plus_diagonal_leaves_one_line():
    first, *_ = panels(content(diagonal=-0.25))
    np.testing.assert_allclose(np.diagonal(first.images[0].get_array()), -0.25, atol=1e-6)
    low, high = first.images[0].get_clim()
    assert low == -high
    assert first.texts[0].get_text() == "$-0.25$"


def test_a_small_and_constant_model_is_drawn_too():
    assert_legible(figures.fig5([file(BLOOM, content=content(1, 1, diagonal=0.0))]))


def test_each_force_has_a_panel_with_its_curves(tmp_path):
    table = checks_theory.forces()
    figure = figures.forces(table)
    for axes, varied in zip(figure.axes, figures.FORCES, strict=True):
        assert_drawn(axes, table.loc[table["varied"] == varied, "value"])
    assert_saved(figure, tmp_path)


def test_each_schedule_has_a_panel_with_its_curves_between_their_bounds():
    table = checks_theory.dichotomy()
    figure = figures.dichotomy(table)
    for axes, schedule in zip(figure.axes, figures.SCHEDULES, strict=True):
        shown = table[(table["schedule"] == schedule) & (table["upper"] >= figures.LEAST_SHOWN / 10)]
        assert_drawn(axes, shown[["value", "lower", "upper"]])
        assert_drawn(axes, shown["depth"], along=0)
    assert_legible(figure)
