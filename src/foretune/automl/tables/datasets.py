"""A table that is ready for evaluation: a matrix, a target, and what both mean."""

import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune.arrays import Bools, Floats, Ints
from foretune.automl.tables import dates
from foretune.automl.tables.cells import (
    are_written_durations,
    is_duration,
    not_numbers,
    numbers_in,
    read_numbers,
)
from foretune.automl.tables.columns import UNUSED
from foretune.automl.tables.schema import Schema, named_by_text
from foretune.automl.tables.written_numbers import TableMark, decimal_mark, table_mark
from foretune.errors import UsageError
from foretune.experience.naming import listed, suggestion
from foretune.files import replace_file
from foretune.progress import SILENT, Progress

LEAST_ROWS = 10
MOST_CLASSES_OF_NUMBERS = 20
"""A target of whole numbers with at most so many different ones is taken as classes."""
MOST_SHOWN = 3
"""Of the cells that keep a target from being numbers, so many are named."""
LARGEST_INTEGER = 2**63 - 1
FORMAT = 1
_SPOILT = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What an archive, an array or a header that was not saved as one can raise."""


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
        """The classes as they were."""
        if self is LabelKind.BOOLEAN:
            return np.array([text == "True" for text in classes])
        types = {LabelKind.TEXT: np.str_, LabelKind.INTEGER: np.int64, LabelKind.NUMBER: np.float64}
        return np.array(classes, dtype=np.str_).astype(types[self])


@dataclass(frozen=True, eq=False)
class Table:
    """n rows of d features, and the target."""

    name: str
    task: Task
    schema: Schema
    x: Floats
    """(n, d): categories as codes, NaN where a value is missing."""
    y: Floats
    """(n,): numbers, or codes of `classes`."""
    classes: tuple[str, ...] = ()
    """In ascending order of what they are."""
    label_kind: LabelKind = LabelKind.TEXT
    target_decimal: str = ""
    """What divides fractions in a target of numbers as people write them; "" for plain ones."""

    def __len__(self) -> int:
        return len(self.y)

    @property
    def categorical(self) -> Bools:
        """(d,), which columns hold codes."""
        return self.schema.categorical

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        target: str,
        *,
        name: str = "table",
        task: Task | None = None,
        progress: Progress = SILENT,
    ) -> "Table":
        """A table from a data frame; rows without a target are left out."""
        frame = named_by_text(frame)
        check_target(frame, target)
        mark = table_mark(frame)
        schema = Schema.infer(frame.drop(columns=target), mark)
        present = frame[target].notna().to_numpy()
        known = frame[present]
        if len(known) < LEAST_ROWS:
            raise UsageError(
                f"a table needs at least {LEAST_ROWS} rows with a target, but '{name}' has "
                f"{len(known)}: add rows"
            )
        if not schema.features:
            raise UsageError(_nothing_to_learn_from(name, schema))
        column, decimal = target_of(frame[target], task, mark)
        column = column[present]
        task = task or inferred_task(column)
        x = schema.matrix(known)
        if task is Task.REGRESSION:
            y = target_numbers(column, target)
            table = cls(name, task, schema, x, y, target_decimal=decimal)
        else:
            codes, classes, kind = _classes(column, target)
            table = cls(name, task, schema, x, codes, classes, kind)
        return table._with_helpful_texts(progress)

    def _with_helpful_texts(self, progress: Progress) -> "Table":
        """Without the words of texts that a cheap model does as well without."""
        texts = self.schema.texts
        if not texts:
            return self
        from foretune.automl.tables.helpful import helpful  # needs scikit-learn's models

        classes = self.task is Task.CLASSIFICATION
        help_ = helpful(self.x, self.y, texts, classification=classes, progress=progress)
        return self._without_words([name for name, helps in help_.items() if not helps])

    @property
    def without_texts(self) -> "Table":
        """Without the words of texts, if it has other columns; these describe it."""
        texts = self.schema.texts
        has_others = not np.any(list(texts.values()), axis=0).all() if texts else True
        return self._without_words(list(texts)) if has_others else self

    def _without_words(self, names: Sequence[str]) -> "Table":
        if not names:
            return self
        texts = self.schema.texts
        left = ~np.any([texts[name] for name in names], axis=0)
        return replace(self, schema=self.schema.without_words(names), x=self.x[:, left])

    def rows(self, index: Ints) -> "Table":
        """Some of its rows."""
        return replace(self, x=self.x[index], y=self.y[index])

    def sample(self, most: int, *, seed: int) -> "Table":
        """At most so many rows, drawn at random; of classes, each keeps its share."""
        if len(self) <= most:
            return self
        order = np.random.default_rng(seed).permutation(len(self))
        if self.task is Task.CLASSIFICATION:
            order = _spread(order, self.y[order])
        return self.rows(np.sort(order[:most]))

    def without_rare_classes(self, least: int) -> "Table":
        """Without the rows of classes that have fewer than `least` of them."""
        if self.task is not Task.CLASSIFICATION:
            return self
        counts = np.bincount(self.y.astype(np.int64), minlength=len(self.classes))
        kept = np.flatnonzero(counts >= least)
        codes = np.full(len(counts), -1)
        codes[kept] = np.arange(len(kept))
        y = codes[self.y.astype(np.int64)]
        rows = np.flatnonzero(y >= 0)
        classes = tuple(self.classes[code] for code in kept)
        return replace(self, x=self.x[rows], y=y[rows].astype(np.float64), classes=classes)

    def save(self, path: Path) -> None:
        """Write one file for worker processes."""
        header = {
            "format": FORMAT,
            "name": self.name,
            "task": str(self.task),
            "columns": self.schema.to_list(),
            "classes": list(self.classes),
            "label_kind": str(self.label_kind),
            "target_decimal": self.target_decimal,
        }
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)

        def write(temporary: Path) -> None:
            with temporary.open("wb") as stream:
                np.savez(stream, header=text, x=self.x, y=self.y)

        replace_file(path, write)

    @classmethod
    def open(cls, path: Path) -> "Table":
        """Read a file that `save` has written."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                header, x, y = bytes(arrays["header"]), arrays["x"], arrays["y"]
            about = json.loads(header)
            if about["format"] != FORMAT:
                raise ValueError(f"format {about['format']}")
            schema = Schema.from_list(about["columns"])
            # Tables that were prepared before labels had a kind are still in use.
            kind = LabelKind(about.get("label_kind", LabelKind.TEXT))
            classes = tuple(str(name) for name in about["classes"])
            decimal = str(about.get("target_decimal", ""))
            task = Task(about["task"])
            table = cls(str(about["name"]), task, schema, x, y, classes, kind, decimal)
            table._check()
        except _SPOILT as error:
            raise UsageError(
                f"a prepared table must be a file that was saved as one, but '{path}' is not "
                f"({error}): prepare it again"
            ) from error
        return table

    def _check(self) -> None:
        """Refuse parts that do not belong together (ValueError)."""
        if self.x.dtype != np.float64 or self.x.shape != (len(self.y), len(self.schema.features)):
            raise ValueError(f"a matrix of {self.x.dtype} and the shape {self.x.shape}")
        if self.y.dtype != np.float64 or self.y.ndim != 1 or not np.isfinite(self.y).all():
            raise ValueError("a target that is no column of numbers")
        codes = np.arange(len(self.classes))
        if self.task is Task.CLASSIFICATION and not np.isin(self.y, codes).all():
            raise ValueError(f"a target beyond its {len(codes)} classes")


