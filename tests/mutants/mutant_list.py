"""Smallest changes of every theorem, proposition and law whose check holds: its mutants, which the check must notice.

A mutant replaces one function of the library, or one number, by a wrong one. The list was made before any of it was
run; `OTHERWISE`, at the end, says what was found. `mutants.py` beside it runs the list and writes the page.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import pi
from typing import Any

import numpy as np

from position_bias.attention import alibi_bias, causal_mask, masked_softmax
from position_bias.emergence import checks_theory as emergence_checks
from position_bias.emergence import theory as emergence
from position_bias.layernorm import checks_theory as layernorm_checks
from position_bias.layernorm import theory as layernorm
from position_bias.rollout.last_row import transition
from position_bias.structural import checks_theory as structural_checks
from position_bias.structural import propositions as structural

Wrong = Callable[[Any], Any]  # makes the wrong function, or number, from the right one


@dataclass(frozen=True)
class Mutant:
    """One change of what a claim is judged by."""

    claim: str  # id in published/claims.csv
    words: str
    place: tuple[Any, str]  # what is replaced: a module or class, and the name in it
    wrong: Wrong
    outcome: str = (
        "fails"  # the verdict on the claim, "refused" for none at all, or why it holds in spite of the mutant
    )


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


REVERSED_ROWS = _with(0, lambda attention: attention[..., ::-1, :])


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


def _on_the_second_token(right: Any) -> Any:
    return lambda products, centres: products.sum(axis=-1) - products[..., 1 : 1 + centres].sum(axis=-1)


def _floor_of_windows(right: Any) -> Any:
    """Epsilon, but not the weights of many layers, which reach from every token to the first."""
    return lambda attention, mask: right(attention, mask) * (1 if mask[-1, 0] else 1.05)


def _step(exponent: Any) -> Any:
    return exponent + exponent[1] - exponent[0]


BOUND = (emergence, "_log_bound")  # of constant, loss, earlier tokens, exponent
PRODUCTS = (emergence, "products")

MASKS = [
    *(
        Mutant(claim, words, place, wrong)
        for claim in ("emergence-theorem-4-1", "emergence-theorem-4-2", "emergence-theorem-4-3")
        for words, place, wrong in (
            ("t + 1 for t", BOUND, _with(3, _step)),
            ("2t for t", BOUND, _with(3, lambda exponent: 2 * exponent)),
            ("one more earlier token: j for j - 1, or for j - K", BOUND, _with(2, lambda earlier: earlier + 1)),
            ("C 5 % smaller", BOUND, _with(0, lambda constant: 0.95 * constant)),
            ("rows of every layer in reverse order", PRODUCTS, REVERSED_ROWS),
            ("each layer at the bottom of the product, not on its top", PRODUCTS, _below_on_top),
            ("one layer fewer in the product", PRODUCTS, _one_layer_fewer),
            ("the limit from the second token on", (emergence, "mass_beyond"), _on_the_second_token),
        )
    ),
    Mutant("emergence-theorem-4-1", "epsilon 5 % larger", (emergence, "prefix_bound"), _with(0, lambda e: 1.05 * e)),
    Mutant("emergence-theorem-4-2", "epsilon 5 % larger", (emergence, "smallest_weight"), _floor_of_windows),
    *(
        Mutant("emergence-theorem-4-2", words, (emergence, "walk_length"), _result(R))
        for words, R in (
            ("half of R", lambda R: max(1, R // 2)),
            ("a third of R", lambda R: max(1, R // 3)),
            ("R = 1", lambda R: 1),
            ("R - 1 for R", lambda R: R - 1),
            ("R + 1 for R", lambda R: R + 1),
        )
    ),
    *(
        Mutant("emergence-theorem-4-2", words, (emergence_checks, "sliding_window_mask"), _with(1, change))
        for words, change in (
            ("windows of one more token", lambda window: window + 1),
            ("windows of one token fewer", lambda window: window - 1),
        )
    ),
    *(
        Mutant(
            "emergence-theorem-4-2-layers",
            words,
            (emergence, "walk_length"),
            _result(R),
        )
        for words, R in (
            ("half of R", lambda R: max(1, R // 2)),
            ("a third of R", lambda R: max(1, R // 3)),
            ("the square of R", lambda R: R**2),
        )
    ),
    Mutant(
        "emergence-theorem-4-2-layers",
        "length over w in place of w - 1",
        (emergence, "walk_length"),
        lambda right: lambda n, window: right(n, window + 1),
    ),
    Mutant(
        "emergence-theorem-4-2-layers",
        "windows of one more token",
        (emergence, "sliding_window_mask"),
        _with(1, lambda window: window + 1),
    ),
    Mutant(
        "emergence-theorem-4-2-layers",
        "no windows",
        (emergence, "sliding_window_mask"),
        lambda right: lambda n, window: causal_mask(n),
    ),
    Mutant("emergence-theorem-4-3", "epsilon 5 % larger", (emergence, "prefix_bound"), _with(0, lambda e: 1.05 * e)),
    Mutant(
        "emergence-theorem-4-3",
        "j - 1 for j - K",
        (emergence, "prefix_bound"),
        lambda right: lambda floor, n, prefix, layers: right(floor, n, 1, layers)[..., prefix - 1 :],
    ),
    Mutant("emergence-theorem-4-3", "kappa 5 % larger", (emergence, "prefix_share"), _scaled(1.05)),
    Mutant(
        "emergence-theorem-4-3",
        "kappa without 1 / K",
        (emergence, "prefix_share"),
        lambda right: lambda attention, prefix: prefix * right(attention, prefix),
    ),
    Mutant(
        "emergence-theorem-4-3",
        "K - 1 prefix tokens in the limit",
        (emergence, "mass_beyond"),
        _with(1, lambda centres: max(1, centres - 1)),
    ),
    Mutant(
        "emergence-theorem-4-3",
        "a causal mask for the prefix mask",
        (emergence_checks, "prefix_mask"),
        lambda right: lambda n, prefix: causal_mask(n),
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


def _binomials(claim: str) -> list[Mutant]:
    changes: tuple[tuple[str, Wrong], ...] = (
        ("the binomial dropped", _scaled(0)),
        ("the binomial squared", _scaled(2)),
        ("t + 1 for t in the binomial", _with(0, lambda depth: np.asarray(depth) + 1)),
        ("t - 1 for t in the binomial", _with(0, lambda depth: np.maximum(np.asarray(depth) - 1, 0))),
        ("x + 1 for x in the binomial", _with(1, lambda distance: np.asarray(distance) + 1)),
    )
    return [
        *(Mutant(claim, words, (emergence, "log_paths"), wrong) for words, wrong in changes),
        Mutant(claim, "C^t for C^(t+1)", (emergence, "path_bounds"), _constants_to(-1)),
        Mutant(claim, "C^(t+2) for C^(t+1)", (emergence, "path_bounds"), _constants_to(1)),
    ]


def _distance(n: int) -> Any:
    return -alibi_bias(n, [1.0])[0]


def _decay_of(power: int) -> Wrong:
    """Attention whose logits fall with another power of the distance."""
    return lambda right: (
        lambda logits, m: right(logits + m * (_distance(logits.shape[-1]) - _distance(logits.shape[-1]) ** power), m)
    )


DECAY_PEAK = "emergence-theorem-4-5-peak"
DECAY = [
    *_binomials("emergence-theorem-4-5"),
    *(
        Mutant("emergence-theorem-4-5", words, (emergence, name), wrong)
        for words, name, wrong in (
            ("m 5 % larger in attention", "decay_attention", _with(1, lambda m: 1.05 * m)),
            ("m 5 % smaller in attention", "decay_attention", _with(1, lambda m: 0.95 * m)),
            ("the square of the distance", "decay_attention", _decay_of(2)),
            ("no decay: distance^0", "decay_attention", _decay_of(0)),
            (
                "the sign of m",
                "decay_attention",
                lambda right: lambda logits, m: right(logits + 2 * m * _distance(logits.shape[-1]), m),
            ),
            (
                "rows of every layer in reverse order",
                "decay_attention",
                lambda right: lambda logits, m: right(logits, m)[..., ::-1, :],
            ),
            ("each layer at the bottom of the product, not on its top", "products", _below_on_top),
            ("one layer fewer in the product", "products", _one_layer_fewer),
            ("C_min 5 % larger", "decay_floor", _scaled(1.05)),
            ("C_min without 1 - e^-m", "decay_floor", lambda right: lambda spread, m: np.exp(-spread)),
            ("C_max 5 % smaller", "decay_ceiling", _scaled(0.95)),
            ("half of I_max - I_min", "logit_range", _scaled(0.5)),
        )
    ),
    *(
        Mutant(DECAY_PEAK, words, (emergence, name), wrong)
        for words, name, wrong in (
            ("t + 1 for t", "decay_peak", _with(0, lambda t: t + 1)),
            ("t - 1 for t", "decay_peak", lambda right: lambda t, m: right(t, m) - right(1, m)),
            ("e^m for e^m - 1", "decay_peak", lambda right: lambda t, m: t / np.exp(m)),
            ("e^m + 1 for e^m - 1", "decay_peak", lambda right: lambda t, m: t / (np.exp(m) + 1)),
            ("the sign of m", "decay_peak", lambda right: lambda t, m: -t / np.expm1(-m)),
            ("m 5 % larger", "decay_peak", _with(1, lambda m: 1.05 * m)),
            ("distances counted from 1", "peak", lambda right: lambda profile: right(profile) + 1),
            ("the nearest of ties", "peak", lambda right: lambda profile: int(profile.argmax())),
            (
                "one layer fewer in the product",
                "last_rows",
                lambda right: (
                    lambda attention, layers: np.vstack([np.eye(len(attention))[:1], right(attention, layers)[:-1]])
                ),
            ),
        )
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
            return lower, upper + 4 * turn.strength / pi**2 * turn.turned * (1 / (t + 1) - 1 / steps(t))

        return bounds

    return wrong


def _other_turn(change: Callable[[Any], dict[str, Any]]) -> Wrong:
    return lambda right: lambda turn: right(replace(turn, **change(turn)))


RANDOM, FREE = (emergence, "rope_logits"), (emergence, "rope_attention")
QUARTER = (emergence.QuarterTurn, "bounds")
LEMMA, THEOREM, ROPE_PEAK = "emergence-lemma-4-6", "emergence-theorem-4-7-bounds", "emergence-theorem-4-7-peak"
ROPE = [
    *(
        Mutant(claim, words, place, wrong)
        for claim in (LEMMA, THEOREM)
        for words, place, wrong in (
            ("logits of RoPE replaced by 0", RANDOM, _scaled(0)),
            ("logits of RoPE replaced by their negative", RANDOM, _scaled(-1)),
            ("logits of RoPE replaced by noise of their size", RANDOM, _noise),
            (
                "logits of RoPE replaced by those of ALiBi",
                RANDOM,
                lambda right: lambda rotary: right(rotary) * 0 - 0.2 * _distance(rotary.n),
            ),
            ("angles of positions added, not subtracted", RANDOM, _turned_alike),
            ("the angle 5 % smaller in attention", FREE, _with(1, lambda angle: 0.95 * angle)),
            ("logits of content-free RoPE replaced by 0", FREE, _with(2, lambda strength: 0 * strength)),
            ("logits of content-free RoPE replaced by those of ALiBi", FREE, _alibi(lambda angle: 0.2)),
            ("c and c' 5 % smaller", QUARTER, _other_turn(lambda turn: {"strength": 0.95 * turn.strength})),
            ("c and c' 5 % larger", QUARTER, _other_turn(lambda turn: {"strength": 1.05 * turn.strength})),
            ("C of the lower bound 5 % larger", QUARTER, _other_turn(lambda turn: {"least": 1.05 * turn.least})),
            ("C of the upper bound 5 % smaller", QUARTER, _other_turn(lambda turn: {"most": 0.95 * turn.most})),
            ("x for x^2", QUARTER, _other_turn(lambda turn: {"turned": np.sqrt(turn.turned * turn.turned[1])})),
            ("x^3 for x^2", QUARTER, _other_turn(lambda turn: {"turned": turn.turned**1.5 / turn.turned[1] ** 0.5})),
            ("theta for theta^2", QUARTER, _other_turn(lambda turn: {"turned": turn.turned / turn.turned[1] ** 0.5})),
        )
    ),
    *_binomials(THEOREM),
    *(
        Mutant(THEOREM, words, place, wrong)
        for words, place, wrong in (
            ("c' for c' / (t+1), one for every t", QUARTER, _split(lambda t: 1)),
            ("c' / 2 for c' / (t+1), as Eq. 16 has it", QUARTER, _split(lambda t: np.minimum(t + 1, 2))),
            ("c' / t for c' / (t+1)", QUARTER, _split(lambda t: np.maximum(t, 1))),
            ("c' / (t+2) for c' / (t+1)", QUARTER, _split(lambda t: t + 2)),
            ("rows of every layer in reverse order", PRODUCTS, REVERSED_ROWS),
            ("each layer at the bottom of the product, not on its top", PRODUCTS, _below_on_top),
            ("one layer fewer in the product", PRODUCTS, _one_layer_fewer),
        )
    ),
    *(
        Mutant(ROPE_PEAK, words, place, wrong)
        for words, place, wrong in (
            ("L: t fixed", (emergence, "critical_point"), _with(0, lambda t: 1)),
            ("L: theta fixed", (emergence, "critical_point"), _with(1, lambda c: 0.01)),
            ("L: theta for theta^2, as printed", (emergence, "critical_point"), _with(1, lambda c: c**0.5)),
            ("L: 1 / theta for theta", (emergence, "critical_point"), _with(1, lambda c: 1e-4 / c)),
            ("logits replaced by 0", FREE, _with(2, lambda strength: 0 * strength)),
            ("logits replaced by their negative", FREE, _with(2, lambda strength: -strength)),
            ("the angle fixed", FREE, lambda right: lambda n, angle, strength: right(n, pi / (n - 1), strength)),
            ("ALiBi for RoPE, one slope", FREE, _alibi(lambda angle: 0.05)),
            ("ALiBi for RoPE, slopes as angles", FREE, _alibi(lambda angle: 20 * angle)),
            (
                "one layer at every t",
                (emergence, "last_rows"),
                lambda right: lambda attention, layers: np.repeat(right(attention, 1), layers, axis=0),
            ),
        )
    ),
]


# Propositions 4.2-4.5, Lemma 5.4 and Theorem 5.5 of `structural`


def _mixing(change: Callable[[Any], Any]) -> Wrong:
    return _with(1, change)


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


FORCES = {
    "structural-proposition-4-2": "primacy_drift",
    "structural-proposition-4-3": "residual_drift",
    "structural-proposition-4-4": "positional_drift",
    "structural-proposition-4-5": "content_drift",
}
TRANSITION = (structural, "transition")
PROPOSITIONS = [
    *(
        Mutant(claim, words, (structural, name), wrong)
        for claim in FORCES
        for words, name, wrong in (
            ("single weights in place of prefix masses", "prefix_mass", lambda right: lambda profile: profile),
            (
                "the masses of tokens 2 to k",
                "prefix_mass",
                lambda right: lambda profile: right(profile) - profile[..., :1],
            ),
            ("rows of every layer in reverse order", "transition", REVERSED_ROWS),
        )
    ),
    *(Mutant(claim, "the sign of the effect", (structural, drift), _scaled(-1)) for claim, drift in FORCES.items()),
    Mutant("structural-proposition-4-2", "the sign of lambda", TRANSITION, _mixing(lambda mix: -mix)),
    Mutant("structural-proposition-4-2", "lambda 10 % larger, above 1", TRANSITION, _mixing(lambda mix: 1.1 * mix)),
    Mutant(
        "structural-proposition-4-2",
        "each layer at the bottom of the product, not on its top",
        (structural, "rollouts"),
        lambda right: (
            lambda attention, mixing: _below_on_top(None)(
                np.stack([transition(layer, mix) for layer, mix in zip(attention, mixing, strict=True)])
            )
        ),
    ),
    Mutant(
        "structural-proposition-4-3",
        "larger lambda in the lower half of the layers, smaller above",
        (structural, "residual_drift"),
        lambda right: (
            lambda attention, mixing, larger: right(
                attention,
                mixing,
                np.where(np.arange(len(mixing)) < len(mixing) // 2, larger, np.maximum(2 * mixing - larger, 0)),
            )
        ),
    ),
    Mutant("structural-proposition-4-3", "the sign of lambda", TRANSITION, _mixing(lambda mix: -mix)),
    *(
        Mutant("structural-proposition-4-4", words, (structural, "positional_drift"), _with(1, change))
        for words, change in (
            ("the sign of the bias", lambda bias: -bias),
            ("a bias against the latest key", lambda bias: bias + 2 * bias.min() * np.eye(bias.shape[-1])),
            ("a bias that favours the middle", _for_the_middle),
        )
    ),
    Mutant(
        "structural-proposition-4-5", "content of both signs", (structural, "content_drift"), _with(1, _alternating)
    ),
    Mutant("structural-proposition-4-5", "content on the token before", (structural, "reweighted"), _before_itself),
    *(
        Mutant("structural-smooth-kernels", words, (structural_checks, "content_free_attention"), wrong)
        for words, wrong in (
            ("rows of every layer in reverse order", lambda right: lambda *given: right(*given)[..., ::-1, :]),
            ("kernels that skip the token before", _hole),
            (
                "kernels that grow with distance",
                lambda right: (
                    lambda n, *given: masked_softmax(
                        np.log(np.maximum(right(n, *given), 1e-300)) * -1, right(n, *given) > 0
                    )
                ),
            ),
        )
    ),
    *(
        Mutant("structural-assumption-needed", words, (structural_checks, "BROKEN"), wrong)
        for words, wrong in (
            ("the upper layer twice, which is monotone", lambda right: right[[1, 1]]),
            ("the layers in reverse order", lambda right: right[::-1]),
        )
    ),
    *(
        Mutant("structural-lemma-5-4-ii", words, (structural, "softmax_floor"), _softmax_floor(factor))
        for words, factor in (
            ("the floor 5 % larger", lambda logits: 1.05),
            ("n - 1 for n", lambda logits: logits.shape[-1] / max(logits.shape[-1] - 1, 0.5)),
            ("B 5 % smaller", lambda logits: np.exp(0.05 * _ranges(logits))),
            ("the sign of B", lambda logits: np.exp(2 * _ranges(logits))),
        )
    ),
    *(
        Mutant("structural-lemma-5-4-i", words, (structural, "growth_bound"), wrong)
        for words, wrong in (
            ("the excess 5 % smaller", _with(1, lambda excess: 0.95 * excess)),
            ("lambda 5 % smaller", _with(0, lambda mixing: 0.95 * mixing)),
            (
                "half the layers",
                lambda right: lambda mixing, excess: right(mixing, excess)[(np.arange(len(mixing)) // 2)],
            ),
            ("the excess squared", _with(1, np.square)),
            ("the sign of the excess", _with(1, np.negative)),
        )
    ),
    *(
        Mutant(claim, "epsilon 5 % larger", (structural, "attention_floor"), _scaled(1.05))
        for claim in ("structural-theorem-5-5-i", "structural-theorem-5-5-ii")
    ),
    *(
        Mutant("structural-theorem-5-5-i", words, (structural, name), wrong)
        for words, name, wrong in (
            ("lambda 5 % smaller in the bound", "diagonal_bound", _with(0, lambda mixing: 0.95 * mixing)),
            ("lambda^2 for lambda in the bound", "diagonal_bound", _with(0, lambda mixing: mixing**2)),
            ("1 - lambda for lambda in the bound", "diagonal_bound", _with(0, lambda mixing: 1 - mixing)),
            (
                "one layer fewer in the bound",
                "diagonal_bound",
                lambda right: lambda mixing, floor: np.concatenate([[1.0], right(mixing, floor)[:-1]]),
            ),
            ("the sign of epsilon", "diagonal_bound", _with(1, lambda floor: -floor)),
            ("rows of every layer in reverse order", "transition", REVERSED_ROWS),
            ("c/t for c/t^2: a sum that is not finite", "beyond_first", _with(1, lambda mixing: np.sqrt(0.9 * mixing))),
        )
    ),
    *(
        Mutant("structural-theorem-5-5-ii", words, (structural, name), wrong)
        for words, name, wrong in (
            (
                "j for j - 1",
                "tail_bound",
                lambda right: (
                    lambda mixing, floor, n: (1 - mixing[:, None] * floor * np.arange(2, n + 1)).cumprod(axis=0)
                ),
            ),
            (
                "one layer more in the bound",
                "tail_bound",
                lambda right: lambda mixing, floor, n: right(np.append(mixing, mixing[-1]), floor, n)[1:],
            ),
            ("lambda 5 % larger in the product", "tail_bound", _with(0, lambda mixing: np.minimum(1.05 * mixing, 1))),
            ("lambda 5 % larger in the exponential", "exponential_bound", _with(0, lambda mixing: 1.05 * mixing)),
            (
                "(j - 1)^2 for j - 1 in the exponential",
                "exponential_bound",
                lambda right: lambda mixing, floor, n: right(mixing, floor, n) ** np.arange(1, n),
            ),
            ("the sign of the exponent", "exponential_bound", _with(0, lambda mixing: -mixing)),
            ("rows of every layer in reverse order", "transition", REVERSED_ROWS),
            ("c/t^2 for c/t: a finite sum", "beyond_first", _with(1, lambda mixing: mixing**2)),
        )
    ),
]


# Layer 2 of `layernorm`, and what follows of it


def _one_more_token(right: Any) -> Any:
    def weights(n: int, alpha: float, strength: float) -> Any:
        E = np.exp(strength * (1 - alpha))
        b = 1 / (E + np.arange(1, n + 1))
        return E * b, b

    return weights


def _other_sign(right: Any) -> Any:
    def weights(n: int, alpha: float, strength: float) -> Any:
        E = np.exp(-strength * (1 - alpha))
        b = 1 / (E + np.arange(n))
        return E * b, b

    return weights


def _norms_without(part: str) -> Wrong:
    """q_j without a part of it."""

    def wrong(right: Any) -> Any:
        def squared_norms(n: int, alpha: float, rho: float, strength: float, width: Any = None) -> Any:
            (a, b), c = layernorm.first_weights(n, alpha, strength), layernorm.pull(n, alpha, strength, width)
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
            q = layernorm.squared_norms(n, alpha, rho, strength, width)
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


SCORES, NORMS, WEIGHTS, PULL = ((layernorm, n) for n in ("second_scores", "squared_norms", "first_weights", "pull"))
RECENCY, PROFILE = ((layernorm_checks.Runs, name) for name in ("recency", "of_profile"))
SETTINGS: tuple[tuple[str, Any, Wrong], ...] = (
    ("anisotropy 5 points larger", SCORES, _with(1, lambda alpha: min(alpha + 0.05, 0.95))),
    ("residual 5 % larger", SCORES, _with(2, lambda rho: 1.05 * rho)),
    ("strength 5 % larger", SCORES, _with(3, lambda strength: 1.05 * strength)),
    ("E + i for E + i - 1 in layer 1", WEIGHTS, _one_more_token),
    ("the sign of s in layer 1", WEIGHTS, _other_sign),
    ("q_j without the other tokens' weights", NORMS, _norms_without("others")),
    ("q_j without the token's own weight", NORMS, _norms_without("own")),
    ("norms, not their squares' roots: q_i q_j for sqrt(q_i q_j)", SCORES, _divided_by(1, 1)),
    ("the norm of the query alone", SCORES, _divided_by(0.5, 0)),
    ("no norm", SCORES, _divided_by(0, 0)),
    ("multiplied by norms, not divided", SCORES, _divided_by(-0.5, -0.5)),
    ("keys in reverse order", SCORES, _mirrored),
)
CHANGED_PROFILES: dict[str, tuple[str, Wrong]] = {
    "keys reversed": ("keys in reverse order", _seen(lambda *setting: setting, sign=-1)),
    "causal": ("a causal mask throughout", _seen(lambda profile, mask, *rest: (profile, "causal", *rest))),
    "full": ("a full mask throughout", _seen(lambda profile, mask, *rest: (profile, "full", *rest))),
    "alike": ("embeddings alike throughout", _seen(lambda profile, *rest: ("alike", *rest))),
    "rising anisotropy": ("anisotropy that rises", _seen(lambda profile, *rest: ("anisotropy rises", *rest))),
    "rising length": ("lengths that rise", _seen(lambda profile, *rest: ("length rises", *rest))),
    "without residual": (
        "without residual for with it",
        _seen(lambda profile, mask, rho, layer: (profile, mask, 0.0, layer)),
    ),
    "layer 1": ("layer 1", _seen(lambda profile, mask, rho, layer: (profile, mask, rho, 1))),
}
DECODER = [
    *(
        Mutant(claim, words, place, wrong)
        for claim in ("layernorm-theorem", "layernorm-three-tokens", "layernorm-closed-form")
        for words, place, wrong in SETTINGS
    ),
    Mutant("layernorm-theorem", "q_j constant", NORMS, lambda right: lambda n, *given: np.ones(n)),
    Mutant("layernorm-closed-form", "q_j without the common part", NORMS, _norms_without("common")),
    Mutant("layernorm-closed-form", "c_i dropped", PULL, _scaled(0)),
    Mutant("layernorm-closed-form", "c_i doubled", PULL, _scaled(2)),
    Mutant("layernorm-closed-form", "the sign of c_i", PULL, _scaled(-1)),
    *(
        Mutant(claim, words, RECENCY, wrong)
        for claim in ("layernorm-recency", "layernorm-primacy", "layernorm-anisotropy")
        for words, wrong in (
            ("keys in reverse order", _seen(lambda *setting: setting, sign=-1)),
            (
                "the norm taken out, or put in",
                _seen(lambda norm, *rest: ({"none": "rms", "rms": "none"}[norm], *rest)),
            ),
            ("layer 1", _seen(lambda norm, rho, alpha, layer: (norm, rho, alpha, 1))),
            (
                "without residual for with it, and with for without",
                _seen(lambda norm, rho, *rest: (norm, 1 - rho, *rest)),
            ),
        )
    ),
    *(
        Mutant(claim, words, PROFILE, wrong)
        for claim, changes in (
            ("layernorm-moments", ("keys reversed", "causal", "alike", "without residual", "layer 1")),
            ("layernorm-full-mask", ("causal", "rising anisotropy", "rising length")),
            ("layernorm-mask-adds", ("keys reversed", "causal", "full", "without residual", "layer 1")),
        )
        for words, wrong in (CHANGED_PROFILES[change] for change in changes)
    ),
    Mutant("layernorm-primacy", "layer 2", RECENCY, _seen(lambda norm, rho, alpha, layer: (norm, rho, alpha, 2))),
]

# What was found where a claim does not simply fail: another verdict, or the reason why it holds

OPEN, REFUSED = "undecided", "refused"
WEAKER = "a weaker bound, which is true as well"
SPARE = "an inequality with room to spare: the bound is not attained"
ANY_ORDER = "layers are arbitrary, and so is their order: true as well"
ANY_SETTING = "the theorem is of every anisotropy, residual and strength: true as well"
BOTH = "no change: the claim is of networks without residual and of those with it"
DIRECTIONS = "the claim is of directions alone"
WITHIN = "within the bound on simulations of finite width, 1/d and four standard errors"
AT_BOTTOM = "each layer at the bottom of the product, not on its top"
OTHERWISE = {
    "emergence-theorem-4-1": {
        "one more earlier token: j for j - 1, or for j - K": REFUSED,
        "C 5 % smaller": SPARE,
        AT_BOTTOM: ANY_ORDER,
    },
    "emergence-theorem-4-2": {
        "t + 1 for t": SPARE,
        "2t for t": f"{SPARE}; the 2 in t / 2R is not needed",
        "one more earlier token: j for j - 1, or for j - K": SPARE,
        "C 5 % smaller": SPARE,
        AT_BOTTOM: ANY_ORDER,
        "half of R": REFUSED,
        "a third of R": REFUSED,
        "R = 1": REFUSED,
        "R - 1 for R": REFUSED,
        "windows of one token fewer": REFUSED,
    },
    "emergence-theorem-4-3": {
        "t + 1 for t": SPARE,
        "one more earlier token: j for j - 1, or for j - K": f"{SPARE}; so is j - 1 for j - K",
        "C 5 % smaller": SPARE,
        "epsilon 5 % larger": f"{SPARE}: j - 1 tokens are earlier, of which it counts j - K",
        "j - 1 for j - K": "a stronger bound, which is true as well: all j - 1 earlier tokens take their share",
        "a causal mask for the prefix mask": REFUSED,
    },
    "emergence-theorem-4-5": {"C^(t+2) for C^(t+1)": WEAKER, AT_BOTTOM: ANY_ORDER},
    "emergence-lemma-4-6": {"x^3 for x^2": REFUSED, "theta for theta^2": REFUSED},
    "emergence-theorem-4-7-bounds": {
        "x^3 for x^2": REFUSED,
        "theta for theta^2": REFUSED,
        "c' / (t+2) for c' / (t+1)": WEAKER,
        AT_BOTTOM: ANY_ORDER,
    },
    "emergence-theorem-4-7-peak": {
        "L: t fixed": OPEN,
        "L: theta fixed": OPEN,
        "L: theta for theta^2, as printed": f"{DIRECTIONS}, and this point moves the same way",
        "logits replaced by 0": OPEN,
        "logits replaced by their negative": OPEN,
        "the angle fixed": OPEN,
        "ALiBi for RoPE, one slope": OPEN,
        "ALiBi for RoPE, slopes as angles": f"{DIRECTIONS}, and steeper slopes act as larger angles",
        "one layer at every t": OPEN,
    },
    "structural-proposition-4-2": {AT_BOTTOM: "a further layer at the bottom moves mass to earlier tokens as well"},
    "structural-theorem-5-5-i": {
        "the sign of epsilon": WEAKER,
        "rows of every layer in reverse order": REFUSED,
    },
    "structural-theorem-5-5-ii": {
        "j for j - 1": REFUSED,
        "the sign of the exponent": WEAKER,
        "rows of every layer in reverse order": REFUSED,
    },
    "layernorm-theorem": {
        "anisotropy 5 points larger": ANY_SETTING,
        "residual 5 % larger": ANY_SETTING,
        "strength 5 % larger": ANY_SETTING,
        "E + i for E + i - 1 in layer 1": "q_j falls with these weights, too",
        "the sign of s in layer 1": "q_j falls for every E above 0, so it does for E below 1",
        "q_j without the other tokens' weights": "the token's own weight alone makes q_j fall",
        "q_j without the token's own weight": REFUSED,
        "norms, not their squares' roots: q_i q_j for sqrt(q_i q_j)": f"{DIRECTIONS}, and these agree",
        "the norm of the query alone": OPEN,
        "no norm": OPEN,
        "q_j constant": OPEN,
    },
    "layernorm-three-tokens": {"q_j without the token's own weight": REFUSED},
    "layernorm-closed-form": {
        "strength 5 % larger": WITHIN,
        "q_j without the token's own weight": REFUSED,
        "c_i doubled": WITHIN,
    },
    "layernorm-recency": {"layer 1": OPEN, "without residual for with it, and with for without": BOTH},
    "layernorm-primacy": {
        "layer 1": OPEN,
        "layer 2": OPEN,
        "without residual for with it, and with for without": BOTH,
    },
    "layernorm-anisotropy": {"the norm taken out, or put in": OPEN, "layer 1": OPEN},
    "layernorm-moments": {"embeddings alike throughout": OPEN, "layer 1": OPEN},
    "layernorm-mask-adds": {
        "a causal mask throughout": OPEN,
        "a full mask throughout": OPEN,
        "without residual for with it": BOTH,
        "layer 1": OPEN,
    },
}
MUTANTS = tuple(
    replace(mutant, outcome=OTHERWISE.get(mutant.claim, {}).get(mutant.words, mutant.outcome))
    for mutant in (*MASKS, *DECAY, *ROPE, *PROPOSITIONS, *DECODER)
)
