"""What only the whole toy graph shows, and what is made from it: the report, evidence, recipes, pages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from safetensors.numpy import load_file

from position_bias.emergence import accuracy_gaps
from position_bias.verdicts.pages import FINDINGS
from tests import browser, shown
from tests.graphs import CLAIMS, FIGURES, LENGTHS, WHOLE_JOBS, only

pytestmark = pytest.mark.all("the whole toy graph takes four minutes, and what is made from it two more")
ROOT = Path(__file__).parents[2]
MEASURED = "results/measure/bloom/seed0/step12/standard-library/n32.safetensors"
MODELS, DATASETS = WHOLE_JOBS["train"], WHOLE_JOBS["corpus"]


@pytest.fixture
def mine(whole_graph, tmp_path):
    """A built project of the test's own."""
    return whole_graph.copy(tmp_path / "position-bias")


def test_every_gap_of_every_network_has_its_row(whole_graph):
    table = pd.read_csv(whole_graph.root / "results/tables/emergence/gaps.csv")
    # one depth of three encodings, twice; biases; windows, prefixes
    fixed = 3 + 3 + 4 * 6 + 3 + 3
    gaussian = fixed + 2 * 3 + 3 + 3  # another depth; windows and prefixes with residual connections
    assert len(table) == 3 * (gaussian + 2 * fixed + 3)  # fixed: two common directions; isotropic: one study
    assert not table.duplicated(["vocabulary", "study", "mask", "encoding", "depth", "omega", "pair"]).any()
    omegas = table.groupby("vocabulary")["omega"].agg(set).to_dict()
    assert omegas == {"gaussian": {"none"}, "isotropic": {"none"}, "fixed": {"training", "fresh"}}
    assert set(table["seeds"]) == {2}
    assert (table["low"] <= table["gap"]).all()
    predicted = table[table["verdict"] != "no claim"]
    assert predicted[["relation", "bound", "margin"]].notna().all(axis=None)
    assert table.drop(index=predicted.index)[["relation", "bound", "margin"]].isna().all(axis=None)
    alone = table.query("mask == 'none' and encoding == 'none'")
    assert set(alone[["relation", "bound", "margin"]].itertuples(index=False, name=None)) == {("=", 0, 0.05)}


def test_every_target_of_the_readme_and_the_map_exists(whole_graph):
    pages = "".join((ROOT / name).read_text() for name in ("README.md", "docs/running.md", "docs/map.md"))
    written = re.findall(r"`((?:figures|results)/[\w/.{},-]+)`", pages)
    others = ("results/evidence/", "results/published/")  # not of the default run
    written = [target for target in written if not target.startswith(others) and "published_" not in target]
    assert len(written) > 40
    for target in written:
        before, *braces = re.split(r"[{}]", target)
        for name in braces[0].split(",") if braces else [""]:
            path = whole_graph.root / (before + name + (braces[1] if braces else ""))
            assert path.exists(), path


def test_every_figure_can_be_read(whole_graph):
    command = [sys.executable, "-m", "tests.every_figure", "config/test.yaml"]
    ended = subprocess.run(command, cwd=whole_graph.root, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == ""


def test_every_verdict_stands_under_figures_that_show_what_decides_it(whole_graph):
    assert shown.faults_of_run(whole_graph.root, CLAIMS) == []


@pytest.fixture(scope="module")
def report(whole_graph, tmp_path_factory):
    """The page to read, of a copy."""
    project = whole_graph.copy(tmp_path_factory.mktemp("report") / "position-bias")
    project.snakemake("results/report.html --cores 1")
    return project.root / "results/report.html"


def test_the_report_holds_every_figure_and_table_with_its_caption(report):
    page = report.read_text()
    drawn = [f"{paper}_draw_{name}" for paper, names in FIGURES.items() for name in names.split()]
    tables = ("structural_table2", "structural_propositions")
    checks = [f"{paper}_checks" for paper in FIGURES]
    assert [rule for rule in (*drawn, *tables, *checks, "draw_scorecard") if rule not in page] == []
    for name in (*PAPERS, "Figures", "Tables", "Figure 01", "Figure 10", "Figure 11a", "Table 02", "Learning curves"):
        assert f'"{name}"' in page
    assert "Position bias, replicated" in page
    places = [page.index(question) for question in FINDINGS]
    assert places == sorted(places)
    assert "scale <em>test</em>" in page


def test_captions_take_numbers_from_the_configuration(report):
    page = report.read_text()
    assert "95 % t-intervals over seeds" in page
    # layernorm.simulation.sequences of config/test.yaml, and 4000 of config.yaml
    assert "means of 64 sequences" in page
    assert "snakemake.config" not in page


def test_nothing_is_fetched_when_the_report_is_opened(report):
    page = report.read_text()
    loads = re.findall(
        r"<(?:script|link|img|iframe|source|object|embed)\b[^>]*\b(?:src|href|data)=[\"']?([^\"'\s>]+)", page
    )
    assert [address for address in loads if re.match(r"(https?:)?//", address)] == []
    assert not re.search(r"@import|url\([\"']?(?:https?:)?//", page)


PAPERS = (
    "1 Scorecard",
    "2 Herasimchyk et al. 2026",
    "3 Wu et al. 2025",
    "4 Kim et al. 2026",
    "5 Zsamboki et al. 2025",
)


def test_a_browser_opens_the_report_without_an_error_of_a_script(report, tmp_path):
    page, errors = browser.opened(report.as_uri(), tmp_path)
    assert errors == []
    for paper in PAPERS:
        assert paper in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)  # drawn by the page's scripts


