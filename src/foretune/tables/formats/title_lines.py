"""A title above the names of a table's columns, as spreadsheets save it."""

import csv
from collections.abc import Sequence
from io import StringIO
from itertools import islice

from foretune.tables.formats.separators import ROWS_LOOKED_AT, SEPARATORS, whole_lines

MOST_LINES = 10
"""The most lines of a title."""
LEAST_ROWS = 3
"""The fewest rows of the table below a title."""


def lines_of_title(start: str) -> int:
    """Return how many lines of a text file come before the names, blank ones included.

    A title fills one cell of its line. Below it is a whole table: names, and several rows of
    equally many values, with one column of numbers. Anything less could be text.
    """
    lines = [*islice(StringIO(whole_lines(start), newline=""), MOST_LINES + ROWS_LOOKED_AT)]
    return max(_lines_above(lines, separator) for separator in SEPARATORS)


def _lines_above(lines: Sequence[str], separator: str) -> int:
    filled = [_count_cells(line, separator) for line in lines[: MOST_LINES + 1]]
    above = next((place for place, cells in enumerate(filled) if cells > 1), 0)
    return above if any(filled[:above]) and _is_table(lines[above:], separator) else 0


def _count_cells(line: str, separator: str) -> int:
    """Return how many cells of a line are not empty."""
    if line.count('"') % 2:
        return 2  # a cell with several lines, which is no title
    cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    return sum(1 for cell in cells if cell.strip())


def _is_table(lines: Sequence[str], separator: str) -> bool:
    """Return whether the lines begin with names, and go on with rows that fit them."""
    text = StringIO("".join(lines), newline="")
    try:
        rows = csv.reader(text, delimiter=separator, skipinitialspace=True, strict=True)
        names, *others = [row for row in rows if row]
    except (csv.Error, ValueError):
        return False
    return (
        len(others) >= LEAST_ROWS
        and all(len(row) == len(names) for row in others)
        and all(name.strip() and not _is_number(name) for name in names)
        and any(all(map(_is_number, column)) for column in zip(*others, strict=True))
    )


def _is_number(cell: str) -> bool:
    """Return whether a cell holds a number or a date in any form."""
    return any(mark.isdigit() for mark in cell) and not any(mark.isalpha() for mark in cell)
