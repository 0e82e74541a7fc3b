from itertools import product

import numpy as np
import pandas as pd
import pytest

from position_bias.running import artifacts
from position_bias.structural import figures
from tests.unit.drawing_checks import assert_drawn, assert_legible, assert_saved, curves

pytestmark = pytest.mark.usefixtures("styled")

N, LAYERS, PROMPTS, DOCUMENTS = 32, 5, 1000, 1000
MODELS, SEEDS, DATASETS, STEPS = ("bloom", "small"), (0, 1), ("prose", "web", "scientific-packages"), (0, 3, 9)
OF_LAMBDA = ("b", "c", "measured")
ENDS = ["value", "low", "high"]


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
