"""Theorems 4.1-4.7 and I.2 of Wu et al. 2025 with their lemmas, checked on random and content-free attention.

A statement about all tokens, layers and contents is judged by its worst draw, which is what `measured` holds; low and
high are its range over draws (or, where nothing is drawn, over the settings named), and n is how many there were. A
constant that a proof prints, or what its proof needs, is judged beside the corrected one where the two differ: a
theorem that asks for some constant is judged with one that suffices, and what its proof prints is a claim of its own. A
row that speaks of both is in the table once for each. Every bound follows from the statement; thresholds of our own are
named so in `source`.
"""

from collections.abc import Iterator
from math import pi, sqrt

import numpy as np
import numpy.typing as npt
import pandas as pd

from position_bias.attention import Array, causal_mask, masked_softmax, prefix_mask, sliding_window_mask
from position_bias.emergence import theory
from position_bias.emergence.theory import DEPTHS
from position_bias.verdicts import verdict
from position_bias.verdicts.verdict import Prediction

PAPER = "emergence"

ROUNDING = 1e-12  # of quotients of numbers that are exact to 1e-14 or so
BELOW_BOUND = Prediction("<", 1 + ROUNDING)  # a quotient by an upper bound
ABOVE_BOUND = Prediction(">", 1 - ROUNDING)  # a quotient by a lower bound
NO_EXCESS = Prediction("<", ROUNDING)  # a difference from a bound
VANISHES = Prediction("<", 1e-6)  # a mass whose limit is 0
SAME_DISTANCE = Prediction("<", 1)  # a whole distance from a point that need not be whole
RISES, FALLS = Prediction(">", 0), Prediction("<", 0)

PAPER_TOKENS, PAPER_DEPTHS = 17, (1, 3, 5)  # Section 5: sequences of 17 tokens, 2, 4 and 6 layers
DELTA = 4.0  # Lemma 4.6: queries and keys are up to as far apart as RoPE turns in so many tokens
NORMS = (0.5, 2.0)  # of queries and keys
ANGLES = (0.01, 0.02, 0.05, 0.1, 0.2)  # theta_1, where L alone is judged
MULTIPLES = (1.0, 2.0, 4.0)  # Lemma I.1, d = 6: alpha
# Ids of claims that rows of several items speak of
CONSTANTS = "emergence-appendix-a-e"  # the constants that the proofs print
STEPS = "emergence-appendix-f-i"  # the steps of the proofs for RoPE as printed
DECAY, DECAY_PEAK = "emergence-theorem-4-5", "emergence-theorem-4-5-peak"
ROPE, ROPE_PEAK = "emergence-theorem-4-7", "emergence-theorem-4-7-peak"

APART, UNEVENNESS = 0.1, 0.05  # Lemma I.1: of segments of queries and keys, in angle and (relative) norm


def table(tokens: int, layers: int, draws: int, seed: int, peak_tokens: int, scale: str) -> pd.DataFrame:
    """A verdict on every statement; schema of `verdict.COLUMNS`.

    Bounds are checked on `draws` random stacks of `layers` layers of `tokens` tokens (with relative positions only as
    many layers as the deepest of `theory.DEPTHS` has), limits after the last layer, so `layers` should be many times
    `tokens`; peaks on content-free sequences of `peak_tokens`, which should be many times as far as any peak. Raises
    ValueError where a number is too small.
    """
    if tokens < 4:
        raise ValueError(f"tokens = {tokens}: windows and prefixes need at least 4")
    path_layers = max(DEPTHS) + 1
    logits = theory.random_logits(layers, draws, tokens, seed)
    contents = {"random attention": logits, "uniform attention": np.zeros((layers, 1, tokens, tokens))}
    plane = theory.random_rotary(path_layers, draws, tokens, seed, slack=_slack(tokens), norms=NORMS)
    segments = theory.random_rotary(
        path_layers, draws, tokens, seed, slack=APART, norms=NORMS, multiples=MULTIPLES, unevenness=UNEVENNESS
    )
    rows = [
        *_causal(contents),
        *_windows(contents),
        *_prefixes(contents),
        *_decay({name: some[:path_layers] for name, some in contents.items()}),
        *_decay_peaks(peak_tokens),
        *_rope(plane),
        *_appendix_g(tokens),
        *_appendix_h(),
        *_rope_peaks(peak_tokens),
        *_segments(segments),
    ]
    return verdict.table(PAPER, scale, rows)


