"""A small causal language model is trained here, on a CPU or a GPU; on a CPU a killed job resumes bit for bit.

Nothing is pickled: models are Hugging Face directories, the checkpoint to resume from is a safetensors file.
"""

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from position_card.core import checkpoint
from position_card.core.checkpoint import Place
from position_card.core.runtime import InputError, log, progress, whole_directory

if TYPE_CHECKING:  # the caller has imported it to build the model
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class TrainingRecipe:
    """How a model is trained: AdamW, linear warm-up, cosine decay to a tenth of the peak learning rate."""

    steps: int
    batch: int  # windows a step
    context: int  # tokens a window
    learning_rate: float  # at its peak
    warmup: int  # steps
    weight_decay: float  # of matrices; vectors (biases, norms) have none
    clip: float  # largest norm of the whole gradient
    betas: tuple[float, float] = (0.9, 0.95)


Losses = dict[str, dict[int, float]]  # split -> step -> loss


def train(
    model: "PreTrainedModel",
    tokens: NDArray[np.integer],
    recipe: TrainingRecipe,
    place: Place,
    *,
    seed: int,
    snapshots: Sequence[int],
    bf16: bool,
    held_out: NDArray[np.int64],
    save: "Callable[[PreTrainedModel, Path], None]" = lambda model, folder: model.save_pretrained(folder),
) -> pd.DataFrame:
    """Train `model` in place on random windows of `tokens` [tokens] and return its losses, in nats a token.

    Keeps the model after every step of `snapshots`, and after the last, in step{N} of the folder of `place`, as `save`
    writes it; step 0 is the untrained model. Every `place.checkpoint_every` steps all that a later call needs to go on
    goes to checkpoint.safetensors there: the same arguments resume and end with the same bits as an uninterrupted run,
    other ones start over. `bf16` computes under bfloat16 autocast; the parameters stay float32.

    The table has columns step, split (train, test), loss: for train the loss of the step's batch before its update, for
    test that of the windows `held_out` [N, context] at each kept step, in float32.

    The model must draw no random numbers of its own (no dropout): a step depends on `seed` and its number alone.

    Raises InputError where `tokens` hold no window, or a loss or gradient is not finite; what is kept then stays.
    """
    if len(tokens) < recipe.context:
        raise InputError(
            f"training.context = {recipe.context}, but the training text has {len(tokens)} tokens; "
            "lower it or add to training.datasets"
        )
    folder = place.folder
    snapshot_steps = {*snapshots, recipe.steps}
    model.to(place.device).train()
    optimizer = adamw(model, recipe)
    run = _fingerprint(model, tokens, held_out, asdict(recipe), seed, sorted(snapshot_steps), place.device, bf16)
    steps_done, losses, clock = _resume(folder, run, snapshot_steps, model, optimizer)

    def save_snapshot(step: int) -> None:
        """Keep the model after a step, with its loss on the held-out windows."""
        losses["test"][step] = loss = evaluate(model, held_out, recipe.batch)
        _require_finite(step, ("test loss", loss))
        log.info("training: step %d, test loss %.3f", step, loss)
        with whole_directory(folder / f"step{step}") as partial:
            save(model, partial)

    if steps_done == 0 and 0 in snapshot_steps:
        save_snapshot(0)
    for step in progress(range(steps_done + 1, recipe.steps + 1), "training", recipe.steps, steps_done):
        windows = torch.from_numpy(batch(tokens, recipe, seed, step)).to(place.device)
        losses["train"][step] = _update(model, optimizer, windows, recipe, step, bf16)
        if step in snapshot_steps:
            save_snapshot(step)
        if step % place.checkpoint_every == 0 or step == recipe.steps:
            tensors = checkpoint.training_state(model.named_parameters(), optimizer.state)
            state = checkpoint.State(step, {"losses": losses}, tensors, clock.seconds())
            checkpoint.write(folder / checkpoint.NAME, run, state)
    rows = [(step, split, loss) for split, of_step in losses.items() for step, loss in of_step.items()]
    return pd.DataFrame(rows, columns=["step", "split", "loss"])


# One step


def learning_rate(recipe: TrainingRecipe, step: int) -> float:
    """Return the learning rate at a step, from 1 to `recipe.steps`.

    It rises linearly to its peak, `recipe.learning_rate`, at step `recipe.warmup`, and falls as half a cosine to a
    tenth of that at the last step.
    """
    if step <= recipe.warmup:
        return recipe.learning_rate * step / recipe.warmup
    decay = (step - recipe.warmup) / (recipe.steps - recipe.warmup)
    return recipe.learning_rate * (0.55 + 0.45 * math.cos(math.pi * decay))


