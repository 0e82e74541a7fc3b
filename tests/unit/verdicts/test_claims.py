"""Which rows speak of which claim, on rows that modules of checks make at every scale of the configuration.

Trained networks behave as predicted in the worlds that tests of each wing make; theorems are checked for real.
"""

from itertools import chain, product

import pandas as pd
import pytest

from position_bias.emergence import checks as emergence_checks
from position_bias.emergence import checks_theory as emergence_checks_theory
from position_bias.emergence.runs import study
from position_bias.layernorm import checks as layernorm_checks
from position_bias.layernorm import checks_theory as layernorm_checks_theory
from position_bias.structural import checks as structural_checks
from position_bias.structural import checks_theory as structural_checks_theory
from position_bias.structural.initialization import initialization_checks
from position_bias.verdicts.judge import KEYS, PREDICTION
from position_bias.verdicts.registry import OURS, claim_tables, predictions
from position_bias.verdicts.scorecard import judge_claims, scorecard
from tests import worlds
from tests.configurations import overlaid
from tests.graphs import CLAIMS as REGISTERED
from tests.unit.emergence import released_world
from tests.unit.emergence import world as emergence_world
from tests.unit.layernorm import world as layernorm_world
from tests.unit.postnorm import world as postnorm_world
from tests.unit.structural import world as structural_world
from tests.worlds import PREDICTED, ROOT

CLAIMS = {claim.id: claim for claim in REGISTERED}
VALUES = pd.read_csv(ROOT / "published/values.csv", dtype=str).set_index("id")["value"].to_dict()
SCALES = ("default", "test", "paper")
LEVEL = 0.95
ON_RELEASED = ("structural-printed-triangle", "structural-released-slopes", "structural-released-content")
OF_DECODERS = (
    *("structural-pretrained-", "structural-curve-", "structural-recall-"),
    *("structural-released-lambda", "structural-initialization", "structural-sink"),
)
PRETRAINED = [claim for claim in CLAIMS if claim.startswith(OF_DECODERS)]
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
    "structural-printed-size": {"holds", "undecided"},  # the paper's own table
    "structural-printed-larger": {"holds", "undecided"},
    "structural-printed-triangle": {"holds", "fails"},  # one thing of one model and another of another
    "structural-released-slopes": {"holds", "fails"},
    "structural-released-content": {"fails"},
    "emergence-residual-depth": {"holds", "fails"},  # one thing here and another there
    "emergence-residual-depth-falls": {"holds", "fails"},
    "layernorm-residuals": {"fails"},
    "layernorm-embeddings": {"fails", "undecided"},
    "layernorm-premise": {"holds", "fails"},
    "layernorm-deep-primacy": {"holds", "fails"},  # ours, by theory at any scale
    "postnorm-precision-law": {"fails"},
    "postnorm-breaks": {"undecided"},  # few trainings were counted
}
OURS_SAYS = "^our addition|this depth is our addition|our addition:|null|Abnar"  # the sources of what we add


# structural, in the world of its own tests, where influence and rollout are a U

U = structural_world.replicates(structural_world.papers_world())


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


def structural_rows(config):
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
    of_structure = structural_checks.on_content(pd.DataFrame(alike), pd.DataFrame(monotone), shifts, predicted, scale)
    occasions = (structural_checks.DURING_TRAINING, structural_checks.BEFORE_TRAINING)
    before = [structural_checks.on_rollouts(of, predicted, scale, LEVEL, at) for of in young for at in occasions]
    elsewhere = pd.concat(map(replicates, everywhere))
    long = pd.concat(map(replicates, measurements(config, "long", config["measure"]["datasets"])))
    further = [
        structural_checks.on_rollouts(elsewhere, predicted, scale, LEVEL, structural_checks.EVERY_DATASET),
        structural_checks.on_rollouts(
            long.replace({"variant": {"b": "c", "c": "b"}}), predicted, scale, LEVEL, structural_checks.LONG
        ),
        *(
            structural_checks.on_rollouts(of, predicted, scale, LEVEL, structural_checks.EVERY_LENGTH)
            for of in (elsewhere, long)
        ),
        structural_checks.on_print(pd.read_csv(ROOT / "published/structural_distances.csv"), predicted, scale),
        structural_checks.on_decoders([], predicted, LEVEL),
        initialization_checks([], predicted, LEVEL),
    ]
    kept = pd.read_csv(ROOT / "evidence/structural/language-model/compared.csv")
    long_training = pd.concat(structural_checks.on_long_trainings([kept], predicted))
    further.append(long_training[long_training["claim"] == "structural-untrained"])
    kept = pd.read_csv(ROOT / "evidence/structural/released/statistics.csv")
    released = structural_checks.on_released([kept], predicted)
    further.append(released[released["claim"].isin(ON_RELEASED)])
    of_figures = structural_checks.on_rollouts(pd.concat(values), predicted, scale, LEVEL)
    return pd.concat([of_figures, *before, of_structure, *further])


