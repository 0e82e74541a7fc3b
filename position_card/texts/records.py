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
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from string import ascii_uppercase as LETTERS
from typing import Any

from position_card.core.runtime import InputError, open_file, quoted

Message = Mapping[str, str]  # of a chat: its role and its content

DOCUMENTS = "{documents}"  # in a message, the place of the documents or options; replaced as it stands
FORMS = ("choices", "messages", "ctxs")  # by the key that tells it, where a record has several: the first
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
    place: str = "record"  # what stands before the number of a record where it is named


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
    records, omissions, forms = [], Counter[str](), {}
    for number, value in values:
        form, record = _record(value, number, f"{place} {number}")
        forms[number] = form
        if fault := _fault(record):
            omissions[fault] += 1
        else:
            records.append(record)
    if len(records) < FEWEST:
        reasons = "".join(f"; {count} left out: {fault}" for fault, count in omissions.items())
        raise InputError(f"{len(records)} records fit, and at least {FEWEST} are needed{reasons}; give more records")
    first = records[0]
    for record in records:
        if forms[record.number] != forms[first.number]:
            raise InputError(
                f"{place} {record.number} has {forms[record.number]}, but {place} {first.number} has "
                f"{forms[first.number]}; put them into two files"
            )
        if record.chooses and len(record.items) != len(first.items):
            raise InputError(
                f"{place} {record.number} has {len(record.items)} choices, but {place} {first.number} has "
                f"{len(first.items)}; put them into two files"
            )
    return Records(tuple(records), omissions, place)


def _fault(record: Record) -> str:
    """Say why a record cannot tell anything; "" where it can."""
    if record.chooses:
        return ""
    if not record.gold:
        return NO_GOLD
    return TOO_FEW if len(record.items) - len(record.gold) < DISTRACTORS else ""


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
    """Yield the number of each line of an open file that is not blank, from 1, and what its JSON says.

    `name` is that of the file. Raises InputError where a line is no JSON, and for more than CHARACTERS in all.
    """
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


def stands_in(answer: str, text: str) -> bool:
    """Say whether a text has an answer as whole words, in capital letters or not.

    A word goes on where a letter that can be small or capital, or a digit, follows another; a number also where a point
    or comma stands between two digits. Letters of scripts without capitals, many of which have no blanks between words
    or write articles and particles as parts of them, may stand beside an answer.
    """
    answer, text = answer.strip().casefold(), text.casefold()
    begin = text.find(answer)
    while begin >= 0:
        end = begin + len(answer)
        if not _goes_on(answer[-1], text[end : end + 2]) and not _goes_on(
            answer[0], text[max(0, begin - 2) : begin][::-1]
        ):
            return True
        begin = text.find(answer, begin + 1)
    return False


def _goes_on(edge: str, beside: str) -> bool:
    """Say whether a word goes on from the first or last character of an answer to those beside it, nearest first."""
    if not beside or not _of_word(edge):
        return False
    if edge.isdecimal() and beside[0] in ".,":
        return beside[1:].isdecimal()
    return _of_word(beside[0]) or unicodedata.category(beside[0]) == "Mn"


def _of_word(character: str) -> bool:
    return character.isdecimal() or unicodedata.category(character) in ("Ll", "Lu", "Lt")


def _record(value: object, number: int, place: str) -> tuple[str, Record]:
    """Return the form of a record, and the record."""
    if not isinstance(value, Mapping):
        raise InputError(f"{place}, is no object; see docs/documents.md for the three forms")
    form = next((form for form in FORMS if form in value), "")
    if form == "choices":
        return form, _choices(value, number, place)
    if form == "messages":
        return form, _chat(value, number, place)
    if form == "ctxs":
        question = _text(value, "question", place)
        messages = ({"role": "user", "content": QUESTION_FRAME + question},)
        return form, _documents(value, "ctxs", _answers(value, place), messages, number, place, ANSWER)
    raise InputError(f"{place}, has none of choices, messages and ctxs, but {', '.join(map(str, value))}; give one")


def _choices(value: Mapping[str, Any], number: int, place: str) -> Record:
    choices = value["choices"]
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not 2 <= len(choices) <= len(LETTERS):
        raise InputError(f"{place}, has choices {quoted(choices)}; give a list of 2 to {len(LETTERS)} texts")
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
            f"{place}, has the answer {quoted(answer)}, which is none of its {len(items)} choices; give its number, "
            "from 0 on, its letter or its text, or leave it out"
        )
    content = _text(value, "question", place) + CHOICE_FRAME
    messages = _checked_messages(({"role": "user", "content": content},), place)
    return Record(number, messages, items, () if right is None else (right,), (), ANSWER)


def _chat(value: Mapping[str, Any], number: int, place: str) -> Record:
    chat = value["messages"]
    if not isinstance(chat, Sequence) or isinstance(chat, str):
        raise InputError(f"{place}, has messages {quoted(chat)}; give a list of objects with role and content")
    messages = []
    for message in chat:
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            raise InputError(f"{place}, has the message {quoted(message)}; give it a role of {', '.join(ROLES)}")
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
        raise InputError(f"{place}, has {key} {quoted(documents)}; give a list of documents")
    items, texts = [], []
    for document in documents:
        if isinstance(document, Mapping):
            text, title = _text(document, "text", place), document.get("title") or ""
            texts.append(text)
            if title:
                items.append(f"Document (Title: {_string(title, 'title', place)}) {text}")
            else:
                items.append(f"Document: {text}" if key == "ctxs" else text)
        else:
            texts.append(_string(document, key, place))
            items.append(texts[-1])
    gold_marks: list[bool] = []
    for mark in GOLD:
        gold_marks = [isinstance(document, Mapping) and bool(document.get(mark)) for document in documents]
        if any(gold_marks):
            break
    else:
        gold_marks = [any(stands_in(answer, text) for answer in answers) for text in texts]
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
    if not answers:
        raise InputError(f"{place}, has no answers; give the right ones under 'answers', as a list of texts")
    if not isinstance(answers, Sequence):
        raise InputError(f"{place}, has answers {quoted(answers)}; give a list of texts")
    return tuple(_string(answer, "answers", place) for answer in answers)


def _text(value: Mapping[str, Any], key: str, place: str) -> str:
    return _string(value.get(key), key, place)


def _string(value: object, key: str, place: str) -> str:
    if value is None:
        raise InputError(f"{place}, has no {key!r}; give it as a text")
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{place}, has {quoted(value)} under {key!r}, which is no text; give one")
    # half of a pair of surrogates, as scraped texts have them, is no character: it becomes the sign for an unknown one
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
