"""The base classes of a method: Learner -> Prior -> Surrogate -> Posterior.

A `Learner` reads experience and returns a `Prior`, which is immutable and is saved without pickle.
For one target task the prior gives a `Surrogate`. The surrogate is given the trials of the target
and returns a `Posterior`, which acquisition functions read.

A method of your own inherits from these classes. It must write the abstract methods. All other
methods are abilities: they have a default that holds for every method, and a class overrides those
where it knows more. A class that wraps another inherits from a class of `wrapped.py`.

All methods work with losses: lower is better. `Experience.losses` turns recorded metrics into
losses. The caller of `Optimizer.tell` turns scores that should grow.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune._base.progress import Progress
from foretune.errors import UsageError
from foretune.experience import Experience
from foretune.numerics.acquisition import log_expected_improvement
from foretune.space import Encoded, Space


@dataclass(frozen=True, slots=True)
class Target:
    """The task to be tuned, as it is known before the first trial."""

    space: Space
    objectives: tuple[str, ...] = ("loss",)
    pool: Encoded | None = None
    """All configurations that can be chosen, if these are a recorded list."""
    meta_features: Mapping[str, float] = field(default_factory=dict)
    effect: Callable[[Encoded], Encoded] | None = None
    """Maps configurations that cannot differ in their results to equal ones. None: all may
    differ."""
    budget: int | None = None
    """The number of trials of the whole search, if it is known."""

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise UsageError(
                f"a target needs a Space, but got {self.space!r}: write Target(Space.of(...))",
                rule="not-a-space",
                field="space",
                value=self.space,
            )
        if isinstance(self.objectives, str):
            raise UsageError(
                f"objectives must be a tuple of names, but got the text {self.objectives!r}: "
                f"write objectives=({self.objectives!r},)",
                rule="list-not-text",
                field="objectives",
                value=self.objectives,
            )
        if not self.objectives or len(set(self.objectives)) < len(self.objectives):
            raise UsageError(
                "objectives must be at least one name, each of them once, but got "
                f"{self.objectives!r}: name the losses of each trial",
                rule="distinct-objectives",
                field="objectives",
                value=self.objectives,
            )
        if self.pool is not None:
            check_encoding(self.pool, self.space, "pool")
            if len(self.pool) == 0:
                raise UsageError(
                    "a pool must hold at least one configuration, but got none: give some, or "
                    "leave the pool out to search the whole space",
                    rule="empty-pool",
                    field="pool",
                )


def check_encoding(given: object, space: Space, name: str) -> None:
    """Refuse configurations that were not encoded by the space that is searched.

    name: the argument that they are given as.
    """
    if not isinstance(given, Encoded):
        raise UsageError(
            f"`{name}` must be configurations that the space has encoded, but got "
            f"{type(given).__name__}: write {name}=space.encode([...])",
            rule="not-encoded",
            field=name,
            value=given,
        )
    if given.space != space:
        raise UsageError(
            f"`{name}` must be configurations of the space that is searched, but got those of "
            f"another, {given.space!r}: encode them with the one that is searched",
            rule="another-space",
            field=name,
            value=given.space,
        )


@dataclass(frozen=True, slots=True)
class Observations:
    """The trials of the target task, in the order in which they were told.

    A failed trial has NaN in every column of `losses`. A believed row is a pending trial with a
    guessed loss; such rows make a batch spread out. They come last, and no hyperparameter of a
    surrogate may be fitted to them.
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
        """Return the rows that a surrogate may be fitted to, believed ones included."""
        keep = np.flatnonzero(self.is_success)
        if len(keep) == len(self):
            return self
        return Observations(self.configs.take(keep), self.losses[keep], self.believed[keep])


@dataclass(frozen=True, slots=True)
class Prediction:
    """Mean and standard deviation of a posterior at m configurations, each (m,)."""

    mean: Floats
    std: Floats


class Posterior(ABC):
    """Predictions of a surrogate after some trials, in its own unit, which grows with the loss."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def best(self) -> float:
            """The value that an improvement must beat: the best of the trials.

            A pending trial counts with the loss that is believed of it. Otherwise a batch would
            gather around the first suggestion.
            """
    else:
        # A property would become the default of a dataclass field with this name.
        best: float

    @abstractmethod
    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation at each configuration."""

    @abstractmethod
    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw the values at all configurations `n` times: (n, len(x))."""

    def log_improvement(self, x: Encoded) -> Floats:
        """Return the logarithm of the expected improvement on `best`: (len(x),)."""
        belief = self.predict(x)
        return log_expected_improvement(belief.mean, belief.std, self.best)

    def log_utility(self, x: Encoded) -> Floats:
        """Return the logarithm of the utility that the method itself maximises: (len(x),).

        Logarithms keep the order of candidates that all look hopeless. A probability of failure
        multiplies a utility of any unit.
        """
        return self.log_improvement(x)

    def predict_each(self, x: Encoded) -> Floats:
        """Return the mean of each objective: (len(x), objectives).

        A posterior that predicts all objectives as one gives a single column.
        """
        return self.predict(x).mean[:, None]

    def objective_weights(self) -> Floats | None:
        """Return the weights of the objectives in a posterior of a weighted sum, else None."""
        return None

    @property
    def trusts_past(self) -> bool:
        """Whether past tasks still show where good configurations lie."""
        return True


class Surrogate(ABC):
    """Learns from the trials of one target. It is a pure function of its arguments."""

    __slots__ = ()

    @abstractmethod
    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after `seen`. At least one row of it is a success."""

    def explain(self, seen: Observations) -> str:
        """Return a sentence about what the surrogate relied on; it may be empty."""
        del seen
        return ""


