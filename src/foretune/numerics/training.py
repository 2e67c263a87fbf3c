"""Training small networks in JAX: plain lists of layers, float32.

Nothing here is random. NumPy draws random numbers before a training starts, because XLA needs
longer to compile those of JAX than most trainings take.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from foretune.errors import MissingExtraError
from foretune.numerics.networks import Layers

try:
    import jax
    import jax.numpy as jnp
    import optax
    from jax.flatten_util import ravel_pytree
except ImportError as missing:
    raise MissingExtraError("jax", "neural", "learning a network from past tasks") from missing

Layer: TypeAlias = tuple[jax.Array, jax.Array]
"""Weights (inputs, outputs) and biases (outputs,)."""
Params = TypeVar("Params")
"""Any pytree of parameters."""
Given = TypeVar("Given")
"""Any pytree that the loss of a step reads, such as a batch."""


class Descent(NamedTuple, Generic[Params]):
    """The parameters during a training, and the moments of the optimiser."""

    params: Params
    moments: optax.OptState


def cache_compilation() -> None:
    """Keep compiled code in the user's cache folder, so that the next process need not compile.

    A folder that was chosen before is kept.
    """
    from platformdirs import user_cache_path

    if jax.config.jax_compilation_cache_dir is not None:  # type: ignore[attr-defined]
        return
    folder = str(user_cache_path("foretune") / "xla")
    jax.config.update("jax_compilation_cache_dir", folder)  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)  # type: ignore[no-untyped-call]


def start_descent(params: Params) -> Descent[Params]:
    """Return the descent before its first step."""
    leaves = jax.tree.leaves(params)
    size = sum(np.size(leaf) for leaf in leaves)
    return Descent(params, optax.scale_by_adam().init(jnp.zeros(size, jnp.result_type(*leaves))))


def advance(
    loss: Callable[[Params, Given], jax.Array],
    descent: Descent[Params],
    given: Given,
    rates: jax.Array,
    trainable: Params | None = None,
) -> Descent[Params]:
    """Take one step of Adam for each of the rates. Call it under `jit`.

    The loss of each step reads its entry of `given`, arrays with a leading axis of steps.
    Parameters move where `trainable` is true; it is shaped like them or broadcast to them. None
    means all. A step whose gradient is not finite (because a covariance did not factorise) is left
    out: it would make every parameter NaN.
    """
    optimiser = optax.scale_by_adam()
    # All arrays in one vector: XLA compiles Adam once for each array.
    start, as_params = ravel_pytree(descent.params)
    moves = None if trainable is None else _spread(trainable, descent.params)
    # If JAX is told to compute in 64 bits, rates made of Python numbers have 64 bits.
    rates = rates.astype(start.dtype)

    def step(
        descent: Descent[jax.Array], now: tuple[jax.Array, Given]
    ) -> tuple[Descent[jax.Array], None]:
        rate, its_given = now
        gradient = jax.grad(lambda vector: loss(as_params(vector), its_given))(descent.params)
        updates, moments = optimiser.update(gradient, descent.moments)
        moved = descent.params - rate * updates
        if moves is not None:
            moved = jnp.where(moves, moved, descent.params)
        taken = partial(jnp.where, jnp.isfinite(gradient).all())
        return jax.tree.map(taken, Descent(moved, moments), descent), None

    end, _ = jax.lax.scan(step, Descent(start, descent.moments), (rates, given))
    return Descent(as_params(end.params), end.moments)


def _spread(trainable: Params, params: Params) -> jax.Array:
    """Return (parameters,), whether each may move."""
    entries = jax.tree.map(lambda may, leaf: jnp.broadcast_to(may, leaf.shape), trainable, params)
    return ravel_pytree(entries)[0]


def bucket(n: int, *, least: int) -> int:
    """Return the next power of two, at least `least`. Padded sizes mean few compiled shapes."""
    return max(least, 1 << max(n - 1, 0).bit_length())


def jax_layers(layers: Iterable[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> list[Layer]:
    """Return NumPy layers as JAX arrays."""
    return [(jnp.asarray(weights), jnp.asarray(biases)) for weights, biases in layers]


def as_arrays(layers: Sequence[Layer]) -> Layers:
    """Return the layers as NumPy arrays, for saving and for prediction."""
    return tuple((np.asarray(weights), np.asarray(biases)) for weights, biases in layers)
