"""These statistics are of the accuracy gaps and attention sinks of trained networks, as Wu et al. 2025 speak of them.

A gap is above 0 where the earlier of two equal items is preferred. What is predicted of them stands in
published/predictions.csv; predictions and margins were fixed before the run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from position_bias.emergence import accuracy_gaps, released_code
from position_bias.emergence.accuracy_gaps import (
    CONFIGURATION,
    LATER,
    PAIR_NAMES,
    curves,
    final_gaps,
    late_gaps,
    summary,
    with_fresh_omega,
    with_training_omega,
)
from position_bias.emergence.runs import (
    BY_BIAS,
    BY_DEPTH,
    OF_RESIDUAL_SINKS,
    OF_SINKS,
    SHALLOW,
    STUDIES,
    figure_names,
    rounding_decides,
)
from position_bias.verdicts.judge import (
    PREDICTION,
    Estimate,
    Statistic,
    by_itself,
    drop_untestable,
    judge,
    student,
    table,
)
from position_bias.verdicts.registry import Prediction, predictions
from position_card.core import artifacts

NO_CLAIM = "no claim"

SINK_FIGURES = figure_names(OF_SINKS, OF_RESIDUAL_SINKS)
FIGURES = SINK_FIGURES | figure_names(BY_DEPTH, BY_BIAS) | {("isotropic", "plain"): "Appendix L"}
DEEP = 4  # layers of the deep regime of footnote 2, at least
VALUES = ("gap", "accuracy", "value")  # the columns of the tables below that are measured
OF_NETWORK = ["scale", "seed", *CONFIGURATION]
EVIDENCE = {  # tables of a group in evidence/emergence/, and their columns
    "curves": [*OF_NETWORK, "iteration", "quantity", "value"],
    "accuracy": [*OF_NETWORK, "answer", "accuracy"],
    "sinks": [*OF_NETWORK, "state", "tau", "token", "value"],
}
DRAWN_AS_PRINTED = {"paper"}  # tokens as the text of the paper draws them; other groups are compared, not judged
FIRST_MIDDLE, FIRST_LAST, MIDDLE_LAST = PAIR_NAMES


class Configuration(NamedTuple):
    """What tells apart networks that claims compare. Its name in published/predictions.csv says all but the depth."""

    vocabulary: str
    study: str
    mask: str
    encoding: str
    depth: int

    def __str__(self) -> str:
        """Return its name in published/predictions.csv: vocabulary/study/mask/encoding."""
        return "/".join(self[:4])

    @property
    def name(self) -> str:
        """What figures call it, as `accuracy_gaps.network_names` does."""
        return f"{self}/depth{self.depth}"

    @property
    def tells_positions(self) -> bool:
        """Whether anything tells it positions apart: a mask or an encoding."""
        return not self.mask == self.encoding == "none"

    @property
    def item(self) -> str:
        """The figure of the paper that shows it, or ""."""
        return FIGURES.get((self.vocabulary, self.study), "")


SEEN_COLUMNS = [*Configuration._fields, "seed"]  # columns of evidence/emergence/seen.csv


@dataclass(frozen=True)
class NetworkTables:
    """What claims are judged on, by seed: gaps and sinks in the common direction of training, accuracy in fresh."""

    gaps: pd.DataFrame  # of accuracy_gaps.final_gaps
    accuracy: pd.DataFrame  # of accuracy_gaps.by_position
    sinks: pd.DataFrame  # of sinks.measure_sinks, with the columns of a configuration, at one threshold

    @classmethod
    def from_tables(cls, curves: pd.DataFrame, accuracy: pd.DataFrame, sinks: pd.DataFrame) -> "NetworkTables":
        """Take the tables of `curves`, `by_position` and sinks.measure_sinks; a seed that diverged has NaN in each."""
        all_networks = curves[[*CONFIGURATION, "seed"]].drop_duplicates()
        tables = with_training_omega(final_gaps(curves)), with_fresh_omega(accuracy), with_training_omega(sinks)
        return cls(*(_with_diverged(table, all_networks) for table in tables))


def _with_diverged(table: pd.DataFrame, all_networks: pd.DataFrame) -> pd.DataFrame:
    """The table with rows of NaN for seeds that started and are not in it, where other seeds of their networks are."""
    keys = [name for name in table if name not in {"seed", *VALUES}]
    all_seeds = table[keys].drop_duplicates().merge(all_networks, on=CONFIGURATION)
    survivors = pd.MultiIndex.from_frame(table[[*keys, "seed"]])
    diverged_rows = all_seeds[~pd.MultiIndex.from_frame(all_seeds[[*keys, "seed"]]).isin(survivors)]
    return pd.concat([table, diverged_rows], ignore_index=True) if len(diverged_rows) else table


def verdicts(
    curves: list[Path],
    sinks: list[Path],
    evidence: list[Path],
    seen: pd.DataFrame,
    predicted: Path,
    threshold: float,
    scale: str,
    level: float,
) -> pd.DataFrame:
    """Return the `network_checks` of this run and of the long runs in evidence/ whose tables are named.

    `curves` and `sinks` are the tables of this run, sinks at one `threshold`; `seen` is evidence/emergence/seen.csv,
    `predicted` the registry of predictions. Networks that were trained in the settings of the authors' released code
    are judged by claims of their own. Raises InputError where a table cannot be used.
    """
    by_statistic = predictions(predicted, "emergence")
    of_this_run = network_checks(read_run(curves, sinks, threshold), by_statistic, scale, level)
    long_runs = read_long_runs(evidence, threshold)
    of_long_runs = (
        drop_untestable(network_checks(networks, by_statistic, name, level, seen))
        for name, networks in long_runs.items()
    )
    as_released = released_code.released_code_checks(released_code.read_curves(evidence), by_statistic, level)
    return pd.concat([of_this_run, *of_long_runs, as_released], ignore_index=True)


def network_checks(
    networks: NetworkTables,
    predictions: Mapping[str, list[Prediction]],
    scale: str,
    level: float,
    seen: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Verdicts on what the paper says of single gaps and of networks together, in the schema of `judge.COLUMNS`.

    `scale` is that of the trained networks. `seen` has the columns SEEN_COLUMNS: networks whose results we knew
    before the rules of verdicts were fixed. Raises InputError where nothing is predicted of a statistic.
    """
    return table("emergence", scale, judge(network_statistics(networks, seen), predictions, level))


