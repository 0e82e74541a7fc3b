"""The measuring pass beside tools that others use for the same numbers: benchmarks/peers.py

It needs an environment of its own; benchmarks/requirements-peers.txt says how to make it. Every tool computes
influence, the norm of the gradient of the likeliest next token's probability at each token's embedding. Plain
transformers and nnsight also compute mean attention and lambda (Eq. 1 of structural) in the same pass, as somebody
would write it by hand. First the numbers are compared with those of the project. Then the tools take turns, and what is
printed is the CPU time of a tool over that of the project: least, median and most over rounds. The project computes
more in its time: kernels of attention, lambda of the backward pass, the loss, and the layout of the model.
"""

import os
import sys
import time
import warnings
from statistics import median

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import inseq
import numpy as np
import torch
from captum.attr import Saliency
from nnsight import NNsight
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from position_bias.language_models.measure import measure
from position_bias.running import products, runtime

LAYERS, WIDTH, HEADS, VOCABULARY = 12, 256, 8, 4096
PROMPTS, TOKENS, BATCH_TOKENS = 8, 256, 1024
ROUNDS, WITHIN = 6, 1e-4  # the largest difference, relative to the largest number


def built():
    """A Llama with random weights, as all tools get it."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=2 * TOKENS,
        initializer_range=0.08,
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config).eval().requires_grad_(False)


def batches(prompts):
    return torch.from_numpy(prompts).split(BATCH_TOKENS // TOKENS)


def together(parts):
    """The results of batches, as one of all prompts; attention is a mean of means."""
    found = {name: torch.cat([part[name] for part in parts]) for name in parts[0] if name != "attention"}
    if "attention" in parts[0]:
        found["attention"] = torch.stack([part["attention"] for part in parts]).mean(0)
    return {name: value.numpy() for name, value in found.items()}


def share(added, stream):
    """Lambda of a layer: the norm of what attention adds over the sum of that and the norm of the stream."""
    a, x = (part.detach().flatten(1).norm(dim=1) for part in (added, stream))
    return a / (x + a)


def project(model, prompts):
    found = measure(model, prompts, BATCH_TOKENS)
    return {"influence": found.influence, "attention": found.attention, "lambda": found.mixing["frobenius"]}


def plain(model, prompts):
    """transformers and hooks of torch alone."""
    return together([plain_batch(model, tokens) for tokens in batches(prompts)])


def plain_batch(model, tokens):
    attention, shares, streams = [], [], []
    handles = []
    for layer in model.model.layers:
        handles.append(layer.register_forward_pre_hook(lambda _module, args: streams.append(args[0])))

        def attend(_module, _args, out):
            shares.append(share(out[0], streams.pop()))
            attention.append(out[1].detach().mean((0, 1)))

        handles.append(layer.self_attn.register_forward_hook(attend))
    embeddings = model.get_input_embeddings()(tokens).requires_grad_()
    logits = model(inputs_embeds=embeddings, use_cache=False, logits_to_keep=1).logits
    (gradient,) = torch.autograd.grad(logits[:, -1].softmax(-1).amax(-1).sum(), embeddings)
    for handle in handles:
        handle.remove()
    return {
        "influence": gradient.norm(dim=-1),
        "attention": torch.stack(attention),
        "lambda": torch.stack(shares, 1),
    }


def of_nnsight(model, prompts):
    traced = NNsight(model)
    return together([nnsight_batch(traced, tokens) for tokens in batches(prompts)])


def nnsight_batch(traced, tokens):
    attention, shares = [], []
    with traced.trace(input_ids=tokens, use_cache=False, logits_to_keep=1):
        embeddings = traced.model.embed_tokens.output
        embeddings.requires_grad_()
        for layer in traced.model.layers:
            stream = layer.input
            added, weights = layer.self_attn.output
            shares.append(share(added, stream))
            attention.append(weights.detach().mean((0, 1)))
        likeliest = traced.lm_head.output[:, -1].softmax(-1).amax(-1).sum()
        with likeliest.backward():
            gradient = embeddings.grad.save()
        attention, shares = torch.stack(attention).save(), torch.stack(shares, 1).save()
    return {"influence": gradient.norm(dim=-1), "attention": attention, "lambda": shares}


def of_captum(model, prompts):
    def likeliest(embeddings):
        return model(inputs_embeds=embeddings, use_cache=False, logits_to_keep=1).logits[:, -1].softmax(-1).amax(-1)

    saliency, parts = Saliency(likeliest), []
    for tokens in batches(prompts):
        embeddings = model.get_input_embeddings()(tokens).requires_grad_()
        parts.append({"influence": saliency.attribute(embeddings, abs=False).detach().norm(dim=-1)})
    return together(parts)


def of_inseq(model, prompts):
    """A prompt at a time: of several, it pads them and attributes to each a token of its own."""
    found = []
    for prompt in prompts:
        with torch.no_grad():
            following = int(model(torch.from_numpy(prompt[None]), logits_to_keep=1).logits[0, -1].argmax())
        told = wrapped(model).attribute(
            spelt(prompt),
            spelt([*prompt, following]),
            attr_pos_start=len(prompt),
            attributed_fn="probability",
            show_progress=False,
            pretty_progress=False,
        )
        attributed = told.sequence_attributions[0].target_attributions[: len(prompt), 0]
        found.append({"influence": attributed.norm(dim=-1)[None]})
    return together(found)


WORDS = ["<pad>", "<eos>", "<bos>", *(f"t{token}" for token in range(3, VOCABULARY))]  # which inseq reads as text


def spelt(tokens):
    return " ".join(WORDS[token] for token in tokens)


def wrapped(model, kept={}):  # noqa: B006 (made once)
    if not kept:
        words = Tokenizer(models.WordLevel({word: token for token, word in enumerate(WORDS)}, unk_token=WORDS[0]))
        words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        special = dict(zip(("pad_token", "eos_token", "bos_token"), WORDS, strict=False))
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token=WORDS[0], **special)
        kept["model"] = inseq.load_model(model, "saliency", tokenizer=tokenizer)
    return kept["model"]


TOOLS = {"plain transformers": plain, "nnsight": of_nnsight, "captum": of_captum, "inseq": of_inseq}


def cpu_seconds(function, *arguments):
    started = time.process_time()
    function(*arguments)
    return time.process_time() - started


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    runtime.keep_freed_memory()
    print(
        f"products: {products.fastest()}; {LAYERS} layers, width {WIDTH}, {PROMPTS} x {TOKENS} tokens, {ROUNDS} rounds"
    )
    model, prompts = built(), np.random.default_rng(0).integers(3, VOCABULARY, (PROMPTS, TOKENS))
    expected = project(model, prompts)
    for name, tool in TOOLS.items():
        for quantity, value in tool(model, prompts).items():
            off = np.abs(value - expected[quantity]).max() / np.abs(expected[quantity]).max()
            print(f"{name}: {quantity} differs by {off:.1e} of its maximum", flush=True)
            if not off <= WITHIN:
                sys.exit(f"{name} computes another {quantity}")
    each = {"project": project, **TOOLS}
    rounds = [{name: cpu_seconds(tool, model, prompts) for name, tool in each.items()} for _ in range(ROUNDS)]
    print(f"project: {median(one['project'] for one in rounds):.2f} CPU s")
    for name in TOOLS:
        ratios = sorted(one[name] / one["project"] for one in rounds)
        print(f"{name}: {ratios[0]:.2f} / {median(ratios):.2f} / {ratios[-1]:.2f} of the project's time")


if __name__ == "__main__":
    main()
