"""What another user of the machine may do where jobs lock GPUs, and what an id of a GPU may be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from position_card.core import devices
from tests.refusals import refused


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "LOCKS", tmp_path / "locks")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    return devices.LOCKS


def made(mode):
    def spoil(folder):
        folder.mkdir()
        folder.chmod(mode)

    return spoil


def elsewhere(folder):
    (folder.parent / "elsewhere").mkdir(mode=0o1777)
    folder.symlink_to(folder.parent / "elsewhere")


def link_to(target):
    """Make the lock of the first GPU a link."""

    def spoil(folder):
        made(0o1777)(folder)
        (folder / "0").symlink_to(folder.parent / target)

    return spoil


# What another user has made, how, and what the one line names below the folder of locks.
CASES = {
    "a folder to which others may not write": (made(0o755), ", where "),
    "a folder from which anybody may remove": (made(0o777), ", where "),
    "a link to another folder": (elsewhere, ", where "),
    "a folder that is a link to nothing": (lambda folder: folder.symlink_to("/nowhere/at/all"), ", where "),
    "a file in its place": (lambda folder: folder.write_text(""), ", where "),
    "a lock that is a link to a file": (link_to("victim"), "/0, by which "),
    "a lock that is a link to nothing": (link_to("new"), "/0, by which "),
    "a lock that is a link to itself": (link_to("locks/0"), "/0, by which "),
}


@pytest.mark.parametrize(("spoil", "named"), CASES.values(), ids=CASES)
def test_what_is_no_lock_for_everybody_ends_in_one_line(spoil, named, folder, tmp_path):
    (tmp_path / "victim").write_text("mine")
    spoil(folder)
    with refused(f"{folder}{named}"), devices.device("cuda"):
        pass
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "elsewhere/0").exists()


@pytest.mark.parametrize("gpu", ["../../evil", "/etc/evil", "MIG-a/../b", "a b", "GPU-\N{GRINNING FACE}"])
def test_a_lock_stays_in_its_folder_whatever_the_gpu_is_called(gpu, folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpu)
    with devices.device("cuda") as device:
        assert (device, os.environ["CUDA_VISIBLE_DEVICES"]) == ("cuda", gpu)
        (lock,) = folder.iterdir()
    assert Path(os.path.normpath(lock)).parent == folder


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_another_user_can_lock_what_the_first_made_and_not_write(umask, folder):
    before = os.umask(umask)
    try:
        with devices.device("cuda"):
            assert (folder.stat().st_mode & 0o7777, (folder / "0").stat().st_mode & 0o777) == (0o1777, 0o444)
    finally:
        os.umask(before)


@pytest.mark.parametrize("variable", ["TMPDIR", "TEMP", "HOME", "XDG_RUNTIME_DIR", "USER"])
def test_jobs_of_users_with_other_folders_meet_at_the_same_locks(variable, tmp_path):
    program = "from position_card.core import devices; print(devices.LOCKS)"
    environment = {**os.environ, variable: str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == "/tmp/position-bias-gpus\n"
