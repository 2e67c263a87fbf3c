import numpy as np
import pytest

from foretune.methods.ranking.curvature import criterion
from foretune.methods.ranking.ensemble import activations, random_ensemble, scores
from foretune.methods.ranking.tuning import Tuning, _evaluate, _kernel, _slopes, fine_tuned

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (12, 3)).astype(np.float32)
Y = RNG.standard_normal(12)
SCORERS = random_ensemble(3, seed=1, meta_features=False).scorers
TUNING = Tuning(variance=0.1)


def jacobian(scorers, x) -> np.ndarray:
    """(n, weights) of the first scorer, by central differences in double precision."""
    flat = np.concatenate([a[0].ravel() for layer in scorers for a in layer]).astype(np.float64)

    def score(vector: np.ndarray) -> np.ndarray:
        at, h = 0, x.astype(np.float64)
        for number, (weights, biases) in enumerate(scorers):
            w = vector[at : at + weights[0].size].reshape(weights[0].shape)
            at += weights[0].size
            b = vector[at : at + biases[0].size]
            at += biases[0].size
            h = h @ w + b
            h = np.maximum(h, 0.0) if number < len(scorers) - 1 else h
        return h[:, 0]

    steps = 1e-6 * np.eye(len(flat))
    return np.stack([(score(flat + s) - score(flat - s)) / 2e-6 for s in steps], axis=1)


def test_the_kernel_is_that_of_all_weights() -> None:
    few = X[:4]
    now = _evaluate(SCORERS, SCORERS, few, criterion("list-wise", Y[:4]), TUNING)
    j = jacobian(SCORERS, few)
    np.testing.assert_allclose(_kernel(now, _slopes(now))[0], j @ j.T, rtol=1e-3)


@pytest.mark.parametrize("loss", ["list-wise", "pair-wise", "point-wise", "regression"])
def test_a_stationary_point_is_reached(loss: str) -> None:
    """At the optimum theta - theta_0 = -v J' slope: the last step changes nothing any more."""
    rank = criterion(loss, Y)
    some, more = (fine_tuned(SCORERS, X, rank, Tuning(0.1, steps)) for steps in (40, 41))
    np.testing.assert_allclose(scores(some, X), scores(more, X), atol=2e-2)
    before = _evaluate(SCORERS, SCORERS, X, rank, TUNING).objective
    after = _evaluate(SCORERS, some, X, rank, TUNING).objective
    assert (after < before).all()


def test_the_list_is_ranked_right_afterwards() -> None:
    tuned = fine_tuned(SCORERS, X, criterion("list-wise", Y), Tuning(1.0, 10))
    found = scores(tuned, X)
    best = np.argsort(Y)[:3]
    assert (found.argmax(axis=1) == best[0]).all()
    assert np.corrcoef(found.mean(axis=0), -Y)[0, 1] > 0.8


def test_a_smaller_variance_stays_closer() -> None:
    far, near = (fine_tuned(SCORERS, X, criterion("list-wise", Y), Tuning(v)) for v in (1.0, 0.001))
    start = activations(SCORERS, X)[-1]
    moves = [np.abs(activations(s, X)[-1] - start).mean() for s in (far, near)]
    assert moves[1] < 0.2 * moves[0]


@pytest.mark.parametrize("y", [np.zeros(12), np.array([1e30] + [0.0] * 11)])
def test_constant_and_absurd_losses_are_survived(y: np.ndarray) -> None:
    tuned = fine_tuned(SCORERS, X, criterion("list-wise", y), TUNING)
    assert all(np.isfinite(array).all() for layer in tuned for array in layer)


def test_one_observation_moves_nothing() -> None:
    """A list of one has no order to learn."""
    tuned = fine_tuned(SCORERS, X[:1], criterion("list-wise", Y[:1]), TUNING)
    np.testing.assert_allclose(scores(tuned, X), scores(SCORERS, X), atol=1e-5)
