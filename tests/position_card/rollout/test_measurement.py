"""What is written of a measurement is what is read, in the order of measuring."""

from dataclasses import fields

import numpy as np
import pytest

from position_card.card import measurements, profiles
from position_card.card.measurements import Measurements, ReplacementEffects
from position_card.core import artifacts
from position_card.core.artifacts import TensorFile
from position_card.rollout import measurement
from tests.measurements import in_groups, made
from tests.refusals import refused


@pytest.mark.parametrize("alibi", [False, True])
@pytest.mark.parametrize("groups", [False, True])
def test_what_is_written_is_read(tmp_path, alibi, groups):
    written = made(np.random.default_rng(0), alibi=alibi)
    written = in_groups(np.random.default_rng(1), written) if groups else written
    measurement.write(tmp_path / "n20.safetensors", written, model="mine", dataset="any")
    found = measurement.read(tmp_path / "n20.safetensors", without=())
    for field in fields(written):
        value, expected = (getattr(each, field.name) for each in (found, written))
        assert type(value) is type(expected), field.name
        if isinstance(expected, dict):
            assert list(value) == list(expected)
        np.testing.assert_equal(value, expected)
    assert artifacts.read_labels(tmp_path / "n20.safetensors") == {
        "model": "mine",
        "dataset": "any",
        "n": written.n,
        "prompts": written.prompts,
        "windows": list(written.windows),
    }


@pytest.mark.parametrize(("groups", "sizes"), [(3, [2, 2, 1]), (5, [1] * 5), (8, [1] * 5)])
def test_groups_share_documents_out_evenly(groups, sizes):
    documents = np.array([7, 2, 7, 4, 9, 2, 11])
    of_prompts = measurement.grouped(documents, groups)
    members = [set(documents[of_prompts == group]) for group in range(max(of_prompts) + 1)]
    assert [*map(len, members)] == sizes
    assert sum(sizes) == len(set.union(*members))  # no document is in two


def test_what_is_resampled_are_groups_where_these_have_means():
    held = made(np.random.default_rng(0), alibi=False)
    assert held.units is held.documents
    assert in_groups(np.random.default_rng(1), held).units.tolist() == [0, 1, 2, 0, 1, 2]


def test_the_largest_matrices_are_read_where_asked_for(tmp_path):
    written = made(np.random.default_rng(0), alibi=True)
    measurement.write(tmp_path / "n20.safetensors", written)
    found = measurement.read(tmp_path / "n20.safetensors")
    assert found.content is found.gram is None
    assert found.attention is not None
    lambdas = measurement.mixing(TensorFile(str(tmp_path / "n20.safetensors")))
    assert list(lambdas) == ["frobenius", "token"]
    np.testing.assert_array_equal(lambdas["token"], written.mixing["token"])


def test_a_card_keeps_a_file_for_each_length_and_facts(tmp_path):
    lengths = {n: made(np.random.default_rng(n), n=n, alibi=False) for n in (24, 9)}
    replaced = ReplacementEffects(24, (0, 8, 23), np.random.default_rng(0).uniform(size=(2, 3)))
    facts = {"prompts": {"24": "8 prompts", "9": "8 prompts"}}
    for written in (Measurements(lengths, {**facts, "before": ["<s>"]}, replaced), Measurements(lengths, facts)):
        written.write(tmp_path / "measured")
        found = measurements.read(tmp_path / "measured")
        assert found.facts == written.facts
        assert list(found.lengths) == [9, 24]
        for n, expected in lengths.items():
            np.testing.assert_array_equal(found.lengths[n].influence, expected.influence)
        assert (found.replacement is None) == (written.replacement is None)
        if found.replacement:
            assert (found.replacement.n, found.replacement.positions) == (24, (0, 8, 23))
            np.testing.assert_array_equal(found.replacement.effects, replaced.effects)
    (tmp_path / "measured/n9.safetensors").unlink()
    with refused(tmp_path / "measured", "length"):
        measurements.read(tmp_path / "measured")


def test_the_table_of_attention_counts_layers_from_one():
    expected = made(np.random.default_rng(0), alibi=False)
    table = profiles.attention_table(expected)
    assert list(table.columns) == ["layer", "distance", "value"]
    wide = table.pivot(index="layer", columns="distance", values="value")
    assert list(wide.index) == [1, 2, 3]
    assert list(wide.columns) == list(range(expected.n))
    np.testing.assert_array_equal(wide.to_numpy(), expected.by_distance)
