"""What comes back through attention, taken apart, against the weights of a Llama and its attention."""

import numpy as np
import pytest
import torch

from position_bias.language_models import capture, families
from position_bias.language_models.directions import Directions
from position_bias.language_models.influence import prediction
from position_bias.language_models.layout import find_layout
from position_bias.language_models.measure import Asked, measure
from position_bias.language_models.terms import terms
from tools import decoders

N, HEADS, LAYERS, WIDTH, DRAWS = 7, 4, 2, 16, 400
ASKED = Directions(("signs",), DRAWS, 0, terms=True)


@pytest.fixture(scope="module")
def found():
    """The terms of a small Llama, and in each layer gradients at x + u [n, width], what each query and head gives back
    to each token through values [queries, H, n, width], streams and norms' weights."""
    size = {"layers": LAYERS, "heads": HEADS, "hidden": WIDTH, "initializer_range": 0.3}
    model = families.build("llama", size, 64, N, seed=3).eval().requires_grad_(False)
    tokens = torch.randint(3, 64, (1, N), generator=torch.Generator().manual_seed(1))
    with capture.heard(model, {}):
        parts = terms(model, find_layout(model, tokens), tokens, ASKED)
    streams, weights, pasts = [], [], []
    for layer in model.model.layers:
        layer.input_layernorm.register_forward_pre_hook(lambda _module, args: streams.append(args[0]))
        layer.self_attn.register_forward_hook(lambda _module, _args, out: weights.append(out[1][0]))
        layer.post_attention_layernorm.register_forward_pre_hook(lambda _module, args: pasts.append(args[0]))
    model.set_attn_implementation("eager")
    _, logits = prediction(model, tokens, 1)
    gradients = torch.autograd.grad(logits[:, -1].softmax(-1).amax(), [*streams, *pasts])
    entries, pasts = [[one[0] for one in part] for part in (gradients[:LAYERS], gradients[LAYERS:])]
    return model, parts, entries, pasts, weights, [stream[0].detach() for stream in streams]


def given_back(model, place, weights, stream, past):
    """What token i gives back to token j through the values of head h, [n, H, n, width]: by hand, norm included."""
    attention, norm = model.model.layers[place].self_attn, model.model.layers[place].input_layernorm
    out = attention.o_proj.weight.view(WIDTH, HEADS, -1)
    value = attention.v_proj.weight.view(HEADS, -1, WIDTH)
    at_head = torch.einsum("iw,whd->ihd", past, out)
    into_norm = torch.einsum("hij,ihd,hdv->ihjv", weights, at_head, value) * norm.weight
    rms = (stream.square().mean(-1, keepdim=True) + norm.variance_epsilon).sqrt()
    unit = stream / rms
    return (into_norm - unit * (into_norm * unit).mean(-1, keepdim=True)) / rms


def squares(vectors):
    return vectors.square().sum(-1)


@pytest.mark.parametrize("place", range(LAYERS))
def test_every_term_is_what_weights_and_attention_say(found, place):
    model, parts, entries, pasts, weights, streams = found
    entry, past = entries[place], pasts[place]
    back = given_back(model, place, weights[place], streams[place], past)
    torch.testing.assert_close(parts["past"][place], squares(past))
    torch.testing.assert_close(parts["attention"][place], squares(entry - past), rtol=1e-3, atol=1e-9)
    torch.testing.assert_close(parts["values"][place], squares(back.sum((0, 1))), rtol=1e-3, atol=1e-9)
    whole = parts["past"] + parts["across"] + parts["attention"]
    torch.testing.assert_close(whole[place], squares(entry), rtol=1e-3, atol=1e-9)
    after = entries[place + 1] if place + 1 < LAYERS else None
    if after is not None:
        torch.testing.assert_close(parts["mlp"][place], squares(past - after), rtol=1e-3, atol=1e-9)
    close = {"rtol": 0.25, "atol": 1e-7}  # means over draws
    torch.testing.assert_close(parts["queries"][place], squares(back.sum(1)).sum(0), **close)
    torch.testing.assert_close(parts["heads"][place], squares(back).sum((0, 1)), **close)
    every = torch.eye(WIDTH)
    any_direction = sum(
        squares(given_back(model, place, weights[place], streams[place], one.expand(N, -1))) for one in every
    )
    expected = (any_direction.sum(1) * squares(past)[:, None]).sum(0) / WIDTH
    torch.testing.assert_close(parts["random"][place], expected, **close)


def test_the_pass_keeps_terms_that_agree_with_its_lambda_of_gradients():
    model = decoders.small("gemma3_text")
    prompts = torch.randint(3, 64, (2, 12), generator=torch.Generator().manual_seed(1)).numpy()
    measured = measure(model, prompts, 24, asked=Asked(directions=Directions(("signs",), 2, 0, terms=True)))
    through, past = (measured.terms[name].sum(-1) ** 0.5 for name in ("attention", "past"))
    np.testing.assert_allclose(through / (through + past), measured.mixing["backward"], rtol=1e-3)
    assert "random" not in measured.terms  # a norm follows attention
    assert set(measured.terms) == {"attention", "past", "across", "mlp", "values", "queries", "heads"}
