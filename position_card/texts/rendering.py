"""A program that renders a chat template, which is a program of a stranger, with limits of time and memory.

`chat.py` runs this file in a process of its own. Standard input is JSON: the `template`, the `values` that it may read,
and the `conversations`, which are lists of messages. Standard output is JSON: for each conversation a `text`, or an
`error`. The template runs in the sandbox of jinja2: it sees no attribute that begins with an underscore, no file and no
module.
"""

import json
import resource
import sys
from datetime import datetime
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS = 4  # of a processor, and one more for each THOUSAND conversations
MEMORY = 512 * 2**20  # bytes of addresses, beside eight times those that are read
ADDITION = 100_000  # characters that a template may add to the messages
DAY = datetime(2025, 1, 1)  # what a template is told that today is, so that the same records give the same prompts


class Generation(Extension):
    """The tag that some templates put around what a model says; it shows what stands within."""

    tags = {"generation"}  # noqa: RUF012 (as jinja2 has it)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the nodes between the tags, as if these were not there."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), True)  # the end is left out


def refuse(message: str) -> None:
    """What a template calls to refuse a conversation."""
    raise TemplateError(message)


def as_json(value: Any, indent: int | None = None, separators: Any = None, sort_keys: bool = False, **_: Any) -> str:
    """What templates call tojson; unlike that of jinja2 it escapes nothing for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys)


def main() -> None:
    """Render what standard input asks for."""
    data = sys.stdin.buffer.read()
    request = json.loads(data)
    seconds, memory = SECONDS + len(request["conversations"]) // 1000, MEMORY + 8 * len(data)
    for limit, value in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        resource.setrlimit(limit, (value, value))
    try:
        answers = _answers(request)
    except MemoryError:
        answers = [{"error": "it takes too much memory"}]
    json.dump(answers, sys.stdout)


def _answers(request: dict[str, Any]) -> list[dict[str, str]]:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = as_json
    environment.globals |= {"raise_exception": refuse, "strftime_now": DAY.strftime}
    try:
        template = environment.from_string(request["template"])
    except (TemplateError, RecursionError) as error:
        return [{"error": f"it is no template: {error}"}]
    answers = []
    for messages in request["conversations"]:
        try:
            text = template.render(messages=messages, add_generation_prompt=True, **request["values"])
        except MemoryError:
            raise
        except Exception as error:  # whatever the program of a stranger does
            answers.append({"error": f"{type(error).__name__}: {error}"})
            continue
        longest = sum(len(message["content"]) for message in messages) + ADDITION
        answers.append(
            {"text": text} if len(text) <= longest else {"error": f"it adds more than {ADDITION:,} characters"}
        )
    return answers


if __name__ == "__main__":
    main()
