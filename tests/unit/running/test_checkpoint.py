import os
import time

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import save_file

from position_bias.running import checkpoint, runtime, sealed
from position_bias.running.checkpoint import State
from tests.unit.conftest import Interruption

TENSORS = {
    "parameter/w": torch.arange(6.0).view(2, 3) / 7,
    "step/w": torch.tensor(3.0),
    "count": torch.tensor([2**40, -1]),
    "flag": torch.tensor([True, False]),
    "half": torch.tensor([0.1, -2.5], dtype=torch.float16),
}
FACTS = {"losses": {"train": {"1": 0.1 + 0.2}}, "word": "größer"}


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "folder" / "checkpoint.safetensors"
    checkpoint.write(path, "mine", State(5, FACTS, TENSORS, 0.1 + 0.2))
    return path


def left_by_a_kill(path):
    """What lies beside a file while a process writes it that is no more."""
    return path.with_name(runtime._own_path(path).name.replace(f"-{os.getpid()}-", "-9999999-"))


# One file


def test_what_was_written_is_read_bit_for_bit(written):
    state = checkpoint.read(written, "mine")
    assert state.step == 5
    assert state.facts == FACTS
    assert state.cpu_seconds == 0.1 + 0.2
    assert state.tensors.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        assert state.tensors[name].dtype == value.dtype
        assert torch.equal(state.tensors[name], value)
    before = written.read_bytes()
    checkpoint.write(written, "mine", State(5, FACTS, TENSORS, 0.1 + 0.2))
    assert written.read_bytes() == before


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: checkpoint.write(path, "yours", State(5, FACTS, TENSORS)), "was written with other settings, da"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "cannot be read ("),
        (lambda path: save_file(TENSORS, path, {"training": "of before"}), "has no labels that this workflow"),
        (lambda path: sealed.write(path, {}, {"model": "bloom"}), "was written with other settings"),
    ],
    ids=["another run", "cut", "earlier version", "no checkpoint"],
)
def test_a_checkpoint_of_no_use_is_reported_in_one_line_and_the_run_starts_over(written, caplog, spoil, said):
    assert checkpoint.resumed(written.with_name("none.safetensors"), "mine", "training") is None
    assert caplog.text == ""
    spoil(written)
    assert checkpoint.resumed(written, "mine", "training") is None
    (record,) = caplog.records
    assert record.getMessage().startswith(f"training: starts over, since {written} {said}")
    assert "\n" not in record.getMessage()


def test_an_interrupted_writing_leaves_the_checkpoint_before_and_is_in_nobodys_way(written, monkeypatch):
    def half(tensors, path, metadata):
        save_numpy(tensors, path, metadata)
        path.write_bytes(path.read_bytes()[:50])
        raise Interruption

    before = written.read_bytes()
    monkeypatch.setattr(sealed, "save_file", half)
    with pytest.raises(Interruption):
        checkpoint.write(written, "mine", State(6, {}, TENSORS))
    assert written.read_bytes() == before
    monkeypatch.undo()
    left_by_a_kill(written).write_bytes(before[:50])
    assert checkpoint.read(written, "mine").step == 5
    checkpoint.write(written, "mine", State(6, {}, TENSORS))
    assert checkpoint.read(written, "mine").step == 6
    assert list(written.parent.iterdir()) == [written]


@pytest.mark.parametrize(
    ("settings", "arrays"),
    [
        ([2], {"x": np.arange(6.0)}),
        ([1.5], {"x": np.arange(6.0)}),
        ([], {"x": np.arange(6.0)}),
        ([1], {"y": np.arange(6.0)}),
        ([1], {"x": np.arange(6.0) + 1e-15}),
        ([1], {"x": np.arange(6.0).reshape(2, 3)}),
        ([1], {"x": np.arange(6.0).view(np.int64)}),
        ([1], {"x": np.arange(6.0), "y": np.zeros(0)}),
        ([1], {}),
    ],
)
def test_a_fingerprint_changes_with_every_setting_name_shape_type_and_bit(settings, arrays):
    assert checkpoint.fingerprint(settings, arrays) != checkpoint.fingerprint([1], {"x": np.arange(6.0)})


