"""Trials as tasks of a Ray cluster: many machines, some of which may be lost on the way.

On whatever machine a task lands, the trial runs in a process of its own beside the Ray worker, by
the same `ProcessPool` as without a cluster. So limits hold and faults are named in the same way
everywhere, and one thing can be told from another: a trial that kills its process has failed, while
a Ray worker or a machine that is gone has only lost the trial, which is run again.
"""

import os
import pickle
import time
from collections import deque
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic

from foretune.errors import ForetuneError, UsageError, explain_missing_extras
from foretune.experience import Status
from foretune.run.call import Job, Result, one_line, unsendable
from foretune.run.executor import Limits, Outcome, check_workers
from foretune.run.pool import NO_LIMITS, ProcessPool
from foretune.run.reports import Listener, TrialStart
from foretune.run.running_trial import TrialFunction

MOST_RERUNS = 3
"""How often a lost trial is run again; one lost even then may be what takes the machines down."""
ADDRESS_VARIABLE = "RAY_ADDRESS"
"""The environment variable that names the cluster where no address is given, as Ray has it."""
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


class RayPool(Generic[Job, Result]):
    """Evaluates `function` in up to `workers` tasks of a Ray cluster at the same time.

    address: of a running cluster (`auto` for the one on this machine, `ray://...`); if it is not
        given and RAY_ADDRESS is not set, Ray is started on this machine, and ended by `close`.

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
        """Refuse to listen: reports do not travel through a cluster yet."""
        raise UsageError(
            "reports of running trials are heard on this machine only, but trials are to run on "
            "Ray: use processes",
            rule="reports-on-ray",
            value=listener,
        )

    def results(self, timeout: float | None = None) -> list[Outcome[Result]]:
        """The outcomes since the last call, waiting for the first one at most `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        outcomes: list[Outcome[Result]] = []
        while not outcomes and self._running:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not self._ray.wait(list(self._running), num_returns=1, timeout=left)[0]:
                break
            tasks = list(self._running)
            for ended in self._ray.wait(tasks, num_returns=len(tasks), timeout=0)[0]:
                outcome = self._heard(ended)
                outcomes += [outcome] if outcome is not None else []
            self._assign()
        return outcomes

    def close(self) -> None:
        """Stop at once; jobs that have not ended are forgotten."""
        self._waiting.clear()
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._running.clear()
        self._remote = self._luggage = None
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
            # Of no kind in particular where Ray's own processes do not start in time.
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
        """Put waiting jobs on the cluster, as many as there are to be at the same time."""
        while self._waiting and len(self._running) < self.workers:
            task = self._waiting.popleft()
            task.since = time.monotonic()
            sent = self._remote.remote(self._luggage, self._limits, task.job, task.start)
            self._running[sent] = task

    def _heard(self, ended: Any) -> Outcome[Result] | None:
        """What came of a task; None if it was lost and will be run again."""
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
        return Outcome(task.key, found.status, found.result, found.seconds, found.reason)

    def _handle_lost_task(self, task: _RayTask, error: Exception) -> Outcome[Result] | None:
        task.lost += 1
        if task.lost <= MOST_RERUNS:
            self._waiting.appendleft(task)
            return None
        reason = f"lost {task.lost} times with its Ray worker: {one_line(error)}"
        elapsed = time.monotonic() - task.since
        return Outcome(task.key, Status.FAILED, None, elapsed, reason)


# What runs in a Ray worker


class Packed:
    """A function as bytes, which turns into the function where it is unpickled.

    So the Ray worker hands on what it need not be able to import itself.
    """

    def __init__(self, function: bytes) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self.function,)

    def __call__(self, job: Any) -> Any:
        """Never called: the process that calls has the function itself."""
        raise NotImplementedError


def evaluate(
    function: bytes, limits: Limits, job: Any, start: TrialStart | None = None
) -> Outcome[bytes]:
    """One trial, in a process beside this one, with its result pickled."""
    pool = _pool(function, limits)
    key = pool.submit(job, start)
    while True:
        for outcome in pool.results():
            if outcome.key == key:  # and not of a job that was given up
                return _pack(outcome)


def _pack(outcome: Outcome[Any]) -> Outcome[bytes]:
    """With the result as bytes: whatever its own code raises costs this trial only."""
    if outcome.status is not Status.DONE:
        return outcome
    try:
        return replace(outcome, result=pickle.dumps(outcome.result))
    except (Exception, SystemExit) as error:
        return Outcome.of(outcome.key, unsendable(outcome.seconds, error))


def _unpack(outcome: Outcome[bytes]) -> Outcome[Any]:
    """With its result again."""
    if outcome.result is None:
        return outcome
    try:
        return replace(outcome, result=pickle.loads(outcome.result))
    except (Exception, SystemExit) as error:
        return Outcome.of(outcome.key, unsendable(outcome.seconds, error))


@lru_cache(maxsize=1)
def _pool(function: bytes, limits: Limits) -> ProcessPool[Any, Any]:
    """Kept from trial to trial, for its process has imported what trials need.

    The process ends with the pipe to this one, whether the pool is given up or this process dies.
    """
    return ProcessPool(Packed(function), limits=limits)
