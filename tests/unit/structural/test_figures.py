import numpy as np
import pytest

from position_bias.structural import figures
from tests.figures.structural import DIAGONAL, fig5


def test_lambda_is_a_mean_over_prompts_with_two_deviations():
    by_prompt = np.array([[0.1, 0.5], [0.3, 0.5], [0.8, 0.2]], np.float32)
    found = figures.mixing_by_layer({"frobenius": by_prompt, "token": 1 - by_prompt})
    deviations = [np.sqrt((0.3**2 + 0.1**2 + 0.4**2) / 2), np.sqrt(3 * 0.1**2)]
    assert found.index.tolist() == [1, 2]
    np.testing.assert_allclose(found["frobenius"], [0.4, 0.4], rtol=1e-6)
    np.testing.assert_allclose(found["token"], [0.6, 0.6], rtol=1e-6)
    np.testing.assert_allclose(found["high"] - found["frobenius"], 2 * np.array(deviations), rtol=1e-6)
    np.testing.assert_allclose(found["frobenius"] - found["low"], 2 * np.array(deviations), rtol=1e-6)


@pytest.mark.usefixtures("styled")
def test_diagonal_content_is_farthest_from_its_background_at_0():
    figure = fig5(DIAGONAL)[0]
    assert figure.get_label().endswith("on the diagonal in 9 of 9 heads")
    for line in figure.axes[0].lines[1:]:
        drawn = line.get_ydata()
        assert drawn[0] == pytest.approx(-0.25)
        np.testing.assert_allclose(drawn[1:], 0, atol=1e-6)
