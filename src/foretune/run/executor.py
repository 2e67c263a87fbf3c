"""The interface of all that runs trials: jobs go in, and outcomes come out as they finish."""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from foretune.errors import UsageError
from foretune.experience import Status
from foretune.run.call import Answer, Result
from foretune.run.reports import NO_FACTS, CallFacts, Listener, TrialStart

Job_contra = TypeVar("Job_contra", contravariant=True)

RESULT_BYTES = 64 * 2**20


def check_positive(what: str, given: Any, *names: str) -> None:
    """Refuse a limit that is not positive; None is no limit."""
    for name in names:
        limit = getattr(given, name)
        if limit is not None and not limit > 0:
            raise UsageError(
                f"{what} {name} must be a positive number, but got {limit}: choose one, or None "
                "for no limit",
                rule="not-positive",
                field=name,
                value=limit,
            )


def check_workers(workers: int) -> None:
    """Refuse a pool without workers."""
    if workers < 1:
        raise UsageError(
            f"a pool needs at least one worker, but got {workers}: ask for one",
            rule="no-workers",
            field="workers",
            value=workers,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one trial; None is no limit."""

    wall_seconds: float | None = None
    """Time on the clock. It ends trials that hang."""
    cpu_seconds: float | None = None
    """CPU time, which is fair if other programs share the machine."""
    memory_bytes: int | None = None
    """Resident memory of the worker, with its libraries."""
    result_bytes: int | None = RESULT_BYTES
    """The largest size of a pickled result. Larger results belong in a file."""

    def __post_init__(self) -> None:
        check_positive(
            "the limit", self, "wall_seconds", "cpu_seconds", "memory_bytes", "result_bytes"
        )


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """How one job ended."""

    key: int
    """The number that `submit` gave the job."""
    status: Status
    result: Result | None
    """The return value of the function; None unless DONE."""
    seconds: float
    """CPU seconds. Without a worker they are at most the time on the clock, because threads may
    share the work. If a worker was ended, this is the limit that it reached, or the time on the
    clock."""
    reason: str = ""
    """The reason why it is not DONE, in one line."""
    facts: CallFacts = NO_FACTS

    @classmethod
    def of(cls, key: int, answer: Answer) -> "Outcome[Result]":
        """Return the outcome of a call that ended."""
        if answer.failure is not None:
            return cls(key, Status.FAILED, None, answer.seconds, answer.failure, answer.facts)
        return cls(key, Status.DONE, answer.result, answer.seconds, facts=answer.facts)


class Executor(Protocol[Job_contra, Result]):
    """Evaluates one function on many jobs. Use it in a `with` statement."""

    workers: int
    """How many jobs run at the same time."""

    def submit(self, job: Job_contra, start: TrialStart | None = None) -> int:
        """Queue a job and return its key.

        start: facts for the trial. Default: the key is its number.
        """

    def listen(self, listener: Listener) -> None:
        """Pass all that running jobs report to a listener, from the next job on.

        `results` calls it in its own thread. An error of the listener ends `results`.
        """

    def results(self, timeout: float | None = None) -> list[Outcome[Result]]:
        """Return the outcomes since the last call; wait at most `timeout` seconds for the first.

        The list is empty when the time is over, or when no job is left.
        """

    def close(self) -> None:
        """Stop at once, and forget jobs that have not ended."""

    def __enter__(self) -> "Executor[Job_contra, Result]": ...

    def __exit__(self, *error: object) -> None: ...
