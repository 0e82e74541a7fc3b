"""What is made of a pretrained decoder and its copies, as tables."""

import numpy as np
import pytest

from position_bias.structural import checks, pretrained
from position_bias.structural.checks import CURVE_CLAIMS, OUR_CLAIMS, PAPER_CLAIMS, SEEN_BEFORE, SINK_CLAIMS
from position_card.core import artifacts, runtime
from position_card.core.artifacts import TensorFile
from position_card.measures import replacement
from position_card.measures.measure import Quantities, measure_decoder
from position_card.rollout import measurement
from position_card.rollout.statistics import resampled_weights
from tests.ggufs import small
from tests.unit.structural.conftest import PREDICTED

N, PROMPTS, REPLICATES = 40, 12, 60
FIRST, LAST = "log first / middle", "log last / middle"


@pytest.fixture(scope="module")
def tiny():
    model = small("llama").requires_grad_(False)
    model.set_attn_implementation("eager")
    return model


def drawn(count, n=N):
    return np.random.default_rng(n).integers(0, 64, (count, n))


@pytest.fixture(scope="module")
def files(tiny, tmp_path_factory):
    """Files of a model and of three copies, which here have the same weights and other prompts."""
    folder, measured = tmp_path_factory.mktemp("measured"), []
    sets = {"hub": [("one", N, PROMPTS), ("two", N, 8), ("one", 24, 8)]}
    sets |= {copy: [("one", N, 8)] for copy in ("copy0", "copy1", "usual0")}
    for checkpoint, of_weights in sets.items():
        for dataset, n, count in of_weights:
            documents, positions = np.arange(count) // 2, replacement.chosen_positions(n, 0)
            asked = Quantities(apart=True, groups=PROMPTS if (checkpoint, dataset, n) == ("hub", "one", N) else 0)
            found = measure_decoder(tiny, drawn(count, n), 4 * N, documents=documents, quantities=asked)
            labels = {"model": "tiny", "checkpoint": checkpoint, "dataset": dataset, "before": 0}
            measured.append(folder / f"{checkpoint}-{dataset}-{n}.safetensors")
            measurement.write(measured[-1], found, **labels, positions=positions)
    windows = [slice(position, position + 1) for position in replacement.chosen_positions(N)]
    moved = replacement.responses(tiny, drawn(6), windows, replacement.donors(drawn(6), 1, 0), [1], 4 * N)
    artifacts.write_tensors(folder / "replaced.safetensors", {"replacement": moved.total_variation[..., 0, 0]}, n=N)
    return measured, folder / "replaced.safetensors"


@pytest.fixture(scope="module")
def tables(files):
    measured, changed = files
    of_files = [TensorFile(str(path)) for path in measured]
    return pretrained.pretrained_tables(of_files, TensorFile(str(changed)), "one", N, REPLICATES, 0.95, 0)


def test_everything_that_is_predicted_of_a_decoder_is_measured(tables):
    rows = checks.on_decoders([tables["values"]], PREDICTED, 0.95)
    asked = {
        (name, row.network, row.other)
        for name, of_name in PREDICTED.items()
        for row in of_name
        if name.startswith(tuple(set(SEEN_BEFORE) - {CURVE_CLAIMS, SINK_CLAIMS})) and row.item != "recall by place"
    }
    measured = rows[rows["n"] > 0]
    assert set(measured[["statistic", "network", "other"]].itertuples(index=False, name=None)) == asked
    assert (measured["left_out"] == 0).all()
    here = measured[measured["setting"].str.contains(f"one; n = {N}")].set_index(["statistic", "network", "other"])
    assert here.loc[(f"{PAPER_CLAIMS}{FIRST}", "gradient", "")]["n"] == PROMPTS // 2
    assert here.loc[(f"{OUR_CLAIMS}{FIRST}", "replacement", "")]["n"] == 3  # documents in which tokens were replaced
    assert here.loc[(f"{OUR_CLAIMS}W to influence", "half", "rotary")]["n"] == PROMPTS // 2


def test_values_are_those_of_the_formulas(tables, files):
    values = tables["values"].set_index(["dataset", "n", "statistic", "network", "unit"])["value"].sort_index()
    found, changed = measurement.read(files[0][0]), artifacts.read_tensors(files[1])
    positions = replacement.chosen_positions(N, 0)
    middle = [position for position in positions if N // 4 <= position < N - N // 4]
    logs = np.log(found.influence)
    ratios = logs[:, -1] - logs[:, middle].mean(-1)
    assert values["one", N, LAST, "gradient", 1] == pytest.approx(ratios[2:4].mean(), rel=1e-5)
    replaced = np.log(changed["replacement"])
    ratios = replaced[:, 0] - replaced[:, [positions.index(each) for each in middle]].mean(-1)
    assert values["one", N, FIRST, "replacement", 2] == pytest.approx(ratios[4:6].mean(), rel=1e-5)
    shares = found.influence.astype(float).mean(0)
    moved = np.maximum(shares / shares.sum() - 1 / N, 0).sum()  # what has to leave positions that have too much
    assert values["one", N, "total variation to influence", "uniform", -1] == pytest.approx(moved, rel=1e-5)
    drawn = tables["profiles"].set_index(["weights", "measure", "position"])["value"]
    for network in ("gradient", "replacement"):  # figures draw what is judged
        assert drawn["hub", network, N - 1] == pytest.approx(np.exp(values["one", N, LAST, network].mean()))
    means = changed["replacement"].mean(0)
    ratio = means[-1] / means[[positions.index(each) for each in middle]].mean()
    assert values["one", N, f"{LAST} of means", "replacement", -1] == pytest.approx(np.log(ratio), rel=1e-5)
    assert (
        values["one", N, "W to influence", "rotary", -1]
        == values["one", N, "W to influence by lambda", "frobenius", -1]
    )
    of_means = values["one", N, "W to influence", "uniform"]
    assert len(of_means) == 1 + REPLICATES
    assert of_means.nunique() > REPLICATES / 2


def test_each_resample_has_the_attention_of_its_documents(tables, files):
    """The rollout of each as a product of matrices, with its own lambda, mean attention and influence."""
    found = measurement.read(files[0][0])
    assert found.groups.tolist() == found.documents.tolist()
    weights = resampled_weights(found.documents, REPLICATES, runtime.seed(0, "documents", "one", N))
    values = tables["values"].set_index(["dataset", "n", "statistic", "network", "unit"])["value"].sort_index()
    for unit, of_prompts in zip(range(-1, 5), weights, strict=False):
        shares = np.bincount(found.documents, of_prompts)
        attention = np.tensordot(shares, found.attention_of_groups.astype(float), 1)
        row = np.eye(N)[-1]
        for layer, mix in zip(attention[::-1], (of_prompts @ found.mixing["frobenius"])[::-1], strict=True):
            row = row @ ((1 - mix) * np.eye(N) + mix * layer / layer.sum(-1, keepdims=True))
        influence = of_prompts @ found.influence
        gap = np.cumsum(row - influence / influence.sum())[:-1]
        assert values["one", N, "W to influence", "measured", unit] == pytest.approx(
            np.abs(gap).sum() / (N - 1), rel=1e-6
        )


def test_attention_of_every_text_at_the_standard_length_is_judged_by_assumption_4_1(tables):
    rows = checks.on_kernels(tables["kernels"], PREDICTED)
    of_claim = rows[rows["claim"] == "structural-assumption-4-1"]
    assert set(of_claim["scale"]) == {"pretrained"}
    assert sorted(of_claim["statistic"]) == ["shortfall"] * 2 + ["violations"] * 2
    assert set(of_claim["n"]) == {2}  # layers
