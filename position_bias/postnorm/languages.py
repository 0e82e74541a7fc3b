"""The formal languages of Zsamboki et al. 2025 are finite automata: bounded Dyck languages and those of Tomita (1982).

A state is live if some word can still be reached from it. Languages hold live states only; a symbol after which no
word can be reached leads to state -1, dead. So the legal symbols of a state are those that do not lead there.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from position_card.rollout.attention import Array, Mask

Integers = npt.NDArray[np.int64]

MOST_STACKS = 100_000  # of full depth in a Dyck language; each is a state

# Transitions (after 0, after 1) and acceptance of each state.
_TOMITA: dict[int, tuple[list[tuple[int, int]], list[bool]]] = {
    1: ([(-1, 0)], [True]),
    2: ([(-1, 1), (0, -1)], [True, False]),
    3: ([(0, 1), (2, 0), (3, -1), (2, 3)], [True, True, False, True]),  # 1: in an odd run of 1s; 2, 3: after one
    4: ([(1, 0), (2, 0), (-1, 0)], [True, True, True]),
    5: ([(1, 2), (0, 3), (3, 0), (2, 1)], [True, False, False, False]),
    6: ([(1, 2), (2, 0), (0, 1)], [True, False, False]),
    7: ([(0, 1), (2, 1), (2, 3), (-1, 3)], [True, True, True, True]),
}


@dataclass(frozen=True, eq=False)
class Language:
    """A deterministic automaton that starts in state 0. Every state is live, and has a live symbol."""

    name: str
    symbols: int
    transitions: Integers  # [states, symbols], -1 where dead
    accepting: Mask  # [states], whether what led here is a word


def language(name: str) -> Language:
    """The language of a name: `dyck-2-3` (kinds, depth) or `tomita-5`. Raises ValueError as `dyck` does."""
    family, *numbers = name.split("-")
    return dyck(*map(int, numbers)) if family == "dyck" else tomita(*map(int, numbers))


def dyck(kinds: int, depth: int) -> Language:
    """Return the language of well-nested brackets of some `kinds`, at most `depth` open at once: Dyck(k, m).

    Symbols 0..k-1 open, k..2k-1 close; a state is a stack of open brackets. Raises ValueError for too many of these.
    """
    if depth > MOST_STACKS or kinds**depth > MOST_STACKS:
        raise ValueError(f"kinds = {kinds} and depth = {depth}: more than {MOST_STACKS} full stacks; lower one of them")
    stacks = [stack for level in range(depth + 1) for stack in product(range(kinds), repeat=level)]
    state = {stack: index for index, stack in enumerate(stacks)}
    transitions = np.full((len(stacks), 2 * kinds), -1)
    for stack, index in state.items():
        if len(stack) < depth:
            transitions[index, :kinds] = [state[(*stack, kind)] for kind in range(kinds)]
        if stack:
            transitions[index, kinds + stack[-1]] = state[stack[:-1]]
    return Language(f"dyck-{kinds}-{depth}", 2 * kinds, transitions, np.arange(len(stacks)) == 0)


def tomita(number: int) -> Language:
    """Return a language of Tomita over the symbols 0 and 1:

    1: 1*. 2: (10)*. 3: no odd run of 0s anywhere after an odd run of 1s, that is the complement of
    ((0|1)*0)*1(11)*(0(0|1)*1)*0(00)*(1(0|1)*)*. 4: no 000. 5: even numbers of 0s and of 1s. 6: the number of 0s less
    that of 1s is a multiple of 3. 7: 0*1*0*1*.
    """
    transitions, accepts = _TOMITA[number]
    return Language(f"tomita-{number}", 2, np.array(transitions, np.int64), np.array(accepts))


def legal_outputs(language: Language) -> Mask:
    """Return what may come next in each state, bool `[states, symbols + 1]`.

    These are the symbols after which a word can still follow, and in the last column the end, where a word is complete.
    """
    return np.column_stack([language.transitions >= 0, language.accepting])


def uniform_choices(language: Language) -> Array:
    """Return the probabilities of the next symbol, uniform among the live ones, `[states, symbols]`."""
    live = language.transitions >= 0
    return live / live.sum(axis=1, keepdims=True)


def choices_to_words(language: Language, length: int) -> Array:
    """Return `uniform_choices`, given that `length` symbols make a word: `[length, states, symbols]`, first to last.

    Each choice is weighted with the probability that the uniform walk from there on ends as a word (counted backwards),
    so that a walk by these probabilities is the uniform walk conditioned on its end. Zeros in states out of which there
    is no word of the length; they are never entered, if there is one from the start.
    """
    choices, to_words = uniform_choices(language), language.accepting.astype(np.float64)
    backwards = []
    for _ in range(length):
        products = choices * np.append(to_words, 0)[language.transitions]  # the 0 is for -1
        to_words = products.sum(axis=1)
        backwards.append(products / np.where(to_words > 0, to_words, 1)[:, None])
        to_words /= to_words.max() or 1  # only ratios matter, and long walks would underflow
    return np.stack(backwards[::-1])


def has_near_misses(language: Language, length: int) -> bool:
    """Whether some word of exactly `length` >= 1 symbols is a word no more with one of its symbols replaced.

    It follows the states of words together with those of their copies, in which one symbol is another.
    """
    table = np.vstack([language.transitions, np.full(language.symbols, -1)])  # its last row, -1: the dead stay so
    symbol, replacement = np.nonzero(~np.eye(language.symbols, dtype=bool))
    intact, pairs = np.zeros(1, np.int64), np.empty((2, 0), np.int64)
    for _ in range(length):
        new_pairs = np.stack([table[intact][:, symbol].ravel(), table[intact][:, replacement].ravel()])
        pairs = np.unique(np.concatenate([new_pairs, table[pairs].reshape(2, -1)], axis=1), axis=1)
        pairs = pairs[:, pairs[0] >= 0]
        intact = np.setdiff1d(table[intact], [-1])
    accepts = np.append(language.accepting, False)
    return bool((accepts[pairs[0]] & ~accepts[pairs[1]]).any())
