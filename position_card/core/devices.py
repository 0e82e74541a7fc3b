"""What a job computes on: the CPU, or GPUs that it holds for itself."""

import fcntl
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from position_card.core.runtime import InputError, log

Request = Literal["auto", "cpu", "cuda"]  # what the configuration may say
ROUNDING = 1e-5  # of the summed sizes of what a product adds up: float32 leaves 3e-7 of them, bfloat16 .001
LOCKS = Path("/tmp/position-bias-gpus")  # of a machine: the same for all users, whatever their TMPDIR


def device_request(config: Mapping[str, Any], stage: str) -> Request:
    """Return the device that the configuration asks for in a stage: its own entry of `devices`, or else `device`."""
    device: Request = config["devices"].get(stage, config["device"])
    return device


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the ids of GPUs that this process may use: CUDA_VISIBLE_DEVICES, or what nvidia-smi lists."""
    listed_ids = environment.get("CUDA_VISIBLE_DEVICES")
    if listed_ids is not None:  # CUDA reads the list up to the first id that is none, such as -1
        ids = (device.strip() for device in listed_ids.split(","))
        return list(takewhile(lambda device: device and not device.startswith("-"), ids))
    return [str(index) for index, _ in enumerate(_gpu_lines())]


def gpu_names() -> list[str]:
    """Return what the GPUs that this process may use are called; the id of one that nvidia-smi does not list."""
    names: dict[str, str] = {}
    for line in _gpu_lines():
        if match := re.match(r"GPU (\d+): (.+) \(UUID: (.+)\)", line):
            names |= {match[1]: match[2], match[3]: match[2]}
    return [names.get(gpu, gpu) for gpu in visible_gpus()]


def _gpu_lines() -> list[str]:
    """Return a line for each GPU of the machine: GPU 0: its name (UUID: ...)."""
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False, timeout=20).stdout
    except subprocess.TimeoutExpired:
        log.warning("nvidia-smi does not answer; going on without a GPU")
        return []
    return [line for line in listing.splitlines() if line.startswith("GPU ")]


def uses_gpu(request: Request) -> bool:
    """Say whether a run with this `device` setting uses GPUs: it asks for them, or leaves it open and sees one."""
    return request == "cuda" or (request == "auto" and bool(visible_gpus()))


def native_bf16(device: str) -> bool:
    """Say whether the hardware computes in bfloat16 itself; elsewhere it is emulated, slower than float32."""
    import torch

    if device.startswith("cuda"):
        return torch.cuda.get_device_capability(device) >= (8, 0)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))  # the last is ARM's


def multiply_by_onednn() -> bool:
    """Have torch multiply float32 by oneDNN in this process where that is faster and as exact; say whether it does now.

    On processors of AMD with wide registers, MKL, which is torch's default, leaves half of these unused. Torch hands a
    product to oneDNN only where the setting permits it to round factors to bfloat16. oneDNN makes use of the permission
    on processors that multiply matrices of bfloat16 (AMX) alone; there, the default stays. It stays as well where a
    product that is tried is less exact than float32. GPUs do not heed the setting.
    """
    import torch

    setting, processor = torch.backends.mkldnn.matmul, torch.cpu.get_capabilities()  # type: ignore[attr-defined]
    wide = processor.get("avx512_bw", False) and not processor.get("amx_bf16", False)
    if not (wide and "AMD" in processor.get("cpu_name", "") and torch.backends.mkldnn.is_available()):
        return False
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 256, 256, generator=generator, dtype=torch.float32, device="cpu")
    before = setting.fp32_precision
    with torch.autocast("cpu", enabled=False):
        setting.fp32_precision = "bf16"
        errors = (a @ b).double() - a.double() @ b.double()
    exact = bool((errors.abs() <= ROUNDING * (a.abs() @ b.abs())).all())
    if not exact:
        setting.fp32_precision = before
    return exact


@contextmanager
def device(request: Request, gpus: int = 1, granted: int = 0, poll_seconds: float = 0.5) -> Iterator[str]:
    """Yield `"cpu"`, or `"cuda"` with `gpus` GPUs held for this process alone. Enter before CUDA starts.

    Snakemake counts local GPUs but names none, so each job holds a kernel lock per device id; the kernel
    releases it however the process ends. A job that finds too few free ones holds none while it waits. Under SLURM,
    which assigns devices itself, nothing is locked. Raises InputError where `cuda` is asked for and no GPU is visible,
    and where the job needs more than are visible or than Snakemake has `granted` it: where its limit is lower than a
    job's wish, it grants the limit and says nothing.
    """
    if not uses_gpu(request):
        yield "cpu"
        return
    visible = visible_gpus()
    if not visible:
        raise InputError("config: device = 'cuda', but no GPU is visible to this job; set it to 'auto' or 'cpu'")
    if len(visible) < gpus:
        raise InputError(f"this job needs {gpus} GPUs, but sees {len(visible)}; lower its gpus, or add some")
    if 0 < granted < gpus:  # it counts none where it saw no GPU
        raise InputError(f"this job needs {gpus} GPUs, but is granted {granted}; allow them: --resources gpu={gpus}")
    import torch  # seconds, and only jobs that run models come here

    if request == "auto" and not torch.backends.cuda.is_built():
        log.warning("a GPU is visible, but this torch cannot use it; going on with the CPU")
        yield "cpu"
        return
    if "SLURM_JOB_ID" in os.environ:
        yield "cuda"
        return
    with ExitStack() as locks:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(_first_free(visible, gpus, locks, poll_seconds))
        yield "cuda"


def _first_free(visible: list[str], count: int, locks: ExitStack, poll_seconds: float) -> list[str]:
    """Wait until `count` of the `visible` GPUs are free, and return their ids, in the order of `visible`.

    A GPU is free where no process holds its lock; those that are returned are held until `locks` closes. Raises
    InputError as `_folder_of_locks` does.
    """
    folder = _folder_of_locks()
    while True:
        with ExitStack() as attempt:
            free = list(islice((gpu for gpu in visible if _try_lock(folder / quote(gpu, safe=""), attempt)), count))
            if len(free) == count:
                locks.enter_context(attempt.pop_all())
                return free
        time.sleep(poll_seconds)


def _folder_of_locks() -> Path:
    """Return the folder of locks of all users, made where it is missing; nobody removes there what another has made.

    Raises InputError where something else has its name, or where not everybody may lock in it.
    """
    mask = os.umask(0)
    try:
        LOCKS.mkdir(mode=0o1777, exist_ok=True)
    except FileExistsError:
        pass  # no directory: refused below
    finally:
        os.umask(mask)
    mode = LOCKS.lstat().st_mode
    if not (stat.S_ISDIR(mode) and stat.S_IMODE(mode) == 0o1777):
        raise InputError(
            f"{LOCKS}, where jobs of this machine lock GPUs, is no directory that all users may write to (mode 1777); "
            "have its owner or an administrator remove it, or set device to 'cpu'"
        )
    return LOCKS


def _try_lock(file: Path, locks: ExitStack) -> bool:
    """Try to lock a file, without waiting: False where another job has the lock, and True where it was taken.

    The lock is kept until `locks` is closed. Raises InputError where the file cannot be opened.
    """
    try:
        descriptor = _open_lock(file)
    except OSError as error:
        raise InputError(
            f"{file}, by which jobs lock a GPU, cannot be opened ({error.strerror}); have it removed, or set device to "
            "'cpu'"
        ) from error
    locks.callback(os.close, descriptor)  # which frees the lock
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_lock(file: Path) -> int:
    """Return the descriptor of a file of locks, open for reading; the file is made where it is missing.

    Any user may have made it. Raises OSError where it cannot be opened, and where it is a link, which is not followed.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    mask = os.umask(0)
    try:  # making comes apart: Linux refuses O_CREAT where the file is another user's
        return os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o444)
    except FileExistsError:
        return os.open(file, flags)
    finally:
        os.umask(mask)
