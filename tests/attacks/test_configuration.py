"""Files of the configuration that somebody else wrote: each ends in one line that names the file."""

import os
import re
import subprocess
import sys

import pytest

from plain_configuration import require_plain
from tests.configurations import ROOT

LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{one}: &{one} [*{before}, *{before}]\n" for before, one in zip("abcdefgh", "bcdefghi", strict=True)
)
CASES = {  # what the file holds, and what the one line says
    "a key twice": ("seed: 1\nseed: 2\n", "line 2: the key 'seed' is there twice"),
    "a key twice below another": ("card:\n  seed: 1\n  prompts: 8\n  seed: 2\n", "line 4: the key 'seed'"),
    "a key twice in JSON": ('{"seed": 1, "seed": 2}', "line 1: the key 'seed'"),
    "a part of itself": ("card: &a\n  more: *a\n", r"line 2: \*a repeats another part"),
    "a billion laughs": (LAUGHS, r"line 2: \*a repeats another part"),
    "3,000 levels": ("seed: " + "[" * 3000 + "]" * 3000, "nested more than 32 levels"),
    "a number of 400 digits": ("seed: " + "9" * 400, "line 1: 9{40} is a surprise"),
    "more than a megabyte": ("seed: 1 #" + "x" * 1_000_000, "has 1000009 bytes, more than 1000000"),
    "nothing": ("", "holds no keys with values"),
    "a comment": ("# seed: 1\n", "holds no keys with values"),
    "a list": ("- seed\n", "holds no keys with values"),
    "a number of minutes": ("seed: 1:30\n", "line 1: 1:30 is a surprise in YAML 1.1, of the kind int"),
    "an octal number": ("seed: 010\n", "line 1: 010 is a surprise"),
    "a Norwegian word": ("scale: no\n", "line 1: no is a surprise in YAML 1.1, of the kind bool"),
    "a key that is a word": ("models: {on: 1}\n", "line 1: on is a surprise"),
    "a day": ("scale: 2026-01-01\n", "line 1: 2026-01-01 is a surprise in YAML 1.1, of the kind timestamp"),
    "another mapping merged": ("card: {<<: {a: 1}}\n", "line 1: << is a surprise"),
    "code of YTE": ("__use_yte__: true\n?f'{open(1)}': 1\n", "line 1: __use_yte__ would run code"),
    "bytes that are no UTF-8": (b"seed: \xff", "cannot be read"),
    "a zero byte": (b"seed: \0", "cannot be read"),
    "no YAML": ("seed: [1\n", "cannot be read"),
    "two documents": ("seed: 1\n---\nseed: 2\n", "cannot be read"),
}
KINDS = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a link to a device": lambda path: os.symlink("/dev/zero", path),
    "a link to itself": lambda path: os.symlink(path, path),
    "nothing there": lambda path: None,
}


def refused(path):
    with pytest.raises(ValueError, match=r"^configuration ") as raised:
        require_plain(path)
    line = str(raised.value)
    assert line.startswith(f"configuration {path}")
    assert "\n" not in line
    assert len(line) < 500 + len(str(path))
    return line


@pytest.mark.parametrize("case", CASES)
def test_a_file_that_means_something_else_than_it_seems_ends_in_one_line(case, tmp_path):
    content, said = CASES[case]
    path = tmp_path / "overlay.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert re.search(said, refused(path))


@pytest.mark.parametrize("case", KINDS)
def test_what_is_no_file_ends_in_one_line(case, tmp_path):
    KINDS[case](tmp_path / "overlay.yaml")
    assert "is not a file" in refused(tmp_path / "overlay.yaml")


def test_all_that_is_shipped_is_plain():
    for path in [ROOT / "config.yaml", *(ROOT / "config").rglob("*.yaml")]:
        require_plain(path)


@pytest.mark.parametrize("case", ["a pipe", "a folder"])
def test_snakemake_does_not_wait_for_what_is_no_file(case, tmp_path):
    KINDS[case](tmp_path / "overlay.yaml")
    command = [
        sys.executable,
        "-m",
        "snakemake_command",
        "-n",
        "--cores",
        "1",
        "--configfile",
        tmp_path / "overlay.yaml",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(f"error: configuration {tmp_path / 'overlay.yaml'} is not a file")
