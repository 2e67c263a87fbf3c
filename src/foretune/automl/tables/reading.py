"""A table to learn from: read from a file, looked at, and what was assumed about it in words."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune.automl.tables.cells import (
    LARGEST,
    has_leading_zeros,
    not_numbers,
    usable,
)
from foretune.automl.tables.columns import UNUSED, ColumnKind, counted_kinds
from foretune.automl.tables.datasets import NO_ROLES, Table
from foretune.automl.tables.frames import (
    MISSING,
    encoding_note,
    has_types,
    read_cells,
    read_frame,
    read_parts,
    table_bytes,
    table_name,
)
from foretune.automl.tables.gaps import odd_text
from foretune.automl.tables.question import Question
from foretune.automl.tables.roles import Roles
from foretune.automl.tables.schema import Schema
from foretune.automl.tables.targets import (
    LabelKind,
    Task,
    inferred_task,
    times_in,
)
from foretune.automl.tables.words import MOST_TEXTS
from foretune.automl.tables.written_numbers import points_in_doubt
from foretune.errors import UsageError
from foretune.experience.frame import with_columns
from foretune.experience.naming import listed
from foretune.progress import SILENT, Progress

MOST_BYTES = 400 * 2**20
"""Larger tables are sampled while they are read, so that memory suffices for any file."""
LEAST_OF_A_CLASS = 5
MANY_COLUMNS = 1000
DIFFERENT_SHARE = 0.5
"""A target of which more than this share of rows is a class of its own is taken for names."""
WRITTEN = {
    ",": "with a decimal comma",
    ".": "with thousands apart or with a unit",
}
"""How numbers are written that are no plain ones, by what divides fractions."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a table was when it was read."""

    rows: int
    columns: int
    """Beside the target."""
    without_target: int
    """Rows that were left out."""
    without_weight: int
    """Rows of weight 0, which were left out as well."""
    kinds: dict[ColumnKind, int]
    """How many columns are of which kind."""
    share: float = 1.0
    """Of the rows of the file, those that were read."""


@dataclass(frozen=True, eq=False)
class Training:
    """A table, and what was assumed about it."""

    table: Table
    target: str
    facts: Facts
    notes: list[str]
    """Sentences for people."""

    @property
    def written(self) -> tuple[str, ...]:
        """The columns of a test table that are read as they are written, to mean the same there."""
        table = self.table
        named = table.task is Task.CLASSIFICATION and table.label_kind is LabelKind.TEXT
        target = (self.target,) if named or table.target_decimal else ()
        by = table.weighting
        weight = () if by is None or not by.decimal else (by.column,)
        return (*table.schema.written, *target, *weight)


@dataclass(frozen=True, slots=True)
class Source:
    """What reading the file of a table has shown, beside its rows."""

    notes: tuple[str, ...] = ()
    """Sentences for people."""
    share: float = 1.0
    """Of its rows, those that were read."""
    gaps: tuple[str, ...] = ()
    """The texts that were taken for a missing target."""


IN_MEMORY = Source()


