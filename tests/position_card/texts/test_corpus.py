import ast
import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_card.texts import corpus
from position_card.texts.corpus import Document
from tests.refusals import refused

PROSE = "The first paragraph of this text is long enough to be taken for prose."


def source_tree(folder, **modules):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def standard_library():
    return corpus.documents("standard-library")


# Sources are read, never run


def test_sources_are_parsed_and_not_executed(tmp_path):
    marker = tmp_path / "executed"
    source_tree(
        tmp_path / "trap",
        __init__=f'"""{PROSE}"""\nopen({str(marker)!r}, "w")\nraise RuntimeError("executed")\n',
    )
    found = list(corpus.documented_sources(tmp_path, ["trap"]))
    assert found == [Document("trap/__init__.py", PROSE)]
    assert not marker.exists()
    assert "trap" not in sys.modules


def test_packages_are_found_and_not_imported(tmp_path, monkeypatch):
    source_tree(tmp_path / "trap_on_the_path", __init__=f'"""{PROSE}"""\nraise RuntimeError("imported")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(corpus, "PACKAGES", ("trap_on_the_path",))
    assert corpus.documents("scientific-packages") == [Document("trap_on_the_path/__init__.py", PROSE)]
    assert "trap_on_the_path" not in sys.modules


def test_reading_a_corpus_imports_no_heavy_library():
    program = (
        "import sys; from position_card.texts import corpus; corpus.documents('language-reference');"
        "print(sorted({'torch', 'transformers', 'datasets', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    root = Path(corpus.__file__).parents[2]
    shown = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_source_that_does_not_parse_is_left_out(tmp_path):
    source_tree(tmp_path / "package", good=f'"""{PROSE}"""\n', bad="def (:\n", odd='"""\\d"""\n')
    (tmp_path / "package" / "null.py").write_bytes(b'"""a\0b"""\n')
    found = corpus.without_repeats(corpus.documented_sources(tmp_path, ["package"]))
    assert found == [Document("package/good.py", PROSE)]


def test_a_declared_encoding_is_honoured(tmp_path):
    text = "Die Größe der Straße bleibt für jeden übrigen Zweck ohne jede Bedeutung, wie man weiß."
    tmp_path.joinpath("old.py").write_bytes(f'# coding: latin-1\n"""{text}"""\n'.encode("latin-1"))
    assert list(corpus.documented_sources(tmp_path, ["old"])) == [Document("old.py", text)]


@pytest.mark.parametrize("place", ["tests", "test", "_vendor", "sub/tests"])
def test_tests_and_vendored_code_are_no_documentation(tmp_path, place):
    source_tree(tmp_path / "package" / place, module=f'"""{PROSE}"""\n')
    assert list(corpus.documented_sources(tmp_path, ["package"])) == []


def test_documentation_is_read_in_the_order_of_the_file():
    source = """
def first():
    "docstring of first"
    async def inner():
        "docstring of inner"
if True:
    class Second:
        "docstring of Second"
        def method(self):
            "docstring of method"
            call("no documentation")
            "no docstring, since not first"
add_newdoc("package", "name", ("attribute", "string of add_newdoc"))
torch.third = _C._add_docstr(_C.third, r"string of {add_docstr}".format(**fields) + "its end")
"""
    found = [text for text in corpus.documentation(ast.parse(source)) if " of " in text]
    assert found == [
        "docstring of first",
        "docstring of inner",
        "docstring of Second",
        "docstring of method",
        "string of add_newdoc",
        "string of {add_docstr}",
    ]


def test_real_docstrings_of_compiled_functions_are_found():
    found = dict(corpus.documented_sources(Path(np.__file__).parent, ["_core"]))
    assert len(found["_core/_add_newdocs.py"]) > 20_000


# What reads as prose


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        (PROSE, [PROSE]),
        (
            "One line of a paragraph which goes on\nin the next line of it.",
            ["One line of a paragraph which goes on in the next line of it."],
        ),
        ("Too short to be kept.", []),
        (f"{PROSE}\n\n>>> print(1)\nthe output of this example has quite enough words to be prose\n", [PROSE]),
        (f"{PROSE}\n\n.. note:: what a directive says is dropped along with the directive itself", [PROSE]),
        ("=====  =====\nthese columns hold words and words and words and more words\n=====  =====", []),
        ("| a | table | made | of | bars | with | many | words | in | it |", []),
        ("def function(one, two, three):\n    return the sum of one and two and three and some more", []),
        ("x1 = y2 + z3 * 17 / (a[0] - b[1]) % 5; for i in 10: x1 += 1, x2 += 2, x3 += 3 or so", []),
        ("BloomConfig FalconConfig MptConfig GptConfig LlamaConfig OptConfig and also more Configs", []),
        ("A control character \x07 in the midst of a paragraph that is otherwise fine prose.", []),
        ("Half a surrogate pair \ud800 in the midst of a paragraph that is otherwise fine prose.", []),
        (
            "See :class:`~package.Name`, :ref:`this part <target>`, ``code``, `link <https://a.b>`_, *this* one [1]_.",
            ["See package.Name, this part, code, link, this one."],
        ),
        (
            "Returns a %(kind)s of the {name} when all of the values are equal::",
            ["Returns a of the when all of the values are equal:"],
        ),
        (
            "Parameters\n----------\naxis : int, optional\n    Axis along which the values are summed up by this.\n"
            "other : str\n    Another one that is described in a line of its own here.",
            [
                "Axis along which the values are summed up by this.",
                "Another one that is described in a line of its own here.",
            ],
        ),
        (
            "Args:\n    input (Tensor): the tensor that is summed, and whose\n"
            "        shape must be known before the call\n"
            "    other (int): the axis along which it is summed, counted from the last",
            [
                "the tensor that is summed, and whose shape must be known before the call",
                "the axis along which it is summed, counted from the last",
            ],
        ),
        (
            f"The heading over this text is no sentence of it\n-------\n{PROSE}\nIt has a second line.",
            ["The heading over this text is no sentence of it", f"{PROSE} It has a second line."],
        ),
        (
            f"    What is said in a definition, which lies\n    to the right of the text.\n{PROSE}",
            ["What is said in a definition, which lies to the right of the text.", PROSE],
        ),
        (
            "- the first item of a list, long enough to stay\n- the second item of a list,\n  which is long enough too",
            ["the first item of a list, long enough to stay", "the second item of a list, which is long enough too"],
        ),
    ],
)
def test_prose(docstring, expected):
    assert list(corpus.prose(docstring)) == expected


