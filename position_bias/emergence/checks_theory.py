"""These checks judge Theorems 4.1-4.7 and I.2 of Wu et al. 2025 and their lemmas, on random and content-free attention.

A statement about all tokens, layers and contents is judged by its worst draw, which is what `measured` holds; low and
high are its range over draws (or, where nothing is drawn, over the settings named), and n is how many there were. A
constant that a proof prints, or what its proof needs, is judged beside the corrected one where the two differ: a
theorem that asks for some constant is judged with one that suffices, and what its proof prints is a claim of its own. A
row that speaks of both is in the table once for each. Every bound follows from the statement; thresholds of our own are
named so in `source`. A row whose two sides are equal by construction is an identity: its source says so, and it speaks
of no claim.

A theorem that says "up to constants" of finitely many tokens excludes nothing as it stands. Under the condition of
Lemma 4.6, (x theta)^2 is at most pi^2, so that its Gaussian is itself a factor between two constants; any positive
weights satisfy Theorem 4.7, with any c. It is therefore judged by what the paper uses it for, the shape over distances:
one c must do for every depth. What bounds the weights from both sides, below 1/2, has a claim that we add.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, product
from math import pi, sqrt
from typing import Any

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
BELOW_HALF = Prediction("<", 0.5)  # a bound on a weight, which is at most 1
SAME_DISTANCE = Prediction("<", 1)  # a whole distance from a point that need not be whole
ONE_FOR_ALL = Prediction("=", 1, pi**2 / 8 - 1)  # a quotient of coefficients: 4 / pi^2 to 1/2 bound one cosine
RISES, FALLS = Prediction(">", 0), Prediction("<", 0)

PAPER_TOKENS, PAPER_DEPTHS = 17, (1, 3, 5)  # Section 5: sequences of 17 tokens, 2, 4 and 6 layers
WIDE = pi / 5  # delta theta_1 where Appendix F is judged: angle between a query and a key, at most
NORMS = (0.5, 2.0)  # of those queries and keys
# Where Lemmas 4.6 and I.1 are judged: contents differ so little that constants are small, and attention is so steep,
# |q| |k| = 25, that the Gaussians fall far below 1/2
STEEP, ALIKE, UNEVENNESS = (4.99, 5.01), 0.05, 0.001
ANGLES = (0.01, 0.02, 0.05, 0.1, 0.2)  # theta_1, where L alone is judged
MULTIPLES = (1.0, 2.0, 4.0)  # Lemma I.1, d = 6: alpha
# Tokens and window of the sequences whose bound in Theorem 4.2 falls below 1/2 within 100 layers: eps^R is about w^-R
SHORT = ((3, 2), (4, 2), (5, 2), (5, 3), (7, 3), (7, 4))
FAINT = 0.05  # of random logits there, which keeps eps close to 1/w
RATIOS, NARROW = (16, 32), (3, 5)  # (tokens - 1) / (window - 1), and windows, where layers are counted
CLOSE = 0.1  # relative: of a count of layers, where the rest is of the order of log(window)
# Ids of claims that rows of several items speak of
CONSTANTS = "emergence-appendix-a-e"  # the constants that the proofs print
STEPS = "emergence-appendix-f-i"  # the steps of the proofs for RoPE as printed
WINDOW = "emergence-theorem-4-2"
WINDOW_RATE, WINDOW_LAYERS = "emergence-theorem-4-2-rate", "emergence-theorem-4-2-layers"
DECAY, DECAY_PEAK = "emergence-theorem-4-5", "emergence-theorem-4-5-peak"
GAUSSIAN = "emergence-lemma-4-6"
ROPE = "emergence-theorem-4-7"
ROPE_BOUNDS, ROPE_PEAK = "emergence-theorem-4-7-bounds", "emergence-theorem-4-7-peak"


def tables(numbers: Mapping[str, Any], scale: str) -> dict[str, pd.DataFrame]:
    """The verdicts, twice, and the curves of the figure `theorems`; `numbers` is the configuration of theory."""
    verdicts = table(**numbers, scale=scale)
    run = {name: numbers[name] for name in ("tokens", "layers", "draws", "seed")}
    return {
        "csv": verdicts,
        "md": verdicts,
        "convergence": theory.convergence(**run),
        "decay": theory.decay_profiles(numbers["peak_tokens"]),
        "rope": theory.rope_profiles(numbers["peak_tokens"]),
        "peaks": theory.decay_peaks(numbers["peak_tokens"]),
    }


def table(tokens: int, layers: int, draws: int, seed: int, peak_tokens: int, scale: str) -> pd.DataFrame:
    """Return a verdict on every statement (`statements`), in the schema of `verdict.COLUMNS`."""
    return verdict.table(PAPER, scale, chain.from_iterable(statements(tokens, layers, draws, seed, peak_tokens)))


def statements(
    tokens: int, layers: int, draws: int, seed: int, peak_tokens: int
) -> tuple[Iterator[dict[str, object]], ...]:
    """Yield rows on every statement, statement by statement, worked out as they are read.

    Bounds are checked on `draws` random stacks of `layers` layers of `tokens` tokens (with relative positions only as
    many layers as the deepest of `theory.DEPTHS` has), limits after the last layer, so `layers` should be many times
    `tokens`; peaks on content-free sequences of `peak_tokens`, which should be many times as far as any peak. Raises
    ValueError where a number is too small.
    """
    longest = max(n for n, _ in SHORT)
    if tokens < longest:
        raise ValueError(f"tokens = {tokens}: windows and prefixes need at least {longest}")
    path_layers = max(DEPTHS) + 1
    logits = theory.random_logits(layers, draws, tokens, seed)
    contents = {"random attention": logits, "uniform attention": np.zeros((layers, 1, tokens, tokens))}
    wide = theory.random_rotary(path_layers, draws, tokens, seed, slack=WIDE, norms=NORMS)
    steep = theory.random_rotary(path_layers, draws, tokens, seed, slack=ALIKE, norms=STEEP)
    segments = theory.random_rotary(
        path_layers, draws, tokens, seed, slack=ALIKE / 2, norms=STEEP, multiples=MULTIPLES, unevenness=UNEVENNESS
    )
    return (
        _causal(contents),
        _windows(contents),
        _short_windows(contents),
        _window_times(layers),
        _prefixes(contents),
        _decay({name: some[:path_layers] for name, some in contents.items()}),
        _decay_peaks(peak_tokens),
        _appendix_f(wide),
        _gaussian(("Lemma 4.6", "Theorem 4.7"), steep, "(x theta_1)^2"),
        _quarter_turn(peak_tokens, path_layers),
        _appendix_g(tokens),
        _appendix_h(),
        _rope_peaks(peak_tokens),
        _segments(segments),
    )


def _row(
    claim: str, item: str, quantity: str, prediction: Prediction, values: npt.ArrayLike, source: str
) -> dict[str, object]:
    """One number a draw or setting; the worst of them is judged, and their range is shown."""
    every = np.asarray(values, np.float64)
    judged = verdict.exact_row(claim, item, quantity, prediction, every, source)
    return {**judged, "low": float(every.min()), "high": float(every.max())}


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
    """The limit of Theorem 4.2, and Lemma B.1: R layers are the fewest through which every token reads the first."""
    item = "Theorem 4.2"
    for content, logits in contents.items():
        n = logits.shape[-1]
        for window in (w for w in theory.WINDOWS if w < n):
            mask, setting = sliding_window_mask(n, window), f"window {window}; {content}"
            attention, steps = masked_softmax(logits, mask), theory.walk_length(n, window)
            yield _limit(WINDOW, item, "1 - P(first token)", theory.products(attention), 1, setting)
            if steps > len(attention):
                continue  # too few layers for a walk
            floor = theory.smallest_weight(attention, mask) ** steps
            least = theory.smallest_weight(theory.blocks(attention, steps), causal_mask(n))
            quantity = f"smallest weight of R = {steps} layers over eps^R; {setting}"
            yield _row(WINDOW, "Lemma B.1", quantity, ABOVE_BOUND, least / floor, "Lemma B.1; c from Appendix B")
            unread = theory.blocks(attention, steps - 1)[..., -1, 0].max(axis=0)
            quantity = f"largest weight of {steps - 1} layers of the last token on the first; {setting}"
            yield _row(WINDOW, "Lemma B.1", quantity, NO_EXCESS, unread, "Lemma B.1: walks have R steps")


def _short_windows(contents: dict[str, Array]) -> Iterator[dict[str, object]]:
    """The bound of Theorem 4.2 where it says something: few steps R, few tokens a window."""
    item, ratios, first, reached = "Theorem 4.2", [], [], []
    for logits, (n, window) in product(contents.values(), SHORT):
        layers, mask = len(logits), sliding_window_mask(n, window)
        attention = masked_softmax(FAINT * logits[..., :n, :n], mask)
        products, floor = theory.products(attention), theory.smallest_weight(attention, mask)
        bound, early = theory.window_bound(floor, n, window, layers), theory.first_steps_bound(floor, n, window)
        ratios.append(theory.share_of_bound(products, bound))
        first.append(theory.share_of_bound(products[: len(early)], early))
        reached.append(np.exp(bound[-1].max(axis=-1)))
    settings = f"w of n tokens: {', '.join(f'{window} of {n}' for n, window in SHORT)}"
    quantity = f"largest P_ij over C (1 - (j-1) eps^R)^(t/2R); {settings}"
    yield _row(WINDOW, item, quantity, BELOW_BOUND, np.concatenate(ratios), "Theorem 4.2; C is our addition")
    quantity = f"largest bound after {layers} layers; {settings}"
    yield _row("", item, quantity, BELOW_HALF, np.concatenate(reached), "our addition: the check above is not empty")
    quantity = f"largest P_ij over (1 - eps)^((t+1)/R) as printed, t < R; {settings}"
    yield _row(CONSTANTS, item, quantity, BELOW_BOUND, np.concatenate(first), "Appendix B, j > 1")


def _window_times(layers: int) -> Iterator[dict[str, object]]:
    """What length over window sets in uniform attention: how many layers convergence takes, and not its rate."""
    item = "Theorem 4.2"
    rates = {
        (n, window): theory.walk_length(n, window) * theory.rate(theory.mass_without_content(n, window, layers))
        for n, window in SHORT
    }
    shortest = {window: min(n for n, w in SHORT if w == window) for _, window in SHORT}
    longer = [found / rates[shortest[w], w] for (n, w), found in rates.items() if n > shortest[w]]
    quantity = f"R times the rate of 1 - P(first token) after {layers // 2} layers, over that of the smallest R"
    source = "Section 4.1: a rate set by length over window; the bound of Theorem 4.2 has t / 2R"
    yield _row(WINDOW_RATE, item, f"{quantity}; windows of 2 and 3, uniform attention", BELOW_BOUND, longer, source)

    half = {(R, w): theory.layers_to_half(R * (w - 1) + 1, w) for R in RATIOS for w in NARROW}
    (short, long), (narrow, wide) = RATIOS, NARROW
    twice = {
        "over 2R": (1, [half[R, w] / (2 * theory.walk_length(R * (w - 1) + 1, w)) for R, w in half]),
        f"with R = {long} over that with R = {short}": (long / short, [half[long, w] / half[short, w] for w in NARROW]),
        f"of window {wide} over that of {narrow} with the same R": (
            1,
            [half[R, wide] / half[R, narrow] for R in RATIOS],
        ),
    }
    for name, (expected, found) in twice.items():
        quantity = f"layers until the first token has half of the mass, {name}; uniform attention"
        prediction, source = Prediction("=", expected, CLOSE * expected), "our addition: the mean step is (w - 1) / 2"
        yield _row(WINDOW_LAYERS, item, quantity, prediction, found, f"{source}; the margin is our addition")


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
            # Without content, all columns of the prefix are equal, and so are the two sides of what follows.
            identity = not logits.any()
            spoken_of, note = ("", "; an identity: all prefix tokens weigh the same") if identity else (claim, "")
            share = products[-1, ..., :prefix].min(axis=(-2, -1)) / theory.prefix_share(attention, prefix)
            quantity = f"smallest P_ik over kappa after {layers} layers; {setting}"
            source = f"Theorem 4.3; kappa as Appendix C implies it{note}"
            yield _row(spoken_of, item, quantity, ABOVE_BOUND, share, source)
            for printed, last in ((True, "min(i, K) as printed"), (False, "max(i, K) corrected")):
                ratio = theory.prefix_ratio(attention, products, prefix, printed=printed)
                quantity = f"smallest P_ik / P_ik' over the smallest A_lk / A_lk', l up to {last}; {setting}"
                spoken_of = CONSTANTS if printed and not identity else ""
                yield _row(spoken_of, item, quantity, ABOVE_BOUND, ratio, f"Appendix C{note}")


def _limit(claim: str, item: str, name: str, products: Array, centres: int, setting: str) -> dict[str, object]:
    quantity = f"largest {name} after {len(products)} layers; {setting}"
    source = f"{item}; depth and threshold are our additions"
    return _row(claim, item, quantity, VANISHES, theory.mass_beyond(products[-1], centres).max(axis=-1), source)


# Lemma 4.4 and Theorem 4.5


def _decay(contents: dict[str, Array]) -> Iterator[dict[str, object]]:
    for content, logits in contents.items():
        spread, distance = theory.logit_range(logits), np.arange(logits.shape[-1], dtype=float)
        entries: dict[str, list[Array]] = {"floor": [], "printed": [], "corrected": []}
        paths: dict[str, list[Array]] = {"floor": [], "printed": [], "corrected": []}
        for m in theory.DECAYS:
            attention = theory.decay_attention(logits, m)
            extremes = theory.by_distance(theory.products(attention))
            least, most = theory.decay_ratio(attention, m)
            floor = theory.decay_floor(spread, m)
            ceilings = {"printed": theory.decay_ceiling_printed(spread, m), "corrected": theory.decay_ceiling(spread)}
            entries["floor"].append(least / floor)
            for name, ceiling in ceilings.items():
                entries[name].append(most / ceiling)
                bounds = theory.path_bounds(len(attention), m * distance, floor, ceiling)
                below, above = theory.path_ratio(*extremes, *bounds)
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
        below = np.floor(some["critical"] * (1 + ROUNDING))
        quantity = f"largest distance of the peak of P from t / (e^m - 1) rounded down, m = {m:.3g}; {tokens} tokens"
        yield _row(DECAY_PEAK, item, quantity, NO_EXCESS, (some["peak"] - below).abs(), source)
    few = theory.decay_peaks(PAPER_TOKENS)
    few = few[np.isclose(few["decay"], theory.DECAY) & few["depth"].isin(PAPER_DEPTHS)]
    quantity = f"largest distance of the peak of P from t / (e^m - 1), m = {theory.DECAY:.3g}; {PAPER_TOKENS} tokens"
    away = (few["peak"] - few["critical"]).abs()
    added = "our additions are the length and the depths of Section 5"
    yield _row("", item, quantity, SAME_DISTANCE, away, f"{source}; {added}")
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


def _appendix_f(rotary: theory.Rotary) -> Iterator[dict[str, object]]:
    """Whether Appendix F's constants can be the same for all distances, and its bounds without that condition."""
    item, logits = "Lemma 4.6", theory.rope_logits(rotary)
    for name, quotient in zip(("C_min", "C_max"), theory.single_constants(logits, rotary), strict=True):
        quantity = f"what {name} has to be at least over what it may be at most, one for all distances as printed"
        yield _row(STEPS, item, quantity, BELOW_BOUND, quotient, "Appendix F")
    yield from _corrected_logit_bounds(item, logits, rotary, "Appendix F, corrected")