def test_a_fingerprint_depends_on_nothing_but_its_arguments_and_the_version_of_torch(monkeypatch):
    first, second = (checkpoint.fingerprint([1, {"a": 0.5}], {"x": np.arange(3.0)}) for _ in range(2))
    assert first == second
    monkeypatch.setattr(torch, "__version__", "0.0")
    assert checkpoint.fingerprint([1, {"a": 0.5}], {"x": np.arange(3.0)}) != first


def optimised(seed, **options):
    """Two parameters and their optimizer."""
    generator = torch.Generator().manual_seed(seed)
    named = {name: torch.randn(3, 5, generator=generator).requires_grad_() for name in ("a", "b")}
    return named, torch.optim.AdamW(named.values(), lr=0.1, **options)


def step(named, optimizer, count):
    for _ in range(count):
        optimizer.zero_grad()
        (named["a"].sin() * named["b"].exp()).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("options", [{"fused": True}, {"foreach": False}], ids=["fused", "plain"])
def test_a_restored_training_goes_on_with_the_same_bits(tmp_path, options):
    expected, optimizer = optimised(0, **options)
    step(expected, optimizer, 3)
    state = State(3, {}, checkpoint.training_state(expected.items(), optimizer.state))
    checkpoint.write(tmp_path / "checkpoint.safetensors", "mine", state)
    step(expected, optimizer, 4)

    found, optimizer = optimised(1, **options)
    restored = checkpoint.read(tmp_path / "checkpoint.safetensors", "mine")
    checkpoint.restore(restored.tensors, found.items(), optimizer.state)
    step(found, optimizer, 4)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert all(optimizer.state[value]["step"] == 7 for value in found.values())


def test_a_clock_starts_where_the_processes_before_stopped(cpu_time):
    fresh, later = checkpoint.Clock(), checkpoint.Clock(40.0)
    assert (fresh.seconds(), later.seconds()) == (0, 40)
    cpu_time.now += 7.5
    assert (fresh.seconds(), later.seconds()) == (7.5, 47.5)
    begun_now = checkpoint.Clock()
    cpu_time.now += 0.5
    assert (fresh.seconds(), later.seconds(), begun_now.seconds()) == (8, 48, 0.5)


def test_a_clock_counts_what_this_process_computes_and_not_what_it_waits():
    clock = checkpoint.Clock()
    started = time.monotonic()
    time.sleep(0.2)
    waited = clock.seconds()
    while clock.seconds() - waited < 0.05:
        sum(range(1000))
    assert waited < 0.1
    assert clock.seconds() < time.monotonic() - started


def test_cpu_minutes_are_summed_over_all_checkpoints_below_a_folder(tmp_path):
    times = {"": 30.0, "stack0": 60.0, "stack1": 120.0, "a/b/c": 0.75, "a/b": 600.0}
    for folder, seconds in times.items():
        checkpoint.write(tmp_path / folder / checkpoint.NAME, f"run of {folder}", State(1, FACTS, TENSORS, seconds))
    (tmp_path / "stack0/other.safetensors").write_bytes((tmp_path / "stack0" / checkpoint.NAME).read_bytes())
    (tmp_path / "step5").mkdir()
    save_file({"w": torch.ones(2)}, tmp_path / "step5/model.safetensors")
    (tmp_path / "notes.txt").touch()
    # what a kill left of a writing is no checkpoint
    left_by_a_kill(tmp_path / "stack1" / checkpoint.NAME).write_bytes(b"half")
    assert checkpoint.cpu_minutes(tmp_path) == pytest.approx(sum(times.values()) / 60)
    assert checkpoint.cpu_minutes(tmp_path / "a") == pytest.approx(600.75 / 60)
    assert checkpoint.cpu_minutes(tmp_path / "stack1") == 2
    assert checkpoint.cpu_minutes(tmp_path / "step5") == checkpoint.cpu_minutes(tmp_path / "none") == 0
