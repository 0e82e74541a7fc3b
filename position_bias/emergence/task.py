"""This module describes the retrieval task of Section 5, Appendices J and L: its numbers, positions, chance levels."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Literal

from position_bias.workflow.section import Bounds, Count, section

Position = Literal["first", "middle", "last"]
Convention = Literal["paper", "released"]
Omega = Literal["training", "fresh", "none"]  # the common direction of the classes in a test

POSITIONS: tuple[Position, ...] = ("first", "middle", "last")

PAIRS = tuple(combinations(POSITIONS, 2))


@section
class Numbers:
    """Sequences x1 y1 ... xn yn xq of items, their labels, and a query that is of the class of some items.

    A class stands `burstiness` times in a sequence. Raises ValueError where the numbers do not fit each other.
    """

    items: Annotated[int, Bounds(4, 1000), "items of a sequence, without the query"] = 8  # n
    burstiness: Annotated[Count, "items of each class in a sequence; it divides items"] = 4  # B
    classes: Annotated[Count, "classes of the training data"] = 2048  # K
    labels: Annotated[Count, "labels of the classes"] = 32  # L
    width: Annotated[int, Bounds(2, 65536, multiple=2), "coordinates of a token, in pairs for rotations"] = 64  # d
    noise: Annotated[float, Bounds(0, 1000), "epsilon, spread within a class over that between classes"] = 0.75
    anisotropy: Annotated[float, Bounds(0, 1000), "share of the common direction of fixed items"] = 0.75
    scale: Annotated[Convention, "1/width is a coordinate's variance, or released: its standard deviation"] = "paper"
    middle: Annotated[Convention, "the middle item is n/2, or the one after it as in the authors' code"] = "paper"

    def __post_init__(self) -> None:
        if self.items % self.burstiness:
            raise ValueError(f"burstiness = {self.burstiness} does not divide items = {self.items}; give a divisor")
        if min(self.labels, self.classes_shown) < 2:
            raise ValueError(
                f"labels = {self.labels}, burstiness = {self.burstiness}: without two labels and two classes in a "
                "sequence every answer is right; give more labels or a smaller burstiness"
            )
        if self.classes < max(self.labels, self.classes_shown):
            raise ValueError(
                f"classes = {self.classes}: every label has a class, and a sequence {self.classes_shown}; "
                f"give at least {max(self.labels, self.classes_shown)}"
            )

    @property
    def tokens(self) -> int:
        """Count the items, the labels and the query."""
        return 2 * self.items + 1

    @property
    def classes_shown(self) -> int:
        """Count the different classes in one sequence."""
        return self.items // self.burstiness

    @property
    def spread(self) -> float:
        """Standard deviation of a coordinate of class means, noise and labels (App. J)."""
        return float(self.width**-0.5 if self.scale == "paper" else 1 / self.width)

    def position(self, name: Position) -> int:
        """Return the item that a name means, counted from 1."""
        middle = self.items // 2 + (self.middle == "released")
        return {"first": 1, "middle": middle, "last": self.items}[name]

    @property
    def chance(self) -> float:
        """Return the accuracy of a guess among all labels."""
        return 1 / self.labels

    @property
    def copying_chance(self) -> float:
        """Return the accuracy of naming the label of a random item in the context."""
        share = self.burstiness / self.items
        return share + (1 - share) / self.labels

    @property
    def largest_gap(self) -> float:
        """Return the probability that two items bear different labels, which no accuracy gap can exceed on average."""
        return (1 - (self.burstiness - 1) / (self.items - 1)) * (1 - 1 / self.labels)


@dataclass(frozen=True)
class RetrievalTask(Numbers):
    """The task with a vocabulary.

    Items are vectors around their class's mean (`gaussian`), or one fixed vector a class, all of which share a
    direction (`fixed`).
    """

    vocabulary: Literal["gaussian", "fixed"] = "gaussian"

    @property
    def omegas(self) -> tuple[Omega, ...]:
        """Say which common directions novel classes are tested with; the paper does not; the authors' code uses fresh.

        `training`: the direction of the training classes. `fresh`: another one for each sequence. Without a common
        direction, `none`.
        """
        return ("training", "fresh") if self.vocabulary == "fixed" and self.anisotropy > 0 else ("none",)


def for_vocabulary(name: str, numbers: Mapping[str, Any]) -> RetrievalTask:
    """Return the task with vocabulary `gaussian`, `fixed`, or `isotropic`, which is fixed without a common direction.

    `numbers` are the fields of `Numbers`; raises ValueError where they do not fit each other.
    """
    if name == "isotropic":
        return RetrievalTask(**{**numbers, "vocabulary": "fixed", "anisotropy": 0.0})
    return RetrievalTask(**{**numbers, "vocabulary": name})
