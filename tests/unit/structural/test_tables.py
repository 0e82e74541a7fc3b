import numpy as np
import pandas as pd
import pytest

from position_bias.structural.tables import distances, readable
from position_card.rollout.comparison import compare, summary
from tests.measurements import labels, made

N = 9
LABELS = labels(N)


@pytest.fixture(scope="module")
def compared():
    return compare(made(np.random.default_rng(0), alibi=True, n=N), 40, 0.9, seed=1)


def test_table_2_reads_as_a_row_for_each_estimator(compared):
    measured = summary(compared[1], 0.9).assign(**LABELS)
    nothing = pd.DataFrame(columns=["table", "dataset", "n", "model", "variant", "value"])
    table = distances(measured, nothing, ["wasserstein", "spearman"], "spearman")
    told = readable(table)
    rows = told[told["statistic"] == "wasserstein"]
    assert list(rows["lambda by"]) == ["frobenius", "token"]
    assert set(told["model"]) == {"bloom-mini"}  # the key of its files is bloom
    assert rows["(a)"].nunique() == 1
    b = table.query("variant == 'b' and estimator == 'token' and statistic == 'wasserstein'").iloc[0]
    assert rows["(b)"][1] == f"{b['value']:.3f} [{b['low']:.3f}, {b['high']:.3f}]"
    assert set(told.loc[told["statistic"] == "spearman", "(uniform)"]) == {"-"}  # a constant profile has no order


def test_printed_values_stand_below_the_measured_ones(compared):
    printed = {"dataset": "web", "n": 256, "model": "bloom-7b", "value": [0.63, 0.04, 1], "variant": ["a", "b", "c"]}
    of_tables = pd.DataFrame(printed).assign(table=["table2", "table2", "table3"])
    table = distances(summary(compared[1], 0.9).assign(**LABELS), of_tables, ["wasserstein"], "table2")
    last = readable(table).iloc[-1]
    assert (last["checkpoint"], last["(a)"], last["(b)"], last["(c)"]) == ("published", "0.63", "0.04", "")
