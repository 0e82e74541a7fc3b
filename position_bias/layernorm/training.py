"""Small decoders without positional encoding are trained with and without norms, which would settle the paper's claim.

Their data is exchangeable: every sequence draws token frequencies of its own and then tokens independently, so that the
order of what was read says nothing about the next token. Whatever order attention prefers comes from the architecture.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from position_bias.layernorm.settings import NETWORKS, Data
from position_bias.small_networks import decoder, ensemble
from position_bias.small_networks.decoder import Architecture, AttentionTrace
from position_bias.small_networks.ensemble import Recipe
from position_bias.small_networks.settings import NetworkSize
from position_card.core import runtime
from position_card.core.checkpoint import Place
from position_card.core.runtime import InputError
from position_card.measures import recency

STATES = ("untrained", "trained")
COLUMNS = ("norm", "seed", "state", "layer", "head", "quantity", "value")
STACK = 32e9  # bytes that the networks of a stack may keep of a forward pass for the backward pass
PART = 2**30  # elements of attention matrices of a layer at once, while networks are looked at


@dataclass(frozen=True)
class DecoderSetting:
    """What networks of every norm have alike."""

    data: Data
    size: NetworkSize
    batch: int
    iterations: int
    warmup: int
    weight_decay: float
    held_out: int  # sequences that they are looked at on

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Self:
        """Read the section of the configuration, but for learning rates and seeds."""
        of_training = {name: numbers[name] for name in ("batch", "iterations", "warmup", "weight_decay", "held_out")}
        return cls(Data(**numbers["data"]), NetworkSize(**numbers["size"]), **of_training)

    def kept_bytes(self) -> int:
        """What a network keeps of a forward pass, roughly: attention, ten vectors and hidden units, for each layer."""
        a_token = self.size.heads * self.data.tokens + 10 * self.size.width + self.size.hidden
        return 4 * self.batch * self.data.tokens * self.size.layers * a_token


def sequences(data: Data, seeds: Sequence[int], purpose: object, count: int, device: str) -> Tensor:
    """Draw `[S, count, tokens + 1]`, int64: what a seed draws depends on it, the purpose and the device.

    Token frequencies are uniform numbers to the power of `skew`, normalised. A network reads `tokens` tokens, and after
    each it predicts the next.
    """
    tokens = []
    for seed in seeds:
        generator = torch.Generator(device).manual_seed(runtime.seed(seed, "exchangeable", purpose))
        uniform = torch.rand(count, data.vocabulary, generator=generator, device=device)
        frequencies = uniform / uniform.amax(1, keepdim=True)  # so that no power makes all of them 0
        tokens.append(torch.multinomial(frequencies**data.skew, data.tokens + 1, replacement=True, generator=generator))
    return torch.stack(tokens)


def stacks(setting: DecoderSetting, seeds: Sequence[int]) -> list[list[int]]:
    """Part seeds into stacks of about equal size, each of which keeps no more than `STACK` bytes."""
    count = -(-len(seeds) // max(1, int(STACK // setting.kept_bytes())))
    return [part.tolist() for part in np.array_split(list(seeds), count)]


def train(name: str, setting: DecoderSetting, learning_rate: float, seeds: Sequence[int], place: Place) -> pd.DataFrame:
    """Train the network `name` of `NETWORKS` from every seed; seeds see the same data whatever the network.

    Returns what it does on held-out sequences before and after, a row a number: norm, seed, state, layer (from 1; 0
    is the whole network), head (from 1; 0 is the whole layer), quantity and value. Quantities: `loss` in nats a token;
    `gram`, recency of the mean Gram of the inputs of attention over its mean size off the diagonal; `score`, likewise
    of a head's logits; `position`, mean relative position of what a head attends to. Members that diverge have no rows.

    Seeds train in `stacks`.
    """
    tables = [
        _train_stack(name, setting, learning_rate, part, place.apart(f"stack{index}"))
        for index, part in enumerate(stacks(setting, seeds))
    ]
    return pd.concat([rows for rows in tables if not rows.empty] or tables[:1], ignore_index=True)


def _train_stack(
    name: str, setting: DecoderSetting, learning_rate: float, seeds: Sequence[int], place: Place
) -> pd.DataFrame:
    placement, norm, final = NETWORKS[name]
    data, size, V = setting.data, setting.size, setting.data.vocabulary
    recipe = Recipe(setting.iterations, learning_rate, setting.weight_decay, warmup=setting.warmup, decay=True)
    architecture = Architecture(V, V, size.width, placement, size.layers, size.heads, size.hidden, norm, final)
    device = place.device
    tests = sequences(data, seeds, "held out", setting.held_out, device)

    def draw(iteration: int) -> tuple[Tensor, ...]:
        return (sequences(data, seeds, iteration, setting.batch, device),)

    def loss(weights: Mapping[str, Tensor], batch: Tensor) -> Tensor:
        return _losses(weights, architecture, batch)

    def observe(weights: Mapping[str, Tensor], _iteration: int) -> Tensor:
        losses = _losses(weights, architecture, tests)[:, None]
        return torch.cat([losses.cpu(), _preferences(weights, architecture, tests)], 1)

    result = ensemble.train(
        decoder.initial(architecture, seeds, device),
        draw,
        loss,
        recipe,
        observe,
        observe_every=recipe.iterations,
        checkpoint_every=place.checkpoint_every,
        folder=place.folder,
        settings=[name, list(seeds), setting.batch, setting.held_out, asdict(data), asdict(size)],
        description=f"{name}, seeds {', '.join(map(str, seeds))}",
        record=False,  # a recording would take the memory that STACK bounds a second time
    )
    finite = [(index, seed) for index, seed in enumerate(seeds) if index not in result.divergences]
    rows = [
        {"norm": name, "seed": seed, "state": state, **row}
        for state, observation in zip(STATES, result.observations[[0, -1]], strict=True)
        for index, seed in finite
        for row in _rows(observation[index], size)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def require_finite(table: pd.DataFrame, name: str, learning_rate: float) -> None:
    """Raise InputError where no network of `train` stayed finite."""
    if table.empty:
        raise InputError(
            f"every network diverged at layernorm.trained.learning_rate.{name} = {learning_rate:g}; lower it"
        )


def sweep(setting: DecoderSetting, learning_rates: Sequence[float], seeds: Sequence[int], place: Place) -> pd.DataFrame:
    """Return the held-out loss of every network at every learning rate: a row a seed, missing where it diverged.

    Columns norm, learning_rate, seed, loss (nats a token).
    """
    rows = []
    for name, rate in product(NETWORKS, learning_rates):
        table = train(name, setting, rate, seeds, place.apart(name, f"{rate:g}"))
        final = table[(table["state"] == "trained") & (table["quantity"] == "loss")]
        losses = final.set_index("seed")["value"].reindex(list(seeds))
        rows += [{"norm": name, "learning_rate": rate, "seed": seed, "loss": loss} for seed, loss in losses.items()]
    return pd.DataFrame(rows)


def _losses(weights: Mapping[str, Tensor], architecture: Architecture, sequences: Tensor) -> Tensor:
    """Mean cross-entropy of the next token, `[E]`, on sequences `[E, S, T + 1]`."""
    logits = decoder.logits(weights, architecture, sequences[..., :-1])
    return ensemble.mean_cross_entropy(logits, sequences[..., 1:])


def _preferences(weights: Mapping[str, Tensor], architecture: Architecture, sequences: Tensor) -> Tensor:
    """What each layer prefers, `[E, layers (1 + 2 heads)]`: the Gram, then the logits and the attention of heads."""
    E, S, T = *sequences.shape[:2], sequences.shape[2] - 1
    sums: list[Tensor] = []  # of a layer's Grams, logits and attention, [E, 1 + 2 heads, T, T]
    for part in sequences.split(max(1, PART // (E * architecture.heads * T * T)), 1):
        layers: list[Tensor] = []

        def trace_attention(layer: AttentionTrace, traces: list[Tensor] = layers) -> None:
            gram = layer.inputs @ layer.inputs.transpose(-1, -2)
            traces.append(torch.cat([gram.sum(1)[:, None], layer.logits.sum(1), layer.weights.sum(1)], 1))

        decoder.logits(weights, architecture, part[..., :-1], trace_attention=trace_attention)
        sums = [earlier + latest for earlier, latest in zip(sums, layers, strict=True)] if sums else layers
    of_layers = []
    for matrices in sums:
        means = (matrices / S).double().cpu().numpy()
        recent = recency.relative_recency(means[:, : -architecture.heads])
        position = recency.mean_relative_position(means[:, -architecture.heads :])
        of_layers.append(np.concatenate([recent, position], axis=1))
    return torch.from_numpy(np.concatenate(of_layers, axis=1))


def _rows(observation: np.ndarray, size: NetworkSize) -> Iterator[dict[str, Any]]:
    """What `observe` put side by side for a member, as rows."""
    yield {"layer": 0, "head": 0, "quantity": "loss", "value": float(observation[0])}
    heads = range(1, size.heads + 1)
    places = [("gram", 0), *(("score", head) for head in heads), *(("position", head) for head in heads)]
    for layer, values in enumerate(observation[1:].reshape(size.layers, -1), start=1):
        for (quantity, head), value in zip(places, values, strict=True):
            yield {"layer": layer, "head": head, "quantity": quantity, "value": float(value)}
