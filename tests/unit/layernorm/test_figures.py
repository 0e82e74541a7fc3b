from itertools import product

import numpy as np
import pandas as pd
import pytest

from position_bias.drawing import looks
from position_bias.drawing.intervals import over_seeds
from position_bias.layernorm import figures, simulation
from position_bias.layernorm.checks import UNTRAINED
from tests.unit.drawing_checks import assert_drawn, assert_legible, assert_saved, curves

pytestmark = [pytest.mark.filterwarnings("error::UserWarning"), pytest.mark.usefixtures("styled")]

SAMPLING = simulation.Sampling(tokens=14, width=16, strength=1.0, sequences=12, seed=0, level=0.95)
NORMS = ("none", "pre-layer", "pre-rms", "post-layer")


def maps(layers=2, n=12, alphas=(0, 0.4)):
    """Scores that rise with the key under a norm, and fall without; rows and maps differ in offset and scale."""
    rows, keys = np.mgrid[:n, :n]
    scale = np.arange(1, layers + 1)[:, None, None]
    rising = {"none": -1, "layer": 1}
    return {f"{norm}/{alpha:g}": 7 * rows + sign * scale * keys for norm, sign in rising.items() for alpha in alphas}


def drawn_from(rng, **columns):
    """A row for every combination, with a random value."""
    table = pd.DataFrame(product(*columns.values()), columns=list(columns))
    return table.assign(value=rng.uniform(-1, 1, len(table)))


def random_weights(seeds=3, norms=("none", "rms", "layer"), **more):
    """The Gram of each layer, and scores and positions of both of its heads."""
    rng, keys = np.random.default_rng(0), {"norm": norms, "seed": range(seeds), "layer": (1, 2, 3), **more}
    of_heads = drawn_from(rng, **keys, quantity=("score", "position"), head=(1, 2))
    return pd.concat([drawn_from(rng, **keys, quantity=("gram",), head=(0,)), of_heads], ignore_index=True)


def trained(seeds=3, norms=NORMS):
    states = ("untrained", "trained")
    losses = {"seed": range(seeds), "state": states, "layer": (0,), "head": (0,), "quantity": ("loss",)}
    losses = drawn_from(np.random.default_rng(1), norm=norms, **losses)
    return pd.concat([random_weights(seeds, norms, state=states), losses], ignore_index=True)


def of(table, **keys):
    """The rows with these values."""
    return table[np.all([table[name] == value for name, value in keys.items()], axis=0)]


def line(axes, colour, style="-", at_least=2):
    """Values of the one line of this colour and style with as many points."""
    (found,) = [values for values in curves(axes, colour, style) if len(values) >= at_least]
    return found


def test_maps_show_which_keys_of_a_row_score_higher(tmp_path):
    figure = figures.scores(maps(), alphas=(0, 0.4))
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == 2 * 2 * 2
    for axes in panels:
        image = np.ma.filled(axes.images[0].get_array(), np.nan)
        assert np.isnan(image[~np.tri(12, k=-1, dtype=bool)]).all()
        last = image[-1, :-1]
        sign = 1 if axes in panels[4:] else -1
        assert (sign * np.diff(last) > 0).all()
        assert last.sum() == pytest.approx(0)
    written = [float(axes.texts[0].get_text().removeprefix("±")) for axes in panels]
    deviations = [abs(key - (row - 1) / 2) for row in range(1, 12) for key in range(row)]
    scale = np.quantile(deviations, figures.SHARE_WITHIN)
    assert written == pytest.approx([scale, 2 * scale] * 4, rel=0.2)  # one digit is written
    assert_saved(figure, tmp_path)


def test_the_closed_form_is_a_line_over_points_of_every_norm_and_residual():
    table = simulation.closed_form_rows(SAMPLING, (0.0, 0.4))
    figure = figures.closed_form(table)
    for axes, (norm, residual) in zip(figure.axes, product(("none", "rms"), (0, 1)), strict=True):
        shown = of(table, norm=norm, residual=residual)
        points = [curve.iloc[:: figures.KEYS_APART] for _, curve in shown.groupby("anisotropy")]
        assert_drawn(axes, shown["predicted"], *(of_curve[["measured", "low", "high"]] for of_curve in points))
        np.testing.assert_array_equal(line(axes, looks.shades((0, 0.4))[0.4]), of(shown, anisotropy=0.4)["predicted"])
    assert_legible(figure)


def test_anisotropy_has_a_curve_its_limit_and_points_for_every_residual():
    table = simulation.anisotropy_curves(SAMPLING, (0, 0.2, 0.5, 0.9), (0.2, 0.5))
    figure = figures.anisotropy(table)
    assert_drawn(figure, table[["predicted", "limit", "measured", "low", "high"]])
    for residual, colour in looks.shades(table["residual"]).items():
        np.testing.assert_array_equal(line(figure.axes[0], colour, ":"), of(table, residual=residual)["limit"])
    assert_legible(figure)


def test_depth_and_moments_have_the_recursion_over_points():
    for draw, table, across, hue in (
        (
            figures.depth,
            simulation.depth_curves(SAMPLING, 0.2, layers=3),
            ("residual", (0, 1)),
            ("norm", figures.DEPTH),
        ),
        (
            figures.moments,
            simulation.moments_curves(SAMPLING, layers=3),
            ("mask", ("causal", "full")),
            ("profile", figures.PROFILES),
        ),
    ):
        figure = draw(table)
        for axes, name in zip(figure.axes, across[1], strict=True):
            shown = table[table[across[0]] == name]
            assert_drawn(axes, shown[["predicted", "measured", "low", "high"]])
            for value, look in hue[1].items():
                np.testing.assert_array_equal(
                    line(axes, look.colour, look.line, 3), of(shown, **{hue[0]: value})["predicted"]
                )
        assert_legible(figure)


