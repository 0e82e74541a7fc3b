"""Released schedules: the same numbers from tables and configurations, and what is said where they are not usable."""

import gzip
import re

import numpy as np
import pytest

from position_bias.released import schedules
from position_bias.released.models import DATASETS, MODELS
from tests.refusals import refused

BLOOM = "config/rollout/alibi/all_content/dclm/bloom.yaml"


@pytest.mark.parametrize("kind", ["tables", "tree"])
def test_every_schedule_is_read_as_it_was_written(released_sample, kind):
    found = schedules.read(str(getattr(released_sample, kind)))
    assert list(found) == [(model, dataset) for model in MODELS for dataset in DATASETS]
    for key, schedule in found.items():
        np.testing.assert_array_equal(schedule.mixing, released_sample.mixing[key])
        np.testing.assert_array_equal(schedule.base, released_sample.base[key].astype(float))
        np.testing.assert_array_equal(schedule.diagonal, released_sample.diagonal[key].astype(float))
        assert {schedule.mixing.dtype, schedule.base.dtype, schedule.diagonal.dtype} == {np.dtype(float)}


def test_content_is_taken_in_float32_and_then_widened(released_sample, tmp_path):
    """Nine digits name a float32; read as float64 they would be another number."""
    tables = released_sample.copy("tables", tmp_path)
    rewrite(tables / "content.csv.gz", r"(bloom-176b,dclm,0,0,)\S+", r"\g<1>0.100000001,-0.333333343")
    schedule = schedules.read(str(tables))["bloom-176b", "dclm"]
    assert schedule.base[0, 0] == float(np.float32(0.1)) != 0.100000001
    assert schedule.diagonal[0, 0] == float(np.float32(-1 / 3)) != -0.333333343


def test_rows_may_come_in_any_order(released_sample, tmp_path):
    tables = released_sample.copy("tables", tmp_path)
    for name in ("lambda.csv", "content.csv.gz"):
        head, *rows = read(tables / name).splitlines()
        write(tables / name, "\n".join([head, *reversed(rows)]))
    found, expected = (schedules.read(str(folder)) for folder in (tables, released_sample.tables))
    for key, schedule in expected.items():
        np.testing.assert_array_equal(found[key].mixing, schedule.mixing)
        np.testing.assert_array_equal(found[key].diagonal, schedule.diagonal)


def read(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def rewrite(path, pattern, replacement):
    text, count = re.subn(pattern, replacement, read(path), count=1)
    assert count == 1
    write(path, text)


TABLES = [  # a file, what is changed in it, and what the line names beside the folder
    ("lambda.csv", "lambda", "mixing", "lambda.csv lacks column lambda"),
    ("content.csv.gz", "base,diagonal", "bas,diag", "content.csv.gz lacks column base, diagonal"),
    ("lambda.csv", r"bloom-176b,dclm,69,\S+\n", "", "bloom-176b on dclm has 69 rows"),
    ("content.csv.gz", "mpt-7b,dclm,31,31,", "mpt-7b,dclm,31,32,", "32 layers, 33 heads"),
    ("lambda.csv", r"(mpt-7b,dclm,3,)\S+", r"\g<1>nan", "lambda.csv holds nan in column lambda"),
    ("lambda.csv", r"(mpt-7b,dclm,3,)\S+", r"\g<1>1.5", "mpt-7b on dclm has lambda = 1.5"),
    ("content.csv.gz", r"(mpt-7b,dclm,3,4,)\S+", r"\g<1>1.0,inf", "mpt-7b on dclm has diagonal = inf"),
    ("models.csv", r"bloom-176b,70,112", "bloom-176b,70,64", "heads = 64 of bloom-176b, not 112"),
    ("models.csv", r"mpt-7b", "mpt-8b", "models.csv"),
    ("lambda.csv", r"(?s)^.*$", "", "No columns"),
]


@pytest.mark.parametrize(("table", "pattern", "replacement", "named"), TABLES)
def test_a_table_that_cannot_be_used_is_named(released_sample, tmp_path, table, pattern, replacement, named):
    tables = released_sample.copy("tables", tmp_path)
    rewrite(tables / table, pattern, replacement)
    with refused(f"released.source = '{tables}'", named):
        schedules.read(str(tables))


TREES = [  # what is changed in a configuration, and what the line names beside the folder
    ("num_layers: 70", "num_layers: 69", f"{BLOOM} has num_layers = 69, not 70"),
    (r"num_heads: 112\n\s+", "", f"{BLOOM} lacks attention_config.num_heads"),
    ('"causal"', '"sliding_window"', f"{BLOOM} has mask_config.mask_type = 'sliding_window', not 'causal'"),
    ("softmax_temperature: 1.0", "softmax_temperature: 2.0", "softmax_temperature = 2.0, not 1"),
    ('"custom"', '"constant"', "lambda_schedule_config.schedule_type = 'constant', not 'custom'"),
    (r"alibi_slopes: \[\[", "alibi_slopes: [[0.5, ", "attention_config.alibi_slopes"),
    (r"lambdas_custom: \[", "lambdas_custom: [0.5, ", "lambda of shape (71,), not (70,)"),
    (r"lambdas_custom: \[[^,]*", "lambdas_custom: [-0.1", "lambda = -0.1"),
    (r"base_scores: \[\[", "base_scores: [[0.5, ", "unequal length"),
    (r"base_scores: \[\[[^,]*", "base_scores: [[.inf", "base = inf"),
    (r"(?s)^.*$", "a: [1", "flow sequence"),
    (r"(?s)^.*$", "!!python/object/apply:os.getcwd []", "tag"),
]


@pytest.mark.parametrize(("pattern", "replacement", "named"), TREES)
def test_a_configuration_that_cannot_be_used_is_named(released_sample, tmp_path, pattern, replacement, named):
    """One model on one data set is read, so that YAML does not take seconds."""
    path = tmp_path / BLOOM
    path.parent.mkdir(parents=True)
    path.write_text((released_sample.tree / BLOOM).read_text())
    rewrite(path, pattern, replacement)
    with pytest.MonkeyPatch.context() as only:
        only.setattr(schedules, "MODELS", {"bloom-176b": MODELS["bloom-176b"]})
        only.setattr(schedules, "DATASETS", {"dclm": "dclm-baseline"})
        with refused(f"released.source = '{tmp_path}'", named):
            schedules.read(str(tmp_path))
        path.rename(path.with_name("other.yaml"))
        with refused(f"{BLOOM} is missing"):
            schedules.read(str(tmp_path))
