"""The project's `snakemake` command: Snakemake's own, once `--resources gpu=2 all` means what it says.

Snakemake's `--resources`, `--config` and others take every word up to the next option, a target behind them included,
and then die on "all is not NAME=INT". Words without `=` behind them can only be targets: they move to the front, where
Snakemake takes them as such. So do the words behind `--quiet` and `--rerun-triggers` that are none of theirs. Every
other call passes through untouched.

A second `--configfile` takes the place of the first one, without a word, and so does a second `--config` or
`--resources`; it ends the command in one line. So does a file of the configuration that changes nothing, because files
behind it set all that it sets: it stands before the file that it was to change.

It also turns Snakemake's job-rate limiter off, which by default allows 100 jobs a second. The limiter sets a timer
after every job, and another one whenever a timer ends: after a hundred jobs it looks for work a hundred times a second,
which uses a full core. A rate that is typed, `--max-jobs-per-timespan`, is kept.

With `--directory`, relative paths of a model and a text are those of the folder where the command is typed, as those of
files behind `--configfile` are; Snakemake would look for them in the folder of the results.

A key of the configuration that is typed as an option, such as `--card=...`, ends it in one line, too.

And a file of the configuration or a profile that does not exist ends it in one line. Snakemake itself shows where in
its code the file was opened, and goes on without the profile. So does a file that is no YAML, of which Snakemake does
not say the name; a key with a dot, which Snakemake answers with a place in its code; an option that there is not,
which it answers with a hundred lines; and a target that nothing makes, each with the name that is like it.
"""

import os.path
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
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
OF_PATHS = ("model", "text")  # keys of the configuration whose values are paths where they begin with a dot
DESCRIBING = ("hub_models", "hub_datasets")  # keys that say what there is, not what is to be done
PAIRS = [name for names in OF_PAIRS for name in names]
CHOICES = {  # options that take words of a list
    **dict.fromkeys(("--quiet", "-q"), ("rules", "reason", "progress", "host", "all")),
    "--rerun-triggers": ("code", "input", "mtime", "params", "software-env"),
}
ONCE = (("--configfile", "--configfiles"), *OF_PAIRS)  # of two, Snakemake takes the last


def takes(option: str, words: Sequence[str], word: str) -> bool:
    """Whether `word` belongs to `option`, which has taken `words`: `all` behind `--quiet rules` is the target."""
    if option in PAIRS:
        return "=" in word
    return option not in CHOICES or (word in CHOICES[option] and not (words and word == "all"))


def targets_first(arguments: Sequence[str]) -> list[str]:
    """`arguments` with the targets from among the words of options of `PAIRS` and `CHOICES` at the front."""
    targets: list[str] = []
    others: list[str] = []
    option, words = "", list[str]()
    for word in arguments:
        if word.startswith("-"):
            option, words = word, []
            others.append(word)
        elif takes(option, words, word):
            words.append(word)
            others.append(word)
        else:
            targets.append(word)
    return targets + others


def twice(arguments: Sequence[str]) -> str | None:
    """What to say of `arguments` where an option of `ONCE` or a key stands twice; Snakemake would take one."""
    for names in ONCE:
        if sum(word.split("=")[0] in names for word in arguments) > 1:
            return f"{names[0]} stands twice, and the last one alone would count; put everything after one"
    for key, count in Counter(word.split("=")[0] for word in _of_config(arguments)).items():
        if count > 1:
            return f"{key} stands twice after --config, and the last one alone would count; write it once"
    return None


def _of_config(arguments: Sequence[str]) -> Iterator[str]:
    """The words NAME=VALUE behind --config."""
    option = ""
    for word in arguments:
        if word.startswith("-"):
            option = word
        elif option in OF_PAIRS[0] and "=" in word:
            yield word


def undashed(arguments: Sequence[str], keys: Iterable[str]) -> str | None:
    """What to say of `arguments` where one of the `keys` of the configuration is typed as an option."""
    for word in arguments:
        if word.startswith("--") and (key := word[2:].split("=")[0]) in keys:
            return f"--{key} is no option; {key} is a key of the configuration: --config {key}=... sets it"
    return None


def dotted(arguments: Sequence[str]) -> str | None:
    """What to say of `arguments` where a key of the configuration is typed with the section that it stands in."""
    for word in _of_config(arguments):
        key, _, value = word.partition("=")
        if "." in key:
            section, _, rest = key.partition(".")
            inner = value
            for name in reversed(rest.split(".")):
                inner = f"{{{name}: {inner}}}"
            return f"{key} stands in a section; type it as --config {section}='{inner}'"
    return None


def unknown_option(message: str, options: Sequence[str]) -> str:
    """What to say where Snakemake's parser says `message`, with the option that is like the first one it names."""
    wrong = re.search(r"unrecognized arguments: (--[\w-]+)", message)
    near = get_close_matches(wrong[1], options, n=1, cutoff=0.75) if wrong else []
    listed = "snakemake --help lists the options, and keys of the configuration stand after --config"
    return f"{message}; " + (f"did you mean {near[0]}?" if near else listed)


