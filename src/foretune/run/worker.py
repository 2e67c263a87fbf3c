"""Evaluates trials inside a worker: receive a job, call the function, send the answer."""

import contextlib
import fcntl
import multiprocessing
import os
import pickle
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing import spawn
from pathlib import Path
from types import FrameType
from typing import Any

from foretune.run.call import Answer, call, cpu_seconds, unsendable
from foretune.run.channel import KEY_BYTES, WorkerEnd
from foretune.run.outputs import TrialCounter
from foretune.run.process_family import children, end_children, has_children, inherit_orphans
from foretune.run.report_channel import ReportOutbox
from foretune.run.reports import ReportError
from foretune.run.running_trial import RunningTrial, call_with_trial

CPU_SIGNAL = signal.SIGPROF
"""This signal ends a worker whose trial has used its CPU time."""
CHANNEL_LOST = 113
"""The exit code of a worker whose trial has closed the channel to the parent."""
HIGH_DESCRIPTOR = 4000
"""Descriptors are moved up to about here, where nobody writes or closes by accident."""
MOST_UNREAD_SECONDS = 1.0
"""How long the next trial waits until the output of the last one is read."""
TRACKERS = (
    "multiprocessing.resource_tracker",
    "joblib.externals.loky.backend.resource_tracker",
    "loky.backend.resource_tracker",
)
"""Modules whose helper process serves all trials of a worker."""


def serve(
    descriptor: int,
    reports: tuple[int, int],
    counter: TrialCounter,
    cpu_limit: float | None,
    most_bytes: int | None,
) -> None:
    """Answer jobs until the parent hangs up."""
    _leave_stopping_to_parent()
    inherit_orphans()
    # When the machine runs out of memory, the kernel is to choose a worker, not the parent.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    channel = WorkerEnd(_move_up(descriptor))
    # A forked child is a copy of the worker. It must not answer in the place of the worker.
    os.register_at_fork(after_in_child=channel.close)
    outbox = ReportOutbox(_move_up(reports[0]), reports[1])
    os.register_at_fork(after_in_child=outbox.close_in_fork)
    _print_at_once()
    desk = Desk(channel, outbox, counter, cpu_limit, most_bytes)
    function = desk.open()
    while True:
        desk.answer(function)


