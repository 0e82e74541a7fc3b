import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.card import figures
from position_bias.card.figures import CURVES, LAMBDAS, uniform_attention
from tests.unit import drawing_checks
from tests.unit.drawing_checks import assert_drawn, assert_legible, assert_saved

pytestmark = pytest.mark.usefixtures("styled")

N, LAYERS = 32, 4
WITHOUT_ALIBI = ("content-free", "logit-by-distance", "mean-query-key", "mean-attention")
WITH_ALIBI = ("b", "c", "mean-attention")
TEXT = "texts.jsonl"


def tables(variants, estimators=tuple(LAMBDAS), layers=LAYERS, seed=0):
    rng = np.random.default_rng(seed)

    def curve(estimator, variant):
        value = rng.uniform(0.5, 1.5, N) / N
        label = {"estimator": estimator, "variant": variant, "position": np.arange(N)}
        return pd.DataFrame({**label, "value": value, "low": 0.8 * value, "high": 1.2 * value, "prompts": 7})

    alone = ["influence", "uniform", "last", "half", *(["a"] if "b" in variants else [])]
    curves = [curve("none", variant) for variant in alone]
    curves += [curve(estimator, variant) for estimator in estimators for variant in variants]
    mixing = [
        pd.DataFrame(
            {"estimator": name, "layer": range(1, layers + 1), "value": 0.3, "low": 0.2, "high": 0.4 + 0.1 * place}
        )
        for place, name in enumerate(estimators)
    ]
    layer, distance = np.divmod(np.arange(layers * N), N)
    value = np.where((layer == 1) & (distance > 5), 0, rng.uniform(0.01, 1, layers * N))  # a window in layer 2
    attention = pd.DataFrame({"layer": layer + 1, "distance": distance, "value": value})
    found = {"layers": pd.concat(mixing), "profile": pd.concat(curves), "distances": attention}
    return {name: table.assign(n=N) for name, table in found.items()}


