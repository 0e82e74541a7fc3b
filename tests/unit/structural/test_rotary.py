"""What kernels say of rotary decoders: made-up measurements whose answers are known, and the checks on their tables."""

import numpy as np
import pandas as pd
import pytest

from position_bias.language_models import families
from position_bias.language_models.measure import measure
from position_bias.rollout import measurement
from position_bias.rollout.kernels import kernel_attention, kernel_last_rows
from position_bias.rollout.measurement import Measurement
from position_bias.statistics import wasserstein
from position_bias.structural import checks_rotary, rotary
from tests.unit.structural.conftest import PREDICTED

N, LAYERS, HEADS = 12, 3, 2


def decoder(predicted=1.0, mixing=0.3, influence=None, windows=(None, 5, None)):
    """Attention is that of steep kernels; the kernel of mean query and key has `predicted` times their slope."""
    toeplitz = -np.linspace(0.2, 0.7, LAYERS * HEADS).reshape(LAYERS, HEADS, 1) * np.arange(N)
    lambdas = np.full((4, LAYERS), mixing)
    kernels = {"toeplitz": toeplitz, "rotary": predicted * toeplitz}
    attention = np.stack([kernel_attention(kernel, window) for kernel, window in zip(toeplitz, windows, strict=True)])
    if influence is None:
        influence = kernel_last_rows(toeplitz, windows, [lambdas[0]])[0]
    return Measurement(
        documents=np.arange(4),
        mixing={"frobenius": lambdas, "backward": lambdas / 2},
        influence=np.tile(influence, (4, 1)) * 7,
        loss=np.ones(4),
        by_distance=np.zeros((LAYERS, N)),
        attention=attention,
        kernels=kernels,
        windows=windows,
    )


def value(table, **labels):
    chosen = table[(table[list(labels)] == pd.Series(labels)).all(axis=1)]
    assert len(chosen)
    return chosen["value"].mean()


def test_a_decoder_that_is_its_kernel_is_described_without_error():
    table = rotary.described(decoder())
    assert list(table.columns) == list(rotary.COLUMNS)
    assert not table.duplicated(["quantity", "kernel", "mixing", "layer"]).any()
    assert value(table, quantity=rotary.R_SQUARED) == pytest.approx(1)
    assert value(table, quantity=rotary.ROWS, kernel="rotary") == pytest.approx(0, abs=1e-12)
    for kernel in ("rotary", "toeplitz", "measured"):
        exact = value(table, quantity=rotary.DISTANCE, kernel=kernel, mixing="frobenius")
        assert exact == pytest.approx(0, abs=1e-12)
        assert value(table, quantity=rotary.DISTANCE, kernel=kernel, mixing="backward") > 0.01


def test_a_kernel_that_misses_explains_less_and_has_other_rows():
    table = rotary.described(decoder(predicted=0.5))
    fitted = decoder().kernels["toeplitz"][0, :, 1:]
    pairs = np.arange(N - 1, 0, -1)  # of tokens at each distance
    spread = ((fitted - (fitted @ pairs / pairs.sum())[:, None]) ** 2) @ pairs
    missed = fitted / 2
    left = ((missed - (missed @ pairs / pairs.sum())[:, None]) ** 2) @ pairs
    assert value(table, quantity=rotary.R_SQUARED, layer=1) == pytest.approx((1 - left / spread).mean())
    apart = [value(table, quantity=rotary.ROWS, kernel=kernel) for kernel in ("toeplitz", "rotary", "content-free")]
    assert apart == sorted(apart)
    assert apart[0] == pytest.approx(0, abs=1e-12)


def test_nulls_know_nothing_of_the_model():
    influence = np.arange(1.0, N + 1)
    table = rotary.described(decoder(influence=influence))
    shares = influence / influence.sum()
    for kernel, profile in (("uniform", np.full(N, 1 / N)), ("last", np.eye(N)[-1])):
        distance = value(table, quantity=rotary.DISTANCE, kernel=kernel)
        assert distance == pytest.approx(float(wasserstein(profile, shares)))


