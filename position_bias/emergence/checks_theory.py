"""These checks judge Theorems 4.1-4.7 and I.2 of Wu et al. 2025 and their lemmas, on random and content-free attention.

A statement about all tokens, layers and contents is judged by its worst draw (or, where nothing is drawn, by the worst
of the settings named), which is what `measured` holds; n is how many there were. A constant that a proof prints, or
what its proof needs, is judged beside the corrected one where the two differ: a theorem that asks for some constant is
judged with one that suffices, and what its proof prints is a claim of its own. A row that speaks of both is in the
table once for each. Every bound follows from the statement; thresholds of our own are named so in `source`. A row whose
two sides are equal by construction is an identity: its source says so, and it speaks of no claim.

A theorem that says "up to constants" of finitely many tokens excludes nothing as it stands. Under the condition of
Lemma 4.6, (x theta)^2 is at most pi^2, so that its Gaussian is itself a factor between two constants; any positive
weights satisfy Theorem 4.7, with any c: an identity. We add two claims. One is on what the paper uses the theorem for,
the shape over distances, for which one c must do for every depth. The other is on what bounds the weights from both
sides, below 1/2.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, product
from math import pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from position_bias.emergence import theory
from position_bias.emergence.theory import DEPTHS
from position_bias.verdicts.judge import Statistic, judge, readable, table, worst
from position_bias.verdicts.registry import predictions
from position_card.rollout.attention import Array, Mask, causal_mask, masked_softmax, prefix_mask, sliding_window_mask

PAPER = "emergence"

ROUNDING = 1e-12  # of a peak's place, before it is rounded down
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


def theorem_tables(numbers: Mapping[str, Any], predicted: Path, scale: str) -> dict[str, pd.DataFrame]:
    """Return the verdicts on the theorems, for programs and for people, and the curves of the figure of theorems.

    `numbers` is the section emergence.theory of the configuration, `predicted` the registry of predictions.
    """
    verdicts = theorem_checks(**numbers, predicted=predicted, scale=scale)
    run = {name: numbers[name] for name in ("tokens", "layers", "draws", "seed")}
    return {
        "csv": verdicts,
        "md": readable(verdicts),
        "convergence": theory.convergence(**run),
        "decay": theory.decay_profiles(numbers["peak_tokens"]),
        "rope": theory.rope_profiles(numbers["peak_tokens"]),
        "peaks": theory.decay_peaks(numbers["peak_tokens"]),
    }


def theorem_checks(
    tokens: int, layers: int, draws: int, seed: int, peak_tokens: int, predicted: Path, scale: str
) -> pd.DataFrame:
    """Return a verdict on every statement (`theorem_statements`), in the schema of `judge.COLUMNS`, with keys."""
    statistics = chain.from_iterable(theorem_statements(tokens, layers, draws, seed, peak_tokens))
    return table(PAPER, scale, judge(statistics, predictions(predicted, PAPER)))


def theorem_statements(
    tokens: int, layers: int, draws: int, seed: int, peak_tokens: int
) -> tuple[Iterator[Statistic], ...]:
    """Yield what every statement is judged by, statement by statement, worked out as it is read.

    Bounds are checked on `draws` random stacks of `layers` layers of `tokens` tokens; with relative positions, only on
    as many layers as the deepest of `theory.DEPTHS` has. Limits are checked after the last layer, so `layers` should be
    many times `tokens`. Peaks are checked on content-free sequences of `peak_tokens`, which should be many times as far
    as any peak.
    """
    path_layers = max(DEPTHS) + 1
    logits, zeros = theory.random_logits(layers, draws, tokens, seed), np.zeros((layers, 1, tokens, tokens))
    contents = {"random attention": logits, "uniform attention": zeros}
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
        _decay({"random content": logits[:path_layers], "no content": zeros[:path_layers]}),
        _decay_peaks(peak_tokens),
        _one_constant(wide),
        _gaussian("Lemma 4.6", "Theorem 4.7", steep),
        _quarter_turn(peak_tokens, path_layers),
        _paths(tokens),
        _profile_peaks(),
        _rope_peaks(peak_tokens),
        _segments(segments),
    )


def _numbers(name: str, setting: Mapping[str, object], **columns: npt.ArrayLike) -> Statistic:
    """Return the statistic of numbers of a draw or setting each, which is judged by the worst of them.

    `columns` are numbers that stand beside each other, such as those by the printed and by the corrected constant.
    """
    table = pd.DataFrame({column: np.ravel(values) for column, values in columns.items()})
    return Statistic(name, table, setting, worst)


def _two_sides(name: str, setting: Mapping[str, object], sides: tuple[npt.ArrayLike, npt.ArrayLike]) -> Statistic:
    """Return a statistic of quotients by, or differences from, a bound from below and one from above, in this order."""
    lower, upper = sides
    return _numbers(name, setting, lower=lower, upper=upper)


# Theorems 4.1-4.3


def _masked_attention(logits: Array, mask: Mask) -> tuple[Array, Array, Array]:
    """Return attention through a mask, `[T, D, n, n]`, its products, likewise, and epsilon, `[D]`."""
    attention = masked_softmax(logits, mask)
    return attention, theory.products(attention), theory.smallest_weight(attention, mask)


def _limit(theorem: str, setting: Mapping[str, object], products: Array, centres: int) -> Statistic:
    mass = theory.mass_beyond(products[-1], centres).max(axis=-1)
    return _numbers(f"{theorem}: limit", {**setting, "layers": len(products)}, value=mass)


def _causal(contents: dict[str, Array]) -> Iterator[Statistic]:
    for content, logits in contents.items():
        layers, n = len(logits), logits.shape[-1]
        _, products, floor = _masked_attention(logits, causal_mask(n))
        share = theory.share_of_bound(products, theory.prefix_bound(floor, n, 1, layers))
        yield _numbers("Theorem 4.1: weight over its bound", {"content": content}, printed=share)
        yield _limit("Theorem 4.1", {"content": content}, products, 1)


def _windows(contents: dict[str, Array]) -> Iterator[Statistic]:
    """The limit of Theorem 4.2, and Lemma B.1: R layers are the fewest through which every token reads the first."""
    for content, logits in contents.items():
        n = logits.shape[-1]
        for window in (w for w in theory.WINDOWS if w < n):
            mask, steps = sliding_window_mask(n, window), theory.walk_length(n, window)
            setting = {"window": window, "content": content}
            attention, products, floor = _masked_attention(logits, mask)
            yield _limit("Theorem 4.2", setting, products, 1)
            if steps > len(attention):
                continue  # too few layers for a walk
            least = theory.smallest_weight(theory.blocks(attention, steps), causal_mask(n))
            yield _numbers("Lemma B.1: R layers", {"R": steps, **setting}, value=least / floor**steps)
            not_reached = theory.blocks(attention, steps - 1)[..., -1, 0].max(axis=0)
            yield _numbers("Lemma B.1: fewer layers", {"layers": steps - 1, **setting}, value=not_reached)


def _short_windows(contents: dict[str, Array]) -> Iterator[Statistic]:
    """The bound of Theorem 4.2 where it says something: few steps R, few tokens a window."""
    ratios, first, bounds = [], [], []
    for logits, (n, window) in product(contents.values(), SHORT):
        _, products, floor = _masked_attention(FAINT * logits[..., :n, :n], sliding_window_mask(n, window))
        bound = theory.window_bound(floor, n, window, len(logits))
        early = theory.first_steps_bound(floor, n, window)
        ratios.append(theory.share_of_bound(products, bound))
        first.append(theory.share_of_bound(products[: len(early)], early))
        bounds.append(np.exp(bound[-1].max(axis=-1)))
    setting = {"windows": ", ".join(f"{window} of {n}" for n, window in SHORT)}
    yield _numbers("Theorem 4.2: weight over its bound", setting, value=np.concatenate(ratios))
    yield _numbers("Theorem 4.2: bound", {"layers": len(products), **setting}, value=np.concatenate(bounds))
    yield _numbers("Theorem 4.2: weight over its bound, t < R", setting, printed=np.concatenate(first))


def _window_times(layers: int) -> Iterator[Statistic]:
    """What length over window sets in uniform attention: how many layers convergence takes, and not its rate."""
    rates = {
        (n, window): theory.walk_length(n, window) * theory.rate(theory.mass_without_content(n, window, layers))
        for n, window in SHORT
    }
    shortest = {window: min(n for n, w in SHORT if w == window) for _, window in SHORT}
    longer = [rate / rates[shortest[w], w] for (n, w), rate in rates.items() if n > shortest[w]]
    yield _numbers("Theorem 4.2: rate", {"layers": layers // 2}, value=longer)

    half = {(R, w): theory.layers_to_half(R * (w - 1) + 1, w) for R in RATIOS for w in NARROW}
    (short, long), (narrow, wide) = RATIOS, NARROW
    walks = [half[R, w] / (2 * theory.walk_length(R * (w - 1) + 1, w)) for R, w in half]
    yield _numbers("Theorem 4.2: layers to half over 2R", {}, value=walks)
    by_length, by_window = {"R": long, "other R": short}, {"window": wide, "other window": narrow}
    longer = [half[long, w] / half[short, w] for w in NARROW]
    yield _numbers("Theorem 4.2: layers to half, by R", by_length, value=longer)
    wider = [half[R, wide] / half[R, narrow] for R in RATIOS]
    yield _numbers("Theorem 4.2: layers to half, by window", by_window, value=wider)


def _prefixes(contents: dict[str, Array]) -> Iterator[Statistic]:
    for content, logits in contents.items():
        layers, n = len(logits), logits.shape[-1]
        # Without content, all columns of the prefix are equal, and so are the two sides of what the proof compares.
        sides = "" if logits.any() else ", equal sides"
        for prefix in (k for k in theory.PREFIXES if k < n):
            setting = {"prefix": prefix, "content": content}
            attention, products, floor = _masked_attention(logits, prefix_mask(n, prefix))
            ratio = theory.share_of_bound(products, theory.prefix_bound(floor, n, prefix, layers))
            yield _numbers("Theorem 4.3: weight over its bound", setting, printed=ratio)
            yield _limit("Theorem 4.3", setting, products, prefix)
            share = products[-1, ..., :prefix].min(axis=(-2, -1)) / theory.prefix_share(attention, prefix)
            yield _numbers(f"Theorem 4.3: share over kappa{sides}", {"layers": layers, **setting}, value=share)
            ratios = {
                name: theory.prefix_ratio(attention, products, prefix, as_printed=name == "printed")
                for name in ("printed", "corrected")
            }
            yield _numbers(f"Theorem 4.3: ratio of shares{sides}", setting, **ratios)


# Lemma 4.4 and Theorem 4.5


def _decay(contents: dict[str, Array]) -> Iterator[Statistic]:
    """Yield the weights and path products of the decay mask over their bounds, by content and rate of decay.

    Columns are the quotients by the bound from below, and by those from above with the printed and with the corrected
    constant (Lemma 4.4, Theorem 4.5). `contents` are content logits `[layers, n, n]` by name.
    """
    for content, logits in contents.items():
        spread, distance = theory.logit_range(logits), np.arange(logits.shape[-1], dtype=float)
        entries, paths = defaultdict(list), defaultdict(list)
        for m in theory.DECAYS:
            attention = theory.decay_attention(logits, m)
            extremes = theory.by_distance(theory.products(attention))
            smallest, largest = theory.decay_ratio(attention, m)
            floor = theory.decay_floor(spread, m)
            ceilings = {"printed": theory.decay_ceiling_printed(spread, m), "corrected": theory.decay_ceiling(spread)}
            for name, ceiling in ceilings.items():
                bounds = theory.path_bounds(len(attention), m * distance, floor, ceiling)
                below, above = theory.path_ratio(*extremes, *bounds)
                entries[name].append(largest / ceiling)
                paths[name].append(above)
            entries["lower"].append(smallest / floor)
            paths["lower"].append(below)
        yield _numbers("Lemma 4.4: weight over its bound", {"content": content}, **entries)
        yield _numbers("Theorem 4.5: weight over its bound", {"content": content}, **paths)


def _decay_peaks(tokens: int) -> Iterator[Statistic]:
    peaks = theory.decay_peaks(tokens)
    for m, of_slope in peaks.groupby("decay"):
        below = np.floor(of_slope["critical"] * (1 + ROUNDING))
        setting = {"m": f"{m:.3g}", "tokens": tokens}
        yield _numbers("Theorem 4.5: distance of the peak", setting, value=(of_slope["peak"] - below).abs())
    of_paper = theory.decay_peaks(PAPER_TOKENS)
    of_paper = of_paper[np.isclose(of_paper["decay"], theory.DECAY) & of_paper["depth"].isin(PAPER_DEPTHS)]
    setting = {"m": f"{theory.DECAY:.3g}", "tokens": PAPER_TOKENS}
    errors = (of_paper["peak"] - of_paper["critical"]).abs()
    yield _numbers("Theorem 4.5: distance of the peak, few tokens", setting, value=errors)
    grid = peaks[peaks["depth"].isin(DEPTHS)].pivot(index="depth", columns="decay", values="peak").to_numpy()
    yield from _steps("Theorem 4.5: peak", {"tokens": tokens}, grid)


def _steps(name: str, setting: Mapping[str, object], peaks: Array) -> Iterator[Statistic]:
    """Of peaks `[depth, cause]`, both ascending."""
    depths = ", ".join(map(str, DEPTHS))
    yield _numbers(f"{name}, by t", {"depths": depths, **setting}, value=np.diff(peaks, axis=0))
    yield _numbers(f"{name}, by its cause", setting, value=np.diff(peaks, axis=1))


# Lemma 4.6 and Theorem 4.7


def _one_constant(rotary: theory.Rotary) -> Iterator[Statistic]:
    """Whether Appendix F's constants can be the same for all distances, and its bounds without that condition."""
    logits = theory.rope_logits(rotary)
    yield _two_sides("Lemma 4.6: one constant", {}, theory.single_constants(logits, rotary))
    yield _logits("Lemma 4.6", logits, rotary)


