"""Where a decoder of any architecture keeps what the measuring pass reads is found by trying, and proved before use.

Nothing is looked up by name. On one prompt, the attention modules are those that return weights; the blocks are the
list of modules that hold one each; what attention adds to the residual stream is what reproduces a block's output; and
queries, keys and rotation are those that reproduce the weights. While the model is watched, its logits and weights must
be those that it has unwatched. A model of which this fails is refused, in one line that names the part.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from position_card.core.runtime import InputError, out_of_memory, shortened
from position_card.probe import capture, residual, rotation
from position_card.probe.residual import Call, Update
from position_card.probe.rotation import QueryKey, Rotation
from position_card.rollout.attention import sliding_window_mask

EXACT = 1e-5  # relative difference, in float32, up to which two tensors count as the same
IRREGULAR = "its tokens read others than the latest; use a length at which they do not"
ROUNDINGS = 4  # and in coarser precisions, in units of their last place


@dataclass(frozen=True)
class Layer:
    """One layer: the modules that the measuring pass listens to, and how its attention reads."""

    block: nn.Module  # its first argument is the residual stream x
    attention: nn.Module  # one of its outputs is the weights [B, H, n, n]
    update: Update
    window: int | None  # how many of the latest tokens, itself included, a token reads; None: all before it
    scaling: float  # of the products of queries and keys, where these can be seen
    rotation: Rotation | None


@dataclass(frozen=True)
class Layout:
    """What was found in a model."""

    layers: tuple[Layer, ...]
    heads: int
    products: bool  # whether queries and keys can be seen, and the weights are the softmax of their products

    @property
    def rotary(self) -> bool:
        """Whether positions enter by rotation, in at least one layer."""
        return any(layer.rotation for layer in self.layers)


@torch.no_grad()
def find_layout(model: PreTrainedModel, tokens: Tensor) -> Layout:
    """Find the layout of `model` and prove it on `tokens` [1, n]; windows and rotations are those at this length.

    Raises InputError where the model is no causal decoder of layers with softmax attention, and where nothing that a
    block computes reproduces its output.
    """
    model.eval()
    received, logits = _unwatched(model, tokens)
    proof = _Proof(model, tokens.shape[1])
    with proof.watching(_blocks(model, list(received)), list(received)):
        logits_with_hooks = _logits_of_embeddings(model, tokens)
    if not is_close(logits_with_hooks, logits) and not is_close(_logits_of_embeddings(model, tokens), logits):
        raise refusal(model, "its logits are others where its embeddings are given in place of tokens")
    _require_unchanged(model, "the logits of its prediction", logits_with_hooks, logits)
    for place, unwatched in enumerate(received.values(), start=1):
        quantity = f"the attention that tokens receive in layer {place}"
        _require_unchanged(model, quantity, proof.received[place - 1], unwatched)
    if len(proof.heads) > 1:
        numbers = ", ".join(map(str, sorted(proof.heads)))
        raise refusal(model, f"its layers have different numbers of heads ({numbers})")
    return Layout(tuple(proof.layers), proof.heads.pop(), proof.products)


@contextmanager
def hooked(handles: Iterable[Any]) -> Iterator[None]:
    """Register hooks, of which these are the handles, and remove them where the context ends."""
    hooks = list(handles)
    try:
        yield
    finally:
        for handle in hooks:
            handle.remove()


def weights_of(out: Any, n: int) -> Tensor | None:
    """Return the attention weights [B, H, n, n] among the outputs of a module; None where there are none."""
    parts = out[1:] if isinstance(out, tuple) else ()
    return next((part for part in parts if isinstance(part, Tensor) and part.shape[2:] == (n, n)), None)


def first_of(out: Any) -> Any:
    """Return the first output of a module."""
    return out[0] if isinstance(out, tuple) and out else out


def stream_of(args: tuple[Any, ...], arguments: dict[str, Any]) -> Tensor:
    """Return the residual stream among the arguments of a block."""
    return args[0] if args else arguments["hidden_states"]


def _unwatched(model: PreTrainedModel, tokens: Tensor) -> tuple[dict[nn.Module, Tensor], Tensor]:
    """Run the model by itself: return the attention that tokens receive, by attention module, and the last logits.

    Attention modules are the innermost ones that return attention weights, in the order of their calls. Raises
    InputError where there are none, where one is called twice, and where logits are not finite.
    """
    received: dict[nn.Module, Tensor] = {}
    twice: list[nn.Module] = []

    def hook(module: nn.Module, _args: Any, out: Any) -> None:
        weights = weights_of(out, tokens.shape[1])
        if weights is None or not _are_shares(weights):
            return
        if module in received:
            twice.append(module)
        elif not any(inner in received for inner in module.modules()):
            received[module] = _received(weights)

    handles = (module.register_forward_hook(hook) for module in model.modules())
    with hooked(handles), _passing(model, "tokens"):
        logits = model(tokens, use_cache=False, logits_to_keep=1).logits[:, -1]
    if not received:
        raise refusal(model, "none of its modules returns weights of softmax attention")
    if twice:
        raise refusal(model, f"it calls the same attention ({type(twice[0]).__name__}) more than once in a pass")
    if not logits.isfinite().all():
        raise refusal(model, _not_finite(model))
    return received, logits


def _logits_of_embeddings(model: PreTrainedModel, tokens: Tensor) -> Tensor:
    """Return the last logits of the model where it is given the embeddings of tokens in their place."""
    embeddings = model.get_input_embeddings()(tokens)
    with _passing(model, "embeddings in place of tokens"):
        logits: Tensor = model(inputs_embeds=embeddings.clone(), use_cache=False, logits_to_keep=1).logits[:, -1]
    return logits


@contextmanager
def _passing(model: PreTrainedModel, argument: str) -> Iterator[None]:
    """Make an InputError of whatever goes wrong in a model that is given an `argument`, except for want of memory."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if out_of_memory(error):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise refusal(model, f"it fails where it is given {argument} ({shortened(reason, 200)})") from error


