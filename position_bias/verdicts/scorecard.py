"""The scorecard has one verdict for each claim of the registry, by the rows of tables of checks that carry its id.

`rule` makes a word of the rows of one scale. Scales are never mixed: each has its own word, and that of the largest
scale with rows that have an interval is the verdict. Rows that another scale has and this one lacks are missing: a
claim of all its rows can fail without them, and cannot hold.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_bias.verdicts import planning, rule
from position_bias.verdicts.judge import COLUMNS, PREDICTION, keys
from position_bias.verdicts.registry import ERRATA, LONG, MODEL, SCALES, SEED, Claim, claim_tables
from position_bias.verdicts.rule import FAILS, HOLDS, MOSTLY, NO_EFFECT, UNDECIDED, UNTESTABLE
from position_card.core.runtime import InputError
from position_card.core.wording import number_of
from position_card.rollout.statistics import Array

OF_CLAIM = ("paper", "item", "title", "statement", "whose", "needs", "doubted", "form", "unit", "kind")
OF_ROW = ("quantity", *PREDICTION, "measured", "low", "high", "n", "left_out", "seen_before", "source")
COMPARISON_COLUMNS = (
    *("claim", "paper", "item", "quantity", *PREDICTION, "measured", "low", "high"),
    *("n", "left_out", "seen_before", "scale"),
    "of",  # what was trained or measured for it
    "decides",  # false where the rows of another scale do
    "verdict",  # by its own interval
)
MOST_NAMED = 3  # missing rows or exceptions that a sentence names
UNITS = {SEED: "seeds", MODEL: "documents"}  # what more of would decide
PARTLY = (rule.CONTRARY, rule.SHORT)  # regions that a model is in where any quantity of it is; in others all are
CONTEXTS = "contexts"  # in place of documents, where names are recalled


@dataclass(frozen=True)
class Judgement:
    """What the rows of one scale say of a claim."""

    word: str
    rows: pd.DataFrame  # with columns `word`, by their own intervals, and `short`: shown not to be as claimed
    missing: list[str]  # the quantities of rows that other scales have
    parts: int  # rows, or models, that the form counts
    decisive: pd.Series  # the row that the word hangs on

    @property
    def scale(self) -> str:
        """Whose rows these are."""
        return str(self.decisive["scale"])


# What each scale says of each claim, as `by_scale` returns it
JudgementsByClaim = Sequence[tuple[Claim, Sequence[Judgement]]]


def judge_claims(claims: Iterable[Claim], checks: Mapping[str, pd.DataFrame], level: float) -> JudgementsByClaim:
    """Judge claims, additions of ours among them, by the rows of tables of checks that carry their ids.

    `checks` are tables in the schema of `judge.COLUMNS`, by the name that claims give them; `level` is that of the
    intervals. Raises InputError where a table lacks a column, a row carries an id that is not registered for its table,
    a claim has no row, or a row that has a verdict has no finite interval.
    """
    claims = tuple(claims)
    rows = {name: _by_claim(name, checks[name], claims) for name in claim_tables(claims)}
    if silent := next((claim for claim in claims if claim.id not in rows[claim.table]), None):
        raise InputError(
            f"claim {silent.id} has no row in table {silent.table}; configure what it speaks of, give its id to rows "
            "there, or take it out of published/"
        )
    return [(claim, by_scale(claim, rows[claim.table][claim.id], level)) for claim in claims]


def scorecard(judgements: JudgementsByClaim, published: Mapping[str, str], level: float) -> pd.DataFrame:
    """Return the scorecard: a row for each claim, with the columns of `_card`.

    `published` is what the papers print, by the id that claims give it; `level` is that of the intervals.
    """
    return pd.DataFrame([_card(claim, scales, published, level) for claim, scales in judgements])


def comparisons(judgements: JudgementsByClaim) -> pd.DataFrame:
    """Return every row that speaks of a claim, with the word of its own interval: columns COMPARISON_COLUMNS.

    Of each claim, the rows of the scale that decides come first.
    """
    rows = [
        judgement.rows.assign(claim=claim.id, paper=claim.paper, decides=place == 0, verdict=judgement.rows["word"])
        for claim, scales in judgements
        for place, judgement in enumerate(scales)
    ]
    return pd.concat(rows, ignore_index=True)[list(COMPARISON_COLUMNS)]


def _by_claim(name: str, table: pd.DataFrame, claims: Iterable[Claim]) -> dict[str, pd.DataFrame]:
    """The rows of a table of checks that speak of claims, by the id of the claim."""
    if absent := [column for column in COLUMNS if column not in table]:
        raise InputError(f"table {name} lacks column {', '.join(absent)}; rebuild it")
    ids = table["claim"].fillna("")
    registered_ids = {claim.id for claim in claims if claim.table == name}
    if unknown := sorted({*ids} - {""} - registered_ids):
        raise InputError(
            f"table {name} has rows of claim {unknown[0]}, which published/ does not register for this table; "
            "register it, or correct the id"
        )
    with_verdict = table[table["verdict"] != UNTESTABLE]
    infinite = with_verdict[~np.isfinite(with_verdict[["low", "high"]].to_numpy(float)).all(axis=1)]
    if len(infinite):
        raise InputError(f"table {name} has a verdict on {infinite['quantity'].iloc[0]!r} without a finite interval")
    return {str(claim): rows for claim, rows in table.groupby(ids, sort=False) if claim}


def by_scale(claim: Claim, rows: pd.DataFrame, level: float) -> list[Judgement]:
    """Return what each scale says of a claim: first the scale that gives the verdict, then the others from the largest.

    `rows` are those that carry the id of the claim. Where no scale has a row that speaks of the claim, all rows
    together are one judgement, which is not testable. A row that is an identity, which networks of any weights have,
    supports no claim, and speaks of one only where a claim has no other rows.
    """
    rows = rows[~rows["identity"].astype(bool)] if not rows["identity"].all() else rows.assign(verdict=UNTESTABLE)
    rows = rows.assign(key=keys(rows))
    speaks = _speaks(claim, rows)
    judgements = []
    for scale in reversed(SCALES):
        of_scale = rows["scale"] == scale
        if (of_scale & speaks).any():
            elsewhere = rows[~of_scale & ~rows["key"].isin(rows["key"][of_scale])].drop_duplicates("key")
            missing = elsewhere["quantity"].tolist() if claim.unit == SEED else []
            judgements.append(judge_scale(claim, rows[of_scale], missing, level))
    if not judgements:
        return [judge_scale(claim, rows, [], level)]
    first = _speaker(claim, judgements)
    return [first, *(judgement for judgement in judgements if judgement is not first)]


def _speaker(claim: Claim, judgements: list[Judgement]) -> Judgement:
    """The judgement that gives the verdict, of those of all scales, the largest first.

    It is that of the largest scale, unless the claim is on models and a smaller one has more of them and another word.
    """
    speaker = judgements[0]
    for smaller in judgements[1:] if claim.unit == MODEL else ():
        if smaller.parts > speaker.parts and smaller.word != speaker.word:
            speaker = smaller
    return speaker


def judge_scale(claim: Claim, rows: pd.DataFrame, missing: list[str], level: float) -> Judgement:
    """Return what the rows of one scale say of a claim.

    `missing` are the quantities of rows that another scale has and this one lacks; each counts as a row that says
    nothing.
    """
    p = _p_values(claim, rows, level)
    speaks = _speaks(claim, rows)
    confirming = _confirming(rows, p)
    words = rule.words_of_rows(p if claim.unit == MODEL else confirming, level)
    row_words = np.where(speaks | (rows["verdict"] != UNTESTABLE) & _could_show(claim, rows), words, UNTESTABLE)
    short = p[:, [rule.CONTRARY, rule.SHORT]].min(axis=1) <= (1 - level) / 2
    parts = _parts(claim, rows, p, len(missing))
    word = _word(claim, rows, p, level, len(missing)) if speaks.any() else UNTESTABLE
    region: int = rule.SHOWS.get(word, rule.BEYOND)
    quorum = rule.quorum(claim.form, len(parts))
    ranks = {rule.BEYOND: quorum, rule.WITHIN: len(parts)}
    rank = ranks.get(region, len(parts) - quorum + 1) - len(missing) * (word == UNDECIDED)
    candidates = (speaks if speaks.any() else pd.Series(True, rows.index)).to_numpy()
    pairs = [values[candidates] for values in (confirming, p)]
    decisive = _decisive(claim, rows[candidates], pairs, region, max(rank, 1))
    verdict = rule.ERRATUM if claim.kind == ERRATA and word == FAILS else word
    return Judgement(verdict, rows.assign(word=row_words, short=short), missing, len(parts), decisive)


def _decisive(claim: Claim, rows: pd.DataFrame, pairs: Sequence[Array], region: int, rank: int) -> pd.Series:
    """Return the row that a word hangs on: the one of this rank in a region, or the last, where there are fewer.

    `pairs` are p-values of the rows `[rows, 4]` where what was seen confirms nothing, and as they are. Where the claim
    counts models, it is a row of the model of this rank: the one that its own p-value is.
    """
    if claim.unit == MODEL:
        confirming, plain = (_by_model(rows, values)[region] for values in pairs)
        ranked = confirming.index[np.lexsort((plain, confirming))]
        of_model = (rows["model"].fillna("") == ranked[min(rank, len(ranked)) - 1]).to_numpy()
        rows, p = rows[of_model], pairs[1][of_model]
        by_quantity = _by_quantity(rows, p)[region]
        quantity = by_quantity.idxmin() if region in PARTLY else by_quantity.idxmax()
        of_quantity = np.array([name == quantity for name in _quantities(rows)])
        return rows[of_quantity].iloc[int(p[of_quantity, region].argmax())]
    order = np.lexsort([p[:, region] for p in reversed(pairs)])
    return rows.iloc[order[min(rank, len(order)) - 1]]


def _speaks(claim: Claim, rows: pd.DataFrame) -> pd.Series:
    """Return which rows count: they have an interval of some width, or are exact, and could show what is claimed."""
    width = rows["high"] - rows["low"]
    return (rows["verdict"] != UNTESTABLE) & ((width > 0) | _exact(claim, rows)) & _could_show(claim, rows)


def _could_show(claim: Claim, rows: pd.DataFrame) -> pd.Series:
    """Which rows are of runs that are long enough for the claim."""
    return rows["scale"].isin(LONG) if claim.would_test else pd.Series(True, rows.index)


def _exact(claim: Claim, rows: pd.DataFrame) -> pd.Series:
    """Return which rows need no interval: known numbers, and, where nothing is sampled, worst cases without width."""
    return (rows["high"] == rows["low"]) & (claim.unit not in UNITS) | rows["known"].astype(bool)


def _p_values(claim: Claim, rows: pd.DataFrame, level: float) -> Array:
    """Those of `rule` for each row, `[rows, 4]`: 1 where it decides nothing."""
    numbers = [rows[name].to_numpy(float) for name in ("bound", "margin", "low", "high", "n")]
    p = rule.p_values(rows["relation"].to_numpy(str), numbers, level, _exact(claim, rows))
    too_few = (rows["n"] < rule.LEAST_SEEDS) & (claim.unit == SEED) & ~rows["known"].astype(bool)
    p[~_speaks(claim, rows) | too_few] = 1
    return p


def _confirming(rows: pd.DataFrame, p: Array) -> Array:
    """The same p-values where a row that was seen before its prediction confirms nothing."""
    confirming = p.copy()
    confirming[rows["seen_before"] > 0, rule.BEYOND] = 1
    return confirming


def _parts(claim: Claim, rows: pd.DataFrame, p: Array, missing: int) -> Array:
    """The p-values of what the form counts, rows or models, of those of rows; 1 for each that is missing."""
    return np.concatenate([_by_model(rows, p).to_numpy() if claim.unit == MODEL else p, np.ones((missing, p.shape[1]))])


def _word(claim: Claim, rows: pd.DataFrame, p: Array, level: float, missing: int = 0) -> str:
    """The word of a claim by p-values of its rows.

    What was seen confirms nothing. A claim on models therefore holds where as many as it needs of those that nobody had
    seen are beyond their bounds, and as many of all; a claim on rows needs them all to be new.
    """
    p_words = rule.conjunction(_parts(claim, rows, p, missing), claim.form, p)
    new = _of_unseen_models(rows) if claim.unit == MODEL else np.ones(len(rows), bool)
    p_confirming = _parts(claim, rows[new], _confirming(rows, p)[new], missing)
    for word, form in ((HOLDS, claim.form), (MOSTLY, "most")):
        place = rule.DECISIONS.index(word)
        p_new = rule.at_least(rule.quorum(form, len(p_confirming)), p_confirming, rule.BEYOND) if new.any() else 1
        p_words[place] = max(p_words[place], p_new)
    return str(rule.words(p_words, level))


def _of_unseen_models(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Which rows are of models of which nobody had seen any."""
    return (rows["seen_before"].groupby(rows["model"].fillna("")).transform("max") == 0).to_numpy()


