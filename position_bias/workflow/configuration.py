"""Check a configuration before anything runs: every fault is one line that names the key, its value and the remedy."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError

from position_bias.workflow.section import Bounds, Items, Keys, Words
from position_card.core.runtime import InputError

Config = Mapping[str, Any]
Fault = Mapping[str, Any]  # pydantic_core.ErrorDetails
Key = tuple[str | int, ...]

LONGEST = 200  # characters of a value that a line shows
UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden", "invalid_key")
TYPES = {"int_type": "a whole number", "string_type": "text", "bool_type": "true or false", "list_type": "a list"}
TYPES |= dict.fromkeys(("float_type", "finite_number"), "a finite number")
BOUND_MESSAGES = {
    "greater_than_equal": "is too small; give at least {0.least}",
    "greater_than": "is too small; give more than {0.above}",
    "less_than_equal": "is too large; give at most {0.most}",
    "less_than": "is too large; give less than {0.below}",
    "multiple_of": "is not a multiple of {0.multiple}; give one",
}


class KeyAnnotation(NamedTuple):
    """What the annotation of a key, or of an item of a list, says."""

    kind: Any  # int, float, str, bool, a dataclass, dict[...], list[...] or Literal[...]
    meaning: str
    rules: Mapping[type, Any]  # Bounds, Words, Items and Keys, by their type
    nullable: bool = False

    @property
    def keys(self) -> dict[str, Any] | None:
        """The annotations of the keys that a mapping may have; None of one whose keys are names that the user gives."""
        if isinstance(self.kind, type) and is_dataclass(self.kind):
            return dict(_fields(self.kind))
        name, value = get_args(self.kind)
        if keys := self.rules.get(Keys):
            return {key: Annotated[value, meaning] for key, meaning in keys.meanings.items()}
        choices = part(name).kind
        return dict.fromkeys(get_args(choices), value) if get_origin(choices) is Literal else None

    @property
    def is_mapping(self) -> bool:
        """Whether what the key has is a section or another mapping."""
        return is_dataclass(self.kind) or get_origin(self.kind) is dict


def part(annotation: Any) -> KeyAnnotation:
    """Read the annotation of a key: its type, meaning and rules. Of several of one type, the outermost counts."""
    if get_origin(annotation) is Annotated:
        inner, *annotations = get_args(annotation)
        of_inner = part(inner)
        meanings = [word for word in annotations if isinstance(word, str)]
        rules = {type(rule): rule for rule in annotations if not isinstance(rule, str)}
        return of_inner._replace(meaning=(meanings or [of_inner.meaning])[-1], rules={**of_inner.rules, **rules})
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (choice for choice in get_args(annotation) if choice is not NoneType)
        return part(inner)._replace(nullable=True)
    meaning = " ".join((annotation.__doc__ or "").split()).removesuffix(".") if is_dataclass(annotation) else ""
    return KeyAnnotation(annotation, meaning, {})


def inner_annotation(outer: KeyAnnotation, key: str | int) -> KeyAnnotation:
    """Return what is said of a key of a mapping, or of an item of a list.

    An item without a meaning of its own has that of the list.
    """
    if get_origin(outer.kind) is list:
        item = part(get_args(outer.kind)[0])
        return item._replace(meaning=item.meaning or outer.meaning)
    keys = outer.keys or {}
    return part(keys[str(key)] if str(key) in keys else get_args(outer.kind)[1])


def check(
    config: dict[str, Any],
    section: type,
    faults: Sequence[Callable[[Config], Iterable[str]]] = (),
) -> None:
    """Raise InputError with one line for the first fault of `config`.

    `section` is the dataclass of the whole configuration, whose `faults_of_sections` come first. Then come `faults`,
    which find what single sections do not show: values that fit theirs, and not each other.
    """
    for line in faults_of_sections(config, section):
        raise InputError(f"config: {line}")
    for line in (line for find in faults for line in find(config)):
        raise InputError(f"config: {line}")


def faults_of_sections(config: dict[str, Any], section: type) -> list[str]:
    """Return every fault of `config` against `section` and those within it, a line each; unknown keys come first.

    Text becomes a number, or true or false, in place where one is asked for: Snakemake leaves it as text within a value
    of the command line, as in --config rollout='{bootstrap: 200}'.
    """
    errors = _errors(config, section)
    texts = [
        error
        for error in errors
        if error["type"] in ("int_type", "float_type", "bool_type") and type(error["input"]) is str
    ]
    for error in texts:
        _at(config, error["loc"][:-1])[error["loc"][-1]] = _value_of_text(error["input"], error["type"])
    if texts:
        errors = _errors(config, section)
    errors = sorted(errors, key=lambda error: error["type"] not in UNKNOWN and error["loc"][-1:] != ("[key]",))
    return [_line(error, part(section), config) for error in errors]


def require_single_keys(file: str | Path) -> None:
    """Raise InputError where a file has a key twice: Snakemake takes the second, and says nothing of the first."""
    root = yaml.compose(Path(file).read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for key in _repeated(root):
        line = key.start_mark.line + 1 if key.start_mark else "?"
        raise InputError(f"config: {file} has the key {key.value!r} twice, again in line {line}; remove one")


def _repeated(node: yaml.Node | None) -> Iterator[yaml.Node]:
    """The keys of mappings at or below a node that were there before."""
    if isinstance(node, yaml.MappingNode):
        keys = set()
        for key, value in node.value:
            if isinstance(key.value, str) and key.value in keys:
                yield key
            keys.add(str(key.value))
            yield from _repeated(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item)


def put_in_order(config: dict[str, Any], model: Mapping[str, Any]) -> None:
    """Put keys into the order that they have in `model`, at every depth and in place; others follow by the alphabet.

    Snakemake puts keys of the command line and of --configfile first, and reruns jobs whose parameters change order.
    """
    order = {key: place for place, key in enumerate(model)}
    for key in sorted(config, key=lambda key: (order.get(key, len(order)), str(key))):
        value = config[key] = config.pop(key)
        if isinstance(value, dict):
            inner = model.get(key)
            put_in_order(value, inner if isinstance(inner, Mapping) else {})


@cache
def _adapter(section: type) -> TypeAdapter[Any]:
    """Return what pydantic checks a section with, made once for each class."""
    return TypeAdapter(section)


@cache
def _fields(section: type) -> Mapping[str, Any]:
    """The annotations of the fields of a section."""
    annotations = get_type_hints(section, include_extras=True)
    return {field.name: annotations[field.name] for field in fields(section)}


def _errors(config: Config, section: type) -> Sequence[Fault]:
    """Return what pydantic has against `config` as a `section`, in its order; nothing where it is right."""
    try:
        _adapter(section).validate_python(config)
    except ValidationError as error:
        return error.errors(include_url=False)
    return ()


def _at(config: Config, key: Key) -> Any:
    node: Any = config
    for name in key:
        node = node[name]
    return node


def _value_of_text(text: str, fault: str) -> int | float | bool | str:
    """Return the number or truth that a text says where `fault` asks for one; the text itself where it says none."""
    if fault == "bool_type":
        return {"true": True, "false": False}.get(text, text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _line(error: Fault, root: KeyAnnotation, config: Config) -> str:
    """What is said of an error that pydantic found."""
    if error["type"] == "string_unicode":  # of a key of a section, its place is that of the section
        return f"{_join(*error['loc']) or 'a key'} has {_short(error['input'])}, which is no UTF-8; give text that is"
    *parents, last = error["loc"]
    if error["type"] == "missing":
        return f"{_join(*parents, last)} is missing; add it (config.yaml shows how)"
    if error["type"] in UNKNOWN:
        return _unknown_key(_find(root, parents), tuple(parents), last, _at(config, tuple(parents)))
    if last == "[key]":
        *parents, name = parents
        outer = _find(root, parents)
        if outer.keys is not None:
            return _unknown_key(outer, tuple(parents), name, _at(config, tuple(parents)))
        key = part(get_args(outer.kind)[0])
        owner = _join(*parents) or "the configuration"
        return f"{owner} has the name {_short(error['input'])}, which {_fault(error, key)}"
    annotation = _find(root, error["loc"])
    if error["type"] == "value_error" and is_dataclass(annotation.kind):
        return f"{_join(*error['loc'])}.{error['ctx']['error']}"
    remark = f" ({annotation.meaning})" if annotation.meaning else ""
    return f"{_join(*error['loc'])} = {_short(error['input'])} {_fault(error, annotation)}{remark}"


def _fault(error: Fault, annotation: KeyAnnotation) -> str:
    """What is wrong with a value, and what would be right."""
    kind, value = error["type"], error["input"]
    if kind in BOUND_MESSAGES:
        return BOUND_MESSAGES[kind].format(annotation.rules[Bounds])
    if kind == "too_short":
        return f"is empty; give at least {annotation.rules[Items].least}"
    if kind == "literal_error":
        return f"is not known; use one of {', '.join(map(str, get_args(annotation.kind)))}"
    if kind == "string_pattern_mismatch":
        return "is empty; give text" if value == "" else f"is not a name; use {annotation.rules[Words].form}"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    right_kind = TYPES.get(kind)
    if right_kind is None:
        keys = list(annotation.keys or ["name"])
        more = ["..."] if keys[3:] else []
        right_kind = f"names with values, as in '{{{', '.join([*(f'{key}: value' for key in keys[:3]), *more])}}}'"
    return f"is of the wrong type; give {right_kind}{' or null' if annotation.nullable else ''}"


def _find(root: KeyAnnotation, key: Iterable[str | int]) -> KeyAnnotation:
    for name in key:
        root = inner_annotation(root, name)
    return root


def _unknown_key(outer: KeyAnnotation, parents: Key, name: str | int, section: Mapping[Any, Any]) -> str:
    """Return the line for a key that the configuration does not have: where it belongs, or which one may be meant."""
    annotations = outer.keys or {}
    name = next(key for key in section if name in (key, str(key)))  # pydantic writes True as 1, and 7.0 as '7.0'
    similar = get_close_matches(str(name), annotations, n=1)
    homes = [key for key, inner in annotations.items() if part(inner).is_mapping and name in (part(inner).keys or {})]
    if homes:
        remedy = f"it stands below {' and '.join(homes)}: {homes[0]}='{{{name}: {_short(section[name])}}}'"
    else:
        remedy = f"did you mean {similar[0]!r}?" if similar else f"use one of {', '.join(annotations)}"
    return f"{_join(*parents, name)} = {_short(section[name])} is not a key of the configuration; {remedy}"


def _join(*names: object) -> str:
    return ".".join(name if len(name) <= LONGEST and name.isprintable() else _short(name) for name in map(str, names))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
