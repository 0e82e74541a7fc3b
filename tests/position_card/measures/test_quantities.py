import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from position_card.measures import quantities
from position_card.measures.recency import FIRST_ROW
from position_card.measures.recency import recency as recency_of_scores

SEEDS = st.integers(0, 2**32 - 1)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def cosines(x):
    """Of every two tokens of every prompt, one by one, in float64."""
    x = x.double().numpy()
    rows = [[[a @ b / math.sqrt((a @ a) * (b @ b)) for b in prompt] for a in prompt] for prompt in x]
    return np.array(rows)


@settings(max_examples=30)
@given(n=st.integers(FIRST_ROW + 1, 40), d=st.integers(1, 6), seed=SEEDS)
def test_recency_is_that_of_the_cosines(n, d, seed):
    unit = torch.nn.functional.normalize(normal(3, n, d, seed=seed), dim=-1)
    found = quantities.cosine_recency(unit)
    assert found.shape == (3,)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, recency_of_scores(cosines(unit)), atol=1e-11)


@pytest.mark.parametrize("n", [9, 10, 11, 12, 13, 16, 17, 100])
def test_single_precision_is_enough_for_what_attention_reads(n):
    inputs = 3 + 10 * normal(4, n, 24, seed=n, dtype=torch.float32)
    found = quantities.cosine_recency(quantities.unit_vectors(inputs))
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, recency_of_scores(cosines(inputs)), atol=1e-6)


def test_tokens_that_turn_steadily_are_closest_to_recent_ones():
    """At angle t the cosine of i and j is cos(i - j) of the step: it falls with the distance."""
    angles = 0.02 * torch.arange(30, dtype=torch.float64)
    turning = torch.stack([angles.cos(), angles.sin()], -1)[None]
    still = torch.ones(1, 30, 2, dtype=torch.float64) / math.sqrt(2)
    assert quantities.cosine_recency(turning).item() > 1e-2
    assert quantities.cosine_recency(still).item() == pytest.approx(0, abs=1e-12)


def test_unit_vectors_have_norm_1_and_the_direction_of_the_inputs():
    inputs = normal(2, 5, 7).requires_grad_()
    unit = quantities.unit_vectors(inputs)
    assert unit.dtype == torch.float32
    assert not unit.requires_grad
    torch.testing.assert_close(unit.norm(dim=-1), torch.ones(2, 5))
    direction = (inputs / inputs.pow(2).sum(-1, keepdim=True).sqrt()).detach().float()
    torch.testing.assert_close(unit, direction)
    assert quantities.unit_vectors(inputs.detach().bfloat16()).dtype == torch.float32


def test_a_vector_of_zeros_has_no_direction_and_spoils_nothing():
    inputs = normal(1, 12, 4)
    inputs[0, 3] = 0
    unit = quantities.unit_vectors(inputs)
    assert (unit[0, 3] == 0).all()
    assert quantities.cosine_recency(unit).isfinite().all()


def test_cosines_are_summed_over_prompts_and_added_to_what_there_is():
    inputs = normal(5, 11, 3, seed=2)
    total = torch.full((11, 11), 7.0)
    quantities.add_cosines(total, quantities.unit_vectors(inputs))
    np.testing.assert_allclose(total, 7 + cosines(inputs).sum(0), atol=2e-6)
    quantities.add_cosines(total, quantities.unit_vectors(inputs[:2]))
    np.testing.assert_allclose(total, 7 + cosines(inputs).sum(0) + cosines(inputs[:2]).sum(0), atol=2e-6)
