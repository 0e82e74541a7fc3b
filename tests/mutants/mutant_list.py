"""Smallest changes of every theorem, proposition and law whose check holds: its mutants, which the check must notice.

A mutant replaces one function of the library, or one number, by a wrong one. The list was made before any of it was
run; `UNNOTICED`, at the end, says why a claim holds in spite of some. `mutants.py` beside it runs the list and writes
the page.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import pi
from typing import Any

import numpy as np

from position_bias.emergence import checks_theory as emergence_checks_theory
from position_bias.emergence import theory as emergence_theory
from position_bias.layernorm import checks_theory as layernorm_checks_theory
from position_bias.layernorm import theory as layernorm_theory
from position_bias.structural import checks_theory as structural_checks_theory
from position_bias.structural import propositions
from position_card.rollout.attention import alibi_bias, causal_mask, masked_softmax
from position_card.rollout.last_row import transition

Wrong = Callable[[Any], Any]  # makes the wrong function, or number, from the right one


AT_BOTTOM = "each layer at the bottom of the product, not on its top"
ONE_MORE_EARLIER = "one more earlier token: j for j - 1, or for j - K"
WITH_AND_WITHOUT = "without residual for with it, and with for without"


@dataclass(frozen=True)
class Mutant:
    """One change of what a claim is judged by."""

    claim: str  # id in published/claims.csv
    words: str
    place: tuple[Any, str]  # what is replaced: a module or class, and the name in it
    wrong: Wrong
    unnoticed: str = ""  # why the claim holds in spite of it


def _of(claims: str, holder: Any, *changes: tuple[str, str, Wrong]) -> list[Mutant]:
    """Mutants of each of these claims, by words, by what is changed in a module or class, and by how."""
    return [Mutant(claim, words, (holder, name), wrong) for claim in claims.split() for words, name, wrong in changes]


def _with(position: int, change: Callable[[Any], Any]) -> Wrong:
    """The same function of other arguments: `change` is made to the one at this position."""
    return lambda right: (
        lambda *given, **named: right(*given[:position], change(given[position]), *given[position + 1 :], **named)
    )


def _result(change: Callable[[Any], Any]) -> Wrong:
    """What the function returns, changed."""
    return lambda right: lambda *given, **named: change(right(*given, **named))


def _scaled(factor: float) -> Wrong:
    return _result(lambda value: factor * value)


def _instead(wrong: Any) -> Wrong:
    """Another function, whatever the right one is."""
    return lambda right: wrong


REVERSED = _with(0, lambda attention: attention[..., ::-1, :])


# Theorems 4.1-4.3 of `emergence`


def _below_on_top(right: Any) -> Any:
    """Each further layer at the bottom of the product, in place of its top."""

    def products(attention: Any) -> Any:
        layers = [attention[0]]
        for layer in attention[1:]:
            layers.append(layers[-1] @ layer)
        return np.stack(layers)

    return products


def _one_layer_fewer(right: Any) -> Any:
    return lambda attention: np.concatenate(
        [np.broadcast_to(np.eye(attention.shape[-1]), (1, *attention.shape[1:])), right(attention)[:-1]]
    )


def _floor_of_windows(right: Any) -> Any:
    """Epsilon, but not the weights of many layers, which reach from every token to the first."""
    return lambda attention, mask: right(attention, mask) * (1 if mask[-1, 0] else 1.05)


def _step(exponent: Any) -> Any:
    return exponent + exponent[1] - exponent[0]


MASKS = [
    *_of(
        "emergence-theorem-4-1 emergence-theorem-4-2 emergence-theorem-4-3",
        emergence_theory,
        ("t + 1 for t", "_log_bound", _with(3, _step)),
        ("2t for t", "_log_bound", _with(3, lambda exponent: 2 * exponent)),
        (ONE_MORE_EARLIER, "_log_bound", _with(2, lambda earlier: earlier + 1)),
        ("C 5 % smaller", "_log_bound", _with(0, lambda constant: 0.95 * constant)),
        ("rows of every layer in reverse order", "products", REVERSED),
        (AT_BOTTOM, "products", _below_on_top),
        ("one layer fewer in the product", "products", _one_layer_fewer),
        (
            "the limit from the second token on",
            "mass_beyond",
            _instead(lambda P, K: P[..., 0] + P[..., K + 1 :].sum(-1)),
        ),
    ),
    *_of(
        "emergence-theorem-4-1 emergence-theorem-4-3",
        emergence_theory,
        ("epsilon 5 % larger", "prefix_bound", _with(0, lambda e: 1.05 * e)),
    ),
    *_of(
        "emergence-theorem-4-2",
        emergence_theory,
        ("epsilon 5 % larger", "smallest_weight", _floor_of_windows),
        ("half of R", "walk_length", _result(lambda R: max(1, R // 2))),
        ("a third of R", "walk_length", _result(lambda R: max(1, R // 3))),
        ("R = 1", "walk_length", _result(lambda R: 1)),
        ("R - 1 for R", "walk_length", _result(lambda R: R - 1)),
        ("R + 1 for R", "walk_length", _result(lambda R: R + 1)),
    ),
    *_of(
        "emergence-theorem-4-2",
        emergence_checks_theory,
        ("windows of one more token", "sliding_window_mask", _with(1, lambda window: window + 1)),
        ("windows of one token fewer", "sliding_window_mask", _with(1, lambda window: window - 1)),
    ),
    *_of(
        "emergence-theorem-4-2-layers",
        emergence_theory,
        ("half of R", "walk_length", _result(lambda R: max(1, R // 2))),
        ("a third of R", "walk_length", _result(lambda R: max(1, R // 3))),
        ("the square of R", "walk_length", _result(lambda R: R**2)),
        ("length over w in place of w - 1", "walk_length", _with(1, lambda window: window + 1)),
        ("windows of one more token", "sliding_window_mask", _with(1, lambda window: window + 1)),
        ("no windows", "sliding_window_mask", _instead(lambda n, window: causal_mask(n))),
    ),
    *_of(
        "emergence-theorem-4-3",
        emergence_theory,
        ("j - 1 for j - K", "prefix_bound", lambda right: lambda e, n, K, t: right(e, n, 1, t)[..., K - 1 :]),
        ("kappa 5 % larger", "prefix_share", _scaled(1.05)),
        ("kappa without 1 / K", "prefix_share", lambda right: lambda A, K: K * right(A, K)),
        ("K - 1 prefix tokens in the limit", "mass_beyond", _with(1, lambda centres: max(1, centres - 1))),
    ),
    *_of(
        "emergence-theorem-4-3",
        emergence_checks_theory,
        ("a causal mask for the prefix mask", "prefix_mask", _instead(lambda n, prefix: causal_mask(n))),
    ),
]


# Lemma 4.4 and Theorem 4.5


def _constants_to(power: int) -> Wrong:
    """C^(t + 1 + power) for C^(t + 1)."""

    def wrong(right: Any) -> Any:
        def path_bounds(layers: Any, exponent: Any, low: Any, high: Any) -> Any:
            below, above = right(layers, exponent, low, high)
            return below + power * np.log(low)[:, None], above + power * np.log(high)[:, None]

        return path_bounds

    return wrong


BINOMIALS: tuple[tuple[str, str, Wrong], ...] = (
    ("the binomial dropped", "log_paths", _scaled(0)),
    ("the binomial squared", "log_paths", _scaled(2)),
    ("t + 1 for t in the binomial", "log_paths", _with(0, lambda depth: np.asarray(depth) + 1)),
    ("t - 1 for t in the binomial", "log_paths", _with(0, lambda depth: np.maximum(np.asarray(depth) - 1, 0))),
    ("x + 1 for x in the binomial", "log_paths", _with(1, lambda distance: np.asarray(distance) + 1)),
    ("C^t for C^(t+1)", "path_bounds", _constants_to(-1)),
    ("C^(t+2) for C^(t+1)", "path_bounds", _constants_to(1)),
)


def _distance(n: int) -> Any:
    return -alibi_bias(n, [1.0])[0]


def _one_row_fewer(right: Any) -> Any:
    return lambda attention, layers: np.vstack([np.eye(len(attention))[:1], right(attention, layers)[:-1]])


def _decay_of(power: int) -> Wrong:
    """Attention whose logits fall with another power of the distance."""
    return lambda right: (
        lambda logits, m: right(logits + m * (_distance(logits.shape[-1]) - _distance(logits.shape[-1]) ** power), m)
    )


DECAY = [
    *_of(
        "emergence-theorem-4-5",
        emergence_theory,
        *BINOMIALS,
        ("m 5 % larger in attention", "decay_attention", _with(1, lambda m: 1.05 * m)),
        ("m 5 % smaller in attention", "decay_attention", _with(1, lambda m: 0.95 * m)),
        ("the square of the distance", "decay_attention", _decay_of(2)),
        ("no decay: distance^0", "decay_attention", _decay_of(0)),
        ("the sign of m", "decay_attention", lambda right: lambda z, m: right(z + 2 * m * _distance(z.shape[-1]), m)),
        ("rows of every layer in reverse order", "decay_attention", _result(lambda attention: attention[..., ::-1, :])),
        (AT_BOTTOM, "products", _below_on_top),
        ("one layer fewer in the product", "products", _one_layer_fewer),
        ("C_min 5 % larger", "decay_floor", _scaled(1.05)),
        ("C_min without 1 - e^-m", "decay_floor", _instead(lambda spread, m: np.exp(-spread))),
        ("C_max 5 % smaller", "decay_ceiling", _scaled(0.95)),
        ("half of I_max - I_min", "logit_range", _scaled(0.5)),
    ),
    *_of(
        "emergence-theorem-4-5-peak",
        emergence_theory,
        ("t + 1 for t", "decay_peak", _with(0, lambda t: t + 1)),
        ("t - 1 for t", "decay_peak", lambda right: lambda t, m: right(t, m) - right(1, m)),
        ("e^m for e^m - 1", "decay_peak", _instead(lambda t, m: t / np.exp(m))),
        ("e^m + 1 for e^m - 1", "decay_peak", _instead(lambda t, m: t / (np.exp(m) + 1))),
        ("the sign of m", "decay_peak", _instead(lambda t, m: -t / np.expm1(-m))),
        ("m 5 % larger", "decay_peak", _with(1, lambda m: 1.05 * m)),
        ("distances counted from 1", "peak", _result(lambda place: place + 1)),
        ("the nearest of ties", "peak", _instead(lambda profile: int(profile.argmax()))),
        ("one layer fewer in the product", "last_rows", _one_row_fewer),
    ),
]


# Lemma 4.6, Theorem 4.7 and Appendix I


def _noise(right: Any) -> Any:
    def logits(rotary: Any) -> Any:
        found = right(rotary)
        return np.random.default_rng(0).normal(0, found.std(), found.shape)

    return logits


def _turned_alike(right: Any) -> Any:
    """Queries and keys turned so that angles of positions add, not subtract."""

    def logits(rotary: Any) -> Any:
        turn = np.exp(1j * np.arange(rotary.n)[:, None] * rotary.angle * rotary.multiples)
        return ((rotary.query * turn) @ (rotary.key.conj() * turn).swapaxes(-1, -2)).real

    return logits


def _alibi(slope: Callable[[float], float]) -> Wrong:
    """Content-free ALiBi attention in the place of RoPE."""
    return lambda right: lambda n, angle, strength: masked_softmax(-slope(angle) * _distance(n), causal_mask(n))


def _split(steps: Callable[[Any], Any]) -> Wrong:
    """c' over another number of steps than t + 1."""

    def wrong(right: Any) -> Any:
        def bounds(turn: Any) -> Any:
            t = np.arange(len(turn.rows))[:, None, None]
            lower, upper = right(turn)
            return lower, upper + 4 * turn.strength / pi**2 * turn.squared_angles * (1 / (t + 1) - 1 / steps(t))

        return bounds

    return wrong


