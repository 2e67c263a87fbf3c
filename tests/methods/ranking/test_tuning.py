import numpy as np
import pytest

from foretune.methods.ranking.curvature import criterion
from foretune.methods.ranking.ensemble import activations, random_ensemble, scores
from foretune.methods.ranking.tuning import (
    ATTEMPTS,
    FineTuning,
    _along,
    _evaluate,
    _kernel,
    _line_search,
    _newton,
    _slopes,
    fine_tune,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (12, 3)).astype(np.float32)
Y = RNG.standard_normal(12)
SCORERS = random_ensemble(3, seed=1, meta_features=False).scorers
TUNING = FineTuning(variance=0.1)


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


def moved(scorers, size: float, seed: int):
    """The scorers with every weight and bias changed a little."""
    rng = np.random.default_rng(seed)
    return tuple(
        tuple((a + size * rng.standard_normal(a.shape)).astype(np.float32) for a in layer)
        for layer in scorers
    )


def change(scorers, scorer: int) -> np.ndarray:
    """(weights,), how far one scorer lies from its initial weights."""
    now, first = (
        np.concatenate([array[scorer].ravel() for layer in layers for array in layer])
        for layers in (scorers, SCORERS)
    )
    return now - first


def test_how_far_scores_have_come_is_the_jacobian_times_the_way() -> None:
    few = X[:4]
    elsewhere = moved(SCORERS, 0.05, seed=2)
    now = _evaluate(SCORERS, elsewhere, few, criterion("list-wise", Y[:4]), TUNING)
    expected = jacobian(elsewhere, few) @ change(elsewhere, 0)
    np.testing.assert_allclose(_along(SCORERS, now, _slopes(now))[0], expected, rtol=1e-3)


def test_the_objective_is_the_loss_and_what_the_way_costs() -> None:
    rank = criterion("list-wise", Y)
    elsewhere = moved(SCORERS, 0.05, seed=3)
    found = _evaluate(SCORERS, elsewhere, X, rank, TUNING)
    way = [np.square(change(elsewhere, m)).sum() for m in range(len(found.objective))]
    loss = rank(scores(elsewhere, X)).value
    np.testing.assert_allclose(found.objective, loss + np.array(way) / (2.0 * 0.1), rtol=1e-5)


def test_a_newton_step_solves_the_linearised_problem() -> None:
    """Where it leads, loss and distance pull alike: theta - theta_0 = -v J' slope."""
    few, variance = X[:5], 0.03
    rank = criterion("regression", Y[:5])
    elsewhere = moved(SCORERS, 0.02, seed=4)
    now = _evaluate(SCORERS, elsewhere, few, rank, FineTuning(variance))
    goal = _newton(SCORERS, now, _slopes(now), FineTuning(variance))
    j, here = jacobian(elsewhere, few), rank(scores(elsewhere, few))
    slope = here.slope[0] + here.curvature[0] @ j @ (change(goal, 0) - change(elsewhere, 0))
    pull = -variance * j.T @ slope
    np.testing.assert_allclose(change(goal, 0), pull, atol=1e-3 * np.abs(pull).max())


def evaluations(variance: float) -> int:
    """How often at most ten steps look at the loss: at the start, and at least once a step."""
    calls = []
    rank = criterion("regression", Y)

    def counted(found):
        calls.append(found)
        return rank(found)

    fine_tune(SCORERS, X, counted, FineTuning(variance, 10))
    return len(calls)


def test_tuning_ends_when_nothing_improves_any_more() -> None:
    """Where weights can hardly move, the first step is the last."""
    assert evaluations(variance=1e-9) <= 1 + ATTEMPTS
    assert evaluations(variance=1.0) > 1 + ATTEMPTS


def test_every_step_that_is_granted_is_made() -> None:
    rank = criterion("list-wise", Y)
    reached = [
        _evaluate(SCORERS, fine_tune(SCORERS, X, rank, FineTuning(0.1, steps)), X, rank, TUNING)
        for steps in range(6)
    ]
    assert reached[0].scorers is SCORERS
    assert (np.diff([point.objective.sum() for point in reached]) < 0.0).all()


def test_each_scorer_goes_as_far_as_it_does_not_get_worse() -> None:
    """One whose goal is absurd stays where it is, and the others reach theirs."""
    rank = criterion("regression", Y)
    now = _evaluate(SCORERS, SCORERS, X, rank, TUNING)
    tuned = fine_tune(SCORERS, X, rank, FineTuning(0.1, 1))
    goal = tuple(tuple(a.copy() for a in layer) for layer in tuned)
    goal[-1][1][0] = 1e6
    found = _line_search(SCORERS, now, goal, X, rank, TUNING).scorers
    for reached, wanted, first in zip(found, goal, SCORERS, strict=True):
        for a, b, c in zip(reached, wanted, first, strict=True):
            np.testing.assert_array_equal(a[0], c[0])
            np.testing.assert_allclose(a[1:], b[1:], atol=1e-6)


def test_no_way_to_a_goal_that_is_no_number_is_taken() -> None:
    rank = criterion("regression", Y)
    now = _evaluate(SCORERS, SCORERS, X, rank, TUNING)
    goal = tuple(tuple(a.copy() for a in layer) for layer in SCORERS)
    goal[-1][1][0] = np.nan
    found = _line_search(SCORERS, now, goal, X, rank, TUNING).scorers
    assert all(np.isfinite(array).all() for layer in found for array in layer)


@pytest.mark.parametrize("loss", ["list-wise", "pair-wise", "point-wise", "regression"])
def test_a_stationary_point_is_reached(loss: str) -> None:
    """At the optimum theta - theta_0 = -v J' slope: the last step changes nothing any more."""
    rank = criterion(loss, Y)
    some, more = (fine_tune(SCORERS, X, rank, FineTuning(0.1, steps)) for steps in (40, 41))
    np.testing.assert_allclose(scores(some, X), scores(more, X), atol=2e-2)
    before = _evaluate(SCORERS, SCORERS, X, rank, TUNING).objective
    after = _evaluate(SCORERS, some, X, rank, TUNING).objective
    assert (after < before).all()


def test_the_list_is_ranked_right_afterwards() -> None:
    tuned = fine_tune(SCORERS, X, criterion("list-wise", Y), FineTuning(1.0, 10))
    found = scores(tuned, X)
    best = np.argsort(Y)[:3]
    assert (found.argmax(axis=1) == best[0]).all()
    assert np.corrcoef(found.mean(axis=0), -Y)[0, 1] > 0.8


def test_a_smaller_variance_stays_closer() -> None:
    far, near = (
        fine_tune(SCORERS, X, criterion("list-wise", Y), FineTuning(v)) for v in (1.0, 0.001)
    )
    start = activations(SCORERS, X)[-1]
    moves = [np.abs(activations(s, X)[-1] - start).mean() for s in (far, near)]
    assert moves[1] < 0.2 * moves[0]


@pytest.mark.parametrize("y", [np.zeros(12), np.array([1e30] + [0.0] * 11)])
def test_constant_and_absurd_losses_are_survived(y: np.ndarray) -> None:
    tuned = fine_tune(SCORERS, X, criterion("list-wise", y), TUNING)
    assert all(np.isfinite(array).all() for layer in tuned for array in layer)


def test_one_observation_moves_nothing() -> None:
    """A list of one has no order to learn."""
    tuned = fine_tune(SCORERS, X[:1], criterion("list-wise", Y[:1]), TUNING)
    np.testing.assert_allclose(scores(tuned, X), scores(SCORERS, X), atol=1e-5)
