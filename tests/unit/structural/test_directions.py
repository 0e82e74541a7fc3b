"""Profiles with directions changed, their distances, the table of evidence/ and the figure."""

import numpy as np
import pandas as pd
import pytest

from position_bias.drawing.style import figure_style
from position_bias.rollout import measurement
from position_bias.rollout.directions import correlation, distances, profiles
from position_bias.running.artifacts import TensorFile
from position_bias.structural import evidence_directions
from position_bias.structural.checks_directions import COLUMNS
from position_bias.structural.evidence_directions import described, evidence, first_over_middle
from position_bias.structural.figures_directions import directions as draw
from position_bias.structural.figures_directions import finding
from tests.measurements import PROMPTS, made
from tests.unit.drawing_checks import assert_legible
from tests.unit.structural.conftest import ROOT

N, DRAWS = 40, 4
WAYS = ("signs", "same", "rotated")


@pytest.fixture
def measured():
    rng = np.random.default_rng(0)
    changed = {way: rng.uniform(0.1, 1, (PROMPTS, DRAWS, N)) for way in WAYS}
    return made(rng, alibi=False, n=N, directions=changed, documents=np.array([0, 0, 1, 1, 1, 2]))


def test_a_profile_is_the_root_mean_square_over_draws_and_the_null_the_mean_of_other_prompts(measured):
    found = profiles(measured)
    assert set(found) == {"measured", "other prompts", *WAYS}
    squares = sum(measured.directions["signs"][2, draw] ** 2 for draw in range(DRAWS))
    np.testing.assert_allclose(found["signs"][2], np.sqrt(squares) / np.sqrt(squares).sum())
    own = [profile / profile.sum() for profile in measured.influence]
    np.testing.assert_allclose(found["other prompts"][0], sum(own[1:]) / (PROMPTS - 1))
    assert all(np.allclose(profile.sum(1), 1) for profile in found.values())


def test_distances_are_to_the_prompt_itself_and_tell_the_error_of_draws(measured):
    found, known = distances(measured), profiles(measured)
    for name in ("signs", "other prompts"):
        np.testing.assert_allclose(found[name], np.abs(known[name] - known["measured"]).sum(1) / 2)
    np.testing.assert_allclose(found["half of other prompts"], found["other prompts"] / 2)
    halves = [np.sqrt((measured.directions["rotated"][:, part] ** 2).sum(1)) for part in ([0, 2], [1, 3])]
    one, other = (half / half.sum(1, keepdims=True) for half in halves)
    np.testing.assert_allclose(found["twice between draws"], np.abs(one - other).sum(1))
    np.testing.assert_allclose(found["error of draws in rotated"], np.abs(one - other).sum(1) / 4)


def test_what_position_explains_does_not_correlate():
    rng, j = np.random.default_rng(1), np.arange(200.0)
    own, noise = np.exp(rng.normal(size=(2, 5, 200)))
    trend = np.exp(0.3 * np.log(j + 1e-9) - 2 * np.log(200 - j) + (j / 50) ** 2)
    np.testing.assert_allclose(correlation(own * trend, own), 1)
    assert np.abs(correlation(own * noise * trend, own) - np.sqrt(0.5)).max() < 0.2
    assert np.abs(correlation(noise * trend, own * trend)).max() < 0.25
    own[:, :9], own[:, -8:] = 1e9, 1e-9  # the ends are left out
    assert np.abs(correlation(noise, own)).max() < 0.25


def test_the_first_token_is_compared_with_the_mean_logarithm_of_the_middle_half():
    profile = np.full((1, 8), 2.0)
    profile[0, [0, 2, 7]] = 6.0, 18.0, 100.0
    np.testing.assert_allclose(first_over_middle(profile), np.log(6) - (3 * np.log(2) + np.log(18)) / 4)


def kept(folder, measured, checkpoint):
    path = folder / f"{checkpoint.replace('/', '-')}.safetensors"
    measurement.write(path, measured, model="a", checkpoint=checkpoint, dataset="text")
    return TensorFile(str(path))


def test_evidence_has_a_row_for_each_document_and_names_weights_and_stages(measured, tmp_path):
    files = [kept(tmp_path, measured, name) for name in ("hub", "copy0", "usual0", "seed0/step0", "seed0/step9")]
    found = evidence(files, [], [], "laptop", [0, 5, 9])["directions"]
    assert tuple(found) == COLUMNS
    assert set(found["unit"]) == {0, 1, 2}
    signs = found.query("statistic == 'total variation' and network == 'signs'").set_index("unit")["value"]
    apart = distances(measured)
    assert signs[0] == pytest.approx(apart["signs"][:2].mean(), abs=1e-5)
    assert signs[2] == pytest.approx(apart["signs"][5], abs=1e-5)
    names = ("total variation", "correlation", "log first / middle")
    ends = ("", " at the own scale", " at .02")
    assert set(found["statistic"]) == {f"{name}{end}" for name in names for end in ends} | {"in training"}
    stages = found[found["statistic"] == "in training"]
    assert set(stages["network"]) == {"untrained", "trained"}
    assert set(stages["scale"]) == {"laptop"}
    assert set(found["scale"]) == {"laptop", "pretrained"}
    ratio = np.log(apart["signs"] / apart["other prompts"])
    assert stages.query("unit == 1")["value"].to_numpy() == pytest.approx(ratio[2:5].mean(), abs=1e-5)


