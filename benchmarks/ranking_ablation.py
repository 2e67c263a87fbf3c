"""Measures the worth of the parts of deep ranking ensembles: the paper's claims 3 to 5, and tuning.

There are 5 folds of tasks and a line of JSON for each run, so an interrupted ablation goes on where
it stopped (`ranking_claims.py` draws them). `dre` has meta-learning (M), fine-tuning (T) and
meta-features (F), `dre-ri` only fine-tuning, `no-M` the meta-features of an untrained deep set too.
`dre-paper` and `dre-ri-paper` have the paper's fine-tuning, ranks, acquisition and initial design.
The numbers are the normalised regret of the incumbent (0 the pool's best, 1 its median) after some
trials, and the average rank of each variant among all.

    python benchmarks/ranking_ablation.py --experience lightgbm.parquet --out runs.jsonl \
        --variants dre,no-T,no-F --tasks-limit 20 --seeds 2 --trials 50
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import rankdata

from foretune._base.progress import SILENT, Progress
from foretune.experience import Experience, k_fold
from foretune.methods.contracts import Posterior, Prior, Surrogate, Target
from foretune.methods.ranking.ensemble import random_ensemble
from foretune.methods.ranking.learn import RandomLearner, RandomPrior, RankingLearner
from foretune.methods.ranking.model import RankingPrior, RankingSettings, RankingSurrogate
from foretune.methods.ranking.variants import dre, dre_ri
from foretune.numerics.networks import Layers
from foretune.numerics.ranking import LOSSES
from foretune.numerics.training import Layer, advance, as_arrays, bucket, jax_layers, start_descent
from foretune.search import METHODS, Design, Method, Optimizer, Told
from foretune.search.acquisition import ACQUISITIONS, Acquisition
from foretune.space import Encoded
from foretune_lab.bench.metrics import best_so_far
from foretune_lab.bench.pools import TaskPool, pool_of

FOLDS, EPOCHS = 5, 1000
RATE, RANDOM_RATE = 1e-3, 2e-2
"""The rates of fine-tuning meta-learnt and random weights; the paper names the second one."""
REPORTED = (5, 10, 25, 50)
BETA = 1.0
"""The weight of the standard deviation in the lower confidence bound."""


def _bound(posterior: Posterior, x: Encoded, beta: float) -> np.ndarray:
    """Return the negated lower confidence bound of the rank (m,)."""
    belief = posterior.predict(x)
    return beta * belief.std - belief.mean


ACQUISITIONS["lcb"] = Acquisition(lambda posterior, x, _: _bound(posterior, x, BETA))
ACQUISITIONS["mean"] = Acquisition(lambda posterior, x, _: _bound(posterior, x, 0.0))


def dre_with(
    settings: RankingSettings, *, meta_features: bool = True
) -> Callable[[], RankingLearner]:
    return lambda: replace(dre(), settings=settings, meta_features=meta_features)


@dataclass(frozen=True, slots=True)
class PaperTuning(RankingSurrogate):
    """Fine-tunes as the paper does: 1,000 epochs of Adam from the initial weights."""

    rate: float = RATE

    def _tune(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Layers:
        n = len(y)
        if n == 0:
            return self.ensemble.scorers
        size = bucket(n, least=8)
        inputs = np.pad(self.ensemble.inputs(x, z), ((0, size - n), (0, 0)))
        y, valid = np.pad(y, (0, size - n)), np.arange(size) < n
        rates = jnp.full(EPOCHS, self.rate, jnp.float32)
        return as_arrays(adam(jax_layers(self.ensemble.scorers), inputs, y, valid, rates))


@jax.jit
def adam(
    scorers: list[Layer], inputs: jax.Array, y: jax.Array, valid: jax.Array, rates: jax.Array
) -> list[Layer]:
    def loss(scorers: list[Layer], _: jax.Array) -> jax.Array:
        x = jnp.tile(inputs, (len(scorers[0][0]), 1, 1))
        for number, (weights, biases) in enumerate(scorers):
            x = x @ weights + biases[:, None, :]
            x = jax.nn.relu(x) if number < len(scorers) - 1 else x
        lost = jax.vmap(LOSSES["list-wise"], in_axes=(0, None, None))(x[:, :, 0], y, valid)
        return jnp.sum(lost) / jnp.sum(valid)

    return advance(loss, start_descent(scorers), rates, rates).params


class PaperPrior(RankingPrior):
    def surrogate(self, target: Target) -> Surrogate:
        return PaperTuning(self.ensemble, self.settings, target.pool)


class PaperRandomPrior(RandomPrior):
    """Random scorers that 1,000 epochs at the paper's rate train, and a random deep set."""

    def surrogate(self, target: Target) -> Surrogate:
        ensemble = random_ensemble(target.space.width, seed=self.seed, meta_features=True)
        return PaperTuning(ensemble, self.settings, target.pool, RANDOM_RATE)


