"""Numbers that are read from a drawing are those that were drawn."""

import io
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import drawings

RELEASED = Path(__file__).parents[2] / "published" / "structural_curves.csv"


def drawing(*curves: np.ndarray, **looks: object) -> bytes:
    figure, axes = plt.subplots(figsize=(3, 2))
    for heights in curves:
        axes.plot(np.arange(len(heights)), heights, **({"marker": "o", "linestyle": "-"} | looks))
    axes.minorticks_on()
    file = io.BytesIO()
    figure.savefig(file, format="pdf")
    plt.close(figure)
    return file.getvalue()


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_a_curve_is_read_as_it_was_drawn(scale):
    heights = scale * np.random.default_rng(0).random(256)
    tokens, shares = drawings.curve(drawing(heights))
    np.testing.assert_allclose(tokens, np.arange(256), atol=2e-5)
    np.testing.assert_allclose(shares, heights, atol=2e-7 * scale)


def test_a_file_that_is_no_drawing_or_without_markers_is_refused():
    with pytest.raises(ValueError, match="no markers"):
        drawings.curve(drawing(np.arange(9.0), marker=None))
    with pytest.raises(ValueError, match="no compressed page"):
        drawings.curve(b"%PDF-1.4 without streams")


def test_the_released_curves_are_distributions_over_256_tokens():
    """Each of the four sums to 1 within what 256 numbers of an error of 1e-9 allow; (a) puts all on the first token."""
    curves = pd.read_csv(RELEASED).pivot(index="token", columns="variant", values="share")
    assert list(curves.index) == list(range(1, 257))
    assert list(curves) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(curves.sum(), 1.0, atol=256e-9)
    assert curves.loc[1, "a"] == pytest.approx(1, abs=2e-9)
