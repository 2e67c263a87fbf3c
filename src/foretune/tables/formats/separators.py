"""The separator of a text file, found from its first rows."""

import csv
import re
from io import StringIO
from itertools import islice

SEPARATORS = ",;\t|"
LOOKED_AT = 1 << 16
"""Characters at the beginning of a file that show its form."""
ROWS_LOOKED_AT = 20
"""Rows among them that show the separator."""
_QUOTED = re.compile(r'"[^"]*"')


def find_separator(start: str) -> str:
    """Return the separator that divides all rows alike.

    If several do, or none does, it is the one that is most frequent in the first row. Quoted text
    is not divided: `"Income, gross";"Tax, net"` has semicolons.

    start: the first LOOKED_AT characters, or all if there are fewer.
    """
    start = whole_lines(start)
    first = next(iter(_QUOTED.sub("", start).lstrip("\r\n ").splitlines()), "")
    return max(SEPARATORS, key=lambda each: (_divides_alike(start, each), first.count(each)))


def whole_lines(start: str) -> str:
    """Return the first LOOKED_AT characters without the last line, which may be cut off."""
    return start if len(start) < LOOKED_AT else start[: start.rfind("\n") + 1] or start


def _divides_alike(start: str, separator: str) -> bool:
    """Return whether the first rows have equally many values, at least two, with this separator."""
    lines = StringIO(start, newline=None)
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        widths = {len(row) for row in islice(filter(None, rows), ROWS_LOOKED_AT)}
    except csv.Error:
        return False  # such as a quote that ends before its value does
    return len(widths) == 1 and widths.pop() > 1
