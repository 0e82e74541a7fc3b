import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.drawing import looks, style
from position_bias.structural import figures

N, LAYERS, PROMPTS = 32, 5, 7
MODELS, SEEDS, DATASETS, STEPS = ("bloom", "small"), (0, 1), ("prose", "web"), (0, 3, 9)
OF_LAMBDA = ("b", "c", "measured")


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
    for model in MODELS:
        for seed in SEEDS:
            for step in STEPS:
                for dataset in DATASETS:
                    for variant in ("d", "a", "half", "uniform", *OF_LAMBDA):
                        for estimator in ("frobenius", "token") if variant in OF_LAMBDA else ("none",):
                            labels = {
                                "model": model,
                                "checkpoint": f"seed{seed}/step{step}",
                                "dataset": dataset,
                                "prompts": PROMPTS,
                            }
                            labels |= {"estimator": estimator, "variant": variant}
                            tables.append(pd.DataFrame({**labels, **curve(rng, variant)}))
    return pd.concat(tables)


@pytest.fixture
def trained(profiles):
    return profiles[profiles["checkpoint"].str.endswith("/step9")]


@pytest.fixture(autouse=True)
def styled():
    with style.figure_style():
        yield


def lines(axes):
    """Lines of data: all but the level of the uniform profile, and the marks of the first tokens."""
    return [line for line in axes.lines if len(line.get_xdata()) > 2 and line.get_linestyle() != "None"]


def colours(found):
    return [to_rgb(line.get_color()) for line in found]


