import numpy as np
import pytest

from position_bias.structural import figures_content
from tests.unit.drawing_checks import assert_legible
from tests.unit.structural.conftest import file

pytestmark = pytest.mark.usefixtures("styled")
N, LABELS = 10, {"model": "bloom", "checkpoint": "seed0/step9"}


def content(layers=4, heads=5, diagonal=0.25, base=-3.0):
    return (base + diagonal * np.eye(N) + np.zeros((layers, heads, 1, 1))).astype(np.float32)


def panels(logits):
    (part,) = figures_content.fig5([file(LABELS, content=logits)]).subfigs
    return [axes for axes in part.axes if axes.images]


def test_a_panel_shows_its_own_layer_and_head_the_first_the_middle_and_the_last():
    logits = np.random.default_rng(0).normal(size=(4, 5, N, N)).astype(np.float32)
    drawn = panels(logits)
    assert [axes.get_title() for axes in drawn[:3]] == ["head 1", "head 3", "head 5"]
    chosen = [logits[layer, head] for layer in (0, 1, 3) for head in (0, 2, 4)]
    for axes, expected in zip(drawn, chosen, strict=True):
        shown = axes.images[0].get_array()
        np.testing.assert_array_equal(np.ma.getmaskarray(shown), np.triu(np.ones((N, N)), 1))
        below = np.tril_indices(N, -1)
        np.testing.assert_allclose(shown[below], expected[below] - expected[below].mean(dtype=float), atol=1e-6)
    assert len({axes.images[0].get_clim() for axes in drawn}) == 1


def test_content_that_is_constant_plus_diagonal_leaves_one_line():
    first, *_ = panels(content(diagonal=-0.25))
    np.testing.assert_allclose(np.diagonal(first.images[0].get_array()), -0.25, atol=1e-6)
    low, high = first.images[0].get_clim()
    assert low == -high
    assert first.texts[0].get_text() == "$-0.25$"


def test_a_small_and_constant_model_is_drawn_too():
    assert_legible(figures_content.fig5([file(LABELS, content=content(1, 1, diagonal=0.0))]))
