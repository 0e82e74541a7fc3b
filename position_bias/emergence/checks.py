"""These checks judge what Wu et al. 2025 claim of the accuracy gaps and attention sinks of trained networks.

A gap is above 0 where the earlier of two equal items is preferred. Predictions and margins were fixed before the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase
from typing import Any, cast

import numpy as np
import pandas as pd

from position_bias.emergence.gaps import CONFIGURATION, PAIR_NAMES, summary
from position_bias.emergence.gaps import trained as at_end
from position_bias.emergence.studies import BY_BIAS, BY_DEPTH, OF_SINKS, printed, rounding_decides
from position_bias.verdicts.verdict import Prediction, mean_row, table

NO_CLAIM = "no claim"

NEGLIGIBLE = 0.01  # of an accuracy
EARLIER = Prediction(">", 0, NEGLIGIBLE)
LATER = Prediction("<", 0, NEGLIGIBLE)
EQUAL = Prediction("=", 0, 0.05)
BIASED = Prediction(">", NEGLIGIBLE)  # of the size of a gap
NOT_LATER = Prediction(">", -NEGLIGIBLE)
NOT_LOST = Prediction("<", NEGLIGIBLE)
MORE = Prediction(">", 0, NEGLIGIBLE)

SINK_FIGURES = printed(OF_SINKS)
FIGURES = SINK_FIGURES | printed(BY_DEPTH, BY_BIAS) | {("isotropic", "plain"): "Appendix L"}
SINK_CLAIMS = {"plain": "emergence-figure-8a", "window": "emergence-figure-8b", "prefix": "emergence-figure-8c"}
DEEP = 4  # layers of the deep regime of footnote 2, at least
NULL = "our addition: beyond what softmax alone gives"
VALUES = ("gap", "accuracy", "value")  # the columns of the tables below that are measured
NOT_TRAINED = pd.Series(dtype=float)  # what is known where no network is deep enough, or none deeper than another

FIRST_MIDDLE, FIRST_LAST, MIDDLE_LAST = PAIR_NAMES
BEGINNING = {FIRST_MIDDLE: EARLIER, FIRST_LAST: EARLIER}

# What a study's networks with a positional encoding learn from its data (Section 5.2, K.3), and a causal mask alone
LEARNED = {
    "ends": {**BEGINNING, MIDDLE_LAST: LATER},
    "first": BEGINNING,
    "middle": {FIRST_MIDDLE: LATER, MIDDLE_LAST: EARLIER},
    "last": {FIRST_LAST: LATER, MIDDLE_LAST: LATER},
}
CAUSAL_ALONE = {
    "plain": {**BEGINNING, MIDDLE_LAST: EARLIER},
    **dict.fromkeys(LEARNED, BEGINNING),
}


WITHOUT_U = ("plain", "residual", "first", "middle", "last")  # studies that do not train on both ends


ASKED = ("study", "mask", "encoding", "pair")


def expected(study: str, mask: str, encoding: str, pair: str) -> Prediction | None:
    """What the paper predicts of the gap of a pair; None where it says nothing."""
    if mask == encoding == "none":
        return EQUAL  # without either, a network cannot tell positions apart
    if encoding in ("sin", "rope"):
        return LEARNED.get(study, {}).get(pair)
    return CAUSAL_ALONE.get(study, {}).get(pair) if (mask, encoding) == ("causal", "none") else None


def gap_table(trained: pd.DataFrame, settled: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return every gap with its interval over seeds and its verdict, at the end of training and over its last part.

    `trained` and `settled` are the tables of `gaps.trained` and `gaps.settled`.
    """
    keys = [*CONFIGURATION, "pair"]
    table = summary(trained, keys, "gap", level)
    late = summary(settled, keys, "gap", level).drop(columns="seeds")
    table = table.merge(late, on=keys, suffixes=("", " settled"), validate="one_to_one")
    predictions = [expected(*of) for of in zip(*(table[name] for name in ASKED), strict=True)]
    intervals = zip(table["low"], table["high"], strict=True)
    return table.assign(
        relation=["" if prediction is None else prediction.relation for prediction in predictions],
        bound=[np.nan if prediction is None else prediction.bound for prediction in predictions],
        margin=[np.nan if prediction is None else prediction.margin for prediction in predictions],
        verdict=[
            NO_CLAIM if prediction is None else prediction.verdict(*interval)
            for prediction, interval in zip(predictions, intervals, strict=True)
        ],
        item=[FIGURES[shown] for shown in zip(table["vocabulary"], table["study"], strict=True)],
    )