def means(table, by):
    """Means over seeds and the ends of their intervals, of each norm at every place."""
    return [over_seeds(rows, by, 0.95)[["mean", "low", "high"]] for _, rows in table.groupby("norm")]


def test_random_weights_have_means_of_seeds_and_every_head():
    table = random_weights(3, residual=(0.0, 1.0))
    figure = figures.random_weights(table, 0.95)
    for row, residual in zip(np.reshape(figure.axes, (2, 3)), (0, 1), strict=True):
        gram, score, position = (of(table, residual=residual, quantity=name) for name in ("gram", "score", "position"))
        assert_drawn(row[0], *means(gram, "layer"))
        assert_drawn(row[1], score["value"])
        assert_drawn(row[2], *means(position, "layer"))
        for norm, look in figures.RANDOM.items():
            np.testing.assert_allclose(
                line(row[0], look.colour), over_seeds(of(gram, norm=norm), "layer", 0.95)["mean"]
            )
            assert sorted(line(row[1], look.colour, "None")) == sorted(of(score, norm=norm)["value"])
    assert_legible(figure)


def test_trained_decoders_before_and_after():
    table, norms = trained(), NORMS
    figure = figures.trained(table, 0.95)
    before, after, losses, gram_before, gram_after = figure.axes
    for axes, quantity, state in (
        (before, "position", "untrained"),
        (after, "position", "trained"),
        (gram_before, "gram", "untrained"),
        (gram_after, "gram", "trained"),
    ):
        shown = of(table, state=state, quantity=quantity)
        assert_drawn(axes, *means(shown, "layer"), shown.groupby(["norm", "layer", "seed"])["value"].mean())
        for norm in norms:
            expected = over_seeds(of(shown, norm=norm), "layer", 0.95)["mean"]
            np.testing.assert_allclose(line(axes, figures.TRAINED[norm].colour), expected)
    reached = of(table, state="trained", quantity="loss")
    assert_drawn(losses, *means(reached, "layer"), reached["value"], along=0)
    assert before.get_ylim() == after.get_ylim()
    assert_legible(figure)


BIG = ("falcon-rw-7b", "mpt-7b", "mpt-30b", "bloom-7b1", "bloom-176b")


def test_language_models_have_a_panel_each_and_one_has_heatmaps():
    models = BIG
    keys = {"model": models, "seed": range(2), "state": (UNTRAINED, "trained (step 300)"), "prompt": range(4)}
    table = drawn_from(np.random.default_rng(1), **keys, layer=(1, 2, 3))
    table = table.assign(document=table["prompt"].clip(lower=1))  # the first two prompts are of one
    grams = {model: np.random.default_rng(3).uniform(size=(3, 10, 10)) for model in models}
    figure = figures.recency_and_cosines(table, grams, 0.95)
    panels = [axes for axes in figure.axes if axes.get_title()]
    for axes, model in zip(panels, models, strict=False):
        shown = [drawn for drawn in axes.lines if len(drawn.get_ydata()) == 3]
        by_document = of(table, model=model).groupby(["state", "seed", "layer", "document"])["value"].mean()
        expected = by_document.groupby(level=[0, 1, 2]).mean().to_numpy().reshape(-1, 3)
        np.testing.assert_allclose([drawn.get_ydata() for drawn in shown], expected)
    image = np.ma.filled(panels[-1].images[0].get_array(), np.nan)
    for row in range(1, 10):
        of_row = grams[models[0]][2][row, :row]
        np.testing.assert_allclose(image[row, :row], of_row - of_row.mean(), atol=1e-12)
    assert np.isnan(image[np.triu_indices(10)]).all()
    assert_legible(figure)


def test_heatmaps_show_means_of_blocks_of_what_the_mask_lets_through():
    values = np.arange(25.0).reshape(5, 5)
    values[np.triu_indices(5)] = np.nan
    expected = [[5, np.nan, np.nan], [(10 + 11 + 15 + 16) / 4, 17, np.nan], [20.5, 22.5, np.nan]]
    np.testing.assert_allclose(figures.blocks(values, 2), expected)
    np.testing.assert_array_equal(figures.blocks(values, 1), values)


def test_gaps_at_the_end_and_one_along_training(monkeypatch):
    pairs = ["first-middle", "first-last", "middle-last"]
    keys = {"study": ("residual", "pre-norm", "post-norm"), "seed": range(3), "iteration": (0, 50, 100)}
    table = drawn_from(np.random.default_rng(2), **keys, quantity=("loss", *pairs))
    table = table.assign(norm=table["study"], vocabulary="gaussian", encoding="none", depth=2)
    monkeypatch.setattr(figures.gaps, "curves", lambda tests: tests)
    figure = figures.emergence(table, 0.95)
    ends, along = figure.axes
    last = table[(table["iteration"] == 100) & table["quantity"].isin(pairs)]
    assert_drawn(ends, *means(last.assign(place=last["quantity"].map(pairs.index)), "place"), last["value"])
    assert_drawn(along, *means(of(table, quantity="first-last"), "iteration"))
    for study, look in figures.RETRIEVAL.items():
        first_last = of(table, study=study, quantity="first-last").groupby("iteration")["value"].mean()
        np.testing.assert_allclose(line(along, look.colour), first_last)
    assert_legible(figure)
