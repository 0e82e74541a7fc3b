"""What a configuration can ask of `released`."""

from typing import Annotated

from position_bias.workflow.section import Bounds, Items, Text, Words, section

Sha256 = Annotated[str, Words("^[0-9a-f]{64}$", "64 hexadecimal digits")]
Lengths = Annotated[
    list[Annotated[int, Bounds(2, 16_777_216)]], Items(1), "tokens of the profiles that released numbers predict"
]


@section
class Released:
    """The five big models of Herasimchyk et al. 2026, from numbers that its authors released."""

    source: Annotated[Text | None, "where the released numbers are, a directory or the https address of an archive"]
    sha256: Annotated[Sha256 | None, "SHA-256 of the files with the released numbers; null is for a directory alone"]
    lengths: Lengths
    sampled_lengths: Annotated[Lengths, "tokens of the profiles that are sampled along a few places"]
