"""What replacement measures of models whose answer is known, with and without the cache of a prefix."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch

from position_card.measures import replacement
from position_card.measures.quantities import influence_and_loss
from position_card.measures.replacement import chosen_positions, donors, responses
from position_card.probe import forward
from position_card.rollout.parts import eighths, logarithms_over_middle, words
from tests import small_decoders
from tests.refusals import refused
from tests.small_decoders import VOCABULARY, llama, mistral
from tools import decoders

N = 24
WINDOWS = [slice(12, 13), slice(0, 3), slice(1, 2), slice(N - 8, N), slice(N - 1, N)]  # in no order
STEPS = [0.01, 0.3, 1]


def prompts(count, n=N, seed=0):
    return np.random.default_rng(seed).integers(0, VOCABULARY, (count, n))


def singles(*positions):
    return [slice(position, position + 1) for position in positions]


def next_token(model, embeddings):
    """The distribution of the next token by a plain pass of one prompt, float64 [V]."""
    with torch.no_grad():
        return model(inputs_embeds=embeddings[None], use_cache=False).logits[0, -1].double().softmax(-1).numpy()


def expected(model, tokens, windows, others, steps=(1,)):
    """Both responses, a plain pass of a whole prompt each: [2, N, W, S, D]."""
    embed = model.get_input_embeddings().weight.detach()
    found = np.empty((2, len(tokens), len(windows), len(steps), others.shape[1]))
    for row, place, step, donor in np.ndindex(found.shape[1:]):
        moved, window = embed[tokens[row]].clone(), windows[place]
        moved[window] += steps[step] * (embed[others[row, donor, window]] - moved[window])
        before, after = next_token(model, embed[tokens[row]]), next_token(model, moved)
        likeliest = before.argmax()
        found[:, row, place, step, donor] = np.abs(before - after).sum() / 2, np.log(after / before)[likeliest]
    return found


# Models whose answer is known


def test_in_a_bigram_model_the_last_token_alone_matters_by_as_much_as_its_rows_differ():
    model = llama()
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.down_proj.weight.data.zero_()
    tokens = prompts(5)
    others = donors(tokens, 2, 1)
    with torch.no_grad():
        rows = model.lm_head(model.model.norm(model.model.embed_tokens.weight)).double().softmax(-1).numpy()
    last = np.abs(rows[tokens[:, -1]][:, None] - rows[others[:, :, -1]]).sum(-1) / 2
    found = responses(model, tokens, [slice(0, 9), *singles(9, N - 1)], others, [1], 64).total_variation
    np.testing.assert_allclose(found[:, 2, 0], last, atol=1e-6)
    assert last.min() > 0.01
    np.testing.assert_allclose(found[:, :2], 0, atol=1e-7)


def test_a_model_that_does_not_see_the_first_token_changes_nothing_where_it_is_replaced():
    """Two layers with windows of 8 reach 15 tokens back; such layers cannot go back to a prefix, either."""
    model = mistral(num_hidden_layers=2, sliding_window=8)
    tokens, windows = prompts(4), singles(0, N - 16, N - 15, N - 1)
    others = donors(tokens, 1, 0)
    found = responses(model, tokens, windows, others, [1], 2 * N).total_variation
    np.testing.assert_allclose(found[:, :2], 0, atol=1e-7)
    assert (found[:, 2:] > 1e-6).all()
    np.testing.assert_allclose(found, expected(model, tokens, windows, others)[0], atol=1e-5)


@pytest.mark.parametrize("family", [*small_decoders.BUILT, "mistral"])
def test_responses_are_those_of_plain_passes_of_moved_prompts(family):
    model = mistral() if family == "mistral" else small_decoders.build(family, VOCABULARY, layers=3, hidden=32)
    tokens = prompts(4)
    others = donors(tokens, 2, 0)
    found = responses(model, tokens, WINDOWS, others, STEPS, 3 * N)
    np.testing.assert_allclose(np.stack(found), expected(model, tokens, WINDOWS, others, STEPS), atol=1e-5)


def test_with_the_cache_of_a_prefix_is_without(monkeypatch):
    model, tokens = llama(), prompts(5)
    windows, others = singles(*chosen_positions(N)), donors(tokens, 3, 0)
    assert replacement._predict_and_try(model, replacement._embed(model, tokens[:1]), 18)[1] is not None
    reused = responses(model, tokens, windows, others, [1], 3 * N)
    monkeypatch.setattr(
        replacement, "_predict_and_try", lambda model, prompts, start: forward.next_token(model, prompts)
    )
    anew = responses(model, tokens, windows, others, [1], N)
    np.testing.assert_allclose(np.stack(reused), np.stack(anew), atol=1e-5)
    assert anew.total_variation.min() > 1e-4


def test_endings_behind_a_cache_pass_in_pieces(monkeypatch):
    """Attention of a whole ending of thousands of tokens to all before it would not lie in memory."""
    model, tokens, windows, lengths = llama(), prompts(2), singles(0, 9, N - 1), []
    others, pass_on = donors(tokens, 1, 0), forward.next_token

    def counted(model, inputs, cache=None, **named):
        lengths.extend([inputs.shape[1]] * (cache is not None))
        return pass_on(model, inputs, cache, **named)

    monkeypatch.setattr(forward, "next_token", counted)
    monkeypatch.setattr(replacement, "PIECE", 4)
    found = responses(model, tokens, windows, others, [1], 2 * N)
    np.testing.assert_allclose(np.stack(found), expected(model, tokens, windows, others), atol=1e-5)
    assert lengths == [4, 4, 4, 3, 1, 4, 4, 4, 3]  # of a trial with what follows 9 tokens, and of two places


def test_pieces_that_rotate_as_a_short_text_are_not_used(monkeypatch, caplog):
    """Passes of up to 8 tokens have other frequencies than longer ones, and that of the last quarter has theirs."""
    caplog.set_level("INFO")
    monkeypatch.setattr(replacement, "PIECE", 4)
    model, tokens, windows = decoders.small("phi3, long contexts"), prompts(2), singles(0, 2, 20)
    others = donors(tokens, 1, 0)
    found = responses(model, tokens, windows, others, [1], 2 * N)
    np.testing.assert_allclose(np.stack(found), expected(model, tokens, windows, others), atol=1e-5)
    assert "every replacement passes all tokens" in caplog.text


def test_too_little_memory_is_one_line(monkeypatch):
    model, tokens = llama(), prompts(2)
    monkeypatch.setattr(forward, "next_token", Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory")))
    with refused("out of GPU memory while tokens were replaced", "(gpus)"):
        responses(model, tokens, singles(0, 9), donors(tokens, 1, 0), [1], 2 * N)


def test_too_little_memory_for_a_prefix_is_no_end(monkeypatch, caplog):
    caplog.set_level("INFO")
    model, tokens, windows, pass_on = llama(), prompts(2), singles(0, 9), forward.next_token
    others = donors(tokens, 1, 0)
    right = expected(model, tokens, windows, others)

    def full(model, inputs, cache=None, **named):
        if cache is not None:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return pass_on(model, inputs, cache, **named)

    monkeypatch.setattr(forward, "next_token", full)
    np.testing.assert_allclose(np.stack(responses(model, tokens, windows, others, [1], 2 * N)), right, atol=1e-5)
    assert "passes all tokens: there is too little memory" in caplog.text


def test_a_cache_that_tells_something_else_is_not_used(monkeypatch):
    """The model forgets where it was: positions of what follows a prefix begin at 0 again."""
    model, tokens, windows = llama(), prompts(2), singles(0, 9)
    others = donors(tokens, 1, 0)
    right = expected(model, tokens, windows, others)[0]
    pass_on = model.model.forward

    def forgetful(*args, **named):
        length = named["inputs_embeds"].shape[1]
        return pass_on(*args, **named | {"position_ids": torch.arange(length)[None]})

    monkeypatch.setattr(model.model, "forward", forgetful)
    assert replacement._predict_and_try(model, replacement._embed(model, tokens[:1]), 18)[1] is None
    np.testing.assert_allclose(responses(model, tokens, windows, others, [1], N).total_variation, right, atol=1e-5)


def test_a_small_step_does_what_the_gradient_says():
    """Total variation of an infinitely small step is half of the summed slopes of all probabilities along it."""
    model, tokens, windows = llama().double(), prompts(2), [slice(0, 1), slice(6, 11), slice(N - 1, N)]
    others, step = donors(tokens, 1, 0), 1e-4
    found = responses(model, tokens, windows, others, [step], N)
    table = model.get_input_embeddings()
    for row, place in np.ndindex(len(tokens), len(windows)):
        window = windows[place]

        def probabilities(embeddings):
            return model(inputs_embeds=embeddings[None], logits_to_keep=1).logits[0, -1].softmax(-1)

        own = table(torch.from_numpy(tokens[row])).detach()
        towards = torch.zeros_like(own)
        towards[window] = table(torch.from_numpy(others[row, 0, window])).detach() - own[window]
        before, slopes = torch.autograd.functional.jvp(probabilities, own, towards)
        assert found.total_variation[row, place, 0, 0] / step == pytest.approx(float(slopes.abs().sum() / 2), rel=2e-2)
        log_slope = float(slopes[before.argmax()] / before.max())
        assert found.log_probability[row, place, 0, 0] / step == pytest.approx(log_slope, rel=2e-2, abs=8e-3)


def test_at_random_weights_gradients_and_replacement_agree():
    """Means over seeds of the ratios of both ends to the middle, which so many prompts tell to a few per cent."""
    positions, ratios = chosen_positions(N), []
    for seed in range(4):
        model, tokens = llama(seed, initializer_range=0.05), prompts(24, seed=seed)
        by_gradient = (
            influence_and_loss(model.requires_grad_(False), torch.from_numpy(tokens), 1)[0]
            .double()
            .numpy()[:, positions]
        )
        moved = responses(model, tokens, singles(*positions), donors(tokens, 1, seed), [1], 24 * N)
        by_replacement = moved.total_variation[..., 0, 0]
        logs = [logarithms_over_middle(of, positions, N) for of in (by_gradient, by_replacement)]
        ratios.append([log.mean(0)[[0, -1]] for log in logs])
    gradients, replacements = np.mean(ratios, axis=0)
    np.testing.assert_allclose(replacements, gradients, atol=np.log(1.25))
    assert np.abs(gradients).min() > 2 * np.log(1.25)  # ends that differ from the middle by far more than that


# What is chosen


def test_the_first_the_middle_half_and_the_last_are_chosen():
    assert chosen_positions(256) == [0, 64, 106, 149, 191, 255]
    assert chosen_positions(256, first=2) == [0, 2, 64, 106, 149, 191, 255]


def test_windows_are_words_and_eighths_of_the_text_behind_start_tokens():
    assert words(128) == singles(0, 32, 53, 74, 95, 127)
    assert words(129, first=1) == singles(1, 33, 54, 75, 96, 128)
    assert eighths(128) == [slice(start, start + 16) for start in range(0, 128, 16)]
    parts = eighths(22, first=1)
    assert [(part.start, part.stop) for part in parts] == [
        (1, 3), (3, 6), (6, 8), (8, 11), (11, 14), (14, 16), (16, 19), (19, 22),
    ]  # fmt: skip


def test_donors_are_other_tokens_that_other_prompts_have_there():
    tokens = prompts(12, seed=3) % 5  # few tokens, so that prompts share many
    drawn = donors(tokens, 3, 7)
    for (row, _, position), token in np.ndenumerate(drawn):
        assert token != tokens[row, position]
        assert token in np.delete(tokens[:, position], row)
    np.testing.assert_array_equal(drawn, donors(tokens, 3, 7))
    np.testing.assert_array_equal(drawn[:, :1], donors(tokens, 1, 7))
    assert (drawn != donors(tokens, 3, 8)).any()


def test_a_donor_is_one_document_where_its_tokens_differ():
    tokens = np.arange(4)[:, None] + 10 * np.arange(N)  # no two prompts share a token
    drawn = donors(tokens, 3, 0)
    for row, others in enumerate(drawn):
        assert all(len(set(donor % 10)) == 1 for donor in others)
        assert set(others[:, 0] % 10) == set(range(4)) - {row}


def test_a_start_token_is_replaced_by_what_follows_it_elsewhere():
    tokens = prompts(12) % (VOCABULARY - 1)
    tokens[:, 0] = VOCABULARY - 1
    assert set(donors(tokens, 2, 0)[:, :, 0].ravel()) <= set(tokens[:, 1])
    with refused("position 0"):
        donors(np.ones((4, 9), int), 1, 0)
    with refused("4 donors", "5 prompts or more"):
        donors(tokens[:4], 4, 0)


def test_a_position_like_the_middle_has_no_ratio():
    effects = np.exp(np.random.default_rng(0).normal(0, 2, (4000, 6)))
    ratios = logarithms_over_middle(effects, chosen_positions(256), 256)
    assert np.abs(ratios[:, [0, -1]].mean(0)).max() < 0.15
    np.testing.assert_allclose(ratios[:, 1:-1].mean(-1), 0, atol=1e-12)
    nothing = logarithms_over_middle(np.array([[0.0, 1, 1]]), [0, 5, 9], 10)
    np.testing.assert_array_equal(nothing[0], [np.nan, 0, 0])
