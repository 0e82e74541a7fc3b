"""Which networks of `emergence` train together: a run is a study at one vocabulary and depth, every seed of it.

It imports no torch, since every call of the workflow reads it.
"""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from position_bias.emergence.studies import network
from position_bias.running.runtime import InputError

Emergence = Mapping[str, Any]  # the section of the configuration

SHALLOW = 2  # layers of every study but those of depth


class Run(NamedTuple):
    """A run, whose files are below `results/emergence/{run}/`."""

    vocabulary: str
    study: str
    depth: int

    def __str__(self) -> str:
        return f"{self.vocabulary}/{self.study}/depth{self.depth}"

    @property
    def shown(self) -> tuple[str, str]:
        """Vocabulary and study, by which figures choose."""
        return self.vocabulary, self.study

    @property
    def shallow(self) -> bool:
        """Whether it has the layers that every study is trained with."""
        return self.depth == SHALLOW


def runs(emergence: Emergence, *shown: tuple[str, str]) -> list[Run]:
    """The runs of studies, each a pair of vocabulary and study, at every depth; none where no network is trained."""
    return [
        Run(vocabulary, study, depth)
        for vocabulary, study in shown
        if emergence["networks"][study]
        for depth in emergence["depths"][vocabulary].get(study, [SHALLOW])
    ]


def with_mask_alone(emergence: Emergence, shown: tuple[str, str]) -> list[Run]:
    """The shallow run of a study, where it trains a network without positional encoding; else none."""
    if all(network(name, emergence["decay"]).encoding != "none" for name in emergence["networks"][shown[1]]):
        return []
    return [run for run in runs(emergence, shown) if run.shallow]


def seeds(emergence: Emergence, study: str, depth: int) -> list[int]:
    """The seeds that a study is trained from at a depth."""
    of, kind = emergence["seeds"], "ends" if study == "ends" else "shallow" if depth <= SHALLOW else "deep"
    return list(range(of["first"], of["first"] + of[kind]))


def training(emergence: Emergence, study: str) -> dict[str, Any]:
    """How a study trains: the numbers that all share, and its iterations."""
    kind = {"ends": "ends", "first": "position", "middle": "position", "last": "position"}.get(study, "unbiased")
    return emergence["training"] | {"iterations": emergence["training"]["iterations"][kind]}


def at_both_scales(emergence: Emergence, kept: Iterable[str]) -> list[tuple[str, str]]:
    """Vocabulary and study of the runs that evidence/ has the paper's training of, by its tables runs.csv.

    Raises InputError where one of these is no such table.
    """
    found: dict[tuple[str, str], None] = {}
    for run, networks, scale in (row for path in kept for row in _kept_runs(path)):
        alike = networks & set(emergence["networks"].get(run.study, [])) and run.vocabulary in emergence["depths"]
        if scale == "paper" and alike and run in runs(emergence, run.shown):
            found[run.shown] = None
    return list(found)


def _kept_runs(path: str | Path) -> list[tuple[Run, set[str], str]]:
    """Every run of a table runs.csv, with its networks and its scale."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as table:
            header, *lines = csv.reader(table)
        columns = [header.index(name) for name in ("vocabulary", "study", "depth", "networks", "scale")]
        rows = ([line[column] for column in columns] for line in lines if line)
        return [(Run(of, study, int(depth)), set(names.split()), scale) for of, study, depth, names, scale in rows]
    except (OSError, ValueError, IndexError, csv.Error) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is not a table of runs ({reason}); restore it from git, or remove it") from error
