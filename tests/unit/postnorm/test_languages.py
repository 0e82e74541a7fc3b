import re
from itertools import product

import numpy as np
import pytest

from position_bias.postnorm import languages
from tests.unit.postnorm.words import is_word, state_after, tomita_word

TOMITA_3_COMPLEMENT = re.compile("((0|1)*0)*1(11)*(0(0|1)*1)*0(00)*(1(0|1)*)*")
NAMES = ["dyck-1-1", "dyck-1-3", "dyck-2-1", "dyck-2-3", "dyck-3-2", *(f"tomita-{number}" for number in range(1, 8))]


def strings(language, length):
    return product(range(language.symbols), repeat=length)


def greatest_length(language, most):
    """The greatest length of which there are no more than `most` strings, at most 10."""
    return max(length for length in range(11) if language.symbols**length <= most)


@pytest.mark.parametrize("name", NAMES)
def test_automata_accept_the_words_and_nothing_else(name):
    language = languages.language(name)
    assert language.name == name
    accepted = 0
    for length in range(greatest_length(language, 5000) + 1):
        for word in strings(language, length):
            state = state_after(language, word)
            assert (state >= 0 and bool(language.accepting[state])) == is_word(name, word), word
            accepted += is_word(name, word)
    assert accepted > 1


def test_tomita_3_is_the_complement_of_its_regular_expression():
    for length in range(11):
        for word in product("01", repeat=length):
            expected = TOMITA_3_COMPLEMENT.fullmatch("".join(word)) is None
            assert tomita_word(3, tuple(map(int, word))) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_symbol_is_legal_where_some_extension_is_a_word(name):
    language = languages.language(name)
    legal = languages.legal_outputs(language)
    assert legal.shape == (len(language.accepting), language.symbols + 1)
    within = 3  # symbols to the next word: open brackets to close, at most; no language of Tomita needs more
    seen = set()
    for length in range(greatest_length(language, 300) + 1):
        for prefix in strings(language, length):
            extensions = [
                any(
                    is_word(name, (*prefix, symbol, *rest))
                    for more in range(within + 1)
                    for rest in strings(language, more)
                )
                for symbol in range(language.symbols)
            ]
            state = state_after(language, prefix)
            if state < 0:
                assert not any(extensions)
            else:
                assert legal[state].tolist() == [*extensions, is_word(name, prefix)]
                seen.add(int(state))
    assert seen == set(range(len(language.accepting)))


@pytest.mark.parametrize("name", NAMES)
def test_choices_to_words_condition_the_uniform_walk_on_its_end(name):
    language = languages.language(name)
    uniform = languages.uniform_choices(language)
    for length in (1, greatest_length(language, 300)):
        choices = languages.choices_to_words(language, length)
        assert choices.shape == (length, *uniform.shape)
        plain, conditioned = {}, {}
        for word in strings(language, length):
            path = [state_after(language, word[:step]) for step in range(length + 1)]
            if path[-1] >= 0:
                plain[word] = np.prod([uniform[s, a] for s, a in zip(path, word, strict=False)])
                conditioned[word] = np.prod([choices[t, path[t], word[t]] for t in range(length)])
        assert sum(plain.values()) == pytest.approx(1)
        total = sum(chance for word, chance in plain.items() if is_word(name, word))
        assert choices[0, 0].any() == (total > 0)
        for word, chance in conditioned.items():
            expected = plain[word] / total if total and is_word(name, word) else 0.0
            assert chance == pytest.approx(expected, abs=1e-14)


def test_choices_to_words_stay_finite_for_long_walks():
    choices = languages.choices_to_words(languages.dyck(2, 8), 3000)
    sums = choices.sum(-1)
    np.testing.assert_allclose(np.where(sums > 0, sums, 1), 1)
    assert choices[0, 0].sum() == pytest.approx(1)


@pytest.mark.parametrize("name", NAMES)
def test_lengths_with_near_misses(name):
    language = languages.language(name)
    for length in range(1, greatest_length(language, 300) + 1):
        words = [word for word in strings(language, length) if is_word(name, word)]
        misses = (
            (*word[:place], symbol, *word[place + 1 :])
            for word in words
            for place in range(length)
            for symbol in range(language.symbols)
        )
        assert languages.has_near_misses(language, length) == any(not is_word(name, miss) for miss in misses)
