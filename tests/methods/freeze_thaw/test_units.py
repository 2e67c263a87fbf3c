import numpy as np
import pytest
from scipy.linalg import cholesky

from foretune.methods.freeze_thaw.units import CAP, Unit, UnitPrior, _UnitSearch, fit_unit


def test_a_measured_unit_puts_the_median_at_zero_and_the_best_at_minus_one():
    finals = np.linspace(3.0, 5.0, 21)
    unit = Unit.measure(finals)
    assert unit == Unit(4.0, 1.0)
    np.testing.assert_allclose(unit.to_scores(np.array([3.0, 4.0, 4.0 + np.e - 1.0])), [-1, 0, 1])


def test_scores_and_losses_are_inverse_below_the_cap():
    unit = Unit(-70.0, 12.0)
    losses = np.linspace(-90.0, 100.0, 7)
    np.testing.assert_allclose(unit.to_losses(unit.to_scores(losses)), losses)
    assert unit.to_scores(np.array([np.inf, 1e9])).tolist() == [CAP, CAP]
    assert np.isnan(unit.to_scores(np.array([np.nan]))).all()


@pytest.mark.parametrize("finals", [[2.0], [2.0, 2.0], [np.inf, 3.0, 3.0]])
def test_equal_losses_still_have_a_unit(finals):
    unit = Unit.measure(np.array(finals))
    assert unit.scale > 0
    assert np.isfinite(unit.location)


def problem(rng, n=6):
    root = rng.normal(size=(n, n))
    factor = cholesky(root @ root.T + np.eye(n), lower=True)
    losses = rng.normal(size=n)
    known = np.arange(n) != 2
    expected = rng.normal(size=n)
    prior = UnitPrior(0.1, 0.7, 0.2, 0.5)
    return _UnitSearch(losses, known, expected, np.asfortranarray(factor), prior)


def test_the_gradient_of_the_density_agrees_with_finite_differences():
    search, at = problem(np.random.default_rng(1)), np.array([0.05, -0.3])
    _, gradient = search(at)
    for place in range(2):
        step = np.zeros(2)
        step[place] = 1e-6
        slope = (search(at + step)[0] - search(at - step)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize(("location", "scale"), [(-70.0, 10.0), (0.002, 1e-4), (5e6, 3e5)])
def test_the_unit_of_a_new_task_is_found_whatever_its_size(location, scale):
    rng = np.random.default_rng(3)
    n = 60
    scores = np.minimum(rng.normal(size=n), 1.5)
    truth = Unit(location, scale)
    losses = truth.to_losses(scores)
    noise = 0.1 * np.eye(n, order="F")
    prior = UnitPrior.of_losses(losses[:3])
    found, _ = fit_unit(losses, np.zeros(n, dtype=bool), scores, noise, prior)
    assert found.location == pytest.approx(location, abs=0.2 * scale)
    assert found.scale == pytest.approx(scale, rel=0.2)
