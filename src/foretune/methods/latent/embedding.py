"""Embeddings phi^(m) of every algorithm's hyperparameters into one latent space (Equation 3).

Each algorithm has a network of its own: two hidden layers of rectified units, then the latent
coordinates. The networks of all algorithms are stacked, so that a batch of configurations of many
algorithms is embedded in one call; this side is NumPy, with the gradient that the target's fit
needs. Pre-training happens in `training.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.numerics.networks import random_layers
from foretune.space import Encoded
from foretune.space.algorithms import Algorithms

UNITS = 32
"""The units of each hidden layer."""
DIMENSION = 3
"""The dimensions of the latent space."""
CHUNK = 1024
"""Configurations that a hundred embeddings read at once: each has its own hidden layers of them."""

Stack: TypeAlias = tuple[tuple[Floats, Floats], ...]
"""Weights (M, inputs, outputs) and biases (M, outputs) of each layer of M networks."""


def activations(stack: Stack, x: Floats, which: Ints) -> list[Floats]:
    """The inputs x (n, F) of networks `which` (n,), and what each layer makes of them.

    Units are rectified in all layers but the last.
    """
    groups = [(m, np.flatnonzero(which == m)) for m in np.unique(which).tolist()]
    found = [x]
    for number, (weights, biases) in enumerate(stack):
        after = np.empty((len(x), weights.shape[2]))
        for m, rows in groups:
            after[rows] = found[-1][rows] @ weights[m] + biases[m]
        if number < len(stack) - 1:
            np.maximum(after, 0.0, out=after)
        found.append(after)
    return found


def gradients(stack: Stack, signals: list[Floats], which: Ints, slope: Floats) -> Stack:
    """The gradient with respect to the stack, for `slope` (n, d) with respect to its outputs.

    `signals` are the `activations` of the same batch.
    """
    groups = [(m, np.flatnonzero(which == m)) for m in np.unique(which).tolist()]
    found: list[tuple[Floats, Floats]] = []
    for number in reversed(range(len(stack))):
        weights, biases = stack[number]
        to_weights, to_biases = np.zeros_like(weights), np.zeros_like(biases)
        before = np.empty_like(signals[number])
        for m, rows in groups:
            to_weights[m] = signals[number][rows].T @ slope[rows]
            to_biases[m] = slope[rows].sum(axis=0)
            before[rows] = slope[rows] @ weights[m].T
        slope = before * (signals[number] > 0.0)
        found.append((to_weights, to_biases))
    return tuple(reversed(found))


@dataclass(frozen=True, slots=True)
class AlgorithmEmbedding:
    """The networks of all algorithms, of which the target's fit moves the last layers.

    The latent unit is such that |u|² is 1 on average over what the embedding was trained on.
    """

    algorithms: Algorithms
    stack: Stack
    movable: int = 1
    """The number of last layers that the target's fit moves."""

    @property
    def head(self) -> Stack:
        """The layers that the target's fit moves."""
        return self.stack[len(self.stack) - self.movable :]

    def features(self, x: Encoded) -> Floats:
        """(n, F), what the head reads: the same whatever the fit does."""
        fixed = self.stack[: len(self.stack) - self.movable]
        inputs = self.algorithms.inputs(x)
        if not fixed:
            return inputs
        # The last of the fixed layers is not the last layer of all: its units are rectified.
        return np.maximum(activations(fixed, inputs, self.algorithms.algorithm_of(x))[-1], 0.0)

    def place(self, x: Encoded) -> Floats:
        """(n, d), the latent coordinates before any fit."""
        return activations(self.stack, self.algorithms.inputs(x), self.algorithms.algorithm_of(x))[
            -1
        ]

    def bowl(self, x: Encoded) -> Floats:
        """(n,), |u|²: low where the source was good."""
        squares: Floats = np.square(self.place(x)).sum(axis=1)
        return squares


@dataclass(frozen=True, slots=True)
class Bowls:
    """The bowls of K embeddings, computed together."""

    algorithms: Algorithms
    layers: Stack
    """Weights (K, M, inputs, outputs) and biases (K, M, outputs)."""

    @classmethod
    def of(cls, embeddings: Sequence[AlgorithmEmbedding]) -> "Bowls":
        """Those of at least one embedding."""
        layers = zip(*(each.stack for each in embeddings), strict=True)
        stacked = tuple(
            (np.stack([w for w, _ in layer]), np.stack([b for _, b in layer])) for layer in layers
        )
        return cls(embeddings[0].algorithms, stacked)

    def __call__(self, x: Encoded) -> Floats:
        """(n, K), |u|² in each embedding."""
        inputs, which = self.algorithms.inputs(x), self.algorithms.algorithm_of(x)
        values = np.empty((len(x), len(self.layers[0][0])))
        for m in np.unique(which).tolist():
            of_it = np.flatnonzero(which == m)
            for first in range(0, len(of_it), CHUNK):
                rows = of_it[first : first + CHUNK]
                values[rows] = self._of_algorithm(m, inputs[rows])
        return values

    def _of_algorithm(self, m: int, signal: Floats) -> Floats:
        """(n, K), of n configurations of one algorithm by its inputs (n, F)."""
        for number, (weights, biases) in enumerate(self.layers):
            signal = signal @ weights[:, m] + biases[:, m, None, :]
            if number < len(self.layers) - 1:
                np.maximum(signal, 0.0, out=signal)
        squares: Floats = np.square(signal).sum(axis=2).T
        return squares


def random_stack(algorithms: Algorithms, seed: int) -> Stack:
    """Draw random networks."""
    sizes = (algorithms.width, UNITS, UNITS, DIMENSION)
    return random_layers(np.random.default_rng(seed), sizes, stack=(len(algorithms),))
