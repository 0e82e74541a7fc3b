"""Claims of structural and emergence on rows that their modules of checks make at every scale of the configuration.

Trained networks behave as the paper says in these worlds, which are made by hand; theorems are checked for real.
"""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from snakemake.utils import update_config

from position_bias.emergence import checks as emergence
from position_bias.emergence import checks_theory as theorems
from position_bias.emergence.gaps import CONFIGURATION, PAIR_NAMES
from position_bias.emergence.studies import study
from position_bias.rollout.comparison import DISTANCE, SHAPE
from position_bias.rollout.variants import SAME_FOR_EVERY_ESTIMATOR
from position_bias.structural import checks as structural
from position_bias.structural import (
    checks_content,
    checks_directions,
    checks_long_training,
    checks_pretrained,
    checks_printed,
    checks_rotary,
)
from position_bias.structural import checks_theory as propositions
from position_bias.verdicts.claim import OURS, registry, tables
from position_bias.verdicts.predictions import predictions
from position_bias.verdicts.scorecard import scorecard

ROOT = Path(__file__).parents[3]
PREDICTED = ROOT / "published/predictions.csv"
CLAIMS = tuple(claim for claim in registry(ROOT / "published/claims.csv") if claim.paper in ("structural", "emergence"))
SCALES = ("default", "test", "paper")
LEVEL = 0.95
PRETRAINED = [claim.id for claim in CLAIMS if claim.id.startswith(("structural-pretrained-", "structural-directions-"))]
UNTESTABLE = {  # at every scale, or at that of tests alone
    "structural-table-5": ("default", "test"),  # fewer prompts than the paper's
    **dict.fromkeys(PRETRAINED, SCALES),  # no decoder was measured
    "structural-shift": SCALES,  # another statistic is measured
    **{f"emergence-figure-8{letter}-residual": SCALES for letter in "abc"},  # no such networks are
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
    "structural-rotary-influence": {"undecided"},  # our own long run
}


def config_of(scale):
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    if scale != "default":
        update_config(config, yaml.safe_load((ROOT / f"config/{scale}.yaml").read_text()))
    return config


# structural, in a world where influence and rollout are a U


def profiles(n):
    position = np.linspace(0, 1, n)
    u = 0.1 + (2 * position - 1) ** 2
    u /= u.sum()
    first, last = np.eye(n)[0], np.eye(n)[-1]
    shares = {"a": 0.95, "half": 0.15, "b": 0.1, "c": 0.04, "measured": 0.02, "d": 0.0}
    mixed = {name: (1 - share) * u + share * first for name, share in shares.items()}
    return {**mixed, "uniform": np.full(n, 1 / n), "last": last}


def replicates(labels):
    """Rows that `comparison.compare` would make, all replicates alike; lambda by either estimator."""
    world = profiles(labels["n"])
    values = {(name, of): float(SHAPE[of](profile)) for name, profile in world.items() for of in SHAPE}
    values |= {
        (name, of): float(DISTANCE[of](world[name], world["d"])) for name in world if name != "d" for of in DISTANCE
    }
    values["lambda", "spearman with depth"] = -1.0
    rows = [
        {**labels, "estimator": estimator, "variant": name, "statistic": of, "replicate": replicate, "value": value}
        for (name, of), value in values.items()
        for estimator in (
            ("frobenius", "token") if name in ("b", "c", "measured", "lambda") else (SAME_FOR_EVERY_ESTIMATOR,)
        )
        for replicate in (-1, 0, 1)
    ]
    return pd.DataFrame(rows)


def measurements(config, length, datasets, step=None):
    """Labels of what is measured at a length, before its training has ended where a step is given."""
    size = config["lengths"][length]
    for model, dataset in product(config["measure"]["models"], datasets):
        of_hub = model in config["hub_models"]
        if of_hub and step is not None:
            continue  # it comes trained
        checkpoint = "hub" if of_hub else f"seed0/step{config['training']['steps'] if step is None else step}"
        where = {"model": model, "checkpoint": checkpoint, "dataset": dataset}
        yield {**where, "n": size["tokens"], "prompts": size["prompts"]}


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
    of_structure = checks_content.checks(pd.DataFrame(alike), pd.DataFrame(monotone), shifts, predicted, scale)
    occasions = (structural.DURING_TRAINING, structural.UNTRAINED)
    before = [structural.checks(of, predicted, scale, LEVEL, at) for of in young for at in occasions]
    elsewhere = pd.concat(map(replicates, everywhere))
    long = pd.concat(map(replicates, measurements(config, "long", config["measure"]["datasets"])))
    further = [
        structural.checks(elsewhere, predicted, scale, LEVEL, structural.EVERY_DATASET),
        structural.checks(long.replace({"variant": {"b": "c", "c": "b"}}), predicted, scale, LEVEL, structural.LONG),
        *(structural.checks(of, predicted, scale, LEVEL, structural.EVERY_LENGTH) for of in (elsewhere, long)),
        checks_printed.checks(pd.read_csv(ROOT / "published/structural_distances.csv"), predicted, scale),
        checks_rotary.checks([pd.read_csv(ROOT / "evidence/structural/rotary/rotary.csv")], predicted, LEVEL),
        checks_pretrained.checks([], predicted, LEVEL),
        checks_directions.checks([], predicted, LEVEL),
    ]
    kept = pd.read_csv(ROOT / "evidence/structural/language-model/compared.csv")
    long_training = pd.concat(checks_long_training.checks([kept], predicted))
    further.append(long_training[long_training["claim"] == "structural-untrained"])
    of_figures = structural.checks(pd.concat(values), predicted, scale, LEVEL)
    return pd.concat([of_figures, *before, of_structure, *further])


