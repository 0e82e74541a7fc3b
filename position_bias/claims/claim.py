"""A claim of a paper: which rows of which table of checks speak of it, and what to look at."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, or ours beside it."""

    name: str  # unique, as it may stand in a file name
    paper: str
    item: str  # figure, table, theorem or section
    statement: str
    table: str  # of checks, below results/tables/: structural/checks
    rows: Mapping[str, str]  # column -> pattern that matches the whole cell of every row that speaks of the claim
    shown: str  # the figure or table that shows it, a target of the workflow
    published: str = ""  # id of what the paper prints for it, in published/values.csv
    ranges: bool = False  # low and high are a range over settings or layers, and no interval: it is not widened
