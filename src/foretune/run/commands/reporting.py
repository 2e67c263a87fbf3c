"""Reports of a command: lines of its standard output that are JSON objects with a `"step"`.

    {"step": 3, "loss": 0.25, "accuracy": 0.9}

The value of the metric has the metric's name, or the name "value". Other numbers are other values,
and what is no number is left out. All other lines are no reports.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from foretune.run.reports import ReportError

__all__ = ["STEP", "LineReader", "ReportReader", "read_report", "strip_step"]

STEP, VALUE = "step", "value"
MOST_LINE_BYTES = 2**18
"""A longer line is not read."""
Report: TypeAlias = Callable[[Any, Mapping[str, Any]], None]
"""Takes a step and its values."""


class LineReader:
    """Finds the lines in output that comes in pieces."""

    def __init__(self, read: Callable[[bytes], None], most_bytes: int = MOST_LINE_BYTES) -> None:
        self._read, self._most = read, most_bytes
        self._begun = b""
        """The beginning of a line that has no end yet."""

    def add(self, data: bytes) -> None:
        """Read the lines that end in the next piece; an empty piece is the end of the output."""
        if not data:
            self._end_line(b"")
            return
        first, newline, rest = data.partition(b"\n")
        if not newline:
            self._begun = (self._begun + first)[: self._most + 1]
            return
        self._end_line(first)
        *lines, self._begun = rest.split(b"\n")
        for line in lines:
            self._read(line)

    def _end_line(self, end: bytes) -> None:
        line, self._begun = self._begun + end, b""
        self._read(line[: self._most + 1])


class ReportReader:
    """Passes on each report in the standard output of a command."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._lines = LineReader(self._read_line)

    def add(self, data: bytes) -> None:
        """Read the next piece of the output."""
        self._lines.add(data)

    def _read_line(self, line: bytes) -> None:
        if b'"step"' not in line or not line.lstrip().startswith(b"{"):
            return
        if len(line) > MOST_LINE_BYTES:
            raise ReportError(
                f"a report may take at most {MOST_LINE_BYTES:,} bytes, but a line is longer: print "
                "the metrics, and write the rest to a file",
                rule="report-too-long",
            )
        found = read_report(line.decode("utf-8", errors="replace"))
        if found is not None:
            self._report(*found)


def read_report(line: str) -> tuple[Any, dict[str, Any]] | None:
    """Return the step and the values of a line; None if it is no report."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or STEP not in found:
        return None
    return found.pop(STEP), {name: each for name, each in found.items() if _is_kept(name, each)}


def _is_kept(name: str, given: Any) -> bool:
    """Return True for a number, and for a value that is to be refused because it is none."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return is_number or name == VALUE


def strip_step(result: dict[str, Any]) -> Any:
    """Return the result of a command whose last line was a report: its value or its values."""
    values = {name: each for name, each in result.items() if name != STEP}
    return values.get(VALUE, values)