def test_layers_have_one_ratio_a_prompt(tmp_path):
    rng = np.random.default_rng(2)
    names = ("attention", "past", "across", "mlp", "values", "queries", "heads", "random")
    terms = {name: rng.uniform(0.5, 2, (PROMPTS, 3, N)) for name in names}
    file = kept(tmp_path, made(rng, alibi=False, n=N, terms=terms), "hub")
    found = evidence([], [], [file], "laptop", [0, 9])["directions"].set_index(["network", "unit"])["value"]
    values, queries = terms["values"][4].sum(-1), terms["queries"][4].sum(-1)
    assert found["coherence over queries", 4] == pytest.approx(np.prod(values / queries) ** (1 / 3), abs=1e-5)
    first = terms["values"][4, :, 0] / terms["attention"][4, :, 0]
    assert found["share of values, first token", 4] == pytest.approx(np.prod(first) ** (1 / 3), abs=1e-5)
    for of, tokens in ((", middle half", slice(N // 4, N - N // 4)), (", last token", slice(N - 1, N))):
        values, queries = (terms[name][4, :, tokens].sum(-1) for name in ("values", "queries"))
        assert found[f"coherence over queries{of}", 4] == pytest.approx(np.prod(values / queries) ** (1 / 3), abs=1e-5)
    isotropy = terms["heads"][4].sum(-1) / terms["random"][4].sum(-1)
    assert found["isotropy", 4] == pytest.approx(np.prod(isotropy) ** (1 / 3), abs=1e-5)


def rows(**verdicts):
    """Rows of checks of models, with the verdicts of both comparisons."""
    pairs = (("total variation", "half of other prompts"), ("correlation", "same"))
    return pd.DataFrame(
        [
            {
                "statistic": f"directions: {statistic}",
                "network": "signs",
                "other": other,
                "model": model,
                "setting": f"model = {model}; dataset = {dataset}; n = 256",
                "seen_before": 20 * (model == "a"),
                "verdict": verdict if dataset == "scientific-packages" else "fails",
            }
            for model, both in verdicts.items()
            for (statistic, other), verdict in zip(pairs, both, strict=True)
            for dataset in ("scientific-packages", "standard-library")
        ]
    )


def test_the_title_is_the_finding_of_verdicts():
    two = rows(a=("holds", "holds"), b=("holds", "undecided"), c=("not testable here", "not testable here"))
    assert finding(two).startswith("Influence adds up in squares in 1 of 2 pretrained decoders (1 seen before")
    assert finding(two[two["model"] == "c"]).startswith("What random signs")


def test_the_figure_has_a_panel_for_each_kind_of_weights(measured, tmp_path):
    files = [kept(tmp_path, measured, name) for name in ("hub", "copy0", "usual0")]
    with figure_style():
        figure = draw(files, [], ROOT / "published/predictions.csv", 0.95)
        assert_legible(figure)
    told = f"signs {distances(measured)['signs'].mean():.2f}, one "
    assert [told in axes.get_title() for axes in figure.axes] == [True] * 3
    assert [len(axes.lines) for axes in figure.axes] == [7] * 3
    assert evidence_directions.AT.keys() == {"hub", "copy0", "usual0"}


def test_rollouts_are_compared_with_their_own_prompt_and_with_what_knows_positions_alone():
    rng = np.random.default_rng(3)
    found = made(rng, alibi=False, n=N, rollouts={"squares": rng.uniform(0.1, 1, (PROMPTS, N))})
    own, rollout = (profile / profile.sum(1, keepdims=True) for profile in (found.influence, found.rollouts["squares"]))
    values = described(found)
    apart, alike, means = (values[f"{name} rollouts"] for name in ("total variation of", "correlation of", "W of mean"))
    between = np.abs(rollout[:, None] - own).sum(-1) / 2  # of each rollout to each influence
    np.testing.assert_allclose(apart["squares"], between.diagonal())
    np.testing.assert_allclose(apart["squares of other prompts"][2], np.delete(between[:, 2], 2).mean())
    np.testing.assert_allclose(alike["squares"], correlation(rollout, own))
    swapped = [correlation(rollout[[other]], own[[2]]) for other in range(PROMPTS) if other != 2]
    np.testing.assert_allclose(alike["squares of other prompts"][2], np.mean(swapped))
    gaps = np.cumsum(own[::2].mean(0) - own[1::2].mean(0))[:-1]
    np.testing.assert_allclose(means["halves of the prompts"], np.abs(gaps).sum() / (N - 1))
    assert set(means) - set(apart) == {"halves of the prompts"}
    assert set(apart) - set(alike) == {"last and uniform", "power of distance", "other prompts"}
    assert "mean query and key" in alike


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("last and uniform", 0.3 * np.eye(N)[-1] + 0.7 / N),
        ("power of distance", np.arange(N, 0, -1.0) ** -1.2 / (np.arange(N, 0, -1.0) ** -1.2).sum()),
    ],
)
def test_what_knows_positions_alone_is_fitted_to_the_other_prompts(name, profile):
    own = np.tile(profile, (PROMPTS, 1))
    own[0] = 1 / N
    found = made(np.random.default_rng(4), alibi=False, n=N, influence=own, rollouts={"squares": own})
    apart = described(found)["total variation of rollouts"][name]
    np.testing.assert_allclose(apart[0], np.abs(profile - 1 / N).sum() / 2, rtol=1e-6)
