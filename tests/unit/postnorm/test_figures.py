from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from position_bias.postnorm import figures, figures_training, theory
from tests.unit.drawing_checks import assert_legible, assert_saved, bars, curves, interval

pytestmark = [pytest.mark.filterwarnings("error::UserWarning"), pytest.mark.usefixtures("styled")]

SCHEMES = tuple(figures.SCHEMES)
C = {"none": 7.0, "pre": 7.0, "pre-final": 11.0, "post": 10.0, "peri": 12.0, "peri-init": 11.5}
LANGUAGES = ("maximum-10", "dyck-2-3", *(f"tomita-{number}" for number in range(1, 8)))


def law(scheme):
    return theory.DISPERSED if scheme in ("none", "pre") else theory.NORMALISED


def set_complement(v=8, seeds=3, schemes=SCHEMES, trained=3, **columns):
    """Tests of networks that follow the laws of the gap, but for a little noise of each seed."""
    rng, rows = np.random.default_rng(v), []
    s = np.arange(1, v)
    for scheme, seed in product(schemes, range(seeds)):
        gap = theory.law_gap(law(scheme), s, v, C[scheme]) * rng.uniform(0.9, 1.1)
        tvd = theory.total_variation(s, v, gap)
        values = {"tvd": tvd, "legal_tvd": tvd / 9, "leak": tvd, "gap": gap, "largest_weight": 1.3 / s}
        rows += [
            pd.DataFrame({"scheme": scheme, "seed": seed, "length": s, "quantity": name, "value": value})
            for name, value in values.items()
        ]
    return pd.concat(rows, ignore_index=True).assign(task=f"set-complement-{v}", trained=trained, **columns)


def averaging(tasks=("set-complement-8", "set-complement-32"), seeds=3, etas=(0.2, 0.5)):
    kinds = [("raw", 0.0), ("ema", 0.0), *(("bema", eta) for eta in etas)]
    rows = [
        {"task": task, "seed": seed, "decay": decay, "weights": weights, "eta": eta, "length": length, "trained": 2}
        for task, seed, decay, (weights, eta), length in product(tasks, range(seeds), (False, True), kinds, (1, 2, 3))
    ]
    table = pd.DataFrame(rows).assign(quantity="legal_tvd", kappa=0.8, scheme="peri")
    table = table.assign(value=np.random.default_rng(0).uniform(0, 0.2, len(table)))
    return pd.concat([table, table.assign(quantity="tvd", value=table["value"] + 0.1)], ignore_index=True)


def languages(tasks=LANGUAGES, seeds=3, schemes=("pre", "post", "peri", "peri-init"), trained=4, longest=20):
    columns = {"task": tasks, "scheme": schemes, "seed": range(seeds), "length": range(1, longest + 1)}
    table = pd.DataFrame(product(*columns.values()), columns=list(columns)).assign(trained=trained)
    rng = np.random.default_rng(1)
    classified = table[~table["task"].str.startswith("maximum") & (table["length"] % 2 == 0)]
    distances = table.assign(quantity="tvd", value=rng.uniform(0, 0.4, len(table)))
    scores = classified.assign(quantity="auc", value=rng.uniform(0.5, 1, len(classified)))
    return pd.concat([distances, scores], ignore_index=True)


def stability(seeds=3, schemes=("none", "pre", "post", "peri", "peri-init"), layers=(1, 8), rates=(0.003, 0.03, 0.3)):
    columns = {"scheme": schemes, "layers": layers, "learning_rate": rates, "seed": range(seeds)}
    columns["iteration"] = range(1, 11)
    table = pd.DataFrame(product(*columns.values()), columns=list(columns))
    rng = np.random.default_rng(2)
    gradient = rng.uniform(0.1, 1, len(table)) * np.where(table["layers"] == 8, 10.0 ** (5 - table["iteration"]), 1)
    return table.assign(loss=rng.uniform(2, 3, len(table)), gradient_norm=gradient)