@dataclass(frozen=True)
class Measured:
    """What claims are judged on, by seed."""

    gaps: pd.DataFrame  # of gaps.trained
    accuracy: pd.DataFrame  # of gaps.by_position
    sinks: pd.DataFrame  # of sinks.measure, with the columns of a configuration, at one threshold

    @classmethod
    def of(cls, curves: pd.DataFrame, accuracy: pd.DataFrame, sinks: pd.DataFrame) -> "Measured":
        """Take the tables of gaps.curves, gaps.by_position and sinks.measure; a seed that diverged has NaN in each."""
        started = curves[[*CONFIGURATION, "seed"]].drop_duplicates()
        return cls(*(_with_diverged(table, started) for table in (at_end(curves), accuracy, sinks)))


def _with_diverged(table: pd.DataFrame, started: pd.DataFrame) -> pd.DataFrame:
    """The table with rows of NaN for seeds that started and are not in it, where other seeds of their networks are."""
    keys = [name for name in table if name not in {"seed", *VALUES}]
    all_seeds = table[keys].drop_duplicates().merge(started, on=CONFIGURATION)
    found = pd.MultiIndex.from_frame(table[[*keys, "seed"]])
    lost = all_seeds[~pd.MultiIndex.from_frame(all_seeds[[*keys, "seed"]]).isin(found)]
    return pd.concat([table, lost], ignore_index=True) if len(lost) else table


@dataclass(frozen=True)
class Finding:
    """A quantity of each seed, and what is predicted of it. Networks of one seed share data and initial weights."""

    claim: str  # id of the claim that it speaks of, or ""
    item: str
    quantity: str
    prediction: Prediction
    values: pd.Series
    source: str
    identity: bool = False  # networks of any weights have this value
    chosen_from: int = 1  # differences that this one is the most extreme of
    whatever_sign: bool = False  # the prediction is of the size of the mean


def checks(trained: Measured, scale: str, level: float) -> pd.DataFrame:
    """Verdicts on what the paper says of single gaps and of networks together, in the schema of `verdict.COLUMNS`.

    `scale` is that of the trained networks.
    """
    statements = (
        _positions,
        _encodings,
        _depth,
        _weak_at_the_end,
        _residual,
        _ends,
        _lost_in_the_middle,
        _not_lost_elsewhere,
        _windows,
        _vocabularies,
        _sinks,
    )
    rows = [_row(of, level) for statement in statements for of in statement(trained)]
    return table("emergence", scale, rows)


def _row(of: Finding, level: float) -> dict[str, object]:
    """The verdict on a finding; the interval of one that was chosen as the most extreme is widened (Bonferroni)."""
    widened = 1 - (1 - level) / of.chosen_from
    found = mean_row(of.claim, of.item, of.quantity, of.prediction, of.values, widened, of.source, of.identity)
    if not of.whatever_sign:
        return found
    measured, *interval = (cast(float, found[name]) for name in ("measured", "low", "high"))
    low, high = _sizes(*interval)
    verdict = of.prediction.verdict(low, high)
    return {**found, "measured": abs(measured), "low": low, "high": high, "verdict": verdict}


def _sizes(low: float, high: float) -> tuple[float, float]:
    """The least and the largest size of a number in an interval."""
    least, largest = sorted((abs(low), abs(high)))
    return (0.0, largest) if low < 0 < high else (least, largest)


def _positions(trained: Measured) -> Iterator[Finding]:
    """What is expected of single gaps: those of `gap_table` that the paper speaks of, with the same predictions."""
    keys = ["vocabulary", "study", "mask", "encoding", "depth", "pair"]
    for (vocabulary, study, mask, encoding, depth, pair), gaps in _networks(trained.gaps, keys):
        if prediction := expected(study, mask, encoding, pair):
            quantity = f"{pair} gap; {vocabulary}, {study}, mask {mask}, PE {encoding}, {depth} layers"
            gap, source = gaps.set_index("seed")["gap"], _expected_by(study, mask, encoding)
            claim = _claim_on_gap(vocabulary, study, mask, encoding, pair)
            identity = mask == encoding == "none"
            yield Finding(claim, FIGURES[vocabulary, study], quantity, prediction, gap, source, identity)


