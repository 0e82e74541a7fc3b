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
def test_panels_of_content_say_head_and_shift_of_the_diagonal():
    axes = fig5(DIAGONAL)[0].axes
    assert [each.get_title() for each in axes[:3]] == ["head 1", "head 3", "head 5"]
    assert {each.texts[0].get_text() for each in axes[:9]} == {"$-0.25$"}
