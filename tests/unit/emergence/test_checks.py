"""Statistics of tables by seed whose differences are known, judged by the predictions of the registry."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.emergence import checks
from position_bias.verdicts.judge import KEYS, PREDICTION
from position_bias.verdicts.registry import Predicted
from tests.unit.emergence.world import (
    ENCODINGS,
    LEVEL,
    PAIRS,
    PREDICTIONS,
    SHOWN,
    SINK_MASKS,
    T,
    accuracies,
    centres_of,
    gap_frame,
    judged,
    papers_world,
    sinks_of,
)


@pytest.fixture(scope="module")
def papers():
    return judged()


def rows_of(table, statistic, network="", other="", **setting):
    """The rows of a statistic with these keys; a setting may be given in part, and `other` None is any."""
    wanted = (table["statistic"] == statistic) & ((table["other"] == other) | (other is None))
    wanted &= (table["network"] == network) | (network == "")
    for name, value in setting.items():
        wanted &= table["setting"].str.split("; ").map(lambda parts, part=f"{name} = {value}": part in parts)
    return table[wanted]


def find(table, statistic, network, other="", **setting):
    """The one row with these keys."""
    found = rows_of(table, statistic, network, other, **setting)
    assert len(found) == 1, found[list(KEYS)].to_string()
    return found.iloc[0]


def assert_mean(row, values):
    """The row is scipy's interval of values by seed."""
    values = list(values.values())
    interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
    assert (row["measured"], row["low"], row["high"]) == pytest.approx((np.mean(values), *interval), abs=1e-12)
    assert row["n"] == len(values)


def assert_paired(row, one, other):
    """The row is scipy's interval of `one - other`, each a value by seed, over the seeds of both."""
    assert_mean(row, {seed: one[seed] - other[seed] for seed in one if seed in other})


# The table


def test_what_is_measured_is_what_something_is_predicted_of(papers):
    elsewhere = ("Theorem", "Lemma", "released code: ")
    of_networks = {name for name in PREDICTIONS if not name.startswith(elsewhere)}
    assert set(papers["statistic"]) == of_networks
    assert not papers["quantity"].duplicated().any()
    assert not papers.duplicated([*KEYS, "claim"]).any()


# Each statistic


def of(network, depth=2, pair="first-last"):
    """The key of a gap."""
    return (*network.split("/"), depth, pair)


CAUSAL, NONE = (f"gaussian/ends/{mask}/none" for mask in ("causal", "none"))
BY_MASK = tuple(network.replace("gaussian", "fixed") for network in (CAUSAL, NONE))
DEEP, FIXED = "gaussian/residual/causal/rope", "fixed/residual/causal/rope"
PLAIN = [f"gaussian/plain/causal/{encoding}" for encoding in ENCODINGS]
WINDOWS = [of(f"fixed/window/{mask}/none") for mask in ("window13", "window9", "window5")]
BY_WINDOW = [{"vocabulary": "fixed", "wide": f"window{wide}", "narrow": f"window{wide - 4}"} for wide in (13, 9)]
JUDGED = [  # statistic, network, other network, setting, and the gaps of which it is the mean or the difference by seed
    ("first-last gap", PLAIN[0], PLAIN[1], {"depth": 6}, [of(PLAIN[0], 6), of(PLAIN[1], 6)]),
    ("first-last gap", PLAIN[1], PLAIN[2], {"depth": 2}, [of(PLAIN[1]), of(PLAIN[2])]),
    ("first-last gap by depth", FIXED, "", {"deeper": 4, "than": 2}, [of(FIXED, 4), of(FIXED)]),
    ("first-last gap by depth", PLAIN[2], "", {"deeper": 4, "than": 2}, [of(PLAIN[2], 4), of(PLAIN[2])]),
    ("first-last gap after both ends", *BY_MASK, {}, [of(network) for network in BY_MASK]),
    ("middle-last gap after both ends", CAUSAL, "", {}, [of(CAUSAL, 2, "middle-last")]),
    ("gap of deep RoPE", "middle-last", "", {"vocabulary": "gaussian"}, [of(DEEP, 6, "middle-last")]),
    ("first-last gap by window", "wider", "narrower", BY_WINDOW[0], WINDOWS[:2]),
    ("first-last gap by window", "wider", "narrower", BY_WINDOW[1], WINDOWS[1:]),
    ("first-middle gap", PLAIN[0], "", {"depth": 2}, [of(PLAIN[0], 2, "first-middle")]),
    ("middle-last gap", NONE, "", {"depth": 2}, [of(NONE, 2, "middle-last")]),
]


