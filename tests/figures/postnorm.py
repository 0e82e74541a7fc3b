"""Tables that figures of postnorm are given, and what each panel must show of them."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from position_bias.drawing.intervals import by_seed, over_seeds
from position_bias.postnorm import figures, theory
from position_bias.postnorm.construction import distances
from position_bias.postnorm.runs import BINS, bin_of
from tests.drawn import Panel
from tests.figures.emergence import of, table

LEVEL = 0.95
C = {"none": 7.0, "pre": 7.0, "pre-final": 11.0, "post": 10.0, "peri": 12.0, "peri-init": 11.5}
LANGUAGES = ("maximum-10", "dyck-2-3", *(f"tomita-{number}" for number in range(1, 8)))
LOOKS = figures.LOOKS


def law(scheme):
    return theory.DISPERSED if scheme in ("none", "pre") else theory.NORMALISED


def minimal(v=8, seeds=3, schemes=tuple(LOOKS), trained=3, **columns):
    """Tests of networks that follow the laws of the gap, but for a little noise of each seed."""
    rng, rows, s = np.random.default_rng(v), [], np.arange(1, v)
    for scheme, seed in product(schemes, range(seeds)):
        gap = theory.law_gap(law(scheme), s, v, C[scheme]) * rng.uniform(0.9, 1.1)
        tvd = theory.total_variation(s, v, gap)
        values = {"tvd": tvd, "legal_tvd": tvd / 9, "gap": gap, "largest_weight": 1.3 / s}
        rows += [
            pd.DataFrame({"scheme": scheme, "seed": seed, "length": s, "quantity": name, "value": value})
            for name, value in values.items()
        ]
    return pd.concat(rows, ignore_index=True).assign(task=f"set-complement-{v}", trained=trained, **columns)


def by_name(rows, at, column="scheme", looks=LOOKS, seeds=False):
    """Means over seeds with intervals, and the seeds themselves if asked; a line for each name in a column."""
    parts = {name: of(rows, **{column: name}) for name in looks if (rows[column] == name).any()}
    means = {name: over_seeds(part, at, LEVEL) for name, part in parts.items()}
    drawn = [mean[["mean", "low", "high"]] for mean in means.values()]
    drawn += [by_seed(part, at)["value"] for part in parts.values()] if seeds else []
    return Panel(drawn, lines={(looks[name].colour, looks[name].line): mean["mean"] for name, mean in means.items()})


def set_complement():
    tests = pd.concat([minimal(16, 3, trained=5), minimal(8, 3)])
    above, below = [], []
    for v, trained in ((8, 3), (16, 5)):
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
    tests, panels = pd.concat([minimal(8), minimal(16, trained=5)]), []
    for v, name in product((8, 16), ("dispersed", "normalised", "weight")):
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
    tests = pd.concat([minimal(8, 3, ("none", "peri"), width=width) for width in (5, 7, 9)])
    tests["value"] *= np.random.default_rng(4).uniform(0.5, 1, len(tests))
    beyond = tests[(tests["quantity"] == "tvd") & (tests["length"] > 3)]
    panel = by_name(beyond, "width", seeds=True)
    best = {
        (LOOKS[scheme].colour, "-"): by_seed(of(beyond, scheme=scheme), "width").groupby("width")["value"].min()
        for scheme in ("none", "peri")
    }
    return figures.dimension(tests, LEVEL), [panel._replace(lines=best)]


def bema():
    """At the trained length, among legal tokens where there are several."""
    weights = [("raw", 0.0), ("ema", 0.0), ("bema", 0.2), ("bema", 0.5)]
    tasks = {"set-complement-8": "legal_tvd", "set-complement-32": "legal_tvd", "maximum-10": "tvd"}
    keys = {"task": ("maximum-10", "set-complement-32", "set-complement-8"), "seed": range(3), "decay": (False, True)}
    rows = table("value", **keys, place=range(4), length=(1, 2, 3), quantity=("tvd", "legal_tvd"))
    rows[["weights", "eta"]] = [weights[place] for place in rows["place"]]
    panels = [
        by_name(of(rows, task=task, quantity=quantity, length=2), "place", "decay", figures.RATES, seeds=True)
        for task, quantity in tasks.items()
    ]
    given = rows.drop(columns="place").assign(trained=2, kappa=0.8, scheme="peri")
    return figures.bema(given, LEVEL), [panel._replace(lines={}) for panel in panels]


def languages(tasks=LANGUAGES, seeds=3, schemes=("pre", "post", "peri", "peri-init"), longest=20):
    keys = {"task": tasks, "scheme": schemes, "seed": range(seeds), "length": range(1, longest + 1)}
    rows = table("value", **keys, quantity=("tvd", "auc")).assign(trained=4)
    classified = ~rows["task"].str.startswith("maximum") & (rows["length"] % 2 == 0)
    return rows[(rows["quantity"] == "tvd") | classified]


def formal_languages():
    """Two rows of panels for every five tasks: distances, and below them ROC AUC, which one task has not."""
    tests, panels = languages(), []
    binned = tests.assign(place=pd.Categorical(bin_of(tests["length"], tests["trained"]), BINS).codes)
    for start, quantity, column in product((0, 5), ("tvd", "auc"), range(5)):
        task = LANGUAGES[start + column] if start + column < len(LANGUAGES) else ""
        rows = of(binned, task=task, quantity=quantity)
        panels.append(by_name(rows, "place") if len(rows) else Panel([]))
    return figures.formal_languages(tests, LEVEL), panels


def curves(seeds=3, schemes=("none", "pre", "post", "peri", "peri-init"), layers=(1, 8), rates=(0.003, 0.03, 0.3)):
    keys = {"scheme": schemes, "layers": layers, "learning_rate": rates, "seed": range(seeds)}
    rows = table("loss", **keys, iteration=range(1, 11))
    steep = np.where(rows["layers"] == 8, 10.0 ** (5 - rows["iteration"]), 1)
    return rows.assign(gradient_norm=steep * np.random.default_rng(2).uniform(0.1, 1, len(rows)))


def stability():
    """Two trainings break at the highest rate of 8 layers, so that the third one's highest gradient is left."""
    rows, panels = curves(), []
    broken = (rows["scheme"] == "none") & (rows["layers"] == 8) & (rows["learning_rate"] == 0.3)
    rows.loc[broken & (rows["seed"] == 1) & (rows["iteration"] > 4), ["loss", "gradient_norm"]] = np.nan
    rows.loc[broken & (rows["seed"] == 2) & (rows["iteration"] == 5), "gradient_norm"] = np.inf
    for layers in (1, 8):
        of_depth = of(rows, layers=layers)
        for quantity in ("gradient_norm", "loss"):
            along = {
                scheme: figures.along_training(part, quantity)
                for scheme, part in of(of_depth, learning_rate=0.03).groupby("scheme")
            }
            lines = {(LOOKS[scheme].colour, LOOKS[scheme].line): found["median"] for scheme, found in along.items()}
            panels.append(Panel([*along.values()], lines=lines))
        highest = [figures.highest_gradients(part) for _, part in of_depth.groupby(["scheme", "learning_rate"])]
        panels.append(Panel([[seeds.min(), seeds.median(), seeds.max()] for seeds in highest]))
    return figures.stability(rows), panels


def little(draw):
    return draw(), None


BELOW = minimal(schemes=("none", "post"))
BELOW.loc[BELOW["quantity"] == "gap", "value"] *= -1
MAKERS = (set_complement, resharpening, construction, dimension, bema, formal_languages, stability)
FIGURES = {make.__name__: make for make in MAKERS} | {
    "gaps below 0": partial(little, lambda: figures.set_complement(BELOW, LEVEL)),
    "one language": partial(
        little, lambda: figures.formal_languages(languages(LANGUAGES[:1], 1, ("peri", "pre"), longest=8), LEVEL)
    ),
    "nothing finite": partial(
        little,
        lambda: figures.stability(curves(1, ("peri",), (8,), (0.3,)).assign(loss=np.nan, gradient_norm=np.inf)),
    ),
}
