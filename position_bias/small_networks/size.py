"""The size of a small decoder; free of torch, since settings read it."""

from typing import Annotated

from position_bias.attention import uneven_heads
from position_bias.running.section import Small, section


@section
class Size:
    """The size of a small decoder; hidden = 0 is attention only, which no configuration asks for."""

    layers: Annotated[Small, "layers of attention and MLP"]
    width: Annotated[Small, "coordinates of a token; its heads divide it"]
    heads: Annotated[Small, "heads of attention in a layer"]
    hidden: Annotated[Small, "units of an MLP"]

    def __post_init__(self) -> None:
        if fault := uneven_heads("width", self.width, self.heads):
            raise ValueError(fault)
