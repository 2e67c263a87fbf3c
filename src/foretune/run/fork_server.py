"""A process that has imported what workers need, and forks each worker from itself.

A worker that starts from nothing imports libraries for up to three seconds. A fork of a process
that has imported them is there in milliseconds. A fork copies the locks of threads that it does not
copy. This process therefore has no second thread, and runs nothing but imports. If a library has
started a thread, workers are started from nothing, as they are on other systems than Linux.

The other side is `worker_start.py`; docs/decisions/034-fork-server.md gives the reasons.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from foretune.run import supervisor
from foretune.run.process_family import end_children, inherit_orphans
from foretune.run.surroundings import Surroundings

MOST_DESCRIPTORS = 6
"""Of a message: the order, the channel, two for reports, the end of the worker, standard error."""
IDLE_SECONDS = 60.0
"""A server without workers ends after this time."""
STDERR = 2
STOPPING = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Order:
    """A worker that somebody wants."""

    descriptors: tuple[int, ...]
    """The channel, two of the reports, the one that tells how the worker ends, standard error."""
    cpu_limit: float | None
    most_bytes: int | None
    surroundings: Surroundings

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return those of `supervisor.main`."""
        channel, report, answer, ending, _ = self.descriptors
        return channel, (report, answer), self.cpu_limit, self.most_bytes, ending

    @property
    def is_given_up(self) -> bool:
        """True if nobody waits for the worker any more."""
        poller = select.poll()
        poller.register(self.descriptors[0], 0)
        return bool(poller.poll(0))


def main(control: int) -> None:
    """Serve the process at the other end until it ends; in a forked worker, be that worker."""
    order = ForkServer(socket.socket(fileno=control)).take_orders()
    order.surroundings.apply()
    os.dup2(order.descriptors[-1], STDERR)
    os.close(order.descriptors[-1])
    _forget_server()
    supervisor.main(*order.arguments)


class ForkServer:
    """Loads libraries and forks workers, in the order in which this is asked for."""

    def __init__(self, control: socket.socket) -> None:
        # The process that asks decides when all ends; also Ctrl-C and systemd speak to that one.
        self._handlers = {each: signal.signal(each, signal.SIG_IGN) for each in STOPPING}
        self._control = control
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._waking, False)
        signal.signal(signal.SIGCHLD, _wake_up)
        signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)
        self._workers: set[int] = set()
        # What a trial leaves behind that has killed its watching process comes here.
        inherit_orphans()
        _load(["foretune.run.worker"])

    def take_orders(self) -> Order:
        """Return in a forked worker only, with its order."""
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._woken, select.POLLIN)
        while True:
            events = dict(poller.poll(None if self._workers else 1000 * IDLE_SECONDS))
            if not events:
                os._exit(0)
            if self._woken in events:
                os.read(self._woken, 2**16)
                self._clear_away()
            if self._control.fileno() in events:
                order = self._receive()
                if order is not None and self._start(order):
                    return order

    def _receive(self) -> Order | None:
        """Return the next order; None if it only named libraries, which are loaded then."""
        _, descriptors, *_ = socket.recv_fds(
            self._control, 1, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not descriptors:
            os._exit(0)
        with open(descriptors[0], "rb") as file:
            file.seek(0)
            said = json.load(file)
        self._load_libraries(said["libraries"])
        if len(descriptors) == 1:
            return None
        surroundings = Surroundings.from_json(said["surroundings"])
        return Order(tuple(descriptors[1:]), said["cpu_limit"], said["most_bytes"], surroundings)

    def _load_libraries(self, names: Sequence[str]) -> None:
        for name in names:
            if self._is_alone():
                os._exit(0)
            if name not in sys.modules:
                _load([name])

    def _is_alone(self) -> bool:
        """Return whether the process that asks has ended."""
        poller = select.poll()
        poller.register(self._control, 0)
        return bool(poller.poll(0))

    def _start(self, order: Order) -> bool:
        """Start a worker; True in that worker."""
        if not order.is_given_up:
            if not _has_one_thread():
                self._workers.add(start_from_nothing(order))
            else:
                gc.freeze()  # what is shared must not be copied when a worker looks for garbage
                watching = os.fork()
                if not watching:
                    self._become_worker()
                    return True
                self._workers.add(watching)
        for each in order.descriptors:
            os.close(each)
        return False

    def _become_worker(self) -> None:
        """Let go of what belongs to the server."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._control.close()
        for each in (self._woken, self._waking):
            os.close(each)
        os.setsid()

    def _clear_away(self) -> None:
        """Take note of workers that have ended, and end what they left behind."""
        for pid in tuple(self._workers):
            with suppress(ChildProcessError):
                if not os.waitpid(pid, os.WNOHANG)[0]:
                    continue
            self._workers.discard(pid)
        end_children(self._workers)


def start_from_nothing(order: Order) -> int:
    """Start a worker that shares nothing with this process, and return its process."""
    arguments = ", ".join(map(repr, order.arguments))
    program = f"from foretune.run.supervisor import main; main({arguments})"
    surroundings = order.surroundings
    return subprocess.Popen(
        [sys.executable, "-c", program],
        pass_fds=order.descriptors[:-1],
        env=surroundings.variables,
        stdin=subprocess.DEVNULL,
        stderr=order.descriptors[-1],
        start_new_session=True,
        umask=surroundings.umask,
    ).pid


def _load(names: Sequence[str]) -> None:
    """Import modules; whatever one of them raises, it raises again in the worker."""
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)


def _has_one_thread() -> bool:
    return len(os.listdir("/proc/self/task")) == 1


def _forget_server() -> None:
    """Make a worker differ from others where processes differ that start from nothing."""
    importlib.invalidate_caches()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _wake_up(number: int, frame: FrameType | None) -> None:
    del number, frame
