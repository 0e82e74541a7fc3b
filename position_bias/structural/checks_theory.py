"""Propositions 4.2-4.5, Lemma 5.4 and Theorem 5.5 of Herasimchyk et al. 2026 are checked on a grid of rollouts.

Nothing here is random: an interval is its value, and `n` counts comparisons. A statement fails where one comparison
violates it by more than rounding can explain.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import comb, prod
from pathlib import Path

import numpy as np
import pandas as pd

from position_bias.structural import propositions
from position_bias.verdicts.judge import Statistic, judge, readable, table, worst_among
from position_bias.verdicts.registry import predictions
from position_card.rollout.attention import Array, alibi_bias, causal_mask, content_free_attention, masked_softmax
from position_card.rollout.last_row import last_row

# The grid: every stack of kernels meets every schedule
DEPTH = 12
LENGTHS = (2, 9, 32)
WINDOWS = (None, 2, 8)  # those shorter than the sequence
SLOPES = ((0.0,), (4.0,), tuple(2.0**-h for h in range(1, 9)))  # none, one steep head, ALiBi's for 8 heads
CONTENT = (0.5, 2.0, 8.0, -0.5, -2.0, -8.0)  # the largest logit of any layer and head
SCHEDULES = (
    np.full(DEPTH, 0.3),
    np.linspace(0.9, 0.1, DEPTH),
    np.resize([0.0, 0.6], DEPTH),
    np.ones(DEPTH),  # attention only
)
LOGARITHMIC, RANDOM = "logarithmic decay", "drawn at random"  # attention of no ALiBi
TOWARDS_1 = (0.1, 0.5, 1.0)  # Prop. 4.3: how far every lambda moves to 1
MORE_SLOPE = (0.01, 0.3, 4.0)  # Prop. 4.4: what ALiBi adds to every slope

# A lower and an upper layer of 3 tokens. The lower one breaks Assumption 4.1: token 3 reads the first token, token 2
# reads itself. So what the upper layer moves from token 3 back to token 2 ends up later, not earlier.
NOT_MONOTONE = np.array(
    [[[1, 0, 0], [0.05, 0.95, 0], [0.9, 0.05, 0.05]], [[1, 0, 0], [0.5, 0.5, 0], [0.05, 0.5, 0.45]]]
)

# The figure of Propositions 4.2-4.5: its panels meet in one setting
SETTING = {"n": 64, "depth": 12, "lambda": 0.3, "slope": 2.0**-4, "diagonal": 0.0}
SETTING_WINDOW = 24

# The figure of Theorem 5.5
TOKENS = 8
DEEPEST = 10_000
FACTOR = 0.9  # c
ATTENTION = {"no positional bias": SLOPES[0], "ALiBi": SLOPES[2]}
EXPONENTS = {"c/t^2": 2, "c/t": 1, "c": 0}  # of t; only the first is summable

# Lemma 5.4(i): W_V of norm 1 + e_t, drawn anew in every layer, or the one direction that every layer stretches
WIDTH = 8
EXCESS = {"1/t^2": 2, "1/t": 1}  # e_t; only the first is summable, as Assumption 5.2 asks
ALIKE = "stretching alike"
VALUES = (ALIKE, "rotations", "Gaussian")


@dataclass(frozen=True)
class AttentionStack:
    """Attention of every layer and head, `[T, H, n, n]`, and the logits that it comes from but for the mask."""

    heads: Array
    slopes: tuple[float, ...]  # [H]
    diagonal: Array  # [T, H]
    window: int | None

    @property
    def n(self) -> int:
        """How many tokens there are."""
        return self.heads.shape[-1]

    @property
    def attention(self) -> Array:
        """Uniform mean over heads, `[T, n, n]` (Appendix B)."""
        return self.heads.mean(1)


def stacks() -> list[AttentionStack]:
    """Yield every stack of kernels of the grid."""
    return [
        _stack(n, slopes, strength, window)
        for n in LENGTHS
        for window in WINDOWS
        if window is None or window < n
        for slopes in SLOPES
        for strength in (0.0, *CONTENT)
    ]


def _stack(n: int, slopes: tuple[float, ...], strength: float, window: int | None) -> AttentionStack:
    diagonal = strength * _pattern(slopes)
    heads = np.stack([content_free_attention(n, slopes, layer, window) for layer in diagonal])
    return AttentionStack(heads, slopes, diagonal, window)


def other_kernels(n: int) -> dict[str, Array]:
    """Stochastically monotone attention `[T, H, n, n]` of no ALiBi: logarithmic decay, and kernels drawn at random.

    The logarithmic bias is -r log(1 + distance) (KERPLE, Chi et al. 2022). A random kernel has prefix masses that are
    those of the row before, times factors in [0, 1] that rise from prefix to prefix.
    """
    mask, distance = causal_mask(n), np.subtract.outer(np.arange(n), np.arange(n))
    biases = -np.multiply.outer((0.5, 2.0), np.log1p(np.where(mask, distance, 0)))
    logarithmic = np.broadcast_to(masked_softmax(biases, mask), (DEPTH, 2, n, n))
    factors = np.sort(np.random.default_rng(0).uniform(size=(DEPTH, 2, n, n)), axis=-1)
    prefix = np.ones((DEPTH, 2, n))
    rows = []
    for i in range(n):
        prefix = np.where(np.arange(n) < i, prefix * factors[..., i, :], 1.0)
        rows.append(np.diff(prefix, prepend=0.0))
    return {LOGARITHMIC: logarithmic, RANDOM: np.stack(rows, axis=-2)}


def _other_stacks() -> list[AttentionStack]:
    """Stacks of `other_kernels`, without content."""
    return [
        AttentionStack(heads, (0.0,) * heads.shape[1], np.zeros(heads.shape[:2]), None)
        for n in LENGTHS
        for heads in other_kernels(n).values()
    ]


def rotary_logits(n: int) -> Array:
    """Logits `[T, n, n]` of random queries and keys of two planes, turned by RoPE; bounded, as Assumption 5.3 asks."""
    rng = np.random.default_rng(0)
    query, key = rng.normal(size=(2, DEPTH, n, 2)) + 1j * rng.normal(size=(2, DEPTH, n, 2))
    rotation = np.exp(1j * np.multiply.outer(np.arange(n), (1.0, 0.1)))
    return np.einsum("tip,tjp->tij", query * rotation, (key * rotation).conj()).real


def _pattern(slopes: tuple[float, ...]) -> Array:
    """Positive content that differs from layer to layer and head to head, at most 1, `[T, H]`."""
    return (1 + np.add.outer(np.arange(DEPTH), np.arange(len(slopes))) % 3) / 3


def proposition_tables(predicted: Path, scale: str) -> dict[str, pd.DataFrame]:
    """The verdicts, for programs and for people, and the curves of the figures `forces` and `dichotomy`."""
    verdicts = proposition_checks(predicted, scale)
    return {"csv": verdicts, "md": readable(verdicts), "forces": forces(), "dichotomy": dichotomy()}


def proposition_checks(predicted: Path, scale: str) -> pd.DataFrame:
    """Return a verdict on every statement, and on whether its hypotheses hold and are needed.

    It is in the schema of `judge.COLUMNS`, with keys; `predicted` is the registry of predictions.
    """
    rows = judge(chain.from_iterable(proposition_statements()), predictions(predicted, "structural"))
    return table("structural", scale, rows)


def proposition_statements() -> tuple[Iterator[Statistic], ...]:
    """Yield what every statement is judged by, statement by statement, worked out as it is read."""
    grid, no_alibi = stacks(), _other_stacks()
    without_content = [stack for stack in grid if not stack.diagonal.any()]
    causal = [stack for stack in grid if stack.window is None]
    return (
        _assumption(grid),
        _forces([*grid, *no_alibi], [*without_content, *no_alibi]),
        _without_assumption(),
        _mixed_signs(without_content),
        _bounds(causal),
        _dichotomy(),
        _hidden_states(),
    )


def _worst(
    name: str, comparisons: int, by_network: Mapping[str, float], setting: Mapping[str, object] | None = None
) -> Statistic:
    """What was largest among a number of comparisons."""
    return Statistic(name, pd.DataFrame([by_network]), setting or {}, worst_among(comparisons))


def _violation(name: str, slack: Iterable[Array], setting: Mapping[str, object] | None = None) -> Statistic:
    """How far the comparison that speaks most against a statement violates it, and how large the largest effect is."""
    every_slack = np.concatenate([array.ravel() for array in slack])
    violation, effect = (float(np.maximum(largest, 0.0)) for largest in (-every_slack.min(), every_slack.max()))
    return _worst(name, every_slack.size, {"violation": violation, "effect": effect}, setting)


def _assumption(grid: list[AttentionStack]) -> Iterator[Statistic]:
    no_alibi = [other_kernels(n) for n in LENGTHS]
    kinds = {
        "ALiBi": [stack.attention for stack in grid if not stack.diagonal.any()],
        "ALiBi, positive diagonal content": [stack.attention for stack in grid if (stack.diagonal > 0).any()],
        "ALiBi, negative diagonal content": [stack.attention for stack in grid if (stack.diagonal < 0).any()],
        LOGARITHMIC: [kernels[LOGARITHMIC] for kernels in no_alibi],
        RANDOM: [kernels[RANDOM] for kernels in no_alibi],
    }
    for kind, stack in kinds.items():
        violation = max(propositions.monotonicity_violation(kernels) for kernels in stack)
        triples = sum(prod(kernels.shape[:-2]) * comb(kernels.shape[-1] + 1, 3) for kernels in stack)
        name = "drawn kernels" if kind == RANDOM else "smooth kernels"
        yield _worst(f"Assumption 4.1: {name}", triples, {"violation": violation}, {"kind": kind})


def _forces(grid: list[AttentionStack], without_content: list[AttentionStack]) -> Iterator[Statistic]:
    """Propositions 4.2-4.5 where their hypotheses are met: no violation, and an effect that can be seen.

    The claims say what holds without exception; that its effect can be seen at all is our addition.
    """
    slack = {
        "Proposition 4.2: a further layer": [
            propositions.primacy_drift(stack.attention, mixing) for stack in grid for mixing in SCHEDULES
        ],
        "Proposition 4.3: larger lambda": [
            propositions.residual_drift(stack.attention, mixing, mixing + share * (1 - mixing))
            for stack in grid
            for mixing in SCHEDULES
            for share in TOWARDS_1
        ],
        "Proposition 4.4: steeper ALiBi": [
            propositions.positional_drift(stack.heads, alibi_bias(stack.n, [more]), mixing)
            for stack in grid
            for mixing in SCHEDULES
            for more in MORE_SLOPE
        ],
        **{
            f"Proposition 4.5: {name} diagonal content": [
                sign * propositions.content_drift(stack.heads, strength * _pattern(stack.slopes), mixing)
                for stack in without_content
                for mixing in SCHEDULES
                for strength in CONTENT
                if strength * sign > 0
            ]
            for name, sign in (("positive", 1), ("negative", -1))
        },
    }
    for name, arrays in slack.items():
        yield _violation(name, arrays)


def _without_assumption() -> Iterator[Statistic]:
    """The same statements on `NOT_MONOTONE`: each is violated, so none can do without the assumption."""
    heads, mixing = NOT_MONOTONE[:, None], np.ones(2)
    only_above = np.array([0.0, 1.0])
    slack = {
        "Proposition 4.2": propositions.primacy_drift(NOT_MONOTONE, mixing),
        "Proposition 4.3": propositions.residual_drift(NOT_MONOTONE, np.array([1.0, 0.1]), mixing),
        "Proposition 4.4": propositions.positional_drift(heads, alibi_bias(3, only_above)[:, None], mixing),
        "Proposition 4.5": propositions.content_drift(heads, 2 * only_above[:, None], mixing),
    }
    for item, drift in slack.items():
        yield _worst("Assumption 4.1: a kernel that breaks it", drift.size, {item: -float(drift.min())})


def _mixed_signs(without_content: list[AttentionStack]) -> Iterator[Statistic]:
    """Prop. 4.5 with content of both signs: what one rollout both gains and loses, at its largest."""
    lower_half = np.arange(DEPTH) < DEPTH // 2
    drifts = [
        propositions.content_drift(stack.heads, np.where(lower_half[:, None], 2, -2) * _pattern(stack.slopes), mixing)
        for stack in without_content
        for mixing in SCHEDULES
    ]
    both_ways = max(float(np.minimum(drift.max(), -drift.min())) for drift in drifts)
    yield _worst("Proposition 4.5: content of both signs", sum(drift.size for drift in drifts), {"drift": both_ways})


def _bounds(causal: list[AttentionStack]) -> Iterator[Statistic]:
    """Lemma 5.4(ii) and Theorem 5.5 at finite depth, with ALiBi and content, and with RoPE."""
    logits = [alibi_bias(stack.n, stack.slopes) + stack.diagonal[..., None, None] * np.eye(stack.n) for stack in causal]
    rotary = [rotary_logits(n) for n in LENGTHS]
    yield _violation("Lemma 5.4(ii): floor", [propositions.softmax_floor(of_stack) for of_stack in [*logits, *rotary]])
    attentions = [stack.attention for stack in causal]
    attentions += [masked_softmax(of_length, causal_mask(of_length.shape[-1])) for of_length in rotary]
    for name, slack in {
        "Theorem 5.5(i): retention": propositions.retention,
        "Theorem 5.5(ii): collapse": propositions.collapse,
        "Theorem 5.5(ii): exponential": propositions.exponential_step,
    }.items():
        yield _violation(name, [slack(attention, mixing) for attention in attentions for mixing in SCHEDULES])


def _dichotomy() -> Iterator[Statistic]:
    curves, depths = dichotomy(), {"earlier": DEEPEST // 10, "depth": DEEPEST}
    normal = curves[["value", "lower", "upper"]].clip(lower=np.finfo(float).tiny)  # below it, nothing is to compare
    slack = [normal["upper"] / normal["value"] - 1, normal["value"] / normal["lower"] - 1]
    yield _violation("Theorem 5.5: both bounds", [column.to_numpy() for column in slack], {"depth": DEEPEST})
    for (schedule, attention), curve in curves.groupby(["schedule", "attention"], sort=False):
        branch = "Theorem 5.5(i)" if EXPONENTS[str(schedule)] > 1 else "Theorem 5.5(ii)"
        by_depth = curve.set_index("depth")["value"]
        share = 1 - by_depth[DEEPEST] / by_depth[DEEPEST // 10]
        setting = {**depths, "lambda": schedule, "attention": attention}
        yield _worst(f"{branch}: mass lost at last", 1, {"share": share}, setting)


def _hidden_states() -> Iterator[Statistic]:
    """Lemma 5.4(i) on layers drawn at random: bounded where the excess is summable; beside it, where it is not.

    Rotations and Gaussian values let hidden states shrink. Growth is judged where every layer stretches tokens that are
    alike, which attains the bound.
    """
    depth = np.arange(1, DEEPEST + 1, dtype=float)
    mixing = np.full(DEEPEST, FACTOR)
    for name, exponent in EXCESS.items():
        kind, excess = "summable" if exponent > 1 else "not summable", depth**-exponent
        bound, exponential = propositions.growth_bound(mixing, excess), propositions.exponential_growth(mixing, excess)
        norms = {values: _norms(values, mixing, excess) for values in VALUES}
        slack = [*(1 - of_values / bound for of_values in norms.values()), 1 - bound / exponential]
        yield _violation(f"Lemma 5.4(i): bound, {kind}", slack, {"e": name})
        alike = norms[ALIKE]
        setting = {"earlier": DEEPEST // 10, "depth": DEEPEST, "e": name, "values": ALIKE}
        grown = float(alike[-1] / alike[DEEPEST // 10 - 1] - 1)
        yield _worst(f"Lemma 5.4(i): growth, {kind}", 1, {"growth": grown}, setting)
        yield _worst("Lemma 5.4(i): share of the bound", 1, {"share": float((alike / bound).max())}, {"e": name})


def _norms(kind: str, mixing: Array, excess: Array) -> Array:
    """`propositions.hidden_norms` where the spectral norm of W_V is 1 + `excess` in every layer."""
    rng = np.random.default_rng(0)
    states, logits = rng.normal(size=(TOKENS, WIDTH)), rng.normal(size=(WIDTH, WIDTH)) / WIDTH
    unit = rng.normal(size=(len(mixing), WIDTH, WIDTH))
    if kind == "rotations":
        unit, _ = np.linalg.qr(unit)
    elif kind == "Gaussian":
        unit /= np.linalg.norm(unit, 2, axis=(1, 2), keepdims=True)
    else:
        unit = np.broadcast_to(np.eye(WIDTH), unit.shape)
        states = np.broadcast_to(states[0], states.shape)  # tokens alike, which attention leaves as they are
    return propositions.hidden_norms(states, mixing, (1 + excess)[:, None, None] * unit, logits)


# What the figures draw


def forces() -> pd.DataFrame:
    """Share of the last row on the first quarter of the tokens, while one of four things changes at a time.

    One observation a row: proposition, varied (depth, lambda, slope, diagonal), at (its value), mask (causal, window),
    value, and shared (whether this is the setting in which the four panels meet).
    """
    sweeps = {
        ("4.2", "depth"): np.arange(1, 33),
        ("4.3", "lambda"): np.arange(41) / 40,
        ("4.4", "slope"): 2.0 ** np.linspace(-9, 0, 37),
        ("4.5", "diagonal"): np.linspace(-4, 4, 41),
    }
    return pd.DataFrame(
        [
            {
                "proposition": proposition,
                "varied": force,
                "at": float(at),
                "mask": mask,
                "value": _first_quarter({**SETTING, force: at}, window),
                "shared": bool(np.isclose(at, SETTING[force], rtol=1e-12, atol=1e-12)),
            }
            for (proposition, force), values in sweeps.items()
            for mask, window in {"causal": None, "window": SETTING_WINDOW}.items()
            for at in values
        ]
    )


def _first_quarter(setting: dict[str, float], window: int | None) -> float:
    """Return the share of the last row on the first quarter of the tokens, of a rollout with the keys of SETTING."""
    n, depth = int(setting["n"]), int(setting["depth"])
    mixing, content = np.full(depth, setting["lambda"]), np.full((depth, 1), setting["diagonal"])
    return float(last_row(n, mixing, [setting["slope"]], content, window)[: n // 4].sum())


def dichotomy() -> pd.DataFrame:
    """Return 1 - P(first token) of the last row by depth, between the bounds of Theorem 5.5, for schedules of lambda.

    One depth a row: schedule, attention, depth, value, lower (i) and upper (ii).
    """
    depth = np.arange(1, DEEPEST + 1)
    places = np.unique(np.geomspace(1, DEEPEST, 121).round().astype(int))
    curves = []
    for schedule, exponent in EXPONENTS.items():
        mixing = FACTOR / depth.astype(float) ** exponent
        for name, slopes in ATTENTION.items():
            attention = content_free_attention(TOKENS, slopes).mean(0)
            floor = propositions.attention_floor(attention)
            curve = pd.DataFrame(
                {
                    "schedule": schedule,
                    "attention": name,
                    "depth": depth,
                    "value": propositions.beyond_first(attention, mixing),
                    "lower": propositions.diagonal_bound(mixing, floor),
                    "upper": propositions.tail_bound(mixing, floor, TOKENS)[:, 0],
                }
            )
            curves.append(curve.iloc[places - 1])
    return pd.concat(curves, ignore_index=True)
