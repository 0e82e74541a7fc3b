"""Whether what a decoder has computed of a prefix can be used again for the tokens that follow it: this is tried."""

from collections.abc import Callable

from torch import Tensor

from position_bias.running.runtime import log

SAME = 1e-5  # total variation that rounding may leave between predictions with and without what is kept of a prefix


def reuses(anew: Callable[[], Tensor], again: Callable[[], Tensor], every: str) -> bool:
    """Whether a model predicts the same, distributions [B, V], from all tokens and from what it keeps of a prefix.

    Layers with windows, or with a state in place of keys, may be unable to go on from a prefix, or go on wrongly. The
    log then says why `every` pass, in words, takes all tokens.
    """
    expected = anew()
    try:
        found = again()
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        log.info("%s passes all tokens: the model cannot go on from a prefix (%s)", every, error)
        return False
    same = float((found - expected).abs().sum(-1).max()) / 2 < SAME
    if not same:
        log.info("%s passes all tokens: with what it keeps of a prefix, the model predicts something else", every)
    return same
