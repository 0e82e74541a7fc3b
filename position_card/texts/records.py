"""Records: questions with the documents, or the options, that can change places in their prompts.

A line of a JSON Lines file is a record in one of three forms. The first is that of lost-in-the-middle and its relatives
(Liu et al. 2023): `question`, `answers`, and `ctxs` with `title`, `text` and `isgold`. The second has `messages` of a
chat, of which one holds a literal {documents} and the last is the answer, and `documents`. The third has a `question`,
`choices` and the right `answer`. What has another form is refused; a record that cannot tell anything is left out, and
counted.
"""

import gzip
import io
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from string import ascii_uppercase as LETTERS
from typing import Any

from position_card.core.runtime import InputError, open_file

Message = Mapping[str, str]  # of a chat: its role and its content

DOCUMENTS = "{documents}"  # in a message, the place of the documents or options; replaced as it stands
ROLES = ("system", "user", "assistant")
ANSWER = "Answer:"  # how an answer begins, where the frame is ours
QUESTION_FRAME = f"Answer the question from the documents below.\n\n{DOCUMENTS}\n\nQuestion: "
CHOICE_FRAME = f"\n\n{DOCUMENTS}\n\nAnswer with the letter of the right option."
GOLD = ("isgold", "hasanswer", "has_answer")  # marks of a document that holds the answer, the surest first
ENDINGS = (".jsonl", ".jsonl.gz")
CHARACTERS = 200_000_000  # of a file
FEWEST = 8  # records; intervals over fewer mean nothing
DISTRACTORS = 2  # documents beside those that hold the answer: fewer have no middle
CLOSED, ALONE = "no documents", "gold alone"  # what a record of documents is asked besides
NO_GOLD = "no document holds the answer"
TOO_FEW = f"fewer than {DISTRACTORS} documents do not hold the answer"


@dataclass(frozen=True)
class Record:
    """A question, with what can change places in its prompt."""

    number: int  # of its line, from 1 on
    messages: tuple[Message, ...]  # with DOCUMENTS once in one of them
    items: tuple[str, ...]  # the documents as prompts show them, or the options, in the order of the file
    gold: tuple[int, ...]  # which documents hold the answer, or the right option, if it is known; from 0 on
    answers: tuple[str, ...]  # each of them is right, and the first is measured; of options there are none
    prefix: str  # how the answer begins, unless a user says otherwise

    @property
    def chooses(self) -> bool:
        """Whether the answer is an option."""
        return not self.answers


@dataclass(frozen=True)
class Records:
    """The records of a file that fit, and how many were left out, by the reason."""

    records: tuple[Record, ...]
    omissions: Counter[str]


def read_records(name: str) -> Records:
    """Read a file of records, which ends in .jsonl or .jsonl.gz, or - for standard input.

    Raises InputError where it cannot be read, where a line has another form, and where fewer than FEWEST fit.
    """
    if name != "-" and not name.endswith(ENDINGS):
        raise InputError(f"records {name} must be a file that ends in {' or '.join(ENDINGS)}, or - for standard input")
    with _lines(name) as lines:
        return records_of(_values(lines, name), f"records {name}, line")


def records_of(values: Iterable[tuple[int, object]], place: str = "record") -> Records:
    """Make records of JSON values with their numbers. Raises InputError, which says the `place`, as `read_records`."""
    records, omissions = [], Counter[str]()
    for number, value in values:
        record = _record(value, number, f"{place} {number}")
        if fault := _fault(record):
            omissions[fault] += 1
        else:
            records.append(record)
    if len(records) < FEWEST:
        reasons = "".join(f"; {count} left out: {fault}" for fault, count in omissions.items())
        raise InputError(f"{len(records)} records fit, and at least {FEWEST} are needed{reasons}; give more records")
    first = records[0]
    for record in records:
        if record.chooses != first.chooses:
            raise InputError(
                f"{place} {record.number} has {_kind(record)}, but {place} {first.number} has {_kind(first)}; put them "
                "into two files"
            )
        if record.chooses and len(record.items) != len(first.items):
            raise InputError(
                f"{place} {record.number} has {len(record.items)} choices, but {place} {first.number} has "
                f"{len(first.items)}; put them into two files"
            )
    return Records(tuple(records), omissions)


def _fault(record: Record) -> str:
    """Say why a record cannot tell anything; "" where it can."""
    if record.chooses:
        return ""
    if not record.gold:
        return NO_GOLD
    return TOO_FEW if len(record.items) - len(record.gold) < DISTRACTORS else ""


def _kind(record: Record) -> str:
    return "choices" if record.chooses else "documents"


@contextmanager
def _lines(name: str) -> Iterator[Any]:
    if name == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed; give a file")
        try:
            yield sys.stdin
        except UnicodeError as error:
            raise InputError("standard input is not encoded in UTF-8; convert it, or give a file") from error
        return
    is_gzip = name.endswith(".gz")
    with open_file(name, f"records {name}", "rb" if is_gzip else "r") as file:
        try:
            yield io.TextIOWrapper(gzip.GzipFile(fileobj=file), encoding="utf-8-sig") if is_gzip else file
        except (EOFError, zlib.error) as error:
            raise InputError(f"records {name} cannot be unpacked ({error}); fetch the file again") from error


