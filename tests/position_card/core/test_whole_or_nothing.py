"""Every kind of file that the workflow writes for itself: whole or not there, and what is damaged is not read."""

import json
import resource
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models

from position_card.core import artifacts, checkpoint, runtime
from position_card.core.artifacts import UnusableError
from position_card.core.checkpoint import State
from position_card.drawing import style
from tests import forked
from tests.refusals import refused

COLUMNS = ["model", "position", "value"]
TABLE = pd.DataFrame({"model": ["bloom", "mpt"] * 20, "position": range(40), "value": np.arange(40) / 7})
TENSORS = {"mean": np.arange(6, dtype=np.float32).reshape(2, 3), "k": np.arange(3), "none": np.zeros((0, 2))}
STATE = State(5, {"losses": {"train": {"1": 0.1}}}, {"w": torch.arange(6.0) / 7, "h": torch.ones(2).half()}, 1.5)

# name of a file -> how it is written, and how it is read
KINDS = {
    "lambda.safetensors": (
        partial(artifacts.write_tensors, tensors=TENSORS, model="bloom", n=64),
        lambda path: (artifacts.read_tensors(path), artifacts.read_labels(path)),
    ),
    **dict.fromkeys(
        ("table.parquet", "table.csv"),
        (partial(artifacts.write_table, table=TABLE), partial(artifacts.read_table, columns=COLUMNS)),
    ),
    "checkpoint.safetensors": (
        partial(checkpoint.write, fingerprint="mine", state=STATE),
        partial(checkpoint.read, fingerprint="mine"),
    ),
}
SEALED = {"lambda.safetensors", "checkpoint.safetensors"}  # of one format


@pytest.fixture(scope="module", params=KINDS)
def kind(request, tmp_path_factory):
    """A whole file, its content, and its reader."""
    path = tmp_path_factory.mktemp("kinds") / request.param
    write, read = KINDS[request.param]
    write(path)
    return path, path.read_bytes(), read


def why(read, path):
    """The one line with which a file is refused, or "" where it is read."""
    try:
        read(path)
    except UnusableError as error:
        line = str(error)
    else:
        return ""
    assert "\n" not in line
    assert line.startswith(f"artifact {path} ")
    assert line.endswith(f"--force {path}")
    return line


@settings(max_examples=80)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_short_is_refused(kind, share):
    path, content, read = kind
    kept = content[: int(share * len(content))]
    path.write_bytes(kept)
    if path.suffix == ".csv" and kept.count(b"\n") > 1 and kept.endswith(b"\n"):
        return  # whole lines are gone: it may as well have been written so
    assert why(read, path)


@example(place=0.4035, bit=4)  # of the parquet file: one of the two numbers of its rows
@settings(max_examples=120)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_refused_or_changes_nothing(kind, place, bit):
    path, content, read = kind
    damaged = bytearray(content)
    damaged[int(place * len(content))] ^= 1 << bit
    path.write_bytes(damaged)
    line = why(read, path)
    if path.suffix == ".safetensors":
        assert line
    elif path.suffix == ".parquet" and not line:  # a bit that says who wrote it, or sums up a column
        pd.testing.assert_frame_equal(read(path), TABLE)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_a_file_of_another_kind_under_its_name_is_refused(tmp_path, name, other):
    if name == other or {name, other} == SEALED:
        return
    (write, _), (_, read) = KINDS[other], KINDS[name]
    write(tmp_path / other)
    (tmp_path / other).rename(tmp_path / name)
    assert why(read, tmp_path / name)


# What becomes of a table, and what the line names beside its file.
EDITS = [
    (lambda table: table.drop(columns="position"), "position"),
    (lambda table: table.assign(value=table["value"].where(table["position"] != 3)), "1 row"),
    (lambda table: table.assign(value=np.inf), "value"),
    (lambda table: table.assign(position="third"), "position"),
    (lambda table: table[:0], "no rows"),
]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(("edit", "named"), EDITS)
def test_an_edited_table_is_refused_by_its_name_among_others(tmp_path, suffix, edit, named):
    path, whole = tmp_path / f"table{suffix}", tmp_path / "whole.csv"
    artifacts.write_table(whole, TABLE)
    artifacts.write_table(path, edit(TABLE))
    assert named in why(lambda edited: artifacts.read_tables([whole, edited], COLUMNS), path)


