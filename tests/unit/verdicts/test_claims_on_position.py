"""Claims of structural and emergence on rows that their modules of checks make at every scale of the configuration.

Trained networks behave as the paper says in the worlds that tests of either wing make; theorems are checked for real.
"""

from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from position_bias.emergence import checks as emergence
from position_bias.emergence import checks_theory as theorems
from position_bias.emergence.runs import study
from position_bias.structural import checks as structural
from position_bias.structural import checks_theory as propositions
from position_bias.verdicts.registry import OURS, every_claim, predictions, tables
from position_bias.verdicts.scorecard import scorecard
from tests.configurations import overlaid
from tests.unit.emergence import released_world as of_released_code
from tests.unit.emergence import world as of_emergence
from tests.unit.structural import world as of_structural

ROOT = Path(__file__).parents[3]
PREDICTED = ROOT / "published/predictions.csv"
CLAIMS = tuple(
    claim for claim in every_claim(ROOT / "published/claims.csv") if claim.paper in ("structural", "emergence")
)
SCALES = ("default", "test", "paper")
LEVEL = 0.95
PRETRAINED = [claim.id for claim in CLAIMS if claim.id.startswith(("structural-pretrained-", "structural-recall-"))]
UNTESTABLE = {  # at every scale, or at that of tests alone
    "structural-table-5": ("default", "test"),  # fewer prompts than the paper's
    **dict.fromkeys(PRETRAINED, SCALES),  # no decoder was measured
    "emergence-footnote-2": ("test",),  # no network is deep enough
    "emergence-figure-9": ("test",),  # one depth only
    "emergence-figure-10": ("test",),  # one depth only
}
REFUTED = {  # what theory, print or a long run contradicts or leaves open, with the verdicts of its rows
    "emergence-theorem-4-2-rate": {"fails"},
    "emergence-theorem-4-7": {"fails"},
    "emergence-appendix-a-e": {"holds", "fails"},
    "emergence-appendix-f-i": {"holds", "fails"},
    "structural-printed-size": {"holds", "no effect"},  # the paper's own table
    "structural-printed-larger": {"holds", "undecided"},
    "emergence-residual-depth": {"holds", "fails"},  # one thing here and another there
    "emergence-residual-depth-falls": {"holds", "fails"},
}


# structural, in the world of its own tests, where influence and rollout are a U

U = of_structural.replicates(of_structural.papers_world())


def replicates(labels):
    """Rows that `comparison.compare` would make; lambda by either estimator."""
    return U.assign(**labels)


def measurements(config, length, datasets, step=None):
    """Labels of what is measured at a length, before its training has ended where a step is given."""
    size = config["lengths"][length]
    for model, dataset in product(config["measure"]["models"], datasets):
        of_hub = model in config["hub_models"]
        if of_hub and step is not None:
            continue  # it comes trained
        checkpoint = "hub" if of_hub else f"seed0/step{config['training']['steps'] if step is None else step}"
        where = {"model": model, "checkpoint": checkpoint, "dataset": dataset}
        yield {**where, "n": size["tokens"], "prompts": size["prompts"], "resampled": size["prompts"]}


def structural_checks(config):
    primary = [config["primary_dataset"]]
    values = [replicates(labels) for labels in measurements(config, "standard", primary)]
    young = [replicates(labels) for labels in measurements(config, "standard", primary, step=0)]
    everywhere = list(measurements(config, "standard", config["measure"]["datasets"]))
    layers = ("all", "1", "2")
    alike = [
        {**labels, "way": way, "region": region, "layer": layer, "value": 0.8}
        for labels, way, region, layer in product(everywhere, ("causal", "released"), ("diagonal", "below"), layers)
    ]
    monotone = [
        {**labels, "kernel": kernel, "layer": layer, "violations": 0.001, "shortfall": 1e-6}
        for labels, kernel, layer in product(everywhere, ("measured", "released"), layers)
    ]
    shifts = pd.DataFrame([{**labels, "share": 0.98, "low": 0.97, "high": 0.99} for labels in everywhere])
    predicted, scale = predictions(PREDICTED, "structural"), config["scale"]
    of_structure = structural.on_content(pd.DataFrame(alike), pd.DataFrame(monotone), shifts, predicted, scale)
    occasions = (structural.DURING_TRAINING, structural.UNTRAINED)
    before = [structural.on_rollouts(of, predicted, scale, LEVEL, at) for of in young for at in occasions]
    elsewhere = pd.concat(map(replicates, everywhere))
    long = pd.concat(map(replicates, measurements(config, "long", config["measure"]["datasets"])))
    further = [
        structural.on_rollouts(elsewhere, predicted, scale, LEVEL, structural.EVERY_DATASET),
        structural.on_rollouts(
            long.replace({"variant": {"b": "c", "c": "b"}}), predicted, scale, LEVEL, structural.LONG
        ),
        *(structural.on_rollouts(of, predicted, scale, LEVEL, structural.EVERY_LENGTH) for of in (elsewhere, long)),
        structural.on_print(pd.read_csv(ROOT / "published/structural_distances.csv"), predicted, scale),
        structural.on_decoders([], predicted, LEVEL),
    ]
    kept = pd.read_csv(ROOT / "evidence/structural/language-model/compared.csv")
    long_training = pd.concat(structural.on_long_trainings([kept], predicted))
    further.append(long_training[long_training["claim"] == "structural-untrained"])
    of_figures = structural.on_rollouts(pd.concat(values), predicted, scale, LEVEL)
    return pd.concat([of_figures, *before, of_structure, *further])


