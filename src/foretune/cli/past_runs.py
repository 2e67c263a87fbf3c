"""The past runs that `foretune tune` starts from: experience files, and studies in stores."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from foretune.errors import ExperienceError, UsageError

if TYPE_CHECKING:
    from foretune.experience import Experience, Metric
    from foretune.experience.alignment.carry_over import CarriedExperience
    from foretune.experience.source_merge import SourcedExperience
    from foretune.space import Space

FILES = ".parquet"
TABLES = (".csv", ".tsv")
REASONS_SAID = 3
"""How many reasons are printed why studies do not fit; of other studies only the names."""
NOT_A_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
"""What may be raised when a value is read as Python writes it."""

Made = TypeVar("Made")


@dataclass
class PastRuns:
    """The past runs that were given: one part for each file and each study."""

    parts: "list[SourcedExperience]" = field(default_factory=list)
    unfit: list[tuple[str, ExperienceError]] = field(default_factory=list)
    """Studies that cannot be used, with the reasons."""

    @property
    def task_source(self) -> "SourcedExperience | None":
        """The file that gives the space and the metric if the user gives none."""
        return next((part for part in self.parts if part.is_file), None)


def open_past_runs(sources: Sequence[str], *, store: str, study: str) -> PastRuns:
    """Read experience files, and all studies of stores except the one that is tuned."""
    from foretune._base.databases import hide_passwords
    from foretune._base.terminal import TerminalProgress
    from foretune.experience import Experience
    from foretune.experience.source_merge import SourcedExperience

    past = PastRuns()
    for source in _each_once(sources):
        if _is_file(source):
            _check_there(source)
            read = Experience.open(Path(source), progress=TerminalProgress())
            past.parts.append(SourcedExperience(hide_passwords(source), read))
        else:
            _add_studies(past, source, store, study)
    return past


def rename(past: PastRuns, texts: Sequence[str]) -> None:
    """Rename hyperparameters of past runs by OLD=NEW, and choices by NAME:OLD=NEW."""
    renamings = _new_names(texts)
    for old in renamings:
        if past.parts and all(_place(old, part.experience.space) is None for part in past.parts):
            _refuse_unknown(old, past)

    def align(known: "Experience") -> "Experience":
        names: dict[str, str] = {}
        choices: dict[str, dict[Any, Any]] = {}
        for old, new in renamings.items():
            match _place(old, known.space):
                case str(name):
                    names[name] = new
                case (name, choice):
                    now = new if isinstance(choice, str) else _value(new)
                    choices.setdefault(name, {})[choice] = now
        return known.renamed(names, choices=choices) if names or choices else known

    parts = _fitting(past, past.parts, align)
    past.parts = [replace(part, experience=known) for part, known in parts]


def _new_names(texts: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for text in texts:
        old, is_one, new = text.partition("=")
        if not (old and is_one and new):
            raise UsageError(
                f"--rename needs two names, but got '{text}': write OLD=NEW, or NAME:OLD=NEW for a "
                "choice",
                rule="not-two-names",
                field="--rename",
                value=text,
            )
        if old in names:
            raise UsageError(
                f"--rename must name each hyperparameter once, but got '{old}' twice: leave one "
                "out",
                rule="renamed-twice",
                field="--rename",
                value=old,
            )
        names[old] = new
    return names


def _place(old: str, space: "Space") -> str | tuple[str, Any] | None:
    """Find the hyperparameter of this name, or the hyperparameter and choice; None without any."""
    if old in space.names:
        return old
    for parameter in space.parameters:
        for choice in parameter.choices:
            if old == f"{parameter.name}:{choice}":
                return parameter.name, choice
    return None


def _refuse_unknown(old: str, past: PastRuns) -> None:
    from foretune._base.names import suggestion

    spaces = [part.experience.space for part in past.parts]
    names = {name for space in spaces for name in space.names}
    choices = {f"{p.name}:{c}" for space in spaces for p in space.parameters for c in p.choices}
    raise UsageError(
        f"--rename needs a hyperparameter of past runs, or a choice of one, but none has '{old}': "
        f"{suggestion(old, sorted(names | choices if ':' in old else names))}",
        rule="unknown-hyperparameter",
        field="--rename",
        value=old,
    )


def carry_over_past(
    past: PastRuns,
    space: "Space",
    metrics: "Sequence[Metric]",
    assumed: Sequence[str],
    missing: str = "default",
) -> "CarriedExperience[Experience] | None":
    """Carry past runs over to the space and metrics that are tuned. Print what is not used."""
    from foretune._base.names import quote_names
    from foretune.experience.alignment.carry_over import carry_over
    from foretune.experience.alignment.translation import encode_assumptions

    values = _parse_assumptions(assumed, space)
    encode_assumptions(space, values)
    carry = partial(carry_over, space=space, assumed=values, missing=missing)
    found = _together(past, metrics, carry)
    _say_unfit(past.unfit)
    if found is not None and not found.is_whole:
        told = found.describe()
        click.echo(f"{told[0].upper()}{told[1:]}{_hint(found)}.", err=True)
    if found is not None and found.in_vain:
        in_vain = quote_names(found.in_vain)
        click.echo(
            f"--assume of {in_vain} changes nothing: past runs have recorded a value.", err=True
        )
    return found


def _hint(found: "CarriedExperience[Experience]") -> str:
    """Say which options would make more of the past runs usable."""
    hints = []
    if found.unknown:
        other_name = ", or its old name with --rename OLD=NEW" if found.gone else ""
        hints.append(f"give the value they used with --assume NAME=VALUE{other_name}")
    chosen = (p.name for p in found.experience.space.parameters if not p.is_number)
    if name := next((name for name in chosen if name in found.outside), None):
        hints.append(f"give a choice its new name with --rename {name}:OLD=NEW")
    return "".join(f"; {hint}" for hint in hints)


def _say_unfit(unfit: Sequence[tuple[str, ExperienceError]]) -> None:
    """Print how many studies are not used and why. The most frequent reason comes first."""
    from foretune._base.names import quote_names

    by_reason: dict[str, list[str]] = {}
    for name, error in unfit:
        by_reason.setdefault(str(error), []).append(name)
    reasons = sorted(by_reason.items(), key=lambda reason: -len(reason[1]))
    for why, names in reasons[:REASONS_SAID]:
        click.echo(f"{_studies(names)} not fit, such as '{names[0]}': {why}.", err=True)
    others = [name for _, names in reasons[REASONS_SAID:] for name in names]
    if others:
        click.echo(
            f"{_studies(others)} not fit for other reasons: {quote_names(others)}.", err=True
        )


def _studies(names: Sequence[str]) -> str:
    """Return how many studies these are, as the beginning of a sentence with "not"."""
    return f"{len(names)} past {'study does' if len(names) == 1 else 'studies do'}"


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


def _check_there(source: str) -> None:
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
    from foretune._base.terminal import TerminalProgress
    from foretune.experience.source_merge import SourcedExperience
    from foretune.stores.optuna.study_reader import read_each

    own = place(source) == place(store)
    if own and not _is_begun(store):
        return  # the first study of all
    _check_there(source)
    besides = [study] if own else []
    read = read_each(source, besides=besides, progress=TerminalProgress())
    if not read and not own:
        click.echo(f"There are no studies in {hide_passwords(source)} to learn from.", err=True)
    for name, found in read.items():
        if isinstance(found, ExperienceError):
            past.unfit.append((name, found))
        else:
            past.parts.append(SourcedExperience(hide_passwords(source), found, is_file=False))


def _together(
    past: PastRuns,
    metrics: "Sequence[Metric]",
    carry: "Callable[[Experience], CarriedExperience[Experience]]",
) -> "CarriedExperience[Experience] | None":
    """Carry over all past runs that fit, and merge them."""
    from foretune.experience.alignment.carry_over import together
    from foretune.experience.source_merge import distinct

    measured = [
        replace(part, experience=known)
        for part, known in _fitting(
            past,
            _assume_metric_names(past.parts, metrics),
            lambda known: _select_metrics(known, metrics),
        )
    ]
    apart = distinct(measured)
    found = list(_fitting(past, apart, carry))
    _report_unnamed_metrics([part for part, _ in found], metrics)
    return together([each for _, each in found]) if found else None


def _report_unnamed_metrics(
    parts: "Sequence[SourcedExperience]", metrics: "Sequence[Metric]"
) -> None:
    """Print how many of the studies in use do not name their metrics."""
    from foretune._base.names import quote_names

    nameless = [part.experience.tasks[0] for part in parts if part.is_nameless]
    if nameless:
        told = quote_names([metric.name for metric in metrics])
        click.echo(f"{_studies(nameless)} not name a metric: taken for {told}.", err=True)


def _fitting(
    past: PastRuns, parts: "Sequence[SourcedExperience]", made: "Callable[[Experience], Made]"
) -> "Iterator[tuple[SourcedExperience, Made]]":
    """Apply `made` to the parts that fit. A file must fit, because the user named it."""
    for part in parts:
        try:
            yield part, made(part.experience)
        except ExperienceError as error:
            if part.is_file:
                with naming(part.source):
                    raise
            past.unfit.append((part.experience.tasks[0], error))


def _assume_metric_names(
    parts: "Sequence[SourcedExperience]", metrics: "Sequence[Metric]"
) -> "list[SourcedExperience]":
    """Give studies without names of metrics those that are tuned.

    Optuna does not ask for names, so few of its studies have them.
    """
    from foretune.stores.optuna.stored_studies import default_metric_names

    names = default_metric_names(len(metrics))
    if names == tuple(metric.name for metric in metrics):
        return list(parts)
    return [
        replace(part, experience=_rename_metrics(part.experience, metrics), is_nameless=True)
        if not part.is_file and tuple(metric.name for metric in part.experience.metrics) == names
        else part
        for part in parts
    ]


def _rename_metrics(known: "Experience", metrics: "Sequence[Metric]") -> "Experience":
    """Rename the metrics of past runs, and keep their directions."""
    pairs = zip(known.metrics, metrics, strict=True)
    return replace(known, metrics=tuple(replace(own, name=each.name) for own, each in pairs))


def _select_metrics(known: "Experience", metrics: "Sequence[Metric]") -> "Experience":
    """Keep the metrics that are tuned."""
    measured = known.with_metrics([metric.name for metric in metrics])
    for own, metric in zip(measured.metrics, metrics, strict=True):
        if own != metric:
            raise ExperienceError(
                f"past runs must mean the same by '{metric.name}', but some are for "
                f"{own.direction} and the search is for {metric.direction}: leave them out",
                rule="other-direction",
                field="--experience",
                value=metric.name,
            )
    return measured


def _parse_assumptions(texts: Sequence[str], space: "Space") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for text in texts:
        name, value = _parse_assumption(text, space)
        if name in values:
            raise UsageError(
                f"--assume must name each hyperparameter once, but got '{name}' twice: leave one "
                "out",
                rule="assumed-twice",
                field="--assume",
                value=name,
            )
        values[name] = value
    return values


def _parse_assumption(text: str, space: "Space") -> tuple[str, Any]:
    """Split NAME=VALUE, and read the value as one of the hyperparameter."""
    name, is_one, value = text.partition("=")
    if not is_one:
        raise UsageError(
            f"--assume needs a hyperparameter and its value, but got '{text}': write NAME=VALUE",
            rule="not-name-and-value",
            field="--assume",
            value=text,
        )
    choices = next((each.choices for each in space.parameters if each.name == name), ())
    if (same := next((each for each in choices if str(each) == value), None)) is not None:
        return name, same
    return name, _value(value)


def _value(text: str) -> Any:
    """Read a value as Python does, or return the text."""
    from foretune.stores.files.python_literals import read_literal

    try:
        return read_literal(text)
    except NOT_A_LITERAL:
        return text