def unmade(workflow: Any) -> str | None:
    """What to say of a target that is no rule and no file that a rule makes."""
    rules = list(workflow.rules)
    aims = [rule for rule in rules if not rule.has_wildcards()]
    files = {str(file) for rule in aims for file in (*rule.products(include_logfiles=False), *rule.input)}
    known = [*(rule.name for rule in aims), *sorted(file for file in files if "{" not in file)]
    for target in sorted(workflow.dag_settings.targets):
        path = os.path.normpath(target)
        if any(rule.name == target or rule.is_producer(path) for rule in rules):
            continue
        if inside := [file for file in known if file.startswith(f"{path}/")]:
            return f"{target} is a folder; name a file in it, such as {inside[0]}"
        near = get_close_matches(target, known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else "docs/map.md lists every figure and table, by its path"
        return f"nothing makes {target!r}; {remedy}"
    return None


def from_here(pair: str) -> str:
    """A word behind --config, with relative paths of a model or a text seen from the folder of the shell."""
    key, equals, value = pair.partition("=")
    if key not in OF_PATHS or not equals:
        return pair
    parts = [os.path.abspath(part) if part.startswith(".") else part for part in value.split(",")]
    return f"{key}={','.join(parts)}"


def missing(files: Sequence[Path], profile: str | None, folders: Sequence[Path]) -> str | None:
    """What to say of `files` and a profile where one does not exist; Snakemake looks for a profile in all `folders`."""
    for file in files:
        if not file.exists():
            return f"{file} does not exist; correct its name; what is to be made stands before --configfile"
    if profile not in (None, "none") and not any((folder / str(profile)).exists() for folder in folders):
        return f"there is no profile {profile}; correct its name after --workflow-profile"
    return None


def of_project(profiles: Iterable[str], folders: Sequence[Path]) -> str | None:
    """What to say of a profile in `folders`, those of the project, after --profile; profiles/default overrules it."""
    for profile in profiles:
        if Path(profile).resolve().parent in [folder.resolve() for folder in folders]:
            return f"profiles/default would overrule {profile} after --profile; type --workflow-profile {profile}"
    return None


@cache
def read(file: Path) -> Any:
    """What a file of the configuration holds; it is read once. Raises yaml.YAMLError where it is no YAML."""
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def keys_of(file: Path) -> list[str]:
    """The keys of a configuration; none where it cannot be read, of which `unreadable` speaks."""
    if not file.exists() or unreadable([file]):
        return []
    return list(read(file.resolve()) or {})


def unreadable(files: Sequence[Path]) -> str | None:
    """What to say of `files` where one is no YAML: which, and the line."""
    for file in files:
        try:
            found = read(file.resolve())
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            return (
                f"{file}, line {line}, is no YAML ({error.problem}); look at the brackets, blanks and quotes above it"
            )
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            return f"{file} is no YAML ({' '.join(str(error).split())}); correct it"
        if not isinstance(found, dict | None):
            return f"{file} has no keys at its top; write it as key: value"
    return None


def overruled(files: Sequence[Path]) -> str | None:
    """What to say of `files` of the configuration, read in this order, where later ones undo all that one sets.

    What a file says of models and texts of the hub counts for nothing where it sets anything else: what uses them does.
    """
    every = [read(file.resolve()) or {} for file in files]
    using = [{key: value for key, value in of.items() if key not in DESCRIBING} or of for of in every]
    for at, file in enumerate(files[:-1]):
        if merged(using) == merged([*using[:at], *using[at + 1 :]]):
            return f"{file} changes nothing, because the files after it set the same keys; name it after them"
    return None


def merged(configurations: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The `configurations` in one, as Snakemake merges them: of a value that two have, the later one's."""
    from snakemake.utils import update_config

    result: dict[str, Any] = {}
    for configuration in configurations:
        update_config(result, configuration)
    return result


def main() -> None:
    """Run Snakemake with the arguments of this process."""
    from snakemake import api, cli

    make_parser, parse = cli.get_argument_parser, cli.parse_args

    def without_a_rate(*arguments: Any, **options: Any) -> Any:
        parser = make_parser(*arguments, **options)
        parser.set_defaults(max_jobs_per_timespan=None)
        known = re.findall(r"--[\w-]+", parser.format_usage())
        parser.error = lambda message: parser.exit(2, f"error: {unknown_option(message, known)}\n")
        return parser

    class Checked(api.DAGApi):
        """Snakemake's own, which ends in one line where a target is misspelt."""

        def __post_init__(self) -> None:
            super().__post_init__()
            if fault := unmade(self.workflow_api._workflow):
                sys.exit(f"error: {fault}")

    def checked(arguments: Sequence[str]) -> Any:
        if fault := undashed(arguments, keys_of(Path("config.yaml"))) or dotted(arguments):
            sys.exit(f"error: {fault}")
        parser, found = parse(arguments)
        snakefile = cli.resolve_snakefile(found.snakefile, allow_missing=True)
        project = [Path(snakefile).parent] if snakefile else []
        profiles = [folder / "profiles" for folder in project]
        defaults = filter(Path.exists, (folder / "config.yaml" for folder in project))
        files = found.configfile or []
        fault = (
            twice(arguments)
            or missing(files, found.workflow_profile, [Path(), Path("profiles"), *profiles])
            or of_project(found.profile or [], profiles)
            or unreadable([*defaults, *files])
            or overruled(files)
        )
        if fault:
            sys.exit(f"error: {fault}")
        if found.directory and found.config:
            found.config = [from_here(pair) for pair in found.config]
        return parser, found

    cli.get_argument_parser, cli.parse_args, api.DAGApi = without_a_rate, checked, Checked
    sys.argv[0] = "snakemake"
    cli.main(targets_first(sys.argv[1:]))
