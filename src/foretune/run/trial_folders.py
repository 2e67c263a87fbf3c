"""The folders of trials: checkpoints are kept there, and removed when nothing can resume them."""

import re
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from foretune.errors import UsageError

LONGEST_NAME = 40
_NAME = re.compile(r"trial-(\d+)")


def folder_name(study: str) -> str:
    """Return the name of the folder of a study, whatever characters its name has."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", study).strip("-.")[:LONGEST_NAME]
    if plain == study:
        return plain
    return f"{plain}-{sha256(study.encode()).hexdigest()[:8]}".lstrip("-")


class TrialFolders:
    """One folder for each trial, made by the trial itself when it first uses it."""

    def __init__(self, root: Path, limit_bytes: int | None = None) -> None:
        self.root = root.absolute()
        self._limit = limit_bytes
        self._sizes: dict[int, int] = {}
        """The size of the folders of paused trials."""
        self.peak = 0
        """The most bytes that the folders of paused trials took."""
        self.dropped = 0
        """How many folders were removed because of the limit."""
        self._check()

    def path(self, number: int) -> Path:
        """Return the folder of a trial, which may not exist yet."""
        return self.root / f"trial-{number}"

    def numbers(self) -> list[int]:
        """Return the trials that have a folder."""
        if not self.root.is_dir():
            return []
        found = (_NAME.fullmatch(each.name) for each in self.root.iterdir())
        return sorted(int(each[1]) for each in found if each)

    def remove_all(self, numbers: Iterable[int]) -> None:
        """Remove the folders of trials that nothing can resume; most of many trials have none."""
        for number in {*self.numbers(), *self._sizes}.intersection(numbers):
            self.remove(number)

    def remove(self, number: int) -> None:
        """Remove the folder of a trial that nothing can resume, if it has one."""
        self._sizes.pop(number, None)
        folder = self.path(number)
        if folder.exists():
            # Renamed first: a kill in between leaves no half of a checkpoint to resume from.
            doomed = folder.with_name(f"removed-{number}")
            shutil.rmtree(doomed, ignore_errors=True)
            folder.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)

    def leave(self) -> None:
        """Remove what is empty."""
        for doomed in self.root.glob("removed-*") if self.root.is_dir() else ():
            shutil.rmtree(doomed, ignore_errors=True)
        for folder in (self.root, self.root.parent):
            try:
                folder.rmdir()
            except OSError:
                return

    def measure(self, number: int) -> None:
        """Take in the size of the folder of a trial that was paused."""
        self._sizes[number] = _size(self.path(number))
        self.peak = max(self.peak, self.used_bytes)

    @property
    def used_bytes(self) -> int:
        """The size of the folders of paused trials."""
        return sum(self._sizes.values())

    def drop_over_limit(self, least_wanted_first: Iterable[int]) -> list[int]:
        """Remove folders of paused trials until the rest is within the limit; return which.

        These trials can still be resumed, but they begin anew.
        """
        dropped: list[int] = []
        for number in least_wanted_first:
            if self._limit is None or self.used_bytes <= self._limit:
                break
            if self._sizes.get(number):
                self.remove(number)
                dropped.append(number)
        self.dropped += len(dropped)
        return dropped

    def _check(self) -> None:
        """Refuse a place that cannot be a folder, before any trial runs."""
        for place in (self.root, *self.root.parents):
            if place.exists():
                if not place.is_dir():
                    raise UsageError(
                        f"the folder of checkpoints must be a folder, but '{place}' is a file: "
                        "choose another place",
                        rule="not-a-folder",
                        field="folder",
                        value=str(place),
                    )
                return


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder; files that vanish meanwhile do not count."""
    total = 0
    for file in folder.rglob("*") if folder.is_dir() else ():
        try:
            total += file.lstat().st_size if not file.is_dir() else 0
        except OSError:
            continue
    return total
