"""This module averages parameters along training: EMA, and BEMA, which corrects its lag (Zsamboki et al. 2025)."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Averaging:
    """EMA_t = (1 - beta_t) EMA_(t-1) + beta_t theta_t from EMA_0 = theta_0, with beta_t = (rho + gamma t)^-kappa."""

    kappa: float
    rho: float = 10.0
    gamma: float = 1.0

    def weight(self, iteration: int) -> float:
        """Return beta_t, at most 1."""
        return min(1.0, self._base(iteration) ** -self.kappa)

    def correction(self, iteration: int, eta: float) -> float:
        """Return alpha_t = (rho + gamma t)^-eta."""
        return self._base(iteration) ** -eta

    def _base(self, iteration: int) -> float:
        return self.rho + self.gamma * iteration


@torch.no_grad()
def update(average: Mapping[str, Tensor], parameters: Mapping[str, Tensor], weight: float) -> None:
    """Move `average` towards `parameters` by `weight`, in place."""
    torch._foreach_lerp_(list(average.values()), [parameters[name] for name in average], weight)


def bema(
    average: Mapping[str, Tensor], parameters: Mapping[str, Tensor], initial: Mapping[str, Tensor], correction: float
) -> dict[str, Tensor]:
    """theta'_t = EMA_t + alpha_t (theta_t - theta_0); with alpha_t = 0 it is the EMA."""
    return {name: value + correction * (parameters[name] - initial[name]) for name, value in average.items()}