# emergence, in the world of its own tests, where gaps have the size and sign that the paper says


def networks(config):
    """Every network that figures show, as those tests name it."""
    depths = config["emergence"]["depths"]
    for vocabulary, name in emergence.FIGURES:
        of = study(name, config["emergence"]["networks"][name], config["emergence"]["decay"])
        for network, depth in product(of.networks, depths[vocabulary].get(name, [2])):
            yield vocabulary, name, network.mask_name, network.encoding, depth


def emergence_checks(config):
    every, masks = list(networks(config)), {}
    for vocabulary, name, mask, *_ in every:
        if (vocabulary, name) in emergence.SINK_FIGURES:
            masks.setdefault(name, {})[mask] = None
    of_figures = of_emergence.judged(
        config["scale"],
        gaps=of_emergence.papers_world(dict.fromkeys(every, 5)),
        accuracy=of_emergence.accuracies(dict.fromkeys(every, 5)),
        sinks=of_emergence.sinks_of(masks, seeds=2),
    )
    return pd.concat([of_figures, of_released_code.judged(of_released_code.world())])


@pytest.fixture(scope="module")
def of_theory():
    numbers = {"tokens": 16, "layers": 120, "draws": 3, "seed": 0, "peak_tokens": 400}  # which no scale changes
    return {
        "structural/propositions": propositions.checks(PREDICTED, "test"),
        "emergence/theorems": theorems.judged(**numbers, predicted=PREDICTED, scale="test"),
    }


@pytest.fixture(scope="module", params=SCALES)
def rows(request, of_theory):
    """Scale, and rows by claim."""
    config = overlaid([] if request.param == "default" else [request.param])
    checks = {**of_theory, "structural/checks": structural_checks(config), "emergence/checks": emergence_checks(config)}
    assert set(checks) == set(tables(CLAIMS))
    for name, table in checks.items():
        assert set(table["claim"]) - {""} == {claim.id for claim in CLAIMS if claim.table == name}
    return request.param, {claim.id: checks[claim.table].query("claim == @claim.id") for claim in CLAIMS}


def test_every_claim_finds_rows_that_hold_where_all_is_as_the_paper_says(rows):
    scale, by_claim = rows
    others = {
        name: set(of["verdict"])
        for name, of in by_claim.items()
        if not set(of["verdict"]) <= {"holds", "not testable here"}
    }
    assert others == REFUTED
    untestable = [name for name, of in by_claim.items() if set(of["verdict"]) == {"not testable here"}]
    assert set(untestable) == {name for name, at in UNTESTABLE.items() if scale in at}


def test_what_is_judged_by_its_worst_case_keeps_its_verdicts(of_theory):
    """Ranges of draws are not widened, nor rounded bounds read again."""
    of_theorems = [claim for claim in CLAIMS if claim.table == "emergence/theorems"]
    table = scorecard(of_theorems, of_theory, {}, LEVEL).set_index("claim")["verdict"]
    word = {"theory": "fails", "errata": "erratum"}
    expected = {claim.id: word[claim.kind] if claim.id in REFUTED else "holds" for claim in of_theorems}
    assert table.to_dict() == expected


def test_rows_of_ours_speak_of_claims_of_ours_alone(rows):
    sources = {name: " ".join(set(of["source"])) for name, of in rows[1].items()}
    marks = ("our addition:", "null", "Abnar")
    marked = {name for name, source in sources.items() if any(mark in source for mark in marks)}
    assert marked == {claim.id for claim in CLAIMS if claim.whose == OURS}


def test_of_two_estimators_of_lambda_the_papers_is_taken(rows):
    of_models = [of["quantity"] for name, of in rows[1].items() if name.startswith("structural")]
    quantities = pd.concat(of_models)
    assert quantities.str.contains("lambda by frobenius").any()
    assert not quantities.str.contains("lambda by token|kernel released|way released").any()
