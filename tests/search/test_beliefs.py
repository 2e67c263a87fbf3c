import numpy as np
import pytest

from foretune.methods.contracts import Observations, Prediction
from foretune.search.pending_values import MOST_COMPARED, impute_pending_losses, trend, with_beliefs
from foretune.space import Encoded, Space
from tests.methods.doubles import PartPosterior

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})


@pytest.mark.filterwarnings("error")
def test_a_trend_of_losses_is_that_of_least_squares_whatever_their_size() -> None:
    predictions, losses = np.array([0.1, 0.4, 0.2, 0.9]), np.array([-0.7, 0.3, 0.9, 0.8])
    slope = np.polyfit(predictions, losses, 1)[0]
    for scale in (1e-310, 1.0, 1e300, 1e308):
        np.testing.assert_allclose(trend(predictions, scale * losses), scale * slope)
    assert trend(predictions, 1.7e308 * losses / 0.9) == 0.0
    assert trend(np.full(4, 0.3), losses) == 0.0  # what is predicted alike shows no trend


def test_predictions_beyond_any_float_take_the_nearest_trials_loss() -> None:
    found = impute_pending_losses(np.array([3.0]), np.array([0.0, 1.0]), np.array([0.0, 1.7e308]))
    assert found.tolist() == [1.7e308]


def test_pending_trials_are_compared_with_a_part_of_very_many() -> None:
    """Of 3,000 trials a model is asked about 1,000, and the best are among them."""
    asked: list[Encoded] = []

    class Line(PartPosterior):
        best = 5.0

        def predict(self, x: Encoded) -> Prediction:
            asked.append(x)
            return Prediction(x.x[:, 0], np.ones(len(x)))

    configs, pending = SPACE.sample(3_000, seed=0), SPACE.sample(4, seed=1)
    told = Observations(configs, 5.0 + 2.0 * configs.x[:, :1], np.zeros(3_000, dtype=bool))
    seen = with_beliefs(told, pending, Line())
    assert max(map(len, asked)) <= MOST_COMPARED
    assert configs.take([int(told.losses.argmin())]).isin(asked[-1]).all()
    assert seen.losses[3_000:, 0] == pytest.approx(5.0 + 2.0 * pending.x[:, 0])
    assert len(seen) == 3_004
