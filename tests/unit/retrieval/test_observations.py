"""What networks name, counted one answer at a time, on sequences whose answers are known."""

import numpy as np
import pytest
import torch

from position_bias.emergence import network as networks
from position_bias.emergence import sequences
from position_bias.emergence.studies import Network
from position_bias.emergence.task import Task
from position_bias.retrieval import observations

TASK = Task(items=4, burstiness=2, classes=16, labels=8, width=8)
SEEDS = [0, 3]


@pytest.fixture(scope="module")
def world():
    return sequences.world(TASK, SEEDS, "cpu")


def drawn(world, count=70, kind=observations.distinct, purpose="test"):
    return list(kind(TASK, world, SEEDS, count, purpose))


def test_every_item_has_a_class_and_a_label_of_its_own_and_the_query_matches_none(world):
    parts = drawn(world)
    assert [part.strangers.shape[1] for part in parts] == [248, 32]  # 70 sequences for each of 4 positions
    for part in parts:
        ordered = part.drawn.labels.sort(-1).values
        assert (ordered[..., 1:] > ordered[..., :-1]).all()
        noise = TASK.noise * TASK.spread / (1 + TASK.noise**2) ** 0.5
        items = [*part.drawn.items.unbind(2), part.strangers]
        for place, item in enumerate(items):  # means differ by sqrt(2) spread / sqrt(1 + e^2) times noise between items
            for other in items[:place]:
                squares = (item - other).square().mean()
                assert squares == pytest.approx(2 * TASK.spread**2, rel=0.15)
                assert squares > 1.3 * 2 * noise**2
    of_query = torch.cat([part.unmatched()[:, :, -1] for part in parts], 1)
    torch.testing.assert_close(of_query, torch.cat([part.strangers for part in parts], 1))


def test_labels_and_orders_are_even_over_positions(world):
    labels = torch.cat([part.drawn.labels for part in drawn(world, 700)], 1)
    counts = torch.stack([(labels == label).double().mean((0, 1)) for label in range(8)])
    np.testing.assert_allclose(counts, 1 / 8, atol=0.02)


def test_another_purpose_gives_other_sequences_and_a_seed_its_own(world):
    (one, *_), (again, *_), (other, *_) = drawn(world), drawn(world), drawn(world, purpose="other")
    assert torch.equal(one.unmatched(), again.unmatched())
    assert not torch.equal(one.unmatched(), other.unmatched())
    alone = sequences.world(TASK, [3], "cpu")
    (of_seed, *_) = observations.distinct(TASK, alone, [3], 70, "test")
    assert torch.equal(of_seed.unmatched()[0], one.unmatched()[1])


def test_shares_and_accuracy_are_those_of_answers_one_by_one(world):
    stack = networks.stack(TASK, [Network("causal", "none")] * 2, 2, True, "cpu")
    weights = networks.initial(TASK, 2, SEEDS, "cpu")

    def answer(tokens):
        x, _ = networks.represented(weights, stack, tokens)
        return networks.classify(weights, x[:, :, -1])

    (part,) = drawn(world, 12)
    hits, right = np.zeros((2, 4)), np.zeros((2, 4))
    for m in range(48):
        for seed in range(2):
            tokens = torch.empty(2, 1, 9, 8)
            for item in range(4):
                tokens[:, 0, 2 * item] = part.drawn.items[seed, m, item]
                tokens[:, 0, 2 * item + 1] = part.drawn.tokens_of[seed, part.drawn.labels[seed, m, item]]
            tokens[:, 0, 8] = part.strangers[seed, m]
            named = int(answer(tokens)[seed, 0].argmax())
            tokens[:, 0, 8] = part.drawn.queries[seed, m, m % 4]
            for item in range(4):
                hits[seed, item] += named == part.drawn.labels[seed, m, item]
            right[seed, m % 4] += int(answer(tokens)[seed, 0].argmax()) == part.drawn.labels[seed, m, m % 4]
    np.testing.assert_allclose(observations.named(answer, part), hits / 48)
    np.testing.assert_allclose(observations.found(answer, part), right / 12)
    assert hits.sum() > 0


def test_frozen_attention_is_the_network_itself_where_attention_does_not_vary(world):
    """Queries and keys of zero leave what the mask and the slope say."""
    for residual in (False, True):
        stack = networks.stack(TASK, [Network("causal", "decay", slope=0.4)] * 2, 2, residual, "cpu")
        weights = networks.initial(TASK, 2, SEEDS, "cpu")
        weights |= {name: torch.zeros_like(weights[name]) for name in ("q0", "q1")}
        (part,) = drawn(world, 5)
        tokens = part.unmatched()
        x, maps = networks.represented(weights, stack, tokens)
        expected = networks.classify(weights, x[:, :, -1])
        found = observations.frozen(weights, stack, maps[:, :, 0])(tokens)
        torch.testing.assert_close(found, expected)
        another = observations.frozen(weights, stack, maps[:, :, 0].flip(-1))(tokens)
        assert (another - expected).abs().max() > 1e-3


def test_the_floor_is_what_labels_outside_the_sequence_have():
    shares = np.array([0.3, 0.2, 0.1, 0.2])  # .2 are left for the 4 others
    np.testing.assert_allclose(observations.above_floor(shares, 8), [0.25, 0.15, 0.05, 0.15])
    np.testing.assert_allclose(observations.above_floor(np.full(4, 1 / 8), 8), 0, atol=1e-15)  # guesses alone
    np.testing.assert_allclose(observations.above_floor(shares, 4), shares)  # there is none outside


def test_shares_of_positions_are_found_again_where_several_items_have_each_label(world):
    """A network that copies the label at position j with probability p_j, or guesses among all labels."""
    shares = np.array([0.35, 0.05, 0.1, 0.2])
    rng = np.random.default_rng(0)
    labels = torch.cat([part.drawn.labels[0] for part in drawn(world, 4000, observations.bursty)]).numpy()
    copied = rng.choice(5, size=len(labels), p=[*shares, 1 - shares.sum()])
    guesses = rng.integers(8, size=len(labels))
    answers = np.where(copied < 4, labels[np.arange(len(labels)), np.minimum(copied, 3)], guesses)
    hits = (answers[:, None] == labels).mean(0)
    np.testing.assert_allclose(observations.of_positions(hits, TASK), shares, atol=0.03)
    assert np.abs(hits - shares).max() > 0.1
