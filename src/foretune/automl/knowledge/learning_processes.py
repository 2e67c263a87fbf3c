"""Learning priors: within a time, in processes that can be ended."""

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
    """What one method has to learn."""

    view: str
    """The name of the experience to learn from."""
    method: str
    seed: int = 0


@dataclass(frozen=True, slots=True)
class RunningJob:
    """How a lesson ended."""

    lesson: LearningJob
    seconds: float = 0.0
    """On the clock of the machine that took it."""
    prior: bytes = field(default=b"", repr=False)
    """The file that the prior is saved as."""
    failure: str = ""
    """Why there is no prior; empty where there is one."""


@dataclass(frozen=True, slots=True)
class LearningProcesses:
    """Takes lessons on whatever machine it is sent to, with the experience that it brings along.

    That travels as bytes, once for all lessons, and priors come back so: no file need be shared.
    """

    views: Mapping[str, bytes] = field(repr=False)
    """{name: the file of an experience}"""

    @classmethod
    def of(cls, views: Mapping[str, Experience]) -> "LearningProcesses":
        """What lessons about these views need."""
        return cls({name: save_to_bytes(view.save) for name, view in views.items()})

    def __call__(self, lesson: LearningJob) -> RunningJob:
        """Learn a prior."""
        began = time.monotonic()
        experience = read_bytes(self.views[lesson.view], Experience.open)
        prior = method(lesson.method).learn(experience, seed=lesson.seed)
        return RunningJob(lesson, time.monotonic() - began, save_to_bytes(prior.save))


def learn_apart(
    views: Mapping[str, Experience],
    lessons: Sequence[LearningJob],
    *,
    site: ExecutorChoice = HERE,
    jobs: int = 1,
    seconds: float = math.inf,
) -> Iterator[RunningJob]:
    """Take the lessons at a site, so many at a time, and tell how each ended as soon as it has.

    When `seconds` are over, those that are still running are ended. A process goes on from lesson
    to lesson, because what its libraries compile for one serves the next.
    """
    end = time.monotonic() + seconds
    left = dict(enumerate(lessons))
    if left and seconds > 0:
        room = LearningProcesses.of({lesson.view: views[lesson.view] for lesson in lessons})
        with site.pool(room, workers=jobs, limits=NO_LIMITS) as pool:
            left = {pool.submit(lesson): lesson for lesson in lessons}
            while left and (outcomes := pool.results(_until(end))):
                yield from (_finish_lesson(left.pop(outcome.key), outcome) for outcome in outcomes)
    yield from (RunningJob(lesson, failure=TIME_IS_OVER) for lesson in left.values())


def save_to_bytes(save: Callable[[Path], None]) -> bytes:
    """What `save` writes into a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        save(path)
        return path.read_bytes()


def read_bytes(content: bytes, read: Callable[[Path], Read]) -> Read:
    """What `read` makes of a file with this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        path.write_bytes(content)
        return read(path)


def _until(end: float) -> float | None:
    """The seconds that are left; None where there is no end."""
    return None if math.isinf(end) else max(end - time.monotonic(), 0.0)


def _finish_lesson(lesson: LearningJob, outcome: Outcome[RunningJob]) -> RunningJob:
    if outcome.result is not None:
        return outcome.result
    return RunningJob(lesson, outcome.seconds, failure=outcome.reason)
