"""The page of a card: what it says follows from what was measured."""

import re
from dataclasses import replace

import numpy as np
import pytest

from position_card.card import page, profiles, sentences
from position_card.card.measurements import Measurements, ReplacementEffects
from position_card.rollout.measurement import Measurement

LAYERS, HEADS, PROMPTS, LEVEL = 2, 2, 6, 0.9
FACTS = {
    "model": {
        "type": "llama",
        "untrained": None,
        "weights": None,
        "parameters": 1234567,
        "layers": LAYERS,
        "heads": HEADS,
        "vocabulary": 1000,
    },
    "prompts": {
        "8": {"documents": 1, "entropy": 4.5, "sha256": "ab"},
        "12": {"documents": 5, "entropy": 4.25, "sha256": "cd"},
    },
    "predicted": 4,
    "target": "the probability of the most likely next token",
    "before": ["<s>"],
    "asked": [8, 12, 64],
    "left out": {"recall": "the model takes few tokens"},
    "longest": 16,
    "precision": "float32",
    "device": "cpu",
    "bytes": 1.26e9,
    "versions": {"python": "3", "torch": "2", "transformers": "5"},
    "name": "mine",
    "text": "it",
    "sources": {"model": "./mine at abc", "text": "./texts.jsonl"},
    "read": {"documents": 3, "sha256": "0123456789abcdef"},
}


HELD = {"12": {"documents": 5, "entropy": 4.25, "sha256": "cd", "special": {"<end>": 4}}}


def measured(n, *, rotary=True, windows=(None, 4)):
    rng = np.random.default_rng(n)
    fitted = rng.normal(0, 1, (LAYERS, HEADS, n))
    kernels = {"toeplitz": fitted, "rotary": fitted + 3} if rotary else {"toeplitz": fitted}
    return Measurement(
        documents=np.arange(PROMPTS),
        mixing={name: rng.uniform(0, 1, (PROMPTS, LAYERS)) for name in ("frobenius", "token", "backward")},
        influence=rng.uniform(0.1, 1, (PROMPTS, n)),
        loss=rng.uniform(3, 6, PROMPTS),
        by_distance=rng.uniform(0, 1, (LAYERS, n)),
        kernels=kernels,
        windows=windows,
    )


def written(lengths, replaced=None, **facts):
    compared = {n: profiles.influence_part(found, 20, LEVEL, 0) for n, found in lengths.items()}
    n, others = max(lengths), {}
    if replaced is not None:
        replaced = ReplacementEffects(n, tuple(range(n)), replaced)
        found = profiles.replacement_part(replaced, lengths[n], len(FACTS["before"]), 20, LEVEL, 0)
        others["replacement"] = found
    text = page.page(Measurements(lengths, {**FACTS, **facts}, replaced), compared, others, "**Put it first.**", "")
    return text, compared[n].values


def row(text, begins):
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {begins} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.fixture(scope="module")
def mine():
    return written({8: measured(8), 12: measured(12)})


def test_a_card_of_a_model_without_skill_begins_with_that_and_claims_nothing():
    found = measured(12)
    skilled, _ = written({12: replace(found, loss=found.loss / 3)})
    text, _ = written({12: replace(found, loss=found.loss + 4)})
    lines = [line for line in text.splitlines() if line]
    assert lines[1] == "**Put it first.**"
    assert lines[2].startswith("**This model predicts no better than chance.**")
    assert f"{found.loss.mean() + 4:.3g} [" in lines[2]
    claims = ("times the influence", "outweigh", "equally close", "comes closest")
    assert not any(claim in text.partition("## What the words mean")[0] for claim in claims)
    assert "no better than" not in skilled
    assert "times the influence" in skilled


def geometric_over_middle(effects, middle):
    """Geometric means over prompts of effects [N, n] over the geometric mean of the middle, [n]."""
    means = effects.prod(0) ** (1 / len(effects))
    return means / means[middle].prod() ** (1 / len(means[middle]))


