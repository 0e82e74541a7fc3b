"""This module plans and carries out the measurements of a card: prompts of every length pass through one decoder.

The same steps measure a model in memory and one that the command opens.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import transformers
from transformers import PreTrainedModel

from position_card.card import questions, texts
from position_card.card.costs import Cost, cost_of_gradients, cost_of_recall, cost_of_replacement, expected_way
from position_card.card.documents_measuring import (
    DocumentsOptions,
    DocumentsPlan,
    measure_planned_documents,
    plan_documents,
)
from position_card.card.measurements import FORMAT, Measurements, QuestionAnswers, RecallResult, ReplacementEffects
from position_card.card.profiles import QUESTIONS, RECALL, REPLACEMENT
from position_card.card.subject import Subject
from position_card.card.target import find_target
from position_card.core import provenance
from position_card.core.runtime import InputError, announce, seed
from position_card.measures import recall, replacement
from position_card.measures.cost import BYTES, duration, require_room
from position_card.measures.measure import MOST_LOSSES, Quantities, measure_decoder
from position_card.measures.passes import Resumption
from position_card.models import opening
from position_card.probe.measurable import measurable
from position_card.rollout.passages import WORDS
from position_card.texts.chat import ChatTemplate
from position_card.texts.prompts import LEAST, PromptSet, draw_prompts
from position_card.texts.records import read_records
from position_card.texts.tokens import TokenIds

GRADIENTS = "gradients"  # with lambda, attention and losses
INTERVAL = 8  # prompts, after which a measurement is kept
# How much is measured where nothing else is asked for
PROMPTS = 32  # of each length
REPLACEMENT_PROMPTS = 8  # of the longest, whose tokens are replaced
RECALL_CONTEXTS = 8  # in which passages are looked for
THOROUGH = {"prompts": 64, "replace": 16, "recall": 16}  # what a user may ask for in one word
LONGEST = 600.0  # announced seconds of replacement or recall, beyond which it is measured only where it is asked for
CUE = 3  # words that are repeated
LONG = 256  # tokens: where longer prompts are asked for, contexts are as long as the longest of them
FORWARD = 4  # times as many tokens as else pass at once where nothing is kept for a backward pass
FEWEST_PLACES = 8  # of a context that recall is measured in: each eighth has one


@dataclass(frozen=True)
class CardOptions:
    """How many prompts a card is measured on, of which lengths, and how."""

    lengths: tuple[int, ...] = (64, 256)  # tokens of the prompts, as far as the model goes and as the text has enough
    prompts: int = PROMPTS  # of each length, or as many as the text has
    replace: int | None = None  # of the longest, whose tokens are replaced; None: REPLACEMENT_PROMPTS, if that is quick
    recall: int | None = None  # contexts in which passages are looked for; None: RECALL_CONTEXTS, if that is quick
    questions: bool = True  # whether the built-in ones are asked
    plain: bool = False  # whether they leave the chat template aside
    tokens_per_batch: int = 0  # that pass through the model at once; 0: as many as there is room for
    activation_checkpointing: bool = False
    target: str = "p"  # what influence is the gradient of: a key of TARGETS, or a token
    seed: int = 0  # of the prompts and the tokens that replace others

    def __post_init__(self) -> None:
        """Raise InputError for numbers that no card can be measured with."""
        whole = [("lengths", n, opening.SHORTEST) for n in self.lengths] + [("prompts", self.prompts, LEAST)]
        whole += [(name, getattr(self, name) or 0, 0) for name in ("replace", "recall", "tokens_per_batch", "seed")]
        for name, value, least in whole:
            if not isinstance(value, int) or value < least:
                raise InputError(f"{name} is {value!r}; give a whole number of at least {least}")


@dataclass(frozen=True)
class Contexts:
    """The contexts that recall is measured in."""

    words: TokenIds  # [V] that the contexts are drawn from
    token_ids: TokenIds  # [C, n + CUE], with a cue of other words behind each
    at_once: int  # tokens that pass through the model, where contexts or what is kept of them pass with questions

    @property
    def n(self) -> int:
        """How many tokens a context has."""
        return self.token_ids.shape[1] - CUE

    def expected_way(self, subject: Subject) -> recall.Way:
        """How questions about them will be asked, as far as it is known before weights are read."""
        return expected_way(subject.size, self.n, CUE, len(subject.before))

    def cost(self, subject: Subject, way: recall.Way) -> Cost:
        """What recall takes in them, where questions are asked in this way."""
        at_once = recall.questions_at_once(self.at_once, self.token_ids.shape[1] + len(subject.before))
        questions = recall.question_count(self.n, CUE)
        return cost_of_recall(subject, len(self.token_ids), self.n, questions, CUE, way, at_once)


@dataclass(frozen=True)
class CardPlan:
    """What a card will measure, known before any weight is read."""

    subject: Subject
    options: CardOptions
    prompts: Mapping[int, PromptSet]  # by length
    at_once: Mapping[int, int]  # tokens, by length
    target: str | int  # what influence is the gradient of, a token by its id
    replacement_prompts: int  # of the longest length
    contexts: Contexts | None  # of recall
    questions: DocumentsPlan | None
    costs: Mapping[str, Cost]  # by measure
    omissions: Mapping[str, str]  # the measures that are left out, and why
    facts: Mapping[str, Any]  # what the card says of all this

    @property
    def bytes(self) -> float | None:
        """About how many bytes of memory the measurement takes; None where a pass cannot be counted."""
        memories = [cost.bytes for cost in self.costs.values() if cost.bytes is not None]
        return max(memories) if len(memories) == len(self.costs) else None

    def announce(self) -> None:
        """Tell the user, before the work, what is measured, what each part takes, and what is left out."""
        seconds = [cost.seconds for cost in self.costs.values() if cost.seconds is not None]
        self.subject.announce("it", self.bytes, sum(seconds) if len(seconds) == len(self.costs) else None)
        for measure, cost in self.costs.items():
            announce(f"- {measure}: {cost}")
        for measure, reason in self.omissions.items():
            announce(f"- without {measure}: {reason}")


def plan_card(
    subject: Subject,
    documents: Iterable[str],
    options: CardOptions,
    text_name: str,
    origin: str,
    template: Callable[[], ChatTemplate | None] = lambda: None,
) -> CardPlan:
    """Draw prompts from documents, and choose batches that fit a model of this size.

    The card calls the text `text_name`, and says that it comes from `origin`. Built-in questions are written by the
    `template`, which is looked for where they are asked.

    Raises InputError where the model takes too few tokens, or the text has too few prompts.
    """
    name, config, tokenizer, size = subject.name, subject.config, subject.tokenizer, subject.size
    fitting = opening.lengths(config, options.lengths)
    for n in sorted(set(options.lengths) - set(fitting)):
        announce(f"{name}: the model takes {max(fitting)} tokens, so prompts of {n} are cut to that")
    documents = list(texts.first_characters(texts.CHARACTERS, documents))
    target, target_in_words = find_target(options.target, tokenizer)
    prompts = draw_prompts(documents, tokenizer, subject.before, fitting, options.prompts, options.seed)
    recomputed = options.activation_checkpointing
    at_once = {
        n: options.tokens_per_batch or size.batch(n, subject.precision, subject.device, recomputed=recomputed)
        for n in prompts
    }
    costs, omissions = {}, {}
    asked_questions, why_none = _questions(subject, options, template)
    if asked_questions:
        costs[QUESTIONS] = asked_questions.cost
    else:
        omissions[QUESTIONS] = why_none
    costs[GRADIENTS] = cost_of_gradients(subject, prompts, at_once, text_name, recomputed=recomputed)
    longest = max(prompts)
    replacement_prompts = min(
        REPLACEMENT_PROMPTS if options.replace is None else options.replace, len(prompts[longest].tokens)
    )
    forward_at_once = FORWARD * at_once[longest]
    of_replacement = cost_of_replacement(subject, replacement_prompts, longest, text_name, forward_at_once)
    if not replacement_prompts:
        omissions[REPLACEMENT] = "0 prompts were asked for"
    elif options.replace is None and (too_long := _too_long(of_replacement)):
        omissions[REPLACEMENT] = f"{too_long}; ask for it (--replace {replacement_prompts})"
        replacement_prompts = 0
    else:
        costs[REPLACEMENT] = of_replacement
    n = longest if longest > LONG else WORDS
    contexts, why_not = _contexts(subject, options, n, documents, forward_at_once)
    if contexts:
        of_recall = contexts.cost(subject, contexts.expected_way(subject))
        if why_not := _why_no_slow_recall(options, of_recall):
            contexts = None
        else:
            costs[RECALL] = of_recall
    if not contexts:
        omissions[RECALL] = why_not
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
        "left out": omissions,
        "precision": subject.precision,
        "in float32": ["replacement"] * coarse * bool(replacement_prompts) + ["recall"] * coarse * bool(contexts),
        "device": subject.device,
        "tokens_per_batch": {str(n): tokens for n, tokens in at_once.items()},
        "versions": provenance.versions(),
        "name": name,
        "text": text_name,
        "sources": {"model": subject.origin, "text": origin},
    }
    measures = (replacement_prompts, contexts, asked_questions)
    return CardPlan(subject, options, prompts, at_once, target, *measures, costs, omissions, facts)


def _questions(
    subject: Subject, options: CardOptions, template: Callable[[], ChatTemplate | None]
) -> tuple[DocumentsPlan | None, str]:
    """Plan the built-in questions, or say why they are not asked."""
    if not options.questions:
        return None, "they are not wanted"
    if subject.untrained is not None:
        return None, "random weights know no answer"
    question_options = DocumentsOptions(plain=options.plain, seed=options.seed, places=questions.PLACES)
    sources = {"records": questions.ORIGIN}
    try:
        plan = plan_documents(
            subject, read_records(questions.FILE), template(), question_options, questions.NAME, sources
        )
    except InputError as error:
        return None, str(error)
    return replace(plan, facts={**plan.facts, "told by": questions.TOLD_BY}), ""


def _contexts(
    subject: Subject, options: CardOptions, n: int, documents: list[str], at_once: int
) -> tuple[Contexts | None, str]:
    """Draw contexts of the commonest words of a text for a model, through which so many tokens pass; or say why not.

    They have n tokens, or as many as leave room for what stands before them and for the cue.
    """
    count = RECALL_CONTEXTS if options.recall is None else options.recall
    if not count:
        return None, "0 contexts were asked for"
    longest = opening.longest(subject.config)
    n = n if longest is None else min(n, longest - len(subject.before) - CUE)
    if n < CUE + FEWEST_PLACES:
        return None, f"the model takes {longest} tokens, and a context of so few has too few places"
    try:
        words = recall.common_words(documents, subject.tokenizer, n, CUE)
        prose = recall.prose(documents, subject.tokenizer, n)
    except InputError as error:
        return None, str(error)
    token_ids = recall.random_contexts(words, n, count, CUE, seed(options.seed, "card", "recall"), prose)
    return Contexts(words, token_ids, at_once), ""


def _why_no_slow_recall(options: CardOptions, cost: Cost) -> str:
    """Say why recall is left out, if it takes long and nobody asked for it; "" where it is measured."""
    too_long = _too_long(cost)
    return f"{too_long}; ask for it (--recall {RECALL_CONTEXTS})" if too_long and options.recall is None else ""


def _too_long(cost: Cost) -> str:
    """Say that a measure takes longer than one that nobody asked for may; "" where it does not."""
    if cost.seconds is None or cost.seconds <= LONGEST:
        return ""
    return f"it would take {duration(cost.seconds)}, and without being asked for it takes {duration(LONGEST)} at most"


def open_and_measure_card(plan: CardPlan, place: Path, folder: Path, interval: int, run: object) -> Measurements:
    """Open the model at the place of a plan, and measure it as `measure_card` does.

    Raises InputError where there is too little memory, before weights are read.
    """
    subject = plan.subject
    recomputed = plan.options.activation_checkpointing or plan.costs[GRADIENTS].bytes != plan.bytes
    require_room(subject.name, plan.bytes, subject.placed, recomputed=recomputed, precision=subject.precision)
    with measurable(subject.open(place, plan.options.seed, folder)) as decoder:
        return measure_card(plan, decoder, folder, interval, [run, subject.untrained, subject.placed])


def measure_card(
    plan: CardPlan, model: PreTrainedModel, folder: Path | None = None, interval: int = INTERVAL, run: object = None
) -> Measurements:
    """Measure an open `model` as planned.

    With a `folder`, what every so many prompts have shown is kept there, and a killed measurement of the same `run`
    goes on from it. Raises InputError as `measure_decoder` does.
    """
    token_ids = [prompt_set.tokens for prompt_set in plan.prompts.values()]
    token_ids += [plan.contexts.token_ids] if plan.contexts else []
    for tokens in token_ids:
        opening.require_known_tokens(tokens, model, plan.subject.name)
    settings = [FORMAT, MOST_LOSSES, run, vars(plan.options), plan.subject.precision, transformers.__version__]

    def resumption(name: str, n: int, interval: int) -> Resumption | None:
        return Resumption(folder / f"{name}.safetensors", [*settings, n], interval) if folder else None

    lengths = {
        n: measure_decoder(
            model,
            prompt_set.tokens,
            plan.at_once[n],
            documents=prompt_set.documents,
            quantities=Quantities(target=plan.target, losses_from=max(1, len(plan.subject.before))),
            activation_checkpointing=plan.options.activation_checkpointing,
            resumption=resumption(f"n{n}", n, interval),
            section=None,
        )
        for n, prompt_set in plan.prompts.items()
    }
    longest = max(lengths)
    answers, omissions = _answers(plan, model, folder, settings)
    effects = _replacement_effects(plan, model, longest) if plan.replacement_prompts else None
    recall_result = None
    if contexts := plan.contexts:
        try:
            scores = recall.measure_recall(
                model,
                contexts.token_ids,
                contexts.words,
                CUE,
                contexts.at_once,
                before=plan.subject.before,
                resumption=resumption("recalled", contexts.n, 1),
                section=None,
                say=partial(_say_recall_is_slow, plan, contexts),
            )
            recall_result = RecallResult(contexts.n, CUE, len(contexts.words), scores)
        except SlowRecallError as error:
            announce(f"{plan.subject.name}: recall is left out: {error}")
            omissions[RECALL] = str(error)
    facts = {
        **plan.facts,
        "left out": {**plan.facts["left out"], **omissions},
        "in float32": [measure for measure in plan.facts["in float32"] if measure not in omissions],
        "bytes": plan.bytes,
    }
    return Measurements(lengths, facts, effects, recall_result, answers)


class SlowRecallError(InputError):
    """Recall that nobody asked for takes long, as is known once the weights are read."""


def _say_recall_is_slow(plan: CardPlan, contexts: Contexts, way: recall.Way) -> None:
    """Tell the user where questions are asked in another way than was planned, with its time.

    Raises SlowRecallError where that is too long for what nobody asked for.
    """
    if way == contexts.expected_way(plan.subject):
        return
    cost = contexts.cost(plan.subject, way)
    if reason := _why_no_slow_recall(plan.options, cost):
        raise SlowRecallError(reason)
    announce(f"{plan.subject.name}: recall takes another time than was announced: {cost} (--recall 0 leaves it out)")


def _answers(
    plan: CardPlan, model: PreTrainedModel, folder: Path | None, run: object
) -> tuple[QuestionAnswers | None, dict[str, str]]:
    """Ask the built-in questions; or say what keeps a model from that, such as tokens that it does not know."""
    if plan.questions is None:
        return None, {}
    progress_file = folder / f"{QUESTIONS}.safetensors" if folder else None
    try:
        answers = measure_planned_documents(plan.questions, model, progress_file, run)
    except InputError as error:
        announce(f"{plan.subject.name}: the built-in questions are left out: {error}")
        return None, {QUESTIONS: str(error)}
    return QuestionAnswers(answers.table, answers.facts), {}


def _replacement_effects(plan: CardPlan, model: PreTrainedModel, n: int) -> ReplacementEffects:
    """Replace the first token, that of the text where another stands before it, some in the middle, and the last."""
    prompts = plan.prompts[n].tokens[: plan.replacement_prompts]
    positions = replacement.chosen_positions(n, len(plan.subject.before))
    windows = [slice(position, position + 1) for position in positions]
    donors = replacement.donors(prompts, 1, seed(plan.options.seed, "card", "replaced", n))
    effects = replacement.responses(model, prompts, windows, donors, [1.0], FORWARD * plan.at_once[n])
    return ReplacementEffects(n, tuple(positions), effects.total_variation[..., 0, 0])
