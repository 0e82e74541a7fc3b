import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from position_bias.small_networks.averaging import Averaging, bema, update

ROUNDING = {"rtol": 1e-11, "atol": 1e-12}
SHAPES = {"matrix": (2, 3, 4), "vector": (2, 5), "number": (2,)}
EXPONENTS = st.floats(0.05, 2)
AVERAGINGS = st.builds(Averaging, kappa=EXPONENTS, rho=st.floats(0.05, 30), gamma=st.floats(0.05, 3))


def walk(iterations, seed, dtype=np.float64):
    """Parameters theta_0, theta_1, ... of a random walk, each `[iterations + 1, *shape]`."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal((iterations + 1, *shape)).cumsum(0).astype(dtype) for name, shape in SHAPES.items()
    }


def at(trajectory, t):
    return {name: torch.from_numpy(values[t].copy()) for name, values in trajectory.items()}


def averages(trajectory, averaging):
    """EMA_0, EMA_1, ... as the module makes them, copies."""
    average = at(trajectory, 0)
    made = [{name: value.clone() for name, value in average.items()}]
    for t in range(1, len(trajectory["number"])):
        update(average, at(trajectory, t), averaging.weight(t))
        made.append({name: value.clone() for name, value in average.items()})
    return made


# Against the definitions


@settings(max_examples=40, deadline=None)
@given(averaging=AVERAGINGS, eta=EXPONENTS, iterations=st.integers(0, 30), seed=st.integers(0, 2**31))
def test_averages_are_their_definitions_written_out(averaging, eta, iterations, seed):
    theta = walk(iterations, seed)
    made = averages(theta, averaging)
    for name, values in theta.items():
        ema = values[0].copy()
        for t in range(iterations + 1):
            if t > 0:
                beta = min((averaging.rho + averaging.gamma * t) ** -averaging.kappa, 1.0)
                ema = (1 - beta) * ema + beta * values[t]
            np.testing.assert_allclose(made[t][name].numpy(), ema, **ROUNDING)
            alpha = (averaging.rho + averaging.gamma * t) ** -eta
            corrected = bema(made[t], at(theta, t), at(theta, 0), averaging.correction(t, eta))
            assert corrected.keys() == theta.keys()
            np.testing.assert_allclose(
                corrected[name].numpy(), ema + alpha * (values[t] - values[0]), **(ROUNDING | {"atol": 1e-10})
            )


@settings(max_examples=40, deadline=None)
@given(averaging=AVERAGINGS, iterations=st.integers(1, 30), seed=st.integers(0, 2**31))
def test_an_average_weighs_every_parameter_by_what_later_ones_leave_of_it(averaging, iterations, seed):
    """The recursion unrolled: theta_s has weight beta_s times all later 1 - beta, with beta_0 = 1; they sum to 1."""
    theta = walk(iterations, seed)
    beta = np.minimum((averaging.rho + averaging.gamma * np.arange(iterations + 1)) ** -averaging.kappa, 1)
    beta[0] = 1
    weights = np.array([beta[s] * np.prod(1 - beta[s + 1 :]) for s in range(iterations + 1)])
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    for name, values in averages(theta, averaging)[-1].items():
        np.testing.assert_allclose(values.numpy(), np.tensordot(weights, theta[name], 1), rtol=1e-11, atol=1e-11)


def test_weights_and_corrections_are_powers():
    """Base 10 + t: 16, 25, 100 at t = 6, 15, 90."""
    averaging = Averaging(kappa=0.5)
    assert (averaging.rho, averaging.gamma) == (10, 1)  # the paper's
    assert [averaging.weight(t) for t in (6, 15, 90)] == pytest.approx([1 / 4, 1 / 5, 1 / 10])
    assert [averaging.correction(t, 1.5) for t in (6, 15, 90)] == pytest.approx([1 / 64, 1 / 125, 1 / 1000])
    assert averaging.correction(90, 0.0) == 1
    assert Averaging(2.0, rho=1.0, gamma=0.5).weight(2) == pytest.approx(1 / 4)


def test_a_base_below_1_gives_no_weight_above_1():
    """Otherwise the average would leave the range of the parameters."""
    averaging = Averaging(kappa=0.5, rho=0.01, gamma=0.01)
    assert [averaging.weight(t) for t in (1, 20, 99)] == [1, 1, 1]
    assert averaging.weight(399) == pytest.approx(1 / 2)
    theta = walk(3, 0)
    for name, value in averages(theta, averaging)[-1].items():
        np.testing.assert_allclose(value.numpy(), theta[name][-1], **ROUNDING)


def test_single_precision_follows_the_definition_to_its_rounding():
    averaging, theta = Averaging(0.7), walk(200, 1, np.float32)
    for name, value in averages(theta, averaging)[-1].items():
        assert value.dtype == torch.float32
        ema = theta[name][0].astype(np.float64)
        for t in range(1, 201):
            ema += (10 + t) ** -0.7 * (theta[name][t] - ema)
        np.testing.assert_allclose(value.numpy(), ema, rtol=1e-5, atol=1e-5)


# What is changed, and what is not


def test_an_update_changes_the_average_in_place_and_nothing_else():
    average, parameters = at(walk(0, 0), 0), at(walk(0, 1), 0)
    of_average = dict(average)
    before = {name: value.clone() for name, value in parameters.items()}
    leaves = {name: value.requires_grad_() for name, value in parameters.items()}
    update(average, leaves, 0.25)
    for name, value in average.items():
        assert value is of_average[name]
        assert not value.requires_grad  # no graph holds all earlier parameters
        assert torch.equal(parameters[name], before[name])
        start = torch.from_numpy(walk(0, 0)[name][0])
        torch.testing.assert_close(value, 0.75 * start + 0.25 * before[name], rtol=1e-12, atol=1e-12)


def test_members_do_not_mix():
    theta = walk(20, 2)
    expected = averages(theta, Averaging(0.5))[-1]
    for values in theta.values():
        values[3, 1] = math.nan
    found = averages(theta, Averaging(0.5))[-1]
    for name, value in expected.items():
        assert torch.equal(found[name][0], value[0])
        assert found[name][1].isnan().all()


def test_bema_without_correction_is_the_ema_and_leaves_it_alone():
    theta = walk(20, 3)
    average = averages(theta, Averaging(0.5))[-1]
    before = {name: value.clone() for name, value in average.items()}
    same = bema(average, at(theta, 20), at(theta, 0), 0.0)
    moved = bema(average, at(theta, 20), at(theta, 0), 0.5)
    for name, value in before.items():
        assert torch.equal(same[name], value)
        assert torch.equal(average[name], value)
        assert not torch.allclose(moved[name], value, atol=1e-3)


# The lag


def lags(kappa, eta, iterations):
    """Distance to theta_t = theta_0 + c t of EMA_t and of BEMA_t, in steps |c|, `[iterations, 2]`."""
    averaging = Averaging(kappa)
    first, step = torch.tensor([3.0, -2.0], dtype=torch.float64), torch.tensor([0.6, 0.8], dtype=torch.float64)
    average, initial = {"theta": first.clone()}, {"theta": first}
    found = []
    for t in range(1, iterations + 1):
        parameters = {"theta": first + t * step}
        update(average, parameters, averaging.weight(t))
        corrected = bema(average, parameters, initial, averaging.correction(t, eta))
        found.append([float((mean["theta"] - parameters["theta"]).norm()) for mean in (average, corrected)])
    return np.array(found)


@pytest.mark.parametrize(("kappa", "eta"), [(0.5, 0.5), (0.7, 0.5), (0.8, 0.5), (0.8, 0.2), (0.5, 1.0), (1.0, 0.2)])
def test_on_a_straight_line_bema_lags_less_than_ema_where_kappa_and_eta_sum_to_1_or_more(kappa, eta):
    """Ours: the EMA is l_t steps behind, l_t = (1 - beta_t)(l_(t-1) + 1), about t^kappa; the correction is t^(1 - eta).

    With kappa + eta >= 1 it does not grow faster than the lag.
    """
    found = lags(kappa, eta, 300)
    lag = 0.0
    for t in range(1, 301):
        lag = (1 - (10 + t) ** -kappa) * (lag + 1)
        assert found[t - 1] == pytest.approx([lag, abs(lag - t * (10 + t) ** -eta)], rel=1e-9, abs=1e-10)
    assert (found[:, 1] < found[:, 0]).all()


def test_on_a_straight_line_a_slowly_vanishing_correction_overshoots():
    """Ours: kappa = 1/2, eta = 1/5, the usual values; after 300 steps t^(4/5) is far above twice the lag, t^(1/2)."""
    found = lags(0.5, 0.2, 300)
    assert found[-1, 1] > 3 * found[-1, 0]
    assert (found[:3, 1] < found[:3, 0]).all()  # at first it helps
