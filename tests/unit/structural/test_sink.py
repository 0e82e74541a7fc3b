"""The norm of the first token held: tables where effects are known, and parts as plain measures have them."""

from math import log

import numpy as np
import pytest
import torch

from position_bias.structural import sink, sink_parts
from position_bias.structural.checks import OF_DECODERS, SINK_CLAIMS, on_decoders
from position_bias.verdicts.judge import ESTIMATE
from position_card.core import artifacts
from position_card.core.artifacts import TensorFile
from position_card.measures import recall, replacement
from position_card.probe.first_norm import holding_first_norm
from position_card.rollout.parts import eighths, words
from tests.small_decoders import VOCABULARY, llama
from tests.unit.structural.conftest import PREDICTED

N, BEFORE, DOCUMENTS, CONTEXTS, PLACES = 33, 1, 6, 5, 16
NAMED = ", by the first token's norm"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """By gradients the first word has 8 times the middle, 2 where the norm is held, and by replacement 2 in either."""
    rng, arrays = np.random.default_rng(0), {}
    for condition, first, loss, attention in (("own norm", 8, 3.0, 0.6), ("held norm", 2, 3.1, 0.1)):
        noise = np.exp(rng.normal(0, 0.01, (DOCUMENTS, 1)))
        influence = np.ones((DOCUMENTS, N))
        influence[:, 0], influence[:, BEFORE], influence[:, -1] = 9, first, 4
        arrays[f"influence/{condition}"] = np.hstack([influence * noise, np.full((DOCUMENTS, 1), loss)])
        arrays[f"attention/{condition}"] = np.full(DOCUMENTS, attention)
        effects = np.full((DOCUMENTS, 14), 0.1)
        effects[:, 0], effects[:, 6] = 0.2, 0.3
        arrays[f"replacement/{condition}"] = effects * noise
        recalled = np.full((CONTEXTS, PLACES), 0.2)
        recalled[:, :2] = 0.5
        arrays[f"recall/{condition}"] = np.stack([recalled + 0.1, np.ones_like(recalled), np.full_like(recalled, 0.1)])
    arrays["norms"] = np.ones((3, 2))
    labels = {"model": "some", "dataset": "prose", "n": N, "before": BEFORE, "documents": [3, 5, 6, 7, 9, 11]}
    path = tmp_path_factory.mktemp("sink") / "some.safetensors"
    artifacts.write_tensors(path, arrays, **labels, vocabulary=200, words=20)
    return TensorFile(str(path))


@pytest.fixture(scope="module")
def values(file):
    return sink.sink_table(file, 100, 0)


def test_the_table_has_ends_over_the_middle_in_both_conditions(values):
    assert list(values) == list(OF_DECODERS)
    means = values[values["unit"] >= 0].groupby(["statistic", "network"])["value"].mean()
    assert means[f"log first word / middle{NAMED}", "gradient, own norm"] == pytest.approx(log(8))
    assert means[f"log first word / middle{NAMED}", "gradient, held norm"] == pytest.approx(log(2))
    assert means[f"log last word / middle{NAMED}", "gradient, own norm"] == pytest.approx(log(4))
    assert means[f"log first eighth / middle{NAMED}", "gradient, own norm"] == pytest.approx(log(11 / 4))
    assert means[f"log first word / middle{NAMED}", "replacement, held norm"] == pytest.approx(log(2))
    assert means[f"log first eighth / middle{NAMED}", "replacement, own norm"] == pytest.approx(log(3))
    assert means[f"log first eighth / middle{NAMED}", "recall, own norm"] == pytest.approx(log(2.5))
    assert means[f"loss{NAMED}", "held norm"] == pytest.approx(3.1)
    assert set(values.loc[values["network"] == "own norm", "unit"]) == {3, 5, 6, 7, 9, 11}
    of_recall = values[values["network"].str.startswith("recall")]
    assert set(of_recall["unit"]) == {ESTIMATE, *range(100)}
    assert set(of_recall["n"]) == {20}
    assert set(of_recall["documents"]) == {CONTEXTS}


