"""The five big models end to end: from random numbers shaped like the released ones, and from these where they are."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_bias.released import slopes
from position_bias.released.models import MODELS
from position_card.rollout.last_row import dense_last_row
from tests import needs

ROOT = Path(__file__).parents[2]
THROUGH = pytest.mark.all("released numbers through the whole workflow take a minute")
JOBS = {
    "released_schedules": 1,
    "released_rollout": 15,
    "released_variants": 1,
    "released_drawn": 1,
    "released_lengths": 1,
    "released_evidence": 1,
    "released_draw_fig1": 1,
    "released_draw_fig2": 1,
    "released_draw_fig4": 1,
    "released_draw_long": 1,
}


def taken_from(source, **lengths):
    """The section of the configuration that has this source, as an argument of --config."""
    return f"released='{json.dumps({'source': str(source), **lengths})}'"


def test_everything_is_planned_from_a_source_and_nothing_of_it_by_default(fresh, released_sample):
    arguments = f"all_published --configfile config/published.yaml --config {taken_from(released_sample.tables)}"
    planned = fresh.planned(arguments)
    assert planned.pop("all_published") == 1
    assert planned == JOBS
    assert not any(name.startswith("published") for name in fresh.planned("all"))


@THROUGH
def test_profiles_of_the_sample_are_dense_rollouts_of_it(fresh, released_sample, tmp_path):
    """From files to files: the variant with most to go wrong, a figure of lambda and one of lengths."""
    folder = "results/published/rollout/bloom-176b/wikipedia/n32"
    targets = (
        f"{folder}/c.faithful.faithful.csv figures/structural/published_fig4.pdf figures/structural/published_long.pdf"
    )
    short = taken_from(released_sample.tables, lengths=[16, 32], sampled_lengths=[16, 64])
    fresh.snakemake(f"{targets} --cores 2 --directory {tmp_path} --config {short}")
    key = "bloom-176b", "wikipedia"
    diagonal = released_sample.diagonal[key].astype(float)
    for rule, scale in (("released", 1), ("faithful", 128**-0.5)):
        by_rule = slopes.slopes_of(MODELS["bloom-176b"])[rule]
        expected = dense_last_row(32, released_sample.mixing[key], by_rule, scale * diagonal)
        profile = pd.read_csv(tmp_path / folder / f"c.{rule}.{rule}.csv")
        assert list(profile.columns) == ["position", "value"]
        assert profile["position"].tolist() == list(range(32))
        assert np.abs(profile["value"] - expected).max() < 1e-12
    assert len(list((tmp_path / folder).parent.glob("*/*.csv"))) == 2 * 12
    for figure in ("published_fig4", "published_long"):
        assert (tmp_path / f"figures/structural/{figure}.svg").read_bytes().startswith(b"<?xml")


@pytest.fixture(scope="module")
def published():
    place = os.environ.get("POSITION_BIAS_PUBLISHED")
    if place is None:
        needs.lack("published", "POSITION_BIAS_PUBLISHED names no directory of released numbers")
    return place


@pytest.fixture(scope="module")
def built(fresh, published, tmp_path_factory):
    """Everything that the released numbers give, but the longest of the sampled profiles, which take a minute."""
    folder = tmp_path_factory.mktemp("published")
    overlay = "--configfile config/published.yaml"
    given = taken_from(Path(published).absolute(), sampled_lengths=[256, 1024, 4096, 16384])
    fresh.snakemake(f"all_published --cores 2 {overlay} --directory {folder} --config {given}")
    return folder


@THROUGH
def test_printed_distances_are_held_against_the_released_numbers(built):
    table = pd.read_csv(built / "results/tables/structural/published_variants.csv")
    assert len(table) == (4 * 4 + 6) * (1 + 2 + 2)  # Falcon has doubled slopes too; (b) is taken once or twice
    as_released = table.query("dataset == 'fineweb-edu' and slopes == content == 'released'").set_index("model")
    assert as_released.loc["falcon-rw-7b", "excess by means"] > 0.01
    assert 0 < as_released.loc["mpt-7b", "excess by means"] < 0.002
    excluded = as_released.index[as_released["verdict"] == "excluded"]
    assert set(excluded) == {"falcon-rw-7b", "mpt-7b"}
    page = (built / "results/tables/structural/published_variants.md").read_text()
    assert len(re.findall("not excluded|excluded", page)) == 4 * 4 + 6


@THROUGH
def test_rollouts_of_the_released_numbers_are_the_curves_that_were_drawn(built):
    table = pd.read_csv(built / "results/tables/structural/published_drawn.csv")
    assert len(table) == 9
    assert table["W to its drawing"].dropna().between(0, 1e-7).tolist() == [True] * 3
    own = table.query("slopes == content == 'faithful'")["wasserstein"]
    assert own.tolist() == pytest.approx([0.038], abs=5e-4)


@THROUGH
def test_evidence_is_what_the_released_numbers_give(built):
    """The sha256 of the source is that of its kind, tables here, and of no copy of the repository."""
    for kept in (ROOT / "evidence/structural/released").glob("*.csv"):
        made = built / "results/evidence/structural/released" / kept.name
        if kept.stem != "source":
            pd.testing.assert_frame_equal(pd.read_csv(made), pd.read_csv(kept), rtol=1e-5)
