"""Shortens the output of trials to its beginning and its end."""

import mmap
import struct

HEAD_BYTES = 64 * 2**10
"""How much of a trial's output is shown at once."""
TAIL_BYTES = 16 * 2**10
"""How much of the end of a longer output is shown when the trial is over."""


class TrialCounter:
    """Counts the trials of a worker, in memory that two processes share after a fork."""

    _format = struct.Struct("Q")

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self._format.size)

    @property
    def number(self) -> int:
        """The number of the trial that runs, or ran last."""
        number: int = self._format.unpack_from(self._memory)[0]
        return number

    def advance(self) -> None:
        """Begin to count for the next trial."""
        self._format.pack_into(self._memory, 0, self.number + 1)


class ShortenedOutput:
    """Decides what to show of the output of one trial after the other."""

    def __init__(self) -> None:
        self._trial = 0
        self._printed = 0
        self._tail = b""

    @property
    def is_cut(self) -> bool:
        """True while something of the current trial is held back."""
        return self._printed > HEAD_BYTES

    def take(self, trial: int, text: bytes) -> bytes:
        """Return what to show after a trial has printed this."""
        closing = self.close_before(trial)
        shown = text[: max(0, HEAD_BYTES - self._printed)]
        self._printed += len(text)
        if self.is_cut:
            self._tail = (self._tail + text[len(shown) :])[-TAIL_BYTES:]
        return closing + shown

    def close_before(self, trial: int) -> bytes:
        """Return what to show of the trials before this one, which are over."""
        if trial == self._trial:
            return b""
        self._trial = trial
        return self.close()

    def close(self) -> bytes:
        """Return what to show when the current trial ends: nothing unless its output was cut."""
        hidden = self._printed - HEAD_BYTES - len(self._tail)
        tail, self._tail, self._printed = self._tail, b"", 0
        if hidden <= 0:
            return tail
        said = f"\n[foretune: this trial printed {hidden:,} more bytes that are not shown here]\n"
        return said.encode() + tail
