"""The page of a card: what it says follows from what was measured."""

import re

import numpy as np
import pytest

from position_bias.card import page, profiles
from position_bias.language_models.measured import Measured

LAYERS, HEADS, PROMPTS, LEVEL = 2, 2, 6, 0.9
FACTS = {
    "model": {"type": "llama", "parameters": 1234567, "layers": LAYERS, "heads": HEADS},
    "before": ["<s>"],
    "asked": [8, 12, 64],
    "longest": 16,
    "precision": "float32",
    "device": "cpu",
    "bytes": 1.26e9,
    "versions": {"python": "3", "torch": "2", "transformers": "5"},
}
SOURCES = {"model": "./mine", "text": "./texts.jsonl"}


def measured(n, *, rotary=True, windows=(None, 4)):
    rng = np.random.default_rng(n)
    fitted = rng.normal(0, 1, (LAYERS, HEADS, n))
    kernels = {"toeplitz": fitted, "rotary": fitted + 3} if rotary else {"toeplitz": fitted}
    return Measured(
        mixing={name: rng.uniform(0, 1, (PROMPTS, LAYERS)) for name in ("frobenius", "token", "backward")},
        influence=rng.uniform(0.1, 1, (PROMPTS, n)),
        by_distance=rng.uniform(0, 1, (LAYERS, n)),
        attention=None,
        kernels=kernels,
        windows=windows,
        offset=None,
        slopes=None,
    )


def written(lengths, **facts):
    layers, _, values = profiles.compare(lengths[max(lengths)], 20, LEVEL, 0)
    return page.page("mine", lengths, layers, values, {**FACTS, **facts}, SOURCES, LEVEL), values


def row(text, begins):
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {begins} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.fixture(scope="module")
def mine():
    return written({8: measured(8), 12: measured(12)})


def test_the_caption_has_the_prompts_and_the_kind_of_interval(mine):
    assert f"*From {PROMPTS} prompts of 12 tokens. " in mine[0]
    assert "Bands are 90 % bootstrap intervals over prompts.*" in mine[0]


def test_distances_have_a_row_a_rollout_and_a_column_a_lambda(mine):
    text, values = mine
    for variant, said in (("content-free", "the rollout without content"), ("rotary", "the rollout of the mean query")):
        cells = row(text, next(line[2:].split(" |")[0] for line in text.splitlines() if line.startswith(f"| {said}")))
        for cell, estimator in zip(cells, ("frobenius", "token", "backward"), strict=True):
            at = values[
                (values["variant"] == variant) & (values["estimator"] == estimator) & (values["replicate"] == -1)
            ]
            expected = at.loc[at["statistic"] == "wasserstein", "value"].item()
            assert float(cell.split(" [")[0]) == pytest.approx(expected, rel=0.01)
    assert row(text, "the uniform profile")[1:] == ["", ""]
    assert "| lambda of the backward pass (our addition, no prediction) |" in text


def test_a_kernel_that_differs_by_a_constant_is_predicted_whole(mine):
    assert "R^2 of 1 for the median head (quartiles 1 and 1, of 4 heads)" in mine[0]


def test_without_rotation_nothing_is_said_of_it():
    assert "R^2" not in written({12: measured(12, rotary=False)})[0]


def test_what_was_left_out_is_said_with_the_reason(mine):
    assert row(mine[0], "lengths") == [
        "8 tokens, 6 prompts; 12 tokens, 6 prompts; not 64, since the model takes 16",
    ]
    few = written({8: measured(8)}, longest=None)[0]
    assert row(few, "lengths") == [
        "8 tokens, 6 prompts; not 12, since the text has too few prompts of it; "
        "not 64, since the text has too few prompts of it"
    ]


def test_what_made_it_is_said(mine):
    text, _ = mine
    assert row(text, "architecture") == ["llama: 2 layers of 2 heads, 1,234,567 parameters"]
    assert row(text, "special tokens") == ["each prompt begins with <s>, as the tokenizer puts it"]
    assert row(text, "attention reads") == ["the latest 4 tokens in some layers"]
    assert row(text, "computed") == ["in float32 on cpu, 1.3 GB of memory estimated"]
    assert row(written({12: measured(12, windows=(None, None))}, before=[])[0], "special tokens") == ["none"]


def test_the_origin_names_commit_and_text():
    assert page.origin({"source": "someone/model", "revision": "abc"}) == "someone/model at abc"
    assert page.origin({"source": "./mine", "revision": None}) == "./mine"
    kept = {"documents": 3, "sha256": "0123456789abcdef"}
    expected = "standard-library, 3 documents, sha256 0123456789ab"
    assert page.origin({"corpus": "standard-library", "splits": {"test": kept}}) == expected
    assert re.fullmatch(r"[^\n]+", expected)
