"""What is judged of how influence adds up, on tables that are made by hand."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from position_bias.structural.checks_directions import COLUMNS, checks
from position_bias.structural.checks_pretrained import SEEN
from position_bias.verdicts.claim import registry
from position_bias.verdicts.scorecard import scorecard
from tests.unit.structural.conftest import PREDICTED, ROOT

CLAIMS = [claim for claim in registry(ROOT / "published/claims.csv") if claim.id.startswith("structural-directions-")]
SQUARES = {"signs": 0.15, "same": 0.5, "half of other prompts": 0.2, "rotated": 0.3, "twice between draws": 0.1}
SUMS = {"signs": 0.45, "same": 0.05, "half of other prompts": 0.2, "rotated": 0.05, "twice between draws": 0.1}
ROLLOUTS = {
    row.other: 0.4 for row in PREDICTED["directions: total variation of rollouts"] if row.network == "squares"
} | {"squares": 0.2}
WORLD = {  # statistic -> network -> mean over documents, in a world that is as our claims say
    "total variation": SQUARES,
    "correlation": {"signs": 0.9, "same": 0.7},
    "total variation at .02": SUMS,
    "total variation at the own scale": SQUARES | {"rotated": 0.05},
    "log first / middle": {"signs": 1.1, "measured": 1.2},
    "log first / middle at the own scale": {"signs": 0.6, "measured": 1.5},
    "total variation of rollouts": ROLLOUTS,
    "correlation of rollouts": {name: 1 - value for name, value in ROLLOUTS.items()},
    "total variation of rollouts at .02": {"squares": 0.4, "sums": 0.1},
    "layer by layer": {"coherence over queries": 1.2, "isotropy": 1.1},
}
STAGES = {"in training": {"untrained": 0.0, "early": -0.5, "trained": -1.0}}
MODELS = ("a", "b", "c", "d")


def measured(model, world=WORLD, dataset="scientific-packages", scale="pretrained"):
    noise = 0.01 * np.random.default_rng(0).normal(size=20)
    rows = [
        (model, dataset, 256, scale, statistic, network, unit, mean + place * noise[unit])
        for statistic, networks in world.items()
        for (place, (network, mean)), unit in product(enumerate(networks.items(), 1), range(20))
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def verdicts(*tables):
    rows = checks(tables, PREDICTED, 0.95)
    card = scorecard(CLAIMS, {"structural/checks": rows}, {}, 0.95)
    return card.set_index(card["claim"].str.removeprefix("structural-directions-"))["verdict"], rows


def test_four_models_that_are_as_the_claims_say_let_every_claim_hold():
    trained = measured("bloom", STAGES, "standard-library", "laptop")
    found, rows = verdicts(trained, *map(measured, MODELS))
    assert set(found) == {"holds"}
    assert set(rows["n"]) == {20}


def test_fewer_than_four_new_models_decide_nothing_and_those_that_were_seen_can_contradict():
    kept = [*map(measured, MODELS[:3]), *map(measured, SEEN)]
    found, rows = verdicts(*kept)
    assert set(found.drop("training")) == {"undecided"}
    assert set(rows[rows["claim"] != ""]["model"]) == {*SEEN, ""}
    against = {"total variation": SQUARES | {"signs": 0.6}}
    assert verdicts(*kept[:3], *(measured(model, WORLD | against) for model in SEEN))[0]["same"] == "fails"
    found, rows = verdicts(*kept, measured("d"))
    assert set(rows[rows["claim"] != ""]["model"]) == {*MODELS, ""}
    assert set(found.drop("training")) == {"holds"}


@pytest.mark.parametrize(
    ("statistic", "network", "value", "claims"),
    [
        ("total variation", "signs", 0.25, {"squares"}),
        ("correlation", "signs", 0.72, {"squares"}),
        ("total variation", "same", 0.16, {"same"}),
        ("total variation", "rotated", 0.09, {"rotated"}),
        ("total variation at .02", "signs", 0.1, {"sums"}),
        ("total variation at .02", "rotated", 0.2, {"rotated"}),
        ("total variation at the own scale", "same", 0.1, {"agreement"}),
        ("log first / middle at the own scale", "signs", 1.2, {"agreement"}),
        ("log first / middle", "signs", 2.3, {"primacy"}),
        ("layer by layer", "isotropy", 0.02, {"local"}),
        ("total variation of rollouts", "mean query and key", 0.19, {"rollout"}),
        ("correlation of rollouts", "heads permuted", 0.81, {"nulls"}),
        ("total variation of rollouts at .02", "sums", 0.39, {"small"}),
    ],
)
def test_models_that_are_not_contradict_the_claim(statistic, network, value, claims):
    other = {**WORLD, statistic: {**WORLD[statistic], network: value}}
    found, _ = verdicts(*(measured(model, other) for model in MODELS))
    assert set(found[~found.isin(["holds", "not testable here"])].index) == claims


def test_only_the_text_that_decides_speaks_of_a_claim():
    _, rows = verdicts(*(measured(model, dataset="standard-library") for model in MODELS))
    assert set(rows[rows["n"] > 0]["claim"]) == {""}
