"""Rollouts of bloom-176b against the influence that was drawn, and what evidence/ keeps of a small model's files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_bias.released import shapes
from position_card.core import artifacts

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "evidence/structural/released"
PROFILES = {"a.released.none": (0.9, 0.05, 0.03, 0.02), "c.released.released": (0.4, 0.1, 0.1, 0.4)}
PROFILES |= {"c.released.faithful": (0.3, 0.3, 0.2, 0.2), "c.doubled.released": (0.25,) * 4}
DISTANCES = pd.DataFrame(  # of two rules of slopes, two of content and two lambdas of (b)
    [("released", "released", "fineweb-edu", 1 / 3, -0.02, 0.01), ("released", "released", "dclm", 0.5, 0.7, 0.7)]
    + [(*rules, "fineweb-edu", 0.5, 0.7, 0.7) for rules in (("released", "faithful"), ("faithful", "released"))],
    columns=["slopes", "content", "lambda of (b)", "W(a, b)", "excess by means", "excess by triangles"],
).assign(model="mpt-7b", dataset="fineweb-edu", n=4)
LAMBDA = [0.5, 0.2, 0.3, *[0.1] * 9]
N = 64
TABLES = ("statistics", "profiles", "mixing", "distances", "drawn", "source")


def test_a_rollout_is_compared_with_the_influence_and_with_its_own_drawing(tmp_path):
    first, last, flat = np.eye(N)[0], np.eye(N)[-1], np.full(N, 1 / N)
    profiles = {
        "b.released.none": flat,
        "b.faithful.none": first,
        "c.released.released": (first + last) / 2,
        "c.released.faithful": last,
    }
    for name, values in profiles.items():
        table = pd.DataFrame({"position": range(N), "value": values}).sample(frac=1, random_state=0)
        artifacts.write_table(tmp_path / f"bloom-176b/dclm/n{N}/{name}.csv", table)
    shares = {"a": first, "b": flat, "c": last, "d": last}
    curves = pd.DataFrame(shares, index=pd.RangeIndex(N, name="token")).melt(
        var_name="variant", value_name="share", ignore_index=False
    )
    found = shapes.compare_with_drawing(sorted(tmp_path.rglob("*.csv")), curves.reset_index())
    found = found.set_index(["variant", "slopes", "content"])
    assert found.loc[("b", "released", "none"), "wasserstein"] == pytest.approx(0.5)
    assert found.loc[("b", "released", "none"), "W to its drawing"] == pytest.approx(0)
    assert found.loc[("b", "faithful", "none"), "wasserstein"] == pytest.approx(1)
    assert found.loc[("c", "released", "released"), "W to its drawing"] == pytest.approx(0.5)
    assert found.loc[("c", "released", "faithful"), "wasserstein"] == pytest.approx(0)
    assert found["W to its drawing"].notna().sum() == 2
    assert found.loc[("d", "none", "none"), ["argmin", "mean position"]].tolist() == [0, 1]


@pytest.fixture
def made(tmp_path):
    """Four profiles of mpt-7b, lambda of three layers, and content of two heads in each."""
    folder = tmp_path / "mpt-7b/fineweb-edu"
    for name, shares in PROFILES.items():
        table = pd.DataFrame({"position": range(4), "value": shares})
        artifacts.write_table(folder / f"n4/{name}.csv", table.sample(frac=1, random_state=0))
    artifacts.write_table(folder / "lambda.csv", pd.DataFrame({"layer": range(12), "lambda": LAMBDA}))
    layer, head = np.indices((12, 2))
    heads = {"layer": layer.ravel(), "head": head.ravel(), "base": 0.0, "diagonal": [25.0, *[-1] * 16, *[2] * 7]}
    artifacts.write_table(folder / "content.csv", pd.DataFrame(heads))
    artifacts.write_table(tmp_path / "source.csv", pd.DataFrame([{"files": "lambda.csv", "sha256": "f" * 64}]))
    return shapes.evidence(
        profiles=sorted(folder.glob("n4/*.csv")),
        mixing=[folder / "lambda.csv"],
        content=[folder / "content.csv"],
        variants=DISTANCES,
        drawn=pd.DataFrame({"variant": ["d"]}),
        source=pd.read_csv(tmp_path / "source.csv"),
    )


def values(made, statistic):
    found = made["statistics"].query("statistic == @statistic")
    return {tuple(key): value for *key, value in found[["network", "slopes", "content", "value"]].values.tolist()}


def test_a_profile_is_described_under_every_rule_that_its_model_is_judged_by(made):
    assert values(made, "first") == {("a", "released", "none"): 0.9} | {
        ("c", "released", content): share for content, share in (("released", 0.4), ("faithful", 0.3))
    }
    assert values(made, "first / middle")["c", "released", "released"] == pytest.approx(4)


def test_of_schedules_the_trend_of_lambda_and_the_signs_of_heads_are_kept(made):
    ranks = pd.DataFrame({"layer": range(12), "lambda": LAMBDA}).rank().corr().iloc[0, 1]
    assert values(made, "spearman with depth") == {("lambda", "none", "none"): pytest.approx(ranks)}
    assert values(made, "shift") == {("heads", "none", "none"): 0.3333333}  # the mean is positive, and two of six are
    assert values(made, "positive shift") == values(made, "shift")


def test_profiles_are_those_of_the_authors_configurations_in_the_order_of_tokens(made):
    shown = made["profiles"]
    assert shown["variant"].tolist() == ["a"] * 4 + ["c"] * 4
    assert {tuple(group["value"]) for _, group in shown.sort_values("position").groupby("variant")} == {
        PROFILES["a.released.none"],
        PROFILES["c.released.released"],
    }


def test_of_lambda_the_means_over_tenths_of_the_layers_are_kept(made):
    """Of twelve layers the first two tenths have two each."""
    mixing = made["mixing"]
    assert mixing["tenth"].tolist() == [*range(1, 11)]
    assert mixing["value"].tolist() == pytest.approx([0.35, 0.2, *[0.1] * 8])
    assert set(mixing["layers"]) == {12}


def test_configured_rollouts_are_compared_with_the_models_own(made):
    """Content alone here, since nothing has the model's own slopes: cumulated shares .4, .5, .6 against .3, .6, .8."""
    assert values(made, "W to the model's own") == {("content", "none", "none"): pytest.approx(0.4 / 3, abs=1e-7)}


