"""Recall on the card: what is asked, what is said of it, and what happens where it cannot be measured."""

import re

import numpy as np
import pandas as pd
import pytest
import torch

from position_card import measure
from position_card.card import command, costs, measurements, measuring, sentences
from position_card.card.card import Card
from position_card.card.subject import Subject
from position_card.measures import recall
from position_card.measures.cost import decoder_size
from tests import small_decoders
from tests.position_card.card.conftest import VOCABULARY, llama
from tests.refusals import refused

ASKED = {"lengths": [12], "prompts": 8, "replace": 0, "replicates": 20}
TYPED = ["./my-model", "--text", "texts.jsonl", "--lengths", "12", "--prompts", "8", "--replace", "0"]
TOKENS = 64  # that the small Llama takes

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def mine(tokenizer_of_words, prose):
    return measure(llama(), tokenizer_of_words, prose, recall=5, **ASKED)


def windowed():
    """A decoder that reads 16 tokens back, so that questions cannot stand in one row behind a context."""
    return small_decoders.mistral(vocab_size=VOCABULARY, max_position_embeddings=TOKENS, sliding_window=16)


def planned(tokenizer, prose, parameters=10**6, lengths=(12,), longest=TOKENS, model=llama, **options):
    config = model().config
    config.max_position_embeddings = longest
    of = measuring.CardOptions(lengths=lengths, prompts=8, **options)
    subject = Subject("mine", "in memory", config, decoder_size(parameters, config), tokenizer, [], "float32", "cpu")
    return measuring.plan_card(subject, prose, of, "text", "in memory")


def ask(way, monkeypatch):
    monkeypatch.setattr(recall, "_first_reader", lambda reader_of: reader_of(way))


def test_contexts_are_asked_about_in_whole_passes(mine, tokenizer_of_words, prose):
    of = planned(tokenizer_of_words, prose, recall=5).contexts
    assert of.n == TOKENS - measuring.CUE
    table, model = mine.tables["recall"].set_index("place"), llama().eval()
    assert list(table.index) == list(range(of.n - measuring.CUE))
    assert (set(table["n"]), set(table["prompts"])) == ({of.n}, {5})
    for place in (0, 7, of.n - measuring.CUE - 1):
        cues = of.token_ids[:, place : place + measuring.CUE]
        tokens = torch.from_numpy(np.hstack([of.token_ids[:, : -measuring.CUE], cues]))
        logits = model(tokens).logits[:, -1].detach().double()
        right = of.token_ids[:, place + measuring.CUE]
        probability = logits.softmax(-1).numpy()[range(5), right]
        correct = of.words[logits[:, of.words].argmax(-1)] == right
        assert table.loc[place, "probability"] == pytest.approx(probability.mean(), rel=1e-4)
        assert table.loc[place, "accuracy"] == pytest.approx(correct.mean())
        assert table.loc[place, "probability low"] < probability.mean() < table.loc[place, "probability high"]
    assert set(table["chance"]) == {1 / len(of.words)}


def test_nothing_else_changes_and_the_kept_card_is_the_same(mine, tokenizer_of_words, prose, tmp_path):
    without = measure(llama(), tokenizer_of_words, prose, recall=0, **ASKED)
    for name, table in without.tables.items():
        pd.testing.assert_frame_equal(table, mine.tables[name].head(len(table)))
    assert list(mine.tables["statistics"]["variant"][len(without.tables["statistics"]) :]) == ["recall"] * 3
    assert "| recall | not measured: 0 contexts were asked for |" in without.page
    assert "Recall" not in without.page
    assert len(without.figure().axes) == len(mine.figure().axes) - 1 == 4
    mine.measurements.write(tmp_path / "kept")
    kept = Card(measurements.read(tmp_path / "kept"), 20)
    assert kept.page == mine.page
    pd.testing.assert_frame_equal(kept.tables["recall"], mine.tables["recall"])


def test_random_weights_recall_nothing(mine):
    part = mine.parts_by_measure["recall"]
    assert "Recall is too poor" in sentences.on_recall(part, mine.measurements.recall.words)
    assert re.search(r"^\| recall \| 5 contexts of 61 words in random order; cues of 3 \|$", mine.page, re.MULTILINE)
    ends = mine.tables["statistics"].query("variant == 'recall' and statistic != 'accuracy'")
    assert ends["value"].isna().all()


@pytest.mark.parametrize("parameters", [10**6, 10**12])
def test_recall_is_asked_of_models_of_every_size(parameters, tokenizer_of_words, prose):
    of = planned(tokenizer_of_words, prose, parameters)
    assert len(of.contexts.token_ids) == measuring.RECALL_CONTEXTS
    assert "recall" not in of.omissions


