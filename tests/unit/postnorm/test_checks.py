"""Statistics on small tables whose values are worked out by hand, and all of them in a world that is as predicted."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from tests.unit.postnorm.world import (
    AVERAGING,
    DEPTH,
    DIMENSION,
    LEVEL,
    TESTS,
    WORLD,
    judged,
    stability_of,
    statistics,
)
from tests.worlds import assert_units, frame, row

NAN = np.nan


@pytest.fixture(scope="module")
def papers():
    return judged()


def measure(name, **given):
    """The tables of the statistics of that name, in order."""
    return [found.table for found in statistics(**given) if found.name == name]


def assert_measured(name, *expected, **given):
    """The statistics of that name, in order, have these numbers by network and unit."""
    for table, numbers in zip(measure(name, **given), expected, strict=True):
        assert_units(table, numbers)


def by_length(task, trained, curves):
    """Tests of one task, of (scheme, seed, quantity) -> values at lengths 1, 2, ...; None is no test."""
    rows = [
        (task, *key[:2], length, key[2], value, trained)
        for key, values in curves.items()
        for length, value in enumerate(values, 1)
        if value is not None
    ]
    return frame(rows, *TESTS)


# What was not trained


def test_nothing_is_said_of_what_was_not_trained():
    assert judged(widths=WORLD["widths"][:0]).empty
    assert set(judged(sets=WORLD["sets"])["item"]) == {"Set complement", "Legal tokens", "Dispersion", "Gap laws"}


def test_a_scheme_that_was_not_trained_disturbs_no_other():
    sets = WORLD["sets"]
    found, papers = judged(sets=sets[sets["scheme"] != "peri"]), judged(sets=sets)
    of_it = (found["network"] == "peri") | (found["other"] == "peri")
    assert set(found.loc[of_it, "verdict"]) == {"not testable here"}
    assert set(found.loc[of_it, "n"]) == {0}
    pd.testing.assert_frame_equal(found[~of_it], papers[~of_it])


def test_a_seed_that_diverged_is_counted_in_rows_of_its_scheme():
    sets = WORLD["sets"]
    found = judged(sets=sets[(sets["scheme"] != "peri") | (sets["seed"] != 2)])
    of_it = (found["network"] == "peri") | (found["other"] == "peri")
    # Differences beyond L, at L, among legal tokens, dispersion, gap laws; of both v.
    assert of_it.sum() == 2 * (3 + 1 + 2 + 3 + 1)
    assert found["left_out"].tolist() == of_it.astype(int).tolist()


# The Set Complement Task, by scheme


def test_distances_are_means_beyond_the_trained_length_and_at_it():
    curves = {
        ("pre", 0, "tvd"): (0.9, 0.1, 0.2, 0.3, 0.7),
        ("pre", 1, "tvd"): (0.9, 0.2, 0.2, 0.2, 0.2),
        ("peri-init", 1, "tvd"): (0.9, 0.4, 0.6, 0.7, 0.8),
        ("post", 0, "legal_tvd"): (0.5, 0.5, 0.1, 0.3, 0),
    }
    tests = by_length("set-complement-6", 2, curves)
    assert_measured("tvd beyond L", {"pre": [0.4, 0.2], "peri-init": [NAN, 0.7]}, sets=tests)
    assert_measured("tvd at L", {"pre": [0.1, 0.2], "peri-init": [NAN, 0.4]}, sets=tests)
    assert_measured("tvd at the longest less at L", {"pre": [0.6, 0], "peri-init": [NAN, 0.4]}, sets=tests)
    assert_measured("legal tvd beyond L", {"post": [0.2]}, sets=tests)  # as far as two legal tokens are left


def test_vocabularies_come_by_size_with_their_trained_lengths():
    parts = [by_length(f"set-complement-{v}", v // 4, {("pre", 0, "tvd"): np.full(v - 1, 0.1 * v)}) for v in (32, 4)]
    found = [one for one in statistics(sets=pd.concat(parts)) if one.name == "tvd at L"]
    assert [one.setting for one in found] == [{"v": 4, "L": 1}, {"v": 32, "L": 8}]
    assert [one.table["pre"].tolist() for one in found] == [[0.4], [3.2]]


def test_attention_is_in_units_of_uniform_one_with_a_slope():
    s = np.arange(1.0, 6)
    curves = {
        ("none", 0, "largest_weight"): np.where(s > 2, s**-1.5, 0.4),
        ("post", 0, "largest_weight"): np.where(s > 2, 3 / s, 0.5),
        ("post", 1, "largest_weight"): (0.5, 0.3, 0.2, 0, 0),
    }
    tests = by_length("set-complement-6", 2, curves)
    assert_measured("largest weight at L", {"none": [0.8, NAN], "post": [1, 0.6]}, sets=tests)
    assert_measured("largest weight against s", {"none": [-1.5, NAN], "post": [-1, NAN]}, sets=tests)


# Laws

V, S = 12, np.arange(1.0, 12)
LAWS = {"C/s": 1 / S, "C/sqrt(s(v-s))": (S * (V - S)) ** -0.5, "C/2^s": 2.0**-S}


def gaps(curves, trained=2):
    return by_length(f"set-complement-{V}", trained, {(*key, "gap"): values for key, values in curves.items()})


def test_slopes_are_those_of_plain_regressions():
    powers = {"none": ("C/s", 1), "pre": ("C/2^s", 0.5), "peri": ("C/sqrt(s(v-s))", 3)}
    curves = {scheme: 5 * LAWS[law] ** power for scheme, (law, power) in powers.items()}
    tests = gaps({(scheme, 0): np.where(S > 2, curve, 9) for scheme, curve in curves.items()})
    printed = np.log(LAWS["C/2^s"][2:])
    regressions = {
        scheme: [scipy.stats.linregress(printed, np.log(curve[2:])).slope] for scheme, curve in curves.items()
    }
    assert_measured("gap against C/2^s", regressions, sets=tests)
    assert regressions["pre"] == pytest.approx([0.5])


def test_gaps_up_to_0_have_no_logarithm_and_one_gap_no_slope():
    follows = {seed: (3 + seed) * 2.0**-S for seed in range(4)}
    follows[0][6], follows[1][8], follows[2][2:10], follows[3][:] = 0, -0.3, -1, -1
    tests = gaps({("none", seed): curve for seed, curve in follows.items()})
    assert_measured("gap against C/2^s", {"none": [1, 1, NAN, NAN]}, sets=tests)


def test_symmetry_compares_s_with_its_mirror_image():
    """Beyond the trained length, where both have a logarithm; pairs beyond 3: 4 and 8, 5 and 7."""
    curve = np.array([9, 9, 9, 2, 3, 7, 6, 8, 1, 1, 1.0])
    lacking = {("post", 1): np.where(S == 7, 0, curve), ("post", 2): np.where(S > 6, -1, curve)}
    asymmetry = {"post": [np.log(4 * 2) / 2, np.log(4), NAN]}
    assert_measured("asymmetry of the gap", asymmetry, sets=gaps({("post", 0): curve, **lacking}, trained=3))
    all_in_the_second_half = gaps({("post", 0): curve}, trained=6)
    assert_measured("asymmetry of the gap", {}, sets=all_in_the_second_half)


# Width


def widths_of(**by_width):
    """d2=..., of 5 tokens and so of 4 dimensions, by seed; at L = 2, and 2 and 4 times that at 3 and 4 tokens."""
    rows = [
        ("set-complement-5", "peri", seed, length, "tvd", value * 2 ** (length - 2), 2, int(width[1:]))
        for width, by_seed in by_width.items()
        for seed, value in enumerate(by_seed)
        for length in (2, 3, 4)
    ]
    return frame(rows, *DIMENSION).dropna()


def test_widths_are_compared_by_seed():
    widths = widths_of(d2=(0.9, 0.6, 0.7), d3=(0.5, 0.4, 0.8), d4=(0.3, 0.2, 0.1), d6=(0.2, 0.3, 0.3))
    for name, times in (("beyond", 3), ("at", 1)):
        losses = np.array([(0.2, 0.2, 0.7), (0.6, 0.4, 0.6), (-0.1, 0.1, 0.2)])
        half, less, wider = ({"peri": times * of_width} for of_width in losses)
        assert_measured(f"tvd {name} L, narrower", half, less, widths=widths)
        assert_measured(f"tvd {name} L, wider", wider, widths=widths)


def test_a_seed_that_one_width_lacks_is_left_out():
    """Widths that were not trained cannot be tested."""
    found = judged(widths=widths_of(d3=(0.5, 0.4, NAN), d4=(0.3, 0.2, 0.1)))
    assert len(found) == 2 * 2  # widths 3 and 2, beyond and at L; nothing of wider ones
    three, two = (row(found, "tvd at L, narrower", "peri", d=width) for width in (3, 2))
    assert (three["measured"], three["n"], three["left_out"]) == (pytest.approx(0.2), 2, 1)
    assert two["verdict"] == "not testable here"


# Averaged weights


def averages_of(task, trained, quantity, values):
    """(decay, weights, eta) -> by seed, at the trained length; at another one there are other values."""
    rows = [
        (task, "peri", seed, length, quantity, value + length - trained, trained, *key)
        for key, by_seed in values.items()
        for seed, value in enumerate(by_seed)
        for length in (trained, trained + 1)
    ]
    return frame(rows, *AVERAGING)


OF_RATE = {  # by weights and seed
    "constant": {"raw": (0.5, 0.8), "ema": (0.4, 0.7), 0.2: (0.3, 0.2), 0.5: (0.1, 0.6)},
    "decaying": {"raw": (0.45, 0.75), "ema": (0.35, 0.65), 0.2: (0.25, 0.15), 0.5: (0.05, 0.55)},
}
BY_WEIGHTS = {
    (rate == "decaying", *((weights, 0.0) if isinstance(weights, str) else ("bema", weights))): values
    for rate, by_weights in OF_RATE.items()
    for weights, values in by_weights.items()
}
ETAS = {"the paper's": 0.2, "another": 0.5}


@pytest.mark.parametrize("rate", OF_RATE)
def test_averages_stand_beside_the_last_weights(rate):
    """At the trained length."""
    legal, of_rate = averages_of("set-complement-8", 2, "legal_tvd", BY_WEIGHTS), OF_RATE[rate]
    alone = {name: of_rate[name] for name in ("raw", "ema")}
    assert_measured(f"legal tvd of averages at a {rate} rate", alone, averages=legal)
    for whose, eta in ETAS.items():
        assert_measured(f"legal tvd at a {rate} rate, {whose} eta", {**alone, "bema": of_rate[eta]}, averages=legal)
    assert_measured("gain of BEMA, the paper's eta", averages=legal)  # of one vocabulary


def test_a_seed_that_diverged_at_a_constant_rate_is_not_started():
    lacking = {key: values if key[0] else values[:1] for key, values in BY_WEIGHTS.items()}
    found = judged(averages=averages_of("set-complement-8", 2, "legal_tvd", lacking))
    for rate, n in (("constant", 1), ("decaying", 2)):
        of_bema = row(found, f"legal tvd at a {rate} rate, the paper's eta", "raw", "bema")
        assert (of_bema["n"], of_bema["left_out"]) == (n, 0)


def test_gains_are_compared_from_a_vocabulary_to_the_next():
    """At a decaying rate."""
    smallest = averages_of("set-complement-8", 2, "legal_tvd", BY_WEIGHTS)
    between = averages_of("set-complement-32", 8, "legal_tvd", dict.fromkeys(BY_WEIGHTS, (9, 9)))
    half = {key: np.multiply(values, 0.5 if key[2] == 0.2 else 1) for key, values in BY_WEIGHTS.items()}
    largest = averages_of("set-complement-96", 24, "legal_tvd", half)
    low, high = {"larger": (0, 0), "smaller": (4 / 9, 0.8)}, {"larger": (0.325 / 0.45, 0.9), "smaller": (0, 0)}
    together = pd.concat([largest, smallest, between])
    assert_measured("gain of BEMA, the paper's eta", low, high, averages=together)


def test_where_one_output_is_legal_averages_are_compared_by_all():
    one = averages_of("maximum-10", 10, "tvd", BY_WEIGHTS)
    among_legal = averages_of("maximum-10", 10, "legal_tvd", dict.fromkeys(BY_WEIGHTS, (0, 0)))
    table = pd.concat([one, among_legal])
    assert_measured("legal tvd of averages at a decaying rate", averages=table)
    alone = [{name: of[name] for name in ("raw", "ema")} for of in OF_RATE.values()]
    assert_measured("tvd with one answer", *alone, averages=table)
    for whose, eta in ETAS.items():
        with_bema = [{**of, "bema": OF_RATE[rate][eta]} for rate, of in zip(OF_RATE, alone, strict=True)]
        assert_measured(f"tvd with one answer, {whose} eta", *with_bema, averages=table)


# Languages

DYCK = {
    ("pre", 0, "tvd"): (0.1, 0.3, 0.5, 0.7),
    ("pre", 1, "tvd"): (0.2, 0.2, 0.4, 0.4),
    ("peri", 0, "tvd"): (0.1, 0.1, 0.2, 0.4),
    ("peri", 1, "tvd"): (0.2, 0.2, 0.1, 0.3),
    ("pre", 0, "auc"): (None, 0.9, None, 0.5),
    ("peri", 0, "auc"): (None, 0.9, 0.7, 0.9),
}
MAXIMUM = {("pre", seed, "tvd"): (0.3, 0.3, 0.9, 0.9) for seed in range(2)} | {("peri", 0, "tvd"): (0.2, 0.4, 0.4, 0.6)}


def test_languages_are_measured_beyond_l_and_up_to_it():
    """A seed that lacks a task is not in the mean over tasks, which is taken up to L alone."""
    tests = pd.concat([by_length("dyck-2-3", 2, DYCK), by_length("maximum-10", 2, MAXIMUM)])
    dyck, maximum = {"pre": (0.6, 0.4), "peri": (0.3, 0.2)}, {"pre": (0.9, 0.9), "peri": (0.5, NAN)}
    assert_measured("tvd of languages beyond L", dyck, maximum, sets=tests)
    assert_measured("auc of languages beyond L", {"pre": [0.5], "peri": [0.8]}, sets=tests)
    fit = {"pre": (0.2, 0.2, 0.3, 0.3), "peri": (0.1, 0.2, 0.3, NAN)}
    assert_measured("tvd of languages up to L", fit, sets=tests)
    mean = row(judged(sets=tests), "tvd of languages up to L", "peri", "pre")
    assert (mean["measured"], mean["n"], mean["left_out"]) == (pytest.approx(-0.05), 1, 1)


# Depth


def test_brackets_are_measured_deeper_than_in_training_and_not():
    rows = [
        (scheme, 0, deeper, quantity, value)
        for scheme, values in {"pre": (0.1, 0.9, 0.4, 0.6), "post": (0.2, 0.8, 0.3, 0.7)}.items()
        for (deeper, quantity), value in zip(product((False, True), ("tvd", "auc")), values, strict=True)
    ]
    for name, pre, post in (
        ("tvd of deeper brackets", 0.4, 0.3),
        ("auc of deeper brackets", 0.6, 0.7),
        ("tvd of brackets of trained depth", 0.1, 0.2),
        ("tvd of deeper brackets less that of trained depth", 0.3, 0.1),
    ):
        assert_measured(name, {"pre": pre, "post": post}, brackets=frame(rows, *DEPTH))


# Stability


def trouble(loss, norm):
    """The highest gradient and whether a training breaks, by the definition, an iteration at a time."""
    highest, spikes, broken, lowest = -np.inf, 0, 0, np.inf
    for iteration, (at, gradient) in enumerate(zip(loss, norm, strict=True), 1):
        broken += not (np.isfinite(at) and np.isfinite(gradient))
        if np.isfinite(gradient) and gradient > 0:
            highest = max(highest, gradient)
        if np.isfinite(at):
            spikes += iteration > 20 and at > lowest + 1
            lowest = min(lowest, at)
    return np.log10(highest), bool(spikes or broken)


def random_trainings(rng, schemes, settings):
    """Losses and norms of which about half break: some are not finite, and some jump."""
    for scheme, setting, seed in product(schemes, settings, range(6)):
        loss, norm = 3 + 0.3 * rng.normal(size=60), np.exp(2 * rng.normal(size=60))
        if seed % 3 == 0:
            loss[rng.integers(30, 60)] = rng.choice([NAN, np.inf, 9.0])
        norm[rng.random(60) < 0.1] = 0
        yield (scheme, *setting, seed), (loss, norm)


def test_trainings_break_as_their_definition_says():
    settings = list(product((1, 8), (0.01, 0.3)))
    random = dict(random_trainings(np.random.default_rng(11), ("post", "pre-final"), settings))
    curves = stability_of(random)
    gradients = measure("highest gradient", trainings=curves)
    broken = measure("trainings that break", trainings=curves)
    for setting, gradient, breaks in zip(settings, gradients, broken, strict=True):
        found = {
            scheme: [trouble(*random[scheme, *setting, seed]) for seed in range(6)] for scheme in ("post", "pre-final")
        }
        assert_units(gradient, {scheme: [one for one, _ in of_scheme] for scheme, of_scheme in found.items()})
        pair = breaks["post", "pre-final"]
        for place, of_scheme in enumerate(found.values()):
            assert pair[place].tolist() == [float(breaks) for _, breaks in of_scheme]


def test_shares_that_break_are_compared_by_intervals_of_counts():
    ones = np.ones(30)
    curves = stability_of(
        {
            (scheme, 1, 0.1, seed): (ones, NAN * ones if scheme == "peri" else ones)
            for scheme in ("pre", "post", "peri")
            for seed in range(5)
        }
    )
    found = judged(trainings=curves)
    more = row(found, "trainings that break", "peri", "pre")
    exact = [scipy.stats.binomtest(k, 5).proportion_ci((1 + LEVEL) / 2) for k in (5, 0)]
    assert (more["measured"], more["n"]) == (1, 5)
    assert (more["low"], more["high"]) == pytest.approx((exact[0].low - exact[1].high, exact[0].high - exact[1].low))
    assert more["verdict"] == "undecided"  # 5 of 5 and 0 of 5 leave open rates of a half
    mirrored = row(found, "trainings that break", "post", "peri")
    assert (mirrored["measured"], mirrored["low"], mirrored["high"]) == (-1, -more["high"], -more["low"])


def test_a_training_that_ends_early_breaks():
    reached = {("pre", 1, 0.1, 0): 30, ("post", 1, 0.1, 0): 21}
    [broken] = measure(
        "trainings that break", trainings=stability_of({k: (np.ones(n), np.ones(n)) for k, n in reached.items()})
    )
    assert broken["pre", "post"].dropna().tolist() == [0, 1]
