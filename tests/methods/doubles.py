"""Contracts that tests fill in part: whatever a test does not need is refused when it is asked."""

from pathlib import Path

from foretune._base.arrays import Floats
from foretune._base.progress import Progress
from foretune.experience import Experience
from foretune.methods.contracts import Learner, Posterior, Prior
from foretune.space import Encoded


class PartPosterior(Posterior):
    """A posterior that nobody draws from."""

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        raise NotImplementedError


class PartPrior(Prior):
    """A prior that nobody saves."""

    def save(self, path: Path) -> None:
        raise NotImplementedError


class PartLearner(Learner):
    """A learner that need not learn or load."""

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> Prior:
        raise NotImplementedError

    def load(self, path: Path) -> Prior:
        raise NotImplementedError
