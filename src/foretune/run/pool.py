"""Trials in worker processes that may crash, hang, be killed or run out of memory.

A process pool of the standard library breaks as a whole when one of its workers dies, and cannot
end one job. Here each worker has a pipe of its own, and its death costs the trial it was running;
docs/decisions/009-trials-in-processes.md gives the reasons.
"""

import math
import pickle
import select
import signal
import time
import warnings
import weakref
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Generic

from foretune.errors import ForetuneError, ForetuneWarning
from foretune.experience import Status
from foretune.run.call import Job, Result
from foretune.run.channel import ForeignMessageError
from foretune.run.executor import Limits, Outcome, check_workers
from foretune.run.limit_watch import USUAL_PATIENCE, Guard, Patience
from foretune.run.reports import Listener, TrialStart
from foretune.run.running_trial import TrialFunction
from foretune.run.worker import CHANNEL_LOST, CPU_SIGNAL
from foretune.run.worker_process import Verdict, Worker, WorkerSetup
from foretune.run.worker_start import StartWorker, start_worker

NO_LIMITS = Limits(result_bytes=None)
LOOK_FOR_DEAD_SECONDS = 1.0
"""How often to look for workers that ended while another process holds their pipe."""
MOST_FAILED_STARTS = 3
FOREIGN_MESSAGE = (
    "its worker process sent something that is no answer to this trial: the function must not "
    "write into file descriptors that it did not open"
)
"""The reason of a trial whose function wrote into the channel of its worker."""
IDLE_MESSAGE = (
    "a worker process said something though it had no trial, and was replaced: a thread of an "
    "earlier trial writes into file descriptors that it did not open"
)
CHANNEL_CLOSED = (
    "its worker process lost its channel: the function must not close file descriptors that it did "
    "not open"
)


