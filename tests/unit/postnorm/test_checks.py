"""Claims on tables by seed whose differences are known; what the paper predicts is typed here from its summary."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.postnorm import checks, construction
from position_bias.running import imports
from position_bias.verdicts.verdict import COLUMNS, PREDICTION

ROOT = Path(__file__).parents[3]
LEVEL = 0.9
SEEDS = range(5)
SCHEMES = ("none", "pre", "pre-final", "post", "peri", "peri-init")
AFTER = ("post", "peri", "peri-init")
SETS = {"set-complement-16": (16, 5), "set-complement-32": (32, 8)}  # task -> v, L
LANGUAGES = ("maximum-10", "dyck-2-3", "tomita-1")
L, LONGEST, CLASSIFIED = 6, 18, (4, 10, 16)  # of languages
RISE = {"none": 0.03, "pre": 0.03, "pre-final": 0.025, "peri": 0.02, "peri-init": 0.018, "post": 0.015}


# A world made by hand. Seeds share a large part of each number, so that it matters which are compared.


def frame(values, *names):
    """(key, ...) -> value as a table in no particular order."""
    rows = [{**dict(zip(names, key, strict=True)), "value": value} for key, value in values.items()]
    return pd.DataFrame(rows).sample(frac=1, random_state=7, ignore_index=True)


def set_complement(rng):
    """(task, scheme, seed, length, quantity) -> value: gaps follow their laws, attention is uniform."""
    world = {}
    for (task, (v, trained)), scheme, seed in product(SETS.items(), SCHEMES, SEEDS):
        for s in range(1, v):
            beyond = max(0, s - trained) * RISE[scheme] * 16 / v
            law = np.sqrt(s * (v - s)) if scheme in AFTER else s
            noise = 1 + 0.002 * rng.normal(size=2)
            uneven = 0.03 + 0.01 * seed + beyond * (scheme in AFTER)
            key = (task, scheme, seed, s)
            world[*key, "legal_tvd"] = uneven * noise[0] * (s < v - 1)
            world[*key, "tvd"] = 0.1 + 0.02 * seed + beyond + 0.001 * rng.normal()
            world[*key, "gap"] = (5 + seed) / law * noise[0]
            world[*key, "largest_weight"] = 1 / s * noise[1]
    return world


def languages(rng):
    world = {}
    for task, scheme, seed in product(LANGUAGES, ("pre", *AFTER), SEEDS):
        for length in range(1, LONGEST + 1):
            beyond = max(0, length - L) * RISE[scheme]
            world[task, scheme, seed, length, "tvd"] = 0.1 + 0.02 * seed + beyond + 0.001 * rng.normal()
            if task != "maximum-10" and length in CLASSIFIED:
                right = 0.6 + 0.05 * seed - beyond / 2 + 0.001 * rng.normal()
                world[task, scheme, seed, length, "auc"] = right
    return world


def by_length(world):
    table = frame(world, "task", "scheme", "seed", "length", "quantity")
    return table.assign(trained=table["task"].map(lambda task: SETS[task][1] if task in SETS else L))


def widths(rng):
    """(scheme, width, seed, length) -> TVD of set-complement-16, which needs 15 dimensions."""
    return {
        (scheme, width, seed, s): 0.1 + 0.03 * seed + 0.03 * max(0, 15 - width) + 0.01 * s + 0.0005 * rng.normal()
        for scheme, width, seed, s in product(("none", "peri"), (7, 14, 15, 20), SEEDS, range(1, 16))
    }


def dimension_of(world):
    return frame(world, "scheme", "width", "seed", "length").assign(task="set-complement-16", quantity="tvd", trained=5)


def brackets(rng):
    """(scheme, seed, deeper, quantity) -> value: deeper ones are harder, and less so with norms after attention."""
    world = {}
    for scheme, seed, deeper in product(("pre", *AFTER), SEEDS, (False, True)):
        harder = 5 * deeper * RISE[scheme] + 0.001 * rng.normal()
        world[scheme, seed, deeper, "tvd"] = 0.1 + 0.02 * seed + harder
        world[scheme, seed, deeper, "auc"] = 0.9 - 0.02 * seed - harder
    return world


def depth_of(world):
    return frame(world, "scheme", "seed", "deeper", "quantity")


def averages(rng):
    """(v, decay, weights, eta, seed) -> distance at L: BEMA gains a share that grows with v, the EMA half of it."""
    world = {}
    for (v, share), decay, seed in product({8: 0.3, 32: 0.5, 96: 0.7}.items(), (False, True), SEEDS):
        raw = 0.2 + 0.02 * seed
        for weights, eta in (("raw", 0.0), ("ema", 0.0), ("bema", 0.2), ("bema", 0.5)):
            gained = {"raw": 0, "ema": share / 2, "bema": share}[weights]
            world[v, decay, weights, eta, seed] = raw * (1 - gained) + 0.0005 * rng.normal()
    return world


def averaging_of(world):
    table = frame(world, "v", "decay", "weights", "eta", "seed")
    at = table.assign(task="set-complement-" + table["v"].astype(str), length=table["v"] // 4, trained=table["v"] // 4)
    elsewhere = at.assign(length=1, trained=2, value=9.0)
    complement = pd.concat([at, elsewhere], ignore_index=True).assign(quantity="legal_tvd")
    return pd.concat([complement, determined(at[at["v"] == 8])], ignore_index=True).assign(scheme="peri", kappa=0.8)


def determined(at):
    """The same of a task with one answer, but that BEMA with the paper's eta has the distance of the last weights."""
    one = at.assign(task="maximum-10", length=10, trained=10, quantity="tvd").set_index(["decay", "seed"])
    raw = one.loc[one["weights"] == "raw", "value"]
    one["value"] = one["value"].where(one["eta"] != 0.2, raw.reindex(one.index).to_numpy())
    one = one.reset_index()
    return pd.concat([one, one.assign(quantity="legal_tvd", value=0.0)], ignore_index=True)


