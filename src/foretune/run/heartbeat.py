"""Finds out which processes are alive: here from the kernel, elsewhere from their heartbeat."""

import os
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

BEAT_SECONDS = 15.0
GRACE_SECONDS = 60.0
"""After so long without a heartbeat a process elsewhere counts as dead."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that runs a trial."""

    machine: str
    pid: int
    started: str
    """The time at which the process was started, because numbers of processes come again."""
    token: str
    """A name for one study, opened once by one process."""

    @classmethod
    def new(cls) -> "Owner":
        """Return the owner that is this process, for a study that it opens now."""
        return cls(
            this_machine(), os.getpid(), start_time(os.getpid()) or "", uuid.uuid4().hex[:12]
        )

    def record(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return asdict(self)

    def is_here(self) -> bool:
        """Return True if this machine can tell whether it is alive."""
        return self.machine == this_machine()

    def is_running_here(self) -> bool:
        """Return True if the process is on this machine and alive."""
        return self.is_here() and start_time(self.pid) == self.started


@cache
def this_machine() -> str:
    """Return a name for the processes whose numbers this one can look up.

    Containers may share a host name but not their processes; a reboot ends all of them.
    """
    parts = [socket.gethostname()]
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        parts += [boot, os.readlink("/proc/self/ns/pid")]
    return " ".join(parts)


def start_time(pid: int) -> str | None:
    """Return when a process was started; None if it has ended."""
    if Path("/proc/self/stat").exists():
        try:
            # The name of the program, in parentheses, may contain anything.
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2]
        except OSError:
            return None
        state, *rest = fields.split()
        return None if state in "ZX" else rest[18]
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return said or None


class LivenessCheck:
    """Remembers when processes of other machines last showed a sign of life.

    Only this process's own clock is read, so clocks of machines may differ.
    """

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self.grace = grace
        """Seconds without a sign of life, after which a process is dead."""
        self._seen: dict[str, tuple[Hashable, float]] = {}
        self._moved: set[str] = set()

    def look(self, token: str, sign: Hashable) -> None:
        """Take in the sign that an owner shows now; it is alive if the sign has changed."""
        before = self._seen.get(token)
        if before is None or before[0] != sign:
            self._seen[token] = (sign, time.monotonic())
            if before is not None:
                self._moved.add(token)

    def is_dead(self, token: str) -> bool:
        """Return True if it has shown nothing new for longer than the grace."""
        return time.monotonic() - self._seen[token][1] > self.grace

    def is_unsure(self, token: str) -> bool:
        """Return True if it is not known yet whether it is alive."""
        return token not in self._moved and not self.is_dead(token)


class Heartbeat:
    """A thread that calls `beat` from time to time."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat = beat
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to beat, if it does not yet."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="foretune heart", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop beating."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            # A storage out of reach is for the main thread to report: a later beat may get there.
            with suppress(Exception):
                self._beat()
