"""What a section of the configuration may hold stands where it is used: in the annotations of a dataclass.

    tokens: Annotated[int, Bounds(9, 1024), "tokens of a sequence; recency needs 9"]

The text is the meaning of the key; messages and docs/configuration.md show it. What values of one section must be to
each other is said by `__post_init__`, whose ValueError begins with the key: `warmup = 60 leaves no step after it; ...`.
`workflow.configuration` checks a configuration with pydantic, which calls the methods below. This module imports
nothing itself, since jobs import modules that have sections, and have no pydantic.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args

CoreSchema = dict[str, Any]  # of pydantic
Section = TypeVar("Section")


@dataclass_transform(frozen_default=True)
def section(cls: type[Section]) -> type[Section]:
    """Make a class a frozen dataclass that is a section of the configuration: its fields are its keys, all needed."""
    cls.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    cls.__get_pydantic_core_schema__ = classmethod(_without_defaults)  # type: ignore[attr-defined]
    return dataclass(frozen=True)(cls)


@dataclass(frozen=True)
class Bounds:
    """Of a number, which is finite. 300.0 is no whole number, since it would name other files than 300."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    multiple: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        """Return the schema of a number with these bounds, without conversion of other types: pydantic asks for it."""
        bounds = {"ge": self.least, "le": self.most, "gt": self.above, "lt": self.below, "multiple_of": self.multiple}
        schema_bounds = {name: bound for name, bound in bounds.items() if bound is not None}
        schema = {**handler(source), "strict": True, **schema_bounds}
        return {**schema, "allow_inf_nan": False} if schema["type"] == "float" else schema


@dataclass(frozen=True)
class Words:
    """Of a text: the pattern that it fits, and in words, what that asks for."""

    pattern: str = "."
    form: str = "text"

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        """Return the schema of a text of this pattern: pydantic asks for it."""
        return {**handler(source), "pattern": self.pattern}


@dataclass(frozen=True)
class Items:
    """Of a list, each of whose items is different, or of a mapping: how many there are at least."""

    least: int = 0

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        """Return the schema of a list or mapping of that many different items, or more: pydantic asks for it."""
        schema = {**handler(source), "min_length": self.least}
        return {"type": "function-after", "schema": schema, "function": {"type": "no-info", "function": _different}}


@dataclass(frozen=True)
class Keys:
    """Of a mapping whose keys cannot be fields, as pre-norm, or may be left out: the meaning of each key."""

    meanings: Mapping[str, str]
    required: bool = True

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        value = handler.generate_schema(get_args(source)[1])
        field = {"type": "typed-dict-field", "schema": value, "required": self.required}
        return {"type": "typed-dict", "fields": dict.fromkeys(self.meanings, field), "extra_behavior": "forbid"}


def _without_defaults(_cls: type, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
    """Defaults of a dataclass are for calls; the configuration has those of config.yaml."""
    schema = handler(source)
    for field in schema["schema"]["fields"]:
        if field["schema"]["type"] == "default":
            field["schema"] = field["schema"]["schema"]
    return schema


def _different(items: Any) -> Any:
    """Return the items. Raises ValueError where two are equal."""
    if len(set(items)) < len(items):
        raise ValueError("names something twice; name each once")
    return items


Name = Annotated[str, Words("^[a-z0-9][a-z0-9.-]*$", "lower-case letters, digits, dots and dashes")]
Names = Annotated[list[Name], Items(1)]
Text = Annotated[str, Words()]
Saving = Annotated[bool, Bounds(), "keep only the residual stream between layers: less memory, a third more work"]
Count = Annotated[int, Bounds(1, 1_000_000_000)]
Small = Annotated[int, Bounds(1, 100_000)]
Seeds = Annotated[int, Bounds(1, 1000), "how many seeds"]
Seed = Annotated[int, Bounds(0, 4_294_967_295)]
Share = Annotated[float, Bounds(above=0, below=1)]
Level = Annotated[Share, "coverage of the intervals"]
Rate = Annotated[float, Bounds(above=0, most=10), "learning rate of AdamW"]
Rates = Annotated[list[Rate], Items(1), "learning rates that are compared"]
Decay = Annotated[float, Bounds(0, 1), "decoupled weight decay of every parameter"]
