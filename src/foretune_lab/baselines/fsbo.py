"""FSBO and DKGP: Gaussian processes on features that a network learns.

FSBO, few-shot Bayesian optimisation (Wistuba & Grabocka 2021), learns the network and the kernel
from past tasks by their marginal likelihood, and adapts both to the target at every trial. DKGP
(Wilson et al. 2016) is the same process without past tasks: its network starts from random weights
at every trial.

As published, FSBO scales the labels of every draw by random limits, because the range of the
target's losses is not known, and begins with configurations that were good for past tasks together.
These are chosen greedily, and not by an evolutionary algorithm. The network trains by the schedule
of our own deep kernels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from foretune.experience import Experience
from foretune.methods import (
    Learner,
    Observations,
    Posterior,
    Prediction,
    Prior,
    Recipe,
    StatelessLearner,
    Surrogate,
    Target,
    check_space,
    past_tasks,
    portfolio_start,
    require_experience,
    split_tasks,
)
from foretune.numerics import (
    AS_THEY_ARE,
    GP,
    LARGEST_GP,
    Curriculum,
    DeepKernel,
    Floats,
    Kernel,
    Layer,
    Layers,
    apply_relu_layers,
    as_arrays,
    bucket,
    cache_compilation,
    fine_tune,
    informative_subset,
    initial_kernel,
    initial_layers,
    jax_layers,
    load_artifact,
    meta_train,
    save_artifact,
    scalarise,
    schedules_for,
    standardise,
)
from foretune.plugins import Progress
from foretune.space import Encoded, Space

VERSION = 1
KIND = "foretune-fsbo-scaled"
"""Before labels were scaled by random limits it was `foretune-fsbo`, whose kernels have another
unit and are refused."""
UNITS = (128, 128)
FEATURES = 32
LARGEST_FIT = 256
"""The network is tuned on at most this number of trials: the cost of a step grows as their cube."""
OPENING = 5
"""The configurations that the search begins with."""
LEAST_RANGE = 0.1
"""The least distance of random limits, in ranges of the draw: labels stay below a tenth of 100."""
Singles: TypeAlias = NDArray[np.float32]


def features(layers: list[Layer], x: jax.Array) -> jax.Array:
    """Return phi (n, FEATURES) of inputs x (n, padded width): rectified layers and a linear one."""
    for weights, biases in layers[:-1]:
        x = jax.nn.relu(x @ weights + biases)
    weights, biases = layers[-1]
    return x @ weights + biases


def inputs(x: Encoded) -> Singles:
    """Return (len(x), padded width): the unit cube about the origin, the best start for rectifiers.

    Zeros on the right let spaces of similar widths share compiled code.
    """
    width = x.x.shape[1]
    centred = (2.0 * x.x - 1.0).astype(np.float32)
    return np.pad(centred, ((0, 0), (0, bucket(width, least=16) - width)))


def embed(layers: Layers, x: Singles) -> Floats:
    """Compute `features` in NumPy."""
    weights, biases = layers[-1]
    phi: Floats = (apply_relu_layers(layers[:-1], x) @ weights + biases).astype(np.float64)
    return phi


def random_start(x: Singles, seed: int) -> DeepKernel:
    """Return a network of random weights, and a kernel that suits its features of x (n, W)."""
    layers = initial_layers(np.random.default_rng(seed), (x.shape[1], *UNITS, FEATURES))
    kernel = initial_kernel(embed(layers, x).astype(np.float32))
    return DeepKernel(jax_layers(layers), kernel)


def scale_by_random_limits(z: Floats, rng: np.random.Generator) -> Floats:
    """Return labels (n,) as a task would have them whose losses begin and end elsewhere."""
    low, high = np.sort(rng.uniform(z.min(), z.max(), 2))
    scaled: Floats = (z - low) / (max(high - low, LEAST_RANGE * np.ptp(z)) or 1.0)
    return scaled


def scale_to_range(z: Floats) -> Floats:
    """Return the target's losses (n,), from 0 for the best to 1 for the worst."""
    scaled: Floats = (z - z.min()) / (np.ptp(z) or 1.0)
    return scaled


@dataclass(frozen=True, slots=True)
class AdaptationSettings:
    """The settings by which parameters adapt to the target's trials."""

    steps: int
    rate: float

    def __call__(self, start: DeepKernel, x: Singles, z: Floats) -> DeepKernel:
        """Return the parameters after descending from `start` on losses z (n,) at x (n, W)."""
        keep = informative_subset(x.astype(np.float64), z, LARGEST_FIT)
        spare = bucket(len(keep), least=16) - len(keep)
        tuned: DeepKernel = fine_tune(
            features,
            start,
            jnp.asarray(np.pad(x[keep], ((0, spare), (0, 0)))),
            jnp.asarray(np.pad(z[keep], (0, spare)), dtype=jnp.float32),
            jnp.asarray(np.arange(len(keep) + spare) < len(keep)),
            steps=self.steps,
            rate=self.rate,
        )
        return tuned


