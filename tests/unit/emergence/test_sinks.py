import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from position_bias.emergence import networks, sequences, sinks
from position_bias.emergence.accuracy_gaps import LATER
from position_bias.emergence.runs import Network
from position_bias.emergence.sinks import sink_metric, uniform_attention
from position_bias.emergence.task import RetrievalTask
from position_bias.emergence.training import Member
from position_card.rollout.attention import sliding_window_mask
from tests.unit.emergence.textbook import may_read, textbook

TAUS = (0.15, 0.2, 0.25, 0.3)


pytestmark = pytest.mark.usefixtures("one_thread")


def as_printed(maps, mask, tau, least=1):
    """Attention Sink_j of K.4 for one sequence, `[layers, N, N]` -> `[N]`, term by term; of some queries."""
    depth, N, _ = maps.shape
    metric = []
    for j in range(N):
        total = 0.0
        for t in range(depth):
            readers = above = 0
            for i in (i for i in range(N) if sum(mask[i]) >= least):
                readers += int(mask[i, j])
                above += int(maps[t, i, j] > tau)
            total += above / readers if readers else np.nan
        metric.append(total / depth)
    return metric


# The metric


def test_a_weight_of_exactly_the_threshold_is_no_sink():
    """A window of five gives 1/5 from row 5 on, in float64 the same number as the threshold."""
    mask = sliding_window_mask(17, 5)
    weights = uniform_attention(mask)
    assert weights.dtype == np.float64
    assert (weights[4:][mask[4:]] == 0.2).all()
    at, below = sink_metric(weights[None], mask, [0.2, np.nextafter(0.2, 0)])
    np.testing.assert_array_equal(at[4:], np.zeros(13))
    np.testing.assert_array_equal(below, np.ones(17))


# Measured on networks

TASK = RetrievalTask(items=4, burstiness=2, classes=8, labels=8, width=8)
FIXED = replace(TASK, vocabulary="fixed", anisotropy=2.0)
TASKS = pytest.mark.parametrize("task", [TASK, FIXED], ids=["gaussian", "fixed"])
T, DEPTH, DECAY = 9, 2, 0.3
COUNT = 11
SEEDS = (5, 3)
KINDS = (
    Network("prefix", "none", 3),
    Network("causal", "none"),
    Network("window", "sin", 4),
    Network("causal", "rope"),
    Network("causal", "decay", slope=DECAY),
    Network("none", "none"),
    Network("prefix", "decay", 5, DECAY),
)
MEMBERS = tuple(Member(network, seed) for seed in SEEDS for network in KINDS)


def trained_weights(members, depth=DEPTH):
    """Weights with attention far from uniform, another for each member."""
    weights = networks.initial(TASK, depth, [100 + index for index in range(len(members))], "cpu")
    return {name: value * (4 if name[0] in "qk" else 1.5) for name, value in weights.items()}


def measured(members=MEMBERS, weights=None, residual=False, count=COUNT, depth=DEPTH, task=TASK):
    weights = trained_weights(members, depth) if weights is None else weights
    return sinks.measure_sinks(task, members, weights, depth, residual, count, TAUS)


@pytest.fixture(scope="module")
def result():
    return measured()


def metric(table, member, state, omega="none"):
    """`[thresholds, tokens]` of a member's rows."""
    found = table[
        (table["mask"] == member.network.mask_name)
        & (table["encoding"] == member.network.encoding)
        & (table["omega"] == omega)
        & (table["seed"] == (0 if state.startswith("uniform") else member.seed))
        & (table["state"] == state)
    ]
    assert len(found) in (0, len(TAUS) * T)
    return found.pivot(index="tau", columns="token", values="value").loc[list(TAUS), list(range(1, T + 1))].to_numpy()


def reads(network):
    return np.array([[may_read(network, i, j) for j in range(1, T + 1)] for i in range(1, T + 1)])


