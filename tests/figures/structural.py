"""Tables and files that figures of structural are given, and what each panel must show of them."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import t

from position_bias.structural import (
    checks_theory,
    figures,
    figures_curve,
    figures_decisive,
    figures_distances,
    figures_initialization,
    figures_recall,
    initialization,
)
from position_bias.structural.figures_long_training import DISTANCES, SHAPES, long_training
from tests.drawn import Panel, of
from tests.figures.emergence import table
from tests.measurements import file

N, LAYERS, PROMPTS = 32, 5, 1000
MODELS, SEEDS, DATASETS, STEPS = ("bloom", "small"), (0, 1), ("prose", "web", "scientific-packages"), (0, 3, 9)
PAPERS, OTHER = "frobenius", "token"  # estimators of lambda
ENDS = ["value", "low", "high"]
TOKENS = 10  # of Figure 5


def curve(rng, variant):
    """A U for most variants; (a) falls far below the others."""
    position = np.linspace(-1, 1, N)
    value = 10.0 ** -np.linspace(0, 12, N) if variant == "a" else (0.1 + position**2) * rng.uniform(0.8, 1.2, N)
    value = value / value.sum()
    return {"position": np.arange(N), "value": value, "low": 0.7 * value, "high": 1.3 * value}


def profiles():
    """What the rollouts of two models with two training seeds on some data sets join to, at three steps of training."""
    rng, tables = np.random.default_rng(0), []
    variants = [(variant, "none") for variant in ("d", "a", "half", "uniform")]
    variants += product(("b", "c", "measured"), (PAPERS, OTHER))
    for model, seed, step, dataset, (variant, estimator) in product(MODELS, SEEDS, STEPS, DATASETS, variants):
        labels = {"model": model, "checkpoint": f"seed{seed}/step{step}", "dataset": dataset, "prompts": PROMPTS}
        labels |= {"resampled": PROMPTS, "estimator": estimator, "variant": variant}
        tables.append(pd.DataFrame({**labels, **curve(rng, variant)}))
    return pd.concat(tables)


PROFILES = profiles()
TRAINED = PROFILES[PROFILES["checkpoint"].str.endswith("/step9")]


def shown_of(rows, *variants):
    """The rows that figures show of these variants: lambda by the paper's estimator."""
    return rows[rows["variant"].isin(variants) & (rows["estimator"] != OTHER)]


def fig1():
    """Every seed of each model and variant, with (d) beside them; and (c) over (b)."""
    given, panels = of(TRAINED, dataset="prose"), []
    for model in MODELS:
        mine = of(given, model=model)
        variants = {variant: shown_of(mine, variant) for variant in "abcd"}
        panels += [Panel([variants[name][ENDS], variants["d"][ENDS]]) for name in "abc"]
        panels.append(Panel([variants["c"]["value"].to_numpy() / variants["b"]["value"].to_numpy()]))
    return figures.fig1(given), panels


def fig3():
    """All tokens, with a linear inset, and the first ones."""
    above, below = [], []
    for dataset in DATASETS:
        measured = shown_of(of(TRAINED, dataset=dataset), "d")
        first = measured[measured["position"] < figures.FIRST]
        every, beginning = (Panel([rows[ENDS]], [rows["position"]]) for rows in (measured, first))
        above += [every, every]
        below.append(beginning)
    return figures.fig3(TRAINED), [*above, *below]


def fig4():
    """The first data set, by the paper's estimator."""
    rng, files, found = np.random.default_rng(0), [], []
    for dataset, model, _ in product(DATASETS, MODELS, SEEDS):
        mixing = {name: rng.uniform(0.1, 0.6, (PROMPTS, LAYERS)).astype(np.float32) for name in (PAPERS, OTHER)}
        files.append(file({"dataset": dataset, "model": model}, **{f"mixing/{k}": v for k, v in mixing.items()}))
        if dataset == DATASETS[0]:
            found.append(figures.mixing_by_layer(mixing)[[PAPERS, "low", "high"]])
    return figures.fig4(files), [Panel(found, [np.arange(1, LAYERS + 1)])]


def training():
    """Both curves at every step of the first seed."""
    given, panels = of(PROFILES, dataset="prose"), []
    for model in MODELS:
        shown = of(given, model=model)[lambda rows: rows["checkpoint"].str.startswith("seed0/")]
        panels.append(Panel([shown_of(shown, "b")["value"], shown_of(shown, "d")[ENDS]]))
    return figures.training(given), panels


def fig5(logits):
    """The first, the middle and the last layer and head by distance, less what is below the diagonal on average."""
    layers, heads = ([0, 1, 3], [0, 2, 4]) if len(logits) > 1 else ([0], [0])
    distance, panels = np.subtract.outer(np.arange(TOKENS), np.arange(TOKENS)), []
    bins = ([0], [1], [2, 3], [4, 5, 6, 7], [8, 9])
    for layer in layers:
        of_layer = logits[layer].astype(float)
        means = [
            [of_layer[head][np.isin(distance, part)].mean() - of_layer[head][distance > 0].mean() for part in bins]
            for head in heads
        ]
        panels.append(Panel([means]))
    given = file({"model": "bloom", "checkpoint": "seed0/step9"}, content=logits)
    return figures.fig5([given]), panels


