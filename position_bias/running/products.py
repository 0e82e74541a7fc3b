"""A CPU multiplies matrices of float32 as torch does by default, or by oneDNN, where that is as exact.

On processors of AMD, torch multiplies float32 by MKL, which leaves their wide registers unused; oneDNN uses them, and
is two to four times as fast at the sizes of most networks here. It takes longer to call, so that networks of width 16
train slower by it. Torch hands float32 to oneDNN only where it may round the factors to bfloat16. On most processors
nothing is gained by rounding, and oneDNN multiplies float32 as it stands; on one that multiplies bfloat16 matrices
itself (Intel's with AMX tiles) it really rounds. So each job tries the setting first, against float64, and keeps it
only where the errors are those of float32.
"""

from collections.abc import Callable

import torch
from torch import Tensor

TIMES_WORSE = 4.0  # than by default, at most: orders of summation differ by less, roundings to bfloat16 by thousands
TRIED: list[tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = [  # products as networks have them, and long sums
    (torch.mm, [(2176, 64), (64, 64)]),
    (torch.mm, [(256, 256), (256, 8)]),
    (torch.mm, [(128, 512), (512, 512)]),
    (torch.bmm, [(128, 17, 64), (128, 64, 17)]),
    (torch.bmm, [(128, 1, 64), (128, 64, 17)]),
    (torch.addmm, [(64,), (272, 64), (64, 64)]),
    (torch.baddbmm, [(10, 1, 64), (10, 64, 64), (10, 64, 64)]),
]


def fastest() -> str:
    """Have torch multiply float32 by oneDNN where that is as exact as its default; the name of what is in use then.

    It counts for the whole process, and for CPUs alone. The same processor and torch always give the same answer, under
    autocast too, which would round what the errors are compared with. Where torch cannot try it, everything stays as it
    was. Do not call `torch.set_float32_matmul_precision` beside this, since
    torch refuses to mix the two; and set the number of threads first, since waking many takes longer than the trial.
    """
    setting = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    kept = setting.fp32_precision
    try:
        if torch.backends.mkldnn.is_available():
            with torch.autocast("cpu", enabled=False):
                trial = _trial()
                setting.fp32_precision = "none"  # torch's default
                allowed = TIMES_WORSE * _largest_error(trial)
                setting.fp32_precision = "bf16"
                kept = "bf16" if _largest_error(trial) <= allowed else "none"  # an error that is no number is refused
    except RuntimeError:  # what torch raises for a setting or a product that it cannot do
        pass
    finally:
        setting.fp32_precision = kept
    return in_use()


def in_use() -> str:
    """The name of what multiplies float32 in this process: oneDNN or default."""
    setting = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    return "oneDNN" if setting.fp32_precision == "bf16" else "default"


def native_bf16(device: str) -> bool:
    """Whether the hardware computes in bfloat16 itself; elsewhere it is emulated, slower than float32."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_capability(device) >= (8, 0)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))  # the last is ARM's


Trial = list[tuple[Callable[..., Tensor], list[Tensor], Tensor, Tensor]]  # operands, in float64, of their sizes


def _trial() -> Trial:
    """The products that are tried, each with operands that lie in memory as they read, and transposed."""
    generator = torch.Generator().manual_seed(0)
    trial: Trial = []
    for product, shapes in TRIED:
        read = [torch.randn(shape, generator=generator) for shape in shapes]
        exact = product(*(operand.double() for operand in read))
        sizes = product(*(operand.abs() for operand in read))
        across = [operand.mT.contiguous().mT if operand.ndim > 1 else operand for operand in read]
        trial += [(product, operands, exact, sizes) for operands in (read, across)]
    return trial


def _largest_error(trial: Trial) -> float:
    """The largest error of an element over the sum of the sizes of what it adds up."""
    errors = [((product(*operands) - exact).abs() / sizes).max() for product, operands, exact, sizes in trial]
    return torch.stack(errors).max().item()