@TASKS
@pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
def test_metric_and_maps_are_those_of_a_textbook_network_in_the_order_of_the_members(monkeypatch, residual, task):
    """Over several parts, the last one smaller; the sequences are those that were drawn for the member's seed.

    Maps are those of tests with the direction of training, where there is one.
    """
    drawn = {}
    novel = sequences.novel

    def spy(task, world, seeds, count, part, omega):
        parts = drawn.setdefault((*seeds, omega), {})
        parts[part] = found = novel(task, world, seeds, count, part, omega)
        return found

    monkeypatch.setattr(sinks, "PART", 4)
    monkeypatch.setattr(sequences, "novel", spy)
    table, means, examples = measured(residual=residual, task=task, count=6)
    weights = trained_weights(MEMBERS)
    assert means.shape == examples.shape == (len(MEMBERS), DEPTH, T, T)
    omegas = ["training", "fresh"] if task is FIXED else ["none"]
    assert set(drawn) == set(itertools.product(SEEDS, omegas))
    items = torch.cat([part.items[0].flatten(1) for parts in drawn.values() for part in parts.values()])
    assert len(items.unique(dim=0)) == len(items) == len(SEEDS) * len(omegas) * 6  # no sequence comes twice
    of_all = table[~table["state"].str.endswith(LATER)]
    assert len(of_all) == len(omegas) * (2 * len(MEMBERS) + len(KINDS)) * len(TAUS) * T  # trained, untrained, nulls
    for (index, member), omega in itertools.product(enumerate(MEMBERS), omegas):
        parts = [sequences.plain_set(part)[0][0] for part in drawn[member.seed, omega].values()]
        assert [len(part) for part in parts] == [4, 2]
        tokens = torch.cat(parts).double()
        own = {name: value[index].double() for name, value in weights.items()}
        maps = np.stack([textbook(own, member.network, DEPTH, residual, one)[1].numpy() for one in tokens])
        alike = [np.allclose(means[index], maps.mean(0), atol=1e-12), np.allclose(examples[index], maps[0], atol=1e-12)]
        assert alike == [omega != "fresh"] * 2
        expected = np.mean(
            [[as_printed(one, reads(member.network), tau) for tau in TAUS] for one in maps],
            axis=0,
        )
        np.testing.assert_allclose(metric(table, member, "trained", omega), expected, atol=1e-12)
        if member.network.mask == "window":  # of four tokens
            assert (table.loc[table["mask"] == "window4", "state"].str.endswith(LATER) == 0).all()
            continue
        later = np.mean([[as_printed(one, reads(member.network), tau, 5) for tau in TAUS] for one in maps], axis=0)
        np.testing.assert_allclose(metric(table, member, "trained" + LATER, omega), later, atol=1e-12)


def test_among_later_queries_uniform_attention_has_no_sink_on_token_1(result):
    """Over all queries it has 4 of 9 at .2, which is how many read four tokens at most."""
    table, _, _ = result
    member = Member(Network("causal", "none"), 3)
    at = TAUS.index(0.2)
    assert metric(table, member, "uniform")[at, 0] == 4 / T
    assert (metric(table, member, "uniform" + LATER)[at] == 0).all()


def test_the_null_is_uniform_attention_under_the_mask_whatever_the_encoding(result):
    table, _, _ = result
    for network in KINDS:
        mask = reads(network)
        even = np.array([[mask[i, j] / sum(mask[i]) for j in range(T)] for i in range(T)])[None]
        expected = [as_printed(even, mask, tau) for tau in TAUS]
        np.testing.assert_allclose(metric(table, Member(network, 3), "uniform"), expected, rtol=1e-14)


def test_untrained_is_what_training_starts_from(result):
    """The weights of `initial`, handed in as if they were trained."""
    initial = networks.initial(TASK, DEPTH, [member.seed for member in MEMBERS], "cpu")
    table, _, _ = measured(weights=initial)
    for member in MEMBERS:
        start = metric(table, member, "trained")
        np.testing.assert_array_equal(start, metric(table, member, "untrained"))
        np.testing.assert_array_equal(start, metric(result[0], member, "untrained"))
        assert (start != metric(result[0], member, "trained")).any()


@pytest.mark.parametrize(("at_most", "sizes"), [(1, [4, 4, 3]), (7, [4, 4, 3]), (9, [8, 3])])
def test_every_item_is_asked_for_equally_often_whatever_fits_in_memory(monkeypatch, at_most, sizes):
    """A part asks for the items in turn, from the first on; no count is off by more than one."""
    drawn = []
    novel = sequences.novel
    monkeypatch.setattr(sinks, "PART", at_most)
    monkeypatch.setattr(sequences, "novel", lambda *args: drawn.append(novel(*args)) or drawn[-1])
    measured([Member(Network("causal", "none"), 2)])
    assert [part.labels.shape[1] for part in drawn] == sizes * 2  # trained and untrained
    asked = np.concatenate([np.arange(size) % TASK.items for size in sizes])
    assert np.ptp(np.bincount(asked)) <= 1
