"""Which networks the paper trains, on which data: a study is what one of its figures shows, at one vocabulary.

Two studies are ours: a causal mask alone, with residual connections, where layers normalise as `layernorm` has it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from position_bias.emergence.task import Position, for_vocabulary

if TYPE_CHECKING:  # every call of the workflow reads this module, and norms are a matter of torch
    from position_bias.norms import Placement

Encoding = Literal["none", "sin", "rope", "decay"]

MASKS: tuple[Literal["none", "causal"], ...] = ("none", "causal")
ENCODINGS: tuple[Encoding, ...] = ("none", "sin", "rope", "decay")


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


@dataclass(frozen=True)
class Study:
    """The training data's bias (positions that the answer is drawn from; none is any), the wiring and the networks."""

    bias: tuple[Position, ...]
    residual: bool
    networks: tuple[Network, ...]
    placement: "Placement" = "none"  # of LayerNorm

    @property
    def bias_name(self) -> str:
        """As tables and figures call the bias: none, a position, or ends."""
        return "ends" if len(self.bias) > 1 else "".join(self.bias) or "none"


MASKED_OR_NOT = tuple(Network(mask, encoding) for mask in MASKS for encoding in ENCODINGS[:3])


def study(name: str, variants: Sequence[str | int] = ()) -> Study:
    """A study by name. Raises KeyError for another.

    `variants` are the encodings of the studies of depth (plain, residual), and the tokens of windows and prefixes.
    """
    positional = [Network("causal", encoding) for encoding in ENCODINGS if encoding in variants]
    windows, prefixes = (
        [Network(mask, "none", int(reach)) for reach in variants if name == mask] for mask in ("window", "prefix")
    )
    networks: dict[str, Study] = {
        "plain": Study((), False, tuple(positional)),  # Figures 2 (left), 4, 7, 8a; 9, 12, 13a
        "residual": Study((), True, tuple(positional)),  # Figures 2 (right), 5; 10
        "ends": Study(("first", "last"), True, MASKED_OR_NOT),  # Figures 3; 11a
        "first": Study(("first",), True, MASKED_OR_NOT),  # Figures 6a; 11b
        "middle": Study(("middle",), True, MASKED_OR_NOT),  # Figures 6b; 11c
        "last": Study(("last",), True, MASKED_OR_NOT),  # Figures 6c; 11d
        "window": Study((), False, tuple(windows)),  # Figures 8b; 13b
        "prefix": Study((), False, tuple(prefixes)),  # Figures 8c; 13c
        "pre-norm": Study((), True, (Network("causal", "none"),), "pre"),
        "post-norm": Study((), True, (Network("causal", "none"),), "post"),
    }
    return networks[name]


def faults(config: Mapping[str, Any]) -> Iterator[str]:
    """What of `emergence` in a configuration fits its schema, and not its other values; a line each."""
    emergence = config["emergence"]
    try:
        tokens = for_vocabulary("gaussian", emergence["task"]).tokens
    except ValueError as error:
        yield f"emergence.task.{error}"
        return
    for key in ("windows", "prefixes"):
        for reach in emergence[key]:
            if reach > tokens:
                yield f"emergence.{key} = {reach} is more than a sequence's tokens; give at most {tokens}"
    for key in ("sequences_along", "sequences"):
        if emergence["testing"][key] < emergence["task"]["items"]:
            count, items = emergence["testing"][key], emergence["task"]["items"]
            yield f"emergence.testing.{key} = {count} leaves positions without a test; give {items} or more"
    if "none" not in emergence["encodings"]:
        yield "emergence.encodings lacks 'none', which figures 7 and 8 show; add it"
    sinks = emergence["sinks"]
    if sinks["threshold"] not in sinks["thresholds"]:
        known = ", ".join(map(str, sinks["thresholds"]))
        yield f"emergence.sinks.threshold = {sinks['threshold']} is not one of emergence.sinks.thresholds: {known}"
