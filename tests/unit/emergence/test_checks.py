"""Claims on tables by seed whose differences are known; what the paper predicts is typed here from its text."""

from dataclasses import astuple
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.emergence import checks, gaps
from position_bias.verdicts.verdict import COLUMNS, PREDICTION

LEVEL = 0.95
PAIRS = ("first-middle", "first-last", "middle-last")
ENCODINGS = ("none", "rope", "decay")
BIASED = ("ends", "first", "middle", "last")
T = 17
SINK_MASKS = {
    "plain": ("causal",),
    "window": ("window5", "window9", "window13"),
    "prefix": ("prefix2", "prefix4", "prefix6"),
}
CENTRES = {"prefix2": 2, "prefix4": 4, "prefix6": 6}  # tokens; 1 for every other mask


# A world made by hand: configuration and pair -> seed -> gap


def networks():
    """(vocabulary, study, mask, encoding, depth) with its number of seeds."""
    for vocabulary, plain, residual in (("gaussian", (2, 4, 6), (2, 4, 6)), ("fixed", (2, 4), (2, 4))):
        for encoding in ENCODINGS:
            for study, depths in (("plain", plain), ("residual", residual)):
                for depth in depths:
                    yield (vocabulary, study, "causal", encoding, depth), 5 if depth == 2 else 3
        for study, mask, encoding in product(BIASED, ("none", "causal"), ("none", "sin", "rope")):
            yield (vocabulary, study, mask, encoding, 2), 8 if study == "ends" else 5
        for study in ("window", "prefix"):
            for mask in SINK_MASKS[study]:
                yield (vocabulary, study, mask, "none", 2), 5
    for encoding in ENCODINGS:
        yield ("isotropic", "plain", "causal", encoding, 2), 5


def central(network, pair):
    """A gap that behaves as the paper says."""
    vocabulary, study, mask, encoding, depth = network
    if study == "plain":
        primacy = {"none": 0.3, "rope": 0.2, "decay": 0.1}[encoding] + 0.03 * depth
        return {"first-middle": primacy, "first-last": primacy, "middle-last": 0.05}[pair]
    if study == "residual":
        by_depth = -0.02 * depth if vocabulary == "gaussian" and encoding == "decay" else 0.05 * depth
        last = 0.1 if encoding != "rope" or depth < 4 else -0.1  # deep RoPE alone loses the middle
        first = by_depth + {"none": 0.3, "rope": 0.2, "decay": 0.1}[encoding]
        return {"first-middle": 0.1, "first-last": first, "middle-last": last}[pair]
    if mask == encoding == "none":
        return 0.0
    if encoding in ("sin", "rope"):
        at = {"ends": (1, 0, 0.8), "first": (1, 0, 0), "middle": (0, 1, 0), "last": (0, 0, 1)}[study]
        first, middle, last = at
        return 0.3 * {"first-middle": first - middle, "first-last": first - last, "middle-last": middle - last}[pair]
    primacy = 0.2 + (0.01 * int(mask.removeprefix("window")) if study == "window" else 0)
    return {"first-middle": primacy, "first-last": primacy, "middle-last": 0.02}[pair]


def papers_world(seed=0):
    """Gaps with a part that the networks of a seed share, so that it matters which are compared."""
    rng = np.random.default_rng(seed)
    world = {}
    for network, seeds in networks():
        for pair in PAIRS:
            world[(*network, pair)] = {
                one: central(network, pair) + 0.002 * one + 0.001 * rng.normal() for one in range(seeds)
            }
    return world


def labels(network):
    vocabulary, study, mask, encoding, depth = network
    bias = study if study in BIASED else "none"
    residual = study == "residual" or study in BIASED
    omega = "training" if vocabulary == "fixed" else "none"  # of the classes in tests
    values = (vocabulary, study, bias, mask, encoding, residual, depth, omega)
    return dict(zip(gaps.CONFIGURATION, values, strict=True))


def gap_frame(world):
    rows = [
        {**labels(network), "seed": seed, "pair": pair, "gap": gap}
        for (*network, pair), by_seed in world.items()
        for seed, gap in by_seed.items()
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=7, ignore_index=True)


def accuracies(seed=1, harder=0.1):
    """Accuracy of the networks without residual connections: configuration -> seed -> accuracy by position."""
    rng = np.random.default_rng(seed)
    return {
        network: {
            one: 0.6 - harder * (network[0] == "fixed") + 0.05 * one + 0.002 * rng.normal(size=4)
            for one in range(seeds)
        }
        for network, seeds in networks()
        if network[1] in ("plain", "residual")
    }


def accuracy_frame(by_network):
    rows = [
        {**labels(network), "seed": seed, "answer": answer, "accuracy": value}
        for network, by_seed in by_network.items()
        for seed, values in by_seed.items()
        for answer, value in enumerate(values, 1)
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=8, ignore_index=True)


def sinks_of(seed=2):
    """Sink metric by (vocabulary, study, mask, state, seed), `[T]`: 0.6 at the centre of a trained network's mask."""
    rng = np.random.default_rng(seed)
    world = {}
    for vocabulary, study in product(("gaussian", "fixed"), SINK_MASKS):
        for mask in SINK_MASKS[study]:
            centres = CENTRES.get(mask, 1)
            wider = 0.01 * int(mask.removeprefix("window")) if study == "window" else 0
            at = np.arange(T) < centres
            world[vocabulary, study, mask, "uniform", 0] = 0.2 * at
            for one in range(5):
                noise = 0.02 * one + 0.001 * rng.normal(size=T)
                world[vocabulary, study, mask, "trained", one] = 0.1 + (0.5 + wider) * at + noise
                world[vocabulary, study, mask, "untrained", one] = 0.1 + 0.15 * at + 0.5 * noise
    return world


