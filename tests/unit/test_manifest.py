import shutil
import subprocess
from pathlib import Path

import pytest

from position_bias.running.runtime import InputError
from tools import manifest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results(tmp_path):
    names = "figures/b/fig1.pdf figures/a/fig1.svg figures/a/fig1.png figures/README.md results/tables/a/checks.md "
    names += "results/tables/a/checks.csv results/theory/a/curve.csv results/provenance.json"
    for name in names.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_figures_and_tables_are_listed_by_path_and_nothing_else_is(results):
    assert [line.split("  ")[1] for line in manifest.lines(results)] == [
        "figures/a/fig1.png",
        "figures/a/fig1.svg",
        "figures/b/fig1.pdf",
        "results/tables/a/checks.csv",
        "results/tables/a/checks.md",
    ]


def test_the_order_of_rows_of_checks_says_nothing_and_that_of_other_tables_does(results):
    def written(lines):
        for name in ("results/tables/a/checks.csv", "results/tables/a/checks.md"):
            (results / name).write_text("\n".join(lines) + "\n")
        return manifest.lines(results)

    assert written(["header", "one", "two"]) == written(["header", "two", "one"]) != written(["header", "two", "three"])
    (results / "results/tables/a/gaps.csv").write_text("one\ntwo\n")
    before = manifest.lines(results)
    (results / "results/tables/a/gaps.csv").write_text("two\none\n")
    assert manifest.lines(results) != before


def listed(folder):
    """What the command does with a folder."""
    command = ["make", "--silent", "--old-file=.venv/installed", "manifest", f"RESULTS={folder}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum, the oracle, is not installed")
def test_the_command_prints_what_sha256sum_checks(results):
    printed = listed(results).stdout
    check = ["sha256sum", "--check", "--strict"]
    assert subprocess.run(check, cwd=results, input=printed, text=True, check=False).returncode == 0
    (results / "figures/a/fig1.png").write_text("another")
    assert subprocess.run(check, cwd=results, input=printed, text=True, check=False).returncode == 1


def test_where_nothing_is_built_there_is_one_line(tmp_path):
    with pytest.raises(InputError, match="holds no figure and no table; build them first: make all"):
        manifest.lines(tmp_path)
    ended = listed(tmp_path)
    assert ended.returncode != 0
    said = f"error: {tmp_path} holds no figure and no table; build them first: make all"
    assert ended.stderr.splitlines()[0] == said
