"""The call for a model in memory gives the card of its files; docs/card.md and the notebook run."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

import position_card
from position_card import measure
from tests import needs
from tests.position_card.card.conftest import llama
from tests.refusals import refused

ROOT = Path(__file__).parents[3]
OPTIONS = {"lengths": (12, 24), "prompts": 10, "threads": 1, "recall": 3, "questions": False}
OPTIONS |= {"name": "my-model", "text": "texts.jsonl"}


TABLES = ("layers", "profile", "distances", "loss", "statistics", "replacement", "recall")


def files(folder):
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.*"))}
    return {name: content for name, content in found.items() if name.startswith(("tables/", "card."))}


def test_a_model_in_memory_has_the_card_of_its_files(here, kept, prose, tokenizer_of_words):
    mine = measure(llama().train(), tokenizer_of_words, prose, **OPTIONS)
    mine.save("from-memory")
    memory, read = files(here / "from-memory"), files(kept)
    assert set(memory) == {
        *(f"tables/{name}.csv" for name in TABLES),
        *(f"card.{suffix}" for suffix in ("md", "pdf", "svg", "png")),
    }
    pages = [found.pop("card.md").decode().splitlines() for found in (memory, read)]
    assert memory == read
    differ = [lines for lines in zip(*pages, strict=True) if lines[0] != lines[1]]
    assert [line.split(" | ")[0] for line, _ in differ] == ["| model", "| text"]
    shown = mine._repr_markdown_()
    assert "](data:image/png;base64," in shown
    assert "card.png" not in shown


def test_a_tokenizer_of_transformers_is_taken_and_left_as_it_is(here, prose):
    tokenizer = AutoTokenizer.from_pretrained("./my-model")
    tokenizer.backend_tokenizer.enable_truncation(3)
    found = measure(llama(), tokenizer, "\n".join(prose), lengths=[9], prompts=8, replace=0, replicates=5)
    assert found.measurements.facts["read"]["documents"] == 1
    assert "replacement" not in found.tables
    assert tokenizer.backend_tokenizer.truncation["max_length"] == 3
    with refused("object"):
        measure(llama(), object(), prose)


@pytest.mark.parametrize(
    ("name", "value"), [("level", 1.5), ("lengths", (12, 8)), ("prompts", 7), ("recall", -1), ("replace", 2.5)]
)
def test_numbers_that_mean_nothing_are_refused_at_once(name, value, own_tokenizer):
    with refused(f"{name} is {8 if name == 'lengths' else value}"):
        measure(llama(), own_tokenizer, "text", **{name: value})


@pytest.mark.parametrize("target", ["log-p", "contrast", "e"])
def test_another_target_is_differentiated_and_named(target, own_tokenizer, prose):
    """The gradients of p and of its logarithm are the same vector in each prompt but for a factor."""
    options = {"lengths": [9], "prompts": 8, "replace": 0, "replicates": 5}
    plain, other = (measure(llama(), own_tokenizer, prose, target=name, **options) for name in ("p", target))
    one, two = (found.measurements.lengths[9].influence for found in (plain, other))
    factors = two / one
    alike = np.allclose(factors, factors[:, :1], rtol=1e-3)
    assert alike == (target == "log-p")
    words = {"log-p": "the logarithm of the probability", "contrast": "less that of the second", "e": "token is 'e'"}
    assert words[target] in other.page
    with refused("'e e e'"):
        measure(llama(), own_tokenizer, prose, target="e e e", **options)


def blocks(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", [ROOT / "docs/card.md", Path(position_card.__file__).with_name("README.md")])
def test_the_lines_to_copy_run(page, here, undrawn):
    (lines,) = blocks(page.read_text())
    assert len([line for line in lines.splitlines() if line]) in (7, 9)
    exec(lines, {})
    assert (here / "my-card/card.md").is_file()


NOTEBOOK = [cell for cell in json.loads((ROOT / "docs/card.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]
DATA = [output["data"] for cell in NOTEBOOK for output in cell["outputs"]]


def values_of_cells():
    """What the cells of the notebook that end with an expression show, in a fresh namespace."""
    names = {}
    for cell in NOTEBOOK:
        *before, last = ast.parse("".join(cell["source"])).body
        is_shown = isinstance(last, ast.Expr)
        exec(compile(ast.Module(before if is_shown else [*before, last], []), "cell", "exec"), names)
        if is_shown:
            yield eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_notebook_is_kept_with_its_outputs():
    assert [cell["execution_count"] for cell in NOTEBOOK] == [*range(1, len(NOTEBOOK) + 1)]
    assert [output["output_type"] for cell in NOTEBOOK for output in cell["outputs"]] == ["execute_result"] * 4
    assert (ROOT / "docs/card.ipynb").stat().st_size < 200_000


@pytest.mark.all("a model is measured in four ways")
def test_the_cells_of_the_notebook_run(here, monkeypatch):
    """On another model, which has other numbers and the same tables."""
    needs.packaged_smollm2()
    for auto in (AutoModelForCausalLM, AutoTokenizer):
        opened = auto.from_pretrained("./my-model")
        monkeypatch.setattr(auto, "from_pretrained", lambda *_, opened=opened, **__: opened)
    card, names, statistics, title = values_of_cells()
    # this model reads too few words, and no chats
    assert [*names, "recall", "questions"] == ast.literal_eval("".join(DATA[1]["text/plain"]))
    assert set(statistics) == {"estimator", "variant", "statistic", "value", "low", "high", "n", "prompts"}
    assert repr(title) == "".join(DATA[3]["text/plain"])
    answered = headings("".join(DATA[0]["text/markdown"]))
    assert headings(card._repr_markdown_()) == [name for name in answered if name != "## Where the answer stands"]


def headings(page):
    return re.findall("^#.*", page, re.MULTILINE)


@pytest.mark.all("SmolLM2 is measured, which takes a minute")
def test_the_notebook_shows_what_its_cells_show(here):
    needs.packaged_smollm2()
    card, _, statistics, _ = values_of_cells()
    pages = (card._repr_markdown_(), "".join(DATA[0]["text/markdown"]))
    # other processors and versions of Python have other roundings, and another language reference
    shown, kept = (re.sub(r"base64,[\w+/=]+|-?[\d.,]+|falls|rises", "#", page).splitlines() for page in pages)
    assert shown == kept
    assert "".join(DATA[2]["text/plain"]).split()[:7] == [*statistics][:7]
