"""Many small models trained as one stacked batch: member e is row e of every parameter.

Members never mix: the loss of each depends on its own row alone, so each gets the gradients that it would get by
itself, and AdamW works element by element. A member ends with the same bits whoever shares its stack, under two
conditions. Its share of every tensor in training fills whole vector registers (16 floats), and its share of every
product takes more than 4,096 multiplications. Otherwise the last bits may depend on where the member lies in memory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.optim.adamw import adamw

from position_bias.small_networks import averaging
from position_bias.small_networks.repeated import Repeated
from position_card.core import checkpoint, runtime
from position_card.core.runtime import log, progress

Parameters = dict[str, Tensor]  # name -> [members, ...], float32
Draw = Callable[[int], tuple[Tensor, ...]]  # what iteration 1, 2, ... draws, always of the same shapes
Loss = Callable[..., Tensor]  # of the parameters, and of what was drawn -> [members]
Observe = Callable[[Mapping[str, Tensor], int], Tensor]  # of the parameters after an iteration -> [members, ...]


@dataclass(frozen=True)
class Recipe:
    """AdamW, at a constant learning rate or one that rises and falls linearly."""

    iterations: int
    learning_rate: float
    weight_decay: float  # decoupled, of every parameter
    betas: tuple[float, float] = (0.9, 0.999)
    warmup: int = 0  # iterations in which the learning rate rises to its value
    decay: bool = False  # from then on it falls, and reaches 0 after the last iteration

    def rate(self, iteration: int) -> float:
        """Return the learning rate of an iteration, counted from 1."""
        if iteration <= self.warmup:
            return self.learning_rate * iteration / self.warmup
        if not self.decay:
            return self.learning_rate
        return self.learning_rate * (self.iterations + 1 - iteration) / (self.iterations - self.warmup)


@dataclass(frozen=True)
class TrainingResult:
    """What training leaves."""

    parameters: Parameters  # of all members, those that diverged too
    losses: NDArray[np.float32]  # [iterations, members], before each update
    gradient_norms: NDArray[np.float32]  # [iterations, members], likewise
    observed_at: list[int]  # iterations
    observations: NDArray[np.float32]  # [observations, members, ...]
    # member -> the first iteration with a loss or, when observed, weights that are not finite
    divergences: dict[int, int]
    average: Parameters  # the running average, where one was asked for; else empty


def train(
    parameters: Parameters,
    draw: Draw,
    loss: Loss,
    recipe: Recipe,
    observe: Observe,
    *,
    observe_every: int,
    checkpoint_every: int,
    folder: Path,
    settings: object,
    description: str = "training",
    kappa: float | None = None,
    record: bool = True,
) -> TrainingResult:
    """Train the members from `parameters` on, for `recipe.iterations` updates.

    `draw` depends on the iteration alone, and `loss` on the parameters and what was drawn; a parameter that it leaves
    out only decays. With `record`, a GPU records the loss and its gradients, and repeats them (see `Repeated`); a
    recording keeps its memory, which large networks need. `observe` is called before the first update, after every
    `observe_every` and after the last. Once a GPU has recorded, nothing waits for it between two of these.

    All that a later call needs goes to `folder`/checkpoint.safetensors every `checkpoint_every` iterations: with the
    same arguments it resumes, on a CPU to the same bits. `settings` names, in what JSON can hold, all else that decides
    the outcome (task, architecture, seeds); a checkpoint of other settings is not used.

    With `kappa`, a running average of the parameters is kept beside them (`averaging`).

    A member whose loss or weights are no longer finite is lost and reported, and observed as NaN; the others go on.
    Where none is left, training ends early.
    """
    contiguous = torch.contiguous_format  # as the gradients: the fused update reads both as they lie in memory
    members = [value.detach().clone(memory_format=contiguous).requires_grad_() for value in parameters.values()]
    by_name = dict(zip(parameters, members, strict=True))
    moments = {value: checkpoint.initial_moments(value) for value in members}
    weights = {name: value.detach().cpu().numpy() for name, value in parameters.items()}
    conditions = [observe_every, str(members[0].device), kappa]
    run = checkpoint.fingerprint([asdict(recipe), conditions, settings], weights)
    at = sorted({*range(0, recipe.iterations + 1, observe_every), recipe.iterations})
    average = {} if kappa is None else {name: value.detach().clone() for name, value in parameters.items()}
    iterations_done, history, clock = _resume(folder / checkpoint.NAME, run, by_name, average, moments, description)
    observations = list(history["observed"]) if iterations_done else [_observe(observe, by_name, 0)]
    pending: list[Tensor] = []
    compute = partial(_gradients, loss, by_name)
    gradients = Repeated(compute) if record else compute
    divergences = _report_diverged({}, history, at, description) if iterations_done else {}
    remaining = [] if len(divergences) == len(members[0]) else range(iterations_done + 1, recipe.iterations + 1)
    for iteration in progress(remaining, description, recipe.iterations, iterations_done):
        losses_and_norms, *of_loss = gradients(*draw(iteration))
        pending.append(losses_and_norms.clone())
        _update(members, of_loss, moments, recipe, iteration)
        if kappa is not None:
            averaging.update(average, by_name, averaging.share(iteration, kappa))
        last = iteration == recipe.iterations
        if last or iteration % observe_every == 0:
            observations.append(_observe(observe, by_name, iteration))
        if last or iteration % checkpoint_every == 0:
            history = _with_pending(history, pending, observations)
            tensors = checkpoint.training_state(by_name.items(), moments)
            tensors |= history | {f"average/{name}": value for name, value in average.items()}
            checkpoint.write(folder / checkpoint.NAME, run, checkpoint.State(iteration, {}, tensors, clock.seconds()))
            divergences = _report_diverged(divergences, history, at, description)
            if len(divergences) == len(members[0]):
                break
    return TrainingResult(
        parameters={name: value.detach() for name, value in by_name.items()},
        losses=history["watched"][:, 0].numpy(),
        gradient_norms=history["watched"][:, 1].numpy(),
        observed_at=at[: len(observations)],
        observations=history["observed"].numpy(),
        divergences=divergences,
        average=average,
    )


def mean_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Take each member's cross-entropy in nats, its mean over targets: `[E, ..., outputs]`, `[E, ...]` -> `[E]`."""
    of_targets = functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    return of_targets.view(len(targets), -1).mean(1)


