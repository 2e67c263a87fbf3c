"""What a method is made of: Learner -> Prior -> Surrogate -> Posterior.

Experience flows into a `Learner`, which returns a `Prior`: immutable, saved and loaded without
pickle. For one target task the prior gives a `Surrogate`, and the surrogate conditioned on the
target's own observations gives a `Posterior`, which acquisition functions read.

Everything behind this line is minimised. `Experience.losses` turns recorded metrics; whoever calls
`Optimizer.tell` tells losses, so scores that should grow are turned by the caller.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune._base.progress import Progress
from foretune.errors import UsageError
from foretune.experience import Experience
from foretune.space import Encoded, Space


@dataclass(frozen=True, slots=True)
class Target:
    """The task to be tuned, as far as it is known before the first trial."""

    space: Space
    objectives: tuple[str, ...] = ("loss",)
    pool: Encoded | None = None
    """All configurations that can be chosen, where they are a recorded list."""
    meta_features: Mapping[str, float] = field(default_factory=dict)
    effect: Callable[[Encoded], Encoded] | None = None
    """Equal for configurations that cannot differ in their results; None where all may differ."""

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise UsageError(
                f"a target needs a Space, but got {self.space!r}: write Target(Space.of(...))"
            )
        if isinstance(self.objectives, str):
            raise UsageError(
                f"objectives must be a tuple of names, but got the text {self.objectives!r}: "
                f"write objectives=({self.objectives!r},)"
            )
        if not self.objectives or len(set(self.objectives)) < len(self.objectives):
            raise UsageError(
                "objectives must be at least one name, each of them once, but got "
                f"{self.objectives!r}: name what each trial is told about"
            )
        if self.pool is not None:
            check_encoding(self.pool, self.space, "pool")
            if len(self.pool) == 0:
                raise UsageError(
                    "a pool must hold at least one configuration, but got none: give some, or "
                    "leave the pool out to search the whole space"
                )


def check_encoding(given: object, space: Space, name: str) -> None:
    """Refuse configurations that were not encoded by the space that is searched.

    name: the argument that they are given as.
    """
    if not isinstance(given, Encoded):
        raise UsageError(
            f"`{name}` must be configurations that the space has encoded, but got "
            f"{type(given).__name__}: write {name}=space.encode([...])"
        )
    if given.space != space:
        raise UsageError(
            f"`{name}` must be configurations of the space that is searched, but got those of "
            f"another, {given.space!r}: encode them with the one that is searched"
        )


@dataclass(frozen=True, slots=True)
class Observations:
    """What the target task has told so far, in the order it was told.

    A failed trial has NaN in every column of `losses`. A believed row is not an observation: it
    is a pending trial with a guessed loss, there so that a batch spreads out. Believed rows come
    last, and no hyperparameter of a surrogate may be fitted to them.
    """

    configs: Encoded
    losses: Floats
    """(n, number of objectives), minimised."""
    believed: Bools
    """(n,), True for pending trials."""

    def __len__(self) -> int:
        return len(self.losses)

    @property
    def is_success(self) -> Bools:
        """(n,), True where every objective has a finite loss."""
        return np.asarray(np.isfinite(self.losses).all(axis=1))

    def successes(self) -> "Observations":
        """Only the rows that a surrogate may be fitted to, believed ones included."""
        keep = np.flatnonzero(self.is_success)
        if len(keep) == len(self):
            return self
        return Observations(self.configs.take(keep), self.losses[keep], self.believed[keep])


@dataclass(frozen=True, slots=True)
class Prediction:
    """Mean and standard deviation of a posterior at m configurations, each (m,)."""

    mean: Floats
    std: Floats


@runtime_checkable
class Posterior(Protocol):
    """A belief about the loss, in whatever monotone unit the surrogate works in."""

    @property
    def best(self) -> float:
        """What an improvement must beat, in the posterior's own unit: the best of the trials, of
        pending ones as they are believed to end. Else what a pending trial is to bring would be
        promised again by all that lies around it, and a batch would gather there.
        """

    def predict(self, x: Encoded) -> Prediction:
        """Mean and standard deviation at each configuration."""

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """`n` draws of the values at all configurations: (n, len(x))."""


@runtime_checkable
class OwnUtility(Protocol):
    """A posterior that brings its own acquisition function (e.g. a sum over source tasks)."""

    def log_utility(self, x: Encoded) -> Floats:
        """The logarithm of a positive utility for each configuration.

        Logarithms keep the order of candidates that all look hopeless, and a probability of
        failure is a factor of the utility whatever its unit.
        """


@runtime_checkable
class SideBySide(OwnUtility, Protocol):
    """A posterior that tells several objectives apart; its utility is what all of them gain."""

    def predict_each(self, x: Encoded) -> Floats:
        """(len(x), objectives), the mean of each; one column stands for all where they are one."""


def means_of_each(posterior: Posterior, x: Encoded) -> Floats:
    """(len(x), objectives), what a posterior expects of each; or one column for all of them."""
    if isinstance(posterior, SideBySide):
        return posterior.predict_each(x)
    return posterior.predict(x).mean[:, None]


@runtime_checkable
class Surrogate(Protocol):
    """Learns from the target's own observations. A pure function of its arguments."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The belief after `seen`, of which at least one row is a success."""