def all_gaps(tests: pd.DataFrame, predicted: Path, share: float, level: float) -> pd.DataFrame:
    """The `gap_table` of a run; `tests` joins the tables of training, `share` is that of its last iterations."""
    by_seed = curves(tests)
    by_statistic = predictions(predicted, "emergence")
    return gap_table(final_gaps(by_seed), late_gaps(by_seed, share), by_statistic, level)


def gap_table(
    final: pd.DataFrame, late: pd.DataFrame, predictions: Mapping[str, list[Prediction]], level: float
) -> pd.DataFrame:
    """Return every gap with its interval over seeds and its verdict, at the end of training and over its last part.

    `final` and `late` are the tables of `final_gaps` and `late_gaps`; of `predictions`, those of one network alone are
    taken.
    """
    keys = [*CONFIGURATION, "pair"]
    gaps = summary(final, keys, "gap", level)
    late_means = summary(late, keys, "gap", level).drop(columns="seeds")
    gaps = gaps.merge(late_means, on=keys, suffixes=("", " settled"), validate="one_to_one")
    predicted_of = {
        (row.network, pair): row for pair in PAIR_NAMES for row in predictions[f"{pair} gap"] if not row.other
    }
    names = map(str, map(Configuration._make, gaps[list(Configuration._fields)].itertuples(index=False)))
    verdict_rows = []
    for network, pair, low, high in zip(names, gaps["pair"], gaps["low"], gaps["high"], strict=True):
        prediction = predicted_of.get((network, pair))
        if prediction is None:
            verdict_rows.append(("", np.nan, np.nan, NO_CLAIM))
        else:
            verdict_rows.append(
                (prediction.relation, prediction.bound, prediction.margin, by_itself(prediction, low, high))
            )
    gaps[[*PREDICTION, "verdict"]] = pd.DataFrame(verdict_rows, gaps.index)
    return gaps.assign(item=[FIGURES[study] for study in zip(gaps["vocabulary"], gaps["study"], strict=True)])


# The values of a network: a table of the seeds that it was started with, its columns value, which is NaN where the seed
# diverged, and seen, whether we knew its results before the rules of verdicts were fixed. Networks of one seed share
# data and initial weights.

