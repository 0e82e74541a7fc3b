"""Tables that figures of layernorm are given, simulated or random, and what each panel must show of them."""

from itertools import product

import numpy as np
import pandas as pd

from position_bias.emergence import accuracy_gaps
from position_bias.layernorm import figures, simulation
from position_bias.layernorm.checks import AT_STEP_0
from position_card.drawing.intervals import by_seed, over_seeds
from position_card.drawing.looks import PAIRS, shades
from tests.drawn import Panel, of
from tests.figures.emergence import table
from tests.figures.emergence import trained as tests_of
from tests.unit.layernorm.world import WORLD
from tests.worlds import frame

SAMPLING = simulation.Sampling(tokens=14, width=16, strength=1.0, sequences=12, seed=0, level=0.95)
POINT, LEVEL = ["measured", "low", "high"], 0.95
MODELS = ("falcon-rw-7b", "mpt-7b", "mpt-30b", "bloom-7b1", "bloom-176b")


def scores():
    """Curves of the last query, which rise with the key under a norm and fall without, more in the second layer."""
    rows, keys = np.mgrid[:12, :12]
    scales, alphas, signs = np.array([1, 2]), (0, 0.4), {"none": -1, "layer": 1}
    given = {
        f"{norm}/{alpha}": 7 * rows + sign * (1 + alpha) * scales[:, None, None] * keys
        for (norm, sign), alpha in product(signs.items(), alphas)
    }
    above = np.arange(11) - 5  # less the mean of the earlier keys
    panels = []
    for sign, scale in product(signs.values(), scales):
        lines = {(colour, "-"): sign * (1 + alpha) * scale * above for alpha, colour in shades(alphas).items()}
        panels.append(Panel([*lines.values()], lines=lines))
    return figures.scores(given, alphas=alphas), panels


def closed_form():
    rows, panels = simulation.closed_form_rows(SAMPLING, (0.0, 0.4)), []
    for norm, residual in product(("none", "rms"), (0, 1)):
        shown = of(rows, norm=norm, residual=residual)
        points = [curve.iloc[:: figures.KEYS_APART][POINT] for _, curve in shown.groupby("anisotropy")]
        lines = {(shades((0, 0.4))[0.4], "-"): of(shown, anisotropy=0.4)["predicted"]}
        panels.append(Panel([shown["predicted"], *points], lines=lines))
    return figures.closed_form(rows), panels


def anisotropy():
    rows = simulation.anisotropy_curves(SAMPLING, (0, 0.2, 0.5, 0.9), (0.2, 0.5))
    limits = {
        (colour, ":"): of(rows, residual=residual)["limit"] for residual, colour in shades(rows["residual"]).items()
    }
    return figures.anisotropy(rows), [Panel([rows[["predicted", "limit", *POINT]]], lines=limits)]


def recursion(draw, rows, across, panels, hue, looks):
    """A panel for each value of a column, with a line of theory for each value of another."""
    shown = [of(rows, **{across: name}) for name in panels]
    lines = [
        {(look.colour, look.line): of(part, **{hue: name})["predicted"] for name, look in looks.items()}
        for part in shown
    ]
    drawn = zip(shown, lines, strict=True)
    return draw(rows), [Panel([part[["predicted", *POINT]]], lines=of_theory) for part, of_theory in drawn]


def depth():
    curves = simulation.depth_curves(SAMPLING, 0.2, layers=3)
    return recursion(figures.depth, curves, "residual", (0, 1), "norm", figures.DEPTH)


def moments():
    curves = simulation.moments_curves(SAMPLING, layers=3)
    return recursion(figures.moments, curves, "mask", ("causal", "full"), "profile", figures.PROFILES)


def by_norm(rows, looks, column="norm", at="layer", seeds=False):
    """Means over seeds with intervals, and the seeds themselves; a line for each norm."""
    parts = {name: of(rows, **{column: name}) for name in looks}
    means = {name: over_seeds(part, at, LEVEL) for name, part in parts.items()}
    lines = {(looks[name].colour, looks[name].line): mean["mean"] for name, mean in means.items()}
    drawn = [mean[["mean", "low", "high"]] for mean in means.values()]
    drawn += [by_seed(part, at)["value"] for part in parts.values()] if seeds else []
    return Panel(drawn, lines=lines)


def random_weights():
    rows, panels = frame(WORLD["random"], "norm", "residual", "seed", "layer", "head", "quantity"), []
    for residual in (0, 1):
        parts = [of(rows, residual=residual, quantity=name) for name in ("gram", "score", "position")]
        every = {(look.colour, "None"): of(parts[1], norm=norm)["value"] for norm, look in figures.RANDOM.items()}
        gram, position = (by_norm(part, figures.RANDOM) for part in parts[::2])
        panels += [gram, Panel([parts[1]["value"]], lines=every), position]
    return figures.random_weights(rows, LEVEL), panels


def trained():
    rows = frame(WORLD["trained"], "norm", "seed", "state", "layer", "head", "quantity")
    reached = of(rows, state="trained", quantity="loss")
    means = [over_seeds(part, "layer", LEVEL)[["mean", "low", "high"]] for _, part in reached.groupby("norm")]
    before, after, *grams = (
        by_norm(of(rows, state=state, quantity=name), figures.DECODER_LOOKS, seeds=True)
        for name, state in product(("position", "gram"), ("untrained", "trained"))
    )
    return figures.trained_decoders(rows, LEVEL), [before, after, Panel(along=[*means, reached["value"]]), *grams]


def recency_by_layer():
    """A panel for each model, with a line for each state and seed over documents; the first two prompts are of one."""
    states = (AT_STEP_0, "trained (step 300)")
    rows = table("value", model=MODELS, seed=range(2), state=states, prompt=range(4), layer=(1, 2, 3))
    rows = rows.assign(document=rows["prompt"].clip(lower=1))
    panels = []
    for model in MODELS:
        mine = [part for _, part in of(rows, model=model).groupby(["state", "seed"])]
        means = [over_seeds(part.assign(seed=part["document"]), "layer", LEVEL) for part in mine]
        panels.append(Panel([mean[["mean", "low", "high"]] for mean in means]))
    return figures.recency_by_layer(rows, 10, LEVEL), panels


def emergence():
    """Gaps of the studies with norms, at the end and along training."""
    parts = [tests_of(iterations=(0, 50, 100), study=[study], encoding=["none"]) for study in figures.RETRIEVAL]
    tests = pd.concat(parts, ignore_index=True)
    curves = accuracy_gaps.curves(tests)
    last = of(curves, iteration=100)
    last = last[last["quantity"].isin(PAIRS)].assign(place=lambda rows: rows["quantity"].map([*PAIRS].index))
    ends = by_norm(last, figures.RETRIEVAL, "study", "place", seeds=True)._replace(lines={})
    along = by_norm(of(curves, quantity="first-last"), figures.RETRIEVAL, "study", "iteration")
    return figures.emergence(tests, LEVEL), [ends, along]


MAKERS = (scores, closed_form, anisotropy, depth, moments, random_weights, trained, recency_by_layer, emergence)
FIGURES = {make.__name__: make for make in MAKERS}
