"""Which networks the paper trains, on which data: a study is what one of its figures shows, at one vocabulary.

Two studies are our addition: a causal mask alone, with residual connections, where layers normalise as `layernorm` has
it. The configuration says which networks of a study are trained.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from position_bias.emergence.task import Position

if TYPE_CHECKING:  # every call of the workflow reads this module, and norms are a matter of torch
    from position_bias.small_networks.norms import Placement

Encoding = Literal["none", "sin", "rope", "decay"]


@dataclass(frozen=True)
class Network:
    """What distinguishes networks of one depth: a mask with its reach, and a positional encoding."""

    mask: Literal["none", "causal", "window", "prefix"]
    encoding: Encoding
    reach: int = 0  # tokens of a window or prefix

    @property
    def mask_name(self) -> str:
        """As tables and figures call the mask: causal, window5, prefix2."""
        return f"{self.mask}{self.reach}" if self.reach else self.mask


NAME = re.compile(r"(?:(none|causal)|(window|prefix)([1-9][0-9]*))/(none|sin|rope|decay)")


def network(name: str) -> Network:
    """A network by its name in the configuration, MASK/ENCODING: causal/rope, window5/none.

    Raises ValueError where the name is none.
    """
    named = NAME.fullmatch(name)
    if named is None:
        raise ValueError(f"{name!r} is not a network; write MASK/ENCODING, as in causal/rope or window5/none")
    mask, with_reach, reach, encoding = cast(tuple[Any, Any, str | None, Any], named.groups())
    return Network(mask or with_reach, encoding, int(reach or 0))


@dataclass(frozen=True)
class Study:
    """The training data's bias (positions that the answer is drawn from; none is any), the wiring and the networks."""

    bias: tuple[Position, ...]
    residual: bool
    networks: tuple[Network, ...] = ()
    placement: "Placement" = "none"  # of LayerNorm
    masks: tuple[str, ...] = ("none", "causal", "window", "prefix")  # that its networks may have

    @property
    def bias_name(self) -> str:
        """As tables and figures call the bias: none, a position, or ends."""
        return "ends" if len(self.bias) > 1 else "".join(self.bias) or "none"


STUDIES = {
    "plain": Study((), False, masks=("causal",)),  # Figures 2 (left), 4, 7, 8a; 9, 12, 13a
    "residual": Study((), True, masks=("causal",)),  # Figures 2 (right), 5; 10
    "ends": Study(("first", "last"), True, masks=("none", "causal")),  # Figures 3; 11a
    "first": Study(("first",), True, masks=("none", "causal")),  # Figures 6a; 11b
    "middle": Study(("middle",), True, masks=("none", "causal")),  # Figures 6b; 11c
    "last": Study(("last",), True, masks=("none", "causal")),  # Figures 6c; 11d
    "window": Study((), False, masks=("window",)),  # Figures 8b; 13b
    "prefix": Study((), False, masks=("prefix",)),  # Figures 8c; 13c
    "pre-norm": Study((), True, placement="pre", masks=("causal",)),
    "post-norm": Study((), True, placement="post", masks=("causal",)),
}


def study(name: str, networks: Sequence[str]) -> Study:
    """A study with the `networks` of these names. Raises KeyError for another study, ValueError for another name."""
    return replace(STUDIES[name], networks=tuple(map(network, networks)))
