"""Records are read in three forms; what has another form is refused, and what cannot tell anything is counted."""

import io
import sys

import pytest

from position_card.texts import records
from tests.records import asked, chats, choices, write
from tests.refusals import refused


def read(rows):
    return records.records_of(list(enumerate(rows, start=1)))


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
@pytest.mark.parametrize("gold", [0, 4, 9])
def test_a_file_of_lost_in_the_middle_is_read_as_it_is(tmp_path, gold, ending):
    rows = asked(9, documents=10, gold=gold)
    found = records.read_records(write(tmp_path / f"gold_at_{gold}{ending}", rows))
    assert not found.omissions
    assert [record.number for record in found.records] == list(range(1, 10))
    record, given = found.records[2], rows[2]
    assert record.gold == (gold,)
    assert record.answers == tuple(given["answers"])
    assert record.items[3] == f"Document (Title: {given['ctxs'][3]['title']}) {given['ctxs'][3]['text']}"
    (message,) = record.messages
    assert message["role"] == "user"
    assert message["content"].count("{documents}") == 1
    assert message["content"].endswith(f"Question: {given['question']}")


@pytest.mark.parametrize(
    ("marks", "gold"),
    [
        ([{"isgold": False, "hasanswer": True}, {"isgold": True}, {}, {}], (1,)),
        ([{"isgold": False}, {}, {"hasanswer": True}, {"hasanswer": False}], (2,)),
        ([{}, {"has_answer": True}, {}, {"has_answer": True}], (1, 3)),
        ([{}, {}, {}, {"text": "It is TWELVE o'clock."}], (3,)),
    ],
)
def test_the_surest_mark_says_which_documents_are_gold(marks, gold):
    rows = asked(8, answers=["twelve"])
    rows[0]["ctxs"] = [{"text": "nothing", **mark} for mark in marks]
    assert read(rows).records[0].gold == gold
    assert read(rows).records[0].items[0] == "Document: nothing"


@pytest.mark.parametrize(
    ("answer", "text", "stands"),
    [
        ("Rome", "in Romero", False),
        ("Rome", "ROME.", True),
        (" Rome ", "Rome's walls", True),
        ("Rome", "in Romero's Rome", True),
        ("Rome", "_Rome_ and Rome²", True),
        ("cafe", "a cafe\u0301", False),
        ("strasse", "STRAßE", True),
        ("ток", "поток", False),
        ("5", "25 or 50", False),
        ("5", "2.5 or 5,000", False),
        ("5", "at 5.", True),
        ("5", "5, 6", True),
        ("C++", "in C++17", True),
        (".NET", "use .NET now", True),
        ("$5", "it is $50", False),
        ("$5", "it is $5.", True),
        ("東京", "私は東京に", True),
        ("iPhone", "新しいiPhoneは", True),
        ("กรุงเทพ", "ในกรุงเทพฯ", True),
        ("서울", "서울은 크다", True),
        ("القاهرة", "والقاهرة", True),
    ],
)
def test_an_answer_stands_in_a_text_as_whole_words(answer, text, stands):
    """Where a script has no blanks between words, or writes particles as parts of them, letters may stand beside it."""
    assert records.stands_in(answer, text) == stands


def test_a_document_with_a_longer_word_does_not_hold_the_answer():
    rows = asked(8)
    rows[0] |= {"answers": ["Rome"], "ctxs": [{"text": text} for text in ("Romero", "in Rome.", "chrome", "none")]}
    assert read(rows).records[0].gold == (1,)


def test_the_last_message_of_a_chat_is_the_answer():
    rows = chats()
    record = read(rows).records[0]
    assert [message["role"] for message in record.messages] == ["system", "user"]
    assert record.answers == (rows[0]["messages"][-1]["content"],)
    assert record.items == tuple(rows[0]["documents"])
    assert (record.gold, record.prefix) == ((0,), "")


def test_a_chat_may_mark_a_document_which_stands_there_as_its_text():
    rows = chats()
    texts = rows[0]["documents"]
    rows[0]["documents"] = [texts[0], {"text": texts[1], "isgold": True}, *texts[2:]]
    record = read(rows).records[0]
    assert (record.items, record.gold) == (tuple(texts), (1,))


@pytest.mark.parametrize(("answer", "gold"), [(1, (1,)), ("B", (1,)), ("two ", (1,)), (None, ())])
def test_the_right_option_is_named_by_number_letter_or_text(answer, gold):
    rows = choices()
    rows[0] |= {"choices": ["one", "two"], "answer": answer}
    rows = [row | {"choices": row["choices"][:2]} for row in rows]
    record = read(rows).records[0]
    assert record.chooses
    assert (record.items, record.gold) == (("one", "two"), gold)


