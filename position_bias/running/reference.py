"""This module writes the reference of the configuration: every key, its meaning, what it may be, its default.

It is written from config/schema/ and config.yaml alone: `make docs`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from position_bias.running.configuration import read_schema, resolve

Config = Mapping[str, Any]
Schema = Mapping[str, Any]

ROOT = Path(__file__).parents[2]
NAMED = "NAME"  # stands for the names that the configuration gives

INTRODUCTION = """\
# The configuration

Every key of [config.yaml](../config.yaml): its meaning, the values it may have, and its default. `make docs` writes
this page from config/schema/ and config.yaml. To change single values, use an overlay (`--configfile
config/test.yaml`) or `--config rollout='{level: 0.9}'`. NAME stands for names that you give. A value that is not
allowed, by itself or together with others, ends the run with a one-line message that names its key.
"""

TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "null"}


def page(schema: Schema, config: Config) -> str:
    """Return the page in Markdown: a table of the keys that stand alone, then one of each section of `config`."""
    parts = {name: resolve(schema["properties"][name], schema) for name in config}
    alone = [
        row
        for name, node in parts.items()
        if not _is_mapping(node)
        for row in _rows(name, node, [config[name]], schema)
    ]
    lines = [INTRODUCTION, _table(alone)]
    for name, node in parts.items():
        if _is_mapping(node):
            lines += [
                f"## {name}\n",
                f"{_sentence(node['description'])}\n",
                _table(_rows(name, node, [config[name]], schema)),
            ]
    return "\n".join(lines)


def _rows(key: str, node: Schema, defaults: list[Any], schema: Schema) -> Iterator[tuple[str, ...]]:
    """Rows of the table for a key and all below it: key, meaning, what it may be, default.

    `defaults` are the values of `key` in the configuration, one for each name above it.
    """
    if not _is_mapping(node):
        yield f"`{key}`", node["description"], allowed(node, schema), _shown(defaults)
        return
    for name, part in node.get("properties", {}).items():
        values = [value[name] for value in defaults if name in value]
        yield from _rows(f"{key}.{name}", resolve(part, schema), values, schema)
    if named := node["additionalProperties"]:
        values = [value for default in defaults for value in default.values()]
        yield from _rows(f"{key}.{NAMED}", resolve(named, schema), values, schema)


def allowed(node: Schema, schema: Schema) -> str:
    """What a value may be, in words: `whole number, 1 to 9`, or `one of auto, cpu, cuda`."""
    if "enum" in node:
        return f"one of {', '.join(map(str, node['enum']))}"
    if "anyOf" in node:
        return " or ".join(allowed(choice, schema) for choice in node["anyOf"])
    if node["type"] == "array":
        item = resolve(node["items"], schema)
        least = f", at least {node['minItems']}" if "minItems" in node else ""
        return f"list, each item once{least}; an item: {allowed(item, schema)}"
    if node["type"] == "object":
        keys = node["properties"].items()
        return "; ".join(f"`{name}`, {allowed(resolve(part, schema), schema)}" for name, part in keys)
    multiple = f", a multiple of {node['multipleOf']}" if "multipleOf" in node else ""
    return node.get("title", TYPES[node["type"]]) + _bounds(node) + multiple


def _bounds(node: Schema) -> str:
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    return "".join(f", {word} {node[keyword]}" for keyword, word in words.items() if keyword in node)


def _is_mapping(node: Schema) -> bool:
    return node.get("type") == "object"


def _shown(defaults: list[Any]) -> str:
    """The default in YAML; where names have different ones, each of them once."""
    written = dict.fromkeys(yaml.safe_dump(value, default_flow_style=True, width=math.inf) for value in defaults)
    return " or ".join(f"`{text.removesuffix('...' + chr(10)).strip()}`" for text in written)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown, ended by a newline."""
    shown = [("key", "meaning", "may be", "default"), ("---",) * 4, *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in shown)


if __name__ == "__main__":
    print(page(read_schema(ROOT / "config/schema"), yaml.safe_load((ROOT / "config.yaml").read_text())), end="")
