"""Chat templates that somebody made to do harm: each ends in one line, within its limits, and reaches nothing."""

import pytest

from position_card.texts import chat
from position_card.texts.records import records_of
from tests.records import asked
from tests.refusals import refused

SHOWN = "{{ messages[0].content }}"
HOSTILE = {
    "a command": "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "an attribute by its name": "{{ (messages | attr('__class__')).mro() }}",
    "globals of a function": "{{ raise_exception.__globals__['sys'] }}",
    "the object of a method": "{{ strftime_now.__self__.today() }}",
    "a file": "{% include '/etc/passwd' %}",
    "a module": "{% import 'os' as os %}",
    "a long range": "{% for i in range(10**9) %}a{% endfor %}",
    "nested loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "a gigabyte": "{{ ('a' * 10**9) | length }}",
    "many megabytes": "{% for i in range(9999) %}{{ 'a' * 10**6 }}{% endfor %}",
    "a large number": "{{ 9 ** (9 ** 9) }}",
    "more text than a prompt": "{{ 'a' * 10**6 }}",
    "changed messages": "{{ messages.append(messages[0]) }}",
    "endless recursion": "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
}


AS_NESTED_LOOPS = pytest.mark.all("it ends by the same limit as nested loops, after as many seconds")


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, id=name, marks=AS_NESTED_LOOPS if name == "a large number" else ())
        for name, attack in HOSTILE.items()
    ],
)
def test_a_hostile_template_ends_in_one_line(attack):
    records = records_of(list(enumerate(asked(), start=1))).records
    with refused("chat template", "--plain"):
        chat.chat_frames(records, chat.ChatTemplate(SHOWN + attack, {}))


def test_a_template_that_sees_no_documents_does_nothing_with_their_order():
    """The place of the documents is what it is told, and nothing of what they say."""
    records = records_of(list(enumerate(asked(), start=1))).records
    telling = SHOWN + "{% if 'The code of the red gate is' in messages[0].content %}one{% endif %}"
    assert chat.chat_frames(records, chat.ChatTemplate(telling, {})).variants == 1