def _expected_by(study: str, mask: str, encoding: str) -> str:
    """Where the paper says what is `expected`."""
    if mask == encoding == "none":
        return "Section 5.2: neither mask nor encoding tells positions apart"
    if study == "plain":
        return "Section 5.1: a causal mask alone favours the beginning"
    if encoding == "none":
        return "Section 5.2, K.3: a causal mask alone learns the beginning"
    ends = "Section 5.2: encodings learn both ends, the beginning slightly better"
    return ends if study == "ends" else "K.3: encodings learn a bias at any position"


def _claim_on_gap(vocabulary: str, study: str, mask: str, encoding: str, pair: str) -> str:
    """Id of the claim that what is `expected` of a single gap speaks of, or ""."""
    if vocabulary == "fixed":
        return "emergence-figure-11" if study in LEARNED else ""
    if vocabulary != "gaussian":
        return ""
    if mask == encoding == "none":
        return "emergence-figure-3-causal" if study == "ends" else ""
    if study == "plain":
        return "emergence-causal-primacy" if pair in BEGINNING else ""
    if encoding == "none":
        return "emergence-figure-6-causal"
    return "emergence-figure-3-u" if study == "ends" else "emergence-figure-6-encodings"


def _encodings(trained: Measured) -> Iterator[Finding]:
    """Relative encodings add focus on recent tokens, the decay mask more than RoPE (Sections 5.1, K.1)."""
    claims = {"gaussian": "emergence-encodings", "fixed": "emergence-figure-9"}
    for (vocabulary, depth), by_encoding in _networks(trained.gaps, ["vocabulary", "depth"], study="plain"):
        claim, item = claims.get(vocabulary, ""), FIGURES[vocabulary, "plain"]
        for more, less in (("none", "rope"), ("none", "decay"), ("rope", "decay")):
            if {more, less} <= set(by_encoding["encoding"]):
                gap = _of(by_encoding, "gap", pair=FIRST_LAST, encoding=more)
                minus = _of(by_encoding, "gap", pair=FIRST_LAST, encoding=less)
                quantity = f"{FIRST_LAST} gap, {more} - {less}; {vocabulary}, {depth} layers, no residual"
                source = "Section 5.1: both reduce primacy, RoPE less so"
                yield Finding(claim, item, quantity, MORE, _minus(gap, minus), source)


def _depth(trained: Measured) -> Iterator[Finding]:
    """Depth amplifies primacy without residual connections (Figures 4, 9), and with them for the fixed vocabulary."""
    without = "Section 5.1, K.1: deeper attention amplifies primacy, whatever the encoding"
    claimed = {
        ("gaussian", "plain"): ("emergence-depth", without),
        ("fixed", "plain"): ("emergence-figure-9", without),
        ("fixed", "residual"): ("emergence-figure-10", "Appendix L: so it does with residual connections"),
    }
    for (vocabulary, study, encoding), by_depth in _networks(trained.gaps, ["vocabulary", "study", "encoding"]):
        depths = sorted(by_depth["depth"].unique())
        if (vocabulary, study) in claimed:
            claim, source = claimed[vocabulary, study]
            for deeper, than in dict.fromkeys([*zip(depths[1:], depths, strict=False), (depths[-1], depths[0])]):
                gap = _of(by_depth, "gap", pair=FIRST_LAST, depth=deeper)
                minus = _of(by_depth, "gap", pair=FIRST_LAST, depth=than)
                quantity = f"{FIRST_LAST} gap, {deeper} - {than} layers; {vocabulary}, {study}, encoding {encoding}"
                change = _minus(gap, minus) if deeper > than else NOT_TRAINED
                yield Finding(claim, FIGURES[vocabulary, study], quantity, MORE, change, source)


def _weak_at_the_end(trained: Measured) -> Iterator[Finding]:
    """The gap between middle and last is smaller than the gaps that involve the first item (Section 5.1)."""
    causal = trained.gaps[trained.gaps["encoding"] == "none"]
    for (vocabulary, depth), gaps in _networks(causal, ["vocabulary", "depth"], study="plain"):
        claim = "emergence-small-at-the-end" if vocabulary == "gaussian" else ""
        for pair in (FIRST_MIDDLE, FIRST_LAST):
            less = _of(gaps, "gap", pair=pair).abs() - _of(gaps, "gap", pair=MIDDLE_LAST).abs()
            quantity = f"size of the {pair} gap - {MIDDLE_LAST} gap; {vocabulary}, {depth} layers, no residual, no PE"
            yield Finding(claim, FIGURES[vocabulary, "plain"], quantity, MORE, less, "Section 5.1: notably smaller")