def forces():
    rows = checks_theory.forces()
    return figures.forces(rows), [Panel([of(rows, varied=varied)["value"]]) for varied in figures.FORCES]


def dichotomy():
    rows, panels = checks_theory.dichotomy(), []
    for schedule in figures.SCHEDULES:
        shown = of(rows, schedule=schedule)
        shown = shown[shown["upper"] >= figures.LEAST_SHOWN / 10]
        panels.append(Panel([shown[["value", "lower", "upper"]]], [shown["depth"]]))
    return figures.dichotomy(rows), panels


def longer(seeds=SEEDS):
    """Six panels of steps; the first seed alone has intervals, and heads."""
    steps = [f"seed{seed}/step{step}" for seed in seeds for step in (0, 30, 100, 3000)]

    def made(value, **levels):
        found = table("value", checkpoint=steps, **levels)
        return found.assign(low=0.8 * found["value"], high=1.2 * found["value"], model="bloom", n=24, dataset="prose")

    variants = [("d", "none"), ("b", PAPERS), ("b", OTHER), ("a", "none")]
    curves = made("value", of=variants, position=range(24)).assign(prompts=7, scale="longer")
    curves[["variant", "estimator"]] = curves["of"].tolist()
    named = [
        (*key, "none" if key[0] in ("a", "half", "d") else name)
        for key in {**SHAPES, **DISTANCES}
        for name in (PAPERS, OTHER)
    ]
    statistics = made("value", of=[*dict.fromkeys(named)])
    statistics[["variant", "statistic", "estimator"]] = statistics["of"].tolist()
    mixing = made("value", quantity=(PAPERS, OTHER), layer=range(3))
    content = made("value", layer=range(3), head=range(2), quantity=("diagonal", "below"))
    losses = table("loss", seed=seeds, step=(0, 30, 100, 3000), split=("train", "test"))
    figure = long_training(curves, statistics, mixing, content, losses)

    def first(rows):
        return rows[rows["checkpoint"].str.startswith("seed0/")]

    measured, predicted = shown_of(curves, "d"), shown_of(curves, "b")
    influence = Panel([measured["value"], predicted["value"], first(measured)[ENDS]])
    beginning = Panel([first(measured)[lambda rows: rows["position"] < 12]["value"]])
    wide = content.pivot(index=["checkpoint", "layer", "head"], columns="quantity", values="value")
    shift = (wide["diagonal"] - wide["below"]).reset_index(name="value")
    logits = Panel([shift.groupby(["checkpoint", "layer"])["value"].mean(), first(shift)["value"]])
    below = []
    for looks in (SHAPES, DISTANCES):
        chosen = [key in looks for key in zip(statistics["variant"], statistics["statistic"], strict=True)]
        shown = statistics[chosen][lambda rows: rows["estimator"] != OTHER]
        below.append(Panel([shown["value"], first(shown)[ENDS]]))
    of_mixing, held_out = Panel([of(mixing, quantity=PAPERS)["value"]]), Panel([of(losses, split="test")["loss"]])
    return figure, [influence, beginning, of_mixing, logits, *below, held_out]


def distances():
    """Each panel has what is judged of its distance; without total variation in the second decoder."""
    keys = [("W to influence", name) for name in figures_distances.ROLLOUTS] + [("W to influence by lambda", "token")]
    variation = [("total variation to influence", name) for name in figures_distances.ROLLOUTS]
    rows = [(*key, model) for model in ("small", "large") for key in keys] + [(*key, "small") for key in variation]
    given = pd.DataFrame(rows, columns=["statistic", "network", "model"])
    given["measured"] = np.random.default_rng(0).uniform(-0.3, 0.3, len(given))
    given = given.assign(
        low=given["measured"] - 0.1, high=given["measured"] + 0.1, n=40, seen_before=0, verdict="holds"
    )
    given["setting"] = "model = " + given["model"] + "; dataset = prose; n = 256"
    judged = given.assign(statistic="pretrained, later: " + given["statistic"])
    others = judged.assign(statistic="pretrained, ours: W to influence", measured=9.0)
    unmeasured = judged.iloc[:1].assign(measured=np.nan)
    figure = figures_distances.distances(pd.concat([others, judged, unmeasured]))
    panels = [
        Panel(along=[of(given, statistic=name)[["measured", "low", "high"]]]) for name in figures_distances.PANELS
    ]
    return figure, panels


DIAGONAL = (-3.0 - 0.25 * np.eye(TOKENS) + np.zeros((4, 5, 1, 1))).astype(np.float32)
RANDOM = np.random.default_rng(0).normal(size=(4, 5, TOKENS, TOKENS)).astype(np.float32)


