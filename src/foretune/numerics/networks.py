"""Small networks as plain layers in NumPy, so that predictions never wait for a compiler."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats

Layers: TypeAlias = tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]
"""Weights (inputs, outputs) and biases (outputs,) of each layer."""


Reals = TypeVar("Reals", Floats, NDArray[np.float32])


def random_layers(
    rng: np.random.Generator, sizes: Sequence[int], stack: tuple[int, ...] = ()
) -> tuple[tuple[Floats, Floats], ...]:
    """Return layers of the given widths: He-normal weights for rectified units, biases of 0.

    `stack` is the shape of several networks at once: weights (*stack, inputs, outputs).
    """
    return tuple(
        (rng.normal(0.0, np.sqrt(2.0 / fan_in), (*stack, fan_in, out)), np.zeros((*stack, out)))
        for fan_in, out in pairwise(sizes)
    )


def initial_layers(
    rng: np.random.Generator, sizes: Sequence[int], stack: tuple[int, ...] = ()
) -> Layers:
    """Return first layers in single precision, for training."""
    return tuple(
        (weights.astype(np.float32), biases.astype(np.float32))
        for weights, biases in random_layers(rng, sizes, stack)
    )


def apply_relu_layers(layers: Layers, x: Reals) -> Reals:
    """Return the activations (n, width) of the last of `layers`; max(., 0) follows each layer."""
    for weights, biases in layers:
        x = np.maximum(x @ weights + biases, 0.0)
    return x


def softplus(x: Floats) -> Floats:
    """Return log(1 + exp x), without overflow."""
    return np.logaddexp(0.0, x)
