"""What measuring takes, known before any weight is read: memory, and time on this machine, of each measure of a card.

Times are those of the pass that will run, from the time of a matrix product on this device.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from position_card.card.sentences import recall_material
from position_card.card.subject import Subject
from position_card.core.runtime import log, out_of_memory
from position_card.core.wording import enumeration
from position_card.measures import replacement
from position_card.measures.cost import (
    BYTES,
    Counting,
    DecoderSize,
    cost_in_words,
    operations_per_second,
    without_values,
)
from position_card.measures.measure import loss_positions
from position_card.measures.recall import PACKED, Way, way_by_shapes
from position_card.texts.prompts import PromptSet

LAYOUT = 1.4  # passes that finding the layout takes, once a length
TRIAL: Mapping[Way, int] = {"packed": 1, "apart": 2, "anew": 3}  # more times that the first context of recall is read
PAIRS = 2  # of questions apart that are tried
WAYS: Mapping[Way, str] = {
    "packed": "",
    "apart": "; questions pass few at a time, since the model cannot go on from what it keeps of a context with all",
    "anew": "; contexts are read again for every question, since the model cannot go on from what it keeps of them",
}
WIDENED = 1.5  # times as long takes a pass of few tokens that brings weights of 16 bits to float32 on its way


@dataclass(frozen=True)
class Cost:
    """What one measure takes, and what it is measured on."""

    material: str  # in words: how many prompts or contexts, how long, of what
    bytes: float | None  # of memory; None where a pass cannot be counted
    seconds: float | None

    def __str__(self) -> str:
        """Say all three."""
        return f"{self.material}; {cost_in_words(self.bytes, self.seconds)}"


def cost_of_gradients(
    subject: Subject, prompts: Mapping[int, PromptSet], at_once: Mapping[int, int], text: str, *, recomputed: bool
) -> Cost:
    """Return what influence, lambda and attention of all prompts take, and their losses, with so many tokens at once.

    Both mappings are by the length of the prompts.
    """
    size, precision = subject.size, subject.precision
    counts = {n: len(prompt_set.tokens) for n, prompt_set in prompts.items()}
    material = enumeration([f"{count} prompts of {n:,} tokens" for n, count in counts.items()]) + f" of {text}"
    head = 2 * size.width * size.vocabulary  # operations of a token whose loss is measured
    operations, memories = 0.0, []
    for n, count in counts.items():
        cost = size.pass_cost(n, precision, recomputed=recomputed)
        memory = size.memory(n, at_once[n], precision, recomputed=recomputed)
        if cost is None or memory is None:
            return Cost(material, None, None)
        memories.append(memory)
        losses = len(loss_positions(n, max(1, len(subject.before))))
        operations += (count + LAYOUT) * cost.operations + count * losses * head
    return Cost(material, max(memories), operations / operations_per_second(subject.device, precision))


def cost_of_replacement(subject: Subject, count: int, n: int, text: str, at_once: int) -> Cost:
    """Return what predictions take after so many prompts of n tokens, as they are and with other tokens.

    So many tokens pass `at_once`.
    """
    positions = replacement.chosen_positions(n, len(subject.before))
    read = n + sum(n - position for position in positions)
    return _cost_of_predictions(subject, f"{count} prompts of {n:,} tokens of {text}", count * read, n, at_once)


def cost_of_recall(subject: Subject, count: int, n: int, questions: int, cue: int, way: Way, at_once: int) -> Cost:
    """Return what predictions take after so many contexts of n tokens, with so many questions about each.

    A question has `cue` tokens. A context passes once, or with every question ("anew"). Of questions that pass apart,
    so many `at_once` have a pass of their own, which reads all weights for few tokens.
    """
    material = f"{count} contexts of {recall_material(n)}{WAYS[way]}"
    read = n * questions if way == "anew" else n
    passes = count * math.ceil(questions / at_once) + PAIRS if way == "apart" else 0
    refused = 0 if way == "packed" else questions * cue  # which the first context was asked in a row
    tokens = TRIAL[way] * n + refused + count * (read + questions * cue)
    return _cost_of_predictions(subject, material, tokens, n, PACKED if way == "packed" else at_once * n, passes)


@lru_cache(maxsize=64)
def expected_way(size: DecoderSize, n: int, cue: int, before: int) -> Way:
    """Return the way in which recall in contexts of n tokens will be asked for, as far as it is known without values.

    It is `way_by_shapes`, or the cheapest one where an operation needs values.
    """
    model = without_values(size.config, "float32")
    try:
        with Counting(model):
            way = way_by_shapes(model, n, cue, before)
    except Exception as error:  # of whichever operation needs the values that are not there
        if out_of_memory(error):
            raise
        log.info("how recall is asked of this %r model is not known before (%r)", size.config.model_type, error)
        return "packed"
    return way


def _cost_of_predictions(
    subject: Subject, material: str, tokens: int, n: int, at_once: int, short_passes: int = 0
) -> Cost:
    """So many tokens in prompts of n of them, in float32, whatever the weights are, without a backward pass.

    So many tokens pass `at_once`, but at least one prompt. What `short_passes` read of their few tokens is less than
    the weights.
    """
    size, precision = subject.size, subject.precision
    cost, memory = size.forward_cost(n, precision), size.memory_of_predictions(n, at_once, precision)
    if cost is None or memory is None:
        return Cost(material, None, None)
    coarse = BYTES[precision] < BYTES["float32"]
    widened = BYTES["float32"] * cost.widened if coarse else 0
    seconds = tokens * cost.operations / n / operations_per_second(subject.device, "float32")
    if short_passes:
        reading = 2 * size.parameters / operations_per_second(subject.device, "float32", single_token=True)
        seconds += short_passes * reading * (WIDENED if coarse else 1)
    return Cost(material, memory + widened, seconds)