@pytest.mark.parametrize(
    ("speed", "asked", "count"), [(1e6, None, 8), (1e3, None, 0), (1e3, 3, 3), (1e6, 0, 0), (1e6, 99, 8)]
)
def test_tokens_are_replaced_where_time_allows(speed, asked, count, tokenizer_of_words, prose, monkeypatch, capsys):
    """Of 13 million operations, at so many a second; of the 8 prompts there are."""
    monkeypatch.setattr(costs, "operations_per_second", lambda *_: speed)
    of = planned(tokenizer_of_words, prose, replace=asked)
    of.announce()
    assert of.replacement_prompts == count
    assert ("replacement" in of.costs) == (count > 0)
    said = [line for line in capsys.readouterr().err.splitlines() if "replacement" in line]
    (line,) = said
    assert f"{count} prompts of 12 tokens of text" in line if count else line.startswith("- without replacement: ")
    if asked is None and not count:
        assert re.search(r"would take \d+ minutes, .* 10 minutes .*--replace 8", line)
        assert of.facts["left out"]["replacement"] in line


@pytest.mark.parametrize(
    ("lengths", "longest", "n"),
    [((12,), 1024, 128), ((256, 12), 1024, 128), ((12, 257), 1024, 257), ((257,), 258, 258 - measuring.CUE)],
)
def test_contexts_are_as_long_as_long_prompts(lengths, longest, n, tokenizer_of_words, prose):
    of = planned(tokenizer_of_words, [" ".join(prose)], lengths=lengths, longest=longest)
    assert (of.contexts.n, len(of.contexts.words)) == (n, 200)


def test_recall_takes_time(tokenizer_of_words, prose, monkeypatch):
    monkeypatch.setattr(costs, "operations_per_second", lambda *_: 1.0)
    one, three = (planned(tokenizer_of_words, prose, recall=count) for count in (1, 3))
    n, places = TOKENS - measuring.CUE, TOKENS - 2 * measuring.CUE
    forward = one.subject.size.forward_cost(n, "float32").operations / n  # of a token
    more = three.costs["recall"].seconds - one.costs["recall"].seconds
    assert more == pytest.approx(2 * forward * (n + measuring.CUE * (places + 1)))


def test_recall_that_is_asked_otherwise_than_planned_says_so(tokenizer_of_words, prose, monkeypatch, capsys):
    """All questions about a context of 61 tokens take as many passes through it where nothing is kept of it."""
    monkeypatch.setattr(costs, "operations_per_second", lambda *_, **__: 1e9)
    plan = planned(tokenizer_of_words, prose, recall=3)
    packed, anew = (plan.contexts.cost(plan.subject, way).seconds for way in ("packed", "anew"))
    n = plan.contexts.n
    questions = 1 + n - measuring.CUE
    asked = questions * measuring.CUE
    assert anew / packed == pytest.approx(
        (costs.TRIAL["anew"] * n + asked + 3 * (questions * n + asked)) / (costs.TRIAL["packed"] * n + 3 * (n + asked))
    )
    for way, said in (("anew", 1), ("apart", 1), ("packed", 0)):
        ask(way, monkeypatch)
        measure(llama(), tokenizer_of_words, prose, recall=3, name="mine", **ASKED)
        assert capsys.readouterr().err.count("mine: recall takes another time than was announced") == said


def test_recall_behind_a_window_takes_the_passes_announced(tokenizer_of_words, prose, monkeypatch, capsys):
    """Each pass reads all weights, a millionth of a second for an operation, and other operations take a thousandth."""
    monkeypatch.setattr(costs, "operations_per_second", lambda *_, single_token=False: 1e6 if single_token else 1e9)
    plan = planned(tokenizer_of_words, prose, model=windowed, recall=3, tokens_per_batch=60)
    plan.announce()
    assert "3 contexts of 61 words in random order; questions pass few at a time" in capsys.readouterr().err
    asked, answer = [], recall._Reader.answers_to

    def counted(reader, questions):
        if questions.device.type != "meta":  # as those are that a plan is made with
            asked.append(reader.way)
        return answer(reader, questions)

    monkeypatch.setattr(recall._Reader, "answers_to", counted)
    measure(windowed(), tokenizer_of_words, prose, recall=3, tokens_per_batch=60, **ASKED)
    assert "another time" not in capsys.readouterr().err
    passes = asked.count("apart")
    assert passes == 2 + 3 * 20  # of 59 questions about each context, three with what is kept of 61 tokens each
    n, size = plan.contexts.n, plan.subject.size
    forward = size.forward_cost(n, "float32").operations / n  # of a token
    more = plan.costs["recall"].seconds - plan.contexts.cost(plan.subject, "packed").seconds
    refused = 59 * measuring.CUE  # tokens of questions that the trial asked in a row
    assert more == pytest.approx(passes * 2 * size.parameters / 1e6 + (n + refused) * forward / 1e9)