def _quantities(rows: pd.DataFrame) -> pd.MultiIndex:
    """Return what each row is of: rows of one model that differ in seeds, data sets or lengths are of the same."""
    return pd.MultiIndex.from_frame(rows[["model", "statistic", "network", "other"]].fillna(""))


def _by_quantity(rows: pd.DataFrame, p: Array) -> pd.DataFrame:
    """P-values of each quantity of a model, regions across, each by all of its seeds, data sets and lengths."""
    return pd.DataFrame(p, index=_quantities(rows)).groupby(level=[*range(4)]).max()


def _by_model(rows: pd.DataFrame, p: Array) -> pd.DataFrame:
    """P-values of each model, regions across, by its quantities: all of them in a region, or any in PARTLY."""
    models = _by_quantity(rows, p).groupby(level="model")
    all_of_it, any_of_it = models.max(), models.min().mul(models.size(), axis=0).clip(upper=1)
    return pd.DataFrame({region: any_of_it[region] if region in PARTLY else all_of_it[region] for region in all_of_it})


def _card(claim: Claim, scales: Sequence[Judgement], published: Mapping[str, str], level: float) -> dict[str, object]:
    """The row of a claim in the scorecard."""
    judgement = scales[0]
    count: dict[str, int] = {word: int((judgement.rows["word"] == word).sum()) for word in rule.OF_ROW}
    count[UNTESTABLE] += len(judgement.missing)
    at_own_scale = judgement.word != UNTESTABLE and claim.met_at(judgement.scale)
    return {
        "claim": claim.id,
        "question": claim.question,
        **{name: getattr(claim, name) for name in OF_CLAIM},
        "verdict": judgement.word,
        "scale": judgement.scale,  # whose rows decide
        "own scale": at_own_scale,  # whether that is the scale that the claim is about
        "settled": at_own_scale and judgement.word != UNDECIDED,  # decided, at that scale
        "by scale": "; ".join(_scale_and_word(claim, of_scale) for of_scale in scales if of_scale.word != UNTESTABLE),
        "holds in": _holds_in(claim, judgement),  # how many rows or models, of how many
        "exceptions": _exceptions(judgement.rows),  # those that are shown not to be as claimed
        **{f"rows: {word}": number for word, number in count.items()},  # those that are missing are not testable here
        "decides": "; ".join(_decides(claim, judgement, count)),  # in words
        "would decide": _would_decide(claim, judgement, level) if judgement.word in (UNDECIDED, UNTESTABLE) else "",
        **{name: judgement.decisive[name] for name in OF_ROW},
        "published": published[claim.published] if claim.published else "",
        "shown": claim.shown,
        "table": claim.table,
    }


