"""Trials as tasks of a Ray cluster, whose machines may be lost at any time.

On whatever machine a task lands, the trial runs in a process of its own beside the Ray worker, by
the same `ProcessPool` as without a cluster. So limits and reasons are the same everywhere. A
trial that kills its process has failed. If a Ray worker or a machine is gone, the trial is run
again.
"""

import math
import os
import pickle
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic

from foretune.errors import ForetuneError, UsageError, explain_missing_extras
from foretune.experience import Status
from foretune.run.call import Job, Result, one_line, unsendable
from foretune.run.executor import Limits, Outcome, check_workers
from foretune.run.pool import NO_LIMITS, ProcessPool
from foretune.run.ray_reports import Letter, RayLine, make_mailbox
from foretune.run.reports import Listener, Report, TrialStart
from foretune.run.running_trial import TrialFunction

LOOK_FOR_STOP_SECONDS = 1.0
"""How often to ask whether a trial is to stop that reports nothing new."""
MOST_RERUNS = 3
"""How often a lost trial is run again. After that the trial itself may be what ends machines."""
ADDRESS_VARIABLE = "RAY_ADDRESS"
"""Ray's environment variable with the address of a cluster. It counts if no address is given."""
NEW_CLUSTER = "local"


@dataclass
class _RayTask:
    """A job that is on the cluster."""

    key: int
    job: Any
    start: TrialStart
    lost: int = 0
    """How often it was lost."""
    since: float = 0.0

    def __post_init__(self) -> None:
        self.last_step = self.start.resumed_from
        """The last step that it has reported."""

    def accept(self, reports: Sequence[Report]) -> list[Report]:
        """Return the reports that are new: not those of a run that was given up."""
        last = -math.inf if self.last_step is None else self.last_step
        new = [report for report in reports if report.step > last]
        self.last_step = new[-1].step if new else self.last_step
        return new


class RayPool(Generic[Job, Result]):
    """Evaluates `function` in up to `workers` tasks of a Ray cluster at the same time.

    address: of a running cluster (`auto` for the one on this machine, `ray://...`). Default:
        RAY_ADDRESS. Without both, Ray is started on this machine, and `close` ends it.

    Every machine needs Foretune and the modules of the function. Limits are those of one trial,
    from when it begins: time spent waiting for a machine does not count.
    """

    def __init__(
        self,
        function: TrialFunction[Job, Result],
        *,
        workers: int = 1,
        limits: Limits = NO_LIMITS,
        address: str | None = None,
    ) -> None:
        check_workers(workers)
        with explain_missing_extras("running trials on Ray"):
            import ray

        self.workers = workers
        self._ray = ray
        self._function, self._limits = function, limits
        self._address = address or os.environ.get(ADDRESS_VARIABLE) or NEW_CLUSTER
        self._remote: Any = None
        self._luggage: Any = None
        self._connected = False
        self._waiting: deque[_RayTask] = deque()
        self._running: dict[Any, _RayTask] = {}
        self._submitted = 0
        self._listener: Listener | None = None
        self._mailbox: Any = None
        self._news: Any = None
        """The call of the mailbox that returns new reports."""
        self._seen = 0
        """The number of the last letter that was taken from the mailbox."""
        self._stopped: set[int] = set()
        """Running jobs that are to stop."""

    def __enter__(self) -> "RayPool[Job, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self) -> None:
        """Connect to the cluster and hand it the function now, before the first job."""
        if self._remote is not None:
            return
        if not self._ray.is_initialized():
            self._connect()
        # Retried here and not by Ray, which has no bound on how often a task may run out of memory.
        self._remote = self._ray.remote(num_cpus=1, max_retries=0)(evaluate)
        self._luggage = self._ray.put(self._ray.cloudpickle.dumps(self._function))

    def submit(self, job: Job, start: TrialStart | None = None) -> int:
        """Queue a job and return its key."""
        self.start()
        key = self._submitted
        self._submitted += 1
        self._waiting.append(_RayTask(key, job, start or TrialStart(key)))
        self._assign()
        return key

    def listen(self, listener: Listener) -> None:
        """Call this with all that jobs report, those that are submitted from now on."""
        self.start()
        if self._mailbox is None:
            self._mailbox = make_mailbox(self._ray)
            self._news = self._mailbox.take.remote(0, wait=True)
        self._listener = listener

    def results(self, timeout: float | None = None) -> list[Outcome[Result]]:
        """Return the outcomes since the last call; wait at most `timeout` seconds for the first."""
        end = None if timeout is None else time.monotonic() + timeout
        outcomes: list[Outcome[Result]] = []
        while not outcomes and self._running:
            left = None if end is None else max(0.0, end - time.monotonic())
            tasks = list(self._running)
            awaited = tasks if self._news is None else [*tasks, self._news]
            if not self._ray.wait(awaited, num_returns=1, timeout=left)[0]:
                break
            all_ended = self._ray.wait(tasks, num_returns=len(tasks), timeout=0)[0]
            self._hear_reports(has_ended=bool(all_ended))
            for ended in all_ended:
                outcome = self._heard(ended)
                outcomes += [outcome] if outcome is not None else []
            self._assign()
        return outcomes

    def close(self) -> None:
        """Stop at once, and forget jobs that have not ended."""
        self._waiting.clear()
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._running.clear()
        if self._mailbox is not None:  # it ends with its last handle
            self._mailbox.close.remote()
        self._remote = self._luggage = self._mailbox = self._news = None
        if self._connected:
            self._ray.shutdown()
            self._connected = False

    def _connect(self) -> None:
        # Ray on this machine has as many places as there are to be trials at the same time.
        new = {"num_cpus": self.workers, "include_dashboard": False}
        settings = new if self._address == NEW_CLUSTER else {}
        try:
            self._ray.init(self._address, log_to_driver=False, logging_level="error", **settings)
        except Exception as error:
            # Ray raises any kind of error if its own processes do not start in time.
            if self._address == NEW_CLUSTER:
                raise ForetuneError(
                    f"Ray must start on this machine, but does not ({one_line(error)}): try again "
                    "when it is less busy, or name a cluster that runs",
                    rule="ray-start",
                ) from error
            raise UsageError(
                f"a Ray cluster must answer at its address, but '{self._address}' does not "
                f"({one_line(error)}): start one with  ray start --head,  or correct the address",
                rule="ray-address",
                field="address",
                value=self._address,
            ) from error
        self._connected = True

    def _assign(self) -> None:
        """Put waiting jobs on the cluster while there are free workers."""
        while self._waiting and len(self._running) < self.workers:
            task = self._waiting.popleft()
            task.since = time.monotonic()
            sent = self._remote.remote(
                self._luggage, self._limits, task.job, task.start, self._mailbox, task.key
            )
            self._running[sent] = task

    def _hear_reports(self, *, has_ended: bool) -> None:
        """Pass new reports on. has_ended: a task has ended, and all its reports have arrived."""
        if self._news is None:
            return
        if self._ray.wait([self._news], timeout=0)[0]:
            self._pass_on(self._ray.get(self._news))
            self._news = self._mailbox.take.remote(self._seen, wait=True)
        if has_ended:
            # What the call above may return later is known by its numbers.
            self._pass_on(self._ray.get(self._mailbox.take.remote(self._seen, wait=False)))

    def _pass_on(self, letters: Sequence[Letter]) -> None:
        assert self._listener is not None
        tasks = {task.key: task for task in self._running.values()}
        for letter in letters:
            if letter.number <= self._seen:
                continue
            self._seen = letter.number
            task = tasks.get(letter.key)
            reports = [] if task is None else task.accept(letter.reports)
            if reports and self._listener(letter.key, reports):
                self._stopped.add(letter.key)
        self._stopped &= tasks.keys()
        self._mailbox.answer.remote(self._seen, list(self._stopped))

    def _heard(self, ended: Any) -> Outcome[Result] | None:
        """Return the outcome of a task; None if it was lost and will be run again."""
        from ray.exceptions import RayError, RayTaskError, RuntimeEnvSetupError

        task = self._running.pop(ended)
        try:
            found: Outcome[Result] = _unpack(self._ray.get(ended))
        except (RayTaskError, RuntimeEnvSetupError) as error:
            cause = getattr(error, "cause", error)
            if isinstance(cause, ForetuneError):
                raise ForetuneError(str(cause)) from error
            raise ForetuneError(
                f"a machine of the cluster must be able to run trials, but: {one_line(cause)}; "
                "install the same Foretune on all of them",
                rule="ray-machine",
            ) from error
        except RayError as error:
            return self._handle_lost_task(task, error)
        return replace(found, key=task.key)

    def _handle_lost_task(self, task: _RayTask, error: Exception) -> Outcome[Result] | None:
        task.lost += 1
        # What was heard is not reported again; the folder, if machines share it, goes on.
        task.start = replace(task.start, resumed_from=task.last_step)
        if task.lost <= MOST_RERUNS:
            self._waiting.appendleft(task)
            return None
        reason = f"lost {task.lost} times with its Ray worker: {one_line(error)}"
        elapsed = time.monotonic() - task.since
        return Outcome(task.key, Status.FAILED, None, elapsed, reason)


