"""This module makes what the figures of Kim et al. 2026 show: theory over Monte Carlo of the parameter-free decoder.

Intervals are those of means over sequences, which are independent. All settings of a table see the same embeddings, so
that curves compare in pairs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri

from position_bias.attention import Array, causal_mask, full_mask
from position_bias.layernorm import theory
from position_bias.layernorm.simulation import (
    NORMS,
    ByPosition,
    Common,
    Decoder,
    MaskName,
    Norm,
    Simulated,
    simulate,
)
from position_bias.recency import mean_size, recency, relative_recency
from position_bias.statistics import mean_and_interval

MEASURED = ("measured", "low", "high")
RESIDUALS = (0.0, 1.0)  # without and as usual
WIDER_RESIDUALS = (0.0, 0.5, 1.0, 2.0)

ALIKE = "alike"
ANISOTROPIES, LENGTHS = (0.0, 0.8), (0.5, 2.0)  # at the ends of profiles; the former those of the first version's grid
PROFILES = (ALIKE, "anisotropy rises", "anisotropy falls", "length rises", "length falls")  # of embeddings by position
PROFILE_ANISOTROPY = 0.2  # where it is alike at every position
MASKS: tuple[MaskName, ...] = ("causal", "full")


@dataclass(frozen=True)
class Sampling:
    """How much is simulated, and the level of the intervals."""

    tokens: int
    width: int
    strength: float
    sequences: int
    seed: int
    level: float

    @property
    def half_width(self) -> float:
        """Return half of an interval in standard errors of a mean over many sequences, by the normal distribution."""
        return float(ndtri((1 + self.level) / 2))

    def run(
        self,
        norm: Norm,
        residual: float,
        alpha: float,
        layers: int,
        placement: Literal["pre", "post"] = "pre",
        common: Common = "sequence",
    ) -> Simulated:
        """Run one decoder on embeddings of anisotropy `alpha` (`simulation.simulate`)."""
        decoder = Decoder(self.tokens, self.width, layers, residual, self.strength, norm, placement)
        return simulate(decoder, alpha, self.sequences, self.seed, common)

    def run_profile(self, profile: str, mask: MaskName, residual: float, layers: int) -> Simulated:
        """Run one decoder with RMSNorm on embeddings whose `moments` are those of a profile."""
        alphas, lengths = moments(profile, self.tokens)
        decoder = Decoder(self.tokens, self.width, layers, residual, self.strength, "rms", mask=mask)
        return simulate(decoder, alphas, self.sequences, self.seed, lengths=lengths)

    def expected_of_profile(self, profile: str, mask: MaskName, residual: float, layers: int) -> Array:
        """Return the recency of each layer of the same decoder by the recursion, `[layers]`."""
        alphas, lengths = (np.broadcast_to(values, self.tokens) for values in moments(profile, self.tokens))
        admitted = {"causal": causal_mask, "full": full_mask}[mask](self.tokens)
        gram = theory.embedded(alphas, lengths)
        return recency(theory.recursion(gram, admitted, residual, self.strength, layers, "pre"))


def moments(profile: str, n: int) -> tuple[ByPosition, ByPosition]:
    """Anisotropies and lengths of embeddings in a profile: one number for all of n tokens, or one for each.

    Anisotropy goes evenly from one of ANISOTROPIES to the other, length by even factors from one of LENGTHS to the
    other; what does not change is PROFILE_ANISOTROPY and 1.
    """
    rising = {"anisotropy": np.linspace(*ANISOTROPIES, n), "length": np.geomspace(*LENGTHS, n)}
    what, _, trend = profile.partition(" ")
    values = {name: tuple(map(float, of if trend == "rises" else of[::-1])) for name, of in rising.items()}
    return (
        values[what] if what == "anisotropy" else PROFILE_ANISOTROPY,
        values[what] if what == "length" else 1.0,
    )


def score_maps(
    tokens: int, width: int, layers: int, strength: float, alphas: Sequence[float], sequences: int, seed: int
) -> dict[str, Array]:
    """Mean scores `[layers, tokens, tokens]` with residual 1, named norm/anisotropy, for every norm."""
    maps = {}
    for norm, alpha in product(NORMS, alphas):
        decoder = Decoder(tokens, width, layers, 1.0, strength, norm)
        maps[f"{norm}/{alpha:g}"] = simulate(decoder, alpha, sequences, seed).scores
    return maps


def closed_form_rows(sampling: Sampling, alphas: Sequence[float]) -> pd.DataFrame:
    """Return layer-2 scores of the last token with each earlier one: the closed form at this width, and measured.

    Columns norm (none, rms), residual, anisotropy, position (of the key, from 1), predicted, measured, low, high.
    """
    n, curves, norms = sampling.tokens, [], NORMS[:2]
    for norm, residual, alpha in product(norms, RESIDUALS, alphas):
        seen = sampling.run(norm, residual, alpha, layers=2)
        predicted = theory.second_scores(
            n, alpha, residual, sampling.strength, norm=norm == "rms", width=sampling.width
        )
        measured, half = seen.scores[1, -1, :-1], sampling.half_width * seen.errors[1, -1, :-1]
        curve = {"norm": norm, "residual": residual, "anisotropy": alpha, "position": np.arange(1, n)}
        scores = {
            "predicted": predicted[-1, :-1],
            "measured": measured,
            "low": measured - half,
            "high": measured + half,
        }
        curves.append(pd.DataFrame({**curve, **scores}))
    return pd.concat(curves, ignore_index=True)


def evenly(step: float, last: float) -> list[float]:
    """Return 0, `step`, twice that and so on up to `last`, each as its decimals are read: 0.3, not 3 x 0.1."""
    return [round(count * step, 12) for count in range(math.floor(round(last / step, 9)) + 1)]


def anisotropy_curves(sampling: Sampling, alphas: Sequence[float], simulated: Sequence[float]) -> pd.DataFrame:
    """Return recency of layer-2 scores with norm against anisotropy, for residuals 0, 1/2, 1 and 2.

    Columns residual, anisotropy, predicted (the closed form at this width), limit (at infinite width), measured, low,
    high. Measured are only the anisotropies in `simulated`; elsewhere stands NaN.
    """
    rows: list[dict[str, Any]] = []
    for residual, alpha in product(WIDER_RESIDUALS, sorted({*alphas, *simulated})):
        predicted, limit = (
            recency(theory.second_scores(sampling.tokens, alpha, residual, sampling.strength, norm=True, width=width))
            for width in (sampling.width, None)
        )
        row = {"residual": residual, "anisotropy": alpha, "predicted": float(predicted), "limit": float(limit)}
        if alpha in simulated:
            values = sampling.run("rms", residual, alpha, layers=2).recency[:, 1]
            row |= zip(MEASURED, map(float, mean_and_interval(values, sampling.level)), strict=True)
        rows.append(row)
    return pd.DataFrame(rows, columns=["residual", "anisotropy", "predicted", "limit", *MEASURED])


def depth_curves(sampling: Sampling, alpha: float, layers: int) -> pd.DataFrame:
    """Return recency of the scores of each layer: the recursion, and measured.

    Columns norm (none, pre, post: RMSNorm), residual, layer (from 1), predicted, measured, low, high. Without norm the
    scale of scores changes with depth: theirs is recency over the mean absolute value of the mean scores below the
    diagonal, on both sides; the interval takes that scale as it was measured.
    """
    curves = []
    for placement, residual in product(theory.PLACEMENTS, RESIDUALS):
        expected = theory.gram_recursion(sampling.tokens, alpha, residual, sampling.strength, layers, placement)
        if placement == "none":
            seen = sampling.run("none", residual, alpha, layers)
            predicted, values = relative_recency(expected), seen.recency / mean_size(seen.scores)
        else:
            predicted = recency(expected)
            values = sampling.run("rms", residual, alpha, layers, placement).recency
        _, low, high = mean_and_interval(values, sampling.level)
        measured = [of_layer.mean() for of_layer in values.T]  # rounds otherwise than the mean over rows
        curve = {"norm": placement, "residual": residual, "layer": np.arange(1, layers + 1)}
        recencies = {"predicted": predicted, "measured": measured, "low": low, "high": high}
        curves.append(pd.DataFrame({**curve, **recencies}))
    return pd.concat(curves, ignore_index=True)


def moments_curves(sampling: Sampling, layers: int) -> pd.DataFrame:
    """Return recency of the scores of each layer with RMSNorm and residual 1, by mask and profile of the embeddings.

    Columns mask (causal, full), profile (of PROFILES), layer (from 1), predicted (by the recursion), measured, low,
    high.
    """
    rows = []
    for mask, profile in product(MASKS, PROFILES):
        values = sampling.run_profile(profile, mask, 1.0, layers).recency
        measured, low, high = mean_and_interval(values, sampling.level)
        expected = sampling.expected_of_profile(profile, mask, 1.0, layers)
        columns = {"predicted": expected, "measured": measured, "low": low, "high": high}
        rows.append(pd.DataFrame({"mask": mask, "profile": profile, "layer": np.arange(1, layers + 1), **columns}))
    return pd.concat(rows, ignore_index=True)
