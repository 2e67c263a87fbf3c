"""PMF: probabilistic matrix factorisation with a Gaussian process over latent positions.

Fusi et al. (2018): every configuration has a latent position. The losses of every task are a
Gaussian process over these positions, with one kernel for all tasks. The positions maximise the
marginal likelihood of the losses of past tasks. That is a deep kernel whose network is a table of
positions. They start from the principal components of the losses. The target's process keeps the
learnt kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from foretune.experience import Experience
from foretune.methods import (
    CachedOnPool,
    Catalogue,
    Learner,
    Observations,
    Posterior,
    Prediction,
    Prior,
    Surrogate,
    Target,
    check_space,
    past_tasks,
    require_experience,
    split_tasks,
)
from foretune.numerics import (
    GP,
    LARGEST_GP,
    Curriculum,
    DeepKernel,
    Floats,
    GPHyper,
    bucket,
    cache_compilation,
    informative_subset,
    initial_kernel,
    load_artifact,
    meta_train,
    save_artifact,
    scalarise,
    schedules_for,
    standardise,
)
from foretune.plugins import Progress
from foretune.space import Encoded, Space
from foretune_lab.baselines.factorisation import (
    RANK,
    catalogue_of,
    factorise,
    loss_matrix,
    renumber_rows,
)

VERSION = 1
KIND = "foretune-pmf"


def positions_at(table: jax.Array, rows: jax.Array) -> jax.Array:
    """Return the latent positions (n, RANK) of the configurations that `rows` (n, 1) number."""
    return table[rows[:, 0].astype(int)]


@dataclass(frozen=True, slots=True)
class PmfPosterior(Posterior):
    """A conditioned process over latent positions."""

    positions: CachedOnPool[Floats]
    model: GP
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the standardised loss."""
        return Prediction(*self.model.predict(self.positions(x)))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw jointly from the standardised loss."""
        return self.model.sample(self.positions(x), n, np.random.default_rng(seed))


@dataclass(frozen=True, slots=True)
class PmfSurrogate(Surrogate):
    """The target's process, with the kernel that was learnt from past tasks."""

    positions: CachedOnPool[Floats]
    hyper: GPHyper
    largest_gp: int = LARGEST_GP

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials."""
        del seed
        good = seen.successes()
        at, z = self.positions(good.configs), scalarise(good.losses, standardise)
        keep = informative_subset(at, z, self.largest_gp)
        model = GP.condition(at[keep], z[keep], self.hyper)
        return PmfPosterior(self.positions, model, float(z.min()))


@dataclass(frozen=True, slots=True)
class PmfPrior(Prior):
    """The latent positions of the configurations that past tasks tried, and the kernel."""

    catalogue: Catalogue
    positions: Floats
    """(C, RANK)"""
    hyper: GPHyper

    def surrogate(self, target: Target) -> Surrogate:
        """Return the process over latent positions for one task."""
        check_space(self.catalogue.configs.space, target)
        return PmfSurrogate(CachedOnPool(self.at, target.pool), self.hyper)

    def at(self, x: Encoded) -> Floats:
        """Return the positions (len(x), RANK) of configurations."""
        return self.positions[self.catalogue.rows(x)]

    def save(self, path: Path) -> None:
        """Write the configurations, their positions and the kernel."""
        arrays = {
            **self.catalogue.configs.pack(),
            "positions": self.positions,
            "hyper": self.hyper.to_vector(),
        }
        meta = {"space": self.catalogue.configs.space.to_json()}
        save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class PmfLearner(Learner):
    """Finds latent positions and the kernel."""

    train: Callable[..., DeepKernel] = meta_train

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> PmfPrior:
        """Maximise the marginal likelihoods of draws from the past tasks."""
        cache_compilation()
        experience = require_experience(experience)
        tasks = past_tasks(experience, standardise)
        teaching, held_out = split_tasks(tasks, np.random.default_rng(seed))
        catalogue = catalogue_of(teaching, experience.configs)
        n_configs = len(catalogue.configs)
        teaching = renumber_rows(teaching, experience.configs, catalogue)
        # Other configurations take the nearest position, as on a target.
        held_out = renumber_rows(held_out, experience.configs, catalogue)
        components = factorise(loss_matrix(teaching, n_configs), RANK - 1)
        table = np.column_stack([components.mean, components.factors[:, : RANK - 1]])
        table = table.astype(np.float32)
        padded = np.pad(table, ((0, bucket(n_configs, least=64) - n_configs), (0, 0)))
        rows = np.arange(n_configs, dtype=np.float32)[:, None]
        learnt = DeepKernel(jnp.asarray(padded), initial_kernel(table))
        for number, schedule in enumerate(schedules_for(teaching)):
            learnt = self.train(
                positions_at,
                learnt,
                Curriculum(rows, teaching, held_out),
                seed=seed + number,
                schedule=schedule,
                progress=progress,
            )
        positions = np.asarray(learnt.network[:n_configs], dtype=np.float64)
        return PmfPrior(catalogue, positions, learnt.hyper(RANK))

    def load(self, path: Path) -> PmfPrior:
        """Read saved positions."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        catalogue = Catalogue(Space.from_json(meta["space"]).unpack(arrays))
        return PmfPrior(catalogue, arrays["positions"], GPHyper.from_vector(arrays["hyper"]))


def pmf() -> PmfLearner:
    """Make the learner of probabilistic matrix factorisation."""
    return PmfLearner()