def trainings(rng):
    """(layers, rate, scheme, seed) -> loss and gradient norm `[60]` each: `post` breaks most, `peri` a little."""
    world = {}
    for layers, rate, scheme, seed in product((1, 8), (0.01, 0.3), ("none", "pre", "pre-final", *AFTER), SEEDS):
        loss, norm = np.full(60, 2 - 0.1 * seed), np.exp(0.2 * seed + 0.01 * rng.normal(size=60))
        spikes, broken = {"post": (12, 9), "peri": (6, 4), "pre": (3, 0)}.get(scheme, (0, 0))
        loss[30 : 30 + spikes + seed % 2 * (spikes > 0)] += 1.5
        loss[60 - broken :] = np.nan
        norm[60 - broken :] = np.inf
        norm[40] *= 100 if scheme == "post" else 1
        world[layers, rate, scheme, seed] = loss, norm
    return world


def stability_of(world):
    rows = [
        {"layers": layers, "learning_rate": rate, "scheme": scheme, "seed": seed, "iteration": at, "loss": of[0]}
        | {"gradient_norm": of[1]}
        for (layers, rate, scheme, seed), curves in world.items()
        for at, of in enumerate(zip(*curves, strict=True), 1)
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=7, ignore_index=True)


def built(v=32):
    return construction.distances(v, 8.0, 4, 0)


WORLD = {
    name: make(np.random.default_rng(seed))
    for seed, (name, make) in enumerate(
        {"sets": set_complement, "languages": languages, "widths": widths, "averages": averages}.items()
    )
} | {"trainings": trainings(np.random.default_rng(9)), "brackets": brackets(np.random.default_rng(10))}
BUILT = built()
SAMPLE = {name: dict([next(iter(world.items()))]) for name, world in WORLD.items()}  # for columns of empty tables


def world(name):
    return dict(WORLD[name])


def judged(**changed):
    """Rows on the worlds that are given and on nothing else; on all where none is."""
    of = changed or WORLD | {"built": BUILT}
    sets, words, widths, nested, averages, trainings = (
        table.iloc[:0] if name not in of else table
        for name, table in (
            ("sets", by_length(of.get("sets", SAMPLE["sets"]))),
            ("languages", by_length(of.get("languages", SAMPLE["languages"]))),
            ("widths", dimension_of(of.get("widths", SAMPLE["widths"]))),
            ("brackets", depth_of(of.get("brackets", SAMPLE["brackets"]))),
            ("averages", averaging_of(of.get("averages", SAMPLE["averages"]))),
            ("trainings", stability_of(of.get("trainings", SAMPLE["trainings"]))),
        )
    )
    tests = pd.concat([sets, words], ignore_index=True)
    return checks.checks(tests, of.get("built", BUILT.iloc[:0]), widths, nested, averages, trainings, "test", LEVEL)


@pytest.fixture(scope="module")
def papers():
    return judged()


def find(table, *fragments):
    """The one row whose quantity has these fragments."""
    found = table[[all(fragment in quantity for fragment in fragments) for quantity in table["quantity"]]]
    assert len(found) == 1, f"{fragments}: {found['quantity'].tolist()}"
    return found.iloc[0]


def assert_mean(row, values):
    """The row is scipy's interval of the mean."""
    interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
    expected = (np.mean(values), *interval)
    assert (row["measured"], row["low"], row["high"]) == pytest.approx(expected, abs=1e-12)
    assert row["n"] == len(values)


def means(world, lengths, quantity="tvd", seeds=SEEDS, **wanted):
    """By seed, the plain mean over lengths."""
    key = (wanted["task"], wanted["scheme"])
    return np.array([np.mean([world[*key, seed, s, quantity] for s in lengths]) for seed in seeds])


# The table


def test_every_claim_holds_in_a_world_that_behaves_as_predicted_but_the_law_that_it_does_not_follow(papers):
    others = papers[papers["verdict"] != "holds"]
    assert set(others["verdict"]) == {"fails"}
    assert others["quantity"].str.contains("C/2^s", regex=False).all()
    assert len(others) == len(SETS)


def test_checks_are_in_the_common_schema_and_name_a_quantity_once(papers):
    assert list(papers.columns) == list(COLUMNS)
    assert set(papers["paper"]) == {"postnorm"}
    assert set(papers["scale"]) == {"test"}
    assert not papers["quantity"].duplicated().any()


