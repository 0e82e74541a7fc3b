"""What another user of the machine may do where jobs lock GPUs, and what an id of a GPU may be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from position_bias.running import devices
from position_bias.running.runtime import InputError


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


def linked(folder):
    (folder.parent / "elsewhere").mkdir(mode=0o1777)
    folder.symlink_to(folder.parent / "elsewhere")


FOLDERS = {
    "others may not write": made(0o755),
    "anybody may remove what another made": made(0o777),
    "a link to another folder": linked,
    "a link to nothing": lambda folder: folder.symlink_to("/nowhere/at/all"),
    "a file": lambda folder: folder.write_text(""),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_of_locks_that_is_not_for_everybody_ends_in_one_line(case, folder):
    FOLDERS[case](folder)
    with pytest.raises(InputError, match=rf"^{folder}, where [^\n]*mode 1777[^\n]*$"), devices.device("cuda"):
        pass
    assert not (folder.parent / "elsewhere/0").exists()


LOCKS = {
    "a link to a file": lambda lock: lock.symlink_to(lock.parent.parent / "victim"),
    "a link to nothing": lambda lock: lock.symlink_to(lock.parent.parent / "new"),
    "a link to itself": lambda lock: lock.symlink_to(lock),
}


@pytest.mark.parametrize("case", LOCKS)
def test_a_lock_that_is_a_link_is_not_followed(case, folder, tmp_path):
    (tmp_path / "victim").write_text("mine")
    made(0o1777)(folder)
    LOCKS[case](folder / "0")
    with pytest.raises(InputError, match=rf"^{folder}/0, by which [^\n]*$"), devices.device("cuda"):
        pass
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("gpu", ["../../evil", "/etc/evil", "MIG-a/../b", "a b", "GPU-\N{GRINNING FACE}"])
def test_a_lock_stays_in_its_folder_whatever_the_gpu_is_called(gpu, folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpu)
    with devices.device("cuda") as device:
        assert (device, os.environ["CUDA_VISIBLE_DEVICES"]) == ("cuda", gpu)
        (lock,) = folder.iterdir()
    assert Path(os.path.normpath(lock)).parent == folder


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_another_user_can_lock_what_the_first_has_made_and_cannot_write_to_it(umask, folder):
    before = os.umask(umask)
    try:
        with devices.device("cuda"):
            assert (folder.stat().st_mode & 0o7777, (folder / "0").stat().st_mode & 0o777) == (0o1777, 0o444)
    finally:
        os.umask(before)


@pytest.mark.parametrize("variable", ["TMPDIR", "TEMP", "HOME", "XDG_RUNTIME_DIR", "USER"])
def test_jobs_of_other_users_with_other_folders_meet_at_the_same_locks(variable, tmp_path):
    program = "from position_bias.running import devices; print(devices.LOCKS)"
    environment = {**os.environ, variable: str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == "/tmp/position-bias-gpus\n"
