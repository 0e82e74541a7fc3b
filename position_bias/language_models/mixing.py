"""This module measures residual mixing lambda: the share of attention in the residual stream (structural, Eq. 1)."""

from torch import Tensor


def squared_norms(stream: Tensor) -> Tensor:
    """Return the squared norm of each token's vector in float32: [B, n, width] -> [B, n]."""
    return stream.detach().float().square().sum(-1)


def frobenius(residual: Tensor, update: Tensor) -> Tensor:
    """Take Eq. 1 (version 2 of the paper): ||a||_F / (||x||_F + ||a||_F) of a whole sequence.

    `residual` and `update` hold the squared token norms [B, n] of x and a; returns [B].
    """
    x, a = residual.sum(-1).sqrt(), update.sum(-1).sqrt()
    return a / (x + a)


def token(residual: Tensor, update: Tensor) -> Tensor:
    """Take the mean over tokens of ||a_i|| / (||x_i|| + ||a_i||): version 1 and the released code. As `frobenius`."""
    x, a = residual.sqrt(), update.sqrt()
    return (a / (x + a)).mean(-1)


def backward(past: Tensor, entry: Tensor) -> Tensor:
    """Take the share of a gradient that comes back through attention. It is our addition, and no forward prediction.

    `past` is the gradient of a scalar at x + a, `entry` that at x, so that their difference came through attention:
    ||entry - past||_F / (||past||_F + ||entry - past||_F), [B, n, width] twice -> [B].
    """
    past, through = past.flatten(1), (entry - past).flatten(1)
    return through.norm(dim=-1) / (past.norm(dim=-1) + through.norm(dim=-1))
