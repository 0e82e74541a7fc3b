import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from position_bias.language_models import gram
from position_bias.recency import FIRST_ROW
from position_bias.recency import recency as recency_of_scores

SEEDS = st.integers(0, 2**32 - 1)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def cosines(x):
    """Of every two tokens of every prompt, one by one, in float64."""
    x = x.double().numpy()
    rows = [[[a @ b / math.sqrt((a @ a) * (b @ b)) for b in prompt] for a in prompt] for prompt in x]
    return np.array(rows)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(FIRST_ROW + 1, 40), d=st.integers(1, 6), seed=SEEDS)
def test_recency_is_that_of_the_cosines(n, d, seed):
    unit = torch.nn.functional.normalize(normal(3, n, d, seed=seed), dim=-1)
    found = gram.recency(unit)
    assert found.shape == (3,)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, recency_of_scores(cosines(unit)), atol=1e-11)


@pytest.mark.parametrize("n", [9, 12, 17, 100])
def test_single_precision_is_enough_for_what_attention_reads(n):
    inputs = 3 + 10 * normal(4, n, 24, seed=n, dtype=torch.float32)
    found = gram.recency(gram.unit_vectors(inputs))
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, recency_of_scores(cosines(inputs)), atol=1e-6)


def test_unit_vectors_have_norm_1_and_the_direction_of_the_inputs():
    inputs = normal(2, 5, 7).requires_grad_()
    unit = gram.unit_vectors(inputs)
    assert unit.dtype == torch.float32
    assert not unit.requires_grad
    torch.testing.assert_close(unit.norm(dim=-1), torch.ones(2, 5))
    direction = (inputs / inputs.pow(2).sum(-1, keepdim=True).sqrt()).detach().float()
    torch.testing.assert_close(unit, direction)
    assert gram.unit_vectors(inputs.detach().bfloat16()).dtype == torch.float32
    assert (gram.unit_vectors(torch.zeros(1, 12, 4)) == 0).all()


def test_cosines_are_summed_over_prompts_and_added_to_what_there_is():
    inputs = normal(5, 11, 3, seed=2)
    total = torch.full((11, 11), 7.0)
    gram.add_cosines(total, gram.unit_vectors(inputs))
    np.testing.assert_allclose(total, 7 + cosines(inputs).sum(0), atol=2e-6)
    gram.add_cosines(total, gram.unit_vectors(inputs[:2]))
    np.testing.assert_allclose(total, 7 + cosines(inputs).sum(0) + cosines(inputs[:2]).sum(0), atol=2e-6)