# emergence, in the world of its own tests, where gaps have the size and sign that the paper says


def networks(config):
    """Every network that figures show, as those tests name it."""
    depths = config["emergence"]["depths"]
    for vocabulary, name in emergence_checks.FIGURES:
        of = study(name, config["emergence"]["networks"][name], config["emergence"]["decay"])
        for network, depth in product(of.networks, depths[vocabulary].get(name, [2])):
            yield vocabulary, name, network.mask_name, network.encoding, depth


def emergence_rows(config):
    every, masks = list(networks(config)), {}
    for vocabulary, name, mask, *_ in every:
        if (vocabulary, name) in emergence_checks.SINK_FIGURES:
            masks.setdefault(name, {})[mask] = None
    of_figures = emergence_world.judged(
        config["scale"],
        gaps=emergence_world.papers_world(dict.fromkeys(every, 5)),
        accuracy=emergence_world.accuracies(dict.fromkeys(every, 5)),
        sinks=emergence_world.sinks_of(masks, seeds=2),
    )
    return pd.concat([of_figures, released_world.judged(released_world.world())])


@pytest.fixture(scope="module")
def scale_free_checks():
    """Tables of what no scale changes."""
    numbers = {"tokens": 16, "layers": 120, "draws": 3, "seed": 0, "peak_tokens": 400}
    toy = {"tokens": 16, "width": 16, "sequences": 64, "limit_tokens": 1000, "seed": 0}
    of_norms = layernorm_checks.read_estimates(layernorm_checks_theory.table(layernorm_world.LEVEL, **toy))
    both = chain(of_norms, layernorm_world.statistics())
    return {
        "structural/propositions": structural_checks_theory.proposition_checks(PREDICTED, "test"),
        "emergence/theorems": emergence_checks_theory.theorem_checks(**numbers, predicted=PREDICTED, scale="test"),
        "layernorm/checks": worlds.judged("layernorm", both, layernorm_world.LEVEL),
        "postnorm/checks": postnorm_world.judged(),
    }


LONGER = pytest.mark.all("the statistics of the default scale, with more networks")


@pytest.fixture(scope="module", params=["default", "test", pytest.param("paper", marks=LONGER)])
def scale(request):
    return request.param


@pytest.fixture(scope="module")
def checks(scale, scale_free_checks):
    """Every table of checks."""
    config = overlaid([] if scale == "default" else [scale])
    return {
        **scale_free_checks,
        "structural/checks": structural_rows(config),
        "emergence/checks": emergence_rows(config),
    }


@pytest.fixture(scope="module")
def rows(checks):
    """By claim."""
    return {name: checks[claim.table].query("claim == @name") for name, claim in CLAIMS.items()}


def test_every_table_speaks_of_its_claims_and_of_no_row_twice(checks):
    assert set(checks) == set(claim_tables(CLAIMS.values()))
    for name, table in checks.items():
        assert set(table["claim"]) - {""} == {claim.id for claim in CLAIMS.values() if claim.table == name}
        if not name.startswith("structural"):  # which asks the same on several occasions
            for what in (["quantity"], [*KEYS]):
                assert not table.duplicated([*what, *PREDICTION, "claim"]).any()


@pytest.mark.parametrize("paper", ["emergence", "layernorm", "postnorm"])
def test_what_is_measured_is_what_something_is_predicted_of(checks, paper):
    found = {name for table in checks.values() for name in table.loc[table["paper"] == paper, "statistic"]}
    assert found == set(predictions(PREDICTED, paper))


