"""Which networks of `emergence` train on which data, and which of them train together.

A study is what one figure shows, at one vocabulary; a run is a study at one vocabulary and depth, every seed of it. Two
studies are our addition: a causal mask alone, with residual connections, where layers normalise as in `layernorm`. The
configuration says which networks of a study are trained. This module imports no torch, since every call of the workflow
reads it.
"""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from position_bias.emergence.task import Convention, Position
from position_bias.small_networks.settings import Placement
from position_card.core.runtime import InputError

Emergence = Mapping[str, Any]  # the section of the configuration
Encoding = Literal["none", "sin", "rope", "decay"]

SHALLOW = 2  # layers of every study but those of depth


@dataclass(frozen=True)
class Network:
    """What distinguishes networks of one depth: a mask with its reach, and a positional encoding with its slope."""

    mask: Literal["none", "causal", "window", "prefix"]
    encoding: Encoding
    reach: int = 0  # tokens of a window or prefix
    slope: float = 0.0  # m of the decay mask, in logits a token

    @property
    def mask_name(self) -> str:
        """What tables and figures call the mask: causal, window5, prefix2."""
        return f"{self.mask}{self.reach}" if self.reach else self.mask


NAME = re.compile(r"(?:(none|causal)|(window|prefix)([1-9][0-9]*))/(none|sin|rope|decay)")


def network(name: str, decay: float) -> Network:
    """A network by its name, MASK/ENCODING: causal/rope, window5/none, causal/decay.

    `decay` is the slope of a decay mask. Raises ValueError where the name is none.
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is not a network; write MASK/ENCODING, as in causal/rope or window5/none")
    mask, with_reach, reach, encoding = cast(tuple[Any, Any, str | None, Any], match.groups())
    return Network(mask or with_reach, encoding, int(reach or 0), decay if encoding == "decay" else 0.0)


def rounding_decides(mask: str, tau: float) -> bool:
    """Whether a token that is read uniformly, by a mask such as window5, has a weight that is `tau` but for rounding.

    Whether it counts as a sink, and how much more than uniform attention another network has, says nothing then.
    """
    size = mask.removeprefix("window")
    return size != mask and math.isclose(int(size) * tau, 1)


@dataclass(frozen=True)
class Study:
    """The training data's bias (positions that the answer is drawn from; none is any), the wiring and the networks."""

    bias: tuple[Position, ...]
    residual: bool
    networks: tuple[Network, ...] = ()
    placement: Placement = "none"  # of LayerNorm
    masks: tuple[str, ...] = ("none", "causal", "window", "prefix")  # that its networks may have
    says: str = ""  # what its networks are, for whoever configures them


STUDIES = {
    "plain": Study((), False, masks=("causal",), says="causal, without residual connections"),
    "residual": Study((), True, masks=("causal",), says="causal, with residual connections"),
    "ends": Study(("first", "last"), True, masks=("none", "causal"), says="trained on answers at both ends"),
    "first": Study(("first",), True, masks=("none", "causal"), says="trained on answers at the first item"),
    "middle": Study(("middle",), True, masks=("none", "causal"), says="trained on answers at the middle item"),
    "last": Study(("last",), True, masks=("none", "causal"), says="trained on answers at the last item"),
    "window": Study((), False, masks=("window",), says="with sliding windows, without residual connections"),
    "prefix": Study((), False, masks=("prefix",), says="with prefixes, without residual connections"),
    "residual-window": Study((), True, masks=("window",), says="with sliding windows and residual connections"),
    "residual-prefix": Study((), True, masks=("prefix",), says="with prefixes and residual connections"),
    "pre-norm": Study((), True, placement="pre", masks=("causal",), says="with LayerNorm before each layer"),
    "post-norm": Study((), True, placement="post", masks=("causal",), says="with LayerNorm after each layer"),
}

# Which vocabulary and study a figure shows, under the name of its file
FigureStudies = dict[str, tuple[str, str]]
BY_DEPTH: FigureStudies = {
    "fig4": ("gaussian", "plain"),
    "fig5": ("gaussian", "residual"),
    "fig9": ("fixed", "plain"),
    "fig10": ("fixed", "residual"),
}
BY_BIAS: FigureStudies = {
    "fig3": ("gaussian", "ends"),
    "fig6a": ("gaussian", "first"),
    "fig6b": ("gaussian", "middle"),
    "fig6c": ("gaussian", "last"),
    "fig11a": ("fixed", "ends"),
    "fig11b": ("fixed", "first"),
    "fig11c": ("fixed", "middle"),
    "fig11d": ("fixed", "last"),
}
PRINTED_DEPTHS = {"plain": (2, 4, 6), "residual": (2, 4, 6, 8, 10)}  # layers that the paper shows (K.1, K.2)
OF_MAPS: FigureStudies = {"fig7": ("gaussian", "plain"), "fig12": ("fixed", "plain")}
OF_SINKS: FigureStudies = {
    "fig8a": ("gaussian", "plain"),
    "fig8b": ("gaussian", "window"),
    "fig8c": ("gaussian", "prefix"),
    "fig13a": ("fixed", "plain"),
    "fig13b": ("fixed", "window"),
    "fig13c": ("fixed", "prefix"),
}
OF_RESIDUAL_SINKS: FigureStudies = {  # our addition: the paper does not say which networks Figure 8 shows
    "fig8a": ("gaussian", "residual"),
    "fig8b": ("gaussian", "residual-window"),
    "fig8c": ("gaussian", "residual-prefix"),
}
ALL_SINKS = OF_SINKS | {f"{figure}_residual": key for figure, key in OF_RESIDUAL_SINKS.items()}
# What tables are of: all that a figure shows, and the fixed vocabulary without anisotropy.
IN_TABLES = tuple(dict.fromkeys([*BY_DEPTH.values(), *BY_BIAS.values(), *ALL_SINKS.values(), ("isotropic", "plain")]))