def sink_frame(world):
    rows = []
    for (vocabulary, study, mask, state, seed), values in world.items():
        at = {**labels((vocabulary, study, mask, "none", 2)), "seed": seed, "state": state, "tau": 0.2}
        rows += [{**at, "token": token, "value": value} for token, value in enumerate(values, 1)]
        if study == "plain":  # networks of other encodings and depths, which the figure does not show
            for other in ({"encoding": "rope"}, {"depth": 4}):
                rows += [{**at, **other, "token": token, "value": 0.0} for token in range(1, T + 1)]
    return pd.DataFrame(rows).sample(frac=1, random_state=9, ignore_index=True)


def judged(world=None, accuracy=None, sinks=None):
    trained = checks.Measured(
        gaps=gap_frame(papers_world() if world is None else world),
        accuracy=accuracy_frame(accuracies() if accuracy is None else accuracy),
        sinks=sink_frame(sinks_of() if sinks is None else sinks),
    )
    return checks.checks(trained, "test", LEVEL)


@pytest.fixture(scope="module")
def papers():
    return judged()


def find(table, *fragments):
    """The one row whose quantity has these fragments."""
    found = table[[all(fragment in quantity for fragment in fragments) for quantity in table["quantity"]]]
    assert len(found) == 1, f"{fragments}: {found['quantity'].tolist()}"
    return found.iloc[0]


def assert_paired(row, one, other):
    """The row is scipy's paired interval of `one - other`, each a value by seed, over the seeds of both."""
    both = sorted(set(one) & set(other))
    a, b = ([of[seed] for seed in both] for of in (one, other))
    interval = scipy.stats.ttest_rel(a, b).confidence_interval(LEVEL)
    assert (row["measured"], row["low"], row["high"]) == pytest.approx((np.subtract(a, b).mean(), *interval), abs=1e-12)
    assert row["n"] == len(both)


def assert_mean(row, values):
    interval = scipy.stats.ttest_1samp(list(values.values()), 0).confidence_interval(LEVEL)
    expected = (np.mean(list(values.values())), *interval)
    assert (row["measured"], row["low"], row["high"]) == pytest.approx(expected, abs=1e-12)
    assert row["n"] == len(values)


# The table


def test_every_claim_holds_in_a_world_that_behaves_as_the_paper_says(papers):
    assert papers.loc[papers["verdict"] != "holds", ["quantity", "low", "high"]].to_dict("records") == []


def test_checks_are_in_the_common_schema_and_name_a_quantity_once(papers):
    assert list(papers.columns) == list(COLUMNS)
    assert set(papers["paper"]) == {"emergence"}
    assert set(papers["scale"]) == {"test"}
    assert not papers["quantity"].duplicated().any()


def test_there_is_a_row_for_every_network_that_was_trained_and_no_other(papers):
    """Numbers of rows by what shows them: counted by hand from the networks above."""
    accuracy = papers["quantity"].str.startswith("accuracy")
    shown = papers[~accuracy]["item"].value_counts().to_dict()
    middle = 1  # how far a study's networks lose it
    assert shown == {
        "Figure 4": 3 * 3  # encodings
        + 3 * 3  # pairs of depths by encoding
        + 2 * 3  # sizes
        + 3 * 3  # gaps of a mask alone
        + middle,
        "Figure 9": 3 * 2 + 1 * 3 + 2 * 2 + 3 * 2 + middle,
        "Appendix L": 3 + 2 + 3 + 3 + middle,  # encodings, sizes, gaps of the isotropic vocabulary; encodings compared
        "Figure 5": 2  # lost in the middle at the deepest
        + 3 * 3  # bias by encoding and depth
        + 2  # a rise and a fall with depth
        + 2 * 3  # encodings
        + middle,
        "Figure 10": 2 + 3 + 3 * 2 + 2 * 2 + middle,  # and one pair of depths for 3 encodings
        "Figure 3": 1 + 1 + 3 + 2 + 4 * 3,  # causal or not; the last; gaps with neither mask nor PE, a mask alone, a PE
        "Figure 11a": 1 + 1 + 3 + 2 + 4 * 3,
        **{f"Figure {name}": 3 + 2 + 4 * 2 + middle for name in ("6a", "6b", "6c", "11b", "11c", "11d")},
        "Section 4.1": 2,  # widest and narrowest window of both vocabularies
        "Figure 8a": 3,
        "Figure 8b": 3 * 2 + 1 + 2,  # nulls of each window; other tokens at the widest; widest and narrowest
        "Figure 8c": 9,
        "Figure 13a": 3,
        "Figure 13b": 3 * 2 + 1 + 2,
        "Figure 13c": 9,
    }
    assert papers[accuracy]["item"].tolist() == ["Appendix L"] * (2 * 3)  # both vocabularies have 2 and 4 layers


def test_the_order_of_rows_in_the_tables_decides_nothing(papers):
    world, accuracy, sinks = (dict(reversed(of.items())) for of in (papers_world(), accuracies(), sinks_of()))
    other = judged(world, accuracy, sinks)
    by_quantity = [table.sort_values("quantity", ignore_index=True) for table in (papers, other)]
    pd.testing.assert_frame_equal(*by_quantity)


# Each claim


