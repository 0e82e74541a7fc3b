"""The networks of `retrieval`: those of `emergence` with a causal mask, each with an encoding or a slope of its own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, cast

import torch

from position_bias.emergence import studies, training
from position_bias.emergence.studies import Encoding, Network, Study
from position_bias.emergence.task import Task
from position_bias.emergence.training import Setting
from position_bias.running.checkpoint import Place
from position_bias.small_networks.ensemble import Parameters

NAME = re.compile(r"(none|sin|rope)|decay-([0-9]*\.?[0-9]+)")


@dataclass(frozen=True)
class Named:
    """A network by its name in the configuration: an encoding, or decay-SLOPE, the decay mask with this slope."""

    name: str
    encoding: Encoding
    slope: float  # 0 without a decay mask

    @property
    def network(self) -> Network:
        """What `emergence` calls it."""
        return Network("causal", self.encoding)


@dataclass(frozen=True)
class Member:
    """One network trained from one seed."""

    named: Named
    seed: int

    def labels(self) -> dict[str, Any]:
        """Return what the columns of tables say of it."""
        return {
            "network": self.named.name,
            "encoding": self.named.encoding,
            "slope": self.named.slope,
            "seed": self.seed,
        }


def named(name: str) -> Named:
    """A network by its name. Raises ValueError where the name is none."""
    found = NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is not a network; write none, sin, rope or decay-SLOPE, as in decay-0.1")
    if found[2]:
        return Named(name, "decay", float(found[2]))
    return Named(name, cast(Encoding, found[1]), 0.0)


def study(name: str, of: Sequence[Named]) -> Study:
    """The study of `emergence` with this name, of these networks."""
    return replace(studies.STUDIES[name], networks=tuple(one.network for one in of))


def train(
    task: Task, name: str, of: Sequence[str], depth: int, seeds: Sequence[int], setting: Setting, place: Place
) -> tuple[list[Member], Parameters]:
    """Train the networks with the names `of` as `emergence` trains those of the study `name`, each from every seed.

    A stack has one slope of the decay mask, so that each slope is trained apart. Returns the members that stayed finite
    and their weights `[members, ...]`. Raises InputError where none of a slope did.
    """
    members: list[Member] = []
    weights: list[Parameters] = []
    for slope, group in groupby(sorted(map(named, of), key=lambda one: one.slope), key=lambda one: one.slope):
        alike = list(group)
        by_encoding = {one.encoding: one for one in alike}
        outcome = training.train(
            task, study(name, alike), depth, seeds, replace(setting, decay=slope), place.apart(f"slope{slope:g}")
        )
        members += [Member(by_encoding[one.network.encoding], one.seed) for one in outcome.members]
        weights.append(outcome.weights)
    return members, {key: torch.cat([one[key] for one in weights]) for key in weights[0]}


def of_labels(labels: Sequence[Mapping[str, Any]]) -> list[Member]:
    """Return the members that have these `labels`."""
    return [Member(named(one["network"]), one["seed"]) for one in labels]
