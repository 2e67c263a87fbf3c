"""DNGO: Bayesian linear regression on the last hidden layer of a network.

Snoek et al. (2015): a network of three layers of 50 tanh units learns to predict the target's
losses. Its last hidden layer then gives the features of a linear regression with precisions that
maximise the marginal likelihood, as in ABLR. The network is trained anew at every trial, from
random weights, so a resumed study repeats it.
"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from foretune.methods import Observations, Posterior, StatelessLearner, Surrogate
from foretune.numerics import (
    Floats,
    Layer,
    advance,
    bucket,
    cache_compilation,
    informative_subset,
    scalarise,
    standardise,
    start_descent,
)
from foretune.space import Encoded
from foretune_lab.baselines.ablr import Layers, RegressionPosterior, activations
from foretune_lab.baselines.regression import Regression, fit_precisions

UNITS = (50, 50, 50)
STEPS = 500
RATE = 1e-3
DECAY = 1e-4
"""The penalty of squared weights, because a network can fit a few trials exactly."""
LARGEST_FIT = 512
START = np.log([1.0, 100.0])
"""log alpha and log beta of the regression that the fit starts from."""


@jax.jit
def train(layers: list[Layer], x: jax.Array, z: jax.Array, mask: jax.Array) -> list[Layer]:
    """Return layers of least squared error at z (n,) where `mask` (n,); the last one is linear."""

    def loss(layers: list[Layer], _: jax.Array) -> jax.Array:
        signal = 2.0 * x - 1.0
        for weights, biases in layers[:-1]:
            signal = jnp.tanh(signal @ weights + biases)
        weights, biases = layers[-1]
        error = (signal @ weights + biases)[:, 0] - z
        size = sum(jnp.sum(jnp.square(weights)) for weights, _ in layers)
        return jnp.mean(jnp.square(error), where=mask) + DECAY * size

    rates = RATE * 0.5 * (1.0 + jnp.cos(jnp.linspace(0.0, jnp.pi, STEPS)))
    descent = advance(loss, start_descent(layers), rates, rates)
    return descent.params


def random_layers(width: int, seed: int) -> list[Layer]:
    """Return weights of Glorot's scale, which suits tanh units, and no biases; one output."""
    rng = np.random.default_rng(seed)
    return [
        (
            jnp.asarray(rng.normal(0.0, np.sqrt(2.0 / (i + o)), (i, o)), dtype=jnp.float32),
            jnp.zeros(o),
        )
        for i, o in pairwise((width, *UNITS, 1))
    ]


def hidden_layers(x: Floats, z: Floats, seed: int) -> Layers:
    """Return the hidden layers of a network that was trained on losses z (n,) at x (n, W)."""
    keep = informative_subset(x, z, LARGEST_FIT)
    rows, columns = bucket(len(keep), least=16), bucket(x.shape[1], least=16)
    trained = train(
        random_layers(columns, seed),
        jnp.asarray(np.pad(x[keep], ((0, rows - len(keep)), (0, columns - x.shape[1])))),
        jnp.asarray(np.pad(z[keep], (0, rows - len(keep)))),
        jnp.asarray(np.arange(rows) < len(keep)),
    )
    hidden = [(np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in trained[:-1]]
    # Padded inputs are centred to -1. They are constants, which the first biases take in.
    weights, biases = hidden[0]
    width = x.shape[1]
    return ((weights[:width], biases - weights[width:].sum(axis=0)), *hidden[1:])


@dataclass(frozen=True, slots=True)
class DngoSurrogate(Surrogate):
    """Trains the network on the observed rows, then regresses on the pending rows too."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials."""
        good = seen.successes()
        x, real = good.configs, ~good.believed
        observed = scalarise(good.losses[real], standardise)
        features = partial(_features, hidden_layers(x.x[real], observed, seed))
        phi, z = features(x), scalarise(good.losses, standardise)
        head = Regression.of(phi, z, *fit_precisions(phi[real], observed, START))
        return RegressionPosterior(features, head, float(z.min()))


def _features(layers: Layers, x: Encoded) -> Floats:
    """Return (len(x), 51): the last hidden layer and a constant, as in the network."""
    return np.column_stack([activations(layers, x.x)[-1], np.ones(len(x))])


def dngo() -> StatelessLearner:
    """Make a regression on a network that is learnt from the target alone."""
    cache_compilation()
    return StatelessLearner("dngo", lambda _: DngoSurrogate())