Values = pd.DataFrame
Networks = dict[Configuration, Values]


def _by_network(table: pd.DataFrame, keys: list[str], value: str, seen: pd.DataFrame) -> dict[tuple[Any, ...], Values]:
    """The values of each network by its `keys`, in the order in which they come first."""
    rows, seen_rows = (pd.MultiIndex.from_frame(rows_of[SEEN_COLUMNS]) for rows_of in (table, seen))
    with_marks = table.assign(value=table[value], seen=rows.isin(seen_rows)).set_index("seed")
    groups = with_marks.groupby(keys, sort=False)[["value", "seen"]]
    return {key: values.sort_index(kind="stable") for key, values in groups}


def _less(values: Values, subtrahend: Values) -> Values:
    """The difference at the seeds that both were started with."""
    seeds = values.index.intersection(subtrahend.index)
    values, subtrahend = values.loc[seeds], subtrahend.loc[seeds]
    return pd.DataFrame({"value": values["value"] - subtrahend["value"], "seen": values["seen"] | subtrahend["seen"]})


def _not_trained(values: Values) -> Values:
    """The same network as if no seed of it had been started."""
    return values.iloc[:0]


def _groups(networks: Networks, *names: str) -> dict[tuple[Any, ...], Networks]:
    """The networks by their attributes of these names."""
    groups: dict[tuple[Any, ...], Networks] = {}
    for network, values in networks.items():
        groups.setdefault(tuple(getattr(network, name) for name in names), {})[network] = values
    return groups


def _of_study(networks: Networks, study: str) -> Networks:
    return {network: values for network, values in networks.items() if network.study == study}


def _statistic(
    name: str,
    columns: Mapping[Any, Values],
    setting: Mapping[str, object],
    networks_behind: Mapping[Any, Iterable[Configuration]] | None = None,
    **fields: Any,
) -> Statistic:
    """A statistic of these columns; words show the column itself, so that they can name its parts.

    `networks_behind` has the networks of each column, where that is not a network itself.
    """
    networks = {column: [column] for column in columns} if networks_behind is None else networks_behind
    return Statistic(
        name,
        pd.DataFrame({str(column): values["value"] for column, values in columns.items()}),
        setting,
        wording={str(column): column for column in columns},
        seen_units={str(column): values["seen"] for column, values in columns.items()},
        networks_behind={
            str(column): [network.name for network in of_column] for column, of_column in networks.items()
        },
        **fields,
    )


def _of_one(name: str, columns: Mapping[Any, Values], network: Configuration) -> Statistic:
    """A statistic whose columns are all of one network."""
    setting, item = {"vocabulary": network.vocabulary, "depth": network.depth}, network.item
    of_columns = {column: [network] for column in columns}
    return _statistic(name, columns, setting, of_columns, item=item, speaks=network.vocabulary == "gaussian")


# The statistics


def network_statistics(networks: NetworkTables, seen: pd.DataFrame | None = None) -> Iterator[Statistic]:
    """Yield the statistics that claims speak of, each a table with seeds down. `seen` is that of `network_checks`."""
    seen = pd.DataFrame(columns=SEEN_COLUMNS) if seen is None else seen
    gaps: dict[str, Networks] = {pair: {} for pair in PAIR_NAMES}
    for (*labels, pair), values in _by_network(networks.gaps, [*Configuration._fields, "pair"], "gap", seen).items():
        gaps[pair][Configuration._make(labels)] = values
    yield from _single_gaps(gaps)
    yield from _depth(gaps)
    yield from _weak_at_the_end(gaps)
    yield from _ends(gaps)
    yield from _lost_in_the_middle(gaps)
    yield from _not_lost_elsewhere(gaps)
    yield from _windows(gaps)
    yield from _vocabularies(gaps, networks.accuracy, seen)
    yield from _sinks(networks.sinks, seen)


def _single_gaps(gaps: dict[str, Networks]) -> Iterator[Statistic]:
    """Every gap; those of neither mask nor encoding are 0 but for chance, whatever the weights (Sections 5.1, 5.2)."""
    for pair in PAIR_NAMES:
        for group, networks in _groups(gaps[pair], "item", "vocabulary", "study", "depth", "tells_positions").items():
            item, _, _, depth, tells_positions = group
            yield _statistic(f"{pair} gap", networks, {"depth": depth}, item=item, identity=not tells_positions)


