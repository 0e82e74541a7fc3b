import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from position_bias.small_networks import ensemble
from position_bias.small_networks.ensemble import Recipe
from position_card.core import checkpoint
from tests.interruption import Interruption

pytestmark = pytest.mark.usefixtures("one_thread", "cpu_time")  # so that folders can be compared byte for byte

RECIPE = Recipe(iterations=12, learning_rate=1e-2, weight_decay=0.1)
WIDTH = 16


# Members of two layers that learn to add up what they read; each sees its own data


def untrained(seeds):
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    shapes = {"hidden": (WIDTH, WIDTH), "bias": (1, WIDTH), "readout": (WIDTH, WIDTH)}
    return {name: ensemble.uniform(generators, shape, WIDTH, "cpu") for name, shape in shapes.items()}


def batch(seed, iteration):
    generator = torch.Generator().manual_seed(1000 * iteration + seed)
    x = torch.randn(8, WIDTH, generator=generator)
    return x, x.cumsum(-1) / WIDTH


def answers(weights, x):
    return functional.relu(torch.baddbmm(weights["bias"], x, weights["hidden"])) @ weights["readout"]


def errors(weights, seeds, iteration):
    x, y = map(torch.stack, zip(*(batch(seed, iteration) for seed in seeds), strict=True))
    return (answers(weights, x) - y).square().mean((1, 2))


def run(folder, seeds=(0, 1, 2), *, parameters=None, recipe=RECIPE, loss=None, observe=None, **changed):
    arguments = {"observe_every": 5, "checkpoint_every": 4, "settings": {"task": "sums"}} | changed
    iteration_loss = loss or (lambda weights, iteration: errors(weights, seeds, iteration))
    return ensemble.train(
        untrained(seeds) if parameters is None else parameters,
        lambda iteration: (torch.tensor(iteration),),
        lambda weights, iteration: iteration_loss(weights, int(iteration)),
        recipe,
        observe or (lambda weights, iteration: errors(weights, seeds, 0)),
        folder=folder,
        **arguments,
    )


def assert_same(found, expected, of_found=None, of_expected=None):
    """Same bits in all that training leaves, of all members or of some; in a sum over tensors, up to its order."""
    rounding = 0 if of_found is None else 1e-6
    of_found, of_expected = (slice(None) if of is None else of for of in (of_found, of_expected))
    assert found.parameters.keys() == expected.parameters.keys()
    for name, value in expected.parameters.items():
        np.testing.assert_array_equal(found.parameters[name][of_found], value[of_expected], name)  # NaN equals NaN
    assert found.average.keys() == expected.average.keys()
    for name, value in expected.average.items():
        np.testing.assert_array_equal(found.average[name][of_found], value[of_expected], name)
    np.testing.assert_array_equal(found.losses[:, of_found], expected.losses[:, of_expected])
    norms, expected_norms = found.gradient_norms[:, of_found], expected.gradient_norms[:, of_expected]
    np.testing.assert_allclose(norms, expected_norms, rtol=rounding)
    np.testing.assert_array_equal(found.observations[:, of_found], expected.observations[:, of_expected])
    assert found.observed_at == expected.observed_at


