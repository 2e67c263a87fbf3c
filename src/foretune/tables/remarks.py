"""What was assumed about a table, in sentences for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.names import quote_names
from foretune.tables.cells import LARGEST
from foretune.tables.column_inference import InspectedColumn
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.columns import UNUSED, ColumnKind, count_kinds
from foretune.tables.number_formats import find_doubtful_points
from foretune.tables.schema import Schema
from foretune.tables.table import Table
from foretune.tables.target import TableProblem, Task
from foretune.tables.vocabulary import MOST_TEXTS

LEAST_OF_A_CLASS = 5
MANY_COLUMNS = 1000
NO_TIME_FOR_TEXTS = (
    "text that differs in most rows and whose words do not help, or were not tested for lack of "
    "time"
)
WRITTEN = {
    ",": "with a decimal comma",
    ".": "with separated thousands, with a unit, or with brackets or a trailing sign for minus",
}
"""How numbers are written, for each decimal mark."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a table was when it was read."""

    rows: int
    columns: int
    """The number of columns beside the target."""
    without_target: int
    """Rows without a target, which were left out."""
    without_weight: int
    """Rows of weight 0, which were left out."""
    kinds: dict[ColumnKind, int]
    """How many columns are of which kind."""
    share: float = 1.0
    """The share of the file's rows that were read."""
    columns_cut_short: bool = False
    """Whether time ended before all texts were searched for numbers and dates."""
    texts_cut_short: bool = False
    """Whether time ended before all texts were tested for words that help."""


def table_notes(
    table: Table,
    facts: TableFacts,
    asked: TableProblem,
    inspected: Sequence[InspectedColumn],
    gaps: Sequence[str],
) -> list[str]:
    """Return sentences about a table to learn from.

    gaps: the texts that were taken for a missing target.
    """
    target, roles = asked.target, asked.roles
    return [
        _shape_note(facts),
        _task_note(table, target, asked.known, asked.asked),
        *_number_format_notes(table, target),
        *_gap_notes(table.schema),
        *_column_notes(table.schema, facts),
        *_role_notes(roles, asked.frame[asked.frame[target].notna()]),
        *_odd_text_notes(inspected),
        *_thousands_notes(asked.frame.drop(columns=roles.excluded_columns()), table),
        *_row_notes(facts, gaps),
        *_too_large_notes(inspected),
        *_class_notes(table),
    ]


def _shape_note(facts: TableFacts) -> str:
    used = {kind: count for kind, count in facts.kinds.items() if kind not in UNUSED}
    return f"{facts.rows:,} rows; columns beside the target: {count_kinds(used)}."


def _task_note(table: Table, target: str, known: "pd.Series[Any]", asked: Task | None) -> str:
    different = known.nunique()
    if asked is not None:
        why = "as asked"
    elif not pd.api.types.is_numeric_dtype(known.dtype) or pd.api.types.is_bool_dtype(known.dtype):
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


def _number_format_notes(table: Table, target: str) -> list[str]:
    marks = {column.name: column.decimal for column in table.schema.columns}
    marks[target] = table.target_decimal
    named = {how: [n for n in marks if marks[n] == mark] for mark, how in WRITTEN.items()}
    return [
        f"Read as numbers {how}: {quote_names(names)}." for how, names in named.items() if names
    ]


def _gap_notes(schema: Schema) -> list[str]:
    gaps = [f"{quote_names(each.gaps)} in '{each.name}'" for each in schema.columns if each.gaps]
    if not gaps:
        return []
    return [
        f"Read as missing beside numbers or dates: {', '.join(gaps)}. If it stands for a value, "
        "write the value instead."
    ]


