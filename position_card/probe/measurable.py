"""A model that lies in somebody's memory is measured there, and is as it was afterwards.

It may be in the middle of a training, wrapped by other libraries, and called from wherever gradients are off or
precision is lowered. What cannot be measured is refused by its name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from transformers import PretrainedConfig, PreTrainedModel

from position_card.core import devices
from position_card.core.runtime import InputError
from position_card.models import families
from position_card.probe import forward

EAGER = "eager"
HOOKS = (  # of a module, as torch keeps them
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
)
OVERRIDES = ("forward", "_compiled_call_impl")  # attributes that other libraries put before those of the class
LIBRARY = "the card reads decoders of transformers as AutoModelForCausalLM opens them"


@contextmanager
def measurable(model: nn.Module, threads: int | None = None) -> Iterator[PreTrainedModel]:
    """Yield the decoder within `model`, which can be measured until the context ends; then all is as it was.

    Attention is eager meanwhile, gradients are on, autocast is off, torch has its `threads` and rounds no product of
    float32, which oneDNN multiplies where that is faster (`devices.multiply_by_onednn`). Raises InputError for a model
    that cannot be measured.
    """
    decoder = unwrap(model)
    require_measurable(decoder)
    device = forward.device(decoder)
    with _restored_modules(decoder), exact_products(), torch.inference_mode(False), torch.enable_grad():
        if threads:
            torch.set_num_threads(threads)
        for module in decoder.modules():
            if "_compiled_call_impl" in vars(module):
                module._compiled_call_impl = None
        if "_original_forward" in vars(decoder):  # Accelerate's own calls it with autocast on
            decoder.forward = decoder._original_forward
        for config in _configurations(decoder):
            config._attn_implementation_internal = EAGER  # Falcon's own setter refuses, and its attention reads this
        families.prepare_for_measuring(decoder)
        with torch.autocast(device.type, enabled=False):
            yield decoder


def unwrap(model: Any) -> PreTrainedModel:
    """Return the decoder that libraries for training have wrapped. Raises InputError where there is none within."""
    while not isinstance(model, PreTrainedModel):
        if isinstance(model, DataParallel | DistributedDataParallel):
            model = model.module
        elif "_orig_mod" in getattr(model, "_modules", {}):  # of torch.compile
            model = model._orig_mod
        elif hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
            for adapter in model.peft_config.values():
                if adapter.is_prompt_learning:
                    raise InputError(
                        f"{type(model).__name__} puts vectors of its own before every prompt ({adapter.peft_type}), "
                        "which stand at no position of the text; measure the model without them (get_base_model)"
                    )
            model = model.get_base_model()
        else:
            raise InputError(f"a model of the class {type(model).__name__} cannot be measured; {LIBRARY}")
    return model


def require_measurable(decoder: PreTrainedModel) -> None:
    """Raise InputError where a model of `transformers` predicts no next token, or cannot be measured where it lies."""
    name = type(decoder).__name__
    if decoder.config.is_encoder_decoder:
        raise InputError(f"{name} is an encoder with a decoder; {LIBRARY}")
    if decoder.get_output_embeddings() is None:
        raise InputError(f"{name} has no head that predicts the next token; {LIBRARY}")
    if decoder.config._attn_implementation == "flex_attention":
        raise InputError(
            f"{name} computes attention by flex_attention, whose weights nobody sees and whose masks may be others; "
            'call model.set_attn_implementation("eager") before'
        )
    for weight, values in decoder.named_parameters():
        if values.is_meta:
            raise InputError(f"{name} has its weight {weight} on the meta device, without values; load it first")
        if values.is_inference():
            raise InputError(
                f"{name} has the weight {weight}, which was made in torch.inference_mode and knows no gradients; open "
                "the model outside of it"
            )
        if type(values.data).__name__ == "DTensor":
            raise InputError(f"{name} has the weight {weight} in parts on several processes; gather them first")


@contextmanager
def _restored_modules(decoder: PreTrainedModel) -> Iterator[None]:
    """Put back what measuring changes in a model and its configurations."""
    modules = list(decoder.modules())
    training = [module.training for module in modules]
    overrides = [{name: vars(module)[name] for name in OVERRIDES if name in vars(module)} for module in modules]
    hooks = [
        [(hooks_of_kind, hooks_of_kind.copy()) for hooks_of_kind in (vars(module)[name] for name in HOOKS)]
        for module in modules
    ]
    gradients = [(weight, weight.requires_grad) for weight in decoder.parameters()]
    attention = [(config, config._attn_implementation_internal) for config in _configurations(decoder)]
    try:
        yield
    finally:
        for module, before, overrides_of_module, listeners in zip(modules, training, overrides, hooks, strict=True):
            module.training = before
            for name in OVERRIDES:
                vars(module).pop(name, None)
            vars(module).update(overrides_of_module)
            for hooks_of_kind, earlier in listeners:
                hooks_of_kind.clear()
                hooks_of_kind.update(earlier)
        for weight, required in gradients:
            if weight.requires_grad != required:
                weight.requires_grad_(required)
        for config, implementation in attention:
            config._attn_implementation_internal = implementation


@contextmanager
def exact_products() -> Iterator[None]:
    """Multiply matrices as measuring does: nothing is rounded to a shorter type, and by oneDNN where that is faster.

    How they were multiplied is put back afterwards, and so is the number of threads.
    """
    threads = torch.get_num_threads()
    settings: list[Any] = [torch.backends.mkldnn.matmul, torch.backends.cuda.matmul]  # type: ignore[attr-defined]
    before = [setting.fp32_precision for setting in settings]
    try:
        for setting in settings:
            setting.fp32_precision = "ieee"
        devices.multiply_by_onednn()
        yield
    finally:
        for setting, precision in zip(settings, before, strict=True):
            setting.fp32_precision = precision
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


def _configurations(decoder: PreTrainedModel) -> list[PretrainedConfig]:
    """Return every configuration that a module of the model reads, and those inside them."""
    configurations: dict[int, PretrainedConfig] = {}
    to_visit = [config for module in decoder.modules() if (config := getattr(module, "config", None)) is not None]
    while to_visit:
        config = to_visit.pop()
        if isinstance(config, PretrainedConfig) and id(config) not in configurations:
            configurations[id(config)] = config
            to_visit += [getattr(config, name) for name in config.sub_configs]
    return list(configurations.values())
