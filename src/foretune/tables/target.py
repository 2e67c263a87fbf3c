"""The target of a table, its task, and the columns to learn from."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_hashable

from foretune._base.arrays import Floats
from foretune._base.names import quote_names
from foretune._base.progress import SILENT, Progress
from foretune.errors import UsageError
from foretune.tables import dates
from foretune.tables.cells import (
    are_plain_numbers,
    are_written_durations,
    is_duration,
    numbers_in,
    read_numbers,
    texts_without_number,
)
from foretune.tables.column_inference import (
    NO_DEADLINES,
    Deadlines,
    InspectedColumn,
    inspect_columns,
)
from foretune.tables.column_roles import ColumnRoles, check_target_exists
from foretune.tables.number_formats import TableMark, decimal_mark, new_numbers_mark, table_mark
from foretune.tables.schema import as_table

MOST_CLASSES_OF_NUMBERS = 20
"""A target of whole numbers with at most this many different ones holds classes."""
MOST_SHOWN = 3
"""How many cells that are no numbers a message names."""
LONGEST_SHOWN = 50
LARGEST_INTEGER = 2**63 - 1


class Task(StrEnum):
    """What is to be predicted."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"


class LabelKind(StrEnum):
    """What the classes of a table were before they became texts."""

    TEXT = "text"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"

    def labels(self, classes: Sequence[str]) -> NDArray[Any]:
        """Return the classes in their original type."""
        if self is LabelKind.BOOLEAN:
            return np.array([text == "True" for text in classes])
        types = {LabelKind.TEXT: np.str_, LabelKind.INTEGER: np.int64, LabelKind.NUMBER: np.float64}
        return np.array(classes, dtype=np.str_).astype(types[self])


def check_target(frame: pd.DataFrame, target: str) -> None:
    """Refuse a target that the table does not have, or that cannot be predicted."""
    check_target_exists(list(frame.columns), target)
    cells = frame[target].dropna() if frame[target].dtype == object else ()
    held = next((cell for cell in cells if not is_hashable(cell)), None)
    if held is not None:
        raise UsageError(
            f"a target must hold numbers or texts, but '{target}' holds values of many parts, such "
            f"as {str(held)[:LONGEST_SHOWN]}: choose another one, or make a column of one part",
            rule="target-of-many-parts",
            field=target,
        )


def infer_task(target: "pd.Series[Any]") -> Task:
    """Return the task: texts, booleans, categories and few different whole numbers are classes."""
    if not pd.api.types.is_numeric_dtype(target.dtype) or pd.api.types.is_bool_dtype(target.dtype):
        return Task.CLASSIFICATION
    values = np.unique(target.to_numpy(dtype=np.float64, na_value=np.nan))
    whole = bool((values == np.round(values)).all())
    few = len(values) <= min(MOST_CLASSES_OF_NUMBERS, len(target) / 10)
    return Task.CLASSIFICATION if whole and (few or len(values) == 2) else Task.REGRESSION


def target_of(
    column: "pd.Series[Any]", task: Task | None, mark: TableMark
) -> tuple["pd.Series[Any]", str]:
    """Return the column to predict in its right type, gaps included, and its decimal mark.

    mark: decides if numbers can be read in two ways.
    """
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    if inferred == "decimal":
        # as databases have them
        return _as_whole(pd.Series(read_numbers(column), column.index, name=column.name)), ""
    decimal = _mark_of(column.dropna(), mark) if inferred == "string" else None
    if decimal is not None:
        numbers = pd.Series(read_numbers(column, decimal), column.index, name=column.name)
        if (task or infer_task(numbers.dropna())) is Task.REGRESSION:
            return _whole(numbers), decimal
    return _whole(column), ""


def _mark_of(texts: "pd.Series[str]", mark: TableMark) -> str | None:
    """Return the decimal mark of numbers in texts, "" for plain ones; None for other texts."""
    # They are read like the columns to learn from: 1.101 is the number that it looks like.
    if are_plain_numbers(texts):
        return ""
    return decimal_mark(texts, mark) or None


