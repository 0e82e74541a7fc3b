"""Networks with random weights: a closed form by its density, and verdicts where influence is known."""

from itertools import product
from math import comb, exp, factorial, log

import numpy as np
import pytest

from position_bias.structural import initialization, untrained
from position_bias.structural.initialization import RandomNetwork
from position_card.core import artifacts
from position_card.core.artifacts import TensorFile
from position_card.models import opening
from position_card.rollout.last_row import last_row
from tests.ggufs import small
from tests.unit.structural.conftest import PREDICTED

DEVIATIONS, LAYERS, SEEDS, N, BEFORE = [0.005, 0.01, 0.08], [6, 12], 6, 33, 1
LAMBDA = 0.3


def density(place, layers, mixing):
    """The density of influence in the limit of many tokens, as summaries of arXiv 2603.10123 give it; 0 < place < 1."""
    terms = (
        comb(layers, k) * mixing**k * (1 - mixing) ** (layers - k) * log(1 / place) ** (k - 1) / factorial(k - 1)
        for k in range(1, layers + 1)
    )
    return sum(terms)


@pytest.mark.parametrize(("layers", "mixing"), [(1, 0.5), (6, 0.3), (12, 0.6)])
def test_the_closed_form_is_content_free_rollout(layers, mixing):
    n = 20_000
    rolled = last_row(n, np.full(layers, mixing), [0.0])
    for place in (0.1, 0.5, 0.9):
        assert n * rolled[int(place * n)] == pytest.approx(density(place, layers, mixing), rel=0.002)
    assert rolled[-1] == pytest.approx((1 - mixing) ** layers, rel=0.01)


def test_independent_paths_are_those_of_random_linear_layers():
    """A network that adds W M x to x in every layer, with W orthogonal and random, by matrices multiplied out."""
    rng, n, width, gains = np.random.default_rng(0), 12, 300, [0.5, 1.0, 2.0, 0.7]
    attention = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    gradient = np.zeros((n, width))  # of a random direction of the last token
    gradient[-1] = rng.normal(size=width)
    for gain in reversed(gains):
        turned = np.linalg.qr(rng.normal(size=(width, width)))[0]
        gradient = gradient + gain * attention.T @ gradient @ turned
    found = initialization.independent_paths(n, np.array(gains) / (1 + np.array(gains)))
    ratios = np.linalg.norm(gradient, axis=1) / found
    np.testing.assert_allclose(ratios, ratios.mean(), rtol=0.15)
    summed = last_row(n, np.array(gains) / (1 + np.array(gains)), [0.0])
    assert (summed / found).max() / (summed / found).min() > 2  # what does not add up in squares is another profile


def primacy(network):
    """How much influence the first word has over the middle: it falls with the deviation, and rises with depth."""
    return network.layers / network.deviation**0.1


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Influence 1 in the middle, known at both ends, and 9 at the start token, with noise that is a network's own."""
    arrays = {}
    for network in initialization.networks(DEVIATIONS, LAYERS, SEEDS):
        noise = np.exp(np.random.default_rng(network.seed).normal(0, 0.01))
        influence = np.ones((2, N))
        influence[:, 0], influence[:, BEFORE], influence[:, -1] = 9, primacy(network) * noise, 4
        influence[1] *= 1e-6  # a prompt whose prediction is less sure counts as much
        arrays[network.name] = np.hstack([influence, np.full((2, network.layers), LAMBDA)])
    labels = {"model": "some", "dataset": "prose", "n": N, "width": 64, "before": BEFORE}
    study = {"deviations": DEVIATIONS, "layers": LAYERS, "seeds": SEEDS}
    path = tmp_path_factory.mktemp("initialization") / "some.safetensors"
    artifacts.write_tensors(path, arrays, **labels, **study)
    return TensorFile(str(path))


@pytest.fixture(scope="module")
def values(file):
    return initialization.initialization_table(file)


