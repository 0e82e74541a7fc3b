import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from position_bias.emergence import runs, sequences, training
from position_bias.emergence.runs import Network, Study
from position_bias.emergence.task import RetrievalTask
from position_bias.emergence.training import PARTS, Member, StudySetting
from position_bias.small_networks.ensemble import Recipe
from position_card.core.checkpoint import Place
from tests.interruption import Interruption
from tests.refusals import refused

SMALL = RetrievalTask(items=4, burstiness=2, classes=16, labels=16, width=16)
FIXED = replace(SMALL, vocabulary="fixed")
SETTING = StudySetting(Recipe(23, 1e-2, 1e-6), batch=32, sequences=48, sequences_along=32, observe_every=10)
MIXED = Study(
    ("first",),
    True,
    (
        Network("causal", "none"),
        Network("none", "sin"),
        Network("causal", "rope"),
        Network("causal", "decay", slope=0.3),
    ),
)
SEEDS = (0, 1)
SETS = [(1, 2), (2, 1), (1, 4), (4, 1), (2, 4), (4, 2), (1, 0), (2, 0), (3, 0), (4, 0)]
NAMES = ["mask", "encoding", "seed"]


pytestmark = pytest.mark.usefixtures("one_thread")


def train(folder, study=MIXED, seeds=SEEDS, task=SMALL, setting=SETTING, depth=2):
    return training.train(task, study, depth, seeds, setting, Place(Path(folder), 6, "cpu"))


def by_member(outcome):
    """Weights and curves of each member, whatever the order."""
    curves = dict(list(outcome.curves.groupby(NAMES)))
    return {
        member: (
            {name: value[place] for name, value in outcome.weights.items()},
            curves[tuple(member.labels().values())].reset_index(drop=True),
        )
        for place, member in enumerate(outcome.members)
    }


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for member, (weights, curves) in expected.items():
        assert curves.equals(found[member][1]), member
        assert weights.keys() == found[member][0].keys()
        for name, value in weights.items():
            assert torch.equal(value, found[member][0][name]), (member, name)


def stacks_of(largest, monkeypatch):
    """Have members train in stacks of at most `largest`."""
    stacks = training.stacks
    monkeypatch.setattr(training, "stacks", lambda of, seeds, _: stacks(of, seeds, largest))


# Stacks