def adamw(model: torch.nn.Module, recipe: TrainingRecipe) -> torch.optim.AdamW:
    """Make AdamW over all parameters, with weight decay on matrices only."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, fused=True)


def batch(tokens: NDArray[np.integer], recipe: TrainingRecipe, seed: int, step: int) -> NDArray[np.int64]:
    """The windows of one step, drawn with replacement; int64 [batch, context]."""
    windows = np.lib.stride_tricks.sliding_window_view(tokens, recipe.context)
    starts = np.random.default_rng([seed, step]).integers(len(windows), size=recipe.batch)
    return windows[starts].astype(np.int64)


def summed_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """Sum the cross-entropy of predicting each token of [B, n] but the first from the logits [B, n, V], in float32."""
    # A few windows at a time stay in the CPU's cache, which takes a tenth off the time of a whole step.
    parts = [
        functional.cross_entropy(part[:, :-1].flatten(0, 1).float(), target[:, 1:].flatten(), reduction="sum")
        for part, target in zip(logits.split(4), tokens.split(4), strict=True)
    ]
    return torch.stack(parts).sum()


def _update(
    model: "PreTrainedModel",
    optimizer: torch.optim.AdamW,
    windows: Tensor,
    recipe: TrainingRecipe,
    step: int,
    bf16: bool,
) -> float:
    """One step of the optimizer; returns the mean loss before it."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(recipe, step)
    with torch.autocast(windows.device.type, torch.bfloat16, enabled=bf16):
        logits = model(input_ids=windows, use_cache=False).logits
    loss = summed_loss(logits, windows) / windows[:, 1:].numel()
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    loss_value, norm_value = torch.stack((loss.detach(), norm)).tolist()  # the one wait for the device in a step
    _require_finite(step, ("loss", loss_value), ("gradient norm", norm_value))
    optimizer.step()
    return float(loss_value)


def _require_finite(step: int, *numbers: tuple[str, float]) -> None:
    """Raise InputError, which names the step and all `numbers` (name, value), where one of them is not finite."""
    if not all(math.isfinite(value) for _, value in numbers):
        values = ", ".join(f"{name} {value:.4g}" for name, value in numbers)
        raise InputError(
            f"training diverged at step {step}: {values}; lower training.learning_rate or raise training.warmup"
        )


@torch.no_grad()
def evaluate(model: "PreTrainedModel", windows: NDArray[np.int64], batch: int) -> float:
    """Mean loss in float32 over `windows` [N, n], in nats a token, `batch` of them at a time."""
    model.eval()
    tokens = torch.from_numpy(windows).to(model.device)
    losses = [summed_loss(model(input_ids=part, use_cache=False).logits, part) for part in tokens.split(batch)]
    model.train()
    return float(torch.stack(losses).double().sum()) / tokens[:, 1:].numel()


# Going on after an interruption


def _fingerprint(
    model: "PreTrainedModel", tokens: NDArray[np.integer], held_out: NDArray[np.int64], *settings: object
) -> str:
    """The fingerprint of all that decides the outcome of a training, the untrained weights included."""
    weights = {name: parameter.detach().cpu().numpy() for name, parameter in model.named_parameters()}
    data = {"tokens": tokens, "held out": held_out}
    return checkpoint.fingerprint([model.config.to_dict(), settings], {**weights, **data})


def _resume(
    folder: Path, run: str, snapshot_steps: set[int], model: "PreTrainedModel", optimizer: torch.optim.AdamW
) -> tuple[int, Losses, checkpoint.Clock]:
    """Load the checkpoint of this very run, if there is one; return the steps done, the losses so far and the clock.

    Otherwise clear the folder of what another run left, and say why.
    """
    path = folder / checkpoint.NAME
    state = checkpoint.resumed(path, run, "training")
    gone = [step for step in snapshot_steps if state and step <= state.step and not (folder / f"step{step}").is_dir()]
    if gone:
        log.warning("training: starts over, since %s is past step %d, whose model is gone", path, min(gone))
    elif state:
        checkpoint.restore(state.tensors, model.named_parameters(), optimizer.state)
        log.info("training: resumed after step %d", state.step)
        losses = {
            split: {int(step): loss for step, loss in of_step.items()}
            for split, of_step in state.facts["losses"].items()
        }
        return state.step, losses, checkpoint.Clock(state.cpu_seconds)
    path.unlink(missing_ok=True)
    for stale in folder.glob("step*"):
        shutil.rmtree(stale)
    return 0, {"train": {}, "test": {}}, checkpoint.Clock()
