"""Tables of `structural` are made from the statistics of `comparison`: tidy to compute with, readable with intervals.

What the paper prints stands beside what was measured: rows of `published/`, marked as such, without an interval.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from position_bias.language_models.names import with_shown_names
from position_card.models.files import model_files

VARIANTS = ("a", "b", "c", "half", "measured", "uniform", "last")
KEYS = ["dataset", "n", "model", "checkpoint", "estimator"]
PUBLISHED = "published"  # the checkpoint of a row that the paper prints


def training(checkpoint: str) -> str:
    """The training that a checkpoint such as seed0/step300 is of: seed0; and hub of the checkpoint hub."""
    return checkpoint.split("/")[0]


def step(checkpoint: str) -> int:
    """The training step of a checkpoint, such as seed0/step300."""
    return int(checkpoint.split("/")[1].removeprefix("step"))


def distances(statistics: pd.DataFrame, published: pd.DataFrame, names: Sequence[str], table: str) -> pd.DataFrame:
    """Return statistics `names` of every variant against the measured influence (d), tidy, printed values below.

    `statistics` joins the tables of `comparison.summary`. A variant that does not depend on lambda stands once, with
    estimator `none`. `published` has columns table, dataset, n, model, variant, value; those of `table` are printed.
    """
    tidy = statistics[statistics["statistic"].isin(names) & statistics["variant"].isin(VARIANTS)]
    columns = [*KEYS, "prompts", "resampled", "variant", "statistic", "value", "low", "high"]
    of_paper = published[published["table"] == table]
    of_paper = of_paper.assign(checkpoint=PUBLISHED, estimator=PUBLISHED, statistic=names[0])
    if of_paper.empty:
        return tidy[columns].reset_index(drop=True)
    return pd.concat([tidy, of_paper], ignore_index=True)[columns]


def readable(distances: pd.DataFrame) -> pd.DataFrame:
    """Return a table for people, with cells `value [low, high]` and a column for each variant.

    A row is of one statistic, data set, model and estimator of lambda.
    """
    by_statistic = distances.groupby("statistic", sort=False)
    return with_shown_names(
        pd.concat([_readable(of_statistic).assign(statistic=name) for name, of_statistic in by_statistic])
    )


def _readable(distances: pd.DataFrame) -> pd.DataFrame:
    cells = distances.assign(cell=list(_cells(distances))).set_index([*KEYS, "variant"])["cell"].unstack(sort=False)
    by_lambda = cells.drop("none", level="estimator")
    without_lambda = (
        cells.xs("none", level="estimator").reindex(by_lambda.reset_index("estimator").index).set_axis(by_lambda.index)
    )
    cells_by_variant = (
        by_lambda.fillna(without_lambda).reindex(columns=[*VARIANTS]).fillna("").add_prefix("(").add_suffix(")")
    )
    return cells_by_variant.reset_index().rename(columns={"estimator": "lambda by"})


def _cells(table: pd.DataFrame) -> Iterator[str]:
    for value, low, high in zip(table["value"], table["low"], table["high"], strict=True):
        if pd.isna(value):
            yield "-"  # a constant profile has no order
        else:
            yield f"{value:.2f}" if pd.isna(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def table1(
    losses: pd.DataFrame, models: list[Path], published: pd.DataFrame, architectures: dict[str, dict[str, int]]
) -> pd.DataFrame:
    """Table 1: size and held-out loss, in nats a token, of every model that is trained here; printed sizes below.

    `losses` joins the loss tables of training (columns model, seed, step, split, loss), and `models` are the Hugging
    Face directories of the same trainings. `architectures` maps a model to its layers, heads and hidden width.
    """
    held_out = losses[losses["split"] == "test"].sort_values("step").groupby(["model", "seed"])["loss"]
    first, last = held_out.first(), held_out.last()
    trainings = losses[["model", "seed"]].drop_duplicates().itertuples(index=False)
    rows = []
    for (model, seed), folder in zip(trainings, models, strict=True):
        size = architectures[model]
        rows.append(
            {
                "model": model,
                "seed": seed,
                "layers": size["layers"],
                "heads": size["heads"],
                "head_dim": size["hidden"] // size["heads"],
                "parameters": model_files(folder).parameters,
                "untrained loss": first[model, seed],
                "loss": last[model, seed],
            }
        )
    return pd.concat([pd.DataFrame(rows), published.assign(seed=PUBLISHED)])


def licences(published: pd.DataFrame) -> pd.DataFrame:
    """Table 6, as published/structural_licences.csv has it."""
    return published