def _scale_and_word(claim: Claim, judgement: Judgement) -> str:
    """A scale and its verdict, with the number of models where the claim counts them."""
    models = f" ({number_of(judgement.parts, 'model')})" if claim.unit == MODEL else ""
    return f"{judgement.scale}{models}: {judgement.word}"


def _holds_in(claim: Claim, judgement: Judgement) -> str:
    """In how many of the rows or models that a claim counts it holds, those that are missing among them."""
    if judgement.word == UNTESTABLE:
        return ""
    holds = judgement.rows["word"] == HOLDS
    if claim.unit == MODEL:
        holds = holds.groupby(judgement.rows["model"].fillna("")).all()
    return f"{holds.sum()} of {number_of(judgement.parts, 'model' if claim.unit == MODEL else 'comparison')}"


def _exceptions(rows: pd.DataFrame) -> str:
    """The rows that are shown not to be as claimed, those that differ most from the bound first, with their numbers."""
    short = rows[rows["short"]]
    short = short.loc[(short["measured"] - short["bound"]).abs().sort_values(ascending=False, kind="stable").index]
    sentences = [f"{row['quantity']}: {effect(row)}" for row in short.head(MOST_NAMED).to_dict("records")]
    return "; ".join(sentences) + (f"; and {len(short) - MOST_NAMED} more" if len(short) > MOST_NAMED else "")


