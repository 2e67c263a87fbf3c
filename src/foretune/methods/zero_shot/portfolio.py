"""A portfolio: configurations to try in order, and the one file format for them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foretune._base.files import write_text
from foretune.errors import ArtifactError

FORMAT = "foretune-portfolio"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Portfolio:
    """Configurations that complement each other, the most useful one first."""

    configs: tuple[Mapping[str, Any], ...]
    builder: str
    """The builder that chose them."""
    source: str
    """The source of the evaluations."""
    losses: tuple[float, ...] = ()
    """The expected aggregate loss after each configuration; empty if it is not known."""
    aggregate: str = "mean"
    normalisation: str = "red"
    """The unit of the losses."""
    jobs: int | None = None
    """The number of evaluations that the builder used, if it is known."""
    fingerprint: str | None = None
    """The fingerprint of the space of the configurations, if one was given."""
    note: str = ""

    def __len__(self) -> int:
        return len(self.configs)

    def first(self, k: int) -> "Portfolio":
        """Return the first k configurations."""
        return replace(self, configs=self.configs[:k], losses=self.losses[:k])

    def to_json(self) -> str:
        """Return the text of a portfolio file."""
        plain = {
            "format": FORMAT,
            "version": VERSION,
            "builder": self.builder,
            "source": self.source,
            "aggregate": self.aggregate,
            "normalisation": self.normalisation,
            "jobs": self.jobs,
            "space": self.fingerprint,
            "note": self.note,
            "losses": list(self.losses),
            "configs": [dict(config) for config in self.configs],
        }
        return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"

    def save(self, path: Path) -> None:
        """Write a portfolio file, replacing one that is there in one step."""
        write_text(Path(path), self.to_json())

    @classmethod
    def from_json(cls, text: str, name: str) -> "Portfolio":
        """Read the text of a portfolio file. `name` appears in errors."""
        try:
            plain = json.loads(text)
            fits = plain["format"] == FORMAT and plain["version"] == VERSION
        except (ValueError, TypeError, LookupError, RecursionError):
            fits = False
        if not fits:
            raise ArtifactError(
                f"a portfolio file is JSON of the format '{FORMAT}' in version {VERSION}, but "
                f"'{name}' is not: make it with 'foretune portfolio'",
                rule="not-a-portfolio",
                value=name,
            )
        try:
            return cls(
                configs=tuple(dict(config) for config in plain["configs"]),
                builder=str(plain["builder"]),
                source=str(plain["source"]),
                losses=tuple(float(loss) for loss in plain["losses"]),
                aggregate=str(plain["aggregate"]),
                normalisation=str(plain["normalisation"]),
                jobs=plain["jobs"],
                fingerprint=plain["space"],
                note=str(plain["note"]),
            )
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise ArtifactError(
                f"a portfolio file must be whole, but '{name}' lacks or damages {error}: make it "
                "again with 'foretune portfolio'",
                rule="damaged-portfolio",
                value=name,
            ) from error

    @classmethod
    def open(cls, path: Path) -> "Portfolio":
        """Read a portfolio file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ArtifactError(
                f"a portfolio is read from a file, but '{path}' cannot be read ({error}): check "
                "the path",
                rule="path-not-readable",
                field="path",
                value=str(path),
            ) from error
        return cls.from_json(text, str(path))


def as_python(configs: Sequence[Mapping[str, Any]]) -> str:
    """Return configurations as a Python list to paste, with one line for each."""
    lines = ", \n    ".join(repr(dict(config)) for config in configs).replace(", \n", ",\n")
    return f"[\n    {lines},\n]"