@pytest.mark.parametrize(("more", "less"), [("none", "rope"), ("none", "decay"), ("rope", "decay")])
@pytest.mark.parametrize(
    ("vocabulary", "depth", "item"),
    [
        ("gaussian", 2, "Figure 4"),
        ("gaussian", 6, "Figure 4"),
        ("fixed", 4, "Figure 9"),
        ("isotropic", 2, "Appendix L"),
    ],
)
def test_encodings_are_paired_by_seed_in_the_order_of_their_decay(papers, more, less, vocabulary, depth, item):
    world = papers_world()
    row = find(papers, "first-last gap", f"{more} - {less}", vocabulary, f"{depth} layers, no residual")
    one, other = (world[vocabulary, "plain", "causal", encoding, depth, "first-last"] for encoding in (more, less))
    assert_paired(row, one, other)
    assert (row["item"], tuple(row[list(PREDICTION)])) == (item, (">", 0, 0.01))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("vocabulary", "study", "deeper", "than", "item"),
    [
        ("gaussian", "plain", 4, 2, "Figure 4"),
        ("gaussian", "plain", 6, 4, "Figure 4"),
        ("gaussian", "plain", 6, 2, "Figure 4"),
        ("fixed", "plain", 4, 2, "Figure 9"),
        ("fixed", "residual", 4, 2, "Figure 10"),
    ],
)
def test_depths_are_paired_by_seed_with_the_next_and_the_shallowest(
    papers, vocabulary, study, deeper, than, item, encoding
):
    world = papers_world()
    row = find(papers, "first-last gap", f"{deeper} - {than} layers", f"{vocabulary}, {study}", f"encoding {encoding}")
    one, other = (world[vocabulary, study, "causal", encoding, depth, "first-last"] for depth in (deeper, than))
    assert_paired(row, one, other)
    assert row["n"] == 3  # shallow networks have 5 seeds, deep ones 3
    assert (row["item"], tuple(row[list(PREDICTION)])) == (item, (">", 0, 0.01))


@pytest.mark.parametrize(
    ("depths", "compared"),
    [
        ((2,), {(2, 2)}),  # which says that nothing is compared
        ((2, 4), {(4, 2)}),
        ((2, 3, 4, 10), {(3, 2), (4, 3), (10, 4), (10, 2)}),
        ((4, 6, 8), {(6, 4), (8, 6), (8, 4)}),
    ],
)
def test_depths_are_compared_consecutively_and_end_to_end_once_each(depths, compared):
    network = ("gaussian", "plain", "causal", "none")
    world = {
        (*network, depth, pair): {0: 0.1 * depth, 1: 0.1 * depth + 0.01} for depth in reversed(depths) for pair in PAIRS
    }
    found = judged(world, sinks=sinks_of())
    found = found[found["quantity"].str.match(r"first-last gap, .* layers; ")]
    pairs = [quantity.split(", ")[1].split(" layers")[0] for quantity in found["quantity"]]
    assert sorted(pairs) == sorted(f"{deeper} - {than}" for deeper, than in compared)
    assert set(found["verdict"]) == ({"not testable here"} if len(depths) == 1 else {"holds"})


def test_of_residual_networks_only_those_of_the_fixed_vocabulary_are_claimed_to_gain_from_depth(papers):
    """K.2: with residual connections the relationship is non-monotonic; Appendix L: it is consistent."""
    quantities = papers.loc[papers["quantity"].str.contains("layers; .*, residual, encoding"), "quantity"]
    assert len(quantities)
    assert quantities.str.contains("fixed, residual").all()


@pytest.mark.parametrize("pair", ["first-middle", "first-last"])
@pytest.mark.parametrize(("vocabulary", "depth"), [("gaussian", 4), ("fixed", 2), ("isotropic", 2)])
def test_the_size_of_the_gap_at_the_end_is_compared_whatever_its_sign(vocabulary, depth, pair):
    world = papers_world()
    network = (vocabulary, "plain", "causal", "none", depth)
    world[(*network, pair)] = {seed: (-1) ** seed * abs(gap) for seed, gap in world[(*network, pair)].items()}
    world[(*network, "middle-last")] = {seed: -gap for seed, gap in world[(*network, "middle-last")].items()}
    row = find(judged(world), f"size of the {pair} gap - middle-last gap", vocabulary, f"{depth} layers")
    one, other = ({seed: abs(gap) for seed, gap in world[(*network, of)].items()} for of in (pair, "middle-last"))
    assert_paired(row, one, other)
    assert row["verdict"] == "holds"


@pytest.mark.parametrize(("vocabulary", "item"), [("gaussian", "Figure 3"), ("fixed", "Figure 11a")])
def test_the_causal_mask_is_compared_with_none_where_there_is_no_encoding(papers, vocabulary, item):
    world = papers_world()
    row = find(papers, "causal - no mask", vocabulary)
    one, other = (world[vocabulary, "ends", mask, "none", 2, "first-last"] for mask in ("causal", "none"))
    assert_paired(row, one, other)
    assert (row["item"], row["n"], tuple(row[list(PREDICTION)])) == (item, 8, (">", 0, 0.01))


@pytest.mark.parametrize(("vocabulary", "depth", "item"), [("gaussian", 6, "Figure 5"), ("fixed", 4, "Figure 10")])
@pytest.mark.parametrize(("pair", "predicted"), [("first-middle", (">", 0, 0.01)), ("middle-last", ("<", 0, 0.01))])
def test_the_deepest_rope_network_with_residual_loses_the_middle(papers, vocabulary, depth, item, pair, predicted):
    row = find(papers, f"{pair} gap; {vocabulary}, RoPE, {depth} layers with residual")
    assert_mean(row, papers_world()[vocabulary, "residual", "causal", "rope", depth, pair])
    assert (row["item"], tuple(row[list(PREDICTION)])) == (item, predicted)
    assert papers["quantity"].str.contains(f"{pair} gap; {vocabulary}, RoPE").sum() == 1


