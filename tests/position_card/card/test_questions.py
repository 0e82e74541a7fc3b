"""The built-in questions of a card, against prompts that are written by hand and read without a cache."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import AddedToken
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import position_card
from position_card import measure
from position_card.card import command, questions
from position_card.card.documents_page import Documents
from position_card.texts import tokens
from tests.records import CHATML

CONTROLS = ("<|im_start|>", "<|im_end|>")
FRAME = "Answer the question from the documents below.\n\n{}\n\nQuestion: {}"
ASKED = {"lengths": [9], "prompts": 8, "replace": 0, "recall": 0, "replicates": 5, "threads": 1}
TYPED = ["--text", "texts.jsonl", "--lengths", "12", "--prompts", "8", "--replace", "0", "--recall", "0", "--quiet"]
RECORDS = [json.loads(line) for line in Path(questions.FILE).read_text(encoding="utf-8").splitlines()]

pytestmark = pytest.mark.usefixtures("undrawn")


def chat_tokenizer(template=CHATML):
    made = tokens.train_tokenizer([json.dumps(row) for row in RECORDS], 300)
    made.add_special_tokens([AddedToken(token, special=True) for token in CONTROLS])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=CONTROLS[1], chat_template=template)


def llama(longest=1000):
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=310, max_position_embeddings=longest, initializer_range=0.3, **size)
    ).eval()


@pytest.fixture(scope="module")
def measured(prose):
    """The card of a chat model; not to be changed."""
    return measure(llama(), chat_tokenizer(), prose, **ASKED)


def by_hand(model, tokenizer, text, answer):
    """The log-probability of an answer behind a text, by one pass without a cache."""
    prompt, whole = (tokenizer(part, add_special_tokens=False).input_ids for part in (text, text + answer))
    assert whole[: len(prompt)] == prompt
    with torch.no_grad():
        logits = model(torch.tensor([whole]), use_cache=False).logits[0].double().log_softmax(-1)
    return sum(float(logits[place - 1, whole[place]]) for place in range(len(prompt), len(whole)))


def test_the_answer_stands_in_one_of_eight_documents():
    assert len(RECORDS) == 16
    for record in RECORDS:
        texts = [document["text"] for document in record["ctxs"]]
        (gold,) = (document["text"] for document in record["ctxs"] if document.get("isgold"))
        (answer,) = record["answers"]
        assert len(texts) == len(set(texts)) == 8
        assert [text for text in texts if f" {answer}" in text or text.startswith(answer)] == [gold]
    assert len({record["question"] for record in RECORDS}) == 16
    gold_places = Counter([bool(d.get("isgold")) for d in record["ctxs"]].index(True) for record in RECORDS)
    assert max(gold_places.values()) < 8


@pytest.mark.parametrize(("template", "plain"), [(CHATML, False), (CHATML, True), (None, False)])
def test_questions_are_as_probable_as_in_prompts_by_hand(template, plain, prose, measured):
    model, tokenizer = llama(), chat_tokenizer(template)
    card = measured if template and not plain else measure(llama(), tokenizer, prose, plain=plain, **ASKED)
    table = card.tables["questions"].set_index(["record", "place"])
    assert set(table["prompts"]) == {16}
    assert len(table) == 16 * 5
    for number, record in list(enumerate(RECORDS, start=1))[::5]:
        texts = [f"Document: {document['text']}" for document in record["ctxs"]]
        gold = texts.pop([bool(document.get("isgold")) for document in record["ctxs"]].index(True))
        orders = {"no documents": [], "gold alone": [gold], "1": [gold, *texts], "3": [*texts, gold]}
        orders["2"] = [*texts[:4], gold, *texts[4:]]
        for place, order in orders.items():
            text = FRAME.format("\n\n".join(order), record["question"])
            if template and not plain:
                text = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\nAnswer:"
            else:
                text += "\nAnswer:"
            expected = by_hand(model, tokenizer, text, " " + record["answers"][0])
            assert table.loc[(number, place), "log_probability"] == pytest.approx(expected, abs=1e-4)


def test_the_card_begins_with_the_decision_and_keeps_it(measured, tmp_path):
    _, first, *_ = [line for line in measured.page.splitlines() if line]
    assert first.startswith(f"**{measured.questions.decision}** This is of built-in facts: 16 questions in English")
    assert "these questions cannot tell" in first
    assert "--documents" in first
    longest = int(measured.tables["questions"]["tokens"].max())
    assert longest < measured.questions.facts["longest"] <= longest + 20
    assert f"up to {measured.questions.facts['longest']} tokens" in first
    measured.save(tmp_path / "card")
    again = position_card.load(tmp_path / "card")
    assert again.page == measured.page
    assert again.questions.page == measured.questions.page == (tmp_path / "card/questions.md").read_text()
    assert again.tables["questions"].equals(measured.tables["questions"])


def answered(first, spread, alone=9.0, last=0.1, right=1):
    """16 questions whose answers are e to the power of `first` times as probable first as in the middle, about."""
    rng = np.random.default_rng(0)
    gains = {"1": first, "2": 0.0, "3": last, "no documents": -9.0, "gold alone": alone - 9.0}
    rows = [(record, place, gain + spread * rng.normal()) for record in range(16) for place, gain in gains.items()]
    table = pd.DataFrame(rows, columns=["record", "place", "log_probability"])
    facts = {"chooses": False, "seed": 0, "items": [8, 8], "longest": 90, "told by": questions.TOLD_BY}
    return Documents(table.assign(right=right, answer_tokens=2), facts)


@pytest.mark.parametrize(
    ("answers", "title"),
    [
        (answered(2.0, 0.1), "put key documents first (16 built-in questions)"),
        (answered(2.0, 0.1, last=2.0), "put key documents first or last (16 built-in questions)"),
        (answered(0.0, 5.0), ""),  # undecided
        (answered(2.0, 0.1, alone=0.0), ""),  # the documents give no answers
        (answered(2.0, 0.1, right=0), ""),  # none of them is right
    ],
)
def test_a_title_says_where_documents_belong_if_that_is_decided(answers, title):
    assert questions.title(answers) == title


def test_questions_that_are_never_answered_decide_nothing():
    said = questions.headline(answered(2.0, 0.1, right=0))
    assert said.startswith(
        "**This model answers none of these with or without documents: these questions cannot tell.**"
    )


def test_statistics_are_geometric_means_over_the_middle():
    answers = answered(2.0, 0.3)
    by_place = answers.table.pivot(index="record", columns="place", values="log_probability")
    found = questions.ratios_of_ends(answers).set_index("statistic")
    for end, place in (("first / middle", "1"), ("last / middle", "3")):
        assert found.loc[end, "value"] == pytest.approx(np.exp((by_place[place] - by_place["2"]).mean()))
        assert found.loc[end, "low"] < found.loc[end, "value"] < found.loc[end, "high"]


def test_the_statistics_of_a_card_have_its_questions_and_its_caption_names_them(measured):
    table = measured.tables["statistics"]
    assert list(table.loc[table["variant"] == "questions", "statistic"]) == ["first / middle", "last / middle"]
    assert "built-in question (grey)" in measured.page
    assert "![Answers, influence, residual mixing and attention of" in measured.page
    assert measured.figure().axes[0].get_title("left") == "What it answers: 16 questions"


def test_the_command_prints_the_answer_and_asks_no_copy(here, capsys):
    llama().save_pretrained(here / "chat")
    chat_tokenizer().save_pretrained(here / "chat")
    assert command.main(["./chat", *TYPED, "--untrained", "1", "--json"]) == 0
    mine, copy = json.loads(capsys.readouterr().out)
    assert copy["questions"] is None
    page = (here / "position-card/chat-untrained-0/card.md").read_text()
    assert "The built-in questions were not asked: random weights know no answer." in page
    assert mine["questions"]["decision"] in (here / "position-card/chat/card.md").read_text()
    assert set(mine["questions"]["statistics"]) > {"first", "last", "alone", "right"}


@pytest.mark.parametrize(
    ("longest", "template", "options", "why"),
    [
        (1000, CHATML, {"questions": False}, "they are not wanted"),
        (64, CHATML, {}, "0 of 16 records fit mine, which takes 64 tokens"),
        (1000, "{{ raise_exception('no') }}", {}, "the chat template does not write record 1"),
    ],
)
def test_what_keeps_a_model_from_questions_is_said(longest, template, options, why, prose, capsys):
    card = measure(llama(longest), chat_tokenizer(template), prose, name="mine", **ASKED, **options)
    assert card.questions is None
    assert "questions" not in card.tables
    assert f"The built-in questions were not asked: {why}" in card.page
    assert f"| questions | not measured: {why}" in card.page


def test_tokens_that_a_model_does_not_know_keep_it_from_questions(prose, capsys):
    """The control tokens of chats are the last ones, and no prompt of the text has them."""
    small = llama()
    small.resize_token_embeddings(300)
    card = measure(small, chat_tokenizer(), prose, name="mine", **ASKED)
    assert "The built-in questions were not asked: " in card.page
    assert "mine: the built-in questions are left out: " in capsys.readouterr().err
