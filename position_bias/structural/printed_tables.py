"""Tables 1 to 5 of Herasimchyk et al. 2026 as printed, beside ours: a row for each number, with interval, scale and n.

A printed number of a model and text that nobody measured here has an empty cell beside it, and so has one of ours that
the paper does not print. Table 6, licences, is in `tables`.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from position_bias.language_models.names import with_shown_names
from position_bias.structural.content import EVERY_LAYER
from position_bias.structural.tables import PUBLISHED

COLUMNS = ["model", "dataset", "quantity", "printed", "ours", "low", "high", "scale", "n", "note"]
AS_PRINTED = {"bloom-7b1": "bloom-7b", "dclm": "dclm-baseline"}  # models and data sets that the paper calls otherwise
PAPERS_ESTIMATOR, WITHOUT_LAMBDA = "frobenius", "none"
PAPER = "paper"  # the scale
WITHOUT_INTERVAL = "known, without interval"
EXCLUDED = "no influence has the printed distances of this row"
RANGE = "mean over layers and heads, and the range of the middle 90 % of them"

Row = dict[str, object]


def table1(sizes: Path, mixing: pd.DataFrame, scale: str) -> pd.DataFrame:
    """Depth and parameters: `sizes` is the file of `tables.table1`; `mixing` of evidence/ has layers of big models."""
    table = pd.read_csv(sizes)
    of_paper = table["seed"] == PUBLISHED
    depths = {_paper_name(model): layers for model, layers in mixing.groupby("model")["layers"].first().items()}
    rows: list[Row] = []
    for row in table[of_paper].to_dict("records"):
        depth = {"ours": depths.get(row["model"]), "scale": PAPER, "note": "layers of the released schedule"}
        rows.append({"model": row["model"], "quantity": "depth", "printed": row["layers"], **depth})
        rows.append({"model": row["model"], "quantity": "parameters", "printed": row["parameters"]})
    for model, of_model in table[~of_paper].groupby("model", sort=False):
        first, seeds = of_model.iloc[0], f"{len(of_model)} seeds" if len(of_model) > 1 else "1 seed"
        for quantity, column in (("depth", "layers"), ("parameters", "parameters")):
            rows.append({"model": model, "quantity": quantity, "ours": first[column], "scale": scale, "n": seeds})
    return _table(rows)


def distances(
    measured: pd.DataFrame, drawn: pd.DataFrame, bounds: pd.DataFrame, table: str, scale: str
) -> pd.DataFrame:
    """W to the measured influence, as one of Tables 2, 3 and 4 prints it, and as `tables.distances` has it.

    `drawn` and `bounds` are the tables of evidence/structural/released/ with the distances to the drawn influence,
    which stand beside Table 2, and with what printed distances allow.
    """
    selection = measured[
        measured["estimator"].isin([PAPERS_ESTIMATOR, WITHOUT_LAMBDA]) & measured["variant"].isin([*"abc"])
    ]
    of_paper = measured[measured["checkpoint"] == PUBLISHED]
    keys = ["model", "dataset", "variant"]
    by_key = {tuple(map(_paper_name, key)): rows for key, rows in selection.groupby(keys, sort=False)}
    excluded = _excluded(bounds) if table in ("table2", "table3") else set()  # at the length of the released rollouts
    rows: list[Row] = []
    for cell in of_paper.to_dict("records"):
        key = tuple(str(cell[name]) for name in keys)
        labels = {"model": key[0], "dataset": key[1], "quantity": _quantity(key[2]), "printed": cell["value"]}
        note = {"note": EXCLUDED} if key[:2] in excluded else {}
        if key in by_key:
            rows += [{**labels, **note, **row} for row in _our_rows(by_key.pop(key), scale)]
        elif table == "table2" and (value := _of_drawing(drawn, *key)) is not None:
            rows.append({**labels, "ours": value, "scale": PAPER, "note": f"influence as drawn; {WITHOUT_INTERVAL}"})
        else:
            rows.append({**labels, **note})
    for (model, dataset, variant), of_key in by_key.items():
        labels = {"model": model, "dataset": dataset, "quantity": _quantity(variant)}
        rows += [{**labels, **row} for row in _our_rows(of_key, scale)]
    return _table(rows)


def table5(similarity: pd.DataFrame, kept: list[pd.DataFrame], scale: str) -> pd.DataFrame:
    """Similarity of mean content logits, of this run and of long trainings in evidence/; what is printed is lost."""
    rows: list[Row] = []
    for table in (similarity.assign(scale=scale), *kept):
        every_layer = table[
            (table["layer"].astype(str) == EVERY_LAYER) & (table["way"] == "causal") & (table["region"] != "between")
        ]
        for row in every_layer.to_dict("records"):
            region = {"below": "below the diagonal", "diagonal": "on the diagonal"}[str(row["region"])]
            interval = {"ours": row["value"], "low": row["p05"], "high": row["p95"], "scale": row["scale"]}
            labels = {"model": row["model"], "dataset": row["dataset"], "quantity": f"similarity {region}"}
            note = f"printed numbers are lost in the text; {RANGE}"
            rows.append({**labels, **interval, "n": f"{row['prompts']} prompts", "note": note})
    return _table(rows)


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The same for people: `ours [low, high]` in one cell, three digits, and the names that people read."""
    cells = zip(table["ours"], table["low"], table["high"], strict=True)
    texts = [
        _number(value) + ("" if pd.isna(low) else f" [{_number(low)}, {_number(high)}]") for value, low, high in cells
    ]
    texts_table = table.assign(printed=[_number(value) for value in table["printed"]], ours=texts)
    readable_table = with_shown_names(texts_table).rename(columns={"ours": "ours [interval]"})
    return readable_table.drop(columns=["low", "high"]).fillna("")


