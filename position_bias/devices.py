"""On what a job computes: the CPU, or one GPU that it holds for itself."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from position_bias.runtime import InputError, log

Request = Literal["auto", "cpu", "cuda"]  # what the configuration may say


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Ids of the GPUs this process may use: CUDA_VISIBLE_DEVICES where it is set, else what nvidia-smi lists."""
    given = environment.get("CUDA_VISIBLE_DEVICES")
    if given is not None:  # CUDA reads the list up to the first id that is none, such as -1
        ids = (device.strip() for device in given.split(","))
        return list(takewhile(lambda device: device and not device.startswith("-"), ids))
    return [str(index) for index, _ in enumerate(_listed())]


def gpu_names() -> list[str]:
    """What the GPUs that this process may use are called; the id of one that nvidia-smi does not list."""
    names: dict[str, str] = {}
    for line in _listed():
        if found := re.match(r"GPU (\d+): (.+) \(UUID: (.+)\)", line):
            names |= {found[1]: found[2], found[3]: found[2]}
    return [names.get(gpu, gpu) for gpu in visible_gpus()]


def _listed() -> list[str]:
    """A line for each GPU of the machine: GPU 0: its name (UUID: ...)."""
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False, timeout=20).stdout
    except subprocess.TimeoutExpired:
        log.warning("nvidia-smi does not answer; going on without a GPU")
        return []
    return [line for line in listing.splitlines() if line.startswith("GPU ")]


def uses_gpu(requested: Request) -> bool:
    """Whether a run with this `device` setting computes on GPUs: asked for, or left open and one is visible."""
    return requested == "cuda" or (requested == "auto" and bool(visible_gpus()))


@contextmanager
def device(requested: Request, poll_seconds: float = 0.5) -> Iterator[str]:
    """Yield `"cpu"`, or `"cuda"` with one GPU held for this process alone. Enter before CUDA starts.

    Snakemake counts local GPUs but names none, so each job holds a kernel lock per device id; the kernel
    releases it however the process ends. Under SLURM, which assigns devices itself, nothing is locked.
    Raises InputError where `cuda` is asked for and no GPU is visible.
    """
    if not uses_gpu(requested):
        yield "cpu"
        return
    gpus = visible_gpus()
    if not gpus:
        raise InputError("config: device = 'cuda', but no GPU is visible to this job; set it to 'auto' or 'cpu'")
    if "SLURM_JOB_ID" in os.environ:
        yield "cuda"
        return
    if requested == "auto" and not _torch_computes_on_gpus():
        log.warning("a GPU is visible, but this torch cannot use it; going on with the CPU")
        yield "cpu"
        return
    with ExitStack() as held:
        os.environ["CUDA_VISIBLE_DEVICES"] = _first_free(gpus, held, poll_seconds)
        yield "cuda"


def _torch_computes_on_gpus() -> bool:
    import torch  # seconds, and only jobs that run models come here

    return torch.backends.cuda.is_built()


def _first_free(gpus: list[str], held: ExitStack, poll_seconds: float) -> str:
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"position-bias-gpus-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    while True:
        for gpu in gpus:
            try:
                held.enter_context(FileLock(folder / gpu, timeout=0))
                return gpu
            except Timeout:
                continue
        time.sleep(poll_seconds)
