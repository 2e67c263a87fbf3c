from dataclasses import dataclass

import numpy as np
import pytest

from foretune.errors import MethodError
from foretune.methods.contracts import Posterior, Prediction
from foretune.numerics.acquisition import log_expected_improvement
from foretune.search.acquisition import ACQUISITIONS
from foretune.space import Encoded, Space
from tests.refusals import refuses

SPACE = Space.of({"a": (0.0, 1.0)})
TWO = SPACE.encode([{"a": 0.0}, {"a": 1.0}])


@dataclass(frozen=True)
class Known(Posterior):
    """Two configurations of which everything is known."""

    gains: tuple[float, float] = (0.001, 0.010)
    best: float = 0.0

    def predict(self, x: Encoded) -> Prediction:
        return Prediction(np.array([0.0, 4.0]), np.ones(2))

    def sample(self, x: Encoded, n: int, *, seed: int) -> np.ndarray:
        return np.tile([0.0, 4.0], (n, 1))

    def log_utility(self, x: Encoded) -> np.ndarray:
        return np.log(self.gains)


@pytest.mark.parametrize("name", ["own", "mixture-ei"])
def test_the_probability_of_success_multiplies_a_utility(name: str) -> None:
    """0.001 for sure is less than 0.010 in nine of ten cases."""
    discount = np.log([1.0, 0.9])
    scores = ACQUISITIONS[name].score(Known(), TWO, discount, TWO, seed=0)
    np.testing.assert_allclose(np.exp(scores), [0.001, 0.009])


def test_elsewhere_its_unit_is_the_spread_of_the_predictions() -> None:
    """Thompson sampling scores by losses; those of 0 and 4 have a standard deviation of 2."""
    scores = ACQUISITIONS["thompson"].score(Known(), TWO, np.array([-1.0, 0.0]), TWO, seed=0)
    np.testing.assert_allclose(scores, [-2.0, -4.0])


@dataclass(frozen=True)
class Plain(Posterior):
    """Losses of 0 and 4, both give or take 1."""

    best: float = 0.5

    def predict(self, x: Encoded) -> Prediction:
        return Prediction(np.array([0.0, 4.0])[: len(x)], np.ones(len(x)))

    def sample(self, x: Encoded, n: int, *, seed: int) -> np.ndarray:
        return np.full((n, len(x)), float(seed))


def test_equal_predictions_have_the_unit_1() -> None:
    one = TWO.take([0])
    scores = ACQUISITIONS["thompson"].score(Plain(), TWO, np.array([-1.0, 0.0]), one, seed=7)
    np.testing.assert_allclose(scores, [-8.0, -7.0])


def test_each_name_stands_for_its_function() -> None:
    improvement = log_expected_improvement(np.array([0.0, 4.0]), np.ones(2), 0.5)
    expected = {"ei": improvement, "own": improvement, "thompson": [-7, -7]}
    for name, scores in expected.items():
        found = ACQUISITIONS[name].score(Plain(), TWO, np.zeros(2), TWO, seed=7)
        np.testing.assert_allclose(found, scores, err_msg=name)
    likely = np.log([0.5, 1.0])
    discounted = ACQUISITIONS["ei"].score(Plain(), TWO, likely, TWO, seed=7)
    np.testing.assert_allclose(discounted, improvement + likely)


def test_a_posterior_may_know_better_what_an_improvement_is() -> None:
    class SideBySide(Plain):
        def log_improvement(self, x: Encoded) -> np.ndarray:
            return np.log([0.001, 0.010])

    for name in ("ei", "own"):
        scores = ACQUISITIONS[name].score(SideBySide(), TWO, np.zeros(2), TWO, seed=0)
        np.testing.assert_allclose(np.exp(scores), [0.001, 0.010])


def test_unknown_regions_are_not_suggested() -> None:
    scores = ACQUISITIONS["own"].score(Known((np.nan, 0.5)), TWO, np.zeros(2), TWO, seed=0)
    np.testing.assert_allclose(scores, [-np.inf, np.log(0.5)])


def test_a_method_that_predicts_no_number_is_refused() -> None:
    with refuses("scores-are-numbers", value=2, kind=MethodError):
        ACQUISITIONS["own"].score(Known((np.nan, np.nan)), TWO, np.zeros(2), TWO, seed=0)