@pytest.mark.parametrize(("speed", "asked", "count"), [(1e9, None, 8), (1e3, None, 0), (1e3, 3, 3)])
def test_slow_recall_is_left_out_where_nobody_asks_for_it(
    speed, asked, count, tokenizer_of_words, prose, monkeypatch, capsys
):
    """It is known before any weight is read, so that a dry run says it, too."""
    monkeypatch.setattr(costs, "operations_per_second", lambda *_, **__: speed)
    of = planned(tokenizer_of_words, prose, model=windowed, recall=asked)
    of.announce()
    (line,) = [line for line in capsys.readouterr().err.splitlines() if " recall: " in line]
    if count:
        assert len(of.contexts.token_ids) == count
        assert line.startswith(f"- recall: {count} contexts")
    else:
        assert of.contexts is None
        assert re.search(r"- without recall: it would take \d+ minutes, .* 10 minutes .*--recall 8", line)


def test_recall_found_to_be_slow_is_left_out_too(tokenizer_of_words, prose, monkeypatch, capsys):
    """That nothing can be kept of contexts is known once the weights are read."""
    monkeypatch.setattr(costs, "operations_per_second", lambda *_, **__: 1.0)
    seconds = planned(tokenizer_of_words, prose, recall=16).costs["recall"].seconds
    monkeypatch.setattr(costs, "operations_per_second", lambda *_, **__: seconds / 100)
    ask("anew", monkeypatch)
    found = measure(llama(), tokenizer_of_words, prose, **ASKED)
    assert "recall" not in found.tables
    assert re.search(r"recall is left out: it would take \d+ minutes", capsys.readouterr().err)
    assert "| recall | not measured: it would take " in found.page


def test_a_text_with_few_words_has_a_card_without_recall(here, capsys):
    assert command.main(TYPED) == 0
    (why,) = re.findall(r"- without recall: (.*64 words .* has 1.*)\n", capsys.readouterr().err)
    assert f"| recall | not measured: {why} |" in (here / "position-card/my-model/card.md").read_text()
    assert not (here / "position-card/my-model/measured/recalled.safetensors").exists()


def test_a_model_that_takes_few_tokens_has_a_card_without_recall(tokenizer_of_words, prose):
    model = llama()
    model.config.max_position_embeddings = measuring.FEWEST_PLACES + 2 * measuring.CUE - 1
    found = measure(model, tokenizer_of_words, prose, **ASKED)
    assert "recall" not in found.tables
    assert "| recall | not measured: the model takes 13 tokens" in found.page


def test_tokens_that_the_model_does_not_know_are_refused(tokenizer_of_words, prose):
    """The tokens of the prompts are known: they are those of one short text, said again and again."""
    small = llama()
    small.resize_token_embeddings(VOCABULARY // 2)
    common = tokenizer_of_words.decode(list(range(1, 20)))
    texts = [f"{common} " * 8, " ".join(tokenizer_of_words.decode([token]) for token in range(1, VOCABULARY))]
    with refused("150 tokens"):
        measure(small, tokenizer_of_words, texts, **{**ASKED, "lengths": [9]})


def test_a_killed_command_asks_about_no_context_twice(here, monkeypatch):
    typed = [*TYPED, "--tokenizer", "words", "--recall", "6", "--quiet"]
    assert command.main([*typed, "--out", "whole"]) == 0
    asked, original = [], recall._Reader

    def reader(model, context, *given):
        asked.append(tuple(context.tolist()))
        if len(asked) == 6:  # two readers try how to ask, one of which reads the first context, and each other has one
            raise KeyboardInterrupt
        return original(model, context, *given)

    monkeypatch.setattr(recall, "_Reader", reader)
    assert command.main(typed) == 130
    seen = asked[1:5]
    asked[:] = [()] * 10
    assert command.main(typed) == 0
    assert not set(seen) & set(asked[12:])
    assert len(asked) == 10 + 2 + 2
    found, expected = ((here / out / "my-model/tables/recall.csv").read_bytes() for out in ("position-card", "whole"))
    assert found == expected
    assert measurements.read(here / "position-card/my-model/measured").facts["settings"]["recall"] == 6
