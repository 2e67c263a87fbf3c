"""A journal keeps evaluations on disk: one line of JSON each, written when the trial ends.

A program that is stopped loses only the trials that were running. Only the last line can be torn,
and it is cut off before the next one is written.
"""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

from foretune._base.files import name_file_in_errors
from foretune.errors import UsageError
from foretune.experience.trial import Evaluation, status_of

_SPOILT = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a line of another program can raise."""


class Journal:
    """A file of lines that only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.evaluations: list[Evaluation] = list(_read(path)) if path.exists() else []
        """All evaluations in the file."""

    def add(self, evaluation: Evaluation) -> None:
        """Write one evaluation. It is on the disk when this returns."""
        seconds = math.nan if evaluation.seconds is None else evaluation.seconds
        record = {
            "task": evaluation.task,
            "config": evaluation.config,
            "status": evaluation.status.name,
            "values": evaluation.values,
            "seconds": round(seconds, 6),
            "reason": evaluation.reason,
        }
        with name_file_in_errors(self.path), self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.evaluations.append(evaluation)

    def remove(self) -> None:
        """Delete the file, once its evaluations are kept elsewhere."""
        self.path.unlink(missing_ok=True)


def _read(path: Path) -> Iterator[Evaluation]:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    for number, text in enumerate(content[:whole].splitlines(), start=1):
        try:
            record = json.loads(text)
            yield Evaluation(
                record["task"],
                record["config"],
                {name: float(value) for name, value in record["values"].items()},
                status_of(record["status"]),
                float(record["seconds"]),
                reason=record["reason"],
            )
        except _SPOILT as error:
            raise UsageError(
                f"a journal of trials must hold one JSON object a line, but line {number} of "
                f"'{path}' does not ({error}): remove the file to start again",
                rule="broken-journal-line",
                field=str(path),
                value=number,
            ) from error