def generators(seeds: Sequence[int], *purpose: object) -> list[torch.Generator]:
    """Make a generator a seed, on the CPU, whose numbers depend on the seed and the purpose alone."""
    return [torch.Generator().manual_seed(runtime.seed(seed, *purpose)) for seed in seeds]


def uniform(generators: list[torch.Generator], shape: tuple[int, ...], fan_in: int, device: str) -> Tensor:
    """Draw initial weights `[members, *shape]` as torch draws those of a Linear layer: uniform within fan_in^(-1/2).

    One generator a member, on the CPU, so that a member starts alike on every device and in every stack.
    """
    weights = torch.stack([torch.rand(shape, generator=generator) for generator in generators])
    return ((2 * weights - 1) * fan_in**-0.5).to(device)


def normal(generators: list[torch.Generator], shape: tuple[int, ...], fan_in: int, device: str) -> Tensor:
    """Draw as `uniform` does, but Gaussian with variance 1/fan_in."""
    weights = torch.stack([torch.randn(shape, generator=generator) for generator in generators])
    return (weights * fan_in**-0.5).to(device)


@torch.no_grad()
def _observe(observe: Observe, parameters: Mapping[str, Tensor], iteration: int) -> Tensor:
    """What is observed after an iteration; NaN for the members whose weights are not finite."""
    observation = observe(parameters, iteration).float().cpu()
    finite = [value.isfinite().reshape(len(value), -1).all(1) for value in parameters.values()]
    observation[~torch.stack(finite).all(0).cpu()] = torch.nan
    return observation


