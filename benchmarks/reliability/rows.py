"""One row of the table of attacks. Every script in this folder prints its results with it.

    from rows import Row, peak_mb
    Row("kill -9 of tune", count=200, lost=0, longest_s=3.2, peak_mb=peak_mb()).print()

`python -m benchmarks.reliability` reads the printed lines of all scripts. A script may print the
row of an attack again and again while it goes on: the last one counts. A script that fails without
a row counts as one wrong result.
"""

import json
import resource
from dataclasses import asdict, dataclass

MARK = "ROW "


@dataclass(frozen=True)
class Row:
    """What one attack did and found."""

    attack: str
    count: int
    """How often the attack was made."""
    lost: int = 0
    """Results that were finished and are gone."""
    doubled: int = 0
    """Results that are stored, or were evaluated, more often than they should be."""
    wrong: int = 0
    """Anything else that must not happen: changed results, tracebacks, hangs, injections."""
    refused: int = 0
    """Inputs that were refused with a sentence that tells the remedy: this is no fault."""
    longest_s: float | None = None
    """Seconds of the longest single attack."""
    peak_mb: float | None = None
    """Largest memory of one process, in MiB."""
    note: str = ""
    skipped: str = ""
    """The reason why the attack could not be made here."""

    @property
    def faults(self) -> int:
        return self.lost + self.doubled + self.wrong

    def print(self) -> None:
        print(MARK + json.dumps(asdict(self)), flush=True)


def read_rows(output: str) -> list[Row]:
    """The rows in what a script printed; the last one of an attack has all that came before."""
    lines = (line for line in output.splitlines(keepends=True) if line.startswith(MARK))
    # A line without an end is of a script that was stopped while it wrote.
    whole = (line.removeprefix(MARK) for line in lines if line.endswith("\n"))
    rows = (Row(**json.loads(line)) for line in whole)
    return list({row.attack: row for row in rows}.values())


def peak_mb() -> float:
    """Largest memory of this process or of one of its ended children, in MiB."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(each).ru_maxrss for each in who) / 1024
