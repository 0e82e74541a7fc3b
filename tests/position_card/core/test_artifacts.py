import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from position_card.core import artifacts
from tests.refusals import refused


@pytest.fixture
def tensors(tmp_path):
    path = tmp_path / "lambda.safetensors"
    values = np.arange(6.0).reshape(2, 3)
    artifacts.write_tensors(path, {"frobenius": values, "token": values.T}, model="bloom", n=64)
    return path


def test_tensors_come_back_with_their_labels(tensors):
    read = artifacts.read_tensors(tensors)
    np.testing.assert_array_equal(read["token"], np.arange(6.0).reshape(2, 3).T)  # a view, laid out anew
    assert set(read) == {"frobenius", "token"}
    assert set(artifacts.read_tensors(tensors, "token")) == {"token"}
    assert artifacts.read_labels(tensors) == {"model": "bloom", "n": 64}


def test_a_tensor_that_is_not_there_is_named_with_the_remedy(tensors):
    with refused("mean", f"--force {tensors}"):
        artifacts.read_tensors(tensors, "mean")


def test_values_that_are_not_finite_are_not_written(tmp_path):
    path = tmp_path / "x.safetensors"
    with refused(path, "2 values in influence"):
        artifacts.write_tensors(path, {"influence": np.array([0.5, np.nan, np.inf])})
    assert not path.exists()


@settings(max_examples=50)
@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_keep_every_bit_of_a_float(tmp_path_factory, suffix, values):
    path = tmp_path_factory.mktemp("t") / f"table{suffix}"
    artifacts.write_table(path, pd.DataFrame({"value": np.array(values, dtype=float)}))
    np.testing.assert_array_equal(artifacts.read_table(path, ["value"])["value"].to_numpy(float), values)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".safetensors"])
def test_files_are_written_byte_for_byte_alike(tmp_path, suffix):
    names = "abcdefghij"
    one, two = (tmp_path / f"{name}{suffix}" for name in ("one", "two"))
    for path in (one, two):
        if suffix == ".safetensors":
            artifacts.write_tensors(path, dict.fromkeys(names, np.arange(3.0)), **{name: name for name in names})
        else:
            artifacts.write_table(path, pd.DataFrame({"name": list(names), "value": np.arange(10) / 10}))
    assert one.read_bytes() == two.read_bytes()


def test_several_tables_are_read_in_the_order_of_their_paths(tmp_path):
    paths = [tmp_path / "b.csv", tmp_path / "a.parquet", tmp_path / "c.csv"]
    for start, path in enumerate(paths):
        artifacts.write_table(path, pd.DataFrame({"name": [path.stem] * 2, "value": [start, start + 0.5]}))
    read = artifacts.read_tables(paths, ["value", "name"])
    assert read["name"].tolist() == ["b", "b", "a", "a", "c", "c"]
    assert read["value"].tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert read.index.tolist() == list(range(6))
    one = artifacts.read_tables(paths[:1], ["value"])
    pd.testing.assert_frame_equal(one, artifacts.read_table(paths[0], ["value"]))