def effect(row: Mapping[Hashable, Any]) -> str:
    """Return the value of a row and its interval as a text; a known number has no interval."""
    if pd.isna(row["measured"]):
        return "no value"
    is_number = row["low"] == row["high"] == row["measured"]
    return f"{row['measured']:.3g}" + ("" if is_number else f" [{row['low']:.3g}, {row['high']:.3g}]")


def _decides(claim: Claim, judgement: Judgement, count: Mapping[str, int]) -> Iterator[str]:
    """How many rows a claim needs, and what they say."""
    if judgement.word == UNTESTABLE:
        reason = "the run could not have shown the effect" if claim.would_test else "no row has an interval"
        yield "every row is an identity" if judgement.rows["identity"].all() else reason
        return
    if claim.kind == "theory" and claim.form == "exact" and judgement.word == HOLDS:
        yield f"no counterexample in {int(judgement.rows['n'].sum()):,} comparisons"
        return
    quorum = rule.quorum(claim.form, judgement.parts)
    new_models = judgement.rows[_of_unseen_models(judgement.rows)]["model"].fillna("").nunique()
    counts_new = claim.unit == MODEL and 0 < new_models < judgement.parts  # apart from those that had been seen
    new = f", and {rule.quorum(claim.form, new_models)} of the {new_models} that nobody had seen" if counts_new else ""
    yield f"{quorum} of {number_of(judgement.parts, 'model' if claim.unit == MODEL else 'row')} must hold{new}"
    says = {HOLDS: "hold", FAILS: "contrary", NO_EFFECT: "without effect", UNDECIDED: "open", UNTESTABLE: "missing"}
    rows = ", ".join(f"{count[word]} {verb}" for word, verb in says.items() if count[word])
    if judgement.missing:
        rest = f" and {len(judgement.missing) - MOST_NAMED} more" if len(judgement.missing) > MOST_NAMED else ""
        rows += f" ({'; '.join(judgement.missing[:MOST_NAMED])}{rest})"
    yield f"rows: {rows}" if claim.unit == MODEL else rows
    if seen_count := int((judgement.rows["seen_before"] > 0).sum()):
        yield f"{seen_count} seen before their prediction was written, which confirm nothing"


