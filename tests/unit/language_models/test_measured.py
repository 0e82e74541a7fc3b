"""What is written is what is read, in the order of measuring."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from position_bias.language_models import measured
from position_bias.language_models.measured import Measured


def of(n, *, alibi):
    rng = np.random.default_rng(n)
    kernels = {} if alibi else {name: rng.normal(0, 1, (3, 2, n)) for name in ("toeplitz", "rotary")}
    return Measured(
        mixing={name: rng.uniform(0, 1, (5, 3)) for name in ("frobenius", "token", "backward")},
        influence=rng.uniform(0, 1, (5, n)),
        loss=rng.uniform(0, 9, 5),
        by_distance=rng.uniform(0, 1, (3, n)),
        attention=rng.uniform(0, 1, (3, n, n)) if n < 20 else None,
        kernels=kernels,
        windows=(None, 4, None),
        offset=rng.normal(0, 1, (5, 3, 2)) if alibi else None,
        slopes=rng.uniform(0, 1, 2) if alibi else None,
    )


@pytest.mark.parametrize("alibi", [False, True])
def test_what_is_written_is_read_by_length(tmp_path, alibi):
    written = {n: of(n, alibi=alibi) for n in (24, 9)}
    measured.write(tmp_path / "a.safetensors", written, before=["<s>"], bytes=1.5)
    found, facts = measured.read(tmp_path / "a.safetensors")
    assert facts == {"before": ["<s>"], "bytes": 1.5}
    assert list(found) == [9, 24]
    for n, expected in written.items():
        for field in dataclasses.fields(Measured):
            value, wanted = (getattr(each, field.name) for each in (found[n], expected))
            if isinstance(wanted, dict):
                assert list(value) == list(wanted)
                for name in wanted:
                    np.testing.assert_array_equal(value[name], wanted[name])
            elif isinstance(wanted, np.ndarray):
                np.testing.assert_array_equal(value, wanted)
            else:
                assert value == wanted


def test_the_table_of_attention_counts_layers_from_one_and_distances_from_zero():
    expected = of(9, alibi=False)
    table = measured.attention_table(expected)
    assert list(table.columns) == ["layer", "distance", "value", "n"]
    wide = table.pivot(index="layer", columns="distance", values="value")
    assert list(wide.index) == [1, 2, 3]
    assert list(wide.columns) == list(range(9))
    np.testing.assert_array_equal(wide.to_numpy(), expected.by_distance)
    assert isinstance(table, pd.DataFrame)
    assert set(table["n"]) == {9}
