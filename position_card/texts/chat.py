"""Prompts of records before their documents stand in them: by a chat template, or as plain text.

A chat template comes with a model and is a program. It is run in a process of its own, which has limits of time and
memory (`rendering.py`), once for each record, while the literal {documents} still stands where the documents will. So
it never sees the documents, and cannot do with one order what it does not do with another.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from position_card.core.runtime import InputError, shortened
from position_card.texts.records import DOCUMENTS, Message, Record

PROGRAM = Path(__file__).with_name("rendering.py")
SECONDS = 60  # until the process is ended, whatever it waits for; it has fewer seconds of a processor
QUIET = {"enable_thinking": False, "thinking": False}  # by what templates know that no thoughts are wanted
PLAIN = "type --plain to do without the template"


@dataclass(frozen=True)
class ChatTemplate:
    """A chat template, and the special tokens that it may write."""

    text: str
    tokens: Mapping[str, str]  # by the names that templates have for them, such as bos_token

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of its text, in hexadecimal digits, which tells it from others."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Frames:
    """How the prompts of records are written: texts in which DOCUMENTS still has to be replaced."""

    texts: tuple[str, ...]  # of the records, each up to where the answer begins
    variants: int  # different texts that the template adds to messages of the same roles, at most; 0 without a template
    system_in_user: int  # records whose system message is a part of the user's, since the template refuses it


def plain_frames(records: Sequence[Record]) -> Frames:
    """Write the messages of each record one below the other."""
    return Frames(tuple("\n\n".join(_contents(record.messages)) + "\n" for record in records), 0, 0)


def chat_frames(records: Sequence[Record], template: ChatTemplate) -> Frames:
    """Write the messages of each record as a chat template does, up to the turn of the assistant.

    Where it refuses a system message, or leaves it out, that message begins the user's turn. Raises InputError where
    the template cannot be rendered within its limits, and where a message does not stand in what it gives.
    """
    conversations = [list(record.messages) for record in records]
    answers = _render(template, conversations)
    faulty = [index for index, messages in enumerate(conversations) if _fault(answers[index], messages)]
    with_system = [
        index for index in faulty if conversations[index][0]["role"] == "system" and conversations[index][1:]
    ]
    for index in with_system:
        system, user, *rest = conversations[index]
        conversations[index] = [{**user, "content": f"{system['content']}\n\n{user['content']}"}, *rest]
    if with_system:
        for index, answer in zip(with_system, _render(template, [conversations[i] for i in with_system]), strict=True):
            answers[index] = answer
    for record, answer, messages in zip(records, answers, conversations, strict=True):
        if fault := _fault(answer, messages):
            raise InputError(
                f"the chat template does not write record {record.number}: {shortened(fault, 300)}; {PLAIN}"
            )
    texts = tuple(answer["text"] for answer in answers)
    return Frames(texts, _different(texts, conversations), len(with_system))


def _render(template: ChatTemplate, conversations: Sequence[Sequence[Message]]) -> list[dict[str, str]]:
    """Run the program that renders a template; for each conversation it gives a `text` or an `error`."""
    request = {"template": template.text, "values": {**QUIET, **template.tokens}, "conversations": conversations}
    try:
        program, text = [sys.executable, "-P", str(PROGRAM)], json.dumps(request).encode()
        process = subprocess.run(program, input=text, capture_output=True, check=False, timeout=SECONDS)
        answers: list[dict[str, str]] = json.loads(process.stdout) if process.returncode == 0 else []
    except (subprocess.TimeoutExpired, ValueError):
        answers = []
    if len(answers) != len(conversations):
        reason = answers[0]["error"] if answers else "it takes too much time or memory"
        raise InputError(
            f"the chat template (sha256 {template.sha256[:12]}) is not rendered: {shortened(reason, 300)}; {PLAIN}"
        )
    return answers


def _contents(messages: Sequence[Message]) -> list[str]:
    return [message["content"] for message in messages]


def _fault(answer: Mapping[str, str], messages: Sequence[Message]) -> str:
    """Say what is wrong with what a template made of messages; "" where nothing is."""
    if "error" in answer:
        return answer["error"]
    for message in messages:
        if message["content"].strip() not in answer["text"]:
            return f"it leaves out or changes the message of the {message['role']}"
    count = answer["text"].count(DOCUMENTS)
    return "" if count == 1 else f"it writes {DOCUMENTS} {count} times"


def _different(texts: Sequence[str], conversations: Sequence[Sequence[Message]]) -> int:
    """Count the different texts that a template adds to messages: those of the roles for which it adds most.

    `texts` are the conversations as the template writes them. It adds what is left without the contents of the
    messages, and 1 text where it treats all conversations of the same roles alike.
    """
    additions: dict[tuple[str, ...], set[str]] = {}
    for text, messages in zip(texts, conversations, strict=True):
        for content in _contents(messages):
            text = text.replace(content.strip(), "\0", 1)
        additions.setdefault(tuple(message["role"] for message in messages), set()).add(text)
    return max(map(len, additions.values()))