def test_every_length_has_a_row_with_its_numbers(mine):
    text, _ = mine
    for n, documents in ((8, "1"), (12, "5")):
        prompts, of, loss, mean, begin, end, closest = row(text, str(n))
        found = measured(n)
        assert (prompts, of) == (str(PROMPTS), documents)
        assert loss.startswith(f"{found.loss.mean():.3g} [")
        assert mean == f"{found.mixing['frobenius'].mean():.3g}"
        over = geometric_over_middle(found.influence, slice(n // 4, n - n // 4))
        assert float(begin.split(" [")[0]) == pytest.approx(over[0], abs=0.005)
        assert float(end.split(" [")[0]) == pytest.approx(over[-1], abs=0.005)
        assert re.fullmatch(r"rollout .* \(W = [\d.]+( to [\d.]+| \[[\d.]+, [\d.]+\])\)", closest)
    assert re.search(rf"`<s>`.* {re.escape(begin)} times", text)  # of the longest
    assert "ln 1,000 = 6.91 nats" in text
    assert "4.25" in text


def test_rollouts_have_a_row_with_their_ends_and_distances(mine):
    text, values = mine
    at = values[values["replicate"] == -1].set_index(["variant", "estimator", "statistic"])["value"]
    columns = [("frobenius", name) for name in ("wasserstein", "first / middle", "last / middle")]
    columns += [("token", "wasserstein"), ("backward", "wasserstein")]
    for variant in ("content-free", "mean-query-key"):
        found = [float(cell.split(" [")[0]) for cell in row(text, sentences.NAMES[variant])]
        assert found == pytest.approx([at[variant, *column] for column in columns], rel=0.01)
    assert row(text, sentences.NAMES["uniform"])[1:] == ["1.00 [1.00, 1.00]", "1.00 [1.00, 1.00]", "", ""]
    assert row(text, sentences.NAMES["last"])[1:] == ["", "", "", ""]  # its middle half has none
    assert row(text, "measured influence") == ["", *row(text, "12")[4:6], "", ""]


def test_what_turned_means_explain_of_a_kernel_is_told():
    """All where they differ by a constant, nothing where they are opposite; without rotation nothing is said."""
    found = measured(12)
    assert re.search(r" 4 heads .* 100 % .*R\^2 = 1;", written({12: found})[0])
    found.kernels["rotary"][:] *= -3
    assert re.search(r" 4 heads .* nothing .*R\^2 = -", written({12: found})[0])
    assert "R^2" not in written({12: measured(12, rotary=False)})[0]


@pytest.mark.parametrize(
    ("lengths", "facts", "begins", "named"),
    [
        ((8, 12), {}, "recall", ("not measured: the model takes few tokens",)),
        ((8, 12), {}, "architecture", ("llama", "2 layers", "2 heads", "1,234,567")),
        ((8, 12), {}, "special tokens", ("`<s>`",)),
        ((12,), {"before": ["<|a|>", "`"]}, "special tokens", (r"`<\ | a\ | >` `` ` ``",)),
        ((12,), {"before": []}, "special tokens", ("none",)),
        ((12,), {"prompts": HELD}, "special tokens in the text", ("4 of 6 prompts of 12 tokens hold `<end>`",)),
        ((12,), {"tokenizer": "text is split as by GPT-2"}, "tokenizer", ("split as by GPT-2",)),
        ((8, 12), {}, "attention reads", ("latest 4 tokens",)),
        ((8, 12), {}, "computed", ("in float32 on cpu, 1.3 GB",)),
        (
            (12,),
            {"precision": "bfloat16", "in float32": ["replacement", "recall"]},
            "computed",
            ("in bfloat16 on cpu, replacement in float32, recall in float32, 1.3 GB",),
        ),
        ((8, 12), {}, "text", ("./texts.jsonl", "3 documents", "0123456789ab")),
        ((8, 12), {}, "lengths", ("6 prompts of 8", "1 document;", "6 prompts of 12", "5 documents;", "not 64", "16")),
        ((8,), {"longest": None}, "lengths", ("6 prompts of 8", "not 12", "not 64")),
        ((12,), {"untrained": 2}, "weights", ("random", "seed 2")),
        ((12,), {"weights": "Q4_1 of a GGUF file"}, "weights", ("Q4_1 of a GGUF file",)),
    ],
)
def test_what_made_a_card_is_said(lengths, facts, begins, named):
    of_model = {name: facts[name] for name in ("untrained", "weights") if name in facts}
    text, _ = written({n: measured(n) for n in lengths}, **{**facts, "model": {**FACTS["model"], **of_model}})
    said = " | ".join(row(text, begins))
    assert [name for name in named if name not in said] == []
    assert ("--untrained 3" in text) == ("untrained" not in facts)


def test_replacement_is_told_where_it_was_measured(mine):
    effects = np.random.default_rng(0).uniform(0.1, 0.2, (PROMPTS, 12))
    effects[:, -1] = 0.9
    text, _ = written({12: measured(12)}, effects)
    over = geometric_over_middle(effects, slice(3, 9))
    begin, end = row(text, "replacement")[1:3]
    assert float(begin.split(" [")[0]) == pytest.approx(over[0], rel=0.01)
    assert float(end.split(" [")[0]) == pytest.approx(over[-1], rel=0.01)
    assert f" {begin} times" in text
    found = re.search(r"The first word of the text, .* has ([\d.]+) \[", text)[1]
    assert float(found) == pytest.approx(over[1], rel=0.01)
    assert "eplacement" not in mine[0]