def test_a_real_llama_is_described_from_its_file(tmp_path):
    architecture = {"layers": 2, "heads": 2, "hidden": 16, "initializer_range": 0.1}
    model = families.build("llama", architecture, vocabulary=64, context=32, seed=0)
    prompts = np.random.default_rng(0).integers(0, 64, (4, 32))
    measurement.write(tmp_path / "n32.safetensors", measure(model, prompts, 64))
    table = rotary.of_checkpoint(tmp_path / "n32.safetensors", "llama", "seed1/step300")
    assert np.isfinite(table["value"]).all()
    assert set(zip(table["seed"], table["step"], strict=True)) == {(1, 300)}
    assert table["kernel"].nunique() == 6


# Checks


def evidence(seeds=3, step=1000, **changed):
    tables = []
    for seed in range(seeds):
        found = rotary.described(decoder(**{"predicted": 0.9 + seed / 100, **changed}))
        tables.append(found.assign(model="llama", seed=seed, step=step, scale="longer"))
    return pd.concat(tables)


def verdicts(tables):
    found = checks_rotary.checks(tables, PREDICTED, 0.95)
    return found.groupby("claim")["verdict"].agg(lambda of_claim: set(of_claim)).to_dict()


def test_statistics_are_means_over_layers_by_seed():
    rows = [
        *((seed, rotary.R_SQUARED, "rotary", "none", layer, value) for seed, layer, value in (
            (0, 1, 0.2), (0, 2, 0.6), (1, 1, 1.0), (1, 2, np.nan), (2, 1, np.nan)
        )),
        *((0, rotary.ROWS, kernel, "none", layer, value) for kernel, layer, value in (
            ("content-free", 1, 5), ("content-free", 2, 7), ("rotary", 1, 3), ("toeplitz", 1, 9)
        )),
        *((seed, rotary.DISTANCE, kernel, mixing, 0, value) for seed, kernel, mixing, value in (
            (0, "rotary", "frobenius", 1), (0, "rotary", "half", 4), (0, "rotary", "backward", 9),
            (0, "content-free", "frobenius", 2), (0, "measured", "frobenius", 3), (1, "measured", "frobenius", 8),
        )),
    ]  # fmt: skip
    described = pd.DataFrame(rows, columns=["seed", "quantity", "kernel", "mixing", "layer", "value"])
    agreement, apart, distance, by_lambda = checks_rotary.statistics(described, {"model": "llama"}, "llama", True)
    assert agreement.table["rotary"].to_list() == pytest.approx([0.4, 1.0, np.nan], nan_ok=True)
    assert apart.table.loc[0].to_dict() == {"content-free": 6, "rotary": 3}
    assert distance.table.loc[0].to_dict() == {"content-free": 2, "rotary": 1, "measured": 3}
    assert distance.table.loc[1].dropna().to_dict() == {"measured": 8}
    assert by_lambda.table.loc[0].to_dict() == {"frobenius": 1, "half": 4}


def test_claims_hold_for_decoders_that_are_nearly_their_kernel_and_fail_for_others():
    names = ("kernel", "rows", "null", "influence")
    nearly, opposite = (verdicts([table]) for table in (evidence(), evidence(predicted=-1.0)))
    # here the kernel is all that there is to influence
    assert [nearly[f"structural-rotary-{name}"] for name in names] == [{"holds"}, {"holds"}, {"holds"}, {"fails"}]
    assert [opposite[f"structural-rotary-{name}"] for name in names[:2]] == [{"fails"}, {"fails"}]
    half = kernel_last_rows(decoder().kernels["toeplitz"], (None, 5, None), [[0.5] * LAYERS])[0]
    assert verdicts([evidence(influence=half, mixing=0.05)])["structural-rotary-null"] == {"fails"}


def test_earlier_steps_speak_of_no_claim_and_a_seed_that_diverged_is_left_out():
    tables = pd.concat([evidence(step=300), evidence()])
    tables.loc[tables["seed"] == 1, "value"] = np.nan
    found = checks_rotary.checks([tables], PREDICTED, 0.95)
    assert set(zip(found["n"], found["left_out"], strict=True)) == {(2, 1)}
    assert set(found["setting"]) == {"model = llama; step = 300", "model = llama; step = 1000"}
    assert ((found["claim"] != "") == found["quantity"].str.endswith("; llama after 1000 steps")).all()
    assert set(found["scale"]) == {"longer"}


def test_without_evidence_no_claim_can_be_tested():
    found = checks_rotary.checks([], PREDICTED, 0.95)
    assert set(found["verdict"]) == {"not testable here"}
    assert set(found["claim"]) == set(verdicts([evidence()]))
    assert found["quantity"].str.endswith("; no rotary decoder was trained").all()
