"""These checks judge whether rollout tells which label a network copies. All claims are our addition.

Statements, statistics and margins were fixed before the runs that they judge, after a trial on other networks. Networks
of one seed share data and initial weights: numbers are taken by seed, and intervals are Student's over seeds. Means are
over networks trained without bias whose encoding acts on the attention logits: none, the decay mask and RoPE.
Sinusoids, which are added to the tokens, have a claim of their own, and so has training biased to the last item.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from position_bias.retrieval.agreement import (
    PREDICTORS,
    WIRINGS,
    agreement,
    crossings,
    of_wiring,
    over_networks,
    shallowest,
)
from position_bias.verdicts.verdict import Prediction, mean_row, table, tested

MOSTLY = Prediction(">", 0.75)  # of the share of networks whose sign is right: a toss has 1/2
BETTER_GUESS = Prediction(">", 0, 0.05)  # of such shares, than always naming the sign that more of the networks have
SAME_SLOPE = Prediction("=", 0, 0.35)  # of a log ratio: half a step between slopes that double
CLOSER = Prediction(">", 0, 0.01)  # of distances: that of the other predictor is larger
REVERSED = Prediction("<", 0)  # of a rank correlation
RANKED = Prediction(">", 0)

SOURCE = "our addition: does the structural prior tell which label is copied?"
DIAGNOSTIC = "our addition, after a trial: what is lost where attention is averaged"
GUESS = "our addition: null models"
SIGN, SLOPE, DATA, SINUSOIDS, LAST = "sign of the gap", "slope", "distance", "sinusoids", "last item"
NULLS = tuple(predictor for predictor, kind in PREDICTORS.items() if kind == "null")


def checks(profiles: pd.DataFrame, scale: str, level: float) -> pd.DataFrame:
    """Return verdicts in the schema of `verdict.COLUMNS` on profiles (`agreement.COLUMNS`)."""
    found = agreement(profiles)
    rows = [*_without_bias(found, level), *_failures(found, level)]
    return table("retrieval", scale, rows)


def of_evidence(kept: pd.DataFrame, level: float) -> list[pd.DataFrame]:
    """The verdicts of long runs, profiles with a column scale: those that can be given, a table a scale."""
    return [tested(checks(of_scale, str(scale), level)) for scale, of_scale in kept.groupby("scale")]


def _without_bias(found: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """What is said of all networks of a wiring together."""
    for study, wiring in WIRINGS.items():
        own = of_wiring(found, study)
        judged = own[own["encoding"] != "sin"]
        right = over_networks(judged, "right")
        quantity = f"share of networks where measured rollout has the sign of the gap, {wiring}"
        yield mean_row("retrieval-sign", SIGN, quantity, MOSTLY, _column(right, "measured"), level, SOURCE)
        gained = _column(right, "measured") - _best_constant(judged)
        quantity = f"that share less that of the better of two constant guesses, {wiring}"
        yield mean_row("retrieval-sign", SIGN, quantity, BETTER_GUESS, gained, level, SOURCE)
        quantity = f"share of networks where rollout by the architecture has the sign of the gap, {wiring}"
        yield mean_row("", SIGN, quantity, MOSTLY, _column(right, "arch"), level, SOURCE)

        few = shallowest(own)
        of_measured = few[few["predictor"] == "measured"]
        ratio = (crossings(of_measured, "gap") / crossings(of_measured, "observed")).map(np.log)
        quantity = f"log of the predicted over the observed slope where the gap changes sign, {wiring}"
        yield mean_row("retrieval-slope", SLOPE, quantity, SAME_SLOPE, ratio, level, SOURCE)

        distance = over_networks(judged, "wasserstein")
        measured = _column(distance, "measured")
        quantity = f"distance of rollout by the architecture less that of measured rollout, {wiring}"
        yield mean_row("retrieval-data", DATA, quantity, CLOSER, _column(distance, "arch") - measured, level, SOURCE)
        for null in NULLS:
            quantity = f"distance of the null {null} less that of measured rollout, {wiring}"
            yield mean_row("", DATA, quantity, CLOSER, _column(distance, null) - measured, level, GUESS)


def _failures(found: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Where rollout is expected to rank labels in the wrong order, and whether frozen attention does."""
    sinusoidal = found[found["encoding"] == "sin"]
    settings = [
        ("retrieval-sinusoids", SINUSOIDS, f"sinusoids, {wiring}", of_wiring(sinusoidal, study))
        for study, wiring in WIRINGS.items()
    ]
    biased = of_wiring(found, "last")
    settings.append(
        ("retrieval-last", LAST, "trained on the last item, no encoding", biased[biased["encoding"] == "none"])
    )
    for claim, item, setting, networks in settings:
        order = over_networks(networks, "spearman")
        for predictor, of_claim, prediction, source in (
            ("measured", claim, REVERSED, SOURCE),
            ("frozen", "", RANKED, DIAGNOSTIC),
        ):
            quantity = f"rank correlation of {predictor} rollout with the labels named, {setting}"
            if predictor == "frozen":
                quantity = f"rank correlation of what frozen attention names with the labels named, {setting}"
            yield mean_row(of_claim, item, quantity, prediction, _column(order, predictor), level, source)


def _best_constant(found: pd.DataFrame) -> pd.Series:
    """The share of networks, by seed, whose gap has the sign that most have: what a guess can have right at best."""
    observed = found[found["predictor"] == "measured"].assign(first=lambda rows: (rows["observed"] > 0).astype(float))
    first = observed.groupby("seed")["first"].mean()
    return first.where(first > 0.5, 1 - first)


def _column(by_seed: pd.DataFrame, predictor: str) -> pd.Series:
    """A predictor's numbers by seed; none where no network was trained."""
    return by_seed[predictor] if predictor in by_seed else pd.Series(dtype=float)