def _depth(gaps: dict[str, Networks]) -> Iterator[Statistic]:
    """How much the first-last gap grows from a depth to the next (Figures 4, 5, 9, 10).

    Of a network that has one depth alone, nothing is known.
    """
    for (vocabulary, study, *_), networks in _groups(
        gaps[FIRST_LAST], "vocabulary", "study", "mask", "encoding"
    ).items():
        if (vocabulary, study) in BY_DEPTH.values():
            by_depth = {network.depth: values for network, values in networks.items()}
            depths, network = sorted(by_depth), next(iter(networks))
            for shallower, deeper in pairwise(depths) if len(depths) > 1 else [(depths[0], depths[0])]:
                change = (
                    _less(by_depth[deeper], by_depth[shallower])
                    if deeper > shallower
                    else _not_trained(by_depth[shallower])
                )
                setting = {"deeper": deeper, "than": shallower}
                of_columns = {network: [network._replace(depth=depth) for depth in (deeper, shallower)]}
                yield _statistic("first-last gap by depth", {network: change}, setting, of_columns, item=network.item)


def _weak_at_the_end(gaps: dict[str, Networks]) -> Iterator[Statistic]:
    """The sizes of the mean gaps of a causal mask alone (Section 5.1): gaps, turned round where their mean is below 0.

    Noise makes the mean of sizes larger, and the size of the mean hardly.
    """
    for network in gaps[FIRST_LAST]:
        if (network.study, network.encoding) == ("plain", "none"):
            sizes = {pair: gaps[pair][network] for pair in PAIR_NAMES}
            for pair, values in sizes.items():
                if not values["value"].mean() > 0:
                    sizes[pair] = values.assign(value=-values["value"])
            yield _of_one("size of the mean gap", sizes, network)


def _ends(gaps: dict[str, Networks]) -> Iterator[Statistic]:
    """Trained on both ends without encoding: a causal mask, and no mask (Section 5.2); one of them may be missing."""
    for pair in (FIRST_LAST, MIDDLE_LAST):
        without_encoding = {network: values for network, values in gaps[pair].items() if network.encoding == "none"}
        for (vocabulary, depth), networks in _groups(
            _of_study(without_encoding, "ends"), "vocabulary", "depth"
        ).items():
            masks = [Configuration(vocabulary, "ends", mask, "none", depth) for mask in ("causal", "none")]
            no_values = _not_trained(next(iter(networks.values())))
            columns = {network: networks.get(network, no_values) for network in masks}
            yield _statistic(f"{pair} gap after both ends", columns, {}, item=masks[0].item)


def _lost_in_the_middle(gaps: dict[str, Networks]) -> Iterator[Statistic]:
    """Footnote 2: of the networks trained without bias, deep ones with RoPE and residual connections alone lose it."""
    rope = {network: values for network, values in gaps[FIRST_LAST].items() if network.encoding == "rope"}
    for networks in _groups(_of_study(rope, "residual"), "vocabulary").values():
        deepest = max(networks, key=lambda network: network.depth)
        by_pair = {pair: gaps[pair][deepest] for pair in PAIR_NAMES}
        if deepest.depth < DEEP:
            by_pair = {pair: _not_trained(values) for pair, values in by_pair.items()}
        yield _of_one("gap of deep RoPE", by_pair, deepest)


