"""Reports between a worker and its parent: they have their own channel, and answers are in memory.

A worker sends reports as signed messages. The parent answers all of them with one number in memory
that both processes share, so nothing has to be read and nobody waits. Reports do not share the
channel of the answer that ends a job: that answer counts from when it was given, and reports that
nobody has read yet would hide it.
"""

import json
import mmap
import os
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress

from foretune.run.channel import KEY_BYTES, ParentEnd, WorkerEnd
from foretune.run.reports import Report, ReportError

REPORT_BYTES = 2**18
"""How long a report may be when it is sent."""
REPORTS_AT_ONCE = 1000
"""How many reports of one worker are read before others have their turn."""
LONGEST_WAIT_SECONDS = 0.02
"""How long a trial waits for the answer to its last report."""
LOOK_SECONDS = 0.0002


class SharedAnswer:
    """How many reports of the job were answered, and whether it is to stop.

    Both are in one number, so that they change in one step.
    """

    _format = struct.Struct("Q")

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, self._format.size)

    @classmethod
    def size(cls) -> int:
        """Return how many bytes the file needs."""
        return cls._format.size

    def read(self) -> tuple[int, bool]:
        """Return the number of answered reports, and True if the job is to stop."""
        (number,) = self._format.unpack_from(self._memory)
        return number >> 1, bool(number & 1)

    def write(self, answered: int, stop: bool) -> None:
        """Set both."""
        self._format.pack_into(self._memory, 0, answered << 1 | stop)

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


def _shared_file(size: int) -> int:
    """Return the descriptor of a file of zeros that has no name."""
    if sys.platform == "linux":  # in memory: also where the disk is full
        descriptor = os.memfd_create("foretune")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.write(descriptor, bytes(size))
    return descriptor


class ReportInbox:
    """The parent's end: no method waits for the worker."""

    def __init__(self) -> None:
        ours, self._theirs = socket.socketpair()
        self._channel = ParentEnd(ours, REPORT_BYTES)
        self._file = _shared_file(SharedAnswer.size())
        self._answer = SharedAnswer(self._file)
        self.is_open = True
        """False when nobody can write into it any more."""

    @property
    def descriptors(self) -> tuple[int, int]:
        """The descriptors for the worker: the channel, and the file whose memory is shared."""
        return self._theirs.fileno(), self._file

    def hand_over(self) -> None:
        """Leave the other end to the worker, which has been started."""
        self._theirs.close()
        os.close(self._file)

    def fileno(self) -> int:
        """Return the descriptor, for `poll`."""
        return self._channel.fileno()

    def begin(self) -> None:
        """Answer for another job from now on."""
        self._answer.write(0, stop=False)

    def read(self, secret: bytes) -> Iterator[Report]:
        """Yield the reports that have arrived, some at a time."""
        for _ in range(REPORTS_AT_ONCE):
            try:
                message = self._channel.read(secret)
            except (EOFError, OSError):
                self.is_open = False
                return
            if message is None:
                return
            yield Report(*json.loads(message))

    def answer(self, reports: int, stop: bool) -> None:
        """Answer the next reports. Once a job is to stop, that holds until it ends."""
        answered, stopped = self._answer.read()
        self._answer.write(answered + reports, stop or stopped)

    def close(self) -> None:
        """Give everything back."""
        self._channel.close()
        with suppress(ValueError):
            self._answer.close()


class ReportOutbox:
    """The worker's end. It is the line of one trial after the other."""

    def __init__(self, channel: int, shared: int) -> None:
        self._channel = WorkerEnd(channel)
        self._answer = SharedAnswer(shared)
        os.close(shared)
        self._secret, self._sent, self._waited = b"", 0, 0
        self._is_in_fork = False
        self.is_heard = False

    def begin(self, secret: bytes, is_heard: bool) -> None:
        """Send for another job from now on."""
        assert len(secret) == KEY_BYTES
        self._secret, self._sent, self._waited = secret, 0, 0
        self.is_heard = is_heard

    def send(self, report: Report) -> None:
        """Send a report. It waits only if the parent has hundreds of reports to read."""
        if self._is_in_fork:
            raise ReportError(
                "a trial must report from its own process, but this is a copy that it has forked: "
                "report where the results come together",
                rule="report-from-fork",
            )
        message = json.dumps(report).encode()
        if len(message) > REPORT_BYTES:
            raise ReportError(
                f"a report may take at most {REPORT_BYTES:,} bytes, but it takes {len(message):,}: "
                "report the metrics, and write the rest to a file",
                rule="report-too-long",
                value=len(message),
            )
        try:
            self._channel.send(message, self._secret)
        except OSError as error:
            raise ReportError(
                "a report must reach the parent process, but its channel is closed "
                f"({error.strerror}): the function must not close file descriptors that it did not "
                "open",
                rule="report-channel-closed",
            ) from error
        self._sent += 1

    def stop_asked(self) -> bool:
        """Return True if the parent wants the trial to stop.

        It waits at most 20 ms for the answer to the last report, and only once for each.
        """
        answered, stop = self._answer.read()
        if self._waited < self._sent:
            self._waited = self._sent
            end = time.monotonic() + LONGEST_WAIT_SECONDS
            while not stop and answered < self._sent and time.monotonic() < end:
                time.sleep(LOOK_SECONDS)
                answered, stop = self._answer.read()
        return self.is_heard and stop

    def close_in_fork(self) -> None:
        """Close the channel in a forked child, which must not report in the place of the worker."""
        self._is_in_fork = True
        self._channel.close()
