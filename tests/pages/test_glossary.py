"""The glossary has one word for each thing, and the words that it rules out stand nowhere else."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/glossary.md"
ROWS = [
    [cell.strip() for cell in row.split("|")[1:-1]] for row in PAGE.read_text().splitlines() if row.startswith("| ")
][1:]
SYNONYMS = [synonym for row in ROWS for synonym in row[-1].split(", ")]
FOLDERS = ("position_bias", "position_card", "scripts", "rules", "launcher", "tools", "benchmarks", "tests")
FOLDERS += ("docs", "report", "evidence", "published", "config")
SUFFIXES = {".py", ".smk", ".md", ".rst", ".yaml", ".ipynb"}
OWN = {PAGE, Path(__file__), ROOT / "CHANGELOG.md"}  # the changelog tells what things were called


def words(text):
    """Its words in lower case, one blank between them: headSlope and HEAD_SLOPE are two; other signs stay between."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", " ", text)
    return re.sub(r"[\s_-]+", " ", apart.lower())


def pattern(synonym):
    return re.compile(rf"\b{re.escape(words(synonym))}s?\b")


@pytest.fixture(scope="module")
def texts():
    """The words of everything that is written by hand or shown by a figure: labels stand in the code that draws."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    files += [*ROOT.glob("*.md"), *ROOT.glob("*.yaml"), ROOT / "Snakefile", *ROOT.glob("published/*.csv")]
    return {path.relative_to(ROOT).as_posix(): words(path.read_text()) for path in files if path not in OWN}


def test_the_glossary_has_thirty_words_with_a_sentence_each():
    assert len(ROWS) == 30
    assert len({row[0] for row in ROWS}) == 30
    for row in ROWS:
        assert row[-2].endswith("."), row
        assert row[-2].count(". ") == 0, row


@pytest.mark.parametrize("synonym", SYNONYMS)
def test_a_synonym_stands_nowhere(texts, synonym):
    word = words(synonym)  # few texts have it at all, and to look for that is quick
    assert [path for path, text in texts.items() if word in text and pattern(synonym).search(text)] == []


def test_synonyms_are_found_as_words_in_identifiers_and_prose():
    for text in ("headSlope", "HEAD_SLOPES", "a head-slope", "of a\nhead slope,"):
        assert pattern("head slope").search(words(text)), text
    for text in ("ahead slope", "head_sloped", "head(slope)", "the head, whose slope"):
        assert not pattern("head slope").search(words(text)), text