def test_everything_that_is_predicted_of_a_held_norm_is_judged(values):
    judged = on_decoders([values], PREDICTED, 0.95)
    judged = judged[judged["statistic"].str.startswith(SINK_CLAIMS) & (judged["n"] > 0)]
    asked = {(name, row.network) for name, rows in PREDICTED.items() for row in rows if name.startswith(SINK_CLAIMS)}
    assert set(judged[["statistic", "network"]].itertuples(index=False, name=None)) == asked
    assert len(judged) == len([row for name, rows in PREDICTED.items() for row in rows if name.startswith(SINK_CLAIMS)])
    by_claim = judged[judged["claim"] == "structural-sink"].set_index("network")
    assert by_claim["verdict"].to_dict() == {"gradient, held norm": "holds", "recall, held norm": "holds"}
    assert set(judged["seen_before"]) == {0}
    of_eighth = judged[judged["network"].eq("gradient, held norm") & judged["statistic"].str.contains("eighth")]
    assert set(of_eighth["verdict"]) == {"fails"}  # 5 / 4 against 3


@pytest.fixture(scope="module")
def model():
    return llama()


@pytest.fixture(scope="module")
def parts(model):
    rng = np.random.default_rng(1)
    prompts, contexts = (
        rng.integers(0, VOCABULARY, (9, 24)),
        np.stack([rng.permutation(VOCABULARY)[:14] for _ in range(2)]),
    )
    made = sink_parts.parts(model, prompts, contexts, np.arange(VOCABULARY), 2, [0], 100, 7)
    return prompts, contexts, {name: make() for name, make in made.items()}


def test_parts_are_what_plain_measures_have_where_nothing_is_held(model, parts):
    prompts, contexts, found = parts
    for row, prompt in zip(found["influence/own norm"], prompts, strict=True):
        tokens = torch.from_numpy(prompt[None])
        embeddings = model.get_input_embeddings()(tokens).detach().requires_grad_()
        out = model(inputs_embeds=embeddings, output_attentions=True)
        (gradient,) = torch.autograd.grad(out.logits[0, -1].softmax(-1).max(), embeddings)
        np.testing.assert_allclose(row[:-1], gradient[0].norm(dim=-1), rtol=1e-4)
        loss = torch.nn.functional.cross_entropy(out.logits[0, 11:-1], tokens[0, 12:])
        assert row[-1] == pytest.approx(loss.item(), rel=1e-4)
    attention = torch.stack(out.attentions)[:, 0, :, 1:, 0].mean().item()
    assert found["attention/own norm"][-1] == pytest.approx(attention, rel=1e-4)
    windows = [*words(24, 1), *eighths(24, 1)]
    others = replacement.donors(prompts, 1, 7)
    moved = replacement.responses(model, prompts, windows, others, [1.0], 100).total_variation[..., 0, 0]
    np.testing.assert_allclose(found["replacement/own norm"], moved, atol=1e-9)
    asked = recall.measure_recall(model, contexts, np.arange(VOCABULARY), 2, 100, before=[0])
    np.testing.assert_allclose(found["recall/own norm"], np.stack(asked), atol=1e-7)


def test_parts_are_measured_again_where_the_norm_is_held(model, parts):
    prompts, contexts, found = parts
    reference = torch.from_numpy(prompts[:8])
    with holding_first_norm(model, reference) as norms:
        asked = recall.measure_recall(model, contexts, np.arange(VOCABULARY), 2, 100, before=[0])
    np.testing.assert_allclose(found["recall/held norm"], np.stack(asked), atol=1e-7)
    np.testing.assert_allclose(found["norms"][2], norms, rtol=1e-6)
    embedded = model.get_input_embeddings()(reference).norm(dim=-1).mean(0)
    assert found["norms"][0, 0] == pytest.approx(embedded[0].item(), rel=1e-5)
    assert found["norms"][1, 0] == pytest.approx(embedded[1:].mean().item(), rel=1e-5)
    for name in ("influence", "attention", "replacement"):
        assert np.abs(found[f"{name}/held norm"] - found[f"{name}/own norm"]).max() > 1e-6
