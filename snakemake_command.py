"""The project's `snakemake` command: Snakemake's own, once `--resources gpu=2 all` means what it says.

Snakemake's `--resources` takes every word up to the next option, a target behind it included, and then dies on
"all is not NAME=INT". Words without `=` behind `--resources` can only be targets: they move to the front, where
Snakemake takes them as such. Every other call passes through untouched.
"""

import sys
from collections.abc import Sequence


def targets_first(arguments: Sequence[str]) -> list[str]:
    """`arguments` with the targets that stand among the words of `--resources` (or `--res`) moved to the front."""
    targets: list[str] = []
    others: list[str] = []
    among_resources = False
    for word in arguments:
        if word.startswith("-"):
            among_resources = word in ("--resources", "--res")
        if among_resources and not word.startswith("-") and "=" not in word:
            targets.append(word)
        else:
            others.append(word)
    return targets + others


def main() -> None:
    """Run Snakemake with the arguments of this process."""
    from snakemake.cli import main as snakemake

    sys.argv[0] = "snakemake"
    snakemake(targets_first(sys.argv[1:]))