def entries(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def title(figure):
    return figure.legends[0].get_title().get_text().replace("\n", " ")


def assert_within(axes, table):
    """The whole of every curve and of its band can be seen."""
    bottom, top = axes.get_ylim()
    left, right = axes.get_xlim()
    assert bottom <= table["low"].min()
    assert table["high"].max() <= top
    assert left <= 0
    assert right >= table["position"].max()


def assert_shown(axes, table):
    """Every curve of `table` is a line of the panel, position 0 the first token."""
    drawn = [line.get_ydata() for line in lines(axes)]
    for _, one in table.groupby(["model", "checkpoint", "dataset", "estimator", "variant"]):
        assert any(np.array_equal(one["value"], values) for values in drawn)
    for line in lines(axes):
        np.testing.assert_array_equal(line.get_xdata(), np.sort(table["position"].unique()))


def assert_legible(figure, folder):
    style.save(figure, folder / "figure.png")


def test_fig1_has_two_rows_a_model_and_a_panel_a_variant_with_every_seed(trained, tmp_path):
    table = trained[trained["dataset"] == "prose"]
    figure = figures.fig1(table)
    rows = np.reshape(figure.axes, (len(MODELS), 2, 4))
    assert [axes.get_title()[:3] for axes in rows[0, 0]] == ["(a)", "(b)", "(c)", "(d)"]
    for model, (linear, log) in zip(MODELS, rows, strict=True):
        assert [row[0].get_ylabel() for row in (linear, log)] == [f"{model}\nlinear", f"{model}\nlog scale"]
        of_model = table[(table["model"] == model) & table["estimator"].isin(["frobenius", "none"])]
        for row, scale in ((linear, "linear"), (log, "log")):
            for variant, axes in zip("abcd", row, strict=True):
                shown = of_model[of_model["variant"].isin([variant, "d"] if scale == "log" else [variant])]
                assert_shown(axes, shown)
                look, of_measured = looks.VARIANTS[variant].colour, looks.VARIANTS["d"].colour
                repeated = [] if variant == "d" or scale == "linear" else [of_measured] * len(SEEDS)
                assert colours(lines(axes)) == [to_rgb(colour) for colour in [*repeated, *[look] * len(SEEDS)]]
                assert len(axes.collections) == len(SEEDS)  # bands
                assert axes.get_yscale() == scale
                assert_within(
                    axes, of_model[of_model["variant"].isin(["b", "c", "d"] if scale == "log" else [variant])]
                )
        for axes in linear:
            assert axes.get_ylim()[0] == 0
        assert len({axes.get_ylim() for axes in linear}) > 1  # limits of their own, as in the paper
        assert len({axes.get_ylim() for axes in log}) == 1
    assert {axes.get_xlabel() for axes in rows[-1, -1]} == {"token position"}
    assert entries(figure) == ["measured influence (d), repeated", "uniform"]
    assert title(figure) == f"prose, {N} tokens, {PROMPTS} prompts, {len(SEEDS)} training seeds a model"
    assert_legible(figure, tmp_path)


def test_fig1_marks_the_uniform_share(trained):
    for axes in figures.fig1(trained[trained["dataset"] == "prose"]).axes:
        (level,) = (line for line in axes.lines if len(line.get_xdata()) == 2)
        assert set(level.get_ydata()) == {1 / N}
        assert (level.get_linestyle(), level.get_color()) == (":", looks.REFERENCE)


def test_the_first_seed_is_the_bold_one(trained):
    axes = figures.fig1(trained[trained["dataset"] == "prose"]).axes[3]
    first, second = lines(axes)
    assert first.get_linewidth() > second.get_linewidth()
    of_first = trained.query("model == 'bloom' and variant == 'd' and checkpoint == 'seed0/step9'")
    np.testing.assert_array_equal(first.get_ydata(), of_first.query("dataset == 'prose'")["value"])


def test_fig3_has_a_column_a_dataset_and_a_colour_a_model_linear_logarithmic_and_near_the_start(trained, tmp_path):
    figure = figures.fig3(trained)
    rows = np.reshape(figure.axes, (3, len(DATASETS)))
    assert [axes.get_title() for axes in rows[0]] == [
        f"{dataset}\n{N} tokens, {PROMPTS} prompts" for dataset in DATASETS
    ]
    for dataset, column in zip(DATASETS, rows.T, strict=True):
        measured = trained[(trained["dataset"] == dataset) & (trained["variant"] == "d")]
        first = measured[measured["position"] < figures.FIRST]
        for axes, shown in zip(column, (measured, measured, first), strict=True):
            assert len(lines(axes)) == len(MODELS) * len(SEEDS)
            assert_shown(axes, shown)
            assert_within(axes, shown)
            bloom, again, small, once_more = colours(lines(axes))
            assert bloom == again != small == once_more
        assert column[-1].get_xlabel() == "token position"
        marked = [line for line in column[-1].lines if line.get_linestyle() == "None"]
        of_first_seeds = first[first["checkpoint"] == "seed0/step9"]
        np.testing.assert_array_equal(np.ravel([line.get_ydata() for line in marked]), of_first_seeds["value"])
    assert [row[0].get_yscale() for row in rows] == ["linear", "log", "log"]
    assert entries(figure) == [*MODELS, "uniform"]
    assert_legible(figure, tmp_path)


def mixing(rng):
    return {name: rng.uniform(0.1, 0.6, (PROMPTS, LAYERS)).astype(np.float32) for name in ("frobenius", "token")}


def test_fig4_has_a_panel_a_dataset_with_both_estimators_of_every_seed(tmp_path):
    rng = np.random.default_rng(0)
    panels = {dataset: {model: [mixing(rng) for _ in SEEDS] for model in MODELS} for dataset in DATASETS}
    figure = figures.residual_mixing(panels)
    assert [axes.get_title() for axes in figure.axes] == [f"{dataset}\n{PROMPTS} prompts" for dataset in DATASETS]
    for axes, models in zip(figure.axes, panels.values(), strict=True):
        measured = [seed[name] for seeds in models.values() for seed in seeds for name in ("frobenius", "token")]
        assert len(lines(axes)) == len(measured) == 2 * len(MODELS) * len(SEEDS)
        bottom, top = axes.get_ylim()
        for line, values in zip(lines(axes), measured, strict=True):
            np.testing.assert_allclose(line.get_ydata(), values.mean(0, dtype=float))
            np.testing.assert_array_equal(line.get_xdata(), np.arange(1, LAYERS + 1))
            assert bottom < values.mean(0).min()
            assert (values.mean(0) + 2 * values.std(0, ddof=1)).max() < top
        assert [line.get_linestyle() for line in lines(axes)] == ["-", "--"] * len(MODELS) * len(SEEDS)
        assert len(axes.collections) == len(MODELS) * len(SEEDS)  # bands of the first estimator
        assert len([line for line in axes.lines if line.get_linestyle() == "None"]) == len(MODELS)  # of first seeds
        assert axes.get_yscale() == "log"
        assert axes.get_xlabel() == "layer"
        assert len(set(colours(lines(axes)))) == len(MODELS)
    assert colours(lines(figure.axes[0])) == colours(lines(figure.axes[1]))
    assert figure.axes[0].get_ylabel() == r"residual mixing $\lambda$, log scale"
    assert entries(figure) == [*MODELS, "Frobenius ± 2 sd", "per token"]
    assert_legible(figure, tmp_path)


def test_a_band_that_reaches_below_0_leaves_the_means_in_sight():
    spread = np.tile([[0.01], [0.01], [0.9]], (1, LAYERS)).astype(np.float32)
    (axes,) = figures.residual_mixing({"prose": {"bloom": [{"frobenius": spread, "token": spread}]}}).axes
    assert 0.1 < axes.get_ylim()[0] < 0.3


def test_training_has_a_panel_a_model_with_both_curves_at_every_step_of_the_first_seed(profiles, tmp_path):
    table = profiles[profiles["dataset"] == "prose"]
    figure = figures.training(table)
    assert [axes.get_title() for axes in figure.axes] == list(MODELS)
    for model, axes in zip(MODELS, figure.axes, strict=True):
        shown = table[(table["model"] == model) & table["checkpoint"].str.startswith("seed0/")]
        shown = shown[shown["estimator"].isin(["frobenius", "none"]) & shown["variant"].isin(["b", "d"])]
        assert [line.get_linestyle() for line in lines(axes)] == ["-", "--"] * len(STEPS)
        assert_shown(axes, shown)
        assert_within(axes, shown)
        lightness = [sum(colour) for colour in colours(lines(axes))]
        assert lightness == sorted(lightness, reverse=True)  # later is darker
        assert len(set(lightness)) == len(STEPS)
        assert axes.get_yscale() == "log"
        assert axes.get_xlabel() == "token position"
    assert figure.axes[0].get_ylabel() == "share of influence, log scale"
    kinds = ["measured (d)", "predicted (b)", "uniform"]
    assert entries(figure) == [*(f"step {step}" for step in STEPS), *kinds]
    assert_legible(figure, tmp_path)


def test_files_are_the_same_bytes_from_run_to_run(trained, tmp_path):
    formats = ("pdf", "svg", "png")
    for name in ("once", "again"):
        style.save(figures.fig3(trained), *(tmp_path / name / f"fig3.{suffix}" for suffix in formats))
    for suffix in formats:
        once, again = ((tmp_path / name / f"fig3.{suffix}").read_bytes() for name in ("once", "again"))
        assert once == again
        assert len(once) > 1000
