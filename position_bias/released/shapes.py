"""The shape of the released profiles: of bloom-176b beside what its authors drew, and of every model for evidence/.

Nobody released numbers of the measured influence (d), but that of bloom-176b is drawn. Slopes and the scale of content
are those of the authors' configurations (`released`) or those of the model (`faithful`). The drawings of (a), (b) and
(c) themselves tell whether the rollouts here are those that were drawn.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from position_bias.released.models import MODELS, PRIMARY, TREND, Content, ReleasedVariant, Rule
from position_bias.released.schedules import read_schedule
from position_bias.released.variants import LABELS, by_variant, read_profiles
from position_card.core import artifacts
from position_card.rollout import statistics
from position_card.rollout.comparison import DISTANCE, INFLUENCE, SHAPE

SHAPES = ("first / middle", "last / middle", "argmin", "mean position")  # of each profile
AGAINST = ("wasserstein", "total variation", "argmin distance")  # of each rollout and (d)
SCALE = "paper"
SHIFT = "shift"  # of heads: the share whose diagonal has the sign of the mean over all heads of all layers
POSITIVE = "positive shift"  # the share of heads with a positive one
TENTHS = 10  # parts of the depth over which lambda is averaged

# How far a rollout moves with the slopes that its model has, (b), or with content divided by sqrt(head_dim), (c)
CORRECTION = "W to the model's own"
EXCESS = "excess over the triangle inequality"  # of printed distances, whatever the influence is; below 0, none
CORRECTIONS: dict[str, tuple[Literal["b", "c"], tuple[Rule, Content], tuple[Rule, Content]]] = {  # as configured, own
    "slopes": ("b", ("released", "none"), ("faithful", "none")),
    "content": ("c", ("released", "released"), ("released", "faithful")),
}
DIGITS = 7  # of values that evidence/ keeps


def compare_with_drawing(profiles: list[Path], curves: pd.DataFrame) -> pd.DataFrame:
    """A row for each rollout in these files, and one for (d): its shape, its distances to (d), and to its own drawing.

    `curves` has the columns variant, token and share. The last distance is NaN where slopes or content are not those of
    the authors' configurations.
    """
    by_token = curves.pivot(index="token", columns="variant", values="share")
    drawing = {str(name): by_token[name].to_numpy() for name in by_token}
    rows = []
    for key, of_variant in read_profiles(profiles).groupby(["variant", "slopes", "content"], sort=False):
        variant, slopes, content = map(str, key)
        profile = of_variant.sort_values("position")["value"].to_numpy(float)
        was_drawn = slopes == "released" and content != "faithful"
        rows.append(
            {
                **{"variant": variant, "slopes": slopes, "content": content},
                **{name: float(SHAPE[name](profile)) for name in SHAPES},
                **{name: float(DISTANCE[name](profile, drawing[INFLUENCE])) for name in AGAINST},
                "W to its drawing": float(statistics.wasserstein(profile, drawing[variant])) if was_drawn else None,
            }
        )
    shape = {name: float(SHAPE[name](drawing[INFLUENCE])) for name in SHAPES}
    return pd.DataFrame([*rows, {"variant": INFLUENCE, "slopes": "none", "content": "none", **shape}])


def evidence(
    profiles: list[Path],
    mixing: list[Path],
    content: list[Path],
    variants: pd.DataFrame,
    drawn: pd.DataFrame,
    source: pd.DataFrame,
) -> dict[str, pd.DataFrame]:
    """The tables of evidence/structural/released/, each with the scale of the released models.

    `profiles` are at one length, of every model, data set and variant; `mixing` and `content` of every model and data
    set. `variants` and `drawn` are the tables of these names, and `source` says what the numbers were read from. Of
    lambda the means over tenths of the layers are kept, and of content what is said of all heads.
    """
    profile_rows = read_profiles(profiles)
    of_authors = (profile_rows["slopes"] == "released") & (profile_rows["content"] != "faithful")
    primary = profile_rows[of_authors & (profile_rows["dataset"] == PRIMARY)]
    rows = [
        *_shapes(profile_rows),
        *_schedules(mixing, content, int(profile_rows["n"].iloc[0])),
        *_corrections(profile_rows),
        *_excesses(variants),
    ]
    tables = {
        "statistics": pd.DataFrame(rows),
        "profiles": primary[["model", "dataset", "n", "variant", "position", "value"]],
        "mixing": pd.DataFrame(row for path in mixing for row in _tenths(path)),
        "distances": variants,
        "drawn": drawn,
        "source": source,
    }
    return {name: _round(table).assign(scale=SCALE) for name, table in tables.items()}


def judged_values(statistics: pd.DataFrame) -> pd.DataFrame:
    """What claims are judged by, of each big model on each data set: `statistics` is that of evidence/.

    Ratios are over the mean of the middle half. Slopes and content are as configured, but in the columns that say how
    far a rollout moves with the model's own.
    """
    is_plain = (statistics["slopes"] != "faithful") & (statistics["slopes"] != "doubled")
    plain_rows = statistics[is_plain & (statistics["content"] != "faithful")]
    by_model = {
        key: rows.set_index(["statistic", "network"])["value"] for key, rows in plain_rows.groupby(["model", "dataset"])
    }
    rows = []
    for model, dataset in dict.fromkeys(plain_rows[["model", "dataset"]].itertuples(index=False, name=None)):
        value = by_model[model, dataset]
        row: dict[str, object] = {"model": model, "dataset": dataset, "first token of (a)": value["first", "a"]}
        for variant in "bc":
            row |= {f"{name} of ({variant})": value[name, variant] for name in ("first / middle", "last / middle")}
        row["first token, (c) less (b)"] = value["first", "c"] - value["first", "b"]
        row["mean position, (c) less (b)"] = value["mean position", "c"] - value["mean position", "b"]
        row["rank correlation of lambda with depth"] = value[TREND, "lambda"]
        row["share of heads that shift as their mean"] = value[SHIFT, "heads"]
        row |= {f"W with the model's own {part}": value[CORRECTION, part] for part in CORRECTIONS}
        row["excess of printed distances"] = value[EXCESS, "printed"]
        rows.append(row | {"scale": SCALE, "interval": "none: known"})
    return pd.DataFrame(rows)


def _shapes(profiles: pd.DataFrame) -> Iterator[dict[str, object]]:
    """What is said of each profile, with the slopes that its model is judged by."""
    for key, profile in profiles.groupby(LABELS, sort=False):
        labels = dict(zip(LABELS, key, strict=True))
        if labels["slopes"] not in MODELS[str(labels["model"])].rules:
            continue
        shares = profile.sort_values("position")["value"].to_numpy(float)
        of_profile = {name: labels[name] for name in ("model", "dataset", "n")}
        rules = {"network": labels["variant"], "slopes": labels["slopes"], "content": labels["content"]}
        for name, shape in SHAPE.items():
            yield {**of_profile, "statistic": name, **rules, "value": float(shape(shares))}


def _schedules(mixing: list[Path], content: list[Path], n: int) -> Iterator[dict[str, object]]:
    """Yield rows of how lambda changes with depth, and how heads shift the diagonal, for each model and data set.

    `mixing` and `content` are their tables, one of each for each, in folders of their names; n is the number of tokens.
    """
    for of_layers, of_heads in zip(mixing, content, strict=True):
        schedule = read_schedule(of_layers, of_heads)
        labels = {"model": of_layers.parts[-3], "dataset": of_layers.parts[-2], "n": n}
        layers = np.arange(len(schedule.mixing))
        positive = schedule.diagonal > 0
        statistics_of = {
            (TREND, "lambda"): statistics.spearman(layers, schedule.mixing),
            (SHIFT, "heads"): (positive == (schedule.diagonal.mean() > 0)).mean(),
            (POSITIVE, "heads"): positive.mean(),
        }
        for (name, network), value in statistics_of.items():
            rules = {"network": network, "slopes": "none", "content": "none"}
            yield {**labels, "statistic": name, **rules, "value": float(value)}


def _tenths(mixing: Path) -> Iterator[dict[str, object]]:
    """Yield the mean lambda over each tenth of the layers, from the first on, with labels.

    `mixing` is the table of a model on a data set, in folders of their names: columns layer and lambda.
    """
    layers = artifacts.read_table(mixing, ["layer", "lambda"]).sort_values("layer")["lambda"].to_numpy(float)
    labels = {"model": mixing.parts[-3], "dataset": mixing.parts[-2], "layers": len(layers)}
    for tenth, part in enumerate(np.array_split(layers, TENTHS), 1):
        yield {**labels, "tenth": tenth, "value": float(part.mean())}


def _corrections(profiles: pd.DataFrame) -> Iterator[dict[str, object]]:
    """How far (b) moves with the model's own slopes, and (c) with the scale that content has in attention."""
    of_variant = by_variant(profiles)
    n = int(profiles["n"].iloc[0])
    for model, dataset in dict.fromkeys((model, dataset) for model, dataset, _ in of_variant):
        for network, (variant, *rules) in CORRECTIONS.items():
            pair = [ReleasedVariant(variant, *rule) for rule in rules]
            if all((model, dataset, name) in of_variant for name in pair):
                as_configured, of_model = (of_variant[model, dataset, name] for name in pair)
                labels = {"model": model, "dataset": dataset, "n": n, "statistic": CORRECTION, "network": network}
                distance = float(statistics.wasserstein(as_configured, of_model))
                yield {**labels, "slopes": "none", "content": "none", "value": distance}


def _excesses(variants: pd.DataFrame) -> Iterator[dict[str, object]]:
    """By how much the distances that the paper prints break a bound, with the rollouts that its authors configured."""
    is_plain = (variants["slopes"] == "released") & (variants["content"] == "released")
    of_paper = is_plain & (variants["lambda of (b)"] == PRIMARY)
    for row in variants[of_paper].to_dict("records"):
        labels = {name: row[name] for name in ("model", "dataset", "n")}
        rules = {"network": "printed", "slopes": "none", "content": "none"}
        excess = max(row["excess by means"], row["excess by triangles"])
        yield {**labels, "statistic": EXCESS, **rules, "value": float(excess)}


def _round(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers to DIGITS significant digits, so that a table is small and the same on every machine."""
    numbers = table.select_dtypes("float").columns
    return table.assign(**{name: [float(f"{value:.{DIGITS}g}") for value in table[name]] for name in numbers})
