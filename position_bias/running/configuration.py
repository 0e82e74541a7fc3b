"""Check a configuration before anything runs: every fault is one line that names the key, its value and the remedy."""

import math
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, validators

from position_bias.running.runtime import InputError

Config = Mapping[str, Any]
Fault = Any  # jsonschema.ValidationError, whose annotations leave every field possibly unset


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)  # 300.0 would name other files than 300


def _is_number(_checker: object, value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C, where it was built
_TYPES = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_integer, "number": _is_number})
Validator = validators.extend(Draft202012Validator, type_checker=_TYPES)


def read_schema(folder: Path) -> dict[str, Any]:
    """Read the schema that the files of `folder` make together, one for each part of the project.

    Each has some of the sections (`properties`), all of which a configuration must have, and the parts that these refer
    to (`$defs`). `moved` lists old keys with the new ones, and `elsewhere`, at a section, names that people look for
    there with the keys that they mean; JSON Schema itself takes no notice of either. Raises ValueError where two files
    have the same name.
    """
    schema: dict[str, Any] = {"$defs": {}, "properties": {}, "moved": {}}
    for path in sorted(folder.glob("*.yaml")):
        for keyword, found in load(path).items():
            if twice := schema[keyword].keys() & found.keys():
                raise ValueError(f"{path}: another file has {keyword} {', '.join(sorted(twice))} too")
            schema[keyword] |= found
    return {**schema, "type": "object", "additionalProperties": False, "required": list(schema["properties"])}


def load(path: Path) -> dict[str, Any]:
    """What a file of YAML says."""
    found: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
    return found


def check(config: Config, schema: Mapping[str, Any], *faults: Callable[[Config], Iterable[str]]) -> None:
    """Raise InputError with one line for the first fault of `config`: against `schema`, then of values together.

    Keys that have moved come before all else, in one line. `faults` find what single keys do not show: values that fit
    the schema, and not each other.
    """
    if moved := [f"{old} is now {new}" for old, new in schema.get("moved", {}).items() if _has(config, old)]:
        raise InputError(f"config: {'; '.join(moved)}; change what sets {'it' if len(moved) == 1 else 'them'}")
    errors = sorted(Validator(schema).iter_errors(config), key=lambda error: list(map(str, error.path)))
    for error in errors:
        raise InputError(f"config: {_describe(error, schema, config)}")
    for find in faults:
        for fault in find(config):
            raise InputError(f"config: {fault}")


def _has(config: Config, key: str) -> bool:
    """Whether a configuration has a key, whose names are joined by dots."""
    node: Any = config
    for name in key.split("."):
        if not isinstance(node, Mapping) or name not in node:
            return False
        node = node[name]
    return True


def read_numbers(config: Config, schema: Mapping[str, Any]) -> None:
    """Turn text into the numbers that `schema` asks for, in place.

    Snakemake leaves them as text within a value of the command line, as in --config rollout='{bootstrap: 200}'.
    """
    for error in list(Validator(schema).iter_errors(config)):
        if error.validator == "type" and isinstance(error.instance, str):
            *path, last = error.absolute_path
            place: Any = config
            for key in path:
                place = place[key]
            place[last] = _number(error.instance)


def put_in_order(config: dict[str, Any], like: Mapping[str, Any]) -> None:
    """Put keys into the order that they have in `like`, at every depth and in place; others follow by the alphabet.

    Snakemake puts keys of the command line and of --configfile first, and reruns jobs whose parameters change order.
    """
    order = {key: place for place, key in enumerate(like)}
    for key in sorted(config, key=lambda key: (order.get(key, len(order)), str(key))):
        value = config[key] = config.pop(key)
        if isinstance(value, dict):
            below = like.get(key)
            put_in_order(value, below if isinstance(below, Mapping) else {})


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _describe(error: Fault, schema: Mapping[str, Any], config: Config) -> str:
    key = ".".join(map(str, error.absolute_path))
    if error.validator == "additionalProperties":
        return _unknown_key(key, error, schema)
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        named = _below_a_name(schema, error.absolute_path)
        remedy = f"add it{_misspelt(error, config)}" if named else "add it (config.yaml has the default)"
        return f"{_join(key, missing)} is missing; {remedy}"
    if "propertyNames" in error.absolute_schema_path:
        return f"{key or 'the configuration'} has the name {error.instance!r}, which {_fault(error)}"
    about = _description(schema, error.absolute_path)
    return f"{key} = {error.instance!r} {_fault(error)}" + (f" ({about})" if about else "")


