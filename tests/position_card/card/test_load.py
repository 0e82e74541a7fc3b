"""A card that was saved is opened again; what is no card, is damaged or of another version is refused in one line."""

import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from position_card import Card, load, measure
from position_card.card import measurements
from tests.position_card.card.conftest import TYPED, llama
from tests.refusals import refused

ROOT = Path(__file__).parents[3]


def files(folder):
    paths = [path for path in sorted(folder.rglob("*.*")) if "measured" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_the_card_of_the_command_is_drawn_anew_with_the_same_bytes(kept, here):
    card = load(str(kept))
    card.save("again")
    assert (card.name, card.seed, card.measurements.facts["settings"]["seed"]) == ("my-model", 0, 0)
    written = files(here / "again")
    assert len(written) == 11
    assert written == {name: content for name, content in files(kept).items() if name in written}


def test_a_card_that_was_saved_keeps_how_its_intervals_are_made(here, own_tokenizer, prose):
    options = {"lengths": [9], "prompts": 8, "replace": 0, "recall": 0, "replicates": 30, "level": 0.5, "seed": 7}
    card = measure(llama(), own_tokenizer, prose, **options)
    card.save_measurements("mine")
    again = load("mine")
    assert (again.replicates, again.level, again.seed) == (30, 0.5, 7)
    assert again.tables.keys() == card.tables.keys()
    assert all(again.tables[name].equals(table) for name, table in card.tables.items())


def test_every_table_is_described_in_the_reference_and_on_the_page(kept):
    tables = load(kept).tables
    assert len(tables) > 5
    for described in (inspect.getdoc(Card.tables), (ROOT / "docs/card.md").read_text()):
        assert [name for name in tables if f"`{name}`" not in described] == []


def test_opening_a_card_imports_no_torch(kept):
    program = "import sys, position_card; position_card.load(sys.argv[1]).tables; print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program, kept], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"


def cut(file):
    file.write_bytes(file.read_bytes()[:-9])


def other_version(folder):
    """As a version wrote it whose files mean something else."""
    card = load(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurements, "FORMAT", measurements.FORMAT + 1)
        card.save_measurements(folder)


# What becomes of the folder of a card, and what the line says beside its name.
SPOILED = {
    "nothing there": (shutil.rmtree, "is not the folder of a model's card"),
    "a page alone": (lambda card: shutil.rmtree(card / "measured"), "is not the folder of a model's card"),
    "a file for the folder": (lambda card: (shutil.rmtree(card), card.write_text("")), "is not the folder"),
    "a length missing": (
        lambda card: (card / "measured/n12.safetensors").unlink(),
        "is damaged (the file of a length is missing)",
    ),
    "all lengths missing": (lambda card: [file.unlink() for file in card.glob("measured/n*")], "is damaged"),
    "a length cut short": (lambda card: cut(card / "measured/n24.safetensors"), "is damaged (a file cannot be read"),
    "recall cut short": (lambda card: cut(card / "measured/recalled.safetensors"), "is damaged (a file cannot be read"),
    "a file of another name": (lambda card: (card / "measured/nine.safetensors").write_text("9"), "is damaged"),
    "another version": (other_version, "was written by another version of position-card; measure it anew"),
}


@pytest.mark.parametrize(("spoil", "said"), SPOILED.values(), ids=SPOILED)
def test_what_cannot_be_opened_is_refused_in_one_line(spoil, said, carded, undrawn):
    spoil(carded)
    with refused(carded, said):
        load(carded)


def test_the_command_says_that_another_version_wrote_a_card(carded, undrawn, assert_refused):
    other_version(carded)
    assert_refused(TYPED, 2, "was written by another version of position-card; type --force to measure anew")
