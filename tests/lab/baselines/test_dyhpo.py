"""DyHPO: features and kernel by hand, its likelihood against SciPy's, its gradient, its choice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.stats import multivariate_normal

from foretune_lab.baselines.dyhpo import (
    LEAST_NOISE,
    DeepKernel,
    DyhpoModel,
    Reports,
    covariance,
    covariance_of,
    features,
    initial_kernel,
    negative_log_likelihood,
)
from foretune_lab.baselines.step_tuner import SeenCurves


def some_reports(n: int = 5, levels: int = 4) -> Reports:
    rng = np.random.default_rng(1)
    return Reports(*(jnp.asarray(rng.random(shape)) for shape in ((n, 2), (n,), (n, levels))))


def in_double(kernel: DeepKernel) -> DeepKernel:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=jnp.float64), kernel)


def test_features_are_two_layers_and_the_highest_channel_of_the_curve() -> None:
    with jax.enable_x64(True):
        kernel, reports = in_double(initial_kernel(2, seed=0)), some_reports()
        found = np.asarray(jax.jit(features)(kernel, reports))
    leaky = lambda z: np.where(z > 0, z, 0.01 * z)  # noqa: E731
    for row in range(5):
        inputs = np.array([*reports.x[row], reports.share[row]])
        hidden = leaky(inputs @ np.asarray(kernel.inputs[0]) + np.asarray(kernel.inputs[1]))
        weights, biases = (np.asarray(part) for part in kernel.convolution)
        curve = np.asarray(reports.curve[row])
        channels = np.max([curve[i : i + 3] @ weights + biases for i in range(2)], axis=0)
        weights, biases = (np.asarray(part) for part in kernel.outputs)
        by_hand = leaky(np.concatenate([hidden, channels]) @ weights + biases)
        np.testing.assert_allclose(found[row], by_hand, rtol=1e-9, atol=1e-12)


def test_the_kernel_is_squared_exponential() -> None:
    """At the squared distance 25 with the length 2 and the signal 3: 3 exp(-25 / 8)."""
    kernel = initial_kernel(1, seed=0)._replace(log_length=jnp.log(2.0), log_signal=jnp.log(3.0))
    a, b = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]])
    by_hand = [[3 * np.exp(-25 / 8), 3.0]]
    single = jax.jit(covariance)(kernel, jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose(single, by_hand, 1e-5)
    np.testing.assert_allclose(covariance_of(kernel, a, b), by_hand, 1e-6)


def test_the_likelihood_is_that_of_a_normal_distribution() -> None:
    rng = np.random.default_rng(2)
    losses = rng.normal(size=5)
    with jax.enable_x64(True):
        kernel, reports = in_double(initial_kernel(2, seed=3)), some_reports()
        counts = jnp.array([1.0, 1, 1, 0, 1])
        found = jax.jit(negative_log_likelihood)(kernel, reports, jnp.asarray(losses), counts)
        phi = np.asarray(jax.jit(features)(kernel, reports))
    full = covariance_of(kernel, phi, phi)
    keep = [0, 1, 2, 4]
    noise = np.exp(float(kernel.log_noise)) + LEAST_NOISE
    among = full[np.ix_(keep, keep)] + noise * np.eye(4)
    by_scipy = -multivariate_normal(np.zeros(4), among).logpdf(losses[keep]) / 4
    assert float(found) == pytest.approx(by_scipy)


def test_the_gradient_is_that_of_finite_differences() -> None:
    with jax.enable_x64(True):
        kernel, reports = in_double(initial_kernel(2, seed=4)), some_reports()
        losses = jnp.asarray(np.random.default_rng(5).normal(size=5))
        vector, unravel = ravel_pytree(kernel)

        @jax.jit
        def surprise(vector: jax.Array) -> jax.Array:
            return negative_log_likelihood(unravel(vector), reports, losses, jnp.ones(5))

        gradient = jax.jit(jax.grad(surprise))(vector)
        for place in [*range(0, len(vector), 2001), -3, -2, -1]:
            step = jnp.zeros_like(vector).at[place].set(1e-6)
            slope = (surprise(vector + step) - surprise(vector - step)) / 2e-6
            assert gradient[place] == pytest.approx(float(slope), abs=1e-6)


def test_predictions_are_those_of_the_conditional_normal_distribution() -> None:
    """At a report that is known with little noise, the mean is near to it and the spread small."""
    model = DyhpoModel(seed=0)
    model._kernel = initial_kernel(2, seed=6)._replace(log_length=jnp.asarray(-2.0))
    z = np.array([1.0, -1.0, 0.5, 0.0, -0.5])
    reports = Reports(*(jnp.asarray(c, dtype=jnp.float32) for c in some_reports()))
    mean, std = model._predict(reports, z, reports, 5)
    phi = np.asarray(jax.jit(features)(model._kernel, reports), dtype=float)
    among = covariance_of(model._kernel, phi, phi)
    inverse = np.linalg.inv(among + (np.exp(-4.0) + LEAST_NOISE) * np.eye(5))
    np.testing.assert_allclose(mean, among @ inverse @ z, rtol=1e-5)
    variance = 1.0 - np.diag(among @ inverse @ among)
    np.testing.assert_allclose(std, np.sqrt(np.maximum(variance, 1e-10)), rtol=1e-4)


def test_neighbours_of_good_configurations_go_on() -> None:
    """Configurations below 0.5 lose 0.1, the others 0.9, at each of the first two levels."""
    x = np.linspace(0.0, 1.0, 12)[:, None]
    curves = {m: [0.1, 0.1] if m < 6 else [0.9, 0.9] for m in (0, 1, 2, 4, 7, 9, 10, 11)}
    scores = DyhpoModel(seed=0).score(SeenCurves(x, 5, curves), np.array([3, 8]))
    assert scores[0] > scores[1]
