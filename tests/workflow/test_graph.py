"""What a toy graph leaves behind: the small one in `make test`, and the whole one besides in `make test-all`."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.numpy import load_file

from position_bias.verdicts.judge import COLUMNS, KEYS
from position_bias.verdicts.registry import claim_tables, every_addition, every_claim
from position_bias.verdicts.rule import OF_ROW, WORDS
from position_card.rollout.last_row import dense_last_row, rollout_matrix, transition
from tests.graphs import CLAIMS, FIGURES, PAGES, counted

MEASURED = "results/measure/bloom/seed0/step12/standard-library/n32.safetensors"


def models(graph):
    return [path.name for path in (graph.root / "results/models").iterdir()]


def registered(graph):
    return every_claim(graph.root / "published/claims.csv") + every_addition(graph.root / "published/additions.csv")


def test_table2_has_every_variant_under_both_estimators_with_its_interval(graph):
    table = pd.read_csv(graph.root / "results/tables/structural/table2.csv")
    of_lambda = {(estimator, variant) for estimator in ("frobenius", "token") for variant in ("b", "c", "measured")}
    for model in models(graph):
        rows = table[table["model"] == model]
        variants = set(zip(rows["estimator"], rows["variant"], strict=True))
        assert variants == of_lambda | {("none", variant) for variant in ("a", "half", "uniform", "last")}
        assert rows["value"].between(0, 1).all()
        assert (rows["low"] <= rows["high"]).all()
    assert "| bloom" in (graph.root / "results/tables/structural/table2.md").read_text()


@pytest.mark.parametrize(("table", "rows"), [("table2", 15), ("table3", 30), ("table4", 30)])
def test_what_the_paper_prints_stands_below(graph, table, rows):
    printed = pd.read_csv(graph.root / f"results/tables/structural/{table}.csv").query("checkpoint == 'published'")
    assert len(printed) == rows
    assert printed[["low", "high"]].isna().all(axis=None)


def test_table1_counts_parameters_as_the_library_does_and_models_have_learnt(graph):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    table = pd.read_csv(graph.root / "results/tables/structural/table1.csv").set_index("model")
    for model in models(graph):
        folder = graph.root / f"results/models/{model}/seed0/step12"
        opened, tokenizer = (kind.from_pretrained(folder) for kind in (AutoModelForCausalLM, AutoTokenizer))
        assert tokenizer.decode(tokenizer.encode("A sentence.")) == "A sentence."
        assert table.loc[model, "parameters"] == opened.num_parameters()
        assert table.loc[model, "loss"] < table.loc[model, "untrained loss"]


@pytest.mark.parametrize("table", [*(f"{paper}/checks" for paper in FIGURES), "emergence/theorems"])
def test_verdicts_are_in_the_common_schema(graph, table):
    verdicts = pd.read_csv(graph.root / f"results/tables/{table}.csv")
    assert list(verdicts.columns) == [*COLUMNS, *KEYS]
    others = {
        "structural/checks": {"longer", "pretrained", "paper"},
        "emergence/checks": {"paper"},
        "layernorm/checks": set() if graph.small else {"pretrained"},
    }  # of evidence/, of pretrained decoders and of the authors' drawings
    assert set(verdicts["scale"]) == {"test"} | others.get(table, set())
    assert set(verdicts["verdict"]) <= set(WORDS)
    assert len(verdicts) >= 22


def test_profiles_are_the_dense_rollouts_of_what_was_measured(graph):
    """From files to files, past every script: lambda, content and attention of the models, multiplied out."""
    for model in models(graph):
        found = load_file(graph.root / MEASURED.replace("bloom", model))
        mixing = found["mixing/frobenius"].mean(0, dtype=float)
        offset = (found["diagonal"].astype(float) - found["below"]).mean(0)
        slopes, influence = found["slopes"], found["influence"].mean(0, dtype=float)
        attention = found["attention"].astype(float)
        expected = {
            "a": dense_last_row(32, np.ones(3), slopes),
            "b": dense_last_row(32, mixing, slopes),
            "c": dense_last_row(32, mixing, slopes, offset),
            "measured": rollout_matrix(map(transition, attention, mixing))[-1],
            "d": influence / influence.sum(),
        }
        folder = MEASURED.replace("bloom", model).replace("measure", "rollout").removesuffix(".safetensors")
        profiles = pd.read_parquet(graph.root / folder / "profiles.parquet")
        for variant, profile in expected.items():
            shown = profiles.query("variant == @variant and estimator in ('frobenius', 'none')")
            np.testing.assert_allclose(shown["value"], profile, atol=1e-12, err_msg=f"{model} {variant}")
        assert np.abs(expected["c"] - expected["b"]).max() > 1e-9


def test_every_job_leaves_a_log_and_a_benchmark(graph):
    logs = {path.relative_to(graph.root / "logs").with_suffix("") for path in graph.root.glob("logs/**/*.log")}
    benchmarks = {
        path.relative_to(graph.root / "results/benchmarks").with_suffix("")
        for path in graph.root.glob("results/benchmarks/**/*.tsv")
    }
    assert logs == benchmarks
    assert len(logs) == sum(counted(graph.small).values()) + PAGES + 1  # and provenance


@pytest.mark.parametrize("name", claim_tables(CLAIMS))
def test_every_id_in_rows_is_registered_and_every_registered_claim_has_a_row(graph, name):
    found = pd.read_csv(graph.root / f"results/tables/{name}.csv", keep_default_na=False)
    assert set(found["claim"]) - {""} == {claim.id for claim in registered(graph) if claim.table == name}


def test_no_other_table_has_rows_of_claims(graph):
    files = (graph.root / "results/tables").rglob("*.csv")
    having = {file for file in files if "claim" in pd.read_csv(file, nrows=0)}
    of_both = ("scorecard", "additions", "comparisons")
    expected = {graph.root / f"results/tables/{name}.csv" for name in (*claim_tables(CLAIMS), *of_both)}
    assert having == expected


def test_every_claim_has_its_verdict_from_the_tables(graph):
    theirs, ours = (pd.read_csv(graph.root / f"results/tables/{name}.csv") for name in ("scorecard", "additions"))
    assert set(ours["whose"]) == {"ours"}
    scores = pd.concat([theirs, ours], ignore_index=True)
    assert scores["claim"].tolist() == [claim.id for claim in registered(graph)]
    assert set(scores["verdict"]) <= {*WORDS, "erratum"}
    of_evidence = scores["scale"] != "test"
    assert set(scores.loc[of_evidence, "scale"]) == {"longer", "pretrained", "paper"}
    assert of_evidence[scores["kind"] != "pretrained"].sum() < len(scores) / 3
    assert (scores[[f"rows: {word}" for word in OF_ROW]].sum(axis=1) > 0).all()
    grams = pd.read_csv(graph.root / "results/tables/layernorm/checks.csv").groupby("claim")["scale"].agg(set)
    assert grams["layernorm-language-models"] == ({"test"} if graph.small else {"test", "pretrained"})
    said = (graph.root / "results/tables/scorecard.txt").read_text()
    assert len(said.splitlines()) <= 10
    of_theory = scores[(scores["whose"] == "paper") & (scores["kind"] == "theory")]
    line = next(line for line in said.splitlines() if line.startswith("papers: theory"))
    assert str((of_theory["verdict"] == "holds").sum()) in line.split()
    for suffix in ("pdf", "svg", "png"):
        assert (graph.root / f"figures/scorecard.{suffix}").stat().st_size > 5000


def test_provenance_says_what_made_the_results(graph):
    record = json.loads((graph.root / "results/provenance.json").read_text())
    assert record["code"] is None  # the copy is no git repository
    assert record["versions"]["torch"] == torch.__version__
    assert None not in record["versions"].values()
    assert record["config"] == yaml.safe_load((graph.root / "config.yaml").read_text())
    benchmarks = graph.root / "results/benchmarks"
    assert set(record["stages"]) == {path.name for path in benchmarks.iterdir() if path.is_dir()}
    assert sum(stage["jobs"] for stage in record["stages"].values()) == sum(counted(graph.small).values()) + PAGES
    seconds = [stage["seconds"] for stage in record["stages"].values()]
    assert min(seconds) >= 0  # a stage of one quick job can round to 0
    assert sum(seconds) > 0