def lost_middle(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """Estimate how far the middle is lost: the smaller of two means, by which first and last are preferred to it.

    `values` has both preferences of each seed, by pair and seed. The estimate is below a bound where either of the two
    is, so that the upper end comes from intervals that have half of the error each.
    """
    ends = values.unstack(0)
    estimates = [student(ends[end], prediction, level) for end in ends]
    wider = [student(ends[end], prediction, (1 + level) / 2) for end in ends]
    smaller = min(estimates, key=lambda estimate: estimate.measured)
    return smaller._replace(low=min(end.low for end in estimates), high=min(end.high for end in wider))


def _not_lost_elsewhere(gaps: dict[str, Networks]) -> Iterator[Statistic]:
    """How far networks that are not trained on both ends lose the middle, without those of footnote 2 (5.2, K.3)."""
    for network, first in gaps[FIRST_MIDDLE].items():
        last = gaps[MIDDLE_LAST][network]
        deep_rope = (network.study, network.encoding) == ("residual", "rope") and network.depth >= DEEP
        if network.study != "ends" and not deep_rope:
            by_last = last.assign(value=-last["value"], seen=False)  # so that a seed is counted once
            columns = {network: pd.concat([first, by_last], keys=PAIR_NAMES[::2])}
            identity = not network.tells_positions
            setting = {"depth": network.depth}
            yield _statistic(
                "lost middle", columns, setting, estimate=lost_middle, item=network.item, identity=identity
            )


def _windows(gaps: dict[str, Networks]) -> Iterator[Statistic]:
    """Yield the first-last gap under each window beside that under the next wider one, by vocabulary (Theorem 4.2)."""
    for (vocabulary,), networks in _groups(_of_study(gaps[FIRST_LAST], "window"), "vocabulary").items():
        by_reach = sorted(networks, key=lambda network: _reach(network.mask))
        for narrow, wide in pairwise(by_reach):
            columns = {"wider": networks[wide], "narrower": networks[narrow]}
            setting = {"vocabulary": vocabulary, "wide": wide.mask, "narrow": narrow.mask}
            of_columns = {"wider": [wide], "narrower": [narrow]}
            yield _statistic("first-last gap by window", columns, setting, of_columns, speaks=vocabulary == "gaussian")


def _vocabularies(gaps: dict[str, Networks], accuracy: pd.DataFrame, seen: pd.DataFrame) -> Iterator[Statistic]:
    """The first-last gap and the accuracy over all positions, of one vocabulary and another (Appendix L)."""
    keys = list(Configuration._fields)
    plain = accuracy[accuracy["study"] == "plain"].groupby([*keys, "seed"], sort=False)["accuracy"].mean()
    accuracies = _by_network(plain.reset_index(), keys, "accuracy", seen)
    of_accuracy = {Configuration._make(labels): values for labels, values in accuracies.items()}
    for name, networks in (("first-last gap", _of_study(gaps[FIRST_LAST], "plain")), ("accuracy", of_accuracy)):
        for (encoding, depth), by_vocabulary in _groups(networks, "encoding", "depth").items():
            columns = {network.vocabulary: values for network, values in by_vocabulary.items()}
            of_columns = {network.vocabulary: [network] for network in by_vocabulary}
            yield _statistic(f"{name} by vocabulary", columns, {"encoding": encoding, "depth": depth}, of_columns)


def _sinks(sinks: pd.DataFrame, seen: pd.DataFrame) -> Iterator[Statistic]:
    """The sink metric of the centre nodes, a statistic for each, beside other tokens and two nulls (K.4).

    The query token, which it alone can read, is none of the others. Where rounding decides whether uniform attention
    has a sink, nothing that compares with it is judged. Of what uniform attention has over all queries a part is
    arithmetic: so many have few tokens to read. So its claim is judged on later queries.
    """
    mask_alone = sinks[(sinks["encoding"] == "none") & (sinks["depth"] == SHALLOW)].sort_values("token", kind="stable")
    mask_alone = mask_alone[mask_alone["token"] < mask_alone["token"].max()]
    metric: dict[tuple[Any, ...], dict[int, Values]] = {}
    keys = ["vocabulary", "study", "mask", "state", "token"]
    for (*of_mask, token), values in _by_network(mask_alone, keys, "value", seen).items():
        metric.setdefault(tuple(of_mask), {})[token] = values
    for figure_study, item in SINK_FIGURES.items():
        (vocabulary, study), name = figure_study, "/".join(figure_study)
        with_prefix, with_window = (kind in STUDIES[study].masks for kind in ("prefix", "window"))
        masks = sorted(
            (mask for *study_key, mask, state in metric if (*study_key, state) == (*figure_study, "trained")),
            key=_reach,
        )
        comparable = [mask for mask in masks if not rounding_decides(mask, mask_alone["tau"].iloc[0])]
        null = {mask: metric[*figure_study, mask, "uniform"] for mask in masks}
        for mask in sorted(masks):
            of_trained, of_untrained = metric[*figure_study, mask, "trained"], metric[*figure_study, mask, "untrained"]
            centres = _reach(mask) if with_prefix else 1
            other_tokens = {f"token {token}": values for token, values in of_trained.items() if token > centres}
            if with_prefix:
                later = pd.DataFrame({token: values["value"] for token, values in other_tokens.items()})
                other_tokens = {"later tokens": of_trained[1].assign(value=later.mean(axis=1))}
            elif with_window and mask != masks[-1]:
                other_tokens = {}
            for token in range(1, centres + 1):
                columns = {name: of_trained[token], **other_tokens, "untrained": of_untrained[token]}
                if mask in comparable:
                    columns["uniform attention"] = of_trained[token].assign(value=null[mask][token]["value"].iloc[0])
                setting = {"vocabulary": vocabulary, "mask": mask, "token": token}
                of_columns = dict.fromkeys(columns, (Configuration(vocabulary, study, mask, "none", SHALLOW),))
                yield _statistic("sink metric", columns, setting, of_columns, item=item)
                # older tables of evidence/ have none
                of_later = metric.get((*figure_study, mask, "trained" + LATER), {})
                if mask in comparable and token in of_later:
                    null_later = metric[*figure_study, mask, "uniform" + LATER][token]["value"].iloc[0]
                    of_queries = {name: of_later[token], "uniform attention": of_later[token].assign(value=null_later)}
                    yield _statistic("sink metric of later queries", of_queries, setting, of_columns, item=item)
        for narrow, wide in list(pairwise(comparable))[-1:] if with_window else ():
            wider = _less(metric[*figure_study, wide, "trained"][1], metric[*figure_study, narrow, "trained"][1])
            of_null = null[wide][1]["value"].iloc[0] - null[narrow][1]["value"].iloc[0]
            columns = {name: wider, "uniform attention": wider.assign(value=of_null)}
            setting = {"vocabulary": vocabulary, "wide": wide, "narrow": narrow}
            of_masks = tuple(Configuration(vocabulary, study, mask, "none", SHALLOW) for mask in (wide, narrow))
            yield _statistic("sink metric by window", columns, setting, dict.fromkeys(columns, of_masks), item=item)


def _reach(mask: str) -> int:
    """How many tokens a window or prefix has, by the name of its mask; 0 of another mask."""
    return int("0" + mask.lstrip(ascii_lowercase))


# Networks of this run, and of evidence/ after long training


def read_long_runs(evidence: Iterable[Path], threshold: float) -> dict[str, NetworkTables]:
    """Return the networks of the groups that these tables belong to, at each scale; sinks at one threshold.

    A group is a folder of evidence/emergence/; those whose tokens are not drawn as the paper's text says are left out.
    Raises InputError where a table cannot be used.
    """
    groups = {path.parent for path in evidence}
    group_runs = {group: artifacts.read_table(group / "runs.csv", ["coordinates"]) for group in groups}
    folders = sorted(group for group, runs in group_runs.items() if set(runs["coordinates"]) == DRAWN_AS_PRINTED)
    tables = {name: _join(folders, name) for name in EVIDENCE}
    tables["sinks"] = tables["sinks"][tables["sinks"]["tau"] == threshold]
    by_scale = {}
    for scale in dict.fromkeys(tables["curves"]["scale"]):
        of_scale = (table[table["scale"] == scale].drop(columns="scale") for table in tables.values())
        by_scale[str(scale)] = NetworkTables.from_tables(*of_scale)
    return by_scale


def read_run(curves: Sequence[str | Path], sinks: Sequence[str | Path], threshold: float) -> NetworkTables:
    """Return the networks that this run trained, from their tables at these paths; sinks at one threshold.

    Raises InputError where a table cannot be used.
    """
    tests = artifacts.read_tables(curves, accuracy_gaps.COLUMNS)
    sink_table = artifacts.read_tables(sinks, accuracy_gaps.SINKS)
    of_threshold = sink_table[sink_table["tau"] == threshold]
    return NetworkTables.from_tables(accuracy_gaps.curves(tests), accuracy_gaps.by_position(tests), of_threshold)


def _join(folders: Iterable[Path], name: str) -> pd.DataFrame:
    """Join the tables of this name in all the folders that have one; where none has, return one without rows."""
    paths = [folder / f"{name}.csv" for folder in folders if (folder / f"{name}.csv").is_file()]
    empty = pd.DataFrame(columns=EVIDENCE[name])
    tables = [artifacts.read_table(path, EVIDENCE[name]) for path in paths]
    return pd.concat(tables, ignore_index=True)[EVIDENCE[name]] if tables else empty
