"""What whoever runs trials needs to know: jobs go in, outcomes come out as they finish."""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from foretune.errors import UsageError
from foretune.experience import Status
from foretune.run.call import Answer, Result
from foretune.run.reports import NO_FACTS, CallFacts, Listener, TrialStart

Job_contra = TypeVar("Job_contra", contravariant=True)

RESULT_BYTES = 64 * 2**20


def check_positive(what: str, given: Any, *names: str) -> None:
    """Refuse a limit that allows nothing; None is no limit."""
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
    """Refuse a pool that could run nothing."""
    if workers < 1:
        raise UsageError(
            f"a pool needs at least one worker, but got {workers}: ask for one",
            rule="no-workers",
            field="workers",
            value=workers,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What one trial may use; None is without a limit."""

    wall_seconds: float | None = None
    """On the clock: ends what hangs."""
    cpu_seconds: float | None = None
    """Of the processor: fair where other programs share the machine."""
    memory_bytes: int | None = None
    """Resident memory of the worker, with what its libraries take."""
    result_bytes: int | None = RESULT_BYTES
    """How large a result may be, pickled. Larger ones belong into a file."""

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
    """What the function returned; None unless DONE."""
    seconds: float
    """CPU seconds; without a worker, at most those on the clock, because threads may share the
    work; of a worker that was ended, the limit it reached or the time on the clock.
    """
    reason: str = ""
    """Why it is not DONE, one line."""
    facts: CallFacts = NO_FACTS

    @classmethod
    def of(cls, key: int, answer: Answer) -> "Outcome[Result]":
        """The outcome of a call that came to its end."""
        if answer.failure is not None:
            return cls(key, Status.FAILED, None, answer.seconds, answer.failure, answer.facts)
        return cls(key, Status.DONE, answer.result, answer.seconds, facts=answer.facts)


class Executor(Protocol[Job_contra, Result]):
    """Evaluates one function on many jobs. Use it in a `with` statement."""

    workers: int
    """How many jobs run at the same time."""

    def submit(self, job: Job_contra, start: TrialStart | None = None) -> int:
        """Queue a job and return its key.

        start: what the trial is told about itself. Default: the key is its number.
        """

    def listen(self, listener: Listener) -> None:
        """Pass all that running jobs report to a listener, from the next job on.

        It is called within `results`, in the thread that calls that. What it raises ends `results`.
        """

    def results(self, timeout: float | None = None) -> list[Outcome[Result]]:
        """The outcomes since the last call, waiting for the first one at most `timeout` seconds.

        Empty when the time is over, or when nothing is left to wait for.
        """

    def close(self) -> None:
        """Stop at once; jobs that have not ended are forgotten."""

    def __enter__(self) -> "Executor[Job_contra, Result]": ...

    def __exit__(self, *error: object) -> None: ...