@pytest.mark.parametrize(("statistic", "network", "other", "setting", "keys"), JUDGED)
def test_gaps_are_means_and_differences_over_the_seeds_of_their_networks(
    papers, statistic, network, other, setting, keys
):
    row, by_seed = find(papers, statistic, network, other, **setting), [papers_world()[key] for key in keys]
    assert_mean(row, *by_seed) if len(by_seed) == 1 else assert_paired(row, *by_seed)
    assert row["identity"] == (len(by_seed) == 1 and network.endswith("none/none"))


@pytest.mark.parametrize(
    ("depths", "compared"),
    [
        ((2,), {(2, 2)}),  # which says that nothing is compared
        ((2, 3, 4, 10), {(3, 2), (4, 3), (10, 4)}),
    ],
)
def test_a_depth_is_compared_with_the_next(depths, compared):
    network = ("gaussian", "plain", "causal", "none")
    world = {
        (*network, depth, pair): {0: 0.1 * depth, 1: 0.1 * depth + 0.01} for depth in reversed(depths) for pair in PAIRS
    }
    found = rows_of(judged(gaps=world), "first-last gap by depth")
    assert sorted(found["setting"]) == sorted(f"deeper = {deeper}; than = {than}" for deeper, than in compared)
    assert set(found["verdict"]) == ({"not testable here"} if len(depths) == 1 else {"holds"})


@pytest.mark.parametrize(("vocabulary", "depth", "pair"), [("gaussian", 4, "first-middle"), ("fixed", 2, "first-last")])
def test_the_size_of_the_mean_gap_at_the_end_is_compared_whatever_its_sign(vocabulary, depth, pair):
    network = (vocabulary, "plain", "causal", "none", depth)
    world = {key: of for key, of in papers_world().items() if key[:5] == network}
    for turned in (pair, "middle-last"):
        world[(*network, turned)] = {seed: 0.01 * (seed == 1) - gap for seed, gap in world[(*network, turned)].items()}
    row = find(judged(gaps=world), "size of the mean gap", pair, "middle-last", vocabulary=vocabulary, depth=depth)
    assert_paired(row, *({seed: -gap for seed, gap in world[(*network, of)].items()} for of in (pair, "middle-last")))
    assert row["claim"] == ("emergence-small-at-the-end" if vocabulary == "gaussian" else "")


@pytest.mark.parametrize("missing", ["none", "causal"])
def test_a_mask_that_was_not_trained_leaves_nothing_to_compare(missing):
    world = {key: of for key, of in papers_world().items() if key[1] == "ends" and key[2:4] != (missing, "none")}
    found = judged(gaps=world)
    rows = [find(found, "first-last gap after both ends", *BY_MASK)]
    rows += [find(found, "middle-last gap after both ends", CAUSAL)] if missing == "causal" else []
    assert all((row["n"], row["left_out"], row["verdict"]) == (0, 0, "not testable here") for row in rows)
    assert rows_of(found, "first-last gap", f"gaussian/ends/{missing}/none").empty


@pytest.mark.parametrize(("deepest", "testable"), [(3, False), (4, True)])
def test_that_the_middle_is_lost_is_testable_on_deep_networks_alone(deepest, testable):
    """Footnote 2 is on the deep regime; config/paper.yaml trains 10 layers, the test configuration 2 or 3."""
    network = ("fixed", "residual", "causal", "rope")
    world = {(*network, depth, pair): {0: 0.1, 1: 0.2} for depth in (1, deepest) for pair in PAIRS}
    found = rows_of(judged(gaps=world), "gap of deep RoPE", vocabulary="fixed")
    assert set(found["setting"]) == {f"vocabulary = fixed; depth = {deepest}"}
    assert found["n"].tolist() == [2 * testable] * 2
    assert (found["verdict"] != "not testable here").tolist() == [testable] * 2


def test_the_middle_is_lost_by_the_smaller_of_two_gaps_and_kept_where_either_is_small():
    key = ("gaussian", "first", "causal", "rope")
    first, last = {0: 0.10, 1: 0.12, 2: 0.11}, {0: -0.4, 1: -0.6, 2: 0.3}
    world = {
        (*key, 2, pair): gaps for pair, gaps in (("first-middle", first), ("middle-last", last), ("first-last", first))
    }
    row = find(judged(gaps=world), "lost middle", "/".join(key), depth=2)
    ends = [list(first.values()), [-gap for gap in last.values()]]
    plain, either = (
        [scipy.stats.ttest_1samp(end, 0).confidence_interval(level) for end in ends]
        for level in (LEVEL, (1 + LEVEL) / 2)
    )
    assert row["measured"] == pytest.approx(0.11)
    assert (row["low"], row["high"]) == pytest.approx((min(end.low for end in plain), min(end.high for end in either)))
    assert row["n"] == 3