class PaperRandomLearner(RandomLearner):
    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> Prior:
        del experience, progress
        return PaperRandomPrior(self.kind, seed, self.settings)

    @staticmethod
    def make() -> "PaperRandomLearner":
        return PaperRandomLearner(dre_ri().kind, replace(dre_ri().settings, unit="ranks"))


class PaperLearner(RankingLearner):
    def learn_many(
        self, experience: Experience, seeds: Sequence[int], *, progress: Progress
    ) -> list[Prior]:
        priors = dre().learn_many(experience, seeds, progress=progress)
        return [PaperPrior(p.kind, p.space, p.ensemble, self.settings) for p in priors]

    @staticmethod
    def make() -> "PaperLearner":
        return PaperLearner(dre().kind, dre().settings)

    @staticmethod
    def as_published() -> "PaperLearner":
        """Return the same with ranks in place of scores, for expected improvement in ranks."""
        return PaperLearner(dre().kind, replace(dre().settings, unit="ranks"))


class UntrainedPrior(RandomPrior):
    """Scorers of random weights that read the meta-features of a random deep set."""

    def surrogate(self, target: Target) -> Surrogate:
        ensemble = random_ensemble(target.space.width, seed=self.seed, meta_features=True)
        return RankingPrior(self.kind, target.space, ensemble, self.settings).surrogate(target)


class UntrainedLearner(RandomLearner):
    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> Prior:
        del experience, progress
        return UntrainedPrior(self.kind, seed, self.settings)

    @staticmethod
    def make() -> "UntrainedLearner":
        return UntrainedLearner(dre_ri().kind, dre_ri().settings)


def variants() -> dict[str, Method]:
    default, plain = dre().settings, METHODS["dre"]
    found = dict(METHODS)
    learners = {
        "no-T": dre_with(replace(default, tuning=None)),
        "no-F": dre_with(default, meta_features=False),
        "no-T-no-F": dre_with(replace(default, tuning=None), meta_features=False),
        "ranks": dre_with(replace(default, unit="ranks")),
    }
    for loss in (
        "list-wise",
        "list-wise unweighted",
        "list-wise inverse linear",
        "list-wise attention",
        "pair-wise",
        "point-wise",
        "regression",
    ):
        settings = replace(default, loss=loss)
        learners[f"{loss} no-F"] = dre_with(settings, meta_features=False)
    learners["adam-1000"] = PaperLearner.make
    found |= {name: replace(plain, name=name, learner=make) for name, make in learners.items()}
    found["no-M"] = replace(METHODS["dre-ri"], name="no-M", learner=UntrainedLearner.make)
    found["ranks ei"] = replace(found["ranks"], name="ranks ei", acquisition="ei")
    for name, make in (
        ("dre-paper", PaperLearner.as_published),
        ("dre-ri-paper", PaperRandomLearner.make),
    ):
        five = Design("random", 5)
        found[name] = replace(plain, name=name, learner=make, acquisition="ei", design=five)
    for acquisition in ("ei", "thompson", "lcb", "mean"):
        name = f"dre {acquisition}"
        found[name] = replace(plain, name=name, acquisition=acquisition)
    return found


