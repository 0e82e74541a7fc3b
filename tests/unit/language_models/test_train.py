import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BloomConfig, BloomForCausalLM

from position_bias.language_models import train
from position_bias.language_models.train import TrainingRecipe
from position_card.core import checkpoint
from position_card.core.checkpoint import Place
from tests.interruption import Interruption
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("one_thread", "cpu_time")  # so that folders can be compared byte for byte

VOCABULARY = 31
RECIPE = TrainingRecipe(steps=12, batch=4, context=16, learning_rate=1e-2, warmup=3, weight_decay=0.1, clip=1.0)
# each token follows from the one before: a small model can learn it
TOKENS = np.array([pow(3, i, VOCABULARY) for i in range(400)], dtype=np.int32)
HELD_OUT = np.stack([TOKENS[i : i + RECIPE.context] for i in (5, 50, 77)]).astype(np.int64)


def untrained(seed=0, heads=2):
    torch.manual_seed(seed)
    return BloomForCausalLM(
        BloomConfig(vocab_size=VOCABULARY, hidden_size=16, n_layer=2, n_head=heads, attn_implementation="eager")
    )


def run(folder, model=None, recipe=RECIPE, tokens=TOKENS, checkpoint_every=4, device="cpu", **changed):
    settings = {"seed": 0, "snapshots": [0, 5], "bf16": False, "held_out": HELD_OUT}
    model = untrained() if model is None else model
    place = Place(Path(folder), checkpoint_every, device)
    return train.train(model, tokens, recipe, place, **(settings | changed))


