"""One worker process as its parent sees it."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe, spawn
from typing import Any, NamedTuple, TypeAlias

from foretune.errors import UsageError
from foretune.experience import Status
from foretune.run.calling import Answer, one_line, unsendable
from foretune.run.memory import resident_bytes
from foretune.run.threads import ONE_NUMERIC_THREAD
from foretune.run.worker import READY

PROGRAM = "from foretune.run.worker import main; main({}, {})"


class Luggage:
    """What a worker is sent when it starts: the function, and how modules are found."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = _packed(function)
        """Opened by a process of the same user at the other end of a pipe, and never stored."""
        everything = spawn.get_preparation_data("foretune worker")
        wanted = {"name", "sys_path", "sys_argv", "dir", "orig_dir"}
        # The program itself is run anew only if the function is defined in it: then it needs the
        # guard  if __name__ == "__main__",  and else it does not.
        if b"__main__" in self.function:
            wanted |= {"init_main_from_name", "init_main_from_path"}
        self.preparation = {name: each for name, each in everything.items() if name in wanted}


def _packed(function: Callable[[Any], Any]) -> bytes:
    try:
        return pickle.dumps(function)
    except Exception as error:  # of any kind: a function may be an object with code of its own
        raise UsageError(
            "a worker process must be able to import the function it evaluates, but it cannot be "
            f"sent there ({one_line(error)}): define the function in a module that can be imported"
        ) from error


class Verdict(NamedTuple):
    """Why a worker was ended."""

    status: Status
    reason: str
    seconds: float
    """On the clock, since it was started or got its job."""


class Worker:
    """A process started from nothing (never forked, for a fork copies the locks of threads that
    it does not copy) and the parent's end of its pipe.

    One thread of the parent talks to it, another one judges it.
    """

    def __init__(self, cpu_seconds: float | None) -> None:
        self.connection, theirs = Pipe()
        # Its own session: Ctrl-C reaches the parent only, and what it starts can be ended with it.
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(theirs.fileno(), cpu_seconds)],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **ONE_NUMERIC_THREAD},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        # Only the worker holds its end now, so that its death ends the conversation.
        theirs.close()
        self.since = time.monotonic()
        """When it was started or got its job."""
        self.ready = False
        self.key: int | None = None
        """The job it works on."""
        self.verdict: Verdict | None = None
        """Why it was ended from here, if it was."""
        self._gone = False
        self._lock = threading.Lock()

    def equip(self, luggage: Luggage) -> None:
        """Send what it needs to begin.

        It reads a large function only after its imports, and until then the sending waits: let
        somebody watch it who ends a worker that hangs there.
        """
        self._say(luggage.preparation)
        self._say(luggage.function)

    def take(self, key: int, job: Any) -> None:
        """Begin a job."""
        with self._lock:
            self.key, self.since = key, time.monotonic()
        self._say(job)

    def listen(self) -> Answer | None:
        """The answer to the job; None if it says that it is ready. EOFError when it is dead."""
        with self._lock:
            said = self.connection.recv()
            if said == READY:
                self.ready = True
                return None
            self.key = None
            return _opened(said)

    def judge(self, judge: "Judge", now: float) -> None:
        """End the worker if the judge says so, unless it has answered or is gone already."""
        with self._lock:
            # An answer counts from when it was given, however long nobody reads it.
            if self._gone or self.verdict is not None or self.connection.poll():
                return
            self.verdict = judge(self, now - self.since)
            if self.verdict is not None:
                self._kill()

    def forgive(self, seconds: float, now: float) -> None:
        """Leave some time out of account."""
        with self._lock:
            self.since = min(self.since + seconds, now)

    def memory(self) -> int:
        """Resident bytes; 0 when it is gone."""
        return resident_bytes(self.process.pid) or 0

    def fell_silent(self) -> bool:
        """True if it has ended without a last word, though what it has started holds its pipe."""
        return self.process.poll() is not None and not self.connection.poll()

    def end(self) -> int:
        """Clear away a worker that is dead or dying, and return how it ended."""
        with self._lock:
            self._gone = True
            self.connection.close()
            code = self.process.wait()
            self._kill()  # what it has started, and left behind
            return code

    def kill(self) -> None:
        """End the worker and every process it has started."""
        with self._lock:
            self._kill()
        self.end()

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def _say(self, message: Any) -> None:
        # A worker that died is found out when its end of the pipe is read.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(message)


def _opened(answer: Answer) -> Answer:
    """An answer with its result unpacked; a result that cannot be unpacked is a failure."""
    if answer.failure is not None:
        return answer
    try:
        return answer._replace(result=pickle.loads(answer.result))
    except Exception as error:
        return unsendable(answer.seconds, error)


Judge: TypeAlias = Callable[[Worker, float], Verdict | None]
"""Says by a worker and the seconds since it was started or got its job whether it must end."""
