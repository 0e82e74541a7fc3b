"""What an iteration at the sizes of config/paper.yaml takes on a GPU: timed where there is one, else counted.

Timed: milliseconds of an iteration, and the most memory that torch held; an iteration is what three times as many take
beyond once. Counted, on a pretended GPU that records nothing: operations that make new numbers are launches; copies
from the GPU, and numbers and truths of its tensors, are waits. There, large trainings run with few seeds and sequences,
and are scaled.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
import yaml
from snakemake.utils import update_config
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from position_bias.emergence import runs, task, training
from position_bias.language_models import families, train
from position_bias.layernorm import training as layernorm_training
from position_bias.postnorm import runs as postnorm_runs
from position_bias.postnorm import training as postnorm_training
from position_bias.small_networks import ensemble, repeated
from position_card.core import checkpoint
from position_card.measures.measure import measure_decoder
from tests.pretend.pretended import gpus, place_of

NO_KERNEL = {"_unsafe_view", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
WAITS = (Tensor.cpu, Tensor.item, Tensor.tolist, Tensor.__bool__, Tensor.__float__, Tensor.__int__, Tensor.nonzero)
STUDIES, TASKS = (
    (("plain", 2), ("residual", 10), ("ends", 2)),
    ("set-complement-16", "set-complement-128", "maximum-10"),
)
CONFIG = yaml.safe_load(Path("config.yaml").read_text())
update_config(CONFIG, yaml.safe_load(Path("config/paper.yaml").read_text()))
LAYERNORM = CONFIG["layernorm"]["trained"]


class Launches(TorchDispatchMode):
    launches = operations = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out, packet = function(*args, **(kwargs or {})), function._overloadpacket
        made = [leaf for leaf in tree_leaves((out, args)) if isinstance(leaf, Tensor)]
        if made and place_of(made[0]).type == "cuda" and not function.is_view and packet.__name__ not in NO_KERNEL:
            self.launches += 1
            self.operations += flop_registry.get(packet, lambda *_, **__: 0)(*args, **(kwargs or {}), out_val=out)
        return out


class Waits(TorchFunctionMode):
    waits = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.waits += function in WAITS and place_of(args[0]).type == "cuda"
        return function(*args, **(kwargs or {}))


def emergence(name, depth, at):
    of, every = CONFIG["emergence"], at.checkpoint_every
    setting = training.StudySetting(ensemble.Recipe(every, 1e-3, 0), of["training"]["batch"], 8, 8, every)
    study = runs.study(name, of["networks"][name], of["decay"])
    training.train(task.for_vocabulary("gaussian", of["task"]), study, depth, range(5), setting, at)


def decoders(batch, seeds, at):
    numbers = LAYERNORM | {"iterations": at.checkpoint_every, "batch": batch, "held_out": 2, "warmup": 0}
    layernorm_training.train("pre-layer", layernorm_training.DecoderSetting.from_numbers(numbers), 1e-4, seeds, at)


def scheme(name, seeds, at):
    trial = postnorm_runs.experiments(CONFIG["postnorm"])[name][-1]
    recipe = trial.recipe | {"iterations": at.checkpoint_every, "warmup": 0}
    postnorm_training.train(trial._replace(seeds=seeds, setting=trial.setting | {"sequences": 2}, recipe=recipe), at)


def language_model(measured, at):
    model = families.build("bloom", CONFIG["models"]["bloom"]["architecture"], 2048, 256, seed=0)
    drawn = np.random.default_rng(0).integers(0, 2048, 5000)
    if measured:
        measure_decoder(model.to(at.device), np.resize(drawn, (4 * at.checkpoint_every, 256)), 1024)
        return
    kept = {name: CONFIG["training"][name] for name in ("batch", "context", "learning_rate", "weight_decay", "clip")}
    recipe, held_out = train.TrainingRecipe(at.checkpoint_every, warmup=0, **kept), drawn[None, :256]
    train.train(model, drawn, recipe, at, seed=0, snapshots=[], bf16=False, held_out=held_out)


def once(work, iterations, device):
    with tempfile.TemporaryDirectory() as folder:
        at, started = checkpoint.Place(Path(folder), iterations, device), time.process_time()
        if device == "cpu":
            work(at)
            return np.array([time.process_time() - started])
        one_by_one = mock.patch.object(repeated, "record", lambda compute, _: compute)
        with gpus(), one_by_one, Waits() as asked, Launches() as done:
            work(at)
        return np.array([done.launches, asked.waits, done.operations])


def shown(number):
    """Three digits, with commas, as docs/benchmarks.md has them."""
    return f"{float(f'{number:.3g}'):,g}"


def timed(work, count, scale):
    """Milliseconds of an iteration on the GPU that there is, and the most GB that torch held."""

    def seconds(iterations):
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            work(checkpoint.Place(Path(folder), iterations, "cuda"))
            torch.cuda.synchronize()
            return time.perf_counter() - started

    torch.cuda.reset_peak_memory_stats()
    seconds(count)  # kernels are loaded
    fewer, more = seconds(count), seconds(3 * count)
    return scale * 1e3 * (more - fewer) / (2 * count), torch.cuda.max_memory_allocated() / 1e9


REAL = torch.cuda.is_available()
torch.set_num_threads(1)
rows = {f"emergence, {name}, {depth} layers": (partial(emergence, name, depth), 2, 1) for name, depth in STUDIES}
setting = layernorm_training.DecoderSetting.from_numbers(LAYERNORM)
stack = layernorm_training.stacks(setting, range(LAYERNORM["seeds"]))[0]
batch, seeds = (LAYERNORM["batch"], stack) if REAL else (4, [0])
left = LAYERNORM["batch"] * LAYERNORM["seeds"] // (batch * len(seeds))
rows["layernorm, 8 layers of 512"] = partial(decoders, batch, seeds), 2, left
seeds = range(20 if REAL else 2)
rows |= {f"postnorm, {name}": (partial(scheme, name, seeds), 16, 20 // len(seeds)) for name in TASKS}
rows["language model"], rows["measuring pass"] = ((partial(language_model, measured), 2, 1) for measured in (0, 1))
for name, (work, count, scale) in rows.items():
    if REAL:
        count = count if "layernorm" in name else 50
        try:
            print(f"| {name} | {' | '.join(map(shown, timed(work, count, scale)))} |", flush=True)
        except torch.OutOfMemoryError:
            print(f"| {name} | does not fit | |", flush=True)
        continue
    values = [(once(work, 2 * count, device) - once(work, count, device)) / count for device in ("cuda", "cpu")]
    (launches, waits, operations), (seconds,) = values
    numbers = shown(scale * operations / 1e9), shown(1e3 * scale * seconds)
    print(f"| {name} | {launches:,.0f} | {waits:,.0f} | {' | '.join(numbers)} |", flush=True)