def test_a_statistic_may_have_no_value(tmp_path):
    path = tmp_path / "statistics.parquet"
    undefined = TABLE.assign(statistic="first / middle", value=TABLE["value"].where(TABLE["position"] > 0))
    artifacts.write_table(path, undefined)
    assert artifacts.read_tables([path, path], COLUMNS)["value"].isna().sum() == 2


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda tensors: tensors | {"mean": tensors["mean"] + 1}, "mean, which has changed"),
        (lambda tensors: tensors | {"mean": tensors["mean"].reshape(3, 2)}, "mean, which has changed"),
        (lambda tensors: tensors | {"more": tensors["k"]}, "more, which has changed"),
        (lambda tensors: {"mean": tensors["mean"]}, "lacks k, none"),
    ],
)
def test_edited_tensors_under_their_old_labels_are_refused(tmp_path, edit, named):
    path = tmp_path / "lambda.safetensors"
    artifacts.write_tensors(path, TENSORS, model="bloom")
    save_file(edit(load_file(path)), path, labels_of(path))
    assert named in why(artifacts.read_tensors, path)


def labels_of(path):
    header = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])
    return header["__metadata__"]


@pytest.mark.parametrize("read", [artifacts.read_tensors, artifacts.read_labels])
@pytest.mark.parametrize(
    "edit",
    [
        lambda labels: None,
        lambda labels: {"artifact": "{}"},
        lambda labels: {"artifact": "[]"},
        lambda labels: {"artifact": "no json"},
        lambda labels: {"artifact": labels["artifact"].replace("bloom", "mpt")},
    ],
)
def test_edited_labels_are_refused(tmp_path, read, edit):
    path = tmp_path / "lambda.safetensors"
    artifacts.write_tensors(path, TENSORS, model="bloom")
    save_file(load_file(path), path, edit(labels_of(path)))
    assert "labels" in why(read, path)


# A full disk: a limit on the size of files stands for it, since a test cannot fill one


def write_folder(path):
    words = {str(word): word for word in range(99)}
    with runtime.whole_directory(path) as folder:
        Tokenizer(models.WordLevel(words, "0")).save(str(folder / "tokenizer.json"))


def copy_folder(path):
    with runtime.whole_directory(path) as folder:
        shutil.copytree(Path(__file__).parent, folder, dirs_exist_ok=True)


WRITERS = {
    **{name: write for name, (write, _) in KINDS.items()},
    "figure.pdf": lambda path: style.save(Figure(), path),
    "folder": write_folder,
    "copy": copy_folder,
}
OF_FOLDER = {"folder": "tokenizer.json", "copy": Path(__file__).name}


def write_on_a_full_disk(folder):
    """Jobs whose logs, like every other file, get no larger than 100 bytes; what each ends with."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    for name, write in WRITERS.items():
        try:
            with runtime.job(Path(folder, "log")):
                for line in range(20):
                    runtime.log.info("line %d of a log that is too long for this disk", line)
                write(Path(folder, "out", name))
        except SystemExit as ended:
            print(ended.code)


def test_without_room_a_job_ends_in_one_line(tmp_path):
    out = tmp_path / "out"
    older = [out / name / OF_FOLDER.get(name, "") for name in WRITERS]
    for path in older:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("older")
    ended = forked.run(write_on_a_full_disk, tmp_path)
    assert ended.status == 0, ended.said
    for line, name in zip(ended.said.splitlines(), WRITERS, strict=True):
        assert line.startswith(f"error: {out / name} ")
        assert "File too large" in line
    assert {path.read_text() for path in older} == {"older"}
    assert sorted(path.name for path in out.iterdir()) == sorted(WRITERS)


def test_a_file_in_place_of_a_folder_is_one_line(tmp_path):
    (tmp_path / "folder").write_text("no folder")
    with refused(tmp_path / "folder", "File exists"):
        artifacts.write_table(tmp_path / "folder" / "table.csv", TABLE)
