"""Pre-trained Gaussian processes, one for each algorithm (Wang et al., 2024).

Past tasks count as draws of one process. Its mean and kernel are learnt from them, and the target
does not change them. The mean is a process fitted to the evaluations of all past tasks together.
The kernel's hyperparameters maximise the sum of the past tasks' log likelihoods about that mean
and one log prior. Losses are standardised within a task, over all its algorithms.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from foretune.experience import Experience
from foretune.methods import (
    Learner,
    Observations,
    PastTask,
    Posterior,
    Prediction,
    Prior,
    Surrogate,
    Target,
    check_space,
    past_tasks,
    require_experience,
)
from foretune.numerics import (
    AS_THEY_ARE,
    GP,
    Bools,
    Floats,
    GPHyper,
    Ints,
    fit_hyper,
    hyper_bounds,
    load_artifact,
    negative_log_posterior,
    prior_mode,
    save_artifact,
    scalarise,
    standardise,
)
from foretune.plugins import Progress, track
from foretune.space import Algorithms, Encoded, Space
from foretune_lab.baselines.bandits import own_groups, own_inputs

KIND = "foretune-pretrained-gps"
VERSION = 1
POOLED = 300
"""The mean of an algorithm is fitted to at most this number of evaluations of all past tasks."""
PER_TASK = 30
"""Its kernel is fitted to this number of evaluations of each past task."""


@dataclass(frozen=True, slots=True)
class PretrainedProcess:
    """The knowledge from past tasks about one algorithm."""

    mean: GP
    """The mean, fitted to all past tasks together."""
    hyper: GPHyper
    """The hyperparameters of the process about that mean."""

    def condition(self, x: Floats, z: Floats) -> GP | None:
        """Return the process of the residuals about the mean, after z (n,) at x (n, d)."""
        if len(z) == 0:
            return None
        return GP.condition(x, z - self.mean.mean(x), self.hyper, units=AS_THEY_ARE)

    def predict(self, residual: GP | None, x: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (m,) at x (m, d)."""
        expected = self.mean.mean(x)
        if residual is None:
            return expected + self.hyper.mean, np.full(len(x), np.exp(0.5 * self.hyper.log_signal))
        mean, std = residual.predict(x)
        return expected + mean, std