def shown(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


@given(
    law=st.sampled_from([theory.DISPERSED, theory.NORMALISED]),
    v=st.integers(3, 40),
    trained=st.integers(1, 39),
    constant=st.floats(0.1, 50),
)
def test_the_fit_finds_the_constant_of_a_law_that_holds(law, v, trained, constant):
    s = np.arange(1, min(trained, v - 1) + 1)
    gaps = theory.law_gap(law, s, v, constant)
    assert figures.fitted_constant(law, s, gaps, v) == pytest.approx(constant)
    assert figures.fitted_constant(law, s, -gaps, v) == pytest.approx(-constant)


@pytest.mark.parametrize("seeds", [1, 3])
def test_distance_against_tokens_present_with_the_laws_that_fit(seeds, tmp_path):
    table = pd.concat([set_complement(16, seeds, trained=5), set_complement(8, seeds)])
    figure = figures.set_complement(table, 0.95)
    above, below = np.reshape(figure.axes, (2, 2))
    for axes, legal, v, trained in zip(above, below, (8, 16), (3, 5), strict=True):
        of_task = table[table["task"] == f"set-complement-{v}"]
        for scheme, look in figures.LOOKS.items():
            chosen = of_task[(of_task["scheme"] == scheme) & (of_task["quantity"] == "tvd")]
            means = chosen.groupby("length")["value"].mean()
            np.testing.assert_allclose(curves(axes, look.colour, "-", points=v - 1), [means])
            np.testing.assert_allclose(curves(legal, look.colour, "-", points=v - 1), [means / 9])
        for style_of_law, scheme in (("--", "none"), ("-.", "peri")):
            (fitted,) = [line for line in axes.lines if line.get_linestyle() == style_of_law]
            gaps = of_task[(of_task["scheme"] == scheme) & (of_task["quantity"] == "gap")].groupby("length")["value"]
            at_integers = np.interp(np.arange(1, v), fitted.get_xdata(), fitted.get_ydata())
            followed = theory.total_variation(np.arange(1, v), v, gaps.mean())
            np.testing.assert_allclose(at_integers, followed, atol=0.01)
        (shade,) = axes.patches
        assert (shade.get_x(), shade.get_x() + shade.get_width()) == (1, trained)
    assert_saved(figure, tmp_path)


def test_scaled_gaps_are_flat_where_their_law_holds():
    table = pd.concat([set_complement(8), set_complement(16, trained=5)])
    figure = figures.resharpening(table, 0.95)
    rows = np.reshape(figure.axes, (2, 3))
    for row, v in zip(rows, (8, 16), strict=True):
        for scheme, look in figures.LOOKS.items():
            (over_s,), (over_root,), (weight,) = (curves(axes, look.colour, "-", points=v - 1) for axes in row)
            flat, other = (over_s, over_root) if scheme in ("none", "pre") else (over_root, over_s)
            assert np.ptp(flat) < 1e-9
            assert flat[0] == pytest.approx(C[scheme], rel=0.1)
            assert np.ptp(other) > 1
            np.testing.assert_allclose(weight, 1.3)
    assert_legible(figure)


@pytest.mark.parametrize(("seeds", "widths"), [(3, (5, 7, 9)), (1, (7,))])
def test_every_width_has_its_seeds_and_the_best_of_them(seeds, widths):
    rng = np.random.default_rng(4)
    table = pd.concat([set_complement(8, seeds, ("none", "peri"), width=width) for width in widths])
    table["value"] *= rng.uniform(0.5, 1, len(table))
    figure = figures.dimension(table, 0.95)
    (axes,) = figure.axes
    for scheme in ("none", "peri"):
        chosen = (table["scheme"] == scheme) & (table["quantity"] == "tvd") & (table["length"] > 3)
        by_seed = table[chosen].pivot_table(index="seed", columns="width", values="value")
        colour = figures.LOOKS[scheme].colour
        best, means, dots = (
            [drawn.get_ydata() for drawn in axes.lines if to_rgb(drawn.get_color()) == to_rgb(colour)][k]
            for k in range(3)
        )
        np.testing.assert_allclose(best, by_seed.min())
        np.testing.assert_allclose(means, by_seed.mean())
        np.testing.assert_allclose(np.sort(dots), np.sort(by_seed.to_numpy().ravel()))
        if seeds > 1:
            np.testing.assert_allclose(bars(axes, colour), interval(by_seed))
    assert [text.get_text().strip() for text in axes.texts] == ["$v - 1 = 7$"]
    assert_legible(figure)


@pytest.mark.parametrize(
    ("seeds", "tasks"), [(3, ("maximum-10", "set-complement-32", "set-complement-8")), (1, ("set-complement-8",))]
)
def test_averaged_weights_beside_raw_ones_at_each_rate(seeds, tasks):
    table = averaging(tasks, seeds)
    figure = figures_training.bema(table, 0.95)
    complements = [f"$v = {v}$, $L = 2$" for v in (8, 32)[: len(tasks)]]
    assert [axes.get_title() for axes in figure.axes] == [*complements, "maximum of 10, $L = 2$"][: len(tasks)]
    shown_of = {"set-complement-8": (figure.axes[0], "legal_tvd"), "maximum-10": (figure.axes[-1], "tvd")}
    of_tasks = [(task, *shown_of[task]) for task in shown_of if task in tasks]
    for (task, axes, quantity), (decay, look) in product(of_tasks, figures_training.RATES.items()):
        chosen = (table["task"] == task) & (table["length"] == 2) & (table["quantity"] == quantity)
        chosen = table[chosen & (table["decay"] == decay)].assign(kind=table["weights"].map("rawemabema".find))
        by_seed = chosen.pivot(index="seed", columns=["kind", "eta"], values="value")
        of_rate = [line for line in axes.lines if line.get_marker() == look.marker and line.get_markersize() > 2]
        np.testing.assert_allclose(np.ravel([line.get_ydata() for line in of_rate]), by_seed.mean())
        assert all(to_rgb(line.get_markerfacecolor()) == to_rgb(look.inside) for line in of_rate)
        if seeds > 1:
            np.testing.assert_allclose(bars(axes, look.colour)[int(decay) :: 2], interval(by_seed))
    assert_legible(figure)


def test_languages_by_bins_of_length():
    table = languages()
    figure = figures_training.formal_languages(table, 0.95)
    panels = shown(figure)
    assert len(panels) == 2 * len(LANGUAGES) - 1  # retrieval has nothing to classify
    distance, auc = figure.axes[1], figure.axes[6]
    for axes, quantity in ((distance, "tvd"), (auc, "auc")):
        for scheme in ("pre", "peri"):
            chosen = (table["task"] == "dyck-2-3") & (table["scheme"] == scheme) & (table["quantity"] == quantity)
            bins = pd.cut(table[chosen]["length"], (0, 4, 8, 16, 20))
            by_seed = table[chosen].groupby(["seed", bins], observed=True)["value"].mean().unstack()
            colour = figures.LOOKS[scheme].colour
            np.testing.assert_allclose(curves(axes, colour, "-", points=4), [by_seed.mean()])
            np.testing.assert_allclose(bars(axes, colour), interval(by_seed))
    assert_legible(figure)


def test_stability_has_medians_along_training_and_marks_what_breaks():
    table = stability()
    broken = (table["scheme"] == "none") & (table["layers"] == 8) & (table["learning_rate"] == 0.3)
    table.loc[broken & (table["seed"] == 1) & (table["iteration"] > 4), ["loss", "gradient_norm"]] = np.nan
    table.loc[broken & (table["seed"] == 2) & (table["iteration"] == 5), "gradient_norm"] = np.inf
    figure = figures_training.stability(table)
    rows = np.reshape(figure.axes, (2, 3))
    for row, layers in zip(rows, (1, 8), strict=True):
        chosen = (table["layers"] == layers) & (table["learning_rate"] == 0.03) & (table["scheme"] == "post")
        colour = figures.LOOKS["post"].colour
        for axes, quantity in zip(row, ("gradient_norm", "loss"), strict=False):
            expected = table[chosen].groupby("iteration")[quantity].median()
            np.testing.assert_allclose(curves(axes, colour, "-", points=10), [expected])
        highest = table[(table["layers"] == layers) & (table["scheme"] == "post")]
        highest = highest.groupby(["learning_rate", "seed"])["gradient_norm"].max().groupby("learning_rate")
        marks = np.concatenate(curves(row[2], colour, "None", points=1))
        np.testing.assert_allclose(marks, highest.median())
        np.testing.assert_allclose(curves(row[2], colour, "-", points=2), np.transpose([highest.min(), highest.max()]))
    crosses = [drawn for axes in rows.flat for drawn in axes.lines if drawn.get_marker() == "x"]
    assert [to_rgb(cross.get_color()) for cross in crosses] == [to_rgb("black")]
    assert crosses[0].axes is rows[1, 2]
    assert 0.15 < crosses[0].get_xdata()[0] < 0.4
    stable = table[broken & (table["seed"] == 0)]["gradient_norm"].max()
    assert [line for line in curves(rows[1, 2], "black", "None", points=1) if line == pytest.approx(stable)]
    assert_legible(figure)


ONE = languages(LANGUAGES[:1], 1, ("peri", "pre"), longest=8), languages(LANGUAGES[2:3], 1, ("pre",), longest=8)
BELOW = set_complement(schemes=("none", "post"))
BELOW.loc[BELOW["quantity"] == "gap", "value"] *= -1


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.set_complement(BELOW, 0.95),
        lambda: figures.resharpening(set_complement(seeds=1, schemes=("peri",)), 0.95),
        *(lambda table=table: figures_training.formal_languages(table, 0.95) for table in ONE),
        lambda: figures_training.stability(
            stability(1, ("peri",), (8,), (0.3,)).assign(loss=np.nan, gradient_norm=np.inf)
        ),
    ],
    ids=["gaps below 0", "one seed", "one language", "one automaton", "nothing finite"],
)
def test_little_is_drawn_too(draw):
    assert_legible(draw())
