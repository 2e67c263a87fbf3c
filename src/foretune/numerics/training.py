"""Training small networks in JAX: plain lists of layers, float32, explicit random keys."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from foretune.errors import MissingExtraError
from foretune.numerics.networks import Layers

try:
    import jax
    import jax.numpy as jnp
    import optax
except ImportError as missing:
    raise MissingExtraError("jax", "neural", "learning a network from past tasks") from missing

Layer: TypeAlias = tuple[jax.Array, jax.Array]
"""Weights (inputs, outputs) and biases (outputs,)."""
Params = TypeVar("Params")
"""Any pytree of parameters."""
Given = TypeVar("Given")
"""Any pytree that a step's loss is given: a random key, a batch."""


class Descent(NamedTuple, Generic[Params]):
    """Parameters on their way down, and the optimiser's memory of the way."""

    params: Params
    moments: optax.OptState


def keep_compiled() -> None:
    """Keep what XLA compiles in the user's cache folder: the next process starts in no time."""
    from platformdirs import user_cache_path

    folder = str(user_cache_path("foretune") / "xla")
    jax.config.update("jax_compilation_cache_dir", folder)  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)  # type: ignore[no-untyped-call]


def initial_layers(key: jax.Array, sizes: Sequence[int]) -> list[Layer]:
    """Layers of the given widths: He-normal weights for rectified units, no bias."""
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (fan_in, out)) * jnp.sqrt(2.0 / fan_in), jnp.zeros(out))
        for k, (fan_in, out) in zip(keys, pairwise(sizes), strict=True)
    ]


def hidden(layers: Sequence[Layer], x: jax.Array, key: jax.Array, dropout: float) -> jax.Array:
    """The last layer's rectified activations (n, width), in training: units drop out.

    All layers have one width, and draw together: random numbers are what XLA compiles slowest.
    """
    keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(len(layers)))
    shape = (len(x), len(layers[0][1]))
    kept = jax.vmap(partial(jax.random.bernoulli, p=1.0 - dropout, shape=shape))(keys)
    for (weights, biases), its_kept in zip(layers, kept, strict=True):
        x = jax.nn.relu(x @ weights + biases)
        x = jnp.where(its_kept, x / (1.0 - dropout), 0.0)
    return x


def descend(
    loss: Callable[[Params, jax.Array], jax.Array],
    params: Params,
    key: jax.Array,
    rates: jax.Array,
) -> Params:
    """Adam for one step a rate; the loss draws by the random key of its step. Under `jit`."""
    return advance(loss, begun(params), jax.random.split(key, len(rates)), rates).params


def begun(params: Params) -> Descent[Params]:
    """A descent that has not moved yet."""
    return Descent(params, optax.scale_by_adam().init(params))


def advance(
    loss: Callable[[Params, Given], jax.Array],
    descent: Descent[Params],
    given: Given,
    rates: jax.Array,
    trainable: Params | None = None,
) -> Descent[Params]:
    """Adam for one step a rate: the one training loop. To be called under `jit`.

    Each step's loss is given its entry of `given`, arrays with a leading axis of steps. Parameters
    move where `trainable`, shaped like them or broadcast to them, is true: everywhere if None.
    A step whose gradient is not finite (a covariance that did not factorise) is not taken: it
    would leave no parameter a number.
    """
    optimiser = optax.scale_by_adam()

    def step(
        descent: Descent[Params], now: tuple[jax.Array, Given]
    ) -> tuple[Descent[Params], None]:
        rate, its_given = now
        gradient = jax.grad(loss)(descent.params, its_given)
        updates, moments = optimiser.update(gradient, descent.moments)
        moved = jax.tree.map(lambda p, u: p - rate * u, descent.params, updates)
        if trainable is not None:
            moved = jax.tree.map(jnp.where, trainable, moved, descent.params)
        taken = partial(jnp.where, _all_finite(gradient))
        return jax.tree.map(taken, Descent(moved, moments), descent), None

    return jax.lax.scan(step, descent, (rates, given))[0]


def _all_finite(gradient: Params) -> jax.Array:
    """(), whether every entry is a finite number."""
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient)]).all()


def bucket(n: int, *, least: int) -> int:
    """The next power of two, at least `least`: sizes are padded so that few shapes are compiled."""
    return max(least, 1 << max(n - 1, 0).bit_length())


def as_arrays(layers: Sequence[Layer]) -> Layers:
    """The layers as NumPy arrays, for saving and for prediction."""
    return tuple((np.asarray(weights), np.asarray(biases)) for weights, biases in layers)
