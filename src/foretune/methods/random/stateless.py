"""Learner and prior of methods that do not use past tasks."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from foretune._base.progress import Progress
from foretune.errors import ArtifactError
from foretune.experience import Experience
from foretune.methods.contracts import Learner, Prior, Surrogate, Target
from foretune.numerics.artifact import load_artifact, save_artifact

KIND = "foretune-stateless"
VERSION = 1


@dataclass(frozen=True, slots=True)
class StatelessPrior(Prior):
    """A prior without knowledge. It knows only which surrogate to make."""

    name: str
    make: Callable[[Target], Surrogate]

    def surrogate(self, target: Target) -> Surrogate:
        """Return a surrogate for the target's own trials."""
        return self.make(target)

    def save(self, path: Path) -> None:
        """Write the name."""
        save_artifact(path, kind=KIND, version=VERSION, meta={"name": self.name}, arrays={})


@dataclass(frozen=True, slots=True)
class StatelessLearner(Learner):
    """Returns the same prior for any experience."""

    name: str
    make: Callable[[Target], Surrogate]

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> StatelessPrior:
        """Learn nothing."""
        del experience, seed, progress
        return StatelessPrior(self.name, self.make)

    def load(self, path: Path) -> StatelessPrior:
        """Check that the file was saved for this surrogate."""
        meta, _ = load_artifact(path, kind=KIND, newest_version=VERSION)
        if meta.get("name") != self.name:
            raise ArtifactError(
                f"a prior can be loaded only by the method that saved it, but {path} was saved by "
                f"'{meta.get('name')}' and not by '{self.name}': choose that one, or learn again",
                rule="prior-of-this-method",
                field="path",
                value=meta.get("name"),
            )
        return StatelessPrior(self.name, self.make)
