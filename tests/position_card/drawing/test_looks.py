from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from position_card.drawing import looks
from position_card.drawing.style import PAGE
from tests import legibility

LONG = (
    "fixed vocabulary, tested with the common direction of training; without residual connections; 3 seeds of 4 layers"
)
SHARING = {  # tables of looks that share panels
    "models": {name: look for name, look in looks.MODELS.items() if "-" in name},
    "other models": dict(enumerate(looks.OTHER_MODELS)),
    "norms": looks.NORMS,
    "pairs": looks.PAIRS,
}


pytestmark = pytest.mark.usefixtures("styled")


@pytest.mark.parametrize("table", SHARING)
def test_what_shares_a_panel_differs_by_mark_or_line(table):
    marks = [(look.marker, look.line, look.filled) for look in SHARING[table].values()]
    assert len(set(marks)) == len(marks)
    if table in ("norms", "pairs"):
        for one, other in combinations([to_rgb(look.colour) for look in SHARING[table].values()], 2):
            assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > 0.15


def test_a_model_that_nobody_knows_has_a_look_of_its_own():
    names = [f"mine-{i}" for i in range(len(looks.OTHER_MODELS))]
    together = looks.model_looks(["bloom", *names])
    assert list(together) == ["bloom", *names]
    assert len({(look.colour, look.marker, look.line) for look in together.values()}) == len(names) + 1
    assert [look.name for look in together.values()] == ["bloom", *names]
    assert looks.model_looks(reversed(names)) == {name: together[name] for name in reversed(names)}


GREY = np.array([0.299, 0.587, 0.114])  # how light red, green and blue print


def test_numbers_can_be_read_without_colours():
    lightness = mpl.colormaps[looks.SEQUENTIAL](np.linspace(0, 1, 50))[:, :3] @ GREY
    assert (np.diff(lightness) < 0).all()
    for numbers in (2, 5):
        lightness = [to_rgb(colour) @ GREY for colour in looks.shades(range(numbers)).values()]
        assert -np.diff(lightness).max() > 0.3 / numbers


def test_numbers_around_0_are_white_there_and_paler_below_than_above():
    below, around, above = looks.DIVERGING([0.0, 0.5, 1.0])[:, :3] @ GREY
    assert around > 0.98
    assert above < 0.3 < 0.6 < below < 0.8  # a mark in black can be read on the colour below 0


def test_depths_have_colours_and_marks_of_their_own():
    found = [looks.depth_look(depth) for depth in range(1, looks.DEEPEST + 1)]
    assert len({look.marker for look in found}) == len(found)
    assert [look.name for look in found[:2]] == ["1 layer", "2 layers"]
    lightness = [sum(to_rgb(look.colour)) for look in found]
    assert lightness == sorted(lightness, reverse=True)


def test_text_is_wrapped_into_few_lines_of_about_equal_length():
    lines = looks.balanced(LONG, 4)
    assert " ".join(lines) == LONG
    assert len(lines) == len(looks.wrapped(LONG, 4)) > 1
    figure = plt.figure()
    widths = [figure.text(0, 0, line, fontsize=looks.TYPE).get_window_extent().width / figure.dpi for line in lines]
    assert max(widths) <= 4 * 1.02
    assert min(widths) > 0.6 * max(widths)
    assert looks.balanced("short", 4) == ["short"]
    assert looks.wrapped("an-unbreakable-word", 0.1) == ["an-unbreakable-word"]


def test_title_and_settings_stand_around_panels_whose_size_stays():
    figure, row = plt.subplots(1, 2, figsize=(PAGE, 2), label=LONG)
    entries = [axes.plot([0, 1], label=f"an entry of {place} with a long name")[0] for axes in row for place in "abc"]
    _, low, _, high = legibility.drawn(figure).panels[0].box
    looks.legend(figure, entries, entries[:2], "5 seeds of each network")
    sight = legibility.drawn(figure)
    _, bottom, _, top = sight.panels[0].box
    texts = {text.words: text.box for text in sight.texts}
    assert legibility.faults(sight) == []
    assert texts[LONG][1] > top
    assert texts["5 seeds of each network"][3] < bottom
    assert top - bottom == pytest.approx(high - low, abs=1)
