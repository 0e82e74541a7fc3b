"""A GGUF file is measured as the safetensors of the same weights, or it is refused."""

import gguf
import numpy as np
import pytest
import torch

from position_card.measures.measure import measure_decoder
from position_card.models import opening
from tests.ggufs import CLASSES, small, tensors, write
from tests.refusals import refused


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


def test_no_experts_say_nothing(tmp_path):
    model = small("llama")
    file = write(tmp_path / "small.gguf", model, "llama", **{"llama.expert_count": 0, "llama.expert_used_count": 0})
    opened = opening.open_decoder(file)
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(opened.get_parameter(name).detach(), parameter.detach(), atol=3e-7, err_msg=name)
    with refused("expert_count = 2"):
        opening.open_decoder(write(tmp_path / "other.gguf", model, "llama", **{"llama.expert_count": 2}))


def test_a_blank_that_the_file_wants_and_nobody_puts_is_refused(tmp_path):
    """Its tokens are those of a byte-level vocabulary, before which transformers puts none."""
    key = "tokenizer.ggml.add_space_prefix"
    opening.open_tokenizer(write(tmp_path / "without.gguf", small("qwen2"), "qwen2", **{key: False}))
    with refused("with.gguf", f"{key} = true", "no blank", "--tokenizer"):
        opening.open_tokenizer(write(tmp_path / "with.gguf", small("qwen2"), "qwen2", **{key: True}))


@pytest.mark.parametrize(
    ("says", "named"),
    [
        ({"pre": "qwen2"}, None),
        ({"pre": "default"}, None),
        ({"pre": "of-tomorrow"}, ("split as by GPT-2", "'of-tomorrow'")),
        ({"pre": "<b>|"}, ("split as by GPT-2", "'?b??'")),
        ({"remove_extra_whitespaces": True}, ("does not read tokenizer.ggml.remove_extra_whitespaces = True",)),
        ({"eot_token_id": 3, "add_bos_token": False}, None),
    ],
)
def test_what_is_done_otherwise_with_a_tokenizer_is_said(says, named, tmp_path):
    values = {f"tokenizer.ggml.{key}": value for key, value in says.items()}
    note = opening.tokenizer_note(write(tmp_path / "small.gguf", small("qwen2"), "qwen2", **values))
    assert note is None if named is None else all(part in note for part in named), note


def test_a_start_token_that_the_file_wants_is_put(tmp_path):
    values = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 5}
    _, before = opening.open_tokenizer(write(tmp_path / "small.gguf", small("qwen2"), "qwen2", **values))
    assert before == [5]


def test_the_header_tells_shapes_and_types(tmp_path):
    model = small("llama")
    files = opening.files_of(write(tmp_path / "small.gguf", model, "llama"))
    header = files.gguf
    assert header.shapes == {name: tensor.shape for name, tensor in tensors(model, "llama").items()}
    assert (header.architecture, header.quantisation) == ("llama", "F32")
    assert files.parameters == sum(p.numel() for p in model.parameters())


def test_a_file_is_parsed_once_until_it_changes(tmp_path, monkeypatch):
    """By the library, which bounds what it reads, and by transformers."""
    ours, own = [], opening.gguf_header.gguf_files
    theirs, read = [], gguf.GGUFReader.__init__
    monkeypatch.setattr(opening.gguf_header, "gguf_files", lambda file: ours.append(file) or own(file))
    monkeypatch.setattr(gguf.GGUFReader, "__init__", lambda reader, file: theirs.append(file) or read(reader, file))
    for times, vocabulary in enumerate((64, 80), start=1):
        file = write(tmp_path / "small.gguf", small("llama", vocab_size=vocabulary), "llama")
        config = opening.require_decoder(file)
        opening.open_tokenizer(file)
        assert opening.tokenizer_note(file) is None
        assert opening.open_decoder(file, config=config).get_input_embeddings().num_embeddings == vocabulary
        assert (len(ours), len(theirs)) == (times, times)
    assert opening._reader.cache_info().currsize == 0


def test_an_untrained_copy_of_a_file_has_the_shape_of_its_model(tmp_path):
    model = small("qwen2")
    copy = opening.open_untrained(write(tmp_path / "small.gguf", model, "qwen2"), 0, tmp_path / "folder")
    assert {name: value.shape for name, value in copy.named_parameters()} == {
        name: value.shape for name, value in model.named_parameters()
    }


def test_the_names_of_tensors_are_listed_once(tmp_path, monkeypatch):
    """Once transformers lists them once by itself, both numbers are alike: drop that of `_parsed_once`."""
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
