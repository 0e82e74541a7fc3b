import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import scipy.stats
import torch

from position_bias.emergence import sequences
from position_bias.emergence.task import PAIRS, RetrievalTask, for_vocabulary

NUMBERS = {"classes": 64, "labels": 8}
TASKS = {name: for_vocabulary(name, NUMBERS) for name in ("gaussian", "fixed", "isotropic")}
GAUSSIAN, FIXED = TASKS["gaussian"], TASKS["fixed"]
SHAPES = [(8, 4), (8, 2), (8, 1), (4, 2), (6, 3), (4, 1)]  # items, burstiness


pytestmark = pytest.mark.usefixtures("one_thread")


def drawn(task, seeds=(0, 1), bias=(), batch=200, iteration=1):
    """A world and one batch of it: tokens and the labels to predict."""
    world = sequences.world(task, seeds, "cpu")
    return world, *sequences.RetrievalBatches(task, world, seeds, bias, batch)(iteration)


def nearest(vectors, table):
    """Which row of `table` [K, d] each vector is closest to."""
    return torch.cdist(vectors.flatten(0, -2), table).argmin(-1).view(vectors.shape[:-1])


def found(vectors, table):
    """Which row of `table` [K, d] each vector is, bit for bit."""
    index = nearest(vectors, table)
    assert torch.equal(table[index], vectors)
    return index


def decoded(world, tokens):
    """Classes of the items, the query's last, and labels, by comparing tokens with the world."""
    classes = [nearest(of_seed, items) for of_seed, items in zip(tokens[:, :, 0::2], world.items, strict=True)]
    return torch.stack(classes), shown_labels(world, tokens)


def shown_labels(world, tokens):
    return torch.stack([found(*of_seed) for of_seed in zip(tokens[:, :, 1::2], world.labels, strict=True)])


def standard_error(share, count):
    return math.sqrt(share * (1 - share) / count)


# Training batches