def test_what_is_predicted_and_who_predicts_it(papers):
    """Typed from the summary and, where we add them, from the derivation; rows of one v, task, scheme or setting."""
    expected = {
        "mean TVD beyond L, pre - post; v = 16": ((">", 0, 0.01), "sections 4.3"),
        "mean TVD beyond L, pre - peri; v = 16": ((">", 0, 0.01), "sections 4.3"),
        "mean TVD beyond L, pre - peri-init; v = 16": ((">", 0, 0.01), "sections 4.3"),
        "mean TVD beyond L, peri - post; v = 16": ((">", 0, 0.01), "tradeoffs"),
        "mean TVD beyond L, none - pre; v = 16": (("=", 0, 0.02), "our addition"),
        "mean TVD beyond L, pre - pre-final; v = 16": ((">", 0, 0.01), "our addition"),
        "mean TVD beyond L, pre-final - peri; v = 16": ((">", 0, 0.01), "our addition"),
        "TVD at L, none - pre; v = 32": (("=", 0, 0.02), "our addition"),
        "TVD at L, peri - pre; v = 32": (("=", 0, 0.02), "our addition"),
        "TVD among legal tokens beyond L; none, v = 16": ((">", 0.01, 0), "failure signatures"),
        "TVD among legal tokens beyond L, peri - pre; v = 16": ((">", 0, 0.01), "our addition"),
        "largest weight times s, at L; post, v = 16": (("=", 1, 0.1), "section 4.2"),
        "slope of ln(largest weight) on ln s beyond L; none, v = 16": (("=", -1, 0.1), "section 4.3"),
        "TVD, longest - L; peri, v = 16": ((">", 0, 0.01), "Theorem 4.2"),
        "ln(C/s) beyond L; none, v = 16": (("=", 1, 0.1), "our addition"),
        "ln(C/s) beyond L; pre, v = 16": (("=", 1, 0.1), "our addition"),
        "ln(C/sqrt(s(v-s))) beyond L; peri, v = 16": (("=", 1, 0.1), "our addition"),
        "ln(C/2^s) beyond L; none, v = 16": (("=", 1, 0.1), "Theorem 4.2"),
        "ln(gap at v-s) - ln(gap at s), L < s < v/2; post, v = 16": (("=", 0, 0.1), "our addition"),
        "distance of a TVD from its prediction; peri, v = 32": (("<", 0.001, 0), "our addition"),
        "nearest matrix of rank d; v = 32, d = 31": (("=", 0, 1e-09), "section 4.2"),
        "nearest matrix of rank d; v = 32, d = 30": (("=", 1, 1e-09), "section 4.2"),
        "mean TVD beyond L of the best seed, d = 14 - d = 15; none": ((">", 0, 0.01), "section 4.2"),
        "TVD at L of the best seed, d = 7 - d = 15; peri": ((">", 0, 0.01), "section 4.2"),
        "TVD at L of the best seed, d = 20 - d = 15; peri": (("=", 0, 0.02), "our addition"),
        "raw - EMA; constant rate, v = 96": ((">", 0, 0.01), "section 4.5"),
        "raw - BEMA; eta = 0.2, constant rate, v = 96": ((">", 0, 0.01), "section 4.5"),
        "EMA - BEMA; eta = 0.2, constant rate, v = 96": ((">", 0, 0.01), "section 4.5"),
        "raw - BEMA; eta = 0.2, decaying rate, v = 96": ((">", 0, 0.01), "section 4.5"),
        "(raw - BEMA) / raw, v = 96 - v = 8; eta = 0.5": ((">", 0, 0.05), "section 4.5"),
        "TVD at L, raw - BEMA; eta = 0.2, constant rate, maximum-10": (("<", 0.01, 0), "break condition"),
        "TVD at L, raw - BEMA; eta = 0.5, constant rate, maximum-10": ((">", 0, 0.01), "our addition"),
        "TVD at L, raw - EMA, decaying rate, maximum-10": ((">", 0, 0.01), "our addition"),
        "mean TVD beyond L, pre - post; dyck-2-3": ((">", 0, 0.01), "section"),
        "mean TVD beyond L, peri - post; all tasks": ((">", 0, 0.01), "tradeoffs"),
        "mean ROC AUC beyond L, peri - pre; tomita-1": ((">", 0, 0.01), "section"),
        "mean TVD up to L, peri - pre; all tasks": (("=", 0, 0.02), "our addition"),
        "mean TVD, pre - peri; brackets deeper than trained": ((">", 0, 0.01), "first experiments"),
        "mean ROC AUC, post - pre; brackets deeper than trained": ((">", 0, 0.01), "first experiments"),
        "mean TVD, post - pre; brackets of trained depth": (("=", 0, 0.02), "our addition"),
        "mean TVD, deeper - trained depth; pre": ((">", 0, 0.01), "our addition"),
        "highest gradient norm, post - pre; layers 8, learning rate 0.3": ((">", 0, 0.1), "instability"),
        "highest gradient norm, post - peri; layers 8, learning rate 0.3": ((">", 0, 0.1), "robust"),
        "loss spikes, peri - pre; layers 8, learning rate 0.3": ((">", 0, 1), "failure"),
        "loss spikes, pre - pre-final; layers 8, learning rate 0.3": ((">", 0, 1), "our addition"),
        "not finite, post - pre; layers 8, learning rate 0.3": ((">", 0, 1), "failure"),
    }
    for fragment, (predicted, source) in expected.items():
        row = find(papers, fragment)
        assert tuple(row[list(PREDICTION)]) == predicted, fragment
        assert source in row["source"], fragment


def test_there_is_a_row_for_all_that_was_trained_and_no_other(papers):
    assert papers["item"].value_counts().to_dict() == {
        "Set complement": 2 * (7 + 5),
        "Legal tokens": 2 * (6 + 3),
        "Dispersion": 2 * 6 * 3,
        "Gap laws": 2 * (2 + 3 + 1 + 3),
        "Construction": 2 + 2,
        "Dimension": 2 * 2 * 3,
        "Averaging": 3 * (1 + 2 * 3) + 2 + 2 * 3,
        "Languages": 4 * (3 + 1) + 3 * (2 + 1) + 3,
        "Depth": 3 * (2 + 1) + 4,
        "Stability": 2 * 2 * (2 + 3 + 3) + 1,
    }