def _other_turn(change: Callable[[Any], dict[str, Any]]) -> Wrong:
    return lambda right: lambda turn: right(replace(turn, **change(turn)))


def _turned(change: Callable[[Any, Any], Any]) -> Wrong:
    """Other angles: `change` is made to their squares, of which the second is that of one step."""
    return _other_turn(lambda turn: {"squared_angles": change(turn.squared_angles, turn.squared_angles[1])})


RANDOM, FREE = "rope_logits", "rope_attention"
LEMMA, THEOREM = "emergence-lemma-4-6", "emergence-theorem-4-7-bounds"
ROPE = [
    *_of(
        f"{LEMMA} {THEOREM}",
        emergence_theory,
        ("logits of RoPE replaced by 0", RANDOM, _scaled(0)),
        ("logits of RoPE replaced by their negative", RANDOM, _scaled(-1)),
        ("logits of RoPE replaced by noise of their size", RANDOM, _noise),
        (
            "logits of RoPE replaced by those of ALiBi",
            RANDOM,
            lambda right: lambda of: 0 * right(of) - _distance(of.n) / 5,
        ),
        ("angles of positions added, not subtracted", RANDOM, _turned_alike),
        ("the angle 5 % smaller in attention", FREE, _with(1, lambda angle: 0.95 * angle)),
        ("logits of content-free RoPE replaced by 0", FREE, _with(2, lambda strength: 0 * strength)),
        ("logits of content-free RoPE replaced by those of ALiBi", FREE, _alibi(lambda angle: 0.2)),
    ),
    *_of(
        f"{LEMMA} {THEOREM}",
        emergence_theory.QuarterTurn,
        ("c and c' 5 % smaller", "bounds", _other_turn(lambda turn: {"strength": 0.95 * turn.strength})),
        ("c and c' 5 % larger", "bounds", _other_turn(lambda turn: {"strength": 1.05 * turn.strength})),
        ("C of the lower bound 5 % larger", "bounds", _other_turn(lambda turn: {"least": 1.05 * turn.least})),
        ("C of the upper bound 5 % smaller", "bounds", _other_turn(lambda turn: {"most": 0.95 * turn.most})),
        ("x for x^2", "bounds", _turned(lambda x2, unit: np.sqrt(x2 * unit))),
        ("x^3 for x^2", "bounds", _turned(lambda x2, unit: x2**1.5 / unit**0.5)),
        ("theta for theta^2", "bounds", _turned(lambda x2, unit: x2 / unit**0.5)),
    ),
    *_of(
        THEOREM,
        emergence_theory,
        *BINOMIALS,
        ("rows of every layer in reverse order", "products", REVERSED),
        (AT_BOTTOM, "products", _below_on_top),
        ("one layer fewer in the product", "products", _one_layer_fewer),
    ),
    *_of(
        THEOREM,
        emergence_theory.QuarterTurn,
        ("c' for c' / (t+1), one for every t", "bounds", _split(lambda t: 1)),
        ("c' / 2 for c' / (t+1), as Eq. 16 has it", "bounds", _split(lambda t: np.minimum(t + 1, 2))),
        ("c' / t for c' / (t+1)", "bounds", _split(lambda t: np.maximum(t, 1))),
        ("c' / (t+2) for c' / (t+1)", "bounds", _split(lambda t: t + 2)),
    ),
    *_of(
        "emergence-theorem-4-7-peak",
        emergence_theory,
        ("L: t fixed", "critical_point", _with(0, lambda t: 1)),
        ("L: theta fixed", "critical_point", _with(1, lambda c: 0.01)),
        ("L: theta for theta^2, as printed", "critical_point", _with(1, lambda c: c**0.5)),
        ("L: 1 / theta for theta", "critical_point", _with(1, lambda c: 1e-4 / c)),
        ("logits replaced by 0", FREE, _with(2, lambda strength: 0 * strength)),
        ("logits replaced by their negative", FREE, _with(2, lambda strength: -strength)),
        ("the angle fixed", FREE, lambda right: lambda n, angle, strength: right(n, pi / (n - 1), strength)),
        ("ALiBi for RoPE, one slope", FREE, _alibi(lambda angle: 0.05)),
        ("ALiBi for RoPE, slopes as angles", FREE, _alibi(lambda angle: 20 * angle)),
        ("one layer at every t", "last_rows", lambda right: lambda A, layers: np.repeat(right(A, 1), layers, 0)),
    ),
]


