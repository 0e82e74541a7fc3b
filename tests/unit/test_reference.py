import re
from pathlib import Path
from typing import Annotated, Literal

import pytest

from position_bias import settings
from position_bias.running import configuration
from position_bias.running.section import Bounds, Given, Items, Level, Name, Saving, section
from tests.configurations import DEFAULT
from tools import reference

ROOT = Path(__file__).parents[2]
PAGE = reference.page(settings.Settings, DEFAULT)


def test_the_page_in_docs_is_the_one_that_is_written():
    assert (ROOT / "docs/configuration.md").read_text() == PAGE, "run make docs"


def test_every_value_of_the_default_has_a_row():
    def keys(node, path=""):
        if not isinstance(node, dict):
            yield path
            return
        for name, inner in node.items():
            yield from keys(inner, f"{path}.{name}" if path else name)

    named = r"datasets|models|hub_models|retrieval\.networks|structural\.pretrained\.models|"
    named += r"postnorm\.(set_complement|languages)\.lengths|postnorm\.set_complement\.learning_rate"

    def shown(key):
        """As the page has it, where a name of the configuration stands in a key."""
        return re.sub(rf"^(?P<mapping>{named})\.[^.]+", r"\g<mapping>.NAME", key)

    for key in keys(DEFAULT):
        assert f"| `{shown(key)}` | " in PAGE or DEFAULT.get(key) == {}, key


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Annotated[int, Bounds(1, 9)], "whole number, at least 1, at most 9"),
        (Level, "number, above 0, below 1"),
        (Annotated[int, Bounds(2, multiple=2)], "whole number, at least 2, a multiple of 2"),
        (Literal["auto", "cpu"], "one of auto, cpu"),
        (Saving, "true or false"),
        (Given | None, "text or null"),
        (Annotated[list[Level], Items(2)], "list, each item once, at least 2; an item: number, above 0, below 1"),
    ],
    ids=str,
)
def test_what_a_value_may_be_is_said_in_words(annotation, words):
    assert reference.allowed(configuration.part(annotation)) == words


def test_names_with_different_values_show_each_of_them_once():
    @section
    class Shown:
        rates: Annotated[dict[Name, Annotated[float, Bounds(), "a rate"]], "rates by name"]

    page = reference.page(Shown, {"rates": {"one": 0.5, "two": 0.25, "three": 0.5}})
    assert page.endswith("\n| `rates.NAME` | a rate | number | `0.5` or `0.25` |\n")
    assert "## rates\n\nRates by name.\n" in page
