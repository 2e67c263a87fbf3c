"""The one training loop."""

import jax
import jax.numpy as jnp
import numpy as np

from foretune.numerics.training import advance, begun


def weighted_bowl(point: jax.Array, weight: jax.Array) -> jax.Array:
    return weight * jnp.sum(jnp.square(point - 1.0))


def test_a_step_without_a_finite_gradient_is_not_taken() -> None:
    start = begun(jnp.zeros(2))
    broken = jnp.asarray([1.0, jnp.nan, 2.0, jnp.inf])
    with_broken = advance(weighted_bowl, start, broken, jnp.asarray([0.1, 0.2, 0.3, 0.4]))
    without = advance(weighted_bowl, start, jnp.asarray([1.0, 2.0]), jnp.asarray([0.1, 0.3]))

    np.testing.assert_allclose(with_broken.params, without.params, rtol=1e-6)
    for kept, expected in zip(
        jax.tree.leaves(with_broken.moments), jax.tree.leaves(without.moments), strict=True
    ):
        np.testing.assert_allclose(kept, expected, rtol=1e-6)


def test_what_is_not_trainable_stays() -> None:
    moved = advance(
        weighted_bowl,
        begun(jnp.zeros(2)),
        jnp.ones(3),
        jnp.full(3, 0.1),
        trainable=jnp.asarray([True, False]),
    )

    assert moved.params[0] > 0.2
    assert moved.params[1] == 0.0
