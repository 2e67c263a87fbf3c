"""What ends workers that are over a limit of their trial, whatever the parent is busy with."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from foretune.experience import Status
from foretune.run.executor import Limits
from foretune.run.memory import size_text
from foretune.run.worker_process import Verdict, Worker

LOOK_AT_WORKERS_SECONDS = 0.05
"""How often workers are looked at: what a trial can take meanwhile is what it can overshoot."""
LONGEST_LOOK_SECONDS = 1.0
"""Looks further apart than this say that somebody stopped this process."""
OVER_MEMORY = "out of memory: over its limit"
"""How the reason begins of what has taken more memory than it may."""
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
    """A thread that looks at all workers every now and then.

    The process that started them may be computing a suggestion for seconds. The thread only ends
    workers and says why; it is for that process to find out and to clear away what is left.
    """

    def __init__(self, limits: Limits, patience: Patience = USUAL_PATIENCE) -> None:
        self._limits, self._patience = limits, patience
        self._staff: tuple[Worker, ...] = ()
        self._over = threading.Event()
        self._over.set()

    def watch(self, staff: Iterable[Worker]) -> None:
        """Look at these workers, and no longer at others."""
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
                    # Most likely the workers were stopped as well: what they did not get to run
                    # is not the time of their trials.
                    worker.forgive(overslept, now)
                worker.judge(self._verdict, now)
            before = now

    def _verdict(self, worker: Worker, elapsed: float) -> Verdict | None:
        """Why a worker that has not answered yet must end; None as long as it may go on."""
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
