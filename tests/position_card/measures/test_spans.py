"""Spans of a prompt, moved about: models whose answer is known, and plain passes of each order."""

import numpy as np
import pandas as pd
import pytest
import torch

from position_card.measures import spans
from tests.refusals import refused
from tests.small_decoders import VOCABULARY, llama, mistral

LENGTHS = (3, 5, 4, 6)


@pytest.fixture(scope="module")
def given():
    generator = np.random.default_rng(0)
    return [generator.integers(0, VOCABULARY, length) for length in LENGTHS], generator.integers(0, VOCABULARY, (2, 30))


@pytest.fixture(scope="module")
def model():
    return llama(num_hidden_layers=2)


def test_paragraphs_are_the_spans_of_a_prompt_unless_a_separator_is_named():
    assert spans.split("One.\n\nTwo.\n\n\n\nAsked?") == ["One.\n\n", "Two.\n\n\n\n", "Asked?"]
    assert spans.split("One\none.\n \n  Two.\n\nAsked?\n\n") == ["One\none.\n \n", "  Two.\n\n", "Asked?\n\n"]
    assert spans.split("a--b----c\n\nd--", "--") == ["a--", "b----", "c\n\nd--"]
    with refused("2 spans"):
        spans.split("One.\n\nAsked?")
    with refused("separator"):
        spans.split("One.\n\nTwo.\n\nAsked?", "")


def test_every_span_but_the_last_is_put_at_every_place_and_the_others_keep_their_order():
    found = list(spans.orders(4))
    assert found[0] == (None, "as given", (0, 1, 2, 3))
    assert found[4:7] == [(1, "first", (1, 0, 2, 3)), (1, "middle", (0, 1, 2, 3)), (1, "last", (0, 2, 1, 3))]
    assert len(found) == 1 + 3 * 3


def test_two_spans_have_two_places_and_no_order_passes_through_the_model_twice(model, given, monkeypatch):
    moves = [(0, "first", (0, 1, 2)), (0, "last", (1, 0, 2)), (1, "first", (1, 0, 2)), (1, "last", (0, 1, 2))]
    assert list(spans.orders(3))[1:] == moves
    pieces, others = given
    seen = []
    prediction = spans.prediction

    def watched(model, tokens, latest):
        seen.append(torch.is_grad_enabled())
        return prediction(model, tokens, latest)

    monkeypatch.setattr(spans, "prediction", watched)
    table = spans.measure_spans(model, pieces[:3], others)
    assert len(table) == 3 + 4
    assert list(spans.placed(table, "gradient")) == ["first", "last"]
    assert sum(spans.explained(table, "replacement").values()) == pytest.approx(1)
    assert seen.count(True) == 2
    assert seen.count(False) == len(others) * (3 + 2)
    as_given = table[table["place"] == "as given"].set_index("span")
    for moved, place, order in moves:
        if order == (0, 1, 2):
            (row,) = table[(table["span"] == moved) & (table["place"] == place)].to_dict("records")
            assert row["gradient"] == as_given.loc[moved, "gradient"]


@pytest.mark.parametrize("before", [[], [7]])
def test_what_a_span_weighs_is_that_of_plain_passes_of_its_order(model, given, before):
    pieces, others = given
    table = spans.measure_spans(model, pieces, others, before=before)
    assert list(table) == list(spans.COLUMNS)
    assert len(table) == 4 + 3 * 3
    (row,) = table[(table["span"] == 1) & (table["place"] == "last")].to_dict("records")
    tokens = np.concatenate([before, pieces[0], pieces[2], pieces[1], pieces[3]]).astype(int)
    begins = len(before) + 3 + 4
    assert (row["begins"], row["tokens"]) == (begins, 5)
    embeddings = model.get_input_embeddings()(torch.from_numpy(tokens[None])).detach().requires_grad_()
    distribution = model(inputs_embeds=embeddings).logits[0, -1].softmax(-1)
    distribution.max().backward()
    influence = embeddings.grad[0].norm(dim=-1)
    assert row["gradient"] == pytest.approx(float(influence[begins : begins + 5].sum() / influence.sum()), rel=1e-4)
    changes = []
    for other in others:
        replaced = np.concatenate([tokens[:begins], other[:5], tokens[begins + 5 :]])
        with torch.no_grad():
            changed = model(torch.from_numpy(replaced[None])).logits[0, -1].softmax(-1)
        changes.append(float((distribution - changed).detach().abs().sum() / 2))
    assert row["replacement"] == pytest.approx(np.mean(changes), abs=1e-6)


def test_shares_of_all_spans_as_given_sum_to_one(model, given):
    table = spans.measure_spans(model, *given)
    assert table.loc[table["place"] == "as given", "gradient"].sum() == pytest.approx(1)


def test_in_a_model_with_a_short_window_place_is_everything(given):
    """One layer with a window of 8 sees two tokens before the last span of 6 tokens, whatever they say."""
    table = spans.measure_spans(mistral(num_hidden_layers=1, sliding_window=8), *given)
    unseen = table[table["place"].isin(["first", "middle"])]
    assert unseen["gradient"].max() == 0
    assert unseen["replacement"].max() == 0
    assert table.loc[table["place"] == "last", "replacement"].min() > 0


def test_variance_is_shared_out_between_place_and_span():
    def table(value):
        rows = [(span, place, value(span, place)) for span in range(4) for place in spans.PLACES]
        return pd.DataFrame(rows, columns=["span", "place", "gradient"])

    placed = {"first": 3.0, "middle": 1.0, "last": 9.0}
    by_place = spans.explained(table(lambda _, place: placed[place]), "gradient")
    assert by_place == pytest.approx({"place": 1, "span": 0, "rest": 0}, abs=1e-12)
    by_span = spans.explained(table(lambda span, _: 2.0**span), "gradient")
    assert by_span == pytest.approx({"place": 0, "span": 1, "rest": 0}, abs=1e-12)
    both = spans.explained(table(lambda span, place: placed[place] * 2.0**span), "gradient")
    of_place, of_span = np.var(np.log([3, 1, 9])), np.var(np.log(2.0 ** np.arange(4)))
    assert both["place"] == pytest.approx(of_place / (of_place + of_span))
    assert both["rest"] == pytest.approx(0, abs=1e-12)


def test_chance_is_the_mean_over_shuffled_tables():
    generator = np.random.default_rng(0)
    keys = [(span, place) for span in range(4) for place in spans.PLACES]
    found = []
    for _ in range(300):
        rows = [(*key, value) for key, value in zip(keys, generator.permutation(2.0 ** np.arange(12)), strict=True)]
        found.append(spans.explained(pd.DataFrame(rows, columns=["span", "place", "gradient"]), "gradient"))
    assert spans.by_chance(4, 3) == pytest.approx(pd.DataFrame(found).mean().to_dict(), abs=0.04)


def test_a_text_that_is_shorter_than_a_span_is_refused(model, given):
    pieces, others = given
    with refused("5 tokens", "a span has 6"):
        spans.measure_spans(model, pieces, others[:, :5])