def _row(
    claim: str, item: str, quantity: str, prediction: Prediction, values: npt.ArrayLike, source: str
) -> dict[str, object]:
    """One number a draw or setting; the worst of them is judged."""
    every = np.asarray(values, np.float64).ravel()
    low, high = float(every.min()), float(every.max())
    worst = high if prediction.relation == "<" else low
    judged = verdict.row(claim, item, quantity, prediction, worst, (worst, worst), every.size, source)
    return {**judged, "low": low, "high": high}


# Theorems 4.1-4.3


def _causal(contents: dict[str, Array]) -> Iterator[dict[str, object]]:
    claim, item = "emergence-theorem-4-1", "Theorem 4.1"
    for content, logits in contents.items():
        layers, n = len(logits), logits.shape[-1]
        attention = masked_softmax(logits, causal_mask(n))
        products, floor = theory.products(attention), theory.smallest_weight(attention, causal_mask(n))
        ratio = theory.share_of_bound(products, theory.causal_bound(floor, n, layers))
        quantity = f"largest P_ij over C (1 - (j-1) eps)^t, C = 1 - eps as printed; {content}"
        bounded = _row(claim, item, quantity, BELOW_BOUND, ratio, "Theorem 4.1; C from Appendix A")
        yield from verdict.for_each((claim, CONSTANTS), bounded)
        yield _limit(claim, item, "1 - P(first token)", products, 1, content)


def _windows(contents: dict[str, Array]) -> Iterator[dict[str, object]]:
    claim, item = "emergence-theorem-4-2", "Theorem 4.2"
    for content, logits in contents.items():
        for window in (w for w in theory.WINDOWS if w < logits.shape[-1]):
            yield from _window(claim, item, f"window {window}; {content}", logits, window)
            products = theory.products(masked_softmax(logits, sliding_window_mask(logits.shape[-1], window)))
            yield _limit(claim, item, "1 - P(first token)", products, 1, f"window {window}; {content}")
    smallest = np.zeros((len(contents["uniform attention"]), 1, 3, 3))
    yield from _window(claim, item, "window 2; uniform attention of 3 tokens", smallest, 2)


def _window(claim: str, item: str, setting: str, logits: Array, window: int) -> Iterator[dict[str, object]]:
    """The theorem is judged with the constant of Appendix B; that of Appendix A is a claim of its own, and one ours."""
    layers, n = len(logits), logits.shape[-1]
    mask = sliding_window_mask(n, window)
    attention = masked_softmax(logits, mask)
    products, floor = theory.products(attention), theory.smallest_weight(attention, mask)
    steps = theory.walk_length(n, window)
    constants = (
        (CONSTANTS, "C = 1 - eps as printed", "Theorem 4.2; C from Appendix A", 1 - floor),
        (
            claim,
            "C = 1 - eps^R",
            "Theorem 4.2; C of Appendix A for blocks of R layers, as in Appendix B",
            1 - floor**steps,
        ),
        ("", "C corrected", "Theorem 4.2; C is ours", theory.window_constant(floor, n, window)),
    )
    for spoken_of, name, source, constant in constants:
        ratio = theory.share_of_bound(products, theory.window_bound(floor, n, window, layers, constant))
        quantity = f"largest P_ij over C (1 - (j-1) eps^R)^(t/2R), {name}; {setting}"
        yield _row(spoken_of, item, quantity, BELOW_BOUND, ratio, source)


def _prefixes(contents: dict[str, Array]) -> Iterator[dict[str, object]]:
    claim, item = "emergence-theorem-4-3", "Theorem 4.3"
    for content, logits in contents.items():
        layers, n = len(logits), logits.shape[-1]
        for prefix in (k for k in theory.PREFIXES if k < n):
            mask, setting = prefix_mask(n, prefix), f"prefix {prefix}; {content}"
            attention = masked_softmax(logits, mask)
            products, floor = theory.products(attention), theory.smallest_weight(attention, mask)
            ratio = theory.share_of_bound(products, theory.prefix_bound(floor, n, prefix, layers))
            quantity = f"largest P_ij over C (1 - (j-K) eps)^t, C = 1 - eps as printed; {setting}"
            bounded = _row(claim, item, quantity, BELOW_BOUND, ratio, "Theorem 4.3; C from Appendix A")
            yield from verdict.for_each((claim, CONSTANTS), bounded)
            yield _limit(claim, item, "1 - P(prefix)", products, prefix, setting)
            share = products[-1, ..., :prefix].min(axis=(-2, -1)) / theory.prefix_share(attention, prefix)
            quantity = f"smallest P_ik over kappa after {layers} layers; {setting}"
            yield _row(claim, item, quantity, ABOVE_BOUND, share, "Theorem 4.3; kappa as Appendix C implies it")
            for printed, last in ((True, "min(i, K) as printed"), (False, "max(i, K) corrected")):
                ratio = theory.prefix_ratio(attention, products, prefix, printed=printed)
                quantity = f"smallest P_ik / P_ik' over the smallest A_lk / A_lk', l up to {last}; {setting}"
                spoken_of = CONSTANTS if printed else ""
                yield _row(spoken_of, item, quantity, ABOVE_BOUND, ratio, "Appendix C")