def test_vocabularies_are_compared_at_every_depth_that_both_have():
    world = {
        key: of for key, of in papers_world().items() if key[0] != "fixed" and key[1:4] == ("plain", "causal", "rope")
    }
    gaussian = {depth: world["gaussian", "plain", "causal", "rope", depth, "first-last"] for depth in (4, 6)}
    for depth, shift in ((3, 0.0), (4, 0.02), (6, -0.2)):
        seeds = {seed: 0.3 + shift + 0.01 * seed for seed in range(3)}
        world |= {("isotropic", "plain", "causal", "rope", depth, pair): seeds for pair in PAIRS}
    found = judged(gaps=world)
    assert len(rows_of(found, "first-last gap by vocabulary", other="gaussian")) == 3
    for depth, of_gaussian in gaussian.items():
        row = find(found, "first-last gap by vocabulary", "isotropic", "gaussian", encoding="rope", depth=depth)
        assert_paired(row, world["isotropic", "plain", "causal", "rope", depth, "first-last"], of_gaussian)


def test_the_gaussian_vocabulary_is_easier_than_the_fixed_on_average_over_positions(papers):
    of_rope = {key: by_seed for key, by_seed in accuracies().items() if key[1:] == ("plain", "causal", "rope", 4)}
    means = {key[0]: {seed: values.mean() for seed, values in of_key.items()} for key, of_key in of_rope.items()}
    row = find(papers, "accuracy by vocabulary", "gaussian", "fixed", encoding="rope", depth=4)
    assert_paired(row, means["gaussian"], means["fixed"])


@pytest.mark.parametrize(("vocabulary", "study", "mask"), SHOWN)
def test_each_centre_node_is_compared_with_other_tokens_but_the_query_and_with_both_nulls(
    papers, vocabulary, study, mask
):
    world, centres = sinks_of(), centres_of(mask)
    state = {
        name: [world[vocabulary, study, mask, name, seed] for seed in range(5)] for name in ("trained", "untrained")
    }
    for centre in range(1, centres + 1):
        of_centre = {seed: values[centre - 1] for seed, values in enumerate(state["trained"])}
        references = {"untrained": {seed: values[centre - 1] for seed, values in enumerate(state["untrained"])}}
        if mask != "window5":
            uniform = world[vocabulary, study, mask, "uniform", 0][centre - 1]
            references["uniform attention"] = dict.fromkeys(range(5), uniform)
        if mask.startswith("prefix"):
            references["later tokens"] = {
                s: values[centres : T - 1].mean() for s, values in enumerate(state["trained"])
            }
        elif mask not in ("window5", "window9"):  # K.4 says so of wide windows only
            references |= {
                f"token {token}": {seed: values[token - 1] for seed, values in enumerate(state["trained"])}
                for token in range(2, T)
            }
        found = rows_of(papers, "sink metric", f"{vocabulary}/{study}", None, mask=mask, token=centre)
        assert set(found["other"]) == set(references)
        for other, reference in references.items():
            row = find(papers, "sink metric", f"{vocabulary}/{study}", other, mask=mask, token=centre)
            assert_paired(row, of_centre, reference)


@pytest.mark.parametrize("network", ["gaussian/window", "fixed/window", "gaussian/residual-window"])
def test_the_widest_window_is_compared_with_the_narrowest_that_rounding_leaves_and_beyond_uniform_attention(network):
    """Weights of a window of 5 equal the threshold, .2: whether they exceed it, rounding decides."""
    world, (vocabulary, study) = sinks_of(), network.split("/")
    for mask, of_null in (("window9", 0.3), ("window13", 0.35)):
        world[vocabulary, study, mask, "uniform", 0][0] = of_null
    found = judged(sinks=world)
    wide, narrow = (
        {seed: world[vocabulary, study, mask, "trained", seed][0] for seed in range(5)}
        for mask in ("window13", "window9")
    )
    plain, beyond = (find(found, "sink metric by window", network, null) for null in ("", "uniform attention"))
    assert plain["setting"] == beyond["setting"] == f"vocabulary = {vocabulary}; wide = window13; narrow = window9"
    assert_paired(plain, wide, narrow)
    assert_paired(beyond, {seed: value - 0.35 for seed, value in wide.items()}, {s: v - 0.3 for s, v in narrow.items()})
    of_null = rows_of(found, "sink metric", network, "uniform attention")
    assert set(of_null["setting"]) == {
        f"vocabulary = {vocabulary}; mask = {m}; token = 1" for m in ("window9", "window13")
    }


def test_a_single_window_is_the_widest_and_is_compared_with_no_other():
    found = judged(sinks={key: of for key, of in sinks_of().items() if key[2] not in ("window9", "window13")})
    for vocabulary in ("gaussian", "fixed"):
        find(found, "sink metric", f"{vocabulary}/window", "token 2", mask="window5")
    assert "sink metric by window" not in set(found["statistic"])


