"""The project's `snakemake` command: Snakemake's own, once `--resources gpu=2 all` means what it says.

Snakemake's `--resources`, `--config` and others take every word up to the next option, a target behind them included,
and then die on "all is not NAME=INT". Words without `=` behind them can only be targets: they move to the front, where
Snakemake takes them as such. Every other call passes through untouched.

A second `--configfile` takes the place of the first one, without a word, and so does a second `--config` or
`--resources`; it ends the command in one line.

It also turns Snakemake's job-rate limiter off, which by default allows 100 jobs a second. The limiter sets a timer
after every job, and another one whenever a timer ends: after a hundred jobs it looks for work a hundred times a second,
which uses a full core. A rate that is typed, `--max-jobs-per-timespan`, is kept.

A key of the configuration that is typed as an option, such as `--card=...`, ends it in one line, too.

And a file of the configuration or a profile that does not exist ends it in one line. Snakemake itself shows where in
its code the file was opened, and goes on without the profile. So does a file that is no YAML, of which Snakemake does
not say the name.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

OF_PAIRS = (  # options that take words of the form NAME=VALUE, each with its other names
    ("--config", "-C"),
    ("--resources", "--res"),
    ("--default-resources", "--default-res"),
    ("--set-resources",),
    ("--set-threads",),
    ("--set-resource-scopes",),
)
PAIRS = [name for names in OF_PAIRS for name in names]
ONCE = (("--configfile", "--configfiles"), *OF_PAIRS)  # of two, Snakemake takes the last


def targets_first(arguments: Sequence[str]) -> list[str]:
    """`arguments` with the targets that stand among the words of an option of `PAIRS` moved to the front."""
    targets: list[str] = []
    others: list[str] = []
    among_pairs = False
    for word in arguments:
        if word.startswith("-"):
            among_pairs = word in PAIRS
        if among_pairs and not word.startswith("-") and "=" not in word:
            targets.append(word)
        else:
            others.append(word)
    return targets + others


def twice(arguments: Sequence[str]) -> str | None:
    """What to say of `arguments` where an option of `ONCE` stands twice, which Snakemake would take one of."""
    for names in ONCE:
        if sum(word.split("=")[0] in names for word in arguments) > 1:
            return f"{names[0]} stands twice, and the last one alone would count; put everything after one"
    return None


def undashed(arguments: Sequence[str], keys: Iterable[str]) -> str | None:
    """What to say of `arguments` where one of the `keys` of the configuration is typed as an option."""
    for word in arguments:
        if word.startswith("--") and (key := word[2:].split("=")[0]) in keys:
            return f"--{key} is no option; {key} is a key of the configuration: --config {key}=... sets it"
    return None


def missing(files: Sequence[Path], profile: str | None, folders: Sequence[Path]) -> str | None:
    """What to say of `files` and a profile where one does not exist; Snakemake looks for a profile in all `folders`."""
    for file in files:
        if not file.exists():
            return f"{file} does not exist; correct its name; what is to be made stands before --configfile"
    if profile not in (None, "none") and not any((folder / str(profile)).exists() for folder in folders):
        return f"there is no profile {profile}; correct its name after --workflow-profile"
    return None


def keys_of(file: Path) -> list[str]:
    """The keys of a configuration; none where it cannot be read, of which `unreadable` speaks."""
    if not file.exists() or unreadable([file]):
        return []
    return list(yaml.safe_load(file.read_text(encoding="utf-8")) or {})


def unreadable(files: Sequence[Path]) -> str | None:
    """What to say of `files` where one is no YAML: which, and the line."""
    for file in files:
        try:
            yaml.safe_load(file.read_text(encoding="utf-8"))
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            return (
                f"{file}, line {line}, is no YAML ({error.problem}); look at the brackets, blanks and quotes above it"
            )
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            return f"{file} is no YAML ({' '.join(str(error).split())}); correct it"
    return None


def main() -> None:
    """Run Snakemake with the arguments of this process."""
    from snakemake import cli

    make_parser, parse = cli.get_argument_parser, cli.parse_args

    def without_a_rate(*arguments: Any, **options: Any) -> Any:
        parser = make_parser(*arguments, **options)
        parser.set_defaults(max_jobs_per_timespan=None)
        return parser

    def checked(arguments: Sequence[str]) -> Any:
        if fault := undashed(arguments, keys_of(Path("config.yaml"))):
            sys.exit(f"error: {fault}")
        parser, found = parse(arguments)
        if fault := twice(arguments):
            sys.exit(f"error: {fault}")
        snakefile = cli.resolve_snakefile(found.snakefile, allow_missing=True)
        beside = [Path(snakefile).parent / "profiles"] if snakefile else []
        if fault := missing(found.configfile or [], found.workflow_profile, [Path(), Path("profiles"), *beside]):
            sys.exit(f"error: {fault}")
        of_project = [Path(snakefile).parent / "config.yaml"] if snakefile else []
        if fault := unreadable([*filter(Path.exists, of_project), *(found.configfile or [])]):
            sys.exit(f"error: {fault}")
        return parser, found

    cli.get_argument_parser, cli.parse_args = without_a_rate, checked
    sys.argv[0] = "snakemake"
    cli.main(targets_first(sys.argv[1:]))