def contents(folder):
    """All that a run leaves, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def broken_off(monkeypatch, cpu_time):
    """Steps that take a second of CPU time each; the one that is put into this set is broken off."""
    update, steps = train._update, set()

    def taking_a_second(model, optimizer, windows, recipe, step, bf16):
        if step in steps:
            raise Interruption
        cpu_time.now += 1
        return update(model, optimizer, windows, recipe, step, bf16)

    monkeypatch.setattr(train, "_update", taking_a_second)
    return steps


def break_off(folder, steps, step, **changed):
    steps.add(step)
    with pytest.raises(Interruption):
        run(folder, **changed)
    steps.clear()


# What a run leaves


def test_a_run_leaves_snapshots_and_a_checkpoint(tmp_path):
    model = untrained()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    run(tmp_path, model)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.safetensors", "step0", "step12", "step5"]
    assert {Path(name).suffix for name in contents(tmp_path)} == {".json", ".safetensors"}
    for step, expected in ((0, before), (12, model.state_dict())):
        kept = BloomForCausalLM.from_pretrained(tmp_path / f"step{step}").state_dict()
        assert all(torch.equal(kept[name], value) for name, value in expected.items())
    assert not torch.equal(before["lm_head.weight"], model.state_dict()["lm_head.weight"])


def test_the_loss_table_has_the_losses_of_the_model(tmp_path):
    table = run(tmp_path)
    assert list(table.columns) == ["step", "split", "loss"]
    assert table[table["split"] == "train"]["step"].tolist() == list(range(1, 13))
    test = table[table["split"] == "test"].set_index("step")["loss"]
    assert test.index.tolist() == [0, 5, 12]
    windows = torch.from_numpy(HELD_OUT)
    for step in (0, 5, 12):
        model = BloomForCausalLM.from_pretrained(tmp_path / f"step{step}")
        assert test[step] == pytest.approx(model(windows, labels=windows).loss.item(), rel=1e-6)
    first = torch.from_numpy(train.batch(TOKENS, RECIPE, 0, 1))
    assert table["loss"][0] == pytest.approx(untrained()(first, labels=first).loss.item(), rel=1e-6)


# Going on after an interruption


@pytest.mark.parametrize(("step", "bf16"), [(1, False), (4, False), (5, True), (6, False), (9, True), (12, False)])
def test_a_broken_run_ends_with_the_bytes_of_a_whole_one(tmp_path, broken_off, cpu_time, caplog, step, bf16):
    """They have its time, too: what was done again after a checkpoint counts once."""
    expected = run(tmp_path / "whole", bf16=bf16)
    break_off(tmp_path / "broken", broken_off, step, bf16=bf16)
    resumed_after = (step - 1) // 4 * 4
    assert checkpoint.cpu_minutes(tmp_path / "broken") * 60 == pytest.approx(resumed_after)
    caplog.set_level("INFO")
    cpu_time.restart()
    assert run(tmp_path / "broken", bf16=bf16).equals(expected)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
    assert (f"resumed after step {resumed_after}" in caplog.text) == (resumed_after > 0)
    assert "training: 12 of 12" in caplog.text


def test_an_interrupted_snapshot_is_not_taken_for_a_whole_one(tmp_path):
    def save(model, directory):
        model.save_pretrained(directory)
        if directory.name.startswith(".step5"):
            raise Interruption

    with pytest.raises(Interruption):
        run(tmp_path / "broken", save=save)
    assert sorted(path.name for path in (tmp_path / "broken").iterdir()) == ["checkpoint.safetensors", "step0"]
    run(tmp_path / "broken")
    run(tmp_path / "whole")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_a_finished_run_is_not_repeated(tmp_path, broken_off):
    expected = run(tmp_path, checkpoint_every=5)
    left = contents(tmp_path)
    broken_off.add(12)
    model = untrained()
    assert run(tmp_path, model, checkpoint_every=5).equals(expected)
    assert contents(tmp_path) == left
    kept = BloomForCausalLM.from_pretrained(tmp_path / "step12").state_dict()
    assert all(torch.equal(kept[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    "changed",
    [
        {"recipe": replace(RECIPE, learning_rate=2e-2)},
        {"seed": 1},
        {"tokens": TOKENS[1:]},
        {"held_out": HELD_OUT[:2]},
        {"snapshots": [0, 4]},
        {"bf16": True},
        {"weights": 1},
        {"heads": 4},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_checkpoint_of_another_run_is_not_resumed(tmp_path, broken_off, caplog, changed):
    break_off(tmp_path / "used", broken_off, 10)
    arguments = dict(changed)
    shape = {"seed": arguments.pop("weights", 0), "heads": arguments.pop("heads", 2)}
    run(tmp_path / "used", untrained(**shape), **arguments)
    run(tmp_path / "fresh", untrained(**shape), **arguments)
    assert contents(tmp_path / "used") == contents(tmp_path / "fresh")
    assert "starts over" in caplog.text
    assert "was written with other settings, data or versions" in caplog.text


def test_a_lost_snapshot_starts_over(tmp_path, caplog):
    run(tmp_path)
    expected = contents(tmp_path)
    shutil.rmtree(tmp_path / "step5")
    run(tmp_path)
    assert contents(tmp_path) == expected
    assert "is past step 5, whose model is gone" in caplog.text


# Divergence


def diverge(model, step, what):
    """Make the loss, or the gradient alone, of `step` a NaN."""
    calls = []

    def spoil(*args):
        calls.append(1)
        value = args[-1]
        return value * math.nan if len(calls) == step else None

    if what == "gradient":
        model.transformer.ln_f.bias.register_hook(spoil)
    else:
        model.lm_head.register_forward_hook(lambda module, _, output: spoil(output) if module.training else None)


@pytest.mark.parametrize(("what", "named"), [("loss", "loss nan"), ("gradient", "gradient norm nan")])
def test_divergence_ends_the_run_and_keeps_the_last_state(tmp_path, caplog, what, named):
    run(tmp_path / "whole")
    model = untrained()
    diverge(model, 7, what)
    with refused("step 7", named, "training.learning_rate"):
        run(tmp_path / "spoilt", model)
    assert sorted(path.name for path in (tmp_path / "spoilt").iterdir()) == ["checkpoint.safetensors", "step0", "step5"]
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
    caplog.set_level("INFO")
    run(tmp_path / "spoilt")  # the cause gone, it goes on
    assert "resumed after step 4" in caplog.text
    assert contents(tmp_path / "spoilt") == contents(tmp_path / "whole")


def test_a_model_with_an_infinite_test_loss_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(train, "evaluate", lambda *_: math.inf)
    with refused("step 0", "test loss inf"):
        run(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_text_shorter_than_a_window_is_refused(tmp_path):
    with refused("training.context = 16", "15 tokens"):
        run(tmp_path, tokens=TOKENS[:15])
    run(tmp_path, tokens=TOKENS[:16])


# One step


def test_training_learns_what_can_be_learned(tmp_path):
    recipe = replace(RECIPE, steps=150, warmup=10, batch=8)
    table = run(tmp_path, recipe=recipe, snapshots=[0], checkpoint_every=1000)
    test = table[table["split"] == "test"]["loss"].tolist()
    assert test[0] == pytest.approx(math.log(VOCABULARY), rel=0.05)
    assert test[-1] < 0.3 * test[0]


def test_learning_rate_rises_to_its_peak_and_falls_to_a_tenth():
    rates = [train.learning_rate(RECIPE, step) for step in range(1, 13)]
    assert rates[:3] == pytest.approx([1e-2 / 3, 2e-2 / 3, 1e-2])
    assert rates[-1] == pytest.approx(1e-3)
    assert rates[2:] == sorted(rates[2:], reverse=True)
    halfway = replace(RECIPE, steps=13)
    assert train.learning_rate(halfway, 8) == pytest.approx(0.55e-2)
    assert train.learning_rate(replace(RECIPE, warmup=0), 1) < 1e-2


def test_steps_have_their_learning_rate_and_clipped_gradients(tmp_path, monkeypatch):
    rates, norms = [], []
    step = torch.optim.AdamW.step

    def recorded(optimizer, *args):
        rates.append({group["lr"] for group in optimizer.param_groups})
        gradients = [parameter.grad.flatten() for group in optimizer.param_groups for parameter in group["params"]]
        norms.append(torch.cat(gradients).norm().item())
        return step(optimizer, *args)

    monkeypatch.setattr(torch.optim.AdamW, "step", recorded)
    run(tmp_path, recipe=replace(RECIPE, clip=0.01))
    assert rates == [{train.learning_rate(RECIPE, step)} for step in range(1, 13)]
    assert norms == pytest.approx([0.01] * 12, rel=1e-3)


def test_matrices_alone_decay():
    model = untrained()
    names = {parameter: name for name, parameter in model.named_parameters()}
    decay = {}
    for group in train.adamw(model, RECIPE).param_groups:
        assert group["betas"] == (0.9, 0.95)
        decay |= {names[parameter]: group["weight_decay"] for parameter in group["params"]}
    assert decay.keys() == set(names.values())
    assert {name for name, value in decay.items() if value == 0.1} == {
        name for name in decay if name.endswith("weight") and "layernorm" not in name and "ln_f" not in name
    }
    assert set(decay.values()) == {0.0, 0.1}


def test_the_batch_of_a_step_depends_on_seed_and_step_alone():
    first = train.batch(TOKENS, RECIPE, 0, 1)
    assert first.shape == (4, 16)
    assert first.dtype == np.int64
    assert np.array_equal(first, train.batch(TOKENS, RECIPE, 0, 1))
    assert not np.array_equal(first, train.batch(TOKENS, RECIPE, 0, 2))
    assert not np.array_equal(first, train.batch(TOKENS, RECIPE, 1, 1))


def test_batches_reach_every_window_of_the_text():
    ramp = np.arange(20, dtype=np.int32)
    starts = {int(start) for step in range(200) for start in train.batch(ramp, RECIPE, 0, step)[:, 0]}
    assert starts == set(range(20 - RECIPE.context + 1))
    assert all((np.diff(window) == 1).all() for window in train.batch(ramp, RECIPE, 0, 0))


def test_bf16_leaves_parameters_and_test_loss_in_float32(tmp_path):
    model = untrained()
    seen = set()
    model.lm_head.register_forward_hook(lambda module, _, output: seen.add((module.training, output.dtype)))
    run(tmp_path, model, bf16=True)
    assert seen == {(True, torch.bfloat16), (False, torch.float32)}
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
