import numpy as np
import pytest

from foretune.search.beliefs import believed_losses, trend


@pytest.mark.filterwarnings("error")
def test_a_trend_of_losses_is_that_of_least_squares_whatever_their_size() -> None:
    predictions, losses = np.array([0.1, 0.4, 0.2, 0.9]), np.array([-0.7, 0.3, 0.9, 0.8])
    slope = np.polyfit(predictions, losses, 1)[0]
    for scale in (1e-310, 1.0, 1e300, 1e308):
        np.testing.assert_allclose(trend(predictions, scale * losses), scale * slope)
    assert trend(predictions, 1.7e308 * losses / 0.9) == 0.0
    assert trend(np.full(4, 0.3), losses) == 0.0  # what is predicted alike shows no trend


def test_what_is_believed_beyond_any_float_is_what_the_nearest_trial_had() -> None:
    found = believed_losses(np.array([3.0]), np.array([0.0, 1.0]), np.array([0.0, 1.7e308]))
    assert found.tolist() == [1.7e308]
