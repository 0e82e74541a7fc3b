"""What rules make from files is said in rows: which function of the library makes it, from which files and values.

Trainings, measurements and jobs that touch the outside world have rules and scripts of their own. Others share
scripts/draw.py and scripts/table.py, which call the function that the row names (`calls`). Every call of the workflow
imports this module, so it imports nothing that takes long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RULE_PARAMS = ("makes", "readable", "printed", "run_scale", "code")  # params that the function of a row does not take


@dataclass(frozen=True)
class Row:
    """A row says what one rule makes. Paths and values may be functions of the wildcards, as in any rule."""

    says: str  # what it makes, as `snakemake --list` shows it
    makes: str  # MODULE:FUNCTION, seen from position_bias
    files: Mapping[str, Any] = field(default_factory=dict)  # parameter -> path or paths
    values: Mapping[str, Any] = field(default_factory=dict)  # parameter -> value
    outputs: Mapping[str, Any] = field(default_factory=dict)  # further ones, by what the function calls them
    readable: str = ""  # MODULE:FUNCTION that makes a table for people of what it made, where Markdown shows another
    caption: str | None = None  # report/CAPTION.rst, where it is not WING/draw_NAME of a figure, WING/NAME of a table
    name: str | None = None  # of the rule, where it is not that of the item
    environment: str | None = None  # envs/ENVIRONMENT.yaml, where it is not that of all figures or tables
    group: str | None = None  # of jobs that a cluster gets in one submission, where it is not that of the wing
    log: str | None = None  # where it is not the path of the first output
    wildcards: Mapping[str, str] = field(default_factory=dict)  # constraints of its own
    needs: Mapping[str, Any] = field(default_factory=dict)  # resources that the profiles do not say


def rule_name(item: str, row: Row, verb: str = "") -> str:
    """Return the name of the rule that makes an item WING/NAME: WING_NAME, with the `verb` between them."""
    return row.name or item.replace("/", f"_{verb}")


def module_name(function: str) -> str:
    """The module of MODULE:FUNCTION, whose name is as it is seen from position_bias, or is one of position_card."""
    module = function.partition(":")[0]
    return module if module.startswith("position_card.") else f"position_bias.{module}"