def test_the_order_of_rows_in_the_tables_decides_nothing(papers):
    turned = judged(**{name: dict(reversed(of.items())) for name, of in WORLD.items()}, built=BUILT[::-1])
    by_quantity = [table.sort_values("quantity", ignore_index=True) for table in (papers, turned)]
    pd.testing.assert_frame_equal(*by_quantity)


def test_claims_need_no_models():
    read = imports.closure(ROOT / "position_bias/postnorm/checks.py", ROOT)
    assert {"tasks.py", "decoder.py", "training.py", "ensemble.py"}.isdisjoint(path.name for path in read)


# By scheme


def test_schemes_are_compared_by_seed_over_lengths_beyond_the_trained_one(papers):
    for task, (v, trained) in SETS.items():
        beyond = range(trained + 1, v)
        for one, other in (("pre", "post"), ("none", "pre"), ("pre-final", "peri")):
            a, b = (means(WORLD["sets"], beyond, task=task, scheme=scheme) for scheme in (one, other))
            assert_mean(find(papers, f"mean TVD beyond L, {one} - {other}; v = {v}, L = {trained}"), a - b)
        a, b = (means(WORLD["sets"], [trained], task=task, scheme=scheme) for scheme in ("peri", "pre"))
        assert_mean(find(papers, f"TVD at L, peri - pre; v = {v}"), a - b)
        rise = means(WORLD["sets"], [v - 1], task=task, scheme="post")
        rise -= means(WORLD["sets"], [trained], task=task, scheme="post")
        assert_mean(find(papers, f"TVD, longest - L; post, v = {v}"), rise)


def swapped(one, other, of):
    names = {one: other, other: one}
    return {(task, names.get(scheme, scheme), *rest): value for (task, scheme, *rest), value in of.items()}


def test_schemes_that_swap_their_roles_fail():
    found = judged(sets=swapped("pre", "post", world("sets")), languages=swapped("pre", "post", world("languages")))
    for fragment in (
        "mean TVD beyond L, pre - post; v = 16",
        "mean TVD beyond L, none - pre; v = 16",
        "ln(C/sqrt(s(v-s))) beyond L; post, v = 16",
        "ln(C/s) beyond L; pre, v = 16",
        "pre - post; dyck-2-3",
        "pre - post; all tasks",
        "ROC AUC beyond L, post - pre; all tasks",
    ):
        assert find(found, fragment)["verdict"] == "fails", fragment


def test_equal_schemes_settle_nothing_where_one_is_to_be_better():
    sets = world("sets")
    sets |= {(task, "peri", *rest): value for (task, scheme, *rest), value in sets.items() if scheme == "pre"}
    found = judged(sets=sets)
    row = find(found, "mean TVD beyond L, pre - peri; v = 16")
    assert (row["measured"], row["verdict"]) == (pytest.approx(0), "not separable")
    assert find(found, "TVD at L, peri - pre; v = 16")["verdict"] == "holds"


def test_a_scheme_that_was_not_trained_cannot_be_tested_and_disturbs_no_other(papers):
    found = judged(sets={key: value for key, value in WORLD["sets"].items() if key[1] != "peri"})
    with_it = found["quantity"].str.contains(r"\bperi(?!-)", regex=True)
    assert set(found.loc[with_it, "verdict"]) == {"not testable here"}
    assert set(found.loc[with_it, "n"]) == {0}
    assert found.loc[with_it, ["measured", "low", "high"]].isna().all(axis=None)
    of_sets = papers["item"].isin(["Set complement", "Legal tokens", "Dispersion", "Gap laws"])
    of_sets = papers[of_sets].reset_index(drop=True)
    pd.testing.assert_frame_equal(found[~with_it], of_sets[~with_it])


def test_seeds_of_a_pair_that_one_side_lacks_are_left_out():
    sets = {key: value for key, value in WORLD["sets"].items() if key[1:3] not in (("pre", 1), ("post", 4))}
    both = [0, 2, 3]
    a, b = (means(sets, range(6, 16), seeds=both, task="set-complement-16", scheme=one) for one in ("pre", "post"))
    assert_mean(find(judged(sets=sets), "mean TVD beyond L, pre - post; v = 16"), a - b)


def test_bias_among_legal_tokens_is_that_beyond_the_trained_length_where_two_are_left(papers):
    for task, (v, trained) in SETS.items():
        lengths = range(trained + 1, v - 1)
        post, pre = (means(WORLD["sets"], lengths, "legal_tvd", task=task, scheme=one) for one in ("post", "pre"))
        assert_mean(find(papers, f"among legal tokens beyond L; pre, v = {v}"), pre)
        assert_mean(find(papers, f"among legal tokens beyond L, post - pre; v = {v}"), post - pre)


def test_networks_that_are_even_among_legal_tokens_are_not_biased_and_swapped_ones_fail():
    sets = world("sets")
    sets |= {key: 0.001 * key[2] for key in sets if key[1] == "none" and key[4] == "legal_tvd"}
    found = judged(sets=swapped("pre", "post", sets))
    assert find(found, "among legal tokens beyond L; none, v = 16")["verdict"] == "fails"
    assert find(found, "among legal tokens beyond L, post - pre; v = 16")["verdict"] == "fails"


