from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.drawing import looks
from position_bias.layernorm import figures, figures_networks, tables
from position_bias.layernorm.pretrained import UNTRAINED
from tests.unit.drawing_checks import assert_legible, assert_saved_alike, bars, interval

pytestmark = [pytest.mark.filterwarnings("error::UserWarning"), pytest.mark.usefixtures("styled")]

SAMPLING = tables.Sampling(tokens=14, width=16, strength=1.0, sequences=12, seed=0, level=0.95)
ALPHAS = (0.0, 0.4)
NORMS = ("none", "pre-layer", "pre-rms", "post-layer")


def maps(layers=2, n=12, alphas=(0, 0.4)):
    """Scores that rise with the key under a norm, and fall without; rows and maps differ in offset and scale."""
    rows, keys = np.mgrid[:n, :n]
    scale = np.arange(1, layers + 1)[:, None, None]
    rising = {"none": -1, "layer": 1}
    return {f"{norm}/{alpha:g}": 7 * rows + sign * scale * keys for norm, sign in rising.items() for alpha in alphas}


def random_weights(seeds=3, residuals=(0.0, 1.0), norms=("none", "rms", "layer"), layers=3):
    rng = np.random.default_rng(0)
    places = [("gram", 0), *product(("score", "position"), (1, 2))]
    rows = [
        {"norm": norm, "residual": rho, "seed": seed, "layer": layer, "head": head, "quantity": quantity}
        for norm, rho, seed, layer, (quantity, head) in product(
            norms, residuals, range(seeds), range(1, layers + 1), places
        )
    ]
    return pd.DataFrame(rows).assign(value=rng.uniform(-1, 1, len(rows)))


def trained(seeds=3, norms=NORMS):
    tables = [
        random_weights(seeds, (1.0,), norms).drop(columns="residual").assign(state=state)
        for state in ("untrained", "trained")
    ]
    losses = [
        {"norm": norm, "seed": seed, "state": state, "layer": 0, "head": 0, "quantity": "loss", "value": 3 + seed / 9}
        for norm, seed, state in product(norms, range(seeds), ("untrained", "trained"))
    ]
    return pd.concat([*tables, pd.DataFrame(losses)], ignore_index=True)


def recency(models=("bloom", "mpt"), seeds=2, states=(UNTRAINED, "trained (step 300)"), prompts=4, layers=3):
    columns = {"model": models, "seed": range(seeds), "state": states, "prompt": range(prompts)}
    columns["layer"] = range(1, layers + 1)
    table = pd.DataFrame(product(*columns.values()), columns=list(columns))
    return table.assign(value=np.random.default_rng(1).uniform(-0.1, 0.3, len(table)))


def gaps(seeds=3, studies=("residual", "pre-norm", "post-norm")):
    pairs = ("loss", "first-middle", "first-last", "middle-last")
    table = pd.DataFrame(
        product(studies, range(seeds), (0, 50, 100), pairs), columns=["study", "seed", "iteration", "quantity"]
    )
    return table.assign(value=np.random.default_rng(2).uniform(-0.2, 0.3, len(table)))


def line(axes, colour, style="-", at_least=2):
    """Values of the one line of this colour and style with as many points."""
    (found,) = [
        drawn.get_ydata()
        for drawn in axes.lines
        if to_rgb(drawn.get_color()) == to_rgb(colour)
        and drawn.get_linestyle() == style
        and len(drawn.get_ydata()) >= at_least
        and list(drawn.get_xdata()) != [0, 1]
    ]
    return np.asarray(found)


def test_maps_show_which_keys_of_a_row_score_higher():
    shown = maps()
    figure = figures.scores(shown, alphas=(0, 0.4))
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == 2 * 2 * 2
    assert [axes.get_title() for axes in panels[:4]] == ["layer 1", "layer 2", "", ""]
    for axes in panels:
        image = np.ma.filled(axes.images[0].get_array(), np.nan)
        earlier = np.tri(12, k=-1, dtype=bool)
        assert np.isnan(image[~earlier]).all()
        last = image[-1, :-1]
        sign = 1 if axes in panels[4:] else -1
        assert (sign * np.diff(last) > 0).all()
        assert last.sum() == pytest.approx(0)
    layers = [float(axes.texts[0].get_text().removeprefix("±")) for axes in panels]
    deviations = [abs(key - (row - 1) / 2) for row in range(1, 12) for key in range(row)]
    scale = np.quantile(deviations, figures.SHARE_WITHIN)
    assert layers == pytest.approx([scale, 2 * scale] * 4, rel=0.2)  # one digit is written
    assert [text.get_text() for text in figure.texts] == ["without norm", "key", "LayerNorm", "key"]
    assert_legible(figure)


def test_maps_take_one_norm_and_one_anisotropy():
    figure = figures.scores(maps(layers=1), alphas=(0,), norms=("layer",))
    assert len([axes for axes in figure.axes if axes.images]) == 1


