"""What SmolLM2 predicts of text that moves is what a program without cache and batches finds, a prompt at a time."""

import argparse
import doctest
import json
import optparse

import numpy as np
import pytest
import torch

from position_card.measures import replacement
from position_card.models import opening
from position_card.rollout.parts import eighths, words
from position_card.texts import tokens
from tests import needs

N, STEPS = 64, [0.01, 0.03, 0.1, 0.3, 1]
TEXTS = [module.__doc__ for module in (argparse, doctest, json, optparse)]


def moved(model, own, donor, window, step):
    """The distribution of the next token where a hook moves what the embedding layer gives, float64 [V]."""

    def move(layer, given, embeddings):
        embeddings = embeddings.clone()
        there = layer.weight[torch.from_numpy(donor[window])]
        embeddings[0, window] = (1 - step) * embeddings[0, window] + step * there
        return embeddings

    hook = model.get_input_embeddings().register_forward_hook(move)
    try:
        with torch.no_grad():
            return model(torch.from_numpy(own[None]), use_cache=False).logits[0, -1].double().softmax(-1)
    finally:
        hook.remove()


@pytest.mark.all("passes of SmolLM2 for every window and step take half a minute")
@pytest.mark.usefixtures("one_thread")
def test_responses_of_smollm2_are_those_of_hooks_on_its_embeddings():
    file = needs.packaged_smollm2()
    tokenizer, _ = opening.open_tokenizer(file)
    rows = np.array([tokens.encode(tokenizer, text).ids[:N] for text in TEXTS])
    model = opening.open_decoder(file, "cpu")
    windows = [words(N)[0], words(N)[2], eighths(N)[0], eighths(N)[-1]]
    donors = replacement.donors(rows, 1, 0)
    found = replacement.responses(model, rows, windows, donors, STEPS, 2 * N)
    for row, own in enumerate(rows):
        before = moved(model, own, own, slice(0, 1), 0)
        for place, window in enumerate(windows):
            for step, size in enumerate(STEPS):
                after = moved(model, own, donors[row, 0], window, size)
                change = float((after - before).abs().sum() / 2)
                assert found.total_variation[row, place, step, 0] == pytest.approx(change, abs=1e-4)
                log = float((after / before)[before.argmax()].log())
                assert found.log_probability[row, place, step, 0] == pytest.approx(log, abs=1e-4)
    assert np.median(found.total_variation[..., -1, :]) > 1e-2  # a prompt whose next token is certain hardly reacts
