"""Statistics of worlds made by hand, unit by unit, and which rows they make of what is missing, lost or seen."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.emergence import checks
from position_bias.emergence.accuracy_gaps import summary
from position_bias.verdicts.judge import PREDICTION
from position_bias.verdicts.registry import Prediction
from tests.unit.emergence.world import (
    LEVEL,
    PAIRS,
    SHOWN,
    SINK_MASKS,
    WORLD,
    T,
    centres_of,
    gap_frame,
    judged,
    papers_world,
    statistics,
)
from tests.worlds import assert_units, of, row, rows, statistic

GAPS, SINKS = WORLD["gaps"], WORLD["sinks"]


@pytest.fixture(scope="module")
def everything():
    return list(statistics())


def by_seed(*networks, depth=2, pair="first-last", world=GAPS):
    """Gaps of networks, by network and seed."""
    return {network: of(world, *network.split("/"), depth, pair) for network in networks}


# Gaps

PLAIN = [f"gaussian/plain/causal/{encoding}" for encoding in ("none", "rope", "decay")]
CAUSAL, NONE = (f"fixed/ends/{mask}/none" for mask in ("causal", "none"))
DEEP_ROPE = ("gaussian", "residual", "causal", "rope", 6)


@pytest.mark.parametrize("pair", PAIRS)
def test_gaps_are_those_of_networks_by_seed(everything, pair):
    for depth in (2, 6):
        found = statistic(everything, f"{pair} gap", *PLAIN, depth=depth)
        assert_units(found.table, by_seed(*PLAIN, depth=depth, pair=pair))
        assert not found.identity
    alike = statistic(everything, f"{pair} gap", NONE)
    assert_units(alike.table, by_seed(NONE, pair=pair))
    assert alike.identity  # neither a mask nor an encoding tells positions apart


def test_other_statistics_of_gaps_are_of_their_networks(everything):
    for pair in ("first-last", "middle-last"):
        ends = statistic(everything, f"{pair} gap after both ends", CAUSAL, NONE)
        assert_units(ends.table, by_seed(CAUSAL, NONE, pair=pair))
    rope = statistic(everything, "gap of deep RoPE", vocabulary="gaussian")
    assert_units(rope.table, {pair: of(GAPS, *DEEP_ROPE, pair) for pair in PAIRS})
    for wide, narrow in ((13, 9), (9, 5)):
        masks = {"wide": f"window{wide}", "narrow": f"window{narrow}"}
        windows = statistic(everything, "first-last gap by window", vocabulary="fixed", **masks)
        wider, narrower = by_seed(*(f"fixed/window/{mask}/none" for mask in masks.values())).values()
        assert_units(windows.table, {"wider": wider, "narrower": narrower})


@pytest.mark.parametrize(
    ("depths", "compared"),
    [
        ((2,), {(2, 2): []}),  # which says that nothing is compared
        ((10, 2, 4, 3), {(3, 2): [5, 6], (4, 3): [7, 8], (10, 4): [84, 90]}),
    ],
)
def test_a_depth_is_compared_with_the_next(depths, compared):
    network = ("gaussian", "plain", "causal", "none")
    world = {
        (*network, depth, pair, seed): depth * (depth + seed) for depth in depths for pair in PAIRS for seed in (0, 1)
    }
    found = [one for one in statistics(gaps=world) if one.name == "first-last gap by depth"]
    assert {(*one.setting.values(),): [*one.table["/".join(network)]] for one in found} == compared


@pytest.mark.parametrize(("vocabulary", "depth", "pair"), [("gaussian", 4, "first-middle"), ("fixed", 2, "first-last")])
def test_sizes_of_mean_gaps_are_compared_whatever_the_sign(vocabulary, depth, pair):
    network = (vocabulary, "plain", "causal", "none", depth)
    world, turned = {key: gap for key, gap in GAPS.items() if key[:5] == network}, (pair, "middle-last")
    world |= {key: 0.01 * (key[6] == 1) - gap for key, gap in world.items() if key[5] in turned}
    (found,) = (one for one in statistics(gaps=world) if one.name == "size of the mean gap")
    expected = {name: pd.Series(of(world, *network, name)) * (-1 if name in turned else 1) for name in PAIRS}
    assert_units(found.table, {name: sizes.to_dict() for name, sizes in expected.items()})
    assert found.speaks == (vocabulary == "gaussian")


@pytest.mark.parametrize("missing", ["none", "causal"])
def test_a_mask_that_was_not_trained_has_no_units(missing):
    world = {key: gap for key, gap in GAPS.items() if key[1] == "ends" and key[2:4] != (missing, "none")}
    found = judged(gaps=world)
    asked = [row(found, "first-last gap after both ends", CAUSAL, NONE)]
    if missing == "causal":
        asked.append(row(found, "middle-last gap after both ends", CAUSAL.replace("fixed", "gaussian")))
    assert {(each["n"], each["left_out"], each["verdict"]) for each in asked} == {(0, 0, "not testable here")}
    assert rows(found, "first-last gap", f"gaussian/ends/{missing}/none").empty


@pytest.mark.parametrize(("deepest", "seeds"), [(3, 0), (4, 2)])
def test_the_middle_is_lost_in_deep_networks_alone(deepest, seeds):
    """Footnote 2 is on the deep regime; config/paper.yaml trains 10 layers, the test configuration 2 or 3."""
    network = ("fixed", "residual", "causal", "rope")
    world = {(*network, depth, pair, seed): 0.1 for depth in (1, deepest) for pair in PAIRS for seed in (0, 1)}
    found = statistic(statistics(gaps=world), "gap of deep RoPE", vocabulary="fixed", depth=deepest)
    assert found.table.count().tolist() == [seeds] * 3


def test_the_middle_is_lost_by_the_smaller_of_two_gaps():
    """It is kept where either is small, so that each has half of the error."""
    key = ("gaussian", "first", "causal", "rope", 2)
    ends = {"first-middle": [0.10, 0.12, 0.11], "first-last": [0, 0, 0], "middle-last": [-0.4, -0.6, 0.3]}
    world = {(*key, pair, seed): gap for pair, of_pair in ends.items() for seed, gap in enumerate(of_pair)}
    found = row(judged(gaps=world), "lost middle", "gaussian/first/causal/rope", depth=2)
    plain, either = (
        [scipy.stats.ttest_1samp(end, 0).confidence_interval(level) for end in ([0.10, 0.12, 0.11], [0.4, 0.6, -0.3])]
        for level in (LEVEL, (1 + LEVEL) / 2)
    )
    assert (found["measured"], found["n"]) == (pytest.approx(0.11), 3)
    assert found["low"] == pytest.approx(min(end.low for end in plain))
    assert found["high"] == pytest.approx(min(end.high for end in either))


def test_vocabularies_are_compared_at_every_depth(everything):
    rope = ("plain", "causal", "rope")
    world = {key: gap for key, gap in GAPS.items() if key[0] == "gaussian" and key[1:4] == rope}
    world |= {("isotropic", *rope, depth, pair, 0): depth for depth in (3, 4, 6) for pair in PAIRS}
    for depth in (4, 6):
        found = statistic(statistics(gaps=world), "first-last gap by vocabulary", encoding="rope", depth=depth)
        gaussian = of(GAPS, "gaussian", *rope, depth, "first-last")
        assert_units(found.table, {"gaussian": gaussian, "isotropic": {0: depth}})
    found = statistic(everything, "accuracy by vocabulary", encoding="rope", depth=4)
    networks = {name: pd.Series(of(WORLD["accuracy"], name, *rope, 4)) for name in ("gaussian", "fixed")}
    assert_units(found.table, {name: of.groupby(level=0).mean().to_dict() for name, of in networks.items()})


# Sinks


@pytest.mark.parametrize("shown", SHOWN, ids="/".join)
def test_each_centre_node_is_beside_other_tokens_and_two_nulls(everything, shown):
    """The query, which is the last token, is none of the others."""
    (vocabulary, study, mask), centres = shown, centres_of(shown[2])
    trained = {token: {seed: SINKS[*shown, "trained", seed, token] for seed in range(5)} for token in range(1, T)}
    for centre in range(1, centres + 1):
        expected = {f"{vocabulary}/{study}": trained[centre]}
        expected["untrained"] = {seed: SINKS[*shown, "untrained", seed, centre] for seed in range(5)}
        if mask != "window5":
            expected["uniform attention"] = dict.fromkeys(range(5), SINKS[*shown, "uniform", 0, centre])
        if mask.startswith("prefix"):
            later = pd.DataFrame({token: trained[token] for token in range(centres + 1, T)})
            expected["later tokens"] = later.mean(axis=1).to_dict()
        elif mask not in ("window5", "window9"):  # K.4 says so of wide windows only
            expected |= {f"token {token}": trained[token] for token in range(2, T)}
        found = statistic(everything, "sink metric", f"{vocabulary}/{study}", mask=mask, token=centre)
        assert_units(found.table, expected)


def test_later_queries_are_beside_uniform_attention_of_later_queries(everything):
    """Tables that lack them, such as older ones of evidence/, have no such row."""
    network, at = "gaussian/prefix", ("gaussian", "prefix", "prefix4")
    found = statistic(everything, "sink metric of later queries", network, mask="prefix4", token=3)
    trained = {seed: SINKS[*at, "trained, later queries", seed, 3] for seed in range(5)}
    assert_units(found.table, {network: trained, "uniform attention": [0.01] * 5})
    older = {key: sink for key, sink in SINKS.items() if not key[3].endswith("later queries")}
    assert "sink metric of later queries" not in {one.name for one in statistics(sinks=older)}


@pytest.mark.parametrize("network", ["gaussian/window", "fixed/window", "gaussian/residual-window"])
def test_windows_whose_sinks_rounding_decides_are_not_compared(network):
    """Weights of a window of 5 equal the threshold, .2: whether they exceed it, rounding decides."""
    shown = tuple(network.split("/"))
    nulls = {(*shown, mask, "uniform", 0, 1): value for mask, value in (("window9", 0.3), ("window13", 0.35))}
    found = list(statistics(sinks=SINKS | nulls))
    windows = {"wide": "window13", "narrow": "window9"}
    compared = statistic(found, "sink metric by window", network, **windows)
    wide, narrow = ({seed: SINKS[*shown, mask, "trained", seed, 1] for seed in range(5)} for mask in windows.values())
    less = {seed: wide[seed] - narrow[seed] for seed in range(5)}
    assert_units(compared.table, {network: less, "uniform attention": [0.05] * 5})
    of_null = [one for one in found if network in one.table and "uniform attention" in one.table]
    assert {one.setting["mask"] for one in of_null if one.name == "sink metric"} == {"window9", "window13"}


def test_a_single_window_is_compared_with_no_other():
    found = list(statistics(sinks={key: sink for key, sink in SINKS.items() if key[2] not in ("window9", "window13")}))
    for vocabulary in ("gaussian", "fixed"):
        statistic(found, "sink metric", f"{vocabulary}/window", "token 2", mask="window5")
    assert "sink metric by window" not in {one.name for one in found}


@pytest.mark.parametrize(("study", "lost"), [("plain", "causal"), ("window", "window13")])
def test_masks_of_which_only_nulls_are_left_are_in_no_claim(study, lost):
    world = {key: sink for key, sink in SINKS.items() if key[:4] != ("gaussian", study, lost, "trained")}
    found = [one for one in statistics(sinks=world) if one.name == "sink metric" and f"gaussian/{study}" in one.table]
    assert {one.setting["mask"] for one in found if one.setting["token"] == 1} == {*SINK_MASKS[study]} - {lost}


# Seeds


def test_a_seed_that_diverged_is_left_out_where_it_is_compared():
    network = ("gaussian", "plain", "causal", "rope")
    lost = {(*network, 4, pair, 1): np.nan for pair in PAIRS}
    found = judged(gaps={key: gap for key, gap in (GAPS | lost).items() if key[:3] == network[:3]})
    counts = found[found["left_out"] == 1][["statistic", "network"]].value_counts().to_dict()
    assert counts == {
        ("first-last gap", "gaussian/plain/causal/none"): 1,
        ("first-last gap", "gaussian/plain/causal/rope"): 1,
        ("first-last gap by depth", "gaussian/plain/causal/rope"): 2,
        ("lost middle", "gaussian/plain/causal/rope"): 1,
    }
    assert row(found, "first-last gap by depth", "/".join(network), deeper=4, than=2)["n"] == 2


def test_a_seed_that_was_seen_before_counts_in_every_row_of_it():
    of_gaps = {"vocabulary": "gaussian", "study": "residual", "mask": "causal", "encoding": "decay", "depth": 4}
    of_sinks = {"vocabulary": "fixed", "study": "window", "mask": "window13", "encoding": "none", "depth": 2}
    seen = pd.DataFrame([{**of, "seed": seed} for of, seeds in ((of_gaps, (1,)), (of_sinks, (0, 3))) for seed in seeds])
    found = judged(seen=seen)
    counts = found[found["seen_before"] > 0].groupby(["statistic", "network"])["seen_before"].agg(["count", "max"])
    assert {key: tuple(row) for key, row in zip(counts.index, counts.to_numpy(), strict=True)} == {
        ("first-last gap", "gaussian/residual/causal/rope"): (1, 1),
        ("first-last gap", "gaussian/residual/causal/decay"): (1, 1),
        ("first-last gap by depth", "gaussian/residual/causal/decay"): (2 * 2, 1),
        ("lost middle", "gaussian/residual/causal/decay"): (1, 1),
        ("first-last gap by window", "wider"): (1, 2),
        ("sink metric", "fixed/window"): (15 + 2, 2),
        ("sink metric of later queries", "fixed/window"): (1, 2),
        ("sink metric by window", "fixed/window"): (2, 2),
    }


# The table of gaps


def test_every_gap_stands_at_the_end_and_settled():
    """Single gaps of a causal mask alone are predicted; in fresh directions they turn."""
    ends = [f"{vocabulary}/ends/causal/none" for vocabulary in ("gaussian", "fixed")]
    asked = [(network, "") for network in ends] + [("gaussian/ends/none/rope", ends[0])]
    words = (">", 0.0, 0.02, "Figure 3", "a gap", "this test")
    told = {f"{pair} gap": [] for pair in PAIRS}
    told["first-last gap"] = [Prediction("emergence", "first-last gap", "", *networks, *words) for networks in asked]

    def both(world):
        table = gap_frame(world)
        fixed = table[table["vocabulary"] == "fixed"]
        return pd.concat([fixed.assign(gap=fixed["gap"] - 1, omega="fresh"), table])

    late = {key: gap for key, gap in papers_world(seed=5).items() if (key[1], key[6]) != ("window", 0)}  # other seeds
    at_end, settled = (both(world) for world in (GAPS, late))
    found = checks.gap_table(at_end, settled, told, LEVEL)
    keys = [*checks.CONFIGURATION, "pair"]
    for by_seed, suffix in ((at_end, ""), (settled, " settled")):
        expected = summary(by_seed, keys, "gap", LEVEL).set_index(keys).sort_index()[["gap", "low", "high"]]
        columns = found.set_index(keys).sort_index()[[f"{name}{suffix}" for name in expected]]
        pd.testing.assert_frame_equal(columns.set_axis(expected.columns, axis=1), expected)
    assert found.set_index(keys)["seeds"].to_dict() == at_end.groupby(keys)["seed"].count().to_dict()
    judged = found[found["verdict"] != checks.NO_CLAIM]
    alone = (found["study"] == "ends") & (found["mask"] == "causal") & (found["encoding"] == "none")
    assert (found["verdict"] != checks.NO_CLAIM).equals(alone & (found["pair"] == "first-last"))
    assert dict(zip(judged["omega"], judged["verdict"], strict=True)) == {
        "none": "holds",
        "training": "holds",
        "fresh": "fails",
    }
    assert (judged[[*PREDICTION]] == [">", 0, 0.02]).all(axis=None)
    others = found[found["verdict"] == checks.NO_CLAIM]
    assert (others["relation"] == "").all()
    assert others[["bound", "margin"]].isna().all(axis=None)
