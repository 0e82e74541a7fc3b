"""Recall by place of decoders whose answer is known: an induction head built by hand, a window, random weights."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import GPTNeoConfig, GPTNeoForCausalLM

from position_card.card import costs
from position_card.measures import cost, recall
from position_card.measures.passes import Resumption
from position_card.rollout.parts import by_part
from position_card.rollout.passages import places
from tests import small_decoders
from tests.refusals import refused
from tests.small_decoders import llama

N, CUE, VOCABULARY = 16, 2, 63
QUESTIONS = N - CUE + 1
WORDS = np.arange(1, VOCABULARY, 3)  # so that a token which is no word is often the likeliest; 0 starts a prompt


def induction(window):
    """A decoder that finds the last token earlier, at most `window` tokens back, and says what followed it there.

    A hidden state has a part for the token, one for its position, and one for the token before, which the first layer
    fetches; the second layer looks for positions whose token before is the present one, and copies their token.
    """
    positions = N + CUE + 1
    width = 2 * VOCABULARY + positions
    config = GPTNeoConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=1,
        num_layers=2,
        num_heads=1,
        attention_types=[[["global", "local"], 1]],
        window_size=window,
        max_position_embeddings=positions,
        attention_dropout=0.0,
    )
    model = GPTNeoForCausalLM(config).double().eval()
    token, place = torch.arange(VOCABULARY), VOCABULARY + torch.arange(positions)
    before = VOCABULARY + positions + torch.arange(VOCABULARY)
    for name, parameter in model.named_parameters():
        parameter.data.fill_(float(".ln_" in name and name.endswith("weight")))
    embeddings = model.transformer
    embeddings.wte.weight.data[token, token] = 1
    embeddings.wpe.weight.data[torch.arange(positions), place] = 1
    first, second = (block.attn.attention for block in embeddings.h)
    wired = [  # what is read, what is written, and how strongly
        (first.q_proj, place, place - 1, 10.0),
        (first.k_proj, place, place, 10.0),
        (first.v_proj, token, before, 1.0),
        (second.q_proj, token, before, 10.0),
        (second.k_proj, before, before, 10.0),
        (second.v_proj, token, token, 100.0),
    ]
    for linear, read, written, strength in wired:
        linear.weight.data[written, read] = strength
    for attention in (first, second):
        attention.out_proj.weight.data.copy_(torch.eye(width))
    model.transformer.ln_f.weight.data.fill_(1)
    return model


def contexts(count=5, n=N, cue=CUE):
    return recall.random_contexts(WORDS, n, count, cue, 0)


def answers(model, rows=None, **options):
    rows = contexts() if rows is None else rows
    return recall.measure_recall(model, rows, WORDS, CUE, 4 * N, before=[0], **options)


def way_of(model):
    """Return how a model is asked, once that is found out on the first context, before others are asked about."""

    def stop(way):
        raise KeyboardInterrupt(way)

    with pytest.raises(KeyboardInterrupt) as ended:
        answers(model, say=stop)
    return ended.value.args[0]


def ask(way, monkeypatch):
    monkeypatch.setattr(recall, "_first_reader", lambda reader_of: reader_of(way))


def lengths_read(monkeypatch):
    """Return a list that gets the tokens of every prompt that passes by itself, behind no other tokens or some."""
    lengths, next_token = [], recall.forward.next_token

    def counted(model, tokens, *given, **named):
        lengths.extend([tokens.shape[1]] * len(tokens))
        return next_token(model, tokens, *given, **named)

    monkeypatch.setattr(recall.forward, "next_token", counted)
    return lengths


def test_an_induction_head_built_by_hand_recalls_every_place():
    found = answers(induction(100))
    assert found.probability.shape == (5, N - CUE)
    np.testing.assert_array_equal(found.correct, 1)
    assert found.probability.min() > 0.99
    assert found.prior.max() < 0.2


@pytest.mark.parametrize("window", [5, 9])
def test_a_decoder_with_a_window_recalls_what_the_window_holds_and_nothing_else(window):
    """The cue ends with token number N + CUE, and the word that follows a passage at p is number p + CUE + 1."""
    found = answers(induction(window))
    reached = np.arange(N - CUE) + CUE + 1 > N + CUE - window
    np.testing.assert_array_equal(found.probability > 0.99, np.broadcast_to(reached, found.probability.shape))
    assert 0 < reached.sum() < N - CUE


def test_random_weights_are_at_chance_at_every_place():
    model = llama(vocab_size=VOCABULARY, num_hidden_layers=2, initializer_range=0.02)
    found = recall.measure_recall(model, contexts(200), WORDS, CUE, 20 * N)
    error = np.sqrt(found.correct.mean() * (1 - found.correct.mean()) / 200)
    assert np.abs(found.correct.mean(0) - 1 / len(WORDS)).max() < 5 * error
    for part in by_part(found.probability - found.prior).values():
        assert np.abs(part.mean()) < 0.002


@pytest.mark.parametrize("family", small_decoders.BUILT)
def test_a_question_is_a_plain_forward_pass_of_the_context_and_its_cue(family):
    model = small_decoders.build(family, VOCABULARY, layers=3, hidden=32)
    rows = contexts(2)
    found = answers(model, rows)
    for row, place in np.ndindex(2, N - CUE):
        context, foreign = rows[row, :-CUE], rows[row, -CUE:]
        followed = context[place + CUE]
        expected = [
            model(torch.tensor([[0, *context, *cue]])).logits[0, -1].double().softmax(-1).detach().numpy()
            for cue in (context[place : place + CUE], foreign)
        ]
        np.testing.assert_allclose(found.probability[row, place], expected[0][followed], atol=1e-6)
        np.testing.assert_allclose(found.prior[row, place], expected[1][followed], atol=1e-6)
        assert found.correct[row, place] == (WORDS[expected[0][WORDS].argmax()] == followed)


@pytest.mark.parametrize("at_once", [1, 6, 1000])
def test_questions_in_one_row_are_answered_as_one_by_one(at_once, monkeypatch):
    model = llama(vocab_size=VOCABULARY)
    assert way_of(model) == "packed"
    monkeypatch.setattr(recall, "PACKED", at_once)
    packed = answers(model)
    for way in ("apart", "anew"):
        ask(way, monkeypatch)
        np.testing.assert_allclose(answers(model).probability, packed.probability, atol=1e-6)
    assert packed.probability.std() > 0.01


@pytest.mark.parametrize(
    ("spoilt", "way"), [((), "packed"), (("after_each",), "apart"), (("after_each", "repeat"), "anew")]
)
def test_questions_are_asked_in_the_cheapest_way_that_predicts_the_same(spoilt, way, monkeypatch):
    """What is spoilt answers as for another prompt."""
    for name in spoilt:
        original = getattr(recall.forward, name)

        def wrong(model_or_cache, *given, original=original, name=name):
            if name == "repeat":
                copies = original(model_or_cache, *given)
                for layer in copies.layers:
                    layer.values = layer.values.flip(2)
                return copies
            return original(model_or_cache, *given).flip(0)

        monkeypatch.setattr(recall.forward, name, wrong)
    lengths = lengths_read(monkeypatch)
    model = llama(vocab_size=VOCABULARY)
    assert way_of(model) == way
    assert sum(length >= N for length in lengths) == costs.TRIAL[way] + (
        way != "anew"
    )  # the reader that is left has read the context


@pytest.mark.parametrize(("window", "way"), [(None, "packed"), (24, "apart"), (8, "apart")])
def test_a_window_that_holds_some_questions_must_hold_all(window, way, monkeypatch):
    """A window of 24 holds a context behind one token with two questions of two tokens, and not with 15."""
    model = small_decoders.mistral(vocab_size=VOCABULARY, sliding_window=window)
    ways = []
    found = answers(model, contexts(2), say=ways.append)
    size = cost.decoder_size(1000, model.config)
    assert [*ways, costs.expected_way(size, N, CUE, 1)] == [way, way]
    ask("anew", monkeypatch)
    np.testing.assert_allclose(found.probability, answers(model, contexts(2)).probability, atol=1e-6)


def test_what_a_decoder_keeps_of_a_context_is_used_where_it_changes_nothing(monkeypatch):
    model = induction(100)
    assert way_of(model) != "anew"
    kept = answers(model)
    forward = model.transformer.forward

    def forgetful(*args, **named):
        return forward(*args, **named | {recall.forward.CACHE: None, "use_cache": False})

    monkeypatch.setattr(model.transformer, "forward", forgetful)
    anew = answers(model)
    np.testing.assert_allclose(kept.probability, anew.probability, atol=1e-12)


@pytest.mark.parametrize(
    ("way", "calls", "named"),
    [
        ("packed", 0, ("batch 1",)),
        ("packed", 1, ("batch 2",)),
        ("apart", 2, ("batch 2", "measure.tokens_per_batch")),
        (None, 0, (f"while recall was tried on a context of {N} tokens",)),
    ],
)
def test_too_little_memory_names_what_takes_less(way, calls, named, monkeypatch):
    function = "after_each" if way == "packed" else "next_token"
    pass_on, left = getattr(recall.forward, function), [calls]

    def full(*given, **named):
        if left[0] == 0:
            raise torch.OutOfMemoryError("CUDA out of memory")
        left[0] -= 1
        return pass_on(*given, **named)

    monkeypatch.setattr(recall.forward, function, full)
    if way:
        ask(way, monkeypatch)
    with refused("out of GPU memory", "(gpus)", *named) as raised:
        recall.measure_recall(llama(vocab_size=VOCABULARY), contexts(), WORDS, CUE, 100 * N, before=[0])
    assert "activation_checkpointing" not in str(raised.value)
    assert ("tokens_per_batch" in str(raised.value)) == (way == "apart")


def test_an_interrupted_measurement_ends_with_the_same_numbers(tmp_path):
    model, rows, place = induction(9), contexts(6), Resumption(tmp_path / "kept.safetensors", "recall", 2)
    whole = answers(model, rows)
    forward, calls = model.transformer.forward, [0]

    def failing(*args, **named):
        calls[0] += 1
        if calls[0] > 35:
            raise KeyboardInterrupt
        return forward(*args, **named)

    model.transformer.forward = failing
    with pytest.raises(KeyboardInterrupt):
        answers(model, rows, resumption=place)
    asked, calls[0] = calls[0], -(10**6)
    resumed = answers(model, rows, resumption=place)
    assert calls[0] + 10**6 < 20 < asked  # four of six contexts were kept
    for one, other in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(one, other)


def tokenizer(*words):
    found = Tokenizer(models.WordLevel({word: token for token, word in enumerate(["?", *words])}, unk_token="?"))
    found.pre_tokenizer = pre_tokenizers.Metaspace(replacement=" ")
    return found


@pytest.mark.parametrize("blanks", [False, True])
def test_words_are_the_most_frequent_that_are_single_tokens(blanks, monkeypatch):
    """Also where the tokenizer puts a blank before every text, as that of Llama 2 does."""
    texts = ["time Time no way way hour", "way hour Paris time"]
    known = tokenizer(" time", " way", " hour", " Paris", " no")
    if blanks:
        known.normalizer, known.pre_tokenizer = (
            normalizers.Prepend(" "),
            pre_tokenizers.Split(Regex(r" [^ ]*"), "isolated"),
        )
    np.testing.assert_array_equal(recall.common_words(texts, known, 2, 1), [2, 3, 1])
    with refused("recall", "4 words", "has 3"):
        recall.common_words(texts, known, 3, 1)
    monkeypatch.setattr(recall, "COMMON", 2)
    np.testing.assert_array_equal(recall.common_words(texts, known, 1, 1), [2, 3])


def test_contexts_have_different_words_and_a_cue_of_others():
    drawn = contexts(50)
    assert drawn.shape == (50, N + CUE)
    assert all(len(set(row)) == N + CUE for row in drawn)
    assert set(drawn.ravel()) == set(WORDS)
    np.testing.assert_array_equal(drawn, contexts(50))
    with refused("21 words", "contexts of 20", by=ValueError):
        contexts(1, n=20)


def spread(n, count=3, seed=0):
    """Contexts of n tokens, with words up to 199 and prose from 1,000 on, where each token is one more than before."""
    return recall.random_contexts(np.arange(200), n, count, 3, seed, np.arange(1000, 1000 + 2 * n))


def pieces(context):
    """Where pieces of a context begin, and its words: found by walking along it."""
    begins = [place for place, token in enumerate(context) if token < 200 and (place == 0 or context[place - 1] >= 200)]
    return begins, [token for token in context if token < 200]


@pytest.mark.parametrize("n", [300, 1024, 8192])
def test_long_contexts_have_the_same_words_apart_in_prose(n):
    for row in spread(n):
        context, foreign = row[:-3].tolist(), row[-3:].tolist()
        begins, words = pieces(context)
        assert len(begins) == 16
        assert all(context[begin + 8] >= 200 and max(context[begin : begin + 8]) < 200 for begin in begins)
        assert len({*words, *foreign}) == 128 + 3
        prose = [token for token in context if token >= 200]
        assert prose == list(range(prose[0], prose[0] + n - 128))
        between = [begins[0], *(later - begin - 8 for begin, later in pairwise(begins)), n - begins[-1] - 8]
        assert max(between) - min(between) <= 1
    assert len({tuple(row) for row in spread(n)}) == 3
    np.testing.assert_array_equal(spread(n), spread(n))


@pytest.mark.parametrize("n", [64, 128])
def test_contexts_up_to_128_tokens_are_random_orders_of_words(n):
    generator = np.random.default_rng(7)
    expected = [generator.permutation(np.arange(200))[: n + 3] for _ in range(3)]
    np.testing.assert_array_equal(spread(n, seed=7), expected)


def test_every_place_of_words_is_asked_for_and_those_in_pieces():
    np.testing.assert_array_equal(places(8, 3), [0, 1, 2, 3, 4])
    assert len(places(128, 3)) == 125
    begins, _ = pieces(spread(2048)[0, :-3])
    np.testing.assert_array_equal(places(2048, 3), [begin + word for begin in begins for word in range(5)])


def test_what_was_read_of_the_first_context_is_asked_about(monkeypatch):
    """The trial reads it twice, once with a question, and each of the others is read once."""
    lengths = lengths_read(monkeypatch)
    answers(llama(vocab_size=VOCABULARY))
    assert lengths == [N + 1 + CUE, *[N + 1] * 5]


def test_recall_in_prose_is_that_of_whole_passes_of_its_questions():
    """Each question is one pass of all its tokens, and its place is found in the context by looking for the words."""
    model, n, vocabulary = llama(vocab_size=400, max_position_embeddings=400), 300, np.arange(200)
    rows = recall.random_contexts(vocabulary, n, 2, 3, 1, np.random.default_rng(0).integers(200, 400, 500))
    found = recall.measure_recall(model, rows, vocabulary, 3, 4 * n, before=[399])
    assert found.probability.shape == (2, 80)
    for row, drawn in enumerate(rows.tolist()):
        context, foreign = drawn[:n], drawn[n:]
        asked = [place for place in range(n - 3) if max(context[place : place + 4]) < 200]
        assert len(asked) == 80
        for number, place in enumerate(asked):
            if number % 9 == 0:
                after_cue, after_foreign = (
                    model(torch.tensor([[399, *context, *cue]])).logits[0, -1].double().softmax(-1)
                    for cue in (context[place : place + 3], foreign)
                )
                right = context[place + 3]
                assert found.probability[row, number] == pytest.approx(after_cue[right].item(), abs=1e-6)
                assert found.prior[row, number] == pytest.approx(after_foreign[right].item(), abs=1e-6)
                assert found.correct[row, number] == (after_cue[:200].argmax() == right)


def test_prose_is_the_text_and_too_little_of_it_is_refused():
    known, texts = tokenizer(" time", " way", " hour"), ["time way", "hour time"]
    assert len(recall.prose(texts, known, 128)) == 0
    np.testing.assert_array_equal(recall.prose(texts, known, 132), [1, 2, 3, 1])
    with refused("recall in 133 tokens", "5 tokens of prose", "has 4"):
        recall.prose(texts, known, 133)
    with refused("prose", "172 tokens", by=ValueError):
        recall.random_contexts(np.arange(200), 300, 1, 3, 0, np.arange(100))


def test_parts_of_a_context_are_its_first_eighth_its_middle_half_and_its_last_eighth():
    values = np.arange(32.0)[None]
    parts = {name: part.item() for name, part in by_part(values).items()}
    assert parts == {"first": 1.5, "middle": 15.5, "last": 29.5}
