"""Deeper brackets, with networks whose answers are made by hand and with a network of random weights."""

import pytest
import scipy.stats
import torch

from position_bias.postnorm import depths, tasks, training
from position_bias.postnorm.tasks import Nested
from position_bias.small_networks import decoder
from position_bias.small_networks.size import Size

TASK = Nested(kinds=2, depth=1, longest=6)
SEEDS = (0, 7)
SEQUENCES = 30


def asked(found, **wanted):
    for name, value in wanted.items():
        found = found[found[name] == value]
    (value,) = found["value"]
    return value


def test_a_network_is_judged_at_deeper_positions_and_on_deeper_words_apart():
    network = training.architecture(TASK, "peri", Size(1, 8, 2, 8))
    weights = decoder.initial(network, SEEDS, "cpu")
    found = depths.by_depth(weights, network, TASK, SEEDS, SEQUENCES, "cpu")
    prefixes = tasks.Formal(TASK.unbounded).sequences(SEEDS, "depths", SEQUENCES, 6)
    p = decoder.logits(weights, network, prefixes.tokens).softmax(-1)
    target = prefixes.legal / prefixes.legal.sum(-1, keepdim=True)
    kinds = tasks.words(TASK.unbounded, SEEDS, "depths", depths.WORDS * SEQUENCES, 6)
    scores = [training.least_probability(weights, network, tokens) for tokens in kinds]
    for member, seed in enumerate(SEEDS):
        for deeper in (False, True):
            distances = [
                float((p[member, m, t] - target[member, m, t]).abs().sum() / 2)
                for m in range(SEQUENCES)
                for t in range(1, 7)
                if (TASK.depths(prefixes.tokens)[member, m, t] > 1) == deeper
            ]
            assert asked(found, seed=seed, deeper=deeper, quantity="tvd") == pytest.approx(
                sum(distances) / len(distances), abs=1e-6
            )
            of_words = (TASK.depths(kinds[0])[member].amax(-1) > 1) == deeper
            words, misses = (of_kind[member][of_words] for of_kind in scores)
            expected = scipy.stats.mannwhitneyu(words.detach(), misses.detach()).statistic / len(words) / len(misses)
            assert asked(found, seed=seed, deeper=deeper, quantity="auc") == pytest.approx(expected)


def test_a_network_that_knows_the_top_of_the_stack_only_at_trained_depth_fails_deeper(monkeypatch):
    def knows(weights, network, tokens, values=None):
        legal = TASK.legal(tokens)
        guess = (TASK.depths(tokens) > TASK.depth)[..., None]
        return torch.where(legal | guess, 0.0, -30.0)

    def judged(weights, network, seen):
        p = knows(weights, network, seen.tokens).softmax(-1)
        distance = (p - seen.legal / seen.legal.sum(-1, keepdim=True)).abs().sum(-1) / 2
        return distance.expand(len(training.QUANTITIES), *distance.shape)

    monkeypatch.setattr(training, "judge", judged)
    monkeypatch.setattr(decoder, "logits", knows)
    network = training.architecture(TASK, "pre", Size(1, 8, 2, 8))
    found = depths.by_depth({}, network, TASK, SEEDS, SEQUENCES, "cpu").groupby(["deeper", "quantity"])["value"]
    assert found.max()[False, "tvd"] < 1e-6
    assert found.min()[True, "tvd"] == pytest.approx(0.4)  # 5 outputs, of which 3 are legal
    assert found.min()[False, "auc"] > 0.9
    assert found.max()[True, "auc"] < found.min()[False, "auc"]
