import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from foretune.numerics.gp import (
    CHUNK,
    GP,
    fit_hyper,
    fit_hyper_to_unlearnt,
    negative_log_posterior,
    robust_cholesky,
)
from foretune.numerics.hyper import GPHyper, hyper_bounds, prior_mode, prior_spread
from foretune.numerics.transforms import Standardise

RAW = Standardise(0.0, 1.0)
HYPER = GPHyper(np.log([0.3, 0.8, 2.0]), np.log(1.7), np.log(1e-3), 0.4)


def observations(n: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    return x, np.sin(6.0 * x[:, 0]) + x[:, 1] ** 2 + 0.01 * rng.standard_normal(n)


def reference(hyper: GPHyper) -> GaussianProcessRegressor:
    scales = np.exp(hyper.log_lengthscales)
    kernel = ConstantKernel(np.exp(hyper.log_signal)) * Matern(scales, nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=np.exp(hyper.log_noise), optimizer=None)


@pytest.mark.parametrize("prior_weight", [1.0, 0.01])
def test_gradient_agrees_with_finite_differences(prior_weight: float):
    x, y = observations(15)
    z = (y - y.mean()) / y.std()
    vector = HYPER.to_vector() + 0.1

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        return negative_log_posterior(v, x, z, None, prior_weight)

    _, gradient = objective(vector)
    numeric = approx_fprime(vector, lambda v: objective(v)[0], 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


def test_objective_is_likelihood_times_prior():
    x, y = observations(12)
    gp = GP.condition(x, y, HYPER, units=RAW)
    value, _ = negative_log_posterior(HYPER.to_vector(), x, y)
    deviation = (HYPER.to_vector() - prior_mode(np.arange(3))) / prior_spread(3)
    assert value == pytest.approx(-gp.log_marginal_likelihood + 0.5 * deviation @ deviation)


@pytest.mark.parametrize("units", [RAW, Standardise(3.0, 20.0), None])
def test_likelihood_agrees_with_the_normal_density(units):
    x, y = observations(10)
    gp = GP.condition(x, y, HYPER, units=units)
    noise = np.exp(HYPER.log_noise) * np.eye(10)
    covariance = gp.units.scale**2 * (reference(HYPER).kernel(x) + noise)
    mean = np.full(10, gp.units.shift + gp.units.scale * HYPER.mean)
    expected = multivariate_normal(mean, covariance).logpdf(y)
    assert gp.log_marginal_likelihood == pytest.approx(expected)


@pytest.mark.parametrize("m", [1, 40, CHUNK + 3])
def test_posterior_agrees_with_scikit_learn(m):
    x, y = observations(25)
    x_new = np.random.default_rng(1).random((m, 3))
    mean, std = GP.condition(x, y, HYPER, units=RAW).predict(x_new)
    expected = reference(HYPER).fit(x, y - HYPER.mean).predict(x_new, return_std=True)
    np.testing.assert_allclose(mean, expected[0] + HYPER.mean, rtol=1e-8)
    np.testing.assert_allclose(std, expected[1], rtol=1e-6)


def test_one_observation_by_hand():
    hyper = GPHyper(np.zeros(1), np.log(2.0), np.log(0.5))
    gp = GP.condition(np.array([[0.5]]), np.array([3.0]), hyper, units=RAW)
    mean, std = gp.predict(np.array([[0.5]]))
    assert mean[0] == pytest.approx(3.0 * 2.0 / 2.5)
    assert std[0] == pytest.approx(np.sqrt(2.0 - 4.0 / 2.5))


def test_losses_at_a_point_observed_twice_without_noise_are_averaged():
    x, y = observations(6)
    hyper = GPHyper(HYPER.log_lengthscales, 0.0, np.log(1e-300))
    gp = GP.condition(np.concatenate([x, x[:2]]), np.concatenate([y, y[:2] + 0.2]), hyper)
    mean, _ = gp.predict(x)
    np.testing.assert_allclose(mean[:2], y[:2] + 0.1, atol=1e-3)
    np.testing.assert_allclose(mean[2:], y[2:], atol=1e-3)


def test_draws_have_the_posterior_mean_and_covariance():
    x, y = observations(10)
    gp = GP.condition(x, y, HYPER, units=Standardise(0.0, 10.0))
    x_new = np.random.default_rng(3).random((4, 3))
    draws = gp.sample(x_new, 50_000, np.random.default_rng(4))
    fitted = reference(HYPER).fit(x, y / 10.0 - HYPER.mean)
    mean, covariance = fitted.predict(x_new, return_cov=True)
    error = 5.0 * np.sqrt(covariance.max() / len(draws))
    np.testing.assert_allclose(draws.mean(axis=0) / 10.0, mean + HYPER.mean, atol=error)
    tolerance = 0.03 * covariance.diagonal().max()
    np.testing.assert_allclose(np.cov(draws.T / 10.0), covariance, atol=tolerance)


def test_draws_at_many_near_identical_points_do_not_fail():
    x, y = observations(5)
    x_new = np.repeat(x, 30, axis=0) + 1e-9
    draws = GP.condition(x, y, HYPER).sample(x_new, 2, np.random.default_rng(0))
    assert np.isfinite(draws).all()


def test_robust_cholesky_adds_nothing_where_nothing_is_needed():
    matrix = np.array([[4.0, 2.0], [2.0, 5.0]])
    factor, jitter = robust_cholesky(matrix)
    assert jitter == 0.0
    np.testing.assert_allclose(factor, [[2.0, 0.0], [1.0, 2.0]])


def test_robust_cholesky_mends_singular_matrices_and_refuses_others():
    singular = np.ones((3, 3))
    factor, jitter = robust_cholesky(singular)
    assert 0.0 < jitter < 1e-6
    np.testing.assert_allclose(factor @ factor.T, singular, atol=2.0 * jitter)
    with pytest.raises(np.linalg.LinAlgError):
        robust_cholesky(np.array([[1.0, 9.0], [9.0, 1.0]]))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("d", [1, 9])
def test_few_observations_are_fitted_within_bounds(n, d):
    x, y = observations(n, max(d, 2))
    x = x[:, :d]
    hyper = fit_hyper(x, y)
    low, high = np.array(hyper_bounds(d)).T
    assert (hyper.to_vector() >= low).all()
    assert (hyper.to_vector() <= high).all()
    mean, std = GP.condition(x, y, hyper).predict(x)
    assert np.isfinite(mean).all()
    assert (std >= 0.0).all()


def test_constant_losses_predict_the_constant():
    x, _ = observations(12)
    y = np.full(12, 5.0)
    mean, std = GP.condition(x, y, fit_hyper(x, y)).predict(x + 0.3)
    np.testing.assert_allclose(mean, 5.0, atol=1e-6)
    assert np.isfinite(std).all()


def test_noise_explains_duplicates_that_differ():
    rng = np.random.default_rng(5)
    x = np.repeat(rng.random((10, 2)), 4, axis=0)
    y = np.repeat(rng.random(10), 4) + 0.5 * rng.standard_normal(40)
    hyper = fit_hyper(x, y)
    within = y.reshape(10, 4).var(axis=1, ddof=1).mean() / y.var()
    assert np.exp(hyper.log_noise) == pytest.approx(within, rel=0.5)


def test_noise_stays_small_for_a_smooth_function():
    x = np.random.default_rng(6).random((40, 2))
    assert np.exp(fit_hyper(x, np.sin(4.0 * x[:, 0]) + x[:, 1]).log_noise) < 1e-3


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_predictions_follow_the_unit_of_the_losses(scale, shift):
    x, y = observations(20)
    y = np.round(y, 3) + shift
    hyper = fit_hyper(x, y)
    scaled_hyper = fit_hyper(x, scale * y)
    np.testing.assert_allclose(scaled_hyper.to_vector(), hyper.to_vector(), atol=1e-2)
    x_new = np.random.default_rng(7).random((10, 3))
    mean, std = GP.condition(x, y, hyper).predict(x_new)
    scaled_mean, scaled_std = GP.condition(x, scale * y, hyper).predict(x_new)
    np.testing.assert_allclose(scaled_mean / scale, mean, rtol=1e-6)
    np.testing.assert_allclose(scaled_std / scale, std, rtol=1e-6)


def test_lengthscales_order_inputs_by_how_much_they_matter():
    x = np.random.default_rng(8).random((60, 4))
    y = np.sin(10.0 * x[:, 2]) + 0.5 * np.sin(3.0 * x[:, 0]) + 0.2 * x[:, 3]
    order = np.argsort(fit_hyper(x, y).log_lengthscales)
    np.testing.assert_array_equal(order, [2, 0, 3, 1])


def test_the_better_of_several_starts_is_kept():
    x, y = observations(30)
    z = (y - y.mean()) / y.std()
    stuck = GPHyper(np.full(3, np.log(0.01)), 0.0, np.log(2.0))
    starts = (stuck, GPHyper.default(np.arange(3)))

    def objective(hyper: GPHyper) -> float:
        return negative_log_posterior(hyper.to_vector(), x - x.mean(axis=0), z)[0]

    alone = [objective(fit_hyper(x, y, starts=(start,))) for start in starts]
    assert objective(fit_hyper(x, y, starts=starts)) == pytest.approx(min(alone))


def test_a_warm_start_reaches_the_same_optimum():
    x, y = observations(40)
    cold = fit_hyper(x, y)
    warm = fit_hyper(x, y, starts=(fit_hyper(x[:32], y[:32]),))
    cold_gp, warm_gp = GP.condition(x, y, cold), GP.condition(x, y, warm)
    difference = warm_gp.log_marginal_likelihood - cold_gp.log_marginal_likelihood
    assert abs(difference) < 0.5


def test_columns_of_a_group_share_their_lengthscale():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(size=(30, 1)), np.eye(3)[rng.integers(3, size=30)]], axis=1)
    y = np.sin(4 * x[:, 0]) + x[:, 1:] @ [0.0, 1.0, 3.0]
    hyper = fit_hyper(x, y, groups=np.array([0, 1, 1, 1]))
    assert len(np.unique(hyper.log_lengthscales[1:])) == 1
    assert hyper.log_lengthscales[0] != hyper.log_lengthscales[1]


