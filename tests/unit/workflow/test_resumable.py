"""A job that goes on where a killed one stopped: its log, its device, its folder, and when that folder goes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from position_bias.workflow import resumable
from position_card.core import checkpoint, devices, runtime
from tests.refusals import refused

CONFIG = {"device": "cpu", "devices": {}, "checkpoint_every": {"training": 50, "postnorm": 7, "measure": 500}}


@pytest.fixture(autouse=True)
def folder_of_the_run(tmp_path, monkeypatch):
    """checkpoints/ is looked for here."""
    monkeypatch.chdir(tmp_path)


def opened(*path, config=CONFIG, gpu=0, **computing):
    of_rule = SimpleNamespace(log=["job.log"], config=config, resources=SimpleNamespace(gpu=gpu))
    return resumable.job(of_rule, *path, **computing)


def test_a_job_has_the_folder_of_its_path_and_its_interval():
    with opened("postnorm", "set-complement-16") as place:
        assert place == checkpoint.Place(Path("checkpoints/postnorm/set-complement-16"), 7, "cpu")
        runtime.log.info("at work")
    assert "at work" in Path("job.log").read_text()
    with opened("training", "bloom", "seed0") as place:
        assert place == checkpoint.Place(Path("checkpoints/training/bloom/seed0"), 50, "cpu")
    assert not Path("checkpoints").exists()  # nothing was kept, and nothing had to be removed


@pytest.mark.parametrize(("kind", "asked"), [("measure", 1), ("training", 0)])
def test_measuring_alone_asks_for_products_by_onednn(monkeypatch, kind, asked):
    calls = []
    monkeypatch.setattr(devices, "multiply_by_onednn", lambda: calls.append(1) or True)
    with opened(kind, "a-run"):
        pass
    assert len(calls) == asked
    assert ("by oneDNN" in Path("job.log").read_text()) == bool(asked)


def keep(place):
    """Leave a file, as a training does."""
    place.folder.mkdir(parents=True)
    (place.folder / checkpoint.NAME).write_text("kept")


def test_what_was_kept_alone_goes_when_the_job_has_ended_well():
    beside = Path("checkpoints/training/mpt/seed0/checkpoint.safetensors")
    beside.parent.mkdir(parents=True)
    beside.touch()
    with opened("training", "bloom", "seed0") as place:
        keep(place)
    assert not place.folder.exists()
    assert beside.exists()


@pytest.mark.parametrize(
    ("error", "raised"), [(RuntimeError("broken"), RuntimeError), (runtime.InputError("wrong"), SystemExit)]
)
def test_what_was_kept_stays_when_the_job_fails(error, raised):
    with pytest.raises(raised), opened("training", "bloom") as place:
        keep(place)
        raise error
    assert (place.folder / checkpoint.NAME).read_text() == "kept"


def test_a_job_asks_the_device_of_its_stage_for_its_gpus(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    config = CONFIG | {"device": "cuda", "devices": {"measure": "cpu"}}
    with opened("training", "a", config=config, stage="measure", gpus=2) as place:
        assert (place.folder, place.device) == (Path("checkpoints/training/a"), "cpu")
    for stage, gpu, visible, named in ((None, 2, "0", "sees 1"), ("other", 1, "0,1", "granted 1")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        job = opened("training", "a", config=config, gpu=gpu, stage=stage, gpus=2)
        with refused("2 GPUs", named, by=SystemExit), job:
            pass
