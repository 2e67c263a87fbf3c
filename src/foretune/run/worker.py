"""What runs inside a worker process: receive a job, call the function, send what came of it."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from foretune.run.calling import Answer, call, one_line

CPU_SIGNAL = signal.SIGPROF
"""What ends a worker whose trial has used its CPU time."""
READY = "ready"


def serve(connection: Connection, function: Callable[[Any], Any], cpu_limit: float | None) -> None:
    """Answer jobs until the parent closes the connection or is gone."""
    _stand_alone()
    connection.send(READY)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            job = connection.recv()
            # The kernel counts and ends: no code of the trial, however busy, can hold it up.
            signal.setitimer(signal.ITIMER_PROF, cpu_limit or 0.0)
            answer = call(function, job)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            _send(connection, answer)


def _send(connection: Connection, answer: Answer) -> None:
    try:
        connection.send(answer)
    except (TypeError, ValueError, AttributeError) as error:
        reason = f"the result cannot be sent between processes: {one_line(error)}"
        connection.send(Answer(None, answer.seconds, reason))


def _stand_alone() -> None:
    """Leave the terminal's group, so that Ctrl-C reaches the parent only, and go when it goes."""
    os.setsid()
    signal.signal(CPU_SIGNAL, signal.SIG_DFL)
    # When the machine runs out of memory, the kernel is to choose a worker, not the parent.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.killpg(0, signal.SIGKILL)
