from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_bias.released import figures, variants
from position_bias.released.models import ALONG_LENGTHS, MODELS, VARIANTS
from position_bias.running import artifacts
from tests.unit.drawing_checks import assert_drawn, assert_legible

pytestmark = pytest.mark.usefixtures("styled")

N = 32
N_RELEASED = 256
ROOT = Path(__file__).parents[3]


@pytest.fixture
def shown(tmp_path):
    """Random profiles of two models, to the second of which faithful slopes are released ones; and their table."""
    rng = np.random.default_rng(0)
    profiles = {
        (model, "fineweb-edu", variant): rng.dirichlet(np.ones(N))
        for model in ("bloom-176b", "mpt-7b")
        for variant in VARIANTS
    }
    for variant in VARIANTS:
        alike = profiles["mpt-7b", "fineweb-edu", variant._replace(slopes="released")]
        profiles["mpt-7b", "fineweb-edu", variant] = alike
    paths = []
    for (model, dataset, variant), row in profiles.items():
        paths.append(tmp_path / model / dataset / f"n{N}" / f"{variant.name}.csv")
        artifacts.write_table(paths[-1], pd.DataFrame({"position": range(N), "value": row}))
    distances = [(model, x, 0.2) for model in ("bloom-176b", "mpt-7b") for x in "abc"]
    printed = pd.DataFrame(distances, columns=["model", "variant", "value"]).assign(dataset="fineweb-edu")
    return profiles, paths, variants.table(profiles, printed)


def test_figure_1_shows_every_variant_and_where_the_influence_may_lie(shown):
    profiles, paths, table = shown
    figure = figures.fig1(paths, table)
    axes = np.reshape(figure.axes, (2, 4))
    for row, model in zip(axes, ("bloom-176b", "mpt-7b"), strict=True):
        for panel, variant in zip(row[:3], "abc", strict=True):
            drawn = [line.get_ydata() for line in panel.lines if len(line.get_xdata()) == N]
            expected = [
                row
                for (of, _, key), row in profiles.items()
                if (of, key.variant) == (model, variant) and key.slopes in figures.SLOPES
            ]
            np.testing.assert_array_equal(drawn, expected)
    bars = [[line for line in row[3].lines if line.get_marker() == "|"] for row in axes]
    assert [len(of_model) for of_model in bars] == [2 + 2 + 4, 1 + 1 + 2]
    mean = table.query("model == 'mpt-7b'")["mean position a"].iloc[0]
    np.testing.assert_allclose(bars[1][0].get_xdata(), [max(0, mean - 0.205), min(1, mean + 0.205)])
    assert_legible(figure)


def test_the_big_models_have_a_row_each_with_the_influence_of_the_one_that_was_drawn():
    kept = pd.read_csv(ROOT / "evidence/structural/released/profiles.csv").sample(frac=1, random_state=0)
    drawn = pd.read_csv(ROOT / "published/structural_curves.csv")
    figure = figures.as_released(kept, drawn)
    influence = drawn.loc[drawn["variant"] == "d", "share"].tolist()
    for row, model in zip(np.reshape(figure.axes, (5, 3)), MODELS, strict=True):
        of_model = kept[kept["model"] == model].sort_values("position").set_index("variant")["value"]
        for panel, variant in zip(row, "abc", strict=True):
            curves = [line.get_ydata().tolist() for line in panel.lines if len(line.get_xdata()) == N_RELEASED]
            with_influence = model == "bloom-176b" and variant != "a"
            assert curves == [of_model.loc[variant].tolist()] + [influence] * with_influence
    assert_legible(figure)


def test_figure_4_has_a_panel_a_data_set_and_a_line_a_model(tmp_path):
    rng = np.random.default_rng(0)
    mixing = {
        (model, dataset): pd.DataFrame({"layer": range(5), "lambda": rng.uniform(size=5)})
        for dataset in ("fineweb-edu", "dclm")
        for model in ("falcon-rw-7b", "mpt-7b")
    }
    paths = [tmp_path / model / dataset / "lambda.csv" for model, dataset in mixing]
    for path, table in zip(paths, mixing.values(), strict=True):
        artifacts.write_table(path, table)
    figure = figures.fig4(paths)
    for axes, dataset in zip(figure.axes, ("fineweb-edu", "dclm"), strict=True):
        assert_drawn(axes, *(table["lambda"] for (_, of), table in mixing.items() if of == dataset))
        assert_drawn(axes, np.arange(1, 6), along=0)


def test_lengths_has_a_column_a_model_with_every_length_above_and_every_variant_below():
    """First tokens of sequences that are short enough have dots; the others have no influence and share a line."""
    models, lengths = ("mpt-7b", "bloom-176b"), (16, 100, 1000)
    at_the_first = {16: 1e-4, 100: 1e-30, 1000: 0.0}
    labels = [(model, *variant, n) for model in models for variant in ALONG_LENGTHS for n in lengths]
    columns = ["model", "variant", "slopes", "content", "n"]
    samples = pd.concat(
        pd.DataFrame(
            dict(zip(columns, label, strict=True))
            | {"distance": [0, 1, label[-1] - 1], "value": [0.5, 0.1, at_the_first[label[-1]]]}
        )
        for label in labels
    )
    sums = pd.DataFrame(labels, columns=columns).assign(statistic="mean distance", value=np.arange(3.0, 27))
    figure = figures.lengths(samples, sums)
    above, below = np.reshape(figure.axes, (2, 2))
    for axes in above:
        longest, shortest, dot = axes.lines
        np.testing.assert_array_equal(longest.get_xdata(), [1, 2, 1000])
        np.testing.assert_array_equal(shortest.get_xdata(), [1, 2, 16])
        assert (dot.get_marker(), dot.get_xdata()[0], dot.get_ydata()[0]) == ("o", 16, 1e-4)
    np.testing.assert_array_equal(below[0].lines[0].get_ydata(), [3, 4, 5])
    assert [len(axes.lines) for axes in below] == [5, 5]  # four variants and the uniform profile
    assert_legible(figure)
