"""What is judged of pretrained decoders, on tables of effects that are made by hand."""

import numpy as np
import pandas as pd
import pytest

from position_bias.structural.checks_pretrained import COLUMNS, SEEN, checks
from position_bias.verdicts.registry import every_claim
from tests.unit.structural.conftest import PREDICTED, ROOT

OURS = {
    claim.id
    for claim in every_claim(ROOT / "published/claims.csv")
    if claim.id.startswith(("structural-pretrained-", "structural-recall-"))
}
FIRST, LAST = "log first / middle", "log last / middle"
EFFECTS = {  # statistic -> network -> mean over documents, in a world that is as our claims say
    FIRST: {"gradient": 1.2, "replacement": 0.0, "step of 2 %": 1.2, "step of 20 %": 0.8, "step of 100 %": 0.0}
    | {f"untrained {way}{at}": 1.0 for way in ("gradient", "replacement") for at in ("", " at .02")},
    LAST: {"gradient": 3.0, "replacement": 3.8}
    | {f"untrained {way}{at}": 2.0 for way in ("gradient", "replacement") for at in ("", " at .02")},
    f"{FIRST}, elsewhere": {"gradient": 0.7},
    f"{LAST}, elsewhere": {"gradient": 0.7},
    "spearman of lambda with depth": {"frobenius": -0.6},
    "log start token / middle": {"gradient": 2.5, "replacement": 2.9},
    "log change at the first word": {"deletion": -3.7, "replacement": -3.7},
    "W to influence": {"rotary": 0.05, "content-free": 0.1, "measured": 0.2, "half": 0.5, "uniform": 0.15},
    "log share of the first token": {"measured": -0.5, "influence": -1.5},
    f"{FIRST} of means": {"gradient": 1.3, "replacement": 0.1},
    "log first eighth / middle": {"recall": 0.6},
    "log last eighth / middle": {"recall": 0.3},
    "rank correlation of places": {"gradient": 0.2, "replacement": 0.1, "rotary": 0.9, "measured": 0.0},
}
OF_MEANS = ("W to influence", "log share of the first token", f"{FIRST} of means", *list(EFFECTS)[-3:])


def measured(model, effects=EFFECTS, documents=20):
    """A table in which documents, or resamples of them, differ a little."""
    rows = []
    for statistic, networks in effects.items():
        units = range(-1 if statistic in OF_MEANS else 0, documents)
        noise = dict(zip(units, 0.01 * np.random.default_rng(0).normal(size=documents + 1), strict=False))
        for place, (network, mean) in enumerate(networks.items(), 1):
            labels = (model, "text", 256, statistic, network)
            rows += [(*labels, unit, documents, mean + place * noise[unit], "pretrained") for unit in units]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def judged(*tables):
    return checks(tables, PREDICTED, 0.95)


def test_a_decoder_that_is_as_the_claims_say_lets_every_claim_hold():
    found = judged(measured("new"))
    spoken = found[found["claim"] != ""]
    assert set(spoken["claim"]) == OURS | {f"structural-figure-{figure}" for figure in ("1-d", "3", "4")}
    assert set(spoken["verdict"]) == {"holds"}
    assert set(found["scale"]) == {"pretrained"}
    assert set(found["seen_before"]) == {0}
    assert set(found["n"]) == {20}


def test_of_two_tables_of_one_model_the_one_of_more_documents_is_judged():
    few, many = measured("new", documents=10), measured("new", documents=20)
    pd.testing.assert_frame_equal(judged(few, many), judged(many))
    pd.testing.assert_frame_equal(judged(many, measured("new", {FIRST: EFFECTS[FIRST]}, documents=10)), judged(many))
    other = many.assign(value=many["value"] + 1)
    pd.testing.assert_frame_equal(judged(many, other), judged(many))
    assert len(judged(few, measured("newer"))) == 2 * len(judged(many))


@pytest.mark.parametrize(
    ("statistic", "network", "effect", "claims"),
    [
        (FIRST, "replacement", 1.2, {"pretrained-first", "pretrained-no-primacy"}),
        (LAST, "replacement", 2.0, {"pretrained-last"}),
        (FIRST, "untrained replacement at .02", 0.5, {"pretrained-untrained"}),
        (FIRST, "step of 20 %", 1.4, {"pretrained-step"}),
        ("log start token / middle", "gradient", -0.3, {"pretrained-bos"}),
        ("log change at the first word", "deletion", -3.0, {"pretrained-delete"}),
        ("W to influence", "uniform", 0.02, {"pretrained-kernel"}),
        ("log share of the first token", "influence", 0.1, {"pretrained-sinks"}),
        ("log first eighth / middle", "recall", 0.0, {"recall-first"}),
        ("log last eighth / middle", "recall", -0.3, {"recall-last"}),
        ("rank correlation of places", "replacement", 0.7, {"recall-ranking"}),
    ],
)
def test_a_decoder_that_is_not_contradicts_the_claim(statistic, network, effect, claims):
    other = {**EFFECTS, statistic: {**EFFECTS[statistic], network: effect}}
    found = judged(measured("new", other))
    contradicted = found[(found["verdict"] != "holds") & found["claim"].isin(OURS)]
    assert set(contradicted["claim"]) == {f"structural-{claim}" for claim in claims}


def test_intervals_of_documents_are_students_and_those_of_means_percentiles():
    values = measured("new")
    found = judged(values).set_index(["statistic", "network", "other"])
    alone = found.loc[("pretrained, ours: log last / middle", "replacement", "")]
    units = values.query("statistic == @LAST and network == 'replacement'")["value"]
    assert alone["measured"] == pytest.approx(units.mean())
    assert alone["high"] - alone["measured"] == pytest.approx(2.0930240544 * units.std() / np.sqrt(20))
    less = found.loc[("pretrained, ours: W to influence", "half", "rotary")]
    wide = values[values["statistic"] == "W to influence"].pivot(index="unit", columns="network", values="value")
    differences = wide["half"] - wide["rotary"]
    assert less["measured"] == differences[-1]
    assert less["low"] == pytest.approx(np.quantile(differences.drop(-1), 0.025))


def test_decoders_seen_before_speak_of_the_papers_claims_alone_and_say_so():
    found = judged(measured(SEEN[0]))
    tested = found[found["n"] > 0]
    assert set(tested["claim"]) == {"", *(f"structural-figure-{figure}" for figure in ("1-d", "3", "4"))}
    assert (tested["seen_before"][~tested["statistic"].str.contains("W to|share")] == 20).all()
    silent = found[found["n"] == 0]
    assert set(silent["claim"]) == OURS
    assert set(silent["verdict"]) == {"not testable here"}
    both = judged(measured(SEEN[0]), measured("new"))
    assert (both["n"] > 0).all()


def test_without_a_table_no_claim_of_ours_can_be_tested():
    found = judged()
    assert set(found["claim"]) == OURS
    assert set(found["verdict"]) == {"not testable here"}
