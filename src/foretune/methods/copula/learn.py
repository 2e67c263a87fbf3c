"""Learning the prior from past tasks (copula paper, section 3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune.arrays import Floats
from foretune.contracts import Prior
from foretune.experience import Experience
from foretune.learning import given, successes
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
    """(L, N), a row an objective."""
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
        for _ in tracked([None], progress, "learning from past tasks", 1):
            trained = _train(gather(experience, self.scores), seeds)
        return [
            CopulaPrior(self.kind, experience.space, networks, self.settings)
            for networks in trained
        ]

    def load(self, path: Path) -> Prior:
        """Read a prior of this variant."""
        networks, space = load_networks(path, kind=self.kind)
        return CopulaPrior(self.kind, space, networks, self.settings)


def gather(experience: Experience, scores: Callable[[Floats], Floats]) -> Scores:
    """The scores of all tasks, of each at most its share of `MOST_ROWS`."""
    tasks = successes(experience)
    share = max(MOST_ROWS // len(tasks), LEAST_ROWS)
    rng = np.random.default_rng(0)
    x, z, counts = [], [], []
    for rows, losses in tasks:
        kept = np.sort(rng.permutation(len(rows))[:share])
        x.append(experience.configs.take(rows[kept]).x.astype(np.float32))
        z.append([scores(column)[kept] for column in losses.T])
        counts.append(len(kept))
    return Scores(
        np.concatenate(x),
        np.concatenate(z, axis=1).astype(np.float32),
        np.array(counts, dtype=np.int32),
    )


def _train(scores: Scores, seeds: Sequence[int]) -> list[Networks]:
    """The networks of each seed, those of all seeds and objectives trained at once."""
    import jax
    import jax.numpy as jnp

    from foretune.methods.copula.training import fit_networks
    from foretune.numerics.training import as_arrays, bucket, keep_compiled

    keep_compiled()
    objectives, tasks = len(scores.z), len(scores.counts)
    rows, places = bucket(len(scores.x), least=1024), bucket(tasks, least=8)
    x = np.pad(scores.x, ((0, rows - len(scores.x)), (0, 0)))
    z = np.pad(scores.z, ((0, 0), (0, rows - len(scores.x))))
    counts = np.pad(scores.counts, (0, places - tasks))
    firsts = np.cumsum(counts, dtype=np.int32) - counts
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, dtype=jnp.uint32))
    every = np.tile(z, (len(seeds), 1))
    stacked = fit_networks(jnp.repeat(keys, objectives), x, every, firsts, counts, tasks)
    trained: list[Layers] = [
        as_arrays([(weights[place], biases[place]) for weights, biases in stacked])
        for place in range(len(every))
    ]
    return [
        Networks(tuple(trained[first : first + objectives]))
        for first in range(0, len(trained), objectives)
    ]
