"""This module describes the retrieval task of Section 5, Appendices J and L: its numbers, positions, chance levels."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

Position = Literal["first", "middle", "last"]
Omega = Literal["training", "fresh", "none"]  # the common direction of the classes in a test

POSITIONS: tuple[Position, ...] = ("first", "middle", "last")

VOCABULARIES = ("gaussian", "fixed")
CONVENTIONS = ("paper", "released")
PAIRS = tuple(combinations(POSITIONS, 2))


@dataclass(frozen=True)
class Task:
    """Sequences x1 y1 ... xn yn xq of items, their labels, and a query that is of the class of some items.

    A class stands `burstiness` times in a sequence. Items are vectors around their class's mean (vocabulary
    `gaussian`) or one fixed vector a class, all of which share a direction (`fixed`). Raises ValueError where the
    numbers do not fit each other.
    """

    vocabulary: Literal["gaussian", "fixed"] = "gaussian"
    items: int = 8  # n
    burstiness: int = 4  # B
    classes: int = 2048  # K
    labels: int = 32  # L
    width: int = 64  # d
    noise: float = 0.75  # epsilon, within a class of the gaussian vocabulary
    anisotropy: float = 0.75  # lambda, share of the common direction in the fixed vocabulary
    scale: Literal["paper", "released"] = "paper"  # coordinates of variance 1/d, or of standard deviation 1/d
    middle: Literal["paper", "released"] = "paper"  # the middle item is n/2, or the one after it

    def __post_init__(self) -> None:
        for name in ("items", "burstiness", "classes", "labels", "width"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: there must be at least 1")
        for name in ("noise", "anisotropy"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} = {getattr(self, name)}: a share of the spread is finite and at least 0")
        for name, known in (("vocabulary", VOCABULARIES), ("scale", CONVENTIONS), ("middle", CONVENTIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} = {getattr(self, name)!r} is not known; use one of {', '.join(known)}")
        if self.items < 4:
            raise ValueError(f"items = {self.items}: first, middle and last are three items from 4 on")
        if self.items % self.burstiness:
            raise ValueError(f"burstiness = {self.burstiness} does not divide items = {self.items}; give a divisor")
        if min(self.labels, self.classes_shown) < 2:
            raise ValueError(
                f"labels = {self.labels}, burstiness = {self.burstiness}: without two labels and two classes in a "
                "sequence every answer is right; give more labels or a smaller burstiness"
            )
        if self.classes < max(self.labels, self.items // self.burstiness):
            raise ValueError(
                f"classes = {self.classes}: every label has a class, and a sequence {self.items // self.burstiness}; "
                f"give at least {max(self.labels, self.items // self.burstiness)}"
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
    def omegas(self) -> tuple[Omega, ...]:
        """Say which common directions novel classes are tested with; the paper does not; the authors' code uses fresh.

        `training`: the direction of the training classes. `fresh`: another one for each sequence. Without a common
        direction, `none`.
        """
        return ("training", "fresh") if self.vocabulary == "fixed" and self.anisotropy > 0 else ("none",)

    @property
    def chance(self) -> float:
        """Return the accuracy of a guess among all labels."""
        return 1 / self.labels

    @property
    def copying_chance(self) -> float:
        """Return the accuracy of naming the label of a random item in the context."""
        same = self.burstiness / self.items
        return same + (1 - same) / self.labels

    @property
    def largest_gap(self) -> float:
        """Return the probability that two items bear different labels, which no accuracy gap can exceed on average."""
        return (1 - (self.burstiness - 1) / (self.items - 1)) * (1 - 1 / self.labels)


def for_vocabulary(name: str, numbers: Mapping[str, Any]) -> Task:
    """Return the task with vocabulary gaussian, fixed or isotropic, the fixed one without a common direction."""
    if name == "isotropic":
        return Task(**{**numbers, "vocabulary": "fixed", "anisotropy": 0.0})
    return Task(**{**numbers, "vocabulary": name})
