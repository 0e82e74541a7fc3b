"""What the whole graph leaves behind, and what it builds again after a change."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.numpy import load_file

from position_bias.emergence import gaps
from position_bias.emergence.studies import BY_BIAS, BY_DEPTH, OF_MAPS, OF_SINKS
from position_bias.rollout.last_row import dense_last_row, rollout_matrix, transition
from position_bias.running import manifest
from position_bias.verdicts import scorecard
from position_bias.verdicts.claim import papers, registry, tables
from position_bias.verdicts.verdict import COLUMNS, KEYS

ROOT = Path(__file__).parents[2]
CLAIMS = registry(ROOT / "published/claims.csv")
MEASURED = "results/measure/bloom/seed0/step12/standard-library/n32"
MODELS, DATASETS, LENGTHS = 3, 2, 3
OF_PROFILES = ("structural_draw_fig1", "structural_draw_fig2", "structural_draw_fig3", "structural_draw_training")
OF_THEORY = ("structural_propositions", "structural_draw_forces", "structural_draw_dichotomy")
OF_STATISTICS = ("structural_table2", "structural_table3", "structural_table4", "structural_spearman")
AFTER_ROLLOUTS = (*OF_PROFILES, *OF_STATISTICS, "structural_checks")
ONCE = (
    "tokenizer",
    *AFTER_ROLLOUTS,
    *OF_THEORY,
    "structural_draw_long_training",
    "structural_draw_fig4",
    "structural_draw_fig5",
    "structural_table1",
    "structural_table5",
    "structural_shift",
    "structural_monotonicity",
    "structural_licences",
)
OF_EMERGENCE_TESTS = {f"emergence_draw_{name}": 1 for name in (*BY_DEPTH, *BY_BIAS, "learning_curves", "fig2")}
OF_EMERGENCE_ATTENTION = {f"emergence_draw_{name}": 1 for name in (*OF_MAPS, *OF_SINKS)}
EMERGENCE_FIGURES = {
    **OF_EMERGENCE_TESTS,
    **OF_EMERGENCE_ATTENTION,
    "emergence_draw_long_training": 1,
    "emergence_draw_scales": 1,
    "emergence_draw_scales_sinks": 1,
    "emergence_draw_fig1": 1,
    "emergence_draw_theorems": 1,
}
EMERGENCE_TABLES = dict.fromkeys(("emergence_gaps", "emergence_checks", "emergence_theorems"), 1)
EMERGENCE = {"emergence_train": 10 + 8 + 1, "emergence_attention": 6, **EMERGENCE_FIGURES, **EMERGENCE_TABLES}
LAYERNORM_FIGURES = dict.fromkeys(
    (
        "layernorm_draw_scores",
        "layernorm_draw_closed_form",
        "layernorm_draw_anisotropy",
        "layernorm_draw_depth",
        "layernorm_draw_moments",
        "layernorm_draw_random_weights",
        "layernorm_draw_trained",
        "layernorm_draw_pretrained",
        "layernorm_draw_emergence",
    ),
    1,
)
LAYERNORM = {
    "layernorm_simulate": 1,
    "layernorm_theory": 1,
    "layernorm_random_weights": 1,
    "layernorm_train": 4,
    "layernorm_checks": 1,
    **LAYERNORM_FIGURES,
}
POSTNORM_FIGURES = dict.fromkeys(
    (
        "postnorm_draw_set_complement",
        "postnorm_draw_resharpening",
        "postnorm_draw_dimension",
        "postnorm_draw_bema",
        "postnorm_draw_formal_languages",
        "postnorm_draw_stability",
    ),
    1,
)
POSTNORM = {
    "postnorm_train": 2 + 9,
    "postnorm_train_widths": 1,
    "postnorm_train_depth": 1,
    "postnorm_train_averages": 1,
    "postnorm_train_stability": 1,
    "postnorm_construct": 1,
    "postnorm_checks": 1,
    **POSTNORM_FIGURES,
}
RETRIEVAL_RESULTS = ("retrieval_profiles", "retrieval_predictors", "retrieval_checks", "retrieval_draw_prior")
RETRIEVAL = {"retrieval_train": 5, **dict.fromkeys(RETRIEVAL_RESULTS, 1)}
PAGES = 2 + len(papers(CLAIMS))  # of the scorecard: its tables, its figure, and one for each paper
CHECKPOINTED = ("training", "measure", "emergence", "layernorm", "postnorm")
NORMALISED = 2  # studies of emergence that layernorm looks at
EVERYTHING = {
    "corpus": DATASETS,
    "prompts": DATASETS * LENGTHS,
    "train": MODELS,
    "measure": MODELS * DATASETS,
    "measure_snapshot": MODELS,
    "rollout": MODELS * (2 * DATASETS + 1),  # standard and long on every data set, and before training
    **dict.fromkeys(ONCE, 1),
    **EMERGENCE,
    "emergence_train": EMERGENCE["emergence_train"] + NORMALISED,
    **LAYERNORM,
    **POSTNORM,
    **RETRIEVAL,
}


def only(*rules):
    return dict.fromkeys(rules, 1)


def test_a_clone_builds_everything(fresh):
    assert fresh.planned() == EVERYTHING


FIGURES = {
    "structural": "fig1 fig2 fig3 fig4 fig5 forces dichotomy training long_training",
    "emergence": "fig1 fig2 fig3 fig4 fig5 fig6a fig6b fig6c fig7 fig8a fig8b fig8c fig9 fig10 fig11a fig11b fig11c "
    "fig11d fig12 fig13a fig13b fig13c learning_curves long_training scales scales_sinks theorems",
    "layernorm": "scores closed_form anisotropy depth moments random_weights trained pretrained emergence",
    "postnorm": "set_complement resharpening dimension bema formal_languages stability",
    "retrieval": "prior",
}


@pytest.mark.parametrize("paper", FIGURES)
def test_every_figure_is_there_in_three_formats(built, paper):
    starts = {"pdf": b"%PDF-", "svg": b"<?xml", "png": b"\x89PNG"}
    names = {(name, suffix) for name in FIGURES[paper].split() for suffix in starts}
    there = (built.root / f"figures/{paper}").iterdir()
    assert {(path.stem, path.suffix[1:]) for path in there} == names
    for name, suffix in names:
        content = (built.root / f"figures/{paper}/{name}.{suffix}").read_bytes()
        assert content.startswith(starts[suffix])
        assert len(content) > 5000


def test_table2_has_every_variant_under_both_estimators_with_its_interval(built):
    table = pd.read_csv(built.root / "results/tables/structural/table2.csv")
    of_lambda = {(estimator, variant) for estimator in ("frobenius", "token") for variant in ("b", "c", "measured")}
    for model in ("bloom", "mpt", "falcon"):
        rows = table[table["model"] == model]
        variants = set(zip(rows["estimator"], rows["variant"], strict=True))
        assert variants == of_lambda | {("none", variant) for variant in ("a", "half", "uniform", "last")}
        assert rows["value"].between(0, 1).all()
        assert (rows["low"] <= rows["high"]).all()
    assert "| bloom" in (built.root / "results/tables/structural/table2.md").read_text()


@pytest.mark.parametrize(("table", "rows"), [("table2", 15), ("table3", 30), ("table4", 30)])
def test_what_the_paper_prints_stands_below(built, table, rows):
    printed = pd.read_csv(built.root / f"results/tables/structural/{table}.csv").query("checkpoint == 'published'")
    assert len(printed) == rows
    assert printed[["low", "high"]].isna().all(axis=None)


def test_table1_counts_parameters_as_the_library_does(built):
    from transformers import AutoModelForCausalLM

    table = pd.read_csv(built.root / "results/tables/structural/table1.csv").set_index("model")
    for model in ("bloom", "mpt", "falcon"):
        opened = AutoModelForCausalLM.from_pretrained(built.root / f"results/models/{model}/seed0/step12")
        assert table.loc[model, "parameters"] == opened.num_parameters()
        assert table.loc[model, "loss"] < table.loc[model, "untrained loss"]


def test_verdicts_are_in_the_common_schema_and_follow_from_their_intervals(built):
    checks = pd.read_csv(built.root / "results/tables/structural/checks.csv")
    assert list(checks.columns) == [*COLUMNS, *KEYS]
    assert set(checks["scale"]) == {"test", "longer"}  # the latter of evidence/
    checks = checks[checks["scale"] == "test"]
    assert set(checks.loc[checks["verdict"] == "not testable here", "item"]) == {"Table 5"}  # with so few prompts
    for row in checks[checks["item"] != "Table 5"].itertuples():
        above, below = row.low > row.bound + row.margin, row.high < row.bound - row.margin
        expected = {">": (above, below), "<": (below, above)}[row.relation]
        assert row.verdict == {(True, False): "holds", (False, True): "fails"}.get(expected, "not separable")


def test_every_gap_of_every_network_has_its_row(built):
    table = pd.read_csv(built.root / "results/tables/emergence/gaps.csv")
    networks = (
        2 * 3 + 2 * 3 + 4 * 6 + 3 + 3
    )  # gaussian: two depths of three encodings, twice; biases; windows, prefixes
    fixed = networks - 2 * 3  # one depth, each tested with two common directions
    assert len(table) == 3 * (networks + 2 * fixed + 3)  # isotropic: one study
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


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        *((name, 51) for name in ("emergence/checks", "emergence/theorems", "layernorm/checks", "postnorm/checks")),
        ("retrieval/checks", 22),
    ],
)
def test_verdicts_are_in_the_common_schema(built, table, rows):
    verdicts = pd.read_csv(built.root / f"results/tables/{table}.csv")
    assert list(verdicts.columns) == [*COLUMNS, *(KEYS if table.endswith("checks") else ())]
    assert set(verdicts["scale"]) == ({"test", "paper"} if table == "emergence/checks" else {"test"})  # of evidence/
    assert set(verdicts["verdict"]) <= {"holds", "fails", "not separable", "not testable here"}
    assert len(verdicts) >= rows


def test_curves_of_emergence_say_what_they_are_of(built):
    folder = built.root / "results/emergence/fixed/ends/depth2"
    curves = pd.read_parquet(folder / "curves.parquet")
    assert set(zip(curves["mask"], curves["encoding"], strict=True)) == {
        (mask, encoding) for mask in ("none", "causal") for encoding in ("none", "sin", "rope")
    }
    assert set(curves["iteration"]) == {0, 10, 20}
    assert set(curves["seed"]) == {0, 1}
    assert load_file(folder / "weights.safetensors")["q0"].shape == (12, 16, 16)
    assert not (built.root / "checkpoints/emergence/fixed/ends/depth2").exists()


def test_profiles_are_distributions(built):
    profiles = pd.read_parquet(built.root / "results/rollout/bloom/seed0/step12/standard-library/n32/profiles.parquet")
    totals = profiles.groupby(["estimator", "variant"])["value"].sum()
    assert len(totals) == 11
    of_measured_attention = totals.index.get_level_values("variant") == "measured"
    np.testing.assert_allclose(totals[~of_measured_attention], 1, rtol=0, atol=1e-9)
    np.testing.assert_allclose(totals[of_measured_attention], 1, rtol=0, atol=1e-7)  # rows of attention in float32


def test_profiles_are_the_dense_rollouts_of_what_was_measured(built):
    """From files to files, past every script: lambda, content and attention of the models, multiplied out."""
    for model in ("bloom", "mpt", "falcon"):
        folder = built.root / MEASURED.replace("bloom", model)
        names = ("lambda", "content", "attention", "influence", "slopes")
        files = {name: load_file(folder / f"{name}.safetensors") for name in names}
        mixing = files["lambda"]["frobenius"].mean(0, dtype=float)
        offset = (files["content"]["diagonal"].astype(float) - files["content"]["below"]).mean(0)
        slopes, influence = files["slopes"]["slopes"], files["influence"]["influence"].mean(0, dtype=float)
        attention = files["attention"]["mean"].astype(float)
        expected = {
            "a": dense_last_row(32, np.ones(3), slopes),
            "b": dense_last_row(32, mixing, slopes),
            "c": dense_last_row(32, mixing, slopes, offset),
            "measured": rollout_matrix(map(transition, attention, mixing))[-1],
            "d": influence / influence.sum(),
        }
        profiles = pd.read_parquet(Path(str(folder).replace("measure", "rollout")) / "profiles.parquet")
        for variant, profile in expected.items():
            shown = profiles.query("variant == @variant and estimator in ('frobenius', 'none')")
            np.testing.assert_allclose(shown["value"], profile, atol=1e-12, err_msg=f"{model} {variant}")
        assert np.abs(expected["c"] - expected["b"]).max() > 1e-9


def test_every_target_of_the_readme_and_the_map_exists(built):
    pages = (ROOT / "README.md").read_text() + (ROOT / "docs/map.md").read_text()
    written = re.findall(r"`((?:figures|results)/[\w/.{},-]+)`", pages)
    others = ("results/evidence/", "results/published/", "results/card/", "figures/card/")  # not of the default run
    written = [target for target in written if not target.startswith(others) and "published_" not in target]
    assert len(written) > 40
    for target in written:
        before, *braces = re.split(r"[{}]", target)
        for name in braces[0].split(",") if braces else [""]:
            path = built.root / (before + name + (braces[1] if braces else ""))
            assert path.exists(), path


def test_results_go_where_directory_says(fresh, tmp_path):
    fresh.snakemake(f"results/corpus/language-reference.json --cores 1 --directory {tmp_path}")
    assert (tmp_path / "results/corpus/language-reference/train.parquet").exists()
    assert not (fresh.root / "results/corpus").exists()


def test_models_are_hugging_face_directories_and_learn(built):
    from transformers import AutoTokenizer, BloomForCausalLM

    folder = built.root / "results/models/bloom/seed0"
    for step in (0, 12):
        assert BloomForCausalLM.from_pretrained(folder / f"step{step}").config.n_layer == 3
    tokenizer = AutoTokenizer.from_pretrained(folder / "step12")
    assert tokenizer.decode(tokenizer.encode("A sentence.")) == "A sentence."
    loss = pd.read_csv(folder / "loss.csv")
    test = loss[loss["split"] == "test"].set_index("step")["loss"]
    assert list(test.index) == [0, 12]
    assert test[12] < test[0]
    assert not (built.root / "checkpoints/training/bloom/seed0").exists()


def test_the_corpus_says_what_it_is_made_of(built):
    manifest = json.loads((built.root / "results/corpus/standard-library.json").read_text())
    assert manifest["python"] == ".".join(map(str, sys.version_info[:3]))
    assert all(len(split["sha256"]) == 64 for split in manifest["splits"].values())


def test_every_job_leaves_a_log_and_a_benchmark(built):
    logs = {path.relative_to(built.root / "logs").with_suffix("") for path in built.root.glob("logs/**/*.log")}
    benchmarks = {
        path.relative_to(built.root / "results/benchmarks").with_suffix("")
        for path in built.root.glob("results/benchmarks/**/*.tsv")
    }
    assert logs == benchmarks
    assert len(logs) == sum(EVERYTHING.values()) + PAGES + 1  # and provenance


@pytest.mark.parametrize("name", tables(CLAIMS))
def test_every_id_in_rows_is_registered_and_every_registered_claim_has_a_row(built, name):
    found = pd.read_csv(built.root / f"results/tables/{name}.csv", keep_default_na=False)
    assert set(found["claim"]) - {""} == {claim.id for claim in CLAIMS if claim.table == name}


def test_no_other_table_has_rows_of_claims(built):
    files = (built.root / "results/tables").rglob("*.csv")
    having = {file for file in files if "claim" in pd.read_csv(file, nrows=0)}
    expected = {built.root / f"results/tables/{name}.csv" for name in (*tables(CLAIMS), "scorecard", "comparisons")}
    assert having == expected


def test_every_claim_has_its_verdict_from_the_tables(built):
    scores = pd.read_csv(built.root / "results/tables/scorecard.csv")
    assert scores["claim"].tolist() == [claim.id for claim in CLAIMS]
    assert set(scores["verdict"]) <= set(scorecard.VERDICTS)
    of_evidence = scores["scale"] != "test"
    assert set(scores.loc[of_evidence, "scale"]) == {"longer", "paper"}
    assert of_evidence.sum() < len(scores) / 5
    assert (scores[[f"rows: {verdict}" for verdict in scorecard.VERDICTS]].sum(axis=1) > 0).all()
    said = (built.root / "results/tables/scorecard.txt").read_text()
    assert all(
        f"{verdict} " in said and statement in said for verdict, statement in scores[["verdict", "statement"]].values
    )
    for suffix in ("pdf", "svg", "png"):
        for page in ("scorecard", *(f"scorecard/{paper}" for paper in papers(CLAIMS))):
            assert (built.root / f"figures/{page}.{suffix}").stat().st_size > 5000


@pytest.fixture(scope="module")
def report(built, tmp_path_factory):
    """The page to read, of a copy."""
    project = built.copy(tmp_path_factory.mktemp("report") / "position-bias")
    project.snakemake("results/report.html --cores 1")
    return project.root / "results/report.html"


def test_the_report_holds_every_figure_and_table_with_its_caption(report):
    page = report.read_text()
    of_structural = ("draw_fig1", "draw_fig5", "draw_forces", "draw_dichotomy", "draw_training", "table2", "checks")
    for rule in (f"structural_{name}" for name in (*of_structural, "propositions")):
        assert rule in page
    for rule in (*LAYERNORM_FIGURES, *POSTNORM_FIGURES, "layernorm_checks", "postnorm_checks", "draw_scorecard"):
        assert rule in page
    for rule in ("retrieval_draw_prior", "retrieval_predictors", "retrieval_checks"):
        assert rule in page
    for name in (*PAPERS, "Figures", "Tables", "Figure 01", "Figure 10", "Figure 11a", "Table 02", "Learning curves"):
        assert f'"{name}"' in page
    assert "Position bias, replicated" in page
    assert "scale <em>test</em>" in page


def test_captions_take_numbers_from_the_configuration(report):
    page = report.read_text()
    assert "95 % t-intervals over seeds" in page
    assert (
        "means of 64 sequences" in page
    )  # layernorm.simulation.sequences of config/test.yaml, and 4000 of config.yaml
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
    "6 Retrieval, our addition",
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_opens_the_report_without_an_error_of_a_script(report, tmp_path):
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += [f"--user-data-dir={tmp_path}", "--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom"]
    command = [CHROMIUM, *options, report.as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    errors = [line for line in ended.stderr.splitlines() if "CONSOLE" in line and "rror" in line]
    assert errors == []
    for paper in PAPERS:
        assert paper in re.sub(r"<script.*?</script>", "", ended.stdout, flags=re.DOTALL)  # drawn by the page's scripts


def test_provenance_says_what_made_the_results(built):
    record = json.loads((built.root / "results/provenance.json").read_text())
    assert record["code"] is None  # the copy is no git repository
    assert record["versions"]["torch"] == torch.__version__
    assert record["config"] == yaml.safe_load((built.root / "config.yaml").read_text())
    assert record["seeds"]["models.bloom.seeds"] == [0]
    benchmarks = built.root / "results/benchmarks"
    assert set(record["stages"]) == {path.name for path in benchmarks.iterdir() if path.is_dir()}
    assert sum(stage["jobs"] for stage in record["stages"].values()) == sum(EVERYTHING.values()) + PAGES
    assert all(stage["seconds"] > 0 for stage in record["stages"].values())


def test_a_commit_makes_nothing_out_of_date_and_the_next_record_names_it(mine):
    author = "-c user.name=A -c user.email=a@example.org"
    mine.run(f"git init && git add --all && git {author} commit --message one")
    commit = mine.run("git rev-parse HEAD").stdout.strip()
    assert "Nothing to be done" in mine.snakemake("all -n --cores 1")
    (mine.root / "figures/emergence/fig1.pdf").unlink()  # the figure that is made of nothing
    made = mine.snakemake("all --cores 1")
    assert re.findall(r" done: (\w+)", made) == ["emergence_draw_fig1", "provenance", "all"]
    assert json.loads((mine.root / "results/provenance.json").read_text())["code"] == {"commit": commit, "dirty": False}


# Of every way to a number but language models: stacked networks, and theory alone. A language model is trained and
# measured a second time in test_kills.py, and drawn a second time in tests/slurm, with the same bytes.
TWICE = {
    "emergence": ("figures/emergence/fig3", "results/tables/emergence/theorems"),
    "layernorm": ("figures/layernorm/scores",),
    "postnorm": ("figures/postnorm/dimension",),
}


def test_another_build_in_another_folder_has_the_same_bytes(fresh, built, tmp_path):
    wanted = [name for names in TWICE.values() for name in names]
    files = [f"{name}.{'pdf' if name.startswith('figures') else 'csv'}" for name in wanted]
    fresh.snakemake(f"{' '.join(files)} --cores 2 --directory {tmp_path}")
    again = manifest.lines(tmp_path)
    assert {line.split("  ")[1].rpartition(".")[0] for line in again} == set(wanted)
    assert len(again) == 3 * 3 + 2
    assert set(again) <= set(manifest.lines(built.root))


def test_no_figure_carries_a_date(built):
    figures = [path for path in built.root.glob("figures/*/*") if path.suffix in (".pdf", ".svg")]
    assert len(figures) == 2 * (sum(len(names.split()) for names in FIGURES.values()) + len(papers(CLAIMS)))
    for path in figures:
        assert {".pdf": b"/CreationDate", ".svg": b"<dc:date>"}[path.suffix] not in path.read_bytes()


def test_no_pickle_is_written(built):
    files = {path for path in built.root.glob("results/**/*") if path.is_file()}
    suffixes = {path.suffix for path in files if path.name != ".snakemake_timestamp"}
    assert suffixes <= {".parquet", ".json", ".jinja", ".safetensors", ".csv", ".md", ".tsv", ".txt", ".html"}


def test_a_second_run_does_nothing_and_says_so(mine):
    assert "Nothing to be done" in mine.snakemake("all --cores 2")
    assert "Nothing to be done" in mine.snakemake("--cores 8 --resources gpu=2 all -n")  # as people type it


def test_touching_a_file_rebuilds_nothing(mine):
    for name in (
        "position_bias/rollout/last_row.py",
        "position_bias/language_models/measure.py",
        "position_bias/drawing/style.py",
    ):
        (mine.root / name).touch()
    assert mine.planned() == {}


def test_one_figure_builds_just_what_it_needs(fresh):
    assert fresh.planned("figures/structural/fig4.pdf") == {
        "corpus": DATASETS,
        "tokenizer": 1,
        "prompts": DATASETS * LENGTHS,
        "train": MODELS,
        "measure": MODELS * DATASETS,
        "structural_draw_fig4": 1,
    }
    assert fresh.planned("figures/structural/fig2.pdf") == {
        "corpus": 2,
        "tokenizer": 1,
        "prompts": 3,
        "train": 1,
        "measure": 1,
        "rollout": 1,
        "structural_draw_fig2": 1,
    }


def test_an_edit_of_a_plot_module_rebuilds_its_figures_only(mine):
    mine.append("position_bias/structural/figures.py", "\nEDITED = True\n")
    assert mine.planned() == only(*OF_PROFILES, "structural_draw_fig4")
    mine.append("position_bias/drawing/style.py", "\nEDITED = True\n")
    of_theory = ("structural_draw_forces", "structural_draw_dichotomy")
    further = ("structural_draw_long_training", "structural_draw_fig4", "structural_draw_fig5")
    of_structural = only(*OF_PROFILES, *of_theory, *further)
    assert mine.planned() == {**of_structural, **EMERGENCE_FIGURES, **LAYERNORM_FIGURES, **POSTNORM_FIGURES} | only(
        "retrieval_draw_prior"
    )


def test_one_figure_of_emergence_trains_just_its_networks(fresh):
    assert fresh.planned("figures/emergence/fig3.pdf") == {"emergence_train": 1, "emergence_draw_fig3": 1}
    assert fresh.planned("figures/emergence/fig4.pdf") == {"emergence_train": 2, "emergence_draw_fig4": 1}
    assert fresh.planned("figures/emergence/fig8b.pdf") == {
        "emergence_train": 1,
        "emergence_attention": 1,
        "emergence_draw_fig8b": 1,
    }
    assert fresh.planned("figures/emergence/fig1.pdf") == {"emergence_draw_fig1": 1}


def test_a_new_slope_trains_the_networks_of_its_study_and_depth_alone(mine):
    mine.configure({"retrieval": {"networks": {"residual/depth4": ["decay-0.1", "decay-0.2"]}}})
    assert mine.planned() == {**RETRIEVAL, "retrieval_train": 1}
    mine.configure({"retrieval": {"sequences": 3}})
    assert mine.planned() == {**RETRIEVAL, "retrieval_train": 1}


def test_a_new_window_trains_the_windows_again_and_nothing_else(mine):
    mine.configure({"emergence": {"networks": {"window": [f"window{width}/none" for width in (5, 9, 13, 17)]}}})
    planned = mine.planned()
    assert planned.pop("emergence_train") == 2  # gaussian and fixed
    shown = [f"emergence_draw_{name}" for name in ("fig8b", "fig13b", "scales", "scales_sinks")]
    assert planned == {"emergence_attention": 2, **only(*shown, "emergence_gaps", "emergence_checks")}


def test_a_study_may_leave_networks_out_and_nothing_makes_the_figures_that_show_them(fresh):
    without = "--config emergence='{networks: {plain: [causal/rope], ends: []}}'"
    assert fresh.planned(f"figures/emergence/fig4.pdf {without}") == {
        "emergence_train": 2,
        "emergence_draw_fig4": 1,
    }
    for figure in ("fig7", "fig8a", "fig3"):
        ended = fresh.dry_run(f"figures/emergence/{figure}.pdf -n {without}")
        assert ended.returncode != 0
        assert f"figures/emergence/{figure}.pdf" in ended.stdout


def test_evidence_holds_what_checks_read_with_its_scale_and_what_made_it(mine):
    kept = "emergence: [gaussian/plain/depth2, fixed/ends/depth2], postnorm: [set-complement-16], structural: [bloom]"
    kept = f"--config evidence='{{group: toy, {kept}, retrieval: [last/depth2]}}'"
    sinks = {"emergence_evidence_sinks": 1}
    evidence = dict.fromkeys(("emergence_evidence", "postnorm_evidence", "structural_evidence", "evidence"), 1)
    evidence["retrieval_evidence"] = 1
    assert mine.planned(f"evidence {kept}") == evidence | sinks
    mine.snakemake(f"evidence {kept} --cores 2")
    folder = mine.root / "results/evidence"
    tables = {path.relative_to(folder).as_posix(): pd.read_csv(path) for path in folder.rglob("*.csv")}
    assert sorted(tables) == [
        *(f"emergence/toy/{name}.csv" for name in ("accuracy", "curves", "runs", "sinks")),
        *(f"postnorm/toy/{name}.csv" for name in ("runs", "tests")),
        *(f"retrieval/toy/{name}.csv" for name in ("profiles", "runs")),
        *(f"structural/toy/{name}.csv" for name in ("compared", "content", "lambda", "losses", "profiles")),
        *(f"structural/toy/{name}.csv" for name in ("runs", "statistics")),
    ]
    for name, table in tables.items():
        assert set(table["scale"]) == {"test"}, name
    for paper in ("emergence", "postnorm", "retrieval", "structural"):
        runs = tables[f"{paper}/toy/runs.csv"]
        assert (runs["cpu_minutes"] >= 0).all()
        assert {"commit", "torch", "device", "date", "processor"} <= set(runs)
    sources = [f"results/emergence/{study}/depth2/curves.parquet" for study in ("gaussian/plain", "fixed/ends")]
    tests = gaps.read([mine.root / source for source in sources])
    pd.testing.assert_frame_equal(
        tables["emergence/toy/curves.csv"].drop(columns="scale"),
        gaps.curves(tests).reset_index(drop=True),
        check_dtype=False,
        atol=1e-5,
        rtol=0,
    )
    assert set(tables["emergence/toy/sinks.csv"]["study"]) == {"plain"}
    assert set(tables["structural/toy/profiles.csv"]["checkpoint"]) == {"seed0/step0", "seed0/step12"}
    shutil.copytree(folder / "structural/toy", mine.root / "evidence/structural/language-model", dirs_exist_ok=True)
    targets = "figures/structural/long_training.pdf results/tables/structural/checks.csv"
    assert mine.planned(targets) == {"structural_draw_long_training": 1, "structural_checks": 1}
    mine.snakemake(f"{targets} --cores 2")
    of_training = pd.read_csv(mine.root / "results/tables/structural/checks.csv").query("item == 'training'")
    assert of_training["quantity"].str.startswith("wasserstein of (b), less that of (c); bloom seed0/step0").any()


def test_evidence_of_a_short_training_says_what_to_add(fresh):
    ended = fresh.dry_run("evidence -n --configfile config/evidence/mask-by-depth.yaml --config scale=laptop")
    assert ended.returncode != 0
    assert "error: config: scale = 'laptop' trains no longer than the default run, and evidence.group" in ended.stdout


def test_evidence_of_no_group_says_what_to_add(fresh):
    ended = fresh.dry_run("evidence -n")
    assert ended.returncode != 0
    assert "error: config: evidence names no group" in ended.stdout


def test_a_new_depth_leaves_finished_ones_alone(mine):
    mine.configure({"emergence": {"depths": {"gaussian": {"plain": [2, 3, 4]}}}})
    planned = mine.planned()
    assert planned["emergence_train"] == 1
    assert planned["emergence_draw_fig4"] == 1
    assert not planned.keys() & {"emergence_draw_fig5", "emergence_draw_fig3"}


def test_an_edit_of_sinks_or_claims_of_emergence_trains_nothing(mine):
    mine.append("position_bias/emergence/sinks.py", "\nEDITED = True\n")
    mine.append("position_bias/emergence/checks.py", "\nEDITED = True\n")
    assert mine.planned() == {
        "emergence_attention": 6,
        **OF_EMERGENCE_ATTENTION,
        "emergence_draw_scales": 1,
        "emergence_draw_scales_sinks": 1,
        "emergence_gaps": 1,
        "emergence_checks": 1,
    }


def test_a_claim_is_two_lines(mine):
    page = (ROOT / "docs/architecture.md").read_text().split("### Add a claim\n")[1].split("\n### ")[0]
    lines = re.findall(r"^\| `(published/\S+)` \| `([^`]+)` \|$", page, re.MULTILINE)
    assert len(lines) == 2
    for file, line in lines:
        mine.append(file, f"{line}\n")
    mine.snakemake("results/tables/scorecard.csv --cores 1")
    scores = pd.read_csv(mine.root / "results/tables/scorecard.csv").set_index("claim")
    assert scores.loc["layernorm-example", "statement"] == "RMSNorm makes heads attend to later tokens"
    rows = pd.read_csv(mine.root / "results/tables/layernorm/checks.csv")
    row, *_ = rows[rows["claim"] == "layernorm-example"].to_dict("records")
    assert (row["quantity"], row["margin"]) == ("an example, layer 2: pre-rms - none", 0.005)


def test_an_edited_statement_makes_the_scorecard_again_and_nothing_else(mine):
    path = mine.root / "published/claims.csv"
    path.write_text(path.read_text().replace("Content preserves the U", "Content keeps the U"))
    printed = mine.snakemake("all -n --cores 1")
    assert {"scorecard", "draw_scorecard"} <= {line.split()[0] for line in printed.splitlines() if line.strip()}
    assert mine.planned() == {}


def test_a_registry_that_cannot_be_used_ends_in_one_line_before_any_job(fresh, tmp_path):
    mine = fresh.copy(tmp_path / "position-bias")
    path = mine.root / "published/claims.csv"
    path.write_text(path.read_text().replace("secondary source", "hearsay", 1))
    ended = mine.dry_run("all -n --cores 1")
    assert ended.returncode != 0
    assert "has whose hearsay; use one of: paper, secondary source, ours" in ended.stdout
    assert "Traceback" not in ended.stdout


def test_one_figure_on_norms_trains_just_its_networks(fresh):
    assert fresh.planned("figures/postnorm/set_complement.pdf") == {
        "postnorm_train": 2,
        "postnorm_draw_set_complement": 1,
    }
    assert fresh.planned("figures/layernorm/trained.pdf") == {"layernorm_train": 4, "layernorm_draw_trained": 1}
    assert fresh.planned("figures/layernorm/emergence.pdf") == {"emergence_train": 3, "layernorm_draw_emergence": 1}


def test_a_new_learning_rate_of_one_norm_trains_that_alone(mine):
    mine.configure({"layernorm": {"trained": {"learning_rate": {"pre-rms": 0.001}}}})
    assert mine.planned() == {"layernorm_train": 1, "layernorm_draw_trained": 1, "layernorm_checks": 1}
    mine.configure({"postnorm": {"languages": {"lengths": {"tomita-3": 9}}}})
    planned = mine.planned()
    assert planned["postnorm_train"] == 1
    assert not planned.keys() & {"postnorm_train_widths", "postnorm_train_averages", "postnorm_draw_set_complement"}


def test_an_edit_of_the_rollout_module_reruns_rollouts_and_not_measurements(mine):
    mine.append("position_bias/rollout/last_row.py", "\nEDITED = True\n")
    assert mine.planned() == {"rollout": EVERYTHING["rollout"], **only(*AFTER_ROLLOUTS, *OF_THEORY)}


def test_an_edit_of_the_measuring_pass_retrains_nothing(mine):
    mine.append("position_bias/language_models/measure.py", "\nEDITED = True\n")
    planned = mine.planned()
    assert not planned.keys() & {"corpus", "tokenizer", "prompts", "train"}
    assert planned["measure"] == EVERYTHING["measure"]


RECIPES = re.findall(r"```yaml\n((?!# config/).*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL)


def test_the_recipes_for_a_model_and_a_data_set_leave_finished_ones_alone_and_work(mine):
    assert len(RECIPES) == 2
    for recipe, text in zip(("model", "data"), RECIPES, strict=True):
        (mine.root / f"{recipe}.yaml").write_text(text)
    measured = {"measure": DATASETS, "measure_snapshot": 1, "rollout": 2 * DATASETS + 1}
    of_all_models = (*AFTER_ROLLOUTS, "structural_draw_fig4", "structural_draw_fig5", "structural_monotonicity")
    of_all_models = {*of_all_models, "structural_table1", "structural_table5", "structural_shift"}
    of_all_models -= {"structural_draw_fig1"}
    assert mine.planned("all --configfile model.yaml") == {"train": 1, **measured} | only(*of_all_models)
    printed = mine.snakemake("all -n --cores 1 --configfile model.yaml")
    assert "model=shallow" in printed
    assert "model=bloom" not in printed

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
    measured = mine.root / "results/measure/shallow/seed0/step12/mine/n32/lambda.safetensors"
    assert load_file(measured)["frobenius"].shape == (16, 2)


def test_where_figure_1_shows_every_model_there_is_no_figure_2(mine):
    mine.configure({"structural": {"fig1": ["bloom", "mpt", "falcon"]}})
    assert mine.planned() == only("structural_draw_fig1")
    assert "structural/fig2" not in mine.snakemake("all -n --cores 1")


def test_a_model_of_figure_1_need_not_be_measured(fresh):
    for measured, shown, missing in (("falcon", "fig2", "fig1"), ("bloom", "fig1", "fig2")):
        fewer = f"--config measure='{{models: [{measured}]}}'"
        planned = fresh.planned(f"structural {fewer}")
        assert f"structural_draw_{shown}" in planned
        assert f"structural_draw_{missing}" not in planned
        ended = fresh.dry_run(f"figures/structural/{missing}.pdf -n --cores 1 {fewer}")
        assert ended.returncode != 0
        assert f"figures/structural/{missing}.pdf" in ended.stdout
        assert "Traceback" not in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--config fig1='[bloom]'", "fig1 is now structural.fig1; change what sets it"),
        ("--config training='{checkpoint_every: 5}'", "training.checkpoint_every is now checkpoint_every.training; "),
        ("--configfile old.yaml", "published_source is now released.source; published_long is now released.sampled"),
    ],
)
def test_an_old_key_ends_in_one_line_before_any_job(fresh, tmp_path, arguments, line):
    (tmp_path / "old.yaml").write_text("published_source: somewhere\npublished_long: [256]\n")
    ended = fresh.dry_run(f"all -n --cores 1 {arguments.replace('old.yaml', str(tmp_path / 'old.yaml'))}")
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1].startswith(f"error: config: {line}")


def test_one_changed_number_rebuilds_what_depends_on_it(mine):
    mine.configure({"rollout": {"bootstrap": 60}})
    rollouts = {"rollout": EVERYTHING["rollout"], **only(*AFTER_ROLLOUTS, "structural_shift")}
    assert mine.planned() == rollouts
    mine.configure({"checkpoint_every": dict.fromkeys(CHECKPOINTED, 5)})  # which changes no result
    assert mine.planned() == rollouts
    later = {"testing": {"settled": 0.5, "last_kept": 5}, "training": {"iterations": {"ends": 30}}}
    mine.configure({"emergence": later})
    planned = mine.planned()
    assert planned["emergence_train"] == 2  # those biased to both ends, of either vocabulary
    assert planned["emergence_draw_long_training"] == planned["emergence_gaps"] == 1
    mine.configure({"lengths": {"long": {"prompts": 6}}})
    planned = mine.planned()
    assert "train" not in planned
    assert planned["prompts"] == DATASETS


def test_numbers_that_are_given_as_they_are_rebuild_nothing(mine):
    """Snakemake merges what is given with config.yaml in such a way that it comes first."""
    config = yaml.safe_load((mine.root / "config.yaml").read_text())
    given = {
        "emergence": {"task": {"width": config["emergence"]["task"]["width"]}},
        "training": {"steps": config["training"]["steps"]},
    }
    (mine.root / "given.yaml").write_text(yaml.safe_dump(given))
    assert (
        mine.planned(f"all --configfile given.yaml --config rollout='{{bootstrap: {config['rollout']['bootstrap']}}}'")
        == {}
    )


def test_a_figure_drawn_again_has_the_same_bytes(mine):
    paths = [mine.root / f"figures/structural/fig1.{suffix}" for suffix in ("pdf", "svg", "png")]
    before = [path.read_bytes() for path in paths]
    measured = (mine.root / MEASURED / "lambda.safetensors").stat().st_mtime_ns
    mine.append("position_bias/structural/figures.py", "\nEDITED = True\n")
    mine.snakemake("figures/structural/fig1.pdf --cores 1")
    assert [path.read_bytes() for path in paths] == before
    assert (mine.root / MEASURED / "lambda.safetensors").stat().st_mtime_ns == measured


def test_a_truncated_artifact_is_named_with_the_command_that_mends_it(mine):
    broken = mine.root / MEASURED / "influence.safetensors"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-100])
    profiles = MEASURED.replace("measure", "rollout") + "/profiles.parquet"
    ended = mine.run(f"snakemake {profiles} --cores 1 --force")
    assert ended.returncode == 1
    line = next(line for line in ended.stdout.splitlines() if line.startswith("error: "))
    assert f"artifact {MEASURED}/influence.safetensors is not usable" in line
    remedy = line.split("rebuild it with: ")[1]
    assert mine.run(remedy).returncode == 0
    assert broken.read_bytes() == whole
    mine.snakemake(f"{profiles} --cores 1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--config sed=1", "config: sed = 1 is not a key of the configuration; did you mean 'seed'?"),
        ("--config seed=-1", "config: seed = -1 is too small; give at least 0"),
        ("--config device=tpu", "config: device = 'tpu' is not known; use one of auto, cpu, cuda"),
    ],
)
def test_a_bad_configuration_ends_in_one_line_before_any_job(fresh, arguments, message):
    ended = fresh.run(f"snakemake all --cores 1 {arguments}")
    assert ended.returncode == 1
    last = ended.stdout.splitlines()[-1]
    assert last.startswith(f"error: {message}")
    assert "Traceback" not in ended.stdout
    assert not (fresh.root / "results/corpus").exists()


def test_a_failed_run_shows_the_log_of_its_job_and_says_what_to_type(fresh, tmp_path):
    project = fresh.copy(tmp_path / "position-bias")
    project.append("scripts/draw.py", "\n    raise RuntimeError('broken')\n")
    ended = project.run("snakemake figures/emergence/fig1.pdf --cores 1")
    assert ended.returncode == 1
    shown = ended.stdout.index("Logfile logs/figures/emergence/fig1.log")
    assert ended.stdout.index("ERROR the job failed", shown) < ended.stdout.index(
        "\nA job failed; its log is shown above"
    )
    assert ended.stdout.count("type the same command again") == 1


def test_a_locked_folder_says_how_to_unlock_it(fresh, tmp_path):
    project = fresh.copy(tmp_path / "position-bias")
    (project.root / ".snakemake/locks").mkdir(parents=True, exist_ok=True)
    (project.root / ".snakemake/locks/0.output.lock").write_text("figures/emergence/fig1.pdf\n")
    ended = project.run("snakemake figures/emergence/fig1.pdf --cores 1")
    assert ended.returncode == 1
    assert "Directory cannot be locked" in ended.stdout
    assert "--unlock" in ended.stdout
    project.snakemake("--unlock")
    assert not list(project.root.glob(".snakemake/locks/*"))


def test_more_prompts_than_text_says_how_many_windows_there_are(mine):
    ended = mine.run("snakemake all --cores 1 --config lengths='{standard: {prompts: 1000000}}'")
    assert ended.returncode == 1
    line = next(line for line in ended.stdout.splitlines() if line.startswith("error: "))
    assert "1000000 windows of 32 tokens are asked for, but the text has" in line
    assert "lower lengths.*.prompts" in line


def test_the_gpu_tag_counts_only_where_a_gpu_is_used(fresh):
    assert "gpu=1" not in fresh.snakemake("all -n --cores 1", CUDA_VISIBLE_DEVICES="")
    assert (
        fresh.snakemake("all -n --cores 1", CUDA_VISIBLE_DEVICES="0,1").count("gpu=1")
        == MODELS * (2 + DATASETS) + 19 + NORMALISED + 4 + 15 + 5
    )  # train and measure, emergence_train, layernorm_train, postnorm_train and its four experiments, retrieval_train
    assert "gpu=1" not in fresh.snakemake("all -n --cores 1 --config device=cpu", CUDA_VISIBLE_DEVICES="0,1")


def test_the_script_of_a_job_runs_in_one_process_for_a_debugger(mine):
    """On the inputs that are there, and with the bytes that Snakemake's own process of it wrote."""
    table = mine.root / "results/tables/emergence/gaps.csv"
    made = table.read_bytes()
    table.unlink()
    assert mine.run("python run_job.py results/tables/emergence/gaps.csv").returncode == 0
    assert table.read_bytes() == made
    ended = mine.run("python run_job.py results/tables/none.csv")
    assert ended.returncode != 0
    assert "results/tables/none.csv" in ended.stdout