@pytest.mark.parametrize(("deepest", "testable"), [(2, False), (3, False), (4, True), (5, True)])
def test_that_the_middle_is_lost_is_testable_on_deep_networks_alone(deepest, testable):
    """Footnote 2 is on the deep regime; config/paper.yaml trains 10 layers, the test configuration 2 or 3."""
    network = ("fixed", "residual", "causal", "rope")
    world = {key: of for key, of in papers_world().items() if key[:4] != network}
    world |= {(*network, depth, pair): {0: 0.1, 1: 0.2} for depth in (1, deepest) for pair in PAIRS}
    found = judged(world)
    found = found[found["quantity"].str.contains("gap; fixed, RoPE")]
    assert found["quantity"].str.contains(f"gap; fixed, RoPE, {deepest} layers").tolist() == [True] * 2
    assert found["n"].tolist() == [2 * testable] * 2
    assert (found["verdict"] != "not testable here").tolist() == [testable] * 2


@pytest.mark.parametrize(
    ("mask", "encoding", "study", "pair", "item", "predicted", "source"),
    [
        ("causal", "none", "plain", "first-middle", "Figure 4", (">", 0, 0.01), "5.1"),
        ("none", "none", "ends", "middle-last", "Figure 3", ("=", 0, 0.05), "neither mask nor encoding"),
        ("causal", "none", "ends", "first-last", "Figure 3", (">", 0, 0.01), "K.3: a causal mask alone"),
        ("none", "sin", "ends", "middle-last", "Figure 3", ("<", 0, 0.01), "both ends"),
        ("causal", "none", "last", "first-last", "Figure 6c", (">", 0, 0.01), "K.3: a causal mask alone"),
        ("none", "rope", "last", "first-last", "Figure 6c", ("<", 0, 0.01), "K.3: encodings"),
        ("causal", "sin", "middle", "first-middle", "Figure 6b", ("<", 0, 0.01), "K.3: encodings"),
    ],
)
def test_single_gaps_are_judged_as_in_their_table(papers, mask, encoding, study, pair, item, predicted, source):
    row = find(papers, f"{pair} gap; gaussian, {study}, mask {mask}, PE {encoding}, 2 layers")
    assert_mean(row, papers_world()["gaussian", study, mask, encoding, 2, pair])
    assert (row["item"], tuple(row[list(PREDICTION)])) == (item, predicted)
    assert source in row["source"]


@pytest.mark.parametrize("encoding", ["rope", "decay"])
def test_of_unbiased_networks_with_an_encoding_no_single_gap_is_judged(papers, encoding):
    assert not papers["quantity"].str.contains(f"plain, mask causal, PE {encoding}").any()
    assert not papers["quantity"].str.contains("residual, mask").any()


def test_vocabularies_are_compared_at_every_depth_that_both_have_and_name_it():
    world = papers_world()
    gaussian = {depth: world["gaussian", "plain", "causal", "rope", depth, "first-last"] for depth in (4, 6)}
    for depth, shift in ((3, 0.0), (4, 0.02), (6, -0.2)):
        seeds = {seed: 0.3 + shift + 0.01 * seed for seed in range(3)}
        world |= {("isotropic", "plain", "causal", "rope", depth, pair): seeds for pair in PAIRS}
    found = judged(world)
    assert found["quantity"].str.contains("lambda = 0 - gaussian").sum() == 3 + 2
    assert not found["quantity"].duplicated().any()
    for depth, of_gaussian in gaussian.items():
        row = find(found, "lambda = 0 - gaussian", f"{depth} layers", "encoding rope")
        assert_paired(row, world["isotropic", "plain", "causal", "rope", depth, "first-last"], of_gaussian)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_without_a_common_direction_the_fixed_vocabulary_equals_the_gaussian(papers, encoding):
    world = papers_world()
    row = find(papers, "lambda = 0 - gaussian", "2 layers", f"encoding {encoding}")
    one, other = (world[name, "plain", "causal", encoding, 2, "first-last"] for name in ("isotropic", "gaussian"))
    assert_paired(row, one, other)
    assert (row["item"], tuple(row[list(PREDICTION)]), row["n"]) == ("Appendix L", ("=", 0, 0.05), 5)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("depth", "seeds"), [(2, 5), (4, 3)])
def test_the_gaussian_vocabulary_is_easier_than_the_fixed_on_average_over_positions(papers, encoding, depth, seeds):
    means = {
        network[0]: {seed: values.mean() for seed, values in by_seed.items()}
        for network, by_seed in accuracies().items()
        if network[1:] == ("plain", "causal", encoding, depth)
    }
    row = find(papers, "accuracy, gaussian - fixed", f"{depth} layers", f"encoding {encoding}")
    assert_paired(row, means["gaussian"], means["fixed"])
    assert (row["item"], row["n"], tuple(row[list(PREDICTION)])) == ("Appendix L", seeds, (">", 0, 0.01))


ALL_SINKS = [(v, study, mask) for v in ("gaussian", "fixed") for study, masks in SINK_MASKS.items() for mask in masks]
SINK_ITEMS = dict(
    zip(product(("gaussian", "fixed"), SINK_MASKS), [f"Figure {n}{x}" for n in (8, 13) for x in "abc"], strict=True)
)


