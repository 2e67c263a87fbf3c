"""The surrogate: an exact Gaussian process on embedded pipelines (Algorithm 2).

If the network has learnt a mean, losses of trials become scores in the unit of past tasks, and the
process with the learnt kernel models the residuals of the mean. Otherwise the process models
standardised losses, and its few hyperparameters are fitted at every trial, starting from the learnt
ones; the latent space is scaled so that the learnt lengthscale is the most probable one before any
trial. Both run in double precision and cost as much as a plain Gaussian process.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints
from foretune.methods.contracts import Observations, Posterior, Prediction, Surrogate
from foretune.methods.past_data import CachedOnPool
from foretune.methods.pipeline.layout import NetworkLayout
from foretune.methods.pipeline.network import PipelineEmbedding
from foretune.numerics.anchored import LARGEST_FIT, LARGEST_GP, informative_subset
from foretune.numerics.gp import GP, fit_hyper, fit_hyper_to_unlearnt
from foretune.numerics.hyper import GPHyper
from foretune.numerics.networks import Layers
from foretune.numerics.objectives import scalarise
from foretune.numerics.scores import (
    Shares,
    draw_in_outliers,
    midrank_scores,
    scores_from_past,
    smooth_shares,
)
from foretune.numerics.transforms import AS_THEY_ARE, standardise
from foretune.space import Encoded

APART = 1.0
"""The distance of a new algorithm from all known pipelines, in lengthscales."""
APART_WITHOUT_MEAN = 2.0
"""The same distance if the network has not learnt a mean."""
OWN_LENGTHSCALE = 0.5
"""The lengthscale of a new algorithm's own hyperparameters, in diagonals of their cube."""
GROWTH = 1.25
"""Weights are trained anew whenever the number of trials has grown by this factor."""


@dataclass(frozen=True, slots=True)
class LatentPoints:
    """The places of n pipelines in the latent space."""

    u: Floats
    """(n, latent), scaled embeddings: the learnt lengthscale is the most probable one. New
    algorithms add dimensions.
    """
    mean: Floats
    """(n,), the expected loss; 0 if the network has not learnt it."""


Places: TypeAlias = CachedOnPool[LatentPoints]


@dataclass(frozen=True, slots=True)
class Choices:
    """Some algorithms of a space."""

    places: tuple[tuple[int, int], ...] = ()
    """(stage, algorithm) in the space's structure."""

    def uses_any(self, configs: Encoded) -> Bools:
        """Return (n,), whether each configuration uses any of them."""
        found = np.zeros(len(configs), dtype=bool)
        if self.places:
            chosen = configs.space.structure.algorithm_of(configs.values)
            for stage, algorithm in self.places:
                found |= chosen[:, stage] == algorithm
        return found


