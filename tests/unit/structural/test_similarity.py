import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import jensenshannon

from position_bias.structural import checks, content
from position_bias.structural.similarity import (
    BINS,
    WAYS,
    bin_edges,
    histogram,
    homogeneity,
    jensen_shannon,
    similarities,
)
from position_bias.verdicts.judge import COLUMNS, KEYS
from tests.measurements import file
from tests.unit.structural.conftest import PREDICTED

NO_SHIFTS = pd.DataFrame()
NO_ROWS = pd.DataFrame(columns=content.LABELS)
LABELS = {"model": "m", "checkpoint": "seed0/step9", "dataset": "d", "n": 24, "prompts": 1000}


def logits(layers=2, heads=3, n=24, seed=0):
    return np.random.default_rng(seed).normal(size=(layers, heads, n, n))


def constant_plus_diagonal(base, diagonal, n=24):
    return base + diagonal * np.eye(n) + np.zeros((2, 3, 1, 1))


distributions = arrays(float, (2, 9), elements=st.just(0.0) | st.floats(0.01, 1)).filter(
    lambda mass: (mass.sum(1) > 0).all()
)


# Measures of a histogram


@given(distributions)
def test_homogeneity_and_divergence_are_scipys(mass):
    p, q = mass / mass.sum(1, keepdims=True)
    assert homogeneity(p) == pytest.approx(1 - scipy.stats.entropy(p) / np.log(9), abs=1e-12)
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q) ** 2, abs=1e-12)


# Histograms


@given(values=arrays(float, (3, 40), elements=st.floats(-2, 2, width=16)))
def test_histogram_is_numpys_within_range(values):
    edges = np.linspace(-1.003, 1.007, 12)  # no value lies on an edge
    counts, outside = histogram(values, edges, clip=False)
    np.testing.assert_array_equal(counts, [np.histogram(row, edges)[0] for row in values])
    np.testing.assert_allclose(outside, ((values < edges[0]) | (values > edges[-1])).mean(1), atol=1e-15)
    clipped, same = histogram(values, edges, clip=True)
    inward = values.clip(edges[0] + 1e-6, edges[-1] - 1e-6)
    np.testing.assert_array_equal(clipped, [np.histogram(row, edges)[0] for row in inward])
    np.testing.assert_array_equal(same, outside)


def test_a_bin_holds_its_upper_edge():
    edges, values = np.arange(4.0), np.arange(4.0)[None]
    counts, outside = histogram(values, edges, clip=False)
    np.testing.assert_array_equal(counts, [[1, 1, 1]])
    assert outside == 0.25  # the lowest edge
    np.testing.assert_array_equal(histogram(values, edges, clip=True)[0], [[2, 1, 1]])


# Table 5


def by_hand(content, way):
    """Table 5 in plain loops, after the description in the spec."""
    n = content.shape[-1]
    causal = way == "causal"
    entries = [c[i, j] for c in content.reshape(-1, n, n) for i in range(n) for j in range(i + 1 if causal else n)]
    low, high = np.quantile(entries, [0.005, 0.995])
    edges = np.linspace(low, high, 200)
    found = []
    for c in content.reshape(-1, n, n):
        histograms = []
        for region in ([c[i, i] for i in range(n)], [c[i, j] for i in range(n) for j in range(i)]):
            kept = np.clip(region, np.nextafter(low, high), high) if causal else [v for v in region if v > low]
            histograms.append(np.histogram(kept, edges)[0] + (0 if causal else 1e-12))
        p, q = (h / h.sum() for h in histograms)
        found.append(
            [1 - scipy.stats.entropy(h, base=199) for h in (p, q)]
            + [1 - jensenshannon(p, q, base=2 if causal else np.e) ** 2]
        )
    return np.array(found).T.reshape(3, *content.shape[:2])


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 24])
def test_the_bins_are_those_of_quantiles_in_double_precision_to_the_last_bit(precision, n):
    content = logits(2, 3, n).astype(precision)
    kept = content.copy()
    for causal, entries in ((True, content[..., *np.tril_indices(n)]), (False, content)):
        low, high = np.quantile(entries.astype(np.float64), [0.005, 0.995])
        np.testing.assert_array_equal(bin_edges(content, causal), np.linspace(low, high, BINS + 1))
    np.testing.assert_array_equal(content, kept)


@pytest.mark.parametrize("way", WAYS)
def test_single_precision_is_enough_to_keep_and_no_more_than_a_copy_is_made(way):
    content = logits(24, 8, 96).astype(np.float32)
    expected = similarities(content.astype(np.float64), way)
    tracemalloc.start()
    found = similarities(content, way)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for region, values in expected.items():
        np.testing.assert_array_equal(found[region], values)
    assert peak < 1.2 * content.nbytes


@pytest.mark.parametrize("way", WAYS)
def test_similarities_follow_the_description(way):
    content = logits() + 2 * np.eye(24)
    found = similarities(content, way)
    np.testing.assert_allclose([values for values, _ in found.values()], by_hand(content, way), atol=1e-9)


@pytest.mark.parametrize(("diagonal", "between"), [(0.5, 0), (-0.5, 0), (0.0, 1)])
def test_constant_plus_diagonal_is_alike_within_and_unlike_between(diagonal, between):
    for base in (0.0, -3.0):
        found = similarities(constant_plus_diagonal(base, diagonal))
        np.testing.assert_allclose([found["diagonal"][0], found["below"][0]], 1)
        np.testing.assert_allclose(found["between"][0], between, atol=1e-12)


def test_a_diagonal_out_of_range_is_clipped_by_us_and_empty_in_released():
    content = logits(1, 30, 24)
    content[0, 0] += 50 * np.eye(24)
    (ours, outside), (released, same) = (similarities(content, way)["diagonal"] for way in WAYS)
    assert outside[0, 0] == same[0, 0] == 1
    assert ours[0, 0] == 1
    assert released[0, 0] == pytest.approx(0, abs=1e-12)


