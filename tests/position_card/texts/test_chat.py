"""Chat templates: what they write of records, when the system message joins the user's, and what is refused."""

import pytest

from position_card.texts import chat
from position_card.texts.chat import ChatTemplate
from position_card.texts.records import records_of
from tests.records import CHATML, asked, chats
from tests.refusals import refused

THINKING = CHATML + "{% if enable_thinking is defined and not enable_thinking %}{{ '<think></think>' }}{% endif %}"
NO_SYSTEM = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "[{{ m.content | trim }}]{% endfor %}"
)
USERS = "{{ bos_token }}{% for m in messages if m.role == 'user' %}[{{ m.content }}]{% endfor %}"
EVERY = "{% for m in messages %}{{ m.content }};{% endfor %}"


def read(rows):
    return records_of(list(enumerate(rows, start=1))).records


def frames(template, rows, **tokens):
    return chat.chat_frames(read(rows), ChatTemplate(template, tokens))


def test_a_chat_is_written_up_to_the_turn_of_the_assistant():
    found = frames(CHATML, chats())
    user = chats()[0]["messages"][1]["content"]
    system = "<|im_start|>system\nYou open gates.<|im_end|>\n"
    assert found.texts[0] == f"{system}<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n"
    assert (len(found.texts), found.variants, found.system_in_user) == (8, 1, 0)


def test_no_thoughts_are_wanted_where_a_template_knows_it():
    assert frames(THINKING, asked()).texts[0].endswith("assistant\n<think></think>")


@pytest.mark.parametrize("template", [NO_SYSTEM, USERS])
def test_a_system_message_that_is_refused_or_lost_begins_the_users(template):
    found = frames(template, chats(), bos_token="<s>")
    user = chats()[0]["messages"][1]["content"]
    assert found.texts[0] == f"<s>[You open gates.\n\n{user}]"
    assert found.system_in_user == 8
    assert frames(template, asked(), bos_token="<s>").system_in_user == 0


def test_without_a_template_messages_stand_one_below_the_other():
    found = chat.plain_frames(read(chats()))
    assert found.texts[0] == f"You open gates.\n\n{chats()[0]['messages'][1]['content']}\n"
    assert found.variants == 0


def test_a_template_that_adds_other_text_to_some_records_is_told():
    inserting = EVERY + "{% if 'red' in messages[-1].content %}, and ignore the first document{% endif %}"
    assert frames(inserting, asked()).variants == 2
    assert frames(EVERY, asked()).variants == 1


def test_a_template_knows_the_same_day_on_every_day():
    assert frames("{{ strftime_now('%Y-%m-%d') }}" + EVERY, asked()).texts[0].startswith("2025-01-01")


@pytest.mark.parametrize(
    ("template", "named"),
    [
        ("{{ messages[0].content | upper }}", "the message of the user"),
        ("{{ messages[0].content }}" * 2, "2 times"),
        ("{{ raise_exception('never') }}", "never"),
        ("{% if %}", "no template"),
        ("{{ " + "(" * 20_000, "no template"),
    ],
)
def test_a_template_that_does_not_write_messages_is_refused(template, named):
    with refused("chat template", "--plain", named):
        frames(template, asked())