@runtime_checkable
class Prior(Protocol):
    """What was learnt from experience (nothing, for methods that do not transfer)."""

    def surrogate(self, target: Target) -> Surrogate:
        """The surrogate that this prior gives for one task."""

    def save(self, path: Path) -> None:
        """Write the prior to one file, atomically and without pickle."""


@runtime_checkable
class Learner(Protocol):
    """Meta-learning, offline."""

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> Prior:
        """Distil past tasks into a prior. The experience never holds the target's own records;
        only methods that do not transfer are called without one.
        """

    def load(self, path: Path) -> Prior:
        """Read a prior that this learner's priors have saved."""


@runtime_checkable
class LearnsMany(Protocol):
    """A learner that is faster when it learns with several seeds at once."""

    def learn_many(
        self, experience: Experience, seeds: Sequence[int], *, progress: Progress
    ) -> list[Prior]:
        """A prior for each seed, of the kind that `learn` gives for it.

        They need not be equal: what is trained beside other seeds may be rounded differently and
        end up a little elsewhere.
        """


@runtime_checkable
class OpensEarly(Protocol):
    """A learner that can tell what its prior opens with before it has learnt the rest."""

    def early_opening(self, experience: Experience, *, seed: int) -> Encoded | None:
        """The same configurations as `learn(...).opening(target)` gives, within a second or so.

        None where they follow from all that is learnt.
        """


Keep: TypeAlias = Callable[[str, Learner, Experience, Experience], Prior]
"""(name, learner, experience, the part that it reads) -> its prior, learnt from the experience now,
or found where it was kept for that part."""


@runtime_checkable
class LearnsInParts(Protocol):
    """A learner of several parts. Parts that are finished can be kept when the work is stopped."""

    def learn_in_parts(
        self, experience: Experience | None, *, seed: int, progress: Progress, keep: Keep
    ) -> Prior:
        """The same as `learn`, each part by way of `keep`."""


@runtime_checkable
class Continuing(Protocol):
    """A learner that can go on from an earlier prior when a few tasks have been added."""

    def continue_from(
        self, earlier: Prior, experience: Experience, *, seed: int, progress: Progress
    ) -> Prior:
        """What it has learnt after a short training on all tasks, the added ones included."""


@runtime_checkable
class Region(Protocol):
    """A part of the space."""

    def contains(self, x: Encoded) -> Bools:
        """(len(x),), which configurations lie in it."""

    def sample(self, n: int, *, seed: int) -> Encoded:
        """`n` configurations of it, uniformly."""


@runtime_checkable
class Bounded(Protocol):
    """A prior that restricts the search to a part of the space."""

    def region(self, target: Target) -> Region:
        """The part in which good configurations lie, by all that was learnt."""


@runtime_checkable
class Informed(Protocol):
    """A prior that knows configurations which were good for past tasks."""

    def known_good(self, target: Target) -> Encoded:
        """Configurations worth a look, in any order."""


@runtime_checkable
class Stocked(Protocol):
    """A prior that can go on naming configurations while no trial has told anything.

    Whoever runs many trials at once gets these, where a model would have nothing to learn from.
    """

    def reserve(self, target: Target) -> Encoded:
        """Configurations to try then, in order; those of the opening may be among them."""


@runtime_checkable
class Explaining(Protocol):
    """A surrogate that can say what it relies on."""

    def explain(self, seen: Observations) -> str:
        """A sentence for people, after all trials."""


@runtime_checkable
class Sceptical(Protocol):
    """A posterior that holds what past tasks taught against the trials."""

    @property
    def trusts_past(self) -> bool:
        """Whether past tasks still are a guide to where good configurations lie."""


@runtime_checkable
class Opening(Protocol):
    """A prior that names the first configurations to try."""

    def opening(self, target: Target) -> Encoded:
        """Configurations to try first, in order; any number of them."""


@runtime_checkable
class Spreading(Opening, Protocol):
    """A prior that may open with a spread over the space, for which other trials do as well."""

    @property
    def spreads(self) -> bool:
        """Whether its opening is such a spread, and nothing that past tasks taught."""
