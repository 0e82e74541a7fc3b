"""The placements of norms that are trained, and which part of the configuration has a task; free of torch.

It stands apart from the settings, so that another bound there trains nothing again.
"""

from position_bias.small_networks.settings import Placement

SCHEMES: dict[str, tuple[Placement, bool]] = {  # placement of RMSNorm, and whether one stands before the read-out
    "none": ("none", False),
    "pre": ("pre", False),
    "pre-final": ("pre", True),
    "post": ("post", False),
    "peri": ("peri", False),
    "peri-init": ("peri-init", False),
}
MINIMAL, LANGUAGE = "set_complement", "languages"  # the parts of the configuration that name tasks


def part_of(task: str) -> str:
    """Return the part of the configuration that a task stands in."""
    return MINIMAL if task.startswith("set-complement") else LANGUAGE
