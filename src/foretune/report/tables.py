"""Tables for terminals, for Markdown pages and for programs."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = str | float | int


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns; the first column names the row."""

    name: str
    """Short, for file names."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def text(self) -> str:
        """Aligned with spaces, for a terminal."""
        cells = [self.columns, *self._shown()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(_aligned(row, widths)).rstrip() for row in cells]
        lines.insert(1, "  ".join("─" * width for width in widths))
        return "\n".join([self.title, "", *lines, *self._note_lines()])

    def markdown(self) -> str:
        """With a heading, for a page."""
        lines = [_markdown_row(self.columns), _markdown_row([":--", *["--:"] * self._numbers])]
        lines += [_markdown_row(row) for row in self._shown()]
        return "\n".join([f"### {self.title}", "", *lines, *self._note_lines(), ""])

    def csv(self) -> str:
        """With all digits, for programs."""
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([self.columns, *self.rows])
        return stream.getvalue()

    @property
    def _numbers(self) -> int:
        return len(self.columns) - 1

    def _shown(self) -> list[tuple[str, ...]]:
        return [tuple(shown(cell) for cell in row) for row in self.rows]

    def _note_lines(self) -> list[str]:
        return ["", self.note] if self.note else []


def shown(cell: Cell) -> str:
    """A cell for people: numbers with three digits that matter, missing ones as a dash."""
    if isinstance(cell, str | int):
        return str(cell)
    if math.isnan(cell):
        return "-"
    if math.isinf(cell):
        return "∞" if cell > 0 else "-∞"
    if cell == 0 or 0.01 <= abs(cell) < 1000:
        return f"{cell:.3f}" if abs(cell) < 10 else f"{cell:.1f}"
    return f"{cell:.2e}"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = row
    numbers = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
    return [first.ljust(widths[0]), *numbers]


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
