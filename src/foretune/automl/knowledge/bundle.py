"""A folder of knowledge: per space an experience, what was learnt from it, and a manifest.

The manifest names every file with its SHA-256 and its size, and says how each came about. A file
is held against them when it is opened, not before, so that opening the folder costs nothing.
The package ships one such folder, and `foretune learn` keeps one for each user. Several programs
may change a folder at once: each does so step by step, under a lock, on the folder as it is then.
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
_SPOILT = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a manifest that is not ours can raise."""


@dataclass(frozen=True, slots=True)
class StoredPrior:
    """One file of the folder."""

    file: str
    sha256: str
    bytes: int
    content: str = ""
    """Of what was learnt, the fingerprint of what it was learnt from: see `taught_by`."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "StoredPrior":
        """What `asdict` has written."""
        content = str(plain.get("content", ""))
        return cls(str(plain["file"]), str(plain["sha256"]), int(plain["bytes"]), content)


@dataclass(frozen=True, slots=True)
class SpaceLessons:
    """What the folder knows about one space."""

    space: str
    """The fingerprint of the space that priors and portfolios hold for."""
    tasks: int
    evaluations: int
    metrics: tuple[str, ...]
    """What was measured."""
    definition: StoredPrior
    """The space as JSON."""
    experience: StoredPrior | None = None
    priors: Mapping[str, Mapping[str, StoredPrior]] = field(default_factory=dict)
    """{method: {metric: file}}"""
    portfolios: Mapping[str, StoredPrior] = field(default_factory=dict)
    """{metric: file}"""
    about: Mapping[str, Any] = field(default_factory=dict)
    """How it was made: date, versions, the recipe of the collection."""
    datasets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """{content of a file: the identities of the datasets that it was learnt from}"""

    @property
    def files(self) -> tuple[StoredPrior, ...]:
        """All files that hold it."""
        of_priors = [kept for of_method in self.priors.values() for kept in of_method.values()]
        whole = () if self.experience is None else (self.experience,)
        return (self.definition, *whole, *of_priors, *self.portfolios.values())

    @property
    def datasets_in_use(self) -> dict[str, tuple[str, ...]]:
        """Those that one of the files still speaks of."""
        contents = {kept.content for kept in self.files}
        return {content: known for content, known in self.datasets.items() if content in contents}

    def unaware_of(self, dataset: str) -> "SpaceLessons":
        """Only what was learnt without the dataset of this identity.

        Files of earlier versions do not say what they were learnt from: they may know it, and are
        left out until they are learnt anew.
        """

        def unaware(kept: StoredPrior) -> bool:
            return dataset not in self.datasets.get(kept.content, (dataset,))

        return replace(
            self,
            priors={
                method: {metric: kept for metric, kept in of.items() if unaware(kept)}
                for method, of in self.priors.items()
            },
            portfolios={metric: kept for metric, kept in self.portfolios.items() if unaware(kept)},
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "SpaceLessons":
        """What `asdict` has written."""
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
    """An opened folder."""

    folder: Path
    spaces: Mapping[str, SpaceLessons] = field(default_factory=dict)
    forgotten: Mapping[str, int] = field(default_factory=dict)
    """How often what was known about a space was removed. Whoever began to learn before the last
    time knows what was to be forgotten.
    """

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
        except _SPOILT as error:
            _refuse(path, f"is not the manifest of such a folder ({error})")
        return cls(folder, spaces, gone)

    def path(self, kept: StoredPrior) -> Path:
        """Where a file lies, after holding it against the manifest."""
        path = self.folder / kept.file
        if path.parent != self.folder:
            _refuse(path, "lies outside of its folder")
        try:
            content = path.read_bytes()
        except (OSError, ValueError) as error:  # names with a zero byte are a ValueError
            _refuse(path, f"cannot be read ({error})")
        if len(content) != kept.bytes or hashlib.sha256(content).hexdigest() != kept.sha256:
            _refuse(path, "was altered: its checksum is not the one in the manifest")
        return path

    def keep(self, file: str, write: Callable[[Path], None], *, content: str = "") -> StoredPrior:
        """Let `write` fill a file of the folder, in a `change` that makes the manifest name it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.folder / file, write)
        written = (self.folder / file).read_bytes()
        return StoredPrior(file, hashlib.sha256(written).hexdigest(), len(written), content)

    def with_space(self, name: str, learnt: SpaceLessons) -> "Bundle":
        """The folder with this knowledge about one space."""
        return replace(self, spaces={**self.spaces, name: learnt})

    def without_space(self, name: str) -> "Bundle":
        """The folder without one space, whose files are removed, if it knows anything of it."""
        for kept in self.spaces[name].files if name in self.spaces else ():
            path = self.folder / kept.file
            if path.parent == self.folder and path.is_file():
                path.unlink()
        spaces = {n: of for n, of in self.spaces.items() if n != name}
        return replace(
            self, spaces=spaces, forgotten={**self.forgotten, name: self._times_forgotten(name) + 1}
        )

    def has_forgotten(self, name: str, *, since: "Bundle") -> bool:
        """Whether what was known about a space was removed since the folder was opened before."""
        return self._times_forgotten(name) != since._times_forgotten(name)

    def change(self, how: Callable[["Bundle"], "Bundle"]) -> "Bundle":
        """Change the folder and write its manifest, while nobody else does; what it is then.

        how: is given the folder as it is by now, which others may have changed since it was opened.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        # Beside the folder, in which there is nothing but what its manifest names.
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
