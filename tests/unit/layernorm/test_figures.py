import numpy as np
import pytest

from position_bias.layernorm import figures
from tests.figures.layernorm import scores


@pytest.mark.usefixtures("styled")
def test_a_map_says_which_size_its_colours_span():
    """Of 95 % of the scores, to one digit; the map of the second layer has twice the first one's."""
    maps = [axes for axes in scores()[0].axes if axes.texts]
    written = [float(axes.texts[0].get_text().removeprefix("±")) for axes in maps]
    sizes = [abs(key - (row - 1) / 2) for row in range(1, 12) for key in range(row)]
    scale = np.quantile(sizes, figures.SHARE_WITHIN)
    assert written == [float(f"{times * scale:.1g}") for _ in range(4) for times in (1, 2)]


def test_heatmaps_show_means_of_blocks_that_the_mask_lets_through():
    values = np.arange(25.0).reshape(5, 5)
    values[np.triu_indices(5)] = np.nan
    expected = [[5, np.nan, np.nan], [(10 + 11 + 15 + 16) / 4, 17, np.nan], [20.5, 22.5, np.nan]]
    np.testing.assert_allclose(figures.blocks(values, 2), expected)
    np.testing.assert_array_equal(figures.blocks(values, 1), values)