class Desk:
    """Takes jobs from the channel, and answers each of them once, from this process only."""

    def __init__(
        self,
        channel: WorkerEnd,
        outbox: ReportOutbox,
        counter: TrialCounter,
        cpu_limit: float | None,
        most_bytes: int | None,
    ) -> None:
        self._channel, self._outbox, self._counter = channel, outbox, counter
        self._cpu_limit, self._most = cpu_limit, most_bytes
        self._pid = os.getpid()
        self._kept: frozenset[int] = frozenset()
        """Processes that were there before the first trial."""

    def open(self) -> Callable[[Any], Any]:
        """Receive the function, prepare it, and say so."""
        started = self._receive()
        key, preparation = started[:KEY_BYTES], started[KEY_BYTES:]
        spawn.prepare(pickle.loads(preparation))
        function: Callable[[Any], Any] = pickle.loads(self._receive())
        if hasattr(function, "prepare"):
            function.prepare()
        self._kept = frozenset(children(self._pid))
        self._send(str(self._pid).encode(), key)
        return function

    def answer(self, function: Callable[[Any], Any]) -> None:
        """Answer one job."""
        received = self._receive()
        key, packed = received[:KEY_BYTES], received[KEY_BYTES:]
        _wait_until_read(sys.__stderr__)
        self._counter.advance()
        job, start, is_heard = pickle.loads(packed)
        self._outbox.begin(key, is_heard)
        trial = RunningTrial(start, self._outbox, cpu_seconds)
        called = self._call(partial(call_with_trial, function, trial=trial), job)
        with contextlib.suppress(ReportError):  # the answer finds the same channel closed
            trial.close()
        answer = self._pack(called._replace(facts=trial.facts))
        self._send(pickle.dumps(answer), key)

    def _receive(self) -> bytes:
        """Return the next message. Without a parent the process ends, and says nothing."""
        try:
            return self._channel.receive()
        except EOFError:
            sys.exit(0)
        except OSError:
            os._exit(CHANNEL_LOST)

    def _send(self, message: bytes, key: bytes) -> None:
        """Send a message. The process ends, and says nothing, if nobody can receive it."""
        try:
            self._channel.send(message, key)
        except OSError:
            os._exit(CHANNEL_LOST)

    def _call(self, function: Callable[[Any], Any], job: Any) -> Answer:
        # The kernel counts and ends: no code of the trial, however busy, can hold it up.
        signal.setitimer(signal.ITIMER_PROF, self._cpu_limit or 0.0)
        # Ctrl-C does not reach a worker: also a KeyboardInterrupt is of the trial's making.
        answer = call(function, job, caught=BaseException)
        if os.getpid() != self._pid:
            os._exit(0)  # a child that the function has forked, and that came back from it
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        _flush((sys.stdout, sys.stderr))
        if has_children():
            end_children(self._kept | _helpers(self._pid))
        return answer

    def _pack(self, answer: Answer) -> Answer:
        """Return the answer with its result as bytes, which the parent unpickles separately.

        An error in the result's own code fails this trial only.
        """
        try:
            result = pickle.dumps(answer.result)
        except BaseException as error:
            answer = unsendable(answer.seconds, error)
            result = pickle.dumps(None)
        if os.getpid() != self._pid:  # the result's own code may fork as well
            os._exit(0)
        if self._most is not None and len(result) > self._most:
            from foretune.run.memory import size_text

            reason = (
                f"the result takes {size_text(len(result))}, and at most {size_text(self._most)} "
                "can be sent between processes: write it to a file and return the name of that"
            )
            return Answer(None, answer.seconds, reason)
        return answer._replace(result=result)


def _move_up(descriptor: int) -> int:
    """Return the same channel under a high number, which commands of a trial do not inherit."""
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    high = min(most, HIGH_DESCRIPTOR) - 16 if most > 0 else HIGH_DESCRIPTOR
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(3, high))
    except OSError:
        os.set_inheritable(descriptor, False)
        return descriptor
    os.close(descriptor)
    return moved


def _print_at_once() -> None:
    """Let lines be read while the trial runs, as on a terminal."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)


def _flush(streams: Iterable[Any]) -> None:
    for stream in streams:
        with contextlib.suppress(Exception):
            stream.flush()


def _wait_until_read(stream: Any) -> None:
    """Wait until what was printed is read, so that it counts for the trial that printed it."""
    end = time.monotonic() + MOST_UNREAD_SECONDS
    with contextlib.suppress(Exception):  # also where a trial has closed the stream
        while int.from_bytes(fcntl.ioctl(stream, termios.FIONREAD, bytes(4)), sys.byteorder):
            if time.monotonic() > end:
                return
            time.sleep(0.001)


def _helpers(pid: int) -> set[int]:
    """Return the processes of pools that the function may use again in the next trial.

    They are those that `multiprocessing` or joblib started, unless they have left this session.
    """
    pools = {process.pid for process in multiprocessing.active_children()}
    session = os.getsid(pid)
    kept = {each for each in pools if each is not None and _session(each) == session}
    for name in TRACKERS:
        tracker = getattr(sys.modules.get(name), "_resource_tracker", None)
        tracked = getattr(tracker, "_pid", None)
        kept |= {tracked} if tracked is not None else set()
    return kept


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _leave_stopping_to_parent() -> None:
    """Live on after SIGTERM, because systemd sends it to every process of a unit.

    The parent stops the trial properly. If a worker died first, its trial would count as failed.
    SIGTERM still ends what a trial starts: commands, because they inherit no handler, and forks,
    because pools of processes end their own in this way.
    """
    signal.signal(signal.SIGTERM, _live_on)
    # The signal is held back during a fork: it may come before the fork has its usual handler.
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
