"""Reading a table to learn from, with sentences about what was assumed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.data_frames import with_columns
from foretune._base.progress import SILENT, Progress
from foretune.errors import UsageError
from foretune.tables.cells import (
    has_leading_zeros,
    texts_without_number,
)
from foretune.tables.column_inference import NO_DEADLINES, Deadlines
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.columns import Column, ColumnKind
from foretune.tables.formats.reader import (
    NO_TEXTS,
    Texts,
    form_notes,
    has_types,
    read_cells,
    read_frame,
    read_parts,
    table_bytes,
    table_name,
)
from foretune.tables.formats.text_form import MISSING
from foretune.tables.number_formats import unit_of
from foretune.tables.prediction_tables import NumberFormatCheck, with_commas
from foretune.tables.remarks import TableFacts, table_notes
from foretune.tables.schema import Schema
from foretune.tables.table import NO_ROLES, Table
from foretune.tables.target import (
    LabelKind,
    TableProblem,
    Task,
    find_time_kind,
    infer_task,
)

MOST_BYTES = 400 * 2**20
"""Larger tables are sampled while they are read, so that any file fits into memory."""
DIFFERENT_SHARE = 0.5
"""If more than this share of the rows have classes of their own, the target is a name."""


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table to learn from, and what was assumed about it."""

    table: Table
    target: str
    facts: TableFacts
    notes: list[str]
    """Sentences for people."""
    target_unit: str | None = None
    """The unit of the target, as for other columns."""

    @property
    def numbers(self) -> Schema:
        """The columns to learn from, and the other columns that a test table reads as numbers."""
        table, by = self.table, self.table.weighting
        others = []
        if table.task is Task.REGRESSION:
            decimal, unit = table.target_decimal, self.target_unit
            others.append(Column(self.target, ColumnKind.NUMBER, decimal=decimal, unit=unit))
        if by is not None:
            others.append(Column(by.column, ColumnKind.NUMBER, decimal=by.decimal))
        return table.schema.extend(*others)

    @property
    def raw_columns(self) -> Texts:
        """The columns of a test table that are read as they are written, to keep their meaning."""
        table = self.table
        named = table.task is Task.CLASSIFICATION and table.label_kind is LabelKind.TEXT
        target = {self.target: table.classes} if named or table.target_decimal else {}
        by = table.weighting
        weight: Texts = {} if by is None or not by.decimal else {by.column: ()}
        return {**table.schema.raw_columns, **target, **weight}


@dataclass(frozen=True, slots=True)
class FileFindings:
    """Facts from reading the file of a table, beside its rows."""

    notes: tuple[str, ...] = ()
    """Sentences for people."""
    share: float = 1.0
    """The share of its rows that were read."""
    gaps: tuple[str, ...] = ()
    """The texts that were taken for a missing target."""


IN_MEMORY = FileFindings()


def read_table(
    source: str | Path | pd.DataFrame,
    target: str,
    *,
    name: str = "table",
    task: Task | str | None = None,
    roles: ColumnRoles = NO_ROLES,
    most_bytes: int = MOST_BYTES,
    progress: Progress = SILENT,
    deadlines: Deadlines = NO_DEADLINES,
) -> TrainingTable:
    """Read a file, or take a data frame, and make a table to learn from.

    A file gives the table its name, and is sampled if it is larger than `most_bytes`.

    task: without it, the target decides.
    roles: what other columns are for.
    deadlines: when to stop inspecting texts.
    """
    asked = None if task is None else _task(task)
    findings = IN_MEMORY
    if isinstance(source, pd.DataFrame):
        frame = source
    else:
        path = Path(source)
        name = table_name(path)
        frame, findings = _read_file(path, target, asked, most_bytes, progress)
    problem = TableProblem.of(frame, target, task=asked, roles=roles)
    _check_repeats(problem)
    inspected = problem.inspect(progress, deadlines)
    table = Table.for_problem(problem, inspected, name=name, progress=progress, deadlines=deadlines)
    facts = TableFacts(
        rows=len(frame),
        columns=problem.frame.shape[1] - len(roles.excluded_columns()) - 1,
        without_target=len(problem.frame) - len(problem.known),
        without_weight=len(frame) - len(problem.frame),
        kinds=dict(Counter(column.kind for column in table.schema.columns)),
        share=findings.share,
        columns_cut_short=deadlines.columns_are_over,
        texts_cut_short=deadlines.texts_are_over,
    )
    notes = [*findings.notes, *table_notes(table, facts, problem, inspected, findings.gaps)]
    unit = unit_of(problem.frame[target]) if problem.decimal else None
    return TrainingTable(table, target, facts, notes, unit)


def _read_file(
    path: Path, target: str, asked: Task | None, most_bytes: int, progress: Progress
) -> tuple[pd.DataFrame, FileFindings]:
    """Read the rows of a file; read the target again if its exact texts matter."""
    progress.start(f"reading {path.name}{_large(path)}", None)
    try:
        frame, share = read_sample(path, most_bytes=most_bytes)
        gaps: list[str] = []
        looks_again = target in frame.columns and _needs_second_look(frame[target], asked)
        if looks_again and not has_types(path):
            cells = _sample_rows(read_cells(path, list(frame.columns).index(target)), share)
            gaps = sorted({*cells.unique()}.intersection(MISSING) - {""})
            if has_leading_zeros(cells):
                frame = with_columns(frame, {target: cells.mask(cells.isin(MISSING))})
    finally:
        progress.stop()
    notes = [*form_notes(path), *size_notes(share, "The table", most_bytes)]
    return frame, FileFindings(tuple(notes), share, tuple(gaps))