def test_one_seed_is_measured_and_settles_nothing(papers):
    one = {name: {key: value for key, value in WORLD[name].items() if key[2] == 3} for name in ("sets", "languages")}
    one["widths"] = {key: value for key, value in WORLD["widths"].items() if key[2] == 3}
    one["averages"] = {key: value for key, value in WORLD["averages"].items() if key[-1] == 3}
    one["brackets"] = {key: value for key, value in WORLD["brackets"].items() if key[1] == 3}
    one["trainings"] = {key: value for key, value in WORLD["trainings"].items() if key[-1] == 3}
    found = judged(**one)
    assert set(found["quantity"]) == set(papers.loc[papers["item"] != "Construction", "quantity"])
    assert set(found["verdict"]) == {"not testable here"}
    assert set(found["n"]) == {1}
    assert found["measured"].notna().all()
    assert found[["low", "high"]].isna().all(axis=None)


# Laws


def slope(x, y):
    return scipy.stats.linregress(np.log(x), np.log(y)).slope


def test_slopes_are_those_of_plain_regressions(papers):
    for task, (v, trained) in SETS.items():
        s = np.arange(trained + 1, v)

        def curve(scheme, seed, quantity, task=task, s=s):
            return [WORLD["sets"][task, scheme, seed, length, quantity] for length in s]

        laws = {
            "C/s": ("pre", 1 / s),
            "C/sqrt(s(v-s))": ("peri-init", (s * (v - s)) ** -0.5),
            "C/2^s": ("none", 2.0**-s),
        }
        for law, (scheme, of_law) in laws.items():
            slopes = [slope(of_law, curve(scheme, seed, "gap")) for seed in SEEDS]
            assert_mean(find(papers, f"ln({law}) beyond L; {scheme}, v = {v}"), slopes)
        slopes = [slope(s, curve("pre-final", seed, "largest_weight")) for seed in SEEDS]
        assert_mean(find(papers, f"slope of ln(largest weight) on ln s beyond L; pre-final, v = {v}"), slopes)


def test_a_gap_that_is_not_above_0_is_left_out_of_logarithms_and_a_seed_with_too_few_of_the_rest_altogether():
    sets, at = world("sets"), ("set-complement-16", "none")
    sets[*at, 0, 9, "gap"] = 0.0
    sets[*at, 1, 12, "gap"] = -0.3
    for s in range(6, 15):
        sets[*at, 2, s, "gap"] = -1.0
    kept = {seed: np.arange(6, 16) for seed in (0, 1, 3, 4)}
    for seed, s in ((0, 9), (1, 12)):
        kept[seed] = kept[seed][kept[seed] != s]
    slopes = [slope(1 / s, [sets[*at, seed, length, "gap"] for length in s]) for seed, s in kept.items()]
    row = find(judged(sets=sets), "ln(C/s) beyond L; none, v = 16")
    assert_mean(row, slopes)
    assert row["left_out"] == 1


def test_a_seed_that_diverged_under_one_scheme_is_counted_in_every_row_of_that_scheme_and_in_no_other(papers):
    sets = {key: value for key, value in WORLD["sets"].items() if key[1:3] != ("peri", 2)}
    rows = judged(sets=sets).set_index("quantity")
    of_scheme = [quantity for quantity in rows.index if "peri" in quantity.replace("peri-init", "").split(";")[0]]
    of_scheme += [quantity for quantity in rows.index if "; peri," in quantity]
    # Differences beyond L, at L, among legal tokens, dispersion, gap laws; of both v.
    assert len(set(of_scheme)) == 2 * (3 + 1 + 2 + 3 + 2)
    assert set(rows.loc[list(set(of_scheme)), "left_out"]) == {1}
    assert set(rows.drop(index=of_scheme)["left_out"]) == {0}
    assert set(papers["left_out"]) == {0}


def test_lengths_at_which_a_law_is_the_same_have_no_slope():
    """L < s with s (v - s) the same: 7 and 9 of 16."""
    sets = {key: value for key, value in WORLD["sets"].items() if key[0] == "set-complement-16" and key[3] in (7, 9)}
    sets |= {(*key[:3], 5, key[4]): value for key, value in sets.items() if key[3] == 7}
    found = judged(sets=sets)
    assert find(found, "ln(C/sqrt(s(v-s))) beyond L; peri, v = 16")["verdict"] == "not testable here"
    assert find(found, "ln(C/s) beyond L; pre, v = 16")["verdict"] == "holds"


@pytest.mark.parametrize(("task", "pairs"), [("set-complement-16", (6, 7)), ("set-complement-32", range(9, 16))])
def test_symmetry_compares_s_with_its_mirror_image(papers, task, pairs):
    v = SETS[task][0]

    def asymmetry(world):
        of = {s: np.array([world[task, "post", seed, s, "gap"] for seed in SEEDS]) for s in range(1, v)}
        return np.mean([np.log(of[v - s] / of[s]) for s in pairs], axis=0)

    row = find(papers, f"L < s < v/2; post, v = {v}")
    assert_mean(row, asymmetry(WORLD["sets"]))
    dispersed = world("sets")
    for s, seed in product(range(1, v), SEEDS):
        dispersed[task, "post", seed, s, "gap"] = (3 + seed) / s
    row = find(judged(sets=dispersed), f"L < s < v/2; post, v = {v}")
    assert row["measured"] == pytest.approx(np.mean([np.log(s / (v - s)) for s in pairs]))
    assert row["verdict"] == "fails"


