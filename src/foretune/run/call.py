"""One call of the user's function: what it raises is an answer, too."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from foretune.run.reports import NO_FACTS, CallFacts

Job = TypeVar("Job")
Result = TypeVar("Result")
LONGEST_REASON = 500


class Answer(NamedTuple):
    """What came of one call."""

    result: Any
    seconds: float
    """Of the processor."""
    failure: str | None = None
    """Why there is no result."""
    facts: CallFacts = NO_FACTS


def cpu_seconds() -> float:
    """What this process, all its threads and its finished children have used so far."""
    return sum(os.times()[:4])


def call(
    function: Callable[[Any], Any],
    job: Any,
    caught: type[BaseException] | tuple[type[BaseException], ...] = (Exception, SystemExit),
    *,
    clock: Callable[[], float] = cpu_seconds,
) -> Answer:
    """Call `function(job)`, and return what came of it.

    caught: exceptions that make the call a failure. Others are passed on.
    clock: measures the seconds, by default those of the processor.
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
    """The answer of a call whose result one process cannot pack, or another cannot open."""
    reason = f"the result cannot be sent between processes: {one_line(error)}"
    return Answer(None, seconds, reason[:LONGEST_REASON])


def one_line(error: BaseException) -> str:
    """The kind of an error and what it says, without line breaks."""
    try:
        said = " ".join(str(error).split())
    except (Exception, SystemExit):  # the trial's own code runs here
        return f"{type(error).__name__}, whose message cannot be shown"[:LONGEST_REASON]
    return f"{type(error).__name__}: {said}"[:LONGEST_REASON] if said else type(error).__name__