def test_the_excess_of_the_authors_configuration_is_the_larger_one(made):
    assert values(made, "excess over the triangle inequality") == {("printed", "none", "none"): 0.01}


def test_every_table_has_the_scale_of_the_paper_and_few_digits(made):
    assert all(set(table["scale"]) == {"paper"} for table in made.values())
    assert made["distances"]["W(a, b)"].tolist() == [0.3333333, 0.5, 0.5, 0.5]


def test_what_is_decided_stands_in_a_row_for_each_model_and_data_set():
    """Numbers of the statistics as kept, for falcon-rw-7b on FineWeb-Edu."""
    table = shapes.judged_values(pd.read_csv(KEPT / "statistics.csv"))
    assert len(table) == 15
    row = table.set_index(["model", "dataset"]).loc["falcon-rw-7b", "fineweb-edu"]
    assert row["first / middle of (c)"] == pytest.approx(0.878, abs=5e-4)
    assert row["W with the model's own slopes"] == pytest.approx(0.3, abs=5e-4)
    assert row["excess of printed distances"] == pytest.approx(0.0113, abs=5e-5)
    profiles = pd.read_csv(KEPT / "profiles.csv").query("model == 'falcon-rw-7b' and position == 0")
    first = profiles.set_index("variant")["value"]
    assert row["first token, (c) less (b)"] == pytest.approx(first["c"] - first["b"], abs=1e-6)


def test_the_released_files_themselves_are_not_kept():
    assert {path.stem for path in KEPT.glob("*")} == {*TABLES}
    columns = {column for path in KEPT.glob("*.csv") for column in pd.read_csv(path, nrows=0)}
    assert not columns & {"layer", "head", "lambda", "base", "diagonal"}


def test_profiles_that_are_kept_have_the_statistics_that_are_kept():
    profiles, of_all = (pd.read_csv(KEPT / f"{name}.csv") for name in ("profiles", "statistics"))
    asked = (
        "slopes == 'released' and content != 'faithful' and dataset == 'fineweb-edu' and statistic == 'mean position'"
    )
    means = of_all.query(asked).set_index(["model", "network"])["value"]
    assert len(means) == 15
    for (model, variant), profile in profiles.groupby(["model", "variant"]):
        assert profile["value"].sum() == pytest.approx(1, abs=1e-5)
        mean = (profile["value"] * profile["position"]).sum() / 255
        assert mean == pytest.approx(means[model, variant], abs=1e-5)