@pytest.mark.parametrize(("vocabulary", "study", "mask"), ALL_SINKS)
def test_the_least_of_the_centre_nodes_is_compared_with_other_tokens_and_both_nulls(papers, vocabulary, study, mask):
    world, centres = sinks_of(), CENTRES.get(mask, 1)
    trained, untrained = (
        {seed: world[vocabulary, study, mask, state, seed] for seed in range(5)} for state in ("trained", "untrained")
    )
    uniform = world[vocabulary, study, mask, "uniform", 0]
    least = {seed: values[:centres].min() for seed, values in trained.items()}
    references = {
        "uniform attention": dict.fromkeys(range(5), uniform[:centres].min()),
        "untrained": {seed: values[:centres].min() for seed, values in untrained.items()},
    }
    if mask not in ("window5", "window9"):  # K.4 says so of wide windows only
        references["any other"] = {seed: values[centres:].max() for seed, values in trained.items()}
    where = f"tokens 1 to {centres} - " if centres > 1 else "the first token - "
    for name, reference in references.items():
        row = find(papers, f"{where}{name}, ", f"{vocabulary}, {mask},")
        assert_paired(row, least, reference)
        assert (row["item"], tuple(row[list(PREDICTION)])) == (SINK_ITEMS[vocabulary, study], (">", 0, 0.01))
        assert ("K.4" in row["source"]) == (name == "any other")  # the nulls are ours
    compared = papers["quantity"].str.startswith(where) & papers["quantity"].str.contains(f"; {vocabulary}, {mask},")
    assert compared.sum() == len(references)


def test_one_prefix_token_that_is_no_sink_fails_its_mask_and_no_other():
    world = sinks_of()
    for seed in range(5):
        world["gaussian", "prefix", "prefix4", "trained", seed][3] = 0.05
    found = judged(sinks=world)
    failed = found.loc[found["verdict"] == "fails", "quantity"].str.split(";").str[1].unique()
    assert failed.tolist() == [" gaussian, prefix4, 2 layers, no residual, no PE"]


@pytest.mark.parametrize("vocabulary", ["gaussian", "fixed"])
def test_the_widest_window_is_compared_with_the_narrowest_that_rounding_leaves_and_beyond_uniform_attention(vocabulary):
    """Weights of a window of 5 equal the threshold, .2: whether they exceed it, rounding decides."""
    world = sinks_of()
    for mask, of_null in (("window9", 0.3), ("window13", 0.35)):
        world[vocabulary, "window", mask, "uniform", 0][0] = of_null
    found = judged(sinks=world)
    wide, narrow = (
        {seed: world[vocabulary, "window", mask, "trained", seed][0] for seed in range(5)}
        for mask in ("window13", "window9")
    )
    rows = found[found["quantity"].str.contains(f"sink metric .* window13 - window9; {vocabulary}")]
    assert not found["quantity"].str.contains("of the first token, window.* - window5; ").any()
    of_null = found[found["quantity"].str.contains(f"uniform attention, sink metric; {vocabulary}, window")]
    claims = of_null.set_index(of_null["quantity"].str.extract(r"(window\d+)", expand=False))["claim"].fillna("")
    assert claims["window5"] == ""
    assert claims["window9"] == claims["window13"] == ("emergence-sinks-null" if vocabulary == "gaussian" else "")
    plain, beyond = (find(rows[rows["quantity"].str.contains("beyond") == is_null], "") for is_null in (False, True))
    assert_paired(plain, wide, narrow)
    assert_paired(beyond, {seed: value - 0.35 for seed, value in wide.items()}, {s: v - 0.3 for s, v in narrow.items()})


def test_a_single_window_is_the_widest_and_is_compared_with_no_other():
    world = {key: of for key, of in sinks_of().items() if key[2] not in ("window9", "window13")}
    quantities = judged(sinks=world)["quantity"]
    assert quantities.str.contains("the first token - any other, .*, window5,").sum() == 2  # vocabularies
    assert not quantities.str.contains("window5 - window5|of the first token, window").any()


@pytest.mark.parametrize("states", [("trained",), ("trained", "untrained")], ids="-".join)
@pytest.mark.parametrize(
    ("study", "lost"),
    [*SINK_MASKS.items(), ("window", ("window13",)), ("prefix", ("prefix4",))],
)
def test_masks_of_which_only_nulls_are_left_are_in_no_claim(study, lost, states):
    world = {
        key: of
        for key, of in sinks_of().items()
        if key[:2] != ("gaussian", study) or key[2] not in lost or key[3] not in states
    }
    found, others = judged(sinks=world), judged()
    sinks_found = found.loc[found["quantity"].str.contains("sink metric"), "quantity"]
    for mask in lost:
        assert not sinks_found.str.contains(f"gaussian, {mask},").any()
    for mask in {*SINK_MASKS[study]} - {*lost}:
        assert sinks_found.str.contains(f"gaussian, {mask},").any()
    fixed = [of[of["quantity"].str.contains("fixed")] for of in (found, others)]
    pd.testing.assert_frame_equal(*(of.sort_values("quantity", ignore_index=True) for of in fixed))


# Seeds


def test_a_seed_that_one_side_lacks_is_dropped_and_the_others_stay_paired():
    world = papers_world()
    none, rope = (world["gaussian", "plain", "causal", encoding, 2, "first-last"] for encoding in ("none", "rope"))
    for pair in PAIRS:
        del world["gaussian", "plain", "causal", "none", 2, pair][1]
        del world["gaussian", "plain", "causal", "rope", 2, pair][4]
    row = find(judged(world), "none - rope; gaussian, 2 layers")
    assert row["n"] == 3
    assert_paired(row, none, rope)


