"""The table of all model types that is kept, and that docs/decoders.md shows, is what happens to them."""

import numpy as np
import pandas as pd
import pytest

from tools import decoders, sweep

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def kept():
    return pd.read_csv(decoders.OUTCOMES, keep_default_na=False)


def test_every_model_type_has_a_row_and_none_differs(kept):
    assert list(kept["type"]) == sweep.names()
    outcomes = (sweep.MEASURED, sweep.REFUSED, sweep.NOT_MADE, sweep.NO_DECODER)
    assert set(kept["outcome"]) == set(outcomes)
    assert (kept.loc[kept["outcome"] != sweep.MEASURED, "line"] != "").all()


FEW = ["afmoe", "clip", "deepseek_v32", "gpt2", "gpt_oss", "jetmoe", "lfm2_moe", "llama4", "modernbert-decoder"]


def test_rows_of_some_types_are_what_happens_to_them(kept):
    rows = kept[kept["type"].isin(FEW)].reset_index(drop=True)
    pd.testing.assert_frame_equal(sweep.table(FEW), rows)


@pytest.mark.all("eight hundred types of models are tried, in half a minute on a free core")
def test_rows_of_all_types_are_what_happens_to_them(kept):
    pd.testing.assert_frame_equal(sweep.table(sweep.names()), kept)


@pytest.mark.parametrize("name", ["own_influence", "own_attention"])
def test_what_differs_from_the_independent_computation_is_no_success(name, monkeypatch):
    original = getattr(sweep, name)
    monkeypatch.setattr(sweep, name, lambda *given: original(*given) * np.float32(1.001))
    assert sweep.row("llama")["outcome"] == sweep.DIFFERS


def test_what_cannot_be_made_says_why(monkeypatch):
    monkeypatch.setattr(sweep, "MOST_PARAMETERS", 1000)
    row = sweep.row("llama")
    assert row["outcome"] == sweep.NOT_MADE
    assert "parameters" in row["line"]
