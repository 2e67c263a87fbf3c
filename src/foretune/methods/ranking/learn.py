"""Learning the ensemble from past tasks (Algorithm 1), or drawing it at random (DRE-RI)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from foretune._base.arrays import Ints
from foretune._base.progress import Progress, track
from foretune.experience import Experience
from foretune.methods.contracts import Learner, Prior, Surrogate, Target
from foretune.methods.past_data import (
    USUAL_LIMITS,
    ReadLimits,
    fair_shares,
    require_experience,
    successes,
)
from foretune.methods.ranking.ensemble import (
    SCORERS,
    Ensemble,
    Singles,
    centre,
    load_ensemble,
    one_loss,
    random_ensemble,
)
from foretune.methods.ranking.model import RankingPrior, RankingSettings
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.networks import Layers

if TYPE_CHECKING:
    from foretune.methods.ranking.training import RankingTasks, Weights

MOST_STEPS = 20_000
"""The quality on unseen tasks hardly grows after 10,000 (docs/benchmarks.md)."""
LEAST_STEPS = 512
PASSES = 100
"""The most times that a scorer ranks each evaluation. More would overfit to a few of them."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class RankedEvaluations:
    """The past tasks' evaluations, task after task, in random order within each."""

    x: Singles
    """(N, W), encoded configurations, centred."""
    y: Singles
    """(N,), losses in a unit of their task."""
    counts: Ints
    """(T,), the number of rows of each task."""


@dataclass(frozen=True, slots=True)
class RankingLearner(Learner):
    """Meta-learns the scorers and the deep set of a `RankingPrior`."""

    kind: str
    settings: RankingSettings
    meta_features: bool = True
    """Whether the scorers read the history's meta-features (F in the paper's ablation)."""

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> Prior:
        """Learn the prior for one seed."""
        return self.learn_many(experience, [seed], progress=progress)[0]

    def learn_many(
        self, experience: Experience | None, seeds: Sequence[int], *, progress: Progress
    ) -> list[Prior]:
        """Learn one prior for each seed, trained together."""
        experience = require_experience(experience)
        for _ in track([None], progress, "learning to rank past tasks", 1):
            evaluations = gather(experience)
            ensembles = _train(evaluations, seeds, self.settings.loss, self.meta_features)
        return [
            RankingPrior(self.kind, experience.space, ensemble, self.settings)
            for ensemble in ensembles
        ]

    def load(self, path: Path) -> Prior:
        """Read a prior of this variant."""
        ensemble, space = load_ensemble(path, kind=self.kind)
        return RankingPrior(self.kind, space, ensemble, self.settings)


@dataclass(frozen=True, slots=True)
class RandomPrior(Prior):
    """Scorers with random weights, drawn for the space of the target."""

    kind: str
    seed: int
    settings: RankingSettings

    def surrogate(self, target: Target) -> Surrogate:
        """Return the surrogate of newly drawn scorers."""
        ensemble = random_ensemble(target.space.width, seed=self.seed, meta_features=False)
        return RankingPrior(self.kind, target.space, ensemble, self.settings).surrogate(target)

    def save(self, path: Path) -> None:
        """Write the seed."""
        save_artifact(path, kind=self.kind, version=VERSION, meta={"seed": self.seed}, arrays={})


@dataclass(frozen=True, slots=True)
class RandomLearner(Learner):
    """Returns scorers with random weights for any experience."""

    kind: str
    settings: RankingSettings

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> Prior:
        """Learn nothing."""
        del experience, progress
        return RandomPrior(self.kind, seed, self.settings)

    def load(self, path: Path) -> Prior:
        """Read the seed."""
        meta, _ = load_artifact(path, kind=self.kind, newest_version=VERSION)
        return RandomPrior(self.kind, int(meta["seed"]), self.settings)


def gather(experience: Experience, limits: ReadLimits = USUAL_LIMITS) -> RankedEvaluations:
    """Return the evaluations of all tasks, at most a fair share of each."""
    tasks = successes(experience)
    shares = fair_shares([len(rows) for rows, _ in tasks], limits)
    x, y = [], []
    for (rows, losses), kept in zip(tasks, shares, strict=True):
        x.append(centre(experience.configs.take(rows[kept]).x).astype(np.float32))
        y.append(one_loss(losses)[kept].astype(np.float32))
    counts = np.array([len(part) for part in y], dtype=np.int64)
    return RankedEvaluations(np.concatenate(x), np.concatenate(y), counts)


