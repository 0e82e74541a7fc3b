"""Directories of models are opened as what they are; those that are refused are listed in attacks/test_models.py."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import Llama4Config, Llama4ForConditionalGeneration, XLNetConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from position_card.measures.measure import measure_decoder
from position_card.models import opening
from tests.refusals import refused
from tools import decoders


def written(directory, name="llama", **changes):
    """A directory as a process of its own would write it, with changes to its configuration."""
    decoders.small(name).save_pretrained(directory)
    described = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**described, **changes}))
    return directory


@pytest.mark.parametrize("name", ["llama", "qwen2", "mistral", "gpt2", "gpt_neox", "gemma2", "olmo2", "opt", "bloom"])
def test_a_directory_is_measured_as_the_model_that_was_written(name, tmp_path):
    prompts = np.random.default_rng(0).integers(3, 64, (2, 12))
    expected = measure_decoder(decoders.small(name), prompts, 24)
    found = measure_decoder(opening.open_decoder(written(tmp_path, name)), prompts, 24)
    np.testing.assert_allclose(found.influence, expected.influence, rtol=1e-5)
    np.testing.assert_allclose(found.mixing["frobenius"], expected.mixing["frobenius"], rtol=1e-5)


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_the_attention_that_a_configuration_names_is_left_aside(key, tmp_path, capsys):
    model = opening.open_decoder(written(tmp_path, **{key: "flash_attention_2"}))
    assert model.config._attn_implementation == "eager"
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "flash_attention_2" in said
    assert "eager" in said
    opening.open_untrained(tmp_path, 0, tmp_path / "folder")


def test_the_text_decoder_of_a_model_of_images_is_opened(tmp_path):
    """Llama 4 keeps its weights beside those that read images; a tensor too many in the decoder is refused."""
    text = {**decoders.COMMON, "head_dim": 8, "intermediate_size_mlp": 48, "num_local_experts": 2}
    text |= {"no_rope_layers": [1, 0, 1], "layer_types": ["full_attention"] * 3}
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision |= {"image_size": 28, "patch_size": 14, "vision_output_dim": 16, "projector_input_dim": 16}
    vision |= {"projector_output_dim": 16}
    torch.manual_seed(0)
    whole = Llama4ForConditionalGeneration(Llama4Config(text_config=text, vision_config=vision)).eval()
    whole.save_pretrained(tmp_path)
    opened = opening.open_decoder(tmp_path)
    tokens = torch.arange(3, 15)[None]
    with torch.no_grad():
        np.testing.assert_allclose(opened(tokens).logits, whole(tokens).logits, atol=1e-5)
    stored = load_file(tmp_path / "model.safetensors")
    stored["language_model.extra.weight"] = torch.ones(2)
    save_file(stored, tmp_path / "model.safetensors", {"format": "pt"})
    with refused("language_model.extra.weight"):
        opening.open_decoder(tmp_path)


@pytest.mark.parametrize(
    ("kind", "named"),
    [("mamba", "attention heads"), ("llava", "text decoder"), ("clip", "decoder"), ("t5", "not a decoder")],
)
def test_what_no_decoder_can_be_made_of_says_why(kind, named):
    assert named in opening.decoder_fault(CONFIG_MAPPING[kind]())


def test_a_length_that_is_no_number_of_tokens_is_no_limit():
    assert opening.longest(XLNetConfig()) is None


@pytest.mark.parametrize("name", ["llama", "gpt2", "bloom"])
def test_an_untrained_copy_has_its_shape_and_weights_of_its_seed(name, tmp_path):
    directory = written(tmp_path / "model", name)
    trained = opening.open_decoder(directory).state_dict()
    before = torch.random.get_rng_state()
    one, again, other = (
        opening.open_untrained(directory, seed, tmp_path / "folder").state_dict() for seed in (0, 0, 1)
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    assert {key: value.shape for key, value in one.items()} == {key: value.shape for key, value in trained.items()}
    assert all(torch.equal(value, again[key]) for key, value in one.items())
    drawn = [key for key, value in one.items() if value.dim() == 2]
    assert drawn
    assert not any(torch.equal(one[key], model[key]) for key in drawn for model in (other, trained))
    assert list((tmp_path / "folder").iterdir()) == []


def test_an_untrained_copy_may_have_the_first_layers_alone(tmp_path):
    directory = written(tmp_path / "model", "llama")
    whole = opening.open_untrained(directory, 0, tmp_path / "folder")
    first = opening.open_untrained(directory, 0, tmp_path / "folder", layers=1)
    assert len(whole.model.layers) > len(first.model.layers) == 1
    with refused(str(directory), f"{len(whole.model.layers)} layers", "9"):
        opening.open_untrained(directory, 0, tmp_path / "folder", layers=9)


def test_rotary_falcon_is_opened_though_no_family_describes_it(tmp_path):
    assert not opening.open_decoder(written(tmp_path, "falcon, rotary")).config.alibi


def test_bloom_in_one_slice_is_opened_as_it_is_said_to_be_exact(tmp_path):
    opening.open_decoder(written(tmp_path, "bloom", slow_but_exact=True, pretraining_tp=1))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("llama", 64), ("gpt2", 64), ("opt", 64), ("bloom", None), ("mpt", 64), ("falcon, ALiBi", None)],
)
def test_the_longest_prompt_is_what_the_configuration_says(name, expected):
    assert opening.longest(decoders.small(name).config) == expected


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("llama", [16, 64], [16, 64]),
        ("llama", [16, 256, 512], [16, 64]),
        ("llama", [100], [64]),
        ("bloom", [9, 7], [7, 9]),
    ],
)
def test_lengths_are_cut_to_what_the_model_takes(name, asked, expected):
    assert opening.lengths(decoders.small(name).config, asked) == expected


# Tokenizers


def tokenizer_in(directory, template=None, **described):
    vocabulary = {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "[UNK]": 4}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if template:
        tokenizer.post_processor = processors.TemplateProcessing(template, None, [("<s>", 0), ("</s>", 1)])
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=5)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", **described}
    (directory / "tokenizer_config.json").write_text(json.dumps(described))
    return directory


@pytest.mark.parametrize(
    ("template", "expected"), [(None, []), ("<s> $A", [0]), ("<s> <s> $A </s>", [0, 0]), ("$A </s>", [])]
)
def test_what_a_tokenizer_puts_before_a_text_is_known(template, expected, tmp_path):
    tokenizer, before = opening.open_tokenizer(tokenizer_in(tmp_path, template))
    assert before == expected
    assert tokenizer.encode("a b a b", add_special_tokens=False).ids == [2, 3, 2, 3]  # nothing is cut or padded


def test_a_directory_without_a_fast_tokenizer_is_refused(tmp_path):
    with refused(tmp_path, "tokenizer.json"):
        opening.open_tokenizer(tmp_path)


def test_ids_beyond_the_embeddings_are_refused(tmp_path):
    model = decoders.small("llama")
    opening.require_known_tokens(np.array([[63, 0]]), model, tmp_path)
    with refused(tmp_path, "id 64", "64 tokens"):
        opening.require_known_tokens(np.array([[3, 64]]), model, tmp_path)


def test_hardware_that_only_emulates_bfloat16_is_told(tmp_path, monkeypatch, caplog):
    written(tmp_path)
    monkeypatch.setattr(opening.devices, "native_bf16", lambda device: device != "cpu")
    assert opening.open_decoder(tmp_path, precision="bfloat16").dtype == torch.bfloat16
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}: the hardware here only emulates bfloat16, which takes longer than float32"
    ]
