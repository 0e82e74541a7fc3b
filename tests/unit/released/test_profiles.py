"""Slopes, scale of content and profiles of the released models, against their definitions and dense rollouts."""

import numpy as np
import pandas as pd
import pytest

from position_bias.released import profiles, slopes
from position_bias.released.models import MODELS, VARIANTS, ReleasedVariant
from position_bias.released.schedules import Schedule, read_schedule
from position_bias.released.variants import LABELS, by_variant, read_profiles
from position_card.core import artifacts
from position_card.rollout import last_row, statistics

BLOOM = MODELS["bloom-176b"]
N = 40


@pytest.fixture(scope="module")
def small():
    """A schedule of 3 layers of 4 heads."""
    rng = np.random.default_rng(1)
    return Schedule(rng.uniform(0, 1, 3), rng.normal(0, 9, (3, 4)), rng.normal(0, 3, (3, 4)))


RULES = {
    "released": np.array([0.6, 0.3, 0.1, 0.0]),
    "faithful": np.array([0.3, 0.1, 0.05, 0.7]),
    "doubled": np.array([0.6, 0.2, 0.1, 1.4]),
}


def test_released_slopes_are_a_geometric_series_for_every_number_of_heads():
    for model in MODELS.values():
        found = slopes.slopes_of(model)["released"]
        assert len(found) == model.heads
        np.testing.assert_allclose(np.log2(found), -8 * np.arange(1, model.heads + 1) / model.heads, rtol=1e-13)


def test_bloom_interleaves_two_series_where_heads_are_no_power_of_two():
    found = slopes.slopes_of(BLOOM)["faithful"]
    expected = [2 ** (-8 * h / 64) for h in range(1, 65)] + [2 ** (-8 * (2 * k - 1) / 128) for k in range(1, 49)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert np.abs(found - slopes.slopes_of(BLOOM)["released"]).max() > 0.5


def test_falcon_rounds_to_bfloat16_and_divides_by_the_root_of_the_width():
    found = slopes.slopes_of(MODELS["falcon-rw-7b"])
    exact = found["released"] / 8
    assert np.abs(found["faithful"] / exact - 1).max() <= 2**-8
    assert (found["faithful"] != exact).any()
    mantissa, _ = np.frexp(8 * found["faithful"])
    np.testing.assert_array_equal(mantissa * 2**8 % 1, 0)  # eight significant bits


@pytest.mark.parametrize("name", ["mpt-7b", "mpt-30b", "bloom-7b1"])
def test_the_rules_agree_for_the_others(name):
    found = slopes.slopes_of(MODELS[name])
    np.testing.assert_allclose(found["faithful"], found["released"], rtol=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_doubled_slopes_judge_falcon_alone(name):
    found = slopes.slopes_of(MODELS[name])
    np.testing.assert_array_equal(found["doubled"], 2 * found["faithful"])
    assert ("doubled" in MODELS[name].rules) == (name == "falcon-rw-7b")


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_profile_is_the_dense_rollout_of_its_definition(small, variant):
    head_dim = 25
    mixing = np.ones(3) if variant.variant == "a" else small.mixing
    content = {"none": 0, "released": 1, "faithful": 1 / 5}[variant.content] * small.diagonal
    expected = last_row.dense_last_row(N, mixing, RULES[variant.slopes], content)
    found = profiles.profile(N, variant, small, RULES, head_dim)
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-15)


@pytest.fixture
def files(tmp_path, small):
    """The schedule and the slopes in files: lambda, content and slopes."""
    layer, head = np.indices(small.base.shape)
    columns = {"layer": layer, "head": head, "base": small.base, "diagonal": small.diagonal}
    tables = {
        "lambda": pd.DataFrame({"layer": range(3), "lambda": small.mixing}),
        "content": pd.DataFrame({name: values.ravel() for name, values in columns.items()}),
        "slopes": pd.DataFrame({"head": range(4), **RULES}),
    }
    for name, table in tables.items():
        artifacts.write_table(tmp_path / f"{name}.csv", table)
    return [tmp_path / f"{name}.csv" for name in tables]


def test_samples_and_sums_along_lengths_are_those_of_the_profiles(files, small, monkeypatch):
    variants = (ReleasedVariant("b", "released", "none"), ReleasedVariant("c", "faithful", "faithful"))
    monkeypatch.setattr(profiles, "ALONG_LENGTHS", variants)
    monkeypatch.setattr(profiles, "MODELS", {"small": BLOOM._replace(head_dim=25)})
    samples, sums = profiles.follow_lengths(*([file] for file in files), [8, 300]).values()
    assert list(sums.columns) == ["variant", "slopes", "content", "n", "statistic", "value", "model"]
    for variant in variants:
        for n in (8, 300):
            row = profiles.profile(n, variant, small, RULES, 25)
            chosen = "variant == @variant.variant and n == @n"
            of_it = samples.query(chosen)
            assert of_it["distance"].iloc[[0, -1]].tolist() == [0, n - 1]
            np.testing.assert_array_equal(of_it["value"], row[::-1][of_it["distance"]])
            found = sums.query(chosen).set_index("statistic")["value"]
            assert found["first token"] == row[0]
            assert found["last token"] == row[-1]
            assert found["first half"] == pytest.approx(row[: n // 2].sum())
            assert found["mean distance"] == pytest.approx(row @ np.arange(n - 1, -1, -1))
            assert found["mean distance"] == pytest.approx((n - 1) * (1 - statistics.mean_position(row)))
    assert len(samples.query("n == 8")) == 2 * 8
    assert samples.query("n == 300").groupby("variant").size().max() < 300


def test_profiles_are_read_as_they_were_written_and_labelled_by_their_paths(tmp_path, small):
    written_rows = {}
    for variant in VARIANTS:
        for n in (5, 7):
            row = profiles.profile(n, variant, small, RULES, 25)
            path = tmp_path / f"mpt-7b/dclm/n{n}/{variant.name}.csv"
            artifacts.write_table(path, pd.DataFrame({"position": range(n), "value": row}))
            written_rows[variant, n] = row
    table = read_profiles(sorted(tmp_path.rglob("*.csv")))
    assert list(table.columns) == [*LABELS, "position", "value"]
    found = by_variant(table[table["n"] == 7])
    assert list(found) == [("mpt-7b", "dclm", variant) for variant in sorted(VARIANTS)]
    for (_, _, variant), row in found.items():
        np.testing.assert_array_equal(row, written_rows[variant, 7])


def test_schedules_and_slopes_are_read_as_they_were_written(files, small):
    mixing, content, by_rule = files
    found = read_schedule(mixing, content)
    for name in ("mixing", "base", "diagonal"):
        np.testing.assert_array_equal(getattr(found, name), getattr(small, name))
    for rule, expected in RULES.items():
        np.testing.assert_array_equal(profiles.read_slopes(by_rule)[rule], expected)
