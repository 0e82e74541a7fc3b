"""These checks judge whether rollout tells which label a network copies. All claims are our addition.

Statistics are measured here; published/predictions.csv says what is predicted of them. Statements, statistics and
margins were fixed before the runs that they judge, after a trial on other networks. Networks of one seed share data and
initial weights: numbers are taken by seed, and intervals are Student's over seeds. Means are over networks trained
without bias whose encoding acts on the attention logits: none, the decay mask and RoPE. Sinusoids, which are added to
the tokens, have a claim of their own, and so has training biased to the last item.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from position_bias.retrieval.agreement import (
    PREDICTORS,
    WIRINGS,
    agreement,
    crossings,
    over_networks,
    shallowest,
)
from position_bias.structural import checks_pretrained
from position_bias.verdicts.judge import Statistic, judge
from position_bias.verdicts.predictions import Predicted, predictions
from position_bias.verdicts.verdict import table, tested


def verdicts(
    profiles: pd.DataFrame,
    evidence: list[pd.DataFrame],
    recalled: list[pd.DataFrame],
    predicted: Path,
    scale: str,
    level: float,
) -> pd.DataFrame:
    """The `checks` of a run, those of the long runs in evidence/, and those of pretrained decoders (`decoders`).

    Tables in evidence/ have a column scale. Of long runs, what cannot be tested is left out.
    """
    registered = predictions(predicted, "retrieval")
    kept = pd.concat(evidence).groupby("scale") if evidence else ()
    long_runs = [tested(checks(of_scale, registered, str(name), level)) for name, of_scale in kept]
    of_decoders = checks_pretrained.checks(recalled, registered, level, "retrieval")
    return pd.concat([checks(profiles, registered, scale, level), *long_runs, of_decoders], ignore_index=True)


def checks(
    profiles: pd.DataFrame, predictions: Mapping[str, list[Predicted]], scale: str, level: float
) -> pd.DataFrame:
    """Return verdicts in the schema of `verdict.COLUMNS`, with keys, on profiles (`agreement.COLUMNS`)."""
    return table("retrieval", scale, judge(statistics(profiles), predictions, level))


def statistics(profiles: pd.DataFrame) -> Iterator[Statistic]:
    """Yield what is measured on profiles (`agreement.COLUMNS`): seeds down, predictors across.

    Of each wiring: the share of networks where a predictor has the sign of the gap, the log of the slope where it turns
    over the slope where the gap does, and its distance from the labels named. Where rollout is expected to rank labels
    in the wrong order, the rank correlation with them.
    """
    found = agreement(profiles)
    for study, wiring in WIRINGS.items():
        setting, wording = {"study": study}, {"wiring": wiring}
        own = found[found["study"] == study]
        judged = own[own["encoding"] != "sin"]
        right = _by_predictor(judged, "right").assign(constant=_best_constant(judged))
        yield Statistic("right", right, setting, wording=wording)
        few = shallowest(own)
        of_measured = few[few["predictor"] == "measured"]
        ratio = (crossings(of_measured, "gap") / crossings(of_measured, "observed")).map(np.log)
        yield Statistic("slope", ratio.to_frame("measured"), setting, wording=wording)
        yield Statistic("distance", _by_predictor(judged, "wasserstein"), setting, wording=wording)
    sinusoids, unencoded = (found[found["encoding"] == encoding] for encoding in ("sin", "none"))
    for study, wiring in WIRINGS.items():
        order = _by_predictor(sinusoids[sinusoids["study"] == study], "spearman")
        yield Statistic("order with sinusoids", order, {"study": study}, wording={"wiring": wiring})
    yield Statistic("order after bias", _by_predictor(unencoded[unencoded["study"] == "last"], "spearman"))


def _by_predictor(found: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Means over networks: seeds down, predictors across; no seed where no network was trained."""
    return over_networks(found, statistic).reindex(columns=list(PREDICTORS))


def _best_constant(found: pd.DataFrame) -> pd.Series:
    """The share of networks, by seed, whose gap has the sign that most have: what a guess can have right at best."""
    observed = found[found["predictor"] == "measured"].assign(first=lambda rows: (rows["observed"] > 0).astype(float))
    first = observed.groupby("seed")["first"].mean()
    return first.where(first > 0.5, 1 - first)