TWICE = {
    "emergence": ("figures/emergence/fig3", "results/tables/emergence/theorems"),
    "layernorm": ("figures/layernorm/scores",),
    "postnorm": ("figures/postnorm/dimension",),
}


def manifest(root):
    command = ["make", "--silent", "manifest", f"RESULTS={root}"]
    # make may run these tests: what it passes on would print the folders that it enters
    ours = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run(command, cwd=ROOT, env=ours, capture_output=True, text=True, check=True).stdout.splitlines()


def test_another_build_in_another_folder_has_the_same_bytes(fresh, whole_graph, tmp_path):
    wanted = [name for names in TWICE.values() for name in names]
    files = [f"{name}.{'pdf' if name.startswith('figures') else 'csv'}" for name in wanted]
    fresh.snakemake(f"{' '.join(files)} --cores 2 --directory {tmp_path}")
    again = manifest(tmp_path)
    assert {line.split("  ")[1].rpartition(".")[0] for line in again} == set(wanted)
    assert len(again) == 3 * 3 + 2
    assert set(again) <= set(manifest(whole_graph.root))


def test_evidence_holds_what_checks_read_with_its_scale_and_what_made_it(mine):
    kept = "emergence: [gaussian/plain/depth2, fixed/ends/depth2], postnorm: [set-complement-16], structural: [bloom]"
    kept = f"--config evidence='{{group: toy, {kept}}}'"
    sinks = {"emergence_evidence_sinks": 1}
    evidence = dict.fromkeys(("emergence_evidence", "postnorm_evidence", "structural_evidence", "evidence"), 1)
    assert mine.planned(f"evidence {kept}") == evidence | sinks
    mine.snakemake(f"evidence {kept} --cores 2")
    folder = mine.root / "results/evidence"
    tables = {path.relative_to(folder).as_posix(): pd.read_csv(path) for path in folder.rglob("*.csv")}
    assert sorted(tables) == [
        *(f"emergence/toy/{name}.csv" for name in ("accuracy", "curves", "runs", "sinks")),
        *(f"postnorm/toy/{name}.csv" for name in ("runs", "tests")),
        *(f"structural/toy/{name}.csv" for name in ("compared", "content", "lambda", "losses", "profiles")),
        *(f"structural/toy/{name}.csv" for name in ("runs", "similarity", "statistics")),
    ]
    for name, table in tables.items():
        assert set(table["scale"]) == {"test"}, name
    for paper in ("emergence", "postnorm", "structural"):
        runs = tables[f"{paper}/toy/runs.csv"]
        assert (runs["cpu_minutes"] >= 0).all()
        assert {"commit", "torch", "device", "date", "processor"} <= set(runs)
    sources = [f"results/emergence/{study}/depth2/curves.parquet" for study in ("gaussian/plain", "fixed/ends")]
    tests = pd.concat([pd.read_parquet(mine.root / source) for source in sources])
    pd.testing.assert_frame_equal(
        tables["emergence/toy/curves.csv"].drop(columns="scale"),
        accuracy_gaps.curves(tests).reset_index(drop=True),
        check_dtype=False,
        atol=1e-5,
        rtol=0,
    )
    assert set(tables["emergence/toy/sinks.csv"]["study"]) == {"plain"}
    assert set(tables["structural/toy/profiles.csv"]["checkpoint"]) == {"seed0/step0", "seed0/step12"}
    assert set(tables["structural/toy/similarity.csv"]["checkpoint"]) == {"seed0/step12"}
    for table in (folder / "structural/toy").iterdir():
        kept = mine.root / "evidence/structural/language-model" / table.name
        kept.unlink(missing_ok=True)
        shutil.copy2(table, kept)
    targets = "figures/structural/long_training.pdf results/tables/structural/checks.csv"
    assert mine.planned(targets) == {"structural_draw_long_training": 1, "structural_checks": 1}
    mine.snakemake(f"{targets} --cores 2")
    of_training = pd.read_csv(mine.root / "results/tables/structural/checks.csv").query("item == 'training'")
    assert of_training["quantity"].str.startswith("wasserstein of (b), less that of (c); bloom seed0/step0").any()


