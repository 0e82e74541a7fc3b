from collections import Counter
from itertools import product
from math import sqrt

import numpy as np
import pytest
import torch

from position_bias.postnorm import languages, tasks
from tests.unit.postnorm.words import is_word, state_after

NAMES = ["set-complement-2", "set-complement-16", "maximum-10", "dyck-2-3", *(f"tomita-{n}" for n in range(1, 8))]
LANGUAGES = NAMES[3:]
STRAY = 4.5  # standard errors that a frequency may be off


pytestmark = pytest.mark.usefixtures("one_thread")


def assert_frequencies(counts, chances):
    """Counts of outcomes are those of independent draws with these chances."""
    total = sum(counts.values())
    assert set(counts) <= set(chances)
    for outcome, chance in chances.items():
        assert abs(counts[outcome] - total * chance) <= STRAY * sqrt(total * chance * (1 - chance)) + 1e-6, outcome


# What all tasks have in common


@pytest.mark.parametrize("name", ["set-complement-16", "maximum-10", "dyck-2-3", "tomita-5"])
def test_what_a_seed_draws_depends_on_it_and_the_purpose_alone(name):
    task = tasks.task(name)
    alone = task.sequences([7], ("batch", 1), 6, 9)
    among = task.sequences([2, 7, 7], ("batch", 1), 6, 9)
    for row in (1, 2):
        assert torch.equal(alone.tokens[0], among.tokens[row])
        assert torch.equal(alone.legal[0], among.legal[row])
    if alone.values is not None:
        assert torch.equal(alone.values[0], among.values[1])
    assert not torch.equal(among.tokens[0], among.tokens[1])
    assert not torch.equal(alone.tokens, task.sequences([7], ("batch", 2), 6, 9).tokens)


def test_tasks_and_languages_draw_apart():
    first, second = (tasks.task(f"tomita-{number}").sequences([0], "same", 20, 9).tokens for number in (5, 6))
    assert not torch.equal(first, second)  # all symbols are live in both: the same numbers would give the same symbols


def test_only_sets_with_a_complement_and_nested_brackets_have_a_greatest_length():
    limits = {name: tasks.task(name).longest for name in [*NAMES, "nested-2-3-16"]}
    assert {name: longest for name, longest in limits.items() if longest} == {
        "set-complement-2": 1, "set-complement-16": 15, "nested-2-3-16": 16
    }  # fmt: skip


# Each task by its definition


@pytest.mark.parametrize("v", [2, 5, 16])
def test_set_complement(v):
    drawn = tasks.set_complement(v).sequences([0, 1, 2], "x", 40, v - 1)
    for row, legal in zip(drawn.tokens.flatten(0, 1).tolist(), drawn.legal.flatten(0, 1).tolist(), strict=True):
        assert len(set(row)) == v - 1
        for step in range(v - 1):
            assert legal[step] == [token not in row[: step + 1] for token in range(v)]


def test_sets_are_in_every_order_as_often_and_longer_ones_begin_alike():
    task = tasks.set_complement(4)
    drawn = task.sequences([0], "x", 6000, 2).tokens[0]
    assert_frequencies(
        Counter(map(tuple, drawn.tolist())), {(a, b): 1 / 12 for a, b in product(range(4), repeat=2) if a != b}
    )
    assert torch.equal(task.sequences([0], "x", 6000, 3).tokens[0, :, :2], drawn)


def test_maximum():
    drawn = tasks.maximum(5).sequences([0, 1], "x", 50, 12)
    rows = zip(*(part.flatten(0, 1).tolist() for part in (drawn.tokens, drawn.values, drawn.legal)), strict=True)
    for tokens, values, legal in rows:
        assert all(0 <= value < 1 for value in values)
        for step in range(12):
            best = max(range(step + 1), key=lambda at: values[at])
            assert legal[step] == [output == tokens[best] for output in range(5)]


def test_classes_and_priorities_are_uniform_and_independent():
    drawn = tasks.maximum(4).sequences([5], "x", 1000, 8)
    cells = Counter(zip(drawn.tokens.flatten().tolist(), (drawn.values * 3).long().flatten().tolist(), strict=True))
    assert_frequencies(cells, dict.fromkeys(product(range(4), range(3)), 1 / 12))


@pytest.mark.parametrize("name", LANGUAGES)
def test_formal_sequences_are_prefixes_with_their_legal_outputs(name):
    task = tasks.task(name)
    language = task.language
    drawn = task.sequences([0, 1], "x", 30, 12)
    assert drawn.tokens.shape == (2, 30, 13)
    legal_of = languages.legal_outputs(language)
    for tokens, legal in zip(drawn.tokens.flatten(0, 1).tolist(), drawn.legal.flatten(0, 1).tolist(), strict=True):
        assert tokens[0] == language.symbols
        for step in range(13):
            state = state_after(language, tokens[1 : step + 1])
            assert state >= 0
            assert legal[step] == legal_of[state].tolist()


