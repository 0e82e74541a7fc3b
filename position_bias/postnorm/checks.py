"""These statistics measure what Zsamboki et al. 2025 claim of norms after attention, and what we add to it.

published/predictions.csv has what is predicted of them.

L is the trained length; TVD is the total variation distance to the uniform distribution over legal outputs. Networks of
one seed share data and, at one size, initial weights, so they are compared by seed: a table has seeds down and schemes
across, unless a function says otherwise, and intervals are Student's over seeds. A seed that diverged has no value; a
seed counts as started where any scheme of its task has it. A scheme that was not trained is a column without values,
so that its claims cannot be tested.

Sections are those of the paper that its summary names.
"""

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import pairwise, permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from position_bias.postnorm import theory
from position_bias.postnorm.runs import MINIMAL, SCHEMES, part_of, vocabulary
from position_bias.verdicts.judge import Estimate, Statistic, judge, student, table
from position_bias.verdicts.registry import Prediction, predictions
from position_card.rollout.attention import Array

PRINTED_LAW = "C/2^s"  # of the gap, as the summary has it
PAPERS_ETA = 0.2  # of BEMA, by default
RATES = {False: "constant", True: "decaying"}  # by whether the learning rate decays
START = 20  # iterations in which the loss may still jump
SPIKE = 1.0  # nats above the lowest loss before


def scheme_checks(
    tests: pd.DataFrame,
    dimension: pd.DataFrame,
    depth: pd.DataFrame,
    averaging: pd.DataFrame,
    stability: pd.DataFrame,
    predicted: Path,
    scale: str,
    level: float,
) -> pd.DataFrame:
    """Return verdicts in the schema of `judge.COLUMNS`, with keys.

    `tests` joins those of all tasks: columns task, scheme, seed, length, quantity, value, trained (L). `dimension` has
    width beside them, `averaging` has decay, weights and eta (`runs.by_width`, `by_average`). `depth` is the table of
    `training.by_depth`, `stability` that of `training.stretches`, one an iteration. `predicted` is the registry of
    predictions; raises InputError where it lacks a statistic.
    """
    statistics = scheme_statistics(tests, dimension, depth, averaging, stability)
    return table("postnorm", scale, judge(statistics, predictions(predicted, "postnorm"), level))


def scheme_statistics(
    tests: pd.DataFrame,
    dimension: pd.DataFrame,
    depth: pd.DataFrame,
    averaging: pd.DataFrame,
    stability: pd.DataFrame,
) -> Iterator[Statistic]:
    """Yield the statistics that `scheme_checks` judges, from the tables that it takes."""
    minimal, of_minimal = (table["task"].map(part_of) == MINIMAL for table in (tests, averaging))
    yield from _set_complement(tests[minimal])
    yield from _legal(tests[minimal])
    yield from _dispersion(tests[minimal])
    yield from _gap_laws(tests[minimal])
    yield from _dimension(dimension)
    yield from _averaging(averaging[of_minimal])
    yield from _deterministic(averaging[~of_minimal])
    yield from _languages(tests[~minimal])
    yield from _depth(depth)
    yield from _stability(stability)


def _by_scheme(tests: pd.DataFrame, units: str | list[str] = "seed") -> pd.DataFrame:
    """Mean over lengths: units down, SCHEMES across; missing where there are no tests."""
    means = tests.pivot_table(index=units, columns="scheme", values="value")
    return means.reindex(columns=list(SCHEMES))


def _longer(tests: pd.DataFrame) -> pd.DataFrame:
    """Return the tests of sequences that are longer than those of training."""
    return tests[tests["length"] > tests["trained"]]


def _at(tests: pd.DataFrame) -> pd.DataFrame:
    """Return the tests of sequences that are as long as those of training."""
    return tests[tests["length"] == tests["trained"]]


def _vocabularies(tests: pd.DataFrame, quantity: str) -> Iterator[tuple[int, dict[str, object], pd.DataFrame]]:
    """Tests of a quantity in each Set Complement Task, with v and the setting of statistics, the smallest v first."""
    of_quantity = tests[tests["quantity"] == quantity]
    for v, of_task in of_quantity.groupby(of_quantity["task"].map(vocabulary)):
        yield v, {"v": v, "L": of_task["trained"].iloc[0]}, of_task


def _task(tests: pd.DataFrame) -> str:
    """The task that all of the tests are of."""
    return str(tests["task"].iloc[0])


# The Set Complement Task, by scheme


def _set_complement(tests: pd.DataFrame) -> Iterator[Statistic]:
    """Where a norm stands decides how networks do beyond L, not at L."""
    for _, setting, of_task in _vocabularies(tests, "tvd"):
        yield Statistic("tvd beyond L", _by_scheme(_longer(of_task)), setting, networks_behind=_task(of_task))
        yield Statistic("tvd at L", _by_scheme(_at(of_task)), setting, networks_behind=_task(of_task))


