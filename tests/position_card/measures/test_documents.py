"""Answers by the place of documents: orders, tokens, and log-probabilities against plain passes of whole prompts."""

import itertools

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from position_card.measures import documents
from position_card.measures.documents import Prompt, Reader
from position_card.probe import forward
from tests.refusals import refused
from tests.small_decoders import VOCABULARY, llama, mistral

MODELS = {"llama": lambda: llama(), "window": lambda: mistral(sliding_window=6)}


def test_gold_documents_stand_at_equal_distances_among_the_others():
    assert documents.places(9) == [0, 2, 4, 7, 9]
    assert documents.places(7) == [0, 2, 4, 5, 7]
    assert documents.places(2) == [0, 1, 2]
    assert documents.orders(4, [2], 3) == [[2, 0, 1, 3], [0, 1, 2, 3], [0, 1, 3, 2]]
    assert documents.orders(5, [1, 3], 2) == [[1, 3, 0, 2, 4], [0, 2, 4, 1, 3]]


def test_each_document_and_each_option_stands_at_each_place_once():
    turned = documents.rotations(5, [3])
    assert [order.index(3) for order in turned] == [0, 1, 2, 3, 4]
    for orders in (turned, documents.option_orders(5)):
        assert all(sorted(order) == list(range(5)) for order in orders)
        assert all(sorted(column) == list(range(5)) for column in zip(*orders, strict=True))
    assert documents.option_orders(2) == [[0, 1], [1, 0]]