def test_one_common_seed_cannot_be_tested_but_is_measured():
    world = papers_world()
    for pair in PAIRS:
        world["fixed", "plain", "causal", "rope", 4, pair] = {2: 0.25}
    found = judged(world)
    row = find(found, "none - rope; fixed, 4 layers")
    assert row["measured"] == pytest.approx(world["fixed", "plain", "causal", "none", 4, "first-last"][2] - 0.25)
    assert (row["n"], row["verdict"]) == (1, "not testable here")
    assert np.isnan([row["low"], row["high"]]).all()
    untested = found[found["verdict"] == "not testable here"]["quantity"]
    assert len(untested) == 4  # the other side of RoPE, its depths, and how far the middle is lost


def test_no_common_seed_leaves_nothing_to_measure():
    world = papers_world()
    for pair in PAIRS:
        world["gaussian", "ends", "none", "none", 2, pair] = {8: 0.0, 9: 0.0}
    row = find(judged(world), "causal - no mask; gaussian")
    assert (row["n"], row["verdict"]) == (0, "not testable here")
    assert np.isnan(row["measured"])


# What was not trained


@pytest.mark.parametrize(
    ("encoding", "kept"), [("rope", ["none"]), ("decay", ["none", "rope"]), ("none", ["rope", "decay"])]
)
def test_an_encoding_that_was_not_trained_is_in_no_claim_on_depth_or_encodings(encoding, kept):
    world = {key: of for key, of in papers_world().items() if key[1] in BIASED or key[3] != encoding}
    accuracy = {key: of for key, of in accuracies().items() if key[3] != encoding}
    quantities = judged(world, accuracy)["quantity"]
    ours = quantities[~quantities.str.contains("sink metric|trained on both ends|no PE")]
    assert not ours.str.contains(f"encoding {encoding}|{encoding} -|- {encoding}").any()
    assert all(ours.str.contains(f"encoding {name}").any() for name in kept)
    assert ours.str.contains("RoPE").any() == (encoding != "rope")


@pytest.mark.parametrize("vocabulary", ["isotropic", "fixed"])
def test_a_vocabulary_that_was_not_trained_is_in_no_claim(vocabulary):
    world, accuracy, sinks = (
        {key: of for key, of in table.items() if key[0] != vocabulary}
        for table in (papers_world(), accuracies(), sinks_of())
    )
    quantities = judged(world, accuracy, sinks)["quantity"]
    assert not quantities.str.contains({"isotropic": "isotropic|lambda"}.get(vocabulary, vocabulary)).any()
    assert quantities.str.contains("gaussian").any()


# Wrong worlds


def verdicts(world, *fragments):
    found = judged(world)
    rows = found[[all(fragment in quantity for fragment in fragments) for quantity in found["quantity"]]]
    assert len(rows)
    return set(rows["verdict"])


def test_encodings_that_swap_their_roles_fail_where_they_are_compared():
    world = papers_world()
    for vocabulary, depth in (("gaussian", 2), ("gaussian", 4), ("gaussian", 6), ("fixed", 2), ("fixed", 4)):
        keys = [(vocabulary, "plain", "causal", encoding, depth, "first-last") for encoding in ("none", "decay")]
        world[keys[0]], world[keys[1]] = world[keys[1]], world[keys[0]]
    for vocabulary in ("gaussian", "fixed"):
        for pair in ("none - rope", "rope - decay"):
            assert verdicts(world, pair, vocabulary, "no residual") == {"fails"}


def changed(study, pair, gap, **wanted):
    """The world of the paper with other gaps of a pair in a study, where masks, encodings and depths are as wanted."""
    names = ("vocabulary", "study", "mask", "encoding", "depth", "pair")
    world = papers_world()
    for key in world:
        of = dict(zip(names, key, strict=True))
        if (of["study"], of["pair"]) == (study, pair) and all(of[name] == value for name, value in wanted.items()):
            world[key] = {seed: gap(of) + 0.001 * (seed - 1) for seed in world[key]}
    return world


@pytest.mark.parametrize(
    ("gaps_of", "low", "verdict"),
    [
        ((0.2, 0.21, 0.19, 0.2, 0.2), "low", "holds"),
        ((-0.2, -0.21, -0.19, -0.2, -0.2), "high", "holds"),
        ((0.3, -0.3, 0.2, -0.25, 0.1), None, "not separable"),
        ((0.001, -0.002, 0.0, 0.001, -0.001), None, "fails"),
    ],
)
def test_bias_may_have_either_sign_but_one_for_all_seeds(gaps_of, low, verdict):
    key = ("gaussian", "residual", "causal", "none", 2, "first-last")
    row = find(
        judged(papers_world() | {key: dict(enumerate(gaps_of))}),
        "size of the mean first-last gap; gaussian, residual, encoding none, 2 layers",
    )
    interval = scipy.stats.ttest_1samp(gaps_of, 0).confidence_interval(LEVEL)
    assert row["verdict"] == verdict
    assert row["low"] == pytest.approx(0 if low is None else abs(getattr(interval, low)))
    assert row["high"] == pytest.approx(max(abs(interval.low), abs(interval.high)))


def test_depth_that_only_amplifies_with_residual_connections_fails_to_reduce():
    rising = changed("residual", "first-last", lambda of: 0.05 * of["depth"], encoding="decay")
    assert find(judged(rising), "largest fall", "gaussian")["verdict"] == "fails"
    assert find(judged(rising), "largest rise", "gaussian")["verdict"] == "holds"


