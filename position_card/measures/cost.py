"""How large a decoder is, and what a pass through it takes: counted on tensors without values, before weights are read.

The model is built from its configuration on torch's meta device, and its own forward and backward pass run there. So
shapes, precisions and lifetimes of tensors are the real ones; what kernels need for themselves is not seen. A model
that asks for values on its way, as some routers of experts do, cannot be counted, and has no estimate. Where attention
is streamed, a formula has its operations.
"""

import time
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from position_card.core.runtime import InputError, log, out_of_memory
from position_card.measures.measure import LOSS_TOKENS, MATRICES_UP_TO
from position_card.measures.passes import UNABLE
from position_card.measures.quantities import influence_and_loss
from position_card.models.families import without_double_alibi
from position_card.probe import capture
from position_card.probe.forward import next_token, recomputing
from position_card.probe.measurable import exact_products
from position_card.probe.precision import widened_at_once
from position_card.probe.streaming import LONG, ROWS

LARGE = 1_000_000_000  # parameters; larger models are opened in bfloat16 where nothing else is asked for
BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
PROCESS = 0.55e9  # bytes that Python takes with the libraries, and that a CPU's kernels keep to copy matrices
PLACED = 1.4  # bytes that are taken for each byte of a batch, as seen on CPUs: not every freed block can be used again
PLACED_BLOCKS = 2.0  # the same where attention is streamed, whose blocks have many sizes
BATCH = 1024  # tokens that pass through a model at once, at most
ROOM = {"cpu": 0.7e9, "cuda": 8e9}  # bytes for what the backward pass needs of a batch
STREAMED = 5.0  # times the products of a causal forward pass: it, its weights in blocks, and its gradients
BESIDE_PRODUCTS = 1.45  # times as long as its products alone takes a pass, as seen in two models on a CPU
IN_BLOCKS = 6  # matrices of a block of rows, in float32, that lie in memory at once where attention is streamed


EXPERTS = torch.ops.aten._grouped_mm.default  # products of each expert's weights with the tokens that it is given


