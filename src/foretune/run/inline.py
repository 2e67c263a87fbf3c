"""Trials in this process: without start-up and limits. A crash of the function ends everything."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Generic

from foretune.run.call import Job, Result, call, cpu_seconds
from foretune.run.executor import Outcome
from foretune.run.reports import DirectLine, Listener, TrialStart
from foretune.run.running_trial import RunningTrial, TrialFunction, call_with_trial


class InlineExecutor(Generic[Job, Result]):
    """Evaluates a job when its result is asked for."""

    workers = 1

    def __init__(
        self,
        function: TrialFunction[Job, Result],
        *,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = cpu_seconds,
    ) -> None:
        self._function = function
        self._clock, self._cpu_clock = clock, cpu_clock
        self._listener: Listener | None = None
        self._waiting: deque[tuple[int, Job, TrialStart]] = deque()
        self._submitted = 0

    def submit(self, job: Job, start: TrialStart | None = None) -> int:
        """Queue a job and return its key."""
        key = self._submitted
        self._submitted += 1
        self._waiting.append((key, job, start or TrialStart(key)))
        return key

    def listen(self, listener: Listener) -> None:
        """Call this with all that running jobs report."""
        self._listener = listener

    def results(self, timeout: float | None = None) -> list[Outcome[Result]]:  # noqa: ARG002
        """Evaluate the next job, however long it takes."""
        if not self._waiting:
            return []
        key, job, start = self._waiting.popleft()
        line, began = DirectLine(key, self._listener), self._clock()
        with closing(RunningTrial(start, line, self._cpu_clock)) as trial:
            function = partial(call_with_trial, self._function, trial=trial)
            answer = call(function, job, clock=self._cpu_clock)
        if line.error is not None:
            raise line.error
        # Libraries may use every core here, unlike in workers. The CPU seconds of all threads would
        # make a quick trial look slow.
        seconds = min(answer.seconds, self._clock() - began)
        return [Outcome.of(key, answer._replace(seconds=seconds, facts=trial.facts))]

    def close(self) -> None:
        """Forget queued jobs."""
        self._waiting.clear()

    def __enter__(self) -> "InlineExecutor[Job, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