def _limit(claim: str, item: str, name: str, products: Array, centres: int, setting: str) -> dict[str, object]:
    quantity = f"largest {name} after {len(products)} layers; {setting}"
    source = f"{item}; depth and threshold are ours"
    return _row(claim, item, quantity, VANISHES, theory.mass_beyond(products[-1], centres).max(axis=-1), source)


# Lemma 4.4 and Theorem 4.5


def _decay(contents: dict[str, Array]) -> Iterator[dict[str, object]]:
    for content, logits in contents.items():
        spread, distance = theory.logit_range(logits), np.arange(logits.shape[-1], dtype=float)
        entries: dict[str, list[Array]] = {"floor": [], "printed": [], "corrected": []}
        paths: dict[str, list[Array]] = {"floor": [], "printed": [], "corrected": []}
        for m in theory.DECAYS:
            attention = theory.decay_attention(logits, m)
            products = theory.products(attention)
            least, most = theory.decay_ratio(attention, m)
            floor = theory.decay_floor(spread, m)
            ceilings = {"printed": theory.decay_ceiling_printed(spread, m), "corrected": theory.decay_ceiling(spread)}
            entries["floor"].append(least / floor)
            for name, ceiling in ceilings.items():
                entries[name].append(most / ceiling)
                below, above = theory.path_ratio(products, m * distance, floor, ceiling)
                paths[name].append(above)
            paths["floor"].append(below)
        setting = content.replace("attention", "content").replace("uniform", "no")
        ratio = "A_ij over C e^-(i-j)m"
        yield from _both_sides("Lemma 4.4", ratio, "C", setting, entries, "Lemma 4.4; C from Appendix D")
        ratio = "P_ij over C^(t+1) binom(t+x, x) e^-xm"
        yield from _both_sides("Theorem 4.5", ratio, "C", setting, paths, "Theorem 4.5; C of Lemma 4.4")


def _both_sides(
    item: str, ratio: str, symbol: str, setting: str, sides: dict[str, list[Array]], source: str
) -> Iterator[dict[str, object]]:
    quantity = f"smallest {ratio}, {symbol} = C_min as printed; {setting}"
    floor = _row(DECAY, item, quantity, ABOVE_BOUND, sides["floor"], source)
    yield from verdict.for_each((DECAY, CONSTANTS), floor)
    for claim, name, label in ((CONSTANTS, "printed", "as printed"), (DECAY, "corrected", "corrected")):
        quantity = f"largest {ratio}, {symbol} = C_max {label}; {setting}"
        yield _row(claim, item, quantity, BELOW_BOUND, sides[name], source)


def _decay_peaks(tokens: int) -> Iterator[dict[str, object]]:
    item, source = "Theorem 4.5", "Theorem 4.5; content-free"
    peaks = theory.decay_peaks(tokens)
    for m, some in peaks.groupby("decay"):
        away = (some["peak"] - some["critical"]).abs()
        quantity = f"largest distance of the peak of P from t / (e^m - 1), m = {m:.3g}; {tokens} tokens"
        yield _row(DECAY_PEAK, item, quantity, SAME_DISTANCE, away, source)
    few = theory.decay_peaks(PAPER_TOKENS)
    few = few[np.isclose(few["decay"], theory.DECAY) & few["depth"].isin(PAPER_DEPTHS)]
    quantity = f"largest distance of the peak of P from t / (e^m - 1), m = {theory.DECAY:.3g}; {PAPER_TOKENS} tokens"
    away = (few["peak"] - few["critical"]).abs()
    yield _row("", item, quantity, SAME_DISTANCE, away, f"{source}; length and depths of Section 5 are ours to try")
    grid = peaks[peaks["depth"].isin(DEPTHS)].pivot(index="depth", columns="decay", values="peak").to_numpy()
    yield from _steps(DECAY_PEAK, item, "m", grid, tokens, source)