def _column_notes(schema: Schema, facts: TableFacts) -> list[str]:
    notes = [
        f"The texts of '{column.name}' count by their words. {len(column.words):,} words repeat: "
        f"{quote_names(column.words)}."
        for column in schema.columns
        if column.words
    ]
    texts = [each for each in schema.columns if each.kind in (ColumnKind.TEXT, ColumnKind.WORDS)]
    if len(texts) > MOST_TEXTS:
        notes.append(
            f"Of {len(texts):,} columns of texts, only the {MOST_TEXTS} longest with words that "
            "repeat were looked at."
        )
    if facts.columns_cut_short:
        notes.append(
            "There was no time to search all texts for numbers and dates. The other texts are "
            "categories if they repeat. Give more --time."
        )
    for kind, why in UNUSED.items():
        cut_short = kind is ColumnKind.TEXT and facts.texts_cut_short
        names = [column.name for column in schema.columns if column.kind is kind]
        if names:
            notes.append(
                f"Not used, {NO_TIME_FOR_TEXTS if cut_short else why}: {quote_names(names)}."
            )
    columns = len(schema.features) - sum(len(column.words) for column in schema.columns)
    if columns > MANY_COLUMNS:
        notes.append(
            f"There are {columns:,} columns to learn from: every trial takes longer, and pipelines "
            "that select columns are more useful."
        )
    return notes


def _role_notes(roles: ColumnRoles, known: pd.DataFrame) -> list[str]:
    """Return how columns were used, and how many rows with a target lack a group."""
    left_out = roles.excluded_columns()
    notes = [f"Not used, as asked for: {quote_names(left_out)}."] if left_out else []
    gaps = 0 if roles.group is None else int(known[roles.group].isna().sum())
    if gaps:
        notes.append(
            f"Rows without a '{roles.group}', each a group of its own: {gaps:,} of {len(known):,}."
        )
    return notes


def _odd_text_notes(inspected: Sequence[InspectedColumn]) -> list[str]:
    """Name the columns that some values keep from being numbers or dates."""
    shown = [
        f"'{each.column.name}' (such as '{each.odd_text}')" for each in inspected if each.odd_text
    ]
    if not shown:
        return []
    return [
        f"Not read as numbers or dates, because some values are neither: {', '.join(shown)}. If "
        "those stand for missing values, leave them empty in the file."
    ]


def _thousands_notes(frame: pd.DataFrame, table: Table) -> list[str]:
    marks = (table.target_decimal, *(column.decimal for column in table.schema.columns))
    return points_notes(find_doubtful_points(frame)) if "," in marks else []


def points_notes(names: Sequence[str]) -> list[str]:
    """Return a warning of columns whose points may divide thousands: 1.234 beside 0,5."""
    if not names:
        return []
    return [
        f"Read with a decimal point, although others have a comma: {quote_names(names)}. If the "
        "points separate thousands, remove them from the file."
    ]


def _row_notes(facts: TableFacts, gaps: Sequence[str]) -> list[str]:
    notes = []
    if facts.without_target:
        taken = (
            f" ({quote_names(gaps)} read as missing; if that is a class, rename it)" if gaps else ""
        )
        notes.append(
            f"Rows without a target, left out: {facts.without_target:,} of {facts.rows:,}{taken}."
        )
    if facts.without_weight:
        notes.append(f"Rows of weight 0, left out: {facts.without_weight:,} of {facts.rows:,}.")
    return notes


def _too_large_notes(inspected: Sequence[InspectedColumn]) -> list[str]:
    too_large = {each.column.name: each.too_large for each in inspected if each.too_large}
    if not too_large:
        return []
    return [
        f"Values that are infinite or beyond {LARGEST:g}, read as missing: "
        f"{sum(too_large.values()):,} in {quote_names(list(too_large))}."
    ]


def _class_notes(table: Table) -> list[str]:
    if table.task is not Task.CLASSIFICATION:
        return []
    counts = np.bincount(table.y.astype(np.int64), minlength=len(table.classes))
    rare = [table.classes[code] for code in np.flatnonzero(counts < LEAST_OF_A_CLASS)]
    if not rare:
        return []
    return [
        f"Classes with fewer than {LEAST_OF_A_CLASS} rows are hard to learn: {quote_names(rare)}."
    ]
