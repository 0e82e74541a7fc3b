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
    found["statistics"] = statistics("influence", {"first / middle": 4.56, "last / middle": 0.5})
    return {name: table.assign(n=N) for name, table in found.items()}


def statistics(variant, values):
    """Of some ends, with intervals from half to twice their values."""
    rows = [("none", variant, end, value, 0.5 * value, 2 * value) for end, value in values.items()]
    return pd.DataFrame(rows, columns=["estimator", "variant", "statistic", *ENDS])


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
        lines[figures.REPLACEMENT_LOOK.colour, "None"] = scaled["value"]
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


def beside(*models):
    """Of models by their variants."""
    given = {f"model {place}": tables(variants, seed=place) for place, variants in enumerate(models)}
    return figures.comparison(given, TEXT), [panel for one in given.values() for panel in panels_of(one)]


def card(**others):
    """Of one model; `others` are further tables of it."""
    given = {**tables(WITHOUT_ALIBI), **others}
    lambdas, influence, attention = panels_of(given)
    panels = [influence, lambdas, attention]
    if "recall" in others:
        rows, colour = others["recall"], figures.GREEN
        columns = ["probability", "probability low", "probability high", "accuracy", "prior"]
        eighth, probability = N // 8, rows["probability"]
        means = [probability[part].mean() for part in (slice(eighth), MIDDLE, slice(-eighth, None))]
        parts = [(0, eighth - 1), (MIDDLE.start, MIDDLE.stop - 1), (N - eighth, N - 1)]
        along = [rows["place"], [(start - 0.4, stop + 0.4) for start, stop in parts]]
        panels = [Panel([rows[columns], means], along, lines={(colour, "-"): probability}), *panels]
    if "questions" in others:
        by_place = others["questions"].pivot(index="place", columns="record", values="log_probability").iloc[:3]
        means = np.exp(by_place.mean(axis=1))
        panels = [Panel([np.exp(by_place), means], lines={(figures.GREEN, "-"): means}), *panels]
    if "loss" in others:
        panels.append(Panel([others["loss"][ENDS]], lines={(figures.INDIGO, "-"): others["loss"]["value"]}))
    return figures.card(given, "mine finds it", TEXT), panels


def loss():
    value = np.geomspace(8, 2, N - 1)
    return pd.DataFrame({"position": range(1, N), "value": value, "low": value - 0.5, "high": value + 0.5, "n": N})


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


def questions():
    """Of 5 records, asked at 3 places and besides."""
    rows = [(record, place) for record in range(5) for place in ("1", "2", "3", "gold alone", "no documents")]
    table = pd.DataFrame(rows, columns=["record", "place"])
    return table.assign(log_probability=np.random.default_rng(1).uniform(-6, 0, len(table)), n=90, prompts=5)


def long_names():
    """Names of models and texts may be long, and models deep."""
    names = ("a", "a-rather-long-name-of-a-model-7b-instruct", "b", "another-long-name-of-a-model-1.3b")
    given = {
        name: tables((WITH_ALIBI, WITHOUT_ALIBI)[at % 2], layers=(3, 24, 1, 12)[at]) for at, name in enumerate(names)
    }
    return figures.comparison(given, "owner/some-long-name-of-a-text"), None


def long_title():
    """Of a deep model, with all that a card may have."""
    title = "In a-rather-long-name-of-a-model-7b-instruct, by replacement, the last token outweighs the middle, and not"
    given = {**tables(WITHOUT_ALIBI, layers=24), "recall": recall(), "loss": loss(), "replacement": replacement()}
    given["questions"] = questions()
    return figures.card(given, title, "owner/some-long-name-of-a-text"), None


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
    "a card": card,
    "two models": partial(beside, WITH_ALIBI, WITHOUT_ALIBI),
    "replacement": partial(card, replacement=replacement()),
    "recall": partial(card, recall=recall(), loss=loss()),
    "questions": partial(card, questions=questions(), recall=recall()),
    "questions alone": partial(card, questions=questions()),
    "four models": long_names,
    "a long title": long_title,
    "a training run": run,
    "a training run of powers": partial(run, (0, 1, 8, 64, 512, 143_000), 0),
}