def _whole(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return whole numbers in a type of whole numbers, if only gaps made them floats."""
    gaps = pd.api.types.is_float_dtype(column.dtype) and column.isna().any()
    return _as_whole(column) if gaps else column


def _as_whole(column: "pd.Series[Any]") -> "pd.Series[Any]":
    present = column.dropna().to_numpy(dtype=np.float64)
    whole = np.isfinite(present).all() and (present == np.round(present)).all()
    return column.astype("Int64") if whole and np.abs(present).max(initial=0) < 2**53 else column


def target_numbers(column: "pd.Series[Any]", target: str) -> Floats:
    """Return (n,), the target of a regression; refuse anything but finite numbers."""
    if held := find_time_kind(column):
        what, unit = held
        raise UsageError(
            f"the target of a regression must be finite numbers, but '{target}' holds {what}: "
            f"convert it to {unit}",
            rule="target-is-a-time",
            field=target,
            value=what,
        )
    numbers = pd.to_numeric(column, errors="coerce")
    y = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(y).all():
        # As classes, values that hardly repeat would be refused.
        repeat = 2 * column.astype(str).nunique() <= len(column)
        remedy = "choose classification" if repeat else "leave them out"
        others = list(dict.fromkeys(texts_without_number(column)))
        raise UsageError(
            f"the target of a regression must be finite numbers, but '{target}' holds "
            f"{quote_names(others, MOST_SHOWN)}: correct those rows or {remedy}",
            rule="target-is-no-number",
            field=target,
            value=others,
        )
    return y


def new_target_numbers(column: "pd.Series[Any]", target: str, mark: TableMark) -> Floats:
    """Return the same for a test table, where 1.101 is 1101 if `mark` says so."""
    texts = pd.api.types.infer_dtype(column) == "string"
    if texts and (decimal := new_numbers_mark(column, mark)):
        column = pd.Series(read_numbers(column, decimal), column.index)
    return target_numbers(column, target)


def find_time_kind(column: "pd.Series[Any]") -> tuple[str, str] | None:
    """Return what durations or dates a target holds, and a unit to count them in.

    Return None for every other target. Where counting begins is the user's choice.
    """
    present = column.dropna()
    if present.empty:
        return None
    if is_duration(present) or are_written_durations(present):
        return "durations", "seconds"
    # A text such as 2024 may be a number as well.
    is_text = pd.api.types.infer_dtype(present) == "string" and not numbers_in(present, "")
    if dates.is_date(present) or (is_text and dates.date_format(present)):
        return "dates", "days since some day"
    return None


def target_classes(
    column: "pd.Series[Any]", target: str
) -> tuple[Floats, tuple[str, ...], LabelKind]:
    """Return the code of each row, the class of each code, and the original type of the classes."""
    if pd.api.types.is_float_dtype(column.dtype) and np.isinf(column.to_numpy(np.float64)).any():
        raise UsageError(
            f"the classes of a target must be finite where they are numbers, but '{target}' holds "
            "infinite ones: correct those rows or leave them out",
            rule="infinite-class",
            field=target,
        )
    texts = [str(value) for value in column]
    names = sorted(set(texts))
    if len(names) < 2:
        raise UsageError(
            f"a classification needs at least two classes, but '{target}' holds only "
            f"'{names[0]}': choose another target",
            rule="one-class",
            field=target,
            value=names[0],
        )
    kind = _label_kind(column)
    classes = tuple(names[each] for each in np.argsort(kind.labels(names), kind="stable"))
    codes = {name: float(code) for code, name in enumerate(classes)}
    return np.array([codes[text] for text in texts]), classes, kind


def encode_classes(column: "pd.Series[Any]", classes: Sequence[str]) -> tuple[Floats, list[str]]:
    """Return (n,), the code of each row among known classes, and the texts that are no such class.

    1 and 1.0 are the same class, because pandas reads 1 as 1.0 in a column with a gap.
    """
    codes = {_strip_decimal_zero(name): float(code) for code, name in enumerate(classes)}
    codes |= {name: float(code) for code, name in enumerate(classes)}
    texts = [str(value) for value in column]
    found = [codes.get(text, codes.get(_strip_decimal_zero(text), np.nan)) for text in texts]
    new = {text for text, code in zip(texts, found, strict=True) if np.isnan(code)}
    return np.array(found), sorted(new)


def _strip_decimal_zero(text: str) -> str:
    """Return a whole number without its `.0`, and other texts as they are."""
    head, dot, zero = text.rpartition(".")
    return head if dot and zero == "0" and head.removeprefix("-").isdecimal() else text


def _label_kind(column: "pd.Series[Any]") -> LabelKind:
    values = column.tolist()
    inferred = pd.api.types.infer_dtype(values, skipna=True)
    if inferred == "integer" and max(abs(int(value)) for value in values) > LARGEST_INTEGER:
        return LabelKind.TEXT
    kinds = {
        "boolean": LabelKind.BOOLEAN,
        "integer": LabelKind.INTEGER,
        "floating": LabelKind.NUMBER,
    }
    return kinds.get(inferred, LabelKind.TEXT)


@dataclass(frozen=True, eq=False, slots=True)
class TableProblem:
    """A column to predict from other columns."""

    frame: pd.DataFrame
    """The table without the rows of weight 0."""
    target: str
    values: "pd.Series[Any]"
    """The cells of the target in their right type, missing ones included."""
    known: "pd.Series[Any]"
    """The cells of the target that have a value."""
    decimal: str
    """The decimal mark of the target, if people wrote its numbers."""
    asked: Task | None
    """The task that the user named, or None."""
    task: Task
    """The task that the user named, or the one that suits the values."""
    roles: ColumnRoles
    mark: TableMark
    """How the table writes numbers that can be read in two ways."""

    @classmethod
    def of(
        cls, frame: pd.DataFrame, target: str, *, task: Task | None, roles: ColumnRoles
    ) -> "TableProblem":
        """Find the target and the roles; refuse columns that are missing or unsuitable."""
        frame = as_table(frame)
        check_target(frame, target)
        roles.check(list(frame.columns), target)
        frame = roles.drop_weightless_rows(frame, target)
        mark = table_mark(frame)
        values, decimal = target_of(frame[target], task, mark)
        known = values.dropna()
        return cls(
            frame, target, values, known, decimal, task, task or infer_task(known), roles, mark
        )

    @property
    def learnt_from(self) -> pd.DataFrame:
        """The columns to learn from."""
        return self.frame.drop(columns=[self.target, *self.roles.excluded_columns()])

    def inspect(
        self, progress: Progress = SILENT, deadlines: Deadlines = NO_DEADLINES
    ) -> tuple[InspectedColumn, ...]:
        """Find out what the columns to learn from are."""
        return inspect_columns(self.learnt_from, self.mark, progress, deadlines=deadlines)