@dataclass(frozen=True, slots=True)
class PretrainedPosterior(Posterior):
    """The processes after the target's trials."""

    algorithms: Algorithms
    processes: tuple[PretrainedProcess | None, ...]
    residuals: tuple[GP | None, ...]
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return the prediction of each configuration's algorithm; N(0, 1) if none was learnt."""
        mean, std = np.zeros(len(x)), np.ones(len(x))
        which = self.algorithms.algorithm_of(x)
        for m in np.unique(which).tolist():
            process, rows = self.processes[m], np.flatnonzero(which == m)
            if process is not None:
                inputs = own_inputs(self.algorithms, m, x.take(rows))
                mean[rows], std[rows] = process.predict(self.residuals[m], inputs)
        return Prediction(mean, std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw independently at every configuration."""
        belief = self.predict(x)
        drawn = np.random.default_rng(seed).standard_normal((n, len(x)))
        return belief.mean + belief.std * drawn


@dataclass(frozen=True, slots=True)
class PretrainedSurrogate(Surrogate):
    """Conditions the processes; fits nothing."""

    algorithms: Algorithms
    processes: tuple[PretrainedProcess | None, ...]

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials."""
        del seed
        good = seen.successes()
        z = scalarise(good.losses, standardise)
        which = self.algorithms.algorithm_of(good.configs)
        residuals = tuple(
            None
            if process is None
            else process.condition(
                own_inputs(self.algorithms, m, good.configs.take(which == m)), z[which == m]
            )
            for m, process in enumerate(self.processes)
        )
        best = float(z.min())
        return PretrainedPosterior(self.algorithms, self.processes, residuals, best)


@dataclass(frozen=True, slots=True)
class PretrainedPrior(Prior):
    """One process for each algorithm; None for those that no past task tried."""

    space: Space
    processes: tuple[PretrainedProcess | None, ...]

    def surrogate(self, target: Target) -> Surrogate:
        """Return the processes, to be conditioned on the target's trials."""
        check_space(self.space, target)
        return PretrainedSurrogate(Algorithms.of(target.space), self.processes)

    def save(self, path: Path) -> None:
        """Write the evaluations that the means learnt from, and all hyperparameters."""
        arrays = {}
        known = [m for m, process in enumerate(self.processes) if process is not None]
        for m, process in enumerate(self.processes):
            if process is not None:
                arrays[f"x{m}"], arrays[f"z{m}"] = process.mean.x, process.mean.y
                arrays[f"mean{m}"] = process.mean.hyper.to_vector()
                arrays[f"hyper{m}"] = process.hyper.to_vector()
        meta = {"space": self.space.to_json(), "known": known}
        save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class PretrainedLearner(Learner):
    """Learns a mean and a kernel for every algorithm."""

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> PretrainedPrior:
        """Learn from a subsample of the evaluations of every algorithm."""
        experience = require_experience(experience)
        algorithms = Algorithms.of(experience.space)
        which = algorithms.algorithm_of(experience.configs)
        tasks = past_tasks(experience, standardise)
        steps = track(range(len(algorithms)), progress, "pre-training processes", len(algorithms))
        processes = []
        for m in steps:
            own = [_only(task, which[task.rows] == m) for task in tasks]
            own = [task for task in own if len(task.rows)]
            columns = own_groups(experience.space, algorithms.columns[m])
            inputs = own_inputs(algorithms, m, experience.configs)
            rng = np.random.default_rng([seed, m])
            processes.append(_pretrain(own, inputs, columns, rng) if own else None)
        return PretrainedPrior(experience.space, tuple(processes))

    def load(self, path: Path) -> PretrainedPrior:
        """Condition the saved means again."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        space = Space.from_json(meta["space"])
        processes: list[PretrainedProcess | None] = [None] * len(Algorithms.of(space))
        for m in meta["known"]:
            hyper = GPHyper.from_vector(arrays[f"mean{m}"])
            mean = GP.condition(arrays[f"x{m}"], arrays[f"z{m}"], hyper, units=AS_THEY_ARE)
            processes[m] = PretrainedProcess(mean, GPHyper.from_vector(arrays[f"hyper{m}"]))
        return PretrainedPrior(space, tuple(processes))


def _only(task: PastTask, rows: Bools) -> PastTask:
    return PastTask(task.rows[rows], task.z[rows])


def _pretrain(
    tasks: list[PastTask], inputs: Floats, groups: Ints, rng: np.random.Generator
) -> PretrainedProcess:
    """Learn mean and kernel of one algorithm; tasks' rows number its inputs (configurations, d)."""
    everything = PastTask(
        np.concatenate([task.rows for task in tasks]), np.concatenate([task.z for task in tasks])
    ).subsample(POOLED, rng)
    x, z = inputs[everything.rows], everything.z
    mean = GP.condition(x, z, fit_hyper(x, z, units=AS_THEY_ARE, groups=groups), units=AS_THEY_ARE)
    parts = [task.subsample(PER_TASK, rng) for task in tasks]
    lists = [(inputs[part.rows], part.z - mean.mean(inputs[part.rows])) for part in parts]
    return PretrainedProcess(mean, _fit_common_hyper(lists, groups))


def _fit_common_hyper(lists: list[tuple[Floats, Floats]], groups: Ints) -> GPHyper:
    """Return the most probable hyperparameters after all of the lists (x, residuals)."""
    # There is one prior for all lists, so each list brings its part of it.
    part = 1.0 / len(lists)

    def surprise(vector: Floats) -> tuple[float, Floats]:
        each = [negative_log_posterior(vector, x, z, groups, part) for x, z in lists]
        return (
            float(np.sum([value for value, _ in each])),
            np.sum([gradient for _, gradient in each], axis=0),
        )

    found = minimize(
        surprise,
        prior_mode(groups),
        jac=True,
        method="L-BFGS-B",
        bounds=hyper_bounds(int(groups.max()) + 1),
        options={"maxiter": 30},
    )
    lengthscales = found.x[:-3][groups]
    return GPHyper.from_vector(np.append(lengthscales, found.x[-3:]))


def pretrained_gps() -> PretrainedLearner:
    """Make the learner of pre-trained, independent processes."""
    return PretrainedLearner()
