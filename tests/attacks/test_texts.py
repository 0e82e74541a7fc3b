"""Texts that somebody else wrote: each ends in one line that names the file, or is read as it was meant."""

import pytest

from position_bias.card import texts
from position_bias.card.sources import source
from position_bias.running.runtime import InputError

LINES = {
    "nested deeply": ('{"text":' * 100_000 + "1" + "}" * 100_000, "line 1, is no JSON"),
    "a list nested deeply": ("[" * 100_000, "line 1, is no JSON"),
    "a list of texts": ('["a", "b"]', "line 1, has no text"),
    "a text that is an object": ('{"text": {"text": "a"}}', "line 1, has no text"),
    "bytes that are no UTF-8": (b'{"text": "\xff"}', "is not encoded in UTF-8"),
}


@pytest.mark.parametrize("case", LINES)
def test_a_line_that_holds_no_text_is_named(case, tmp_path):
    line, said = LINES[case]
    file = tmp_path / "a.jsonl"
    file.write_bytes(line if isinstance(line, bytes) else line.encode())
    with pytest.raises(InputError, match=rf"^text {file}[^\n]*{said}[^\n]*$"):
        list(texts.documents(source(str(file))))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"half a pair \ud83d here", "half a pair \N{REPLACEMENT CHARACTER} here"),
        (r"\ude00", "\N{REPLACEMENT CHARACTER}"),
        (r"a pair \ud83d\ude00", "a pair \N{GRINNING FACE}"),
    ],
)
def test_half_of_a_pair_of_surrogates_becomes_the_sign_of_an_unknown_character(written, read, tmp_path):
    (tmp_path / "a.jsonl").write_text(f'{{"text": "{written}"}}\n')
    (text,) = texts.documents(source(str(tmp_path / "a.jsonl")))
    assert text == read
    text.encode()


def test_a_program_beside_a_data_set_is_not_run(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "data.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    with pytest.raises(InputError, match=rf"^text {folder} [^\n]*$"):
        list(texts.documents(source(str(folder))))
    assert not (tmp_path / "executed").exists()
