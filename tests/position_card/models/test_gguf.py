"""A GGUF file is measured as the safetensors of the same weights, or it is refused."""

import gguf
import numpy as np
import pytest
import torch

from position_card.measures.measure import measure_decoder
from position_card.models import opening
from tests.ggufs import CLASSES, small, tensors, write


@pytest.mark.parametrize("architecture", CLASSES)
def test_a_file_is_measured_as_the_safetensors_of_its_weights(architecture, tmp_path, capfd):
    model = small(architecture)
    model.save_pretrained(tmp_path / "whole")
    whole = opening.open_decoder(tmp_path / "whole")
    packed = opening.open_decoder(write(tmp_path / "small.gguf", model, architecture))
    assert capfd.readouterr().err == ""
    assert packed.dtype == torch.float32
    for name, parameter in whole.named_parameters():
        np.testing.assert_allclose(packed.get_parameter(name).detach(), parameter.detach(), atol=3e-7, err_msg=name)
    prompts = np.random.default_rng(0).integers(3, 64, (3, 24))
    expected, found = (measure_decoder(opened, prompts, 24) for opened in (whole, packed))
    np.testing.assert_allclose(found.influence, expected.influence, rtol=2e-4, atol=1e-8)
    for estimator, values in expected.mixing.items():
        np.testing.assert_allclose(found.mixing[estimator], values, rtol=1e-5, err_msg=estimator)


def test_the_header_tells_shapes_and_types(tmp_path):
    model = small("llama")
    files = opening.files_of(write(tmp_path / "small.gguf", model, "llama"))
    header = files.gguf
    assert header.shapes == {name: tensor.shape for name, tensor in tensors(model, "llama").items()}
    assert (header.architecture, header.quantisation) == ("llama", "F32")
    assert files.parameters == sum(p.numel() for p in model.parameters())


def test_an_untrained_copy_of_a_file_has_the_shape_of_its_model(tmp_path):
    model = small("qwen2")
    copy = opening.open_untrained(write(tmp_path / "small.gguf", model, "qwen2"), 0, tmp_path / "folder")
    assert {name: value.shape for name, value in copy.named_parameters()} == {
        name: value.shape for name, value in model.named_parameters()
    }


def test_the_names_of_tensors_are_listed_once(tmp_path, monkeypatch):
    """Once transformers lists them once by itself, both numbers are alike: drop `_names_listed_once`."""
    listed, original = [], gguf.get_tensor_name_map

    def counted(*asked):
        listed.append(asked)
        return original(*asked)

    file = write(tmp_path / "small.gguf", small("llama"), "llama")
    monkeypatch.setattr(gguf, "get_tensor_name_map", counted)
    config = opening.require_decoder(file)
    assert len(listed) == 1
    opening.open_decoder(file, config=config)
    assert len(listed) == 2
    assert gguf.get_tensor_name_map is counted
    monkeypatch.setattr(opening, "cache", lambda function: function)
    opening.require_decoder(file)
    assert len(listed) > 10
