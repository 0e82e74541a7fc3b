"""A GPU repeats a computation with one launch: small networks otherwise wait for hundreds of launches an iteration."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Compute = Callable[..., list[Tensor]]


class Repeated:
    """`compute`, called again and again with tensors of the same shapes and dtypes; a GPU records it (a CUDA graph).

    What was recorded runs again as it was. So `compute` may read only its arguments, and tensors that stay where they
    are in memory. It must not wait for the device, copy anything to it, or draw random numbers.
    """

    def __init__(self, compute: Compute) -> None:
        self.compute = compute
        self.again: Compute | None = None

    def __call__(self, *arguments: Tensor) -> list[Tensor]:
        """Return what `compute` does. The next call may overwrite it."""
        if self.again is not None:
            return self.again(*arguments)
        result = self.compute(*arguments)  # libraries get ready at a first call, which must not be recorded
        if arguments[0].is_cuda:
            self.again = record(self.compute, arguments)
        return result


def record(compute: Compute, example: Sequence[Tensor]) -> Compute:
    """Record what `compute` does on a GPU, as a CUDA graph, and return a function that does it again.

    Arguments of that function have the shapes and dtypes of the `example`, and it returns the same tensors at every
    call, with new values. Nothing runs until it is called. What `compute` may do stands at `Repeated`.
    """
    arguments = [tensor.clone() for tensor in example]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compute(*arguments)

    def replay(*new: Tensor) -> list[Tensor]:
        for place, tensor in zip(arguments, new, strict=True):
            place.copy_(tensor)
        graph.replay()
        return result

    return replay
