"""A folder of knowledge: for each space its experience, priors and portfolios, and a manifest.

The manifest lists every file with its SHA-256 and its size. A file is checked when it is opened,
so that opening the folder is cheap. The package ships one folder, and `foretune learn` keeps one
for each user. Several programs may change a folder at once: each change takes a lock and starts
from the folder as it is then.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from foretune._base.files import hold_lock, replace_file, write_text
from foretune.errors import ArtifactError

FORMAT = "foretune-knowledge"
VERSION = 1
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 4 * 2**20
SHIPPED = Path(__file__).parent.parent / "shipped"
"""The folder that comes with the package."""
_READ_ERRORS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""The errors that a file can raise if it is not such a manifest."""


@dataclass(frozen=True, slots=True)
class StoredPrior:
    """One file of the folder."""

    file: str
    sha256: str
    bytes: int
    content: str = ""
    """The fingerprint of the experience that it was learnt from: see `taught_by`."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "StoredPrior":
        """Read what `asdict` has written."""
        content = str(plain.get("content", ""))
        return cls(str(plain["file"]), str(plain["sha256"]), int(plain["bytes"]), content)


@dataclass(frozen=True, slots=True)
class SpaceLessons:
    """The knowledge about one space."""

    space: str
    """The fingerprint of the space of the priors and portfolios."""
    tasks: int
    evaluations: int
    metrics: tuple[str, ...]
    """The metrics that were measured."""
    definition: StoredPrior
    """The space as JSON."""
    experience: StoredPrior | None = None
    priors: Mapping[str, Mapping[str, StoredPrior]] = field(default_factory=dict)
    """{method: {metric: file}}"""
    portfolios: Mapping[str, StoredPrior] = field(default_factory=dict)
    """{metric: file}"""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Facts about its making: date, versions, the recipe of the collection."""
    datasets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """{content of a file: the identities of the datasets that it was learnt from}"""

    @property
    def files(self) -> tuple[StoredPrior, ...]:
        """All files of this knowledge."""
        priors = [file for by_metric in self.priors.values() for file in by_metric.values()]
        whole = () if self.experience is None else (self.experience,)
        return (self.definition, *whole, *priors, *self.portfolios.values())

    @property
    def datasets_in_use(self) -> dict[str, tuple[str, ...]]:
        """The datasets that one of the files was learnt from."""
        contents = {file.content for file in self.files}
        return {content: known for content, known in self.datasets.items() if content in contents}

    def without_dataset(self, dataset: str) -> "SpaceLessons":
        """Return only the knowledge that was learnt without the dataset of this identity.

        Files of earlier versions do not name their datasets. They may know this one, so they are
        left out until they are learnt again.
        """

        def is_unaware(file: StoredPrior) -> bool:
            return dataset not in self.datasets.get(file.content, (dataset,))

        return replace(
            self,
            priors={
                method: {metric: file for metric, file in by_metric.items() if is_unaware(file)}
                for method, by_metric in self.priors.items()
            },
            portfolios={name: file for name, file in self.portfolios.items() if is_unaware(file)},
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "SpaceLessons":
        """Read what `asdict` has written."""
        experience = plain["experience"]
        return cls(
            space=str(plain["space"]),
            tasks=int(plain["tasks"]),
            evaluations=int(plain["evaluations"]),
            metrics=tuple(str(metric) for metric in plain["metrics"]),
            definition=StoredPrior.from_dict(plain["definition"]),
            experience=None if experience is None else StoredPrior.from_dict(experience),
            priors={
                str(method): {
                    str(metric): StoredPrior.from_dict(kept) for metric, kept in of.items()
                }
                for method, of in plain["priors"].items()
            },
            portfolios={
                str(metric): StoredPrior.from_dict(kept)
                for metric, kept in plain["portfolios"].items()
            },
            about=dict(plain["about"]),
            datasets={
                str(content): tuple(str(dataset) for dataset in known)
                for content, known in plain.get("datasets", {}).items()
            },
        )


@dataclass(frozen=True, slots=True)
class Bundle:
    """A folder of knowledge that was opened."""

    folder: Path
    spaces: Mapping[str, SpaceLessons] = field(default_factory=dict)
    forgotten: Mapping[str, int] = field(default_factory=dict)
    """The number of times that the knowledge about a space was removed. A program that began to
    learn before the last removal must not save its result."""

    @classmethod
    def open(cls, folder: Path) -> "Bundle":
        """Read the manifest; a folder without one knows nothing yet."""
        path = folder / MANIFEST
        try:
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return cls(folder)
        except (OSError, UnicodeDecodeError) as error:
            _refuse(path, f"cannot be read ({error})")
        try:
            plain = json.loads(text) if len(text) <= LARGEST_MANIFEST else {}
            if (plain["format"], plain["version"]) != (FORMAT, VERSION):
                raise ValueError(f"format {plain['format']!r}, version {plain['version']!r}")
            spaces = {str(name): SpaceLessons.from_dict(of) for name, of in plain["spaces"].items()}
            gone = {str(name): int(times) for name, times in plain.get("forgotten", {}).items()}
        except _READ_ERRORS as error:
            _refuse(path, f"is not the manifest of such a folder ({error})")
        return cls(folder, spaces, gone)

    def path(self, kept: StoredPrior) -> Path:
        """Return the path of a file after checking it against the manifest."""
        path = self.folder / kept.file
        if path.parent != self.folder:
            _refuse(path, "lies outside of its folder")
        try:
            content = path.read_bytes()
        except (OSError, ValueError) as error:  # A name with a zero byte raises ValueError.
            _refuse(path, f"cannot be read ({error})")
        if len(content) != kept.bytes or hashlib.sha256(content).hexdigest() != kept.sha256:
            _refuse(path, "was altered: its checksum is not the one in the manifest")
        return path

    def keep(self, file: str, write: Callable[[Path], None], *, content: str = "") -> StoredPrior:
        """Write a file of the folder. Call this in a `change` that puts it into the manifest."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.folder / file, write)
        written = (self.folder / file).read_bytes()
        return StoredPrior(file, hashlib.sha256(written).hexdigest(), len(written), content)

    def with_space(self, name: str, learnt: SpaceLessons) -> "Bundle":
        """Return the folder with this knowledge about one space."""
        return replace(self, spaces={**self.spaces, name: learnt})

    def without_space(self, name: str) -> "Bundle":
        """Remove the files of one space, and return the folder without it."""
        for kept in self.spaces[name].files if name in self.spaces else ():
            path = self.folder / kept.file
            if path.parent == self.folder and path.is_file():
                path.unlink()
        spaces = {n: of for n, of in self.spaces.items() if n != name}
        return replace(
            self, spaces=spaces, forgotten={**self.forgotten, name: self._times_forgotten(name) + 1}
        )

    def has_forgotten(self, name: str, *, since: "Bundle") -> bool:
        """Return whether the knowledge about a space was removed after `since` was opened."""
        return self._times_forgotten(name) != since._times_forgotten(name)

    def change(self, how: Callable[["Bundle"], "Bundle"]) -> "Bundle":
        """Change the folder and write its manifest under a lock; return the changed folder.

        how: takes the folder as it is now, because other programs may have changed it, and
        returns the changed one.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        # The lock lies beside the folder, which holds only what its manifest names.
        whole = self.folder.resolve()
        with hold_lock(whole.parent / f"{whole.name}.lock"):
            changed = how(Bundle.open(self.folder))
            changed._write()
        return changed

    def _times_forgotten(self, name: str) -> int:
        return self.forgotten.get(name, 0)

    def _write(self) -> None:
        """Write the manifest, in one step."""
        plain: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "foretune": version("foretune"),
            "spaces": {name: asdict(learnt) for name, learnt in self.spaces.items()},
        }
        if self.forgotten:
            plain["forgotten"] = dict(self.forgotten)
        write_text(self.folder / MANIFEST, json.dumps(plain, indent=1) + "\n")


def _refuse(path: Path, what: str) -> NoReturn:
    raise ArtifactError(
        f"a folder of knowledge must be as its manifest says, but '{path}' {what}: install "
        "Foretune again if it is its own, or make it with 'foretune learn'",
        rule="damaged-knowledge",
        value=what,
    )
