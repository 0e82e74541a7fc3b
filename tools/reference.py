"""Write every key of the configuration, its meaning, what it may be and its default, to two pages of docs/.

    PYTHONPATH=. python tools/reference.py            (make docs)

It is written from the sections (`position_bias/settings.py`) and config.yaml alone.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml

from position_bias import settings
from position_bias.workflow.configuration import KeyAnnotation, inner_annotation, part
from position_bias.workflow.section import Bounds, Items, Words

ANY_NAME = "NAME"  # stands for the names that the configuration gives

DOCS = Path(__file__).parents[1] / "docs"
OF_NETWORKS = ("emergence", "layernorm", "postnorm")  # the sections of configuration-networks.md
INTRODUCTION = """\
# The configuration

Every key of [config.yaml](../config.yaml): its meaning, the values it may have, and its default. `make docs` writes
this page from config.yaml and the sections of position_bias/settings.py. To change single values, use an overlay
(`--configfile config/test.yaml`) or `--config rollout='{level: 0.9}'`. NAME stands for names that you give. A value
that is not allowed, by itself or together with others, ends the run with a one-line message that names its key.
The sections `emergence`, `layernorm` and `postnorm` have [a page of their own](configuration-networks.md).
"""
NETWORKS = """\
# The configuration of small networks

These are the sections `emergence`, `layernorm` and `postnorm` of [config.yaml](../config.yaml).
[The configuration](configuration.md) has all other keys, and says how to change a value.
`make docs` writes both.
"""

TYPES = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def page(section: type, config: Mapping[str, Any], introduction: str = INTRODUCTION) -> str:
    """Return a page in Markdown: a table of the keys that stand alone, then one of each section of `config`."""
    parts = {name: inner_annotation(part(section), name) for name in config}
    single_rows = [
        row
        for name, annotation in parts.items()
        if not annotation.is_mapping
        for row in _rows(name, annotation, [config[name]])
    ]
    lines = [introduction, *([_table(single_rows)] if single_rows else [])]
    for name, annotation in parts.items():
        if annotation.is_mapping:
            lines += [
                f"## {name}\n",
                f"{_sentence(annotation.meaning)}\n",
                _table(_rows(name, annotation, [config[name]])),
            ]
    return "\n".join(lines)


def _rows(key: str, annotation: KeyAnnotation, defaults: list[Any]) -> Iterator[tuple[str, ...]]:
    """Rows of the table for a key and all below it: key, meaning, what it may be, default.

    `defaults` are the values of `key` in the configuration, one for each name above it.
    """
    if not annotation.is_mapping:
        yield f"`{key}`", annotation.meaning, allowed_values(annotation), _default(defaults)
    elif annotation.keys is None:
        values = [value for default in defaults for value in default.values()]
        yield from _rows(f"{key}.{ANY_NAME}", inner_annotation(annotation, ANY_NAME), values)
    else:
        for name in annotation.keys:
            values = [value[name] for value in defaults if name in value]
            yield from _rows(f"{key}.{name}", inner_annotation(annotation, name), values)


def allowed_values(annotation: KeyAnnotation) -> str:
    """What a value may be, in words: `whole number, at least 1, at most 9`, or `one of auto, cpu, cuda`."""
    if annotation.nullable:
        return f"{allowed_values(annotation._replace(nullable=False))} or null"
    if get_origin(annotation.kind) is Literal:
        return f"one of {', '.join(map(str, get_args(annotation.kind)))}"
    if get_origin(annotation.kind) is list:
        least = f", at least {items.least}" if (items := annotation.rules[Items]).least else ""
        return f"list, each item once{least}; an item: {allowed_values(inner_annotation(annotation, 0))}"
    if is_dataclass(annotation.kind):
        return "; ".join(
            f"`{name}`, {allowed_values(inner_annotation(annotation, name))}" for name in annotation.keys or ()
        )
    if words := annotation.rules.get(Words):
        return words.form
    return f"{TYPES[annotation.kind]}{_bounds(annotation.rules[Bounds])}"


def _bounds(bounds: Bounds) -> str:
    words = (
        ("at least", bounds.least),
        ("above", bounds.above),
        ("at most", bounds.most),
        ("below", bounds.below),
        ("a multiple of", bounds.multiple),
    )
    return "".join(f", {word} {bound}" for word, bound in words if bound is not None)


def _default(defaults: list[Any]) -> str:
    """The default in YAML; where names have different ones, each of them once."""
    texts = dict.fromkeys(yaml.safe_dump(value, default_flow_style=True, width=math.inf) for value in defaults)
    return " or ".join(f"`{text.removesuffix('...' + chr(10)).strip()}`" for text in texts)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown, ended by a newline."""
    lines = [("key", "meaning", "may be", "default"), ("---",) * 4, *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


if __name__ == "__main__":
    default = settings.default()
    networks = {name: default[name] for name in OF_NETWORKS}
    others = {name: value for name, value in default.items() if name not in networks}
    (DOCS / "configuration.md").write_text(page(settings.Settings, others))
    (DOCS / "configuration-networks.md").write_text(page(settings.Settings, networks, NETWORKS))
