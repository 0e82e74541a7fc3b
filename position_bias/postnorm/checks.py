"""These checks judge what Zsamboki et al. 2025 claim of norms after attention, with claims that we add.

They are judged on networks that were trained, and on networks built by hand.

L is the trained length; TVD is the total variation distance to the uniform distribution over legal outputs. Networks of
one seed share data and, at one size, initial weights, so they are compared by seed: intervals are Student's over seeds,
unless a function says otherwise. A seed that diverged is left out of what it would be compared in, and the row counts
it; a seed counts as started where any scheme of its task has it. Where a table lacks a scheme, its claims cannot be
tested.

Sections are those of the paper that its summary names. Predictions and margins were fixed before the runs that they
judge; those of claims that we add, after trial runs.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np
import pandas as pd

from position_bias.attention import Array
from position_bias.postnorm import theory
from position_bias.postnorm.settings import MINIMAL, SCHEMES, part_of
from position_bias.running import runtime
from position_bias.statistics import percentile_interval
from position_bias.verdicts.verdict import Prediction, mean_row, row, table

PRE = "pre"
AFTER = ("post", "peri", "peri-init")  # a norm follows attention

NEGLIGIBLE = 0.01  # of a TVD, and of an area under the ROC curve
MORE = Prediction(">", 0, NEGLIGIBLE)
BIAS = Prediction(">", NEGLIGIBLE)  # of a TVD, which is never below 0
ALIKE = Prediction("=", 0, 0.02)  # of a TVD
DILUTED = Prediction("=", -1, 0.1)  # an exponent
LAWFUL = Prediction("=", 1, 0.1)  # likewise
SYMMETRIC = Prediction("=", 0, 0.1)  # of a logarithm: a tenth of a gap
CONSTANT = Prediction("=", 1, 0.1)  # in units of uniform attention
EXACT = Prediction("<", 1e-3)  # of a TVD that nothing was trained for
ROUNDING = 1e-9
NO_GAIN = Prediction("<", NEGLIGIBLE)  # of a TVD
GAINS_MORE = Prediction(">", 0, 0.05)  # of relative gains
HIGHER = Prediction(">", 0, 0.1)  # of decimal logarithms: a quarter more
OFTENER = Prediction(">", 0, 1)  # of numbers of iterations

REPLICATES = 10_000  # of bootstraps
PAPERS_ETA = 0.2  # of BEMA, by default
START = 20  # iterations in which the loss may still jump
SPIKE = 1.0  # nats above the lowest loss before

GENERALISES = "sections 4.3 and 6: a norm after attention helps beyond trained lengths"
BEST = "design tradeoffs: post-norm generalises best, peri-norm is a compromise"
RISKS = "design tradeoffs: post-norm risks instability"
ROBUST = "design tradeoffs: peri-norm is more robust than post-norm"
FIT_ALIKE = "our addition: schemes differ beyond L, not in how well they fit"
BREAKS = "failure signatures: spikes or NaN with post- and peri-norm"
OTHER_ETA = "our addition: BEMA is nearly an EMA; this eta is our addition, too"
AVERAGED = "our addition: drawn sequences make gradients noisy as long as the task is not learnt"
DEEPER = "first experiments, 3: does peri-norm classify beyond the trained depth; section 6 says that norms help"
BOUNDED = "our addition: nothing bounds what pre-norm reads out, and a norm before the read-out does"
BIASED = "failure signatures: outputs are biased over legal tokens; the bound is our addition"
SHARPENS_NOISE = "our addition: what is normalised again makes errors of the values grow with s"


def checks(
    tests: pd.DataFrame,
    construction: pd.DataFrame,
    dimension: pd.DataFrame,
    depth: pd.DataFrame,
    averaging: pd.DataFrame,
    stability: pd.DataFrame,
    scale: str,
    level: float,
) -> pd.DataFrame:
    """Return verdicts in the schema of `verdict.COLUMNS`.

    `tests` joins those of all tasks: columns task, scheme, seed, length, quantity, value, trained (L). `dimension` has
    width beside them, `averaging` has decay, weights and eta (`experiments.by_width`, `by_average`). `construction` is
    the table of `construction.distances`, `depth` that of `experiments.by_depth`, `stability` that of
    `experiments.stability`.
    """
    minimal, averaged = (table["task"].map(part_of) == MINIMAL for table in (tests, averaging))
    rows = [
        *_set_complement(tests[minimal], level),
        *_legal(tests[minimal], level),
        *_dispersion(tests[minimal], level),
        *_gap_laws(tests[minimal], level),
        *_construction(construction),
        *_dimension(dimension, level),
        *_averaging(averaging[averaged], level),
        *_deterministic(averaging[~averaged], level),
        *_languages(tests[~minimal], level),
        *_depth(depth, level),
        *_stability(stability, level),
    ]
    return table("postnorm", scale, rows)


def _by_scheme(tests: pd.DataFrame) -> pd.DataFrame:
    """Mean over lengths: seeds down, SCHEMES across; missing where there are no tests."""
    means = tests.pivot_table(index="seed", columns="scheme", values="value")
    return means.reindex(columns=list(SCHEMES))


def _of(tests: pd.DataFrame, quantity: str) -> pd.DataFrame:
    return tests[tests["quantity"] == quantity]


def _beyond(tests: pd.DataFrame) -> pd.DataFrame:
    return tests[tests["length"] > tests["trained"]]


def _at(tests: pd.DataFrame) -> pd.DataFrame:
    return tests[tests["length"] == tests["trained"]]


def _vocabularies(tests: pd.DataFrame) -> Iterator[tuple[int, str, pd.DataFrame]]:
    """Tests of each Set Complement Task, with v and how rows call it, the smallest first."""
    vocabulary = tests["task"].str.removeprefix("set-complement-").astype(int)
    for v, of_task in tests.groupby(vocabulary):
        yield v, f"v = {v}, L = {of_task['trained'].iloc[0]}", of_task


# The Set Complement Task, by scheme


def _set_complement(tests: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Where a norm stands decides how networks do beyond L, not at L."""
    item = "Set complement"
    final = "postnorm-final-norm"
    claimed = {  # the first less the second
        **{(PRE, scheme): ("postnorm-generalises", MORE, GENERALISES) for scheme in AFTER},
        ("peri", "post"): ("postnorm-best", MORE, BEST),
        ("none", PRE): ("", ALIKE, "our addition: pre-norm comes before the average over s tokens"),
        (PRE, "pre-final"): (final, MORE, "our addition: a norm before the read-out does part of it"),
        ("pre-final", "peri"): (final, MORE, "our addition: a norm before the read-out does not do all of it"),
    }
    for _, where, of_task in _vocabularies(_of(tests, "tvd")):
        beyond, at = _by_scheme(_beyond(of_task)), _by_scheme(_at(of_task))
        for (one, other), (claim, prediction, source) in claimed.items():
            quantity = f"mean TVD beyond L, {one} - {other}; {where}"
            yield mean_row(claim, item, quantity, prediction, beyond[one] - beyond[other], level, source)
        for scheme in SCHEMES:
            if scheme != PRE:
                difference = at[scheme] - at[PRE]
                yield mean_row("", item, f"TVD at L, {scheme} - {PRE}; {where}", ALIKE, difference, level, FIT_ALIKE)


