"""Attention of long prompts in blocks of rows, so that no matrix [n, n] of a head lies in memory.

The fused kernel of torch computes attention where it does as the model's own eager attention does. That is tried when a
module first computes a prompt of some length: on this whole prompt, in float32, and with the weights of some blocks:
the first, the last, and others between them in every module, since the own attention of all blocks would take longer
than measuring the prompt. Where the kernel does not (soft caps, learned sinks), the own eager attention runs in blocks
of rows, each of which is computed again in the backward pass. Both read the mask that the model has made.
"""

import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from position_card.probe import capture
from position_card.probe.capture import AttentionCall, AttentionInputs
from position_card.probe.precision import Measure, P, Result

LONG = 1024  # tokens of a prompt whose attention is streamed
ROWS = 128  # queries of a block
BETWEEN = 2  # blocks between the first and the last, on which a module tries how its attention is streamed
FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]  # kernels of torch that make no matrix [n, n]
KERNELS = (  # the same as operations: their time grows with the square of the tokens, and what they yield does not
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default,
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
)
ROUNDING = 1e-5  # difference, relative to the largest value, that rounding may leave between two attentions in float32

Block = tuple[slice, slice]  # rows and keys
Listener = Callable[[int, int, Tensor], None]  # told the first row of a block, its first key, and weights [B, H, r, k]


@dataclass(frozen=True)
class Computation:
    """How the attention of one module is computed at one length."""

    fused: bool  # by the kernel of torch, or by the module's own eager attention
    causal: bool  # whether all keys before a query are read, and the mask says nothing else
    window: int | None  # how many of the latest keys a query reads; None: all, or what only the mask says
    regular: bool  # whether a query reads the latest keys and no others

    def blocks(self, n: int) -> Iterator[Block]:
        """Yield rows and keys of every block of n queries: those keys that a row of the block may read."""
        for begin in range(0, n, ROWS):
            end = min(begin + ROWS, n)
            yield slice(begin, end), slice(0 if self.window is None else max(0, begin - self.window + 1), end)


def with_streaming(measure: Measure[P, Result]) -> Measure[P, Result]:
    """Have a measure, whose first argument is the model and which reads no weights, stream attention."""

    @wraps(measure)
    def measure_streaming(model: PreTrainedModel, /, *args: P.args, **keywords: P.kwargs) -> Result:
        with Streaming(model).attending():
            return measure(model, *args, **keywords)

    return measure_streaming


