"""Every figure shows the data that it is given, no other, and can be read. How tables are made has tests of its own."""

import pytest

from tests.drawn import Panel, assert_legible, assert_saved, assert_shown, panels
from tests.figures import card, emergence, layernorm, postnorm, released, structural

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
