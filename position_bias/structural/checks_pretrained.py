"""These checks judge real decoders smaller than the paper's, by gradients and by the replacement of single tokens.

Each model has verdicts of its own, over documents. A share enters by its logarithm, and so does each position of the
middle, of which the mean is taken: a position that is like those of the middle then has the ratio 1, however widely the
effects of single tokens spread. Beside it stands the ratio of mean effects, with documents resampled: a figure of mean
profiles shows it, and it speaks of no claim, since such an interval misses too often. What we claim of replacement was
written down after some models had been measured; rows of these models are shown, but speak of no such claim.
"""

from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from position_bias.verdicts.judge import ESTIMATE, Statistic, judge, percentiles, student, table
from position_bias.verdicts.registry import PRETRAINED, Predicted

THEIRS, OURS = "pretrained: ", "pretrained, ours: "  # how the names of statistics begin: the paper's claims, and ours
SEEN = ("smollm2-135m", "gemma-3-270m", "qwen2.5-coder-0.5b")  # measured before our claims were written down
LABELS = ("model", "dataset", "n")
COLUMNS = (*LABELS, "statistic", "network", "unit", "documents", "value", "scale")  # of the tables in evidence/

Predictions = Mapping[str, list[Predicted]]


def checks(evidence: Iterable[pd.DataFrame], predictions: Predictions, level: float) -> pd.DataFrame:
    """Verdicts in the schema of `judge.COLUMNS` on tables with `COLUMNS`.

    A unit is a document, or of recall a context. Where a quantity is of a mean over documents, units are resamples of
    them, and ESTIMATE is all documents as they are. A claim of ours that no row speaks of has rows which say that it
    cannot be tested. Where several tables have the same quantity, `of_most_documents` says which is judged.
    """
    asked = {name: rows for name, rows in predictions.items() if name.startswith((THEIRS, OURS))}
    rows = [row for values in of_most_documents(evidence) for row in judge(statistics(values, asked), asked, level)]
    heard = {row["claim"] for row in rows}
    silent = {
        name: [row for row in of_name if row.claim and row.claim not in heard]
        for name, of_name in asked.items()
        if name.startswith(OURS)
    }
    return table("structural", PRETRAINED, [*rows, *judge(unmeasured(silent), silent, level)])


def of_most_documents(evidence: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The tables, each with those statistics alone that no other has of more documents, all networks together.

    Prompts of a short run are among those of a longer one, and together they would count documents twice. Of two tables
    with as many documents the first keeps a statistic.
    """
    tables = list(evidence)
    quantity = [*LABELS, "statistic"]
    counts = [values.groupby(quantity)["documents"].sum() for values in tables]
    most = pd.DataFrame(dict(enumerate(counts))).idxmax(axis=1)
    for place, values in enumerate(tables):
        yield values[most.loc[pd.MultiIndex.from_frame(values[quantity])].to_numpy() == place]


def on_text(judged: pd.DataFrame, dataset: str, n: int) -> pd.DataFrame:
    """The verdicts on prompts of `n` tokens of a data set."""
    return judged[judged["setting"].astype(str).str.endswith(f"dataset = {dataset}; n = {n}")]


def statistics(values: pd.DataFrame, asked: Predictions) -> Iterator[Statistic]:
    """What is asked of each model on each text at each length: units down, networks across."""
    of_means = values["statistic"].isin(values["statistic"][values["unit"] == ESTIMATE])
    resampled = values["documents"].where(of_means, 0)  # together, as many as there are
    for (*labels, statistic, _), rows in values.groupby([*LABELS, "statistic", resampled], sort=False):
        setting = dict(zip(LABELS, labels, strict=True))
        across = rows.pivot(index="unit", columns="network", values="value")
        estimate = percentiles(int(rows["documents"].iloc[0])) if ESTIMATE in across.index else student
        known = setting["model"] in SEEN
        seen = {str(name): pd.Series(known, index=units.array) for name, units in rows.groupby("network")["unit"]}
        wording = {"decoder": "{model}, {dataset}, {n} tokens".format(**setting)}
        for occasion in (THEIRS, OURS):
            if (name := f"{occasion}{statistic}") in asked:
                speaks = occasion == THEIRS or setting["model"] not in SEEN
                yield Statistic(name, across, setting, estimate, speaks=speaks, wording=wording, seen=seen)


def unmeasured(asked: Predictions) -> Iterator[Statistic]:
    """Every statistic that is asked for, of no model."""
    for name, rows in asked.items():
        networks = {network for row in rows for network in (row.network, row.other) if network}
        empty = pd.DataFrame(columns=sorted(networks), dtype=float)
        yield Statistic(name, empty, wording={"decoder": "no further decoder was measured"})
