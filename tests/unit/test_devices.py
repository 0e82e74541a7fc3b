import os
import subprocess
import sys
import threading

import pytest
import torch

from position_bias import devices
from position_bias.runtime import InputError


@pytest.mark.parametrize(
    ("given", "seen"), [("0,3", ["0", "3"]), ("", []), ("MIG-a", ["MIG-a"]), ("-1", []), ("0, -1,1", ["0"])]
)
def test_visible_gpus_are_those_of_the_environment(given, seen):
    assert devices.visible_gpus({"CUDA_VISIBLE_DEVICES": given}) == seen


def test_a_machine_without_gpus_computes_on_its_cpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for requested in ("auto", "cpu"):
        with devices.device(requested) as device:
            assert device == "cpu"
    with pytest.raises(InputError, match="device = 'cuda', but no GPU is visible"), devices.device("cuda"):
        pass


@pytest.mark.skipif(torch.backends.cuda.is_built(), reason="this torch can use a GPU")
def test_a_torch_without_cuda_computes_on_the_cpu_where_that_is_left_open(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with devices.device("auto") as device:
        assert device == "cpu"


def test_slurm_assigns_devices_itself(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with devices.device("auto") as device:
        assert device == "cuda"
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"


HOLD = """
import os, time
from position_bias import devices
with devices.device("cuda", poll_seconds=0.01):
    print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    time.sleep(60)
"""


@pytest.fixture
def start(tmp_path):
    """Start a process that holds a GPU of two, says which, and sleeps."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "4,5", "TMPDIR": str(tmp_path)}
    environment.pop("SLURM_JOB_ID", None)
    started = []

    def hold():
        started.append(
            subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdout=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_jobs_at_the_same_time_hold_different_gpus_and_a_killed_one_frees_its_own(start):
    first, second = start(), start()
    held = {process: process.stdout.readline().strip() for process in (first, second)}
    assert sorted(held.values()) == ["4", "5"]
    third = start()
    said = threading.Event()
    reader = threading.Thread(target=lambda: (third.stdout.read(1), said.set()), daemon=True)
    reader.start()
    assert not said.wait(2)  # it waits
    first.kill()
    assert said.wait(20)


@pytest.mark.parametrize(("visible", "names"), [(None, ["H200", "L4"]), ("1", ["L4"]), ("GPU-a,7", ["H200", "7"])])
def test_gpus_are_called_what_nvidia_smi_calls_them(monkeypatch, tmp_path, visible, names):
    listing = tmp_path / "nvidia-smi"
    listing.write_text("#!/bin/sh\necho 'GPU 0: H200 (UUID: GPU-a)'\necho '  MIG x'\necho 'GPU 1: L4 (UUID: GPU-b)'\n")
    listing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices.gpu_names() == names
