import logging
import os
import platform
import signal
import subprocess
import sys
import warnings

import pytest

from position_card.core import runtime
from tests import forked


def job_that(does, log):
    """How a process with a job of one line ends."""
    return forked.run(exec, f"from position_card.core import runtime\nwith runtime.job({str(log)!r}):\n    {does}\n")


def test_an_input_error_ends_a_job_with_its_one_line(tmp_path):
    fails = "raise runtime.InputError('config: steps = 0 is too small; give at least 1')"
    ended = job_that(fails, tmp_path / "log")
    assert ended == (1, "error: config: steps = 0 is too small; give at least 1\n")
    assert (tmp_path / "log").read_text().endswith("error: config: steps = 0 is too small; give at least 1\n")


def test_an_input_error_is_one_line_whatever_it_names():
    hostile = runtime.InputError("tensor a\nerror: all is well\x1b[2J \u2028 is unknown; fetch ü again")
    assert str(hostile) == r"tensor a\nerror: all is well\x1b[2J \u2028 is unknown; fetch ü again"
    long = str(runtime.InputError(f"key {'x' * 5000} is unknown; remove it"))
    assert len(long) == 1000
    assert long.startswith("key xxx")
    assert long.endswith("xxx is unknown; remove it")


@pytest.mark.parametrize(
    ("does", "logged"),
    [
        ("bytearray(10**16)", "MemoryError"),
        ("import torch; torch.empty(10**15)", "RuntimeError"),
        ("import torch; raise torch.OutOfMemoryError('CUDA out of memory')", "OutOfMemoryError"),
    ],
)
def test_memory_that_is_too_small_ends_a_job_in_one_line(tmp_path, does, logged):
    ended = job_that(does, tmp_path / "log")
    assert ended == (1, "error: out of memory; run fewer jobs at once (--cores), or on a machine that has more\n")
    assert logged in (tmp_path / "log").read_text()


def test_any_other_error_leaves_its_traceback_in_the_log(tmp_path):
    with pytest.raises(ZeroDivisionError), runtime.job(tmp_path / "log"):
        1 / 0  # noqa: B018
    assert "ZeroDivisionError" in (tmp_path / "log").read_text()


def test_records_and_warnings_go_to_the_log_of_their_own_job(tmp_path):
    for name in ("one", "two"):
        with runtime.job(tmp_path / name):
            runtime.log.info("this is %s", name)
            warnings.warn(f"beware of {name}", stacklevel=1)
    text = (tmp_path / "two").read_text()
    assert "this is two" in text
    assert "beware of two" in text
    assert "is one" not in text
    assert "of one" not in text


def test_seeds_tell_parts_apart():
    seeds = {runtime.seed(*parts) for parts in [(0, "a"), (0, "b"), (1, "a"), ("0a",), ("a", 0), (0,)]}
    assert len(seeds) == 6
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert runtime.seed(0, "prompts") == 2666013867799092281  # a seed never changes: results would


def test_progress_passes_everything_on_and_logs_about_ten_lines(caplog):
    with caplog.at_level(logging.INFO, "position_card"):
        assert list(runtime.progress(range(95), "counting", 95)) == list(range(95))
    assert [record.getMessage().split(",")[0] for record in caplog.records][-1] == "counting: 95 of 95"
    assert len(caplog.records) == 10
    caplog.clear()
    with caplog.at_level(logging.INFO, "position_card"):
        list(runtime.progress(range(90, 100), "counting", 100, already_done=90))
    assert [record.getMessage().split(",")[0] for record in caplog.records] == ["counting: 100 of 100"]


def test_a_file_appears_only_once_it_is_complete(tmp_path):
    path = tmp_path / "new folder" / "table.csv"
    with runtime.whole_file(path) as partial:
        partial.write_text("half")
        assert not path.exists()
        assert partial.suffix == ".csv"
    with pytest.raises(RuntimeError), runtime.whole_file(path) as partial:
        partial.write_text("other")
        raise RuntimeError
    assert path.read_text() == "half"
    assert os.listdir(path.parent) == ["table.csv"]


