"""Learning the prior (copula paper, sections 3 and 5).

Three hidden layers of 50 rectified units with dropout 0.1; Gaussian negative log-likelihood; Adam
for 3 x 1000 updates of batches of 64, the rate 0.01 divided by 5 after each thousand. Tasks are
drawn with equal probability and then rows within a task, which weights every term inversely to
its task's number of observations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune.arrays import Floats
from foretune.contracts import Prior
from foretune.experience import Experience
from foretune.learning import given, past_tasks
from foretune.methods.copula.model import CopulaPrior, Settings
from foretune.methods.copula.prior import Networks, load_networks
from foretune.numerics.networks import Layers
from foretune.progress import Progress, tracked

MOST_ROWS = 400_000
"""Training draws fewer than 200,000 rows, so more of them than this would hardly be seen."""
LEAST_ROWS = 64
"""What a task may always contribute."""

Singles: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scores:
    """The past tasks' scores, task after task."""

    x: Singles
    """(N, W), encoded configurations."""
    z: Singles
    """(N,)"""
    counts: NDArray[np.int32]
    """(T,), how many rows each task has."""


@dataclass(frozen=True, slots=True)
class CopulaLearner:
    """Learns the networks of a `CopulaPrior`."""

    kind: str
    """The artifact's kind, which keeps priors of different variants apart."""
    scores: Callable[[Floats], Floats]
    """How a task's losses become scores."""
    settings: Settings

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> Prior:
        """The prior for one seed."""
        return self.learn_many(given(experience), [seed], progress=progress)[0]

    def learn_many(
        self, experience: Experience, seeds: Sequence[int], *, progress: Progress
    ) -> list[Prior]:
        """One prior a seed, trained together."""
        scores = gather(experience, self.scores)
        parts = ["scores over all tasks"] + ["scores by task"] * self.settings.directions
        trained = [
            _train(scores, seeds, by_task=number == 1)
            for number, _ in enumerate(tracked(parts, progress, "learning", len(parts)))
        ]
        by_task: list[Layers] = [()] * len(seeds)
        if self.settings.directions:
            by_task = [directions(layers, len(scores.counts)) for layers in trained[1]]
        return [
            CopulaPrior(self.kind, experience.space, Networks(*both), self.settings)
            for both in zip(trained[0], by_task, strict=True)
        ]

    def load(self, path: Path) -> Prior:
        """Read a prior of this variant."""
        networks, space = load_networks(path, kind=self.kind)
        return CopulaPrior(self.kind, space, networks, self.settings)


def gather(experience: Experience, scores: Callable[[Floats], Floats]) -> Scores:
    """The scores of all tasks, of each at most its share of `MOST_ROWS`."""
    tasks = past_tasks(experience, scores)
    share = max(MOST_ROWS // len(tasks), LEAST_ROWS)
    rng = np.random.default_rng(0)
    tasks = [task.subsample(share, rng) for task in tasks]
    x = np.concatenate([experience.configs.take(task.rows).x for task in tasks])
    z = np.concatenate([task.z for task in tasks])
    counts = np.array([len(task.rows) for task in tasks], dtype=np.int32)
    return Scores(x.astype(np.float32), z.astype(np.float32), counts)


def directions(by_task: Layers, tasks: int) -> Layers:
    """Replace the heads of T tasks by a few that span the same differences between tasks.

    With the heads' weights about their mean, B = (w_j - mean) / sqrt(T), the covariance of a
    linear function with independent slopes along the differences is h B B' h'. Any factor of B B'
    gives the same covariance, and one of the width of h is enough for any number of tasks.
    """
    weights, biases = (part[..., :tasks] for part in by_task[-1])
    stacked = np.concatenate([weights, biases[None, :]]).astype(np.float64)
    about_mean = (stacked - stacked.mean(axis=1, keepdims=True)) / np.sqrt(stacked.shape[1])
    left, sizes, _ = np.linalg.svd(about_mean, full_matrices=False)
    kept = sizes > 1e-6 * max(float(sizes.max(initial=0.0)), 1e-12)
    factor = (left[:, kept] * sizes[kept]).astype(np.float32)
    return (*by_task[:-1], (factor[:-1], factor[-1]))


def _train(scores: Scores, seeds: Sequence[int], *, by_task: bool) -> list[Layers]:
    """One trained network a seed, all trained at once."""
    import jax
    import jax.numpy as jnp

    from foretune.methods.copula.training import fit_networks
    from foretune.numerics.training import as_arrays, bucket, keep_compiled

    keep_compiled()
    tasks = len(scores.counts)
    places, rows = bucket(tasks, least=8), bucket(len(scores.z), least=1024)
    x = np.pad(scores.x, ((0, rows - len(scores.x)), (0, 0)))
    z = np.pad(scores.z, (0, rows - len(scores.z)))
    counts = np.pad(scores.counts, (0, places - tasks))
    firsts = np.cumsum(counts, dtype=np.int32) - counts
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, dtype=jnp.uint32))
    heads = places if by_task else 1
    stacked = fit_networks(keys, x, z, firsts, counts, tasks, heads=heads)
    return [as_arrays([(w[place], b[place]) for w, b in stacked]) for place in range(len(seeds))]
