"""The sentence that decides: where key documents belong, or why a file of records cannot tell.

Its rules are stated in docs/documents.md. Every ratio is one of probabilities of the whole answer, and each comes with
an interval over records.
"""

from dataclasses import dataclass

from position_card.card.profiles import Interval

MARGIN = 1.1  # a ratio up to which, and down to its inverse, order matters little
SAMPLE_RATIO = 1.25  # a ratio that the number of records is told for
ANSWER_RATIO = 3.0  # how many times as probable documents make an answer that a model takes from them, at least


@dataclass(frozen=True)
class PlaceRatios:
    """What is compared: ratios of probabilities, geometric means over records."""

    first: Interval  # over the middle
    last: Interval  # over the middle
    first_over_last: Interval
    alone: Interval  # the gold documents alone over no documents
    best: Interval  # all documents over none, where the gold ones stand at their best place
    right: float  # share of right answers, over records and places
    right_first_less_last: Interval  # the same at the first place, less that at the last
    ever_right: bool  # with documents or without
    records: int
    sample_size: int  # records whose intervals are as narrow as SAMPLE_RATIO on either side
    sample_size_for_little: int  # the same for MARGIN


@dataclass(frozen=True)
class OptionShares:
    """How often a model chooses the option at each place, where each option stood at each place of a record."""

    names: tuple[str, ...]  # of the places: A, B and so on
    choices: tuple[Interval, ...]  # share of all orders
    same: float  # share of the records where one option is chosen in all orders
    right: float | None  # share of right choices over all orders, where the right options are known
    records: int
    sample_size: int  # records whose intervals are as narrow as SAMPLE_RATIO on either side of an even share


def decide_on_places(ratios: PlaceRatios, told_by: str = "this file", remedy: str = "") -> str:
    """Say where key documents belong, whether order matters, or why that cannot be told by what is named.

    The `remedy` is what may help where no answer is right.
    """
    accuracy = f"({share(ratios.right)} right over all places)"
    if not ratios.ever_right:
        return f"This model answers none of these with or without documents: {told_by} cannot tell{remedy}."
    if ratios.alone.low < ANSWER_RATIO:
        return (
            f"The documents that hold the answers make these {times(ratios.alone)} as probable as no documents do, "
            f"which is not separably {ANSWER_RATIO:g} times: {told_by} cannot tell where to put them."
        )
    if ratios.best.low < ANSWER_RATIO:
        return (
            f"Among the other documents the model loses the answer, wherever its document stands: {told_by} cannot "
            f"tell; fewer documents may {accuracy}."
        )
    if not ratios.right:
        return f"Among the other documents no answer is right, at any place: {told_by} cannot tell{remedy}."
    ends = {"first": ratios.first, "last": ratios.last}
    if all(interval.low > 1 / MARGIN and interval.high < MARGIN for interval in ends.values()):
        return f"Order matters little here: first and last are within {share(MARGIN - 1)} of the middle {accuracy}."
    best, worst = sorted(ends, key=lambda end: -ends[end].value)
    against = f"; don't put them {worst}: {times(ends[worst])}" if ends[worst].high < 1 else ""
    if ends[best].low > 1:
        if ratios.right_first_less_last.side(0) == (1 if best == "last" else -1):
            return (
                f"Probability and right answers disagree: with key documents {best} the answer's probability is "
                f"{times(ends[best])} that in the middle, but more answers are right with them {worst}: {told_by} "
                f"cannot tell; begin answers as the model does, with --prefix {accuracy}."
            )
        alike = ends[worst].low > 1 and not ratios.first_over_last.side(1)
        also = f"; {worst} does as well, as far as this tells" if alike else against
        ratio = f"the answer's probability is {times(ends[best])} that in the middle"
        return f"Put key documents {best}: {ratio}{also} {accuracy}."
    if ends[worst].high < 1:
        return (
            f"Don't put key documents {worst}: the answer's probability is {times(ends[worst])} that in the middle "
            f"{accuracy}."
        )
    sample_size, factor = ratios.sample_size, SAMPLE_RATIO
    if sample_size <= ratios.records:
        sample_size, factor = ratios.sample_size_for_little, MARGIN
    return (
        f"Undecided: first is {times(ratios.first)} and last {times(ratios.last)} the middle; "
        f"{more(sample_size, ratios.records, factor)} {accuracy}."
    )


def decide_on_options(shares: OptionShares) -> str:
    """Say whether the order of options decides what is chosen."""
    even = 1 / len(shares.names)
    right = (
        "" if shares.right is None else f"; {share(shares.right)} of the choices are right, and {share(even)} by chance"
    )
    consistency = f"the same option is chosen in all orders in {share(shares.same)} of the records{right}"
    if all(interval.low > even / MARGIN and interval.high < even * MARGIN for interval in shares.choices):
        return (
            f"Order matters little here: each place is chosen within {share(MARGIN - 1)} of {share(even)}; "
            f"{consistency}."
        )
    place = max(range(len(shares.names)), key=lambda index: shares.choices[index].value)
    favourite = shares.choices[place]
    if favourite.low > even:
        return (
            f"Don't trust one order: the option at place {shares.names[place]} is chosen in {percent(favourite)} of "
            f"the orders, where {share(even)} is even; {consistency}. Ask in every order, and take the mean."
        )
    return (
        f"Undecided: place {shares.names[place]} is chosen most, in {percent(favourite)} of the orders, where "
        f"{share(even)} is even; {more(shares.sample_size, shares.records, SAMPLE_RATIO)}; {consistency}."
    )


def times(interval: Interval) -> str:
    """Write a ratio with its interval: 2.0 [1.5, 2.7] times."""
    return f"{interval} times"


def share(value: float) -> str:
    """Write a share: 36 %."""
    return f"{100 * value:.0f} %"


def percent(interval: Interval) -> str:
    """Write a share with its interval, as far as it lies between 0 and 1: 56 % [50, 62]."""
    low, high = max(0.0, interval.low), min(1.0, interval.high)
    return f"{100 * interval.value:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


def more(sample_size: int, records: int, factor: float) -> str:
    """Say how many records are missing until a place that matters by a factor would be told from one that does not."""
    return f"about {max(1, sample_size - records):,} more records would show a factor of {factor:g}"
