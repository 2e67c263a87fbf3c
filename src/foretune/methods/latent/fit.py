"""Fitting the process and the embedding's last layer to the target's trials (Equations 5 and 6).

The first fit starts from the pre-trained embedding at the prior's mode. Later fits start from the
fit to the last of the prefixes of 4, 8, 16, ... observations (decision 003). So the result depends
only on the observations and their order.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from foretune._base.arrays import Floats, Ints
from foretune.methods.latent.embedding import Stack, activations, gradients
from foretune.numerics.anchored import FIRST_ANCHOR, last_anchor
from foretune.numerics.bounded_cache import BoundedCache
from foretune.numerics.coregion import CoregionPoints, Hyper, HyperPrior, surprise

ITERATIONS, ANCHOR_ITERATIONS = 15, 50
"""Most fits start from the fit of an anchor and need few iterations. Anchors are rare."""
CACHED = 64


class Fitted(NamedTuple):
    """The fitted process, and the fitted layers."""

    hyper: Hyper
    head: Stack


@dataclass(frozen=True, slots=True)
class Trials:
    """Observations as the fit reads them."""

    features: Floats
    """(n, F), the inputs of the head."""
    which: Ints
    """(n,), the algorithms."""
    beside: Floats
    """(n, k), the bowls of k other sources."""
    losses: Floats
    """(n, L), as told."""

    def take(self, rows: Ints | slice) -> "Trials":
        """Return some of the observations."""
        return Trials(self.features[rows], self.which[rows], self.beside[rows], self.losses[rows])

    def first(self, n: int) -> "Trials":
        """Return the first n observations."""
        return self.take(slice(n))

    def place(self, head: Stack) -> CoregionPoints:
        """Return their places after these layers."""
        return CoregionPoints(
            activations(head, self.features, self.which)[-1], self.which, self.beside
        )

    def key(self) -> bytes:
        """Return a key that differs for different trials. Bowls follow from features."""
        return self.features.tobytes() + self.which.tobytes() + self.losses.tobytes()


@dataclass(frozen=True)
class HeadFit:
    """Minimises Equation 5. The cache changes no result."""

    start: Stack
    """The pre-trained layers that may move."""
    prior: HyperPrior
    pull: Floats
    """(M,), alpha / K_m of each algorithm; 0 if nothing was pre-trained."""
    output: Callable[[Floats], Floats]
    """Losses (n, L) -> the values (n,) that the process models."""
    _known: BoundedCache[Fitted] = field(default_factory=lambda: BoundedCache(CACHED))

    def __call__(self, trials: Trials) -> Fitted:
        """Return the best fit to the trials, in the order in which they came."""
        return self._known.get(trials.key(), lambda: self._fit(trials))

    def _fit(self, trials: Trials) -> Fitted:
        n = len(trials.which)
        anchor = last_anchor(n)
        if n <= FIRST_ANCHOR:
            begin = Fitted(Hyper.from_vector(self.prior.mode), self.start)
        else:
            begin = self(trials.first(anchor // 2 if n == anchor else anchor))
        iterations = ANCHOR_ITERATIONS if n == anchor else ITERATIONS
        return self.minimise(begin, trials, self.output(trials.losses), iterations)

    def minimise(self, begin: Fitted, trials: Trials, z: Floats, iterations: int) -> Fitted:
        """Return the minimum of Equation 5 that L-BFGS finds from `begin` within the iterations."""
        found = minimize(
            self.objective,
            np.concatenate([begin.hyper.to_vector(), _flat(begin.head)]),
            args=(trials, z),
            jac=True,
            method="L-BFGS-B",
            bounds=self.prior.bounds() + [(None, None)] * len(_flat(begin.head)),
            options={"maxiter": iterations, "ftol": 1e-6},
        )
        return self.split(found.x)

    def split(self, vector: Floats) -> Fitted:
        """Return the hyperparameters and layers of an optimiser's vector."""
        n_hyper = len(self.prior.mode)
        return Fitted(
            Hyper.from_vector(vector[:n_hyper]), _reshape_like(vector[n_hyper:], self.start)
        )

    def objective(self, vector: Floats, trials: Trials, z: Floats) -> tuple[float, Floats]:
        """Return Equation 5 with the prior over hyperparameters, and its gradient."""
        n_hyper = len(self.prior.mode)
        head = _reshape_like(vector[n_hyper:], self.start)
        signals = activations(head, trials.features, trials.which)
        points = CoregionPoints(signals[-1], trials.which, trials.beside)
        likelihood = surprise(vector[:n_hyper], points, z)
        prior, to_prior = self.prior.surprise(vector[:n_hyper])
        pull, to_pull = self._pull_towards_start(head)
        to_head = _flat(gradients(head, signals, trials.which, likelihood.to_inputs)) + to_pull
        return (
            likelihood.value + prior + pull,
            np.concatenate([likelihood.to_hyper + to_prior, to_head]),
        )

    def _pull_towards_start(self, head: Stack) -> tuple[float, Floats]:
        """Return alpha sum_m R(theta^(m)) of Equation 6, and its gradient as a vector."""
        value, gradient = 0.0, []
        for now, before in zip(head, self.start, strict=True):
            for array, start in zip(now, before, strict=True):
                strength = self.pull.reshape(-1, *[1] * (array.ndim - 1))
                difference = array - start
                value += float((strength * difference * difference).sum())
                gradient.append((2.0 * strength * difference).ravel())
        return value, np.concatenate(gradient)


def _flat(stack: Stack) -> Floats:
    return np.concatenate([array.ravel() for layer in stack for array in layer])


def _reshape_like(vector: Floats, like: Stack) -> Stack:
    layers, first = [], 0
    for weights, biases in like:
        middle, last = first + weights.size, first + weights.size + biases.size
        layers.append(
            (
                vector[first:middle].reshape(weights.shape),
                vector[middle:last].reshape(biases.shape),
            )
        )
        first = last
    return tuple(layers)
