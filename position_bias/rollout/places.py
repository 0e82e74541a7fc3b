"""What is said of recall by place: `structural` compares it with influence, and `card` shows it of one model.

From the probability of a word is taken away what the word would be given anyway, after a cue that its context does not
have.
"""

from position_bias.attention import Array
from position_bias.rollout.comparison import ratio
from position_bias.rollout.recall import Recall

ABLE = 3  # times chance: the accuracy from which places are compared


def above_prior(found: Recall) -> Array:
    """How much more probable the right word is than after the cue of another context, [C, P]."""
    return found.probability - found.prior


def is_able(accuracy: float, words: int) -> bool:
    """Whether a decoder of this mean accuracy among so many words recalls enough for anything to be said of places."""
    return accuracy >= ABLE / words


def ends_over_middle(values: Array) -> dict[str, Array]:
    """The first and the last eighth of the places over their middle half, [R, P] -> [R]; NaN where that has nothing."""
    parts = by_part(values)
    return {f"{end} eighth / middle": ratio(parts[end], parts["middle"]) for end in ("first", "last")}


def by_part(values: Array) -> dict[str, Array]:
    """The means [C] of values [C, P] over the first eighth of the places, their middle half, and the last eighth."""
    count = values.shape[1]
    eighth, quarter = max(1, count // 8), count // 4
    parts = {"first": slice(None, eighth), "middle": slice(quarter, count - quarter), "last": slice(-eighth, None)}
    return {name: values[:, part].mean(-1) for name, part in parts.items()}
