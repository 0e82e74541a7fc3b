"""What measuring takes, known before any weight is read: memory, and time on this machine, of each measure of a card.

Times are those of the pass that will run, from the time of a matrix product on this device.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from position_card.card.sentences import enumeration, recall_material
from position_card.card.subject import Subject
from position_card.measures import replacement
from position_card.measures.cost import BYTES, PROCESS, cost_in_words, operations_per_second
from position_card.texts.prompts import PromptSet

LAYOUT = 1.4  # passes that finding the layout takes, once a length
TRIAL = 3  # times that the first context of recall is read, to find the cheapest way to ask about it


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
    head = 2 * size.width * size.vocabulary  # operations of a token, which all tokens have for their loss
    operations, memories = 0.0, []
    for n, count in counts.items():
        cost = size.pass_cost(n, precision, recomputed=recomputed)
        memory = size.memory(n, at_once[n], precision, recomputed=recomputed)
        if cost is None or memory is None:
            return Cost(material, None, None)
        memories.append(memory)
        operations += (count + LAYOUT) * cost.operations + count * n * head
    return Cost(material, max(memories), operations / operations_per_second(subject.device, precision))


def cost_of_replacement(subject: Subject, count: int, n: int, text: str) -> Cost:
    """Return what predictions take after so many prompts of n tokens, as they are and with other tokens."""
    positions = replacement.chosen_positions(n, len(subject.before))
    read = n + sum(n - position for position in positions)
    return _cost_of_predictions(subject, f"{count} prompts of {n:,} tokens of {text}", count * read, n)


def cost_of_recall(subject: Subject, count: int, n: int, questions: int, cue: int, *, anew: bool = False) -> Cost:
    """Return what predictions take after so many contexts of n tokens, with so many questions about each.

    A question has `cue` tokens. A context passes once, or with every question where no cache serves it (`anew`).
    """
    material = f"{count} contexts of {recall_material(n)}"
    read = n * questions if anew else n
    return _cost_of_predictions(subject, material, TRIAL * n + count * (read + questions * cue), n)


def _cost_of_predictions(subject: Subject, material: str, tokens: int, n: int) -> Cost:
    """So many tokens in prompts of n of them, in float32, whatever the weights are, without a backward pass."""
    size, precision = subject.size, subject.precision
    if (cost := size.pass_cost(n, precision, recomputed=True)) is None:
        return Cost(material, None, None)
    widened = BYTES["float32"] * cost.largest if BYTES[precision] < BYTES["float32"] else 0
    memory = PROCESS + size.parameters * BYTES[precision] + widened + cost.peak
    seconds = tokens * _forward(subject, n) / operations_per_second(subject.device, "float32")
    return Cost(material, memory, seconds)


def _forward(subject: Subject, n: int) -> float:
    """Operations of a token in a prompt of n, forward: of all passes a backward pass takes as many, or recomputes."""
    cost = subject.size.pass_cost(n, subject.precision, recomputed=False)
    assert cost is not None
    return cost.operations / n / (3 if cost.streamed else 2)
