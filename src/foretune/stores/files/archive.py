"""The files of a folder or of a zip archive (a wheel is one), read in the same way."""

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from foretune.errors import ExperienceError
from foretune.stores.files.compressed import DAMAGED, check_size


def existing(source: Path | str) -> Path:
    """Return `source` as a path; refuse a path that does not exist."""
    path = Path(source)
    if not path.exists():
        raise ExperienceError(
            f"the source of an import must exist, but there is no '{path}': correct its path",
            rule="missing-source",
            value=str(path),
        )
    return path


@dataclass(frozen=True)
class Archive:
    """The files below a folder or inside a zip archive, by their relative POSIX paths."""

    path: Path
    members: tuple[str, ...]

    @classmethod
    def at(cls, source: Path | str) -> "Archive":
        """Open the archive at `source`. Any other file counts as an archive of itself."""
        path = existing(source)
        if path.is_dir():
            below = (p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file())
            return cls(path, _outermost_first(below))
        if zipfile.is_zipfile(path):
            try:
                with zipfile.ZipFile(path) as zipped:
                    names = [i.filename for i in zipped.infolist() if not i.is_dir()]
            except (ValueError, *DAMAGED) as error:
                raise _not_whole(path, error) from error
            return cls(path, _outermost_first(names))
        return cls(path, (path.name,))

    def find(self, ending: str) -> str | None:
        """Return the outermost member whose path ends with `ending` (whole parts), or None."""
        wanted = PurePosixPath(ending).parts
        for member in self.members:
            if PurePosixPath(member).parts[-len(wanted) :] == wanted:
                return member
        return None

    def need(self, ending: str) -> str:
        """Return the member whose path ends with `ending`; refuse an archive without one."""
        member = self.find(ending)
        if member is None:
            raise ExperienceError(
                f"the source must hold a file '{ending}', but '{self.path}' does not: "
                "give the folder or the wheel that it came in",
                rule="missing-member",
                field=ending,
                value=str(self.path),
            )
        return member

    @contextmanager
    def open(self, member: str) -> Iterator[IO[bytes]]:
        """Read one member as bytes."""
        if self.path.is_dir():
            with (self.path / member).open("rb") as stream:
                yield stream
        elif not zipfile.is_zipfile(self.path):
            with self.path.open("rb") as stream:
                yield stream
        else:
            try:
                with zipfile.ZipFile(self.path) as zipped, zipped.open(member) as stream:
                    entry = zipped.getinfo(member)
                    check_size(member, entry.compress_size, entry.file_size)
                    yield stream
            except DAMAGED as error:  # errors of whoever reads the stream arrive here, too
                raise _not_whole(self.path, error) from error


def _not_whole(path: Path, error: Exception) -> ExperienceError:
    return ExperienceError(
        f"an archive must be whole, but '{path}' is not ({error}): get it again",
        rule="damaged-archive",
        value=str(path),
    )


def _outermost_first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: (name.count("/"), name)))