@dataclass(frozen=True, slots=True)
class DeepKernelPosterior(Posterior):
    """A conditioned process on features of configurations."""

    layers: Layers
    model: GP
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the standardised loss."""
        return Prediction(*self.model.predict(embed(self.layers, inputs(x))))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw jointly from the standardised loss."""
        phi = embed(self.layers, inputs(x))
        return self.model.sample(phi, n, np.random.default_rng(seed))


@dataclass(frozen=True, slots=True)
class DeepKernelSurrogate(Surrogate):
    """Adapts the parameters to the observed rows, then conditions on the pending rows too."""

    learnt: DeepKernel | None
    """The parameters to adapt; random ones if None."""
    tuning: AdaptationSettings
    unit: Callable[[Floats], Floats] = standardise
    """Brings losses to the unit that the parameters were learnt in."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials."""
        good = seen.successes()
        x, real = inputs(good.configs), ~good.believed
        observed = scalarise(good.losses[real], self.unit)
        start = self.learnt or random_start(x[real], seed)
        params = self.tuning(start, x[real], observed)
        layers = as_arrays(params.network)
        phi, z = embed(layers, x), scalarise(good.losses, self.unit)
        keep = informative_subset(phi, z, LARGEST_GP)
        model = GP.condition(phi[keep], z[keep], params.hyper(FEATURES), units=AS_THEY_ARE)
        return DeepKernelPosterior(layers, model, float(z.min()))


@dataclass(frozen=True, slots=True)
class FsboPrior(Prior):
    """A network and a kernel that suit all past tasks, and configurations to begin with."""

    params: DeepKernel
    first: Encoded

    @property
    def space(self) -> Space:
        """The space of past tasks."""
        return self.first.space

    def opening(self, target: Target) -> Encoded:
        """Return the configurations that complement each other on past tasks."""
        check_space(self.space, target)
        return self.first

    def surrogate(self, target: Target) -> Surrogate:
        """Return the process that adapts them to the target."""
        check_space(self.space, target)
        return DeepKernelSurrogate(self.params, FEW_SHOT, scale_to_range)

    def save(self, path: Path) -> None:
        """Write the network and the kernel."""
        arrays: dict[str, NDArray[Any]] = {
            name: np.asarray(value) for name, value in self.params.kernel._asdict().items()
        }
        arrays |= self.first.pack()
        for number, (weights, biases) in enumerate(as_arrays(self.params.network)):
            arrays |= {f"weights{number}": weights, f"biases{number}": biases}
        meta = {"space": self.space.to_json()}
        save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class FsboLearner(Learner):
    """Trains the deep kernel on past tasks."""

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> FsboPrior:
        """Maximise the marginal likelihoods of draws from the past tasks."""
        cache_compilation()
        experience = require_experience(experience)
        tasks = past_tasks(experience, standardise)
        x = inputs(experience.configs)
        teaching, held_out = split_tasks(tasks, np.random.default_rng(seed))
        curriculum = Curriculum(x, teaching, held_out, scale_by_random_limits)
        params = random_start(x, seed)
        for number, schedule in enumerate(schedules_for(teaching)):
            params = meta_train(
                features,
                params,
                curriculum,
                seed=seed + number,
                schedule=schedule,
                progress=progress,
            )
        return FsboPrior(params, portfolio_start(experience, Recipe(k=OPENING, seed=seed)))

    def load(self, path: Path) -> FsboPrior:
        """Read a saved network and kernel."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        kernel = Kernel(*(jnp.asarray(arrays[name]) for name in Kernel._fields))
        layers = jax_layers(
            (arrays[f"weights{number}"], arrays[f"biases{number}"])
            for number in range(len(UNITS) + 1)
        )
        first = Space.from_json(meta["space"]).unpack(arrays)
        return FsboPrior(DeepKernel(layers, kernel), first)


FEW_SHOT = AdaptationSettings(steps=50, rate=1e-3)
FROM_NOTHING = AdaptationSettings(steps=100, rate=3e-3)


def fsbo() -> FsboLearner:
    """Make the learner of few-shot Bayesian optimisation."""
    return FsboLearner()


def dkgp() -> StatelessLearner:
    """Make a deep kernel that is learnt from the target alone."""
    cache_compilation()
    return StatelessLearner("dkgp", lambda _: DeepKernelSurrogate(None, FROM_NOTHING))
