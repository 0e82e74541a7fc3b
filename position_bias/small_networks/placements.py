"""The names of norms, and of the places where a block can have them; free of torch, since settings read them."""

from typing import Literal

Norm = Literal["rms", "layer"]
Placement = Literal["none", "pre", "post", "peri", "peri-init"]
