"""What figures of the released numbers are given, and what each panel must show of it."""

from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from position_bias.released import figures, variants
from position_bias.released.models import ALONG_LENGTHS, MODELS, VARIANTS
from position_card.core import artifacts
from tests.drawn import Panel, of
from tests.figures.emergence import table

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "evidence/structural/released"
N, BIG = 32, ("bloom-176b", "mpt-7b")


def fig1(folder):
    """Every variant of each model, of the second of which faithful slopes are released ones; and where (d) may lie."""
    rng, text = np.random.default_rng(0), "fineweb-edu"
    rows = {(model, text, variant): rng.dirichlet(np.ones(N)) for model in BIG for variant in VARIANTS}
    rows |= {("mpt-7b", text, one): rows["mpt-7b", text, one._replace(slopes="released")] for one in VARIANTS}
    paths = []
    for (model, dataset, variant), row in rows.items():
        paths.append(folder / model / dataset / f"n{N}" / f"{variant.name}.csv")
        artifacts.write_table(paths[-1], pd.DataFrame({"position": range(N), "value": row}))
    printed = pd.DataFrame(product(BIG, "abc"), columns=["model", "variant"]).assign(dataset=text, value=0.2)
    given, panels = variants.table(rows, printed), []
    for model in BIG:
        for name in "abc":
            chosen = [one for one in VARIANTS if one.variant == name and one.slopes in figures.SLOPES]
            colours = [figures.VARIANTS["a"] if name == "a" else figures.CONTENT[one.content] for one in chosen]
            styles = [figures.SLOPES[one.slopes] for one in chosen]
            looks = [(look.colour, style) for look, style in zip(colours, styles, strict=True)]
            shown = [rows[model, text, one] for one in chosen]
            panels.append(Panel(shown, lines=dict(zip(looks, shown, strict=True))))
        panels.append(allowed(of(given, model=model)))
    return figures.fig1(paths, given), panels


def allowed(rows):
    """Mean positions, give or take a distance that is printed as .2 and rounded."""
    means = np.array([rows.loc[rows["slopes"].isin(figures.SLOPES), f"mean position {name}"] for name in "abc"])
    return Panel(along=[means, np.clip(means - 0.205, 0, 1), np.clip(means + 0.205, 0, 1)])


FIGURES_1_AND_2 = ("bloom-176b", "mpt-7b", "bloom-7b1", "mpt-30b", "falcon-rw-7b")  # as the paper has them


def as_released():
    """A row a model, with the mean of the middle half and both ends, and the influence of the model that was drawn."""
    kept = pd.read_csv(KEPT / "profiles.csv").sample(frac=1, random_state=0)
    drawn, panels = pd.read_csv(ROOT / "published/structural_curves.csv"), []
    influence = of(drawn, variant="d")["share"]
    for model, name in product(FIGURES_1_AND_2, "abc"):
        shown = of(kept, model=model, variant=name).sort_values("position")["value"].to_numpy()
        lines = {(figures.VARIANTS[name].colour, "-"): shown}
        if name != "a":
            lines[figures.MIDDLE["color"], "-"] = [shown[64:192].mean()] * 2
        if model == "bloom-176b" and name != "a":
            lines[figures.VARIANTS["d"].colour, "--"] = influence
        panels.append(Panel([*lines.values()], lines=lines))
    return figures.as_released(kept, drawn), panels


def mixing_as_released():
    """A panel for each data set, and one with the rank correlations of each model on all of them."""
    mixing, statistics = (pd.read_csv(KEPT / f"{name}.csv") for name in ("mixing", "statistics"))
    trends = of(statistics, statistic="spearman with depth")
    panels = [
        Panel([of(mixing, dataset=name)["value"]], [np.arange(1, 11)]) for name in ("fineweb-edu", "dclm", "wikipedia")
    ]
    places = -np.repeat(np.arange(len(MODELS)), 3)
    return figures.mixing_as_released(mixing, statistics), [*panels, Panel([places], [trends["value"]])]


def fig4(folder):
    rows = table("lambda", dataset=("fineweb-edu", "dclm"), model=("falcon-rw-7b", "mpt-7b"), layer=range(5))
    paths = []
    for (dataset, model), schedule in rows.groupby(["dataset", "model"], sort=False):
        paths.append(folder / model / dataset / "lambda.csv")
        artifacts.write_table(paths[-1], schedule[["layer", "lambda"]])
    panels = [Panel([of(rows, dataset=name)["lambda"]], [np.arange(1, 6)]) for name in ("fineweb-edu", "dclm")]
    return figures.fig4(paths), panels


def lengths():
    """First tokens of sequences that are short enough have dots; the others have no influence and share a line."""
    at_the_first, columns = {16: 1e-4, 100: 1e-30, 1000: 0.0}, ["model", "variant", "slopes", "content", "n"]
    labels = [(model, *variant, n) for model in BIG for variant in ALONG_LENGTHS for n in at_the_first]
    ends = {n: ((0, 0.5), (1, 0.1), (n - 1, at_the_first[n])) for n in at_the_first}
    places = [(*label, *place) for label in labels for place in ends[label[-1]]]
    samples = pd.DataFrame(places, columns=[*columns, "distance", "value"])
    sums = pd.DataFrame(labels, columns=columns).assign(
        statistic="mean distance", value=np.arange(3.0, 3 + len(labels))
    )
    above = Panel([[0.5, 0.1, 0, 1e-4]], [[1, 2, 1000, 16]])
    uniform = [(n - 1) / 2 for n in at_the_first]
    return figures.lengths(samples, sums), [
        above,
        above,
        *(Panel([of(sums, model=model)["value"], uniform]) for model in BIG),
    ]


def in_folder(make):
    with TemporaryDirectory() as folder:
        return make(Path(folder))


FIGURES = {
    "fig1": partial(in_folder, fig1),
    "as_released": as_released,
    "mixing_as_released": mixing_as_released,
    "fig4": partial(in_folder, fig4),
    "lengths": lengths,
}