def _gradients(loss: Loss, parameters: Parameters, *batch: Tensor) -> list[Tensor]:
    """Return losses and gradient norms over all parameters, `[2, members]`, then the gradient of every parameter."""
    of_member = loss(parameters, *batch)
    leaves = [*parameters.values()]
    gradients = [value.contiguous() for value in torch.autograd.grad(of_member.sum(), leaves, materialize_grads=True)]
    norms = torch.stack([torch.linalg.vector_norm(value.flatten(1), dim=1) for value in gradients], 1)
    return [torch.stack([of_member.detach(), torch.linalg.vector_norm(norms, dim=1)]), *gradients]


@torch.no_grad()
def _update(
    members: list[Tensor], gradients: list[Tensor], moments: checkpoint.Moments, recipe: Recipe, iteration: int
) -> None:
    """Update every member by AdamW.

    This is the update of `torch.optim.AdamW`, whose bookkeeping costs small models more than the update.
    """
    steps, averages, squares = ([moments[value][name] for value in members] for name in checkpoint.MOMENTS)
    adamw(
        members,
        gradients,
        averages,
        squares,
        [],
        steps,
        fused=True,
        amsgrad=False,
        beta1=recipe.betas[0],
        beta2=recipe.betas[1],
        lr=recipe.rate(iteration),
        weight_decay=recipe.weight_decay,
        eps=1e-8,
        maximize=False,
    )


def _resume(
    path: Path,
    run: str,
    parameters: Parameters,
    average: Parameters,
    moments: checkpoint.Moments,
    description: str,
) -> tuple[int, dict[str, Tensor], checkpoint.Clock]:
    """The iterations done, what was watched and observed so far, and the clock; 0 without a checkpoint of this run."""
    state = checkpoint.resumed(path, run, description)
    if state is None:
        return 0, {}, checkpoint.Clock()
    checkpoint.restore(state.tensors, parameters.items(), moments)
    for name, value in average.items():
        value.copy_(state.tensors[f"average/{name}"])
    log.info("%s: resumed after iteration %d", description, state.step)
    history = {name: state.tensors[name] for name in ("watched", "observed")}
    return state.step, history, checkpoint.Clock(state.cpu_seconds)


def _with_pending(
    history: Mapping[str, Tensor], pending: list[Tensor], observations: list[Tensor]
) -> dict[str, Tensor]:
    """The history with what was watched and observed since it was written; empties `pending`."""
    earlier = [history["watched"]] if history else []
    losses_and_norms = torch.cat([*earlier, torch.stack(pending).cpu()])
    pending.clear()
    return {"watched": losses_and_norms, "observed": torch.stack(observations)}


def _report_diverged(
    earlier: dict[int, int], history: Mapping[str, Tensor], at: list[int], description: str
) -> dict[int, int]:
    """Return the first iteration with a loss or an observation that is not finite, by member that has one.

    `history` has "watched", losses and gradient norms `[iterations, 2, members]`, and "observed", `[observations,
    members, ...]`, at the iterations `at`. Warn of members that are not among the `earlier` ones.
    """
    first: dict[int, int] = {}
    losses, observations = history["watched"][:, 0], history["observed"]
    observed_finite = observations.isfinite().reshape(*observations.shape[:2], -1).all(2)
    for iterations, finite in ((at, observed_finite), (range(1, len(losses) + 1), losses.isfinite())):
        for member in (~finite).any(0).nonzero().flatten().tolist():
            iteration = iterations[int(finite[:, member].int().argmin())]
            first[member] = min(first.get(member, iteration), iteration)
    for member in first.keys() - earlier.keys():
        log.warning("%s: member %d diverged at iteration %d", description, member, first[member])
    return first
