"""Where words stand in a context that recall is measured in, and where the passages begin that are asked for.

A context is WORDS different words, or fewer. In a longer one they stand in pieces that lie apart in prose.
"""

import numpy as np
from numpy.typing import NDArray

WORDS = 128  # of a context that is as long or longer
PIECE = 8  # words that stand side by side in a longer one
PIECES = WORDS // PIECE


def word_positions(n: int) -> NDArray[np.int64]:
    """Return where the words of a context of n tokens stand: everywhere, or in PIECES with as much prose around each.

    Stretches of prose differ by a token at most, and stand before the first piece and behind the last one, too.
    """
    word = np.arange(min(n, WORDS))
    return word + (word // PIECE + 1) * (n - len(word)) // (PIECES + 1)


def places(n: int, cue: int) -> NDArray[np.int64]:
    """Return the positions in a context of n tokens at which a passage begins, rising, int64 [P], counted from 0.

    A passage is `cue` words and the word that follows them. Every one that the context has is there; where pieces of
    words stand apart in a longer text, a passage lies within one piece.
    """
    positions = word_positions(n)
    word = np.arange(len(positions) - cue)
    whole = (n <= WORDS) | (word // PIECE == (word + cue) // PIECE)
    return positions[word[whole]]
