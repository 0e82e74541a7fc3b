"""Means over groups of documents: those that the prompts of each group have when they are measured alone."""

import numpy as np
import pytest

from position_card.measures.measure import Quantities, measure_decoder
from tests.ggufs import small

N, PROMPTS, GROUPS = 12, 8, 2
ASKED = Quantities(apart=True)


@pytest.fixture(scope="module")
def model():
    model = small("llama").requires_grad_(False)
    model.set_attn_implementation("eager")
    return model


@pytest.fixture(scope="module")
def prompts():
    return np.random.default_rng(1).integers(0, 64, (PROMPTS, N))


@pytest.fixture(scope="module")
def whole(model, prompts):
    return measure_decoder(model, prompts, 3 * N, quantities=ASKED)


@pytest.fixture(scope="module", params=[1, 3 * N], ids=["one by one", "three together"])
def grouped(request, model, prompts):
    documents = np.arange(PROMPTS) // 2
    asked = Quantities(apart=True, groups=GROUPS)
    return measure_decoder(model, prompts, request.param, documents=documents, quantities=asked)


@pytest.fixture(scope="module")
def alone(model, prompts):
    """The prompts of each group measured by themselves: documents come to groups in turn."""
    of_prompts = np.arange(PROMPTS) // 2 % GROUPS
    return [measure_decoder(model, prompts[of_prompts == group], 3 * N, quantities=ASKED) for group in range(GROUPS)]


def test_groups_have_the_means_of_their_prompts(grouped, alone):
    assert grouped.groups.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    for group, expected in enumerate(alone):
        np.testing.assert_allclose(grouped.attention_of_groups[group], expected.attention, atol=1e-6)
        for name in ("toeplitz", "toeplitz-apart"):
            np.testing.assert_allclose(grouped.kernels_of_groups[name][group], expected.kernels[name], atol=2e-6)


def test_rotary_kernels_of_groups_leave_out_what_both_means_change(grouped, alone, whole):
    """Of two equal groups both differ from all by as much, on either side: so their own kernels tell the product."""
    own = np.stack([of_group.kernels["rotary"] for of_group in alone])
    product = own.mean(0) - whole.kernels["rotary"]
    assert np.abs(product).max() > 1e-5
    np.testing.assert_allclose(grouped.kernels_of_groups["rotary"], own - product, atol=1e-6)


def test_groups_change_nothing_of_all_prompts(grouped, whole):
    for name in ("influence", "attention", "by_distance", "loss"):
        np.testing.assert_allclose(getattr(grouped, name), getattr(whole, name), rtol=1e-4, atol=1e-6)
    for name, kernel in whole.kernels.items():
        np.testing.assert_allclose(grouped.kernels[name], kernel, atol=1e-5)
        np.testing.assert_allclose(grouped.kernels_of_groups[name].mean(0), kernel, atol=1e-5)
    assert whole.groups is whole.attention_of_groups is None
    assert whole.kernels_of_groups == {}


def test_groups_of_long_prompts_have_no_matrices(model, prompts):
    found = measure_decoder(model, prompts, N, quantities=Quantities(groups=GROUPS, matrices_up_to=N - 1))
    assert found.attention_of_groups is None
    assert found.kernels_of_groups["toeplitz"].shape[0] == GROUPS
