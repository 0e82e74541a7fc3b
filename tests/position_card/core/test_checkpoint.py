import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from position_card.core import artifacts, checkpoint
from position_card.core.checkpoint import State

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
        (lambda path: artifacts.seal(path, {}, {"model": "bloom"}), "was written with other settings"),
    ],
    ids=["another run", "cut", "earlier version", "no checkpoint"],
)
def test_a_checkpoint_of_no_use_is_told_and_the_run_starts_over(written, caplog, spoil, said):
    assert checkpoint.resumed(written.with_name("none.safetensors"), "mine", "training") is None
    assert caplog.text == ""
    spoil(written)
    assert checkpoint.resumed(written, "mine", "training") is None
    (record,) = caplog.records
    assert record.getMessage().startswith(f"training: starts over, since {written} {said}")
    assert "\n" not in record.getMessage()


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
def test_a_fingerprint_changes_with_all_that_it_is_of(settings, arrays):
    assert checkpoint.fingerprint(settings, arrays) != checkpoint.fingerprint([1], {"x": np.arange(6.0)})


def test_a_fingerprint_depends_on_its_arguments_and_torch_alone(monkeypatch):
    first, second = (checkpoint.fingerprint([1, {"a": 0.5}], {"x": np.arange(3.0)}) for _ in range(2))
    assert first == second
    monkeypatch.setattr(torch, "__version__", "0.0")
    assert checkpoint.fingerprint([1, {"a": 0.5}], {"x": np.arange(3.0)}) != first


def test_a_clock_starts_where_the_processes_before_stopped(cpu_time):
    fresh, later = checkpoint.Clock(), checkpoint.Clock(40.0)
    assert (fresh.seconds(), later.seconds()) == (0, 40)
    cpu_time.now += 7.5
    assert (fresh.seconds(), later.seconds()) == (7.5, 47.5)
    begun_now = checkpoint.Clock()
    cpu_time.now += 0.5
    assert (fresh.seconds(), later.seconds(), begun_now.seconds()) == (8, 48, 0.5)


def test_cpu_minutes_are_summed_over_checkpoints_below_a_folder(tmp_path):
    times = {"": 30.0, "stack0": 60.0, "stack1": 120.0, "a/b/c": 0.75, "a/b": 600.0}
    for folder, seconds in times.items():
        checkpoint.write(tmp_path / folder / checkpoint.NAME, f"run of {folder}", State(1, FACTS, TENSORS, seconds))
    (tmp_path / "stack0/other.safetensors").write_bytes((tmp_path / "stack0" / checkpoint.NAME).read_bytes())
    (tmp_path / "step5").mkdir()
    save_file({"w": torch.ones(2)}, tmp_path / "step5/model.safetensors")
    assert checkpoint.cpu_minutes(tmp_path) == pytest.approx(sum(times.values()) / 60)
    assert checkpoint.cpu_minutes(tmp_path / "a") == pytest.approx(600.75 / 60)
    assert checkpoint.cpu_minutes(tmp_path / "stack1") == 2
    assert checkpoint.cpu_minutes(tmp_path / "step5") == checkpoint.cpu_minutes(tmp_path / "none") == 0


def test_a_damaged_checkpoint_takes_no_cpu_minutes_from_others(written):
    before = checkpoint.cpu_minutes(written.parent)
    left = written.parent / "left" / checkpoint.NAME
    left.parent.mkdir()
    for content in (b"", b"damaged", written.read_bytes()[:100]):
        left.write_bytes(content)
        assert checkpoint.cpu_minutes(written.parent) == before > 0
