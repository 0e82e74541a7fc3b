"""What the two shared scripts do: call the function that a row names with what its files hold, and write what it makes.

The type of a parameter says how its file is read: a table, tensors, or a path that the function reads by itself.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pandas as pd

from position_bias.workflow.rows import RULE_PARAMS, module_name
from position_card.core import artifacts
from position_card.core.artifacts import TensorFile, Tensors
from position_card.core.runtime import whole_file

READERS: dict[Any, Callable[[str], Any]] = {Path: Path, TensorFile: TensorFile, Tensors: artifacts.read_tensors}


def make(job: Any) -> Any:
    """Call the function that a job of Snakemake names, with what its files hold and with its other params.

    Raises InputError where a file is not usable.
    """
    function = row_function(job.params.makes)
    kinds = get_type_hints(function)
    files = {name: read_input(kinds[name], paths) for name, paths in job.input.items()}
    values = {name: value for name, value in job.params.items() if name not in RULE_PARAMS}
    return function(**files, **values)


def row_function(makes: str) -> Callable[..., Any]:
    """Return the function that `makes` names as MODULE:FUNCTION."""
    function: Callable[..., Any] = getattr(import_module(module_name(makes)), makes.partition(":")[2])
    return function


def read_input(kind: Any, paths: Any) -> Any:
    """Return what files hold, as a parameter of type `kind` takes it; several tables are joined, or make a list.

    Raises InputError where a file is not usable, and KeyError for another type.
    """
    if get_origin(kind) in (list, Sequence):
        (of_each,) = get_args(kind)
        return [read_input(of_each, path) for path in paths]
    if kind is pd.DataFrame:
        return artifacts.read_tables([paths] if isinstance(paths, str) else paths, ())
    return READERS[kind](paths)


def write(result: Any, job: Any) -> None:
    """Write the `result` of a function, a table or a text, to the outputs of a job, each file whole.

    A mapping has a result for each output by its name; anything else goes to every output, to Markdown in the form that
    `params.readable` makes of it. An output of several files takes as many results, in order. Raises KeyError where a
    mapping lacks an output, and ValueError where files and results are not equally many.
    """
    for name, paths in job.output.items():
        content = result[name] if isinstance(result, dict) else result
        if name == "md" and job.params.readable:
            content = row_function(job.params.readable)(content)
        if isinstance(paths, str):
            _write(paths, content)
        else:
            for path, part in zip(paths, content, strict=True):
                _write(path, part)


def _write(path: str, content: pd.DataFrame | str) -> None:
    """Write a text, or a table as the suffix of its file says: of Markdown, with four digits."""
    if isinstance(content, pd.DataFrame) and path.endswith(".md"):
        content = content.to_markdown(index=False, floatfmt=".4g") + "\n"
    if isinstance(content, str):
        with whole_file(path) as partial:
            partial.write_text(content, encoding="utf-8")
    else:
        artifacts.write_table(path, content)
