"""Learning a prior now: within a time, in processes that can be ended, and never twice."""

import hashlib
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from foretune.contracts import Prior
from foretune.errors import ForetuneError, UsageError
from foretune.experience import Experience
from foretune.experience.fingerprints import fingerprint_of_lessons
from foretune.progress import SILENT, Progress
from foretune.run.executor import Outcome
from foretune.run.pool import NO_LIMITS
from foretune.run.sites import HERE, Site
from foretune.search.registry import METHODS, Method

MOST_CACHED = 40
"""Priors in the user's cache; the oldest make room."""
TIME_IS_OVER = "the time was over"
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one method has to learn."""

    view: str
    """The name of the experience to learn from."""
    method: str
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Learning:
    """How a lesson ended."""

    lesson: Lesson
    seconds: float = 0.0
    """On the clock of the machine that took it."""
    prior: bytes = field(default=b"", repr=False)
    """The file that the prior is saved as."""
    failure: str = ""
    """Why there is no prior; empty where there is one."""


@dataclass(frozen=True, slots=True)
class Classroom:
    """Takes lessons on whatever machine it is sent to, with the experience that it brings along.

    That travels as bytes, once for all lessons, and priors come back so: no file need be shared.
    """

    views: Mapping[str, bytes] = field(repr=False)
    """{name: the file of an experience}"""

    @classmethod
    def of(cls, views: Mapping[str, Experience]) -> "Classroom":
        """What lessons about these views need."""
        return cls({name: saved_bytes(view.save) for name, view in views.items()})

    def __call__(self, lesson: Lesson) -> Learning:
        """Learn a prior."""
        began = time.monotonic()
        experience = read_bytes(self.views[lesson.view], Experience.open)
        prior = METHODS[lesson.method].learn(experience, seed=lesson.seed)
        return Learning(lesson, time.monotonic() - began, saved_bytes(prior.save))


def learn_apart(
    views: Mapping[str, Experience],
    lessons: Sequence[Lesson],
    *,
    site: Site = HERE,
    jobs: int = 1,
    seconds: float = math.inf,
) -> Iterator[Learning]:
    """Take the lessons at a site, so many at a time, and tell how each ended as soon as it has.

    When `seconds` are over, those that are still running are ended. A process goes on from lesson
    to lesson, because what its libraries compile for one serves the next.
    """
    end = time.monotonic() + seconds
    left = dict(enumerate(lessons))
    if left and seconds > 0:
        room = Classroom.of({lesson.view: views[lesson.view] for lesson in lessons})
        with site.pool(room, workers=jobs, limits=NO_LIMITS) as pool:
            left = {pool.submit(lesson): lesson for lesson in lessons}
            while left and (outcomes := pool.results(_until(end))):
                yield from (_ended(left.pop(outcome.key), outcome) for outcome in outcomes)
    yield from (Learning(lesson, failure=TIME_IS_OVER) for lesson in left.values())


def learnt_prior(
    experience: Experience,
    method: Method,
    *,
    seed: int = 0,
    seconds: float | None = None,
    progress: Progress = SILENT,
    cache: Path | None = None,
) -> Prior:
    """What `method` learns from `experience`; from the user's cache if it was learnt before.

    seconds: how long it may take on the clock, in a process of its own; more is an error. Without
    it, it is learnt here and takes as long as it takes.
    """
    folder = prior_cache() if cache is None else cache
    path = folder / f"{_key(experience, method, seed)}.safetensors"
    with suppress(ForetuneError):  # a damaged file is learnt anew
        if path.exists():
            return method.load(path)
    if seconds is None:
        prior = method.learn(experience, seed=seed, progress=progress)
    else:
        prior = _learnt_in_time(experience, method, seed, seconds)
    with suppress(OSError, ForetuneError):  # that it cannot be kept is no reason to fail
        folder.mkdir(parents=True, exist_ok=True)
        prior.save(path)
        _make_room(folder)
    return prior


def taught_by(experience: Experience, seed: int) -> str:
    """A fingerprint (hex) of all that decides what a method learns: also the seed and the release.

    What is kept under another one is learnt anew.
    """
    said = f"{fingerprint_of_lessons(experience)} {seed} {version('foretune')}"
    return hashlib.sha256(said.encode()).hexdigest()


def prior_cache() -> Path:
    """The folder of the user that keeps what was learnt on the way."""
    from platformdirs import user_cache_path

    return user_cache_path("foretune") / "priors"


def clear_cache() -> None:
    """Remove what was learnt on the way."""
    for path in prior_cache().glob("*.safetensors"):
        path.unlink(missing_ok=True)


def saved_bytes(save: Callable[[Path], None]) -> bytes:
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


def _ended(lesson: Lesson, outcome: Outcome[Learning]) -> Learning:
    if outcome.result is not None:
        return outcome.result
    return Learning(lesson, outcome.seconds, failure=outcome.reason)


def _learnt_in_time(experience: Experience, method: Method, seed: int, seconds: float) -> Prior:
    lesson = Lesson("experience", method.name, seed)
    [ended] = learn_apart({lesson.view: experience}, [lesson], seconds=seconds)
    if ended.failure:
        raise UsageError(
            f"the prior of '{method.name}' must be learnt within {seconds:.0f} s, but it was not "
            f"({ended.failure}): give it more time, or choose another method"
        )
    return read_bytes(ended.prior, method.load)


def _key(experience: Experience, method: Method, seed: int) -> str:
    said = f"{taught_by(experience, seed)} {method.name}"
    return hashlib.sha256(said.encode()).hexdigest()[:40]


def _make_room(folder: Path) -> None:
    kept = sorted(folder.glob("*.safetensors"), key=lambda path: path.stat().st_mtime)
    for path in kept[:-MOST_CACHED]:
        path.unlink(missing_ok=True)