def prime_from(n: int) -> int:
    """Return the smallest prime that is at least n."""
    candidate = max(n, 2)
    while any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def steps_for(evaluations: int) -> int:
    """Return the number of training steps, fewer with few evaluations."""
    from foretune.methods.ranking.training import QUERY
    from foretune.numerics.training import bucket

    return min(bucket(PASSES * evaluations // QUERY, least=LEAST_STEPS), MOST_STEPS)


def _train(
    evaluations: RankedEvaluations, seeds: Sequence[int], loss: str, meta_features: bool
) -> list[Ensemble]:
    """Return the ensemble of each seed. Those of all seeds are trained at once."""
    import jax.numpy as jnp

    from foretune.methods.ranking.training import RATE, meta_learn
    from foretune.numerics.training import cache_compilation

    cache_compilation()
    n, width = evaluations.x.shape
    steps = steps_for(n)
    draws = [np.random.default_rng(seed).random((steps, SCORERS, 4), np.float32) for seed in seeds]
    start = initial_weights(width, seeds, meta_features=meta_features)
    tasks = _pad(evaluations, padded_width(width))
    rates = jnp.full(steps, RATE, jnp.float32)
    learnt = meta_learn(start, jnp.asarray(np.stack(draws)), rates, tasks, loss=loss)
    return read_ensembles(learnt, width)


def padded_width(width: int) -> int:
    """Return the number of columns in training. Padding keeps the number of compiled shapes low."""
    from foretune.numerics.training import bucket

    return bucket(width, least=16)


def initial_weights(width: int, seeds: Sequence[int], *, meta_features: bool) -> "Weights":
    """Return the random weights of all seeds, stacked, for padded columns.

    Padded columns are always zero, so their weights never move.
    """
    import jax
    import jax.numpy as jnp

    from foretune.methods.ranking.training import Weights
    from foretune.numerics.training import jax_layers

    unused = np.full(padded_width(width) - width, width)
    initial = [random_ensemble(width, seed=seed, meta_features=meta_features) for seed in seeds]
    wide = [_at_inputs(e, lambda w: np.insert(w, unused, 0.0, axis=-2)) for e in initial]
    weights = [Weights(*map(jax_layers, (e.scorers, e.each, e.all))) for e in wide]
    stacked: Weights = jax.tree.map(lambda *arrays: jnp.stack(arrays), *weights)
    return stacked


def read_ensembles(stacked: "Weights", width: int) -> list[Ensemble]:
    """Return the ensembles without the padded columns."""
    from foretune.numerics.training import as_arrays

    added = np.arange(width, padded_width(width))
    ensembles = [
        Ensemble(*(as_arrays([(w[k], b[k]) for w, b in layers]) for layers in stacked))
        for k in range(len(stacked.scorers[0][0]))
    ]
    return [_at_inputs(e, lambda w: np.delete(w, added, axis=-2)) for e in ensembles]


def _pad(evaluations: RankedEvaluations, columns: int) -> "RankingTasks":
    """Return the evaluations as training reads them, padded in every direction."""
    import jax.numpy as jnp

    from foretune.methods.ranking.training import RankingTasks
    from foretune.numerics.training import bucket

    (n, width), number = evaluations.x.shape, len(evaluations.counts)
    rows, places = bucket(n, least=1024), bucket(number, least=8)
    counts = np.pad(evaluations.counts, (0, places - number))
    return RankingTasks(
        x=jnp.asarray(np.pad(evaluations.x, ((0, rows - n), (0, columns - width)))),
        y=jnp.asarray(np.pad(evaluations.y, (0, rows - n))),
        firsts=jnp.asarray(np.cumsum(counts) - counts, jnp.int32),
        counts=jnp.asarray(counts, jnp.int32),
        primes=jnp.asarray([prime_from(int(count)) for count in counts], jnp.int32),
        number=jnp.asarray(number, jnp.int32),
    )


def _at_inputs(ensemble: Ensemble, change: Callable[[Singles], Singles]) -> Ensemble:
    """Return the ensemble with other weights (..., inputs, outputs) for configurations."""

    def rebuild(layers: Layers) -> Layers:
        return tuple(
            (change(weights) if number == 0 else weights, biases)
            for number, (weights, biases) in enumerate(layers)
        )

    return Ensemble(rebuild(ensemble.scorers), rebuild(ensemble.each), ensemble.all)
