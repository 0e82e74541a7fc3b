"""Passes of a decoder are asked for in the words of the transformers that is installed."""

import warnings

import pytest
import torch

from position_card.probe import forward
from tests import small_decoders


@pytest.mark.parametrize("family", small_decoders.BUILT)
def test_a_cache_is_named_as_this_transformers_names_it(family):
    """A name that is going away warns, and a name that is unknown has no effect or is refused."""
    model = small_decoders.build(family, 60, layers=2, hidden=32)
    tokens = torch.arange(1, 9)[None]
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        _, cache = forward.next_token(model, tokens[:, :5], keep=True)
        continued, longer = forward.next_token(model, tokens[:, 5:], cache, keep=True)
        assert longer.get_seq_length() == 8
        logarithms = forward.log_probabilities(model, tokens[:, :1], 1, forward.repeat(longer, 1))
    torch.testing.assert_close(continued, forward.next_token(model, tokens)[0], rtol=0, atol=1e-6)
    again = torch.cat([tokens, tokens[:, :1]], 1)
    torch.testing.assert_close(logarithms[0, 0], forward.log_probabilities(model, again, 1)[0, 0], rtol=0, atol=1e-5)