def _nothing_to_learn_from(name: str, schema: Schema) -> str:
    """What is wrong with a table none of whose columns is used."""
    left_out = {
        why: [column.name for column in schema.columns if column.kind is kind]
        for kind, why in UNUSED.items()
    }
    shown = "; ".join(f"{why}: {listed(names)}" for why, names in left_out.items() if names)
    have = f"those of '{name}' are not used ({shown})" if shown else f"'{name}' has no other"
    return f"a table needs a column to learn from beside its target, but {have}: add columns"


def check_target(frame: pd.DataFrame, target: str) -> None:
    """Refuse a target that the table does not have."""
    if target not in frame.columns:
        raise UsageError(
            f"the target must be a column of the table, but there is no '{target}': "
            f"{suggestion(target, list(frame.columns))}"
        )


def inferred_task(target: "pd.Series[Any]") -> Task:
    """Classes are texts, booleans, categories, and few different whole numbers."""
    if not pd.api.types.is_numeric_dtype(target.dtype) or pd.api.types.is_bool_dtype(target.dtype):
        return Task.CLASSIFICATION
    values = np.unique(target.to_numpy(dtype=np.float64, na_value=np.nan))
    whole = bool((values == np.round(values)).all())
    few = len(values) <= min(MOST_CLASSES_OF_NUMBERS, len(target) / 10)
    return Task.CLASSIFICATION if whole and (few or len(values) == 2) else Task.REGRESSION


