"""Small models of many architectures: what is measured of each, against its own attention and residual stream.

None of the references uses the hooks or the layout of the library: attention weights and hidden states are those that
the model itself returns, and gradients come from autograd.
"""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from position_card.measures import recall
from position_card.measures.measure import LOSS_TOKENS, measure_decoder
from position_card.models import families
from position_card.probe.layout import find_layout
from position_card.probe.precision import float32_arithmetic
from position_card.rollout.measurement import BACKWARD
from tools import decoders

N, PROMPTS = decoders.TOKENS, 3
NORMS_AFTER_SUMS = "opt, norms after sums"


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def prompts():
    return np.random.default_rng(1).integers(3, decoders.VOCABULARY, (PROMPTS, N))


COVERING = (  # ALiBi in three forms, rotary positions of all kinds, windows, parallel blocks, experts, norms anywhere
    "bloom", "falcon, ALiBi", "falcon, rotary", "mpt", "gpt2", "gpt_neo", "gpt_neox", "gptj", "gemma2", "cohere2",
    "llama", "phi3, long contexts", "qwen3_moe", "smollm3", NORMS_AFTER_SUMS,
)  # fmt: skip
OTHERS = pytest.mark.all("fifteen decoders stand for the kinds of attention, positions and norms of the others")
CASES = [pytest.param(name, marks=[] if name in COVERING else OTHERS) for name in decoders.SMALL]


@pytest.fixture(scope="module", params=CASES)
def case(request, prompts, one_thread):
    """A model, what is measured of it, and what it returns of itself."""
    model = decoders.small(request.param)
    with torch.no_grad():
        own = model(torch.from_numpy(prompts), output_attentions=True, output_hidden_states=True, use_cache=False)
    return SimpleNamespace(
        name=request.param,
        model=model,
        blocks=blocks_of(model),
        attentions=torch.stack(own.attentions).double().numpy(),  # [L, N, H, n, n]
        streams=[stream.double().numpy() for stream in own.hidden_states],
        measured=measure_decoder(model, prompts, 2 * N),
    )


def blocks_of(model):
    paths = ("model.layers", "transformer.h", "transformer.blocks", "gpt_neox.layers", "biogpt.layers")
    for path in (*paths, "model.decoder.layers"):
        try:
            return list(model.get_submodule(path))
        except AttributeError:
            continue
    raise AssertionError(f"where are the blocks of {type(model).__name__}?")


def test_recall_is_that_of_whole_passes(case):
    """Whatever the model keeps of a context, or cannot keep."""
    words = np.arange(3, decoders.VOCABULARY)
    contexts = recall.random_contexts(words, N, 1, 2, 0)
    found = recall.measure_recall(case.model, contexts, words, 2, 4 * N)
    context = contexts[0, :-2]
    cues = torch.from_numpy(np.stack([[*context, *context[place : place + 2]] for place in range(N - 2)]))
    with torch.no_grad():
        whole = case.model(cues, use_cache=False).logits[:, -1].double().softmax(-1).numpy()
    np.testing.assert_allclose(found.probability[0], whole[np.arange(N - 2), context[2:]], atol=2e-6)


def test_coarse_weights_compute_in_float32_as_their_copy_does(case, prompts):
    coarse = copy.deepcopy(case.model).bfloat16()
    with torch.no_grad():
        expected = copy.deepcopy(coarse).float()(torch.from_numpy(prompts), use_cache=False).logits
        with float32_arithmetic(coarse):
            found = coarse(torch.from_numpy(prompts), use_cache=False).logits
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


def test_attention_is_the_models_by_position_and_by_distance(case):
    mean = case.attentions.mean((1, 2))
    np.testing.assert_allclose(case.measured.attention, mean, atol=2e-6)
    expected = [[layer.diagonal(-k).mean() for k in range(N)] for layer in mean]
    np.testing.assert_allclose(case.measured.by_distance, expected, atol=2e-6)