@pytest.mark.parametrize("name", ["dyck-2-3", "tomita-3", "tomita-4", "tomita-7"])
def test_walks_are_uniform_among_live_symbols(name):
    task = tasks.task(name)
    tokens = task.sequences([1], "walk", 4000, 7).tokens[0, :, 1:].tolist()
    chosen = {}
    for row in tokens:
        for step, symbol in enumerate(row):
            chosen.setdefault(int(state_after(task.language, row[:step])), Counter())[symbol] += 1
    assert set(chosen) == set(range(len(task.language.accepting)))
    for state, counts in chosen.items():
        live = [symbol for symbol, target in enumerate(task.language.transitions[state]) if target >= 0]
        assert_frequencies(counts, dict.fromkeys(live, 1 / len(live)))


# Targets


def test_the_extremes_of_the_numbers_give_the_first_and_the_last_legal_output():
    uniform = torch.tensor([0.0, 1 - 2.0**-24])
    for outputs in range(1, 40):
        assert tasks.draw_targets(torch.ones(2, outputs, dtype=torch.bool), uniform).tolist() == [0, outputs - 1]


# Words and near misses


@pytest.mark.parametrize(
    ("name", "length"), [("dyck-2-3", 4), ("dyck-1-1", 6), ("tomita-4", 4), ("tomita-7", 5), ("tomita-5", 4)]
)
def test_words_and_near_misses_have_the_stated_distribution(name, length):
    language = languages.language(name)
    chances = {}
    for word in product(range(language.symbols), repeat=length):
        if not is_word(name, word):
            continue
        copies = ((*word[:at], symbol, *word[at + 1 :]) for at in range(length) for symbol in range(language.symbols))
        misses = [copy for copy in copies if not is_word(name, copy)]
        states = [state_after(language, word[:step]) for step in range(length)]
        walk = np.prod([1 / (language.transitions[state] >= 0).sum() for state in states])
        chances |= {(word, miss): walk / len(misses) for miss in misses}
    total = sum(chances.values())
    members, near_misses = tasks.words(language, [3], "x", 8000, length)
    assert members.shape == near_misses.shape == (1, 8000, length + 1)
    assert (torch.stack([members, near_misses])[..., 0] == language.symbols).all()
    pairs = zip(*(map(tuple, drawn[0, :, 1:].tolist()) for drawn in (members, near_misses)), strict=True)
    assert_frequencies(Counter(pairs), {pair: chance / total for pair, chance in chances.items()})


@pytest.mark.parametrize("name", ["dyck-2-3", "tomita-7"])  # the second rejects words, so that seeds take unlike rounds
def test_words_of_a_seed_depend_on_it_and_the_purpose_alone(name):
    language = languages.language(name)
    alone = tasks.words(language, [7], "x", 30, 6)
    among = tasks.words(language, [1, 2, 7], "x", 30, 6)
    other = tasks.words(language, [7], "y", 30, 6)
    for part in range(2):
        assert torch.equal(alone[part][0], among[part][2])
        assert not torch.equal(alone[part], among[part][:1])
        assert not torch.equal(alone[part], other[part])


# Brackets that nest


def stacks(tokens, kinds):
    """Open brackets after each token, by a list that is pushed and popped; the begin token empties it."""
    stack, seen = [], []
    for token in tokens:
        if token < kinds:
            stack.append(token)
        elif token < 2 * kinds:
            assert stack.pop() == token - kinds
        else:
            stack.clear()
        seen.append(tuple(stack))
    return seen


def test_nested_brackets_stay_within_their_depth_and_may_open_everywhere():
    nested = tasks.Nested(kinds=2, depth=2, longest=8)
    drawn = nested.task.sequences([3, 5], "batches", 40, 8)
    assert drawn.tokens.shape == (2, 40, 9)
    deepest = 0
    for tokens, legal, depths in zip(
        drawn.tokens.flatten(0, 1).tolist(),
        drawn.legal.flatten(0, 1).tolist(),
        nested.depths(drawn.tokens).flatten(0, 1).tolist(),
        strict=True,
    ):
        for stack, allowed, depth in zip(stacks(tokens, 2), legal, depths, strict=True):
            closing = [bool(stack) and stack[-1] == kind for kind in range(2)]
            assert allowed == [True, True, *closing, not stack]
            assert depth == len(stack)
            deepest = max(deepest, depth)
    assert deepest == 2
    shallow = tasks.formal(languages.dyck(2, 2)).sequences([3, 5], "batches", 40, 8)
    assert (drawn.tokens == shallow.tokens).all()
