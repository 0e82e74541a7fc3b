"""The theory of Kim et al. 2026, and what we add to it, is checked on the parameter-free decoder.

A formula is judged by its worst deviation over the n settings named: it is computed, so low and high are the same. A
claim about a mean over sequences is judged by Student's interval, with n the sequences; where it is one about all
anisotropies, by the one that speaks most against it. Predictions are fixed by the statement or by the derivation in
`layernorm.theory`; margins and thresholds of our own are named so in their source. They were set before this table was
simulated, but with values of the closed forms and errors of earlier simulations at hand.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain, product
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from position_bias.layernorm import theory
from position_bias.layernorm.checks import over_settings, tabulate
from position_bias.layernorm.simulation import MASKS, PROFILES, RESIDUALS, MaskName, Norm, Sampling, SimulationResult
from position_bias.verdicts.judge import Estimate, Statistic
from position_card.measures.recency import FIRST_ROW, mean_size, recency, relative_recency
from position_card.rollout.attention import Array
from position_card.rollout.statistics import mean_and_interval

ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8)  # those of the paper's first version
LAYERS = 4  # and its depth
DEEPER = range(2, LAYERS + 1)  # layers that the mask can tell positions apart in
DEEPEST = range(3, LAYERS + 1)  # those that the theorem on layer 2 says nothing of
DEEP, DEEP_ALPHA = 12, 0.2  # our addition: as deep as small language models
ALONG_ONES = 0.6  # anisotropy along all ones
SCALED_ALPHAS = (0.0, 0.2, 0.6)  # anisotropies at which scaling by 1/sqrt(d) is judged

NORMS: tuple[Norm, ...] = ("none", "rms")
NAMES = {"none": "no norm", "rms": "RMSNorm", "layer": "LayerNorm"}
PAIRS = ((2, 1), (3, 1), (3, 2))  # (i, j) of layer-2 scores in a figure of the first version
RATIOS = (0.1, 0.25, 0.5, 0.75)  # r = j / i
GRID = tuple(product((0.0, 0.1, 0.3, 0.5, 0.7, 0.9), (0.0, 0.5, 1.0, 2.0), (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)))


def table(level: float, *, tokens: int, width: int, sequences: int, limit_tokens: int, seed: int) -> pd.DataFrame:
    """Return the estimates of every statement (`theorem_statements`) as `checks.tabulate` has them.

    Simulated are `sequences` sequences of `tokens` tokens, all settings on the same draws; limits of many tokens are
    taken at `limit_tokens`, at least 1000.
    """
    sampling = Sampling(tokens, width, 1.0, sequences, seed, level)
    return tabulate(chain.from_iterable(theorem_statements(sampling, limit_tokens)))


def theorem_statements(sampling: Sampling, limit_tokens: int) -> tuple[Iterator[Statistic], ...]:
    """Yield what every statement is judged by, statement by statement, simulated and worked out as it is read."""
    runs = Runs(sampling)
    return (
        _closed_forms(runs),
        _theorem(runs),
        _layer_2(runs),
        _three_tokens(runs),
        _averages(runs, limit_tokens),
        _depth(runs),
        _along_ones(runs),
        _scaling(runs),
        _anisotropy(runs),
        _published(runs),
        _moments(runs),
    )


@dataclass(frozen=True)
class Runs:
    """What every statement may look at: strength 1, with and without norm and residual."""

    sampling: Sampling

    @cached_property
    def simulations(self) -> dict[tuple[Norm, float, float], SimulationResult]:
        """Simulate every norm, residual and anisotropy."""
        return {
            (norm, rho, alpha): self.sampling.run(norm, rho, alpha, LAYERS)
            for norm, rho, alpha in product(NORMS, RESIDUALS, ALPHAS)
        }

    def recency(self, norm: Norm, rho: float, alpha: float, layer: int) -> Array:
        """Return the recency of each sequence in one layer, counted from 1, `[sequences]`."""
        return self.simulations[norm, rho, alpha].recency[:, layer - 1]

    def profile_recency(self, profile: str, mask: MaskName, rho: float, layer: int) -> Array:
        """Return the recency of each sequence in one layer, counted from 1, with RMSNorm and embeddings of a profile.

        The shape is `[sequences]`.
        """
        return _profile(self.sampling, profile, mask, rho).recency[:, layer - 1]

    def close(self, layers: int = 1) -> float:
        """Return how far means may be from theory: 1/d for each layer that attends, and the noise.

        The noise is four standard errors of a mean cosine, whose deviation is about 1/sqrt(d) for one pair of tokens.
        """
        return layers / self.sampling.width + 4 / sqrt(self.sampling.width * self.sampling.sequences)


@cache
def _profile(sampling: Sampling, profile: str, mask: MaskName, rho: float) -> SimulationResult:
    return sampling.run_profile(profile, mask, rho, LAYERS)


def _worked_out(
    name: str, setting: Mapping[str, object], networks: Mapping[Any, npt.ArrayLike], **numbers: float
) -> Statistic:
    """Numbers that are computed, one for each of some settings, by network."""
    values = {network: np.ravel(of_settings) for network, of_settings in networks.items()}
    estimates = {network: [Estimate(v, v, v, len(settings)) for v in settings] for network, settings in values.items()}
    return over_settings(name, setting, estimates, **numbers)


def _means(
    runs: Runs, name: str, setting: Mapping[str, object], networks: Mapping[Any, Sequence[Array]], **numbers: float
) -> Statistic:
    """Means over sequences, which have one number each, in one setting or several, by network."""
    estimates = {
        network: [_mean(values, runs.sampling.level) for values in of_settings]
        for network, of_settings in networks.items()
    }
    return over_settings(name, setting, estimates, **numbers)


def _mean(values: Array, level: float) -> Estimate:
    mean, low, high = map(float, mean_and_interval(values, level))
    return Estimate(mean, low, high, len(values))


def _less(values: Sequence[Array], subtrahends: Sequence[Array]) -> list[Array]:
    """Return the difference of each two arrays, one of `values` less one of `subtrahends`, sequence by sequence."""
    return [minuend - subtrahend for minuend, subtrahend in zip(values, subtrahends, strict=True)]


def _below_diagonal(scores: Array) -> Array:
    """Return the entries j < i of scores `[n, n]`, `[n (n - 1) / 2]`."""
    return scores[np.tril_indices(scores.shape[-1], -1)]


# Layer 2


def _closed_forms(runs: Runs) -> Iterator[Statistic]:
    """Sizes without norm are over (1 + rho)^2, the largest that a score can have."""
    n, width, strength = runs.sampling.tokens, runs.sampling.width, runs.sampling.strength
    for rho in RESIDUALS:
        scores: dict[str, list[float]] = {NAMES[norm]: [] for norm in NORMS}
        squares, largest = [], (1 + rho) ** 2
        for norm, alpha in product(NORMS, ALPHAS):
            simulation = runs.simulations[norm, rho, alpha].scores[1]
            closed_form = theory.second_scores(n, alpha, rho, strength, norm=norm == "rms", width=width)
            size = largest if norm == "none" else 1.0
            scores[NAMES[norm]].append(np.abs(_below_diagonal(simulation - closed_form)).max() / size)
            if norm == "none":
                norms = theory.squared_norms(n, alpha, rho, strength, width)
                squares.append(np.abs(np.diagonal(simulation) - norms).max() / largest)
        setting = {"residual": f"{rho:g}"}
        yield _worked_out("closed form of scores", setting, scores, bound=runs.close())
        yield _worked_out("closed form of squared norms", setting, {"no norm": squares}, bound=runs.close())


def _theorem(runs: Runs) -> Iterator[Statistic]:
    """At infinite width: without norm no score of a row depends on its key; with one, scores grow from key to key."""
    n = runs.sampling.tokens
    spread, norms, scores = [], [], []
    for alpha, rho, strength in GRID:
        row = theory.gram_recursion(n, alpha, rho, strength, 2, "none")[1, -1, :-1]
        spread.append(np.ptp(row) / np.abs(row).max())
        norms.append(np.diff(theory.squared_norms(n, alpha, rho, strength)).max())
        S = theory.second_scores(n, alpha, rho, strength, norm=True)
        scores.append(min(np.diff(S[i, :i]).min() for i in range(2, n)))
    yield _worked_out("range of products", {}, {"no norm": spread})
    yield _worked_out("steps from a token to the next", {}, {"q_j": norms, "S_ij": scores})


def _layer_2(runs: Runs) -> Iterator[Statistic]:
    for rho in RESIDUALS:
        plain, rms = ([runs.recency(norm, rho, alpha, 2) for alpha in ALPHAS] for norm in NORMS)
        layer = [runs.sampling.run("layer", rho, alpha, 2).recency[:, 1] for alpha in ALPHAS]
        recencies = {"no norm": plain, "RMSNorm": rms, ("LayerNorm", "RMSNorm"): _less(layer, rms)}
        yield _means(runs, "recency of layer 2", {"residual": f"{rho:g}"}, recencies)


def _three_tokens(runs: Runs) -> Iterator[Statistic]:
    """The first three tokens of a longer sequence: a causal decoder makes no difference."""
    closed_form = theory.second_scores(3, 0.0, 1.0, 1.0, norm=True)
    simulation = replace(runs.sampling, tokens=FIRST_ROW + 1, strength=1.0).run("rms", 1.0, 0.0, 2)
    scores = {f"({i}, {j})": float(closed_form[i - 1, j - 1]) for i, j in PAIRS}
    yield _worked_out("score of three tokens by the closed form", {}, scores)
    for i, j in PAIRS:
        score, error = simulation.scores[1, i - 1, j - 1], simulation.errors[1, i - 1, j - 1]
        half, pair = runs.sampling.half_width * error, f"({i}, {j})"
        estimate = Estimate(score, score - half, score + half, runs.sampling.sequences)
        numbers = {"bound": round(scores[pair], 4), "margin": 1 / runs.sampling.width}
        yield over_settings("score of three tokens, simulated", {}, {pair: [estimate]}, **numbers)


# Layers that only average: s = 0, rho = 0


def _averages(runs: Runs, limit_tokens: int) -> Iterator[Statistic]:
    n = runs.sampling.tokens
    later, earlier = (index + 1 for index in np.tril_indices(n, -1))
    errors = []
    for alpha in ALPHAS:
        exact = theory.gram_recursion(n, alpha, 0.0, 0.0, 2, "pre")[1]
        errors.append(np.abs(_below_diagonal(exact) - theory.second_scores_of_averages(later, earlier, alpha)).max())
    yield _worked_out("averages: layer 2", {}, {"RMSNorm": errors})

    averaging = replace(runs.sampling, strength=0.0)
    of_norm, of_no_norm = (averaging.run(norm, 0.0, 0.0, 3).scores for norm in ("rms", "none"))
    errors = np.abs(_below_diagonal(of_norm[1]) - np.sqrt(earlier / later)).max()
    yield _worked_out("averages: simulated layer 2", {}, {"RMSNorm": errors}, bound=runs.close())

    j = np.round(np.array(RATIOS) * limit_tokens).astype(int)
    scores, products = (
        theory.gram_recursion(limit_tokens, 0.0, 0.0, 0.0, 3, norm)[2, -1, j - 1] for norm in ("pre", "none")
    )
    limits = {
        "RMSNorm": np.abs(scores - theory.third_scores_of_averages(j / limit_tokens)),
        "no norm": np.abs(products / theory.third_products_of_averages(limit_tokens, j) - 1),
    }
    yield _worked_out("averages: limit of layer 3", {"ratios": str(RATIOS), "tokens": limit_tokens}, limits)

    with_norm, no_norm = (
        _below_diagonal(theory.gram_recursion(n, 0.0, 0.0, 0.0, 3, norm)[2]) for norm in ("pre", "none")
    )
    of_layer_3 = {
        "no norm": np.abs(_below_diagonal(of_no_norm[2]) / no_norm - 1).max(),
        "RMSNorm": np.abs(_below_diagonal(of_norm[2]) - with_norm).max(),
    }
    yield _worked_out("averages: simulated layer 3", {}, of_layer_3, bound=runs.close(2))


# Depth


def _depth(runs: Runs) -> Iterator[Statistic]:
    n, strength = runs.sampling.tokens, runs.sampling.strength
    deeper = list(product(ALPHAS, DEEPEST))
    for rho in RESIDUALS:
        setting = {"layers": f"{DEEPEST[0]}-{LAYERS}", "residual": f"{rho:g}"}
        errors = []
        for alpha, layer in deeper:
            by_recursion = recency(theory.gram_recursion(n, alpha, rho, strength, layer, "pre")[-1])
            errors.append(abs(runs.recency("rms", rho, alpha, layer).mean() - by_recursion))
        bound = runs.close(LAYERS - 1)
        yield _worked_out("recency of deeper layers less the recursion", setting, {"RMSNorm": errors}, bound=bound)
        recencies = {NAMES[norm]: [runs.recency(norm, rho, *pair) for pair in deeper] for norm in NORMS}
        yield _means(runs, "recency of deeper layers", setting, recencies)
    for rho in RESIDUALS:
        depth: dict[str, object] = {"layer": DEEP, "residual": f"{rho:g}", "anisotropy": f"{DEEP_ALPHA:g}"}
        simulation = runs.sampling.run("none", rho, DEEP_ALPHA, DEEP)
        last = simulation.recency[:, -1] / mean_size(simulation.scores[-1])
        by_recursion = relative_recency(theory.gram_recursion(n, DEEP_ALPHA, rho, strength, DEEP, "none")[-1])
        sign = "above 0" if by_recursion > 0 else "up to 0"
        yield _means(runs, f"relative recency, {sign} by the recursion", depth, {"no norm": [last]})


# Which norm, and which scale


def _along_ones(runs: Runs) -> Iterator[Statistic]:
    """LayerNorm takes away the whole of the anisotropy; the rest of x is shorter by sqrt(1 - alpha)."""
    n, width, strength = runs.sampling.tokens, runs.sampling.width, runs.sampling.strength
    for rho in RESIDUALS:
        setting = {"anisotropy": f"{ALONG_ONES:g}", "residual": f"{rho:g}"}
        layer = runs.sampling.run("layer", rho, ALONG_ONES, 2, common="ones").recency[:, 1]
        closed_form = recency(
            theory.second_scores(n, 0.0, rho * sqrt(1 - ALONG_ONES), strength, norm=True, width=width)
        )
        numbers = {"bound": round(float(closed_form), 4), "margin": 1 / width}
        yield _means(runs, "recency along all ones, as expected", setting, {"LayerNorm": [layer]}, **numbers)
        if not rho:
            rms = runs.sampling.run("rms", rho, ALONG_ONES, 2, common="ones").recency[:, 1]
            yield _means(runs, "recency along all ones", setting, {("LayerNorm", "RMSNorm"): [layer - rms]})


def _scaling(runs: Runs) -> Iterator[Statistic]:
    sampling = replace(runs.sampling, strength=sqrt(runs.sampling.width))
    for rho, alpha in product(RESIDUALS, SCALED_ALPHAS):
        less = sampling.run("rms", rho, alpha, 2).recency[:, 1] - runs.recency("rms", rho, alpha, 2) / 10
        setting = {"residual": f"{rho:g}", "anisotropy": f"{alpha:g}"}
        yield _means(runs, "recency of scaled scores", setting, {"RMSNorm": [less]})


# Embeddings


def _anisotropy(runs: Runs) -> Iterator[Statistic]:
    """Yield how recency depends on anisotropy alpha: by the closed form of layer 2, and in simulated networks.

    By the closed form these are the alpha with most recency, on a grid of hundredths, with residual connections, and
    the greatest rise of recency from one alpha to the next, without any. Simulated is the recency at .4 less that at 0.
    """
    n, strength = runs.sampling.tokens, runs.sampling.strength
    grid = np.arange(100) / 100
    without_one, with_one = (
        np.array([recency(theory.second_scores(n, alpha, rho, strength, norm=True)) for alpha in grid])
        for rho in RESIDUALS
    )
    yield _worked_out("anisotropy of most recency", {}, {"residual 1": grid[with_one.argmax()]})
    yield _worked_out("step of recency with anisotropy", {}, {"residual 0": np.diff(without_one).max()})
    gains = {
        f"residual {rho:g}": [runs.recency("rms", rho, 0.4, 2) - runs.recency("rms", rho, 0.0, 2)] for rho in RESIDUALS
    }
    yield _means(runs, "recency gained by anisotropy", {}, gains)


def _published(runs: Runs) -> Iterator[Statistic]:
    """Two statements that this model contradicts, predicted as the paper makes them; and our own on the first."""
    without_one, with_one = ([runs.recency("rms", rho, alpha, 2) for alpha in ALPHAS] for rho in RESIDUALS)
    yield _means(runs, "recency without residual", {}, {"RMSNorm": without_one})
    less = {("residual 0", "residual 1"): _less(without_one, with_one)}
    yield _means(runs, "recency without and with residual", {}, less)
    for rho, layer in ((1.0, 2), (1.0, LAYERS), (0.0, 2)):
        setting: dict[str, object] = {"layer": layer, "residual": f"{rho:g}"}
        yield _means(runs, "recency without anisotropy", setting, {"RMSNorm": [runs.recency("rms", rho, 0.0, layer)]})


def _moments(runs: Runs) -> Iterator[Statistic]:
    """Embeddings whose first and second moments depend on the position, as the referee's premise has them.

    Where every token reads every other and embeddings are alike, nothing tells positions apart: that is the control.
    In layer 1 the cosine of two tokens is sqrt(alpha_i alpha_j), so that recent keys score higher where anisotropy
    rises. A residual connection carries that on. It also leaves a long token more of itself and less of what all
    attend to, so that keys score lower where they are long. What the mask does comes on top. Profiles are across.
    """
    for mask, rho in product(MASKS, RESIDUALS):
        errors = []
        for profile in PROFILES:
            recencies = [runs.profile_recency(profile, mask, rho, layer).mean() for layer in range(1, LAYERS + 1)]
            errors.append(np.abs(recencies - runs.sampling.expected_of_profile(profile, mask, rho, LAYERS)).max())
        setting = {"layers": f"1-{LAYERS}", "mask": mask, "residual": f"{rho:g}"}
        yield _worked_out("recency of profiles less the recursion", setting, {"all": errors}, bound=runs.close(LAYERS))
    full, causal = (
        {
            rho: {
                profile: [runs.profile_recency(profile, mask, rho, layer) for layer in DEEPER] for profile in PROFILES
            }
            for rho in RESIDUALS
        }
        for mask in ("full", "causal")
    )
    layers = {"layers": f"{DEEPER[0]}-{LAYERS}"}
    for rho in RESIDUALS:
        yield _means(runs, f"recency with a full mask, residual {rho:g}", layers, full[rho])
        gains = [more for profile in PROFILES for more in _less(causal[rho][profile], full[rho][profile])]
        yield _means(runs, "recency added by the causal mask", {**layers, "residual": f"{rho:g}"}, {"all": gains})
    more = {profile: _less(of_profile, full[0.0][profile]) for profile, of_profile in full[1.0].items()}
    yield _means(runs, "recency with a full mask, more with residual", layers, more)
    yield _means(runs, "recency with a causal mask, residual 1", layers, causal[1.0])
