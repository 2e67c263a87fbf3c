"""Trials in this process: no start-up, no limits; a crash of the function is a crash of all."""

import time
from collections import deque
from collections.abc import Callable
from typing import Generic

from foretune.run.call import call
from foretune.run.executor import Job, Outcome, Result


class InlineExecutor(Generic[Job, Result]):
    """Evaluates a job when its result is asked for."""

    workers = 1

    def __init__(self, function: Callable[[Job], Result]) -> None:
        self._function = function
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
        start = time.monotonic()
        answer = call(self._function, job)
        # Libraries may use every core here, which workers do not let them: the seconds of all their
        # threads would say that a trial is slow which is over soon.
        seconds = min(answer.seconds, time.monotonic() - start)
        return [Outcome.of(key, answer._replace(seconds=seconds))]

    def close(self) -> None:
        """Forget what is queued."""
        self._waiting.clear()

    def __enter__(self) -> "InlineExecutor[Job, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