def test_the_closed_form_is_a_line_over_points_of_every_norm_and_residual():
    table = tables.closed_form_rows(SAMPLING, ALPHAS)
    figure = figures.closed_form(table)
    titles = ["no norm, $\\rho = 0$", "no norm, $\\rho = 1$", "with norm, $\\rho = 0$", "with norm, $\\rho = 1$"]
    assert [axes.get_title() for axes in figure.axes] == titles
    axes = figure.axes[2]
    curve = table[(table["norm"] == "rms") & (table["residual"] == 0) & (table["anisotropy"] == 0.4)]
    colour = looks.shades(table["anisotropy"])[0.4]
    np.testing.assert_array_equal(line(axes, colour), curve["predicted"])
    points = curve.iloc[:: figures.KEYS_APART]
    np.testing.assert_array_equal(line(axes, colour, "None"), points["measured"])
    np.testing.assert_allclose(bars(axes, colour), points[["low", "high"]])
    assert_legible(figure)


def test_anisotropy_has_a_curve_its_limit_and_points_for_every_residual():
    table = tables.anisotropy_curves(SAMPLING, (0, 0.2, 0.5, 0.9), (0.2, 0.5))
    figure = figures.anisotropy(table)
    (axes,) = figure.axes
    for residual, colour in looks.shades(table["residual"]).items():
        curve = table[table["residual"] == residual]
        np.testing.assert_array_equal(line(axes, colour), curve["predicted"])
        np.testing.assert_array_equal(line(axes, colour, ":"), curve["limit"])
        measured = curve.dropna()
        np.testing.assert_array_equal(line(axes, colour, "None"), measured["measured"])
        np.testing.assert_allclose(bars(axes, colour), measured[["low", "high"]])
    assert_legible(figure)


def test_depth_has_the_recursion_over_points_of_every_placement():
    table = tables.depth_curves(SAMPLING, 0.2, layers=3)
    figure = figures.depth(table)
    assert [axes.get_title()[:16] for axes in figure.axes] == ["without residual", "with residual ($"]
    for axes, residual in zip(figure.axes, (0, 1), strict=True):
        for norm, look in figures.DEPTH.items():
            curve = table[(table["norm"] == norm) & (table["residual"] == residual)]
            np.testing.assert_array_equal(line(axes, look.colour, at_least=3), curve["predicted"])
            np.testing.assert_array_equal(line(axes, look.colour, "None"), curve["measured"])
    assert_legible(figure)


def test_moments_have_the_recursion_over_points_of_every_profile_and_mask():
    table = tables.moments_curves(SAMPLING, layers=3)
    figure = figures.moments(table)
    assert [axes.get_title() for axes in figure.axes] == ["causal mask", "full mask"]
    for axes, mask in zip(figure.axes, ("causal", "full"), strict=True):
        for profile, look in figures.PROFILES.items():
            curve = table[(table["mask"] == mask) & (table["profile"] == profile)]
            np.testing.assert_array_equal(line(axes, look.colour, look.line, at_least=3), curve["predicted"])
            np.testing.assert_array_equal(line(axes, look.colour, "None"), curve["measured"])
    assert_legible(figure)


@pytest.mark.parametrize("seeds", [1, 3])
def test_random_weights_have_means_of_seeds_and_every_head(seeds):
    table = random_weights(seeds)
    figure = figures_networks.random_weights(table, 0.95)
    rows = np.reshape(figure.axes, (2, 3))
    for row, residual in zip(rows, (0, 1), strict=True):
        for norm, look in figures_networks.RANDOM.items():
            shown = table[(table["norm"] == norm) & (table["residual"] == residual)]
            by_quantity = dict(list(shown.groupby("quantity")))
            gram = by_quantity["gram"].pivot(index="seed", columns="layer", values="value")
            np.testing.assert_allclose(line(row[0], look.colour), gram.mean())
            if seeds > 1:
                np.testing.assert_allclose(bars(row[0], look.colour), interval(gram))
            assert sorted(line(row[1], look.colour, "None")) == sorted(by_quantity["score"]["value"])
            position = by_quantity["position"].pivot_table(index="seed", columns="layer", values="value")
            np.testing.assert_allclose(line(row[2], look.colour), position.mean())
        assert len(bars(row[0], "black")) == (0 if seeds == 1 else 3)
    assert_legible(figure)


@pytest.mark.parametrize(("seeds", "norms"), [(3, NORMS), (1, NORMS[:2])])
def test_trained_decoders_before_and_after(seeds, norms):
    table = trained(seeds, norms)
    figure = figures_networks.trained(table, 0.95)
    before, after, loss, gram_before, gram_after = figure.axes
    assert (before.get_title(), after.get_title(), loss.get_title()) == ("untrained", "trained", "loss reached")
    for axes, quantity, state in (
        (before, "position", "untrained"),
        (after, "position", "trained"),
        (gram_before, "gram", "untrained"),
        (gram_after, "gram", "trained"),
    ):
        for norm in norms:
            chosen = (table["norm"] == norm) & (table["state"] == state) & (table["quantity"] == quantity)
            by_seed = table[chosen].pivot_table(index="seed", columns="layer", values="value")
            colour = figures_networks.TRAINED[norm].colour
            np.testing.assert_allclose(line(axes, colour), by_seed.mean())
            np.testing.assert_allclose(np.sort(line(axes, colour, "None")), np.sort(by_seed.to_numpy().ravel()))
    assert before.get_ylim() == after.get_ylim()
    low, high = gram_before.get_ylim()
    assert low < min(line(gram_after, "black")) < high
    assert_legible(figure)


