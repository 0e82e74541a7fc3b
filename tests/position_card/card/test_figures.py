"""What the figure of a card says besides its data: numbers in words, and which parts it has."""

import re

import numpy as np
import pandas as pd
import pytest

from position_card.card import figures
from tests.figures.card import (
    MIDDLE,
    TEXT,
    WITH_ALIBI,
    WITHOUT_ALIBI,
    N,
    influence_of,
    recall,
    tables,
    uniform_attention,
)

pytestmark = pytest.mark.usefixtures("styled")


def written(axes):
    return [text.get_text() for text in axes.texts]


def test_ends_are_told_over_the_middle_and_numbers_of_prompts_and_tokens():
    of = tables(WITHOUT_ALIBI)
    axes = figures.card({"mine": of}, TEXT).axes[1]
    over = influence_of(of) / influence_of(of)[MIDDLE].mean()
    assert written(axes) == [f"{figures.TIMES}{over[place]:.3g}" for place in (0, N - 1)]
    assert re.findall(r"\d+", axes.get_title()) == ["7", str(N)]


@pytest.mark.parametrize(("last", "named"), [(3.0, 1), (1.5, 0)])
def test_the_right_end_is_named_where_attention_is_far_above_the_middle(last, named):
    of = tables(WITHOUT_ALIBI)
    value = np.where(of["distances"]["distance"] == N - 1, last, 1.0) / N
    figure = figures.card({"mine": {**of, "distances": of["distances"].assign(value=value)}}, TEXT)
    assert len(written(figure.axes[2])) == named


def test_models_have_one_scale_for_each_column():
    figure = figures.card({"one": tables(WITHOUT_ALIBI), "two": tables(WITH_ALIBI, ("frobenius", "token"), 1, 5)}, TEXT)
    assert [axes.get_title().split(":")[0] for axes in figure.axes[1::3]] == ["one", "two"]
    for above, below in zip(figure.axes[:3], figure.axes[3:], strict=True):
        assert above.get_ylim() == below.get_ylim()


@pytest.mark.parametrize(("accuracy", "weights"), [(0.3, ["4", "1"]), (0.02, [])])
def test_recall_has_the_weight_of_both_ends_if_it_is_above_chance(accuracy, weights):
    of = {**tables(WITHOUT_ALIBI), "recall": recall(accuracy=accuracy)}
    alone, beside = figures.card({"mine": of}, TEXT), figures.card({"mine": of, "other": of}, TEXT)
    assert [len(figure.axes) for figure in (alone, beside)] == [4, 6]  # several models have no such panel
    below = next(axes for axes in alone.axes if axes.get_xlabel().startswith("place"))
    assert written(below) == [f"{figures.TIMES}{weight}" for weight in weights]


@pytest.mark.parametrize("n", [1, 2, 40])
def test_uniform_attention_falls_with_distance(n):
    """Few tokens have many before them."""
    np.testing.assert_allclose(figures.uniform_attention(n), uniform_attention(n), rtol=1e-12)


def test_the_loss_of_each_position_has_a_panel_below_a_model_alone():
    loss = pd.DataFrame({"position": range(1, N), "value": np.geomspace(8, 2, N - 1), "n": N})
    of = {**tables(WITHOUT_ALIBI), "loss": loss.assign(low=loss["value"] - 0.5, high=loss["value"] + 0.5)}
    alone, beside = figures.card({"mine": of}, TEXT), figures.card({"mine": of, "other": of}, TEXT)
    assert [len(figure.axes) for figure in (alone, beside)] == [4, 6]
    (below,) = (axes for axes in alone.axes if axes.get_ylabel() == "loss (nats)")
    np.testing.assert_array_equal(below.lines[0].get_ydata(), loss["value"])
    assert below.get_ylim()[0] == 0
    both = figures.card({"mine": {**of, "recall": recall(accuracy=0.3)}}, TEXT)
    assert len(both.axes) == 5