@pytest.mark.parametrize("variants", [WITHOUT_ALIBI, WITH_ALIBI])
def test_a_row_shows_lambda_influence_and_attention(variants):
    of = tables(variants)
    figure = figures.card({"mine": of}, TEXT)
    mixing, influence, _ = figure.axes
    assert [to_rgb(line.get_color()) for line in mixing.lines] == [to_rgb(look.colour) for look in LAMBDAS.values()]
    assert_drawn(mixing, of["layers"][["value", "low", "high"]])
    assert mixing.get_ylim()[1] > of["layers"]["high"].max()
    shown = [variant for variant in CURVES if variant in ("influence", "uniform", *variants)]
    for variant in shown:
        rows = of["profile"][
            (of["profile"]["variant"] == variant) & of["profile"]["estimator"].isin(["none", "frobenius"])
        ]
        (drawn,) = (line for line in influence.lines if np.array_equal(line.get_ydata(), rows["value"]))
        assert to_rgb(drawn.get_color()) == to_rgb(CURVES[variant].colour)
        np.testing.assert_array_equal(drawn.get_xdata(), np.arange(N))
    assert len(influence.lines) == len(shown) + 1  # and the marks of its ends
    (half,) = influence.patches
    assert (half.get_x() + 0.5, half.get_width()) == (N // 4, N - 2 * (N // 4))
    assert influence.get_title() == f"mine: 7 prompts of {N} tokens"
    assert figure.get_label() == "Position card of mine, on texts.jsonl"
    *_, mean = influence.collections
    of_influence = of["profile"][of["profile"]["variant"] == "influence"]["value"].to_numpy()
    middle = of_influence[N // 4 : N - N // 4].mean()
    np.testing.assert_allclose(mean.get_segments(), [[[N // 4, middle], [N - N // 4 - 1, middle]]])
    assert [text.get_text() for text in influence.texts] == [
        f"{figures.TIMES}{of_influence[place] / middle:.3g}" for place in (0, N - 1)
    ]


def test_replacement_has_its_mean_in_the_middle_where_influence_has_it(tmp_path):
    of = tables(WITHOUT_ALIBI)
    value = np.array([0.3, 0.1, 0.2, 0.9])
    replaced = pd.DataFrame(
        {"position": [0, N // 2 - 1, N // 2, N - 1], "value": value, "low": 0.5 * value, "high": 2 * value, "n": N}
    )
    figure = figures.card({"mine": {**of, "replacement": replaced}}, TEXT)
    of_influence = of["profile"][of["profile"]["variant"] == "influence"]["value"].to_numpy()
    scaled = value / 0.15 * of_influence[N // 4 : N - N // 4].mean()
    (marks,) = (line for line in figure.axes[1].lines if line.get_marker() == figures.REPLACED.marker)
    np.testing.assert_allclose(np.asarray(marks.get_ydata(), float), scaled)
    bars = np.vstack(figure.axes[1].containers[0].lines[2][0].get_segments())
    np.testing.assert_allclose(np.sort(bars[:, 1]), np.sort([*(0.5 * scaled), *(2 * scaled)]))
    assert_saved(figure, tmp_path)


@pytest.mark.parametrize(("last", "named"), [(3.0, ["sink: first token"]), (1.5, [])])
def test_the_right_end_is_named_where_attention_to_the_first_token_is_much_above_the_middle(last, named):
    of = tables(WITHOUT_ALIBI)
    distance = of["distances"]["distance"]
    value = np.where(distance == N - 1, last, 1.0) / N
    figure = figures.card({"mine": {**of, "distances": of["distances"].assign(value=value)}}, TEXT)
    assert [text.get_text() for text in figure.axes[2].texts] == named


def test_attention_has_a_line_a_layer_from_distance_one_on_their_mean_and_uniform_attention():
    of = tables(WITHOUT_ALIBI)
    attention = figures.card({"mine": of}, TEXT).axes[2]
    uniform, *lines, mean = attention.lines
    assert len(lines) == LAYERS
    np.testing.assert_array_equal(uniform.get_xdata(), np.arange(1, N))
    np.testing.assert_allclose(uniform.get_ydata(), uniform_attention(N)[1:])
    for layer, line in enumerate(lines, start=1):
        rows = of["distances"][
            (of["distances"]["layer"] == layer) & (of["distances"]["distance"] > 0) & (of["distances"]["value"] > 0)
        ]
        np.testing.assert_array_equal(line.get_ydata(), rows["value"])
        np.testing.assert_array_equal(line.get_xdata(), rows["distance"])
    expected = of["distances"]["value"].to_numpy().reshape(LAYERS, N).mean(0)[1:]
    np.testing.assert_allclose(mean.get_ydata(), expected)
    assert (attention.get_xscale(), attention.get_yscale()) == ("log", "log")
    names = [text.get_text() for text in attention.get_legend().get_texts()]
    assert names == ["layers 1 to 4, light to dark", "mean of layers", "uniform attention"]


def test_models_stand_side_by_side_with_their_names_and_one_scale_for_each_column():
    figure = figures.card({"one": tables(WITHOUT_ALIBI), "two": tables(WITH_ALIBI, ("frobenius", "token"), 1, 5)}, TEXT)
    assert len(figure.axes) == 6
    assert [axes.get_title().split(":")[0] for axes in figure.axes[1::3]] == ["one", "two"]
    assert [len(axes.lines) for axes in figure.axes[::3]] == [3, 2]
    for above, below in zip(figure.axes[:3], figure.axes[3:], strict=True):
        assert above.get_ylim() == below.get_ylim()
    (of_layers, *_) = figure.axes[2].get_legend().get_texts()
    assert of_layers.get_text() == "first to last layer, light to dark"


def test_cards_of_one_and_of_four_models_can_be_read(tmp_path):
    """Names of models may be long."""
    four = {"a": 3, "a-rather-long-name-of-a-model-7b-instruct": 24, "b": 1, "another-long-name-of-a-model-1.3b": 12}
    every = {name: tables((WITH_ALIBI, WITHOUT_ALIBI)[layers % 2], layers=layers) for name, layers in four.items()}
    assert_saved(figures.card(every, "owner/some-long-name-of-a-text"), tmp_path)
    assert_legible(figures.card(dict(list(every.items())[1:2]), "owner/some-long-name-of-a-text"))


def recall(first=0.4, accuracy=0.3):
    """Above the prior, every place has .1, and the first eighth so much."""
    above = np.full(N, 0.1)
    above[: N // 8] = first
    bounds = {"probability low": 0.8 * above, "probability high": 1.2 * above + 0.01}
    columns = {"place": np.arange(N), "probability": above + 0.01, **bounds, "accuracy": accuracy, "prior": 0.01}
    return pd.DataFrame({**columns, "chance": 0.01, "n": N + 3, "prompts": 5})


def test_recall_has_a_panel_below_with_the_weight_of_both_ends(tmp_path):
    of = {**tables(WITHOUT_ALIBI), "recall": recall()}
    figure = figures.card({"mine": of}, TEXT)
    below = next(axes for axes in figure.axes if axes.get_xlabel().startswith("place"))
    assert len(figure.axes) == 4
    (probability,) = drawing_checks.curves(below, figures.GREEN)
    np.testing.assert_array_equal(probability, of["recall"]["probability"])
    assert [text.get_text() for text in below.texts] == [f"{figures.TIMES}4", f"{figures.TIMES}1"]
    assert_saved(figure, tmp_path)


def test_recall_that_is_too_near_to_chance_has_no_weights_and_several_models_have_no_such_panel():
    of = {**tables(WITHOUT_ALIBI), "recall": recall(accuracy=0.02)}
    alone, beside = figures.card({"mine": of}, TEXT), figures.card({"mine": of, "other": of}, TEXT)
    assert [len(figure.axes) for figure in (alone, beside)] == [4, 6]
    assert not next(axes for axes in alone.axes if axes.get_xlabel().startswith("place")).texts


@pytest.mark.parametrize("n", [1, 2, 40])
def test_uniform_attention_falls_with_distance_because_few_tokens_have_many_before_them(n):
    attention = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    expected = [np.diagonal(attention, -distance).mean() for distance in range(n)]
    np.testing.assert_allclose(uniform_attention(n), expected, rtol=1e-12)
