from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from position_bias.emergence import runs
from position_bias.emergence.runs import Run
from position_bias.running.runtime import InputError

EMERGENCE = yaml.safe_load((Path(__file__).parents[3] / "config.yaml").read_text())["emergence"]
PLAIN, PREFIX, ENDS = ("gaussian", "plain"), ("fixed", "prefix"), ("gaussian", "ends")


@pytest.fixture
def emergence():
    return deepcopy(EMERGENCE)


def test_a_study_has_a_run_for_each_of_its_depths_and_a_shallow_one_without_any(emergence):
    assert runs.runs(emergence, PREFIX, PLAIN) == [Run(*PREFIX, 2), *(Run(*PLAIN, depth) for depth in (2, 4, 6))]
    assert str(Run(*PLAIN, 4)) == "gaussian/plain/depth4"
    emergence["networks"]["plain"] = []
    assert runs.runs(emergence, PLAIN) == []


def test_figures_of_a_mask_alone_show_the_shallow_run_of_a_study_that_trains_it(emergence):
    assert runs.with_mask_alone(emergence, PLAIN) == [Run(*PLAIN, 2)]
    emergence["depths"]["gaussian"]["plain"] = [4]
    assert runs.with_mask_alone(emergence, PLAIN) == []
    emergence["networks"]["prefix"] = ["prefix2/rope"]
    assert runs.with_mask_alone(emergence, PREFIX) == []


@pytest.mark.parametrize(
    ("study", "depth", "seeds", "iterations"),
    [("ends", 2, 6, 2500), ("plain", 2, 5, 2000), ("plain", 4, 3, 2000), ("last", 2, 5, 1000)],
)
def test_seeds_and_iterations_are_those_of_the_kind_of_study(emergence, study, depth, seeds, iterations):
    assert runs.seeds(emergence, study, depth) == list(range(seeds))
    emergence["seeds"]["first"] = 7
    assert runs.seeds(emergence, study, depth) == list(range(7, 7 + seeds))
    assert runs.training(emergence, study) == {**emergence["training"], "iterations": iterations}


def test_a_run_is_at_both_scales_where_a_network_of_it_was_trained_as_the_paper_does(emergence, tmp_path):
    rows = ["vocabulary,study,depth,networks,scale"]
    rows += ["gaussian,ends,2,causal/rope causal/none,paper", "gaussian,plain,3,causal/none,paper"]  # of no such depth
    rows += [
        "fixed,prefix,2,prefix9/none,paper",
        "gaussian,first,2,causal/none,longer",
        "gaussian,gone,2,causal/none,paper",
        "gone,ends,2,causal/none,paper",
        "",
    ]
    (tmp_path / "runs.csv").write_text("\n".join(rows))
    assert runs.at_both_scales(emergence, [str(tmp_path / "runs.csv")]) == [ENDS]


TABLE = "vocabulary,study,depth,networks,scale\ngaussian,ends,2,causal/none,paper\n"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"", "not enough values"),
        (bytes(80), "'vocabulary' is not in list"),
        (TABLE.replace("study", "studies").encode(), "'study' is not in list"),
        (TABLE.replace("2", "two").encode(), "'two'"),
        (TABLE.replace("2", "\0").encode(), r"'\\x00'"),
        (TABLE.replace(",causal/none,paper", "").encode(), "out of range"),
        (TABLE.encode() + b"\xff", "can't decode byte 0xff"),
        (TABLE.encode() + b'"' + 200_000 * b"x", "field limit"),
        (None, "Is a directory"),
    ],
)
def test_what_is_no_table_of_runs_ends_in_one_line_that_names_it(emergence, tmp_path, written, said):
    path = tmp_path / "runs.csv"
    path.mkdir() if written is None else path.write_bytes(written)
    with pytest.raises(InputError, match=rf"^{path} is not a table of runs \([^\n]*{said}[^\n]*remove it$"):
        runs.at_both_scales(emergence, [str(path)])