def letters(before=None):
    """A token for each letter, and for the pairs `ab` and `: `; <s> may stand before each text."""
    vocabulary = {"<s>": 0, "?": 1, " ": 2, ":": 3, **{letter: 4 + place for place, letter in enumerate("abcdefgh")}}
    merged = {"ab": 12, " a": 13}
    tokenizer = Tokenizer(models.BPE(vocabulary | merged, [("a", "b"), (" ", "a")], unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\0", "isolated")
    tokenizer.add_special_tokens(["<s>"])
    if before:
        tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


@pytest.mark.parametrize(
    ("text", "answer", "prompt", "answered"),
    [
        ("c:", "d", (6, 3), (2, 7)),  # a blank between them is of the answer
        ("c: ", "d", (6, 3, 2), (7,)),
        ("c:", "a", (6, 3), (13,)),
        ("ca", "b", (6, 4), (2, 5)),
        ("c\n", "ab", (6, 1), (12,)),
    ],
)
def test_a_token_belongs_to_the_answer_where_it_ends_there(text, answer, prompt, answered):
    assert documents.prompt_with_answer(letters(), [], text, answer) == Prompt(prompt, answered)


def test_a_start_token_stands_once_whoever_writes_it():
    tokenizer = letters("<s>")
    for text in ("c:", "<s>c:"):
        assert documents.prompt_with_answer(tokenizer, [0], text, "d").tokens == (0, 6, 3)
    assert documents.prompt_with_answer(letters(), [], "<s>c:", "d").tokens == (0, 6, 3)


def test_an_answer_without_tokens_is_refused():
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="b"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    with refused("no token of the answer"):
        documents.prompt_with_answer(tokenizer, [], "a", " ")


def drawn(seed=0):
    """Prompts that begin alike to different lengths, one of them twice, and one the beginning of another."""
    generator = np.random.default_rng(seed)
    parts = [tuple(generator.integers(0, VOCABULARY, size).tolist()) for size in (4, 3, 5, 2)]
    prompts = [Prompt((*sum(order, (1, 2)), 3), (7, 8)) for order in itertools.permutations(parts)]
    return [
        *prompts,
        Prompt(prompts[0].tokens, (9,)),
        Prompt(prompts[0].tokens[:6], (9, 4, 4)),
        Prompt((5,), (6,)),
        prompts[0],
    ]


def plainly(model, prompt):
    """The log-probability of an answer from one pass over everything, and whether it is what the model would say."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt.tokens, *prompt.answer]]), use_cache=False).logits[0].double()
    found = logits.log_softmax(-1)
    places = range(len(prompt.tokens) - 1, len(prompt.tokens) + len(prompt.answer) - 1)
    chosen = [int(found[place].argmax()) for place in places]
    return sum(float(found[place, token]) for place, token in zip(places, prompt.answer, strict=True)), chosen


@pytest.mark.parametrize(
    ("kind", "shared", "tree"), [*itertools.product(MODELS, [True, False], [False]), ("llama", True, True)]
)
def test_answers_have_the_probability_of_plain_passes(kind, shared, tree):
    model, prompts = MODELS[kind](), drawn()
    likely = Prompt(prompts[3].tokens, tuple(plainly(model, prompts[3])[1][:1]))
    for prompt, found in zip(
        [*prompts, likely], Reader(model, prefix_cache=shared, tree=tree).read([*prompts, likely]), strict=True
    ):
        expected, chosen = plainly(model, prompt)
        assert found.log_probability == pytest.approx(expected, abs=1e-4)
        assert found.likeliest == (chosen == list(prompt.answer))
        assert found.reply == ()
    assert found.likeliest


@pytest.mark.parametrize("shared", [True, False])
def test_a_model_says_what_it_generates(shared):
    model, prompts = llama(), drawn()
    found = Reader(model, prefix_cache=shared, reply_length=5).read(prompts)
    for prompt, answered in zip(prompts, found, strict=True):
        given = torch.tensor([prompt.tokens])
        greedily = {"attention_mask": torch.ones_like(given), "max_new_tokens": 5, "do_sample": False}
        said = model.generate(given, **greedily, eos_token_id=None, pad_token_id=0)[0]
        assert answered.reply == tuple(said[len(prompt.tokens) :].tolist())
    end = found[0].reply[2]
    until = Reader(model, prefix_cache=shared, reply_length=5, ends=[end]).read(prompts[:1])[0].reply
    assert until == found[0].reply[: found[0].reply.index(end)]


def test_a_tree_passes_once_and_has_no_token_twice():
    model, prompts, seen = llama(), drawn(), []
    model.get_input_embeddings().register_forward_hook(lambda module, given, out: seen.append(given[0].shape))
    Reader(model, prefix_cache=True, tree=True).read(prompts)
    texts = [(*tokens, *answer[:-1]) for tokens, answer in prompts]
    beginnings = {text[:end] for text in texts for end in range(1, len(text) + 1)}
    assert [shape for shape in seen if len(shape) == 2] == [(1, len(beginnings))]


def test_trees_are_read_where_another_branch_changes_nothing():
    tokens = drawn()[0].tokens
    assert documents.reads_trees(llama(), tokens)
    assert not documents.reads_trees(mistral(sliding_window=6), tokens)
    assert not documents.reads_trees(llama(), (5,))
    blind = llama()
    blind.register_forward_pre_hook(
        lambda module, args, keywords: (args, {**keywords, "attention_mask": None}), with_kwargs=True
    )
    assert not documents.reads_trees(blind, tokens)


def test_what_prompts_begin_with_in_common_is_read_once():
    model, prompts, seen = llama(), drawn(), []
    model.get_input_embeddings().register_forward_hook(lambda module, given, out: seen.append(given[0].numel()))
    Reader(model, prefix_cache=True).read(prompts)
    assert documents.tokens_read(prompts) == sum(seen)
    beginnings = {prompt.tokens[:end] for prompt in prompts for end in range(1, len(prompt.tokens))}
    assert sum(seen) == len(beginnings) + sum(len(answer) for _, answer in set(prompts))


def test_beginnings_are_shared_where_the_cache_changes_nothing(monkeypatch):
    tokens = drawn()[0].tokens
    assert documents.shares_beginnings(llama(), tokens)
    assert documents.shares_beginnings(mistral(sliding_window=6), tokens)
    assert not documents.shares_beginnings(llama(), (5,))
    monkeypatch.setattr(forward, "repeat", lambda cache, count: (forward.crop(cache, 3), cache)[1])
    assert not documents.shares_beginnings(llama(), tokens)


def test_rounded_weights_hide_no_cache_that_works():
    model, prompts = llama().bfloat16(), drawn()
    assert documents.shares_beginnings(model, prompts[0].tokens)
    assert all(weight.dtype == torch.bfloat16 for weight in model.parameters())
    shared, apart = (
        [found.log_probability for found in Reader(model, prefix_cache=shared).read(prompts)]
        for shared in (True, False)
    )
    assert shared == pytest.approx(apart, abs=0.3)


def test_only_the_last_place_counts_for_a_model_with_a_short_window():
    """One layer with a window of 5 sees four tokens of what stands before the question."""
    model = mistral(num_hidden_layers=1, sliding_window=5)
    parts = {0: (10, 11, 12), 1: (13, 14, 15), 2: (16, 17, 18), 3: (19, 20, 21)}
    prompts = [Prompt((*sum((parts[item] for item in order), ()), 1, 2), (7,)) for order in documents.orders(4, [0])]
    *others, last = [found.log_probability for found in Reader(model, prefix_cache=True).read(prompts)]
    assert len(others) == 3
    assert others == pytest.approx([others[0]] * 3, abs=1e-5)
    assert abs(last - others[0]) > 1e-2
