"""Tables of the papers, from the statistics of `comparison`: rows to read, with intervals in brackets."""

from collections.abc import Iterator

import pandas as pd

VARIANTS = ("a", "b", "c", "half", "measured", "uniform", "last")


def table2(statistics: pd.DataFrame) -> pd.DataFrame:
    """Rows of Table 2 of `structural`, tidy: W1 distance of each variant to the measured influence (d).

    A variant that does not depend on lambda stands once, with estimator `none`.
    """
    distances = statistics[statistics["statistic"] == "wasserstein"]
    return distances.reset_index(drop=True)


def readable(distances: pd.DataFrame) -> pd.DataFrame:
    """One row a model and estimator of lambda, one column a variant: `value [low, high]`."""
    cells = distances.assign(cell=[f"{v:.3f} [{a:.3f}, {b:.3f}]" for v, a, b in _intervals(distances)])
    shared = cells[cells["estimator"] == "none"]
    rows = []
    for (model, checkpoint, estimator), own in cells[cells["estimator"] != "none"].groupby(
        ["model", "checkpoint", "estimator"], sort=False
    ):
        same_model = shared[(shared["model"] == model) & (shared["checkpoint"] == checkpoint)]
        by_variant = pd.concat([same_model, own]).set_index("variant")["cell"]
        named = {f"({variant})": by_variant.get(variant, "") for variant in VARIANTS}
        rows.append({"model": model, "checkpoint": checkpoint, "lambda by": estimator, **named})
    return pd.DataFrame(rows)


def _intervals(table: pd.DataFrame) -> Iterator[tuple[float, float, float]]:
    return zip(table["value"], table["low"], table["high"], strict=True)
