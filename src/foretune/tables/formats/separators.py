"""What divides the values in the rows of a text file, found out from its first rows."""

import csv
import re
from io import StringIO
from itertools import islice

SEPARATORS = ",;\t|"
LOOKED_AT = 1 << 16
"""Characters at the beginning of a file from which its form is found out."""
ROWS_LOOKED_AT = 20
"""Of these, from which the separator is."""
_QUOTED = re.compile(r'"[^"]*"')


def find_separator(start: str) -> str:
    """The separator that divides all rows alike; of several, or of none, the first row most often.

    start: the first LOOKED_AT characters, or all where there are fewer. Inside quotes nothing is
    divided, as the commas of `"Income, gross";"Tax, net"` divide nothing.
    """
    start = whole_lines(start)
    first = next(iter(_QUOTED.sub("", start).lstrip("\r\n ").splitlines()), "")
    return max(SEPARATORS, key=lambda each: (_divides_alike(start, each), first.count(each)))


def whole_lines(start: str) -> str:
    """The first LOOKED_AT characters without their last line, which may be torn."""
    return start if len(start) < LOOKED_AT else start[: start.rfind("\n") + 1] or start


def _divides_alike(start: str, separator: str) -> bool:
    """Whether the first rows have equally many values, at least two, by this separator."""
    lines = StringIO(start, newline=None)
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        widths = {len(row) for row in islice(filter(None, rows), ROWS_LOOKED_AT)}
    except csv.Error:
        return False  # such as a quote that ends before the value does
    return len(widths) == 1 and widths.pop() > 1
