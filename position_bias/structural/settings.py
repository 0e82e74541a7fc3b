"""What a configuration can ask of `structural`."""

from typing import Annotated

from position_bias.running.section import Bounds, Level, Names, section


@section
class Structural:
    """Herasimchyk et al. 2026: content, mixing and positional bias of language models."""

    fig1: Annotated[Names, "the models of Figure 1, if they are measured; Figure 2 shows the others"]


@section
class Rollout:
    """Predictions from what was measured, and their intervals."""

    bootstrap: Annotated[int, Bounds(20, 100_000), "resamples of the prompts behind every interval"]
    level: Level