def test_the_gradient_of_shared_lengthscales_agrees_with_finite_differences():
    rng = np.random.default_rng(0)
    x, y, groups = rng.uniform(size=(12, 4)), rng.normal(size=12), np.array([0, 1, 1, 0])
    vector = prior_mode(groups) + 0.1
    _, gradient = negative_log_posterior(vector, x, y, groups=groups)

    def value(v):
        return negative_log_posterior(v, x, y, groups=groups)[0]

    np.testing.assert_allclose(gradient, approx_fprime(vector, value, 1e-6), rtol=1e-3, atol=1e-3)


def test_a_light_prior_leaves_the_choice_to_the_likelihood():
    x, y = observations(25)
    z = (y - y.mean()) / y.std()

    def surprise(hyper: GPHyper) -> float:
        return negative_log_posterior(hyper.to_vector(), x - x.mean(axis=0), z, None, 0)[0]

    light, full = (fit_hyper(x, y, prior_weight=weight) for weight in (1e-4, 1.0))
    assert surprise(light) < surprise(full) - 0.1


def test_the_best_of_several_starts_is_kept():
    x, y = observations(12)
    near = GPHyper.default(np.arange(3))
    far = GPHyper(np.log([500.0, 500.0, 500.0]), np.log(1e-3), np.log(1.0), 5.0)
    for starts in ((near, far), (far, near)):
        found = fit_hyper(x, y, starts=starts, max_iterations=2)
        np.testing.assert_array_equal(
            found.to_vector(), fit_hyper(x, y, starts=[near], max_iterations=2).to_vector()
        )