# What runs in a Ray worker


class Packed:
    """A function as bytes, which becomes the function when it is unpickled.

    So the Ray worker can pass it on without importing it.
    """

    def __init__(self, function: bytes) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self.function,)

    def __call__(self, job: Any) -> Any:
        """Never run: the process that calls has the function itself."""
        raise NotImplementedError


def evaluate(
    function: bytes,
    limits: Limits,
    job: Any,
    start: TrialStart | None = None,
    mailbox: Any = None,
    key: int = 0,
) -> Outcome[bytes]:
    """Run one trial in a process beside this one, and return its outcome with a pickled result.

    mailbox: gets its reports, under the key of the job; None if nobody listens.
    """
    pool, line = _pool(function, limits), RayLine(mailbox, key)
    pool.listen(line.hear)
    line.own_key = pool.submit(job, start)
    while True:
        for outcome in pool.results(None if mailbox is None else LOOK_FOR_STOP_SECONDS):
            if outcome.key == line.own_key:  # and not of a job that was given up
                return _pack(outcome)
        if line.should_stop():
            pool.ask_to_stop(line.own_key)


def _pack(outcome: Outcome[Any]) -> Outcome[bytes]:
    """Return the outcome with a pickled result. Code of the result may fail this trial only."""
    if outcome.status is not Status.DONE:
        return outcome
    try:
        return replace(outcome, result=pickle.dumps(outcome.result))
    except (Exception, SystemExit) as error:
        return Outcome.of(outcome.key, unsendable(outcome.seconds, error))


def _unpack(outcome: Outcome[bytes]) -> Outcome[Any]:
    """Return the outcome with its result again."""
    if outcome.result is None:
        return outcome
    try:
        return replace(outcome, result=pickle.loads(outcome.result))
    except (Exception, SystemExit) as error:
        return Outcome.of(outcome.key, unsendable(outcome.seconds, error))


@lru_cache(maxsize=1)
def _pool(function: bytes, limits: Limits) -> ProcessPool[Any, Any]:
    """Return the pool of this Ray worker, whose process has imported what trials need.

    That process ends with its pipe, when the pool is dropped or this process dies.
    """
    return ProcessPool(Packed(function), limits=limits)