def figure_names(*figures: FigureStudies) -> dict[tuple[str, str], str]:
    """Return what the paper calls each of the figures, as in Figure 4, by the vocabulary and study that it shows."""
    return {key: name.replace("fig", "Figure ") for of_kind in figures for name, key in of_kind.items()}


def study(name: str, networks: Sequence[str], decay: float) -> Study:
    """A study with the `networks` of these names; `decay` is the slope of a decay mask.

    Raises KeyError for another study, ValueError for another name.
    """
    return replace(STUDIES[name], networks=tuple(network(network_name, decay) for network_name in networks))


# Runs


class Run(NamedTuple):
    """A run, whose files are below `results/emergence/{run}/`."""

    vocabulary: str
    study: str
    depth: int

    def __str__(self) -> str:
        return f"{self.vocabulary}/{self.study}/depth{self.depth}"

    @property
    def key(self) -> tuple[str, str]:
        """Vocabulary and study, by which figures choose."""
        return self.vocabulary, self.study

    @property
    def shallow(self) -> bool:
        """Whether it has the layers that every study is trained with."""
        return self.depth == SHALLOW


def runs(emergence: Emergence, *studies: tuple[str, str]) -> list[Run]:
    """The runs of studies, each a pair of vocabulary and study, at every depth; none where no network is trained."""
    return [
        Run(vocabulary, study, depth)
        for vocabulary, study in studies
        if emergence["networks"][study]
        for depth in emergence["depths"][vocabulary].get(study, [SHALLOW])
    ]


def with_mask_alone(emergence: Emergence, key: tuple[str, str]) -> list[Run]:
    """Return the shallow run of a study, in a list, where it trains a network without positional encoding; else none.

    `key` is a vocabulary and a study.
    """
    if all(network(name, emergence["decay"]).encoding != "none" for name in emergence["networks"][key[1]]):
        return []
    return [run for run in runs(emergence, key) if run.shallow]


def seeds(emergence: Emergence, study: str, depth: int) -> list[int]:
    """Return the seeds that a study is trained from at a depth, as the configuration says."""
    numbers, kind = emergence["seeds"], "ends" if study == "ends" else "shallow" if depth <= SHALLOW else "deep"
    return list(range(numbers["first"], numbers["first"] + numbers[kind]))


def training(emergence: Emergence, study: str) -> dict[str, Any]:
    """Return how a study trains: the section emergence.training, with its iterations for the bias of the study."""
    kind = {"ends": "ends", "first": "position", "middle": "position", "last": "position"}.get(study, "unbiased")
    return emergence["training"] | {"iterations": emergence["training"]["iterations"][kind]}


def kept_groups(tables: Iterable[str], *studies: tuple[str, str], settings: Convention = "paper") -> list[str]:
    """Return the folders in evidence/ that have networks of these studies, by their tables runs.csv.

    A study is a vocabulary and its name. `settings` says whether tokens are drawn as the paper prints it, or as in the
    released code. Raises InputError where one of the tables is no such table.
    """
    groups: dict[str, None] = {}
    for path in tables:
        for run, coordinates in _kept_runs(path):
            if run.key in studies and coordinates == settings:
                groups[str(Path(path).parent)] = None
    return list(groups)


def _kept_runs(path: str | Path) -> list[tuple[Run, str]]:
    """Every run of a table runs.csv, and how the coordinates of its tokens are drawn."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as table:
            header, *lines = csv.reader(table)
        columns = [header.index(name) for name in ("vocabulary", "study", "depth", "coordinates")]
        rows = ([line[column] for column in columns] for line in lines if line)
        return [(Run(vocabulary, study, int(depth)), coordinates) for vocabulary, study, depth, coordinates in rows]
    except (OSError, ValueError, IndexError, csv.Error) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is not a table of runs ({reason}); restore it from git, or remove it") from error