# emergence, in a world where gaps have the size and sign that the paper says


def networks(config):
    """Labels of every network that figures show."""
    depths = config["emergence"]["depths"]
    for vocabulary, name in emergence.FIGURES:
        of = study(name, config["emergence"]["networks"][name], config["emergence"]["decay"])
        omega = "training" if vocabulary == "fixed" else "none"
        for network, depth in product(of.networks, depths[vocabulary].get(name, [2])):
            wiring = (of.bias_name, network.mask_name, network.encoding, of.residual, depth, omega)
            yield dict(zip(CONFIGURATION, (vocabulary, name, *wiring), strict=True))


def gap(network, pair):
    encoding, depth = network["encoding"], network["depth"]
    if network["study"] == "plain":
        first = {"none": 0.3, "rope": 0.2, "decay": 0.1}[encoding] + 0.03 * depth
        return 0.05 if pair == "middle-last" else first
    if network["study"] == "residual":
        by_depth = -0.02 * depth if network["vocabulary"] == "gaussian" and encoding == "decay" else 0.05 * depth
        first = by_depth + {"none": 0.3, "rope": 0.2, "decay": 0.1}[encoding]
        last = 0.1 if encoding != "rope" or depth < 4 else -0.1
        return {"first-middle": 0.1, "first-last": first, "middle-last": last}[pair]
    if network["study"] == "window":
        return 0.02 * int(network["mask"].removeprefix("window"))
    sign = {"none": (0, 0, 0), "ends": (1, 0.2, -1), "first": (1, 1, 0), "middle": (-1, 0, 1), "last": (0, -1, -1)}
    if encoding == "none":
        return 0.2 if network["mask"] == "causal" else 0.0
    return 0.3 * sign[network["bias"]][PAIR_NAMES.index(pair)]


def sinks(network, tokens=17):
    """The metric of each token: on centre nodes above all else, the more so the wider a window."""
    reach = int(re.sub(r"\D", "", network["mask"]) or 0)
    centres = np.arange(tokens) < (reach if network["study"] == "prefix" else 1)
    trained = 0.6 + (0.01 * reach if network["study"] == "window" else 0)
    for state, at in (("trained", trained), ("untrained", 0.2), ("uniform", 0.1)):
        for token, value in enumerate(np.where(centres, at, 0.05), 1):
            yield {"state": state, "token": token, "value": value}


def emergence_checks(config):
    every, seeds = list(networks(config)), (0, 1)
    shown = [of for of in every if (of["vocabulary"], of["study"]) in emergence.SINK_FIGURES]
    trained = emergence.NetworkTables(
        gaps=pd.DataFrame(
            {**of, "seed": seed, "pair": pair, "gap": gap(of, pair)}
            for of, seed, pair in product(every, seeds, PAIR_NAMES)
        ),
        accuracy=pd.DataFrame(
            {**of, "seed": seed, "answer": 1, "accuracy": 0.4 if of["vocabulary"] == "fixed" else 0.5}
            for of, seed in product(every, seeds)
        ),
        sinks=pd.DataFrame(
            {**of, "seed": seed, "tau": 0.2, **at} for of, seed in product(shown, seeds) for at in sinks(of)
        ),
    )
    predicted = predictions(PREDICTED, "emergence")
    return emergence.checks(trained, predicted, config["scale"], LEVEL)


@pytest.fixture(scope="module")
def of_theory():
    numbers = {"tokens": 16, "layers": 120, "draws": 3, "seed": 0, "peak_tokens": 400}  # which no scale changes
    return {
        "structural/propositions": propositions.checks(PREDICTED, "test"),
        "emergence/theorems": theorems.table(**numbers, predicted=PREDICTED, scale="test"),
    }


@pytest.fixture(scope="module", params=SCALES)
def rows(request, of_theory):
    """Scale, and rows by claim."""
    config = config_of(request.param)
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
    assert table.to_dict() == expected | {"emergence-theorem-4-7-stated": "not testable here"}


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
