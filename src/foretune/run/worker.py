"""What runs inside a worker process: receive a job, call the function, send what came of it."""

import contextlib
import os
import pickle
import select
import signal
import threading
from multiprocessing import spawn
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

from foretune.run.calling import Answer, call, unsendable

CPU_SIGNAL = signal.SIGPROF
"""What ends a worker whose trial has used its CPU time."""
READY = "ready"


def main(descriptor: int, cpu_limit: float | None) -> None:
    """Answer jobs until the parent closes the connection or is gone."""
    _leave_stopping_to_parent()
    # Standard output is the command's own, for its result; what trials print goes with the rest.
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, args=(descriptor,), daemon=True).start()
    # When the machine runs out of memory, the kernel is to choose a worker, not the parent.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    connection = Connection(descriptor)
    spawn.prepare(connection.recv())
    function = pickle.loads(connection.recv())
    if hasattr(function, "prepare"):
        function.prepare()
    connection.send(READY)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            job = connection.recv()
            # The kernel counts and ends: no code of the trial, however busy, can hold it up.
            signal.setitimer(signal.ITIMER_PROF, cpu_limit or 0.0)
            # Ctrl-C does not reach a worker: also a KeyboardInterrupt is of the trial's making.
            answer = call(function, job, caught=BaseException)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            connection.send(_packed(answer))


def _leave_stopping_to_parent() -> None:
    """Live on after SIGTERM: systemd sends it to every process of a unit, also to the parent.

    That one lets the trial go; a worker that dies first would have it recorded as failed. What a
    trial starts ends by SIGTERM as ever: a command, since this is a handler and not SIG_IGN, and a
    fork, since pools of processes end theirs in this way.
    """
    signal.signal(signal.SIGTERM, _live_on)
    # Held back meanwhile: it may come before the fork has got to where it ends as ever.
    os.register_at_fork(
        before=_hold_back, after_in_parent=_let_through, after_in_child=_end_as_ever
    )


def _live_on(number: int, frame: FrameType | None) -> None:
    del number, frame


def _end_as_ever() -> None:
    if signal.getsignal(signal.SIGTERM) is _live_on:  # and no handler of the trial's own
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_through()


def _hold_back() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _packed(answer: Answer) -> Answer:
    """The answer with its result as bytes, which the parent opens apart: the rest always arrives.

    Whatever the result's own code raises on the way costs this trial only.
    """
    try:
        return answer._replace(result=pickle.dumps(answer.result))
    except Exception as error:
        return unsendable(answer.seconds, error)


def _end_with_parent(descriptor: int) -> None:
    """Wait until nobody holds the other end of the pipe, and end with all that was started."""
    poller = select.poll()
    poller.register(descriptor, 0)
    poller.poll()
    os.killpg(0, signal.SIGKILL)