def test_braces_and_percents_in_texts_stay_as_they_are():
    rows = asked(8, question="{question} {0} %s {{}}?")
    assert read(rows).records[0].messages[0]["content"].endswith("Question: {question} {0} %s {{}}?")


def test_records_that_cannot_tell_anything_are_omissions_and_counted():
    rows = asked(10)
    rows[0]["answers"] = ["nowhere"]
    rows[0]["ctxs"] = [{"text": "nothing"}] * 4
    rows[1]["ctxs"] = rows[1]["ctxs"][:2]
    found = read(rows)
    assert len(found.records) == 8
    assert found.omissions == {records.NO_GOLD: 1, records.TOO_FEW: 1}
    with refused("7 records", records.NO_GOLD, "8"):
        read(rows[:9])


def test_standard_input_is_read_where_a_dash_is_typed(monkeypatch, tmp_path):
    write(tmp_path / "a.jsonl", asked())
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeff" + (tmp_path / "a.jsonl").read_text()))
    assert len(records.read_records("-").records) == 8


MESSAGE = {"role": "user", "content": "{documents}"}
ANSWER = {"role": "assistant", "content": "one"}
WRONG = {
    "no object": ([1], "record 1"),
    "none of the forms": ({"text": "a"}, "text"),
    "no answer": (asked(1)[0] | {"answers": []}, "has no answers"),
    "no question": ({**asked(1)[0], "question": None}, "has no 'question'"),
    "a quotation that ends with a word": (
        choices(1)[0] | {"answer": "words of an answer that nobody knows at all"},
        "the answer 'words of an answer that nobody knows at ...,",
    ),
    "an answer that is no text": (asked(1)[0] | {"answers": [1]}, "'answers'"),
    "a question that is no text": (asked(1)[0] | {"question": 7}, "'question'"),
    "documents that are none": (asked(1)[0] | {"ctxs": "a"}, "ctxs"),
    "a document without text": (asked(1)[0] | {"ctxs": [{"title": "a"}]}, "'text'"),
    "a question with the place": (asked(1)[0] | {"question": "{documents}"}, "2 times"),
    "a chat without the place": (chats(1)[0] | {"messages": [{**MESSAGE, "content": "a"}, ANSWER]}, "0 times"),
    "a chat without answer": (chats(1)[0] | {"messages": [MESSAGE]}, "answer"),
    "a chat with another role": (chats(1)[0] | {"messages": [{**MESSAGE, "role": "tool"}, ANSWER]}, "role"),
    "a chat of texts": (chats(1)[0] | {"messages": "a"}, "messages"),
    "one option": (choices(1)[0] | {"choices": ["a"]}, "choices"),
    "an answer beyond the options": (choices(1)[0] | {"answer": 3}, "3"),
    "an answer that is no option": (choices(1)[0] | {"answer": "no"}, "'no'"),
    "an answer that is true": (choices(1)[0] | {"answer": True}, "True"),
}


@pytest.mark.parametrize(("row", "named"), WRONG.values(), ids=WRONG)
def test_a_line_of_another_form_is_refused(row, named):
    with refused("record 1", named):
        read([row, *asked(8)])


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (asked(8) + choices(8), ("record 9 has choices", "record 1 has ctxs")),
        (chats(3) + asked(8), ("record 4 has ctxs", "record 1 has messages")),
        (choices(8) + choices(1, 4), ("record 9", "4 choices")),
    ],
)
def test_records_of_two_kinds_are_refused(rows, named):
    with refused(*named):
        read(rows)


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("a.txt", b"", "a.txt"),
        ("a.jsonl", b"{", "line 1"),
        ("a.jsonl", b"[" * 100_000, "line 1"),
        ("a.jsonl", b'\n{"a": "\xff"}', "UTF-8"),
        ("a.jsonl.gz", b"no archive", "a.jsonl.gz"),
        ("a.jsonl.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03K", "a.jsonl.gz"),
        ("none.jsonl", None, "none.jsonl"),
    ],
)
def test_a_file_that_cannot_be_read_ends_in_one_line(tmp_path, name, content, named):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with refused(named):
        records.read_records(str(tmp_path / name))


def test_a_file_that_unpacks_without_end_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "CHARACTERS", 1000)
    file = write(tmp_path / "a.jsonl.gz", [{"a": "x" * 5000}])
    with refused("a.jsonl.gz", "1,000"):
        records.read_records(file)
