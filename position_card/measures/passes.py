"""A pass over prompts: it calls a function with every batch, tallies values, and goes on after a kill."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from position_card.core import checkpoint
from position_card.core.runtime import InputError, log, out_of_memory, progress

MORE_GPUS = "give the model more GPUs (gpus)"
SAME_PREDICTION = 1e-5  # total variation that rounding may leave between predictions, with a kept prefix and without
UNABLE = (AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError)  # to take a short cut

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Resumption:
    """The checkpoint file of a measurement, from which the same measurement goes on after a kill."""

    path: Path
    fingerprint: object  # all settings that decide the results, but for the prompts; JSON tells two runs apart by it
    interval: int  # prompts


class Tally:
    """Values of each prompt, on the CPU, and sums over prompts, on the device of the layer that computes them."""

    def __init__(self) -> None:
        # By quantity: values of the current batch by layer, [B, ...]; those of every batch, [B, ...] or [B, L, ...].
        self.batch: defaultdict[str, dict[int, Tensor]] = defaultdict(dict)
        self.prompts: defaultdict[str, list[Tensor]] = defaultdict(list)
        self.sums: dict[str, Tensor] = {}  # quantity/layer -> a sum over prompts

    def add_prompts(self, name: str, values: Tensor) -> None:
        """Add values of a quantity for the prompts of a batch, [B, ...]."""
        self.prompts[name].append(values.cpu())

    def add_layer(self, name: str, layer: int, values: Tensor) -> None:
        """Add values of a quantity in one layer for the prompts of the current batch, [B, ...]; layers in any order."""
        self.batch[name][layer] = values

    def end_batch(self) -> None:
        """Stack the values of all layers of the current batch, and add them to those of the prompts."""
        for name, layers in self.batch.items():
            self.add_prompts(name, torch.stack([layers[layer].cpu() for layer in sorted(layers)], dim=1))
        self.batch.clear()

    def total(self, name: str, layer: int, shape: Sequence[int], like: Tensor) -> Tensor:
        """Return the sum of a quantity in a layer, to be added to, on the device and of the type of `like`."""
        place = f"{name}/{layer}"
        if place not in self.sums:
            self.sums[place] = torch.zeros(tuple(shape), dtype=like.dtype)
        self.sums[place] = self.sums[place].to(like.device)  # where it is not at first, nor after a resumption
        return self.sums[place]

    def add(self, name: str, layer: int, values: Tensor) -> None:
        """Add values, already summed over the prompts of a batch, to the sum of a quantity in a layer."""
        self.total(name, layer, values.shape, values).add_(values)

    def by_prompt(self, name: str) -> Floats:
        """Return a quantity of all prompts, [N, ...]."""
        return torch.cat(self.prompts[name]).numpy()

    def means(self, name: str, layers: int, count: int) -> NDArray[np.floating] | None:
        """Return the sums of all layers divided by `count`, [L, ...]; None where a layer has no sum."""
        places = [f"{name}/{layer}" for layer in range(layers)]
        if not all(place in self.sums for place in places):
            return None
        return (torch.stack([self.sums[place].cpu() for place in places]) / count).numpy()

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors that `restore` needs."""
        by_prompt = {f"prompts/{name}": torch.cat(batches) for name, batches in self.prompts.items()}
        return by_prompt | {f"sums/{place}": total.cpu() for place, total in self.sums.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Put back the `tensors` of an interrupted pass."""
        for name, tensor in tensors.items():
            kind, _, place = name.partition("/")
            if kind == "prompts":
                self.prompts[place] = [tensor]
            else:
                self.sums[place] = tensor


def run(
    prompts: NDArray[np.int64],
    tokens_per_batch: int,
    measure_batch: Callable[[Tensor], None],
    tally: Tally,
    *,
    device: torch.device,
    section: str | None,
    remedies: Sequence[str] = (),
    resumption: Resumption | None = None,
) -> None:
    """Call `measure_batch`, which fills `tally`, with batches of `prompts` [N, n], as many as `tokens_per_batch` holds.

    With a `resumption`, an interrupted pass ends with the same bits as an uninterrupted one, on a CPU. Raises
    InputError where a GPU's memory is too small; it names the `remedies` of the measure, too. `section` is where the
    configuration has `tokens_per_batch`, if it does.
    """
    count, n = prompts.shape
    batch = max(1, tokens_per_batch // n)
    first = _resume(tally, prompts, resumption)
    starts, batches = range(first, count, batch), -(-count // batch)
    for start in progress(starts, f"measuring {count} prompts of {n} tokens", batches, -(-first // batch)):
        tokens = torch.from_numpy(prompts[start : start + batch]).to(device)
        with within_memory(_remedy(start // batch, tokens, section, remedies)):
            measure_batch(tokens)
        end = start + len(tokens)
        if resumption and (end == count or end // resumption.interval > start // resumption.interval):
            state = checkpoint.State(end, {}, tally.tensors())
            checkpoint.write(resumption.path, _fingerprint(resumption, prompts), state)


def in_parts(
    parts: Mapping[str, Callable[[], NDArray[Any]]], prompts: NDArray[np.int64], resumption: Resumption
) -> dict[str, NDArray[Any]]:
    """Return an array for each of the `parts`, by the functions that measure these on the prompts, int64 [N, n].

    Each is written to the checkpoint of the `resumption` when it is complete; the same measurement, after a kill, takes
    from there what it has, and calls the functions of the others alone.
    """
    fingerprint = _fingerprint(resumption, prompts)
    state = checkpoint.resumed(resumption.path, fingerprint, "measuring")
    arrays = state.tensors if state else {}
    for name, make in parts.items():
        if name not in arrays:
            arrays[name] = torch.from_numpy(make())
            checkpoint.write(resumption.path, fingerprint, checkpoint.State(len(arrays), {}, arrays))
    return {name: arrays[name].numpy() for name in parts}


@contextmanager
def within_memory(remedy: str) -> Iterator[None]:
    """Make an InputError, with the `remedy`, of memory that is too small."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise InputError(f"out of GPU memory {remedy}") from error
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise InputError(f"out of memory {remedy}") from error


def reuses(
    predict_anew: Callable[[], Tensor],
    predict_from_prefix: Callable[[], Tensor],
    pass_name: str,
    otherwise: str = "passes all tokens",
) -> bool:
    """Say whether a model predicts the same, distributions [B, V], from all tokens and from its cache of a prefix.

    Layers with windows, or with a state in place of keys, may be unable to go on from a prefix, or go on wrongly, and
    there may be too little memory. The log then says what the pass of this name does `otherwise`, and why.
    """
    try:
        anew, continued = predict_anew(), predict_from_prefix()
    except UNABLE as error:
        reason = "there is too little memory" if out_of_memory(error) else "the model cannot go on from a prefix"
        log.info("%s %s: %s (%s)", pass_name, otherwise, reason, error)
        return False
    agrees = float((continued - anew).abs().sum(-1).max()) / 2 < SAME_PREDICTION
    if not agrees:
        log.info("%s %s: with what it keeps of a prefix, the model predicts something else", pass_name, otherwise)
    return agrees


def require_finite(quantities: dict[str, Floats]) -> None:
    """Raise InputError where a value of a quantity [N, ...] is not finite; it names the quantity and the prompt."""
    for name, value in quantities.items():
        if not np.isfinite(value).all():
            prompt = int(np.argwhere(~np.isfinite(value))[0][0])
            raise InputError(f"measured {name} of prompt {prompt} is not finite; check the model's weights and dtype")


def _fingerprint(resumption: Resumption, prompts: NDArray[np.int64]) -> str:
    return checkpoint.fingerprint(resumption.fingerprint, {"prompts": prompts})


def _resume(tally: Tally, prompts: NDArray[np.int64], resumption: Resumption | None) -> int:
    """Restore the tally of an interrupted run of this measurement, and return the number of its prompts."""
    if resumption is None:
        return 0
    state = checkpoint.resumed(resumption.path, _fingerprint(resumption, prompts), "measuring")
    if state is None:
        return 0
    tally.restore(state.tensors)
    log.info("measuring: resumed after prompt %d of %d", state.step, len(prompts))
    return state.step


def key(name: str, section: str | None) -> str:
    """Return how a message calls a key of the configuration, which has it in a section, or of a command."""
    return f"{section}.{name}" if section else name


def _remedy(batch: int, tokens: Tensor, section: str | None, remedies: Sequence[str]) -> str:
    prompts, n = tokens.shape
    fewer = [f"lower {key('tokens_per_batch', section)}"] if prompts > 1 else []
    return (
        f"on batch {batch + 1}, {prompts} x {n} tokens; {', or '.join([*fewer, *remedies, MORE_GPUS])}; "
        "then run it again: what the last checkpoint has is not measured anew"
    )