def _are_shares(weights: Tensor) -> bool:
    """Say whether no weight is less than 0 or more than 1; the state of linear attention may have the same shape."""
    return not ((weights < 0) | (weights > 1 + tolerance(weights.dtype))).any()


def _received(weights: Tensor) -> Tensor:
    """Return the attention that each token receives in each head, [H, n], from the weights [1, H, n, n] of a prompt."""
    return weights[0].detach().float().sum(-2)


def _require_unchanged(model: PreTrainedModel, quantity: str, value: Tensor, reference: Tensor) -> None:
    """Raise InputError where watching a model changes it beyond rounding."""
    value = value.to(reference.device)
    if not is_close(value, reference):
        place = (value.float() - reference.float()).abs().argmax()
        raise refusal(
            model,
            f"{quantity} change where its attention is watched, from {reference.flatten()[place]:.6g} to "
            f"{value.flatten()[place]:.6g}",
        )


def _blocks(model: PreTrainedModel, attentions: list[nn.Module]) -> list[nn.Module]:
    """Return the blocks, one for each of the attention modules and in their order.

    Raises InputError where no list of modules has exactly one of these in each: a hybrid, or no list of blocks at all.
    """
    for blocks in model.modules():
        if not isinstance(blocks, nn.ModuleList):
            continue
        by_block = [[attention for attention in attentions if attention in set(block.modules())] for block in blocks]
        if [attention for inner in by_block for attention in inner] != attentions:
            continue
        if without := [str(place) for place, inner in enumerate(by_block) if not inner]:
            kind = type(blocks[int(without[0])]).__name__
            raise refusal(model, f"it is a hybrid: its layers {', '.join(without)} ({kind}) have no softmax attention")
        if all(len(inner) == 1 for inner in by_block):
            return list(blocks)
    raise refusal(model, "it is no list of blocks with one attention each")


@dataclass
class _Block:
    """What is known of one block, while it runs."""

    block: nn.Module
    attention: nn.Module
    stream: Tensor  # x, float64 [n, width]
    calls: list[Call] = field(default_factory=list)
    inputs: capture.AttentionInputs | None = None
    rotation: Rotation | None = None
    rotated: QueryKey | None = None
    scaling: float = 1.0
    window: int | None = None

    def rows(self, value: Any) -> Tensor | None:
        """Return a tensor of the residual stream's size as float64 [n, width]; None for anything else."""
        width = self.stream.shape[-1]
        if not isinstance(value, Tensor) or value.numel() != self.stream.numel() or value.shape[-1] != width:
            return None
        # over several GPUs, the stream was seen where the block before had left it
        return value.detach().to(self.stream.device).double().reshape(-1, width)


