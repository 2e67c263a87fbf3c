"""Starting the processes of workers: forked from a server that is ready, or from nothing."""

import atexit
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Protocol

from foretune._base.threads import ONE_NUMERIC_THREAD
from foretune.run.supervisor import ENDING
from foretune.run.surroundings import Surroundings, starting_point

WORKER_PROGRAM = "from foretune.run.supervisor import main; main({}, {}, {}, {})"
SERVER_PROGRAM = "from foretune.run.fork_server import main; main({})"
SERVER_VARIABLES = {**ONE_NUMERIC_THREAD, "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""A process with a second thread, such as the one of pyarrow's allocator, is not forked."""
MOST_DEATHS = 3
"""A server that was killed so often is not started again."""
FORKABLE = frozenset(
    ("numpy", "pandas", "scipy", "sklearn", "lightgbm", "xgboost", "catboost", "foretune")
)
"""Packages that a server may import: that starts no thread, and reads nothing that may change."""
STDERR = 2


@dataclass(frozen=True)
class WorkerOrder:
    """A worker that is to be started."""

    channel: int
    """The worker's end of its channel."""
    reports: tuple[int, int]
    """The descriptors of its `ReportOutbox`."""
    cpu_limit: float | None
    most_bytes: int | None
    libraries: tuple[str, ...] = ()
    """Modules that a server loads before it forks the worker."""


class WorkerProcess(Protocol):
    """The process of a worker, however it was started."""

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code when it has ended; raise TimeoutExpired if that takes longer."""

    def kill(self) -> None:
        """Kill it, and with it what it has started in its session."""


class StartWorker(Protocol):
    """Starts the process of a worker."""

    def __call__(self, order: WorkerOrder) -> WorkerProcess:
        """Start a worker, which need not be ready yet."""


class WorkerFromNothing:
    """A worker whose process this one has started itself."""

    def __init__(self, order: WorkerOrder, program: str = WORKER_PROGRAM) -> None:
        arguments = order.channel, order.reports, order.cpu_limit, order.most_bytes
        # Its own session: Ctrl-C reaches the parent only, and what it starts can be ended with it.
        self._process = subprocess.Popen(
            [sys.executable, "-c", program.format(*arguments)],
            pass_fds=[order.channel, *order.reports],
            env={**os.environ, **ONE_NUMERIC_THREAD},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code when it has ended."""
        return self._process.wait(timeout)

    def kill(self) -> None:
        """Kill it, and with it what it has started in its session."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


class ForkedWorker:
    """A worker that a server has forked. It says itself how it ends.

    The server is its parent and could say that too, but then nobody would know if the server died.
    """

    def __init__(self, ending: int) -> None:
        self._ending = ending
        os.set_blocking(ending, False)
        self._said = b""
        self._code: int | None = None

    def __del__(self) -> None:
        os.close(self._ending)

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        with suppress(BlockingIOError):
            while self._code is None:
                said = os.read(self._ending, 64)
                self._said += said
                if not said:  # all processes that held the other end have ended
                    self._code = self._exit_code()
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code when it has ended. A worker that nobody has forked yet is gone."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        poller = select.poll()
        poller.register(self._ending, select.POLLIN)
        while (code := self.poll()) is None:
            if not self._said:
                return -signal.SIGKILL
            left = end - time.monotonic()
            if left <= 0.0:
                raise subprocess.TimeoutExpired("foretune worker", timeout or 0.0)
            poller.poll(None if timeout is None else math.ceil(1000 * left))
        return code

    def kill(self) -> None:
        """Kill it, and with it what it has started in its session."""
        if self.poll() is None and len(self._said) >= ENDING.size:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(ENDING.unpack_from(self._said)[0], signal.SIGKILL)

    def _exit_code(self) -> int:
        """Return what it said at its end; it says nothing if it is killed."""
        if len(self._said) < 2 * ENDING.size:
            return -signal.SIGKILL
        return os.waitstatus_to_exitcode(ENDING.unpack_from(self._said, ENDING.size)[0])


class ServerProcess:
    """A fork server as the process that uses it sees it. No method waits for it."""

    def __init__(self) -> None:
        self.starting_point = starting_point()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        with theirs:
            # It holds no output of this process open: whoever reads that waits for its end.
            self._process = subprocess.Popen(
                [sys.executable, "-c", SERVER_PROGRAM.format(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **SERVER_VARIABLES},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self._process.poll()

    def load(self, libraries: Sequence[str]) -> None:
        """Load libraries, so that workers have them."""
        self._send({"libraries": libraries})

    def start(self, order: WorkerOrder) -> ForkedWorker:
        """Start a worker."""
        said = {
            "libraries": order.libraries,
            "cpu_limit": order.cpu_limit,
            "most_bytes": order.most_bytes,
            "surroundings": Surroundings.capture(ONE_NUMERIC_THREAD).to_json(),
        }
        heard, ending = os.pipe()
        worker = ForkedWorker(heard)
        try:
            self._send(said, order.channel, *order.reports, ending, STDERR)
        finally:
            os.close(ending)
        return worker

    def end(self) -> None:
        """End it. Workers stay."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """Leave it to another process."""
        self._control.close()
        self._process.returncode = 0

    def _send(self, said: Mapping[str, object], *descriptors: int) -> None:
        # In a file: a message may be longer than what is sent without waiting.
        file = os.memfd_create("foretune")
        try:
            os.write(file, json.dumps(said).encode())
            socket.send_fds(self._control, [b"."], [file, *descriptors])
        finally:
            os.close(file)


class WorkerStarter:
    """Starts workers from one fork server, which it starts when it is needed."""

    def __init__(self) -> None:
        self._server: ServerProcess | None = None
        self._deaths = 0
        self._lock = threading.RLock()

    @property
    def server(self) -> ServerProcess | None:
        """The server that runs, if one does."""
        return self._server

    def __call__(self, order: WorkerOrder) -> WorkerProcess:
        """Start a worker."""
        with self._lock, suppress(OSError):
            if server := self._ready_server():
                return server.start(order)
        return WorkerFromNothing(order)

    def load(self, libraries: Sequence[str]) -> None:
        """Begin to load libraries for the workers to come, beside what this process does."""
        with self._lock, suppress(OSError):
            if server := self._ready_server():
                server.load(libraries)

    def end(self) -> None:
        """End the server. The next worker starts another one."""
        with self._lock:
            server, self._server = self._server, None
            if server is not None:
                server.end()

    def forget(self) -> None:
        """Leave the server to the process that this one was forked from."""
        self._lock = threading.RLock()
        if self._server is not None:
            self._server.forget()
            self._server = None

    def _ready_server(self) -> ServerProcess | None:
        """Return a server that is as this process is now; None if there can be none."""
        server = self._server
        if server is not None and (code := server.poll()) is not None:
            self._deaths += code != 0
            self.end()
        elif server is not None and server.starting_point != starting_point():
            self.end()
        if self._server is None and sys.platform == "linux" and self._deaths < MOST_DEATHS:
            self._server = ServerProcess()
        return self._server


def libraries_of(function: object) -> tuple[str, ...]:
    """Return the modules that a server may import for a function.

    They are those in its attribute `libraries`, or else those that its own module has imported.
    """
    named = getattr(function, "libraries", None)
    if named is not None:
        return tuple(named)
    module = sys.modules.get(getattr(function, "__module__", type(function).__module__))
    homes = {_home(value) for value in list(vars(module).values())} if module else set()
    return tuple(sorted(home for home in homes if home.partition(".")[0] in FORKABLE))


def _home(value: object) -> str:
    """Return the module that a value is, or comes from."""
    if isinstance(value, ModuleType):
        return value.__name__
    home = value.__module__ if isinstance(value, type | FunctionType) else ""
    return home if isinstance(home, str) else ""


start_worker = WorkerStarter()
"""What starts the workers of this process."""
atexit.register(start_worker.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=start_worker.forget)