def _logits(lemma: str, logits: Array, rotary: theory.Rotary) -> Statistic:
    """How far logits are outside their corrected bounds."""
    smallest, largest = theory.by_distance(logits)
    lower, upper = theory.rope_logit_range(rotary)
    below, above = ((excess.max(axis=(0, -1))) for excess in (lower - smallest, largest - upper))
    return _two_sides(f"{lemma}: logits", {"d": 2 * len(rotary.multiples)}, (below, above))


def _gaussian(lemma: str, theorem: str, rotary: theory.Rotary) -> Iterator[Statistic]:
    attention = masked_softmax(theory.rope_logits(rotary), causal_mask(rotary.n))
    setting = {"content": "random content"}
    yield _two_sides(f"{lemma}: weight over its bound", setting, theory.gaussian_ratio(attention, 1, rotary))
    paths = theory.gaussian_ratio(theory.products(attention), len(attention), rotary)
    yield _two_sides(f"{theorem}: weight over its bound", setting, paths)


def _quarter_turn(tokens: int, layers: int) -> Iterator[Statistic]:
    """Content-free attention up to a quarter of a turn, where constants from below and above are almost the same."""
    turn = theory.quarter_turn(tokens, layers)
    setting = {"content": f"no content, {tokens} tokens, up to a quarter turn"}
    rows, bounds = turn.rows[:, None], turn.bounds()
    first = tuple(bound[:1] for bound in bounds)
    yield _two_sides("Lemma 4.6: weight over its bound", setting, theory.path_ratio(rows[:1], rows[:1], *first))
    yield _two_sides("Theorem 4.7: weight over its bound", setting, theory.path_ratio(rows, rows, *bounds))
    yield _numbers("Theorem 4.7: upper bound", setting, value=np.exp(bounds[1]).max(axis=(1, 2)))
    coefficients = turn.coefficients()
    depths = {"depths": ", ".join(map(str, DEPTHS))}
    yield _numbers("Theorem 4.7: one c", {**depths, **setting}, value=coefficients[list(DEPTHS)] / coefficients[0])


