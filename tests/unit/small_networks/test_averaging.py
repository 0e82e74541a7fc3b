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


def test_weights_and_corrections_are_powers():
    """Base 10 + t: 16, 25, 100 at t = 6, 15, 90."""
    averaging = Averaging(kappa=0.5)
    assert (averaging.rho, averaging.gamma) == (10, 1)  # the paper's
    assert [averaging.weight(t) for t in (6, 15, 90)] == pytest.approx([1 / 4, 1 / 5, 1 / 10])
    assert [averaging.correction(t, 1.5) for t in (6, 15, 90)] == pytest.approx([1 / 64, 1 / 125, 1 / 1000])
    assert averaging.correction(90, 0.0) == 1
    assert Averaging(2.0, rho=1.0, gamma=0.5).weight(2) == pytest.approx(1 / 4)
    assert Averaging(0.5, rho=0.01, gamma=0.01).weight(20) == 1  # above it an average would leave their range