def _our_rows(rows: pd.DataFrame, scale: str) -> Iterator[Row]:
    """Ours, a row for each training seed."""
    has_seeds = len(rows) > 1
    for row in rows.to_dict("records"):
        note = {"note": re.sub(r"/.*", "", str(row["checkpoint"]))} if has_seeds else {}
        interval = {"ours": row["value"], "low": row["low"], "high": row["high"]}
        yield {**interval, "scale": scale, "n": f"{int(row['resampled'])} documents", **note}


def _of_drawing(drawn: pd.DataFrame, model: str, dataset: str, variant: str) -> float | None:
    """W of a rollout as configured to the influence of bloom-176b, of which alone a drawing was released."""
    if (model, dataset) != ("bloom-176b", "fineweb-edu"):
        return None
    as_released = (drawn["slopes"] == "released") & (drawn["content"] != "faithful") & (drawn["variant"] == variant)
    return float(drawn.loc[as_released, "wasserstein"].item())


def _excluded(bounds: pd.DataFrame) -> set[tuple[str, str]]:
    """Models and data sets whose printed distances no influence has, with the rollouts that the authors configured."""
    as_configured = (bounds["slopes"] == "released") & (bounds["content"] == "released")
    of_paper = as_configured & (bounds["lambda of (b)"] == "fineweb-edu") & (bounds["verdict"] == "excluded")
    pairs = bounds.loc[of_paper, ["model", "dataset"]].itertuples(index=False, name=None)
    return {(_paper_name(model), _paper_name(dataset)) for model, dataset in pairs}


def _quantity(variant: str) -> str:
    return f"W of ({variant}) to influence"


def _paper_name(name: object) -> str:
    return AS_PRINTED.get(str(name), str(name))


def _number(value: float) -> str:
    if pd.isna(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 10 and float(value).is_integer() else f"{value:.3f}"


def _table(rows: Iterable[Row]) -> pd.DataFrame:
    return pd.DataFrame(list(rows)).reindex(columns=COLUMNS)
