"""The parts of a method: a learner, a design for the start, an acquisition function."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from foretune._base.progress import SILENT, Progress
from foretune.errors import ArtifactError, ForetuneError, MethodError, explain_missing_extras
from foretune.experience import Experience
from foretune.methods.contracts import Keep, Learner, Prior
from foretune.search.seeds import check_seed

DESIGNS = ("random", "sobol", "per-algorithm", "prior")


class StepsBy(Enum):
    """Who decides by default how far a trial goes."""

    POLICY = "policy"
    """A stopping policy, or nobody: the method has no model of curves."""
    PAST_CURVES = "past-curves"
    """The method's model of curves, if past tasks have curves."""
    MODEL = "model"
    """The method's model of curves."""


@dataclass(frozen=True, slots=True)
class Design:
    """How the first trials are chosen, before the surrogate has anything to learn from."""

    how: str
    """`random`, `sobol`, `per-algorithm` (random ones of each algorithm in turn), or `prior`
    (Thompson draws from what past tasks taught)."""
    trials: int | None
    """The number of trials, for `per-algorithm` that of each algorithm; None means all trials."""


@dataclass(frozen=True, slots=True)
class Method:
    """A way to choose trials: a learner, a design for the start, an acquisition function."""

    name: str
    summary: str
    learner: Callable[[], Learner]
    design: Design = Design("random", 5)
    acquisition: str = "ei"
    needs_experience: bool = False
    uses_experience: bool = False
    """True if past tasks help the method, but it does not need them."""
    needs_meta_features: bool = False
    several_objectives: bool = True
    random_every: int | None = None
    """Each trial of this number, once the model chooses, is drawn at random instead."""
    steps: "StepsBy" = StepsBy.POLICY
    """Who decides by default which trials go on."""

    @property
    def transfers(self) -> bool:
        """Whether the method learns from past tasks."""
        return self.needs_experience or self.uses_experience

    def decides_steps(self, experience: Experience | None) -> bool:
        """Return whether its model of curves decides by default which trials go on."""
        curves = None if experience is None else experience.curves
        has_curves = curves is not None and bool(curves.lengths.any())
        return self.steps is StepsBy.MODEL or (self.steps is StepsBy.PAST_CURVES and has_curves)

    def learn(
        self,
        experience: Experience | None,
        *,
        seed: int,
        progress: Progress = SILENT,
        keep: Keep | None = None,
    ) -> Prior:
        """Learn from past tasks. Methods that do not transfer learn nothing.

        keep: if the method has several parts, learns each part or finds it where it was kept.
        """
        self.check(experience, seed=seed)
        with explain_missing_extras(f"the method '{self.name}'"):
            learner = self.learner()
            if keep is None:
                return learner.learn(experience, seed=seed, progress=progress)
            return learner.learn_in_parts(experience, seed=seed, progress=progress, keep=keep)

    def check(self, experience: Experience | None, *, seed: int) -> None:
        """Refuse an invalid seed, and experience that the method cannot learn from."""
        check_seed(seed)
        if self.needs_experience and experience is None:
            raise MethodError(
                f"the method '{self.name}' learns from past tasks, but got no experience: "
                "give one (--experience FILE), or choose a method that starts from nothing",
                rule="needs-experience",
                field="experience",
                value=self.name,
            )
        if self.transfers and experience is not None:
            self._check_teaches(experience)

    def _check_teaches(self, experience: Experience) -> None:
        if experience.space.width == 0:
            raise MethodError(
                f"the method '{self.name}' learns what past tasks preferred, but their space has "
                f"only constants ({', '.join(experience.space.names)}): leave the experience "
                "out, or give that of a wider space",
                rule="past-space-has-choices",
                field="experience",
                value=experience.space.names,
            )
        described = (experience.meta_features.get(task) for task in experience.tasks)
        if self.needs_meta_features and not any(described):
            raise MethodError(
                f"the method '{self.name}' learns from meta-features, but none of the "
                f"{len(experience.tasks)} past tasks has any: give experience with meta-features, "
                "or choose a method that needs none",
                rule="past-tasks-need-meta-features",
                field="experience",
                value=self.name,
            )

    def load(self, path: Path) -> Prior:
        """Read a prior that was saved for this method."""
        with explain_missing_extras(f"the method '{self.name}'"):
            try:
                return self.learner().load(path)
            except (ForetuneError, ImportError, OSError):
                raise
            except Exception as error:
                # A file may be whole, and still not hold a prior of this method.
                raise ArtifactError(
                    f"a prior must be one that the method '{self.name}' has saved, but '{path}' "
                    f"does not fit it ({type(error).__name__}: {error}): learn it again",
                    rule="prior-of-this-method",
                    field="path",
                    value=str(path),
                ) from error