# Propositions 4.2-4.5, Lemma 5.4 and Theorem 5.5 of `structural`


def _against_the_latest(bias: Any) -> Any:
    return bias + 2 * bias.min() * np.eye(bias.shape[-1])


def _for_the_middle(bias: Any) -> Any:
    of_last = bias[..., -1:, :]  # which rises from key to key
    return -np.abs(of_last - of_last.mean())


def _alternating(diagonal: Any) -> Any:
    return diagonal * np.where(np.arange(len(diagonal)) % 2, -1, 1)[:, None]


def _before_itself(right: Any) -> Any:
    """Content where a token reads the one before, in place of itself."""
    return lambda attention, logits: right(attention, np.roll(logits, -1, axis=-1))


def _hole(right: Any) -> Any:
    """Attention without the token before."""

    def attention(n: int, *given: Any) -> Any:
        found = right(n, *given) * (_distance(n) != 1)
        return found / found.sum(axis=-1, keepdims=True)

    return attention


def _ranges(logits: Any) -> Any:
    """B of Lemma 5.4(ii), `[..., 1]`."""
    mask = causal_mask(logits.shape[-1])
    highest, lowest = (np.where(mask, logits, fill) for fill in (-np.inf, np.inf))
    return (highest.max(-1) - lowest.min(-1)).max(-1, keepdims=True)


