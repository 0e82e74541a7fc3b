"""What configurations say of small networks: their size, their norms, the seeds of sweeps. It imports no torch."""

from typing import Annotated, Literal

from position_bias.workflow.section import Small, section
from position_card.rollout.attention import uneven_heads

Norm = Literal["rms", "layer"]
Placement = Literal["none", "pre", "post", "peri", "peri-init"]  # of the norms of a block

SWEPT_FROM = 1000  # first seed of the sweeps that choose settings; those of figures and tables are smaller


@section
class NetworkSize:
    """The size of a small decoder; hidden = 0 is attention only, which no configuration asks for."""

    layers: Annotated[Small, "layers of attention and MLP"]
    width: Annotated[Small, "coordinates of a token; its heads divide it"]
    heads: Annotated[Small, "heads of attention in a layer"]
    hidden: Annotated[Small, "units of an MLP"]

    def __post_init__(self) -> None:
        """Raise ValueError where the heads do not divide the width."""
        if fault := uneven_heads("width", self.width, self.heads):
            raise ValueError(fault)


def seeds_of_sweep(count: int) -> range:
    """Return the seeds of a sweep, which no other training has."""
    return range(SWEPT_FROM, SWEPT_FROM + count)