def _corrected_logit_bounds(
    item: str, logits: Array, rotary: theory.Rotary, source: str
) -> Iterator[dict[str, object]]:
    least, most = theory.by_distance(logits)
    lower, upper = theory.rope_logit_range(rotary)
    for name, excess in (("below its lower bound", lower - least), ("above its upper bound", most - upper)):
        quantity = f"how far a logit is {name}, corrected; d = {2 * len(rotary.multiples)}"
        yield _row("", item, quantity, NO_EXCESS, excess.max(axis=(0, -1)), source)


def _gaussian(items: tuple[str, str], rotary: theory.Rotary, exponent: str) -> Iterator[dict[str, object]]:
    attention = masked_softmax(theory.rope_logits(rotary), causal_mask(rotary.n))
    lemma, theorem = items
    sides = theory.gaussian_ratio(attention, rotary)
    yield from _one_layer(lemma, exponent, "random content", sides)
    paths = theory.gaussian_path_ratio(theory.products(attention), rotary)
    yield from _many_layers(theorem, exponent, "random content", paths)


def _one_layer(
    item: str, exponent: str, setting: str, sides: tuple[npt.ArrayLike, npt.ArrayLike]
) -> Iterator[dict[str, object]]:
    for prediction, side, c, ratio in zip(
        (ABOVE_BOUND, BELOW_BOUND), ("smallest", "largest"), ("c", "c'"), sides, strict=True
    ):
        quantity = f"{side} A_ij over C e^-{c} {exponent}; {setting}"
        yield _row(GAUSSIAN, item, quantity, prediction, ratio, f"{item}; the constants are our additions")


