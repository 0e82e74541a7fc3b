from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from position_bias.layernorm.pretrained import recency_of_models

NOTHING = np.zeros((1, 1), np.float32), np.zeros(1, np.int64)


def gram(labels, recency, documents):
    """A file of a measured Gram, as far as it is read."""
    kept = {"recency": recency, "documents": documents}
    return SimpleNamespace(labels=labels, read=lambda *names: {name: kept[name] for name in names})


def test_a_table_has_a_row_a_prompt_and_layer():
    recency = np.array([[0.5, -0.25, 1.0], [2.0, 0.0, -3.5]], np.float32)
    labels = {"model": "bloom", "checkpoint": "seed1/step300", "dataset": "any", "n": 64}
    table = recency_of_models([gram(labels, recency, np.array([4, 9]))])
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
    table = recency_of_models([gram({"model": "falcon-7b-v2", "checkpoint": checkpoint}, *NOTHING)])
    assert table[["model", "seed", "state"]].to_numpy().tolist() == [["falcon-7b-v2", seed, state]]
