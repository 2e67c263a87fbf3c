"""A fit that fails, for worker processes.

This module imports little, because each worker process imports it before its first job.
"""

import os
import signal
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