def _steps(claim: str, item: str, cause: str, peaks: Array, tokens: int, source: str) -> Iterator[dict[str, object]]:
    """Of peaks `[depth, cause]`, both ascending."""
    depths = ", ".join(map(str, DEPTHS))
    quantity = f"smallest step of the peak of P from each t of {depths} to the next; {tokens} tokens"
    yield _row(claim, item, quantity, RISES, np.diff(peaks, axis=0), source)
    quantity = f"largest step of the peak of P from each {cause} to the next; {tokens} tokens"
    yield _row(claim, item, quantity, FALLS, np.diff(peaks, axis=1), source)


# Lemma 4.6 and Theorem 4.7


def _slack(tokens: int) -> float:
    """delta theta_1 at the largest angle that Lemma 4.6 admits, (delta + n - 1) theta_1 = pi."""
    return DELTA * pi / (DELTA + tokens - 1)


def _rope(rotary: theory.Rotary) -> Iterator[dict[str, object]]:
    logits = theory.rope_logits(rotary)
    yield from _logit_bounds(logits, rotary)
    attention = masked_softmax(logits, causal_mask(rotary.n))
    yield from _gaussian(("Lemma 4.6", "Theorem 4.7"), attention, rotary, "(x theta_1)^2")


def _logit_bounds(logits: Array, rotary: theory.Rotary) -> Iterator[dict[str, object]]:
    """Appendix F: what logits are beyond their bounds, where its steps are sound and where they are not."""
    item, source = "Lemma 4.6", "Appendix F"
    (least, most), turned = theory.by_distance(logits), np.arange(rotary.n) * rotary.angle
    short, long = turned < rotary.slack, turned >= rotary.slack
    far_negative, near_negative = turned + rotary.slack > pi / 2, turned - rotary.slack > pi / 2
    lower, upper = theory.rope_logit_range(rotary, printed=True)
    cases = {
        "below its lower bound as printed, cosine not negative": (lower - least, ~far_negative),
        "below its lower bound as printed, cosine negative": (lower - least, far_negative),
        "above its upper bound as printed, i-j >= delta, cosine not negative": (most - upper, long & ~near_negative),
        "above its upper bound as printed, i-j < delta": (most - upper, short),
        "above its upper bound as printed, cosine negative": (most - upper, near_negative),
    }
    for name, (excess, where) in cases.items():
        worst = excess[..., where].max(axis=(0, -1)) if where.any() else np.nan
        yield _row(STEPS, item, f"how far a logit is {name}", NO_EXCESS, worst, source)
    yield from _corrected_logit_bounds(item, logits, rotary, f"{source}, corrected")


def _corrected_logit_bounds(
    item: str, logits: Array, rotary: theory.Rotary, source: str
) -> Iterator[dict[str, object]]:
    least, most = theory.by_distance(logits)
    lower, upper = theory.rope_logit_range(rotary, printed=False)
    for name, excess in (("below its lower bound", lower - least), ("above its upper bound", most - upper)):
        quantity = f"how far a logit is {name}, corrected; d = {2 * len(rotary.multiples)}"
        yield _row("", item, quantity, NO_EXCESS, excess.max(axis=(0, -1)), source)


def _gaussian(
    items: tuple[str, str], attention: Array, rotary: theory.Rotary, exponent: str
) -> Iterator[dict[str, object]]:
    products = theory.products(attention)
    sides = {
        (items[0], f"A_ij over C e^-c{exponent}"): theory.gaussian_ratio(attention, rotary),
        (items[1], f"P_ij over C^(t+1) binom(t+x, x) e^-c{exponent}"): theory.gaussian_path_ratio(products, rotary),
    }
    for (item, ratio), (least, most) in sides.items():
        source = f"{item}; constants are ours"
        yield _row(ROPE, item, f"smallest {ratio}, lower constants corrected", ABOVE_BOUND, least, source)
        divided = ", c / (t+1)" if item == items[1] else ""
        yield _row(ROPE, item, f"largest {ratio}{divided}, upper constants corrected", BELOW_BOUND, most, source)