def _legal(tests: pd.DataFrame) -> Iterator[Statistic]:
    """How unevenly networks treat legal tokens beyond L, at lengths that leave two of them at least.

    Under uniform attention and simplex embeddings all legal tokens have the same logit. Errors of the values, drawn for
    each pair of tokens, are averaged over s tokens and fall as 1/sqrt(s). A norm after attention divides them by the
    size of the average, which falls as sqrt((v - s)/(s v)), so that they grow as sqrt(v/(v - s)).
    """
    for v, setting, of_task in _vocabularies(tests, "legal_tvd"):
        two_or_more = of_task[of_task["length"] < v - 1]
        yield Statistic("legal tvd beyond L", _by_scheme(_longer(two_or_more)), setting, networks_behind=_task(of_task))


def _dispersion(tests: pd.DataFrame) -> Iterator[Statistic]:
    """Attention is constant where it was trained, and thins out with length under every scheme."""
    for _, setting, weight in _vocabularies(tests, "largest_weight"):
        at, longer = _at(weight), _longer(weight)
        in_uniform = at.assign(value=at["value"] * at["length"])
        yield Statistic("largest weight at L", _by_scheme(in_uniform), setting, networks_behind=_task(weight))
        yield Statistic(
            "largest weight against s", _slopes(longer, lambda s: s), setting, networks_behind=_task(weight)
        )
    for _, setting, distance in _vocabularies(tests, "tvd"):
        longest = distance[distance["length"] == distance["length"].max()]
        loss = _by_scheme(longest) - _by_scheme(_at(distance))
        yield Statistic("tvd at the longest less at L", loss, setting, networks_behind=_task(distance))


def _gap_laws(tests: pd.DataFrame) -> Iterator[Statistic]:
    """The slope against a law is 1 where the gap follows it, whatever its constant; gaps up to 0 have no logarithm."""
    for v, setting, of_task in _vocabularies(tests, "gap"):
        longer = _longer(of_task)
        slopes = _slopes(longer, partial(theory.law_gap, PRINTED_LAW, v=v, constant=1.0))
        yield Statistic(f"gap against {PRINTED_LAW}", slopes, setting, networks_behind=_task(of_task))
        yield Statistic("asymmetry of the gap", _asymmetry(longer, v), setting, networks_behind=_task(of_task))


def _slopes(curves: pd.DataFrame, scale: Callable[[Array], Array]) -> pd.DataFrame:
    """Least-squares slope of ln value on ln scale(length): seeds of `curves` down, SCHEMES across.

    It is missing where fewer than two abscissae are left.
    """
    slopes: dict[Hashable, dict[Hashable, float]] = {scheme: {} for scheme in SCHEMES}
    tests = curves[curves["value"] > 0]
    logs = tests.assign(x=np.log(scale(tests["length"].to_numpy(float))), y=np.log(tests["value"].to_numpy(float)))
    for (scheme, seed), curve in logs.groupby(["scheme", "seed"]):
        x, y = curve["x"].to_numpy(), curve["y"].to_numpy()
        slopes[scheme][seed] = np.polyfit(x, y, 1)[0] if len(np.unique(x)) > 1 else np.nan
    return pd.DataFrame(slopes, index=np.unique(curves["seed"]), columns=list(SCHEMES), dtype=float)


def _asymmetry(curves: pd.DataFrame, v: int) -> pd.DataFrame:
    """Return the mean of ln gap(v - s) - ln gap(s) over s < v/2 with both gaps above 0: seeds down, SCHEMES across.

    `curves` has the gap by length s. The mean is 0 where the gap is symmetric about v/2, as C/sqrt(s(v-s)) is.
    """
    values = curves.pivot(index=["seed", "scheme"], columns="length", values="value")
    logs = values.where(values > 0).apply(np.log)
    lower = [s for s in range(1, v) if 2 * s < v and {s, v - s} <= set(logs)]
    means = pd.DataFrame({s: logs[v - s] - logs[s] for s in lower}, index=logs.index, dtype=float).mean(axis=1)
    return means.unstack("scheme").reindex(columns=list(SCHEMES))


# Width


