import matplotlib as mpl
import numpy as np
import pytest

from position_bias.drawing import style
from position_bias.structural import figures_content
from tests.unit.drawing_checks import assert_legible

N = 10


def content(layers=4, heads=5, diagonal=0.25, base=-3.0):
    return (base + diagonal * np.eye(N) + np.zeros((layers, heads, 1, 1))).astype(np.float32)


@pytest.fixture
def drawn():
    """Draw, and hand out the panels by model."""
    with style.figure_style():

        def draw(models):
            figure = figures_content.content_logits(models)
            return figure, [[axes for axes in part.axes if axes.images] for part in figure.subfigs]

        yield draw


def test_a_panel_for_the_first_middle_and_last_layer_and_head(drawn):
    _figure, (panels,) = drawn({"bloom": content()})
    assert [axes.get_title() for axes in panels[:3]] == ["head 1", "head 3", "head 5"]


def test_each_panel_shows_its_own_layer_and_head(drawn):
    logits = np.random.default_rng(0).normal(size=(4, 5, N, N)).astype(np.float32)
    _, (panels,) = drawn({"bloom": logits})
    chosen = [logits[layer, head] for layer in (0, 1, 3) for head in (0, 2, 4)]
    for axes, expected in zip(panels, chosen, strict=True):
        shown = axes.images[0].get_array()
        np.testing.assert_array_equal(np.ma.getmaskarray(shown), np.triu(np.ones((N, N)), 1))
        below = np.tril_indices(N, -1)
        assert shown[below].mean() == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(shown[below], expected[below] - expected[below].mean(dtype=float), atol=1e-6)
        assert len({axes.images[0].get_clim() for axes in panels}) == 1


def test_content_that_is_constant_plus_diagonal_leaves_one_line(drawn):
    _, (panels,) = drawn({"bloom": content(diagonal=-0.25)})
    image = panels[0].images[0]
    np.testing.assert_allclose(np.diagonal(image.get_array()), -0.25, atol=1e-6)
    low, high = image.get_clim()
    assert low == -high
    assert panels[0].texts[0].get_text() == "$-0.25$"


@pytest.mark.parametrize("shape", [(1, 1), (2, 3)])
def test_small_and_constant_models_are_drawn_too(drawn, shape):
    figure, _ = drawn({"tiny": content(*shape, diagonal=0.0)})
    assert_legible(figure)


def test_masked_keys_are_unlike_any_logit():
    colours = mpl.colormaps[figures_content.DIVERGING](np.linspace(0, 1, 256))[:, :3]
    unread = np.array(mpl.colors.to_rgb(figures_content.UNREAD))
    assert np.abs(colours - unread).max(1).min() > 0.05


def test_files_are_small_and_hold_whole_images(drawn, tmp_path):
    n = 64
    logits = np.random.default_rng(0).normal(size=(3, 3, n, n)).astype(np.float32)
    figure, _ = drawn(dict.fromkeys("abc", logits))
    style.save(figure, tmp_path / "fig5.svg", tmp_path / "fig5.pdf")
    assert (tmp_path / "fig5.svg").stat().st_size < 600_000
    assert (tmp_path / "fig5.pdf").stat().st_size < 300_000
    assert (tmp_path / "fig5.svg").read_text().count("<image") >= 27
