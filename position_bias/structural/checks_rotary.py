"""These checks judge what kernels say of small decoders with rotary positions: our addition, on long runs of evidence/.

The paper leaves sharp probes of RoPE at finite depth open (Section 7). Units are training seeds, and intervals
Student's over them; networks are kernels, or lambdas of one of them. Claims and margins were fixed before the networks
here were trained; on two other small Llamas, R^2 had been seen between .92 and .997, and the rollouts of all kernels
equally far from the measured influence.
"""

from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from position_bias.structural.rotary import COLUMNS, CONTENT_FREE, DISTANCE, NONE, R_SQUARED, ROWS
from position_bias.verdicts.judge import Statistic, judge
from position_bias.verdicts.predictions import Predicted
from position_bias.verdicts.verdict import table

LABELS = ("model", "seed", "step", "scale")  # of tables of `rotary.described` in evidence/
STATISTICS = {  # name -> network -> quantity, mixing and kernel of `rotary.described`
    R_SQUARED: {"rotary": (R_SQUARED, NONE, "rotary")},
    ROWS: {kernel: (ROWS, NONE, kernel) for kernel in (CONTENT_FREE, "rotary")},
    DISTANCE: {kernel: (DISTANCE, "frobenius", kernel) for kernel in (CONTENT_FREE, "rotary", "measured")},
    f"{DISTANCE} by lambda": {mixing: (DISTANCE, mixing, "rotary") for mixing in ("frobenius", "half")},
}


def checks(evidence: Iterable[pd.DataFrame], predictions: Mapping[str, list[Predicted]], level: float) -> pd.DataFrame:
    """Verdicts in the schema of `verdict.COLUMNS`, of each model and step in tables with `LABELS` and `rotary.COLUMNS`.

    Rows of the last kept step speak of claims, those of earlier ones of none. Without a table no claim can be tested.
    """
    tables = list(evidence)
    if not tables:
        nothing = statistics(pd.DataFrame(columns=[*LABELS, *COLUMNS]), {}, "no rotary decoder was trained", True)
        return table("structural", "longer", judge(nothing, predictions, level))
    rows = []
    for model, of_model in (of_model for each in tables for of_model in each.groupby("model")):
        last = of_model["step"].max()
        for (step, scale), of_step in of_model.groupby(["step", "scale"]):
            setting = {"model": model, "step": step}
            measured = statistics(of_step, setting, f"{model} after {step} steps", bool(step == last))
            rows.append(table("structural", str(scale), judge(measured, predictions, level)))
    return pd.concat(rows, ignore_index=True)


def statistics(
    described: pd.DataFrame, setting: Mapping[str, object], decoder: str, speaks: bool
) -> Iterator[Statistic]:
    """Means over layers of what `rotary.described` says of one model at one step: seeds down, networks across."""
    keys = ["quantity", "mixing", "kernel"]
    by_seed = described.groupby(["seed", *keys])["value"].mean().unstack(keys)
    for name, networks in STATISTICS.items():
        across = by_seed.reindex(columns=pd.MultiIndex.from_tuples(networks.values())).set_axis([*networks], axis=1)
        yield Statistic(f"rotary: {name}", across, setting, speaks=speaks, wording={"decoder": decoder})
