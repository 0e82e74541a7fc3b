"""Uniform causal attention, by distance: what the measured one is drawn beside."""

import numpy as np
from numpy.typing import NDArray


def uniform_attention(n: int) -> NDArray[np.float64]:
    """The mean weight [n] at each distance of tokens that attend to themselves and all earlier ones alike.

    The mean of 1 / (i + 1) over the queries i >= d: (H_n - H_d) / (n - d), with harmonic numbers H. It falls with
    distance, because only late tokens have others far behind them.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    return (harmonic[n] - harmonic[:n]) / np.arange(n, 0, -1)
