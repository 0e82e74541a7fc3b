"""What config/paper.yaml asks for, and docs/paper-scale.md says, is what is counted from each model's sizes."""

from pathlib import Path

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from position_bias.language_models import cost
from tools import paper_scale

CONFIG = paper_scale.configuration()
PAGE = (Path(__file__).parents[3] / "docs/paper-scale.md").read_text()
GPU = 0.85 * 80e9  # bytes of a GPU of 80 GB that are filled: what kernels and the driver need is not counted
STATED = {  # billions of parameters, as the papers and pages of the models state them, with embeddings
    "falcon-rw-7b": 7.5,
    "mpt-7b": 6.7,
    "mpt-30b": 30,
    "bloom-7b1": 7.1,
    "bloom-176b": 176,
    "llama-3.1-8b": 8.0,
    "phi-4": 14.7,
    "qwen3-8b": 8.2,
    "bloom-560m": 0.56,
}
WHOLE = "a model of 36 layers is counted in 10 seconds"


@pytest.fixture(scope="module", params=paper_scale.ARCHITECTURES)
def counted(request):
    return request.param, CONFIG["hub_models"][request.param], paper_scale.needs(request.param, CONFIG)


def test_every_model_of_the_paper_is_counted():
    assert set(paper_scale.ARCHITECTURES) == set(CONFIG["hub_models"]) - {"smollm2-135m"} == set(STATED)


def test_what_is_asked_for_follows_from_the_count(counted):
    name, asked, found = counted
    assert found.weights / 2e9 == pytest.approx(STATED[name], rel=0.02)
    each = found.weights / asked["gpus"]
    assert each + found.batch <= GPU
    assert asked["gpus"] == 1 or 2 * each + found.batch > GPU  # half as many would not do
    assert 2 * each + cost.PROCESS <= 1e9 * asked["memory"] <= 6 * each + 10e9  # a GPU's part is read, then moved
    assert 2 * found.hours <= asked["minutes"] / 60 <= 10 * found.hours + 1
    assert paper_scale.row(name, asked, found) in PAGE.splitlines()


@pytest.mark.all(WHOLE)
def test_layers_that_are_not_counted_take_what_the_others_take():
    kind, layers, others = paper_scale.ARCHITECTURES["falcon-rw-7b"]
    described = CONFIG_MAPPING[kind](**others, num_hidden_layers=layers)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(described, dtype=torch.bfloat16)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    whole = cost.size(parameters, described).of_prompt(2048, "bfloat16", recomputed=True)
    alone = {**CONFIG, "lengths": {"long": {"tokens": 2048, "prompts": 1000}, "more": []}}
    found = paper_scale.needs("falcon-rw-7b", alone)
    assert found.weights == 2 * parameters
    assert found.batch == pytest.approx(2 * whole.peak, rel=1e-3)
    assert found.hours * 3600 * paper_scale.SPEED == pytest.approx(1000 * whole.operations, rel=1e-9)
