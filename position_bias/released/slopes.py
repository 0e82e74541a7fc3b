"""This module gives effective ALiBi slopes of the released models, by either rule.

It alone of its wing needs transformers, which takes seconds to import.
"""

from position_bias.released.models import ReleasedModel, Rule
from position_bias.released.schedules import released_slopes
from position_card.models.families import FAMILIES
from position_card.rollout.attention import Array


def slopes_of(model: ReleasedModel) -> dict[Rule, Array]:
    """Return slopes [heads] by rule: `released` as the authors configured them, `faithful` as the model applies them.

    `doubled` is twice `faithful`: what a model sees where ALiBi is added twice (`Model.rules`).

    The rules agree for MPT and for bloom-7b1. BLOOM interleaves two series where the heads are no power of two; Falcon
    rounds to bfloat16 and divides by sqrt(head_dim).
    """
    faithful = FAMILIES[model.family].slopes(model.heads, model.head_dim)
    return {"released": released_slopes(model.heads), "faithful": faithful, "doubled": 2 * faithful}