class Region(ABC):
    """A part of the space."""

    __slots__ = ()

    @abstractmethod
    def contains(self, x: Encoded) -> Bools:
        """Return which configurations lie in the region: (len(x),)."""

    @abstractmethod
    def sample(self, n: int, *, seed: int) -> Encoded:
        """Draw `n` configurations of the region, uniformly."""


class Prior(ABC):
    """What a learner learnt from experience. For methods that do not transfer it is empty."""

    __slots__ = ()

    @abstractmethod
    def surrogate(self, target: Target) -> Surrogate:
        """Return the surrogate for one task."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write the prior to one file, atomically and without pickle."""

    def opening(self, target: Target) -> Encoded:
        """Return the configurations to try first, in order. There may be none."""
        return target.space.encode([])

    @property
    def spreads(self) -> bool:
        """Whether the opening only spreads over the space, so that other trials can replace it."""
        return False

    def reserve(self, target: Target) -> Encoded:
        """Return configurations to try while no trial has succeeded, in order.

        They may include those of the opening. They are needed when many trials run at once, before
        a model can learn from any.
        """
        return target.space.encode([])

    def known_good(self, target: Target) -> Encoded:
        """Return configurations that were good for past tasks, in any order."""
        return target.space.encode([])

    def region(self, target: Target) -> Region | None:
        """Return the part of the space that the search is restricted to; None for all of it."""
        del target
        return None

    def odds(self, target: Target) -> float:
        """Return the weight of this prior before any trial. The usual weight is 1."""
        del target
        return 1.0

    @property
    def has_learnt(self) -> bool:
        """Whether everything is learnt already. If not, the next call may take minutes."""
        return True


class Learner(ABC):
    """Learns from past tasks, before a search."""

    __slots__ = ()
    can_continue: ClassVar[bool] = False
    """Whether `continue_from` takes less time than `learn`."""

    @abstractmethod
    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> Prior:
        """Learn a prior from past tasks.

        The experience never holds records of the target. Only methods that do not transfer are
        called without one.
        """

    @abstractmethod
    def load(self, path: Path) -> Prior:
        """Read a prior that a prior of this learner has saved."""

    def learn_many(
        self, experience: Experience | None, seeds: Sequence[int], *, progress: Progress
    ) -> list[Prior]:
        """Learn one prior for each seed. Some learners are faster with several seeds at once.

        A prior may differ a little from what `learn` gives for its seed, because training beside
        other seeds may round differently.
        """
        return [self.learn(experience, seed=seed, progress=progress) for seed in seeds]

    def learn_in_parts(
        self, experience: Experience | None, *, seed: int, progress: Progress, keep: "Keep"
    ) -> Prior:
        """Learn as `learn` does. A learner of several parts learns each of them through `keep`."""
        del keep
        return self.learn(experience, seed=seed, progress=progress)

    def continue_from(
        self, earlier: Prior, experience: Experience, *, seed: int, progress: Progress
    ) -> Prior:
        """Learn from all tasks in a short training that starts from an earlier prior."""
        del earlier
        return self.learn(experience, seed=seed, progress=progress)

    def reads(self, experience: Experience, *, seed: int) -> Experience:
        """Return the tasks that `learn` reads. If other tasks change, the prior is still valid."""
        del seed
        return experience

    def early_opening(self, experience: Experience, *, seed: int) -> Encoded | None:
        """Return the opening of the prior within about a second, before the prior is learnt.

        None if the opening depends on everything that is learnt.
        """
        del experience, seed
        return None

    def early_reserve(self, experience: Experience, k: int, *, seed: int) -> Encoded | None:
        """Return the first k configurations of the reserve, before the prior is learnt.

        None if there are few past tasks, because learning takes little time then.
        """
        del experience, k, seed
        return None


Keep: TypeAlias = Callable[[str, Learner, Experience, Experience], Prior]
"""(name, learner, experience, the part of it that the learner reads) -> prior, which is learnt now
or was kept earlier for that part."""
