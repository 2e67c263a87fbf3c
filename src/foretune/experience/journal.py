"""What has been evaluated so far: one line of JSON a trial, written when it ends.

Whatever stops the program costs the trials that were running: a line is either whole or, the last
one, torn, and a torn line is cut off before the next is written.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretune._base.files import name_file_in_errors
from foretune.errors import UsageError
from foretune.experience.evaluation import Status

_SPOILT = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a line that is not ours can raise."""


@dataclass(frozen=True, slots=True)
class Line:
    """One finished trial."""

    task: str
    config: dict[str, Any]
    status: Status
    values: dict[str, float]
    seconds: float
    reason: str = ""


class Journal:
    """A file of lines that only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = list(_read(path)) if path.exists() else []
        """All trials in the file."""

    def add(self, line: Line) -> None:
        """Write one trial; it is on the disk when this returns."""
        record = {
            "task": line.task,
            "config": line.config,
            "status": line.status.name,
            "values": line.values,
            "seconds": round(line.seconds, 6),
            "reason": line.reason,
        }
        with name_file_in_errors(self.path), self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.lines.append(line)

    def remove(self) -> None:
        """Delete the file, once its trials stand elsewhere."""
        self.path.unlink(missing_ok=True)


def _read(path: Path) -> Iterator[Line]:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    for number, text in enumerate(content[:whole].splitlines(), start=1):
        try:
            record = json.loads(text)
            yield Line(
                record["task"],
                record["config"],
                Status[record["status"]],
                {name: float(value) for name, value in record["values"].items()},
                float(record["seconds"]),
                record["reason"],
            )
        except _SPOILT as error:
            raise UsageError(
                f"a journal of trials must hold one JSON object a line, but line {number} of "
                f"'{path}' does not ({error}): remove the file to begin anew"
            ) from error