def _residual(trained: Measured) -> Iterator[Finding]:
    """With residual connections bias persists, depth raises or lowers it, and encodings reduce it (5.1, K.2)."""
    of_residual = _where(trained.gaps, study="residual", pair=FIRST_LAST)
    for (vocabulary,), gaps in _networks(of_residual, ["vocabulary"]):
        gaussian, item = vocabulary == "gaussian", FIGURES[vocabulary, "residual"]
        where = f"{vocabulary}, residual"
        changes = []
        for (encoding,), by_depth in _networks(gaps, ["encoding"]):
            depths = sorted(by_depth["depth"].unique())
            for depth in depths:
                gap, claim = _of(by_depth, "gap", depth=depth), "emergence-residual" if gaussian else ""
                quantity = f"size of the mean {FIRST_LAST} gap; {where}, encoding {encoding}, {depth} layers"
                source = "Section 5.1: position bias still emerges with residual connections"
                yield Finding(claim, item, quantity, BIASED, gap, source, whatever_sign=True)
            by_seed = {depth: _of(by_depth, "gap", depth=depth) for depth in depths}
            changes += [_minus(by_seed[deep], by_seed[than]) for than, deep in pairwise(depths)]
        for name, prediction, most in (("rise", MORE, max), ("fall", LATER, min)) if gaussian else ():
            change = most(changes, key=lambda of: of.mean()) if len(changes) > 1 else NOT_TRAINED
            quantity = f"largest {name} of the {FIRST_LAST} gap from a depth to the next, of all encodings; {where}"
            source = "Sections 5.1, K.2: depth amplifies or reduces it, by encoding and depth"
            claim = "emergence-residual-depth"
            yield Finding(claim, item, quantity, prediction, change, source, chosen_from=max(len(changes), 1))
        for (depth,), by_encoding in _networks(gaps, ["depth"]):
            for less in ("rope", "decay"):
                if {"none", less} <= set(by_encoding["encoding"]):
                    reduced = _minus(_of(by_encoding, "gap", encoding="none"), _of(by_encoding, "gap", encoding=less))
                    quantity = f"{FIRST_LAST} gap, none - {less}; {where}, {depth} layers"
                    source = "Figures 2, 5: the decay mask and RoPE reduce primacy (our reading)"
                    claim = "emergence-residual-encodings" if gaussian else ""
                    yield Finding(claim, item, quantity, MORE, reduced, source)


def _ends(trained: Measured) -> Iterator[Finding]:
    """A causal mask alone brings position into play, where no mask does not (Section 5.2)."""
    claims = {"gaussian": "emergence-figure-3-causal", "fixed": "emergence-figure-11"}
    alone = trained.gaps[trained.gaps["encoding"] == "none"]
    for (vocabulary,), gaps in _networks(alone, ["vocabulary"], study="ends"):
        causal, without = (_of(gaps, "gap", pair=FIRST_LAST, mask=mask) for mask in ("causal", "none"))
        quantity = f"{FIRST_LAST} gap, causal - no mask; {vocabulary}, no PE, trained on both ends"
        source = "Section 5.2: the causal mask induces primacy by itself"
        claim, item = claims.get(vocabulary, ""), FIGURES[vocabulary, "ends"]
        yield Finding(claim, item, quantity, MORE, _minus(causal, without), source)
        caption = "emergence-figure-3-caption" if vocabulary == "gaussian" else ""
        quantity = f"{MIDDLE_LAST} gap; {vocabulary}, mask causal, no PE, trained on both ends"
        at_the_end, source = (
            _of(gaps, "gap", pair=MIDDLE_LAST, mask="causal"),
            "Figure 3: the last position is not captured",
        )
        yield Finding(caption, item, quantity, NOT_LATER, at_the_end, source)


