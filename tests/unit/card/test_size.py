"""Sizes from files, against the models themselves; and what follows from them."""

import pytest

from position_bias.card import size
from position_bias.card.size import Size
from position_bias.language_models.files import model_files
from tools import decoders

SMALL = Size(parameters=10_000_000, layers=6, heads=8, width=256, inner=1024, vocabulary=8192)


@pytest.mark.parametrize("name", ["llama", "gpt2", "bloom", "opt", "gemma2"])
def test_a_size_is_that_of_the_model(tmp_path, name):
    model = decoders.small(name)
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    found = size.size(model_files(tmp_path).parameters, model.config)
    assert found.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert (found.layers, found.heads, found.width) == (decoders.LAYERS, decoders.HEADS, decoders.WIDTH)
    assert found.vocabulary == model.get_output_embeddings().weight.shape[0]


def test_large_models_are_opened_in_half_the_precision():
    assert SMALL.precision == "float32"
    assert Size(1_500_000_000, 28, 16, 1536, 8960, 151_936).precision == "bfloat16"


def test_a_batch_is_as_large_as_the_room_allows_and_at_least_one_prompt():
    assert SMALL.batch(256, "float32", "cpu", recomputed=False) == 1024
    assert SMALL.batch(256, "float32", "cuda", recomputed=False) == 8192
    assert SMALL.batch(300, "float32", "cpu", recomputed=False) == 900  # whole prompts
    assert SMALL.batch(16384, "float32", "cpu", recomputed=False) == 16384
    large = Size(3_000_000_000, 36, 32, 2560, 10240, 151_936)
    wide, again = (large.batch(256, "bfloat16", "cuda", recomputed=recomputed) for recomputed in (False, True))
    assert 256 <= wide < again


def test_memory_holds_the_weights_and_grows_with_the_batch():
    alone, more = (SMALL.memory(256, tokens, "float32", recomputed=False) for tokens in (256, 1024))
    assert alone > size.PROCESS + 4 * SMALL.parameters
    assert more - alone == pytest.approx(3 * SMALL.of_prompt(256, "float32", recomputed=False))
