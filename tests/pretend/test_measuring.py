"""The measuring pass, replacement and recall run on one pretended GPU and on two, and give the numbers of the CPU."""

import numpy as np
import pytest
import torch

from position_card.measures import passes, recall, replacement
from position_card.measures.measure import Quantities, measure_decoder
from position_card.measures.passes import Resumption
from position_card.models import opening
from tests.pretend.both import assert_same, on_both, resumed, untouched_generators
from tools import decoders

# Of the largest number. A model of the CPU lies in its file as it stands there, and products round by where they lie.
WITHIN = 1e-5
N, BATCH = 12, 24
PROMPTS = np.random.default_rng(1).integers(3, decoders.VOCABULARY, (5, N))
KINDS = {  # name -> what it stands for
    "falcon, ALiBi": "ALiBi that is doubled, values of content",
    "llama": "heads in groups, rotation",
    "gemma3_text": "windows",
    "opt, norms after sums": "norms after attention",
}


@pytest.fixture(autouse=True, scope="module")
def settled():
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")  # a mode of torch is that of its thread
        yield


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in KINDS:
        decoders.small(name).save_pretrained(folder / name)
    return folder


def opened(directory, device, count):
    model = opening.open_decoder(directory, "balanced" if device == "cuda" and count > 1 else device)
    places = {str(parameter.device) for parameter in model.parameters()}
    assert places == ({"cpu"} if device == "cpu" else {f"cuda:{place}" for place in range(count)})
    return model


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_a_measurement_is_that_of_the_cpu(name, count, saved, tmp_path):
    """On two GPUs layers are computed twice, and matrices are kept by distance."""
    asked = Quantities(content=True, gram=True, matrices_up_to=N if count == 1 else N - 1)

    def work(folder, device):
        model, kept = opened(saved / name, device, count), Resumption(folder / "n12.safetensors", ["run"], interval=2)
        twice = device == "cuda" and count == 2

        def whole():
            return measure_decoder(
                model, PROMPTS, BATCH, quantities=asked, activation_checkpointing=twice, resumption=kept
            )

        return whole() if device == "cpu" else resumed(whole, 2)

    assert_same(*on_both(work, tmp_path, count), WITHIN)


def test_drawn_weights_touch_no_generator_of_a_gpu(saved, tmp_path):
    def work(folder, device):
        with untouched_generators():
            model = opening.open_untrained(saved / "llama", 7, folder, device)
        return measure_decoder(model, PROMPTS, BATCH)

    assert_same(*on_both(work, tmp_path), WITHIN)


@pytest.mark.parametrize("count", [1, 2])
def test_replacement_is_that_of_the_cpu(count, saved, tmp_path, monkeypatch):
    """It goes on from prefixes, also where layers lie on several GPUs."""
    trials = []

    def reuses(*given):
        trials.append(passes.reuses(*given))
        return trials[-1]

    monkeypatch.setattr(replacement, "reuses", reuses)

    def work(_folder, device):
        model = opened(saved / "llama", device, count)
        windows, others = [slice(0, 1), slice(5, 8), slice(N - 1, N)], replacement.donors(PROMPTS, 2, 1)
        return replacement.responses(model, PROMPTS, windows, others, [0.1, 1], BATCH)

    assert_same(*on_both(work, tmp_path, count), WITHIN)
    assert trials == [True, True]


@pytest.mark.parametrize("count", [1, 2])
def test_recall_is_that_of_the_cpu(count, saved, tmp_path):
    """Questions stand in one row, also where layers lie on several GPUs."""
    words, ways = np.arange(3, decoders.VOCABULARY), []
    contexts = recall.random_contexts(words, N, 2, cue=2, seed=0)

    def work(_folder, device):
        model = opened(saved / "llama", device, count)
        return recall.measure_recall(model, contexts, words, 2, BATCH, say=ways.append)

    assert_same(*on_both(work, tmp_path, count), WITHIN)
    assert ways == ["packed", "packed"]