def _would_decide(claim: Claim, judgement: Judgement, level: float) -> str:
    """What is missing and how many units the open rows need, or why nothing would do."""
    if judgement.rows["identity"].all():
        return "another claim, since this one excludes nothing"
    if judgement.word == UNTESTABLE and claim.would_test:
        return claim.would_test
    if judgement.word == UNTESTABLE:
        return f"rows that have {'an interval' if judgement.rows['measured'].notna().any() else 'a value'}"
    rows = judgement.rows[_speaks(claim, judgement.rows)]
    missing = len(judgement.missing) + int((judgement.rows["word"] == UNTESTABLE).sum())
    where_seen = _where_seen(rows, level)
    if not missing and _word(claim, rows.assign(seen_before=0), where_seen, level) == UNDECIDED:
        return planning.CONTRADICTION
    by_new_models = claim.unit == MODEL and _of_unseen_models(rows).any()
    if by_new_models and _word(claim, rows, where_seen, level) == UNDECIDED:
        return "models that nobody has seen"
    words = rule.words_of_rows(_p_values(claim, rows, level), level)  # if nobody had seen any row
    open_rows, strict = rows[words == UNDECIDED], level
    if open_rows.empty and not missing:
        open_rows, strict = rows[words != HOLDS], 1 - (1 - level) / judgement.parts
    if _exact(claim, open_rows).any():
        return planning.RANGE
    needs = [f"the {missing} missing rows" if missing > 1 else "the missing row"] if missing else []
    units = _units(claim)
    if of_rows := list(open_rows[[*planning.ROW]].itertuples(index=False, name=None)):
        needs.append(planning.range_needed(of_rows, units, level, strict))
        if needs[-1].startswith(planning.NEVER):
            return _enough(claim, judgement, dict(zip(open_rows.index, of_rows, strict=True)), level) or needs[-1]
    if not by_new_models and (rows["seen_before"] > 0).any():
        needs.append(f"{units} that nobody has seen")
    return " and ".join([", ".join(needs[:-1]), needs[-1]] if len(needs) > 1 else needs)