def read_training(
    path: str | Path,
    target: str,
    *,
    task: Task | str | None = None,
    roles: Roles = NO_ROLES,
    most_bytes: int = MOST_BYTES,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Training:
    """The table in a file; a file larger than `most_bytes` is sampled.

    task: found out from the target if None. roles: what other columns are for.
    """
    path = Path(path)
    asked = None if task is None else _task(task)
    frame, share = read_table(path, most_bytes=most_bytes, seed=seed)
    notes = encoding_note(path)
    gaps: list[str] = []
    if target in frame.columns and _worth_a_look(frame[target], asked) and not has_types(path):
        cells = _drawn(read_cells(path, list(frame.columns).index(target)), share, seed)
        gaps = sorted({*cells.unique()}.intersection(MISSING) - {""})
        if has_leading_zeros(cells):
            frame = with_columns(frame, {target: cells.mask(cells.isin(MISSING))})
    notes += size_notes(share, "The table", most_bytes)
    return training_of(
        frame,
        target,
        name=table_name(path),
        task=task,
        roles=roles,
        source=Source(tuple(notes), share, tuple(gaps)),
        progress=progress,
    )


def read_table(
    path: str | Path, *, most_bytes: int = MOST_BYTES, seed: int = 0, texts: Sequence[str] = ()
) -> tuple[pd.DataFrame, float]:
    """The table in a file, or a sample of it if it is larger than `most_bytes`; the share of its
    rows that were read.

    texts: columns that stay as they are written, such as 007, where the file has no types.
    """
    path = Path(path)
    share = _share(path, most_bytes)
    if share == 1.0:
        return read_frame(path, texts=texts), share
    drawn = _drawn(read_parts(path, texts=texts), share, seed)
    unlike = [str(name) for name in drawn.columns if _is_mixed(drawn[name])]
    if unlike and not has_types(path):
        # 01 is a number in a part that has only numbers, and a text in the next one.
        drawn = _drawn(read_parts(path, texts=(*texts, *unlike)), share, seed)
    return drawn, share


def size_notes(share: float, what: str, most_bytes: int = MOST_BYTES) -> list[str]:
    """A sentence about a table of which only this share of the rows was read."""
    if share == 1.0:
        return []
    return [
        f"{what} is larger than {most_bytes / 2**20:,.0f} MB: a random {share:.1%} of its rows is "
        "used."
    ]


def training_of(
    frame: pd.DataFrame,
    target: str,
    *,
    name: str = "table",
    task: Task | str | None = None,
    roles: Roles = NO_ROLES,
    source: Source = IN_MEMORY,
    progress: Progress = SILENT,
) -> Training:
    """The same for a data frame."""
    rows = len(frame)
    asked = None if task is None else _task(task)
    question = Question.of(frame, target, task=asked, roles=roles)
    known = question.values.dropna()
    _check_repeats(known, target, asked)
    table = Table.answering(question, name=name, progress=progress)
    frame = question.frame
    said_of_roles = _role_notes(roles, frame[frame[target].notna()])
    frame = frame.drop(columns=roles.left_out())
    kinds = Counter(column.kind for column in table.schema.columns)
    facts = Facts(
        rows,
        frame.shape[1] - 1,
        len(frame) - len(known),
        rows - len(frame),
        dict(kinds),
        source.share,
    )
    said = [
        *source.notes,
        _shape_note(facts),
        _task_note(table, target, known, asked),
        *_written_notes(table, target),
        *_gap_notes(table.schema),
        *_column_notes(table.schema),
        *said_of_roles,
        *_odd_text_notes(frame, table.schema),
        *_thousands_notes(frame, table),
        *_row_notes(frame, target, facts, source.gaps),
        *_class_notes(table),
    ]
    return Training(table, target, facts, said)


def _share(path: Path, most_bytes: int) -> float:
    return min(1.0, most_bytes / max(table_bytes(path), 1))


def _drawn(parts: Iterable[Any], share: float, seed: int) -> Any:
    """Some rows of a table that comes in parts: the same ones whatever its parts are."""
    rng = np.random.default_rng(seed)
    return pd.concat([part[rng.random(len(part)) < share] for part in parts], ignore_index=True)


def _is_mixed(column: "pd.Series[Any]") -> bool:
    return column.dtype == object and pd.api.types.infer_dtype(column).startswith("mixed")


def _worth_a_look(target: "pd.Series[Any]", asked: Task | None) -> bool:
    """Whether the file tells more about a target: what its gaps are, or names such as 007."""
    if target.isna().any():
        return True
    return _is_number(target) and (asked or inferred_task(target)) is Task.CLASSIFICATION


def _task(given: Task | str) -> Task:
    try:
        return Task(given)
    except ValueError:
        raise UsageError(
            f"the task must be {' or '.join(Task)}, but got '{given}': choose one of them"
        ) from None


def _check_repeats(known: "pd.Series[Any]", target: str, asked: Task | None) -> None:
    """Refuse a target that looks like a name or number of the rows."""
    if known.empty:
        return
    task = asked or inferred_task(known)
    if task is Task.REGRESSION:
        if asked is None and _counts_rows(known):
            raise UsageError(
                f"the target must be something to predict, but '{target}' counts the rows: choose "
                f"another one, or ask for {Task.REGRESSION}"
            )
        return
    different = known.astype(str).nunique()
    if different > max(2, DIFFERENT_SHARE * len(known)):
        raise UsageError(
            f"the classes of a target must repeat, but '{target}' has {different:,} different "
            f"values in {len(known):,} rows, as an identifier has: choose another target"
            + _as_numbers_instead(known)
        )


def _as_numbers_instead(known: "pd.Series[Any]") -> str:
    """How a target whose classes hardly repeat may be predicted as a number, where it may."""
    if _is_number(known):
        return f", or ask for {Task.REGRESSION}"
    if held := times_in(known):
        what, unit = held
        return f", or convert it to {unit}, because {what} are predicted as numbers"
    others = not_numbers(known)
    if not others or 2 * len(others) >= len(known):
        return ""
    return (
        f", or, if it is meant to be a number, mend cells such as '{others[0]}' or leave their "
        "rows out"
    )


def _is_number(known: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(known.dtype)


def _counts_rows(known: "pd.Series[Any]") -> bool:
    steps = np.diff(known.to_numpy(dtype=np.float64))
    return len(steps) > 1 and bool((steps == 1.0).all())


def _shape_note(facts: Facts) -> str:
    used = {kind: count for kind, count in facts.kinds.items() if kind not in UNUSED}
    return f"{facts.rows:,} rows; columns beside the target: {counted_kinds(used)}."


def _task_note(table: Table, target: str, known: "pd.Series[Any]", asked: Task | None) -> str:
    different = known.nunique()
    if asked is not None:
        why = "as asked"
    elif not _is_number(known) or pd.api.types.is_bool_dtype(known.dtype):
        why = "because it does not hold numbers"
    elif table.task is Task.CLASSIFICATION:
        why = f"because it holds only {different} different whole numbers"
    else:
        why = f"because it holds {different:,} different numbers"
    if table.task is Task.REGRESSION:
        return f"'{target}' is predicted as a number (regression), {why}."
    return (
        f"'{target}' is predicted as one of {len(table.classes):,} classes (classification), {why}."
    )


def _written_notes(table: Table, target: str) -> list[str]:
    marks = {column.name: column.decimal for column in table.schema.columns}
    marks[target] = table.target_decimal
    named = {how: [n for n in marks if marks[n] == mark] for mark, how in WRITTEN.items()}
    return [f"Read as numbers {how}: {listed(names)}." for how, names in named.items() if names]


def _gap_notes(schema: Schema) -> list[str]:
    gaps = [f"{listed(each.gaps)} in '{each.name}'" for each in schema.columns if each.gaps]
    if not gaps:
        return []
    return [
        f"Taken as missing, beside numbers or dates: {', '.join(gaps)}. Where that stands for a "
        "value, write the value instead."
    ]


def _column_notes(schema: Schema) -> list[str]:
    notes = [
        f"The texts of '{column.name}' are learnt from by their words, of which "
        f"{len(column.words):,} repeat: {listed(column.words)}."
        for column in schema.columns
        if column.words
    ]
    texts = [each for each in schema.columns if each.kind in (ColumnKind.TEXT, ColumnKind.WORDS)]
    if len(texts) > MOST_TEXTS:
        notes.append(
            f"Of {len(texts):,} columns of texts, only the {MOST_TEXTS} longest with words that "
            "repeat were looked at."
        )
    for kind, why in UNUSED.items():
        names = [column.name for column in schema.columns if column.kind is kind]
        if names:
            notes.append(f"Not used, {why}: {listed(names)}.")
    columns = len(schema.features) - sum(len(column.words) for column in schema.columns)
    if columns > MANY_COLUMNS:
        notes.append(
            f"There are {columns:,} columns to learn from: every trial takes longer, "
            "and pipelines that select columns are worth more."
        )
    return notes


def _role_notes(roles: Roles, known: pd.DataFrame) -> list[str]:
    """What became of columns, and of rows without a group among those that have a target."""
    left_out = roles.left_out()
    notes = [f"Not used, as asked for: {listed(left_out)}."] if left_out else []
    gaps = 0 if roles.group is None else int(known[roles.group].isna().sum())
    if gaps:
        notes.append(
            f"Rows without a '{roles.group}', each taken for one of its own: {gaps:,} of "
            f"{len(known):,}."
        )
    return notes


def _odd_text_notes(frame: pd.DataFrame, schema: Schema) -> list[str]:
    """A word about columns that some values keep from being numbers or dates."""
    kinds = (ColumnKind.TEXT, ColumnKind.WORDS, ColumnKind.CATEGORY)
    texts = [column.name for column in schema.columns if column.kind in kinds]
    kept_from = {name: odd_text(frame[name]) for name in texts}
    shown = [f"'{name}' (such as '{value}')" for name, value in kept_from.items() if value]
    if not shown:
        return []
    return [
        f"Not read as numbers or dates, because some values are none: {', '.join(shown)}. Where "
        "those stand for missing values, leave them empty in the file."
    ]


def _thousands_notes(frame: pd.DataFrame, table: Table) -> list[str]:
    marks = (table.target_decimal, *(column.decimal for column in table.schema.columns))
    return points_notes(points_in_doubt(frame)) if "," in marks else []


def points_notes(names: Sequence[str]) -> list[str]:
    """A warning of columns whose points may divide thousands: 1.234 beside 0,5."""
    if not names:
        return []
    return [
        f"Read with a decimal point, although others have a comma: {listed(names)}. Where points "
        "divide thousands there, remove them from the file."
    ]


def _row_notes(frame: pd.DataFrame, target: str, facts: Facts, gaps: Sequence[str]) -> list[str]:
    notes = []
    if facts.without_target:
        taken = f" ({listed(gaps)} read as missing; if that is a class, rename it)" if gaps else ""
        notes.append(
            f"Rows without a target, left out: {facts.without_target:,} of {facts.rows:,}{taken}."
        )
    if facts.without_weight:
        notes.append(f"Rows of weight 0, left out: {facts.without_weight:,} of {facts.rows:,}.")
    floats = frame.drop(columns=target).select_dtypes("float")
    numbers = floats.to_numpy(dtype=np.float64, na_value=np.nan)
    too_large = (~np.isnan(numbers) & ~usable(numbers)).sum(axis=0)
    if too_large.any():
        names = [str(name) for name in floats.columns[too_large > 0]]
        notes.append(
            f"Values that are infinite or beyond {LARGEST:g}, taken as missing: "
            f"{too_large.sum():,} in {listed(names)}."
        )
    return notes


def _class_notes(table: Table) -> list[str]:
    if table.task is not Task.CLASSIFICATION:
        return []
    counts = np.bincount(table.y.astype(np.int64), minlength=len(table.classes))
    rare = [table.classes[code] for code in np.flatnonzero(counts < LEAST_OF_A_CLASS)]
    if not rare:
        return []
    return [f"Classes with fewer than {LEAST_OF_A_CLASS} rows are hard to learn: {listed(rare)}."]
