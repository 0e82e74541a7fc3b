import numpy as np
import pandas as pd
import pytest

from position_bias.released import figures, variants, written
from position_bias.released.models import ALONG_LENGTHS, VARIANTS
from tests.unit.drawing_checks import assert_legible

pytestmark = pytest.mark.usefixtures("styled")

N = 32


def rows_of(profiles):
    for (model, dataset), by_variant in profiles.items():
        for variant, row in by_variant.items():
            labels = (model, dataset, N, *variant)
            yield pd.DataFrame(dict(zip(written.LABELS, labels, strict=True)) | {"position": range(N), "value": row})


@pytest.fixture
def shown():
    """Random profiles of two models, faithful slopes making no difference to the second, and their table."""
    rng = np.random.default_rng(0)
    profiles = {
        (model, "fineweb-edu"): {variant: rng.dirichlet(np.ones(N)) for variant in VARIANTS}
        for model in ("bloom-176b", "mpt-7b")
    }
    of_mpt = profiles["mpt-7b", "fineweb-edu"]
    for variant in VARIANTS:
        of_mpt[variant] = of_mpt[variant._replace(slopes="released")]
    distances = [(model, x, 0.2) for model in ("bloom-176b", "mpt-7b") for x in "abc"]
    printed = pd.DataFrame(distances, columns=["model", "variant", "value"]).assign(dataset="fineweb-edu")
    return profiles, pd.concat(rows_of(profiles)), variants.table(profiles, printed)


def test_figure_1_shows_every_variant_and_where_the_influence_may_lie(shown):
    profiles, table_of_profiles, table = shown
    figure = figures.variants_and_bounds(table_of_profiles, table)
    axes = np.reshape(figure.axes, (2, 4))
    for row, model in zip(axes, ("bloom-176b", "mpt-7b"), strict=True):
        for panel, variant in zip(row[:3], "abc", strict=True):
            drawn = [line.get_ydata() for line in panel.lines if len(line.get_xdata()) == N]
            of_model = profiles[model, "fineweb-edu"].items()
            expected = [row for key, row in of_model if key.variant == variant and key.slopes in figures.SLOPES]
            np.testing.assert_array_equal(drawn, expected)
    bars = [[line for line in row[3].lines if line.get_marker() == "|"] for row in axes]
    assert [len(of_model) for of_model in bars] == [2 + 2 + 4, 1 + 1 + 2]
    mean = table.query("model == 'mpt-7b'")["mean position a"].iloc[0]
    np.testing.assert_allclose(bars[1][0].get_xdata(), [max(0, mean - 0.205), min(1, mean + 0.205)])
    assert [panel.get_yscale() for panel in axes[0][:3]] == ["log", "linear", "linear"]
    assert len({panel.get_ylim() for panel in axes[:, 1:3].flat}) == 4  # limits of their own, as in the paper
    assert_legible(figure)


def test_figure_4_has_a_panel_a_data_set_and_a_line_a_model():
    rng = np.random.default_rng(0)
    keys = [(model, dataset) for dataset in ("fineweb-edu", "dclm") for model in ("falcon-rw-7b", "mpt-7b")]
    mixing = pd.concat(
        pd.DataFrame({"model": model, "dataset": dataset, "layer": range(5), "lambda": rng.uniform(size=5)})
        for model, dataset in keys
    )
    figure = figures.residual_mixing(mixing)
    assert [axes.get_title() for axes in figure.axes] == ["fineweb-edu", "dclm"]
    line = figure.axes[1].lines[0]
    expected = mixing.query("model == 'falcon-rw-7b' and dataset == 'dclm'")["lambda"]
    np.testing.assert_array_equal(line.get_ydata(), expected)
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 6))


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
    assert [axes.get_title() for axes in above] == list(models)
    for axes in above:
        longest, shortest, dot = axes.lines
        np.testing.assert_array_equal(longest.get_xdata(), [1, 2, 1000])
        np.testing.assert_array_equal(shortest.get_xdata(), [1, 2, 16])
        assert (dot.get_marker(), dot.get_xdata()[0], dot.get_ydata()[0]) == ("o", 16, 1e-4)
    np.testing.assert_array_equal(below[0].lines[0].get_ydata(), [3, 4, 5])
    assert [len(axes.lines) for axes in below] == [5, 5]  # four variants and the uniform profile
    low, high = below[0].get_ylim()
    assert low < 3
    assert high > 26
    entries = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert entries[:2] == ["16 tokens", "100 to 1,000 tokens"]
    assert_legible(figure)
