"""The page of a card: what it says follows from what was measured."""

import re

import numpy as np
import pytest

from position_bias.card import page, profiles, sentences
from position_bias.card.measured import Measured, Replaced
from position_bias.rollout.measurement import Measurement

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
    compared = {n: profiles.compare(found, 20, LEVEL, 0) for n, found in lengths.items()}
    n, others = max(lengths), {}
    if replaced is not None:
        replaced = Replaced(n, tuple(range(n)), replaced)
        found = profiles.compare_replaced(replaced, lengths[n], len(FACTS["before"]), 20, LEVEL, 0)
        others["replacement"] = found
    text = page.page(Measured(lengths, {**FACTS, **facts}, replaced), compared, others)
    return text, compared[n].values


def row(text, begins):
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {begins} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.fixture(scope="module")
def mine():
    return written({8: measured(8), 12: measured(12)})


def test_the_caption_has_the_prompts_and_the_level_of_intervals(mine):
    assert mine[0].startswith("# The position card of mine on it\n")
    (caption,) = re.findall(r"^\*From .*\*$", mine[0], re.MULTILINE)
    assert caption.startswith(f"*From {PROMPTS} prompts of 12 tokens of 5 documents")
    assert "90 %" in caption


def test_every_length_has_a_row_with_the_numbers_of_the_sentences(mine):
    text, _ = mine
    for n, documents in ((8, "1"), (12, "5")):
        prompts, of, loss, mean, begin, end, closest = row(text, str(n))
        found = measured(n)
        assert (prompts, of) == (str(PROMPTS), documents)
        assert loss.startswith(f"{found.loss.mean():.3g} [")
        assert mean == f"{found.mixing['frobenius'].mean():.3g}"
        total = found.influence.sum(0)
        assert begin.startswith(f"{total[0] / total[n // 4 : n - n // 4].mean():.3g} [")
        assert end.startswith(f"{total[-1] / total[n // 4 : n - n // 4].mean():.3g} [")
        assert re.fullmatch(r"rollout .* \(W = [\d.]+( to [\d.]+| \[[\d.]+, [\d.]+\])\)", closest)
        if n == 12:
            assert f"the first token (`<s>`, which the tokenizer adds) has {begin} times" in text
    assert "ln 1,000 = 6.91 nats" in text
    assert "about 4.25. " in text


def test_every_kind_of_rollout_that_was_made_is_defined_and_no_other(mine):
    kinds = re.findall(r"^  - \*([^*]*)\*", mine[0], re.MULTILINE)
    assert kinds == ["without content", "logit by distance", "mean query and key", "baselines"]
    assert set(page.KINDS) | {"last", "half"} == set(sentences.NAMES)


def test_rollouts_have_a_row_each_with_their_ends_and_a_distance_a_lambda(mine):
    text, values = mine
    for variant, said in (
        ("content-free", "the rollout without content"),
        ("mean-query-key", "the rollout of the mean query"),
    ):
        cells = row(text, next(line[2:].split(" |")[0] for line in text.splitlines() if line.startswith(f"| {said}")))
        columns = [("frobenius", name) for name in ("wasserstein", "first / middle", "last / middle")]
        columns += [("token", "wasserstein"), ("backward", "wasserstein")]
        for cell, (estimator, statistic) in zip(cells, columns, strict=True):
            at = values[
                (values["variant"] == variant) & (values["estimator"] == estimator) & (values["replicate"] == -1)
            ]
            expected = at.loc[at["statistic"] == statistic, "value"].item()
            assert float(cell.split(" [")[0]) == pytest.approx(expected, rel=0.01)
    uniform = row(text, "baseline: the same influence of every token")
    assert uniform[1:] == ["1.00 [1.00, 1.00]", "1.00 [1.00, 1.00]", "", ""]
    assert row(text, "baseline: all influence on the last token")[1:] == ["", "", "", ""]  # its middle half has none
    assert row(text, "measured influence") == ["", *row(text, "12")[4:6], "", ""]


def test_a_kernel_that_differs_by_a_constant_is_predicted_whole(mine):
    assert re.search(r"median of 4 heads.* 100 % of its variance .*\(R\^2 = 1;", mine[0])


def test_a_kernel_that_is_not_predicted_explains_nothing():
    found = measured(12)
    found.kernels["rotary"][:] *= -3
    assert "they explain nothing of its variance" in written({12: found})[0]


def test_without_rotation_nothing_is_said_of_it():
    assert "R^2" not in written({12: measured(12, rotary=False)})[0]


@pytest.mark.parametrize(
    ("begins", "said"),
    [
        ("architecture", "llama: 2 layers of 2 heads, 1,234,567 parameters"),
        ("special tokens", "each prompt begins with `<s>`, as the tokenizer puts it"),
        ("attention reads", "the latest 4 tokens in some layers"),
        ("computed", "in float32 on cpu, 1.3 GB of memory estimated"),
        ("model", "./mine at abc"),
        ("text", "./texts.jsonl, 3 documents, sha256 0123456789ab"),
        (
            "lengths",
            "6 prompts of 8 tokens of 1 document; 6 prompts of 12 tokens of 5 documents; "
            "not 64, since the model takes 16, of which the text has too few",
        ),
    ],
)
def test_what_made_it_is_said_and_what_was_left_out(mine, begins, said):
    assert row(mine[0], begins) == [said]
    assert "| weights |" not in mine[0]


@pytest.mark.parametrize(
    ("n", "facts", "begins", "said"),
    [
        (12, {"before": []}, "special tokens", "none: the tokenizer puts no token before a text"),
        (12, {"untrained": 2}, "weights", "random, not trained, drawn by seed 2"),
        (12, {"weights": "Q4_1 of a GGUF file"}, "weights", "Q4_1 of a GGUF file"),
        (
            8,
            {"longest": None},
            "lengths",
            "6 prompts of 8 tokens of 1 document; not 12, since the text has too few prompts of it; "
            "not 64, since the text has too few prompts of it",
        ),
    ],
)
def test_a_card_of_another_kind_says_so(n, facts, begins, said):
    of_model = {name: facts[name] for name in ("untrained", "weights") if name in facts}
    text, _ = written({n: measured(n)}, **{**facts, "model": {**FACTS["model"], **of_model}})
    assert row(text, begins) == [said]
    assert ("Is this bias strong?" in text) == ("untrained" not in facts)


def test_tokens_stand_as_they_are_in_texts_and_tables():
    text = written({12: measured(12)}, before=["<|a|>", "`"])[0]
    assert "the first token (`<|a|>`, which the tokenizer adds) has " in text
    assert "| special tokens | each prompt begins with `<\\|a\\|>` `` ` ``, as the tokenizer puts it |" in text


def test_replacement_is_told_where_it_was_measured(mine):
    effects = np.random.default_rng(0).uniform(0.1, 0.2, (PROMPTS, 12))
    effects[:, -1] = 0.9
    text, _ = written({12: measured(12)}, effects)
    mean = effects.mean(0)
    begin, end = row(text, "replacement")[1:3]
    assert float(begin.split(" [")[0]) == pytest.approx(mean[0] / mean[3:9].mean(), rel=0.01)
    assert float(end.split(" [")[0]) == pytest.approx(mean[-1] / mean[3:9].mean(), rel=0.01)
    assert f"in place of the first changes the prediction {begin} times" in text
    found = re.search(r"The first word of the text, .* has ([\d.]+) \[", text)[1]
    assert float(found) == pytest.approx(mean[1] / mean[3:9].mean(), rel=0.01)
    assert "- **Replacement**" in text
    assert "eplacement" not in mine[0]
