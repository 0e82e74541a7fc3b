"""Every figure shows the data that it is given, no other, and can be read. How tables are made has tests of its own."""

import re
from pathlib import Path

import pytest

from tests.drawn import Panel, assert_legible, assert_saved, assert_shown, panels
from tests.figures import card, emergence, layernorm, postnorm, released, structural

ROOT = Path(__file__).parents[3]
WINGS = {"emergence": emergence, "layernorm": layernorm, "postnorm": postnorm, "released": released}
WINGS |= {"structural": structural, "card": card}
FIGURES = {f"{wing}: {name}": make for wing, given in WINGS.items() for name, make in given.FIGURES.items()}
SAVED = {  # of every kind of layout one, which is written in all formats
    "emergence: maps",
    "emergence: theorems",
    "layernorm: scores",
    "postnorm: set_complement",
    "structural: fig3",
    "card: recall",
    "card: four models",
}

pytestmark = [pytest.mark.filterwarnings("error::UserWarning"), pytest.mark.usefixtures("styled")]


@pytest.mark.parametrize("name", FIGURES)
def test_data_drawn_are_data_given_and_can_be_read(name, tmp_path):
    figure, given = FIGURES[name]()
    if given is not None:  # else it is only to be read
        for axes, panel in zip(panels(figure), given, strict=True):
            assert_shown(axes, panel or Panel())
    assert_saved(figure, tmp_path) if name in SAVED else assert_legible(figure)


def test_figures_take_colours_and_titles_from_one_place():
    sources = [path for path in ROOT.glob("position_*/*/*.py") if path.stem.startswith("figures")]
    assert len(sources) >= 9
    for path in sources:
        assert re.findall(r'"#[0-9a-fA-F]{6}"|cmap="\w+"|"tab:\w+"|"C\d"', path.read_text()) == [], path
        assert re.findall(r"figure\.(?:legend|suptitle|set_title)\(", path.read_text()) == [], path
