"""This module names the released models, their data sets, and the ways to read the released numbers."""

from typing import Literal, NamedTuple

Rule = Literal["released", "faithful", "doubled"]  # as the authors' configurations have it; as models do; twice that
Content = Literal["released", "faithful", "none"]


class ReleasedModel(NamedTuple):
    """What is known of a model beside its schedules."""

    layers: int
    heads: int
    head_dim: int
    family: str  # of `position_card.models.families`, whose code applies ALiBi
    configured_as: str  # in the authors' repository
    printed_as: str  # in the paper's tables

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Say by which slopes its rows of the tables are judged: `doubled` for Falcon alone.

        The eager attention of Falcon in transformers 4.57.3, which the authors' code is locked to, adds ALiBi twice.
        """
        return RULES if self.family == "falcon" else RULES[:2]


class ReleasedVariant(NamedTuple):
    """A rollout variant of Section 6.2, with the slopes and the content that it takes."""

    variant: Literal["a", "b", "c"]
    slopes: Rule
    content: Content

    @property
    def name(self) -> str:
        """Return the name that files have: c.released.faithful."""
        return ".".join(self)


MODELS = {
    "falcon-rw-7b": ReleasedModel(36, 64, 64, "falcon", "falcon-rw-7b", "falcon-rw-7b"),
    "mpt-7b": ReleasedModel(32, 32, 128, "mpt", "mpt-7b", "mpt-7b"),
    "mpt-30b": ReleasedModel(48, 64, 112, "mpt", "mpt-30b", "mpt-30b"),
    "bloom-7b1": ReleasedModel(30, 32, 128, "bloom", "bloom-7b1", "bloom-7b"),
    "bloom-176b": ReleasedModel(70, 112, 128, "bloom", "bloom", "bloom-176b"),
}
DATASETS = {"fineweb-edu": "fineweb-edu", "dclm": "dclm-baseline", "wikipedia": "wikipedia"}  # ours -> as printed
TREND = "spearman with depth"  # of lambda: the name of this statistic
PRIMARY = "fineweb-edu"  # of Table 2 and of figures that show one

RULES: tuple[Rule, ...] = ("released", "faithful", "doubled")
CONTENTS: tuple[Content, ...] = ("released", "faithful")
VARIANTS = (
    *(ReleasedVariant(variant, slopes, "none") for variant in ("a", "b") for slopes in RULES),
    *(ReleasedVariant("c", slopes, content) for slopes in RULES for content in CONTENTS),
)
DRAWN_MODEL = "bloom-176b"  # the one model whose measured influence the authors drew
OF_DRAWN = tuple(variant for variant in VARIANTS if variant.slopes in MODELS[DRAWN_MODEL].rules)
ALONG_LENGTHS = (  # variants whose profiles are followed to great lengths
    ReleasedVariant("b", "released", "none"),
    ReleasedVariant("b", "faithful", "none"),
    ReleasedVariant("c", "released", "released"),
    ReleasedVariant("c", "faithful", "faithful"),
)