def _paths(tokens: int) -> Iterator[Statistic]:
    """Eq. 12: how many paths its product has. Eq. 16: how small the squares along a path can be."""
    grid = [(t, x) for t in DEPTHS for x in range(1, tokens)]
    counts = np.array([theory.paths_through(t, x) for t, x in grid], np.float64)
    by_print, by_correction = (
        np.array([np.exp(theory.log_paths(t - fewer, x)) for t, x in grid]).round() for fewer in (0, 1)
    )
    errors = {"printed": np.abs(counts / by_print - 1), "corrected": np.abs(counts / by_correction - 1)}
    yield _numbers("Theorem 4.7: number of paths", {}, **errors)
    squares = np.array([theory.least_squares_of_steps(t + 1, x) for t, x in grid], np.float64)
    depth, distance = np.array(grid, np.float64).T
    by_size = {"printed": squares / (distance**2 / 2), "corrected": squares / (distance**2 / (depth + 1))}
    yield _numbers("Theorem 4.7: squares of steps", {}, **by_size)


def _profile_peaks() -> Iterator[Statistic]:
    """Appendix H: L of Theorem 4.7 alone, where it is largest, and how that moves."""
    grid = list(product(DEPTHS, ANGLES))
    largest = np.array([theory.peak(np.exp(_profile(t, angle))) for t, angle in grid])
    by_print, by_correction = (
        np.array([theory.critical_point(t, angle**power) for t, angle in grid]) for power in (1, 2)
    )
    errors = {"printed": np.abs(largest - by_print), "corrected": np.abs(largest - by_correction)}
    yield _numbers("Theorem 4.7: distance of the peak of L", {}, **errors)
    yield from _steps("Theorem 4.7: peak of L", {}, by_correction.reshape(len(DEPTHS), len(ANGLES)))


