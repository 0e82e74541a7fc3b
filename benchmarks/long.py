"""Long prompts and larger models: the measuring pass beside a plain loop of transformers: benchmarks/long.py

One prompt, in random weights of two shapes. The plain loop does by hand what most people would: gradients at the
embeddings, attention weights that the model returns, and hooks on what attention adds. It keeps the attention of all
layers, and it proves nothing, whereas measuring finds the layout on this prompt and proves it. Every case has a process
of its own, one thread, and prints CPU seconds (without opening the model), its peak of memory and, beside the first
case of the same shape and length, ratios. `benchmarks/long.py 135M 1024 streamed` is one case.
"""

import os
import resource
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from position_card.core import provenance, runtime
from position_card.measures.measure import Quantities, measure_decoder
from position_card.models import families

SMOLLM2 = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "vocab_size": 49_152}
LLAMA = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "vocab_size": 128_256}
SHAPES = {
    "135M": SMOLLM2 | {"num_attention_heads": 9, "num_key_value_heads": 3},
    "1B": LLAMA | {"num_attention_heads": 32, "num_key_value_heads": 8},
}
CASES = (
    ("135M", 1024, "plain"), ("135M", 1024, "whole"), ("135M", 1024, "streamed"),
    ("135M", 8192, "streamed"),
    ("1B", 256, "plain"), ("1B", 256, "whole"),
    ("1B", 1024, "plain"), ("1B", 1024, "whole"), ("1B", 1024, "streamed"),
)  # fmt: skip


def opened(shape):
    """A model of a shape with random weights, prepared as every model that is measured."""
    config = LlamaConfig(**SHAPES[shape], max_position_embeddings=8192, tie_word_embeddings=True)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().requires_grad_(False)
    return families.prepare_for_measuring(model)


def measure_by_hand(model, prompts):
    """Influence, mean attention by distance, and lambda of every layer, without the library."""
    updates = []
    handles = [
        layer.self_attn.register_forward_hook(lambda _module, _args, out: updates.append(out[0].norm(dim=-1)))
        for layer in model.model.layers
    ]
    embeddings = model.get_input_embeddings()(torch.from_numpy(prompts)).detach().requires_grad_()
    out = model(inputs_embeds=embeddings * 1, use_cache=False, output_attentions=True, output_hidden_states=True)
    (gradient,) = torch.autograd.grad(out.logits[:, -1].softmax(-1).amax(-1).sum(), embeddings)
    influence = gradient.norm(dim=-1)
    with torch.no_grad():
        mean = [weights.mean((0, 1)) for weights in out.attentions]
        by_distance = [[layer.diagonal(-k).mean() for k in range(len(layer))] for layer in mean]
        norms = [stream.norm(dim=-1) for stream in out.hidden_states[:-1]]
        mixing = [(a / (x + a)).mean(-1) for x, a in zip(norms, updates, strict=True)]
    for handle in handles:
        handle.remove()
    return influence, by_distance, mixing


def run_case(shape, n, how):
    """Print CPU seconds, and the peak of memory in GB, of one case in this process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    runtime.keep_freed_memory()
    model = opened(shape)
    prompts = np.random.default_rng(0).integers(0, SHAPES[shape]["vocab_size"], (1, n))
    started = time.process_time()
    if how == "plain":
        measure_by_hand(model, prompts)
    else:
        measure_decoder(model, prompts, n, quantities=Quantities(streamed_from=n if how == "streamed" else n + 1))
    print(time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def main():
    """Run every case, and print a table."""
    print(f"one prompt, one thread of {provenance.processor()}")
    print()
    print(f"{'shape':5} {'tokens':>6} {'how':8} {'CPU s':>8} {'GB':>6} {'time':>6} {'memory':>7}")
    first = {}
    for shape, n, how in CASES:
        command = [sys.executable, __file__, shape, str(n), how]
        out = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        seconds, memory = map(float, out.split())
        alone = first.setdefault((shape, n), (seconds, memory))
        ratios = f"{seconds / alone[0]:6.2f} {memory / alone[1]:7.2f}"
        print(f"{shape:5} {n:6} {how:8} {seconds:8.1f} {memory:6.2f} {ratios}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        run_case(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main()