def test_the_most_extreme_of_several_changes_has_a_wider_interval(papers):
    world = papers_world()
    six = [
        (encoding, deep, than) for encoding in ENCODINGS for deep, than in ((4, 2), (6, 4))
    ]  # fmt: skip
    changes = [
        [
            world["gaussian", "residual", "causal", encoding, deep, "first-last"][seed]
            - world["gaussian", "residual", "causal", encoding, than, "first-last"][seed]
            for seed in range(3)
        ]
        for encoding, deep, than in six
    ]
    most = max(changes, key=np.mean)
    row = find(papers, "largest rise", "gaussian")
    interval = scipy.stats.ttest_1samp(most, 0).confidence_interval(1 - 0.05 / 6)
    assert (row["low"], row["high"]) == pytest.approx(tuple(interval))


def test_a_mask_that_captures_the_last_position_contradicts_the_caption():
    world = changed("ends", "middle-last", lambda of: -0.2, mask="causal", encoding="none")
    assert find(judged(world), "middle-last gap; gaussian, mask causal, no PE")["verdict"] == "fails"


@pytest.mark.parametrize("study", ["plain", "first", "middle", "last"])
def test_one_network_that_loses_the_middle_is_enough(study):
    encoding = "rope"
    world = changed(study, "middle-last", lambda of: -0.2, encoding=encoding, depth=2)
    world |= {
        key: value
        for key, value in changed(study, "first-middle", lambda of: 0.2, encoding=encoding, depth=2).items()
        if key[-1] == "first-middle"
    }
    assert find(judged(world), "middle lost", f"gaussian, {study}")["verdict"] == "fails"


def test_smaller_windows_with_more_primacy_fail():
    world = changed("window", "first-last", lambda of: 0.5 - 0.02 * int(of["mask"].removeprefix("window")))
    assert find(judged(world), "first-last gap, window13 - window5; gaussian")["verdict"] == "fails"


def test_depth_that_reduces_primacy_fails():
    world = papers_world()
    keys = [("gaussian", "plain", "causal", "none", depth, "first-last") for depth in (2, 6)]
    world[keys[0]], world[keys[1]] = dict(zip(range(5), [*world[keys[1]].values()] * 2, strict=False)), world[keys[0]]
    assert verdicts(world, "layers; gaussian, plain, encoding none") == {"fails"}


def test_equal_masks_settle_nothing():
    world = papers_world()
    world["gaussian", "ends", "none", "none", 2, "first-last"] = world[
        "gaussian", "ends", "causal", "none", 2, "first-last"
    ]
    assert verdicts(world, "causal - no mask; gaussian") == {"not separable"}


@pytest.mark.parametrize(
    ("difference", "verdict"), [(0.03, "holds"), (-0.03, "holds"), (0.1, "fails"), (-0.1, "fails")]
)
def test_vocabularies_are_alike_within_a_twentieth_of_an_accuracy(difference, verdict):
    world = papers_world()
    gaussian = world["gaussian", "plain", "causal", "none", 2, "first-last"]
    noise = dict(zip(gaussian, [-0.001, 0.001, 0, 0.001, -0.001], strict=True))
    world["isotropic", "plain", "causal", "none", 2, "first-last"] = {
        seed: gap + difference + noise[seed] for seed, gap in gaussian.items()
    }
    assert verdicts(world, "lambda = 0 - gaussian", "encoding none") == {verdict}


# What the paper predicts of single gaps, typed from its text; what is not listed is not predicted

EARLIER, LATER, EQUAL = (">", 0, 0.01), ("<", 0, 0.01), ("=", 0, 0.05)
TOWARDS_FIRST = {"first-middle": EARLIER, "first-last": EARLIER}
NO_POSITION = dict.fromkeys(PAIRS, EQUAL)
PREDICTED = {
    # Section 5.1: without bias in the data the causal mask alone biases towards earlier parts of the sequence
    ("plain", "causal", "none"): {**TOWARDS_FIRST, "middle-last": EARLIER},
    # Section 5.2: pure causal masks capture the bias at the first position but not at the last (Figure 3)
    ("ends", "causal", "none"): TOWARDS_FIRST,
    # K.3: the causal mask without PEs learns to favour the beginning "across all cases"
    ("first", "causal", "none"): TOWARDS_FIRST,
    ("middle", "causal", "none"): TOWARDS_FIRST,
    ("last", "causal", "none"): TOWARDS_FIRST,
    # Section 5.2, K.3: "compared with no mask", the causal one introduces a sense of position: no mask has none
    ("ends", "none", "none"): NO_POSITION,
    ("first", "none", "none"): NO_POSITION,
    ("middle", "none", "none"): NO_POSITION,
    ("last", "none", "none"): NO_POSITION,
}
for _mask, _encoding in product(("none", "causal"), ("sin", "rope")):  # "regardless of the mask used"
    PREDICTED |= {
        # Section 5.2: a U, with "performance at the beginning slightly better than at the end"
        ("ends", _mask, _encoding): {**TOWARDS_FIRST, "middle-last": LATER},
        # K.3: "capture different positional biases regardless of their location"; nothing of the other two positions
        ("first", _mask, _encoding): TOWARDS_FIRST,
        ("middle", _mask, _encoding): {"first-middle": LATER, "middle-last": EARLIER},
        ("last", _mask, _encoding): {"first-last": LATER, "middle-last": LATER},
    }
# Nothing of residual networks without bias (K.2: amplified or reduced), of single gaps under RoPE or decay without bias
# (5.1 compares them), of windows and prefixes (K.4 is on sinks).


@pytest.mark.parametrize("network", sorted({network[1:4] for network, _ in networks()}), ids="-".join)
def test_what_is_expected_of_each_gap_is_what_the_paper_says(network):
    found = {pair: checks.expected(*network, pair) for pair in PAIRS}
    assert {pair: astuple(of) for pair, of in found.items() if of is not None} == PREDICTED.get(network, {})


