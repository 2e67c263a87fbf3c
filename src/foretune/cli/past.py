"""The past runs that `foretune tune` starts from: experience files, and studies in stores."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretune.errors import ExperienceError, UsageError

if TYPE_CHECKING:
    from foretune.experience import Experience, Metric
    from foretune.experience.carrying import Carried
    from foretune.space import Space

FILES = ".parquet"


@dataclass
class Past:
    """What was given, each file and each study for itself."""

    files: "list[Experience]" = field(default_factory=list)
    studies: "list[Experience]" = field(default_factory=list)
    unfit: list[ExperienceError] = field(default_factory=list)
    """Why studies cannot be used."""

    @property
    def told(self) -> "Experience | None":
        """The file that says what is searched and measured, where the user does not."""
        return self.files[0] if self.files else None


def opened(sources: Sequence[str], *, store: str, study: str) -> Past:
    """Read experience files, and all studies of stores but the one that is tuned."""
    from foretune.experience import Experience

    past = Past()
    for source in sources:
        if source.endswith(FILES) and "://" not in source:
            past.files.append(Experience.open(Path(source)))
        else:
            _add_studies(past, source, store, study)
    return past


def carried(
    past: Past, space: "Space", metrics: "Sequence[Metric]", assumed: Sequence[str]
) -> "Carried | None":
    """What past runs say about the space that is tuned, by its metrics; says what is not used."""
    from foretune.experience.carrying import assumed_numbers

    values = dict(_assumed(text, space) for text in assumed)
    assumed_numbers(space, values)
    found = _together(past, space, metrics, values)
    if past.unfit:
        n = len(past.unfit)
        click.echo(
            f"{n} past {'study does' if n == 1 else 'studies do'} not fit, such as: "
            f"{past.unfit[0]}.",
            err=True,
        )
    if found is not None and not found.is_whole:
        hint = "; --assume NAME=VALUE tells what they had" if found.unknown else ""
        told = found.told()
        click.echo(f"{told[0].upper()}{told[1:]}{hint}.", err=True)
    return found


def _add_studies(past: Past, source: str, store: str, study: str) -> None:
    from foretune.databases import shown
    from foretune.experience.importers.optuna import read_each
    from foretune.run.addresses import storage_url
    from foretune.terminal import TerminalProgress

    own = _same_store(source, store)
    if own and not _exists(storage_url(store)):
        return  # the first study of all
    besides = [study] if own else []
    taken = {task for part in (*past.files, *past.studies) for task in part.tasks}
    read = read_each(source, besides=besides, progress=TerminalProgress())
    for name, found in read.items():
        if isinstance(found, ExperienceError):
            past.unfit.append(found)
        else:
            # Two stores may have a study of the same name, which are tasks of their own.
            tasks = (f"{name} ({shown(source)})",) if name in taken else found.tasks
            past.studies.append(replace(found, tasks=tasks))


def _same_store(source: str, store: str) -> bool:
    from foretune.run.addresses import storage_url

    try:
        return storage_url(source) == storage_url(store)
    except UsageError:
        return False  # such as Optuna's journals, in which nothing is tuned


def _exists(url: str) -> bool:
    """Whether there is a store: a server's is asked when it is opened."""
    from foretune.databases import sqlite_path
    from foretune.run.addresses import is_sqlite

    return not is_sqlite(url) or sqlite_path(url).exists()


def _together(
    past: Past, space: "Space", metrics: "Sequence[Metric]", assumed: dict[str, Any]
) -> "Carried | None":
    """What fits of all; a file must fit, for it was named."""
    from foretune.experience.carrying import together

    fitting = [_fitting(each, space, metrics, assumed) for each in past.files]
    for study in past.studies:
        try:
            fitting.append(_fitting(study, space, metrics, assumed))
        except ExperienceError as error:
            past.unfit.append(error)
    return together(fitting) if fitting else None


def _fitting(
    known: "Experience", space: "Space", metrics: "Sequence[Metric]", assumed: dict[str, Any]
) -> "Carried":
    from foretune.experience.carrying import carried_over

    measured = known.with_metrics([metric.name for metric in metrics])
    for own, metric in zip(measured.metrics, metrics, strict=True):
        if own != metric:
            raise ExperienceError(
                f"past runs must mean the same by '{metric.name}', but some are for "
                f"{own.direction} and the search is for {metric.direction}: leave them out"
            )
    return carried_over(measured, space, assumed=assumed)


def _assumed(text: str, space: "Space") -> tuple[str, Any]:
    """A name, and the value that the text stands for among those of the hyperparameter."""
    from foretune.experience.importers.literals import read_literal

    name, is_one, value = text.partition("=")
    if not is_one:
        raise UsageError(
            f"--assume needs a hyperparameter and its value, but got '{text}': write NAME=VALUE"
        )
    choices = next((each.choices for each in space.parameters if each.name == name), ())
    if (same := next((each for each in choices if str(each) == value), None)) is not None:
        return name, same
    try:
        return name, read_literal(value)
    except (ValueError, SyntaxError):
        return name, value