def _softmax_floor(factor: Callable[[Any], Any]) -> Wrong:
    """e^-B / n multiplied by a factor."""
    return lambda right: lambda logits: (right(logits) + 1) / factor(logits) - 1


def _larger_below(right: Any) -> Any:
    """Larger lambda in the lower half of the layers, smaller above."""

    def drift(attention: Any, mixing: Any, larger: Any) -> Any:
        lower = np.arange(len(mixing)) < len(mixing) // 2
        return right(attention, mixing, np.where(lower, larger, np.maximum(2 * mixing - larger, 0)))

    return drift


def _rollouts_below(attention: Any, mixing: Any) -> Any:
    return _below_on_top(None)(np.stack([transition(layer, mix) for layer, mix in zip(attention, mixing, strict=True)]))


def _growing(right: Any) -> Any:
    """Kernels that grow with distance."""
    return lambda *given: masked_softmax(-np.log(np.maximum(right(*given), 1e-300)), right(*given) > 0)


def _one_layer_fewer_in_the_bound(right: Any) -> Any:
    return lambda mixing, floor: np.concatenate([[1.0], right(mixing, floor)[:-1]])


def _one_more_earlier(mixing: Any, floor: Any, n: int) -> Any:
    return (1 - mixing[:, None] * floor * np.arange(2, n + 1)).cumprod(axis=0)