def _legal(tests: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """How unevenly networks treat legal tokens beyond L, at lengths that leave two of them at least.

    Under uniform attention and simplex embeddings all legal tokens have the same logit. Errors of the values, drawn for
    each pair of tokens, are averaged over s tokens and fall as 1/sqrt(s). A norm after attention divides them by the
    size of the average, which falls as sqrt((v - s)/(s v)), so that they grow as sqrt(v/(v - s)).
    """
    item = "Legal tokens"
    for v, where, of_task in _vocabularies(_of(tests, "legal_tvd")):
        beyond = _by_scheme(_beyond(of_task[of_task["length"] < v - 1]))
        name = "mean TVD among legal tokens beyond L"
        for scheme in SCHEMES:
            quantity = f"{name}; {scheme}, {where}"
            yield mean_row("postnorm-legal-bias", item, quantity, BIAS, beyond[scheme], level, BIASED)
        for scheme in AFTER:
            quantity, more = f"{name}, {scheme} - {PRE}; {where}", beyond[scheme] - beyond[PRE]
            yield mean_row("postnorm-legal-after", item, quantity, MORE, more, level, SHARPENS_NOISE)


def _dispersion(tests: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Attention is constant where it was trained, and thins out with length under every scheme."""
    item = "Dispersion"
    for _, where, of_task in _vocabularies(tests):
        weight, distance = _of(of_task, "largest_weight"), _of(of_task, "tvd")
        constant = _by_scheme(_at(weight.assign(value=weight["value"] * weight["length"])))
        longest = distance["length"] == distance["length"].max()
        rise = _by_scheme(distance[longest]) - _by_scheme(_at(distance))
        for scheme in SCHEMES:
            setting = f"{scheme}, {where}"
            source = "section 4.2: attention is taken to be constant"
            quantity = f"largest weight times s, at L; {setting}"
            yield mean_row("postnorm-constant", item, quantity, CONSTANT, constant[scheme], level, source)
            slope = _slopes(_beyond(weight), scheme, lambda s: s)
            source = "section 4.3: weights dilute as 1/s; slope and margin are our additions"
            quantity = f"slope of ln(largest weight) on ln s beyond L; {setting}"
            yield mean_row("postnorm-dispersion", item, quantity, DILUTED, slope, level, source)
            source, quantity = "Theorem 4.2: precision falls with length", f"TVD, longest - L; {setting}"
            yield mean_row("postnorm-precision", item, quantity, MORE, rise[scheme], level, source)


def _gap_laws(tests: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Slopes against a law are 1 where the gap follows it, whatever its constant; gaps up to 0 have no logarithm."""
    item = "Gap laws"
    dispersed = "postnorm-dispersed-law", "our addition: nothing is normalised after the division by s"
    normalised = "postnorm-resharpened-law", "our addition: what attention adds is normalised"
    claimed = {
        **{(scheme, theory.DISPERSED): dispersed for scheme in ("none", PRE)},
        **{(scheme, theory.NORMALISED): normalised for scheme in AFTER},
        ("none", "C/2^s"): ("postnorm-precision-law", "Theorem 4.2, as the summary prints it"),
    }
    for v, where, of_task in _vocabularies(_of(tests, "gap")):
        for (scheme, law), (claim, source) in claimed.items():
            slope = _slopes(_beyond(of_task), scheme, _law(law, v))
            quantity = f"slope of ln(gap) on ln({law}) beyond L; {scheme}, {where}"
            yield mean_row(claim, item, quantity, LAWFUL, slope, level, source)
        for scheme in AFTER:
            quantity = f"mean of ln(gap at v-s) - ln(gap at s), L < s < v/2; {scheme}, {where}"
            asymmetry = _asymmetry(_beyond(of_task), scheme, v)
            source = "our addition: the law is symmetric about v/2"
            yield mean_row("", item, quantity, SYMMETRIC, asymmetry, level, source)


def _law(name: str, v: int) -> Callable[[Array], Array]:
    return lambda s: theory.law_gap(name, s, v, 1.0)


def _slopes(curves: pd.DataFrame, scheme: str, scale: Callable[[Array], Array]) -> pd.Series:
    """Least-squares slope of ln value on ln scale(length) under a scheme, for every seed of `curves`.

    It is missing where fewer than two abscissae are left.
    """
    slopes = {}
    of_scheme = curves[(curves["scheme"] == scheme) & (curves["value"] > 0)]
    for seed, curve in of_scheme.groupby("seed"):
        x, y = np.log(scale(curve["length"].to_numpy(float))), np.log(curve["value"].to_numpy(float))
        slopes[seed] = np.polyfit(x, y, 1)[0] if len(np.unique(x)) > 1 else np.nan
    return pd.Series(slopes, index=np.unique(curves["seed"]), dtype=float)


def _asymmetry(curves: pd.DataFrame, scheme: str, v: int) -> pd.Series:
    """Mean of ln value(v - s) - ln value(s) under a scheme, by seed, over s < v/2 where both have a logarithm."""
    values = curves[curves["scheme"] == scheme].pivot(index="seed", columns="length", values="value")
    values = values.reindex(np.unique(curves["seed"]))
    logs = values.where(values > 0).apply(np.log)
    lower = [s for s in range(1, v) if 2 * s < v and {s, v - s} <= set(logs)]
    return pd.DataFrame({s: logs[v - s] - logs[s] for s in lower}, index=logs.index).mean(axis=1)


# Built by hand


def _construction(construction: pd.DataFrame) -> Iterator[dict[str, object]]:
    """The network built by hand, judged by its worst sequence of n lengths; and how many dimensions the task needs."""
    item = "Construction"
    for (scheme, v), lengths in construction.groupby(["scheme", "v"], sort=False):
        above, below = lengths["high"] - lengths["predicted"], lengths["predicted"] - lengths["low"]
        away = np.maximum(above, below)
        worst = float(away.max())
        quantity = f"largest distance of a TVD from its prediction; {scheme}, v = {v}"
        source = "our addition: the gap laws are exact; the threshold is our addition"
        yield row("postnorm-construction", item, quantity, EXACT, worst, (worst, worst), len(away), source)
    for v in sorted(set(construction["v"])):
        squares = np.linalg.svd(theory.centring(v), compute_uv=False) ** 2
        for d in (v - 1, v - 2):
            lost = float(squares[d:].sum())
            quantity = f"squared distance of I - J/v from the nearest matrix of rank d; v = {v}, d = {d}"
            needed = Prediction("=", v - 1 - d, ROUNDING)
            source = "section 4.2: the rank that is needed is v - 1"
            yield row("postnorm-rank", item, quantity, needed, lost, (lost, lost), 1, source)


# Width


def _dimension(tests: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """What the best of the seeds loses with fewer than v - 1 dimensions.

    Intervals are percentiles over bootstraps of the seeds, which are resampled for both widths together. No resample
    has a better seed than the best there is, so with few seeds the intervals are too narrow.
    """
    item = "Dimension"
    for v, where, of_task in _vocabularies(_of(tests, "tvd")):
        enough, widest = v - 1, of_task["width"].max()
        needed = "postnorm-dimension", MORE, "section 4.2: d >= v - 1 is needed"
        claimed = dict.fromkeys((enough - 1, enough // 2), needed)
        if widest > enough:
            claimed[widest] = ("", ALIKE, "our addition: d = v - 1 is enough")
        lengths = (("beyond", "mean TVD beyond L", _beyond(of_task)), ("at", "TVD at L", _at(of_task)))
        for scheme, (which, name, chosen) in product(of_task["scheme"].unique(), lengths):
            of_scheme = chosen[chosen["scheme"] == scheme]
            by_width = of_scheme.pivot_table(index="seed", columns="width", values="value")
            for width, (claim, prediction, source) in claimed.items():
                both = by_width.reindex(columns=[width, enough]).dropna().to_numpy(float)
                left_out = len(by_width) - len(both)
                quantity = f"{name} of the best seed, d = {width} - d = {enough}; {scheme}, {where}"
                seed = runtime.seed("postnorm", of_task["task"].iloc[0], scheme, width, which)
                measured, interval = _difference_of_best(both, level, seed)
                yield row(claim, item, quantity, prediction, measured, interval, len(both), source, left_out=left_out)


def _difference_of_best(both: Array, level: float, seed: int) -> tuple[float, tuple[float, float]]:
    """Lowest of the first column less lowest of the second, and its interval; `both` is [seeds, 2]."""
    if not len(both):
        return np.nan, (np.nan, np.nan)
    measured = float(np.subtract(*both.min(axis=0)))
    if len(both) == 1:
        return measured, (np.nan, np.nan)
    drawn = np.random.default_rng(seed).integers(len(both), size=(REPLICATES, len(both)))
    best = both[drawn].min(axis=1)
    low, high = percentile_interval(best[:, 0] - best[:, 1], level)
    return measured, (float(low), float(high))


# Averaged weights


def _averaging(tests: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """What averages gain at L among legal outputs; targets drawn from many of them make gradients noisy (section 4.5).

    The last claim pairs seeds of two vocabularies, which share no data.
    """
    item, at = "Averaging", _at(_of(tests, "legal_tvd"))
    etas = sorted(at.loc[at["weights"] == "bema", "eta"].unique())
    gains: dict[float, list[tuple[int, pd.Series]]] = {eta: [] for eta in etas}
    for v, where, of_task in _vocabularies(at):
        raw, ema = (_averaged(of_task, False, weights) for weights in ("raw", "ema"))
        quantity, source = "TVD among legal outputs at L", "section 4.5: averages take out the noise of gradients"
        setting = f"constant rate, {where}"
        yield mean_row("postnorm-ema", item, f"{quantity}, raw - EMA; {setting}", MORE, raw - ema, level, source)
        for eta in etas:
            bema, decayed = (_averaged(of_task, decay, "bema", eta) for decay in (False, True))
            decayed_gain = _averaged(of_task, True, "raw") - decayed
            whose = "" if eta == PAPERS_ETA else "; this eta is our addition"
            helps, corrects = "section 4.5: BEMA helps", "section 4.5: the correction of the bias helps"
            for claim, name, gain, rate, source in (
                ("postnorm-bema", "raw - BEMA", raw - bema, "constant", helps),
                ("postnorm-bema-correction", "EMA - BEMA", ema - bema, "constant", corrects),
                ("postnorm-bema", "raw - BEMA", decayed_gain, "decaying", f"{helps}, and the paper's rate decays"),
            ):
                spoken_of = _at_papers_eta(claim, eta)
                setting = f"eta = {eta:g}, {rate} rate, {where}"
                yield mean_row(spoken_of, item, f"{quantity}, {name}; {setting}", MORE, gain, level, f"{source}{whose}")
            gains[eta].append((v, (raw - bema) / raw))
    for eta, ((least, of_least), *_, (most, of_most)) in ((eta, of) for eta, of in gains.items() if len(of) > 1):
        quantity = f"(raw - BEMA) / raw, v = {most} - v = {least}; eta = {eta:g}, constant rate"
        source = "section 4.5: noise grows with the legal outputs; the margin is our addition"
        claim = _at_papers_eta("postnorm-bema-gain", eta)
        yield mean_row(claim, item, quantity, GAINS_MORE, of_most - of_least, level, source)


def _deterministic(tests: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """What averages do where one output is legal: targets bring no noise into gradients, but drawn sequences do."""
    item, source = "Averaging", "mechanism 2, break condition: the last weights do as well; the bound is our addition"
    for task, of_task in _at(_of(tests, "tvd")).groupby("task"):
        for decay, eta in product(
            (False, True), (*sorted(of_task.loc[of_task["weights"] == "bema", "eta"].unique()), 0)
        ):
            weights, whose = ("bema", source if eta == PAPERS_ETA else OTHER_ETA) if eta else ("ema", AVERAGED)
            gain = _averaged(of_task, decay, "raw") - _averaged(of_task, decay, weights, eta)
            name = f"raw - BEMA; eta = {eta:g}" if eta else "raw - EMA"
            quantity = f"TVD at L, {name}, {'decaying' if decay else 'constant'} rate, {task}"
            claim = _at_papers_eta("postnorm-bema-deterministic", eta)
            yield mean_row(claim, item, quantity, NO_GAIN if eta == PAPERS_ETA else MORE, gain, level, whose)


def _at_papers_eta(claim: str, eta: float) -> str:
    """The claims are of BEMA with the paper's eta; rows of another one speak of none."""
    return claim if eta == PAPERS_ETA else ""


def _averaged(tests: pd.DataFrame, decay: bool, weights: str, eta: float = 0.0) -> pd.Series:
    """Values by seed."""
    chosen = (tests["decay"] == decay) & (tests["weights"] == weights) & (tests["eta"] == eta)
    return tests[chosen].set_index("seed")["value"]


# Maximum Retrieval, Dyck and Tomita


def _languages(tests: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Task by task, and the mean over tasks of each seed that has them all."""
    item = "Languages"
    distances, beyond = _of(tests, "tvd"), _beyond(tests)
    fits = _by_task(distances[distances["length"] <= distances["trained"]])
    errors, areas = _by_task(_of(beyond, "tvd")), _by_task(_of(beyond, "auc"))
    claimed = [
        *(("postnorm-languages", "mean TVD beyond L", errors, PRE, scheme, GENERALISES) for scheme in AFTER),
        ("postnorm-best", "mean TVD beyond L", errors, "peri", "post", BEST),
        *(("postnorm-classification", "mean ROC AUC beyond L", areas, scheme, PRE, GENERALISES) for scheme in AFTER),
    ]
    for claim, name, by_task, one, other, source in claimed:
        differences = {task: by_scheme[one] - by_scheme[other] for task, by_scheme in by_task.items()}
        for task, difference in differences.items():
            yield mean_row(claim, item, f"{name}, {one} - {other}; {task}", MORE, difference, level, source)
        if differences:
            together = _over_tasks(differences)
            yield mean_row(claim, item, f"{name}, {one} - {other}; all tasks", MORE, together, level, source)
    for scheme in AFTER if fits else ():
        difference = _over_tasks({task: by_scheme[scheme] - by_scheme[PRE] for task, by_scheme in fits.items()})
        quantity = f"mean TVD up to L, {scheme} - {PRE}; all tasks"
        yield mean_row("", item, quantity, ALIKE, difference, level, FIT_ALIKE)


def _by_task(tests: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(task): _by_scheme(of_task) for task, of_task in tests.groupby("task", sort=False)}


def _over_tasks(of_tasks: Mapping[str, pd.Series]) -> pd.Series:
    return pd.concat(of_tasks, axis=1).mean(axis=1, skipna=False)


def _depth(tests: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Brackets deeper than in training, in sequences as long as in training, so that attention disperses no further."""
    item = "Depth"
    deeper, others = tests[tests["deeper"].astype(bool)], tests[~tests["deeper"].astype(bool)]
    errors, areas, fits = (
        _by_scheme(_of(part, name)) for part, name in ((deeper, "tvd"), (deeper, "auc"), (others, "tvd"))
    )
    for scheme in AFTER if len(tests) else ():
        for name, gain in (
            (f"TVD, {PRE} - {scheme}", errors[PRE] - errors[scheme]),
            (f"ROC AUC, {scheme} - {PRE}", areas[scheme] - areas[PRE]),
        ):
            quantity = f"mean {name}; brackets deeper than trained"
            yield mean_row("postnorm-depth", item, quantity, MORE, gain, level, DEEPER)
        fit = fits[scheme] - fits[PRE]
        yield mean_row("", item, f"mean TVD, {scheme} - {PRE}; brackets of trained depth", ALIKE, fit, level, FIT_ALIKE)
    for scheme in (PRE, *AFTER) if len(tests) else ():
        quantity = f"mean TVD, deeper - trained depth; {scheme}"
        source = "our addition: a stack deeper than any in training has to be read"
        yield mean_row("", item, quantity, MORE, errors[scheme] - fits[scheme], level, source)


# Stability


def _stability(curves: pd.DataFrame, level: float) -> Iterator[dict[str, object]]:
    """Gradients and losses of training without warmup, for every number of layers and learning rate.

    What a norm before the read-out does is judged where pre-norm has most trouble: deepest, and at the highest rate.
    """
    item = "Stability"
    growing = (("post", PRE, RISKS), ("post", "peri", ROBUST))
    breaking = (("post", PRE, BREAKS), ("peri", PRE, BREAKS), ("post", "peri", ROBUST))
    claimed = (
        ("postnorm-gradients", "log10 of the highest gradient norm", "gradient", HIGHER, growing),
        ("postnorm-breaks", "loss spikes", "spikes", OFTENER, breaking),
        ("postnorm-breaks", "iterations that are not finite", "broken", OFTENER, breaking),
    )
    iterations = np.unique(curves["iteration"])
    for (layers, rate), of_setting in curves.groupby(["layers", "learning_rate"]):
        troubles = pd.DataFrame(
            {"scheme": scheme, "seed": seed, **_trouble(one.set_index("iteration").reindex(iterations))}
            for (scheme, seed), one in of_setting.groupby(["scheme", "seed"])
        )
        for claim, name, measure, prediction, pairs in claimed:
            found = troubles.pivot(index="seed", columns="scheme", values=measure).reindex(columns=list(SCHEMES))
            for one, other, source in pairs:
                quantity = f"{name}, {one} - {other}; layers {layers}, learning rate {rate:g}"
                yield mean_row(claim, item, quantity, prediction, found[one] - found[other], level, source)
        if (layers, rate) == (curves["layers"].max(), curves["learning_rate"].max()):
            found = troubles.pivot(index="seed", columns="scheme", values="spikes").reindex(columns=list(SCHEMES))
            quantity = f"loss spikes, {PRE} - pre-final; layers {layers}, learning rate {rate:g}"
            fewer = found[PRE] - found["pre-final"]
            yield mean_row("postnorm-final-stability", item, quantity, OFTENER, fewer, level, BOUNDED)


def _trouble(curve: pd.DataFrame) -> dict[str, float]:
    """What went wrong in one training; `curve` holds loss and gradient norm before each iteration.

    `broken` counts iterations whose loss or gradient norm is not finite, with those that were not reached any more.
    Such numbers are in nothing else: `gradient` is log10 of the highest norm among the others (missing without any),
    `spikes` counts the losses after iteration START that exceed the lowest one before by more than SPIKE.
    """
    loss, norm = (curve[name].where(np.isfinite(curve[name])) for name in ("loss", "gradient_norm"))
    above = loss - loss.cummin()
    return {
        "gradient": np.log10(norm.where(norm > 0).max()),
        "spikes": ((above > SPIKE) & (curve.index > START)).sum(),
        "broken": (loss.isna() | norm.isna()).sum(),
    }
