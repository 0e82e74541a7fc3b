import math

import pytest
import torch
from torch.nn import functional

from position_bias.emergence import networks
from position_bias.emergence.runs import Network
from position_bias.emergence.task import RetrievalTask
from tests.unit.emergence.textbook import may_read, textbook

TASK = RetrievalTask(items=4, burstiness=2, classes=8, labels=8, width=8)
T, D = 9, 8
DECAY = 0.3
PLAIN = [
    *(Network(mask, encoding) for mask in ("none", "causal") for encoding in ("none", "sin")),
    *(Network(mask, encoding, 3) for mask in ("window", "prefix") for encoding in ("none", "sin")),
    Network("causal", "decay", slope=DECAY),
    Network("window", "decay", 5, DECAY),
    Network("prefix", "decay", 4, DECAY),
    Network("window", "none", 1),
    Network("window", "none", 40),
    Network("prefix", "none", T),
]
ROTARY = [
    Network("none", "rope"),
    Network("causal", "rope"),
    Network("window", "rope", 4),
    Network("prefix", "rope", 5),
]
KINDS = pytest.mark.parametrize("kind", [PLAIN, ROTARY, ROTARY[:1]], ids=["plain", "rope", "one"])
WIRED = pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
DEPTHS = pytest.mark.parametrize("depth", [1, 2, 3, 4])


pytestmark = pytest.mark.usefixtures("one_thread")


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def sharp(depth, members):
    """Untrained weights with attention far from uniform."""
    weights = networks.initial(TASK, depth, range(members), "cpu")
    return {name: value * (2 if name[0] in "qk" else 1.5) for name, value in weights.items()}


def stacked(of, depth, residual):
    return networks.stack(TASK, of, depth, residual, "cpu")


def assert_textbook(weights, stack, of, depth, residual, placement="none", rtol=1e-5):
    """Logits, maps and gradients are those of the textbook for each of the networks of a stack."""
    weights = {name: value.requires_grad_() for name, value in weights.items()}
    tokens = normal(len(of), 2, T, D)
    targets = torch.arange(2 * len(of)).view(len(of), 2) % TASK.labels
    logits = networks.label_logits(weights, stack, tokens)
    functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").backward()
    _, maps = networks.represent(weights, stack, tokens)
    assert maps.shape == (len(of), depth, 2, T, T)
    for member, network in enumerate(of):
        own = {name: value[member].detach().double().requires_grad_() for name, value in weights.items()}
        for sequence in range(2):
            given = tokens[member, sequence].double()
            expected, attention = textbook(own, network, depth, residual, given, placement)
            torch.testing.assert_close(logits[member, sequence].double(), expected, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(maps[member, :, sequence].double(), attention, rtol=1e-5, atol=2e-6)
            functional.cross_entropy(expected, targets[member, sequence], reduction="sum").backward()
        for name, value in own.items():
            expected = torch.zeros_like(value) if value.grad is None else value.grad
            torch.testing.assert_close(weights[name].grad[member].double(), expected, rtol=rtol, atol=1e-5)
            assert "gain" not in name or expected.abs().max() > 1e-3


@DEPTHS
@WIRED
@KINDS
def test_logits_maps_and_gradients_are_those_of_the_textbook(kind, residual, depth):
    assert_textbook(sharp(depth, len(kind)), stacked(kind, depth, residual), kind, depth, residual)


def test_what_the_mask_forbids_gets_exactly_nothing_and_the_rest_sums_to_one():
    weights, tokens = sharp(4, len(PLAIN)), 30 * normal(len(PLAIN), 2, T, D)
    _, maps = networks.represent(weights, stacked(PLAIN, 4, True), tokens)
    torch.testing.assert_close(maps.sum(-1), torch.ones_like(maps[..., 0]))
    for member, network in enumerate(PLAIN):
        admitted = torch.from_numpy(networks.mask(TASK, network))
        expected = [[may_read(network, i, j) for j in range(1, T + 1)] for i in range(1, T + 1)]
        assert admitted.tolist() == expected
        assert (maps[member][..., ~admitted] == 0).all()


# Initial weights


def test_initial_weights_have_the_shapes_and_bounds_of_torchs_linear_layers():
    task = RetrievalTask(width=32, labels=48)
    weights = networks.initial(task, 3, [0, 1], "cpu")
    layers = [f"{name}{layer}" for layer in range(3) for name in "qkv"]
    expected = dict.fromkeys([*layers, "mlp0", "mlp1", "mlp2"], (2, 32, 32))
    expected |= {f"mlp{layer}_bias": (2, 1, 32) for layer in range(3)}
    expected |= {"readout": (2, 32, 48), "readout_bias": (2, 1, 48)}
    assert {name: tuple(value.shape) for name, value in weights.items()} == expected
    bound = 32**-0.5
    for name, value in weights.items():
        assert 0.85 * bound < value.abs().max() <= bound
        if "bias" not in name:
            assert value.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


# Norms


def with_norms(depth, members, placement):
    """Weights with attention far from uniform and gains of which no two are equal."""
    weights = networks.initial(TASK, depth, range(members), "cpu", placement)
    return {
        name: value + 0.5 * normal(*value.shape, seed=index) if "gain" in name else 2 * value
        for index, (name, value) in enumerate(weights.items())
    }


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("placement", ["pre", "post", "peri"])
@pytest.mark.parametrize("encoding", ["none", "rope"])
def test_networks_with_norms_are_those_of_the_textbook(encoding, placement, depth):
    of = [Network("causal", encoding)] * 2
    stack = networks.stack(TASK, of, depth, True, "cpu", placement=placement)
    assert_textbook(with_norms(depth, 2, placement), stack, of, depth, True, placement, rtol=1e-4)


@pytest.mark.parametrize(
    ("placement", "places"), [("none", []), ("pre", ["input"]), ("post", ["sum"]), ("peri", ["input", "output"])]
)
def test_gains_start_at_one_beside_the_weights_of_the_network_without(placement, places):
    plain, normed = (networks.initial(TASK, 3, [5, 6], "cpu", *of) for of in ((), (placement,)))
    gains = {f"{place}_gain{layer}" for place in places for layer in range(3)}
    assert normed.keys() == plain.keys() | gains
    for name, value in plain.items():
        assert torch.equal(normed[name], value)
    for name in gains:
        assert torch.equal(normed[name], torch.ones(2, D))