@dataclass(frozen=True, slots=True)
class DeepPipe:
    """A trained network and its kernel."""

    layout: NetworkLayout
    layers: Layers
    log_lengthscale: float
    """One lengthscale for all latent dimensions: the network sets their scales."""
    log_signal: float
    log_noise: float
    new: Choices = Choices()
    """The algorithms that past tasks did not know."""
    shares: Shares = smooth_shares
    """Turns the target's trials into scores."""

    def place(self, configs: Encoded) -> LatentPoints:
        """Return the places of pipelines in the scaled latent space.

        Past tasks know a new algorithm only as a typical one. So it lies apart from the others, and
        its own hyperparameters are further dimensions.
        """
        phi, mean = PipelineEmbedding(self.layout).embed(self.layers, configs)
        lengthscale = self.start.log_lengthscales[0]
        u = phi * np.exp(lengthscale - self.log_lengthscale)
        apart = [np.exp(lengthscale) * columns for columns in self._apart(configs)]
        return LatentPoints(np.concatenate([u, *apart], axis=1), mean)

    def _apart(self, configs: Encoded) -> Iterator[Floats]:
        """Yield (n, 1 + inputs) for each new algorithm, in lengthscales; 0 where it is not used."""
        if not self.new.places:
            return
        read = self.layout.read(configs).astype(np.float64)
        distance = APART if self.layout.sizes.learns_mean else APART_WITHOUT_MEAN
        for place in self.new.places:
            used, own = Choices((place,)).uses_any(configs)[:, None], self._own_inputs(place)
            diagonal = OWN_LENGTHSCALE * float(np.sqrt(max(len(own), 1)))
            columns: Floats = np.hstack(
                [np.full_like(used, distance, float), (read[:, own] - 0.5) / diagonal]
            )
            yield columns * used

    def _own_inputs(self, place: tuple[int, int]) -> list[int]:
        """Return the places of the hyperparameters of (stage, algorithm) among the inputs."""
        stage = self.layout.stages[place[0]]
        encoder = (stage.name, stage.algorithms[place[1]])
        return [i for i, key in enumerate(self.layout.input_keys) if key[:2] == encoder]

    def scores(self, losses: Floats, at: LatentPoints) -> Floats:
        """Return the scores (n,) of losses (n, L): what the process models.

        With a learnt mean they are in the unit of past tasks; otherwise they are standardised.
        """
        if not self.layout.sizes.learns_mean:
            return scalarise(losses, _standardise_usual)
        # Beside an enormous loss all standardised losses would be equal. A single objective needs
        # no unit here, and several objectives get the unit of past tasks.
        y = losses[:, 0] if losses.shape[1] == 1 else scalarise(losses, midrank_scores)
        sigma = np.full(len(y), np.exp(0.5 * self.log_signal))
        return scores_from_past(y, at.mean, sigma, shares=self.shares)

    @property
    def start(self) -> GPHyper:
        """The learnt kernel in the scaled latent space."""
        default = GPHyper.default(self.groups)
        return GPHyper(default.log_lengthscales, self.log_signal, self.log_noise)

    @property
    def groups(self) -> Ints:
        """(dimensions,), zeros: all dimensions share one lengthscale."""
        apart = sum(1 + len(self._own_inputs(place)) for place in self.new.places)
        return np.zeros(self.layout.sizes.latent + apart, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class HalfTaught:
    """A network that was tuned to half of the target's trials."""

    model: DeepPipe
    learnt: Ints
    """The places of these trials."""

    def part(self, configs: Encoded) -> tuple[Floats, Bools]:
        """Return where the network places n trials, and which of them it has learnt (n,)."""
        learnt = np.zeros(len(configs), dtype=bool)
        learnt[self.learnt] = True
        return self.model.place(configs).u, learnt


def _standardise_usual(y: Floats) -> Floats:
    """Standardise losses (n,) after outliers are drawn in.

    A few trials rarely show how bad pipelines can be, so a process of bare losses is too certain.
    """
    return standardise(draw_in_outliers(y))


class NetworkSource(Protocol):
    """A source of the network for some observations."""

    def after(self, configs: Encoded, losses: Floats) -> tuple[DeepPipe, Places]:
        """Return the network after the target's trials (n, L). It depends on these only."""

    def halves(self, configs: Encoded, losses: Floats) -> tuple[HalfTaught, ...] | None:
        """Return networks that have learnt half of the trials; None if no trial is ever learnt.

        There are none if the trials are too few.
        """


@dataclass(frozen=True, slots=True)
class FixedNetwork:
    """The network of past tasks, for any trials of the target."""

    model: DeepPipe
    places: Places

    @classmethod
    def on(cls, model: DeepPipe, pool: Encoded | None) -> "FixedNetwork":
        """Make a source that computes the pool's embeddings once."""
        return cls(model, CachedOnPool(model.place, pool))

    def after(self, configs: Encoded, losses: Floats) -> tuple[DeepPipe, Places]:
        """Return the same network always."""
        del configs, losses
        return self.model, self.places

    def halves(self, configs: Encoded, losses: Floats) -> None:
        """Return None, because this network learns no trial of the target."""
        del configs, losses


@dataclass(frozen=True, slots=True)
class PipelinePosterior(Posterior):
    """The learnt mean and a conditioned process in the latent space, read at configurations."""

    places: Places
    model: GP
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the loss, in the unit of past tasks."""
        at = self.places(x)
        mean, std = self.model.predict(at.u)
        return Prediction(at.mean + mean, std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw the losses jointly."""
        at = self.places(x)
        return at.mean + self.model.sample(at.u, n, np.random.default_rng(seed))


@dataclass(frozen=True, slots=True)
class DeepPipeSurrogate(Surrogate):
    """Conditions on observed and believed trials.

    If no mean was learnt, the kernel is first tuned to the observed trials.
    """

    source: NetworkSource
    notes: tuple[str, ...] = ()
    """The parts of the target's space that past tasks did not have."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the process after all successful trials."""
        del seed
        good = seen.successes()
        real = np.flatnonzero(~good.believed)
        learnt, places = self.source.after(good.configs.take(real), good.losses[real])
        at = places(good.configs)
        z = learnt.scores(good.losses, at)
        keep = informative_subset(at.u, z, LARGEST_GP)
        if learnt.layout.sizes.learns_mean:
            residuals = (z - at.mean)[keep]
            model = GP.condition(at.u[keep], residuals, learnt.start, units=AS_THEY_ARE)
        else:
            hyper = self._tune_kernel(learnt, good.configs.take(real), good.losses[real])
            model = GP.condition(at.u[keep], z[keep], hyper)
        return PipelinePosterior(places, model, float(z.min()))

    def _tune_kernel(self, learnt: DeepPipe, configs: Encoded, losses: Floats) -> GPHyper:
        """Fit the parameters of the kernel alone, always from the learnt ones (Algorithm 2).

        A network that has learnt the trials places them so that they are easily told apart. The
        noise of its kernel is found by networks that have not learnt all of them.
        """
        at = learnt.place(configs)
        y, halves = learnt.scores(losses, at), self.source.halves(configs, losses)
        keep = informative_subset(at.u, y, LARGEST_FIT)
        if halves is None:
            return fit_hyper(at.u[keep], y[keep], starts=(learnt.start,), groups=learnt.groups)
        if not halves:
            return learnt.start
        parts = [(u[keep], known[keep]) for u, known in (half.part(configs) for half in halves)]
        return fit_hyper_to_unlearnt(parts, y[keep], start=learnt.start, groups=learnt.groups)
