"""What replacement measures of models whose answer is known, with and without the cache of a prefix."""

import numpy as np
import pytest
import torch

from position_card.measures import replacement
from position_card.measures.quantities import influence_and_loss
from position_card.measures.replacement import changes, chosen_positions, donors
from position_card.rollout.parts import logarithms_over_middle
from tests import small_decoders
from tests.refusals import refused
from tests.small_decoders import VOCABULARY, llama, mistral

N = 24


def prompts(count, n=N, seed=0):
    return np.random.default_rng(seed).integers(0, VOCABULARY, (count, n))


def plain(model, tokens):
    """The distribution of the next token by a plain forward pass of token ids, float64 [V]."""
    with torch.no_grad():
        return model(torch.from_numpy(tokens[None])).logits[0, -1].double().softmax(-1).numpy()


def expected(model, tokens, positions, others):
    """Total variation of every replacement [N, P], a forward pass each."""
    found = np.empty(others.shape)
    for (row, place), token in np.ndenumerate(others):
        changed = tokens[row].copy()
        changed[positions[place]] = token
        found[row, place] = np.abs(plain(model, tokens[row]) - plain(model, changed)).sum() / 2
    return found


# Models whose answer is known


def test_in_a_bigram_model_the_last_token_alone_matters_by_as_much_as_its_rows_differ():
    model = llama()
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.down_proj.weight.data.zero_()
    tokens, positions = prompts(5), [0, 9, N - 1]
    others = donors(tokens, positions, 1)
    with torch.no_grad():
        rows = model.lm_head(model.model.norm(model.model.embed_tokens.weight)).double().softmax(-1).numpy()
    last = np.abs(rows[tokens[:, -1]] - rows[others[:, 2]]).sum(-1) / 2
    found = changes(model, tokens, positions, others, 64)
    np.testing.assert_allclose(found[:, 2], last, atol=1e-6)
    assert last.min() > 0.01
    np.testing.assert_array_equal(found[:, :2], 0)


def test_a_model_that_does_not_see_the_first_token_changes_nothing_where_it_is_replaced():
    """Two layers with windows of 8 reach 15 tokens back; such layers cannot go back to a prefix, either."""
    model = mistral(num_hidden_layers=2, sliding_window=8)
    tokens, positions = prompts(4), [0, N - 16, N - 15, N - 1]
    others = donors(tokens, positions, 0)
    found = changes(model, tokens, positions, others, 2 * N)
    np.testing.assert_allclose(found[:, :2], 0, atol=1e-7)
    assert (found[:, 2:] > 1e-6).all()
    np.testing.assert_allclose(found, expected(model, tokens, positions, others), atol=1e-5)


@pytest.mark.parametrize("family", [*small_decoders.BUILT, "mistral"])
def test_a_replacement_is_a_plain_forward_pass_of_the_other_prompt(family):
    model = mistral() if family == "mistral" else small_decoders.build(family, VOCABULARY, layers=3, hidden=32)
    tokens, positions = prompts(3), [12, 0, 1, N - 1]
    others = donors(tokens, positions, 0)
    found = changes(model, tokens, positions, others, 2 * N)
    np.testing.assert_allclose(found, expected(model, tokens, positions, others), atol=1e-5)


def test_with_the_cache_of_a_prefix_is_without(monkeypatch):
    model, tokens, positions = llama(), prompts(5), chosen_positions(N)
    others = donors(tokens, positions, 0)
    assert replacement._reuses(model, replacement._embed(model, tokens[:1]))
    reused = changes(model, tokens, positions, others, 3 * N)
    monkeypatch.setattr(replacement, "_reuses", lambda *_: False)
    anew = changes(model, tokens, positions, others, N)
    np.testing.assert_allclose(reused, anew, atol=1e-6)
    assert anew.min() > 1e-4


def test_a_cache_that_tells_something_else_is_not_used(monkeypatch):
    """The model forgets where it was: positions of what follows a prefix begin at 0 again."""
    model, tokens, positions = llama(), prompts(2), [0, 9]
    others = donors(tokens, positions, 0)
    right = expected(model, tokens, positions, others)
    forward = model.model.forward

    def forgetful(*args, **named):
        length = named["inputs_embeds"].shape[1]
        return forward(*args, **named | {"position_ids": torch.arange(length)[None]})

    monkeypatch.setattr(model.model, "forward", forgetful)
    assert not replacement._reuses(model, replacement._embed(model, tokens[:1]))
    np.testing.assert_allclose(changes(model, tokens, positions, others, N), right, atol=1e-5)


