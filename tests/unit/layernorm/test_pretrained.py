import numpy as np
import pandas as pd
import pytest

from position_bias.layernorm.pretrained import recency_table


@pytest.mark.parametrize(
    ("checkpoint", "seed", "state"),
    [
        ("seed0/step0", "0", "untrained (step 0)"),
        ("seed12/step1000", "12", "trained (step 1000)"),
        ("hub", "hub", "of the hub"),
    ],
)
def test_a_table_has_a_row_a_prompt_and_layer_of_a_checkpoint_whatever_digits_a_model_has(checkpoint, seed, state):
    recency = np.array([[0.5, -0.25, 1.0], [2.0, 0.0, -3.5]], np.float32)
    table = recency_table({"model": "falcon-7b-v2", "checkpoint": checkpoint, "dataset": "any", "n": 64}, recency)
    rows = [
        ("falcon-7b-v2", seed, state, prompt, layer, float(recency[prompt, layer - 1]))
        for prompt in (0, 1)
        for layer in (1, 2, 3)
    ]
    columns = ["model", "seed", "state", "prompt", "layer", "value"]
    pd.testing.assert_frame_equal(table, pd.DataFrame(rows, columns=columns))