def _appendix_g(tokens: int) -> Iterator[dict[str, object]]:
    """Eq. 12: how many paths its product has. Eq. 16: how small the squares along a path can be."""
    item = "Theorem 4.7"
    grid = [(t, x) for t in DEPTHS for x in range(1, tokens)]
    for claim, shift, name in ((STEPS, 0, "binom(t+x, x) as printed"), ("", 1, "binom(t-1+x, x) corrected")):
        counted = np.array([theory.paths_through(t, x) for t, x in grid], np.float64)
        expected = np.array([np.exp(theory.log_paths(t - shift, x)) for t, x in grid]).round()
        quantity = f"how far the number of paths through t layers is from {name} (relative)"
        yield _row(claim, item, quantity, NO_EXCESS, np.abs(counted / expected - 1), "Eq. 12 and Appendix G")
    for printed, name in ((True, "D^2 / 2 as printed"), (False, "D^2 / (t+1) corrected")):
        smallest = [theory.least_squares_of_steps(t + 1, x) / (x**2 / (2 if printed else t + 1)) for t, x in grid]
        quantity = f"smallest sum of squares of t+1 steps over a distance D, over {name}"
        yield _row(STEPS if printed else "", item, quantity, ABOVE_BOUND, smallest, "Eq. 16")


def _appendix_h() -> Iterator[dict[str, object]]:
    """L of Theorem 4.7 alone: where it is largest, and how that moves."""
    item, source = "Theorem 4.7", "Appendix H"
    grid = [(t, angle) for t in DEPTHS for angle in ANGLES]
    largest = [theory.peak(np.exp(_profile(t, angle))) for t, angle in grid]
    for claim, power, name in ((STEPS, 1, "2 theta x as printed"), ("", 2, "2 theta^2 x corrected")):
        away = [
            abs(found - theory.critical_point(t, angle**power)) for found, (t, angle) in zip(largest, grid, strict=True)
        ]
        quantity = f"largest distance of the peak of L from the x with log((t+x) / x) = {name}"
        yield _row(claim, item, quantity, SAME_DISTANCE, away, source)
    critical = np.array([[theory.critical_point(t, angle**2) for angle in ANGLES] for t in DEPTHS])
    by_depth, by_angle = np.diff(critical, axis=0), np.diff(critical, axis=1)
    yield _row(ROPE_PEAK, item, "smallest step of the critical point of L with t", RISES, by_depth, source)
    yield _row(ROPE_PEAK, item, "largest step of the critical point of L with theta", FALLS, by_angle, source)


def _profile(depth: int, angle: float) -> Array:
    """L over every distance up to where it must fall, less its maximum."""
    furthest = int(sqrt(depth / 2) / angle) + 2
    profile = theory.rope_profile(depth, angle, np.arange(furthest + 1))
    return profile - profile.max()


def _rope_peaks(tokens: int) -> Iterator[dict[str, object]]:
    """Where content-free RoPE attention has its peak, and whether L moves as fast (`theory.critical_point`).

    The second question and its two bounds came up after a first look at the peaks.
    """
    item, source = "Theorem 4.7", "Theorem 4.7; content-free"
    peaks = theory.rope_peaks(tokens).pivot(index="depth", columns="angle", values="peak").to_numpy()
    yield from _steps(ROPE_PEAK, item, "theta", peaks, tokens, source)
    first, last = DEPTHS[0], DEPTHS[-1]
    bounds = {
        "at most that of L, whatever its c, as printed": sqrt(last / first),
        "at most that of L with c / (t+1), corrected": sqrt(last * (last + 1) / (first * (first + 1))),
    }
    for name, bound in bounds.items():
        quantity = f"growth of the peak of P from t = {first} to {last}, {name}; {tokens} tokens"
        yield _row(
            "",
            item,
            quantity,
            Prediction("<", bound),
            peaks[-1] / peaks[0],
            f"{source}, if L locates the peak; ours, after a first look",
        )


# Appendix I


def _segments(rotary: theory.Rotary) -> Iterator[dict[str, object]]:
    _, angles = theory.angles_between(rotary.query, rotary.key)
    ratio = angles / theory.segment_slack(rotary.query, rotary.key)[..., None]
    quantity = "largest angle of a segment over its bound, as printed; d = 6"
    yield _row(STEPS, "Lemma I.3", quantity, BELOW_BOUND, ratio.max(axis=(0, 2, 3, 4)), "Lemma I.3")
    logits = theory.rope_logits(rotary)
    yield from _corrected_logit_bounds("Lemma I.1", logits, rotary, "Appendix I.2, corrected as Appendix F")
    attention = masked_softmax(logits, causal_mask(rotary.n))
    yield from _gaussian(("Lemma I.1", "Theorem I.2"), attention, rotary, " sum (x alpha theta_1)^2")
