"""The `snakemake` command of this project: Snakemake's own, which understands `--resources gpu=2 all`.

Snakemake's `--resources`, `--config` and the like take every word up to the next option. A target behind them is taken,
too, and Snakemake ends with "all is not NAME=INT". Words without `=` behind these options can only be targets, so this
command moves them to the front. It leaves every other call as it is.
"""

import sys
from collections.abc import Sequence

PAIRS = (  # options that take words of the form NAME=VALUE
    *("--config", "-C"),
    *("--resources", "--res"),
    *("--default-resources", "--default-res"),
    *("--set-resources", "--set-threads", "--set-resource-scopes"),
)


def targets_first(arguments: Sequence[str]) -> list[str]:
    """Return `arguments` with the targets from among the words of options of `PAIRS` at the front."""
    targets: list[str] = []
    rest: list[str] = []
    option = ""
    for word in arguments:
        option = word if word.startswith("-") else option
        (targets if option in PAIRS and word != option and "=" not in word else rest).append(word)
    return targets + rest


def main() -> None:
    """Run Snakemake with the arguments of this process."""
    from snakemake import cli

    sys.argv[0] = "snakemake"
    cli.main(targets_first(sys.argv[1:]))


if __name__ == "__main__":
    main()