@pytest.mark.parametrize(("items", "burstiness"), SHAPES)
@pytest.mark.parametrize("vocabulary", ["gaussian", "fixed"])
def test_every_class_of_a_sequence_stands_in_it_equally_often_with_its_label(vocabulary, items, burstiness):
    # little noise, so that the closest class is that of the item
    task = for_vocabulary(vocabulary, {**NUMBERS, "items": items, "burstiness": burstiness, "noise": 0.05})
    world, tokens, targets = drawn(task)
    assert tokens.shape == (2, 200, 2 * items + 1, 64)
    assert targets.shape == (2, 200)
    classes, labels = decoded(world, tokens)
    for seed, m in np.ndindex(2, 200):
        present, counts = classes[seed, m, :-1].unique(return_counts=True)
        assert counts.tolist() == [burstiness] * (items // burstiness)
        assert classes[seed, m, -1] in present
        assert labels[seed, m].tolist() == world.label_of[seed][classes[seed, m, :-1]].tolist()
        assert targets[seed, m] == world.label_of[seed][classes[seed, m, -1]]


def test_classes_labels_and_their_orders_are_drawn_uniformly():
    world, tokens, targets = drawn(replace(FIXED, items=4, burstiness=2), batch=4000)
    classes, _ = decoded(world, tokens)
    pattern = (classes[..., 1:4] == classes[..., :1]).flatten(0, 1)  # where the class of the first item returns
    assert (pattern.sum(-1) == 1).all()
    for counted, kinds in ((classes[..., -1], 64), (world.label_of, 8), (pattern.float().argmax(-1), 3)):
        assert scipy.stats.chisquare(torch.bincount(counted.flatten(), minlength=kinds)).pvalue > 1e-3
    assert torch.bincount(targets.flatten(), minlength=8).min() > 0


@pytest.mark.parametrize("bias", [[], [4], [1, 8]])
def test_the_answer_stands_anywhere_or_at_the_biased_positions_equally_often(bias):
    task = replace(FIXED, burstiness=1)  # the position of the answer is that of the only item of its class
    world, tokens, _ = drawn(task, bias=bias, batch=4000)
    classes, _ = decoded(world, tokens)
    same = classes[..., :-1] == classes[..., -1:]
    assert (same.sum(-1) == 1).all()
    counted = torch.bincount(same.float().argmax(-1).flatten(), minlength=8)
    expected = [position - 1 for position in bias or range(1, 9)]
    assert counted[expected].sum() == 2 * 4000
    assert len(bias) == 1 or scipy.stats.chisquare(counted[expected]).pvalue > 1e-3


@pytest.mark.parametrize("seeds", [(7,), (5, 7, 6), (7, 5)])
def test_what_a_seed_draws_depends_on_seed_and_iteration_alone(seeds):
    world, tokens, targets = drawn(GAUSSIAN, (7,), iteration=3)
    row, others = seeds.index(7), sequences.world(GAUSSIAN, seeds, "cpu")
    for field in ("items", "label_of", "labels", "common"):
        assert torch.equal(getattr(others, field)[row], getattr(world, field)[0])
    batches = sequences.RetrievalBatches(GAUSSIAN, others, seeds, [], 200)
    torch.manual_seed(0)
    assert not torch.equal(batches(2)[0][row], tokens[0])
    again, labels = batches(3)
    assert torch.equal(again[row], tokens[0])
    assert torch.equal(labels[row], targets[0])


def test_seeds_have_independent_worlds_and_batches():
    world, tokens, targets = drawn(GAUSSIAN, (0, 1, 2), batch=400)
    for values in (world.items, world.labels, tokens):
        count = values[0].numel()
        correlations = np.corrcoef(values.flatten(1).numpy())
        assert np.abs(correlations - np.eye(3)).max() < 5 / math.sqrt(count / 64)  # whole tokens repeat
    for values, share in ((world.label_of, 1 / 8), (targets, 1 / 8)):
        equal = (values[0] == values[1]).double().mean().item()
        assert equal == pytest.approx(share, abs=4 * standard_error(share, len(values[0])))


# Vectors


@pytest.mark.parametrize("vocabulary", TASKS)
@pytest.mark.parametrize(("scale", "variance"), [("paper", 1 / 64), ("released", 1 / 64**2)])
def test_coordinates_of_items_and_labels_have_the_variance_of_the_scale(vocabulary, scale, variance):
    numbers = {"scale": scale, "classes": 4096, "labels": 1024}
    task = for_vocabulary(vocabulary, numbers)
    world, tokens, _ = drawn(task, batch=400)
    everything = sequences.novel(task, world, (0, 1), 400)
    # the shared direction is one draw a seed, of which 64 coordinates make a rough share of the variance
    rough = 0.02 if vocabulary != "fixed" else 0.25
    for vectors, tolerance in (
        (tokens[:, :, 0:-1:2], rough),
        (tokens[:, :, -1], rough),
        (everything.items, rough),
        (everything.queries, rough),
        (world.labels, 0.02),
    ):
        assert vectors.double().square().mean().item() == pytest.approx(variance, rel=tolerance)
        assert vectors.double().mean().item() == pytest.approx(0, abs=math.sqrt(variance) * max(rough, 0.02))
    assert torch.equal(everything.tokens_of, world.labels)


def test_gaussian_items_are_a_class_mean_and_fresh_noise_of_the_papers_shares():
    task = replace(GAUSSIAN, classes=1024)
    world, tokens, _ = drawn(task, bias=[1], batch=2000)
    first, query = tokens[:, :, 0].double(), tokens[:, :, -1].double()  # of one class
    mean, noise = 1 / (1 + 0.75**2), 0.75**2 / (1 + 0.75**2)
    assert world.items.double().square().mean().item() * 64 == pytest.approx(mean, rel=0.02)
    assert (first * query).sum(-1).mean().item() == pytest.approx(mean, rel=0.02)
    assert (first - query).square().sum(-1).mean().item() == pytest.approx(2 * noise, rel=0.02)
    assert torch.cdist(tokens[0, 0, 0::2], tokens[0, 0, 0::2]).fill_diagonal_(1).min() > 0.1


def cosines(vectors):
    """Cosines between different rows."""
    unit = torch.nn.functional.normalize(vectors.double(), dim=-1)
    return (unit @ unit.T)[~torch.eye(len(vectors), dtype=torch.bool)]


@pytest.mark.parametrize(
    ("vocabulary", "expected"), [("fixed", 0.75**2 / (1 + 0.75**2)), ("isotropic", 0.0), ("gaussian", 0.0)]
)
def test_classes_are_as_similar_as_their_vocabulary_has_it(vocabulary, expected):
    task = for_vocabulary(vocabulary, {"width": 1024, "classes": 200})
    world = sequences.world(task, (0, 1), "cpu")
    unseen = sequences.novel(task, world, (0, 1), 100)
    for seed in range(2):
        assert cosines(world.items[seed]).mean().item() == pytest.approx(expected, abs=0.03)
        # a novel class is as similar to those of training as they are to one another
        pairs = torch.cat([world.items[seed], unseen.items[seed, :, 0]])
        assert cosines(pairs).mean().item() == pytest.approx(expected, abs=0.03)
    across = torch.cat([world.items[0, :1], world.items[1, :1]])
    assert cosines(across).abs().max() < 0.15  # each seed has its own shared direction


# Drawing without replacement


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_distinct_classes_are_drawn_uniformly_without_replacement(count):
    classes, draws = 6, 40_000
    uniform = torch.rand(draws, count, generator=torch.Generator().manual_seed(count))
    chosen = sequences._distinct(uniform, classes)
    orders = {order: place for place, order in enumerate(permutations(range(classes), count))}
    counted = np.bincount([orders[tuple(row)] for row in chosen.tolist()], minlength=len(orders))
    assert scipy.stats.chisquare(counted).pvalue > 1e-3  # a repeated class is no key of `orders`


def test_the_ends_of_the_unit_interval_draw_classes_that_there_are():
    largest = 1 - 2.0**-24  # the largest number that torch draws
    ends = torch.cartesian_prod(*[torch.tensor([0.0, largest])] * 4)
    chosen = sequences._distinct(ends, 10_000_019).sort(-1).values
    assert chosen.min() == 0
    assert chosen.max() == 10_000_018
    assert (chosen.diff(dim=-1) > 0).all()


# Test sets


@pytest.fixture(params=[("gaussian", "none"), ("fixed", "training"), ("fixed", "fresh")], ids="-".join)
def unseen(request):
    vocabulary, omega = request.param
    task = TASKS[vocabulary]
    world = sequences.world(task, (0, 1), "cpu")
    return task, world, sequences.novel(task, world, (0, 1), 60, omega=omega)


def item(tokens, position):
    return tokens[:, :, 2 * (position - 1)]


@pytest.mark.parametrize("middle", ["paper", "released"])
def test_the_pair_sets_are_each_pair_in_both_orders(middle):
    m = {"paper": 4, "released": 5}[middle]
    expected = [(1, m), (m, 1), (1, 8), (8, 1), (m, 8), (8, m)]
    assert sequences.test_sets(RetrievalTask(middle=middle)) == expected
    names = [(RetrievalTask(middle=middle).position(a), RetrievalTask(middle=middle).position(b)) for a, b in PAIRS]
    assert expected[0::2] == names


def test_in_a_pair_set_the_twin_is_a_copy_of_the_answer_and_keeps_its_label(unseen):
    task, world, novel = unseen
    for answer, twin in sequences.test_sets(task):
        tokens, labels = sequences.pair_set(novel, answer, twin)
        assert tokens.shape == (2, 60, 17, 64)
        assert torch.equal(item(tokens, answer), item(tokens, twin))
        assert torch.equal(item(tokens, answer), novel.items[:, :, answer - 1])
        assert torch.equal(labels, novel.labels[:, :, answer - 1])
        assert torch.equal(tokens[:, :, -1], novel.queries[:, :, answer - 1])
        assert torch.equal(shown_labels(world, tokens), novel.labels)  # the twin's too
        for position in {*range(1, 9)} - {twin}:
            assert torch.equal(item(tokens, position), novel.items[:, :, position - 1])


def test_a_query_is_a_fresh_draw_of_the_class_of_the_answer(unseen):
    task, _, novel = unseen
    to_items = (novel.queries[:, :, :, None] - novel.items[:, :, None]).double().norm(dim=-1)  # [S, M, n, n]
    same = (novel.queries[:, :, :, None] == novel.queries[:, :, None]).all(-1)
    assert (same.sum(-1) == task.burstiness).all()
    assert to_items[same].mean() < 0.8 * to_items[~same].mean()
    fresh = task.vocabulary == "gaussian"
    assert (to_items[same].min() > 0.1) if fresh else (to_items[same] == 0).all()
    # items and queries of a sequence that share a class share a label
    assert (novel.labels[:, :, :, None] == novel.labels[:, :, None])[same].all()


@pytest.mark.parametrize(("vocabulary", "omega"), [(name, omega) for name in TASKS for omega in TASKS[name].omegas])
def test_what_a_seed_is_tested_on_depends_on_seed_and_part_alone(vocabulary, omega):
    task = TASKS[vocabulary]

    def novel(seeds, part=0):
        return vars(sequences.novel(task, sequences.world(task, seeds, "cpu"), seeds, 30, part, omega))

    alone, again, together, other = novel((4,)), novel((4,)), novel((3, 4)), novel((4,), 1)
    for name, value in alone.items():
        assert torch.equal(value, again[name])
        assert torch.equal(value[0], together[name][1])
        assert torch.equal(value, other[name]) == (name == "tokens_of")
    assert not torch.equal(together["labels"][0], together["labels"][1])


def test_a_plain_sequence_asks_for_each_item_in_turn(unseen):
    _, world, novel = unseen
    tokens, answers = sequences.plain_set(novel)
    for m in range(60):
        asked = m % 8
        assert torch.equal(tokens[:, m, 0:-1:2], novel.items[:, m])
        assert torch.equal(tokens[:, m, -1], novel.queries[:, m, asked])
        assert torch.equal(answers[:, m], novel.labels[:, m, asked])
    assert torch.equal(shown_labels(world, tokens), novel.labels)


# The common direction of novel classes


def both(task, seeds=(0, 1), count=60, part=0):
    """A world, and novel sequences with either direction."""
    world = sequences.world(task, seeds, "cpu")
    return world, *(sequences.novel(task, world, seeds, count, part, omega) for omega in ("training", "fresh"))


def fresh_directions(task, **drawn):
    """The direction of each sequence `[S, M, d]` by Appendix L, (mu + lambda omega) / sqrt(1 + lambda^2), in float64.

    Class means cancel out of the difference between the same classes with another direction.
    """
    world, training, fresh = both(task, **drawn)
    share = task.anisotropy / math.sqrt(1 + task.anisotropy**2)
    moved = (fresh.items.double() - training.items.double()) / share
    return world.common[:, None].double() + moved.mean(2)


@pytest.mark.parametrize("scale", ["paper", "released"])
@pytest.mark.parametrize("anisotropy", [0.25, 2.0])
def test_another_direction_moves_all_items_of_a_sequence_alike_and_changes_nothing_else(anisotropy, scale):
    task = replace(FIXED, anisotropy=anisotropy, scale=scale)
    world, training, fresh = both(task)
    assert torch.equal(fresh.labels, training.labels)
    assert torch.equal(fresh.tokens_of, training.tokens_of)
    share = anisotropy / math.sqrt(1 + anisotropy**2)
    directions = fresh_directions(task)
    moved = share * (directions - world.common[:, None].double())[:, :, None]
    for one, other in ((fresh.items, training.items), (fresh.queries, training.queries)):
        np.testing.assert_allclose(one.double(), other.double() + moved, rtol=0, atol=1e-6 * task.spread)
        # which items are of one class is the same
        alike = [(of[:, :, :, None] == of[:, :, None]).all(-1) for of in (one, other)]
        assert torch.equal(*alike)
        assert (alike[0].sum(-1) == task.burstiness).all()


def test_every_sequence_seed_and_part_has_a_direction_of_its_own():
    parts = [fresh_directions(FIXED, part=part, count=40) for part in (0, 1, ("sinks", 0))]
    shared = sequences.world(FIXED, (0, 1), "cpu").common.double()  # nor is it that of training
    directions = torch.cat([*(part.flatten(0, 1) for part in parts), shared])
    assert len(directions) == 3 * 2 * 40 + 2
    assert torch.cdist(directions, directions).fill_diagonal_(torch.inf).min() > 0.7
    assert torch.equal(fresh_directions(FIXED, part=1, count=40), parts[1])


@pytest.mark.parametrize(("scale", "spread"), [("paper", 1 / 8), ("released", 1 / 64)])
def test_fresh_directions_are_drawn_as_that_of_training(scale, spread):
    """Coordinates are independent normal numbers of the scale's spread, and know nothing of the classes."""
    task = replace(FIXED, scale=scale)
    world, training, _ = both(task, count=800)
    directions = fresh_directions(task, count=800)
    assert scipy.stats.kstest(directions.flatten() / spread, "norm").pvalue > 1e-3
    assert cosines(directions.flatten(0, 1)).mean().abs() < 5 / math.sqrt(64) / 1600
    means = 1.25 * training.items.double() - 0.75 * world.common[:, None, None].double()
    together = np.corrcoef(directions.flatten(), means[:, :, 0].flatten())[0, 1]
    assert abs(together) < 5 / math.sqrt(directions.numel())


@pytest.mark.parametrize("vocabulary", ["gaussian", "isotropic"])
def test_without_a_common_direction_there_is_one_kind_of_test(vocabulary):
    task = TASKS[vocabulary]
    world = sequences.world(task, (0, 1), "cpu")
    turned = replace(world, common=world.common + 1)  # whatever the direction of the world
    plain, none, other = (
        sequences.novel(task, of, (0, 1), 40, 3, *omega)
        for of, omega in ((world, ()), (world, ("none",)), (turned, ("none",)))
    )
    for name, value in vars(plain).items():
        assert torch.equal(value, vars(none)[name])
        assert torch.equal(value, vars(other)[name])
