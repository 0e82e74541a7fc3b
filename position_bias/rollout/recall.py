"""What a decoder recalls of contexts by place. `language_models.recall` measures it, and `retrieval` compares it."""

from typing import NamedTuple

from position_bias.attention import Array


class Recall(NamedTuple):
    """What a decoder recalls of C contexts, of the passages that begin at P places."""

    probability: Array  # [C, P] of the word that followed the passage, among all tokens
    correct: Array  # [C, P]: 1 where this word is the most probable of all words, else 0
    prior: Array  # [C, P] its probability after a cue of words that the context does not have


def by_part(values: Array) -> dict[str, Array]:
    """The means [C] of values [C, P] over the first eighth of the places, their middle half, and the last eighth."""
    count = values.shape[1]
    eighth, quarter = max(1, count // 8), count // 4
    parts = {"first": slice(None, eighth), "middle": slice(quarter, count - quarter), "last": slice(-eighth, None)}
    return {name: values[:, part].mean(-1) for name, part in parts.items()}