def _units(claim: Claim) -> str:
    """Return the name of what more of would decide rows of the claim: seeds, documents, contexts or draws."""
    return CONTEXTS if (claim.item, claim.unit) == ("recall", MODEL) else UNITS.get(claim.unit, "draws")


def _enough(claim: Claim, judgement: Judgement, open_rows: Mapping[int, planning.Row], level: float) -> str:
    """How many units decide as many of the open rows as suffice, the easiest first; "" where none do."""
    rows, quorum = judgement.rows, rule.quorum(claim.form, judgement.parts)
    p, p_decided = _p_values(claim, rows, level), _where_seen(rows, level)
    order = sorted(open_rows, key=lambda row: planning.units_needed(open_rows[row], 1, level, level).most)
    for count in range(1, len(order)):
        is_decided = rows.index.isin(order[:count])
        word = _word(claim, rows, np.where(is_decided[:, None], p_decided, p), level, len(judgement.missing))
        if word != UNDECIDED:
            strict = 1 - (1 - level) / (judgement.parts - quorum + 1 if word == HOLDS else quorum)
            units = _units(claim)
            sentence = planning.range_needed([open_rows[row] for row in order[:count]], units, level, strict)
            return "" if sentence.startswith(planning.NEVER) else sentence
    return ""


def _where_seen(rows: pd.DataFrame, level: float) -> Array:
    """Return the p-values that rows would have if their numbers lay where they were measured, `[rows, 4]`."""
    numbers = [rows[name].to_numpy(float) for name in ("bound", "margin", "measured", "measured", "n")]
    return rule.p_values(rows["relation"].to_numpy(str), numbers, level, exact=True)
