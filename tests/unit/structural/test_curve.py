"""What is made of responses to text that moves: ratios by document, tables, and what predictions ask of them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from position_bias.structural import checks, curve
from position_bias.structural.checks import CURVE_CLAIMS
from position_bias.workflow import calls
from position_card.core import artifacts
from position_card.core.artifacts import TensorFile
from position_card.rollout.parts import RecallScores
from position_card.rollout.statistics import mean_and_interval
from tests.unit.structural.conftest import PREDICTED

STEPS, LEVEL = [0.01, 0.1, 1.0], 0.95
SHAPE = {"hub": (7, 14, 3, 2), "copy0": (4, 14, 2, 1), "copy1": (4, 14, 2, 1)}


class Params(dict):
    """Params of a job, which are attributes, too."""

    __getattr__ = dict.__getitem__


def responded(folder, model="tiny", n=64):
    """Files of a decoder and of two copies; effects are random."""
    for seed, (checkpoint, shape) in enumerate(SHAPE.items()):
        rng = np.random.default_rng(seed)
        tensors = {
            "total_variation": rng.uniform(0.1, 1, shape),
            "log_probability": rng.normal(size=shape),
            "documents": np.arange(shape[0]) * 3,
        }
        steps = STEPS if checkpoint == "hub" else [STEPS[0], STEPS[-1]]
        path = folder / f"{model}-{checkpoint}-{n}.safetensors"
        artifacts.write_tensors(path, tensors, model=model, checkpoint=checkpoint, dataset="text", n=n, steps=steps)
        yield TensorFile(str(path))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return list(responded(tmp_path_factory.mktemp("moved")))


@pytest.fixture(scope="module")
def values(files):
    return curve.curve_tables(files)["values"]


def test_values_are_those_of_the_formulas(files, values):
    wide = values.set_index(["statistic", "network", "unit"])["value"].sort_index()
    effects = files[0].read()["total_variation"].mean(-1)
    middle = effects[:, 1:5].mean(1)
    expected = np.log(effects[:, 0] / middle)
    for step, name in enumerate(["step of 1 %", "step of 10 %", "step of 100 %"]):
        np.testing.assert_allclose(wide["log first word / middle", name], expected[:, step], atol=1e-5)
    eighths = effects[:, 8:12].mean(1)
    for name, place in {
        "log first eighth / middle": 6,
        "log last eighth / middle": 13,
        "log eighth 2 / middle": 7,
    }.items():
        np.testing.assert_allclose(wide[name, "step of 100 %"], np.log(effects[:, place] / eighths)[:, 2], atol=1e-5)
    line = wide[curve.LINE]
    np.testing.assert_allclose(line["middle words"], np.log(middle[:, 2] / middle[:, 0] / 100), atol=1e-5)
    likeliest = np.abs(files[0].read()["log_probability"]).mean(-1)
    expected = np.log(likeliest[:, 5] / likeliest[:, 1:5].mean(1))[:, 1]
    np.testing.assert_allclose(wide["log last word / middle", "log probability, step of 10 %"], expected, atol=1e-5)


def test_copies_are_means_over_them_by_document(files, values):
    found = values[values["network"] == "untrained first word"].set_index("unit")["value"]
    effects = [file.read()["total_variation"][..., 0] for file in files[1:]]
    expected = np.mean([np.log(one[:, 0, 1] / one[:, 0, 0] / 100) for one in effects], axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.index.tolist() == [0, 3, 6, 9]
    assert set(values.loc[values["network"].str.startswith("untrained"), "documents"]) == {4}


def test_evidence_has_recall_beside_what_moves(files, values, tmp_path):
    """As a job of the workflow calls it."""
    scores = {name: np.random.default_rng(0).uniform(0.3, 0.6, (5, 16)) for name in RecallScores._fields}
    scores["correct"] = np.ones((5, 16))
    path = tmp_path / "n16.safetensors"
    artifacts.write_tensors(path, scores, model="tiny", n=16, cue=2, words=40)
    given = {"responded": [file.path for file in files], "recalled": [str(path)]}
    params = {"makes": "structural.curve:curve_tables", "readable": "", "replicates": 30, "seed": 0}
    found = calls.make(SimpleNamespace(input=given, params=Params(params)))["values"]
    pd.testing.assert_frame_equal(found[found["dataset"] == "text"], values)
    of_recall = found[found["dataset"] != "text"]
    assert set(of_recall["network"]) == {"recall", "accuracy"}
    assert (of_recall.loc[of_recall["network"] == "accuracy", "value"] == 0).all()
    assert of_recall.groupby(["statistic", "network"])["unit"].count().unique() == [31]


def test_an_effect_of_nothing_has_no_logarithm(files, tmp_path):
    labels, tensors = files[0].labels, files[0].read()
    tensors["total_variation"][2, 0, 0] = 0
    artifacts.write_tensors(tmp_path / "one.safetensors", tensors, **labels)
    found = curve.curve_tables([TensorFile(str(tmp_path / "one.safetensors"))])["values"]
    missing = found[found["value"].isna()]
    assert set(missing["unit"]) == {6}
    assert set(missing["network"]) == {"step of 1 %", "first word"}


def test_everything_that_is_predicted_of_what_moves_is_measured(values):
    rows = checks.on_decoders([values], PREDICTED, LEVEL)
    asked = {
        (name, row.network, row.other)
        for name, of_name in PREDICTED.items()
        for row in of_name
        if name.startswith(CURVE_CLAIMS)
    }
    measured = rows[rows["n"] > 0]
    assert set(measured[["statistic", "network", "other"]].itertuples(index=False, name=None)) == asked
    assert set(measured["n"]) == {7}


def test_the_table_has_geometric_means_with_intervals(values):
    table = curve.curve_table([values, values[values["unit"] == 0].assign(documents=1)], LEVEL)
    assert list(table) == [*curve.OF_TABLE]
    keys = ["weights", "statistic", "network"]
    assert not table.duplicated(keys).any()
    found = table.set_index(keys).loc[("trained", "first word / middle", "step of 1 %")]
    of_documents = values[(values["statistic"] == "log first word / middle") & (values["network"] == "step of 1 %")]
    expected = np.exp(mean_and_interval(of_documents["value"], LEVEL))
    np.testing.assert_allclose(found[["value", "low", "high"]].astype(float), expected)
    assert found["documents"] == 7
    assert isinstance(table, pd.DataFrame)


@pytest.mark.parametrize("documents", [16, 24, 60])
@pytest.mark.parametrize("draw", ["normal", "heavy"])
def test_intervals_of_logarithms_miss_as_often_as_they_say(documents, draw):
    """Of 4,000 worlds; logarithms are normal, or have the heavy tails of Student's t of 3 degrees."""
    rng = np.random.default_rng(documents)
    size = (documents, 4000)
    logs = rng.normal(size=size) if draw == "normal" else rng.standard_t(3, size)
    _, low, high = mean_and_interval(logs, LEVEL)
    assert 0.03 < np.mean((low > 0) | (high < 0)) < 0.06