def test_windows_are_those_that_the_attention_of_the_model_shows(case):
    for window, layer in zip(case.measured.windows, case.attentions, strict=True):
        read = (layer > 0).any((0, 1))
        np.testing.assert_array_equal(read, np.tri(N) - np.tri(N, k=-(window or N)) > 0)


def silenced(case):
    """The same model with the output of every MLP at 0, so that a block adds what its attention adds."""
    handles = []
    for block in blocks_of(case.model):
        inner = {"bloom": "mlp.dense_4h_to_h", "mpt": "ffn.down_proj"}.get(case.model.config.model_type)
        others = [block.get_submodule(inner)] if inner else [part for part in block.children() if is_mlp(part)]
        assert others
        handles += [part.register_forward_hook(lambda _module, _args, out: 0 * first(out)) for part in others]
    return handles


def is_mlp(part):
    name = type(part).__name__
    return not any(word in name for word in ("Attention", "Attn", "Norm", "Dropout"))


def first(out):
    return out[0] if isinstance(out, tuple) else out


def test_lambda_is_that_of_differences_of_the_residual_stream(case, prompts):
    if case.name == NORMS_AFTER_SUMS:
        updates = updates_by_hand(case)
    else:
        handles = silenced(case)
        with torch.no_grad():
            own = case.model(torch.from_numpy(prompts), output_hidden_states=True, use_cache=False)
        case = SimpleNamespace(
            streams=[stream.double().numpy() for stream in own.hidden_states],
            measured=measure_decoder(case.model, prompts, 2 * N),
        )
        for handle in handles:
            handle.remove()
        updates = [after - before for before, after in zip(case.streams[:-2], case.streams[1:-1], strict=True)]
    for layer, update in enumerate(updates):  # the last stream that a model returns has passed a norm
        x, a = np.linalg.norm(case.streams[layer], axis=-1), np.linalg.norm(update, axis=-1)
        whole_x, whole_a = np.linalg.norm(x, axis=-1), np.linalg.norm(a, axis=-1)
        np.testing.assert_allclose(case.measured.mixing["token"][:, layer], (a / (x + a)).mean(-1), rtol=1e-4)
        np.testing.assert_allclose(
            case.measured.mixing["frobenius"][:, layer], whole_a / (whole_x + whole_a), rtol=1e-4
        )


def updates_by_hand(case):
    for weights, stream, block in zip(case.attentions, case.streams, case.blocks, strict=False):
        attention = block.self_attn
        value = attention.v_proj(torch.from_numpy(stream).float()).unflatten(-1, (decoders.HEADS, -1)).transpose(1, 2)
        read = (torch.from_numpy(weights).float() @ value).transpose(1, 2).flatten(2)
        yield attention.out_proj(read).double().numpy()


def likeliest(model, prompts):
    """Embeddings, and the probability of the likeliest next token, summed over prompts."""
    embeddings = model.get_input_embeddings()(torch.from_numpy(prompts)).requires_grad_()
    return embeddings, model(inputs_embeds=embeddings.clone(), use_cache=False).logits[:, -1].softmax(-1).amax(-1).sum()


def test_influence_is_the_gradient_of_the_likeliest_token(case, prompts):
    embeddings, probability = likeliest(case.model, prompts)
    (gradient,) = torch.autograd.grad(probability, embeddings)
    np.testing.assert_allclose(case.measured.influence, gradient.norm(dim=-1).numpy(), rtol=1e-4, atol=1e-7)


def test_the_loss_is_that_of_the_last_tokens_after_the_others(case, prompts):
    with torch.no_grad():
        said = case.model(torch.from_numpy(prompts), use_cache=False).logits.double().log_softmax(-1).numpy()
    rows, last = np.arange(len(prompts))[:, None], np.arange(N - LOSS_TOKENS, N)
    expected = -said[rows, last - 1, prompts[:, last]].mean(-1)
    np.testing.assert_allclose(case.measured.loss, expected, rtol=1e-4)


