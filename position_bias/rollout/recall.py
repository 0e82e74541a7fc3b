"""What a decoder recalls of contexts by place: `language_models.recall` measures it."""

from typing import NamedTuple

from position_bias.attention import Array


class Recall(NamedTuple):
    """What a decoder recalls of C contexts, of the passages that begin at P places."""

    probability: Array  # [C, P] of the word that followed the passage, among all tokens
    correct: Array  # [C, P]: 1 where this word is the most probable of all words, else 0
    prior: Array  # [C, P] its probability after a cue of words that the context does not have
