"""Learning the prior from past tasks (copula paper, section 3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune._base.progress import Progress, track
from foretune.experience import Experience
from foretune.methods.contracts import Learner, Prior
from foretune.methods.copula.model import CopulaPrior, CopulaSettings
from foretune.methods.copula.prior import ObjectiveNetworks, load_networks
from foretune.methods.past_data import (
    USUAL_LIMITS,
    ReadLimits,
    fair_shares,
    require_experience,
    successes,
)
from foretune.numerics.networks import Layers, initial_layers

if TYPE_CHECKING:
    from foretune.methods.copula.training import CopulaTasks
    from foretune.numerics.training import Layer

Singles: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scores:
    """The past tasks' scores, task after task."""

    x: Singles
    """(N, W), encoded configurations."""
    z: Singles
    """(L, N), a row for each objective."""
    counts: NDArray[np.int32]
    """(T,), the number of rows of each task."""


@dataclass(frozen=True, slots=True)
class CopulaLearner(Learner):
    """Learns the networks of a `CopulaPrior`."""

    kind: str
    """The artifact's kind, which keeps priors of different variants apart."""
    scores: Callable[[Floats], Floats]
    """Turns the losses of a task into scores."""
    settings: CopulaSettings

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> Prior:
        """Learn the prior for one seed."""
        return self.learn_many(experience, [seed], progress=progress)[0]

    def learn_many(
        self, experience: Experience | None, seeds: Sequence[int], *, progress: Progress
    ) -> list[Prior]:
        """Learn one prior for each seed, trained together."""
        experience = require_experience(experience)
        trained = _train(gather(experience, self.scores), seeds, progress)
        return [
            CopulaPrior(self.kind, experience.space, networks, self.settings)
            for networks in trained
        ]

    def load(self, path: Path) -> Prior:
        """Read a prior of this variant."""
        networks, space = load_networks(path, kind=self.kind)
        return CopulaPrior(self.kind, space, networks, self.settings)


def gather(
    experience: Experience,
    scores: Callable[[Floats], Floats],
    limits: ReadLimits = USUAL_LIMITS,
) -> Scores:
    """Return the scores of all tasks, at most a fair share of each."""
    tasks = successes(experience)
    shares = fair_shares([len(rows) for rows, _ in tasks], limits)
    x, z, counts = [], [], []
    for (rows, losses), drawn in zip(tasks, shares, strict=True):
        kept = np.sort(drawn)
        x.append(experience.configs.take(rows[kept]).x.astype(np.float32))
        z.append([scores(column)[kept] for column in losses.T])
        counts.append(len(kept))
    return Scores(
        np.concatenate(x),
        np.concatenate(z, axis=1).astype(np.float32),
        np.array(counts, dtype=np.int32),
    )


def _train(
    scores: Scores,
    seeds: Sequence[int],
    progress: Progress,
    rates: Sequence[float] = (),
    updates: int | None = None,
) -> list[ObjectiveNetworks]:
    """Train the networks of all seeds and objectives at once.

    rates: the learning rates, one for each `updates`. Default: the paper's.
    """
    import jax

    from foretune.methods.copula.training import UPDATES_AT_ONCE, advance_networks, draw, schedule
    from foretune.numerics.training import as_arrays, cache_compilation, start_descent

    cache_compilation()
    width, networks = scores.x.shape[1], len(_with_average(scores.z))
    rngs = [np.random.default_rng((seed, which)) for seed in seeds for which in range(networks)]
    tasks, z = _pad(scores)
    every_z = np.tile(z, (len(seeds), 1))
    descents = jax.vmap(start_descent)(_initial(rngs, width, spare=tasks.x.shape[1] - width))
    rates, updates = rates or schedule(), updates or UPDATES_AT_ONCE
    for rate in track(rates, progress, "learning from past tasks", len(rates)):
        descents = advance_networks(descents, every_z, draw(rngs, updates), rate, tasks)
        jax.block_until_ready(descents)  # type: ignore[no-untyped-call]
    (weights, biases), *others = as_arrays(descents.params)
    stacked = ((weights[:, :width], biases), *others)
    trained: list[Layers] = [
        tuple((weights[place], biases[place]) for weights, biases in stacked)
        for place in range(len(rngs))
    ]
    objectives = len(scores.z)
    return [
        ObjectiveNetworks(
            tuple(trained[first : first + objectives]),
            trained[first + objectives] if networks > objectives else None,
        )
        for first in range(0, len(trained), networks)
    ]


def _with_average(z: Singles) -> Singles:
    """Return the scores (L, N) of several objectives with their average below them."""
    return z if len(z) == 1 else np.vstack([z, z.mean(axis=0)])


def _pad(scores: Scores) -> tuple["CopulaTasks", Singles]:
    """Pad the tasks and the scores z (L, N), so that few shapes must be compiled."""
    import jax.numpy as jnp

    from foretune.methods.copula.training import CopulaTasks
    from foretune.numerics.training import bucket

    rows, width = scores.x.shape
    tasks = len(scores.counts)
    spare_rows = bucket(rows, least=1024) - rows
    x = np.pad(scores.x, ((0, spare_rows), (0, bucket(width, least=16) - width)))
    counts = np.pad(scores.counts, (0, bucket(tasks, least=8) - tasks))
    firsts = np.cumsum(counts, dtype=np.int32) - counts
    past = CopulaTasks(jnp.asarray(x), jnp.asarray(firsts), jnp.asarray(counts), jnp.asarray(tasks))
    return past, np.pad(_with_average(scores.z), ((0, 0), (0, spare_rows)))


def _initial(rngs: Sequence[np.random.Generator], width: int, *, spare: int) -> "list[Layer]":
    """Untrained networks, stacked, whose last `spare` inputs are padding and weigh nothing."""
    import jax

    from foretune.methods.copula.training import UNITS
    from foretune.numerics.training import jax_layers

    networks = [initial_layers(rng, (width, *UNITS, 2)) for rng in rngs]
    (weights, biases), *others = jax.tree.map(lambda *arrays: np.stack(arrays), *networks)
    wide = np.pad(weights, ((0, 0), (0, spare), (0, 0)))
    return jax_layers([(wide, biases), *others])
