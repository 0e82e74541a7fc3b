"""The part of a prompt that its ends are compared with."""


def middle_half(n: int) -> slice:
    """The middle half of n positions: what stays where the first and the last quarter are left out."""
    return slice(n // 4, n - n // 4)