def test_symmetry_cannot_be_tested_where_all_longer_sequences_are_in_the_second_half():
    sets = {key: value for key, value in WORLD["sets"].items() if key[0] == "set-complement-16" and not 5 < key[3] < 8}
    row = find(judged(sets=sets), "L < s < v/2; peri, v = 16")
    assert (row["n"], row["verdict"]) == (0, "not testable here")


def test_attention_that_is_sharp_or_stays_so_is_not_diluted():
    sets = world("sets")
    for (task, scheme, seed, s, quantity), value in WORLD["sets"].items():
        if quantity == "largest_weight" and scheme == "post":
            sets[task, scheme, seed, s, quantity] = value * s**0.5
    found = judged(sets=sets)
    assert find(found, "slope of ln(largest weight) on ln s beyond L; post, v = 16")["verdict"] == "fails"
    row = find(found, "largest weight times s, at L; post, v = 16")
    assert row["measured"] == pytest.approx(5**0.5, rel=0.01)
    assert row["verdict"] == "fails"


# Built by hand


@pytest.mark.parametrize(("column", "by"), [("high", 0.002), ("low", -0.002)])
def test_the_construction_is_judged_by_its_worst_sequence(papers, column, by):
    broken = BUILT.copy()
    at = broken.index[(broken["scheme"] == "peri") & (broken["length"] == 20)][0]
    broken.loc[at, column] = broken.loc[at, "predicted"] + by
    found = judged(built=broken)
    row = find(found, "from its prediction; peri")
    assert row["measured"] == row["low"] == row["high"] == pytest.approx(0.002)
    assert (row["n"], row["verdict"]) == (31, "fails")
    assert find(found, "prediction; none").to_dict() == find(papers, "prediction; none").to_dict()


def test_dimensions_are_needed_for_two_tokens_as_well():
    found = judged(built=built(2))
    assert find(found, "v = 2, d = 1")["measured"] == pytest.approx(0, abs=1e-12)
    assert find(found, "v = 2, d = 0")["measured"] == pytest.approx(1)


# Width


def best(world, scheme, width, lengths, seeds=SEEDS):
    return [np.mean([world[scheme, width, seed, s] for s in lengths]) for seed in seeds]


@pytest.mark.parametrize("width", [14, 7, 20])
def test_widths_are_compared_by_their_best_seeds(papers, width):
    for name, lengths in (("mean TVD beyond L", range(6, 16)), ("TVD at L", [5])):
        row = find(papers, f"{name} of the best seed, d = {width} - d = 15; peri, v = 16")
        expected = min(best(WORLD["widths"], "peri", width, lengths)) - min(best(WORLD["widths"], "peri", 15, lengths))
        assert row["measured"] == pytest.approx(expected, abs=1e-12)
        assert row["low"] <= row["measured"] <= row["high"]
        assert row["n"] == 5


def test_bootstraps_are_seeded_by_what_they_compare(monkeypatch):
    asked = []
    monkeypatch.setattr(checks.runtime, "seed", lambda *parts: asked.append(tuple(map(str, parts))) or 0)
    judged(widths=world("widths"))
    expected = product(["postnorm"], ["set-complement-16"], ("none", "peri"), ("7", "14", "20"), ("at", "beyond"))
    assert sorted(asked) == sorted(expected)


def test_the_bootstrap_draws_whole_seeds_again_for_both_widths():
    """3 seeds have 27 resamples of one probability; the extreme outcomes have more than 1/20."""
    rng = np.random.default_rng(4)
    three = {
        (scheme, width, seed, s): value
        for (scheme, width, seed, s), value in WORLD["widths"].items()
        if seed < 3 and width in (14, 15)
    }
    for seed, width in product(range(3), (14, 15)):
        level = 0.3 + 0.1 * rng.normal()
        for s in range(1, 16):
            three["none", width, seed, s] = level
    row = find(judged(widths=three), "TVD at L of the best seed, d = 14 - d = 15; none")
    narrow, enough = (np.array(best(three, "none", width, [5], range(3))) for width in (14, 15))
    drawn = np.array(list(product(range(3), repeat=3)))
    outcomes = narrow[drawn].min(1) - enough[drawn].min(1)
    expected = [np.quantile(outcomes, tail, method="inverted_cdf") for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]
    assert [row["low"], row["high"]] == pytest.approx(expected)
    assert row["n"] == 3


def test_the_same_difference_in_every_seed_has_no_spread():
    same = world("widths")
    for seed, s in product(SEEDS, range(1, 16)):
        same["peri", 15, seed, s] = WORLD["widths"]["peri", 14, seed, s] - 0.25
    row = find(judged(widths=same), "TVD at L of the best seed, d = 14 - d = 15; peri")
    assert (row["measured"], row["low"], row["high"]) == pytest.approx((0.25, 0.25, 0.25))


def test_a_seed_that_one_width_lacks_is_in_neither_best():
    lacking = {key: value for key, value in WORLD["widths"].items() if key[:3] != ("none", 14, 0)}
    row = find(judged(widths=lacking), "TVD at L of the best seed, d = 14 - d = 15; none")
    wide, enough = (min(best(WORLD["widths"], "none", width, [5], SEEDS[1:])) for width in (14, 15))
    assert (row["n"], row["left_out"], row["measured"]) == (4, 1, pytest.approx(wide - enough))


