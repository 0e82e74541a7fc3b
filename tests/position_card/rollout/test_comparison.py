from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_card.rollout import comparison, measurement
from position_card.rollout.comparison import compare, summary
from position_card.rollout.last_row import dense_last_row, rollout_matrix, transition
from position_card.rollout.measurement import FORWARD
from position_card.rollout.variants import variants
from tests.measurements import LAYERS, PROMPTS, labels, made
from tests.refusals import refused

N = 9
LABELS = labels(N)


@pytest.fixture(scope="module")
def measured():
    return made(np.random.default_rng(0), alibi=True, n=N)


def profiles(measurement, weights):
    return {
        (v.estimator, v.name): v.profiles(weights) for v in variants(measurement, comparison.VARIANT_NAMES, FORWARD)
    }


@pytest.fixture(scope="module")
def every(measured):
    weights = np.full((1, PROMPTS), 1 / PROMPTS)
    return {key: values[0] for key, values in profiles(measured, weights).items()}


def test_every_variant_is_what_its_definition_says(measured, every):
    mixing, offset = measured.mixing["token"].mean(0), measured.diagonal.astype(float) - measured.below
    expected = {
        ("none", "a"): dense_last_row(N, np.ones(LAYERS), measured.slopes),
        ("none", "half"): dense_last_row(N, np.full(LAYERS, 0.5), measured.slopes),
        ("token", "b"): dense_last_row(N, mixing, measured.slopes),
        ("token", "c"): dense_last_row(N, mixing, measured.slopes, offset.mean(0)),
        ("token", "measured"): rollout_matrix(map(transition, measured.attention, mixing))[-1],
        ("none", "d"): measured.influence.mean(0) / measured.influence.mean(0).sum(),
        ("none", "uniform"): np.full(N, 1 / N),
        ("none", "last"): np.eye(N)[-1],
    }
    for key, profile in expected.items():
        np.testing.assert_allclose(every[key], profile, atol=1e-14, err_msg=str(key))
    of_frobenius = {("frobenius", variant) for variant in ("b", "c", "measured")}
    assert set(every) == set(expected) | of_frobenius


def test_weights_resample_lambda_content_and_influence_together(measured):
    chosen = np.array([0, 0, 3, 5, 5, 5])
    weights = np.bincount(chosen, minlength=PROMPTS)[None] / PROMPTS
    resampled = replace(
        measured,
        mixing={name: value[chosen] for name, value in measured.mixing.items()},
        diagonal=measured.diagonal[chosen],
        below=measured.below[chosen],
        influence=measured.influence[chosen],
    )
    expected = profiles(resampled, np.full((1, PROMPTS), 1 / PROMPTS))
    for key, values in profiles(measured, weights).items():
        np.testing.assert_allclose(values, expected[key], atol=1e-14)


def test_a_model_without_alibi_is_refused_in_one_line(tmp_path):
    measurement.write(tmp_path / "n20.safetensors", made(np.random.default_rng(0), alibi=False), model="llama")
    with refused("model llama", "layernorm.pretrained"):
        comparison.comparison_tables(tmp_path / "n20.safetensors", 5, 0.9, 0)


def test_tables_have_the_labels_of_the_measurement(tmp_path, measured, compared):
    measurement.write(tmp_path / "n9.safetensors", measured, model="bloom", checkpoint="seed0/step9", dataset="text")
    tables = comparison.comparison_tables(tmp_path / "n9.safetensors", 5, 0.9, 0)
    assert list(tables) == ["profiles", "statistics", "replicates"]
    for table in tables.values():
        assert list(table.columns)[-6:] == list(LABELS)
        assert (table[list(LABELS)] == pd.Series(LABELS)).all().all()


def value(values, statistic, variant, estimator, replicate=-1):
    rows = values.query("statistic == @statistic and variant == @variant and estimator == @estimator")
    return rows.set_index("replicate")["value"][replicate]


@pytest.fixture(scope="module")
def compared(measured):
    return compare(measured, replicates=40, level=0.9, seed=1)


def test_distances_and_the_trend_of_lambda_agree_with_scipy(measured, every, compared):
    b, d, position = every["frobenius", "b"], every["none", "d"], np.arange(N)
    distance = scipy.stats.wasserstein_distance(position, position, b, d) / (N - 1)
    assert value(compared[1], "wasserstein", "b", "frobenius") == pytest.approx(distance, abs=1e-12)
    correlation = scipy.stats.spearmanr(b, d).statistic
    assert value(compared[1], "spearman", "b", "frobenius") == pytest.approx(correlation)
    assert value(compared[1], "total variation", "b", "frobenius") == pytest.approx(np.abs(b - d).sum() / 2)
    trend = scipy.stats.spearmanr(measured.mixing["token"].mean(0), range(LAYERS)).statistic
    assert value(compared[1], "spearman with depth", "lambda", "token") == pytest.approx(trend)


def test_shapes_are_read_off_the_profile(every, compared):
    d = every["none", "d"]
    assert value(compared[1], "first / middle", "d", "none") == pytest.approx(d[0] / d[2:7].mean())
    assert value(compared[1], "last / middle", "d", "none") == pytest.approx(d[-1] / d[2:7].mean())
    assert value(compared[1], "argmin", "d", "none") == d.argmin() / (N - 1)
    b = every["token", "b"]
    predicted = value(compared[1], "influence, first / predicted minimum", "b", "token")
    assert predicted == pytest.approx(d[0] / d[b.argmin()])
    assert np.isnan(value(compared[1], "first / middle", "last", "none"))  # it has no middle


def test_intervals_are_percentiles_of_the_replicates(compared):
    curves, values = compared
    table = summary(values, 0.9).query("statistic == 'wasserstein' and variant == 'b' and estimator == 'token'")
    again = [value(values, "wasserstein", "b", "token", replicate) for replicate in range(40)]
    assert table["low"].item() == pytest.approx(np.quantile(again, 0.05))
    assert table["high"].item() == pytest.approx(np.quantile(again, 0.95))
    assert (curves["low"] <= curves["high"] + 1e-15).all()


def test_more_prompts_of_a_document_narrow_no_interval(tmp_path, measured, compared):
    of_prompts = {"documents": measured.documents, "influence": measured.influence, "loss": measured.loss}
    of_prompts |= {"diagonal": measured.diagonal, "below": measured.below, "recency": measured.recency}
    twice = {name: np.repeat(values, 2, axis=0) for name, values in of_prompts.items()}
    twice["mixing"] = {name: np.repeat(values, 2, axis=0) for name, values in measured.mixing.items()}
    repeated = replace(measured, **twice)
    for again, once in zip(compare(repeated, 40, 0.9, seed=1), compared, strict=True):
        pd.testing.assert_frame_equal(again, once)
    measurement.write(tmp_path / "n9.safetensors", repeated, model="bloom", checkpoint="seed0/step9", dataset="text")
    for table in comparison.comparison_tables(tmp_path / "n9.safetensors", 5, 0.9, 0).values():
        assert (set(table["prompts"]), set(table["resampled"])) == ({2 * PROMPTS}, {PROMPTS})


def test_the_bootstrap_follows_its_seed(measured, compared):
    pd.testing.assert_frame_equal(compare(measured, 40, 0.9, seed=1)[1], compared[1])
    assert not compare(measured, 40, 0.9, seed=2)[1].equals(compared[1])
