"""What is made of a pretrained decoder and its copies, from plain passes through a model to tables and the figure."""

import numpy as np
import pandas as pd
import pytest
import torch

from position_bias.structural import checks, figures_pretrained, interventions, pretrained
from position_bias.structural.checks import CURVE, OURS, SEEN_BEFORE, SINK, THEIRS
from position_card.core import artifacts
from position_card.core.artifacts import TensorFile
from position_card.drawing import style
from position_card.measures.measure import Quantities, measure_decoder
from position_card.rollout import measurement
from position_card.rollout.measurement import BY_LAYER, MOVED, OTHER_FIRST, REPLACED, STEPS
from tests.ggufs import small
from tests.unit.structural.conftest import PREDICTED, ROOT

CURVES = pd.read_csv(ROOT / "published/structural_curves.csv")
N, PROMPTS, REPLICATES = 40, 12, 60
FIRST, LAST = "log first / middle", "log last / middle"


@pytest.fixture(scope="module")
def tiny():
    model = small("llama").requires_grad_(False)
    model.set_attn_implementation("eager")
    return model


def drawn(count, n=N):
    return np.random.default_rng(n).integers(0, 64, (count, n))


def probabilities(model, embeddings):
    return model(inputs_embeds=embeddings[None], use_cache=False).logits[0, -1].double().softmax(-1)


def gradient(model, row):
    """The norm of the gradient of the largest probability, a prompt at a time: [n]."""
    embeddings = model.get_input_embeddings()(torch.from_numpy(row)).detach().requires_grad_()
    probabilities(model, embeddings).max().backward()
    return embeddings.grad.norm(dim=-1).numpy()


