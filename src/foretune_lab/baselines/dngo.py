"""DNGO: Bayesian linear regression on the last hidden layer of a network.

Snoek et al. (2015): a network of three layers of 50 tanh units learns to predict the target's
losses. Its last hidden layer then gives the features of a linear regression. The network is trained
anew at every trial, from random weights, so a resumed study repeats it. The network repeats the
losses it has learnt, so the precisions of the regression are fitted to losses that it has not: two
more networks learn one half of the trials each, and the precisions predict the other half best.
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
    Ints,
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
from foretune_lab.baselines.regression import Regression, fit_precisions_to_unlearnt

UNITS = (50, 50, 50)
EPOCHS, BATCH, RATE = 500, 10, 1e-2
"""As in the implementation that papers compare with (Klein and Zela)."""
DECAY = 1e-4
"""The penalty of squared weights, because a network can fit a few trials exactly."""
LARGEST_FIT = 512
LEAST_HALVED = 4
"""With fewer trials the precisions are not fitted."""
START = np.log([1.0, 100.0])
"""log alpha and log beta of the regression that the fit starts from."""


@jax.jit
def train(
    layers: list[Layer], x: jax.Array, z: jax.Array, batches: jax.Array, rates: jax.Array
) -> list[Layer]:
    """Return layers of small squared error at z (n,) for x (n, W); the last one is linear.

    batches: (steps, BATCH), the rows that each step learns from, -1 for none. rates: (steps,).
    """

    def loss(layers: list[Layer], rows: jax.Array) -> jax.Array:
        signal = 2.0 * x[rows] - 1.0
        for weights, biases in layers[:-1]:
            signal = jnp.tanh(signal @ weights + biases)
        weights, biases = layers[-1]
        error = (signal @ weights + biases)[:, 0] - z[rows]
        size = sum(jnp.sum(jnp.square(weights)) for weights, _ in layers)
        known = rows >= 0
        squares = jnp.sum(jnp.square(error), where=known) / jnp.maximum(jnp.sum(known), 1)
        return squares + DECAY * size

    descent = advance(loss, start_descent(layers), batches, rates)
    return descent.params


def draw_batches(n: int, steps: int, seed: int) -> tuple[Ints, Floats]:
    """Return the rows (steps, BATCH) of each step, and the rates (steps,).

    Each epoch reads all n rows in a new order. Steps after the last epoch do nothing, because
    padded numbers of steps need less compiled code.
    """
    rng, each = np.random.default_rng(seed), -(-n // BATCH)
    rows = np.full((EPOCHS, each * BATCH), -1)
    rows[:, :n] = rng.permuted(np.tile(np.arange(n), (EPOCHS, 1)), axis=1)
    batches, rates = np.full((steps, BATCH), -1), np.zeros(steps)
    used = EPOCHS * each
    batches[:used] = rows.reshape(used, BATCH)
    rates[:used] = RATE
    return batches, rates


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
    batches, rates = draw_batches(len(keep), EPOCHS * -(-rows // BATCH), seed)
    trained = train(
        random_layers(columns, seed),
        jnp.asarray(np.pad(x[keep], ((0, rows - len(keep)), (0, columns - x.shape[1])))),
        jnp.asarray(np.pad(z[keep], (0, rows - len(keep)))),
        jnp.asarray(batches),
        jnp.asarray(rates),
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
        log_alpha, log_beta = _precisions(x.x[real], observed, seed)
        head = Regression.of(phi, z, log_alpha, log_beta)
        # As published, what the network cannot explain is uncertain at new configurations too.
        return RegressionPosterior(features, head, float(z.min()), float(np.exp(-log_beta)))


def _precisions(x: Floats, z: Floats, seed: int) -> Floats:
    """Return log alpha and log beta (2,), fitted by networks that learnt half of the trials."""
    if len(z) < LEAST_HALVED:
        return START
    even = np.arange(len(z)) % 2 == 0
    parts = []
    for learnt in (even, ~even):
        layers = hidden_layers(x[learnt], z[learnt], seed)
        parts.append((_with_constant(activations(layers, x)[-1]), z, learnt))
    return fit_precisions_to_unlearnt(parts, START)


def _features(layers: Layers, x: Encoded) -> Floats:
    """Return (len(x), 51): the last hidden layer and a constant, as in the network."""
    return _with_constant(activations(layers, x.x)[-1])


def _with_constant(phi: Floats) -> Floats:
    return np.column_stack([phi, np.ones(len(phi))])


def dngo() -> StatelessLearner:
    """Make a regression on a network that is learnt from the target alone."""
    cache_compilation()
    return StatelessLearner("dngo", lambda _: DngoSurrogate())
