import numpy as np
import pytest

from foretune.methods.rgpe.stacked import ExpectedLosses, JointDraws, Stacked
from foretune.numerics.gp import GP
from foretune.numerics.hyper import GPHyper


@pytest.fixture
def processes():
    """Three processes of different sizes, lengthscales and units."""
    rng = np.random.default_rng(0)
    made = []
    for n, lengthscale, scale in ((6, 0.3, 1.0), (9, 0.8, 20.0), (4, 0.5, 0.1)):
        x = rng.random((n, 2))
        hyper = GPHyper(np.log([lengthscale, 2 * lengthscale]), 0.2, -4.0, 0.3)
        made.append(GP.condition(x, scale * rng.normal(size=n) + 3.0, hyper))
    return tuple(made)


X = np.random.default_rng(1).random((7, 2))


def test_means_are_those_of_each_process(processes):
    expected = np.stack([process.mean(X) for process in processes])
    np.testing.assert_allclose(ExpectedLosses(Stacked(processes))(X), expected, rtol=1e-9)


def test_draws_have_the_means_and_covariances_of_each_process(processes):
    draws = JointDraws(Stacked(processes), 20_000)(X)
    for number, process in enumerate(processes):
        mean, std = process.predict(X)
        drawn = draws[:, number].astype(np.float64)
        np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.04 * process.units.scale)
        np.testing.assert_allclose(drawn.std(axis=1), std, rtol=0.03, atol=2e-3 * std.max())
        reference = process.sample(X, 20_000, np.random.default_rng(5))
        np.testing.assert_allclose(np.corrcoef(drawn), np.corrcoef(reference.T), atol=0.04)


def test_processes_are_drawn_independently_of_each_other(processes):
    draws = JointDraws(Stacked(processes), 20_000)(X)
    assert abs(np.corrcoef(draws[0, 0], draws[0, 1])[0, 1]) < 0.03


def test_one_trial_more_leaves_the_draws_at_earlier_ones_and_resuming_finds_the_same(processes):
    step_by_step = JointDraws(Stacked(processes), 5)
    for n in range(1, 8):
        grown = step_by_step(X[:n])
    np.testing.assert_array_equal(grown, JointDraws(Stacked(processes), 5)(X))
    np.testing.assert_array_equal(step_by_step(X[:3]), grown[:3])
    np.testing.assert_array_equal(step_by_step(X[::-1]), JointDraws(Stacked(processes), 5)(X[::-1]))


def test_a_trial_that_a_process_is_certain_of_can_be_drawn_twice(processes):
    sure = GP.condition(
        np.array([[0.5, 0.5]]), np.array([1.0]), GPHyper(np.log([0.5, 0.5]), 0.0, -18.0)
    )
    x = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5001]])
    draws = JointDraws(Stacked((sure,)), 50)(x)
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws, 1.0, atol=0.02)
