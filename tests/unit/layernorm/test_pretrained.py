import numpy as np
import pandas as pd
import pytest

from position_bias.layernorm.pretrained import recency_table
from position_bias.running import artifacts

NOTHING = np.zeros((1, 1), np.float32), np.zeros(1, np.int64)


def test_a_table_has_a_row_a_prompt_and_layer():
    recency = np.array([[0.5, -0.25, 1.0], [2.0, 0.0, -3.5]], np.float32)
    labels = {"model": "bloom", "checkpoint": "seed1/step300", "dataset": "any", "n": 64}
    table = recency_table(labels, recency, np.array([4, 9]))
    expected = pd.DataFrame(
        [
            ("bloom", "1", "trained (step 300)", 4, 0, 1, 0.5),
            ("bloom", "1", "trained (step 300)", 4, 0, 2, -0.25),
            ("bloom", "1", "trained (step 300)", 4, 0, 3, 1.0),
            ("bloom", "1", "trained (step 300)", 9, 1, 1, 2.0),
            ("bloom", "1", "trained (step 300)", 9, 1, 2, 0.0),
            ("bloom", "1", "trained (step 300)", 9, 1, 3, -3.5),
        ],
        columns=["model", "seed", "state", "document", "prompt", "layer", "value"],
    )
    pd.testing.assert_frame_equal(table, expected)


@pytest.mark.parametrize(
    ("checkpoint", "seed", "state"),
    [
        ("seed0/step0", "0", "untrained (step 0)"),
        ("seed12/step1000", "12", "trained (step 1000)"),
        ("hub", "hub", "of the hub"),
    ],
)
def test_seed_and_state_are_those_of_the_checkpoint_whatever_digits_a_model_has(checkpoint, seed, state):
    table = recency_table({"model": "falcon-7b-v2", "checkpoint": checkpoint}, *NOTHING)
    assert table[["model", "seed", "state"]].to_numpy().tolist() == [["falcon-7b-v2", seed, state]]


def test_a_table_is_made_of_what_an_artifact_holds(tmp_path):
    path = tmp_path / "gram.safetensors"
    recency = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    kept = {"recency": recency, "documents": np.arange(4)}
    artifacts.write_tensors(path, kept, model="mpt", checkpoint="seed0/step300")
    table = recency_table(artifacts.read_labels(path), **artifacts.read_tensors(path, "recency", "documents"))
    pivot = table.pivot(index="prompt", columns="layer", values="value")
    assert pivot.columns.tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(pivot.to_numpy(), recency.astype(float))
    assert table["value"].dtype == float


@pytest.mark.parametrize("checkpoint", ["seed1", "final", "seed1/step3/part4"])
def test_a_checkpoint_without_a_seed_and_a_step_is_refused(checkpoint):
    with pytest.raises(ValueError, match="unpack"):
        recency_table({"model": "bloom", "checkpoint": checkpoint}, *NOTHING)