def test_a_claim_is_two_lines(mine):
    page = (ROOT / "docs/dev/recipes.md").read_text().split("## Add a claim\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| `(published/\S+)` \| `([^`]+)` \|$", page, re.MULTILINE)
    assert len(lines) == 2
    for file, line in lines:
        mine.append(file, f"{line}\n")
    mine.snakemake("results/tables/scorecard.csv --cores 1")
    scores = pd.read_csv(mine.root / "results/tables/additions.csv").set_index("claim")
    assert scores.loc["layernorm-example", "statement"] == "RMSNorm makes heads attend to later tokens"
    rows = pd.read_csv(mine.root / "results/tables/layernorm/checks.csv")
    row, *_ = rows[rows["claim"] == "layernorm-example"].to_dict("records")
    assert (row["quantity"], row["margin"]) == ("an example, layer 2: pre-rms - none", 0.005)


RECIPES = re.findall(r"```yaml\n((?!# config/).*?)```", (ROOT / "docs/dev/recipes.md").read_text(), re.DOTALL)


TABLES = [f"table{number}" for number in range(1, 6)]


def test_the_recipes_for_a_model_and_a_data_set_leave_finished_ones_alone_and_work(mine):
    assert len(RECIPES) == 2
    for recipe, text in zip(("model", "data"), RECIPES, strict=True):
        (mine.root / f"{recipe}.yaml").write_text(text)
    measured = {"measure": DATASETS, "measure_snapshot": 1, "rollout": 2 * DATASETS + 1}
    of_models = ("fig2", "fig3", "fig4", "fig5", "training")
    of_checks = ("decoders_ends", "decoders_rollouts", "other_models", "distances")
    figures = [f"structural_draw_{name}" for name in (*of_models, *of_checks)]
    printed = [f"printed_{table}" for table in TABLES]
    tables = [f"structural_{name}" for name in (*TABLES, *printed, "spearman", "shift", "monotonicity", "checks")]
    assert mine.planned("all --configfile model.yaml") == {"train": 1, **measured} | only(*figures, *tables)
    plan = mine.snakemake("all -n --cores 1 --configfile model.yaml")
    assert "model=shallow" in plan
    assert "model=bloom" not in plan

    (mine.root / "texts").mkdir()
    lines = [json.dumps({"text": f"Document {i}. " + "What is read first is not always kept. " * 9}) for i in range(20)]
    (mine.root / "texts/all.jsonl").write_text("\n".join(lines))
    with_both = "figures/structural/fig4.pdf --configfile model.yaml data.yaml"
    planned = {  # the recipe has the default run's third data set, too
        "corpus": 1,
        "hub_text": 1,
        "prompts": 2 * LENGTHS,
        "train": 1,
        "measure": 2 * MODELS + (DATASETS + 2),
        "structural_draw_fig4": 1,
    }
    assert mine.planned(with_both) == planned
    # beside one model and one data set, which takes less time than beside all
    fewer = "measure='{models: [bloom, shallow], datasets: [standard-library, mine]}'"
    mine.snakemake(f"{with_both} --config {fewer} --cores 2")
    measured = mine.root / "results/measure/shallow/seed0/step12/mine/n32.safetensors"
    assert load_file(measured)["mixing/frobenius"].shape == (16, 2)


def test_a_truncated_artifact_is_named_with_the_command_that_mends_it(mine):
    broken = mine.root / MEASURED
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-100])
    profiles = MEASURED.replace("measure", "rollout").removesuffix(".safetensors") + "/profiles.parquet"
    ended = mine.run(f"snakemake {profiles} --cores 1 --force")
    assert ended.returncode == 1
    line = next(line for line in ended.stdout.splitlines() if line.startswith("error: "))
    assert f"artifact {MEASURED} is not usable" in line
    remedy = line.split("rebuild it with: ")[1]
    assert mine.run(remedy).returncode == 0
    assert broken.read_bytes() == whole
    mine.snakemake(f"{profiles} --cores 1")
