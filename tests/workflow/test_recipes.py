"""The recipes of docs/dev/recipes.md for a figure, a table and a paper, followed word by word.

Those for a model, a data set and a claim are followed in test_whole.py.
"""

import re
from pathlib import Path

import pandas as pd
import pytest

from position_bias.verdicts import judge
from position_bias.verdicts.registry import every_claim

pytestmark = pytest.mark.all("the recipes are followed after a change of pages, and once a day")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/dev/recipes.md").read_text()


def follow(root):
    """Write the new files of the recipe for a paper and add its lines; every line must have its place."""
    _, recipe = PAGE.split("## Add a paper (a wing)\n")
    recipe = recipe.split("\n## ")[0]
    blocks = re.findall(r"```\w+\n# (\S+)\n(.*?)```", recipe, re.DOTALL)
    for name, text in blocks:
        path = root / name
        assert not path.exists(), name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (?:`([^`]+)`|the last line) \|$", recipe, re.MULTILINE)
    assert len(rows) == recipe.split("| file | line |")[1].count("\n| `")
    for name, line, above in rows:
        lines = (root / name).read_text().splitlines()
        place = lines.index(above) if above else len(lines) - 1
        (root / name).write_text("\n".join([*lines[: place + 1], line, *lines[place + 1 :], ""]))
    return [name for name, _ in blocks]


@pytest.fixture(scope="module")
def project(fresh, tmp_path_factory):
    """A project with the paper of the recipe, built."""
    project = fresh.copy(tmp_path_factory.mktemp("recipes") / "position-bias")
    (project.root / "config.yaml").write_text((ROOT / "config.yaml").read_text())
    follow(project.root)
    project.snakemake("mine --cores 2")
    return project


def test_the_paper_has_its_figure_table_and_claim(project):
    for kind in ("pdf", "svg", "png"):
        assert (project.root / f"figures/mine/fig1.{kind}").stat().st_size > 1000
    (row,) = pd.read_csv(project.root / "results/tables/mine/checks.csv").to_dict("records")
    assert set(judge.COLUMNS) <= set(row)
    tokens = 32
    harmonic = [sum(1 / k for k in range(1, n + 1)) for n in range(1, tokens + 1)]
    assert row["measured"] == pytest.approx(harmonic[-1])  # sum over the middle token of 1/n * 1/k, times n
    claims = {claim.id: claim for claim in every_claim(project.root / "published/claims.csv")}
    assert row["verdict"] == "holds"
    assert claims[row["claim"]].paper == "mine"


def test_a_wrong_value_of_its_section_ends_the_run_in_one_line(project):
    ended = project.dry_run("mine -n --config mine='{tokens: 33}'")
    assert ended.stdout.splitlines()[-1] == "error: config: mine.tokens = 33 is odd; give an even number"


def test_what_the_recipe_writes_has_the_style_of_the_project(project):
    style = project.run("ruff check position_bias/mine && ruff format --check position_bias/mine")
    assert style.returncode == 0, style.stdout
    rules = project.run("snakefmt --check Snakefile rules")
    assert rules.returncode == 0, rules.stdout


def recipe(heading):
    return PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]


def test_a_figure_is_added_in_under_ten_lines(project):
    """What the project has of the paper above stays: a figure of another wing is drawn beside it."""
    function, row, caption = re.findall(r"```\w+\n# ([^\n]*)\n(.*?)```", recipe("Add a figure or table"), re.DOTALL)
    assert len([*function[1].splitlines(), *row[1].splitlines()]) < 10
    for where, text in (function, row):
        path = project.root / where.split(",")[0]
        before, last, after = path.read_text().rpartition("\n\nrule layernorm:" if path.suffix == ".smk" else "\0")
        path.write_text(f"{before}\n{text}{last}{after}" if last else f"{after}\n\n{text}")
    (project.root / caption[0]).write_text(caption[1])
    project.snakemake("figures/layernorm/limits.pdf --cores 2")
    for kind in ("pdf", "svg", "png"):
        assert (project.root / f"figures/layernorm/limits.{kind}").stat().st_size > 1000
    printed = project.run("snakemake --list").stdout
    assert "layernorm_draw_limits (Limits of recency against anisotropy.)" in printed
    assert project.run("ruff check position_bias && snakefmt --check Snakefile rules").returncode == 0
