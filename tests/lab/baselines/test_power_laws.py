"""DPL: its law against numbers by hand, its gradient, and curves whose ends it ranks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from foretune_lab.baselines.power_laws import (
    BATCH,
    CHUNK,
    MEMBERS,
    PowerLawModel,
    draw_batches,
    mean_error,
    power_law,
)
from foretune_lab.baselines.step_tuner import SeenCurves


def test_the_law_of_a_configuration() -> None:
    """One linear layer: alpha 0.1 + x, beta 2, gamma 1. z sigmoid(z) is 1.761594 and 0.731059."""
    layers = [(jnp.array([[1.0, 0.0, 0.0]]), jnp.array([0.1, 2.0, 1.0]))]
    found = power_law(layers, jnp.array([[0.0], [0.5]]), jnp.array([0.25, 1.0]))
    by_hand = [0.1 + 1.761594 * 4**0.731059, 0.6 + 1.761594]
    np.testing.assert_allclose(found, by_hand, rtol=1e-5)


def test_the_gradient_is_that_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        layers = [
            (jnp.asarray(rng.normal(size=(2, 4))), jnp.asarray(rng.normal(size=4))),
            (jnp.asarray(rng.normal(size=(4, 3))), jnp.asarray(rng.normal(size=3))),
        ]
        x, share = jnp.asarray(rng.random((6, 2))), jnp.linspace(0.2, 1.0, 6)
        losses, counts = jnp.asarray(rng.random(6)), jnp.array([1.0, 1, 1, 1, 0, 0])
        vector, unravel = ravel_pytree(layers)

        @jax.jit
        def error(vector: jax.Array) -> jax.Array:
            return mean_error(unravel(vector), x, share, losses, counts)

        gradient = jax.jit(jax.grad(error))(vector)
        for place in range(0, len(vector), 5):
            step = jnp.zeros_like(vector).at[place].set(1e-6)
            slope = (error(vector + step) - error(vector - step)) / 2e-6
            assert gradient[place] == pytest.approx(float(slope), abs=1e-6)


def test_reports_that_do_not_count_change_nothing() -> None:
    layers = [(jnp.ones((1, 3)), jnp.zeros(3))]
    x, share = jnp.array([[0.1], [0.9]]), jnp.array([0.5, 0.5])
    both = [
        mean_error(layers, x, share, jnp.array([0.2, loss]), jnp.array([1.0, 0.0]))
        for loss in (0.0, 9.0)
    ]
    assert both[0] == both[1]


def test_batches_hold_each_report_once_and_the_newest_always() -> None:
    rows, counts = draw_batches(5, 3, np.random.default_rng(0))
    assert rows.shape == counts.shape == (CHUNK, MEMBERS, BATCH + 1)
    assert sorted(rows[0, 0][:BATCH][counts[0, 0][:BATCH] > 0].tolist()) == [0, 1, 2, 3, 4]
    assert (rows[..., BATCH] == 3).all()
    assert (counts.sum(axis=-1) == 6).all()
    _, without = draw_batches(5, -1, np.random.default_rng(0))
    assert (without.sum(axis=-1) == 5).all()


def test_the_configuration_whose_law_ends_lowest_goes_on() -> None:
    """All begin at 0.9. The first half falls to 0.1 at the end of ten levels, the others to 0.7."""
    x = np.repeat([[0.0], [1.0]], 4, axis=0) + np.linspace(0.0, 0.1, 8)[:, None]
    gamma = [0.95 if member < 4 else 0.11 for member in range(8)]
    curves = {
        member: [0.9 * level ** -gamma[member] for level in range(1, 5)]
        for member in (0, 1, 2, 4, 5, 6)
    }
    scores = PowerLawModel(seed=0).score(SeenCurves(x, 10, curves), np.array([2, 3, 6, 7]))
    assert scores.shape == (4,)
    assert min(scores[:2]) > max(scores[2:])
