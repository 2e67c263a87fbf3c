"""Trials in this process: no start-up, no limits; a crash of the function is a crash of all."""

import time
from collections import deque
from collections.abc import Callable
from typing import Generic

from foretune.run.call import call, cpu_seconds
from foretune.run.executor import Job, Outcome, Result


class InlineExecutor(Generic[Job, Result]):
    """Evaluates a job when its result is asked for."""

    workers = 1

    def __init__(
        self,
        function: Callable[[Job], Result],
        *,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = cpu_seconds,
    ) -> None:
        self._function = function
        self._clock, self._cpu_clock = clock, cpu_clock
        self._waiting: deque[tuple[int, Job]] = deque()
        self._submitted = 0

    def submit(self, job: Job) -> int:
        """Queue a job and return its key."""
        key = self._submitted
        self._submitted += 1
        self._waiting.append((key, job))
        return key

    def results(self, timeout: float | None = None) -> list[Outcome[Result]]:  # noqa: ARG002
        """Evaluate the next job, however long it takes."""
        if not self._waiting:
            return []
        key, job = self._waiting.popleft()
        start = self._clock()
        answer = call(self._function, job, clock=self._cpu_clock)
        # Libraries may use every core here, which workers do not let them: the seconds of all their
        # threads would say that a trial is slow which is over soon.
        seconds = min(answer.seconds, self._clock() - start)
        return [Outcome.of(key, answer._replace(seconds=seconds))]

    def close(self) -> None:
        """Forget what is queued."""
        self._waiting.clear()

    def __enter__(self) -> "InlineExecutor[Job, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
