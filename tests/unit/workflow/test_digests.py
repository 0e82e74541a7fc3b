"""Digests that one call of Snakemake keeps for the next are those of the sources as they are now."""

import json
import os

import pytest

from position_bias.workflow.definitions import Library
from position_bias.workflow.digests import KeptDigests

SCRIPT = "scripts/job.py"
ROW = "position_bias.rows:table"


@pytest.fixture
def project(tmp_path):
    for name, text in {
        "position_bias/rows.py": "def table():\n    return 1\n",
        "position_card/unused.py": "",
        SCRIPT: "from position_bias.rows import table\n\nprint(table())\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".snakemake").mkdir()
    return tmp_path


def kept(project):
    """Digests of a first call, which has ended."""
    digests = KeptDigests(project, project / ".snakemake/digests.json")
    digests.digest(SCRIPT)
    digests.keep()
    return project / ".snakemake/digests.json"


def test_a_second_call_reads_what_the_first_one_made(project, monkeypatch):
    file = kept(project)
    digest = Library(project).digest(SCRIPT)
    monkeypatch.setattr(Library, "digest", lambda *_: pytest.fail("made anew"))
    assert KeptDigests(project, file).digest(SCRIPT) == digest


def test_what_was_not_asked_for_before_is_made_and_kept_too(project):
    file = kept(project)
    digests = KeptDigests(project, file)
    assert digests.digest(SCRIPT, (ROW,)) == Library(project).digest(SCRIPT, (ROW,))
    digests.keep()
    assert len(json.loads(file.read_text())["digests"]) == 2


def edited(project):
    (project / "position_bias/rows.py").write_text("def table():\n    return 22\n")


def edited_to_the_same_size(project):
    path = project / "position_bias/rows.py"
    stat = path.stat()
    path.write_text("def table():\n    return 2\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def replaced_by_an_older_one(project):
    edited(project)
    os.utime(project / "position_bias/rows.py", (1, 1))


def package_in_place_of_a_module(project):
    (project / "position_bias/rows.py").unlink()
    (project / "position_bias/rows").mkdir()
    (project / "position_bias/rows/__init__.py").write_text("def table():\n    return 3\n")


@pytest.mark.parametrize(
    "edit", [edited, edited_to_the_same_size, replaced_by_an_older_one, package_in_place_of_a_module]
)
def test_digests_of_other_sources_are_made_anew(project, edit):
    file = kept(project)
    (before,) = json.loads(file.read_text())["digests"].values()
    edit(project)
    found = KeptDigests(project, file).digest(SCRIPT)
    assert found == Library(project).digest(SCRIPT)
    assert found != before


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"sources": []}'])
def test_a_damaged_file_is_as_none(project, text):
    file = kept(project)
    file.write_text(text)
    assert KeptDigests(project, file).digest(SCRIPT) == Library(project).digest(SCRIPT)


def test_where_snakemake_has_no_folder_nothing_is_kept(project):
    (project / ".snakemake").rmdir()
    assert not kept(project).exists()
