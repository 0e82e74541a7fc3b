"""Sentences that are too long are found wherever a stranger reads, and are counted as people count."""

import pytest

from tools import plain

LONG = " ".join(["word"] * (plain.LONGEST + 1))


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        ("README.md", f"# Title\n\nShort. {LONG}.", 3),
        ("docs/page.md", f"- one\n- {LONG}", 2),
        ("docs/gallery/page.md", f"| a | b |\n|---|---|\n| c | {LONG} |", 3),
        ("evidence/README.md", f"Short words, [{LONG}](page.md)", 1),
        ("report/wing/draw.rst", f"Short.\n\n{LONG}", 3),
        ("position_bias/wing/module.py", f'def public() -> None:\n    """Do it.\n\n    {LONG}\n    """', 4),
        ("tools/module.py", f'"""{LONG}"""', 1),
    ],
)
def test_a_sentence_that_is_too_long_is_named_with_its_line(file, text, line, tmp_path):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    long = [where for where, sentence in plain.told(tmp_path) if plain.words(sentence) > plain.LONGEST]
    assert long == [f"{file}:{line}"]


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("One two. Three four five.", [2, 3]),
        ("One (see two). Three: four; five?", [3, 1, 1, 1]),
        ("One [.2, .3] two -> three", [5]),
        ("[one two](far/away/page.md) `x + y` three", [5]),
        ("```\none two three\n```", []),
    ],
)
def test_words_are_counted_between_the_signs_that_end_a_sentence(text, counted):
    sentences = [sentence for _, paragraph in plain.paragraphs(text) for sentence in plain.sentences(paragraph)]
    assert [plain.words(sentence) for sentence in sentences] == counted


def test_what_a_caption_takes_from_the_configuration_counts_as_one_word(tmp_path):
    (tmp_path / "report").mkdir()
    (tmp_path / "report/caption.rst").write_text('Of {{ config["a"]["b"] | join(" and ") }} seeds{% set a = 1 %}')
    assert [plain.words(sentence) for _, sentence in plain.told(tmp_path)] == [3]