def test_what_is_written_can_be_read_by_whom_the_umask_admits(tmp_path):
    mask = os.umask(0o027)
    try:
        with runtime.whole_file(tmp_path / "file") as partial:
            partial.touch(0o600)
        with runtime.whole_directory(tmp_path / "folder") as partial:
            (partial / "file").touch(0o600)
    finally:
        os.umask(mask)
    for path in (tmp_path / "file", tmp_path / "folder/file"):
        assert path.stat().st_mode & 0o777 == 0o640


def test_a_directory_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "model"
    with runtime.whole_directory(path) as partial:
        (partial / "old").touch()
    with pytest.raises(RuntimeError), runtime.whole_directory(path) as partial:
        (partial / "half").touch()
        raise RuntimeError
    assert os.listdir(path) == ["old"]
    with runtime.whole_directory(path) as partial:
        (partial / "new").touch()
    assert os.listdir(path) == ["new"]
    assert os.listdir(tmp_path) == ["model"]


def fill(partial, word):
    """Write the same word to a file, or to both files of a folder."""
    for path in (partial / "a", partial / "b") if partial.is_dir() else (partial,):
        path.write_text(word)


def held(path):
    return {file.read_text() for file in (path.iterdir() if path.is_dir() else (path,))}


KINDS = [runtime.whole_file, runtime.whole_directory]


def write_often(whole, path, word):
    for _ in range(150):
        with whole(path) as partial:
            fill(partial, word)


@pytest.mark.parametrize("whole", KINDS)
def test_processes_that_write_one_name_together_all_end_whole(whole, tmp_path):
    path = tmp_path / "out"
    writers = [forked.start(write_often, whole, path, word) for word in ("first", "second")]
    for process, said in writers:
        with said:
            assert said.read() == ""
        process.join(60)
        assert process.exitcode == 0
    assert held(path) in ({"first"}, {"second"})
    assert os.listdir(tmp_path) == ["out"]


KILLED = """
import os, signal, sys
from position_card.core import runtime
with getattr(runtime, sys.argv[1])(sys.argv[2]) as partial:
    (partial / "a" if partial.is_dir() else partial).write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("whole", KINDS)
def test_what_a_kill_leaves_is_removed_by_the_next_writer(whole, tmp_path):
    path = tmp_path / "out.csv"
    ended = subprocess.run([sys.executable, "-c", KILLED, whole.__name__, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert held(left) == {"half"}
    kept = [
        left.with_name(left.name.replace("-", f"-{os.getpid()}-", 1).replace(f"{ended_process(left)}-", "", 1)),
        left.with_name(left.name.replace(platform.node(), "another machine")),
        left.with_name(left.name.replace(".out.", ".other.")),
    ]
    for other in kept:
        other.touch()
    with whole(path) as partial:
        fill(partial, "whole")
    assert held(path) == {"whole"}
    assert set(tmp_path.iterdir()) == {path, *kept}


def ended_process(left):
    return left.name.split("-")[1]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's; elsewhere nothing is changed")
@pytest.mark.parametrize(("megabytes", "kept"), [(16, True), (64, False)])
def test_freed_blocks_but_the_largest_are_kept(megabytes, kept):
    """Page faults of taking four blocks at once, three times: with the C library's defaults, every time anew."""
    program = (
        "import resource, sys; from position_card.core import runtime; import numpy as np\n"
        "if sys.argv[1] == 'keep': runtime.keep_freed_memory()\n"
        f"def take(): [np.ones({megabytes} * 2**17) for _ in range(4)]\n"
        "take(); before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for _ in range(3): take()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)\n"
    )
    faults = {
        how: int(subprocess.run([sys.executable, "-c", program, how], capture_output=True, check=True).stdout)
        for how in ("keep", "default")
    }
    assert (faults["keep"] < faults["default"] / 4) is kept


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("short", "'short'"),
        (["a"] * 20, "['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', ..."),
        ("x" * 60, "'" + "x" * 39 + " ..."),
        ("one " + "x" * 60, "'one " + "x" * 35 + " ..."),
    ],
)
def test_a_quotation_ends_with_a_word_and_says_that_it_is_cut(value, said):
    """A word that is as long as half of the quotation is cut."""
    assert runtime.quoted(value) == said