# Tables and verdicts


@pytest.fixture(scope="module")
def table():
    other = file(LABELS | {"model": "k"}, content=constant_plus_diagonal(1, 2))
    return content.table5([file(LABELS, content=logits()), other])


def test_the_table_has_each_layer_and_their_mean(table):
    assert len(table) == 2 * len(WAYS) * 3 * (1 + 2)
    found = similarities(logits())
    rows = table[(table["model"] == "m") & (table["way"] == "causal")].set_index(["region", "layer"])
    for region in ("diagonal", "below", "between"):
        values, _ = found[region]
        assert rows.loc[(region, "all"), "value"] == pytest.approx(values.mean())
        assert rows.loc[(region, "2"), "value"] == pytest.approx(values[1].mean())
        assert rows.loc[(region, "all"), "p95"] == pytest.approx(np.quantile(values, 0.95))
    assert rows.loc[("below", "1"), "outside"] == pytest.approx(found["below"][1][0].mean())
    shown = content.readable_similarity(table).iloc[2]
    assert (shown["model"], shown["within diagonal"], shown["1 - JS"][:4]) == ("k", "1.00 (1.00 to 1.00)", "0.00")


def judged(table):
    return checks.on_content(table, NO_ROWS, NO_SHIFTS, PREDICTED, "test")


def test_a_table_of_evidence_is_judged_at_its_scale(table):
    kept = checks.on_similarity(table.assign(scale="longer"), PREDICTED)
    assert set(kept.pop("scale")) == {"longer"}
    pd.testing.assert_frame_equal(kept, judged(table).drop(columns="scale"))


def test_verdicts_ask_every_layer_and_speak_of_the_claim_the_papers_way(table):
    rows = judged(table)
    assert tuple(rows) == (*COLUMNS, *KEYS)
    ours = rows[rows["network"] == "causal"]
    assert list(ours["verdict"]) == ["fails", "fails", "holds", "holds"]
    assert (ours["n"] == 2).all()
    assert "m seed0/step9, d, 24 tokens, 1000 prompts, way causal" in ours.iloc[0]["quantity"]
    assert (rows["claim"] == "structural-table-5").equals(rows["network"] == "causal")
    mixed = np.concatenate([logits(1), 1e-3 * logits(1)])  # one layer spreads, the other does not
    alike = similarities(mixed)
    for row, (values, _) in zip(
        judged(content.table5([file(LABELS, content=mixed)])).query("network == 'causal'").to_dict("records"),
        (alike["diagonal"], alike["below"]),
        strict=True,
    ):
        assert row["verdict"] == "undecided"
        assert (row["measured"], row["low"], row["high"]) == pytest.approx((values.mean(), *sorted(values.mean(1))))


def test_few_prompts_cannot_settle_table_5():
    few = content.table5([file(LABELS | {"prompts": 999}, content=logits())])
    assert set(judged(few)["verdict"]) == {"not testable here"}


# The shift of the diagonal


def shifted(shift, prompts=40, noise=0.0, seed=0, of_each=1):
    """The file of logits on and below the diagonal [N, L, H] of heads with these shifts, `of_each` document alike."""
    rng = np.random.default_rng(seed)
    below = rng.normal(size=(prompts, *shift.shape))
    diagonal = below + shift + noise * rng.normal(size=below.shape)
    documents = np.repeat(np.arange(prompts), of_each)
    tensors = {"diagonal": diagonal[documents], "below": below[documents], "documents": documents}
    return file(LABELS | {"prompts": len(documents)}, **tensors)


@pytest.mark.parametrize(("shift", "share"), [([[1, 2, 3]], 1), ([[5, -1, -1]], 1 / 3), ([[-4, -1, 2, 1]], 1 / 2)])
def test_a_share_is_that_of_heads_whose_shift_has_the_sign_of_the_mean(shift, share):
    found = content.shift([shifted(np.array(shift, float))], 50, 0.95, 0).iloc[0]
    assert found["share"] == found["low"] == found["high"] == pytest.approx(share)
    assert (found["mean"], found["deviation"]) == pytest.approx((np.mean(shift), np.std(shift)))


def test_prompts_that_differ_make_a_share_uncertain():
    found = content.shift([shifted(np.full((2, 8), 0.1), noise=1)], 200, 0.95, 0).iloc[0]
    assert found["low"] < found["share"] <= found["high"] <= 1
    repeated = content.shift([shifted(np.full((2, 8), 0.1), noise=1, of_each=5)], 200, 0.95, 0).iloc[0]
    assert repeated["prompts"] == 5 * found["prompts"]
    alike = ["share", "low", "high", "resampled"]  # more of the same documents say no more
    pd.testing.assert_series_equal(repeated[alike], found[alike], check_names=False)


def test_a_share_of_heads_is_judged_with_its_interval():
    table = pd.DataFrame([{**LABELS, "share": 0.5, "low": 0.25, "high": 0.95, "resampled": 700}])
    (row,) = checks.on_content(NO_ROWS, NO_ROWS, table, PREDICTED, "test").to_dict("records")
    assert (row["measured"], row["low"], row["high"], row["n"]) == (0.5, 0.25, 0.95, 700)
    assert row["setting"] == "model = m; checkpoint = seed0/step9; dataset = d; n = 24"
    assert (row["claim"], row["verdict"]) == ("structural-shift", "undecided")
    few = checks.on_content(NO_ROWS, NO_ROWS, table.assign(high=0.8), PREDICTED, "test")
    assert few["verdict"].tolist() == ["fails"]