class ProcessPool(Generic[Job, Result]):
    """Evaluates `function` in up to `workers` processes of its own.

    The function goes to each worker once, when that starts; it and the jobs are pickled on their
    way through a pipe between processes of one user, never on disk. Data that all trials need
    belongs into a file that the function opens and keeps. A function with a method `prepare` has it
    called in each worker before the first job, outside of any limit.
    """

    def __init__(
        self,
        function: TrialFunction[Job, Result],
        *,
        workers: int = 1,
        limits: Limits = NO_LIMITS,
        patience: Patience = USUAL_PATIENCE,
        start_worker: StartWorker = start_worker,
    ) -> None:
        check_workers(workers)
        self._start_worker = start_worker
        self.workers = workers
        self._luggage = WorkerSetup(function)
        self._limits = limits
        self._guard = Guard(limits, patience)
        # The guard holds workers: those of a pool that is given up without `close` are to end.
        weakref.finalize(self, self._guard.close)
        self._staff: list[Worker] = []
        self._listener: Listener | None = None
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._submitted = 0
        self._failed_starts = 0

    def __enter__(self) -> "ProcessPool[Job, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self) -> None:
        """Start all workers now, so that they import what they need before the first job."""
        while len(self._staff) < self.workers:
            self._hire()

    def submit(self, job: Job, start: TrialStart | None = None) -> int:
        """Queue a job and return its key."""
        key = self._submitted
        self._submitted += 1
        is_heard = self._listener is not None
        self._waiting.append((key, pickle.dumps((job, start or TrialStart(key), is_heard))))
        self._assign()
        return key

    def listen(self, listener: Listener) -> None:
        """Call this with all reports of jobs that are submitted from now on."""
        self._listener = listener

    def ask_to_stop(self, key: int) -> None:
        """Tell a running job that it is to stop, though it has reported nothing new."""
        for worker in self._busy():
            if worker.key == key:
                worker.inbox.answer(0, stop=True)

    def results(self, timeout: float | None = None) -> list[Outcome[Result]]:
        """Return the outcomes since the last call; wait at most `timeout` seconds for the first."""
        end = None if timeout is None else time.monotonic() + timeout
        outcomes: list[Outcome[Result]] = []
        while not outcomes and (self._waiting or self._busy()):
            self._assign()
            spoke = self._wait(end)
            for worker in list(self._staff):
                outcome = None
                if worker.verdict is not None or worker.fell_silent():
                    outcome = self._dead(worker)
                elif worker.channel.fileno() in spoke:
                    worker.flush()
                    outcome = self._heard(worker)
                elif worker.inbox.fileno() in spoke:
                    outcome = self._hear_reports(worker)
                outcomes += [outcome] if outcome is not None else []
            if end is not None and time.monotonic() >= end:
                break
        self._assign()
        return outcomes

    def close(self) -> None:
        """Stop at once, and forget jobs that have not ended."""
        self._guard.close()
        self._waiting.clear()
        for worker in self._staff:
            worker.hang_up()
        while self._staff:
            self._staff.pop().end()

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._staff if worker.key is not None]

    def _assign(self) -> None:
        """Give waiting jobs to idle workers, and start more workers if there are too few."""
        idle = [each for each in self._staff if each.key is None and self._is_quiet(each)]
        while len(idle) < len(self._waiting) and len(self._staff) < self.workers:
            idle.append(self._hire())
        for worker in idle:
            if worker.ready and self._waiting:
                worker.take(*self._waiting.popleft())

    def _is_quiet(self, worker: Worker) -> bool:
        """Return True unless an idle worker has died or said something; then clear it away."""
        if worker.ready:
            self._heard(worker)
        return worker in self._staff

    def _hire(self) -> Worker:
        worker = Worker(self._limits, self._luggage.libraries, self._start_worker)
        self._staff.append(worker)
        self._guard.watch(self._staff)
        worker.equip(self._luggage)
        return worker

    def _wait(self, end: float | None) -> set[int]:
        """Wait, and return the descriptors of workers that say something or can read more."""
        poller = select.poll()
        for worker in self._staff:
            sending = select.POLLOUT if worker.channel.has_unsent else 0
            poller.register(worker.channel, select.POLLIN | sending)
            if worker.inbox.is_open:
                poller.register(worker.inbox, select.POLLIN)
        left = LOOK_FOR_DEAD_SECONDS if end is None else end - time.monotonic()
        patience = min(LOOK_FOR_DEAD_SECONDS, max(0.0, left))
        return {descriptor for descriptor, _ in poller.poll(math.ceil(1000 * patience))}

    def _heard(self, worker: Worker) -> Outcome[Result] | None:
        """Take in what a worker says, or that its channel has ended."""
        key = worker.key
        try:
            answer = worker.listen()
        except (EOFError, OSError):
            return self._dead(worker)
        except ForeignMessageError:
            return self._replace_confused(worker)
        if worker.ready:
            self._failed_starts = 0
        if answer is None or key is None:
            return None
        self._take_last_reports(worker, key)
        return Outcome.of(key, answer)

    def _hear_reports(self, worker: Worker) -> Outcome[Result] | None:
        """Pass on what a running trial has reported."""
        try:
            worker.pass_reports(worker.key, self._listener)
        except ForeignMessageError:
            return self._replace_confused(worker)
        return None

    def _take_last_reports(self, worker: Worker, key: int) -> None:
        """Pass on what a trial reported before it ended: all of it has arrived."""
        with suppress(ForeignMessageError):
            while worker.pass_reports(key, self._listener):
                pass

    def _replace_confused(self, worker: Worker) -> Outcome[Result] | None:
        """Replace a worker whose message is no answer; its trial fails."""
        self._staff.remove(worker)
        self._guard.watch(self._staff)
        elapsed = time.monotonic() - worker.since
        worker.end()
        if worker.key is None:
            warnings.warn(ForetuneWarning(IDLE_MESSAGE, rule="idle-message"), stacklevel=3)
            return None
        return Outcome(worker.key, Status.FAILED, None, elapsed, FOREIGN_MESSAGE)

    def _dead(self, worker: Worker) -> Outcome[Result] | None:
        """Clear away a worker that has ended, and return the outcome of its trial."""
        self._staff.remove(worker)
        self._guard.watch(self._staff)
        if worker.key is not None:
            self._take_last_reports(worker, worker.key)
        code = worker.end()
        verdict = worker.verdict
        if not worker.ready:
            self._handle_failed_start(code, verdict)
        if worker.key is None:
            return None
        if verdict is not None:
            return Outcome(worker.key, verdict.status, None, verdict.seconds, verdict.reason)
        return self._death(worker.key, code, time.monotonic() - worker.since)

    def _death(self, key: int, code: int, elapsed: float) -> Outcome[Result]:
        if code == -CPU_SIGNAL:
            limit = self._limits.cpu_seconds or elapsed
            reason = f"over its limit of {limit:g} s of CPU time"
            return Outcome(key, Status.TIMEOUT, None, limit, reason)
        if code == CHANNEL_LOST:
            return Outcome(key, Status.FAILED, None, elapsed, CHANNEL_CLOSED)
        return Outcome(key, Status.FAILED, None, elapsed, f"the worker process {_exit_text(code)}")

    def _handle_failed_start(self, code: int, verdict: Verdict | None) -> None:
        """Raise an error if a worker could not start, but allow a few that were killed."""
        if verdict is not None:
            raise ForetuneError(verdict.reason, rule="worker-start", value=verdict.reason)
        self._failed_starts += 1
        if code > 0 or self._failed_starts >= MOST_FAILED_STARTS:
            raise ForetuneError(
                "a worker process must be able to import the function it evaluates, but it "
                f"{_exit_text(code)} while starting: define the function in a module that can be "
                "imported",
                rule="worker-import",
                value=code,
            )


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    names: Iterable[signal.Signals] = signal.Signals
    name = next((s.name for s in names if s == -code), str(-code))
    return f"was killed by signal {name}"
