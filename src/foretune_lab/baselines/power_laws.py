"""DPL: an ensemble of networks that give each configuration a power law (Kadra et al. 2023).

"Scaling Laws for Hyperparameter Optimization", section 3: the loss of a configuration x after the
share b of all steps is alpha(x) + beta(x) b^-gamma(x) (equation 1), where a network gives alpha,
beta and gamma. Five networks with different weights give the mean and the deviation of the loss at
b = 1. The candidate with the highest expected improvement there goes on.

The paper leaves some details out. As in the authors' code, z sigmoid(z) is applied to beta and
gamma. The networks learn anew while there are at most 10 reports, and after 1.2 complete curves of
reports without improvement. They are refined in between, with the newest report in each batch.
There are two differences: a decision is about a level of several steps, not about one epoch; and
learning takes 250 steps of Adam, and refining 20 for each 64 reports, at most 40, instead of many
epochs.
"""

import jax
import jax.numpy as jnp
import numpy as np

from foretune.numerics import (
    Floats,
    Ints,
    Layer,
    advance,
    bucket,
    cache_compilation,
    expected_improvement,
    initial_layers,
    jax_layers,
    start_descent,
)
from foretune_lab.baselines.step_tuner import SeenCurves

MEMBERS = 5
UNITS = (128, 128)
RATE = 1e-3
BATCH = 64
LEARNING, REFINING, MOST_REFINING = 250, 20, 40
"""The steps of Adam; the second number is for each batch of reports."""
CHUNK = 10
"""The steps of one call of compiled code."""
LEARNS_ANEW = 10
"""The networks begin with new weights while there are at most this number of reports."""
PATIENCE = 1.2


def power_law(layers: list[Layer], x: jax.Array, share: jax.Array) -> jax.Array:
    """Return (n,), the losses of configurations x (n, W) after shares (n,) of all steps."""
    signal = x
    for weights, biases in layers[:-1]:
        signal = jax.nn.leaky_relu(signal @ weights + biases)
    weights, biases = layers[-1]
    alpha, beta, gamma = (signal @ weights + biases).T
    losses: jax.Array = alpha + gate(beta) * share ** -gate(gamma)
    return losses


def gate(z: jax.Array) -> jax.Array:
    """Return z sigmoid(z), a gated linear unit whose gate is the unit itself."""
    return z * jax.nn.sigmoid(z)


def mean_error(
    layers: list[Layer], x: jax.Array, share: jax.Array, losses: jax.Array, counts: jax.Array
) -> jax.Array:
    """Return the mean absolute error over reports (n,) that count."""
    error = jnp.abs(power_law(layers, x, share) - losses)
    return jnp.sum(error * counts) / jnp.sum(counts)


@jax.jit
def train(
    layers: list[Layer], data: tuple[jax.Array, ...], rows: jax.Array, counts: jax.Array
) -> list[Layer]:
    """Take one step of Adam for each batch.

    layers: the arrays of all members, with one more leading axis.
    data: x (n, W), shares (n,) and losses (n,) of all reports.
    rows, counts: (steps, members, batch), reports of each batch, and 1 for those that count.
    """
    x, share, losses = data

    def loss(layers: list[Layer], batch: tuple[jax.Array, jax.Array]) -> jax.Array:
        def of_one(member: list[Layer], rows: jax.Array, counts: jax.Array) -> jax.Array:
            return mean_error(member, x[rows], share[rows], losses[rows], counts)

        return jnp.sum(jax.vmap(of_one)(layers, *batch))

    rates = jnp.full(len(rows), RATE)
    return advance(loss, start_descent(layers), (rows, counts), rates).params


@jax.jit
def predict(layers: list[Layer], x: jax.Array) -> jax.Array:
    """Return (members, n), the losses at the ends of complete trials."""
    return jax.vmap(lambda member: power_law(member, x, jnp.ones(len(x))))(layers)


class PowerLawModel:
    """Ranks candidates by expected improvement at the end of a complete trial."""

    def __init__(self, *, seed: int) -> None:
        cache_compilation()
        self._seed = seed
        self._layers: list[Layer] | None = None
        self._best, self._stagnant = np.inf, 0
        self._lengths: dict[int, int] = {}

    def score(self, seen: SeenCurves, candidates: Ints) -> Floats:
        """Learn from all reports, and return the expected improvement of the candidates."""
        members, levels, losses = seen.points()
        self._learn(seen, members, levels, losses)
        rows = bucket(len(candidates), least=64)
        padded = np.resize(candidates, rows)
        ends = np.asarray(predict(self._layers, jnp.asarray(seen.x[padded], dtype=jnp.float32)))
        ends = ends[:, : len(candidates)].astype(float)
        return expected_improvement(ends.mean(axis=0), ends.std(axis=0) + 1e-9, seen.best)

    def _learn(self, seen: SeenCurves, members: Ints, levels: Ints, losses: Floats) -> None:
        newest = self._newest(seen, members, levels)
        improved = losses[newest] <= seen.best
        self._stagnant = 0 if improved else self._stagnant + 1
        rng = np.random.default_rng([self._seed, len(losses)])
        anew = len(losses) <= LEARNS_ANEW or self._stagnant >= PATIENCE * seen.levels
        if self._layers is None or anew:
            sizes = (seen.x.shape[1], *UNITS, 3)
            self._layers = jax_layers(initial_layers(rng, sizes, (MEMBERS,)))
            self._stagnant, steps, newest = 0, LEARNING, -1
        else:
            steps = min(REFINING * -(-len(losses) // BATCH), MOST_REFINING)
        rows = bucket(len(losses), least=BATCH)
        shares = (levels + 1) / seen.levels
        data = (
            jnp.asarray(np.resize(seen.x[members], (rows, seen.x.shape[1])), dtype=jnp.float32),
            jnp.asarray(np.resize(shares, rows), dtype=jnp.float32),
            jnp.asarray(np.resize(losses, rows), dtype=jnp.float32),
        )
        for _ in range(-(-steps // CHUNK)):
            batches = draw_batches(len(losses), newest, rng)
            self._layers = train(self._layers, data, *batches)

    def _newest(self, seen: SeenCurves, members: Ints, levels: Ints) -> int:
        """Return the place of a report that was not there at the last decision."""
        grown = [m for m, c in seen.curves.items() if len(c) > self._lengths.get(m, 0)]
        self._lengths = {member: len(curve) for member, curve in seen.curves.items()}
        member = grown[-1] if grown else int(members[-1])
        return int(
            np.flatnonzero((members == member) & (levels == len(seen.curves[member]) - 1))[0]
        )


def draw_batches(n: int, newest: int, rng: np.random.Generator) -> tuple[jax.Array, jax.Array]:
    """Return rows and counts (CHUNK, MEMBERS, BATCH + 1) of random batches.

    newest: a report that is in each batch beside the others; -1 for none.
    """
    shape = (CHUNK, MEMBERS, BATCH + 1)
    keys = rng.random((*shape[:2], max(n, BATCH)))
    keys[..., n:] = np.inf
    rows, counts = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.float32)
    rows[..., :BATCH] = np.argsort(keys, axis=-1)[..., :BATCH] % n
    counts[..., : min(n, BATCH)] = 1.0
    if newest >= 0:
        rows[..., BATCH], counts[..., BATCH] = newest, 1.0
    return jnp.asarray(rows), jnp.asarray(counts)
