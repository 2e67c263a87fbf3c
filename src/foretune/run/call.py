"""One call of the user's function. An error that it raises is an answer, too."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from foretune.run.reports import NO_FACTS, CallFacts

Job = TypeVar("Job")
Result = TypeVar("Result")
LONGEST_REASON = 500


class Answer(NamedTuple):
    """The result of one call."""

    result: Any
    seconds: float
    """CPU seconds."""
    failure: str | None = None
    """Why there is no result."""
    facts: CallFacts = NO_FACTS


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, with its threads and its ended children."""
    return sum(os.times()[:4])


def call(
    function: Callable[[Any], Any],
    job: Any,
    caught: type[BaseException] | tuple[type[BaseException], ...] = (Exception, SystemExit),
    *,
    clock: Callable[[], float] = cpu_seconds,
) -> Answer:
    """Call `function(job)` and return its answer.

    caught: exceptions that make the call a failure. Others are passed on.
    clock: measures the seconds. Default: CPU seconds.
    """
    start = clock()
    try:
        result = function(job)
    except MemoryError as error:
        return Answer(None, clock() - start, f"out of memory: {one_line(error)}")
    except caught as error:
        return Answer(None, clock() - start, one_line(error))
    return Answer(result, clock() - start)


def unsendable(seconds: float, error: BaseException) -> Answer:
    """Return the answer of a call whose result cannot be pickled or unpickled."""
    reason = f"the result cannot be sent between processes: {one_line(error)}"
    return Answer(None, seconds, reason[:LONGEST_REASON])


def one_line(error: BaseException) -> str:
    """Return the type and the message of an error in one line."""
    try:
        said = " ".join(str(error).split())
    except (Exception, SystemExit):  # the trial's own code runs here
        return f"{type(error).__name__}, whose message cannot be shown"[:LONGEST_REASON]
    return f"{type(error).__name__}: {said}"[:LONGEST_REASON] if said else type(error).__name__
