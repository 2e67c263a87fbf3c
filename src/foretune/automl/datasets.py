"""A table that is ready for evaluation: a matrix, a target, and what both mean."""

import json
import zipfile
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune.arrays import Bools, Floats, Ints
from foretune.automl.columns import Schema
from foretune.errors import UsageError
from foretune.experience.atomic import replace_file
from foretune.experience.naming import suggestion

LEAST_ROWS = 10
MOST_CLASSES_OF_NUMBERS = 20
"""A target of whole numbers with at most so many different ones is taken as classes."""
FORMAT = 1


class Task(StrEnum):
    """What is to be predicted."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"


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

    def __len__(self) -> int:
        return len(self.y)

    @property
    def categorical(self) -> Bools:
        """(d,), which columns hold codes."""
        return self.schema.categorical

    @classmethod
    def of(
        cls, frame: pd.DataFrame, target: str, *, name: str = "table", task: Task | None = None
    ) -> "Table":
        """A table from a data frame; rows without a target are left out."""
        names = [str(column) for column in frame.columns]
        if target not in names:
            raise UsageError(
                f"the target must be a column of the table, but there is no '{target}': "
                f"{suggestion(target, names)}"
            )
        schema = Schema.infer(frame.drop(columns=target))
        known = frame[frame[target].notna()]
        if len(known) < LEAST_ROWS:
            raise UsageError(
                f"a table needs at least {LEAST_ROWS} rows with a target, but '{name}' has "
                f"{len(known)}: add rows"
            )
        if not schema.features:
            raise UsageError(
                f"a table needs a column that differs from row to row beside its target, but "
                f"'{name}' has none: add columns"
            )
        column = known[target]
        task = task or inferred_task(column)
        y, classes = _target(column, task, target)
        return cls(name, task, schema, schema.matrix(known), y, classes)

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
            return cls(about["name"], Task(about["task"]), schema, x, y, tuple(about["classes"]))
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise UsageError(
                f"a prepared table must be a file that was saved as one, but '{path}' is not "
                f"({error}): prepare it again"
            ) from error


def inferred_task(target: "pd.Series[Any]") -> Task:
    """Classes are texts, booleans, categories, and few different whole numbers."""
    if not pd.api.types.is_numeric_dtype(target.dtype) or pd.api.types.is_bool_dtype(target.dtype):
        return Task.CLASSIFICATION
    values = np.unique(target.to_numpy(dtype=np.float64, na_value=np.nan))
    whole = bool((values == np.round(values)).all())
    few = len(values) <= min(MOST_CLASSES_OF_NUMBERS, len(target) / 10)
    return Task.CLASSIFICATION if whole and (few or len(values) == 2) else Task.REGRESSION


def _target(column: "pd.Series[Any]", task: Task, target: str) -> tuple[Floats, tuple[str, ...]]:
    if task is Task.REGRESSION:
        y = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isfinite(y).all():
            raise UsageError(
                f"the target of a regression must be finite numbers, but '{target}' holds others: "
                "mend those rows or choose classification"
            )
        return y, ()
    texts = np.array([str(value) for value in column])
    classes, codes = np.unique(texts, return_inverse=True)
    if len(classes) < 2:
        raise UsageError(
            f"a classification needs at least two classes, but '{target}' holds only "
            f"'{classes[0]}': choose another target"
        )
    return codes.astype(np.float64), tuple(str(name) for name in classes)


def _spread(order: Ints, y: Floats) -> NDArray[np.int64]:
    """`order` rearranged so that every beginning of it holds each class by its share."""
    position = np.empty(len(y))
    for code in np.unique(y):
        members = np.flatnonzero(y == code)
        position[members] = (np.arange(len(members)) + 0.5) / len(members)
    return order[np.argsort(position, kind="stable")]
