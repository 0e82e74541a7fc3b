"""Tables of the paper beside ours: printed numbers keep their place, and ours their interval, scale and n."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_bias.structural import printed_tables, tables

ROOT = Path(__file__).parents[3]
PRINTED = pd.read_csv(ROOT / "published/structural_distances.csv")
DRAWN, BOUNDS, MIXING = (
    pd.read_csv(ROOT / f"evidence/structural/released/{n}.csv") for n in ("drawn", "distances", "mixing")
)


def measured(*models, dataset="prose", estimators=("frobenius", "token"), checkpoints=("seed0/step3",)):
    """What `comparison.summary` has of models: (a) once, (b) and (c) by each estimator, with a null beside them."""
    keys = [("a", "none"), ("uniform", "none"), *((variant, name) for variant in "bc" for name in estimators)]
    rows = [
        {"model": model, "checkpoint": step, "variant": variant, "estimator": name, "value": 0.1 * place}
        for model in models
        for step in checkpoints
        for place, (variant, name) in enumerate(keys, 1)
    ]
    fixed = {"dataset": dataset, "n": 8, "prompts": 9, "resampled": 7, "statistic": "wasserstein"}
    table = pd.DataFrame(rows).assign(**fixed)
    return table.assign(low=table["value"] - 0.01, high=table["value"] + 0.01)


def beside(found, name="table2"):
    joined = tables.distances(found, PRINTED, ["wasserstein"], name)
    return printed_tables.distances(joined, DRAWN, BOUNDS, name, "default")


def test_table_2_has_the_drawn_model_and_what_no_influence_can_have():
    shown = beside(measured("bloom")).set_index(["model", "quantity"])
    of_drawn = shown.loc["bloom-176b"]
    assert of_drawn["printed"].tolist() == [0.65, 0.08, 0.01]
    assert of_drawn["ours"].round(3).tolist() == [0.651, 0.079, 0.016]
    assert set(of_drawn["scale"]) == {"paper"}
    assert of_drawn["low"].isna().all()
    others = shown[shown["printed"].notna()].drop("bloom-176b")
    assert others["ours"].isna().all()
    assert set(others.index.get_level_values("model")[others["note"].notna()]) == {"falcon-rw-7b", "mpt-7b"}


def test_ours_has_the_papers_lambda_its_interval_scale_and_documents():
    own = beside(measured("bloom"))[lambda rows: rows["model"] == "bloom"].set_index("quantity")
    assert own["ours"].to_dict() == {
        f"W of ({variant}) to influence": pytest.approx(value)
        for variant, value in (("a", 0.1), ("b", 0.3), ("c", 0.5))
    }
    assert own["low"].tolist() == pytest.approx([0.09, 0.29, 0.49])
    assert own["printed"].isna().all()
    assert set(own["scale"]) == {"default"}
    assert set(own["n"]) == {"7 documents"}


def test_a_model_of_the_paper_stands_beside_what_is_printed_of_it():
    shown = beside(measured("bloom-7b1", dataset="dclm"), "table3")
    row = shown.set_index(["model", "dataset", "quantity"]).loc["bloom-7b", "dclm-baseline", "W of (b) to influence"]
    assert (row["printed"], row["ours"]) == (0.03, pytest.approx(0.3))
    assert "bloom-7b1" not in set(shown["model"])


def test_bounds_are_of_256_tokens_alone():
    assert beside(measured("bloom"), "table3")["note"].notna().any()
    assert beside(measured("bloom"), "table4")["note"].isna().all()


def test_every_training_seed_has_a_row():
    shown = beside(measured("bloom", checkpoints=("seed0/step3", "seed1/step3")))
    assert shown[shown["model"] == "bloom"]["note"].value_counts().to_dict() == {"seed0": 3, "seed1": 3}


def test_table_1_has_the_layers_of_released_schedules_beside_printed_depths(tmp_path):
    printed = pd.read_csv(ROOT / "published/structural_models.csv").assign(seed=tables.PUBLISHED)
    trained = pd.DataFrame([{"model": "mpt", "seed": 0, "layers": 12, "parameters": 700_000}])
    pd.concat([trained, printed]).to_csv(tmp_path / "table1.csv", index=False)
    shown = printed_tables.table1(tmp_path / "table1.csv", MIXING, "default")
    depths = shown[(shown["quantity"] == "depth") & shown["printed"].notna()]
    assert len(depths) == 5
    assert depths["printed"].tolist() == depths["ours"].tolist()
    own = shown[shown["model"] == "mpt"].set_index("quantity")
    assert own["ours"].to_dict() == {"depth": 12, "parameters": 700_000}
    assert set(own["n"]) == {"1 seed"}


def test_table_5_has_the_papers_way_of_this_run_and_of_long_ones():
    levels = pd.MultiIndex.from_product([("causal", "released"), ("diagonal", "below", "between"), ("1", "all")])
    run = pd.DataFrame([*levels], columns=["way", "region", "layer"]).assign(model="bloom", dataset="prose", prompts=9)
    run = run.assign(value=np.arange(12) / 20, p05=0.0, p95=1.0)
    kept = run.assign(model="bloom-1000", prompts=1000, scale="longer")
    shown = printed_tables.table5(run, [kept], "default")
    assert shown[["model", "scale", "n"]].drop_duplicates().values.tolist() == [
        ["bloom", "default", "9 prompts"],
        ["bloom-1000", "longer", "1000 prompts"],
    ]
    assert shown["ours"].tolist() == [0.05, 0.15, 0.05, 0.15]
    assert set(shown["quantity"]) == {"similarity on the diagonal", "similarity below the diagonal"}
    assert shown["printed"].isna().all()


def test_people_read_names_and_intervals_in_one_cell():
    shown = printed_tables.readable(beside(measured("bloom")))
    assert shown[shown["model"] == "bloom-mini"]["ours [interval]"].iloc[1] == "0.300 [0.290, 0.310]"
    assert shown[shown["model"] == "bloom-176b"]["ours [interval]"].iloc[0] == "0.651"
    assert not shown.isna().any(axis=None)
