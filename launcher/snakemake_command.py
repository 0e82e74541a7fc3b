"""The `snakemake` command of this project: Snakemake's own, which understands `--resources gpu=2 all`.

Snakemake's `--resources`, `--config` and the like take every word up to the next option. A target behind them is taken,
too, and Snakemake ends with "all is not NAME=INT". Words without `=` behind these options can only be targets, so this
command moves them to the front.

Snakemake passes over a folder after `--workflow-profile` that is not there, and would then run everything on this
machine. It ends with a traceback at a file after `--configfile` that is not there, and at a name after `--config` that
is no identifier. This command ends with one line for each. It leaves every other call as it is.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

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


def check_files_and_names(arguments: Sequence[str]) -> None:
    """End with one line if a profile or a file of configuration is not there, or a name after `--config` is none."""
    from snakemake import cli

    typed = cli.get_argument_parser().parse_args(arguments)
    profile = typed.workflow_profile or "none"  # without the option Snakemake takes profiles/default, or none
    snakefile = cli.resolve_snakefile(typed.snakefile, allow_missing=True) or ""
    folders = (Path(), Path("profiles"), Path(snakefile).parent / "profiles")  # where Snakemake looks for a profile
    if profile != "none" and not any((folder / profile).exists() for folder in folders):
        sys.exit(
            f"error: --workflow-profile {profile}: there is no such folder, seen from {Path.cwd()}; "
            "correct the path, as profiles/slurm"
        )
    for path in typed.configfile:
        if not path.exists():
            sys.exit(
                f"error: --configfile {path}: there is no such file, seen from {Path.cwd()}; "
                "correct the path, and type targets before --configfile"
            )
    try:
        cli.parse_config(typed.config)
    except ValueError as error:
        sys.exit(
            f"error: --config {' '.join(typed.config)}: {error} "
            "Write a key inside a section in braces, in quotes: rollout='{bootstrap: 200}'"
        )


def main() -> None:
    """Run Snakemake with the arguments of this process."""
    from snakemake import cli

    sys.argv[0] = "snakemake"
    arguments = targets_first(sys.argv[1:])
    check_files_and_names(arguments)
    cli.main(arguments)


if __name__ == "__main__":
    main()
