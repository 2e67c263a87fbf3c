"""Search by random forests."""

import numpy as np
import pytest

from foretune.methods.contracts import Observations
from foretune.methods.forest.forest import LEAST_STD, ForestPosterior, ForestSurrogate
from foretune.numerics.transforms import standardise
from tests.methods.baselines.examples import SPACE

CONFIGS = SPACE.sample(12, seed=0)
LOSSES = np.arange(12.0)[::-1].copy()


class Constant:
    """A tree that predicts the same everywhere."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, codes: np.ndarray) -> np.ndarray:
        return np.full((len(codes), 1), self.value)


def conditioned(believed: int = 0, seed: int = 0) -> ForestPosterior:
    seen = Observations(CONFIGS, LOSSES[:, None], np.arange(12) >= 12 - believed)
    return ForestSurrogate().condition(seen, seed=seed)


def test_the_belief_is_the_mean_and_the_spread_over_trees() -> None:
    forest = ForestPosterior([Constant(1.0), Constant(2.0), Constant(6.0)], 0.0)
    belief = forest.predict(CONFIGS)
    np.testing.assert_allclose(belief.mean, 3.0)
    np.testing.assert_allclose(belief.std, np.sqrt((4.0 + 1.0 + 9.0) / 3))
    drawn = forest.sample(CONFIGS, 300, seed=0)
    assert {*drawn.ravel().tolist()} == {1.0, 2.0, 6.0}
    assert (np.ptp(drawn, axis=1) == 0.0).all()


def test_trees_that_agree_are_not_certain() -> None:
    belief = ForestPosterior([Constant(1.0), Constant(1.0)], 0.0).predict(CONFIGS)
    np.testing.assert_allclose(belief.std, LEAST_STD)


def test_a_believed_trial_is_learnt_from_and_to_be_beaten() -> None:
    z = standardise(LOSSES)
    assert conditioned().best == pytest.approx(z[11])
    forest = conditioned(believed=2)
    assert forest.best == pytest.approx(z[11])
    np.testing.assert_allclose(
        forest.predict(CONFIGS).mean, conditioned().predict(CONFIGS).mean, rtol=1e-12
    )


def test_a_forest_follows_its_seed() -> None:
    first, same, other = (conditioned(seed=seed).predict(CONFIGS).mean for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