def _many_layers(
    item: str, exponent: str, setting: str, sides: tuple[npt.ArrayLike, npt.ArrayLike]
) -> Iterator[dict[str, object]]:
    for prediction, side, c, ratio in zip(
        (ABOVE_BOUND, BELOW_BOUND), ("smallest", "largest"), ("c", "c' / (t+1)"), sides, strict=True
    ):
        quantity = f"{side} P_ij over C^(t+1) binom(t+x, x) e^-{c} {exponent}; {setting}"
        source = f"our addition: {item} with Appendix G's squares of steps"
        yield _row(ROPE_BOUNDS, item, quantity, prediction, ratio, source)


def _quarter_turn(tokens: int, layers: int) -> Iterator[dict[str, object]]:
    """Content-free attention up to a quarter of a turn, where constants from below and above are almost the same."""
    turn = theory.quarter_turn(tokens, layers)
    setting, exponent = f"no content, {tokens} tokens, up to a quarter turn", "(x theta_1)^2"
    rows, bounds = turn.rows[:, None], turn.bounds()
    first = tuple(bound[:1] for bound in bounds)
    yield from _one_layer("Lemma 4.6", exponent, setting, theory.path_ratio(rows[:1], rows[:1], *first))
    item = "Theorem 4.7"
    yield from _many_layers(item, exponent, setting, theory.path_ratio(rows, rows, *bounds))
    largest = np.exp(bounds[1]).max(axis=(1, 2))
    source = "our addition: the check above is not empty"
    yield _row("", item, f"largest upper bound; {setting}", BELOW_HALF, largest, source)
    asked = turn.coefficients()
    quantity = f"c that t = {', '.join(map(str, DEPTHS))} asks for over that of t = 0, one c for every t; {setting}"
    source = "Theorem 4.7; margin: how far a cosine leaves c open at t = 0"
    yield _row(ROPE, item, quantity, ONE_FOR_ALL, asked[list(DEPTHS)] / asked[0], source)


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
            f"{source}, if L locates the peak; our addition, after a first look",
        )


# Appendix I


def _segments(rotary: theory.Rotary) -> Iterator[dict[str, object]]:
    _, angles = theory.angles_between(rotary.query, rotary.key)
    ratio = angles / theory.segment_slack(rotary.query, rotary.key)[..., None]
    quantity = "largest angle of a segment over its bound, as printed; d = 6"
    yield _row(STEPS, "Lemma I.3", quantity, BELOW_BOUND, ratio.max(axis=(0, 2, 3, 4)), "Lemma I.3")
    logits = theory.rope_logits(rotary)
    yield from _corrected_logit_bounds("Lemma I.1", logits, rotary, "Appendix I.2, corrected as Appendix F")
    yield from _gaussian(("Lemma I.1", "Theorem I.2"), rotary, "sum (x alpha theta_1)^2")
