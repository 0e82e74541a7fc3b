from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.postnorm import figures, theory
from position_bias.postnorm.construction import distances
from tests.unit.drawing_checks import assert_drawn, assert_legible, assert_saved, curves, interval

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


def of_seeds(table, at):
    """Means over seeds, ends of their intervals and the seeds themselves, at every place."""
    by_seed = table.groupby(["seed", at], observed=True)["value"].mean().unstack()
    return by_seed.mean(), interval(by_seed), by_seed


def test_distance_against_tokens_present_with_the_laws_that_fit(tmp_path):
    table = pd.concat([set_complement(16, 3, trained=5), set_complement(8, 3)])
    figure = figures.set_complement(table, 0.95)
    above, below = np.reshape(figure.axes, (2, 2))
    for axes, legal, v, trained in zip(above, below, (8, 16), (3, 5), strict=True):
        of_task = table[table["task"] == f"set-complement-{v}"]
        of_legal = of_task[of_task["quantity"] == "legal_tvd"]
        assert_drawn(legal, *(drawn for _, of in of_legal.groupby("scheme") for drawn in of_seeds(of, "length")[:2]))
        for scheme, look in figures.LOOKS.items():
            chosen = of_task[(of_task["scheme"] == scheme) & (of_task["quantity"] == "tvd")]
            means = chosen.groupby("length")["value"].mean()
            np.testing.assert_allclose(curves(axes, look.colour, "-", points=v - 1), [means])
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


def test_networks_built_by_hand_stand_on_the_law_of_their_gap():
    table = distances(8, 8.0, 3, 0)
    table["measured"] += np.where(table["scheme"] == "peri", 0.1, 0.2)
    figure = figures.construction(table)
    (axes,) = figure.axes
    for scheme, style in (("none", "--"), ("peri", "-.")):
        of_scheme, colour = table[table["scheme"] == scheme], figures.LOOKS[scheme].colour
        (law,), (built,) = (curves(axes, colour, line) for line in (style, "None"))
        np.testing.assert_array_equal(law, of_scheme["predicted"])
        np.testing.assert_array_equal(built, of_scheme["measured"])
    assert_legible(figure)


def test_every_width_has_its_seeds_and_the_best_of_them():
    table = pd.concat([set_complement(8, 3, ("none", "peri"), width=width) for width in (5, 7, 9)])
    table["value"] *= np.random.default_rng(4).uniform(0.5, 1, len(table))
    figure = figures.dimension(table, 0.95)
    beyond = table[(table["quantity"] == "tvd") & (table["length"] > 3)]
    assert_drawn(figure, *(drawn for _, rows in beyond.groupby("scheme") for drawn in of_seeds(rows, "width")))
    best = of_seeds(beyond[beyond["scheme"] == "peri"], "width")[2].min()
    (line, *_) = curves(figure.axes[0], figures.LOOKS["peri"].colour, "-", points=3)
    np.testing.assert_allclose(line, best)
    assert_legible(figure)


def test_averaged_weights_beside_raw_ones_at_each_rate():
    table = averaging(("maximum-10", "set-complement-32", "set-complement-8"))
    figure = figures.bema(table, 0.95)
    for axes, task, quantity in zip(
        figure.axes,
        ("set-complement-8", "set-complement-32", "maximum-10"),
        ("legal_tvd", "legal_tvd", "tvd"),
        strict=True,
    ):
        chosen = (table["task"] == task) & (table["length"] == 2) & (table["quantity"] == quantity)
        chosen = table[chosen].assign(kind=table["weights"].map("rawemabema".find) + table["eta"])
        assert_drawn(axes, *(drawn for _, rows in chosen.groupby("decay") for drawn in of_seeds(rows, "kind")))
        for decay, look in figures.RATES.items():
            marks = [line for line in axes.lines if line.get_marker() == look.marker and line.get_markersize() > 2]
            means = of_seeds(chosen[chosen["decay"] == decay], "kind")[0]
            np.testing.assert_allclose(np.ravel([line.get_ydata() for line in marks]), means)
    assert_legible(figure)


def test_languages_by_bins_of_length():
    table = languages()
    figure = figures.formal_languages(table, 0.95)
    table = table.assign(bin=pd.cut(table["length"], (0, 4, 8, 16, 20)))
    blocks = np.reshape(figure.axes, (2, 2, 5))
    for index, task in enumerate(LANGUAGES):
        for axes, quantity in zip(blocks[index // 5, :, index % 5], ("tvd", "auc"), strict=True):
            chosen = table[(table["task"] == task) & (table["quantity"] == quantity)]
            drawn = [drawn for _, rows in chosen.groupby("scheme") for drawn in of_seeds(rows, "bin")[:2]]
            assert_drawn(axes, *(drawn or [[]]))
    peri = table[(table["task"] == "dyck-2-3") & (table["scheme"] == "peri") & (table["quantity"] == "tvd")]
    lines = curves(blocks[0, 0, 1], figures.LOOKS["peri"].colour, "-", points=4)
    np.testing.assert_allclose(lines, [of_seeds(peri, "bin")[0]])
    assert_legible(figure)


def test_stability_has_medians_along_training_and_marks_what_breaks():
    table = stability()
    broken = (table["scheme"] == "none") & (table["layers"] == 8) & (table["learning_rate"] == 0.3)
    table.loc[broken & (table["seed"] == 1) & (table["iteration"] > 4), ["loss", "gradient_norm"]] = np.nan
    table.loc[broken & (table["seed"] == 2) & (table["iteration"] == 5), "gradient_norm"] = np.inf
    figure = figures.stability(table)
    rows = np.reshape(figure.axes, (2, 3))
    for row, layers in zip(rows, (1, 8), strict=True):
        of_depth = table[table["layers"] == layers]
        along = of_depth[of_depth["learning_rate"] == 0.03].groupby(["scheme", "iteration"])
        for axes, quantity in zip(row, ("gradient_norm", "loss"), strict=False):
            assert_drawn(axes, *(along[quantity].agg(number) for number in ("median", "min", "max")))
            (post,) = curves(axes, figures.LOOKS["post"].colour, "-", points=10)
            np.testing.assert_allclose(post, along[quantity].median()["post"])
        finite = of_depth.groupby(["scheme", "learning_rate", "seed"])["gradient_norm"]
        highest = finite.max()[finite.agg(lambda norms: np.isfinite(norms).all())]
        highest = highest.groupby(["scheme", "learning_rate"])
        assert_drawn(row[2], *(highest.agg(number) for number in ("median", "min", "max")))
        marks = np.concatenate(curves(row[2], figures.LOOKS["post"].colour, "None", points=1))
        np.testing.assert_allclose(marks, highest.median()["post"])
    (cross,) = [drawn for axes in rows.flat for drawn in axes.lines if drawn.get_marker() == "x"]
    assert (cross.axes, to_rgb(cross.get_color())) == (rows[1, 2], to_rgb("black"))  # of 8 layers, by rate
    assert 0.15 < cross.get_xdata()[0] < 0.4
    assert_legible(figure)


BELOW = set_complement(schemes=("none", "post"))
BELOW.loc[BELOW["quantity"] == "gap", "value"] *= -1


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.set_complement(BELOW, 0.95),
        lambda: figures.formal_languages(languages(LANGUAGES[:1], 1, ("peri", "pre"), longest=8), 0.95),
        lambda: figures.stability(stability(1, ("peri",), (8,), (0.3,)).assign(loss=np.nan, gradient_norm=np.inf)),
    ],
    ids=["gaps below 0", "one language", "nothing finite"],
)
def test_little_is_drawn_too(draw):
    assert_legible(draw())
