"""Pretended GPUs: tensors of the CPU that say they lie on cuda:0, cuda:1, ..., where there is no GPU.

    with gpus(2):
        weights = torch.randn(3, 4, device="cuda:1")  # weights.device is cuda:1, and weights.numpy() is refused
        weights @ torch.ones(4, 2)  # RuntimeError: the tensors are on cpu and cuda:1

All numbers stay in the memory of the CPU, whose kernels compute them, so that results have the bits of the CPU. What is
pretended is the place of each storage, which is noted on the storage itself: views share it, and a parameter that moves
stays the same parameter. Two modes of torch do the rest. `_Calls` sees what Python asks for: it answers where a tensor
is, moves tensors, and notes where new ones were asked for. `_Operations` sees every operation, those of a backward pass
among them: it refuses what CUDA refuses, and notes that a result lies where its operands do.

What cannot be seen here is what only a GPU has: its kernels and their rounding, its memory and its speed.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from position_bias.small_networks import repeated

CPU = torch.device("cpu")
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}  # their indices may lie on the CPU
WITH_NUMBER = {"fill_", "masked_fill", "masked_fill_", "_foreach_mul_", *INDEXING}  # a tensor without axes is one


def place_of(tensor: Tensor) -> torch.device:
    """Return the device that a tensor is said to be on."""
    with torch._C.DisableTorchFunction():
        return _noted(tensor)


def _noted(tensor: Tensor) -> torch.device:
    return tensor.device if tensor.is_meta else vars(tensor.untyped_storage()).get("place", CPU)


def _tensors_in(values: Iterable[Any], found: list[Tensor]) -> list[Tensor]:
    """Add the tensors among arguments or results to those found. It is called at every operation, and must be quick."""
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            _tensors_in(value, found)
        elif isinstance(value, dict):
            _tensors_in(value.values(), found)
    return found


def _put(made, place):
    """Say that all tensors among what was made lie in a place."""
    for tensor in _tensors_in((made,), []):
        if not tensor.is_meta:
            tensor.untyped_storage().place = place
    return made


def _place(device):
    """A device that Python names, with its number."""
    device = _device(device)
    return torch.device("cuda", 0) if device == torch.device("cuda") else device


class _Moved(torch.autograd.Function):
    """A copy of a tensor in another place; its gradient goes back to where the tensor is."""

    @staticmethod
    def forward(ctx, tensor, place):
        ctx.source = place_of(tensor)
        with torch._C.DisableTorchFunction():
            if tensor.is_meta:
                raise NotImplementedError("Cannot copy out of meta tensor; no data!")
            return _put(tensor.clone(), place)

    @staticmethod
    def backward(ctx, gradient):
        return _Moved.apply(gradient, ctx.source), None


def _to(tensor, *args, device=None, **named):
    if args and isinstance(args[0], Tensor):
        device, named["dtype"], args = place_of(args[0]), args[0].dtype, args[1:]
    elif args and not isinstance(args[0], torch.dtype):
        device, *given = args
        options = zip(("dtype", "non_blocking", "copy"), given, strict=False)
        named |= {name: value for name, value in options if value is not None}
        args = ()
    if device is not None and (place := _place(device)) != place_of(tensor):
        if place.type == "meta":
            return tensor.to(place, *args, **named)
        tensor = _Moved.apply(tensor, place)
    return tensor.to(*args, **named) if args or named else tensor


def _to_numpy(own):
    def refusing(tensor, *args, **named):
        if (place := place_of(tensor)) != CPU:
            raise TypeError(f"can't convert {place} device type tensor to numpy. Use Tensor.cpu() to copy it first.")
        return own(tensor, *args, **named)

    return refusing


def _device(device, *index):
    return torch.device("cuda", device) if isinstance(device, int) else torch.device(device, *index)


ANSWERS = {
    torch.device: _device,
    Tensor.device.__get__: place_of,
    Tensor.is_cuda.__get__: lambda tensor: place_of(tensor).type == "cuda",
    Tensor.is_cpu.__get__: lambda tensor: place_of(tensor) == CPU,
    Tensor.get_device: lambda tensor: -1 if place_of(tensor).index is None else place_of(tensor).index,
    Tensor.to: _to,
    Tensor.cpu: lambda tensor: _to(tensor, CPU),
    Tensor.cuda: lambda tensor, device=0: _to(tensor, device),
    Tensor.numpy: _to_numpy(Tensor.numpy),
    Tensor.__array__: _to_numpy(Tensor.__array__),
}


class _Calls(TorchFunctionMode):
    """What Python asks of torch."""

    place = CPU  # where the call under way works, for tensors that are made without operands

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if answer := ANSWERS.get(func):
            return answer(*args, **kwargs)
        asked, operands = kwargs.get("device"), _tensors_in((args, kwargs), [])
        place = _place(asked) if asked is not None else place_of(operands[0]) if operands else CPU
        if asked is not None and place.type == "cuda":
            kwargs = {**kwargs, "device": CPU}
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != place.type:
            raise RuntimeError(f"Expected a {place.type!r} device type for generator but found {generator.device!r}")
        around, _Calls.place = _Calls.place, place
        try:
            made = func(*args, **kwargs)
        finally:
            _Calls.place = around
        return _put(made, place) if asked is not None else made


class _Operations(TorchDispatchMode):
    """Every operation that torch carries out."""

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # nothing is compiled here, and what keeps a compiler away takes time at every operation

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunction():
            place = _computed_in(func, args, kwargs or {})
            made = func(*args, **(kwargs or {}))
            for tensor in _tensors_in((made,), []):
                if not tensor.is_meta:
                    vars(tensor.untyped_storage()).setdefault("place", place)
            return made


def _computed_in(func, args, kwargs):
    """Where an operation works. Raises RuntimeError where its operands lie apart, as CUDA does."""
    name = func.overloadpacket.__name__
    operands = _tensors_in((args, kwargs), [])
    if not operands or name == "lift_fresh":  # what was made of numbers of Python
        return _Calls.place
    first, *others = map(_noted, operands)
    if name == "copy_" or others.count(first) == len(others):
        return first
    indices = _tensors_in((args[1],), []) if name in INDEXING and first != CPU else ()
    numbers = name in WITH_NUMBER or torch.Tag.pointwise in func.tags
    written = args[0] if func._schema.is_mutable else None
    places = {
        place
        for operand in operands
        if (place := _noted(operand)) != CPU
        or operand is written
        or not ((numbers and operand.dim() == 0) or any(operand is index for index in indices))
    }
    if len(places) > 1:
        raise RuntimeError(f"{func}: the tensors are on {' and '.join(sorted(map(str, places)))}")
    return places.pop() if places else CPU


class _Generator(torch.Generator):
    """A generator of the CPU that says it is one of another device."""

    def __new__(cls, device="cpu"):
        made = super().__new__(cls)
        made.said = _place(device)
        return made

    device = property(lambda self: self.said)


def _recorded(compute, example):
    """Compute anew at each call, but read from, and write to, memory that stays the same, as a recording does."""
    given = [tensor.clone() for tensor in example]
    found = compute(*given)

    def replay(*new):
        for places, tensors in ((given, new), (found, compute(*new))):
            for place, tensor in zip(places, tensors, strict=True):
                place.copy_(tensor)
        return found

    return replay


def _autocasting(own):
    """Autocast of a GPU is that of the CPU, whose kernels compute; that of the CPU leaves a GPU's tensors alone."""

    def begin(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if device_type != "cuda":  # it changes nothing
            dtype, enabled = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
        own(self, "cpu", dtype or torch.bfloat16, enabled, cache_enabled)

    return begin


@contextmanager
def gpus(count: int = 1, capability: tuple[int, int] = (9, 0)) -> Iterator[None]:
    """Have this process see `count` GPUs while the context is open."""
    calls, engine, hooks = _Calls(), torch.autograd._engine_run_backward, torch.autograd.graph.saved_tensors_hooks
    own_hooks = hooks.__init__
    told = {
        "is_available": True,
        "is_initialized": True,
        "device_count": count,
        "current_device": 0,
        "get_device_capability": capability,
        "get_device_name": "pretended",
        "get_device_properties": SimpleNamespace(major=capability[0], minor=capability[1], name="pretended"),
        "mem_get_info": (2**33, 2**33),
        "memory_allocated": 0,
        "memory_reserved": 0,
        "get_rng_state": torch.get_rng_state(),
        "device": nullcontext(),
        **dict.fromkeys(("synchronize", "empty_cache", "set_device", "set_rng_state", "manual_seed_all", "_lazy_init")),
    }

    def seeing(function):  # torch takes the mode away for the call that it sees, and for all Python within
        def seen(*args, **kwargs):
            with nullcontext() if torch._C._len_torch_function_stack() else calls:
                return function(*args, **kwargs)

        return seen

    def keep(self, pack, unpack):
        own_hooks(self, seeing(pack), seeing(unpack))

    with ExitStack() as patched:
        answers = {name: lambda *_, value=value, **__: value for name, value in told.items()}
        for changed in (
            mock.patch.multiple(torch.cuda, **answers),
            mock.patch.object(torch.autograd, "_engine_run_backward", seeing(engine)),
            mock.patch.object(hooks, "__init__", keep),
            mock.patch.object(torch, "Generator", _Generator),
            mock.patch.object(repeated, "record", _recorded),
            mock.patch.object(torch.autocast, "__init__", _autocasting(torch.autocast.__init__)),
            mock.patch.object(torch, "is_autocast_enabled", _of_gpu(torch.is_autocast_enabled, False)),
            mock.patch.object(torch, "get_autocast_dtype", _of_gpu(torch.get_autocast_dtype, torch.bfloat16)),
            mock.patch.object(torch.backends.cuda, "is_built", return_value=True),
            _Operations(),
            calls,
        ):
            patched.enter_context(changed)
        yield


def _of_gpu(own, of_cpu):
    """What torch says of autocast: that of a GPU is on the CPU in truth."""
    return lambda device="cuda": own("cpu") if device == "cuda" else of_cpu
