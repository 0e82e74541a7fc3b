"""What is measured of the packaged SmolLM2 are the numbers of a program without the library: tests/golden/."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_card.measures import recall, replacement
from position_card.measures.measure import Quantities, measure_decoder
from position_card.models import opening
from position_card.rollout.statistics import wasserstein
from position_card.rollout.variants import variants
from position_card.texts import tokens
from tests import needs
from tests.golden import smollm2

GOLDEN = Path(smollm2.__file__).with_suffix(".csv")


def numbers(model, rows, words):
    """Every number of the program, by the library."""
    found = measure_decoder(model, rows, 2 * smollm2.N, quantities=Quantities(apart=True))
    yield from (("loss", place, value) for place, value in enumerate(found.loss))
    for name, mixing in {"frobenius": "frobenius", "token": "token", "apart": "frobenius-apart"}.items():
        for layer in smollm2.LAYERS:
            yield f"lambda {name}", layer, found.mixing[mixing][:, layer].mean()
    called = {"influence": "influence"}
    called |= {"mean-attention": "rollout of mean attention", "mean-query-key": "rollout of the mean query and key"}
    made = variants(found, called, ["frobenius"])
    profiles = {one.name: one.profiles(np.full((1, len(rows)), 1 / len(rows)))[0] for one in made}
    for name, profile in profiles.items():
        yield from ((name, position, profile[position]) for position in smollm2.POSITIONS)
    for name, profile in list(profiles.items())[1:]:
        yield f"W of {name}", "", wasserstein(profile, profiles["influence"])
    for layer in smollm2.LAYERS:
        yield "mean attention of the last token to the first", layer, found.attention[layer, -1, 0]
    windows = [slice(position, position + 1) for position in smollm2.REPLACED]
    moved = replacement.responses(model, rows, windows, rows[::-1, None], [1.0], 2 * smollm2.N)
    changed = moved.total_variation[..., 0, 0]
    yield from (
        ("replacement", position, change) for position, change in zip(smollm2.REPLACED, changed.mean(0), strict=True)
    )
    context = np.array(words[: smollm2.CONTEXT + smollm2.CUE])[None]
    of_words = recall.measure_recall(model, context, np.array(words), smollm2.CUE, 128)
    for name, values in {"recall": of_words.probability[0], "recall without the cue": of_words.prior[0]}.items():
        yield from ((name, place, value) for place, value in (("first", values[0]), ("last", values[-1])))
        yield name, "mean", values.mean()
    yield "recall among the words", "mean", of_words.correct.mean()


@pytest.mark.usefixtures("one_thread")
def test_the_packaged_model_has_the_numbers_of_another_program():
    file = needs.packaged_smollm2()
    tokenizer, before = opening.open_tokenizer(file)
    assert before == []
    rows = np.array([tokens.encode(tokenizer, text).ids[: smollm2.N] for text in smollm2.TEXTS])
    words = [tokens.encode(tokenizer, f" {word}").ids[0] for word in smollm2.WORDS.split()]
    found = pd.DataFrame(numbers(opening.open_decoder(file), rows, words), columns=["quantity", "place", "value"])
    expected = pd.read_csv(GOLDEN, dtype={"place": str}, keep_default_na=False)
    assert found["quantity"].tolist() == expected["quantity"].tolist()
    assert found["place"].astype(str).tolist() == expected["place"].tolist()
    apart = expected.assign(found=found["value"], apart=(found["value"] / expected["value"] - 1).abs())
    assert apart[~(apart["apart"] < 1e-3)].to_dict("records") == []
