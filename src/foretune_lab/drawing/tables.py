"""Tables for terminals, for Markdown pages and for programs."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = str | float | int


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows under named columns."""

    name: str
    """A short name, for file names."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    names: int = 1
    """The number of leading columns that hold names, which are aligned left; numbers are aligned
    right."""
    decimals: int | None = None
    """The number of decimals that people see; three significant digits if None."""

    def text(self) -> str:
        """Return the table aligned with spaces, for a terminal."""
        cells = [self.columns, *self._format_rows()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(self._align_row(row, widths)).rstrip() for row in cells]
        lines.insert(1, "  ".join("─" * width for width in widths))
        return "\n".join([self.title, "", *lines, *self._note_lines()])

    def markdown(self) -> str:
        """Return the table with a heading, for a page."""
        sides = [":--"] * self.names + ["--:"] * (len(self.columns) - self.names)
        lines = [_markdown_row(self.columns), _markdown_row(sides)]
        lines += [_markdown_row(row) for row in self._format_rows()]
        return "\n".join([f"### {self.title}", "", *lines, *self._note_lines(), ""])

    def csv(self) -> str:
        """Return the table for programs: numbers have all their digits."""
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([self.columns, *self.rows])
        return stream.getvalue()

    def _format_rows(self) -> list[tuple[str, ...]]:
        return [tuple(format_cell(cell, self.decimals) for cell in row) for row in self.rows]

    def _align_row(self, row: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            cell.ljust(width) if place < self.names else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]

    def _note_lines(self) -> list[str]:
        return ["", self.note] if self.note else []


def format_cell(cell: Cell, decimals: int | None = None) -> str:
    """Format a cell for people: numbers with three significant digits, missing ones as a dash."""
    if isinstance(cell, str | int):
        return str(cell)
    if math.isnan(cell):
        return "-"
    if math.isinf(cell):
        return "∞" if cell > 0 else "-∞"
    if decimals is not None:
        return f"{cell:.{decimals}f}"
    if abs(cell) >= 0.1 or cell == 0:
        return f"{cell:.3f}" if abs(cell) < 10 else f"{cell:,.1f}"
    return f"{cell:.2e}" if abs(cell) < 1e-4 else f"{cell:#.3g}"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
