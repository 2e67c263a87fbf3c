"""Ends workers that are over a limit of their trial, even if the parent is busy."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from foretune.experience import Status
from foretune.run.executor import Limits
from foretune.run.memory import size_text
from foretune.run.worker_process import Verdict, Worker

LOOK_AT_WORKERS_SECONDS = 0.05
"""How often workers are looked at. Meanwhile a trial can exceed its memory limit."""
LONGEST_LOOK_SECONDS = 1.0
"""If two looks are further apart, somebody has stopped this process."""
OVER_MEMORY = "out of memory: over its limit"
"""The beginning of the reason if a trial has taken too much memory."""
UNREAD_JOB = "its worker process does not read the job"
UNFINISHED_ANSWER = "its worker process began an answer and did not finish it"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the guard waits for a worker, in seconds, and its clock."""

    start: float = 300.0
    """For the imports of a new worker, on a machine under load."""
    message: float = 60.0
    """For the next bytes of an answer that has begun to arrive."""
    clock: Callable[[], float] = time.monotonic


USUAL_PATIENCE = Patience()


class Guard:
    """A thread that looks at all workers from time to time.

    The process that started them may be computing a suggestion for seconds. The thread only ends
    workers and notes why. That process finds out, and clears away what is left.
    """

    def __init__(self, limits: Limits, patience: Patience = USUAL_PATIENCE) -> None:
        self._limits, self._patience = limits, patience
        self._staff: tuple[Worker, ...] = ()
        self._over = threading.Event()
        self._over.set()

    def watch(self, staff: Iterable[Worker]) -> None:
        """Look at these workers only."""
        self._staff = tuple(staff)
        if self._staff and self._over.is_set():
            self._over = threading.Event()
            threading.Thread(target=self._run, args=(self._over,), daemon=True).start()

    def close(self) -> None:
        """Stop looking."""
        self._staff = ()
        self._over.set()

    def _run(self, over: threading.Event) -> None:
        before = self._patience.clock()
        while not over.wait(LOOK_AT_WORKERS_SECONDS):
            now = self._patience.clock()
            overslept = now - before - LOOK_AT_WORKERS_SECONDS
            for worker in self._staff:
                if overslept > LONGEST_LOOK_SECONDS:
                    # Most likely the workers were stopped as well. That is not time of their
                    # trials.
                    worker.forgive(overslept, now)
                worker.judge(self._verdict, now)
            before = now

    def _verdict(self, worker: Worker, elapsed: float) -> Verdict | None:
        """Return why a worker must end that has not answered yet; None if it may go on."""
        if not worker.ready:
            reason = (
                f"a worker process must be ready within {self._patience.start:g} s, but it is not: "
                "look for what the import of the evaluated function waits for"
            )
            return (
                Verdict(Status.FAILED, reason, elapsed) if elapsed > self._patience.start else None
            )
        return None if worker.key is None else self._verdict_at_work(worker, elapsed)

    def _verdict_at_work(self, worker: Worker, elapsed: float) -> Verdict | None:
        if worker.channel.has_partial:  # an answer counts from its beginning
            late = worker.waits_for_rest(self._patience.message)
            return Verdict(Status.FAILED, UNFINISHED_ANSWER, elapsed) if late else None
        if worker.channel.has_unsent and elapsed > self._patience.start:
            return Verdict(Status.FAILED, UNREAD_JOB, elapsed)
        wall, memory = self._limits.wall_seconds, self._limits.memory_bytes
        if wall is not None and elapsed >= wall:
            return Verdict(Status.TIMEOUT, f"over its limit of {wall:g} s", elapsed)
        if memory is not None and worker.memory() > memory:
            reason = f"{OVER_MEMORY} of {size_text(memory)}"
            return Verdict(Status.FAILED, reason, elapsed)
        return None
