"""ABLR: Bayesian linear regression for each task, on features that all past tasks share.

Perrone et al. (2018): a network of three layers of 50 tanh units maps a configuration to features.
Each task has a linear head with a precision alpha of its weights and a precision beta of its
noise. The network is learnt from past tasks by the sum of their marginal likelihoods. The target
fits only its own alpha and beta, and regresses on the learnt features.

The marginal likelihood has a gradient in closed form, so training is a few matrix products for
L-BFGS. It runs in NumPy, in double precision, and needs no library of networks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from foretune.experience import Experience
from foretune.methods import (
    CachedOnPool,
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
)
from foretune.numerics import (
    Floats,
    copula_scores,
    load_artifact,
    save_artifact,
    scalarise,
    standardise,
)
from foretune.plugins import Progress
from foretune.space import Encoded, Space
from foretune_lab.baselines.regression import (
    LOG_PRECISIONS,
    Regression,
    fit_precisions,
)

VERSION = 1
UNITS = (50, 50, 50)
EVALUATIONS = 2000
"""The network learns from at most this number of evaluations, shared evenly among the tasks."""
ITERATIONS = 200

Layers: TypeAlias = tuple[tuple[Floats, Floats], ...]
"""Weights (inputs, units) and biases (units,) of each layer."""


def activations(layers: Layers, x: Floats) -> list[Floats]:
    """Return the centred inputs x (n, W) of the unit cube, and the output of each layer."""
    found = [2.0 * x - 1.0]
    for weights, biases in layers:
        found.append(np.tanh(found[-1] @ weights + biases))
    return found


@dataclass(frozen=True, slots=True)
class EvidenceObjective:
    """The surprise of all past tasks as a function of one vector, for an optimiser.

    The vector holds weights and biases of every layer, then log alpha and log beta of each task.
    """

    x: Floats
    """(N, W), the configurations of all tasks, one task after the other."""
    z: Floats
    """(N,)"""
    tasks: tuple[slice, ...]
    """The rows of each task."""
    units: tuple[int, ...] = UNITS

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the arrays in the vector, in order."""
        widths = (self.x.shape[1], *self.units)
        layers = pairwise(widths)
        shapes = [shape for width, units in layers for shape in ((width, units), (units,))]
        return [*shapes, (len(self.tasks), 2)]

    def split(self, vector: Floats) -> tuple[Layers, Floats]:
        """Split the vector into the layers and the log precisions (tasks, 2)."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        *arrays, precisions = (
            part.reshape(shape)
            for part, shape in zip(np.split(vector, ends[:-1]), self.shapes, strict=True)
        )
        return tuple(zip(arrays[::2], arrays[1::2], strict=True)), precisions

    def start(self, rng: np.random.Generator) -> Floats:
        """Return weights of Glorot's scale, no biases, and heads of precision 1 and noise 0.1."""
        arrays = []
        for shape in self.shapes[:-1]:
            scale = np.sqrt(2.0 / sum(shape)) if len(shape) == 2 else 0.0
            arrays.append(scale * rng.standard_normal(shape))
        arrays.append(np.tile([0.0, np.log(100.0)], (len(self.tasks), 1)))
        return np.concatenate([array.ravel() for array in arrays])

    def surprise(self, vector: Floats) -> tuple[float, Floats]:
        """Return the mean surprise of an evaluation, and its gradient by backpropagation."""
        layers, precisions = self.split(vector)
        signals = activations(layers, self.x)
        heads = [
            Regression.of(signals[-1][rows], self.z[rows], *precisions[task])
            for task, rows in enumerate(self.tasks)
        ]
        gradient = [np.stack([head.to_precisions for head in heads])]
        slope = np.concatenate([head.to_features for head in heads])
        for (weights, _), before, after in zip(
            reversed(layers), reversed(signals[:-1]), reversed(signals[1:]), strict=True
        ):
            slope = slope * (1.0 - after * after)
            gradient = [before.T @ slope, slope.sum(axis=0), *gradient]
            slope = slope @ weights.T
        n = len(self.z)
        value = sum(head.surprise for head in heads) / n
        return value, np.concatenate([part.ravel() for part in gradient]) / n

    def minimise(self, seed: int) -> tuple[Layers, Floats]:
        """Return the layers and log precisions with the least surprise that L-BFGS finds."""
        start = self.start(np.random.default_rng(seed))
        n_precisions = 2 * len(self.tasks)
        free: list[tuple[float | None, float | None]] = [(None, None)]
        bounds = free * (len(start) - n_precisions) + [LOG_PRECISIONS] * n_precisions
        found = minimize(
            self.surprise,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": ITERATIONS},
        )
        return self.split(found.x)