def test_a_fit_keeps_the_unit_that_is_given():
    x, y = observations(20)
    small = fit_hyper(x, 0.01 * y, units=RAW).log_signal
    assert small < fit_hyper(x, 0.01 * y).log_signal - 2.0


def test_a_fit_of_groups_begins_where_it_is_told():
    x, y = observations(12)
    start = GPHyper(np.log([0.3, 0.3, 2.0]), np.log(1.7), np.log(1e-3), 0.4)
    found = fit_hyper(x, y, starts=[start], groups=np.array([0, 0, 1]), max_iterations=1)
    np.testing.assert_allclose(found.to_vector(), start.to_vector(), atol=0.5)


def test_the_mean_alone_is_that_of_the_prediction():
    x, y = observations(10)
    process = GP.condition(x, y, HYPER)
    new = observations(CHUNK + 5, seed=1)[0]
    np.testing.assert_allclose(process.mean(new), process.predict(new)[0])


def test_complete_records_leave_nothing_to_chance():
    x, y = observations(30)
    process = GP.condition(x, y, GPHyper(np.zeros(3), 0.0, -40.0))
    std = process.predict(x)[1]
    assert (std >= 0.0).all()
    assert std.max() < 1e-3


def test_hyperparameters_fitted_to_unlearnt_losses_find_the_noise() -> None:
    """A network that places learnt trials by their losses hides the noise from a plain fit."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(60)
    groups = np.zeros(1, dtype=np.int64)
    parts = []
    for learnt in (np.arange(60) % 2 == 0, np.arange(60) % 2 == 1):
        place = np.where(learnt, 0.2 * y, 0.2 * rng.standard_normal(60))
        parts.append((place[:, None], learnt))
    x, learnt = parts[0]
    plain = fit_hyper(x[learnt], y[learnt], groups=groups)
    honest = fit_hyper_to_unlearnt(parts, y, start=plain, groups=groups)
    unlearnt = ~learnt
    squared = []
    for hyper in (plain, honest):
        mean, std = GP.condition(x[learnt], y[learnt], hyper).predict(x[unlearnt])
        variance = std**2 + np.exp(hyper.log_noise) * y[learnt].var()
        squared.append(np.mean((y[unlearnt] - mean) ** 2 / variance))
    assert squared[0] > 5.0
    assert 0.5 < squared[1] < 2.0