def test_a_small_step_does_what_the_gradient_says():
    """The total variation of an infinitely small step is half of the summed slopes of all probabilities along it."""
    model, tokens, positions = llama().double(), prompts(2), [0, 9, N - 1]
    others = donors(tokens, positions, 0)
    step = 1e-3
    found = changes(model, tokens, positions, others, N, step) / step
    table = model.get_input_embeddings()
    for row, place in np.ndindex(*found.shape):
        position, other = positions[place], torch.tensor(others[row, place])

        def probabilities(embeddings):
            return model(inputs_embeds=embeddings[None], logits_to_keep=1).logits[0, -1].softmax(-1)

        own = table(torch.from_numpy(tokens[row])).detach()
        towards = torch.zeros_like(own)
        towards[position] = (table(other) - own[position]).detach()
        slopes = torch.autograd.functional.jvp(probabilities, own, towards)[1]
        assert found[row, place] == pytest.approx(float(slopes.abs().sum() / 2), rel=2e-2)


def test_deleting_a_token_is_a_plain_forward_pass_of_the_shorter_prompt():
    model, tokens = llama(), prompts(5)
    for position in (0, 3):
        shorter = np.delete(tokens, position, axis=1)
        changed = [np.abs(plain(model, a) - plain(model, b)).sum() / 2 for a, b in zip(tokens, shorter, strict=True)]
        np.testing.assert_allclose(replacement.deletion(model, tokens, position, 2 * N), changed, atol=1e-6)


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
        by_replacement = changes(model, tokens, positions, donors(tokens, positions, seed), 24 * N)
        logs = [logarithms_over_middle(of, positions, N) for of in (by_gradient, by_replacement)]
        ratios.append([log.mean(0)[[0, -1]] for log in logs])
    gradients, replacements = np.mean(ratios, axis=0)
    np.testing.assert_allclose(replacements, gradients, atol=np.log(1.25))
    assert np.abs(gradients).min() > 2 * np.log(1.25)  # ends that differ from the middle by far more than that


# What is chosen


def test_the_first_the_middle_half_and_the_last_are_chosen():
    assert chosen_positions(256) == [0, 64, 82, 100, 118, 137, 155, 173, 191, 255]
    assert chosen_positions(256, first=2) == [0, 2, 64, 82, 100, 118, 137, 155, 173, 191, 255]


def test_donors_are_other_tokens_that_other_prompts_have_there():
    tokens = prompts(12, seed=3)
    drawn = donors(tokens, [0, 5], 7)
    for (row, place), token in np.ndenumerate(drawn):
        position = (0, 5)[place]
        assert token != tokens[row, position]
        assert token in np.delete(tokens[:, position], row)
    np.testing.assert_array_equal(drawn, donors(tokens, [0, 5], 7))
    assert (drawn != donors(tokens, [0, 5], 8)).any()


def test_a_start_token_is_replaced_by_what_follows_it_elsewhere():
    tokens = prompts(12) % (VOCABULARY - 1)
    tokens[:, 0] = VOCABULARY - 1
    drawn = donors(tokens, [0], 0)
    assert set(drawn.ravel()) <= set(tokens[:, 1])
    with refused("position 3"):
        donors(np.ones((4, 9), int), [3], 0)


def test_a_position_like_the_middle_has_no_ratio():
    effects = np.exp(np.random.default_rng(0).normal(0, 2, (4000, 10)))
    ratios = logarithms_over_middle(effects, chosen_positions(256), 256)
    assert np.abs(ratios[:, [0, -1]].mean(0)).max() < 0.15
    np.testing.assert_allclose(ratios[:, 1:-1].mean(-1), 0, atol=1e-12)
    nothing = logarithms_over_middle(np.array([[0.0, 1, 1]]), [0, 5, 9], 10)
    np.testing.assert_array_equal(nothing[0], [np.nan, 0, 0])
