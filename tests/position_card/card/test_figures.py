"""What the figure of a card says besides its data: numbers in words, and which parts it has."""

import re

import numpy as np
import pandas as pd
import pytest

from position_card.card import figures
from tests.figures.card import (
    TEXT,
    WITH_ALIBI,
    WITHOUT_ALIBI,
    N,
    loss,
    questions,
    recall,
    replacement,
    statistics,
    tables,
    uniform_attention,
)

pytestmark = pytest.mark.usefixtures("styled")


def written(axes):
    return [text.get_text() for text in axes.texts]


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_ends_are_told_over_the_middle_and_numbers_of_prompts_and_tokens():
    of = tables(WITHOUT_ALIBI)
    axes = figures.comparison({"mine": of, "other": of}, TEXT).axes[1]
    assert written(axes) == [f"{figures.TIMES}{over:.3g}" for over in (4.56, 0.5)]  # those of `statistics`
    assert re.findall(r"\d+", axes.get_title()) == ["7", str(N)]


def test_measures_have_their_ends_with_intervals_in_the_legend():
    """Those of `statistics`, of the longest prompts; a measure whose ends are unknown has none."""
    replaced = statistics("replacement", {"first / middle": 2.0, "last / middle": np.nan}).assign(n=N)
    of = {**tables(WITHOUT_ALIBI), "replacement": replacement()}
    shorter = of["statistics"].assign(value=9.0, n=N // 2)
    of["statistics"] = pd.concat([of["statistics"], replaced, shorter])
    axes = figures.card(of, "mine finds it", TEXT).axes[0]
    by_gradients, by_replacement, *others = labels(axes)
    times = figures.TIMES
    assert by_gradients.splitlines()[1:] == [f"first {times}4.56 [2.28, 9.12]", f"last {times}0.500 [0.250, 1.000]"]
    assert by_replacement.splitlines()[2:] == [f"first {times}2.00 [1.00, 4.00]"]
    assert others
    assert not [label for label in others if times in label]
    assert re.findall(r"\d+", axes.get_title("left")) == ["7", str(N)]


@pytest.mark.parametrize(("last", "named"), [(3.0, 1), (1.5, 0)])
def test_the_right_end_is_named_where_attention_is_far_above_the_middle(last, named):
    of = tables(WITHOUT_ALIBI)
    value = np.where(of["distances"]["distance"] == N - 1, last, 1.0) / N
    figure = figures.card({**of, "distances": of["distances"].assign(value=value)}, "mine finds it", TEXT)
    (attention,) = (axes for axes in figure.axes if axes.get_ylabel() == "mean attention")
    assert len(written(attention)) == named


def test_models_have_one_scale_for_each_column():
    of = {"one": tables(WITHOUT_ALIBI), "two": tables(WITH_ALIBI, ("frobenius", "token"), 1, 5)}
    figure = figures.comparison(of, TEXT)
    assert [axes.get_title().split(":")[0] for axes in figure.axes[1::3]] == ["one", "two"]
    for above, below in zip(figure.axes[:3], figure.axes[3:], strict=True):
        assert above.get_ylim() == below.get_ylim()


@pytest.mark.parametrize("value", [4.0, np.nan])
def test_recall_is_on_top_with_both_ends_if_it_is_above_chance(value):
    recalled = statistics("recall", {"first eighth / middle": value, "last eighth / middle": value}).assign(n=N + 3)
    of = {**tables(WITHOUT_ALIBI), "recall": recall()}
    of["statistics"] = pd.concat([of["statistics"], recalled])
    top = figures.card(of, "mine finds it", TEXT).axes[0]
    assert top.get_xlabel().startswith("place")
    assert re.findall(r"\d+", top.get_title("left")) == ["5", str(N + 3)]
    ends = [f"{end} eighth {figures.TIMES}4.00 [2.00, 8.00]" for end in ("first", "last")] if value == 4 else []
    assert labels(top)[0].splitlines()[1:] == ends
    assert len(figures.comparison({"mine": of, "other": of}, TEXT).axes) == 6  # several models have no such panel


def test_questions_are_before_recall_with_both_ends_over_the_middle():
    answered = statistics("questions", {"first / middle": 10.5, "last / middle": 0.9}).assign(n=90)
    of = {**tables(WITHOUT_ALIBI), "recall": recall(), "questions": questions()}
    of["statistics"] = pd.concat([of["statistics"], answered])
    figure = figures.card(of, "mine finds it", TEXT)
    assert [axes.get_xlabel().split()[0] for axes in figure.axes[:2]] == ["place", "place"]
    assert "document" in figure.axes[0].get_xlabel()
    assert written(figure.axes[0]) == [f"{figures.TIMES}10.5", f"{figures.TIMES}0.9"]
    assert re.findall(r"\d+", figure.axes[0].get_title("left")) == ["5"]


def test_the_title_of_a_card_is_what_was_found():
    assert figures.card(tables(WITHOUT_ALIBI), "mine finds it", TEXT).get_label() == "mine finds it"


@pytest.mark.parametrize("n", [1, 2, 40])
def test_uniform_attention_falls_with_distance(n):
    """Few tokens have many before them."""
    np.testing.assert_allclose(figures.uniform_attention(n), uniform_attention(n), rtol=1e-12)


def test_the_loss_of_each_position_has_a_panel_from_0_on():
    figure = figures.card({**tables(WITHOUT_ALIBI), "loss": loss()}, "mine finds it", TEXT)
    (panel,) = (axes for axes in figure.axes if axes.get_ylabel() == "loss (nats)")
    assert panel.get_ylim()[0] == 0
