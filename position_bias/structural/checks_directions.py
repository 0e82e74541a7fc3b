"""These checks judge how influence adds up: what is left of it when the directions of gradients are changed.

Networks are the ways in which directions are changed, and what they are compared with; units are documents. All of it
was written down after some pretrained decoders had been measured. Fewer than `LEAST` others decide nothing: until then
those that were seen speak, which can contradict a claim and not confirm it, and afterwards the others alone.
"""

from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from position_bias.structural.checks_pretrained import SEEN, unmeasured
from position_bias.verdicts.claim import PRETRAINED
from position_bias.verdicts.judge import Statistic, judge
from position_bias.verdicts.predictions import Predicted
from position_bias.verdicts.verdict import table

PREFIX, STAGES = "directions: ", "directions: in training"  # how names of statistics begin; the one of stages
DECIDING = ("scientific-packages", 256)  # the text whose documents are many, and the tokens of a prompt
LEAST = 4  # models that were not seen before
LABELS = ("model", "dataset", "n", "scale")
COLUMNS = (*LABELS, "statistic", "network", "unit", "value")  # of the tables in evidence/; a unit is a document


def checks(evidence: Iterable[pd.DataFrame], predictions: Mapping[str, list[Predicted]], level: float) -> pd.DataFrame:
    """Verdicts in the schema of `verdict.COLUMNS` on tables with `COLUMNS`; claims without rows cannot be tested."""
    asked = {name: rows for name, rows in predictions.items() if name.startswith(PREFIX)}
    kept = list(evidence)
    values = pd.concat(kept) if kept else pd.DataFrame(columns=list(COLUMNS))
    tables = [
        table("structural", str(scale), judge(statistics(of_scale, asked), asked, level))
        for scale, of_scale in values.groupby("scale")
    ]
    heard = {claim for rows in tables for claim in rows["claim"]}
    silent = {name: [row for row in rows if row.claim not in heard] for name, rows in asked.items()}
    return pd.concat([*tables, table("structural", PRETRAINED, judge(unmeasured(silent), silent, level))])


def statistics(values: pd.DataFrame, asked: Mapping[str, list[Predicted]]) -> Iterator[Statistic]:
    """What is asked of each model on each text at each length: units down, networks across."""
    unseen = set(values["model"]) - {*SEEN}
    for (model, dataset, n, _, name), rows in values.groupby([*LABELS, "statistic"], sort=False):
        if (statistic := f"{PREFIX}{name}") in asked:
            setting = {"model": model, "dataset": dataset, "n": n}
            across = rows.pivot(index="unit", columns="network", values="value")
            seen = dict.fromkeys(map(str, across), pd.Series(model in SEEN, index=across.index))
            decides = (dataset, n) == DECIDING and (model in SEEN) == (len(unseen) < LEAST)
            speaks = decides or statistic == STAGES
            wording = {"decoder": f"{model}, {dataset}, {n} tokens"}
            yield Statistic(statistic, across, setting, speaks=speaks, wording=wording, seen=seen)