def _profile(depth: int, angle: float) -> Array:
    """L over every distance up to where it must fall, less its maximum."""
    furthest = int(sqrt(depth / 2) / angle) + 2
    profile = theory.rope_profile(depth, angle, np.arange(furthest + 1))
    return profile - profile.max()


def _rope_peaks(tokens: int) -> Iterator[Statistic]:
    """Where content-free RoPE attention has its peak, and whether L moves as fast (`theory.critical_point`).

    L's place grows by sqrt(t' / t) at most, whatever its c, and by sqrt(t' (t' + 1) / t (t + 1)) with c / (t + 1). The
    second question and its two bounds came up after a first look at the peaks.
    """
    peaks = theory.rope_peaks(tokens).pivot(index="depth", columns="angle", values="peak").to_numpy()
    yield from _steps("Theorem 4.7: peak", {"tokens": tokens}, peaks)
    growth, setting = peaks[-1] / peaks[0], {"t": DEPTHS[-1], "first t": DEPTHS[0], "tokens": tokens}
    yield _numbers("Theorem 4.7: growth of the peak", setting, printed=growth, corrected=growth)


# Appendix I


def _segments(rotary: theory.Rotary) -> Iterator[Statistic]:
    """Yield how near angles of segments come to their bound (Lemma I.3), then Lemma I.1 and Theorem I.2."""
    _, angles = theory.angles_between(rotary.query, rotary.key)
    ratio = angles / theory.segment_slack(rotary.query, rotary.key)[..., None]
    yield _numbers("Lemma I.3: angle over its bound", {}, printed=ratio.max(axis=(0, 2, 3, 4)))
    yield _logits("Lemma I.1", theory.rope_logits(rotary), rotary)
    yield from _gaussian("Lemma I.1", "Theorem I.2", rotary)
