"""Statistics on small tables whose values are worked out by hand, and all of them in a world that is as predicted."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.postnorm import checks
from position_bias.verdicts.judge import KEYS
from position_bias.verdicts.registry import predictions
from tests.unit.postnorm.world import (
    AVERAGING,
    DEPTH,
    DIMENSION,
    LEVEL,
    PREDICTED,
    TESTS,
    WORLD,
    frame,
    inputs,
    judged,
    stability_of,
)

NAN = np.nan


@pytest.fixture(scope="module")
def papers():
    return judged()


def find(table, *fragments):
    """The one row whose quantity has these fragments."""
    found = table[[all(fragment in quantity for fragment in fragments) for quantity in table["quantity"]]]
    assert len(found) == 1, f"{fragments}: {found['quantity'].tolist()}"
    return found.iloc[0]


def measure(name, **given):
    """The tables of the statistics of that name, in order."""
    return [found.table for found in checks.statistics(*inputs(**given)) if found.name == name]


def assert_columns(table, **expected):
    """Columns have these values by unit, and there is nothing in any other; dashes of names are underscores."""
    wanted = {name.replace("_", "-"): values for name, values in expected.items()}
    for name in table:
        np.testing.assert_allclose(table[name], wanted.pop(name, NAN), atol=1e-12, err_msg=name)
    assert not wanted


def by_length(task, trained, curves):
    """Tests of one task, of (scheme, seed, quantity) -> values at lengths 1, 2, ...; None is no test."""
    rows = [
        (task, *key[:2], length, key[2], value, trained)
        for key, values in curves.items()
        for length, value in enumerate(values, 1)
        if value is not None
    ]
    return frame(rows, TESTS)


# The table


def test_what_is_measured_is_what_something_is_predicted_of(papers):
    assert set(papers["statistic"]) == set(predictions(PREDICTED, "postnorm"))
    assert not papers["quantity"].duplicated().any()
    assert not papers.duplicated(list(KEYS)).any()


def test_nothing_is_said_of_what_was_not_trained():
    assert judged(widths=WORLD["widths"][:0]).empty
    assert set(judged(sets=WORLD["sets"])["item"]) == {"Set complement", "Legal tokens", "Dispersion", "Gap laws"}


def test_a_scheme_that_was_not_trained_cannot_be_tested_and_disturbs_no_other(papers):
    found = judged(sets=WORLD["sets"][WORLD["sets"]["scheme"] != "peri"])
    of_it = (found["network"] == "peri") | (found["other"] == "peri")
    assert set(found.loc[of_it, "verdict"]) == {"not testable here"}
    assert set(found.loc[of_it, "n"]) == {0}
    assert found.loc[of_it, ["measured", "low", "high"]].isna().all(axis=None)
    of_sets = papers[papers["item"].isin(found["item"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(found[~of_it], of_sets[~of_it])


def test_a_seed_that_diverged_under_one_scheme_is_counted_in_every_row_of_that_scheme_and_in_no_other(papers):
    sets = WORLD["sets"]
    found = judged(sets=sets[(sets["scheme"] != "peri") | (sets["seed"] != 2)])
    of_it = (found["network"] == "peri") | (found["other"] == "peri")
    # Differences beyond L, at L, among legal tokens, dispersion, gap laws; of both v.
    assert of_it.sum() == 2 * (3 + 1 + 2 + 3 + 2)
    assert found["left_out"].tolist() == of_it.astype(int).tolist()
    assert set(papers["left_out"]) == {0}


# The Set Complement Task, by scheme


def test_distances_are_means_beyond_the_trained_length_those_at_it_and_how_they_rise():
    curves = {
        ("pre", 0, "tvd"): (0.9, 0.1, 0.2, 0.3, 0.7),
        ("pre", 1, "tvd"): (0.9, 0.2, 0.2, 0.2, 0.2),
        ("peri-init", 1, "tvd"): (0.9, 0.4, 0.6, 0.7, 0.8),
    }
    tests = by_length("set-complement-6", 2, curves)
    [beyond], [at], [rise] = (
        measure(name, sets=tests) for name in ("tvd beyond L", "tvd at L", "tvd at the longest less at L")
    )
    assert_columns(beyond, pre=[0.4, 0.2], peri_init=[NAN, 0.7])
    assert_columns(at, pre=[0.1, 0.2], peri_init=[NAN, 0.4])
    assert_columns(rise, pre=[0.6, 0], peri_init=[NAN, 0.4])


def test_bias_among_legal_tokens_is_that_beyond_the_trained_length_where_two_are_left():
    tests = by_length("set-complement-6", 2, {("post", 0, "legal_tvd"): (0.5, 0.5, 0.1, 0.3, 0)})
    [bias] = measure("legal tvd beyond L", sets=tests)
    assert_columns(bias, post=[0.2])


def test_vocabularies_come_by_size_with_their_trained_lengths():
    parts = [by_length(f"set-complement-{v}", v // 4, {("pre", 0, "tvd"): np.full(v - 1, 0.1 * v)}) for v in (32, 4)]
    found = [one for one in checks.statistics(*inputs(sets=pd.concat(parts))) if one.name == "tvd at L"]
    assert [one.setting for one in found] == [{"v": 4, "L": 1}, {"v": 32, "L": 8}]
    assert [one.table["pre"].tolist() for one in found] == [[0.4], [3.2]]


def test_attention_is_in_units_of_uniform_one_at_the_trained_length_and_has_a_slope_beyond_it():
    s = np.arange(1.0, 6)
    curves = {
        ("none", 0, "largest_weight"): np.where(s > 2, s**-1.5, 0.4),
        ("post", 0, "largest_weight"): np.where(s > 2, 3 / s, 0.5),
        ("post", 1, "largest_weight"): (0.5, 0.3, 0.2, 0, 0),
    }
    tests = by_length("set-complement-6", 2, curves)
    [at], [slope] = (measure(name, sets=tests) for name in ("largest weight at L", "largest weight against s"))
    assert_columns(at, none=[0.8, NAN], post=[1, 0.6])
    assert_columns(slope, none=[-1.5, NAN], post=[-1, NAN])


# Laws

V, S = 12, np.arange(1.0, 12)
LAWS = {"C/s": 1 / S, "C/sqrt(s(v-s))": (S * (V - S)) ** -0.5, "C/2^s": 2.0**-S}


def gaps(curves, trained=2):
    return by_length(f"set-complement-{V}", trained, {(*key, "gap"): values for key, values in curves.items()})


def test_slopes_are_those_of_plain_regressions_and_a_power_of_a_law_has_its_exponent_against_it():
    powers = {"none": ("C/s", 1), "pre": ("C/2^s", 0.5), "peri": ("C/sqrt(s(v-s))", 3)}
    curves = {scheme: 5 * LAWS[law] ** power for scheme, (law, power) in powers.items()}
    tests = gaps({(scheme, 0): np.where(S > 2, curve, 9) for scheme, curve in curves.items()})
    for law, of_law in LAWS.items():
        [slopes] = measure(f"gap against {law}", sets=tests)
        regressions = {
            scheme: [scipy.stats.linregress(np.log(of_law[2:]), np.log(curve[2:])).slope]
            for scheme, curve in curves.items()
        }
        assert_columns(slopes, **regressions)
    for scheme, (law, power) in powers.items():
        [slopes] = measure(f"gap against {law}", sets=tests)
        assert slopes[scheme].tolist() == pytest.approx([power])


def test_a_gap_that_is_not_above_0_is_left_out_of_logarithms_and_a_seed_with_too_few_of_the_rest_altogether():
    follows = {seed: (3 + seed) / S for seed in range(4)}
    follows[0][6], follows[1][8], follows[2][2:10], follows[3][:] = 0, -0.3, -1, -1
    [slopes] = measure("gap against C/s", sets=gaps({("none", seed): curve for seed, curve in follows.items()}))
    assert_columns(slopes, none=[1, 1, NAN, NAN])


def test_symmetry_compares_s_with_its_mirror_image_beyond_the_trained_length_where_both_have_a_logarithm():
    """Pairs beyond 3: 4 and 8, 5 and 7."""
    curve = np.array([9, 9, 9, 2, 3, 7, 6, 8, 1, 1, 1.0])
    lacking = {("post", 1): np.where(S == 7, 0, curve), ("post", 2): np.where(S > 6, -1, curve)}
    [asymmetry] = measure("asymmetry of the gap", sets=gaps({("post", 0): curve, **lacking}, trained=3))
    assert_columns(asymmetry, post=[np.log(4 * 2) / 2, np.log(4), NAN])
    [all_in_the_second_half] = measure("asymmetry of the gap", sets=gaps({("post", 0): curve}, trained=6))
    assert_columns(all_in_the_second_half, post=[NAN])


# Width


def widths_of(**by_width):
    """d2=..., of 5 tokens and so of 4 dimensions, by seed; at L = 2, and 2 and 4 times that at 3 and 4 tokens."""
    rows = [
        ("set-complement-5", "peri", seed, length, "tvd", value * 2 ** (length - 2), 2, int(width[1:]))
        for width, by_seed in by_width.items()
        for seed, value in enumerate(by_seed)
        for length in (2, 3, 4)
    ]
    return frame(rows, DIMENSION).dropna()


def test_widths_are_compared_by_seed():
    widths = widths_of(d2=(0.9, 0.6, 0.7), d3=(0.5, 0.4, 0.8), d4=(0.3, 0.2, 0.1), d6=(0.2, 0.3, 0.3))
    for name, times in (("beyond", 3), ("at", 1)):
        half, less, wider = measure(f"tvd {name} L, narrower", widths=widths) + measure(
            f"tvd {name} L, wider", widths=widths
        )
        np.testing.assert_allclose(half["peri"], times * np.array([0.2, 0.2, 0.7]))
        np.testing.assert_allclose(less["peri"], times * np.array([0.6, 0.4, 0.6]))
        np.testing.assert_allclose(wider["peri"], times * np.array([-0.1, 0.1, 0.2]))


def test_a_seed_that_one_width_lacks_is_left_out_and_widths_that_were_not_trained_cannot_be_tested():
    found = judged(widths=widths_of(d3=(0.5, 0.4, NAN), d4=(0.3, 0.2, 0.1)))
    assert len(found) == 2 * 2  # widths 3 and 2, beyond and at L; nothing of wider ones
    row = find(found, "d = 3 - d = 4", "TVD at")
    assert (row["measured"], row["n"], row["left_out"]) == (pytest.approx(0.2), 2, 1)
    assert find(found, "d = 2 - d = 4", "TVD at")["verdict"] == "not testable here"


# Averaged weights


def averages_of(task, trained, quantity, values):
    """(decay, weights, eta) -> by seed, at the trained length; at another one there are other values."""
    rows = [
        (task, "peri", seed, length, quantity, value + length - trained, trained, *key)
        for key, by_seed in values.items()
        for seed, value in enumerate(by_seed)
        for length in (trained, trained + 1)
    ]
    return frame(rows, AVERAGING)


BY_WEIGHTS = {
    (False, "raw", 0.0): (0.5, 0.8),
    (False, "ema", 0.0): (0.4, 0.7),
    (False, "bema", 0.2): (0.3, 0.2),
    (False, "bema", 0.5): (0.1, 0.6),
    (True, "raw", 0.0): (0.45, 0.75),
    (True, "ema", 0.0): (0.35, 0.65),
    (True, "bema", 0.2): (0.25, 0.15),
    (True, "bema", 0.5): (0.05, 0.55),
}


def test_averages_stand_beside_the_last_weights_of_the_same_training_at_the_trained_length():
    legal = averages_of("set-complement-8", 2, "legal_tvd", BY_WEIGHTS)
    [constant], [decaying] = (
        measure(f"legal tvd of averages at a {rate} rate", averages=legal) for rate in ("constant", "decaying")
    )
    assert_columns(constant, raw=(0.5, 0.8), ema=(0.4, 0.7))
    assert_columns(decaying, raw=(0.45, 0.75), ema=(0.35, 0.65))
    for rate, whose, raw, ema, bema in (
        ("constant", "the paper's", (0.5, 0.8), (0.4, 0.7), (0.3, 0.2)),
        ("constant", "another", (0.5, 0.8), (0.4, 0.7), (0.1, 0.6)),
        ("decaying", "the paper's", (0.45, 0.75), (0.35, 0.65), (0.25, 0.15)),
        ("decaying", "another", (0.45, 0.75), (0.35, 0.65), (0.05, 0.55)),
    ):
        [table] = measure(f"legal tvd at a {rate} rate, {whose} eta", averages=legal)
        assert_columns(table, raw=raw, ema=ema, bema=bema)
    assert not measure("gain of BEMA, the paper's eta", averages=legal)  # of one vocabulary


def test_a_seed_that_diverged_at_a_constant_rate_is_not_started_there():
    lacking = {key: values if key[0] else values[:1] for key, values in BY_WEIGHTS.items()}
    found = judged(averages=averages_of("set-complement-8", 2, "legal_tvd", lacking))
    for rate, n in (("constant", 1), ("decaying", 2)):
        row = find(found, f"raw - BEMA; eta = 0.2, {rate} rate")
        assert (row["n"], row["left_out"]) == (n, 0)


def test_gains_at_a_decaying_rate_are_shares_and_are_compared_from_a_vocabulary_to_the_next():
    smallest = averages_of("set-complement-8", 2, "legal_tvd", BY_WEIGHTS)
    between = averages_of("set-complement-32", 8, "legal_tvd", dict.fromkeys(BY_WEIGHTS, (9, 9)))
    half = {key: np.multiply(values, 0.5 if key[2] == 0.2 else 1) for key, values in BY_WEIGHTS.items()}
    largest = averages_of("set-complement-96", 24, "legal_tvd", half)
    together = pd.concat([largest, smallest, between])
    low, high = measure("gain of BEMA, the paper's eta", averages=together)
    assert_columns(low, larger=(0, 0), smaller=(4 / 9, 0.8))
    assert_columns(high, larger=(0.325 / 0.45, 0.9), smaller=(0, 0))


def test_where_one_output_is_legal_averages_are_compared_by_all_of_the_distance():
    one = averages_of("maximum-10", 10, "tvd", BY_WEIGHTS)
    among_legal = averages_of("maximum-10", 10, "legal_tvd", dict.fromkeys(BY_WEIGHTS, (0, 0)))
    table = pd.concat([one, among_legal])
    assert not measure("legal tvd of averages at a decaying rate", averages=table)
    for name, constant, decaying in (
        ("tvd with one answer, the paper's eta", (0.3, 0.2), (0.25, 0.15)),
        ("tvd with one answer, another eta", (0.1, 0.6), (0.05, 0.55)),
        ("tvd with one answer", (NAN, NAN), (NAN, NAN)),
    ):
        at_constant, at_decaying = measure(name, averages=table)
        assert_columns(at_constant, raw=(0.5, 0.8), ema=(0.4, 0.7), bema=constant)
        assert_columns(at_decaying, raw=(0.45, 0.75), ema=(0.35, 0.65), bema=decaying)


# Languages

DYCK = {
    ("pre", 0, "tvd"): (0.1, 0.3, 0.5, 0.7),
    ("pre", 1, "tvd"): (0.2, 0.2, 0.4, 0.4),
    ("pre", 2, "tvd"): (0.2, 0.2, 0.4, 0.4),
    ("peri", 0, "tvd"): (0.1, 0.1, 0.2, 0.4),
    ("peri", 1, "tvd"): (0.0, 0.2, 0.1, 0.1),
    ("peri", 2, "tvd"): (0.2, 0.2, 0.1, 0.3),
    ("pre", 0, "auc"): (None, 0.9, None, 0.5),
    ("peri", 0, "auc"): (None, 0.9, 0.7, 0.9),
}
MAXIMUM = {("pre", seed, "tvd"): (0.3, 0.3, 0.9, 0.9) for seed in range(3)} | {
    ("peri", 0, "tvd"): (0.2, 0.4, 0.4, 0.6),
    ("peri", 2, "tvd"): (0.3, 0.3, 0.8, 0.8),
}
TESTS_OF_LANGUAGES = pd.concat([by_length("dyck-2-3", 2, DYCK), by_length("maximum-10", 2, MAXIMUM)])


def test_languages_are_measured_beyond_the_trained_length_and_up_to_it():
    dyck, maximum = measure("tvd of languages beyond L", sets=TESTS_OF_LANGUAGES)
    assert_columns(dyck, pre=(0.6, 0.4, 0.4), peri=(0.3, 0.1, 0.2))
    assert_columns(maximum, pre=(0.9, 0.9, 0.9), peri=(0.5, NAN, 0.8))
    [only_dyck] = measure("auc of languages beyond L", sets=TESTS_OF_LANGUAGES)
    assert_columns(only_dyck, pre=[0.5], peri=[0.8])
    [fit] = measure("tvd of languages up to L", sets=TESTS_OF_LANGUAGES)
    assert_columns(fit.loc["dyck-2-3"], pre=(0.2, 0.2, 0.2), peri=(0.1, 0.1, 0.2))


def test_a_seed_that_lacks_a_task_is_not_in_the_mean_over_tasks():
    found = judged(sets=TESTS_OF_LANGUAGES)
    for fragment, by_seed, left_out in (
        ("mean TVD beyond L, pre - peri; dyck-2-3", (0.3, 0.3, 0.2), 0),
        ("mean TVD beyond L, pre - peri; maximum-10", (0.4, 0.1), 1),
        ("mean TVD up to L, peri - pre; all tasks", (-0.05, 0), 1),
    ):
        row = find(found, fragment)
        interval = scipy.stats.ttest_1samp(by_seed, 0).confidence_interval(LEVEL)
        assert (row["measured"], row["low"], row["high"]) == pytest.approx((np.mean(by_seed), *interval))
        assert (row["n"], row["left_out"]) == (len(by_seed), left_out)


# Depth


def test_brackets_are_measured_deeper_than_in_training_and_not():
    rows = [
        (scheme, 0, deeper, quantity, value)
        for scheme, values in {"pre": (0.1, 0.9, 0.4, 0.6), "post": (0.2, 0.8, 0.3, 0.7)}.items()
        for (deeper, quantity), value in zip(product((False, True), ("tvd", "auc")), values, strict=True)
    ]
    table = pd.DataFrame(rows, columns=DEPTH)
    for name, pre, post in (
        ("tvd of deeper brackets", 0.4, 0.3),
        ("auc of deeper brackets", 0.6, 0.7),
        ("tvd of brackets of trained depth", 0.1, 0.2),
        ("tvd of deeper brackets less that of trained depth", 0.3, 0.1),
    ):
        [found] = measure(name, brackets=table)
        assert_columns(found, pre=[pre], post=[post])


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


def test_gradients_and_trainings_that_break_are_as_their_definition_says():
    settings = list(product((1, 8), (0.01, 0.3)))
    random = dict(random_trainings(np.random.default_rng(11), ("post", "pre-final"), settings))
    curves = stability_of(random)
    gradients = measure("highest gradient", trainings=curves)
    broken = measure("trainings that break", trainings=curves)
    for setting, gradient, breaks in zip(settings, gradients, broken, strict=True):
        found = {
            scheme: [trouble(*random[scheme, *setting, seed]) for seed in range(6)] for scheme in ("post", "pre-final")
        }
        assert_columns(
            gradient, post=[one for one, _ in found["post"]], pre_final=[one for one, _ in found["pre-final"]]
        )
        pair = breaks["post", "pre-final"]
        for place, of_scheme in enumerate(found.values()):
            assert pair[place].tolist() == [float(breaks) for _, breaks in of_scheme]
    [most] = measure("trainings that break where most do", trainings=curves)
    pd.testing.assert_frame_equal(most, broken[-1])


def test_shares_of_trainings_that_break_are_compared_by_the_intervals_of_both_counts():
    ones = np.ones(30)
    curves = stability_of(
        {
            (scheme, 1, 0.1, seed): (ones, NAN * ones if scheme == "pre" else ones)
            for scheme in ("pre", "pre-final", "peri")
            for seed in range(5)
        }
    )
    row = find(judged(trainings=curves), "share of trainings that break, pre - pre-final")
    exact = [scipy.stats.binomtest(k, 5).proportion_ci((1 + LEVEL) / 2) for k in (5, 0)]
    assert (row["measured"], row["n"]) == (1, 5)
    assert (row["low"], row["high"]) == pytest.approx((exact[0].low - exact[1].high, exact[0].high - exact[1].low))
    assert row["verdict"] == "undecided"  # 5 of 5 and 0 of 5 leave open rates of a half
    mirrored = find(judged(trainings=curves), "share of trainings that break, peri - pre;")
    assert (mirrored["measured"], mirrored["low"], mirrored["high"]) == (-1, -row["high"], -row["low"])


def test_a_training_that_ends_early_breaks():
    reached = {("pre", 1, 0.1, 0): 30, ("post", 1, 0.1, 0): 21}
    [broken] = measure(
        "trainings that break", trainings=stability_of({k: (np.ones(n), np.ones(n)) for k, n in reached.items()})
    )
    assert broken["pre", "post"].dropna().tolist() == [0, 1]