def test_widths_that_were_not_trained_cannot_be_tested_and_without_wider_ones_none_is_claimed():
    found = judged(widths={key: value for key, value in WORLD["widths"].items() if key[1] in (14, 15)})
    of_width = found[found["item"] == "Dimension"]
    assert set(of_width.loc[of_width["quantity"].str.contains("d = 7"), "verdict"]) == {"not testable here"}
    assert not of_width["quantity"].str.contains("d = 20").any()
    assert len(of_width) == 2 * 2 * 2


def test_width_that_makes_no_difference_is_not_needed():
    flat = {(scheme, width, *rest): WORLD["widths"][scheme, 15, *rest] for scheme, width, *rest in WORLD["widths"]}
    found = judged(widths=flat)
    verdicts = found[found["item"] == "Dimension"].groupby(found["quantity"].str.contains("d = 20"))["verdict"]
    assert verdicts.agg(set).to_dict() == {False: {"not separable"}, True: {"holds"}}


# Averaged weights


def distances(v, decay, weights, eta=0.0):
    return np.array([WORLD["averages"][v, decay, weights, eta, seed] for seed in SEEDS])


def test_averages_are_compared_with_the_last_weights_of_the_same_training(papers):
    raw, ema = distances(32, False, "raw"), distances(32, False, "ema")
    bema, decayed = distances(32, False, "bema", 0.5), distances(32, True, "bema", 0.5)
    assert_mean(find(papers, "raw - EMA; constant rate, v = 32"), raw - ema)
    assert_mean(find(papers, "raw - BEMA; eta = 0.5, constant rate, v = 32"), raw - bema)
    assert_mean(find(papers, "EMA - BEMA; eta = 0.5, constant rate, v = 32"), ema - bema)
    assert_mean(find(papers, "raw - BEMA; eta = 0.5, decaying rate, v = 32"), distances(32, True, "raw") - decayed)


def test_gains_of_the_largest_and_smallest_vocabulary_are_compared_as_shares(papers):
    many, few = (1 - distances(v, False, "bema", 0.2) / distances(v, False, "raw") for v in (96, 8))
    assert_mean(find(papers, "(raw - BEMA) / raw, v = 96 - v = 8; eta = 0.2"), many - few)
    one = {key: value for key, value in WORLD["averages"].items() if key[0] == 32}
    assert not judged(averages=one)["quantity"].str.contains("/ raw", regex=False).any()


def test_an_eta_of_our_own_is_named_so(papers):
    bema = papers[papers["quantity"].str.contains(r"raw - BEMA; eta|EMA - BEMA; eta", regex=True)]
    ours = bema["source"].str.contains("this eta is our addition")
    assert ours.tolist() == bema["quantity"].str.contains("eta = 0.5").tolist()
    assert set(ours) == {True, False}


def test_an_average_that_is_worse_fails():
    harmful = world("averages")
    for key in WORLD["averages"]:
        if key[1:4] == (True, "bema", 0.2):
            harmful[key] = WORLD["averages"][key[0], True, "raw", 0.0, key[-1]] + 0.05
    found = judged(averages=harmful)
    assert find(found, "eta = 0.2, decaying rate, v = 8")["verdict"] == "fails"
    assert find(found, "eta = 0.5, decaying rate, v = 8")["verdict"] == "holds"


def test_an_average_that_helps_where_one_answer_is_right_contradicts_the_claim():
    table = averaging_of(WORLD["averages"])
    at = (table["task"] == "maximum-10") & (table["quantity"] == "tvd")
    better = table.assign(value=table["value"].where(~(at & (table["eta"] == 0.2)), table["value"] - 0.05))

    def found(of):
        rows = [row for row in checks._deterministic(of[of["task"] == "maximum-10"], LEVEL) if row["claim"]]
        return {(row["claim"], row["verdict"]) for row in rows}

    assert found(table) == {("postnorm-bema-deterministic", "holds")}
    assert found(better) == {("postnorm-bema-deterministic", "fails")}


# Languages


def test_languages_are_compared_beyond_trained_lengths_task_by_task_and_together(papers):
    beyond, classified = range(L + 1, LONGEST + 1), [10, 16]
    differences = [
        means(WORLD["languages"], beyond, task=task, scheme="pre")
        - means(WORLD["languages"], beyond, task=task, scheme="peri")
        for task in LANGUAGES
    ]
    for task, difference in zip(LANGUAGES, differences, strict=True):
        assert_mean(find(papers, f"mean TVD beyond L, pre - peri; {task}"), difference)
    assert_mean(find(papers, "mean TVD beyond L, pre - peri; all tasks"), np.mean(differences, axis=0))
    areas = [
        means(WORLD["languages"], classified, "auc", task=task, scheme="post")
        - means(WORLD["languages"], classified, "auc", task=task, scheme="pre")
        for task in ("dyck-2-3", "tomita-1")
    ]
    assert_mean(find(papers, "mean ROC AUC beyond L, post - pre; all tasks"), np.mean(areas, axis=0))
    assert not papers["quantity"].str.contains("ROC.*maximum-10", regex=True).any()
    fits = [
        means(WORLD["languages"], range(1, L + 1), task=task, scheme="post")
        - means(WORLD["languages"], range(1, L + 1), task=task, scheme="pre")
        for task in LANGUAGES
    ]
    assert_mean(find(papers, "mean TVD up to L, post - pre; all tasks"), np.mean(fits, axis=0))


def test_a_seed_that_lacks_a_task_is_not_in_the_mean_over_tasks():
    lacking = {key: value for key, value in WORLD["languages"].items() if key[:3] != ("dyck-2-3", "post", 2)}
    found = judged(languages=lacking)
    assert find(found, "TVD beyond L, pre - post; all tasks")["n"] == 4
    assert find(found, "TVD beyond L, pre - post; maximum-10")["n"] == 5
    assert find(found, "TVD beyond L, pre - post; dyck-2-3")["n"] == 4