def test_a_paragraph_is_kept_once_whatever_its_punctuation():
    repeated = "the first paragraph of this text is long enough, to be taken for prose"
    found = corpus.without_repeats(
        [Document("a", f"{PROSE}\nAnother paragraph."), Document("b", repeated), Document("c", f"{repeated}\nA third.")]
    )
    assert found == [Document("a", f"{PROSE}\nAnother paragraph."), Document("c", "A third.")]


# Train and test documents


def test_splits_are_disjoint_and_whole_and_of_about_their_share():
    documents = [Document(f"package/module{i}.py", "text") for i in range(2000)]
    train, test = corpus.split(documents, 0.2)
    assert sorted(train + test) == sorted(documents)
    assert not set(train) & set(test)
    assert len(test) == pytest.approx(400, abs=60)


def test_the_side_of_a_document_is_the_same_on_every_machine():
    _, test = corpus.split([Document(name, "text") for name in "abcdefghijklmnopqrstuvwxyz"], 0.2)
    assert "".join(document.id for document in test) == "jpuvx"


# The corpora of this installation


def test_standard_library_text(standard_library):
    assert len(standard_library) > 300
    assert sum(len(document.text) for document in standard_library) > 800_000
    assert [document.id for document in standard_library] == sorted({document.id for document in standard_library})
    paragraphs = Counter(line for document in standard_library for line in document.text.splitlines())
    assert max(paragraphs.values()) == 1
    assert not any(document.id.startswith(("pydoc_data/", "site-packages/")) for document in standard_library)


def test_no_paragraph_of_the_reference_is_trained_and_tested_on():
    parts = corpus.split(corpus.documents("language-reference"), corpus.TEST_SHARE["language-reference"])
    train, test = ({line for document in part for line in document.text.splitlines()} for part in parts)
    assert min(sum(map(len, train)), sum(map(len, test))) > 80_000
    assert not train & test


REFUSED = [  # what is read, and what the line names
    (lambda: corpus.documents("wikipedia"), ("'wikipedia'", "standard-library")),
    (lambda: corpus.documents("scientific-packages"), ("no_such_package",)),
    (lambda: list(corpus.reference_topics(Path("nowhere/topics.py"))), ("topics.py",)),
]


@pytest.mark.parametrize(("read", "named"), REFUSED)
def test_sources_that_are_not_there_are_refused_by_name(read, named, monkeypatch):
    monkeypatch.setattr(corpus, "PACKAGES", ("no_such_package",))
    with refused(*named):
        read()


# Files


def test_two_runs_write_the_same_bytes_as_the_manifest_says(tmp_path):
    for run in ("one", "two"):
        folder = tmp_path / run
        corpus.write(
            "language-reference", folder / "text" / "train.parquet", folder / "text" / "test.parquet", folder / "m.json"
        )
    for name in ("text/train.parquet", "text/test.parquet", "m.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "one" / "text").iterdir()) == ["test.parquet", "train.parquet"]

    manifest = json.loads((tmp_path / "one" / "m.json").read_text())
    assert manifest["python"] == ".".join(map(str, sys.version_info[:3]))
    for split in ("train", "test"):
        table = pd.read_parquet(tmp_path / "one" / "text" / f"{split}.parquet")
        assert list(table.columns) == ["id", "text"]
        assert manifest["splits"][split] == {
            "documents": len(table),
            "characters": int(table["text"].str.len().sum()),
            "sha256": hashlib.sha256("".join(f"{text}\0" for text in table["text"]).encode()).hexdigest(),
        }


def test_the_manifest_of_the_packages_names_their_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "documents", lambda name: [Document(str(i), "text") for i in range(20)])
    corpus.write("scientific-packages", tmp_path / "train.parquet", tmp_path / "test.parquet", tmp_path / "m.json")
    packages = json.loads((tmp_path / "m.json").read_text())["packages"]
    assert sorted(packages) == ["matplotlib", "numpy", "pandas", "scipy", "torch"]
    assert packages["pandas"] == pd.__version__
