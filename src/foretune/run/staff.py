"""One worker process as its parent sees it."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from foretune.run.calling import Answer
from foretune.run.memory import resident_bytes
from foretune.run.threads import one_numeric_thread
from foretune.run.worker import READY, serve


class Worker:
    """A spawned process and the parent's end of its pipe."""

    def __init__(self, function: Callable[[Any], Any], cpu_seconds: float | None) -> None:
        # Never forked: a fork copies the locks of threads that it does not copy.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs, function, cpu_seconds), daemon=True
        )
        with one_numeric_thread():
            self.process.start()
        # Only the worker holds its end now, so that its death ends the conversation.
        theirs.close()
        self.since = time.monotonic()
        """When it was started or got its job."""
        self.ready = False
        self.key: int | None = None
        """The job it works on."""

    def take(self, key: int, job: Any) -> None:
        """Begin a job."""
        self.key, self.since = key, time.monotonic()
        # A worker that died while idle is found out when its end of the pipe is read.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(job)

    def listen(self) -> Answer | None:
        """The answer to the job; None if it says that it is ready. EOFError when it is dead."""
        said = self.connection.recv()
        if said == READY:
            self.ready = True
            return None
        self.key = None
        answer: Answer = said
        return answer

    def memory(self) -> int:
        """Resident bytes; 0 when it is gone."""
        return resident_bytes(self._pid) or 0

    def end(self) -> int:
        """Clear away a worker whose pipe is closed, and return how it ended."""
        self.process.join()
        self.connection.close()
        return self.process.exitcode or 0

    def kill(self) -> None:
        """End the worker and every process it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        # While it is starting it does not lead a group of its own yet.
        self.process.kill()
        self.end()

    @property
    def _pid(self) -> int:
        pid = self.process.pid
        if pid is None:
            raise RuntimeError("a worker was asked for its process before it was started")
        return pid