@pytest.mark.parametrize("largest", [1, 3, 4, 100])
def test_every_member_is_in_one_stack_and_rope_apart(largest):
    networks = [Network(mask, encoding) for mask in ("none", "causal") for encoding in ("none", "rope", "sin")]
    stacks = training.stacks(networks, range(5), largest)
    assert all(1 <= len(stack) <= largest for stack in stacks)
    assert all(len({member.network.encoding == "rope" for member in stack}) == 1 for stack in stacks)
    members = [member for stack in stacks for member in stack]
    assert len(members) == len(set(members)) == 30
    assert set(members) == {Member(network, seed) for network in networks for seed in range(5)}
    for rotary in (False, True):
        seeds = [member.seed for member in members if (member.network.encoding == "rope") == rotary]
        assert seeds == sorted(seeds)  # those of a seed side by side
        sizes = [len(stack) for stack in stacks if (stack[0].network.encoding == "rope") == rotary]
        assert max(sizes) - min(sizes) <= 1
        assert len(sizes) == -(-len(seeds) // largest)


def test_members_are_found_by_what_a_file_says_of_them():
    others = Network("window", "none", 3), Network("window", "none", 5), Network("causal", "decay", slope=0.1)
    members = [member for stack in training.stacks([*MIXED.networks, *others], SEEDS, 4) for member in stack]
    labels = training.member_labels(members)
    assert training.members_from_labels(json.loads(json.dumps(labels))) == members
    assert [{name: label[name] for name in NAMES} for label in labels] == [member.labels() for member in members]


# Training, end to end


@pytest.fixture(scope="module", params=[SMALL, FIXED], ids=["gaussian", "fixed"])
def task(request):
    return request.param


@pytest.fixture(scope="module")
def trained(tmp_path_factory, task):
    return train(tmp_path_factory.mktemp("trained"), task=task)


def test_curves_hold_a_row_a_number_and_nothing_twice(trained, task):
    """Every test of the fixed vocabulary is made with both common directions; what was lost belongs to the first."""
    curves = trained.curves
    keys = ["omega", "quantity", "answer", "twin"]
    assert list(curves.columns) == [*NAMES, "iteration", *keys, "value"]
    assert not curves.duplicated([*NAMES, "iteration", *keys]).any()
    omegas = {"gaussian": ["none"], "fixed": ["training", "fresh"]}[task.vocabulary]
    sets = [(omega, measure, *of) for omega in omegas for of in SETS for measure in ("accuracy", "in_context")]
    expected = {0: sets, **{iteration: [(omegas[0], "loss", 0, 0), *sets] for iteration in (10, 20, 23)}}
    groups = curves.groupby([*NAMES, "iteration"])
    assert len(groups) == 8 * 4
    for (*_, iteration), rows in groups:
        assert sorted(rows[keys].itertuples(index=False, name=None)) == sorted(expected[iteration])


def test_the_loss_of_a_test_is_the_mean_since_the_last_one(tmp_path):
    often = train(tmp_path / "often", setting=replace(SETTING, observe_every=1)).curves
    seldom = train(tmp_path / "seldom").curves
    each = often[often["quantity"] == "loss"].set_index([*NAMES, "iteration"])["value"]
    mean = seldom[seldom["quantity"] == "loss"].set_index([*NAMES, "iteration"])["value"]
    assert len(mean) == 8 * 3
    before = {10: 0, 20: 10, 23: 20}  # the last test follows sooner
    for (*member, iteration), value in mean.items():
        since = [each[(*member, i)] for i in range(before[iteration] + 1, iteration + 1)]
        assert value == pytest.approx(np.mean(since), rel=1e-6)


def test_every_study_trains_on_its_own_data(tmp_path, monkeypatch):
    biases = []
    original = sequences.RetrievalBatches

    def recorded(task, world, seeds, positions, batch):
        biases.append(positions)
        return original(task, world, seeds, positions, batch)

    monkeypatch.setattr(sequences, "RetrievalBatches", recorded)
    short = replace(SETTING, recipe=replace(SETTING.recipe, iterations=2))
    for name, bias in (("window", []), ("ends", [1, 4]), ("middle", [2])):
        study = runs.study(name, ["window2/none"], 0.3)
        assert train(tmp_path / name, study, (3,), setting=short, depth=1).members == [Member(study.networks[0], 3)]
        assert biases.pop() == bias


def test_networks_learn_the_classes_of_training(tmp_path):
    task = replace(FIXED, noise=0.2, classes=8, labels=8)
    setting = StudySetting(Recipe(80, 2e-2, 0.0), 16, sequences=8, sequences_along=8, observe_every=20)
    curves = train(tmp_path, replace(MIXED, networks=MIXED.networks[:3:2]), (0,), task, setting).curves
    losses = curves[(curves["quantity"] == "loss") & (curves["iteration"] == 80)]
    assert (losses["value"] < 0.5 * math.log(8)).all()


def test_networks_of_a_seed_see_the_same_data_and_start_alike(tmp_path):
    """Two that differ in name alone, a window over all tokens and the causal mask, stay the same."""
    outcome = train(tmp_path, Study((), False, (Network("causal", "none"), Network("window", "none", SMALL.tokens))))
    members = by_member(outcome)
    for seed in SEEDS:
        (one, curves), (other, others) = (members[member] for member in members if member.seed == seed)
        assert all(torch.equal(one[name], value) for name, value in other.items())
        assert curves.drop(columns=NAMES).equals(others.drop(columns=NAMES))
    first, second = (next(members[member] for member in members if member.seed == seed) for seed in SEEDS)
    assert not torch.equal(first[0]["q0"], second[0]["q0"])


OTHERS = runs.study("residual", ["causal/decay", "causal/none", "causal/rope", "window3/decay", "prefix3/rope"], 0.2)


# a member's share of every tensor is a multiple of 16 numbers, that of every product takes over 4,096
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("study", [MIXED, replace(OTHERS, residual=False)], ids=["residual", "plain"])
def test_a_member_does_not_depend_on_its_stack_and_the_others(tmp_path, monkeypatch, study):
    expected = by_member(train(tmp_path / "all", study, (0, 1, 2)))
    every = study.networks
    for largest, networks, seeds in (
        (1, every[1:3], (2,)),
        (3, every[::-1], (2, 1, 0)),
        (100, every[:1], (2, 1, 0)),  # a member a seed, whose rows are those of its seeds where these ascend
    ):
        with monkeypatch.context() as patch:
            stacks_of(largest, patch)
            folder = tmp_path / f"{largest}-{len(networks)}"
            found = by_member(train(folder, replace(study, networks=networks), seeds))
        assert len(found) == len(networks) * len(seeds)
        assert_same(found, {member: expected[member] for member in found})


# Common directions of the classes


@pytest.fixture(scope="module")
def tested(tmp_path_factory, task):
    """Networks whose last test has two parts."""
    study = replace(MIXED, networks=MIXED.networks[:3])
    return train(tmp_path_factory.mktemp("tested"), study, (0, 4), task, replace(SETTING, sequences=PARTS["cpu"] + 30))


def share(answers, labels, shown):
    """Of right answers, and of answers that are a label of the context."""
    return [(answers == labels).double().mean().item(), (answers[:, None] == shown).any(1).double().mean().item()]


@pytest.mark.parametrize("iteration", [0, 23])
def test_curves_are_those_of_each_direction_alone(tested, task, iteration):
    """Worked out from the sequences with that direction, set by set, for one network at a time."""
    counts = {0: [32], 23: [PARTS["cpu"], 30]}[iteration]
    for place, member in enumerate(tested.members):
        weights = {name: value[[place]] for name, value in tested.weights.items()}
        if iteration == 0:
            weights = training.networks.initial(task, 2, [member.seed], "cpu")
        stack = training.networks.stack(task, [member.network], 2, True, "cpu")
        world = sequences.world(task, (member.seed,), "cpu")
        curves = tested.curves.query("mask == @member.network.mask_name and encoding == @member.network.encoding")
        curves = curves[(curves["seed"] == member.seed) & (curves["iteration"] == iteration)]
        for omega in {"gaussian": ["none"], "fixed": ["training", "fresh"]}[task.vocabulary]:
            drawn = [
                sequences.novel(task, world, (member.seed,), count, (iteration, part), omega)
                for part, count in enumerate(counts)
            ]
            shown = torch.cat([of.labels[0] for of in drawn])
            found = curves[curves["omega"] == omega].set_index(["answer", "twin", "quantity"])["value"]
            for answer, twin in SETS:
                sets = [sequences.pair_set(of, answer, twin) if twin else sequences.plain_set(of) for of in drawn]
                asked = torch.cat([torch.arange(count) % 4 == answer - 1 for count in counts]) if twin == 0 else ...
                logits = torch.cat([training.networks.label_logits(weights, stack, tokens)[0] for tokens, _ in sets])
                labels = torch.cat([labels[0] for _, labels in sets])
                expected = share(logits.argmax(-1)[asked], labels[asked], shown[asked])
                assert found.loc[answer, twin, ["accuracy", "in_context"]].tolist() == pytest.approx(expected, rel=1e-6)


# Divergence


def spoil(monkeypatch, member, members, at):
    """Have one member of the stack of so many lose its loss from an iteration on."""
    original = training.networks.label_logits
    factors = torch.where(torch.arange(members) == member, math.nan, 1.0)[:, None, None]
    calls = []

    def spoilt(weights, stack, tokens):
        logits = original(weights, stack, tokens)
        if torch.is_grad_enabled():
            calls.append(1)
            logits = logits if len(calls) < at else logits * factors
        return logits

    monkeypatch.setattr(training.networks, "label_logits", spoilt)


@pytest.mark.parametrize(("at", "left"), [(5, [0]), (23, [0, 10, 20])])
def test_a_lost_member_leaves_curves_until_then_and_no_weights(tmp_path, monkeypatch, caplog, at, left):
    study = replace(MIXED, networks=MIXED.networks[:2])  # with two seeds one stack of four
    expected = by_member(train(tmp_path / "whole", study))
    lost = Member(study.networks[1], 0)
    with monkeypatch.context() as patch:
        spoil(patch, 1, 4, at)
        outcome = train(tmp_path / "spoilt", study)
    assert lost not in outcome.members
    assert {len(value) for value in outcome.weights.values()} == {3}
    assert_same(by_member(outcome), {member: of for member, of in expected.items() if member != lost})
    rows = outcome.curves[(outcome.curves["mask"] == "none") & (outcome.curves["seed"] == 0)].reset_index(drop=True)
    before = expected[lost][1]
    pd.testing.assert_frame_equal(rows, before[before["iteration"].isin(left)].reset_index(drop=True))
    assert caplog.text.count("member 1 diverged") == 1
    assert f"depth 2, causal/none, none/sin, seeds 0, 1: member 1 diverged at iteration {at}" in caplog.text


def spoil_at_first(monkeypatch, *seeds):
    """Have the members of some seeds start from weights that are not finite."""
    original = training.networks.initial

    def spoilt(task, depth, of, device, placement):
        factors = torch.tensor([math.nan if seed in seeds else 1.0 for seed in of])[:, None, None]
        return {name: value * factors for name, value in original(task, depth, of, device, placement).items()}

    monkeypatch.setattr(training.networks, "initial", spoilt)


@pytest.mark.parametrize("largest", [2, 4])
def test_a_stack_without_members_does_not_end_the_study(tmp_path, monkeypatch, largest):
    """Stacks hold the members of one seed or of several; what is left stays the same."""
    study = replace(MIXED, networks=MIXED.networks[:2])
    expected = by_member(train(tmp_path / "whole", study))
    with monkeypatch.context() as patch:
        stacks_of(largest, patch)
        spoil_at_first(patch, 1)
        outcome = train(tmp_path / "spoilt", study)
    assert set(outcome.members) == {Member(network, 0) for network in study.networks}
    assert_same(by_member(outcome), {member: of for member, of in expected.items() if member.seed == 0})
    assert set(outcome.curves["seed"]) == {0}  # lost before the first test, so that there are no rows


def test_a_study_without_members_is_refused(tmp_path):
    setting = replace(SETTING, recipe=replace(SETTING.recipe, learning_rate=math.inf))
    with refused("2 layers", "inf", "emergence.training.learning_rate"):
        train(tmp_path, Study((), True, MIXED.networks[:1]), setting=setting)


# Going on after an interruption


def test_an_interrupted_study_goes_on_in_the_stack_where_it_was(tmp_path, monkeypatch):
    """Three stacks of 23 iterations with a checkpoint every 6: it stops in iteration 8 of the second."""
    expected = by_member(train(tmp_path / "whole"))
    stacks_of(4, monkeypatch)
    drawn, original = [], sequences.RetrievalBatches.draw

    def draw(batches, iteration):
        drawn.append(iteration)
        if len(drawn) == 31:
            raise Interruption
        return original(batches, iteration)

    monkeypatch.setattr(sequences.RetrievalBatches, "draw", draw)
    with pytest.raises(Interruption):
        train(tmp_path / "broken")
    assert_same(by_member(train(tmp_path / "broken")), expected)
    assert drawn[31:] == [*range(7, 24), *range(1, 24)]


# Norms


def test_a_study_with_norms_learns_gains_beside_its_weights(tmp_path):
    study = runs.study("post-norm", ["causal/none"], 0.3)
    outcome, without = train(tmp_path / "norm", study), train(tmp_path / "plain", replace(study, placement="none"))
    assert outcome.weights.keys() - without.weights.keys() == {"sum_gain0", "sum_gain1"}
    assert (outcome.weights["sum_gain1"] != 1).all()  # from where they start
    assert not torch.equal(outcome.weights["readout"], without.weights["readout"])


def test_checkpoints_name_all_that_decides_a_study(tmp_path, monkeypatch):
    """Whatever differs, a checkpoint of the other run is not used, as tests of `ensemble.train` show."""
    named, original = [], training.ensemble.train

    def recorded(*arguments, settings, **others):
        named.append(json.dumps(settings))
        return original(*arguments, settings=settings, **others)

    monkeypatch.setattr(training.ensemble, "train", recorded)
    short = replace(SETTING, recipe=replace(SETTING.recipe, iterations=1))
    study = Study((), True, MIXED.networks[:1])
    usual = {"study": study, "seeds": (0,), "setting": short, "depth": 1}
    of_study = ({"bias": ("first",)}, {"residual": False}, {"placement": "pre"}, {"networks": MIXED.networks[2:3]})
    others = [{}, {"seeds": (1,)}, {"task": FIXED}, {"setting": replace(short, batch=8)}]
    for other in (*others, *({"study": replace(study, **changed)} for changed in of_study)):
        train(tmp_path, **(usual | other))
    assert len(set(named)) == len(named) == 8


def test_stacks_of_a_larger_run_are_gone(tmp_path):
    study = Study((), True, (Network("causal", "none"),))
    short = replace(SETTING, recipe=replace(SETTING.recipe, iterations=2))
    train(tmp_path, study, range(12), setting=short, depth=1)
    assert len(list(tmp_path.rglob("stack*"))) == 2
    train(tmp_path, study, range(2), setting=short, depth=1)
    assert len(list(tmp_path.rglob("stack*"))) == 1