def _values(lines: Any, name: str) -> Iterator[tuple[int, object]]:
    budget, number = CHARACTERS, 0
    while line := lines.readline(budget + 1):
        number, budget = number + 1, budget - len(line)
        if budget < 0:
            raise InputError(f"records {name} has more than {CHARACTERS:,} characters; split it")
        if line.strip().removeprefix("\ufeff"):
            try:
                yield number, json.loads(line.removeprefix("\ufeff"))
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"records {name}, line {number}, is no JSON ({error}); give an object a line"
                ) from error


def _record(value: object, number: int, place: str) -> Record:
    if not isinstance(value, Mapping):
        raise InputError(f"{place}, is no object; see docs/documents.md for the three forms")
    if "choices" in value:
        return _choices(value, number, place)
    if "messages" in value:
        return _chat(value, number, place)
    if "ctxs" in value:
        question = _text(value, "question", place)
        messages = ({"role": "user", "content": QUESTION_FRAME + question},)
        return _documents(value, "ctxs", _answers(value, place), messages, number, place, ANSWER)
    raise InputError(f"{place}, has none of choices, messages and ctxs, but {', '.join(map(str, value))}; give one")


def _choices(value: Mapping[str, Any], number: int, place: str) -> Record:
    choices = value["choices"]
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not 2 <= len(choices) <= len(LETTERS):
        raise InputError(f"{place}, has choices {choices!r:.40}; give a list of 2 to {len(LETTERS)} texts")
    items = tuple(_string(choice, "choices", place) for choice in choices)
    answer, right = value.get("answer"), None
    if isinstance(answer, str):
        answer = answer.strip()
        right = items.index(answer) if answer in items else LETTERS.find(answer) if len(answer) == 1 else -1
    elif isinstance(answer, int) and not isinstance(answer, bool):
        right = answer
    elif answer is not None:
        right = -1
    if right is not None and not 0 <= right < len(items):
        raise InputError(
            f"{place}, has the answer {answer!r:.40}, which is none of its {len(items)} choices; give its number from "
            "0 on, its letter or its text, or leave it out"
        )
    content = _text(value, "question", place) + CHOICE_FRAME
    messages = _checked_messages(({"role": "user", "content": content},), place)
    return Record(number, messages, items, () if right is None else (right,), (), ANSWER)


def _chat(value: Mapping[str, Any], number: int, place: str) -> Record:
    chat = value["messages"]
    if not isinstance(chat, Sequence) or isinstance(chat, str):
        raise InputError(f"{place}, has messages {chat!r:.40}; give a list of objects with role and content")
    messages = []
    for message in chat:
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            raise InputError(f"{place}, has the message {message!r:.40}; give it a role of {', '.join(ROLES)}")
        messages.append({"role": str(message["role"]), "content": _text(message, "content", place)})
    if len(messages) < 2 or messages[-1]["role"] != "assistant":
        raise InputError(f"{place}, has messages whose last is not of the assistant; end them with the answer")
    *question, answer = messages
    answers = (answer["content"], *(_answers(value, place) if "answers" in value else ()))
    return _documents(value, "documents", answers, tuple(question), number, place, "")


def _documents(
    value: Mapping[str, Any],
    key: str,
    answers: Sequence[str],
    messages: tuple[Message, ...],
    number: int,
    place: str,
    prefix: str,
) -> Record:
    documents = value.get(key)
    if not isinstance(documents, Sequence) or isinstance(documents, str):
        raise InputError(f"{place}, has {key} {documents!r:.40}; give a list of documents")
    items, texts = [], []
    for document in documents:
        if isinstance(document, Mapping):
            text, title = _text(document, "text", place), document.get("title") or ""
            texts.append(text)
            items.append(f"Document (Title: {_string(title, 'title', place)}) {text}" if title else f"Document: {text}")
        else:
            texts.append(_string(document, key, place))
            items.append(texts[-1])
    gold_marks: list[bool] = []
    for mark in GOLD:
        gold_marks = [isinstance(document, Mapping) and bool(document.get(mark)) for document in documents]
        if any(gold_marks):
            break
    else:
        gold_marks = [any(answer.casefold() in text.casefold() for answer in answers) for text in texts]
    gold = tuple(index for index, is_gold in enumerate(gold_marks) if is_gold)
    return Record(number, _checked_messages(messages, place), tuple(items), gold, tuple(answers), prefix)


def _checked_messages(messages: tuple[Message, ...], place: str) -> tuple[Message, ...]:
    if (count := sum(message["content"].count(DOCUMENTS) for message in messages)) != 1:
        raise InputError(
            f"{place}, has {DOCUMENTS} {count} times; it must stand once, in one message before the answer"
        )
    return messages


def _answers(value: Mapping[str, Any], place: str) -> tuple[str, ...]:
    answers = value.get("answers")
    answers = [answers] if isinstance(answers, str) else answers
    if not isinstance(answers, Sequence) or not answers:
        raise InputError(f"{place}, has answers {answers!r:.40}; give a list of texts")
    return tuple(_string(answer, "answers", place) for answer in answers)


def _text(value: Mapping[str, Any], key: str, place: str) -> str:
    return _string(value.get(key), key, place)


def _string(value: object, key: str, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{place}, has {value!r:.40} under {key!r}, which is no text; give one")
    # half of a pair of surrogates, as scraped texts have them, is no character: it becomes the sign for an unknown one
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