@pytest.mark.parametrize("first", [0, 1])
def test_interventions_are_what_plain_passes_give(tiny, first):
    rows, (count, n) = drawn(4), (4, N)
    asked = (first, 2 * N, 0)
    found = {name: make() for name, make in interventions.parts(tiny, rows, count, *asked).items()}
    positions = interventions.chosen_positions(n, first)
    assert positions[:2] == ([0, 10] if first == 0 else [0, 1])
    assert positions[-1] == n - 1
    others = interventions.donors(rows, 1, 0)[:, 0]
    embed = tiny.get_input_embeddings().weight
    for prompt in range(count):
        own = embed[rows[prompt]]
        for step, name in ((1.0, REPLACED), *((step, name) for name, step in STEPS.items())):
            for place, position in enumerate(positions):
                moved = own.clone()
                moved[position] += step * (embed[others[prompt, position]] - own[position])
                change = (probabilities(tiny, own) - probabilities(tiny, moved)).abs().sum() / 2
                assert found[name][prompt, place] == pytest.approx(float(change), abs=1e-5)
        another = rows[prompt].copy()
        another[first] = others[prompt, first]
        np.testing.assert_allclose(found[OTHER_FIRST][prompt], gradient(tiny, another), rtol=1e-3, atol=1e-7)
        order = [*range(first), *range(first + 1, n // 2 + 1), first, *range(n // 2 + 1, n)]
        np.testing.assert_allclose(found[MOVED][prompt], gradient(tiny, rows[prompt][order]), rtol=1e-3, atol=1e-7)
        np.testing.assert_allclose(found[BY_LAYER][prompt, 0], gradient(tiny, rows[prompt]), rtol=1e-3, atol=1e-7)


@pytest.fixture(scope="module")
def files(tiny, tmp_path_factory):
    """Files of a model and of three copies, which here have the same weights and other prompts."""
    folder, measured, changed = tmp_path_factory.mktemp("measured"), [], []
    sets = {"hub": [("one", N, PROMPTS), ("two", N, 8), ("one", 24, 8)]}
    sets |= {copy: [("one", N, 8)] for copy in ("copy0", "copy1", "usual0")}
    for checkpoint, of_weights in sets.items():
        for dataset, n, count in of_weights:
            documents, positions = np.arange(count) // 2, interventions.chosen_positions(n, 0)
            found = measure_decoder(
                tiny, drawn(count, n), 4 * N, documents=documents, quantities=Quantities(apart=True)
            )
            labels = {"model": "tiny", "checkpoint": checkpoint, "dataset": dataset, "before": 0}
            measured.append(folder / f"{checkpoint}-{dataset}-{n}.safetensors")
            measurement.write(measured[-1], found, **labels, positions=positions)
        parts = interventions.parts(tiny, drawn(6), 4 if checkpoint == "hub" else 0, 0, 4 * N, 0)
        effects = {"positions": np.array(interventions.chosen_positions(N)), **{key: parts[key]() for key in parts}}
        changed.append(folder / f"{checkpoint}.safetensors")
        artifacts.write_tensors(changed[-1], effects, **labels, n=N)
    return measured, changed


@pytest.fixture(scope="module")
def tables(files):
    measured, changed = ([TensorFile(str(path)) for path in paths] for paths in files)
    return pretrained.pretrained_tables(measured, changed, "one", N, REPLICATES, 0.95, 0)


def test_everything_that_is_predicted_of_a_decoder_is_measured(tables):
    rows = checks.on_decoders([tables["values"]], PREDICTED, 0.95)
    asked = {
        (name, row.network, row.other)
        for name, of_name in PREDICTED.items()
        for row in of_name
        if name.startswith(tuple(set(SEEN_BEFORE) - {CURVE, SINK})) and row.item != "recall by place"
    }
    measured = rows[rows["n"] > 0]
    assert set(measured[["statistic", "network", "other"]].itertuples(index=False, name=None)) == asked
    assert (measured["left_out"] == 0).all()
    here = measured[measured["setting"].str.contains(f"one; n = {N}")].set_index(["statistic", "network", "other"])
    assert here.loc[(f"{THEIRS}{FIRST}", "gradient", "")]["n"] == PROMPTS // 2
    assert here.loc[(f"{OURS}{FIRST}", "gradient", "replacement")]["n"] == 3  # documents in which tokens were replaced
    assert here.loc[(f"{OURS}W to influence", "half", "rotary")]["n"] == PROMPTS // 2


def test_values_are_those_of_the_formulas(tables, files):
    values = tables["values"].set_index(["dataset", "n", "statistic", "network", "unit"])["value"].sort_index()
    found, changed = measurement.read(files[0][0]), artifacts.read_tensors(files[1][0])
    positions = interventions.chosen_positions(N, 0)
    middle = [position for position in positions if N // 4 <= position < N - N // 4]
    logs = np.log(found.influence)
    ratios = logs[:, -1] - logs[:, middle].mean(-1)
    assert values["one", N, LAST, "gradient", 1] == pytest.approx(ratios[2:4].mean(), rel=1e-5)
    replaced = np.log(changed[REPLACED])
    ratios = replaced[:, 0] - replaced[:, [positions.index(each) for each in middle]].mean(-1)
    assert values["one", N, FIRST, "replacement", 2] == pytest.approx(ratios[4:6].mean(), rel=1e-5)
    shares = found.influence.astype(float).mean(0)
    moved = np.maximum(shares / shares.sum() - 1 / N, 0).sum()  # what has to leave positions that have too much
    assert values["one", N, "total variation to influence", "uniform", -1] == pytest.approx(moved, rel=1e-5)
    drawn = tables["profiles"].set_index(["weights", "measure", "position"])["value"]
    for network in ("gradient", "replacement"):  # figures draw what is judged
        assert drawn["hub", network, N - 1] == pytest.approx(np.exp(values["one", N, LAST, network].mean()))
    means = changed[REPLACED].mean(0)
    ratio = means[-1] / means[[positions.index(each) for each in middle]].mean()
    assert values["one", N, f"{LAST} of means", "replacement", -1] == pytest.approx(np.log(ratio), rel=1e-5)
    assert (
        values["one", N, "W to influence", "rotary", -1]
        == values["one", N, "W to influence by lambda", "frobenius", -1]
    )
    of_means = values["one", N, "W to influence", "uniform"]
    assert len(of_means) == 1 + REPLICATES
    assert of_means.nunique() > REPLICATES / 2


def test_attention_of_every_text_at_the_standard_length_is_judged_by_assumption_4_1(tables):
    rows = checks.on_kernels(tables["kernels"], PREDICTED)
    of_claim = rows[rows["claim"] == "structural-assumption-4-1"]
    assert set(of_claim["scale"]) == {"pretrained"}
    assert sorted(of_claim["statistic"]) == ["shortfall"] * 2 + ["violations"] * 2
    assert set(of_claim["n"]) == {2}  # layers


def judged(**verdicts):
    """Rows on the first word of some models."""
    statistic, network, other = figures_pretrained.CLAIM
    of_text = [f"model = {model}; dataset = one; n = {N}" for model in verdicts]
    rows = [
        (statistic, network, other, setting, model, verdict, 0.7, 0.1, 1.1)
        for setting, (model, verdict) in zip(of_text, verdicts.items(), strict=True)
    ]
    rows.append((statistic, "replacement", "", of_text[0], "tiny", "fails", 0.0, -0.1, 0.1))
    columns = ["statistic", "network", "other", "setting", "model", "verdict", "measured", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def test_the_title_says_what_the_verdicts_say():
    mixed = judged(tiny="holds", other="undecided", third="holds", absent="fails")
    said = figures_pretrained.finding(mixed, ["tiny", "other", "third"]).split("; ")
    more = "gradients give the first word more than replacement does, on the same prompts"
    assert said[0] == f"In 2 of 3 models {more}: tiny 2 times [1.1, 3], third 2 times [1.1, 3]"
    assert said[1].startswith("in 1 of 3 models it is open whether")
    alone = figures_pretrained.finding(judged(tiny="no effect"), ["tiny"])
    assert alone.startswith("Gradients give the first word no more than replacement does")


def test_the_figure_shows_every_number_and_can_be_read(tables, tmp_path):
    drawn = (tables["profiles"], tables["shares"], CURVES, judged(tiny="holds"))
    two = [pd.concat([table, table.assign(model="other")]) for table in (tables["profiles"], tables["shares"])]
    with style.figure_style():
        figure = figures_pretrained.pretrained(*drawn, "one", N)
        trained, copies, shares, bloom = figure.axes
        of_copies = tables["profiles"][tables["profiles"]["weights"] != "hub"]
        for axes, table in ((copies, of_copies), (shares, tables["shares"])):
            shown = np.concatenate([line.get_ydata() for line in axes.lines])
            assert np.isin(table["value"], shown).all()
        assert max(np.max(line.get_ydata()) for line in bloom.lines) == pytest.approx(27.7, rel=0.01)
        assert len(trained.lines) >= 5
        style.save(figure, *(tmp_path / f"figure.{suffix}" for suffix in ("png", "pdf", "svg")))
        elsewhere = judged(tiny="fails").replace({"setting": {"dataset = one": "dataset = two"}}, regex=True)
        verdicts = pd.concat([judged(tiny="holds", other="fails"), elsewhere])
        figure = figures_pretrained.pretrained(*two, CURVES, verdicts, "one", N)
        assert figure.get_label().startswith("In 1 of 2 models gradients give")
        assert len(figure.axes) == 7
