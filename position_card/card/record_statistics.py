"""Statistics over records: what the place of documents or options does to the answer, with intervals.

A value of each record, such as the logarithm of a ratio, has Student's interval over records. A ratio of means has a
percentile interval over resampled records.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase as LETTERS

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_card.card.decision import MARGIN, SAMPLE_RATIO, OptionShares, PlaceRatios
from position_card.card.profiles import Interval
from position_card.rollout.attention import Array
from position_card.rollout.statistics import bootstrap_weights, mean_and_interval, percentile_interval, t_quantile
from position_card.texts.records import ALONE, CLOSED

LEVEL = 0.95  # of all intervals of a kind together
ENDS = ("first", "last")
REPLICATES = 4000
MOST_RECORDS = 1_000_000  # that are told as needed


@dataclass(frozen=True)
class PlaceStatistics:
    """What R records give at each of k places, without documents and with the gold ones alone."""

    log_probability: Array  # [R, k] of the whole answer
    right: Array  # [R, k]: 1 or 0
    alone: Mapping[str, Array]  # log-probability [R] by CLOSED and ALONE
    alone_right: Mapping[str, Array]  # [R]
    tokens: Array  # [R] of the answer
    seed: int

    @classmethod
    def of(cls, table: pd.DataFrame, seed: int) -> "PlaceStatistics":
        """Take the table of a measurement, in which every record has a row for each place."""
        by_place = {
            name: table.pivot(index="record", columns="place", values=name).astype(float)
            for name in ("log_probability", "right")
        }
        places = [str(place) for place in range(1, by_place["right"].shape[1] - 1)]
        log_probability, right = (of[places].to_numpy() for of in by_place.values())
        alone, alone_right = ({name: of[name].to_numpy() for name in (CLOSED, ALONE)} for of in by_place.values())
        tokens = table.groupby("record")["answer_tokens"].first().to_numpy(np.float64)
        return cls(log_probability, right, alone, alone_right, tokens, seed)

    @property
    def records(self) -> int:
        """How many there are."""
        return len(self.log_probability)

    @property
    def middle(self) -> list[int]:
        """The places of the middle half, from 0 on."""
        last = self.log_probability.shape[1] - 1
        return [place for place in range(last + 1) if last <= 4 * place <= 3 * last]

    @cached_property
    def ratios(self) -> dict[str, Interval]:
        """First and last over the middle: geometric means over records, whose intervals hold together."""
        level = 1 - (1 - LEVEL) / len(ENDS)
        return {end: _geometric(self._against_middle(self.log_probability)[end], level) for end in ENDS}

    @property
    def ratios_by_token(self) -> dict[str, Interval]:
        """The same for an average token of the answer."""
        against = self._against_middle(self.log_probability)
        return {end: _geometric(against[end] / self.tokens, LEVEL) for end in ENDS}

    @property
    def ratios_of_means(self) -> dict[str, Interval]:
        """Mean probability first and last over that in the middle; records are resampled."""
        weights = bootstrap_weights(self.records, REPLICATES, self.seed)
        probability = np.exp(self.log_probability - self.log_probability.max())
        means = np.vstack([probability.mean(0), weights @ probability])
        of_middle = means[:, self.middle].mean(-1)
        ratios = {}
        for end, place in zip(ENDS, (0, -1), strict=True):
            values = means[:, place] / of_middle
            low, high = percentile_interval(values[1:], LEVEL)
            ratios[end] = Interval(float(values[0]), float(low), float(high))
        return ratios

    @property
    def changes(self) -> dict[str, Interval]:
        """Share of right answers first and last, less that in the middle; no interval leaves what shares can differ."""
        differences = {end: _mean(values) for end, values in self._against_middle(self.right).items()}
        return {
            end: Interval(difference.value, max(-1.0, difference.low), min(1.0, difference.high))
            for end, difference in differences.items()
        }

    @property
    def shares(self) -> dict[str, float]:
        """Shares of record, place and rest in the variance of the log-probability; NaN where nothing varies."""
        centred = self.log_probability - self.log_probability.mean()
        total = (centred**2).mean()
        with np.errstate(invalid="ignore"):
            record, place = ((centred.mean(axis) ** 2).mean() / total for axis in (1, 0))
        return {"record": float(record), "place": float(place), "rest": float(1 - record - place)}

    def sample_size(self, ratio: float) -> int:
        """Count the records with which both ratios have intervals up to this ratio on either side."""
        against = self._against_middle(self.log_probability)
        spread = max(float(against[end].std(ddof=1)) for end in ENDS)
        return sample_size_for(spread, float(np.log(ratio)), 1 - (1 - LEVEL) / len(ENDS))

    @cached_property
    def summary(self) -> PlaceRatios:
        """What the decision is made from."""
        closed = self.alone[CLOSED]
        best = int(self.log_probability.mean(0).argmax())
        ever = [self.right.any(), *(right.any() for right in self.alone_right.values())]
        return PlaceRatios(
            first=self.ratios["first"],
            last=self.ratios["last"],
            first_over_last=_geometric(self.log_probability[:, 0] - self.log_probability[:, -1], LEVEL),
            alone=_geometric(self.alone[ALONE] - closed, LEVEL),
            best=_geometric(self.log_probability[:, best] - closed, LEVEL),
            right=float(self.right.mean()),
            right_first_less_last=_mean(self.right[:, 0] - self.right[:, -1]),
            ever_right=any(ever),
            records=self.records,
            sample_size=self.sample_size(SAMPLE_RATIO),
            sample_size_for_little=self.sample_size(MARGIN),
        )

    def _against_middle(self, values: Array) -> dict[str, Array]:
        """Values [R, k] at the first and at the last place, less the mean of those in the middle: [R] each."""
        of_middle = values[:, self.middle].mean(-1)
        return {"first": values[:, 0] - of_middle, "last": values[:, -1] - of_middle}


@dataclass(frozen=True)
class OptionStatistics:
    """What R records of n options give in n orders, in which each option stands at each place once."""

    probability: Array  # [R, n, n] of each option, as it is called in the file, in each order; adds to 1 over options
    right: NDArray[np.int64]  # [R] the number of the right option; -1 where it is not known

    @classmethod
    def of(cls, table: pd.DataFrame) -> "OptionStatistics":
        """Take the table of a measurement, in which every record has a row for each order and option."""
        rows = table.sort_values(["record", "order", "option"])
        count = int(table["option"].nunique())
        probability = rows["probability"].to_numpy(np.float64).reshape(-1, count, count)
        return cls(probability, rows.groupby("record")["answer"].first().to_numpy(np.int64))

    @property
    def by_place(self) -> Array:
        """Return `probability` by the place at which an option stands, not by the option: [record, order, place]."""
        count = self.probability.shape[1]
        places = (np.arange(count)[None, :] - np.arange(count)[:, None]) % count  # [order, place] -> option
        return np.take_along_axis(self.probability, np.broadcast_to(places, self.probability.shape), -1)

    @property
    def choices(self) -> tuple[Interval, ...]:
        """How often the option at each place is the most probable one; intervals hold together."""
        count = self.probability.shape[1]
        share = np.eye(count)[self.by_place.argmax(-1)].mean(1)
        return tuple(_mean(share[:, place], 1 - (1 - LEVEL) / count) for place in range(count))

    @property
    def mass(self) -> tuple[Interval, ...]:
        """The mean probability of the option at each place."""
        return tuple(_mean(self.by_place.mean(1)[:, place]) for place in range(self.probability.shape[1]))

    @property
    def same(self) -> Interval:
        """In which share of the records one option is the most probable in all orders."""
        choices = self.probability.argmax(-1)
        return _mean((choices == choices[:, :1]).all(-1).astype(float))

    @property
    def records_with_answer(self) -> NDArray[np.int64]:
        """The numbers of the records whose right option is known."""
        return np.flatnonzero(self.right >= 0).astype(np.int64)

    @property
    def right_by_order(self) -> float | None:
        """Share of the orders in which the right option is the most probable one."""
        choices = self.probability[self.records_with_answer].argmax(-1)
        return (
            float((choices == self.right[self.records_with_answer, None]).mean())
            if len(self.records_with_answer)
            else None
        )

    @property
    def right_together(self) -> float | None:
        """Share of the records whose right option has the greatest mean log-probability over all orders."""
        choices = np.log(self.probability[self.records_with_answer]).mean(1).argmax(-1)
        return (
            float((choices == self.right[self.records_with_answer]).mean()) if len(self.records_with_answer) else None
        )

    @cached_property
    def summary(self) -> OptionShares:
        """What the decision is made from."""
        count = self.probability.shape[1]
        share = np.eye(count)[self.by_place.argmax(-1)].mean(1)
        spread, wide = float(share.std(0, ddof=1).max()), (SAMPLE_RATIO - 1) / count
        return OptionShares(
            names=tuple(LETTERS[:count]),
            choices=self.choices,
            same=self.same.value,
            right=self.right_by_order,
            records=len(self.probability),
            sample_size=sample_size_for(spread, wide, 1 - (1 - LEVEL) / count),
        )


def sample_size_for(spread: float, half: float, level: float) -> int:
    """Count the records, at least 2, whose Student's interval is no wider than `half` on either side of the mean."""
    low, high = 1, 2
    while not _is_narrow(high, spread, half, level) and high < MOST_RECORDS:
        low, high = high, 2 * high
    while high - low > 1:
        between = (low + high) // 2
        low, high = (low, between) if _is_narrow(between, spread, half, level) else (between, high)
    return high


def _is_narrow(records: int, spread: float, half: float, level: float) -> bool:
    return bool(t_quantile((1 + level) / 2, records - 1) * spread / np.sqrt(records) <= half)


def _mean(values: Array, level: float = LEVEL) -> Interval:
    return Interval(*map(float, mean_and_interval(values, level)))


def _geometric(logarithms: Array, level: float) -> Interval:
    return Interval(*(float(np.exp(bound)) for bound in mean_and_interval(logarithms, level)))
