"""This module plans and carries out the measurements of a card: prompts of every length pass through one decoder.

The same steps measure a model in memory and one that the command opens.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import transformers
from transformers import PreTrainedModel

from position_card.card import texts
from position_card.card.measurements import Measurements, RecallResult, ReplacementEffects
from position_card.card.subject import Subject
from position_card.card.target import find_target
from position_card.core import provenance
from position_card.core.runtime import InputError, announce, seed
from position_card.measures import recall, replacement
from position_card.measures.cost import BYTES, LARGE, PROCESS, PassCost, operations_per_second, require_room
from position_card.measures.measure import Quantities, measure_decoder
from position_card.measures.passes import Resumption
from position_card.models import opening
from position_card.models.tokens import TokenIds
from position_card.probe.measurable import measurable
from position_card.rollout.passages import WORDS, places

EVERY = 8  # prompts, after which a measurement is kept
REPLACED = RECALLED = 16  # prompts whose tokens are replaced, contexts of recall, where nothing else is asked for
CUE = 3  # words that are repeated
LONG = 256  # tokens: where longer prompts are asked for, contexts are as long as the longest of them
FORWARD = 4  # times as many tokens as else pass at once where nothing is kept for a backward pass
FEWEST_PLACES = 8  # of a context that recall is measured in: each eighth has one


@dataclass(frozen=True)
class Options:
    """How many prompts a card is measured on, of which lengths, and how."""

    lengths: tuple[int, ...] = (64, 256)  # tokens of the prompts, as far as the model goes and as the text has enough
    prompts: int = 64  # of each length, or as many as the text has
    replaced: int | None = None  # of the longest, whose tokens are replaced; None: REPLACED up to LARGE parameters
    tokens_per_batch: int = 0  # that pass through the model at once; 0: as many as there is room for
    activation_checkpointing: bool = False
    target: str = "p"  # what influence is the gradient of: a key of TARGETS, or a token
    seed: int = 0  # of the prompts and the tokens that replace others
    recalled: int | None = None  # contexts in which repeated passages are looked for; None: RECALLED up to LARGE

    def __post_init__(self) -> None:
        """Raise InputError for numbers that no card can be measured with."""
        whole = [("lengths", n, opening.SHORTEST) for n in self.lengths] + [("prompts", self.prompts, texts.LEAST)]
        whole += [(name, getattr(self, name) or 0, 0) for name in ("replaced", "recalled", "tokens_per_batch", "seed")]
        for name, value, least in whole:
            if not isinstance(value, int) or value < least:
                raise InputError(f"{name} is {value!r}; give a whole number of at least {least}")


@dataclass(frozen=True)
class Contexts:
    """The contexts that recall is measured in."""

    words: TokenIds  # [V] that the contexts are drawn from
    token_ids: TokenIds  # [C, n + CUE], with a cue of other words behind each

    @property
    def n(self) -> int:
        """How many tokens a context has."""
        return self.token_ids.shape[1] - CUE


@dataclass(frozen=True)
class CardPlan:
    """What a card will measure, known before any weight is read."""

    subject: Subject
    options: Options
    prompts: Mapping[int, texts.PromptSet]  # by length
    at_once: Mapping[int, int]  # tokens, by length
    target: str | int  # what influence is the gradient of, a token by its id
    replaced: int  # prompts of the longest length
    contexts: Contexts | None  # of recall
    facts: Mapping[str, Any]  # what the card says of all this

    @property
    def bytes(self) -> float | None:
        """About how many bytes of memory the measurement takes; None where a pass cannot be counted."""
        size, precision = self.subject.size, self.subject.precision
        recomputed = self.options.activation_checkpointing
        needed = [size.memory(n, self.at_once[n], precision, recomputed=recomputed) for n in self.prompts]
        counted = [memory for memory in needed if memory is not None]
        logits = 2 * max(self.prompts) * size.vocabulary  # of all tokens of a prompt, twice
        losses = PROCESS + (size.parameters + logits) * BYTES[precision]
        if BYTES[precision] < BYTES["float32"] and (self.replaced or self.contexts):  # which widen weights
            cost = size.pass_cost(max(self.prompts), precision, recomputed=recomputed)
            losses += BYTES["float32"] * cost.largest if cost else 0
        return max(*counted, losses) if len(counted) == len(needed) else None

    def seconds(self) -> float | None:
        """Return about how many seconds the measurement takes, from the time of a matrix product on this device.

        None where a pass cannot be counted.
        """
        size, precision = self.subject.size, self.subject.precision
        recomputed = self.options.activation_checkpointing
        costs: dict[int, PassCost] = {}
        for n in self.prompts:
            if (cost := size.pass_cost(n, precision, recomputed=recomputed)) is None:
                return None
            costs[n] = cost
        passes: float = sum(costs[n].operations * len(prompt_set.tokens) for n, prompt_set in self.prompts.items())
        n = max(self.prompts)
        forward = costs[n].operations / n / (3 if recomputed or costs[n].streamed else 2)  # operations a token, about
        passes += forward * sum(len(prompt_set.tokens) * n for n, prompt_set in self.prompts.items())  # all losses
        again = self.replaced * sum(n - position for position in replacement.chosen_positions(n))
        if contexts := self.contexts:
            again += len(contexts.token_ids) * (contexts.n + CUE * (1 + len(places(contexts.n, CUE))))
        device = self.subject.device
        in_float32 = forward * again / operations_per_second(device, "float32") if again else 0.0
        return passes / operations_per_second(device, precision) + in_float32

    def announce(self) -> None:
        """Tell the user, before the work, how much memory and time it takes."""
        lengths = " and ".join(
            f"{len(prompt_set.tokens)} prompts of {n} tokens" for n, prompt_set in self.prompts.items()
        )
        self.subject.announce(lengths, self.bytes, self.seconds())


def plan_card(subject: Subject, documents: Iterable[str], options: Options, text_name: str, origin: str) -> CardPlan:
    """Draw prompts from documents, and choose batches that fit a model of this size.

    The card calls the text `text_name`, and says that it comes from `origin`.

    Raises InputError where the model takes too few tokens, or the text has too few prompts.
    """
    name, config, tokenizer, size = subject.name, subject.config, subject.tokenizer, subject.size
    fitting = opening.lengths(config, options.lengths)
    for n in sorted(set(options.lengths) - set(fitting)):
        announce(f"{name}: the model takes {max(fitting)} tokens, so prompts of {n} are cut to that")
    documents = list(texts.first_characters(texts.CHARACTERS, documents))
    target, target_in_words = find_target(options.target, tokenizer)
    prompts = texts.draw_prompts(documents, tokenizer, subject.before, fitting, options.prompts, options.seed)
    recomputed = options.activation_checkpointing
    at_once = {
        n: options.tokens_per_batch or size.batch(n, subject.precision, subject.device, recomputed=recomputed)
        for n in prompts
    }
    small = size.parameters <= LARGE
    replaced = REPLACED * small if options.replaced is None else options.replaced
    recalled = RECALLED * small if options.recalled is None else options.recalled
    n = max(prompts) if max(prompts) > LONG else WORDS
    contexts, why_not = _contexts(subject, recalled, n, documents, options.seed)
    if why_not:
        announce(f"{name} is measured without recall: {why_not}")
    quantisation, coarse = subject.quantisation, BYTES[subject.precision] < BYTES["float32"]
    facts = {
        "model": {
            "type": config.model_type,
            "untrained": subject.untrained,
            "weights": f"{quantisation} of a GGUF file, unpacked to {subject.precision}" if quantisation else None,
            **size.facts,
        },
        "read": {"documents": len(documents), "sha256": texts.documents_digest(documents)},
        "prompts": {str(n): prompt_set.facts() for n, prompt_set in prompts.items()},
        "target": target_in_words,
        "tokenizer": subject.tokenizer_note,
        "before": [tokenizer.id_to_token(token) for token in subject.before],
        "asked": list(options.lengths),
        "longest": opening.longest(config),
        "without recall": why_not,
        "precision": subject.precision,
        "in float32": ["replacement"] * coarse * bool(replaced) + ["recall"] * coarse * bool(contexts),
        "device": subject.device,
        "tokens_per_batch": {str(n): tokens for n, tokens in at_once.items()},
        "versions": provenance.versions(),
        "name": name,
        "text": text_name,
        "sources": {"model": subject.origin, "text": origin},
    }
    return CardPlan(subject, options, prompts, at_once, target, min(replaced, options.prompts), contexts, facts)


def _contexts(
    subject: Subject, count: int, n: int, documents: list[str], sample_seed: int
) -> tuple[Contexts | None, str | None]:
    """Draw so many contexts of the commonest words of a text for a model; or say why not.

    They have n tokens, or as many as leave room for what stands before them and for the cue.
    """
    if not count:
        return None, None
    longest = opening.longest(subject.config)
    n = n if longest is None else min(n, longest - len(subject.before) - CUE)
    if n < CUE + FEWEST_PLACES:
        return None, f"the model takes {longest} tokens, and a context of so few has too few places"
    try:
        words = recall.common_words(documents, subject.tokenizer, n, CUE)
        prose = recall.prose(documents, subject.tokenizer, n)
    except InputError as error:
        return None, str(error)
    token_ids = recall.random_contexts(words, n, count, CUE, seed(sample_seed, "card", "recall"), prose)
    return Contexts(words, token_ids), None


def open_and_measure_card(plan: CardPlan, place: Path, folder: Path, every: int, run: object) -> Measurements:
    """Open the model at the place of a plan, and measure it as `measure_card` does.

    Raises InputError where there is too little memory, before weights are read.
    """
    subject, recomputed = plan.subject, plan.options.activation_checkpointing
    require_room(subject.name, plan.bytes, subject.placed, recomputed=recomputed, precision=subject.precision)
    with measurable(subject.opened(place, plan.options.seed, folder)) as decoder:
        return measure_card(plan, decoder, folder, every, [run, subject.untrained, subject.placed])


def measure_card(
    plan: CardPlan, model: PreTrainedModel, folder: Path | None = None, every: int = EVERY, run: object = None
) -> Measurements:
    """Measure an open `model` as planned.

    With a `folder`, what every so many prompts have shown is kept there, and a killed measurement of the same `run`
    goes on from it. Raises InputError as `measure_decoder` does.
    """
    token_ids = [prompt_set.tokens for prompt_set in plan.prompts.values()]
    token_ids += [plan.contexts.token_ids] if plan.contexts else []
    for tokens in token_ids:
        opening.require_known_tokens(tokens, model, plan.subject.name)
    settings = [run, vars(plan.options), plan.subject.precision, transformers.__version__]

    def resumption(name: str, n: int, every: int) -> Resumption | None:
        return Resumption(folder / f"{name}.safetensors", [*settings, n], every) if folder else None

    lengths = {
        n: measure_decoder(
            model,
            prompt_set.tokens,
            plan.at_once[n],
            documents=prompt_set.documents,
            quantities=Quantities(target=plan.target, losses_from=max(1, len(plan.subject.before))),
            activation_checkpointing=plan.options.activation_checkpointing,
            resumption=resumption(f"n{n}", n, every),
            section=None,
        )
        for n, prompt_set in plan.prompts.items()
    }
    longest = max(lengths)
    effects = _replacement_effects(plan, model, longest) if plan.replaced else None
    recall_result = None
    if contexts := plan.contexts:
        scores = recall.measure_recall(
            model,
            contexts.token_ids,
            contexts.words,
            CUE,
            FORWARD * plan.at_once[longest],
            before=plan.subject.before,
            resumption=resumption("recalled", contexts.n, 1),
            section=None,
        )
        recall_result = RecallResult(contexts.n, CUE, len(contexts.words), scores)
    return Measurements(lengths, {**plan.facts, "bytes": plan.bytes}, effects, recall_result)


def _replacement_effects(plan: CardPlan, model: PreTrainedModel, n: int) -> ReplacementEffects:
    """Replace the first token, that of the text where another stands before it, some in the middle, and the last."""
    prompts = plan.prompts[n].tokens[: plan.replaced]
    positions = replacement.chosen_positions(n, len(plan.subject.before))
    windows = [slice(position, position + 1) for position in positions]
    others = replacement.donors(prompts, 1, seed(plan.options.seed, "card", "replaced", n))
    effects = replacement.responses(model, prompts, windows, others, [1.0], plan.at_once[n]).total_variation[..., 0, 0]
    return ReplacementEffects(n, tuple(positions), effects)