BIG = ("falcon-rw-7b", "mpt-7b", "mpt-30b", "bloom-7b1", "bloom-176b")


@pytest.mark.parametrize(
    ("models", "seeds", "prompts"), [(("bloom", "mpt", "falcon"), 2, 4), (("bloom",), 1, 1), (BIG, 1, 4)]
)
def test_language_models_have_a_panel_each_and_one_has_heatmaps(models, seeds, prompts):
    table = recency(models, seeds, prompts=prompts)
    grams = {model: np.random.default_rng(3).uniform(size=(3, 10, 10)) for model in models}
    figure = figures_networks.recency_and_cosines(table, grams, 0.95, shown=models[-1])
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == [*models, f"{models[-1]}, layer 2", f"{models[-1]}, layer 3"]
    of_models = looks.model_looks(models)
    for axes, model in zip(panels, models, strict=False):
        curves = [drawn for drawn in axes.lines if len(drawn.get_ydata()) == 3]
        assert [drawn.get_linestyle() for drawn in curves] == ["-"] * seeds + ["--"] * seeds
        of_model = table[table["model"] == model]
        expected = of_model.groupby(["state", "seed", "layer"])["value"].mean().to_numpy().reshape(-1, 3)
        np.testing.assert_allclose([drawn.get_ydata() for drawn in curves], expected)
        assert to_rgb(curves[0].get_color()) == to_rgb(of_models[model].colour)
    image = np.ma.filled(panels[-1].images[0].get_array(), np.nan)
    for row in range(1, 10):
        of_row = grams[models[-1]][2][row, :row]
        np.testing.assert_allclose(image[row, :row], of_row - of_row.mean(), atol=1e-12)
    assert np.isnan(image[np.triu_indices(10)]).all()
    assert_legible(figure)


def test_heatmaps_show_means_of_blocks_of_what_the_mask_lets_through():
    values = np.arange(25.0).reshape(5, 5)
    values[np.triu_indices(5)] = np.nan
    expected = [[5, np.nan, np.nan], [(10 + 11 + 15 + 16) / 4, 17, np.nan], [20.5, 22.5, np.nan]]
    np.testing.assert_allclose(figures_networks.blocks(values, 2), expected)
    np.testing.assert_array_equal(figures_networks.blocks(values, 1), values)


@pytest.mark.parametrize("seeds", [1, 3])
def test_gaps_at_the_end_and_one_along_training(seeds):
    table = gaps(seeds)
    figure = figures_networks.gaps_by_norm(table, 0.95)
    ends, along = figure.axes
    for study, look in figures_networks.RETRIEVAL.items():
        of_study = table[table["study"] == study]
        last = of_study[of_study["iteration"] == 100].pivot(index="seed", columns="quantity", values="value")
        last = last[["first-middle", "first-last", "middle-last"]]
        of_norm = [drawn for drawn in ends.lines if to_rgb(drawn.get_color()) == to_rgb(look.colour)]
        means, dots = (drawn for drawn in of_norm if drawn.get_marker() != "None")
        np.testing.assert_allclose(means.get_ydata(), last.mean())
        np.testing.assert_allclose(np.sort(dots.get_ydata()), np.sort(last.to_numpy().ravel()))
        if seeds > 1:
            np.testing.assert_allclose(bars(ends, look.colour), interval(last))
        first_last = of_study[of_study["quantity"] == "first-last"]
        np.testing.assert_allclose(line(along, look.colour), first_last.groupby("iteration")["value"].mean())
    assert_legible(figure)


def test_a_norm_has_one_colour_in_every_figure_and_an_unknown_one_is_refused():
    assert figures_networks.RANDOM["rms"].colour == figures_networks.TRAINED["pre-rms"].colour
    assert figures_networks.RANDOM["layer"].colour == figures_networks.RETRIEVAL["pre-norm"].colour
    assert figures_networks.TRAINED["post-layer"].colour == figures_networks.RETRIEVAL["post-norm"].colour
    with pytest.raises(ValueError, match="'batch' has no look in this figure; it knows none, rms, layer"):
        looks.present(["none", "batch"], figures_networks.RANDOM)


def test_marks_of_a_place_stand_side_by_side_around_it():
    shown = {name: looks.Look(name, "black", "o") for name in "abc"}
    assert [(name, aside) for name, _, aside in looks.side_by_side(shown, 0.5)] == [("a", -0.5), ("b", 0), ("c", 0.5)]


def test_the_figure_is_legible_in_all_formats_and_the_same_in_two_runs(tmp_path):
    assert_saved_alike(lambda: figures.scores(maps(), alphas=(0,)), tmp_path)