# The table of gaps

OMEGAS = {"fixed": {"training": 0.0, "fresh": -1.0}, "gaussian": {"none": 0.0}}  # directions of a test, shift of a gap


@pytest.fixture(scope="module")
def gap_table():
    trained = gap_frame(papers_world())
    late = gap_frame(papers_world(seed=5))
    late = late[~((late["study"] == "window") & (late["seed"] == 0))]  # seeds need not be the same
    return checks.gap_table(trained, late, LEVEL)


def of_gap(table, vocabulary, study, mask, encoding, depth, pair):
    wanted = {
        "vocabulary": vocabulary,
        "study": study,
        "mask": mask,
        "encoding": encoding,
        "depth": depth,
        "pair": pair,
    }
    found = table[(table[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    assert len(found) == 1
    return found.iloc[0]


def test_every_gap_has_scipys_interval_at_the_end_and_settled(gap_table):
    world, late = papers_world(), papers_world(seed=5)
    assert len(gap_table) == len(world)
    for key, by_seed in world.items():
        row = of_gap(gap_table, *key)
        settled = [gap for seed, gap in late[key].items() if not (key[1] == "window" and seed == 0)]
        for values, suffix in ((list(by_seed.values()), ""), (settled, " settled")):
            interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
            found = [row[f"{name}{suffix}"] for name in ("gap", "low", "high")]
            assert found == pytest.approx([np.mean(values), *interval], abs=1e-12)
        assert row["seeds"] == len(by_seed)


def test_a_gap_has_a_verdict_where_the_paper_says_something_and_no_claim_elsewhere(gap_table):
    for key in papers_world():
        row = of_gap(gap_table, *key)
        predicted = PREDICTED.get(key[1:4], {}).get(key[-1])
        if predicted:
            assert (*row[list(PREDICTION)], row["verdict"]) == (*predicted, "holds")
        else:
            assert (row["relation"], row["verdict"]) == ("", checks.NO_CLAIM)
            assert row[["bound", "margin"]].isna().all()


def test_gaps_in_tests_with_either_common_direction_have_each_their_row():
    """Those of fresh directions are shifted; the Gaussian vocabulary has none."""
    world = {key: by_seed for key, by_seed in papers_world().items() if key[1] == "ends"}
    one, late = gap_frame(world), gap_frame({key: world[key] for key in reversed(world)})
    fixed = one[one["vocabulary"] == "fixed"].assign(omega="fresh")
    fresh = fixed.assign(gap=fixed["gap"] - 1.0)
    table = checks.gap_table(pd.concat([one, fresh]), pd.concat([late, fresh]), LEVEL)
    assert len(table) == 2 * 3 * 6 + 3 * 6
    assert table.groupby("vocabulary")["omega"].unique().map(sorted).to_dict() == {
        "fixed": ["fresh", "training"],
        "gaussian": ["none"],
    }
    for (*network, pair), by_seed in world.items():
        for omega, shift in OMEGAS[network[0]].items():
            row = of_gap(table[table["omega"] == omega], *network, pair)
            mean = np.mean(list(by_seed.values())) + shift
            assert (row["gap"], row["gap settled"]) == pytest.approx((mean, mean), abs=1e-12)
            predicted = PREDICTED.get(tuple(network[1:4]), {}).get(pair)
            assert row["relation"] == (predicted[0] if predicted else "")
            if omega == "fresh" and predicted:
                assert row["verdict"] == ("holds" if predicted == LATER else "fails")


def test_the_verdict_on_a_gap_is_that_of_its_interval_at_the_end():
    def frame(centre):
        network = ("gaussian", "ends", "causal", "none", 2)
        return gap_frame({(*network, pair): {seed: centre + 0.001 * seed for seed in range(5)} for pair in PAIRS})

    for centre, verdict in ((0.1, "holds"), (-0.1, "fails"), (0.008, "not separable")):
        table = checks.gap_table(frame(centre), frame(-centre), LEVEL)
        found = dict(zip(table["pair"], table["verdict"], strict=True))
        assert found == {"first-middle": verdict, "first-last": verdict, "middle-last": "no claim"}


def test_one_seed_has_a_gap_and_no_verdict():
    network = ("fixed", "first", "none", "none", 2)
    frame = gap_frame({(*network, pair): {3: 0.2} for pair in PAIRS})
    table = checks.gap_table(frame, frame, LEVEL)
    assert set(table["verdict"]) == {"not testable here"}
    assert table["gap"].tolist() == [0.2] * 3
    assert set(table["seeds"]) == {1}


def test_a_gap_is_shown_by_the_figure_of_its_vocabulary_and_study(gap_table):
    """Captions of the paper: Figures 4-6 and 8 on the Gaussian mixture, 9-11 and 13 on the fixed vocabulary."""
    shown = {(row.vocabulary, row.study): row.item for row in gap_table.itertuples()}
    studies = ("plain", "residual", "ends", "first", "middle", "last", "window", "prefix")
    gaussian = ("4", "5", "3", "6a", "6b", "6c", "8b", "8c")
    fixed = ("9", "10", "11a", "11b", "11c", "11d", "13b", "13c")
    assert shown == {
        **{("gaussian", study): f"Figure {number}" for study, number in zip(studies, gaussian, strict=True)},
        **{("fixed", study): f"Figure {number}" for study, number in zip(studies, fixed, strict=True)},
        ("isotropic", "plain"): "Appendix L",
    }
