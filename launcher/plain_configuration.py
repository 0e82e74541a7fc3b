"""What a file of the configuration may be: plain YAML or JSON of which every part means what it seems to mean.

Snakemake reads such files as YAML 1.1, where the second of two equal keys wins, `1:30` is 90, and `no` is false.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

LARGEST = 1_000_000  # bytes
DEEPEST = 32  # levels
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MEANT = {  # of scalars without quotes that are not text: what they must look like
    "bool": re.compile(r"true|false", re.IGNORECASE),
    "int": re.compile(r"[-+]?(0|[1-9]\d{0,39})"),
    "float": re.compile(r"[-+]?(\d{1,40}\.?\d{0,40}|\.\d{1,40})(e[-+]?\d{1,4})?|[-+]?\.inf|\.nan", re.IGNORECASE),
    "null": re.compile(r"null|~|", re.IGNORECASE),
}


def require_plain(path: str | Path) -> None:
    """Raise ValueError with one line that names the file, unless it holds keys and values as they seem to be meant."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"configuration {path} is not a file; correct the path after --configfile")
    if (size := path.stat().st_size) > LARGEST:
        raise ValueError(f"configuration {path} has {size} bytes, more than {LARGEST}; name another file")
    try:
        text = path.read_text(encoding="utf-8")
        fault = next(_of_events(text), None)
        root = None if fault else yaml.compose(text, LOADER)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"configuration {path} cannot be read: {' '.join(str(error).split())}; correct it") from error
    if fault:
        raise ValueError(f"configuration {path}, {fault}")
    if not isinstance(root, yaml.MappingNode):
        raise ValueError(f"configuration {path} holds no keys with values, as in seed: 7; write some, or leave it out")
    for fault in _of_nodes(root):
        raise ValueError(f"configuration {path}, {fault}")


def _of_events(text: str) -> Iterator[str]:
    """What would make reading endless: found before anything is built."""
    depth = 0
    for event in yaml.parse(text, LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            yield f"{_line(event)}: *{event.anchor} repeats another part; write it out"
        if depth > DEEPEST:
            yield f"{_line(event)}: it is nested more than {DEEPEST} levels deep; no key is"


def _of_nodes(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value == "__use_yte__":
                yield f"{_line(key)}: __use_yte__ would run code; remove it"
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                yield f"{_line(key)}: the key {key.value!r} is there twice; remove one"
            seen.add(str(key.value))
            yield from (fault for inner in (key, value) for fault in _of_nodes(inner))
    elif isinstance(node, yaml.SequenceNode):
        yield from (fault for inner in node.value for fault in _of_nodes(inner))
    elif isinstance(node, yaml.ScalarNode) and not node.style:
        kind = node.tag.rpartition(":")[2]
        if kind != "str" and not (kind in MEANT and MEANT[kind].fullmatch(node.value)):
            yield (
                f"{_line(node)}: {node.value:.40} is a surprise in YAML 1.1, of the kind {kind}; write a plain number, "
                "true or false, or a text in quotes"
            )


def _line(marked: yaml.Event | yaml.Node) -> str:
    return f"line {marked.start_mark.line + 1}" if marked.start_mark else "line ?"