def _lost_in_the_middle(trained: Measured) -> Iterator[Finding]:
    """Footnote 2: of the networks trained without bias, deep ones with RoPE and residual connections alone lose it."""
    rope = trained.gaps[trained.gaps["encoding"] == "rope"]
    for (vocabulary, depth), gaps in _networks(rope, ["vocabulary", "depth"], study="residual"):
        if depth == _where(rope, study="residual", vocabulary=vocabulary)["depth"].max():
            claim = "emergence-footnote-2" if vocabulary == "gaussian" else ""
            for pair, prediction in ((FIRST_MIDDLE, EARLIER), (MIDDLE_LAST, LATER)):
                quantity = f"{pair} gap; {vocabulary}, RoPE, {depth} layers with residual, trained without bias"
                source = "footnote 2: deep RoPE loses the middle without biased data"
                gap = _of(gaps, "gap", pair=pair) if depth >= DEEP else NOT_TRAINED
                yield Finding(claim, FIGURES[vocabulary, "residual"], quantity, prediction, gap, source)


def _not_lost_elsewhere(trained: Measured) -> Iterator[Finding]:
    """But for footnote 2, no network loses the middle that was not trained on both ends (Section 5.2, K.3).

    A network loses the middle as far as both ends are preferred to it; the one of a study that does so most is judged.
    """
    deep_rope = (trained.gaps["encoding"] == "rope") & (trained.gaps["study"] == "residual")
    gaps = trained.gaps[~(deep_rope & (trained.gaps["depth"] >= DEEP))]
    for (vocabulary, study), of_study in _networks(gaps, ["vocabulary", "study"]):
        if study in WITHOUT_U:
            found = [_lost_middle(network) for _, network in _networks(of_study, ["mask", "encoding", "depth"])]
            common = pd.concat(found, axis=1, join="inner")
            quantity = f"middle lost, at most, of {len(found)} networks; {vocabulary}, {study}"
            source = "Section 5.2, K.3: the middle is lost after training on both ends alone"
            claim, item = "emergence-no-u" if vocabulary == "gaussian" else "", FIGURES[vocabulary, study]
            yield Finding(claim, item, quantity, NOT_LOST, common.max(axis=1, skipna=False), source)


def _lost_middle(network: pd.DataFrame) -> pd.Series:
    """By how much both ends are preferred to the middle, by seed: the smaller of the two gaps."""
    first, last = _of(network, "gap", pair=FIRST_MIDDLE), -_of(network, "gap", pair=MIDDLE_LAST)
    return pd.concat([first, last], axis=1).min(axis=1, skipna=False)


def _windows(trained: Measured) -> Iterator[Finding]:
    """Smaller windows moderate the bias towards early tokens (after Theorem 4.2)."""
    for (vocabulary,), gaps in _networks(trained.gaps, ["vocabulary"], study="window", pair=FIRST_LAST):
        widths = sorted(gaps["mask"].unique(), key=lambda mask: int(mask.removeprefix("window")))
        if len(widths) > 1:
            wide, narrow = (_of(gaps, "gap", mask=mask) for mask in (widths[-1], widths[0]))
            quantity = f"{FIRST_LAST} gap, {widths[-1]} - {widths[0]}; {vocabulary}, 2 layers, no residual, no PE"
            claim = "emergence-windows" if vocabulary == "gaussian" else ""
            source = "after Theorem 4.2: a smaller window mitigates the bias towards early tokens"
            yield Finding(claim, "Section 4.1", quantity, MORE, _minus(wide, narrow), source)


def _vocabularies(trained: Measured) -> Iterator[Finding]:
    """Without a common direction the fixed vocabulary resembles the Gaussian one, with it the task is harder (L)."""
    for (encoding, depth), gaps in _networks(trained.gaps, ["encoding", "depth"], study="plain", pair=FIRST_LAST):
        if {"isotropic", "gaussian"} <= set(gaps["vocabulary"]):
            isotropic, gaussian = (_of(gaps, "gap", vocabulary=name) for name in ("isotropic", "gaussian"))
            quantity = f"{FIRST_LAST} gap, lambda = 0 - gaussian; {depth} layers, no residual, encoding {encoding}"
            source = "Appendix L: lambda = 0 resembles the Gaussian vocabulary"
            yield Finding("emergence-isotropic", "Appendix L", quantity, EQUAL, _minus(isotropic, gaussian), source)
    for (encoding, depth), plain in _networks(trained.accuracy, ["encoding", "depth"], study="plain"):
        if {"gaussian", "fixed"} <= set(plain["vocabulary"]):
            by_seed = plain.groupby(["vocabulary", "seed"])["accuracy"].mean().reset_index()
            gaussian, fixed = (_of(by_seed, "accuracy", vocabulary=name) for name in ("gaussian", "fixed"))
            quantity = f"accuracy, gaussian - fixed; {depth} layers, no residual, encoding {encoding}"
            source = "Appendix L: anisotropy makes the task harder"
            yield Finding("emergence-harder", "Appendix L", quantity, MORE, _minus(gaussian, fixed), source)


