"""Write docs/decoders.md: what the position card finds in small models of many architectures.

    PYTHONPATH=. python tools/decoders.py > docs/decoders.md

It is made of the table that tools/sweep.py writes. Here are the models, too, that tests compare with their own
attention in every quantity (tests/position_card/models/test_decoders.py): of configurations, with random weights.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from position_card.models import families
from position_card.probe.layout import Layout

LAYERS, HEADS, SHARED_HEADS, HEAD_DIM, VOCABULARY, CONTEXT, TOKENS = 3, 4, 2, 8, 64, 64, 12
WIDTH, WINDOW = HEADS * HEAD_DIM, 5
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": SHARED_HEADS,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.3,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
FALCON = {**COMMON, "bias": True, "new_decoder_architecture": False}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LONG = {  # frequencies that are set anew in every pass, and rotations that are scaled
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * (HEAD_DIM // 2),
    "long_factor": [2.0] * (HEAD_DIM // 2),
    "original_max_position_embeddings": 8,
    "factor": 8.0,
}
WINDOWED_HALF = {"head_dim": HEAD_DIM, "sliding_window": WINDOW, "query_pre_attn_scalar": HEAD_DIM}

# Name on the page, which begins with the model type of transformers -> its configuration.
SMALL: dict[str, Mapping[str, Any]] = {
    "biogpt": COMMON,
    "bloom": COMMON,
    "codegen": {**COMMON, "rotary_dim": 4},
    "cohere": COMMON,
    "cohere2": {**COMMON, "sliding_window": WINDOW},
    "ctrl": {**COMMON, "dff": 48},
    "exaone4": {**COMMON, "sliding_window": WINDOW},
    "falcon, ALiBi": {**FALCON, "alibi": True, "multi_query": False, "parallel_attn": False},
    "falcon, rotary": {**FALCON, "alibi": False, "multi_query": True, "parallel_attn": True},
    "gemma": {**COMMON, "head_dim": HEAD_DIM},
    "gemma2": {**COMMON, **WINDOWED_HALF},
    "gemma3_text": {**COMMON, **WINDOWED_HALF},
    "glm": {**COMMON, "head_dim": HEAD_DIM},
    "glm4": {**COMMON, "head_dim": HEAD_DIM},
    "gpt2": COMMON,
    "gpt_bigcode": {**COMMON, "num_key_value_heads": 1},
    "gpt_neo": {
        **COMMON,
        "num_hidden_layers": 4,
        "attention_types": [[["global", "local"], 2]],
        "window_size": WINDOW,
    },
    "gpt_neox": COMMON,
    "gpt_neox, sequential": {**COMMON, "use_parallel_residual": False},
    "gptj": {**COMMON, "rotary_dim": 4},
    "granite": {**COMMON, "residual_multiplier": 0.4, "attention_multiplier": 0.3},
    "helium": {**COMMON, "head_dim": HEAD_DIM},
    "llama": COMMON,
    "mistral": {**COMMON, "sliding_window": WINDOW},
    "mixtral": {**COMMON, "num_local_experts": 3, "sliding_window": None},
    "mpt": {**COMMON, "max_seq_len": CONTEXT},
    "nemotron": COMMON,
    "olmo": COMMON,
    "olmo2": COMMON,
    "opt": {**COMMON, "word_embed_proj_dim": WIDTH, "ffn_dim": 48, "init_std": 0.3},
    "persimmon": COMMON,
    "phi": COMMON,
    "phi3": COMMON,
    "phi3, long contexts": {**COMMON, "rope_parameters": LONG, "original_max_position_embeddings": 8},
    "qwen2": COMMON,
    "qwen3": {**COMMON, "head_dim": 12},
    "qwen3_moe": {**COMMON, **EXPERTS},
    "smollm3": {**COMMON, "no_rope_layers": [1, 0, 1]},
    "stablelm": COMMON,
    "starcoder2": {**COMMON, "sliding_window": None},
    "xglm": {**COMMON, "ffn_dim": 48, "init_std": 0.3},
}
SMALL["opt, norms after sums"] = {**SMALL["opt"], "do_layer_norm_before": False}

INTRODUCTION = """# Decoders

Of the {types:,} model types that `transformers` {version} knows, {decoders} predict the next token. A small model with
random weights was made of each of these, and a card was measured of it:

- **{measured} are measured.** Influence agrees with gradients that are taken without this project, and attention with
  the weights that the model returns itself.
- **{refused} are refused**, in one line that is in the table below.
- **{unmade} could not be made small**, for the reason in the table. What happens to them is not known.

The other {others} types are refused before anything is opened: {without} are no decoders, and {within} hold a text
decoder that `transformers` does not open by itself.

`make docs` writes this page from `tests/golden/decoders.csv`. `make test-all` makes that table anew and compares the
two; where a new version of `transformers` has changed it, run
`PYTHONPATH=. python tools/sweep.py > tests/golden/decoders.csv`. Names with a comma are further kinds of a type. Other
tests compare fifteen decoders, and in `make test-all` forty, in every quantity of a card; to add one, put its small
configuration into `SMALL` in `tools/decoders.py`.

