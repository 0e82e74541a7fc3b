"""Directions of gradients are changed in networks for which it is known how influence adds up."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from position_bias.language_models import directions, families
from position_bias.language_models.directions import CHANGES, Directions, changed_influence
from position_bias.language_models.influence import influence_and_loss, prediction
from position_bias.language_models.layout import find_layout
from position_bias.language_models.measure import Asked, measure
from position_bias.language_models.passes import Resumption
from tests.unit.conftest import Interruption
from tests.unit.language_models.test_measure_interrupted import KINDS
from tools import decoders

N = 6  # tokens of real architectures
MANY, WIDTH, DRAWS = 24, 32, 200  # tokens of linear networks
A = torch.rand(MANY, MANY, generator=torch.Generator().manual_seed(0)).tril()  # weights of earlier tokens
B = torch.rand(MANY, generator=torch.Generator().manual_seed(1))  # those that the last one gives in the next block


class Mix(nn.Module):
    """A block of weights [n, n], with a matrix [width, width] for each token that is read."""

    def __init__(self, weights, maps):
        super().__init__()
        self.weights, self.maps = weights, maps

    def forward(self, stream):
        return torch.einsum("ij,jvw,bjw->biv", self.weights, self.maps, stream)


class Linear(nn.Module):
    """Two blocks without anything between: the gradients that reach the first one have this cosine with each other."""

    def __init__(self, cosine):
        super().__init__()
        self.embed = nn.Embedding(MANY, WIDTH)
        nn.init.normal_(self.embed.weight, generator=torch.Generator().manual_seed(2))
        common = torch.eye(WIDTH)[-1]
        reads = (1 - cosine) ** 0.5 * torch.eye(WIDTH)[:MANY] + cosine**0.5 * common
        last = torch.cat([torch.zeros(MANY - 1, MANY), B[None]])
        onto_first = torch.stack([torch.outer(torch.eye(WIDTH)[0], read) for read in reads])
        self.blocks = [Mix(A, torch.eye(WIDTH).expand(MANY, -1, -1)), Mix(last, onto_first)]

    def get_input_embeddings(self):
        return self.embed

    def forward(self, inputs_embeds, use_cache, logits_to_keep):
        for block in self.blocks:
            inputs_embeds = block(inputs_embeds)
        said = inputs_embeds[..., :1]
        return SimpleNamespace(logits=torch.cat([said, torch.zeros_like(inputs_embeds)], -1))


def shares(profile):
    return profile / profile.sum(-1, keepdim=True)


SQUARES = shares(((A * B[:, None]) ** 2).sum(0).sqrt())
SUMS = shares((A * B[:, None]).sum(0))


def measured(cosine):
    return shares(influence_and_loss(Linear(cosine), TOKENS, 1)[0][0])


TOKENS = torch.arange(MANY)[None]


def changed(way, cosine, draws=DRAWS):
    """The profile under a change, as the root mean square over draws."""
    model = Linear(cosine)
    found = changed_influence(model, model.blocks, TOKENS, Directions((way,), draws, seed=0))[way]
    assert found.shape == (1, draws, MANY)
    return shares(found[0].square().mean(0).sqrt())


def off(one, other):
    return float((one - other).abs().sum()) / 2


EXACT, SAMPLED = 1e-5, 0.03


def miss(way):
    """How much farther a change is than it may be from what it has to do in networks of squares, sums and between."""
    squares, sums, between = 0, 1, 0.1
    if way == "signs":
        sampled = [off(changed(way, cosine), SQUARES) for cosine in (between, sums)]
        return max(off(changed(way, squares, 1), SQUARES) - EXACT, max(sampled) - SAMPLED)
    if way == "unrelated":
        return max(off(changed(way, cosine), SQUARES) for cosine in (squares, sums)) - SAMPLED
    expected = {"same": lambda _: SUMS, "rotated": measured}[way]
    return max(off(changed(way, cosine, 1), expected(cosine)) for cosine in (squares, between, sums)) - EXACT


def test_the_networks_add_as_they_are_built_to():
    assert off(measured(0), SQUARES) < EXACT
    assert off(measured(1), SUMS) < EXACT
    assert min(off(measured(0.1), end) for end in (SQUARES, SUMS)) > SAMPLED
    assert off(SQUARES, SUMS) > 3 * SAMPLED


@pytest.mark.parametrize("way", CHANGES)
def test_each_change_does_in_linear_networks_what_is_known_of_it(way):
    assert miss(way) < 0


MUTANTS = {
    "signs that are all alike": ("signs", lambda g, generator: g),
    "a random length beside the sign": ("signs", lambda g, generator: g * torch.randn(len(g), 1, generator=generator)),
    "one direction for all, without their lengths": ("same", lambda g, generator: torch.ones_like(g)),
    "a direction for each, in place of one": ("same", CHANGES["unrelated"]),
    "one direction for all, in place of each": ("unrelated", CHANGES["same"]),
    "directions that keep their signs": ("unrelated", lambda g, generator: CHANGES["unrelated"](g, generator).abs()),
    "a map that turns and stretches": (
        "rotated",
        lambda g, generator: g @ torch.randn(WIDTH, WIDTH, generator=generator),
    ),
    "a rotation for each token": ("rotated", CHANGES["unrelated"]),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_each_change_is_noticed(mutant, monkeypatch):
    way, wrong = MUTANTS[mutant]
    monkeypatch.setattr(directions, "CHANGES", {**CHANGES, way: wrong})
    assert miss(way) > 0


def test_a_rotation_keeps_lengths_and_angles_and_changes_directions():
    gradient = torch.randn(MANY, WIDTH, generator=torch.Generator().manual_seed(3))
    turned = CHANGES["rotated"](gradient, torch.Generator().manual_seed(4))
    torch.testing.assert_close(turned @ turned.mT, gradient @ gradient.mT)
    assert (turned - gradient).norm() > 0.5 * gradient.norm()


# Real architectures


@pytest.fixture(scope="module")
def prompts():
    return np.random.default_rng(1).integers(3, 64, (3, N))


@pytest.mark.parametrize("name", KINDS)
def test_every_gradient_passes_the_change(name, prompts, monkeypatch):
    """Changed into nothing, none comes back; left as it is, all of it does."""
    model = decoders.small(name).requires_grad_(False)
    tokens = torch.from_numpy(prompts)
    blocks = [layer.block for layer in find_layout(model, tokens[:1]).layers]
    for factor in (0, 1):
        monkeypatch.setattr(directions, "CHANGES", {"signs": lambda gradient, _, factor=factor: factor * gradient})
        found = changed_influence(model, blocks, tokens, Directions(("signs",), 1, 0))["signs"][:, 0]
        expected = factor * influence_and_loss(model, tokens, 1)[0]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)
    assert not any(block._forward_hooks for block in blocks)


def test_signs_take_the_squares_of_a_layers_jacobian_blocks(prompts, monkeypatch):
    """Over all signs, ||g_j||^2 is the sum over tokens i of || J_ij^T g_i ||^2, for a layer of Llama with all parts."""
    size = {"layers": 2, "heads": 4, "hidden": 16, "initializer_range": 0.4}
    model = families.build("llama", size, 64, N, seed=3).eval().requires_grad_(False)
    tokens, blocks, kept = torch.from_numpy(prompts[:1]), model.model.layers, []
    handle = blocks[0].register_forward_hook(lambda _module, _args, out: kept.append(out))
    embeddings, logits = prediction(model, tokens, 1)
    handle.remove()
    stream = kept[0]
    (past,) = torch.autograd.grad(logits[:, -1].softmax(-1).amax(), stream, retain_graph=True)
    squares = torch.zeros(N)
    for token in range(N):
        own = torch.zeros_like(past).index_copy(1, torch.tensor([token]), past[:, [token]])
        squares += torch.autograd.grad(stream, embeddings, own, retain_graph=True)[0][0].square().sum(-1)
    patterns = iter([signs for signs in product((-1.0, 1.0), repeat=N) for _ in blocks])
    every_sign = {"signs": lambda gradient, _: gradient * torch.tensor(next(patterns))[:, None]}
    monkeypatch.setattr(directions, "CHANGES", every_sign)
    found = changed_influence(model, blocks, tokens, Directions(("signs",), 2**N, 0))["signs"]
    torch.testing.assert_close(found[0].square().mean(0), squares, rtol=1e-4, atol=0)


# Draws


ASKED = Asked(directions=Directions(("signs", "unrelated"), draws=3, seed=5))


def test_draws_are_of_the_seed_the_draw_and_the_prompt_alone(prompts):
    model = decoders.small("llama")
    found = measure(model, prompts, N, asked=ASKED).directions
    assert {way: values.shape for way, values in found.items()} == dict.fromkeys(("signs", "unrelated"), (3, 3, N))
    backwards = measure(model, prompts[::-1].copy(), 3 * N, asked=ASKED).directions
    fewer = measure(model, prompts, N, asked=Asked(directions=Directions(("unrelated",), 2, 5))).directions
    other = measure(model, prompts, N, asked=Asked(directions=Directions(("unrelated",), 2, 6))).directions
    for way, values in found.items():
        np.testing.assert_allclose(backwards[way][::-1], values, rtol=1e-4)
        assert not np.allclose(values[:, 0, :-1], values[:, 1, :-1], rtol=0.01)
    np.testing.assert_array_equal(fewer["unrelated"], found["unrelated"][:, :2])
    assert not np.allclose(other["unrelated"], fewer["unrelated"], rtol=0.01)


def test_an_interrupted_measurement_ends_with_the_same_bits(prompts, tmp_path, monkeypatch):
    model = decoders.small("llama")
    expected = measure(model, prompts, N, asked=ASKED)
    kept, real, batches = Resumption(tmp_path / "kept.safetensors", [], 1), influence_and_loss, iter([0, 0, 1])

    def interrupted(*args):
        if next(batches):
            raise Interruption
        return real(*args)

    with monkeypatch.context() as patched, pytest.raises(Interruption):
        patched.setattr("position_bias.language_models.measure.influence_and_loss", interrupted)
        measure(model, prompts, N, asked=ASKED, resumption=kept)
    resumed = measure(model, prompts, N, asked=ASKED, resumption=kept)
    for way, values in expected.directions.items():
        assert resumed.directions[way].tobytes() == values.tobytes()


def test_layers_that_are_computed_again_are_changed_all_the_same(prompts):
    model = decoders.small("llama")
    plain, again = (measure(model, prompts, N, asked=ASKED, activation_checkpointing=on) for on in (False, True))
    for way, values in plain.directions.items():
        np.testing.assert_allclose(again.directions[way], values, rtol=1e-4)