@pytest.mark.parametrize(("study", "lost"), [("plain", ["causal"]), ("window", ["window13"])])
def test_masks_of_which_only_nulls_are_left_are_in_no_claim(study, lost):
    gone = ("gaussian", study, "trained")
    world = {key: of for key, of in sinks_of().items() if (*key[:2], key[3]) != gone or key[2] not in lost}
    masks = rows_of(judged(sinks=world), "sink metric", f"gaussian/{study}", "untrained", token=1)["setting"]
    kept = {*SINK_MASKS[study]} - {*lost}
    assert set(masks) == {f"vocabulary = gaussian; mask = {mask}; token = 1" for mask in kept}


# Seeds


def test_a_seed_that_diverged_is_left_out_of_every_row_that_compares_its_network():
    network, depths = ("gaussian", "plain", "causal", "rope"), (4, 2)
    world = {key: of for key, of in papers_world().items() if key[:3] == network[:3]}
    for pair in PAIRS:
        world[(*network, 4, pair)][1] = np.nan
    found = judged(gaps=world)
    kept = [{seed: world[(*network, depth, "first-last")][seed] for seed in (0, 2)} for depth in depths]
    row = find(found, "first-last gap by depth", "/".join(network), deeper=4, than=2)
    assert_paired(row, *kept)
    assert row["left_out"] == 1
    lost = found[found["left_out"] == 1][["statistic", "network"]].value_counts().to_dict()
    assert lost == {
        ("first-last gap", "gaussian/plain/causal/none"): 1,
        ("first-last gap", "gaussian/plain/causal/rope"): 1,
        ("first-last gap by depth", "gaussian/plain/causal/rope"): 2,
        ("lost middle", "gaussian/plain/causal/rope"): 1,
    }


def test_a_seed_of_one_network_that_was_seen_before_counts_in_every_row_that_uses_it():
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
        ("sink metric by window", "fixed/window"): (2, 2),
    }


# The table of gaps

SHIFTS = {"training": 0.0, "none": 0.0, "fresh": -1.0}  # of gaps, by the direction of a test
ENDS = (CAUSAL, CAUSAL.replace("gaussian", "fixed"))
TOLD = {  # of the first-last gap of a causal mask alone; the difference of two networks is no single gap
    **{f"{pair} gap": [] for pair in ("first-middle", "middle-last")},
    "first-last gap": [
        Predicted("emergence", "first-last gap", "", network, other, ">", 0.0, 0.02, "Figure 3", "a gap", "this test")
        for network, other in (*((network, "") for network in ENDS), ("gaussian/ends/none/rope", CAUSAL))
    ],
}


def in_both_directions(world):
    """Gaps of the fixed vocabulary are shifted in tests with fresh directions; the Gaussian one has none."""
    table = gap_frame(world)
    fixed = table[table["vocabulary"] == "fixed"].assign(omega="fresh")
    return pd.concat([fixed.assign(gap=fixed["gap"] + SHIFTS["fresh"]), table])


def test_every_gap_has_scipys_interval_at_the_end_and_settled_and_a_verdict_where_one_is_predicted():
    world, late = papers_world(), papers_world(seed=5)
    for key in late:
        if key[1] == "window":
            del late[key][0]  # seeds need not be the same
    table = checks.gap_table(in_both_directions(world), in_both_directions(late), TOLD, LEVEL)
    rows = table.set_index(["vocabulary", "study", "mask", "encoding", "depth", "pair", "omega"]).sort_index()
    directions = {"gaussian": ["none"], "fixed": ["training", "fresh"], "isotropic": ["none"]}
    expected = [(*key, omega) for key in world for omega in directions[key[0]]]
    assert len(table) == len(expected)
    for *key, omega in expected:
        row = rows.loc[(*key, omega)]
        for of_seeds, suffix in ((world, ""), (late, " settled")):
            values = np.array(list(of_seeds[*key].values())) + SHIFTS[omega]
            interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
            found = [row[f"{name}{suffix}"] for name in ("gap", "low", "high")]
            assert found == pytest.approx([np.mean(values), *interval], abs=1e-12)
        assert row["seeds"] == len(world[*key])
        if (key[1:4], key[-1]) == (["ends", "causal", "none"], "first-last"):
            verdict = "fails" if omega == "fresh" else "holds"
            assert (*row[list(PREDICTION)], row["verdict"]) == (">", 0, 0.02, verdict)
        else:
            assert (row["relation"], row["verdict"]) == ("", checks.NO_CLAIM)
            assert row[["bound", "margin"]].isna().all()