def read_sample(
    path: str | Path, *, most_bytes: int = MOST_BYTES, texts: Texts = NO_TEXTS
) -> tuple[pd.DataFrame, float]:
    """Read the table in a file, or a sample if it is larger than `most_bytes`; and the share read.

    texts: as for `read_frame`.
    """
    path = Path(path)
    share = _share(path, most_bytes)
    if share == 1.0:
        return read_frame(path, texts=texts), share
    drawn = _sample_rows(read_parts(path, texts=texts), share)
    unlike = [str(name) for name in drawn.columns if _has_mixed_types(drawn[name])]
    if unlike and not has_types(path):
        # 01 is a number in a part that has only numbers, and a text in the next part.
        texts = {**dict.fromkeys(unlike, ()), **texts}
        drawn = _sample_rows(read_parts(path, texts=texts), share)
    return drawn, share


def read_test_table(path: str | Path, training: TrainingTable) -> tuple[pd.DataFrame, list[str]]:
    """Read the table that a model is tested on, with sentences about it.

    Its columns mean the same as at the fit: 01 is a text if it was one then. But it may write
    numbers differently.
    """
    frame, share = read_sample(path, texts=training.raw_columns)
    if more := with_commas(training.numbers, frame) - {*training.raw_columns}:
        # In a column that has only 1.234, pandas would otherwise have read fractions.
        texts = {**training.raw_columns, **dict.fromkeys(more, ())}
        frame, share = read_sample(path, texts=texts)
    seen = NumberFormatCheck(training.numbers)
    seen.add(frame, training.numbers.with_marks_of(frame))
    return frame, [
        *size_notes(share, "The test table"),
        *(f"In the test table: {note[0].lower()}{note[1:]}" for note in seen.notes()),
    ]


def size_notes(share: float, what: str, most_bytes: int = MOST_BYTES) -> list[str]:
    """Return a sentence about a table of which only this share of the rows was read."""
    if share == 1.0:
        return []
    return [
        f"{what} is larger than {most_bytes / 2**20:,.0f} MB: a random {share:.1%} of its rows is "
        "used."
    ]


def _large(path: Path) -> str:
    """Return the size of a large file in words; "" for a small one."""
    size = path.stat().st_size / 2**20 if path.is_file() else 0.0
    return f" ({size:,.0f} MB)" if size >= 1.0 else ""


def _share(path: Path, most_bytes: int) -> float:
    return min(1.0, most_bytes / max(table_bytes(path), 1))


def _sample_rows(parts: Iterable[Any], share: float) -> Any:
    """Draw some rows of a table that comes in parts. They do not depend on the parts."""
    rng = np.random.default_rng(0)
    return pd.concat([part[rng.random(len(part)) < share] for part in parts], ignore_index=True)


def _has_mixed_types(column: "pd.Series[Any]") -> bool:
    return column.dtype == object and pd.api.types.infer_dtype(column).startswith("mixed")


def _needs_second_look(target: "pd.Series[Any]", asked: Task | None) -> bool:
    """Return whether the file tells more about a target: its gaps, or names such as 007."""
    if target.isna().any():
        return True
    return _is_number(target) and (asked or infer_task(target)) is Task.CLASSIFICATION


def _task(given: Task | str) -> Task:
    try:
        return Task(given)
    except ValueError:
        raise UsageError(
            f"the task must be {' or '.join(Task)}, but got '{given}': choose one of them",
            rule="unknown-task",
            field="task",
            value=given,
        ) from None


def _check_repeats(problem: TableProblem) -> None:
    """Refuse a target that looks like a name or a number of the rows."""
    known, target = problem.known, problem.target
    if known.empty:
        return
    if problem.task is Task.REGRESSION:
        if problem.asked is None and _counts_rows(known):
            raise UsageError(
                f"the target must be something to predict, but '{target}' counts the rows: choose "
                f"another one, or ask for {Task.REGRESSION}",
                rule="target-counts-rows",
                field=target,
            )
        return
    different = known.astype(str).nunique()
    if different > max(2, DIFFERENT_SHARE * len(known)):
        raise UsageError(
            f"the classes of a target must repeat, but '{target}' has {different:,} different "
            f"values in {len(known):,} rows, as an identifier has: choose another target"
            + _as_numbers_instead(known),
            rule="classes-must-repeat",
            field=target,
            value=different,
        )


def _as_numbers_instead(known: "pd.Series[Any]") -> str:
    """Return advice on predicting a target as a number if its classes hardly repeat, or ""."""
    if _is_number(known):
        return f", or ask for {Task.REGRESSION}"
    if held := find_time_kind(known):
        what, unit = held
        return f", or convert it to {unit}, because {what} are predicted as numbers"
    others = texts_without_number(known)
    if not others or 2 * len(others) >= len(known):
        return ""
    return (
        f", or, if it is meant to be a number, correct cells such as '{others[0]}' or leave their "
        "rows out"
    )


def _is_number(known: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(known.dtype)


def _counts_rows(known: "pd.Series[Any]") -> bool:
    steps = np.diff(known.to_numpy(dtype=np.float64))
    return len(steps) > 1 and bool((steps == 1.0).all())
