"""Tables of position cards, with random numbers, and what each panel must show of them."""

from functools import partial

import numpy as np
import pandas as pd

from position_card.card import figures, figures_run
from position_card.card.figures import CURVES, MIXINGS
from position_card.drawing.looks import MEASURES, shades
from tests.drawn import Panel, of

N, LAYERS = 32, 4
WITHOUT_ALIBI = ("content-free", "logit-by-distance", "mean-query-key", "mean-attention")
WITH_ALIBI = ("b", "c", "mean-attention")
TEXT, ENDS = "texts.jsonl", ["value", "low", "high"]
MIDDLE = slice(N // 4, N - N // 4)


def tables(variants, estimators=tuple(MIXINGS), layers=LAYERS, seed=0):
    """Of one model; a layer has a window."""
    rng = np.random.default_rng(seed)
    alone = [("none", name) for name in ("influence", "uniform", "last", "half", *["a"] * ("b" in variants))]
    keys = [*alone, *((estimator, variant) for estimator in estimators for variant in variants)]
    profile = pd.DataFrame(
        [(*key, at) for key in keys for at in range(N)], columns=["estimator", "variant", "position"]
    )
    value = rng.uniform(0.5, 1.5, len(profile)) / N
    profile = profile.assign(value=value, low=0.8 * value, high=1.2 * value, prompts=7)
    layer, distance = np.divmod(np.arange(layers * N), N)
    value = np.where((layer == 1) & (distance > 5), 0, rng.uniform(0.01, 1, layers * N))
    mixing = pd.DataFrame(
        [(name, at) for name in estimators for at in range(1, layers + 1)], columns=["estimator", "layer"]
    )
    high = 0.4 + 0.1 * mixing["estimator"].map(estimators.index)
    found = {"layers": mixing.assign(value=0.3 - 0.01 * mixing["layer"], low=0.2, high=high), "profile": profile}
    found["distances"] = pd.DataFrame({"layer": layer + 1, "distance": distance, "value": value})
    return {name: table.assign(n=N) for name, table in found.items()}


def uniform_attention(n):
    """The mean weight at each distance of tokens that attend to themselves and all earlier ones alike."""
    attention = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    return [np.diagonal(attention, -distance).mean() for distance in range(n)]


def influence_of(given):
    return of(given["profile"], variant="influence")["value"].to_numpy()


def panels_of(given):
    """Lambda, influence and attention; replacement has its mean in the middle where influence has it."""
    layers, profile, attention = (given[name] for name in ("layers", "profile", "distances"))
    kinds = {(MIXINGS[name].colour, "-"): of(layers, estimator=name)["value"] for name in layers["estimator"].unique()}
    shown = profile[profile["estimator"].isin(["none", "frobenius"]) & profile["variant"].isin(CURVES)]
    lines = {(CURVES[name].colour, CURVES[name].line): rows["value"] for name, rows in shown.groupby("variant")}
    mean = influence_of(given)[MIDDLE].mean()
    drawn = [shown[shown["variant"] != "uniform"][ENDS], of(shown, variant="uniform")["value"], mean]
    if "replacement" in given:
        replaced = given["replacement"]
        scaled = (
            replaced[ENDS] * mean / replaced.loc[replaced["position"].between(N // 4, N - N // 4 - 1), "value"].mean()
        )
        lines[figures.REPLACED.colour, "None"] = scaled["value"]
        drawn.append(scaled)
    beyond = attention[attention["distance"] > 0]
    colours, known = shades(sorted(beyond["layer"].unique())), beyond[beyond["value"] > 0]
    means, uniform = beyond.groupby("distance")["value"].mean(), uniform_attention(N)[1:]
    of_layers = {(colour, "-"): of(known, layer=layer)["value"] for layer, colour in colours.items()}
    of_layers |= {("black", "-"): means, (figures.UNIFORM["color"], "--"): uniform}
    return [
        Panel([layers[ENDS]], lines=kinds, whole=True),
        Panel(drawn, lines=lines, shade=(N // 4 - 0.5, N - N // 4 - 0.5)),
        Panel([known["value"], means, uniform], lines=of_layers),
    ]


def card(*models, **others):
    """Of models by their variants; `others` are further tables of each."""
    given = {f"model {place}": {**tables(variants, seed=place), **others} for place, variants in enumerate(models)}
    figure, panels = figures.card(given, TEXT), [panel for one in given.values() for panel in panels_of(one)]
    if "recall" in others:
        rows, colour = others["recall"], figures.GREEN
        columns = ["probability", "probability low", "probability high", "accuracy", "prior"]
        panels = [Panel([rows[columns]], lines={(colour, "-"): rows["probability"]}), *panels]
    return figure, panels


def replacement():
    value = np.array([0.3, 0.1, 0.2, 0.9])
    places = [0, N // 2 - 1, N // 2, N - 1]
    return pd.DataFrame({"position": places, "value": value, "low": 0.5 * value, "high": 2 * value, "n": N})


def recall(first=0.4, accuracy=0.3):
    """Above the prior, every place has .1, and the first eighth so much."""
    above = np.full(N, 0.1)
    above[: N // 8] = first
    bounds = {"probability low": 0.8 * above, "probability high": 1.2 * above + 0.01}
    columns = {"place": np.arange(N), "probability": above + 0.01, **bounds, "accuracy": accuracy, "prior": 0.01}
    return pd.DataFrame({**columns, "chance": 0.01, "n": N + 3, "prompts": 5})


def long_names(*chosen):
    """Names of models and texts may be long, and models deep."""
    names = ("a", "a-rather-long-name-of-a-model-7b-instruct", "b", "another-long-name-of-a-model-1.3b")
    given = {names[at]: tables((WITH_ALIBI, WITHOUT_ALIBI)[at % 2], layers=(3, 24, 1, 12)[at]) for at in chosen}
    return figures.card(given, "owner/some-long-name-of-a-text"), None


def run(steps=(0, 40, 80, 120), recalled=2):
    """Of checkpoints, of which the last so many recall enough to be judged."""
    rng = np.random.default_rng(2)
    keys = [(name, end) for name, ends in figures_run.STATISTICS.items() for end in ends]
    table = pd.DataFrame([(*key, step) for step in steps for key in keys], columns=["variant", "statistic", "step"])
    value = rng.uniform(0.5, 4, len(table))
    value[(table["variant"] == "recall") & ~table["step"].isin(steps[len(steps) - recalled :])] = np.nan
    table = table.assign(value=value, low=0.8 * value, high=1.3 * value)
    return figures_run.training_run(table, "my-run", TEXT), [
        Panel(
            [
                of(table, statistic=ends)[ENDS]
                for ends in (end, end.replace("first", "first eighth").replace("last", "last eighth"))
            ],
            along=[steps],
            lines={
                (look.colour, look.line): of(table, variant=name, statistic=figures_run.STATISTICS[name][place])[
                    "value"
                ].dropna()
                for name, look in MEASURES.items()
                if recalled or name != "recall"
            },
            levels=[1],
            whole=True,
        )
        for place, end in enumerate(("first / middle", "last / middle"))
    ]


FIGURES = {
    "without ALiBi": partial(card, WITHOUT_ALIBI),
    "two models": partial(card, WITH_ALIBI, WITHOUT_ALIBI),
    "replacement": partial(card, WITHOUT_ALIBI, replacement=replacement()),
    "recall": partial(card, WITHOUT_ALIBI, recall=recall()),
    "four models": partial(long_names, 0, 1, 2, 3),
    "a long name": partial(long_names, 1),
    "a training run": run,
    "a training run of powers": partial(run, (0, 1, 8, 64, 512, 143_000), 0),
}
