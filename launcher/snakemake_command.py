"""The `snakemake` command of this project: Snakemake's own, which understands `--resources gpu=2 all`.

Snakemake's `--resources`, `--config` and the like take every word up to the next option. A target behind them is taken,
too, and Snakemake ends with "all is not NAME=INT". Words without `=` behind these options can only be targets, so this
command moves them to the front. It leaves every other call as it is.

Two defaults differ. The logger is the one beside this file, which writes one line for each job. And jobs start without
a limit of their number per second: Snakemake's limiter sets a timer after every job and another whenever a timer ends,
so that after a hundred jobs it uses a full core. Both options can be typed, or stand in a profile.
"""

import sys
from collections.abc import Sequence
from typing import Any

from places import require_places
from plain_configuration import require_plain

PAIRS = (  # options that take words of the form NAME=VALUE
    *("--config", "-C"),
    *("--resources", "--res"),
    *("--default-resources", "--default-res"),
    *("--set-resources", "--set-threads", "--set-resource-scopes"),
)
DEFAULTS = {"logger": ["position-bias"], "max_jobs_per_timespan": None}


def targets_first(arguments: Sequence[str]) -> list[str]:
    """Return `arguments` with the targets from among the words of options of `PAIRS` at the front."""
    targets: list[str] = []
    others: list[str] = []
    option = ""
    for word in arguments:
        option = word if word.startswith("-") else option
        (targets if option in PAIRS and word != option and "=" not in word else others).append(word)
    return targets + others


def main() -> None:
    """Run Snakemake with the arguments of this process."""
    try:
        require_places(sys.argv[1:])
    except ValueError as error:
        sys.exit(f"error: {error}")
    from snakemake import cli
    from snakemake.settings import types

    load = types.load_configfile

    def load_plain(path: Any) -> Any:
        try:
            require_plain(path)
        except ValueError as error:
            sys.exit(f"error: {error}")
        return load(path)

    types.load_configfile = load_plain  # a pipe or a file that grows as it is read would hold Snakemake up for ever
    make_parser = cli.get_argument_parser

    def parser_with_defaults(*arguments: Any, **options: Any) -> Any:
        parser = make_parser(*arguments, **options)
        parser.set_defaults(**DEFAULTS)
        return parser

    cli.get_argument_parser = parser_with_defaults
    sys.argv[0] = "snakemake"
    cli.main(targets_first(sys.argv[1:]))


if __name__ == "__main__":
    main()