def contents(folder):
    """All that a run leaves on disk, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def taking_a_second(cpu_time, stop=None, seeds=(0, 1, 2)):
    """A loss that takes a second of CPU time, and in iteration `stop` is killed after it."""

    def loss(weights, iteration):
        cpu_time.now += 1
        if iteration == stop:
            raise Interruption
        return errors(weights, seeds, iteration)

    return loss


def break_off(folder, cpu_time, step, **changed):
    with pytest.raises(Interruption):
        run(folder, loss=taking_a_second(cpu_time, step), **changed)


def test_a_run_leaves_losses_and_observations(tmp_path):
    seen = []

    def observe(weights, iteration):
        assert not torch.is_grad_enabled()
        seen.append((iteration, {name: value.clone() for name, value in weights.items()}))
        return errors(weights, (0, 1, 2), 0)

    given = untrained((0, 1, 2))
    before = {name: value.clone() for name, value in given.items()}
    trained = run(tmp_path, parameters=given, observe=observe)
    assert [iteration for iteration, _ in seen] == trained.observed_at == [0, 5, 10, 12]
    assert trained.losses.shape == (12, 3)
    assert trained.observations.shape == (4, 3)
    assert trained.losses.dtype == trained.observations.dtype == np.float32
    assert trained.divergences == {}
    for place, (iteration, weights) in enumerate(seen):
        np.testing.assert_array_equal(trained.observations[place], errors(weights, (0, 1, 2), 0).numpy())
        if iteration < 12:
            np.testing.assert_array_equal(trained.losses[iteration], errors(weights, (0, 1, 2), iteration + 1).numpy())
    for name, value in before.items():
        assert torch.equal(given[name], value)  # the caller's own stay as they were
        assert torch.equal(seen[0][1][name], value)
        assert torch.equal(seen[-1][1][name], trained.parameters[name])
        assert not trained.parameters[name].requires_grad


def test_uniform_weights_are_those_of_a_linear_layer():
    fan_in = 40
    drawn = ensemble.uniform([torch.Generator().manual_seed(0)], (fan_in, 500), fan_in, "cpu")
    torch.manual_seed(1)
    layer = torch.nn.Linear(fan_in, 500)
    assert drawn.shape == (1, fan_in, 500)
    assert drawn.dtype == torch.float32
    for theirs in (layer.weight, layer.bias):
        assert scipy.stats.ks_2samp(drawn.flatten().numpy(), theirs.detach().flatten().numpy()).pvalue > 0.01
    bound = fan_in**-0.5
    assert 0.999 * bound < drawn.max() <= bound
    assert -bound <= drawn.min() < -0.999 * bound


def test_gaussian_weights_have_variance_one_over_fan_in():
    drawn = ensemble.normal([torch.Generator().manual_seed(seed) for seed in range(3)], (100, 100), 25, "cpu")
    assert drawn.shape == (3, 100, 100)
    assert drawn.dtype == torch.float32
    for member in drawn.flatten(1).numpy():
        assert scipy.stats.kstest(member, scipy.stats.norm(0, 1 / 5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("draw", [ensemble.uniform, ensemble.normal])
def test_initial_weights_of_members_and_calls_are_independent(draw):
    generators = [torch.Generator().manual_seed(seed) for seed in range(3)]
    drawn = [draw(generators, (100, 100), 100, "cpu") for _ in range(2)]
    correlations = np.corrcoef(torch.cat(drawn).flatten(1).numpy())
    assert np.abs(correlations - np.eye(6)).max() < 4.5 / 100  # standard errors of 10,000 draws
    alone = draw([torch.Generator().manual_seed(2)], (100, 100), 100, "cpu")
    assert torch.equal(alone[0], drawn[0][2])


@settings(max_examples=100)
@given(warmup=st.integers(0, 50), after=st.integers(0, 200), learning_rate=st.floats(1e-5, 1), decay=st.booleans())
def test_the_learning_rate_rises_and_falls_in_equal_steps(warmup, after, learning_rate, decay):
    iterations = warmup + after
    recipe = Recipe(iterations, learning_rate, 0.0, warmup=warmup, decay=decay)
    rates = np.array([recipe.rate(iteration) for iteration in range(1, iterations + 1)])
    rise, rest = rates[:warmup], rates[warmup:]
    np.testing.assert_allclose(np.diff(rise, prepend=0), learning_rate / max(warmup, 1), rtol=1e-9)
    if warmup:
        assert rise[-1] == pytest.approx(learning_rate)
    if decay and after:  # a warmup may last for the whole training
        assert rest[0] == pytest.approx(learning_rate)
        np.testing.assert_allclose(-np.diff(rest, append=0), learning_rate / after, rtol=1e-9)
        assert rest[-1] > 0  # no update is in vain
        assert recipe.rate(iterations + 1) == 0
    elif not decay:
        assert (rest == learning_rate).all()


def by_hand(seed, recipe):
    """The parameters of one member after every update by torch's own AdamW and scheduler, first those it starts with.

    The scheduler goes through the corners of the learning rate.
    """
    weights = {name: value.requires_grad_() for name, value in untrained([seed]).items()}
    optimizer = torch.optim.AdamW(
        weights.values(), recipe.learning_rate, recipe.betas, weight_decay=recipe.weight_decay, foreach=False
    )
    corners = {recipe.iterations + 1: 0.0 if recipe.decay else 1.0, recipe.warmup + 1: 1.0}
    if recipe.warmup:
        corners |= {0: 0.0, recipe.warmup: 1.0}
    at, factors = zip(*sorted(corners.items()), strict=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: np.interp(step + 1, at, factors))
    yield {name: value.detach().clone() for name, value in weights.items()}
    for iteration in range(1, recipe.iterations + 1):
        optimizer.zero_grad()
        errors(weights, [seed], iteration).sum().backward()
        optimizer.step()
        scheduler.step()
        yield {name: value.detach().clone() for name, value in weights.items()}


SCHEDULES = [{"warmup": 5}, {"decay": True}, {"warmup": 5, "decay": True}, {"warmup": 1, "decay": True}]
OTHER_RECIPES = [{}, {"weight_decay": 0.0}, {"betas": (0.5, 0.8)}]


@pytest.mark.parametrize("changed", [*SCHEDULES, *OTHER_RECIPES], ids=str)
def test_each_member_trains_as_by_torchs_adamw_and_scheduler(tmp_path, changed):
    recipe = replace(Recipe(20, 3e-2, 0.5), **changed)
    trained = run(tmp_path / "trained", recipe=recipe)
    for member, seed in enumerate((0, 1, 2)):
        *_, expected = by_hand(seed, recipe)
        for name, value in expected.items():
            torch.testing.assert_close(trained.parameters[name][member], value[0], rtol=1e-4, atol=1e-5)


KAPPA = 0.7  # of the average
SCHEDULED = replace(RECIPE, warmup=3, decay=True)


def every_update(folder, **changed):
    """A run, and its parameters before the first update and after each, as `train` shows them to observers."""
    trajectory = []

    def observe(weights, iteration):
        trajectory.append({name: value.clone() for name, value in weights.items()})
        return errors(weights, (0, 1, 2), 0)

    return run(folder, observe=observe, observe_every=1, **changed), trajectory


@pytest.mark.parametrize("kappa", [0.0, 0.5, 0.8])
def test_the_average_is_the_recursion_over_updated_parameters(tmp_path, kappa):
    trained, trajectory = every_update(tmp_path, kappa=kappa, recipe=replace(RECIPE, iterations=40))
    assert len(trajectory) == 41
    expected = {name: value.double() for name, value in trajectory[0].items()}
    for t, weights in enumerate(trajectory[1:], 1):
        beta = (10 + t) ** -kappa
        expected = {name: (1 - beta) * value + beta * weights[name] for name, value in expected.items()}
    assert trained.average.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(trained.average[name].double(), value, rtol=1e-6, atol=1e-6)
        assert torch.allclose(trained.average[name], trained.parameters[name], atol=1e-3) == (kappa == 0)
        assert not trained.average[name].requires_grad


def turned(weights):
    """Every matrix transposed, without being moved in memory."""
    return {name: value.transpose(1, 2) for name, value in weights.items()}


def test_members_train_alike_however_tensors_lie_in_memory(tmp_path):
    seeds, expected = (0, 1, 2), run(tmp_path / "straight").parameters
    lying = {name: value.contiguous() for name, value in turned(untrained(seeds)).items()}
    assert not turned(lying)["hidden"].is_contiguous()
    weights = run(tmp_path / "weights", parameters=turned(lying)).parameters
    gradients = run(
        tmp_path / "gradients",
        parameters=lying,
        loss=lambda weights, iteration: errors(turned(weights), seeds, iteration),
        observe=lambda weights, _iteration: errors(turned(weights), seeds, 0),
    ).parameters
    for name, value in expected.items():
        torch.testing.assert_close(weights[name], value)
        torch.testing.assert_close(gradients[name].transpose(1, 2), value, rtol=1e-4, atol=1e-5)


def test_gradient_norms_are_those_of_autograd(tmp_path):
    """Over all parameters of a member at once; one that the loss does not depend on adds nothing."""
    parameters = untrained((0, 1, 2)) | {"unused": torch.ones(3, WIDTH)}
    trained, trajectory = every_update(tmp_path, parameters=parameters)
    assert trained.gradient_norms.shape == trained.losses.shape == (12, 3)
    assert trained.gradient_norms.dtype == np.float32
    for iteration, weights in enumerate(trajectory[:-1], 1):
        for member, seed in enumerate((0, 1, 2)):
            of_member = {name: value[[member]].requires_grad_() for name, value in weights.items() if name != "unused"}
            loss = errors(of_member, [seed], iteration).sum()
            gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(of_member.values()))])
            found = trained.gradient_norms[iteration - 1, member]
            assert found == pytest.approx(gradient.double().norm().item(), rel=1e-5)
            assert trained.losses[iteration - 1, member] == pytest.approx(loss.item(), rel=1e-5)


def test_averaging_changes_no_bit_of_training(tmp_path):
    plain = run(tmp_path / "plain", recipe=SCHEDULED)
    assert plain.average == {}
    averaged = run(tmp_path / "averaged", recipe=SCHEDULED, kappa=KAPPA)
    for name, value in plain.parameters.items():
        assert torch.equal(averaged.parameters[name], value)
    np.testing.assert_array_equal(averaged.losses, plain.losses)


@pytest.mark.parametrize("seeds", [(2, 0), (1, 1, 2, 0)])
def test_average_and_schedule_of_a_member_are_its_own(tmp_path, seeds):
    together = run(tmp_path / "together", recipe=SCHEDULED, kappa=KAPPA)
    found = run(tmp_path / "found", seeds, recipe=SCHEDULED, kappa=KAPPA)
    assert_same(found, together, [*range(len(seeds))], [*seeds])


KINDS = {"plain": {}, "averaged": {"kappa": KAPPA, "recipe": SCHEDULED}}


def never(weights, iteration):
    raise AssertionError(f"iteration {iteration} was repeated")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [(1,), (4,), (5,), (12,), (3, 7, 8, 10, 12)], ids=str)
def test_a_broken_run_ends_with_the_bytes_of_a_whole_one(tmp_path, cpu_time, caplog, steps, kind):
    """They have its time, too: an iteration takes a second, and what was done again after a checkpoint counts once."""
    expected = run(tmp_path / "whole", loss=taking_a_second(cpu_time), **KINDS[kind])
    for step in steps:
        cpu_time.restart()
        break_off(tmp_path / "broken", cpu_time, step, **KINDS[kind])
        assert checkpoint.cpu_minutes(tmp_path / "broken") * 60 == pytest.approx((step - 1) // 4 * 4)
    caplog.set_level("INFO")
    cpu_time.restart()
    assert_same(run(tmp_path / "broken", loss=taking_a_second(cpu_time), description="sums", **KINDS[kind]), expected)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
    assert list(contents(tmp_path / "whole")) == ["checkpoint.safetensors"]
    resumed_after = (steps[-1] - 1) // 4 * 4
    assert (f"sums: resumed after iteration {resumed_after}" in caplog.text) == (resumed_after > 0)
    assert "sums: 12 of 12" in caplog.text
    assert_same(run(tmp_path / "broken", loss=never, observe=never, **KINDS[kind]), expected)  # once finished


OTHERS = [
    {"recipe": replace(SCHEDULED, **other)}
    for other in (
        {"learning_rate": 2e-2},
        {"weight_decay": 0.2},
        {"betas": (0.8, 0.999)},
        {"iterations": 13},
        {"warmup": 4},
        {"decay": False},
    )
]
OTHERS += [{"settings": {"task": "products"}}, {"observe_every": 4}, {"seeds": (0, 1, 3)}, {"seeds": (1, 0, 2)}]
OTHERS += [{"kappa": None}, {"kappa": 0.8}]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_checkpoint_of_another_run_is_not_resumed(tmp_path, cpu_time, caplog, other):
    break_off(tmp_path / "used", cpu_time, 10, **KINDS["averaged"])
    changed = KINDS["averaged"] | {"loss": taking_a_second(cpu_time, seeds=other.get("seeds", (0, 1, 2)))} | other
    assert_same(run(tmp_path / "used", description="sums", **changed), run(tmp_path / "fresh", **changed))
    assert contents(tmp_path / "used") == contents(tmp_path / "fresh")
    path = tmp_path / "used" / "checkpoint.safetensors"
    assert warnings(caplog) == [f"sums: starts over, since {path} was written with other settings, data or versions"]


def test_how_often_a_run_writes_does_not_change_how_it_ends(tmp_path, cpu_time):
    expected = run(tmp_path / "often", checkpoint_every=1)
    assert_same(run(tmp_path / "once", checkpoint_every=100), expected)
    break_off(tmp_path / "changed", cpu_time, 10, checkpoint_every=4)
    assert_same(run(tmp_path / "changed", checkpoint_every=5), expected)


def spoilt(at, seeds=(0, 1, 2)):
    """The loss that is a NaN for members at given iterations."""

    def loss(weights, iteration):
        factors = [math.nan if at.get(member) == iteration else 1.0 for member in range(len(seeds))]
        return errors(weights, seeds, iteration) * torch.tensor(factors)

    return loss


@pytest.mark.parametrize("step", [1, 4, 5, 12])
def test_a_lost_member_is_told_once_and_changes_no_other(tmp_path, caplog, step):
    found = run(tmp_path / "spoilt", loss=spoilt({2: step}), kappa=KAPPA, description="sums")
    expected = run(tmp_path / "whole", kappa=KAPPA)
    assert_same(found, expected, [0, 1], [0, 1])
    for values, whole in ((found.losses, expected.losses), (found.gradient_norms, expected.gradient_norms)):
        np.testing.assert_array_equal(values[: step - 1, 2], whole[: step - 1, 2])
        assert np.isnan(values[step - 1 :, 2]).all()
    assert all(value[2].isnan().all() for value in found.average.values())
    assert found.divergences == {2: step}
    assert warnings(caplog) == [f"sums: member 2 diverged at iteration {step}"]


def test_a_lost_member_is_observed_as_nan(tmp_path, caplog):
    """Networks whose logits are NaN still name a label."""
    found = run(tmp_path, loss=spoilt({2: 7}), observe=lambda weights, iteration: torch.ones(3, 2))
    assert found.observed_at == [0, 5, 10, 12]
    np.testing.assert_array_equal(found.observations[:, :2], np.ones((4, 2, 2)))
    np.testing.assert_array_equal(found.observations[:, 2, 0], [1, 1, np.nan, np.nan])
    assert found.divergences == {2: 7}


def test_a_member_with_infinite_initial_weights_is_lost(tmp_path, caplog):
    """In one of its numbers, of one tensor, on which the loss may not even depend."""
    parameters = untrained((0, 1, 2)) | {"unused": torch.zeros(3, WIDTH)}
    parameters["unused"][1, 3] = math.inf
    found = run(tmp_path, parameters=parameters)
    assert np.isfinite(found.losses).all()
    assert found.divergences == {1: 0}
    assert warnings(caplog) == ["training: member 1 diverged at iteration 0"]


@pytest.mark.parametrize(("iteration", "noticed"), [(12, 12), (10, 10), (5, 5), (7, 8)])
def test_spoilt_weights_are_seen_by_the_next_test_or_loss(tmp_path, iteration, noticed):
    """A finite loss with a gradient that is not."""

    def loss(weights, at):
        of_member = errors(weights, (0, 1, 2), at)
        if at == iteration:
            zero = (weights["bias"][1] * 0).sum().sqrt()  # its slope there is infinite
            of_member = torch.stack([of_member[0], of_member[1] + zero, of_member[2]])
        return of_member

    found = run(tmp_path / "spoilt", loss=loss)
    assert np.isfinite(found.losses[:iteration]).all()
    assert not found.parameters["bias"][1].isfinite().all()
    assert found.divergences == {1: noticed}
    assert_same(found, run(tmp_path / "whole"), [0, 2], [0, 2])


ALL_LOST = {0: 7, 1: 2, 2: 5}


def test_a_run_without_members_ends_at_the_next_checkpoint(tmp_path, caplog):
    seen = []

    def observe(weights, iteration):
        seen.append(iteration)
        return errors(weights, (0, 1, 2), 0)

    found = run(tmp_path / "spoilt", loss=spoilt(ALL_LOST), observe=observe, description="sums")
    whole = run(tmp_path / "whole")
    assert found.divergences == ALL_LOST
    assert found.gradient_norms.shape == found.losses.shape == (8, 3)
    assert found.observed_at == seen == [0, 5]
    assert found.observations.shape == (2, 3)
    for member, iteration in ALL_LOST.items():
        np.testing.assert_array_equal(found.losses[: iteration - 1, member], whole.losses[: iteration - 1, member])
    assert sorted(warnings(caplog)) == [f"sums: member {m} diverged at iteration {i}" for m, i in ALL_LOST.items()]


@pytest.mark.parametrize("lost", [{0: 3}, ALL_LOST], ids=["one", "all"])
@pytest.mark.parametrize("step", [3, 6, 8])
def test_divergence_before_an_interruption_is_known_after_it(tmp_path, caplog, step, lost):
    """And told again to whoever reads the log of the second call; what has ended is not gone on with."""
    spoil = spoilt(lost)
    expected = run(tmp_path / "whole", loss=spoil)
    told = warnings(caplog)

    def loss(weights, iteration):
        if iteration == step:
            raise Interruption
        return spoil(weights, iteration)

    with pytest.raises(Interruption):
        run(tmp_path / "broken", loss=loss)
    caplog.clear()
    for _ in range(2):
        found = run(tmp_path / "broken", loss=spoil)
        assert found.divergences == expected.divergences == lost
        assert_same(found, expected)
        assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
    assert set(warnings(caplog)) == set(told)


def test_the_loss_of_a_member_is_the_mean_over_its_own_targets():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 4, 5, 7, generator=generator, dtype=torch.float64)
    targets = torch.randint(7, (3, 4, 5), generator=generator)
    losses = -logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
    found = ensemble.mean_cross_entropy(logits, targets)
    torch.testing.assert_close(found, torch.stack([of_member.mean() for of_member in losses]))


def test_generators_differ_by_seed_and_purpose():
    drawn = [
        tuple(torch.rand(2, generator=generator).tolist())
        for purpose in (("weights",), ("targets", 1), ("targets", 2))
        for generator in ensemble.generators([0, 1], *purpose)
    ]
    assert len(set(drawn)) == len(drawn)
    again = [tuple(torch.rand(2, generator=generator).tolist()) for generator in ensemble.generators([0, 1], "weights")]
    assert again == drawn[:2]
