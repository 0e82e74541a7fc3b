"""What a file of changes to single tokens holds: names of its tensors, for who writes them and for who reads them."""

REPLACED, DELETED = "replacement", "deletion"
STEPS = {"step of 2 %": 0.02, "step of 20 %": 0.2}  # of the way from one embedding to another
OTHER_FIRST, MOVED = "influence with another first token", "influence with the first token moved"
LAYERS = "influence by layer"


def moved_to(n: int) -> int:
    """Where the first token goes, in the middle of a prompt of n tokens."""
    return n // 2