def _grouped_product(tokens: Tensor, weights: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
    """Compute EXPERTS on tensors without values, for which torch has it in bfloat16 alone."""
    return EXPERTS(tokens.bfloat16(), weights.bfloat16(), *arguments, **keywords).to(tokens.dtype)


class Counting(TorchDispatchMode):
    """Counts while it is open: bytes that are alive beside those of a model, their peak, and operations.

    `backward` says whether a backward pass follows, for which streamed attention keeps what it yields.
    """

    def __init__(self, model: nn.Module, *, backward: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.alive = self.peak = self.operations = 0
        self.backward = backward
        self._streamed: set[nn.Module] = set()
        self._alive: dict[Any, int] = {}  # storages that are alive; those of the model count nothing
        for tensor in (*model.parameters(), *model.buffers()):
            self._alive[self._reference(tensor)] = 0

    def _reference(self, tensor: Tensor) -> Any:
        return weakref.ref(tensor.untyped_storage(), self._free)

    def _free(self, reference: Any) -> None:
        self.alive -= self._alive.pop(reference)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if function is torch.ops.aten._local_scalar_dense.default and args[0].is_meta:
            return 1  # a model asks whether a mask or positions are the usual ones
        out = (_grouped_product if args and function is EXPERTS and args[0].is_meta else function)(*args, **keywords)
        if formula := flop_registry.get(function._overloadpacket):
            self.operations += formula(*args, **keywords, out_val=out)
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and (reference := self._reference(tensor)) not in self._alive:
                self._alive[reference] = tensor.untyped_storage().nbytes()
                self.alive += self._alive[reference]
        self.peak = max(self.peak, self.alive)
        return out

    def stream(self, call: capture.AttentionCall) -> tuple[Tensor, None]:
        """Compute nothing in the place of attention but a tensor of its shape, and count what streaming it takes.

        What is counted once stands for all passes through the module.
        """
        query, key, value = call.inputs.query, call.inputs.key, call.inputs.value
        assert value is not None
        prompts, heads, n, width = query.shape
        key, value = (part.repeat_interleave(heads // part.shape[1], dim=1) for part in (key, value))
        out = (value + (query * key).sum(-1, keepdim=True)).transpose(1, 2)
        if call.module not in self._streamed:
            self._streamed.add(call.module)
            times = STREAMED if self.backward else 1
            self.operations += int(times * prompts * heads * n**2 * (width + value.shape[-1]))
            self.alive += out.untyped_storage().nbytes() if self.backward else 0
        return out, None


@dataclass(frozen=True)
class PassCost:
    """What one pass of one prompt takes, forward alone or backward as well."""

    peak: int  # bytes beside the weights
    operations: int
    widened: int  # weights that one module has in float32 beside its own where it computes so, at most
    streamed: bool  # whether its attention is


@dataclass(frozen=True)
class DecoderSize:
    """A decoder's numbers: parameters, layers, heads, width of the residual stream, tokens it knows.

    Two are equal where their configurations are, and passes of equal ones are counted once.
    """

    parameters: int
    layers: int
    heads: int
    width: int
    vocabulary: int
    config: PretrainedConfig = field(repr=False, compare=False)
    json: str = field(repr=False)  # the configuration, of which it is enough to compare this

    @property
    def facts(self) -> dict[str, int]:
        """What a card says of it."""
        return {name: getattr(self, name) for name in ("parameters", "layers", "heads", "width", "vocabulary")}

    @property
    def precision(self) -> str:
        """The precision that it is opened in where none is asked for."""
        return "float32" if self.parameters <= LARGE else "bfloat16"

    def pass_cost(self, n: int, precision: str, *, recomputed: bool) -> PassCost | None:
        """Return what a forward and backward pass of one prompt of n tokens takes; None where it cannot be counted."""
        return _pass_cost(self, n, precision, backward=True, recomputed=recomputed)

    def forward_cost(self, n: int, precision: str) -> PassCost | None:
        """Return what a forward pass of one prompt of n tokens takes, which keeps keys and values where it can."""
        return _pass_cost(self, n, precision, backward=False, recomputed=False)

    def batch(self, n: int, precision: str, device: str, *, recomputed: bool) -> int:
        """Return how many tokens pass through the model at once where no user says so: a multiple of n.

        It is at least n, which is one prompt, and as many prompts as fit the memory of the `device`, cpu or cuda, at
        this precision, up to a limit. With `recomputed`, layers are computed again in the backward pass.
        """
        if (cost := self.pass_cost(n, precision, recomputed=recomputed)) is None:
            return n
        fits = ROOM[device] // cost.peak
        limit = BATCH if device == "cpu" else 8 * BATCH
        return n * max(1, min(int(fits), limit // n))

    def memory(self, n: int, tokens: int, precision: str, *, recomputed: bool) -> float | None:
        """Return about how many bytes a measurement of prompts of n tokens takes, with so many tokens at once.

        What the process needs besides its model, the weights, a batch, and what is kept: mean attention, and mean
        logits of every head by row and by distance. `recomputed` says whether the backward pass computes activations
        anew, as with activation checkpointing. None where a pass cannot be counted.
        """
        if (cost := self.pass_cost(n, precision, recomputed=recomputed)) is None:
            return None
        rows = IN_BLOCKS / 2 * ROWS if cost.streamed else n
        attention = 8 * self.heads * rows * n  # the attention of one layer in float32, and what is read from it
        batch = max(1, tokens // n) * (cost.peak + attention)
        sums = 4 * self.layers * n * (n if n <= MATRICES_UP_TO else 1) + 32 * self.layers * self.heads * n
        placed = PLACED_BLOCKS if cost.streamed else PLACED
        at_once = max(placed * batch, 2 * sums)  # the means are copies of all sums, when no batch is there any more
        return PROCESS + self.parameters * BYTES[precision] + at_once + sums

    def memory_of_predictions(self, n: int, tokens: int, precision: str) -> float | None:
        """Return about how many bytes predictions of the next token take after prompts of n, so many tokens at once.

        There is no backward pass, and nothing is kept but keys and values. None where a pass cannot be counted.
        """
        if (cost := self.forward_cost(n, precision)) is None:
            return None
        return PROCESS + self.parameters * BYTES[precision] + PLACED * max(1, tokens / n) * cost.peak


@lru_cache(maxsize=64)
def _pass_cost(size: DecoderSize, n: int, precision: str, *, backward: bool, recomputed: bool) -> PassCost | None:
    """Return the cost of a pass (`_counted_pass`); None where an operation needs values, which tensors here lack."""
    try:
        return _counted_pass(size, n, precision, backward=backward, recomputed=recomputed)
    except Exception as error:  # of whichever operation needs the values that are not there
        if out_of_memory(error):
            raise
        log.info("operations of this %r model cannot be counted (%r)", size.config.model_type, error)
        return None


def _counted_pass(size: DecoderSize, n: int, precision: str, *, backward: bool, recomputed: bool) -> PassCost:
    model = without_values(size.config, precision)
    tokens = torch.zeros(1, n, dtype=torch.int64, device="meta")
    streams = n >= LONG and _streams(model, size.layers)

    def count(run: Callable[[], object]) -> PassCost:
        counting = Counting(model, backward=backward)
        substitutes = dict.fromkeys(model.modules(), counting.stream) if streams else {}
        with capture.substituting(substitutes), counting:
            run()
        return PassCost(counting.peak, counting.operations, max(map(widened_at_once, model.modules())), streams)

    if backward:
        with recomputing(_blocks(model, size.layers)) if recomputed or streams else nullcontext():
            return count(lambda: influence_and_loss(model, tokens, min(LOSS_TOKENS, n - 1)))
    try:
        return count(lambda: next_token(model, tokens, keep=True))
    except UNABLE:  # to keep what it computes, or to be counted at all
        return count(lambda: next_token(model, tokens))


def _blocks(model: nn.Module, layers: int) -> list[nn.Module]:
    """Return the blocks of a model with so many layers; none where it has no list of these."""
    lists = (part for part in model.modules() if isinstance(part, nn.ModuleList) and len(part) == layers)
    return list(next(lists, []))


def without_values(config: PretrainedConfig, precision: str) -> PreTrainedModel:
    """Return the decoder of a configuration on the meta device."""
    with torch.device("meta"):
        dtype = getattr(torch, precision)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager")
    return without_double_alibi(model).eval().requires_grad_(False)


@torch.no_grad()
def _streams(model: nn.Module, layers: int) -> bool:
    """Say whether all layers of a model on the meta device use the attention interface, which streaming needs."""
    calls: list[nn.Module] = []

    def attend(call: capture.AttentionCall) -> tuple[Tensor, Tensor | None]:
        calls.append(call.module)
        return call.eager(call.inputs)

    with capture.substituting(dict.fromkeys(model.modules(), attend)), Counting(model):
        model(torch.zeros(1, 8, dtype=torch.int64, device="meta"), use_cache=False)
    return len(calls) == layers


def decoder_size(parameters: int, config: PretrainedConfig) -> DecoderSize:
    """Return the size of a model with so many parameters and the configuration `config` of `transformers`."""
    text = config.get_text_config()
    shape = text.num_hidden_layers, text.num_attention_heads, text.hidden_size, text.vocab_size
    return DecoderSize(parameters, *shape, config, config.to_json_string())


@cache
def operations_per_second(device: str, precision: str, *, single_token: bool = False) -> float:
    """Return how many operations a second a device does in passes through a model.

    That is seen at matrices of the size that models have. They are multiplied as measuring does, which on some
    processors is more than twice as fast as by default; a pass takes BESIDE_PRODUCTS times as long as its products.
    For one token at a time (`single_token`) it is a row and a matrix which no cache of a processor holds, as weights
    are read then, and all that takes time. Each is tried once a process.
    """
    kind: dict[str, Any] = {"dtype": getattr(torch, precision), "device": device}
    rows, columns, width = (1, 16_384, 2048) if single_token else (512, 512, 1024)
    row, matrix = torch.ones(rows, width, **kind), torch.ones(columns, width, **kind)
    seconds = []
    with exact_products():
        for _ in range(3):
            began = time.perf_counter()
            (row @ matrix.mT).sum().item()
            seconds.append(time.perf_counter() - began)
    products_per_second = 2 * rows * columns * width / min(seconds)
    return products_per_second / (1 if single_token else BESIDE_PRODUCTS)


def cost_in_words(memory: float | None, seconds: float | None) -> str:
    """Say how many bytes and seconds something takes, as far as that is known."""
    parts = [] if memory is None else [f"{memory / 1e9:.1f} GB of memory"]
    parts += [] if seconds is None else [duration(seconds)]
    return f"about {' and '.join(parts)}" if parts else "what nobody can estimate for this architecture"


def duration(seconds: float) -> str:
    """Say a time in whole minutes, or in seconds."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{max(1.0, seconds):.0f} seconds"


def available(device: str) -> float | None:
    """Return the bytes that are free: of the machine, a GPU, or all that a model is spread over; None if unknown."""
    if device != "cpu":
        count = torch.cuda.device_count() if device == "balanced" else 1
        return float(sum(torch.cuda.mem_get_info(gpu)[0] for gpu in range(count)))
    meminfo = Path("/proc/meminfo")
    lines = meminfo.read_text(encoding="ascii").splitlines() if meminfo.exists() else []
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def require_room(name: str, bytes_needed: float | None, device: str, *, recomputed: bool, precision: str) -> None:
    """Raise InputError where so many bytes are more than a device has free; the message tells what takes fewer.

    None is a number of bytes that nobody knows.
    """
    free = available(device)
    if free is None or bytes_needed is None or bytes_needed <= free:
        return
    remedies = ["fewer tokens at once (tokens_per_batch) or shorter prompts"]
    remedies += [] if recomputed else ["activation checkpointing"]
    remedies += [] if precision == "bfloat16" else ["bfloat16"]
    remedies.append("more memory" if device == "cpu" else "more GPUs (gpus)")
    place = "all GPUs" if device == "balanced" else device
    raise InputError(
        f"{name} needs about {bytes_needed / 1e9:.1f} GB of memory, but {free / 1e9:.1f} GB are free on {place}; "
        f"use {', or '.join(remedies)}"
    )