def _dimension(tests: pd.DataFrame) -> Iterator[Statistic]:
    """What other widths than v - 1 lose beyond L and at L: seeds down, schemes across."""
    for v, setting, of_task in _vocabularies(tests, "tvd"):
        enough, widest = v - 1, of_task["width"].max()
        sides = {enough - 1: "narrower", enough // 2: "narrower"} | ({widest: "wider"} if widest > enough else {})
        for width, side in sides.items():
            for place, subset in (("beyond", _longer(of_task)), ("at", _at(of_task))):
                losses = _by_scheme(subset[subset["width"] == width]) - _by_scheme(subset[subset["width"] == enough])
                by_scheme = losses[[scheme for scheme in losses if scheme in set(of_task["scheme"])]]
                networks = {
                    name: [f"{_task(of_task)}/{name}/d{d}" for d in (width, enough)] for name in map(str, by_scheme)
                }
                of_width = {"d": width, "enough": enough, **setting}
                yield Statistic(f"tvd {place} L, {side}", by_scheme, of_width, networks_behind=networks)


# Averaged weights: raw, ema and bema across


def _averaging(tests: pd.DataFrame) -> Iterator[Statistic]:
    """What averages gain at L among legal outputs; targets drawn from many of them make gradients noisy (section 4.5).

    The last statistic has vocabularies across. It pairs seeds of two, which share no data.
    """
    at = _at(tests)
    etas = _etas(at[at["quantity"] == "legal_tvd"])
    gains: dict[float, dict[int, pd.Series]] = {eta: {} for eta in etas}
    averages: dict[int, str] = {}
    for v, setting, of_task in _vocabularies(at, "legal_tvd"):
        averages[v] = names = f"{_task(of_task)}/averages"
        for decay, rate in RATES.items():
            yield Statistic(
                f"legal tvd of averages at a {rate} rate", _by_weights(of_task, decay), setting, networks_behind=names
            )
        for eta, (decay, rate) in product(etas, RATES.items()):
            by_weights = _by_weights(of_task, decay, eta)
            with_eta = {**setting, "eta": f"{eta:g}"}
            yield Statistic(
                f"legal tvd at a {rate} rate, {_eta_name(eta)}", by_weights, with_eta, networks_behind=names
            )
            if decay:
                gains[eta][v] = (by_weights["raw"] - by_weights["bema"]) / by_weights["raw"]
    for eta, by_vocabulary in gains.items():
        for (small, of_small), (large, of_large) in pairwise(by_vocabulary.items()):
            sizes = pd.DataFrame({"larger": of_large, "smaller": of_small})
            setting = {"large": large, "small": small, "eta": f"{eta:g}"}
            by_size = {"larger": averages[large], "smaller": averages[small]}
            of_gain = {size: [f"{task}/{weights}" for weights in ("raw", "bema")] for size, task in by_size.items()}
            yield Statistic(f"gain of BEMA, {_eta_name(eta)}", sizes, setting, networks_behind=of_gain)


def _deterministic(tests: pd.DataFrame) -> Iterator[Statistic]:
    """What averages do where one output is legal: targets bring no noise into gradients, but drawn sequences do."""
    at = _at(tests)
    for task, of_task in at[at["quantity"] == "tvd"].groupby("task"):
        for decay, rate in RATES.items():
            setting, networks = {"rate": rate, "task": task}, f"{task}/averages"
            for eta in _etas(of_task):
                by_weights = _by_weights(of_task, decay, eta)
                with_eta = {**setting, "eta": f"{eta:g}"}
                yield Statistic(
                    f"tvd with one answer, {_eta_name(eta)}", by_weights, with_eta, networks_behind=networks
                )
            yield Statistic("tvd with one answer", _by_weights(of_task, decay), setting, networks_behind=networks)


def _etas(tests: pd.DataFrame) -> list[float]:
    return sorted(tests.loc[tests["weights"] == "bema", "eta"].unique())


def _eta_name(eta: float) -> str:
    """How statistics of BEMA are told apart: the paper's claims are of its own eta."""
    return "the paper's eta" if eta == PAPERS_ETA else "another eta"


def _by_weights(tests: pd.DataFrame, decay: bool, eta: float | None = None) -> pd.DataFrame:
    """Values by seed and weights, of BEMA those with `eta`."""
    of_rate = tests[(tests["decay"] == decay) & ((tests["weights"] != "bema") | (tests["eta"] == eta))]
    by_weights = of_rate.pivot(index="seed", columns="weights", values="value")
    return by_weights.reindex(columns=["raw", "ema", "bema"])


# Maximum Retrieval, Dyck and Tomita


def _languages(tests: pd.DataFrame) -> Iterator[Statistic]:
    """Task by task beyond L; up to L, where no claim is made, the mean over tasks of each seed that has them all."""
    longer, of_training = _longer(tests), tests[tests["length"] <= tests["trained"]]
    for quantity in ("tvd", "auc"):
        for task, of_task in longer[longer["quantity"] == quantity].groupby("task", sort=False):
            yield Statistic(
                f"{quantity} of languages beyond L", _by_scheme(of_task), {"task": task}, networks_behind=str(task)
            )
    if not (fits := of_training[of_training["quantity"] == "tvd"]).empty:
        by_task = _by_scheme(fits, ["task", "seed"])
        yield Statistic("tvd of languages up to L", by_task, {"task": "all tasks"}, _mean_over_tasks)


def _mean_over_tasks(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """As `student`, of the mean over tasks of each seed; the units of `values` are task and seed."""
    return student(values.unstack("task").mean(axis=1, skipna=False), prediction, level)


def _depth(tests: pd.DataFrame) -> Iterator[Statistic]:
    """Brackets deeper than in training, in sequences as long as in training, so that attention disperses no further."""
    if tests.empty:
        return
    is_deeper = tests["deeper"].astype(bool)
    errors, areas, fits = (
        _by_scheme(tests[depths & (tests["quantity"] == quantity)])
        for depths, quantity in ((is_deeper, "tvd"), (is_deeper, "auc"), (~is_deeper, "tvd"))
    )
    yield Statistic("tvd of deeper brackets", errors, networks_behind="deeper brackets")
    yield Statistic("auc of deeper brackets", areas, networks_behind="deeper brackets")
    yield Statistic("tvd of brackets of trained depth", fits, networks_behind="deeper brackets")
    yield Statistic(
        "tvd of deeper brackets less that of trained depth", errors - fits, networks_behind="deeper brackets"
    )


# Stability


def _stability(curves: pd.DataFrame) -> Iterator[Statistic]:
    """Gradients and losses of training without warmup, for every number of layers and learning rate."""
    iterations = np.unique(curves["iteration"])
    for (layers, rate), of_setting in curves.groupby(["layers", "learning_rate"]):
        losses, norms = (
            of_setting.pivot(index="iteration", columns=["scheme", "seed"], values=name).reindex(iterations)
            for name in ("loss", "gradient_norm")
        )
        setting, networks = {"layers": layers, "learning_rate": f"{rate:g}"}, f"stability/{layers} layers"
        gradients, breaks = (
            of_trainings.unstack("scheme").reindex(columns=list(SCHEMES)) for of_trainings in _trouble(losses, norms)
        )
        yield Statistic("highest gradient", gradients, setting, networks_behind=networks)
        pairs = {pair: pd.concat([breaks[scheme] for scheme in pair], keys=(0, 1)) for pair in permutations(SCHEMES, 2)}
        columns = pd.DataFrame(list(pairs.values()), index=pd.Index(list(pairs), tupleize_cols=False)).T
        yield Statistic("trainings that break", columns, setting, more_often, networks_behind=networks)


def more_often(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """The share of trainings of one scheme that break less that of another, each with Clopper and Pearson's interval.

    The units of `values` are place, 0 for the one and 1 for the other, and seed. Each interval has half of the error.
    """
    tail, ends = (1 - level) / 4, []
    for _, of_scheme in values.dropna().groupby(level=0):
        n, breaks = len(of_scheme), int(of_scheme.sum())
        low = betaincinv(breaks, n - breaks + 1, tail) if breaks else 0.0
        high = betaincinv(breaks + 1, n - breaks, 1 - tail) if breaks < n else 1.0
        ends.append((breaks / n, float(low), float(high)))
    if len(ends) < 2:  # one of them was not trained
        return Estimate(np.nan, np.nan, np.nan, 0)
    (share, low, high), (other_share, other_low, other_high) = ends
    return Estimate(share - other_share, low - other_high, high - other_low, int(values.count()) // 2)


def _trouble(losses: pd.DataFrame, norms: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Of each training the log10 of its highest gradient norm that is finite, and whether it broke.

    Takes loss and gradient norm before each iteration down, trainings across. A training breaks where one of them is
    not finite, or not reached any more, and where after iteration START the loss exceeds the lowest before by more than
    SPIKE.
    """
    losses, norms = (values.where(np.isfinite(values)) for values in (losses, norms))
    rise = losses - losses.cummin()
    spikes = (rise > SPIKE) & (rise.index > START)[:, None]
    return np.log10(norms.where(norms > 0).max()), (spikes | losses.isna() | norms.isna()).any().astype(float)


def evidence(tests: pd.DataFrame, runs: pd.DataFrame, scale: str) -> dict[str, pd.DataFrame]:
    """Return what evidence/ keeps of long trainings: their tests by length (tests), and what made them (runs)."""
    columns = tests.drop(columns=["device", "torch"]).round({"value": 6})
    return {"tests": columns.assign(scale=scale), "runs": runs.round({"value": 6}).assign(scale=scale)}
