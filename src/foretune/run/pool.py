"""Trials in worker processes that may crash, hang, be killed or run out of memory.

A process pool of the standard library breaks as a whole when one of its workers dies, and cannot
end one job. Here each worker has a pipe of its own, and its death costs the trial it was running;
docs/decisions/009-trials-in-processes.md gives the reasons.
"""

import signal
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from multiprocessing.connection import wait
from typing import Generic

from foretune.errors import ForetuneError, UsageError
from foretune.experience import Status
from foretune.run.executor import Job, Limits, Outcome, Result
from foretune.run.staff import Luggage, Worker
from foretune.run.worker import CPU_SIGNAL

NO_LIMITS = Limits()
LOOK_SECONDS = 0.05
"""How often memory is measured: what a trial can take meanwhile is what it can overshoot."""
LONGEST_LOOK_SECONDS = 1.0
START_SECONDS = 300.0
"""How long a new worker may take to import what it needs, on a machine under load."""
MOST_FAILED_STARTS = 3


class ProcessPool(Generic[Job, Result]):
    """Evaluates `function` in up to `workers` processes of its own.

    The function goes to each worker once, when that starts; it and the jobs are pickled on their
    way through a pipe between processes of one user, never on disk. Data that all trials need
    belongs into a file that the function opens and keeps.
    """

    def __init__(
        self,
        function: Callable[[Job], Result],
        *,
        workers: int = 1,
        limits: Limits = NO_LIMITS,
    ) -> None:
        if workers < 1:
            raise UsageError(f"a pool needs at least one worker, but got {workers}: ask for one")
        self.workers = workers
        self._luggage = Luggage(function)
        self._limits = limits
        self._staff: list[Worker] = []
        self._waiting: deque[tuple[int, Job]] = deque()
        self._submitted = 0
        self._failed_starts = 0

    def __enter__(self) -> "ProcessPool[Job, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self) -> None:
        """Start all workers now, so that they import what they need before the first job."""
        while len(self._staff) < self.workers:
            self._staff.append(Worker(self._luggage, self._limits.cpu_seconds))

    def submit(self, job: Job) -> int:
        """Queue a job and return its key."""
        key = self._submitted
        self._submitted += 1
        self._waiting.append((key, job))
        self._assign()
        return key

    def results(self, timeout: float | None = None) -> list[Outcome[Result]]:
        """The outcomes since the last call, waiting for the first one at most `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        outcomes: list[Outcome[Result]] = []
        while not outcomes and (self._waiting or self._busy()):
            self._assign()
            spoke = self._wait(self._patience(end))
            for worker in list(self._staff):
                heard = worker.connection in spoke
                outcome = self._heard(worker) if heard else self._inspected(worker)
                outcomes += [outcome] if outcome is not None else []
            if end is not None and time.monotonic() >= end:
                break
        self._assign()
        return outcomes

    def close(self) -> None:
        """Stop at once; jobs that have not ended are forgotten."""
        self._waiting.clear()
        while self._staff:
            self._staff.pop().kill()

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._staff if worker.key is not None]

    def _assign(self) -> None:
        """Give waiting jobs to idle workers; start more workers while those are too few."""
        idle = [worker for worker in self._staff if worker.key is None]
        while len(idle) < len(self._waiting) and len(self._staff) < self.workers:
            worker = Worker(self._luggage, self._limits.cpu_seconds)
            self._staff.append(worker)
            idle.append(worker)
        for worker in idle:
            if worker.ready and self._waiting:
                worker.take(*self._waiting.popleft())

    def _patience(self, end: float | None) -> float | None:
        """How long nothing needs to be looked at, in seconds; None for ever."""
        now = time.monotonic()
        moments = [end] if end is not None else []
        for worker in self._staff:
            if not worker.ready:
                moments.append(worker.since + START_SECONDS)
            elif worker.key is not None and self._limits.wall_seconds is not None:
                moments.append(worker.since + self._limits.wall_seconds)
        if self._busy():
            watched = self._limits.memory_bytes is not None
            moments.append(now + (LOOK_SECONDS if watched else LONGEST_LOOK_SECONDS))
        return max(0.0, min(moments) - now) if moments else None

    def _wait(self, patience: float | None) -> Collection[object]:
        """Wait until a worker says something, and return the connections of those that do."""
        began = time.monotonic()
        spoke = wait([worker.connection for worker in self._staff], patience)
        overslept = time.monotonic() - began - (patience or 0.0)
        if patience is not None and overslept > LONGEST_LOOK_SECONDS:
            # Somebody stopped this process, and most likely its workers with it: what they did
            # not get to run is not the time of their trials.
            for worker in self._staff:
                worker.since += overslept
        return spoke

    def _heard(self, worker: Worker) -> Outcome[Result] | None:
        """What a worker says, or what its silence means."""
        was_ready, key, since = worker.ready, worker.key, worker.since
        try:
            answer = worker.listen()
        except (EOFError, OSError):
            self._staff.remove(worker)
            code = worker.end()
            if not was_ready:
                self._failed_start(code)
            return None if key is None else self._death(key, code, time.monotonic() - since)
        self._failed_starts = 0
        return None if answer is None or key is None else Outcome.of(key, answer)

    def _death(self, key: int, code: int, elapsed: float) -> Outcome[Result]:
        if code == -CPU_SIGNAL:
            limit = self._limits.cpu_seconds or elapsed
            reason = f"over its limit of {limit:g} s of CPU time"
            return Outcome(key, Status.TIMEOUT, None, limit, reason)
        return Outcome(key, Status.FAILED, None, elapsed, f"the worker process {_ended(code)}")

    def _failed_start(self, code: int) -> None:
        """A worker ended before it was ready: once may be bad luck, an error is none."""
        self._failed_starts += 1
        if code > 0 or self._failed_starts >= MOST_FAILED_STARTS:
            raise ForetuneError(
                "a worker process must be able to import the function it evaluates, but it "
                f"{_ended(code)} while starting: define the function in a module that can be "
                "imported"
            )

    def _inspected(self, worker: Worker) -> Outcome[Result] | None:
        """End a worker that is over a limit of its trial."""
        elapsed = time.monotonic() - worker.since
        if not worker.ready and elapsed > START_SECONDS:
            raise ForetuneError(
                f"a worker process must be ready within {START_SECONDS:g} s, but it is not: "
                "look for what the import of the evaluated function waits for"
            )
        if worker.key is None:
            return None
        wall, memory = self._limits.wall_seconds, self._limits.memory_bytes
        if wall is not None and elapsed >= wall:
            return self._ended_by_us(worker, Status.TIMEOUT, f"over its limit of {wall:g} s")
        if memory is not None and worker.memory() > memory:
            reason = f"out of memory: over its limit of {memory / 2**20:.0f} MiB"
            return self._ended_by_us(worker, Status.FAILED, reason)
        return None

    def _ended_by_us(self, worker: Worker, status: Status, reason: str) -> Outcome[Result] | None:
        elapsed = time.monotonic() - worker.since
        key = worker.key
        self._staff.remove(worker)
        worker.kill()
        return None if key is None else Outcome(key, status, None, elapsed, reason)


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    names: Iterable[signal.Signals] = signal.Signals
    name = next((s.name for s in names if s == -code), str(-code))
    return f"was killed by signal {name}"
