"""The one training loop."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from foretune.numerics import training
from foretune.numerics.training import cache_compilation, start_descent

advance = jax.jit(training.advance, static_argnums=0)


def weighted_bowl(point: jax.Array, weight: jax.Array) -> jax.Array:
    return weight * jnp.sum(jnp.square(point - 1.0))


def test_a_step_without_a_finite_gradient_is_not_taken() -> None:
    start = start_descent(jnp.zeros(2))
    broken = jnp.asarray([1.0, jnp.nan, 2.0, jnp.inf])
    with_broken = advance(weighted_bowl, start, broken, jnp.asarray([0.1, 0.2, 0.3, 0.4]))
    without = advance(weighted_bowl, start, jnp.asarray([1.0, 2.0]), jnp.asarray([0.1, 0.3]))

    np.testing.assert_allclose(with_broken.params, without.params, rtol=1e-6)
    for kept, expected in zip(
        jax.tree.leaves(with_broken.moments), jax.tree.leaves(without.moments), strict=True
    ):
        np.testing.assert_allclose(kept, expected, rtol=1e-6)


def test_many_arrays_move_as_each_would_by_adam() -> None:
    """By optax, array by array."""
    rng = np.random.default_rng(0)
    params = {"a": jnp.asarray(rng.normal(size=(2, 3))), "b": [jnp.asarray(2.0), jnp.zeros(4)]}
    rates = jnp.asarray([0.1, 0.1, 0.05])

    def loss(params: dict, weight: jax.Array) -> jax.Array:
        leaves = jax.tree.leaves(params)
        return weight * sum(jnp.sum(jnp.square(leaf - n)) for n, leaf in enumerate(leaves))

    found = advance(loss, start_descent(params), jnp.asarray([1.0, 2.0, 3.0]), rates).params

    @jax.jit
    def by_optax(params: dict, moments: optax.OptState, weight: float, rate: float) -> tuple:
        updates, moments = optax.scale_by_adam().update(jax.grad(loss)(params, weight), moments)
        return jax.tree.map(lambda old, update: old - rate * update, params, updates), moments

    moments = optax.scale_by_adam().init(params)
    for weight, rate in zip([1.0, 2.0, 3.0], rates, strict=True):
        params, moments = by_optax(params, moments, weight, rate)
    jax.tree.map(lambda ours, theirs: np.testing.assert_allclose(ours, theirs, 1e-4), found, params)


def test_networks_stay_single_where_jax_computes_in_double() -> None:
    """As in a program whose own work asks JAX for 64 bits."""
    with jax.enable_x64(True):
        start = {"a": jnp.zeros(2, jnp.float32), "b": jnp.zeros((), jnp.float32)}
        rates = jnp.asarray(np.full(3, 0.1))
        assert rates.dtype == jnp.float64

        def loss(params: dict, weight: jax.Array) -> jax.Array:
            return weighted_bowl(params["a"], weight) + weighted_bowl(params["b"], weight)

        descent = advance(loss, start_descent(start), rates, rates)
    assert {leaf.dtype for leaf in jax.tree.leaves(descent.params)} == {np.dtype(np.float32)}
    assert descent.params["b"] > 0.2


def test_a_descent_in_two_parts_is_one_descent() -> None:
    rates = jnp.full(6, 0.1)
    whole = advance(weighted_bowl, start_descent(jnp.zeros(2)), rates, rates)
    half = advance(weighted_bowl, start_descent(jnp.zeros(2)), rates[:3], rates[:3])
    both = advance(weighted_bowl, half, rates[3:], rates[3:])
    np.testing.assert_allclose(both.params, whole.params, rtol=1e-6)


def test_a_whole_array_is_held_by_one_word() -> None:
    start = {"held": jnp.zeros((2, 3)), "free": jnp.zeros(2)}
    may_move = {"held": jnp.asarray(False), "free": jnp.asarray([True, False])}

    def loss(params: dict, _: jax.Array) -> jax.Array:
        return weighted_bowl(params["held"], 1.0) + weighted_bowl(params["free"], 1.0)

    rates = jnp.full(3, 0.1)
    moved = advance(loss, start_descent(start), rates, rates, trainable=may_move).params
    assert not moved["held"].any()
    assert moved["free"][0] > 0.2
    assert moved["free"][1] == 0.0


def test_untrainable_weights_stay() -> None:
    moved = advance(
        weighted_bowl,
        start_descent(jnp.zeros(2)),
        jnp.ones(3),
        jnp.full(3, 0.1),
        trainable=jnp.asarray([True, False]),
    )

    assert moved.params[0] > 0.2
    assert moved.params[1] == 0.0


def test_another_cache_folder_stands(tmp_path) -> None:
    before = jax.config.jax_compilation_cache_dir
    try:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        cache_compilation()
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
