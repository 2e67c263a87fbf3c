"""Counts of what attacks find, and the checks that all attacks share."""

import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rows import Row

STOPPED = 130
"""The exit code after a signal that asks to stop."""
MISTAKE = 2
"""The exit code after one sentence that says what to do."""
SAID = "said.log"
"""The file with all that a life prints."""


@dataclass
class Ended:
    """How a life ended."""

    code: int
    seconds: float
    peak_mb: float


@dataclass
class Tally:
    """Counts what attacks find, and says it at once."""

    count: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    refused: int = 0
    longest_s: float = 0.0
    peak_mb: float = 0.0
    said: list[str] = field(default_factory=list)

    def blame(self, kind: str, words: str) -> None:
        """Count a fault: `lost`, `doubled` or `wrong`."""
        setattr(self, kind, getattr(self, kind) + 1)
        self.said.append(f"{kind}: {words}")
        print(f"{kind}: {words}", file=sys.stderr, flush=True)

    def note(self, end: Ended | None) -> None:
        """Take in how long a life took and what it needed."""
        if end is not None:
            self.longest_s = max(self.longest_s, end.seconds)
            self.peak_mb = max(self.peak_mb, end.peak_mb)

    def check_end(self, end: Ended | None, folder: Path, *allowed: int) -> bool:
        """Blame a life that hung, printed a traceback, or ended with another exit code."""
        self.note(end)
        text = read(folder / SAID)
        if end is None:
            self.blame("wrong", f"a command hung, and was killed: {_last_line(text)} in {folder}")
        elif "Traceback" in text or "Exception ignored" in text:
            self.blame("wrong", f"a traceback: {_traceback_in(text)} in {folder}")
        elif end.code not in allowed:
            self.blame("wrong", f"exit code {end.code}: {_last_line(text)} in {folder}")
        else:
            return True
        return False

    def check_refusal(self, end: Ended | None, folder: Path) -> None:
        """Count a life that was refused, and blame it unless one sentence says why."""
        if end is None or end.code != MISTAKE:
            return
        self.refused += 1
        last = _last_line(read(folder / SAID))
        if not last.startswith("foretune: ") or "Errno" in last:
            self.blame("wrong", f"the last line is '{last}' in {folder}")

    def add(self, other: "Tally") -> None:
        """Take in what another series of attacks has found."""
        for name in ("count", "lost", "doubled", "wrong", "refused"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.longest_s = max(self.longest_s, other.longest_s)
        self.peak_mb = max(self.peak_mb, other.peak_mb)
        self.said += other.said

    def remove_unless_faulty(self, folder: Path) -> None:
        """Remove the files of an attack that found nothing wrong."""
        if not self.said:
            shutil.rmtree(folder, ignore_errors=True)

    def row(self, attack: str, note: str = "") -> Row:
        note = "; ".join([note, *self.said[:3]]) if self.said else note
        counts = (self.count, self.lost, self.doubled, self.wrong, self.refused)
        return Row(attack, *counts, round(self.longest_s, 1), round(self.peak_mb) or None, note)


def read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _traceback_in(text: str) -> str:
    """The first traceback of a text, in one line: where it was and what it said."""
    marks = [text.find(mark) for mark in ("Traceback", "Exception ignored")]
    start = min(mark for mark in marks if mark >= 0)
    return " | ".join(line.strip() for line in text[start:].splitlines()[:30])[-1500:]


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["(it said nothing)"])[-1][:300]