def _one_layer_more(right: Any) -> Any:
    return lambda mixing, floor, n: right(np.append(mixing, mixing[-1]), floor, n)[1:]


def _squared_in_the_exponential(right: Any) -> Any:
    return lambda mixing, floor, n: right(mixing, floor, n) ** np.arange(1, n)


FORCES = {
    "structural-proposition-4-2": "primacy_drift",
    "structural-proposition-4-3": "residual_drift",
    "structural-proposition-4-4": "positional_drift",
    "structural-proposition-4-5": "content_drift",
}
PROPOSITIONS = [
    *_of(
        " ".join(FORCES),
        propositions,
        ("single weights in place of prefix masses", "prefix_mass", _instead(lambda profile: profile)),
        ("the masses of tokens 2 to k", "prefix_mass", lambda right: lambda mass: right(mass) - mass[..., :1]),
        ("rows of every layer in reverse order", "transition", REVERSED),
    ),
    *(Mutant(claim, "the sign of the effect", (propositions, drift), _scaled(-1)) for claim, drift in FORCES.items()),
    *_of(
        "structural-proposition-4-2",
        propositions,
        ("the sign of lambda", "transition", _with(1, np.negative)),
        ("lambda 10 % larger, above 1", "transition", _with(1, lambda mix: 1.1 * mix)),
        (AT_BOTTOM, "rollouts", _instead(_rollouts_below)),
    ),
    *_of(
        "structural-proposition-4-3",
        propositions,
        ("larger lambda in the lower half of the layers, smaller above", "residual_drift", _larger_below),
        ("the sign of lambda", "transition", _with(1, np.negative)),
    ),
    *_of(
        "structural-proposition-4-4",
        propositions,
        ("the sign of the bias", "positional_drift", _with(1, np.negative)),
        (
            "a bias against the latest key",
            "positional_drift",
            _with(1, _against_the_latest),
        ),
        ("a bias that favours the middle", "positional_drift", _with(1, _for_the_middle)),
    ),
    *_of(
        "structural-proposition-4-5",
        propositions,
        ("content of both signs", "content_drift", _with(1, _alternating)),
        ("content on the token before", "reweighted", _before_itself),
    ),
    *_of(
        "structural-smooth-kernels",
        structural_checks_theory,
        ("rows of every layer in reverse order", "content_free_attention", _result(lambda A: A[..., ::-1, :])),
        ("kernels that skip the token before", "content_free_attention", _hole),
        ("kernels that grow with distance", "content_free_attention", _growing),
    ),
    *_of(
        "structural-assumption-needed",
        structural_checks_theory,
        ("the upper layer twice, which is monotone", "NOT_MONOTONE", lambda right: right[[1, 1]]),
        ("the layers in reverse order", "NOT_MONOTONE", lambda right: right[::-1]),
    ),
    *_of(
        "structural-lemma-5-4-ii",
        propositions,
        ("the floor 5 % larger", "softmax_floor", _softmax_floor(lambda logits: 1.05)),
        ("n - 1 for n", "softmax_floor", _softmax_floor(lambda z: z.shape[-1] / max(z.shape[-1] - 1, 0.5))),
        ("B 5 % smaller", "softmax_floor", _softmax_floor(lambda logits: np.exp(0.05 * _ranges(logits)))),
        ("the sign of B", "softmax_floor", _softmax_floor(lambda logits: np.exp(2 * _ranges(logits)))),
    ),
    *_of(
        "structural-lemma-5-4-i",
        propositions,
        ("the excess 5 % smaller", "growth_bound", _with(1, lambda excess: 0.95 * excess)),
        ("lambda 5 % smaller", "growth_bound", _with(0, lambda mixing: 0.95 * mixing)),
        ("half the layers", "growth_bound", _result(lambda bound: bound[np.arange(len(bound)) // 2])),
        ("the excess squared", "growth_bound", _with(1, np.square)),
        ("the sign of the excess", "growth_bound", _with(1, np.negative)),
    ),
    *_of(
        "structural-theorem-5-5-i structural-theorem-5-5-ii",
        propositions,
        ("epsilon 5 % larger", "attention_floor", _scaled(1.05)),
        ("rows of every layer in reverse order", "transition", REVERSED),
    ),
    *_of(
        "structural-theorem-5-5-i",
        propositions,
        ("lambda 5 % smaller in the bound", "diagonal_bound", _with(0, lambda mixing: 0.95 * mixing)),
        ("lambda^2 for lambda in the bound", "diagonal_bound", _with(0, np.square)),
        ("1 - lambda for lambda in the bound", "diagonal_bound", _with(0, lambda mixing: 1 - mixing)),
        ("one layer fewer in the bound", "diagonal_bound", _one_layer_fewer_in_the_bound),
        ("the sign of epsilon", "diagonal_bound", _with(1, np.negative)),
        ("c/t for c/t^2: a sum that is not finite", "beyond_first", _with(1, lambda mixing: np.sqrt(0.9 * mixing))),
    ),
    *_of(
        "structural-theorem-5-5-ii",
        propositions,
        ("j for j - 1", "tail_bound", _instead(_one_more_earlier)),
        (
            "one layer more in the bound",
            "tail_bound",
            _one_layer_more,
        ),
        ("lambda 5 % larger in the product", "tail_bound", _with(0, lambda mixing: np.minimum(1.05 * mixing, 1))),
        ("lambda 5 % larger in the exponential", "exponential_bound", _with(0, lambda mixing: 1.05 * mixing)),
        ("(j - 1)^2 for j - 1 in the exponential", "exponential_bound", _squared_in_the_exponential),
        ("the sign of the exponent", "exponential_bound", _with(0, np.negative)),
        ("c/t^2 for c/t: a finite sum", "beyond_first", _with(1, np.square)),
    ),
]


# Layer 2 of `layernorm`, and what follows of it


def _layer_1(b_of: Callable[[Any, int], Any], sign: int = 1) -> Wrong:
    """Other weights of layer 1: b of E and n, and E with another sign of s."""

    def weights(n: int, alpha: float, strength: float) -> Any:
        E = np.exp(sign * strength * (1 - alpha))
        return E * b_of(E, n), b_of(E, n)

    return _instead(weights)


def _norms_without(part: str) -> Wrong:
    """q_j without a part of it."""

    def wrong(right: Any) -> Any:
        def squared_norms(n: int, alpha: float, rho: float, strength: float, width: Any = None) -> Any:
            (a, b), c = (
                layernorm_theory.first_weights(n, alpha, strength),
                layernorm_theory.pull(n, alpha, strength, width),
            )
            parts = {
                "common": (1 + rho + c) ** 2 * alpha,
                "own": (1 - alpha) * (rho + a + c) ** 2,
                "others": (1 - alpha) * np.arange(n) * b**2,
            }
            return sum(value for name, value in parts.items() if name != part)

        return squared_norms

    return wrong


def _divided_by(power_of_query: float, power_of_key: float) -> Wrong:
    """Scores of layer 2 over other powers of q_i and q_j than 1/2 each."""

    def wrong(right: Any) -> Any:
        def second_scores(n: int, alpha: float, rho: float, strength: float, *, norm: bool, width: Any = None) -> Any:
            scores = right(n, alpha, rho, strength, norm=False, width=width)
            q = layernorm_theory.squared_norms(n, alpha, rho, strength, width)
            return scores / np.outer(q**power_of_query, q**power_of_key) if norm else scores

        return second_scores

    return wrong


def _mirrored(right: Any) -> Any:
    """Keys before each query in reverse order."""

    def second_scores(*given: Any, **named: Any) -> Any:
        scores = right(*given, **named)
        for i in range(1, len(scores)):
            scores[i, :i] = scores[i, :i][::-1].copy()
        return scores

    return second_scores


def _seen(change: Callable[..., tuple[Any, ...]], sign: int = 1) -> Wrong:
    """Recency of another network: norm, residual, anisotropy and layer are changed."""
    return lambda right: lambda runs, *setting: sign * right(runs, *change(*setting))


SETTINGS: tuple[tuple[str, str, Wrong], ...] = (
    ("anisotropy 5 points larger", "second_scores", _with(1, lambda alpha: min(alpha + 0.05, 0.95))),
    ("residual 5 % larger", "second_scores", _with(2, lambda rho: 1.05 * rho)),
    ("strength 5 % larger", "second_scores", _with(3, lambda strength: 1.05 * strength)),
    ("E + i for E + i - 1 in layer 1", "first_weights", _layer_1(lambda E, n: 1 / (E + np.arange(1, n + 1)))),
    ("the sign of s in layer 1", "first_weights", _layer_1(lambda E, n: 1 / (E + np.arange(n)), sign=-1)),
    ("q_j without the other tokens' weights", "squared_norms", _norms_without("others")),
    ("q_j without the token's own weight", "squared_norms", _norms_without("own")),
    ("norms, not their squares' roots: q_i q_j for sqrt(q_i q_j)", "second_scores", _divided_by(1, 1)),
    ("the norm of the query alone", "second_scores", _divided_by(0.5, 0)),
    ("no norm", "second_scores", _divided_by(0, 0)),
    ("multiplied by norms, not divided", "second_scores", _divided_by(-0.5, -0.5)),
    ("keys in reverse order", "second_scores", _mirrored),
)
KEYS_REVERSED = _seen(lambda *setting: setting, sign=-1)
SWAPPED = {"none": "rms", "rms": "none"}
NETWORKS: tuple[tuple[str, str, Wrong], ...] = (
    ("keys in reverse order", "recency", KEYS_REVERSED),
    ("the norm taken out, or put in", "recency", _seen(lambda norm, *rest: (SWAPPED[norm], *rest))),
    ("layer 1", "recency", _seen(lambda norm, rho, alpha, layer: (norm, rho, alpha, 1))),
    (WITH_AND_WITHOUT, "recency", _seen(lambda norm, rho, *rest: (norm, 1 - rho, *rest))),
)
DECODER = [
    *_of("layernorm-theorem layernorm-three-tokens", layernorm_theory, *SETTINGS),
    *_of(
        "layernorm-theorem", layernorm_theory, ("q_j constant", "squared_norms", _instead(lambda n, *given: np.ones(n)))
    ),
    *_of("layernorm-recency layernorm-primacy", layernorm_checks_theory.Runs, *NETWORKS),
    *_of(
        "layernorm-primacy",
        layernorm_checks_theory.Runs,
        ("layer 2", "recency", _seen(lambda norm, rho, alpha, layer: (norm, rho, alpha, 2))),
    ),
]


# Why a claim holds in spite of a mutant

WEAKER = "a weaker bound, which is true as well"
SPARE = "an inequality with room to spare: the bound is not attained"
ANY_ORDER = "layers are arbitrary, and so is their order: true as well"
ANY_SETTING = "the theorem is of every anisotropy, residual and strength: true as well"
BOTH = "no change: the claim is of networks without residual and of those with it"
DIRECTIONS = "the claim is of directions alone"
STRONGER = "a stronger bound, which is true as well: all j - 1 earlier tokens take their share"
UNNOTICED = {
    "emergence-theorem-4-1": {"C 5 % smaller": SPARE, AT_BOTTOM: ANY_ORDER},
    "emergence-theorem-4-2": {
        "t + 1 for t": SPARE,
        "2t for t": f"{SPARE}; the 2 in t / 2R is not needed",
        ONE_MORE_EARLIER: SPARE,
        "C 5 % smaller": SPARE,
        AT_BOTTOM: ANY_ORDER,
    },
    "emergence-theorem-4-3": {
        "t + 1 for t": SPARE,
        ONE_MORE_EARLIER: f"{SPARE}; so is j - 1 for j - K",
        "C 5 % smaller": SPARE,
        "epsilon 5 % larger": f"{SPARE}: j - 1 tokens are earlier, of which it counts j - K",
        "j - 1 for j - K": STRONGER,
    },
    "emergence-theorem-4-5": {"C^(t+2) for C^(t+1)": WEAKER, AT_BOTTOM: ANY_ORDER},
    "emergence-theorem-4-7-bounds": {"c' / (t+2) for c' / (t+1)": WEAKER, AT_BOTTOM: ANY_ORDER},
    "emergence-theorem-4-7-peak": {
        "L: theta for theta^2, as printed": f"{DIRECTIONS}, and this point moves the same way",
        "ALiBi for RoPE, slopes as angles": f"{DIRECTIONS}, and steeper slopes act as larger angles",
    },
    "structural-proposition-4-2": {AT_BOTTOM: "a further layer at the bottom moves mass to earlier tokens as well"},
    "structural-theorem-5-5-i": {"the sign of epsilon": WEAKER},
    "structural-theorem-5-5-ii": {"the sign of the exponent": WEAKER},
    "layernorm-theorem": {
        **dict.fromkeys(("anisotropy 5 points larger", "residual 5 % larger", "strength 5 % larger"), ANY_SETTING),
        "E + i for E + i - 1 in layer 1": "q_j falls with these weights, too",
        "the sign of s in layer 1": "q_j falls for every E above 0, so it does for E below 1",
        "q_j without the other tokens' weights": "the token's own weight alone makes q_j fall",
        "norms, not their squares' roots: q_i q_j for sqrt(q_i q_j)": f"{DIRECTIONS}, and these agree",
    },
    "layernorm-recency": {WITH_AND_WITHOUT: BOTH},
    "layernorm-primacy": {WITH_AND_WITHOUT: BOTH},
}
MUTANTS = tuple(
    replace(mutant, unnoticed=UNNOTICED.get(mutant.claim, {}).get(mutant.words, ""))
    for mutant in (*MASKS, *DECAY, *ROPE, *PROPOSITIONS, *DECODER)
)
