"""This module averages parameters along training: EMA, and BEMA, which corrects its lag (Zsamboki et al. 2025).

EMA_t = (1 - beta_t) EMA_(t-1) + beta_t theta_t from EMA_0 = theta_0, and BEMA_t = EMA_t + alpha_t (theta_t - theta_0).
Both shares are powers of 10 + t: beta_t with the exponent kappa, alpha_t with eta.
"""

from collections.abc import Mapping

import torch
from torch import Tensor


def share(iteration: int, exponent: float) -> float:
    """Return (10 + t)^-`exponent` for iteration t; 10 is the paper's rho, and its gamma is 1."""
    return float((10 + iteration) ** -exponent)


@torch.no_grad()
def update(average: Mapping[str, Tensor], parameters: Mapping[str, Tensor], weight: float) -> None:
    """Move `average` towards `parameters` by `weight`, in place."""
    torch._foreach_lerp_(list(average.values()), [parameters[name] for name in average], weight)


def bema(
    average: Mapping[str, Tensor], parameters: Mapping[str, Tensor], initial: Mapping[str, Tensor], correction: float
) -> dict[str, Tensor]:
    """Return BEMA_t for `correction` alpha_t; with alpha_t = 0 it is the EMA."""
    return {name: value + correction * (parameters[name] - initial[name]) for name, value in average.items()}
