"""A table that is ready for evaluation: a matrix, a target, and the meaning of both."""

import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats, Ints
from foretune._base.files import replace_file
from foretune._base.names import quote_names
from foretune._base.progress import SILENT, Progress
from foretune.errors import UsageError
from foretune.tables.column_inference import NO_DEADLINES, Deadlines, InspectedColumn
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.columns import UNUSED
from foretune.tables.row_structure import RowStructure, RowStructureKind
from foretune.tables.row_weights import RowWeights
from foretune.tables.schema import Schema
from foretune.tables.target import (
    LabelKind,
    TableProblem,
    Task,
    target_classes,
    target_numbers,
)

LEAST_ROWS = 10
NO_ROLES = ColumnRoles()
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
"""What a damaged archive, array or header can raise."""
SMALL = 2**26
"""Bytes that the arrays of any file may take."""
MOST_TIMES = 20
"""A larger file may have this many times its own size when unpacked."""


def _check_inflation(path: Path) -> None:
    """Refuse (ValueError) a small archive of large arrays. Our own are not compressed."""
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > max(SMALL, MOST_TIMES * path.stat().st_size):
        raise ValueError(f"{unpacked:,} bytes when unpacked")


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
    """In the ascending order of their values."""
    label_kind: LabelKind = LabelKind.TEXT
    target_decimal: str = ""
    """The decimal mark of a target of numbers as people write them; "" for plain ones."""
    arrangement: RowStructure | None = None
    """How rows belong together or follow each other, if they must not be split at random."""
    weighting: RowWeights | None = None
    """How much rows count, if they do not count alike."""

    def __len__(self) -> int:
        return len(self.y)

    @property
    def weights(self) -> Floats | None:
        """(n,), how much rows count; None if all count alike."""
        return None if self.weighting is None else self.weighting.values

    @property
    def weight_note(self) -> str:
        """The end of a clause that names the column of weights; "" if all rows count alike."""
        return "" if self.weighting is None else f", weighed by '{self.weighting.column}'"

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
        roles: ColumnRoles = NO_ROLES,
        progress: Progress = SILENT,
    ) -> "Table":
        """Make a table of a data frame, without the rows that lack a target or have weight 0."""
        problem = TableProblem.of(frame, target, task=task, roles=roles)
        return cls.for_problem(problem, problem.inspect(progress), name=name, progress=progress)

    @classmethod
    def for_problem(
        cls,
        asked: TableProblem,
        inspected: Sequence[InspectedColumn],
        *,
        name: str = "table",
        progress: Progress = SILENT,
        deadlines: Deadlines = NO_DEADLINES,
    ) -> "Table":
        """Make the table for a problem from its inspected columns.

        deadlines: when to stop testing which texts help.
        """
        frame, target, roles, mark = asked.frame, asked.target, asked.roles, asked.mark
        schema = Schema(tuple(each.column for each in inspected))
        present = frame[target].notna().to_numpy()
        known = frame if present.all() else frame[present]
        if len(known) < LEAST_ROWS:
            counting = "" if roles.weight is None else f" and a '{roles.weight}' above 0"
            raise UsageError(
                f"a table needs at least {LEAST_ROWS} rows with a target{counting}, but '{name}' "
                f"has {len(known)}: add rows",
                rule="too-few-rows",
                field=target,
                value=len(known),
            )
        if not schema.features:
            raise _nothing_to_learn_from(name, schema, roles.excluded_columns())
        column = asked.values[present]
        task = asked.task
        x = schema.encode(known, progress=progress)
        if task is Task.REGRESSION:
            y = target_numbers(column, target)
            table = cls(name, task, schema, x, y, target_decimal=asked.decimal)
        else:
            codes, classes, kind = target_classes(column, target)
            table = cls(name, task, schema, x, codes, classes, kind)
        table = replace(
            table,
            arrangement=roles.read_structure(frame, present, mark),
            weighting=roles.read_weights(frame, present, mark),
        )
        return table._with_helpful_texts(progress, deadlines.texts)

    def _with_helpful_texts(self, progress: Progress, until: float) -> "Table":
        """Drop the words of texts that do not improve a cheap model."""
        texts = self.schema.texts
        if not texts:
            return self
        from foretune.tables.useful_texts import select_useful_texts  # needs scikit-learn's models

        classes = self.task is Task.CLASSIFICATION
        help_ = select_useful_texts(
            self.x,
            self.y,
            texts,
            classification=classes,
            arrangement=self.arrangement,
            progress=progress,
            until=until,
        )
        return self._without_words([name for name, helps in help_.items() if not helps])

    @property
    def without_texts(self) -> "Table":
        """The table without the words of texts, if it has other columns. Meta-features use it."""
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
        """Return some rows of the table."""
        return replace(
            self,
            x=self.x[index],
            y=self.y[index],
            arrangement=None if self.arrangement is None else self.arrangement.rows(index),
            weighting=None if self.weighting is None else self.weighting.rows(index),
        )

    def sample(self, most: int, *, seed: int) -> "Table":
        """Return at most this many rows, drawn at random. Each class keeps its share."""
        if len(self) <= most:
            return self
        order = np.random.default_rng(seed).permutation(len(self))
        if self.task is Task.CLASSIFICATION:
            order = _spread(order, self.y[order])
        return self.rows(np.sort(order[:most]))

    def without_rare_classes(self, least: int) -> "Table":
        """Drop the rows of classes that have fewer than `least` of them."""
        if self.task is not Task.CLASSIFICATION:
            return self
        counts = np.bincount(self.y.astype(np.int64), minlength=len(self.classes))
        kept = np.flatnonzero(counts >= least)
        codes = np.full(len(counts), -1)
        codes[kept] = np.arange(len(kept))
        y = codes[self.y.astype(np.int64)]
        rows = np.flatnonzero(y >= 0)
        classes = tuple(self.classes[code] for code in kept)
        return replace(self.rows(rows), y=y[rows].astype(np.float64), classes=classes)

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
        arrays: dict[str, Any] = {"x": self.x, "y": self.y}
        if self.arrangement is not None:
            header["arranged"] = [str(self.arrangement.kind), self.arrangement.column]
            arrays["arrangement"] = self.arrangement.values
        if self.weighting is not None:
            header["weighted"] = [self.weighting.column, self.weighting.decimal]
            arrays["weights"] = self.weighting.values
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)

        def write(temporary: Path) -> None:
            with temporary.open("wb") as stream:
                np.savez(stream, header=text, **arrays)

        replace_file(path, write, is_private=True)

    @classmethod
    def open(cls, path: Path) -> "Table":
        """Read a file that `save` has written."""
        try:
            _check_inflation(path)
            with np.load(path, allow_pickle=False) as arrays:
                header, x, y = bytes(arrays["header"]), arrays["x"], arrays["y"]
                arranged, weights = arrays.get("arrangement"), arrays.get("weights")
            about = json.loads(header)
            if about["format"] != FORMAT:
                raise ValueError(f"format {about['format']}")
            schema = Schema.from_list(about["columns"])
            # Tables that were saved before labels had a kind are still in use.
            kind = LabelKind(about.get("label_kind", LabelKind.TEXT))
            classes = tuple(str(name) for name in about["classes"])
            decimal = str(about.get("target_decimal", ""))
            task = Task(about["task"])
            arrangement = None
            if arranged is not None:
                how, column = about["arranged"]
                arrangement = RowStructure(RowStructureKind(how), str(column), arranged)
            weighting = None
            if weights is not None:
                column, mark = about["weighted"]
                weighting = RowWeights(str(column), weights, str(mark))
            table = cls(
                str(about["name"]),
                task,
                schema,
                x,
                y,
                classes,
                kind,
                decimal,
                arrangement,
                weighting,
            )
            table._check()
        except _SPOILT as error:
            raise UsageError(
                f"a prepared table must be a file that was saved as one, but '{path}' is not "
                f"({error}): prepare it again",
                rule="prepared-table",
                value=str(path),
            ) from error
        return table

    def _check(self) -> None:
        """Refuse parts that do not belong together (ValueError)."""
        if self.x.dtype != np.float64 or self.x.shape != (len(self.y), len(self.schema.features)):
            raise ValueError(f"a matrix of {self.x.dtype} and the shape {self.x.shape}")
        if self.y.dtype != np.float64 or self.y.ndim != 1 or not np.isfinite(self.y).all():
            raise ValueError("a target that is no column of numbers")
        places = self.y if self.arrangement is None else self.arrangement.values
        if places.dtype != np.float64 or places.shape != self.y.shape:
            raise ValueError("an arrangement of other rows")
        weights = np.ones(len(self)) if self.weights is None else self.weights
        if weights.dtype != np.float64 or weights.shape != self.y.shape:
            raise ValueError("weights of other rows")
        if not (np.isfinite(weights) & (weights > 0.0)).all():
            raise ValueError("weights that are not positive")
        codes = np.arange(len(self.classes))
        if self.task is Task.CLASSIFICATION and not np.isin(self.y, codes).all():
            raise ValueError(f"a target beyond its {len(codes)} classes")


def _nothing_to_learn_from(name: str, schema: Schema, as_asked: Sequence[str]) -> UsageError:
    """Return the error that says why no column of a table is used."""
    left_out = {
        why: [column.name for column in schema.columns if column.kind is kind]
        for kind, why in UNUSED.items()
    } | {"as asked for": as_asked}
    shown = "; ".join(f"{why}: {quote_names(names)}" for why, names in left_out.items() if names)
    have = f"those of '{name}' are not used ({shown})" if shown else f"'{name}' has no other"
    return UsageError(
        f"a table needs a column to learn from beside its target, but {have}: add columns",
        rule="nothing-to-learn-from",
        value={why: list(names) for why, names in left_out.items() if names},
    )


def _spread(order: Ints, y: Floats) -> NDArray[np.int64]:
    """Return `order` rearranged so that every beginning of it holds each class by its share."""
    position = np.empty(len(y))
    for code in np.unique(y):
        members = np.flatnonzero(y == code)
        position[members] = (np.arange(len(members)) + 0.5) / len(members)
    return order[np.argsort(position, kind="stable")]
