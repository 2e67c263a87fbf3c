import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from foretune_lab.baselines.regression import (
    LOG_PRECISIONS,
    Regression,
    fit_precisions,
    fit_precisions_to_unlearnt,
)

RNG = np.random.default_rng(3)
PHI = RNG.standard_normal((12, 4))
Z = PHI @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * RNG.standard_normal(12)
LOG_ALPHA, LOG_BETA = 0.4, 1.7


def test_one_feature_by_hand():
    # alpha = 1, beta = 4: precision 1 + 4 (1 + 4) = 21, mean 4 (1 * 1 + 2 * 3) / 21.
    found = Regression.of(np.array([[1.0], [2.0]]), np.array([1.0, 3.0]), 0.0, np.log(4.0))
    assert found.covariance == pytest.approx(np.array([[1 / 21]]))
    assert found.mean == pytest.approx([28 / 21])


def test_the_posterior_is_the_closed_form():
    found = Regression.of(PHI, Z, LOG_ALPHA, LOG_BETA)
    alpha, beta = np.exp(LOG_ALPHA), np.exp(LOG_BETA)
    covariance = np.linalg.inv(alpha * np.eye(4) + beta * PHI.T @ PHI)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-10)
    np.testing.assert_allclose(found.mean, beta * covariance @ PHI.T @ Z, rtol=1e-10)


@pytest.mark.parametrize("n", [1, 3, 12])
def test_the_surprise_is_that_of_the_joint_normal(n):
    alpha, beta = np.exp(LOG_ALPHA), np.exp(LOG_BETA)
    covariance = PHI[:n] @ PHI[:n].T / alpha + np.eye(n) / beta
    expected = -multivariate_normal(np.zeros(n), covariance).logpdf(Z[:n])
    assert Regression.of(PHI[:n], Z[:n], LOG_ALPHA, LOG_BETA).surprise == pytest.approx(expected)


def test_the_gradients_are_those_of_the_surprise():
    found = Regression.of(PHI, Z, LOG_ALPHA, LOG_BETA)

    def by_precisions(precisions):
        return Regression.of(PHI, Z, *precisions).surprise

    def by_features(phi):
        return Regression.of(phi.reshape(PHI.shape), Z, LOG_ALPHA, LOG_BETA).surprise

    slopes = approx_fprime(np.array([LOG_ALPHA, LOG_BETA]), by_precisions, 1e-7)
    np.testing.assert_allclose(found.to_precisions, slopes, atol=1e-4)
    slopes = approx_fprime(PHI.ravel(), by_features, 1e-7)
    np.testing.assert_allclose(found.to_features.ravel(), slopes, atol=1e-4)


def test_fitted_precisions_agree_with_evidence_maximisation():
    phi = np.random.default_rng(0).standard_normal((200, 4))
    z = phi @ np.array([2.0, -1.0, 0.5, 1.0]) + 0.4 * np.random.default_rng(1).standard_normal(200)
    reference = BayesianRidge(
        fit_intercept=False, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-10, max_iter=5000
    ).fit(phi, z)
    log_alpha, log_beta = fit_precisions(phi, z, np.zeros(2))
    assert np.exp(log_alpha) == pytest.approx(reference.lambda_, rel=1e-3)
    assert np.exp(log_beta) == pytest.approx(reference.alpha_, rel=1e-3)
    np.testing.assert_allclose(
        Regression.of(phi, z, log_alpha, log_beta).mean, reference.coef_, rtol=1e-4
    )


def test_losses_that_say_nothing_stay_within_the_bounds():
    fitted = fit_precisions(PHI[:3], np.zeros(3), np.zeros(2))
    assert np.all((LOG_PRECISIONS[0] <= fitted) & (fitted <= LOG_PRECISIONS[1]))


def test_precisions_fitted_to_unlearnt_losses_predict_them_best() -> None:
    """Features that repeat half of the losses exactly say nothing about noise; the others do."""
    rng = np.random.default_rng(4)
    n, noise = 400, 0.5
    z = rng.standard_normal(n) * noise
    parts = []
    for learnt in (np.arange(n) % 2 == 0, np.arange(n) % 2 == 1):
        # The feature repeats what it has learnt. Elsewhere it is chance.
        feature = np.where(learnt, z, noise * rng.standard_normal(n))
        parts.append((feature[:, None], z, learnt))
    start = np.log([1.0, 100.0])
    naive = fit_precisions(parts[0][0][parts[0][2]], z[parts[0][2]], start)
    honest = fit_precisions_to_unlearnt(parts, start)
    assert np.exp(naive[1]) == pytest.approx(np.exp(LOG_PRECISIONS[1]))
    # A prediction of 0 is best, and its noise is that of the losses.
    assert np.exp(-0.5 * honest[1]) == pytest.approx(noise, rel=0.1)
    assert np.exp(honest[0]) > 100.0