def test_claims_hold_where_all_is_as_predicted_but_the_refuted(rows, scale):
    words = {name: set(of_claim["verdict"]) for name, of_claim in rows.items()}
    assert {name: of for name, of in words.items() if not of <= {"holds", "not testable here"}} == REFUTED
    untestable = {name for name, of in words.items() if of == {"not testable here"}}
    assert untestable == {name for name, at in UNTESTABLE.items() if scale in at}


def test_rows_are_predicted_by_whom_their_claim_names(rows):
    ours = {name: set(of_claim["source"].str.contains(OURS_SAYS)) for name, of_claim in rows.items()}
    assert ours == {name: {claim.whose == OURS} for name, claim in CLAIMS.items()}


def test_rows_of_a_paper_speak_of_a_claim(checks):
    for name in ("layernorm/checks", "postnorm/checks"):
        silent = checks[name][checks[name]["claim"] == ""]
        silent = silent[~silent["source"].str.startswith("our addition")]
        assert silent["statistic"].str.endswith("another eta").all()


def test_of_two_estimators_of_lambda_the_papers_is_taken(rows):
    every = pd.concat([of for name, of in rows.items() if name.startswith("structural")])
    quantities = every.loc[every["claim"] != "structural-released-lambda", "quantity"]  # which compares the two
    assert quantities.str.contains("lambda by frobenius").any()
    assert not quantities.str.contains("lambda by token|kernel released|way released").any()


def cards(name, checks):
    """Rows of the scorecard on a table, by claim."""
    claims = [claim for claim in CLAIMS.values() if claim.table == name]
    return scorecard(judge_claims(claims, checks, LEVEL), VALUES, LEVEL).set_index("claim")


def test_what_is_judged_by_its_worst_case_keeps_its_verdicts(scale_free_checks):
    """Ranges of draws are not widened, nor rounded bounds read again."""
    found = cards("emergence/theorems", scale_free_checks)["verdict"].to_dict()
    word = {"theory": "fails", "errata": "erratum"}
    assert found == {name: word[CLAIMS[name].kind] if name in REFUTED else "holds" for name in found}


def test_beside_a_printed_step_that_fails_a_corrected_one_holds(scale_free_checks):
    steps = scale_free_checks["emergence/theorems"]
    errata = [name for name, claim in CLAIMS.items() if claim.kind == "errata"]
    failing = steps[(steps["verdict"] == "fails") & steps["claim"].isin(errata)]
    corrected = steps[steps["network"] == "corrected"].groupby("statistic")["verdict"].agg(set)
    by_distance = steps[steps["statistic"] == "Lemma 4.6: logits"]["verdict"]
    found = {**corrected, "Lemma 4.6: one constant": set(by_distance)}  # there the corrected bounds have no constant
    assert len(failing) > 5
    assert {name: found.get(name) for name in failing["statistic"]} == {
        name: {"holds"} for name in failing["statistic"]
    }


def test_claims_on_schemes_fail_where_schemes_swap_their_roles():
    sets, words = (postnorm_world.swapped("pre", "post", postnorm_world.WORLD[name]) for name in ("sets", "languages"))
    swapped = postnorm_world.judged(**postnorm_world.WORLD | {"sets": sets, "languages": words})
    found = cards("postnorm/checks", {"postnorm/checks": swapped})["verdict"]
    failing = {"generalises", "best", "final-norm", "precision-law"}  # runs for languages are too short to be judged
    assert set(found.index[found == "fails"]) == {f"postnorm-{name}" for name in failing}


def test_printed_scores_are_those_that_the_checks_hold_against(scale_free_checks):
    """The scorecard shows that of the row that decides."""
    scores = {"(2, 1)": "0.154", "(3, 1)": "0.132", "(3, 2)": "0.150"}  # as the source prints them
    printed = {f"({i}, {j})": VALUES[f"layernorm_three_tokens_{i}_{j}"] for i, j in layernorm_checks_theory.PAIRS}
    rows = scale_free_checks["layernorm/checks"].query("claim == 'layernorm-three-tokens'").set_index("network")
    assert printed == scores
    assert rows["bound"].to_dict() == {pair: float(score) for pair, score in scores.items()}
    card = cards("layernorm/checks", scale_free_checks).loc["layernorm-three-tokens"]
    assert card["quantity"] == rows.loc["(3, 2)", "quantity"]
    assert card["published"] == scores["(3, 2)"]