class _Proof:
    """What one run of the model shows of each of its blocks."""

    def __init__(self, model: PreTrainedModel, n: int) -> None:
        self.model, self.n = model, n
        self.layers: list[Layer] = []  # the blocks that ran
        self.received: list[Tensor] = []  # `_received` of each
        self.heads: set[int] = set()
        self.products = True

    @contextmanager
    def watching(self, blocks: list[nn.Module], attentions: list[nn.Module]) -> Iterator[None]:
        """Look at every block while the context is open and the model runs once."""
        pairs = zip(blocks, attentions, strict=True)
        hooks = hooked(handle for block, attention in pairs for handle in self._hooks_of(block, attention))
        with (
            capture.listening(dict.fromkeys(attentions, self.take_inputs)),
            hooks,
            rotation.listening(attentions, self.take_rotation),
        ):
            yield

    def _hooks_of(self, block: nn.Module, attention: nn.Module) -> Iterator[Any]:
        yield block.register_forward_pre_hook(partial(self.enter_block, attention), with_kwargs=True)
        for module in block.modules():
            if module is not block:
                yield module.register_forward_hook(self.take_call, with_kwargs=True)
        yield block.register_forward_hook(self.leave_block)

    def enter_block(
        self, attention: nn.Module, block: nn.Module, args: tuple[Any, ...], arguments: dict[str, Any]
    ) -> None:
        """Begin a block with the residual stream that enters it, as rows of float64, one for each token."""
        stream = stream_of(args, arguments)
        self.running = _Block(block, attention, stream.detach().double().flatten(0, -2))

    def take_rotation(self, rotation: Rotation, before: QueryKey, after: QueryKey) -> None:
        """Keep a rotation of queries and keys, for the block that is running, where it can be undone."""
        if all(map(is_close, rotation.undo(*after), before)):
            self.running.rotation, self.running.rotated = rotation, after

    def take_inputs(self, inputs: capture.AttentionInputs) -> None:
        """Keep what attention computes with, for the block that is running."""
        self.running.inputs = inputs

    def take_call(self, module: nn.Module, args: tuple[Any, ...], arguments: dict[str, Any], out: Any) -> None:
        """Keep what a module of the running block takes and yields, and read the weights of its attention module."""
        block = self.running
        if module is block.attention:
            self._read_attention(block, out)
        first_argument = next((value for value in (*args, *arguments.values()) if isinstance(value, Tensor)), None)
        output = block.rows(first_of(out))
        if output is not None:
            block.calls.append(Call(module, block.rows(first_argument), output))

    def _read_attention(self, block: _Block, out: Any) -> None:
        """Find out which tokens attention reads, and whether the queries and keys that were seen explain weights."""
        weights = weights_of(out, self.n)
        assert weights is not None
        self.received.append(_received(weights))
        self.heads.add(weights.shape[1])
        if (largest_sum := weights.float().sum(-1).max()) > 1 + tolerance(weights.dtype):
            raise refusal(
                self.model, f"the attention weights of a token add up to {largest_sum:.4g}, and shares to 1 at most"
            )
        causal = torch.ones_like(weights[0, 0], dtype=torch.bool).tril()
        if (weights[..., ~causal] != 0).any():
            raise refusal(self.model, "it is no causal decoder: its tokens read later ones")
        if block.inputs is None:
            self.products = False
            block.window = _window((weights[0] > 0).any(0))
            return
        reference = block.inputs.logits(causal).softmax(-1)
        self.products &= bool((reference - weights.float()).abs().max() <= tolerance(weights.dtype))
        block.scaling = block.inputs.scaling
        reads = block.inputs.reads(causal)
        block.window = _window(reads)
        if not torch.equal(reads.cpu(), torch.from_numpy(sliding_window_mask(self.n, block.window or self.n))):
            raise refusal(self.model, IRREGULAR)
        if block.rotation is not None and block.rotated is not None:
            rotated_part = (part[..., : block.rotation.width] for part in (block.inputs.query, block.inputs.key))
            if not all(map(is_close, block.rotated, rotated_part)):
                block.rotation = None  # something else happens to queries and keys afterwards

    def leave_block(self, _module: nn.Module, _args: Any, out: Any) -> None:
        """End a block: find what attention adds to its stream. Raises InputError where nothing proves to be that."""
        block, output, update = self.running, first_of(out), None
        rows = block.rows(output)
        if rows is not None:
            update = residual.find_update(block.stream, rows, block.calls, block.attention, tolerance(output.dtype))
        if update is None:
            raise refusal(
                self.model,
                f"nothing that its block {len(self.layers)} ({type(block.block).__name__}) computes reproduces "
                "what it adds to the residual stream",
            )
        self.layers.append(Layer(block.block, block.attention, update, block.window, block.scaling, block.rotation))


def _not_finite(model: PreTrainedModel) -> str:
    """Say why the logits of a model are not finite, with the remedy."""
    weights = (name for name, weight in model.named_parameters() if not weight.isfinite().all())
    if name := next(weights, None):
        return f"its weight {name} has values that are not finite (NaN or infinity); use a copy without them"
    remedy = "use another copy" if model.dtype == torch.float32 else "measure it in float32 (precision: float32)"
    return f"its logits are not finite (NaN or infinity), though all of its weights are; {remedy}"


def _window(reads: Tensor) -> int | None:
    """Return how many of the latest tokens a token reads at most, with itself; None: all. `reads` [n, n] says which."""
    rows, columns = reads.nonzero(as_tuple=True)
    farthest = int((rows - columns).max()) + 1
    return farthest if farthest < len(reads) else None


def is_close(value: Tensor, reference: Tensor) -> bool:
    """Say whether two tensors differ by no more than rounding in their precision."""
    if value.shape != reference.shape:
        return False
    scale = reference.float().abs().max()
    return bool((value.float() - reference.float()).abs().max() <= tolerance(reference.dtype) * scale)


def tolerance(dtype: torch.dtype, roundings: float = ROUNDINGS) -> float:
    """Relative difference up to which tensors that were computed in this precision count as the same."""
    return max(EXACT, roundings * torch.finfo(dtype).eps)


def refusal(model: PreTrainedModel, reason: str) -> InputError:
    """Return the error that says why a model cannot be measured."""
    return InputError(f"this {model.config.model_type!r} model cannot be measured: {reason}")