def _sinks(trained: Measured) -> Iterator[Finding]:
    """Sinks lie on the first token, the more the wider a window, and on all prefix tokens (K.4); then our nulls.

    Where rounding decides whether uniform attention has a sink, no row that compares with it speaks of a claim.
    """
    for (vocabulary, study), sinks in _networks(trained.sinks, ["vocabulary", "study"], encoding="none", depth=2):
        item = SINK_FIGURES[vocabulary, study]
        claim = SINK_CLAIMS[study] if vocabulary == "gaussian" else "emergence-figure-13"
        of_null = "emergence-sinks-null" if vocabulary == "gaussian" else ""
        metric, untrained, uniform = (_per_token(sinks, state) for state in ("trained", "untrained", "uniform"))
        masks = sorted(metric.index.unique("mask"), key=lambda mask: int("0" + mask.lstrip(ascii_lowercase)))
        rounded = {mask for mask in masks if rounding_decides(mask, sinks["tau"].iloc[0])}
        for mask in masks:
            tokens = metric.loc[mask]
            centres = int(mask.removeprefix("prefix")) if mask.startswith("prefix") else 1
            where = f"tokens 1 to {centres}" if centres > 1 else "the first token"
            least = tokens.loc[:, :centres].min(axis=1)
            name = f"sink metric; {vocabulary}, {mask}, 2 layers, no residual, no PE"
            if study != "window" or mask == masks[-1]:
                beyond = least - tokens.loc[:, centres + 1 :].max(axis=1)
                source = "K.4: sinks at the centre nodes"
                yield Finding(claim, item, f"{where} - any other, {name}", MORE, beyond, source)
            null = least - uniform.loc[mask].iloc[0].loc[:centres].min()
            of_mask = "" if mask in rounded else of_null
            yield Finding(of_mask, item, f"{where} - uniform attention, {name}", MORE, null, NULL)
            start = least - untrained.loc[mask].loc[:, :centres].min(axis=1)
            yield Finding("", item, f"{where} - untrained, {name}", MORE, start, NULL)
        compared = [mask for mask in masks if mask not in rounded]
        if study == "window" and len(compared) > 1:
            narrowest, *_, widest = compared
            wide, narrow = metric.loc[widest][1], metric.loc[narrowest][1]
            quantity = f"sink metric of the first token, {widest} - {narrowest}; {vocabulary}"
            source = "K.4: on the first token where windows are wide"
            yield Finding("", item, quantity, MORE, wide - narrow, source)
            null_wide, null_narrow = (float(uniform.loc[mask][1].iloc[0]) for mask in (widest, narrowest))
            beyond_null = (wide - narrow) - (null_wide - null_narrow)
            yield Finding(claim, item, f"{quantity}, beyond that of uniform attention", MORE, beyond_null, source)


def _per_token(sinks: pd.DataFrame, state: str) -> pd.DataFrame:
    """The metric in one state: masks and seeds down, tokens across."""
    return _where(sinks, state=state).pivot(index=["mask", "seed"], columns="token", values="value")


def _networks(table: pd.DataFrame, keys: list[str], **wanted: object) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Groups of the rows that have the values `wanted`, by `keys`."""
    yield from _where(table, **wanted).groupby(keys, sort=False)


def _of(table: pd.DataFrame, value: str, **wanted: object) -> pd.Series:
    """A value by seed, of the rows that have the values `wanted`."""
    return _where(table, **wanted).set_index("seed")[value]


def _minus(values: pd.Series, others: pd.Series) -> pd.Series:
    """The difference for each seed that both were started with; NaN where one of them diverged."""
    return (values - others).loc[values.index.intersection(others.index)]


def _where(table: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    for name, wish in wanted.items():
        table = table[table[name] == wish]
    return table