def run(chosen: Method, prior: Prior, pool: TaskPool, seed: int, trials: int) -> dict[str, object]:
    optimizer = Optimizer(Target(pool.configs.space, pool=pool.configs), chosen, prior, seed=seed)
    started = time.process_time()
    for _ in range(min(trials, len(pool.configs))):
        suggestion = optimizer.ask()[0]
        optimizer.tell([Told(tuple(pool.losses[suggestion.pool_index]), id=suggestion.id)])
    seconds = time.process_time() - started
    low, middle = np.nanmin(pool.losses), np.nanmedian(pool.losses)
    regret = (best_so_far(optimizer.told.losses[:, 0]) - low) / max(middle - low, 1e-12)
    return {"regret": np.round(regret, 6).tolist(), "seconds": round(seconds, 3)}


def learn(chosen: Method, past: Experience, seeds: Sequence[int]) -> list[Prior]:
    return chosen.learner().learn_many(past, seeds, progress=SILENT)


def ablate(
    experience: Experience,
    names: Sequence[str],
    done: set[tuple[str, str, int]],
    given: argparse.Namespace,
) -> Iterator[dict[str, object]]:
    """Yield one row for each run that is not done yet."""
    known, seeds = variants(), range(given.seeds)
    for fold in k_fold(experience, FOLDS, seed=0):
        tasks = fold.test[: -(-given.tasks_limit // FOLDS)]
        for name in names:
            left = [(t, s) for t in tasks for s in seeds if (name, t, s) not in done]
            if not left:
                continue
            priors = learn(known[name], experience.only(fold.train), seeds)
            for task, seed in left:
                outcome = run(
                    known[name], priors[seed], pool_of(experience, task), seed, given.trials
                )
                yield {"variant": name, "task": task, "seed": seed} | outcome


def report(rows: Sequence[dict[str, object]], names: Sequence[str]) -> None:
    """Print mean regret and average rank of each variant, over the runs that all of them have."""
    regrets = {(row["variant"], row["task"], row["seed"]): row["regret"] for row in rows}
    every = {(task, seed) for _, task, seed in regrets}
    runs = sorted(key for key in every if all((name, *key) in regrets for name in names))
    found = np.array([[regrets[(name, *key)] for key in runs] for name in names])
    print(
        f"{len(runs)} runs; regret after {REPORTED} trials, their mean; average ranks; ms a trial"
    )
    at = [trial - 1 for trial in REPORTED if trial <= found.shape[2]]
    ranks = np.apply_along_axis(rankdata, 0, np.round(found, 9)).mean(axis=1)
    for place, name in enumerate(names):
        seconds = [row["seconds"] for row in rows if row["variant"] == name]
        regret, rank = found[place].mean(axis=0), ranks[place]
        print(
            f"{name:28s}",
            *(f"{regret[t]:.4f}" for t in at),
            f" {regret.mean():.4f} |",
            *(f"{rank[t]:.2f}" for t in at),
            f" {rank.mean():.2f} | {1000 * np.mean(seconds) / found.shape[2]:.0f}",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, one a run")
    parser.add_argument("--variants", default="random,gp,gcp-prior,dre,no-T,no-F")
    parser.add_argument("--tasks-limit", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=50)
    given = parser.parse_args()
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    names = given.variants.split(",")
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    rows = [json.loads(line) for line in lines]
    done = {(row["variant"], row["task"], row["seed"]) for row in rows}
    with given.out.open("a") as file:
        for row in ablate(experience, names, done, given):
            file.write(json.dumps(row) + "\n")
            file.flush()
            rows.append(row)
    report(rows, names)


if __name__ == "__main__":
    main()