@dataclass(frozen=True, slots=True)
class RegressionPosterior(Posterior):
    """The posterior of a conditioned head, for encoded configurations."""

    features: Callable[[Encoded], Floats]
    head: Regression
    best: float
    noise: float = 0.0
    """The variance of a loss about the regression, if predictions include it."""

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the transformed loss."""
        phi = self.features(x)
        variance = self.noise + np.einsum("ij,ij->i", phi @ self.head.covariance, phi)
        return Prediction(phi @ self.head.mean, np.sqrt(np.maximum(variance, 0.0)))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Return the values of functions whose weights are drawn from their posterior."""
        rng = np.random.default_rng(seed)
        weights = rng.multivariate_normal(self.head.mean, self.head.covariance, n, method="eigh")
        drawn: Floats = weights @ self.features(x).T
        return drawn


@dataclass(frozen=True, slots=True)
class RegressionSurrogate(Surrogate):
    """Regresses the target's losses on the learnt features."""

    features: Callable[[Encoded], Floats]
    output: Callable[[Floats], Floats]
    typical: Floats
    """(2,), log alpha and log beta that the fit starts from."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials; observed ones fit the precisions."""
        del seed
        good = seen.successes()
        phi, z, real = (
            self.features(good.configs),
            scalarise(good.losses, self.output),
            ~good.believed,
        )
        head = Regression.of(phi, z, *fit_precisions(phi[real], z[real], self.typical))
        return RegressionPosterior(self.features, head, float(z.min()))


@dataclass(frozen=True, slots=True)
class AblrPrior(Prior):
    """A network whose features suit all past tasks."""

    name: str
    output: Callable[[Floats], Floats]
    space: Space
    layers: Layers
    typical: Floats
    """(2,), the mean log alpha and log beta of past tasks. The target's fit starts from them."""

    def surrogate(self, target: Target) -> Surrogate:
        """Return a regression on the learnt features."""
        check_space(self.space, target)
        features = CachedOnPool(self.features, target.pool)
        return RegressionSurrogate(features, self.output, self.typical)

    def features(self, x: Encoded) -> Floats:
        """Return (len(x), D), the learnt features of configurations."""
        return activations(self.layers, x.x)[-1]

    def save(self, path: Path) -> None:
        """Write the network."""
        arrays: dict[str, NDArray[np.float64]] = {"typical": self.typical}
        for number, (weights, biases) in enumerate(self.layers):
            arrays |= {f"weights{number}": weights, f"biases{number}": biases}
        meta = {"space": self.space.to_json()}
        save_artifact(path, kind=_kind(self.name), version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class AblrLearner(Learner):
    """Trains the network; `output` brings the losses of each task to one unit."""

    name: str
    output: Callable[[Floats], Floats]

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> AblrPrior:
        """Maximise the marginal likelihoods of a subsample of the past evaluations."""
        experience = require_experience(experience)
        progress.start("learning features of past tasks", None)
        layers, precisions = training_of(experience, self.output, seed).minimise(seed)
        progress.stop()
        typical = precisions.mean(axis=0)
        return AblrPrior(self.name, self.output, experience.space, layers, typical)

    def load(self, path: Path) -> AblrPrior:
        """Read a saved network."""
        meta, arrays = load_artifact(path, kind=_kind(self.name), newest_version=VERSION)
        layers = tuple(
            (arrays[f"weights{number}"], arrays[f"biases{number}"]) for number in range(len(UNITS))
        )
        space = Space.from_json(meta["space"])
        return AblrPrior(self.name, self.output, space, layers, arrays["typical"])


def training_of(
    experience: Experience,
    output: Callable[[Floats], Floats],
    seed: int,
    *,
    evaluations: int = EVALUATIONS,
) -> EvidenceObjective:
    """Return a subsample of the past evaluations, of equal size for each task if it has enough."""
    tasks = past_tasks(experience, output)
    rng = np.random.default_rng(seed)
    share = max(evaluations // len(tasks), 1)
    parts = [task.subsample(share, rng) for task in tasks]
    ends = np.cumsum([0, *(len(part.rows) for part in parts)]).tolist()
    rows = np.concatenate([part.rows for part in parts])
    slices = tuple(slice(*pair) for pair in pairwise(ends))
    return EvidenceObjective(
        experience.configs.take(rows).x, np.concatenate([p.z for p in parts]), slices
    )


def _kind(name: str) -> str:
    return f"foretune-{name}"


def ablr() -> AblrLearner:
    """ABLR on standardised losses."""
    return AblrLearner("ablr", standardise)


def ablr_copula() -> AblrLearner:
    """ABLR on Gaussian scores of the losses."""
    return AblrLearner("ablr-copula", copula_scores)
