import math
from dataclasses import replace
from itertools import combinations, product
from typing import get_args

import pytest
import scipy.stats
import torch
from torch import nn
from torch.nn import functional

from position_bias.small_networks import decoder
from position_bias.small_networks.decoder import Architecture
from position_bias.small_networks.settings import Norm, Placement

NORMS, PLACEMENTS = get_args(Norm), get_args(Placement)
MEMBERS, SEQUENCES, TOKENS = 2, 3, 5
SEEDS = (3, 8)
CLOSE = {"rtol": 1e-9, "atol": 1e-10}


pytestmark = pytest.mark.usefixtures("one_thread")


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (linear(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for linear in (self.q, self.k, self.v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(mixed.transpose(1, 2).flatten(2))


class Mlp(nn.Sequential):
    def __init__(self, width, hidden):
        super().__init__(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width, bias=False))


class Model(nn.Module):
    """A decoder with a norm at every place; those that its placement does not use stay untouched."""

    def __init__(self, of):
        super().__init__()

        def norm():
            return nn.RMSNorm(of.width, eps=1e-6) if of.norm == "rms" else nn.LayerNorm(of.width, 1e-5, bias=False)

        self.of = of
        self.embedding = nn.Embedding(of.inputs, of.width)
        self.value = nn.Linear(1, of.width, bias=False)
        self.attention = nn.ModuleList(Attention(of.width, of.heads) for _ in range(of.layers))
        self.mlp = nn.ModuleList(Mlp(of.width, max(of.hidden, 1)) for _ in range(of.layers))
        self.norms = nn.ModuleDict(
            {f"{kind}{layer}_{place}": norm() for kind in ("attention", "mlp") for layer in range(of.layers)
             for place in ("input", "output", "sum")} | {"embedding": norm(), "final": norm()}
        )  # fmt: skip
        self.readout = nn.Linear(of.width, of.outputs, bias=False)

    def add(self, x, kind, layer):
        block = getattr(self, kind)[layer]
        into, out_of, sum_norm = (self.norms[f"{kind}{layer}_{place}"] for place in ("input", "output", "sum"))
        match self.of.placement:
            case "none":
                return x + block(x)
            case "pre":
                return x + block(into(x))
            case "post":
                return sum_norm(x + block(x))
            case "peri" | "peri-init":
                return x + out_of(block(into(x)))

    def forward(self, tokens, values):
        x = self.embedding(tokens)
        if self.of.has_values:
            x = x + self.value(values[..., None])
        if self.of.placement == "peri-init":
            x = self.norms["embedding"](x)
        for layer in range(self.of.layers):
            x = self.add(x, "attention", layer)
            if self.of.hidden:
                x = self.add(x, "mlp", layer)
        return self.readout(self.norms["final"](x) if self.of.final_norm else x)

    def named(self):
        """The parameters by the names of a stack; whether a stack has them transposed."""
        yield "embedding", self.embedding.weight, False
        yield "readout", self.readout.weight, True
        yield "value", self.value.weight, True
        for layer, (attention, mlp) in enumerate(zip(self.attention, self.mlp, strict=True)):
            yield from ((f"{name}{layer}", getattr(attention, name).weight, True) for name in "qkvo")
            yield f"in{layer}", mlp[0].weight, True
            yield f"in{layer}_bias", mlp[0].bias, False
            yield f"out{layer}", mlp[2].weight, True
        for place, norm in self.norms.items():
            yield f"{place}_gain", norm.weight, False

    def beside(self, of_stack, member):
        """Each parameter that a stack has, and that member's row of the stack's tensor in the parameter's layout."""
        named = {name: parameters for name, *parameters in self.named()}
        assert of_stack.keys() <= named.keys()  # nothing that a stack has is unknown to the textbook
        for name, value in of_stack.items():
            parameter, transposed = named[name]
            yield parameter, value[member].T if transposed else value[member].view(parameter.shape)


@torch.no_grad()
def model(weights, of, member):
    built = Model(of).double()
    for parameter, row in built.beside(weights, member):
        parameter.copy_(row)
    return built


def stacked(of, seeds=SEEDS):
    """Weights in float64, whose gains and biases are not those at which they start, so that all of them count."""
    generator = torch.Generator().manual_seed(len(seeds))
    weights = {name: value.double() for name, value in decoder.initial(of, seeds, "cpu").items()}
    for name, value in weights.items():
        if name.endswith(("_gain", "_bias")):
            value += 0.5 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
    return weights


def drawn(of, seed=0, members=MEMBERS, tokens=TOKENS):
    generator = torch.Generator().manual_seed(seed)
    shape = (members, SEQUENCES, tokens)
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.randint(of.inputs, shape, generator=generator), values if of.has_values else None


def name_of(of):
    parts = [of.placement, of.norm, f"{of.layers}layers", f"{of.heads}heads"]
    return "-".join([*parts, *(n for n in ("hidden", "final_norm", "has_values") if getattr(of, n))])


def covering(*factors):
    """Kinds in which any levels of three factors meet: each time the one in which most meet for the first time."""

    def threes(kind):
        return set(combinations(enumerate(kind), 3))

    left = set().union(*map(threes, product(*factors)))
    while left:
        chosen = max(product(*factors), key=lambda kind: len(left & threes(kind)))
        left -= threes(chosen)
        yield chosen


KINDS = [
    Architecture(7, 5, 8, placement, layers, heads, hidden, norm, final_norm, valued)
    for placement, norm, layers, heads, hidden, final_norm, valued in covering(
        PLACEMENTS, NORMS, (1, 2), (1, 4), (0, 6), (False, True), (False, True)
    )
]
DEEP = [Architecture(7, 5, 8, placement, 2, 2, 6, norm, True, True) for placement in PLACEMENTS for norm in NORMS]


@pytest.mark.parametrize("of", KINDS, ids=name_of)
def test_logits_and_gradients_are_those_of_the_textbook_model_of_each_member(of):
    weights = {name: value.requires_grad_() for name, value in stacked(of).items()}
    tokens, values = drawn(of)
    found = decoder.logits(weights, of, tokens, values)
    assert found.shape == (MEMBERS, SEQUENCES, TOKENS, of.outputs)
    upstream = torch.randn(found.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gradients = dict(zip(weights, torch.autograd.grad(found, list(weights.values()), upstream), strict=True))
    for member in range(MEMBERS):
        textbook = model(weights, of, member)
        expected = textbook(tokens[member], None if values is None else values[member])
        torch.testing.assert_close(found[member], expected, **CLOSE)
        expected.backward(upstream[member])
        for parameter, gradient in textbook.beside(gradients, member):
            torch.testing.assert_close(gradient, parameter.grad, **CLOSE)


@pytest.mark.parametrize("of", DEEP, ids=name_of)
def test_seen_is_what_the_attention_of_each_layer_worked_on(of):
    weights = stacked(of)
    tokens, values = drawn(of)
    seen = []
    watched = decoder.logits(weights, of, tokens, values, seen.append)
    assert torch.equal(watched, decoder.logits(weights, of, tokens, values))
    assert len(seen) == of.layers
    future = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
    for member in range(MEMBERS):
        textbook = model(weights, of, member)
        inputs = []
        for layer in textbook.attention:
            layer.register_forward_pre_hook(lambda _, given, kept=inputs: kept.append(given[0]))
        textbook(tokens[member], values[member])
        for layer, (found, expected) in enumerate(zip(seen, inputs, strict=True)):
            torch.testing.assert_close(found.inputs[member], expected, **CLOSE)
            for head in range(of.heads):
                of_head = slice(head * of.width // of.heads, (head + 1) * of.width // of.heads)
                q, k = (expected @ weights[f"{name}{layer}"][member][:, of_head] for name in "qk")
                scores = torch.einsum("sid,sjd->sij", q, k) / math.sqrt(of.width / of.heads)
                torch.testing.assert_close(found.logits[member, :, head], scores, **CLOSE)
                maps = scores.masked_fill(future, -torch.inf).softmax(-1)
                torch.testing.assert_close(found.weights[member, :, head], maps, **CLOSE)


def test_weights_are_gaussian_with_variance_one_over_fan_in():
    d, h = 96, 160
    of = Architecture(120, 130, d, "peri", layers=2, heads=4, hidden=h, has_values=True)
    weights = decoder.initial(of, SEEDS, "cpu")
    expected = {"embedding": ((120, d), d), "readout": ((d, 130), d), "value": ((1, d), d)}
    for layer in range(2):
        expected |= {f"{name}{layer}": ((d, d), d) for name in "qkvo"}
        expected |= {f"in{layer}": ((d, h), d), f"out{layer}": ((h, d), h)}
        assert torch.equal(weights[f"in{layer}_bias"], torch.zeros(MEMBERS, 1, h))
    others = {name for name in weights if name.endswith(("_gain", "_bias"))}
    assert weights.keys() - others == expected.keys()
    for name, (shape, fan_in) in expected.items():
        assert weights[name].shape == (MEMBERS, *shape)
        assert weights[name].dtype == torch.float32
        standard = (weights[name].double() * fan_in**0.5).flatten().numpy()
        assert scipy.stats.kstest(standard, "norm").pvalue > 1e-3, name
        assert standard.std() == pytest.approx(1, abs=4 / math.sqrt(2 * standard.size)), name


@pytest.mark.parametrize("of", KINDS, ids=name_of)
def test_networks_of_one_size_and_seed_start_from_the_same_weights_wherever_they_normalise(of):
    plain = decoder.initial(replace(of, placement="none", norm="rms", final_norm=False, heads=1), (4, 8), "cpu")
    weights = decoder.initial(of, (1, 8, 4), "cpu")
    for name, value in plain.items():
        assert torch.equal(weights[name][[2, 1]], value), name
        assert torch.equal(weights[name], decoder.initial(of, (1, 8, 4), "cpu")[name])
        assert name.endswith("_bias") or not torch.allclose(value[0], value[1], atol=0.1)
    for gain in weights.keys() - plain.keys():
        assert torch.equal(weights[gain], torch.ones(3, of.width))
