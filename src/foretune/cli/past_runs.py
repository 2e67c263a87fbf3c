"""The past runs that `foretune tune` starts from: experience files, and studies in stores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from foretune.errors import ExperienceError, UsageError

if TYPE_CHECKING:
    from foretune.experience import Experience
    from foretune.experience.source_merge import SourcedExperience

FILES = ".parquet"
TABLES = (".csv", ".tsv")

Made = TypeVar("Made")


@dataclass
class PastRuns:
    """The past runs of the option --experience: one part for each file and each study."""

    parts: "list[SourcedExperience]" = field(default_factory=list)
    unfit: list[tuple[str, ExperienceError]] = field(default_factory=list)
    """Studies that cannot be used, with the reasons."""

    @property
    def task_source(self) -> "SourcedExperience | None":
        """The file that gives the space and the metric if the user gives none."""
        return next((part for part in self.parts if part.is_file), None)

    def apply(
        self, make: "Callable[[Experience], Made]", parts: "Iterable[SourcedExperience]"
    ) -> "Iterator[tuple[SourcedExperience, Made]]":
        """Apply `make` to the parts that fit. A file must fit, because the user named it."""
        for part in parts:
            try:
                yield part, make(part.experience)
            except ExperienceError as error:
                if part.is_file:
                    with naming(part.source):
                        raise
                self.unfit.append((part.experience.tasks[0], error))


def open_past_runs(sources: Sequence[str], *, store: str, study: str) -> PastRuns:
    """Read experience files, and all studies of stores except the one that is tuned."""
    from foretune._base.databases import hide_passwords
    from foretune._base.progress import TerminalProgress
    from foretune.experience import Experience
    from foretune.experience.source_merge import SourcedExperience

    past = PastRuns()
    for source in _each_once(sources):
        if _is_file(source):
            _check_source(source)
            read = Experience.open(Path(source), progress=TerminalProgress())
            past.parts.append(SourcedExperience(hide_passwords(source), read))
        else:
            _add_studies(past, source, store, study)
    return past


def check_out_is_not_source(out: Path, sources: Sequence[str]) -> None:
    """Refuse to write the trials over the past runs."""
    from foretune._base.databases import place

    if any(place(str(out)) == place(source) for source in sources if _is_file(source)):
        raise UsageError(
            f"the output must be another file than the --experience, but got '{out}' for both: "
            "name another",
            rule="output-is-source",
            field="--out",
            value=str(out),
        )


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Name the source in errors about it."""
    try:
        yield
    except ExperienceError as error:
        told = f"'{source}' does not fit: {error}"
        raise ExperienceError(told, rule="source-does-not-fit", field=source) from error


def _is_file(source: str) -> bool:
    return source.endswith(FILES) and "://" not in source


def _each_once(sources: Sequence[str]) -> list[str]:
    """Return the sources without other spellings of the same one."""
    from foretune._base.databases import place
    from foretune.stores.optuna.stored_studies import need_optuna

    if not all(map(_is_file, sources)):
        need_optuna()
    found: dict[tuple[str, ...], str] = {}
    for source in sources:
        found.setdefault(place(source), source)
    return list(found.values())


def _check_source(source: str) -> None:
    """Refuse a file that does not exist, is a table, or is empty."""
    from foretune._base.databases import file_of

    path = file_of(source)
    if path is None:
        return
    if not path.exists():
        raise ExperienceError(
            f"past runs must lie in a file or store that exists, but there is no '{path}': correct "
            "its path, or leave it out",
            rule="no-such-file",
            field="--experience",
            value=str(path),
        )
    if path.suffix.lower() in TABLES:
        raise ExperienceError(
            f"past runs must lie in an experience file or a store, but '{path}' is a table: turn "
            "it into an experience with 'foretune import table'",
            rule="table-not-experience",
            field="--experience",
            value=str(path),
        )
    if not _is_begun(source):
        raise ExperienceError(
            f"past runs must lie in a file or store that holds some, but '{path}' is empty: name "
            "another, or leave it out",
            rule="empty-store",
            field="--experience",
            value=str(path),
        )


def _is_begun(store: str) -> bool:
    """Return whether a store is more than an empty file. Servers are asked later."""
    from foretune._base.databases import file_of

    path = file_of(store)
    return path is None or (path.exists() and path.stat().st_size > 0)


def _add_studies(past: PastRuns, source: str, store: str, study: str) -> None:
    from foretune._base.databases import hide_passwords, place
    from foretune._base.progress import TerminalProgress
    from foretune.experience.source_merge import SourcedExperience
    from foretune.stores.optuna.study_reader import read_each

    own = place(source) == place(store)
    if own and not _is_begun(store):
        return  # the first study of all
    _check_source(source)
    besides = [study] if own else []
    read = read_each(source, besides=besides, progress=TerminalProgress())
    if not read and not own:
        click.echo(f"There are no studies in {hide_passwords(source)} to learn from.", err=True)
    for name, found in read.items():
        if isinstance(found, ExperienceError):
            past.unfit.append((name, found))
        else:
            past.parts.append(SourcedExperience(hide_passwords(source), found, is_file=False))