def test_without_languages_nothing_is_claimed_of_them():
    assert set(judged(sets=WORLD["sets"])["item"]) == {"Set complement", "Legal tokens", "Dispersion", "Gap laws"}


# Depth


def test_schemes_are_compared_by_seed_on_deeper_brackets(papers):
    pre, peri = (
        np.array([[WORLD["brackets"][scheme, seed, True, name] for name in ("tvd", "auc")] for seed in SEEDS])
        for scheme in ("pre", "peri")
    )
    assert_mean(find(papers, "TVD, pre - peri; brackets deeper"), (pre - peri)[:, 0])
    assert_mean(find(papers, "AUC, peri - pre; brackets deeper"), (peri - pre)[:, 1])


def test_schemes_that_swap_their_roles_on_deeper_brackets_fail():
    names = {"pre": "post", "post": "pre"}
    turned = {(names.get(scheme, scheme), *rest): value for (scheme, *rest), value in WORLD["brackets"].items()}
    found = judged(brackets=turned)
    assert find(found, "TVD, pre - post; brackets deeper")["verdict"] == "fails"
    assert find(found, "AUC, post - pre; brackets deeper")["verdict"] == "fails"
    assert find(found, "TVD, deeper - trained depth; pre")["verdict"] == "holds"


# Stability


def trouble(loss, norm):
    """By the definition, an iteration at a time."""
    highest, spikes, broken, lowest = -np.inf, 0, 0, np.inf
    for iteration, (at, gradient) in enumerate(zip(loss, norm, strict=True), 1):
        broken += not (np.isfinite(at) and np.isfinite(gradient))
        if np.isfinite(gradient) and gradient > 0:
            highest = max(highest, gradient)
        if np.isfinite(at):
            spikes += iteration > 20 and at > lowest + 1
            lowest = min(lowest, at)
    return {"highest gradient norm": np.log10(highest), "loss spikes": spikes, "not finite": broken}


def test_trouble_is_counted_as_its_definition_says():
    rng = np.random.default_rng(11)
    random = {}
    for key in WORLD["trainings"]:
        loss, norm = 3 + rng.normal(size=60), np.exp(2 * rng.normal(size=60))
        for values in (loss, norm):
            values[rng.random(60) < 0.1] = rng.choice([np.nan, np.inf])
        norm[rng.random(60) < 0.1] = 0
        random[key] = loss, norm
    found = judged(trainings=random)
    for (layers, rate), (one, other) in product(product((1, 8), (0.01, 0.3)), (("post", "pre"), ("post", "peri"))):
        counted = [[trouble(*random[layers, rate, scheme, seed]) for seed in SEEDS] for scheme in (one, other)]
        for name in counted[0][0]:
            a, b = ([of_seed[name] for of_seed in of] for of in counted)
            row = find(found, name, f"{one} - {other}; layers {layers}, learning rate {rate:g}")
            assert_mean(row, np.subtract(a, b))


def test_a_norm_before_the_read_out_that_spikes_more_than_none_fails():
    assert find(judged(), "loss spikes, pre - pre-final; layers 8, learning rate 0.3")["verdict"] == "holds"
    names = {"pre": "pre-final", "pre-final": "pre"}
    turned = {(*key[:2], names.get(key[2], key[2]), key[3]): value for key, value in WORLD["trainings"].items()}
    row = find(judged(trainings=turned), "loss spikes, pre - pre-final; layers 8, learning rate 0.3")
    assert (row["claim"], row["verdict"]) == ("postnorm-final-stability", "fails")


def test_iterations_that_a_broken_training_did_not_reach_count_as_not_finite(papers):
    stopped = world("trainings")
    for seed in SEEDS:
        stopped[8, 0.3, "post", seed] = tuple(values[:51] for values in WORLD["trainings"][8, 0.3, "post", seed])
    found = judged(trainings=stopped)
    of_stability = papers[papers["item"] == "Stability"].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, of_stability)  # the last 9 of post are not finite


def test_gradients_that_never_were_finite_or_above_0_are_in_no_logarithm_and_the_former_are_counted():
    lost = world("trainings")
    for seed, gradient in ((0, np.nan), (1, 0.0)):
        loss, norm = WORLD["trainings"][1, 0.01, "pre", seed]
        lost[1, 0.01, "pre", seed] = loss, np.full_like(norm, gradient)
    found = judged(trainings=lost)
    where = "post - pre; layers 1, learning rate 0.01"
    assert find(found, "highest gradient norm", where)["n"] == 3
    row = find(found, "not finite", where)
    assert (row["n"], row["measured"]) == (5, pytest.approx(np.mean([9 - 60, 9, 9, 9, 9])))


def test_training_without_trouble_settles_nothing_and_less_of_it_fails():
    calm = {key: (np.full(60, 2.0), np.ones(60)) for key in WORLD["trainings"]}
    found = judged(trainings=calm)
    assert set(found["verdict"]) == {"not separable"}
    reversed_ = {
        (*key[:2], {"pre": "post", "post": "pre"}.get(key[2], key[2]), key[3]): value
        for key, value in WORLD["trainings"].items()
    }
    found = judged(trainings=reversed_)
    assert set(found.loc[found["quantity"].str.contains("post - pre"), "verdict"]) == {"fails"}