def resolve(node: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of `schema` with all that its $ref names; what stands beside the $ref is narrower, or says more."""
    if "$ref" not in node:
        return dict(node)
    named = resolve(schema["$defs"][node["$ref"].split("/")[-1]], schema)
    beside = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
    properties = {**named.get("properties", {}), **beside.get("properties", {})}
    return {**named, **beside, **({"properties": properties} if properties else {})}


def below(node: Mapping[str, Any], key: str | int, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What `schema` says of a key of the mapping, or of an item of the list, that its resolved part `node` is about."""
    part = node["items"] if isinstance(key, int) else node["properties"].get(key) if "properties" in node else None
    return resolve(node["additionalProperties"] if part is None else part, schema)


def _below_a_name(schema: Mapping[str, Any], path: Iterable[str | int]) -> bool:
    """Whether the key at `path` is below a name that the user gave, or in a list: those have no defaults."""
    node = dict(schema)
    for key in path:
        if isinstance(key, int) or key not in node.get("properties", {}):
            return True
        node = below(node, key, schema)
    return False


def _misspelt(error: Fault, config: Config) -> str:
    """A question, where the name that the user gave to something incomplete is close to another one beside it."""
    *path, name = error.absolute_path
    beside: Any = config
    for key in path:
        beside = beside[key]
    others = [other for other in beside if other != name] if isinstance(beside, Mapping) else []
    near = get_close_matches(str(name), others, n=1)
    return f", or did you mean {near[0]!r}?" if near else ""


def _description(schema: Mapping[str, Any], path: Iterable[str | int]) -> str:
    """What the schema says of the key at `path`; of an item of a list that it says nothing of, what of the list."""
    node, description = dict(schema), ""
    for key in path:
        node = below(node, key, schema)
        description = node.get("description", description if isinstance(key, int) else "")
    return description


def _unknown_key(key: str, error: Fault, schema: Mapping[str, Any]) -> str:
    known = error.schema["properties"]
    unknown = next(name for name in error.instance if name not in known)
    near = get_close_matches(str(unknown), known, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"
    if homes := [name for name, part in known.items() if unknown in resolve(part, schema).get("properties", {})]:
        remedy = f"it stands below {' and '.join(homes)}: {homes[0]}='{{{unknown}: {error.instance[unknown]}}}'"
    if ":" in str(unknown):
        remedy = "write a blank after the colon"
    elif str(unknown).partition(" ")[0] in known and " " in str(unknown):
        remedy = f"write a colon after {str(unknown).partition(' ')[0]!r}"
    if other := error.schema.get("elsewhere", {}).get(unknown):
        remedy = f"that is {other}"
    return f"{_join(key, unknown)} = {error.instance[unknown]!r} is not a key of the configuration; {remedy}"


def _join(*parts: object) -> str:
    return ".".join(str(part) for part in parts if part != "")


def _names(schema: Mapping[str, Any]) -> str:
    """The first names that a mapping may have, each with a value to be filled in."""
    known = list(schema.get("properties", {}))
    return ", ".join([*(f"{name}: value" for name in known[:3] or ["name"]), *(["..."] if known[3:] else [])])


def _fault(error: Fault) -> str:
    limit = error.validator_value
    match error.validator:
        case "type":
            wanted = {
                "object": f"names with values, as in {{{_names(error.schema)}}}",
                "array": "a list",
                "integer": "a whole number",
                "number": "a finite number",
            }
            cut = limit == "object" and isinstance(error.instance, str) and error.instance.startswith("{")
            # without quotes the shell splits it
            quotes = " (close every bracket, and put all of it in quotes)" if cut else ""
            return f"is of the wrong type; give {wanted.get(limit, f'a {limit}')}{quotes}"
        case "enum":
            return f"is not known; use one of {', '.join(map(str, limit))}"
        case "minimum":
            return f"is too small; give at least {limit}"
        case "maximum":
            return f"is too large; give at most {limit}"
        case "exclusiveMinimum":
            return f"is too small; give more than {limit}"
        case "exclusiveMaximum":
            return f"is too large; give less than {limit}"
        case "minItems" | "minProperties":
            return f"is empty; give at least {limit}"
        case "uniqueItems":
            return "names something twice; name each once"
        case "pattern":
            return f"is not a name; use {error.schema['title']}"
        case "anyOf":
            return "is not allowed"
        case _:
            return f"is not allowed ({error.message})"