def test_the_table_has_the_ends_of_the_text_over_its_middle(values):
    assert list(values) == list(initialization.VALUES)
    cells = values.set_index(["deviation", "layers", "seed", "statistic", "network"])["value"]
    network = RandomNetwork(0.01, 12, 3)
    noise = np.random.default_rng(3).normal(0, 0.01)
    assert cells[*network, "log first word / middle", "influence"] == pytest.approx(log(primacy(network)) + noise)
    assert cells[*network, "log last word / middle", "influence"] == pytest.approx(log(4))
    eighth = (3 + primacy(network) * exp(noise)) / 4  # of 32 tokens, four
    assert cells[*network, "log first eighth / middle", "influence"] == pytest.approx(log(eighth))
    assert cells[*network, "lambda", "frobenius"] == LAMBDA
    rolled = last_row(N, np.full(12, LAMBDA), [0.0])[BEFORE:]
    expected = log(rolled[0] / rolled[8:24].mean())
    assert cells[*network, "log first word / middle", "closed form"] == pytest.approx(expected, abs=1e-6)
    assert len(values) == len(DEVIATIONS) * len(LAYERS) * SEEDS * (3 * len(initialization.ENDS) + 1)


def test_every_prediction_on_initialization_is_judged_over_networks(values):
    judged = initialization.initialization_checks([values], PREDICTED, 0.95)
    asked = {name for name in PREDICTED if name.startswith(initialization.OCCASION)}
    assert set(judged["statistic"]) == asked
    assert len(asked) == 4
    assert set(judged["n"]) == {SEEDS}
    rows = judged.set_index(["statistic", "network", "other"])
    of_word = rows.loc[("initialization: log first word / middle", "influence", "")]
    assert len(of_word) == len(DEVIATIONS) * len(LAYERS)
    assert set(of_word["verdict"]) == {"holds"}
    assert "deviation = 0.005; layers = 6" in of_word["setting"].iloc[0]
    by_deviation = rows.loc[("initialization: log first word / middle by deviation", "0.005", "0.01")]
    np.testing.assert_allclose(by_deviation["measured"], 0.1 * log(2), atol=1e-5)  # noise is that of the seed
    by_layers = rows.loc[("initialization: log first word / middle by layers", "12", "6")]
    np.testing.assert_allclose(by_layers["measured"], log(2), atol=1e-5)
    assert set(by_layers["verdict"]) == {"holds"}


def test_a_network_is_a_copy_of_the_first_layers(tmp_path):
    source = tmp_path / "source"
    small("llama").save_pretrained(source)
    prompts = np.random.default_rng(0).integers(0, 50, (2, 12))
    network = RandomNetwork(0.3, 1, 5)
    made = untrained.parts(source, [network], prompts, 7, tmp_path / "folder", "cpu", "own")
    found = made[network.name]()
    assert found.shape == (2, 12 + 1)
    model = opening.open_untrained(source, 12, tmp_path / "folder", initializer_range=0.3, layers=1)
    assert model.config.num_hidden_layers == 1
    for row, prompt in zip(found, prompts, strict=True):
        np.testing.assert_allclose(row[:12], gradients(model, prompt), rtol=1e-4)
    weights = model.get_input_embeddings().weight
    assert weights.std().item() == pytest.approx(0.3, rel=0.05)


def gradients(model, prompt):
    """The norm of the gradient of the largest probability of the next token, by a plain pass."""
    import torch

    embeddings = model.get_input_embeddings()(torch.from_numpy(prompt[None])).detach().requires_grad_()
    most_likely = model(inputs_embeds=embeddings).logits[0, -1].softmax(-1).max()
    return torch.autograd.grad(most_likely, embeddings)[0][0].norm(dim=-1).numpy()


def test_networks_of_a_study_have_names_of_their_own():
    of_study = initialization.networks(DEVIATIONS, LAYERS, SEEDS)
    assert {tuple(network) for network in of_study} == set(product(DEVIATIONS, LAYERS, range(SEEDS)))
    assert len({network.name for network in of_study}) == len(of_study)


def test_without_a_table_every_prediction_says_that_it_was_not_tested():
    judged = initialization.initialization_checks([], PREDICTED, 0.95)
    assert set(judged["verdict"]) == {"not testable here"}
    asked = [rows for name, rows in PREDICTED.items() if name.startswith(initialization.OCCASION)]
    assert len(judged) == sum(map(len, asked))
