"""This module plans and measures what the place of documents or options does to answers, from a file of records.

The command and a model in memory share it. All prompts are made, and counted, before any weight is read.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedModel

from position_card.card.costs import Cost
from position_card.card.documents_page import Documents
from position_card.card.subject import Subject
from position_card.core import checkpoint, provenance
from position_card.core.runtime import InputError, announce, progress
from position_card.core.wording import number_of
from position_card.measures import documents
from position_card.measures.cost import operations_per_second
from position_card.measures.documents import Answer, Prompt, Reader
from position_card.models import opening
from position_card.texts.chat import ChatTemplate, chat_frames, plain_frames
from position_card.texts.records import ALONE, CLOSED, DOCUMENTS, FEWEST, Record, Records, stands_in
from position_card.texts.tokens import encode, special_tokens

TOO_LONG = "more tokens than the model takes"
PLACE_COLUMNS = ("record", "place", "before", "tokens", "answer_tokens", "log_probability", "right", "reply")
OPTION_COLUMNS = ("record", "order", "option", "place", "probability", "answer")


@dataclass(frozen=True)
class DocumentsOptions:
    """How records are asked."""

    rotate: bool = False  # whether all rotations of the documents are measured
    generate: int = 0  # tokens that the model says itself; 0: an answer is right where each of its tokens is likeliest
    prefix: str | None = None  # how the answer begins; None: as the form of the record says
    plain: bool = False  # whether the chat template is left aside
    seed: int = 0
    places: int = documents.PLACES  # of the gold documents, at most

    def __post_init__(self) -> None:
        """Raise InputError for numbers that nothing can be measured with."""
        for name in ("generate", "seed"):
            if not isinstance(value := getattr(self, name), int) or value < 0:
                raise InputError(f"{name} is {value!r}; give a whole number of at least 0")


@dataclass(frozen=True)
class Question:
    """A record with its prompts."""

    record: Record
    orders: tuple[tuple[str, tuple[int, ...]], ...]  # the place that each is of, and the order of what it shows
    texts: tuple[str, ...]  # of the prompts, up to where the answer begins
    prompts: tuple[tuple[Prompt, ...], ...]  # for each order, one for each answer or option

    @property
    def all_prompts(self) -> list[Prompt]:
        """Those of all orders."""
        return [prompt for prompts in self.prompts for prompt in prompts]

    @property
    def longest(self) -> Prompt:
        """The prompt with the most tokens, its answer among them."""
        return max(self.all_prompts, key=lambda prompt: len(prompt.tokens) + len(prompt.answer))


@dataclass(frozen=True)
class DocumentsPlan:
    """What will be measured of a file of records, known before any weight is read."""

    subject: Subject
    options: DocumentsOptions
    frames: Sequence[tuple[Record, str]]  # records, and their prompts without documents
    places: int  # of the gold documents
    longest: Prompt
    tokens: int  # that pass through the model as parts of prompts and answers
    passes: int  # in which these are read
    in_a_row: bool  # whether all prompts of a record pass in one row, if the model reads them so
    reply_tokens: int  # tokens that the model says, one after the other, at most
    largest: int  # id of a token
    facts: Mapping[str, Any]

    @property
    def n(self) -> int:
        """Tokens of the longest prompt, with what follows it."""
        return len(self.longest.tokens) + len(self.longest.answer) + self.options.generate

    @property
    def bytes(self) -> float | None:
        """About how many bytes of memory the measurement takes, at most; None where a pass cannot be counted."""
        return self.subject.size.memory_of_predictions(self.n, self.n, self.subject.precision)

    def seconds(self) -> float | None:
        """Return about how many seconds the measurement takes; None where a pass cannot be counted."""
        subject = self.subject
        if (cost := subject.size.forward_cost(self.n, subject.precision)) is None:
            return None
        read = cost.operations / self.n * self.tokens / operations_per_second(subject.device, subject.precision)
        token_seconds = (
            2 * subject.size.parameters / operations_per_second(subject.device, subject.precision, single_token=True)
        )
        return read + (self.passes + self.reply_tokens) * token_seconds  # passes are short, and each reads all weights

    @property
    def cost(self) -> Cost:
        """What it takes, and of how many records and tokens."""
        tokens, records = self.tokens + self.reply_tokens, f"{len(self.frames)} records of {self.facts['records']}"
        material = f"{records} in {tokens:,} tokens, up to {self.n:,} a prompt"
        return Cost(material, self.bytes, self.seconds())

    def announce(self) -> None:
        """Tell the user, before the work, how much memory and time it takes, and what is left out."""
        cost = self.cost
        self.subject.announce(f"{cost.material},", cost.bytes, cost.seconds)
        for reason, count in self.facts["omissions"].items():
            announce(f"- {number_of(count, 'record')} left out: {reason}")


def plan_documents(
    subject: Subject,
    records: Records,
    template: ChatTemplate | None,
    options: DocumentsOptions,
    name: str,
    sources: Mapping[str, str],
) -> DocumentsPlan:
    """Make the prompts of all records, by the chat template if there is one and it is not left aside.

    The page calls the file of records `name`, and says the `sources` of model and records.

    Raises InputError where a text holds a control token, where the template cannot be rendered, where too few records
    fit the model, and where options are rotated or the model is asked to say them.
    """
    if records.records[0].chooses and (options.rotate or options.generate):
        raise InputError("records of options are asked in all orders, by their letters; leave out rotate and generate")
    _require_no_control_tokens(subject, records)
    chat = None if options.plain else template
    frames = chat_frames(records.records, chat) if chat else plain_frames(records.records)
    limit, count = opening.longest(subject.config), _places(records.records, options)
    fitting, omissions, token_counts, passes, reply_tokens, largest = [], records.omissions.copy(), [], 0, 0, 0
    first, longest = None, Prompt((), ())
    for record, frame in zip(records.records, frames.texts, strict=True):
        question = _question(subject, record, frame, options, count)
        n = len(question.longest.tokens) + len(question.longest.answer)
        if limit is not None and n + options.generate > limit:
            omissions[TOO_LONG] += 1
            continue
        fitting.append((record, frame))
        first = first or question
        longest = max(longest, question.longest, key=lambda prompt: len(prompt.tokens) + len(prompt.answer))
        token_counts.append(documents.tokens_read(question.all_prompts))
        passes += len({prompt.tokens for prompt in question.all_prompts}) + len(question.all_prompts)
        reply_tokens += options.generate * len(question.orders)
        largest = max(largest, *(max(*prompt.tokens, *prompt.answer) for prompt in question.all_prompts))
    if first is None or len(fitting) < FEWEST:
        raise InputError(
            f"{len(fitting)} of {len(records.records)} records fit {subject.name}, which takes {limit} tokens, and at "
            f"least {FEWEST} are needed; give shorter ones"
        )
    counts = [len(record.items) for record, _ in fitting]
    facts = {
        "name": subject.name,
        "records": name,
        "sources": {"model": subject.origin, **sources},
        "device": subject.device,
        "untrained": subject.untrained,
        "precision": subject.precision,
        "weights": subject.quantisation,
        "sha256": _digest(records.records),
        "chooses": first.record.chooses,
        "omissions": dict(omissions),
        "items": [min(counts), max(counts)],
        "longest": len(longest.tokens) + len(longest.answer),
        "template": chat.sha256 if chat else None,
        "has template": template is not None,
        "variants": frames.variants,
        "system in user": frames.system_in_user,
        "rotate": options.rotate,
        "generate": options.generate,
        "prefix": options.prefix,
        "plain": options.plain,
        "begins": sorted({_prefix(record, options) for record, _ in fitting}),
        "seed": options.seed,
        "before": [subject.tokenizer.id_to_token(token) for token in subject.before],
        "first prompt": first.texts[0 if first.record.chooses else 1],
        "first answer": LETTERS[0] if first.record.chooses else first.record.answers[0],
        "tokenizer": subject.tokenizer_note,
        "versions": provenance.versions(),
    }
    in_a_row = max(token_counts) <= documents.TREE and not options.generate
    passes = len(fitting) if in_a_row else passes
    costs = (sum(token_counts), passes, in_a_row, reply_tokens)
    return DocumentsPlan(subject, options, fitting, count, longest, *costs, largest, facts)


def measure_planned_documents(
    plan: DocumentsPlan, model: PreTrainedModel, checkpoint_file: Path | None = None, run: object = None
) -> Documents:
    """Measure an open `model` as planned. Raises InputError where token ids lie beyond its embeddings.

    What was measured of a record goes into a file, if one is named, from which the same `run` goes on after a kill.
    """
    model.eval().requires_grad_(False)
    subject, options = plan.subject, plan.options
    opening.require_known_tokens(np.array([plan.largest]), model, subject.name)
    tree = plan.in_a_row and documents.reads_trees(model, plan.longest.tokens)
    prefix_cache = tree or documents.shares_beginnings(model, plan.longest.tokens)
    ends = special_tokens(subject.tokenizer)
    reader = Reader(model, prefix_cache=prefix_cache, tree=tree, reply_length=options.generate, ends=ends)
    fingerprint = checkpoint.fingerprint([run, prefix_cache, tree], {})
    state = checkpoint.resumed(checkpoint_file, fingerprint, "measuring records") if checkpoint_file else None
    rows: list[list[Any]] = list(state.facts["rows"]) if state else []
    start = state.step if state else 0
    frames = progress(plan.frames[start:], "measuring records", len(plan.frames), start)
    for step, (record, frame) in enumerate(frames, start=start + 1):
        question = _question(subject, record, frame, options, plan.places)
        answers = iter(reader.read(question.all_prompts))
        by_order = [[next(answers) for _ in prompts] for prompts in question.prompts]
        rows += _option_rows(question, by_order) if record.chooses else _place_rows(plan, question, by_order)
        if checkpoint_file:
            checkpoint.write(checkpoint_file, fingerprint, checkpoint.State(step, {"rows": rows}, {}))
    columns = OPTION_COLUMNS if plan.facts["chooses"] else PLACE_COLUMNS
    return Documents(pd.DataFrame(rows, columns=list(columns)), {**plan.facts, "prefix cache": prefix_cache})


def _place_rows(plan: DocumentsPlan, question: Question, by_order: Sequence[Sequence[Answer]]) -> Iterator[list[Any]]:
    """Yield a row for each place: PLACE_COLUMNS."""
    record, options = question.record, plan.options
    for (place, order), prompts, answers in zip(question.orders, question.prompts, by_order, strict=True):
        reply = plan.subject.tokenizer.decode(list(answers[0].reply)).replace("\0", "\N{REPLACEMENT CHARACTER}")
        if options.generate:
            if plan.facts["template"] is None:  # without turns a model goes on to the next question by itself
                reply = reply.strip().split("\n")[0]
            right = any(stands_in(answer, reply) for answer in record.answers)
        else:
            right = any(answer.likeliest for answer in answers)
        before = next((index for index, item in enumerate(order) if item in record.gold), 0)
        tokens, answer = prompts[0]
        yield [record.number, place, before, len(tokens), len(answer), answers[0].log_probability, int(right), reply]


def _option_rows(question: Question, by_order: Sequence[Sequence[Answer]]) -> Iterator[list[Any]]:
    """Yield a row for each order and option: OPTION_COLUMNS. Probabilities of the letters add to 1 in an order."""
    (answer,) = question.record.gold or (-1,)
    for number, ((_, order), letters) in enumerate(zip(question.orders, by_order, strict=True)):
        logarithms = np.array([letter.log_probability for letter in letters])
        probability = np.exp(logarithms - np.logaddexp.reduce(logarithms))
        for place, option in enumerate(order):
            yield [question.record.number, number, option, LETTERS[place], float(probability[place]), answer]


def _places(records: Sequence[Record], options: DocumentsOptions) -> int:
    """Return at how many places the gold documents of all records stand.

    Raises InputError where documents are rotated and records have different numbers of them.
    """
    counts = {len(record.items) for record in records}
    if options.rotate and len(counts) > 1:
        raise InputError(
            f"rotating needs as many documents in every record, and these have {min(counts)} to {max(counts)}; leave "
            "--rotate out"
        )
    distractors = min(len(record.items) - len(record.gold) for record in records)
    return min(options.places, distractors + 1)


def _question(subject: Subject, record: Record, frame: str, options: DocumentsOptions, count: int) -> Question:
    """Make the prompts of a record whose gold documents stand at so many places."""
    items = len(record.items)
    if record.chooses:
        orders = [(str(number), order) for number, order in enumerate(documents.option_orders(items))]
    else:
        gold = record.gold
        arrangements = documents.rotations(items, gold) if options.rotate else documents.orders(items, gold, count)
        orders = [(CLOSED, []), (ALONE, list(gold))]
        orders += [(str(place), order) for place, order in enumerate(arrangements, start=1)]
    answers = LETTERS[:items] if record.chooses else record.answers
    texts = [frame.replace(DOCUMENTS, _items_text(record, order)) + _prefix(record, options) for _, order in orders]
    prompts = [
        tuple(documents.prompt_with_answer(subject.tokenizer, subject.before, text, answer) for answer in answers)
        for text in texts
    ]
    return Question(record, tuple((place, tuple(order)) for place, order in orders), tuple(texts), tuple(prompts))


def _items_text(record: Record, order: Sequence[int]) -> str:
    """Return the documents in an order as a prompt shows them, or the options with their letters."""
    if record.chooses:
        return "\n".join(f"{LETTERS[place]}. {record.items[option]}" for place, option in enumerate(order))
    return "\n\n".join(record.items[document] for document in order)


def _prefix(record: Record, options: DocumentsOptions) -> str:
    return record.prefix if options.prefix is None else options.prefix


def _require_no_control_tokens(subject: Subject, records: Records) -> None:
    """Raise InputError where a text of a record holds a special token, which would begin or end a turn."""
    controls = frozenset(special_tokens(subject.tokenizer))
    for record in records.records:
        contents = [message["content"] for message in record.messages]
        for part, texts in (("a document", record.items), ("a message", contents), ("an answer", record.answers)):
            for text in texts:
                ids = controls.intersection(encode(subject.tokenizer, text).ids)
                names = [str(subject.tokenizer.id_to_token(token)) for token in ids]
                for name in names:
                    if name in text:  # others stand for what is unknown
                        raise InputError(
                            f"{records.place} {record.number} has the control token {name} in {part}, where it would "
                            "begin or end a turn; remove it"
                        )


def _digest(records: Sequence[Record]) -> str:
    text = json.dumps([asdict(record) for record in records], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
