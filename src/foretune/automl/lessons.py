"""Learning a prior now: within a time, in a process that can be ended, and never twice."""

import hashlib
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from foretune.automl.measures import content_of
from foretune.contracts import Prior
from foretune.errors import ForetuneError, UsageError
from foretune.experience import Experience
from foretune.progress import SILENT, Progress
from foretune.run.pool import ProcessPool
from foretune.search.registry import METHODS, Method

MOST_CACHED = 40
"""Priors in the user's cache; the oldest make room."""
TIME_IS_OVER = "the time was over"


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one method has to learn from one file."""

    experience: Path
    method: str
    seed: int
    out: Path
    """Where the prior is saved."""


@dataclass(frozen=True, slots=True)
class Learning:
    """How a lesson ended."""

    lesson: Lesson
    seconds: float
    failure: str = ""
    """Why there is no prior; empty where there is one."""


def learn(lesson: Lesson) -> None:
    """Learn a prior and save it."""
    experience = Experience.open(lesson.experience)
    METHODS[lesson.method].learn(experience, seed=lesson.seed).save(lesson.out)


def learn_apart(lessons: Sequence[Lesson], *, seconds: float = math.inf) -> Iterator[Learning]:
    """Take the lessons in one other process, until all are learnt or `seconds` are over.

    One process for all, because what its libraries compile for one lesson serves the next.
    """
    end = time.monotonic() + seconds
    with ProcessPool(learn) as pool:
        for lesson in lessons:
            began = time.monotonic()
            left = end - began
            if left <= 0:
                yield Learning(lesson, 0.0, TIME_IS_OVER)
                continue
            pool.submit(lesson)
            outcomes = pool.results(None if math.isinf(left) else left)
            took = time.monotonic() - began
            if outcomes:
                yield Learning(lesson, took, outcomes[0].reason)
            else:
                end = began  # the lesson that is still running is ended with the pool
                pool.close()
                yield Learning(lesson, took, TIME_IS_OVER)


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


def prior_cache() -> Path:
    """The folder of the user that keeps what was learnt on the way."""
    from platformdirs import user_cache_path

    return user_cache_path("foretune") / "priors"


def clear_cache() -> None:
    """Remove what was learnt on the way."""
    for path in prior_cache().glob("*.safetensors"):
        path.unlink(missing_ok=True)


def _learnt_in_time(experience: Experience, method: Method, seed: int, seconds: float) -> Prior:
    with tempfile.TemporaryDirectory() as place:
        source, out = Path(place) / "experience.parquet", Path(place) / "prior.safetensors"
        experience.save(source)
        [ended] = learn_apart([Lesson(source, method.name, seed, out)], seconds=seconds)
        if ended.failure:
            raise UsageError(
                f"the prior of '{method.name}' must be learnt within {seconds:.0f} s, but it was "
                f"not ({ended.failure}): give it more time, or choose another method"
            )
        return method.load(out)


def _key(experience: Experience, method: Method, seed: int) -> str:
    said = f"{content_of(experience)} {method.name} {seed} {version('foretune')}"
    return hashlib.sha256(said.encode()).hexdigest()[:40]


def _make_room(folder: Path) -> None:
    kept = sorted(folder.glob("*.safetensors"), key=lambda path: path.stat().st_mtime)
    for path in kept[:-MOST_CACHED]:
        path.unlink(missing_ok=True)