def gradients_at_blocks(case, prompts, cut=None):
    """Gradients of the likeliest token at the input of every block; the attention of block `cut` passes none on."""
    streams = []
    handles = [
        block.register_forward_pre_hook(
            lambda _module, args, named: streams.append(args[0] if args else named["hidden_states"]), with_kwargs=True
        )
        for block in case.blocks
    ]
    if cut is not None:
        inner = [part for path, part in case.blocks[cut].named_modules() if path.endswith(QUERIES)]
        handles += [part.register_forward_hook(lambda _module, _args, out: out.detach()) for part in inner]
    _, probability = likeliest(case.model, prompts)
    found = torch.autograd.grad(probability, streams)
    for handle in handles:
        handle.remove()
    return [gradient.double() for gradient in found]


# All projections through which attention reads the stream: where none passes a gradient on, attention does not.
QUERIES = ("q_proj", "k_proj", "v_proj", "qkv_proj", "query_key_value", "c_attn", "Wqkv", "Wq", "Wk", "Wv")


def test_backward_lambda_is_the_share_of_gradients_by_attention(case, prompts):
    if BACKWARD not in case.measured.mixing:
        assert find_layout(case.model, torch.from_numpy(prompts[:1])).layers[0].update.order == "parallel"
        return
    whole = gradients_at_blocks(case, prompts)
    for layer in range(len(case.blocks)):
        past = gradients_at_blocks(case, prompts, cut=layer)[layer].flatten(1)
        through = (whole[layer].flatten(1) - past).norm(dim=-1)
        expected = through / (past.norm(dim=-1) + through)
        np.testing.assert_allclose(case.measured.mixing[BACKWARD][:, layer], expected.numpy(), rtol=1e-3)


def fitted(logits, window):
    """Least squares l_ij = r_i + g(i - j) of logits [n, n] over the pairs that are read; g(0) = 0."""
    rows, columns = np.nonzero(np.tri(N) - np.tri(N, k=-window))
    design = np.zeros((len(rows), N + window))
    design[np.arange(len(rows)), rows] = 1
    design[np.arange(len(rows)), N + rows - columns] = 1
    kernel = np.linalg.lstsq(design, logits[rows, columns], rcond=None)[0][N:]
    return np.pad(kernel - kernel[0], (0, N - window))


def test_the_toeplitz_kernel_is_the_fit_to_logarithms_of_weights(case):
    """What a row adds to its logits is lost in the weights, and the fit does not see it."""
    if "toeplitz" not in case.measured.kernels:
        others = {"bloom", "mpt", "falcon", "codegen", "gptj", "gpt_neo", "xglm", "gemma2"}
        assert case.model.config.model_type in others
        return
    for layer, window in enumerate(case.measured.windows):
        read = case.attentions[layer] > 0
        logits = np.log(case.attentions[layer], out=np.zeros_like(case.attentions[layer]), where=read).mean(0)
        expected = [fitted(of_head, window or N) for of_head in logits]
        np.testing.assert_allclose(case.measured.kernels["toeplitz"][layer], expected, atol=2e-4)


def test_of_one_token_repeated_the_rotary_kernel_is_all(case):
    """All queries are the mean query then, before they are turned, in every layer."""
    if "rotary" not in case.measured.kernels:
        return
    prompts = np.full((1, N), 7)
    measured = measure_decoder(case.model, prompts, N)
    with torch.no_grad():
        weights = case.model(torch.from_numpy(prompts), output_attentions=True, use_cache=False).attentions
    for layer, window in enumerate(measured.windows):
        last = weights[layer][0, :, -1].flip(-1).double().numpy()  # by distance
        reach = window or N
        expected = np.log(last[:, :reach] / last[:, :1])
        for name in ("rotary", "toeplitz"):
            np.testing.assert_allclose(measured.kernels[name][layer][:, :reach], expected, atol=5e-4)


def test_models_with_alibi_have_slopes_and_others_have_kernels(case):
    with_alibi = case.name in ("bloom", "mpt", "falcon, ALiBi")
    assert (families.family_of(case.model.config) is not None) == with_alibi
    assert (case.measured.slopes is not None) == (case.measured.diagonal is not None) == with_alibi
    assert bool(case.measured.kernels) <= (not with_alibi)