Random weights show every part of an architecture, also those that trained models of it leave at their first values. A
model of your own is proved when you use it, on the first prompt of every length. First, it must do the same where it is
watched as where it is not. Second, what attention adds to the residual stream must reproduce the output of every
block. If either fails, the model is refused. Third, queries, keys and mask must reproduce the attention weights. Two
rollouts, *logit-by-distance* and *mean-query-key*, are computed from queries and keys. The card leaves them out if the
weights are not reproduced (the logits of Gemma 2 are capped), or if the code of the architecture gives no access to its
queries and keys.

A model directory must hold `config.json`, weights as `*.safetensors` and `tokenizer.json`, as `save_pretrained` of the
model and of its fast tokenizer write them. Refused, with one line, are encoders, models of an encoder with a decoder,
models that need code of their own, and weights that are pickled, or quantised in a form other than GGUF.

- **Update**: the module inside a block whose output is what attention adds to the residual stream.
- **Order** of attention and MLP. If they run in parallel, there is no residual mixing of the backward pass, which
  is the share of the gradient that comes back through attention.
- **Positions**: *other* means learned positions, sinusoids, or rotations that the architecture does not let us see.
- **Windows**: how many tokens each layer reads, if not all. Windows of 5 tokens are those of these small models.
- **Rollouts**: *a*, *b* and *c* are the rollouts of Herasimchyk et al. for models with ALiBi: attention only;
  residual-aware; residual-aware with content. For other models, *content-free* is uniform attention in the own windows;
  *logit-by-distance* takes the mean logit at each distance; *mean-query-key* takes the product of the mean query and
  the mean key, as rotary positions turn them for each distance. *mean-attention* takes the mean attention itself.
  These are the names in the tables of a card, too.

## Measured
"""
REFUSALS = """
## Refused, or not made

| model type | class | what |
|---|---|---|
"""
OUTCOMES = Path(__file__).parents[1] / "tests/golden/decoders.csv"  # what tools/sweep.py writes


def small(name: str) -> PreTrainedModel:
    """A small model of an architecture with random weights, biases and norms, in float32 with eager attention."""
    torch.manual_seed(3)
    config = CONFIG_MAPPING[name.partition(",")[0]](**SMALL[name])
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for key, parameter in model.named_parameters():  # fresh biases are 0 and norms 1: a wrong module would go unseen
        if key.endswith("bias"):
            parameter.normal_(0, 0.3, generator=generator)
        elif "norm" in key or "ln_" in key:
            parameter.uniform_(0.5, 1.5, generator=generator)
    return families.without_double_alibi(model)


def rollouts(model: PreTrainedModel, layout: Layout) -> list[str]:
    """Names of the rollouts that apply to a model."""
    if families.family_of(model.config):
        return ["a", "b", "c", "mean-attention"]
    kernels = ["logit-by-distance", *(["mean-query-key"] if layout.rotary else [])] if layout.products else []
    return ["content-free", *kernels, "mean-attention"]


def properties(model: PreTrainedModel, layout: Layout) -> dict[str, str]:
    """What the table says of a decoder that is measured."""
    first = layout.layers[0]
    update = next(path for path, module in first.block.named_modules() if module is first.update.module)
    factor = "" if first.update.scale == 1 else f", times {first.update.scale:.3g}"
    positions = "ALiBi" if families.family_of(model.config) else "rotary" if layout.rotary else "other"
    windows = [str(layer.window or "all") for layer in layout.layers]
    return {
        "update": f"`{update}`{factor}",
        "order": first.update.order,
        "positions": positions,
        "windows": ", ".join(windows) if len({*windows, "all"}) > 1 else "",
        "rollouts": ", ".join(rollouts(model, layout)),
    }


def page(outcomes: pd.DataFrame) -> str:
    """The page in Markdown, of the table that tools/sweep.py writes."""
    types = outcomes[~outcomes["type"].str.contains(",")]
    counts = types["outcome"].value_counts()
    no_decoder = types[types["outcome"] == "no decoder"]
    text_decoders = int(no_decoder["line"].str.startswith("whose text decoder").sum())
    lines = [
        INTRODUCTION.format(
            types=len(types),
            version=transformers.__version__,
            decoders=len(types) - len(no_decoder),
            measured=counts["measured"],
            refused=counts["refused"],
            unmade=counts["not made"],
            others=len(no_decoder),
            without=len(no_decoder) - text_decoders,
            within=text_decoders,
        ),
        "| model type | class | update | order | positions | windows | rollouts |",
        "|---|---|---|---|---|---|---|",
    ]
    columns = ["type", "class", "update", "order", "positions", "windows", "rollouts"]
    lines += [_line(row) for row in outcomes.loc[outcomes["outcome"] == "measured", columns].to_numpy()]
    lines.append(REFUSALS.rstrip("\n"))
    columns = ["type", "class", "line"]
    lines += [_line(row) for row in outcomes.loc[outcomes["outcome"] == "refused", columns].to_numpy()]
    not_made = outcomes.loc[outcomes["outcome"] == "not made", columns].to_numpy()
    lines += [_line([kind, "", f"could not be made: {reason}"]) for kind, _, reason in not_made]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    """A line of a table; in what a message says, signs of Markdown are escaped, and code is left as it is."""
    texts = (cell if "`" in cell else re.sub(r"([|<>*_])", r"\\\1", cell) for cell in cells)
    return f"| {' | '.join(texts)} |"


if __name__ == "__main__":
    print(page(pd.read_csv(OUTCOMES, keep_default_na=False)), end="")
