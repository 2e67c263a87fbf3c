"""A worker is two processes: one evaluates the function, and this one watches over it.

The function may start daemons, print without end, or kill its own process. The small process that
watches has three tasks:
- When the evaluating process or the parent ends, it ends everything below it, also daemons.
- It passes on what trials print, up to a limit.
- It ends in the same way as the process that it watches. So the parent sees why a worker died.

The watched process is forked before anything of weight is imported, and before there are threads.
"""

import os
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from types import FrameType

from foretune.run.outputs import ShortenedOutput, TrialCounter
from foretune.run.process_family import end_children, end_with, inherit_orphans

READ_BYTES = 64 * 2**10
WRITE_BYTES = 4096
"""How much can be written without waiting if there is room."""
MOST_UNSHOWN_BYTES = 2**20
"""Output beyond this that nobody reads is dropped."""
NOTICE_SECONDS = 0.2
"""How often to look whether a trial that printed too much is over."""
LAST_WORDS_SECONDS = 1.0
"""How long to wait for somebody to read the last output."""
STDERR = 2
ENDING = struct.Struct("q")
"""A number that a supervisor writes about itself."""


def main(
    descriptor: int,
    reports: tuple[int, int],
    cpu_limit: float | None,
    most_bytes: int | None,
    ending_line: int | None = None,
) -> None:
    """Fork the process that evaluates trials, and watch over it until it ends.

    reports: the descriptors of its `ReportOutbox`. ending_line: a descriptor that gets the number
    of this process now, and its wait status when it ends, if the parent cannot wait for it.
    """
    _tell(ending_line, os.getpid())
    inherit_orphans()
    # Standard output is the command's own, for its result; what trials print goes with the rest.
    with suppress(OSError):
        os.dup2(STDERR, 1)
    counter = TrialCounter()
    printed, output = os.pipe()
    ended, ending = os.pipe()
    os.set_blocking(ending, False)
    # systemd sends SIGTERM to all processes of a unit: it is for the parent to act on it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _wake_up)
    signal.set_wakeup_fd(ending, warn_on_full_buffer=False)
    own = os.getpid()
    watched = os.fork()
    if watched:
        for each in (output, *reports):
            os.close(each)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        supervisor = Supervisor(watched, descriptor, printed, ended, counter)
        status = supervisor.watch()
        _tell(ending_line, status)
        _end_like(status)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # what it sends to its group does not arrive here
    end_with(own)
    for each in (1, STDERR):
        os.dup2(output, each)
    for each in (printed, output, ended, ending, *([] if ending_line is None else [ending_line])):
        os.close(each)
    from foretune.run.worker import serve

    serve(descriptor, reports, counter, cpu_limit, most_bytes)


def _tell(line: int | None, number: int) -> None:
    if line is not None:
        with suppress(OSError):  # nobody listens any more
            os.write(line, ENDING.pack(number))


def _wake_up(number: int, frame: FrameType | None) -> None:
    del number, frame


class Supervisor:
    """Watches one process that evaluates trials."""

    def __init__(
        self, watched: int, channel: int, printed: int, ended: int, counter: TrialCounter
    ) -> None:
        self._watched, self._channel, self._printed = watched, channel, printed
        self._ended, self._counter = ended, counter
        self._output = ShortenedOutput()
        self._unshown = b""
        self._status: int | None = None

    def watch(self) -> int:
        """Wait until the process ends, or its parent hangs up; clear up; return the wait status."""
        poller = select.poll()
        poller.register(self._channel, 0)
        poller.register(self._ended, select.POLLIN)
        poller.register(self._printed, select.POLLIN)
        while self._status is None:
            events = dict(poller.poll(self._patience()))
            if self._channel in events:
                break
            if self._ended in events:
                os.read(self._ended, READ_BYTES)
                self._clear_away()
            if self._printed in events and not self._take_printed():
                poller.unregister(self._printed)
            self._close_output()
            self._show()
        self._end_all()
        self._say_last_words()
        return signal.SIGKILL if self._status is None else self._status

    def _patience(self) -> int | None:
        """Return milliseconds to wait; None is for ever."""
        if self._unshown or self._output.is_cut:
            return int(1000 * NOTICE_SECONDS)
        return None

    def _clear_away(self) -> None:
        """Note how the watched process has ended, and clear away orphans."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._watched:
                    self._status = found[1]

    def _end_all(self) -> None:
        """Kill what is left; a group outlives its first process while somebody is in it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._watched, signal.SIGKILL)
        if self._status is None:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._watched, signal.SIGKILL)
                self._status = os.waitpid(self._watched, 0)[1]
        end_children()

    def _take_printed(self) -> bool:
        """Read what was printed; False if nobody can print any more."""
        # Asked for first: no later trial begins while this one's output waits to be read.
        number = self._counter.number
        text = os.read(self._printed, READ_BYTES)
        self._add(self._output.take(number, text))
        return bool(text)

    def _close_output(self) -> None:
        if self._output.is_cut:
            self._add(self._output.close_before(self._counter.number))

    def _add(self, text: bytes) -> None:
        if len(self._unshown) < MOST_UNSHOWN_BYTES:
            self._unshown += text

    def _show(self) -> None:
        """Write as much as can be written without waiting."""
        while self._unshown and _has_room(STDERR):
            try:
                written = os.write(STDERR, self._unshown[:WRITE_BYTES])
            except BlockingIOError:
                return
            except OSError:  # nobody reads it
                self._unshown = b""
                return
            self._unshown = self._unshown[written:]

    def _say_last_words(self) -> None:
        os.set_blocking(self._printed, False)
        with suppress(BlockingIOError):
            while self._take_printed():
                pass
        self._add(self._output.close())
        end = time.monotonic() + LAST_WORDS_SECONDS
        while self._unshown and time.monotonic() < end:
            self._show()
            if self._unshown:
                time.sleep(NOTICE_SECONDS / 10)


def _has_room(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    return bool(poller.poll(0))


def _end_like(status: int) -> None:
    """End this process with the same exit code, or by the same signal."""
    if not os.WIFSIGNALED(status):
        os._exit(os.waitstatus_to_exitcode(status))
    number = os.WTERMSIG(status)
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core file is enough
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
