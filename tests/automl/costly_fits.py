"""Fits that fail or cost much, for worker processes.

This module imports little, because each worker process imports it before its first job.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FailingFit:
    """Counts the tries of each job in a file, and fails in the first tries."""

    folder: Path

    def __call__(self, job: dict[str, object]) -> str:
        tries = self.folder / str(job["name"])
        before = tries.read_text() if tries.exists() else ""
        tries.write_text(before + "x")
        if len(before) < job.get("deaths", 0):
            os.kill(os.getpid(), signal.SIGKILL)
        if not before and job.get("hungry"):
            raise MemoryError
        return str(job["name"])


@dataclass(frozen=True)
class CostlyFit:
    """Takes much time or memory, and counts its tries in a file."""

    folder: Path

    def __call__(self, job: str) -> str:
        with (self.folder / job).open("a") as stream:
            stream.write("x")
        if job == "time":
            while True:
                pass
        if job == "memory":
            half_a_gigabyte = b"x" * 2**29
            time.sleep(60.0)
            return str(len(half_a_gigabyte))
        return job
