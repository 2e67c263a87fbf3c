"""A worker process as its parent sees it."""

import pickle
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import spawn
from typing import Any, NamedTuple, TypeAlias

from foretune.errors import UsageError
from foretune.experience import Status
from foretune.run.call import Answer, one_line, unsendable
from foretune.run.channel import KEY_BYTES, ForeignMessageError, ParentEnd
from foretune.run.executor import Limits
from foretune.run.memory import resident_bytes
from foretune.run.report_channel import ReportInbox
from foretune.run.reports import Listener
from foretune.run.worker_start import StartWorker, WorkerOrder, libraries_of, start_worker

ANSWER_BYTES = 2**16
"""The largest size of an answer without its result."""
LONGEST_ENDING_SECONDS = 10.0
"""How long a worker may take to end all that it has started; then it is killed itself."""
LONGEST_ENDING_AT_START_SECONDS = 1.0
"""The same while it has not begun a trial."""


class WorkerSetup:
    """The messages to a worker that starts: the function, and how modules are found."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = _pack(function)
        """Opened by a process of the same user at the other end of a pipe, and never stored."""
        self.libraries = libraries_of(function)
        """What a worker loads in any case, so that a fork server may load it once for all."""
        everything = spawn.get_preparation_data("foretune worker")
        wanted = {"name", "sys_path", "sys_argv", "dir", "orig_dir"}
        # The program itself is run anew only if the function is defined in it: then it needs the
        # guard  if __name__ == "__main__",  and else it does not.
        if b"__main__" in self.function:
            wanted |= {"init_main_from_name", "init_main_from_path"}
        self.preparation = {name: each for name, each in everything.items() if name in wanted}


def _pack(function: Callable[..., Any]) -> bytes:
    try:
        return pickle.dumps(function)
    except Exception as error:  # of any kind: a function may be an object with code of its own
        raise UsageError(
            "a worker process must be able to import the function it evaluates, but it cannot be "
            f"sent there ({one_line(error)}): define the function in a module that can be imported",
            rule="worker-import",
        ) from error


class Verdict(NamedTuple):
    """Why a worker was ended."""

    status: Status
    reason: str
    seconds: float
    """On the clock, since it was started or got its job."""


class Worker:
    """A process that is never forked from this one, because a fork copies the locks of threads that
    it does not copy; and the parent's end of its channel.

    One thread of the parent talks to it, another one judges it. Neither ever waits for it, except
    in `end`.
    """

    def __init__(
        self,
        limits: Limits,
        libraries: tuple[str, ...] = (),
        start: StartWorker = start_worker,
    ) -> None:
        ours, theirs = socket.socketpair()
        self.inbox = ReportInbox()
        most = limits.result_bytes
        self.channel = ParentEnd(ours, None if most is None else most + ANSWER_BYTES)
        reports = self.inbox.descriptors
        self.process = start(
            WorkerOrder(theirs.fileno(), reports, limits.cpu_seconds, most, libraries)
        )
        # Only the worker holds its end now, so that its death ends the conversation.
        theirs.close()
        self.inbox.hand_over()
        self.since = time.monotonic()
        """When it was started or got its job."""
        self.ready = False
        self.key: int | None = None
        """The job it works on."""
        self.verdict: Verdict | None = None
        """The reason why it was ended from here, if it was."""
        self._pid: int | None = None
        """The process that evaluates, which the started one watches."""
        self._secret = secrets.token_bytes(KEY_BYTES)
        """Signs the answer that is expected; a new one for each job."""
        self._gone = False
        self._lock = threading.Lock()

    def equip(self, luggage: WorkerSetup) -> None:
        """Send what it needs to begin, as soon as it reads it."""
        with self._lock:
            self.channel.post(self._secret + pickle.dumps(luggage.preparation))
            self.channel.post(luggage.function)

    def take(self, key: int, job: bytes) -> None:
        """Begin a job, which is pickled."""
        with self._lock:
            self.key, self.since = key, time.monotonic()
            self._secret = secrets.token_bytes(KEY_BYTES)
            self.inbox.begin()
            self.channel.post(self._secret + job)

    def listen(self) -> Answer | None:
        """Return the answer to the job; None as long as there is none.

        EOFError when the worker is dead; ForeignMessageError when it says what is no answer to the
        job that it has.
        """
        with self._lock:
            message = self.channel.read(self._secret)
            if message is None:
                return None
            if not self.ready:
                self.ready, self._pid = True, int(message)
                return None
            if self.key is None:
                raise ForeignMessageError
            self.key = None
        return _unpack_result(message)

    def pass_reports(self, key: int | None, listener: Listener | None) -> bool:
        """Pass what the job has reported to a listener; False if it has reported nothing new.

        ForeignMessageError when the worker says what is no report of the job.
        """
        reports = list(self.inbox.read(self._secret))
        if not reports:
            return False
        if key is None or listener is None:
            raise ForeignMessageError
        self.inbox.answer(len(reports), listener(key, reports))
        return True

    def flush(self) -> None:
        """Send more of what the worker has not read yet."""
        with self._lock:
            if not self._gone:
                self.channel.flush()

    def judge(self, judge: "Judge", now: float) -> None:
        """End the worker if the judge says so, unless it has answered or is gone already."""
        with self._lock:
            if self._gone or self.verdict is not None:
                return
            self.channel.flush()
            # An answer counts from when it was given, however long nobody reads it.
            if self.channel.has_answer():
                return
            self.verdict = judge(self, now - self.since)
            if self.verdict is not None:
                self.channel.hang_up()

    def waits_for_rest(self, seconds: float) -> bool:
        """Return True if an answer has begun to arrive, but no more of it came for so long."""
        return self.channel.has_partial and time.monotonic() - self.channel.heard_at > seconds

    def forgive(self, seconds: float, now: float) -> None:
        """Do not count some time."""
        with self._lock:
            self.since = min(self.since + seconds, now)

    def memory(self) -> int:
        """Return the resident bytes of the process that evaluates; 0 if there is none."""
        return (0 if self._pid is None else resident_bytes(self._pid)) or 0

    def fell_silent(self) -> bool:
        """Return True if it has ended without an answer, even if another process holds its pipe."""
        return self.process.poll() is not None and not self.channel.has_answer()

    def hang_up(self) -> None:
        """Make the worker end, with every process it has started, and do not wait for that."""
        with self._lock:
            self.channel.hang_up()

    def end(self) -> int:
        """Clear away a worker that is dead or dying, and return how it ended."""
        with self._lock:
            self._gone = True
            self.channel.hang_up()
            self.channel.close()
            self.inbox.close()
        patience = LONGEST_ENDING_SECONDS if self.ready else LONGEST_ENDING_AT_START_SECONDS
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(patience)
        # It never got to where it watches over others, or it was stopped.
        self.process.kill()
        return self.process.wait()


def _unpack_result(message: bytes) -> Answer:
    """Return the answer with its result unpickled; a result that cannot be is a failure."""
    answer = Answer(*pickle.loads(message))
    if answer.failure is not None:
        return answer
    try:
        return answer._replace(result=pickle.loads(answer.result))
    except (Exception, SystemExit) as error:
        return unsendable(answer.seconds, error)


Judge: TypeAlias = Callable[[Worker, float], Verdict | None]
"""Decides whether a worker must end, by the seconds since it was started or got its job."""