def at_initialization():
    """Each panel has means over networks, whose bars are of influence alone; eighths and lambda are not shown."""
    rows, rng = [], np.random.default_rng(0)
    ends = (*initialization.ENDS[:3], "lambda")
    for deviation, layers, seed, end in product((0.01, 0.04), (6, 30), range(5), ends):
        for network in figures_initialization.LINES:
            rows.append((deviation, layers, seed, end, network, rng.normal(2, 0.1)))
    given = pd.DataFrame(rows, columns=["deviation", "layers", "seed", "statistic", "network", "value"])
    given = given.assign(model="some", dataset="prose", n=128, width=576, prompts=4, scale="pretrained")
    panels = []
    for end in figures_initialization.PANELS:
        by = of(given, statistic=end).groupby(["network", "layers", "deviation"])["value"]
        mean, half = by.mean(), t.ppf(0.975, 4) * by.std() / np.sqrt(5)
        ends = [(mean + sign * half)[initialization.INFLUENCE] for sign in (-1, 1)]
        panels.append(Panel([np.exp(values) for values in (mean, *ends)]))
    return figures_initialization.initialization(given, 0.95), panels


MAKERS = (fig1, fig3, fig4, training, forces, dichotomy, distances, at_initialization)


def decisive():
    """Two claims, of which one has two comparisons and the other a known number; of other scales nothing is shown."""
    rng, rows = np.random.default_rng(0), []
    for claim, network, model, scale in product(("one", "two"), ("b", "c"), ("bloom", "gemma"), ("pretrained", "test")):
        if (claim, network) != ("two", "c"):
            measured, half = rng.uniform(1, 2), 0.0 if claim == "two" else 0.3
            row = {"claim": claim, "quantity": f"first of ({network}); {model}, 256 tokens", "model": model}
            row |= {"relation": ">", "bound": 0.5, "scale": scale, "measured": measured}
            rows.append(row | {"low": measured - half, "high": measured + half})
    checks, titles = pd.DataFrame(rows), {"two": "The second claim", "none": "No row", "one": "The first claim"}
    panels = [
        Panel(along=[of(checks, claim=claim, scale="pretrained")[["measured", "low", "high"]]])
        for claim in ("two", "one")
    ]
    return figures_decisive.decisive(checks, titles, ["pretrained"], "What decides two claims", 0.95), panels


def moved():
    """A table of two decoders, of which one recalls nothing, with copies of one; 512 tokens are not shown.

    One was measured with 128 tokens, the other with 256 at least.
    """
    steps = [f"step of {percent} %" for percent in (1, 10, 100)]
    ends = ["first word / middle", "first eighth / middle", "last word / middle"]
    keys = [(model, "trained", *key) for model in ("small", "large") for key in product(ends, steps)]
    keys += [("small", "random", end, step) for end in ends for step in (steps[0], steps[2])]
    keys += [
        (model, "trained", "first eighth / middle", name)
        for model in ("small", "large")
        for name in ("recall", "accuracy")
    ]
    given = pd.DataFrame(keys, columns=["model", "weights", "statistic", "network"])
    given["value"] = np.random.default_rng(0).uniform(0.3, 4, len(given))
    given.loc[(given["model"] == "large") & (given["network"] == "recall"), "value"] = np.nan
    given["n"] = given["model"].map({"small": 128, "large": 256})
    given = given.assign(low=0.9 * given["value"], high=1.1 * given["value"], documents=60)
    return pd.concat([given, given.assign(n=512, value=7.0, low=6.0, high=8.0)])


def three_measures():
    """The first eighth alone, by the first step, the last one and recall."""
    given = moved()
    shown = of(given[given["n"] < 512], statistic="first eighth / middle").dropna()
    shown = shown[shown["network"].isin(["step of 1 %", "step of 100 %", "recall"])]
    return figures_curve.three_measures(given, 128), [Panel(along=[shown[["value", "low", "high"]]])]


def by_step():
    """Every step of a word and of an eighth, of trained decoders."""
    given = moved()
    shown = of(given[given["n"] < 512], weights="trained")[lambda rows: rows["network"].str.startswith("step")]
    panels = [Panel([of(shown, statistic=end)[["value", "low", "high"]]]) for end in figures_curve.ENDS]
    return figures_curve.curve(given, 128), panels


def recall():
    """Each eighth of two lengths of one decoder; the other one recalls too little of the longer contexts."""
    given = table("value", model=("small", "large"), n=(64, 128), eighth=range(1, 9)).assign(contexts=16)
    given = given.assign(able=given["model"] == "small", low=0.8 * given["value"], high=1.3 * given["value"])
    return figures_recall.recall(given), [Panel([of(given, model=name)[ENDS]]) for name in ("small", "large")]


FIGURES = {make.__name__: make for make in (*MAKERS, three_measures, recall)} | {
    "curve": by_step,
    "decisive": decisive,
    "fig5": partial(fig5, RANDOM),
    "fig5, constant plus diagonal": partial(fig5, DIAGONAL),
    "fig5, constant": partial(fig5, np.ones((1, 1, TOKENS, TOKENS), np.float32)),
    "long_training": longer,
    "long_training, one seed": partial(longer, (0,)),
}
