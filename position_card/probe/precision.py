"""Arithmetic in float32, whatever the precision of a model's weights.

What bfloat16 rounds away between layers is larger than what one token of a long prompt changes in the prediction. So
measures of such changes compute in float32, with weights that stay as they are.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeGuard, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel

P = ParamSpec("P")
Result = TypeVar("Result")
Measure = Callable[Concatenate[PreTrainedModel, P], Result]

BLOCK = 2**20  # weights of a linear layer that are brought to float32 at once: as many as a processor's caches hold


def in_float32(measure: Measure[P, Result]) -> Measure[P, Result]:
    """Have a measure, whose first argument is the model, compute in `float32_arithmetic`."""

    @wraps(measure)
    def measure_in_float32(model: PreTrainedModel, /, *args: P.args, **keywords: P.kwargs) -> Result:
        with float32_arithmetic(model):
            return measure(model, *args, **keywords)

    return measure_in_float32


@contextmanager
def float32_arithmetic(model: nn.Module) -> Iterator[None]:
    """Have a model with weights of 16 bits compute in float32 while the context is open; they get no gradients.

    Linear layers multiply by one BLOCK of their weights after the other. Every other module has its own weights in
    float32 for the time of its call, so that memory holds those of one module twice. Of a table of embeddings only what
    is looked up becomes float32. Weights of 32 bits and more stay.
    """
    with ExitStack() as hooks:
        for module in model.modules():
            if not _coarse(module):
                continue
            if _in_blocks(module):
                vars(module)["forward"] = partial(_multiply_by_blocks, module)
                hooks.callback(vars(module).pop, "forward")
                continue
            if type(module) is nn.Embedding:
                handles = [module.register_forward_hook(_widen_output)]
            else:
                held: list[tuple[Tensor, Tensor]] = []
                widen, narrow = _exchange(held)
                handles = [
                    module.register_forward_pre_hook(widen),
                    module.register_forward_hook(narrow, always_call=True),
                ]
            for handle in handles:
                hooks.callback(handle.remove)
        yield


def widened_at_once(module: nn.Module) -> int:
    """Return how many weights of 16 bits of a module itself lie in memory in float32, too, while it computes."""
    if type(module) is nn.Embedding:
        return 0
    count = sum(weight.numel() for weight in module.parameters(recurse=False))
    return min(count, BLOCK) if _in_blocks(module) else count


def _in_blocks(module: nn.Module) -> TypeGuard[nn.Linear]:
    """Say whether a module is a linear layer that computes as torch does, not by a function of another library."""
    return type(module) is nn.Linear and "forward" not in vars(module)


def _multiply_by_blocks(layer: nn.Linear, inputs: Tensor) -> Tensor:
    """Return what a linear layer yields for inputs in float32, with some rows of its weights widened at a time.

    A few tokens take seven times as long where all weights are widened before: memory is written and read again.
    """
    parts = layer.weight.split(max(1, BLOCK // layer.in_features))
    out = torch.cat([linear(inputs, part.float()) for part in parts], -1)
    return out if layer.bias is None else out + layer.bias.float()


def _coarse(module: nn.Module) -> list[Tensor]:
    """Return the weights and buffers of a module itself that have 16 bits."""
    tensors = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    return [tensor for tensor in tensors if tensor.dtype in (torch.bfloat16, torch.float16)]


def _widen_output(_module: nn.Module, _args: Any, out: Tensor) -> Tensor:
    return out.float()


def _exchange(held: list[tuple[Tensor, Tensor]]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return hooks that bring weights of a module to float32 before a call, and put back those that are `held`."""

    def widen(module: nn.Module, _args: Any) -> None:
        for tensor in _coarse(module):
            held.append((tensor, tensor.data))
            tensor.data = tensor.data.float()

    def narrow(_module: nn.Module, _args: Any, _out: Any) -> None:
        while held:
            tensor, data = held.pop()
            tensor.data = data

    return widen, narrow
