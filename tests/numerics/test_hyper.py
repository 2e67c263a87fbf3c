import numpy as np
import pytest

from foretune.numerics.hyper import GPHyper, hyper_bounds, prior_mode, prior_spread


def test_hyperparameters_survive_the_vector_form():
    hyper = GPHyper(np.array([-1.0, 0.5]), 0.3, -7.0, 0.4)
    vector = hyper.to_vector()
    np.testing.assert_array_equal(vector, [-1.0, 0.5, 0.3, -7.0, 0.4])
    np.testing.assert_array_equal(GPHyper.from_vector(vector).to_vector(), vector)


def test_typical_lengthscales_grow_with_the_diagonal_of_the_cube():
    assert np.exp(GPHyper.default(np.arange(1)).log_lengthscales[0]) == pytest.approx(0.2)
    assert np.exp(GPHyper.default(np.arange(25)).log_lengthscales) == pytest.approx(np.ones(25))


def test_the_prior_is_the_one_that_was_measured() -> None:
    """Decision 003: lengthscales 0.2 sqrt(d) with spread 1, log noise -6 with spread 1.5."""
    np.testing.assert_allclose(prior_mode(np.arange(4)), [*np.log([0.4] * 4), 0.0, -6.0, 0.0])
    np.testing.assert_allclose(prior_spread(4), [1.0, 1.0, 1.0, 1.0, 1.0, 1.5, 1.0])


@pytest.mark.parametrize("d", [1, 9, 300])
def test_the_prior_lies_well_within_the_bounds(d):
    low, high = np.array(hyper_bounds(d)).T
    assert (prior_mode(np.arange(d)) - 2.0 * prior_spread(d) > low).all()
    assert (prior_mode(np.arange(d)) + 2.0 * prior_spread(d) < high).all()
    np.testing.assert_array_equal(
        GPHyper.default(np.arange(d)).to_vector(), prior_mode(np.arange(d))
    )


def test_choices_get_lengthscales_in_proportion_to_their_distances():
    """Two random values of 5 choices lie sqrt(1.6) apart, two random numbers sqrt(1/6)."""
    mode = prior_mode(np.array([0, 1, 1, 1, 1, 1]))
    assert np.exp(mode[1] - mode[0]) == pytest.approx(np.sqrt(1.6 * 6))
    assert np.exp(mode[0]) == pytest.approx(0.2 * np.sqrt(2))