class Streaming:
    """The attention of a model, streamed while a context is open; what was found out about its modules is kept."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.ways: dict[tuple[nn.Module, int], Computation] = {}  # by module and length
        self._refuted: set[tuple[int, Computation]] = set()  # lengths, and ways that were seen to fail there
        self._masks: list[tuple[weakref.ref[Tensor], int | None, bool]] = []  # the latest, with what they let be read

    @contextmanager
    def attending(
        self, shortest: int | None = None, listener_of: Callable[[nn.Module], Listener | None] = lambda _module: None
    ) -> Iterator[None]:
        """Stream the attention of prompts of at least the `shortest` number of tokens (None: LONG) in the context.

        Modules that do not use the attention interface of transformers, and passes that go on from a cache, are as
        ever. `listener_of` is asked in every call of a module who is told the weights.
        """

        least = LONG if shortest is None else shortest

        def attend(call: AttentionCall) -> tuple[Tensor, Tensor | None]:
            inputs = call.inputs
            n, keys = inputs.query.shape[2], inputs.key.shape[2]
            if n < least or keys != n or inputs.mask is None or inputs.mask.shape[-2:] != (n, n):
                return call.eager(inputs)
            way, out = self.ways.get((call.module, n)), None
            if way is None:
                way, out = self._find(call)
            if not way.regular:
                return call.eager(inputs)
            if listener := listener_of(call.module):
                with torch.no_grad():
                    for rows, read in way.blocks(n):
                        listener(rows.start, read.start, weights(call, way, rows, read))
            return output(call, way) if out is None else out, None

        with capture.substituting(dict.fromkeys(self.model.modules(), attend)):
            yield

    def _find(self, call: AttentionCall) -> tuple[Computation, Tensor | None]:
        """Find the way of a module at the length of a call, and keep it; return it with what attention yields so.

        That is None where the trial has not computed it as the call asks for, with gradients or fewer bits.
        """
        as_asked = not torch.is_grad_enabled() and call.inputs.query.dtype == torch.float32
        with torch.no_grad():
            way, out = self._trial(call.in_float32(), call.inputs.mask)
        return way, out if as_asked else None

    def _trial(self, exact: AttentionCall, mask: Tensor | None) -> tuple[Computation, Tensor | None]:
        """Try the kernel on a call in float32, whose mask the model made as it is given here; return as `_find` does.

        Modules try it on different blocks. Where it fails in one of them, none uses it so at this length.
        """
        n = exact.inputs.query.shape[2]
        window, regular = self._reach(exact.inputs, mask)
        eager = Computation(fused=False, causal=False, window=window, regular=regular)
        blocks = _tried(list(eager.blocks(n)), sum(length == n for _, length in self.ways))
        for causal in (True, False) if regular else ():
            way = replace(eager, fused=True, causal=causal)
            if (causal and window is not None) or (n, way) in self._refuted:
                continue
            if (out := _output_where_right(exact, way, blocks)) is not None:
                return self.ways.setdefault((exact.module, n), way), out
            self._refuted.add((n, way))
            self.ways |= {place: eager for place, earlier in self.ways.items() if place[1] == n and earlier == way}
        return self.ways.setdefault((exact.module, n), eager), None

    def _reach(self, inputs: AttentionInputs, mask: Tensor | None) -> tuple[int | None, bool]:
        """Return the window of a mask, and whether each token reads the latest ones; layers share masks."""
        for reference, window, regular in self._masks:
            if reference() is mask:
                return window, regular
        window, regular = reach(inputs)
        assert mask is not None
        self._masks = [(weakref.ref(mask), window, regular), *self._masks[:1]]
        return window, regular


def reach(inputs: AttentionInputs) -> tuple[int | None, bool]:
    """Return how many of the latest tokens a token reads (None: all), and whether each reads these and no others.

    Where a token reads others, it may read any.
    """
    n = inputs.query.shape[2]
    count = n - int(inputs.reads_of_rows(slice(n - 1, n))[0].int().argmax())
    places = torch.arange(n, device=inputs.query.device)
    for begin in range(0, n, ROWS):
        rows = slice(begin, min(begin + ROWS, n))
        distance = places[rows, None] - places
        if not torch.equal(inputs.reads_of_rows(rows), (distance >= 0) & (distance < count)):
            return None, False
    return (count if count < n else None), True


def weights(call: AttentionCall, way: Computation, rows: slice, read: slice) -> Tensor:
    """Return the attention weights [B, H, r, k] of a block of rows, as the model rounds them."""
    part = call.inputs.block(rows, read)
    if not way.fused:
        out = call.eager(part)[1]
        assert out is not None
        return out
    query, key = part.query * part.scaling, part.key
    grouped = query.unflatten(1, (key.shape[1], -1)).flatten(2, 3)  # queries beside one another that meet the same keys
    logits = (grouped @ key.mT).view(*query.shape[:3], -1).float()
    if way.causal:  # every key before the block is read
        later = torch.ones(query.shape[2], query.shape[2], dtype=torch.bool, device=query.device).triu(1)
        logits[..., rows.start - read.start :].masked_fill_(later, -torch.inf)
    else:
        assert part.mask is not None
        logits += part.mask
    return logits.softmax(-1)


def output(call: AttentionCall, way: Computation) -> Tensor:
    """Return what attention yields, [B, n, H, d]."""
    inputs = call.inputs
    if way.fused:
        assert inputs.value is not None
        heads_per_key = inputs.query.shape[1] // inputs.key.shape[1]
        key, value = (part.repeat_interleave(heads_per_key, dim=1) for part in (inputs.key, inputs.value))
        mask = None if way.causal else inputs.mask
        with sdpa_kernel(FUSED):
            out = scaled_dot_product_attention(
                inputs.query, key, value, attn_mask=mask, is_causal=way.causal, scale=inputs.scaling
            )
        return out.transpose(1, 2)

    def compute_block(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        return call.eager(replace(inputs, query=query, key=key, value=value, mask=mask))[0]

    blocks = []
    for rows, read in way.blocks(inputs.query.shape[2]):
        part = inputs.block(rows, read)
        block = checkpoint(
            compute_block, part.query, part.key, part.value, part.mask, use_reentrant=False, preserve_rng_state=False
        )
        blocks.append(block)
    return torch.cat(blocks, 1)


def _tried(blocks: Sequence[Block], module: int) -> list[Block]:
    """Return the blocks on which the module of this number tries its attention: so few blocks are all of them."""
    if len(blocks) <= BETWEEN + 2:
        return list(blocks)
    inner = [1 + (BETWEEN * module + place) % (len(blocks) - 2) for place in range(BETWEEN)]
    return [blocks[place] for place in (0, *inner, -1)]


def _output_where_right(call: AttentionCall, way: Computation, blocks: Sequence[Block]) -> Tensor | None:
    """Return what attention yields in a way, None where it or its weights differ from the own eager attention's.

    These blocks of rows are compared.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # which say why there is no kernel for such shapes
            out = output(call, way)
        for rows, read in blocks:
            reference, reference_weights = call.eager(call.inputs.block(rows, read))
            assert reference_weights is not None
            if not (
                _is_close(out[:, rows], reference) and _is_close(weights(call, way, rows, read), reference_weights)
            ):
                return None
    except (RuntimeError, ValueError):  # the kernel takes no such shapes or masks
        return None
    return out


def _is_close(value: Tensor, reference: Tensor) -> bool:
    return value.shape == reference.shape and bool((value - reference).abs().max() <= ROUNDING * reference.abs().max())