def target_of(
    column: "pd.Series[Any]", task: Task | None, mark: TableMark
) -> tuple["pd.Series[Any]", str]:
    """The column to predict, gaps included, as what its values are meant to be.

    With it, what divides fractions where its texts were numbers as people write them. mark: what
    decides where these can be read in two ways.
    """
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    if inferred == "decimal":
        # As databases have them.
        return _as_whole(pd.Series(read_numbers(column), column.index, name=column.name)), ""
    decimal = decimal_mark(column.dropna(), mark) if inferred == "string" else ""
    if decimal:
        numbers = pd.Series(read_numbers(column, decimal), column.index, name=column.name)
        if (task or inferred_task(numbers.dropna())) is Task.REGRESSION:
            return _whole(numbers), decimal
    return _whole(column), ""


def _whole(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Whole numbers as such, where only gaps among them made them floats."""
    gaps = pd.api.types.is_float_dtype(column.dtype) and column.isna().any()
    return _as_whole(column) if gaps else column


def _as_whole(column: "pd.Series[Any]") -> "pd.Series[Any]":
    present = column.dropna().to_numpy(dtype=np.float64)
    whole = np.isfinite(present).all() and (present == np.round(present)).all()
    return column.astype("Int64") if whole and np.abs(present).max(initial=0) < 2**53 else column


def target_numbers(column: "pd.Series[Any]", target: str) -> Floats:
    """(n,), the target of a regression; refuses what is no finite number."""
    if held := times_in(column):
        what, unit = held
        raise UsageError(
            f"the target of a regression must be finite numbers, but '{target}' holds {what}: "
            f"convert it to {unit}"
        )
    numbers = pd.to_numeric(column, errors="coerce")
    y = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(y).all():
        # Values that hardly repeat would be refused as classes.
        repeat = 2 * column.astype(str).nunique() <= len(column)
        remedy = "choose classification" if repeat else "leave them out"
        others = list(dict.fromkeys(not_numbers(column)))
        raise UsageError(
            f"the target of a regression must be finite numbers, but '{target}' holds "
            f"{listed(others, MOST_SHOWN)}: mend those rows or {remedy}"
        )
    return y


def times_in(column: "pd.Series[Any]") -> tuple[str, str] | None:
    """What spans or points of time a target holds, typed or written, and a unit to count them in.

    None for every other target: it is not ours to say where counting begins.
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


def _classes(column: "pd.Series[Any]", target: str) -> tuple[Floats, tuple[str, ...], LabelKind]:
    """The code of each row, what the codes mean, and what they were."""
    texts = [str(value) for value in column]
    names = sorted(set(texts))
    if len(names) < 2:
        raise UsageError(
            f"a classification needs at least two classes, but '{target}' holds only "
            f"'{names[0]}': choose another target"
        )
    kind = _label_kind(column)
    classes = tuple(names[each] for each in np.argsort(kind.labels(names), kind="stable"))
    codes = {name: float(code) for code, name in enumerate(classes)}
    return np.array([codes[text] for text in texts]), classes, kind


def codes_of(column: "pd.Series[Any]", classes: Sequence[str]) -> tuple[Floats, list[str]]:
    """(n,), the code of each row among classes that are known, and texts that are none of them.

    1 and 1.0 are the same class: a gap elsewhere in a column makes pandas read the one as the
    other, in the table of the classes or in this one.
    """
    codes = {_undotted(name): float(code) for code, name in enumerate(classes)}
    codes |= {name: float(code) for code, name in enumerate(classes)}
    texts = [str(value) for value in column]
    found = [codes.get(text, codes.get(_undotted(text), np.nan)) for text in texts]
    new = {text for text, code in zip(texts, found, strict=True) if np.isnan(code)}
    return np.array(found), sorted(new)


def _undotted(text: str) -> str:
    """A whole number without its `.0`; other texts as they are."""
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


def _spread(order: Ints, y: Floats) -> NDArray[np.int64]:
    """`order` rearranged so that every beginning of it holds each class by its share."""
    position = np.empty(len(y))
    for code in np.unique(y):
        members = np.flatnonzero(y == code)
        position[members] = (np.arange(len(members)) + 0.5) / len(members)
    return order[np.argsort(position, kind="stable")]
