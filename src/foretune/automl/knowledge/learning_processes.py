"""Learns priors within a time, in processes that can be ended."""

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from foretune.experience import Experience
from foretune.run.executor import Outcome
from foretune.run.executor_choice import HERE, ExecutorChoice
from foretune.run.pool import NO_LIMITS
from foretune.search.registry import method

TIME_IS_OVER = "the time was over"
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class LearningJob:
    """The prior that one method has to learn."""

    view: str
    """The name of the experience to learn from."""
    method: str
    seed: int = 0


@dataclass(frozen=True, slots=True)
class LearningResult:
    """The result of a learning job."""

    job: LearningJob
    seconds: float = 0.0
    """The time on the clock of the machine that learnt it."""
    prior: bytes = field(default=b"", repr=False)
    """The bytes of the file of the prior."""
    failure: str = ""
    """The reason why there is no prior; empty if there is one."""


@dataclass(frozen=True, slots=True)
class PriorLearner:
    """Learns priors on any machine, from the experience that it carries.

    The experience travels as bytes, once for all jobs, and priors come back as bytes, so that the
    machines need no common folder.
    """

    views: Mapping[str, bytes] = field(repr=False)
    """{name: the bytes of an experience file}"""

    @classmethod
    def of(cls, views: Mapping[str, Experience]) -> "PriorLearner":
        """Return the learner that carries these views."""
        return cls({name: save_to_bytes(view.save) for name, view in views.items()})

    def __call__(self, job: LearningJob) -> LearningResult:
        """Learn a prior."""
        began = time.monotonic()
        experience = read_bytes(self.views[job.view], Experience.open)
        prior = method(job.method).learn(experience, seed=job.seed)
        return LearningResult(job, time.monotonic() - began, save_to_bytes(prior.save))


def learn_in_processes(
    views: Mapping[str, Experience],
    jobs: Sequence[LearningJob],
    *,
    site: ExecutorChoice = HERE,
    workers: int = 1,
    seconds: float = math.inf,
) -> Iterator[LearningResult]:
    """Run the jobs in worker processes, and yield each result as soon as it is ready.

    After `seconds`, the jobs that still run are ended. A process runs several jobs, because code
    that its libraries compile for one is used again for the next.
    """
    end = time.monotonic() + seconds
    left = dict(enumerate(jobs))
    if left and seconds > 0:
        learner = PriorLearner.of({job.view: views[job.view] for job in jobs})
        with site.pool(learner, workers=workers, limits=NO_LIMITS) as pool:
            left = {pool.submit(job): job for job in jobs}
            while left and (outcomes := pool.results(_seconds_until(end))):
                yield from (_read_outcome(left.pop(outcome.key), outcome) for outcome in outcomes)
    yield from (LearningResult(job, failure=TIME_IS_OVER) for job in left.values())


def save_to_bytes(save: Callable[[Path], None]) -> bytes:
    """Return the bytes that `save` writes into a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        save(path)
        return path.read_bytes()


def read_bytes(content: bytes, read: Callable[[Path], Read]) -> Read:
    """Call `read` on a file with this content, and return its result."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        path.write_bytes(content)
        return read(path)


def _seconds_until(end: float) -> float | None:
    """Return the remaining seconds; None if there is no end."""
    return None if math.isinf(end) else max(end - time.monotonic(), 0.0)


def _read_outcome(job: LearningJob, outcome: Outcome[LearningResult]) -> LearningResult:
    if outcome.result is not None:
        return outcome.result
    return LearningResult(job, outcome.seconds, failure=outcome.reason)
