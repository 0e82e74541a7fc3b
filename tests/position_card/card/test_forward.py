"""What a card says of lambda is what a forward pass in NumPy, in float64, computes."""

import numpy as np

from position_card import measure
from position_card.texts.prompts import draw_prompts
from tests.position_card.card.conftest import llama

LENGTHS, PROMPTS = (12, 24), 10


def normalised(x, weights):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * weights


def rotated(x):
    """Entries of the two halves of a head [n, heads, size] as one complex number, turned by position and frequency."""
    first, second = np.split(x, 2, axis=-1)
    frequencies = 10000.0 ** (-np.arange(first.shape[-1]) / first.shape[-1])
    turned = (first + 1j * second) * np.exp(1j * np.arange(len(x))[:, None, None] * frequencies)
    return np.concatenate([turned.real, turned.imag], -1)


def forward(model, prompt):
    """In each layer lambda of Eq. 1, attention's share of the residual stream."""
    of = {name: array.double().numpy() for name, array in model.state_dict().items()}
    x, n, heads, lambdas = of["model.embed_tokens.weight"][prompt], len(prompt), model.config.num_attention_heads, []
    for layer in range(model.config.num_hidden_layers):

        def weight(name, layer=layer):
            return of[f"model.layers.{layer}.{name}.weight"]

        inner = normalised(x, weight("input_layernorm"))
        queries, keys, values = ((inner @ weight(f"self_attn.{name}_proj").T).reshape(n, heads, -1) for name in "qkv")
        scores = np.einsum("ihd,jhd->hij", rotated(queries), rotated(keys)) / np.sqrt(queries.shape[-1])
        attention = np.exp(scores) * np.tri(n)
        attention /= attention.sum(-1, keepdims=True)
        update = np.einsum("hij,jhd->ihd", attention, values).reshape(n, -1) @ weight("self_attn.o_proj").T
        lambdas.append(np.linalg.norm(update) / (np.linalg.norm(x) + np.linalg.norm(update)))
        x = x + update
        inner = normalised(x, weight("post_attention_layernorm"))
        gate = inner @ weight("mlp.gate_proj").T
        x = x + (gate / (1 + np.exp(-gate)) * (inner @ weight("mlp.up_proj").T)) @ weight("mlp.down_proj").T
    return lambdas


def test_lambda_of_a_card_is_that_of_a_forward_pass_in_numpy(own_tokenizer, prose):
    model = llama().eval()
    found = measure(model, own_tokenizer, prose, lengths=LENGTHS, prompts=PROMPTS, threads=1, replicates=30, replace=0)
    prompts = draw_prompts(prose, own_tokenizer, [], LENGTHS, PROMPTS, sample_seed=0)
    layers = found.tables["layers"]
    for n in LENGTHS:
        expected = np.mean([forward(model, prompt) for prompt in prompts[n].tokens], axis=0)
        rows = layers[(layers["n"] == n) & (layers["estimator"] == "frobenius")]
        np.testing.assert_allclose(rows["value"], expected, rtol=1e-5)
        assert (rows["low"] < rows["value"]).all()
