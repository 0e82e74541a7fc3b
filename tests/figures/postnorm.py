"""Tables that figures of postnorm are given, and what each panel must show of them."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import t

from position_bias.postnorm import figures, theory
from position_bias.postnorm.construction import distances
from position_card.drawing.intervals import by_seed, over_seeds
from tests.drawn import Panel, of
from tests.figures.emergence import table
from tests.unit.postnorm.world import AFTER, WORLD

LEVEL = 0.95
LANGUAGES = ("maximum-10", "dyck-2-3", *(f"tomita-{number}" for number in range(1, 8)))
LOOKS = figures.LOOKS


def law(scheme):
    return theory.NORMALISED if scheme in AFTER else theory.DISPERSED


def by_name(rows, at, column="scheme", looks=LOOKS, seeds=False):
    """Means over seeds with intervals, and the seeds themselves if asked; a line for each name in a column."""
    parts = {name: of(rows, **{column: name}) for name in looks if (rows[column] == name).any()}
    means = {name: over_seeds(part, at, LEVEL) for name, part in parts.items()}
    drawn = [mean[["mean", "low", "high"]] for mean in means.values()]
    drawn += [by_seed(part, at)["value"] for part in parts.values()] if seeds else []
    return Panel(drawn, lines={(looks[name].colour, looks[name].line): mean["mean"] for name, mean in means.items()})


def set_complement():
    tests, above, below = WORLD["sets"], [], []
    for v, trained in ((16, 5), (32, 8)):
        task = of(tests, task=f"set-complement-{v}")
        panel, s, fine = by_name(of(task, quantity="tvd"), "length"), np.arange(1, v), np.linspace(1, v - 1, 100)
        fits = {}
        for style, scheme in (("--", "none"), ("-.", "peri")):
            constant = figures.fitted_constant(task, scheme, law(scheme), v)
            gap = theory.law_gap(law(scheme), fine, v, constant)
            fits[figures.REFERENCE, style] = theory.total_variation(fine, v, gap)
        shade = {"shade": (1, trained)}
        above.append(Panel([*panel.numbers, *fits.values(), s / v], lines=panel.lines | fits, **shade))
        below.append(by_name(of(task, quantity="legal_tvd"), "length")._replace(**shade))
    return figures.set_complement(tests, LEVEL), [*above, *below]


def resharpening():
    """A gap times s is constant where it follows C/s, and times sqrt(s(v-s)) where it follows the other law."""
    tests, panels = WORLD["sets"], []
    for v, name in product((16, 32), ("dispersed", "normalised", "weight")):
        rows = of(tests, task=f"set-complement-{v}", quantity="largest_weight" if name == "weight" else "gap")
        s = rows["length"]
        factor = np.sqrt(s * (v - s)) if name == "normalised" else s
        panels.append(by_name(rows.assign(value=rows["value"] * factor), "length"))
    return figures.resharpening(tests, LEVEL), panels


def construction():
    rows = distances(8, 8.0, 3, 0)
    rows["measured"] += np.where(rows["scheme"] == "peri", 0.1, 0.2)
    lines = {}
    for scheme, style in (("none", "--"), ("peri", "-.")):
        mine = of(rows, scheme=scheme)
        lines |= {(LOOKS[scheme].colour, style): mine["predicted"], (LOOKS[scheme].colour, "None"): mine["measured"]}
    return figures.construction(rows), [Panel(lines.values(), lines=lines)]


def dimension():
    tests = WORLD["widths"]
    beyond = tests[tests["length"] > 5]
    panel = by_name(beyond, "width", seeds=True)
    best = {
        (LOOKS[scheme].colour, "-"): by_seed(of(beyond, scheme=scheme), "width").groupby("width")["value"].min()
        for scheme in ("none", "peri")
    }
    others = tests.assign(quantity="gap", value=9.0)
    return figures.dimension(pd.concat([tests, others]), LEVEL), [panel._replace(lines=best)]


def bema():
    """At the trained length, among legal tokens where there are several."""
    tests, weights = WORLD["averages"], [("raw", 0.0), ("ema", 0.0), ("bema", 0.2), ("bema", 0.5)]
    places = [weights.index(kind) for kind in zip(tests["weights"], tests["eta"], strict=True)]
    tasks = [*(f"set-complement-{v}" for v in (8, 32, 96)), "maximum-10"]
    given = [of(tests.assign(place=places), task=task) for task in tasks]
    panels = [by_name(rows, "place", "decay", figures.RATES, seeds=True)._replace(lines={}) for rows in given]
    elsewhere = tests.assign(length=tests["trained"] + 1, value=9.0)  # at other lengths, and among all tokens
    among_all = tests[tests["quantity"] == "legal_tvd"].assign(quantity="tvd", value=9.0)
    return figures.bema(pd.concat([tests, elsewhere, among_all]), LEVEL), panels


def languages(tasks=LANGUAGES, seeds=3, schemes=("pre", "post", "peri", "peri-init"), longest=20):
    keys = {"task": tasks, "scheme": schemes, "seed": range(seeds), "length": range(1, longest + 1)}
    rows = table("value", **keys, quantity=("tvd", "auc")).assign(trained=4)
    classified = ~rows["task"].str.startswith("maximum") & (rows["length"] % 2 == 0)
    return rows[(rows["quantity"] == "tvd") | classified]


def formal_languages():
    """Two panels of differences from pre-norm beyond the trained length, seed by seed; one task has no ROC AUC."""
    tests, panels = languages(), []
    beyond = of(tests[tests["length"] > 4], quantity="tvd"), of(tests[tests["length"] > 4], quantity="auc")
    for rows, sign in zip(beyond, (-1, 1), strict=True):
        means = rows.groupby(["task", "scheme", "seed"])["value"].mean().unstack("scheme")
        gains = sign * (means.drop(columns="pre").T - means["pre"]).T
        by_task = gains.groupby("task")
        half = t.ppf((1 + LEVEL) / 2, 2) * by_task.std() / np.sqrt(3)
        panels.append(Panel(along=[by_task.mean(), by_task.mean() - half, by_task.mean() + half]))
    return figures.formal_languages(tests, LEVEL), panels


def stability():
    rows, panels = WORLD["trainings"], []
    for layers in (1, 8):
        of_depth = of(rows, layers=layers)
        for quantity in ("gradient_norm", "loss"):
            along = {
                scheme: figures.along_training(part, quantity)
                for scheme, part in of(of_depth, learning_rate=0.3).groupby("scheme")
            }
            lines = {(LOOKS[scheme].colour, LOOKS[scheme].line): found["median"] for scheme, found in along.items()}
            panels.append(Panel([*along.values()], lines=lines))
        highest = [figures.highest_gradients(part) for _, part in of_depth.groupby(["scheme", "learning_rate"])]
        panels.append(Panel([[seeds.min(), seeds.median(), seeds.max()] for seeds in highest]))
    return figures.stability(rows), panels


def little(draw):
    return draw(), None


SETS, TRAININGS = WORLD["sets"], WORLD["trainings"]
BELOW = SETS.assign(value=SETS["value"].where(SETS["quantity"] != "gap", -SETS["value"]))
FEW = TRAININGS[(TRAININGS["scheme"] == "peri") & (TRAININGS["layers"] == 8) & (TRAININGS["seed"] == 0)]
MAKERS = (set_complement, resharpening, construction, dimension, bema, formal_languages, stability)
FIGURES = {make.__name__: make for make in MAKERS} | {
    "gaps below 0": partial(little, lambda: figures.set_complement(BELOW, LEVEL)),
    "one language": partial(
        little, lambda: figures.formal_languages(languages(LANGUAGES[:1], 1, ("peri", "pre"), longest=8), LEVEL)
    ),
    "nothing finite": partial(
        little,
        lambda: figures.stability(FEW.assign(loss=np.nan, gradient_norm=np.inf)),
    ),
}
