"""Predicts a file of any size: it is read, predicted and written some rows at a time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from foretune._base.arrays import Floats
from foretune._base.files import check_folder_of, replace_file
from foretune._base.names import quote_names, suggestion
from foretune._base.progress import SILENT, Progress
from foretune.automl.final_model.model import Model
from foretune.automl.formulas import without_formulas
from foretune.errors import UsageError
from foretune.tables import (
    Column,
    ColumnKind,
    NumberFormatCheck,
    Schema,
    Task,
    read_parts_with_copies,
    table_bytes,
    with_commas,
)

PART_BYTES = 1 << 25
SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
WITH_GAPS = {
    **{pa.int8(): pd.Int8Dtype(), pa.int16(): pd.Int16Dtype()},
    **{pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()},
    **{pa.uint8(): pd.UInt8Dtype(), pa.uint16(): pd.UInt16Dtype()},
    **{pa.uint32(): pd.UInt32Dtype(), pa.uint64(): pd.UInt64Dtype()},
}
"""Types of pandas for whole numbers with missing values."""


@dataclass(frozen=True, slots=True)
class PredictionOptions:
    """The columns to write, and their form."""

    probabilities: bool = False
    """Whether to write one column for each class, named TARGET=CLASS."""
    keep: tuple[str, ...] = ()
    """The columns to copy; they come before the prediction."""
    raw: bool = False
    """Whether to write texts unchanged even if a spreadsheet would run them as formulas."""
    part_bytes: int = field(default_factory=lambda: PART_BYTES)
    """The number of bytes to read at a time."""


def predict_file(
    model: Model,
    data: Path,
    out: Path | IO[str],
    wanted: PredictionOptions,
    *,
    progress: Progress = SILENT,
) -> list[str]:
    """Predict every row of a file, and return notes about it, as sentences.

    out: a CSV, TSV or Parquet file, written in one step, or an open text stream (CSV).
    """
    if wanted.probabilities:
        model.probabilities(np.empty((0, len(model.schema.features))))  # This refuses regression.
    if not isinstance(out, Path):
        return _predict(model, data, CsvWriter(out, raw=wanted.raw), wanted, progress)
    _check_out(out, data)
    notes: list[str] = []

    def write(temporary: Path) -> None:
        with _writer(temporary, out.suffix.lower(), raw=wanted.raw) as writer:
            notes.extend(_predict(model, data, writer, wanted, progress))

    replace_file(out, write)
    return notes


def _check_out(out: Path, data: Path) -> None:
    if out.suffix.lower() not in (*SEPARATORS, *PARQUET):
        known = ", ".join((*SEPARATORS, *PARQUET))
        raise UsageError(
            f"predictions are written to {known}, but got '{out}': rename it",
            rule="unknown-format",
            field="out",
            value=str(out),
        )
    check_folder_of(out)
    if out.is_dir() or out.resolve() == data.resolve():
        what = "a folder" if out.is_dir() else "the table itself"
        raise UsageError(
            f"predictions need a file of their own, but '{out}' is {what}: rename it",
            rule="not-a-file",
            field="out",
            value=what,
        )


def _predict(
    model: Model,
    data: Path,
    writer: "CsvWriter | ParquetParts",
    wanted: PredictionOptions,
    progress: Progress,
) -> list[str]:
    rows = 0
    notes: list[str] = []
    schema, seen = model.schema, NumberFormatCheck(model.schema)
    unread: Counter[str] = Counter()
    progress.start("predicting", -(-table_bytes(data) // wanted.part_bytes))
    try:
        for part, copied in _parts(model, data, wanted):
            if not rows:
                _check_keep(model, part, wanted)
                notes = _unused_columns(model, part, wanted.keep)
            # If the decimal mark of a part is unclear, the parts before it decide.
            schema = schema.with_marks_of(part)
            if not rows:
                schema.check_numbers(part)
            seen.add(part, schema)
            predicted = []
            for some, x in schema.in_parts(part):
                unread.update(schema.count_unread(some, x))
                predicted.append(_predict_part(model, x, wanted))
            writer.write(copied, pd.concat(predicted, ignore_index=True))
            rows += len(part)
            progress.step(note=f"{rows:,} rows")
    finally:
        progress.stop()
    return [
        f"Predicted '{model.target}' for {rows:,} rows.",
        *notes,
        *seen.notes(),
        *_unread_notes(unread),
        *_formula_notes(writer),
    ]


def _formula_notes(writer: "CsvWriter | ParquetParts") -> list[str]:
    count = writer.apostrophes if isinstance(writer, CsvWriter) else 0
    if not count:
        return []
    return [
        f"{count:,} texts that a spreadsheet would run as formulas have an apostrophe before them; "
        "--raw writes them as they are."
    ]


def _parts(
    model: Model, data: Path, wanted: PredictionOptions
) -> Iterator[tuple[pd.DataFrame, pa.Table]]:
    """Yield some rows at a time, with columns that have decimal commas as texts.

    The first part shows which columns have them, and then reading starts again, because a later
    part with only 1.234 would be read as a fraction.
    """
    read = partial(read_parts_with_copies, data, wanted.keep, part_bytes=wanted.part_bytes)
    written = model.schema.raw_columns
    parts = read(texts=written)
    first = [next(parts)]
    if more := with_commas(_numbers(model), first[0][0]) - {*written}:
        parts = read(texts=written | dict.fromkeys(more, ()))
    else:
        yield first.pop()  # It is removed, because it takes as much memory as later parts.
    yield from parts


def _numbers(model: Model) -> Schema:
    """Return the schema of the model, with its target if that is a number; the file may have it."""
    if model.task is not Task.REGRESSION:
        return model.schema
    return model.schema.extend(
        Column(model.target, ColumnKind.NUMBER, decimal=model.target_decimal)
    )


def _unread_notes(unread: Counter[str]) -> list[str]:
    if not unread:
        return []
    shown = quote_names([f"{name} ({count:,})" for name, count in unread.most_common()])
    return [
        "Values that cannot be read, or that the model's own table did not have, taken as "
        f"missing, in: {shown}."
    ]


def _predict_part(model: Model, x: Floats, wanted: PredictionOptions) -> pd.DataFrame:
    if not wanted.probabilities:
        return pd.DataFrame({model.target: model.predict_rows(x)})
    shares = model.probabilities(x)
    columns: dict[str, Any] = {model.target: model.predict_rows(x, shares)}
    columns |= dict(zip(_probability_columns(model), shares.T, strict=True))
    return pd.DataFrame(columns)


def _probability_columns(model: Model) -> list[str]:
    return [f"{model.target}={name}" for name in model.classes]


def _check_keep(model: Model, part: pd.DataFrame, wanted: PredictionOptions) -> None:
    made = {model.target: "prediction"}
    if wanted.probabilities:
        made |= dict.fromkeys(_probability_columns(model), "probability of a class")
    for name in wanted.keep:
        if name not in part.columns:
            names = [str(column) for column in part.columns]
            raise UsageError(
                f"columns to keep must be in the table, but there is no '{name}': "
                f"{suggestion(name, names)}",
                rule="unknown-column",
                field=name,
            )
        if name in made:
            raise UsageError(
                f"the {made[name]} is called '{name}', so that no other column can be kept by this "
                "name: rename it in the table",
                rule="taken-name",
                field=name,
            )


def _unused_columns(model: Model, part: pd.DataFrame, keep: Sequence[str]) -> list[str]:
    known = {column.name for column in model.schema.columns} | {model.target, *keep}
    more = [str(name) for name in part.columns if str(name) not in known]
    return [f"Columns that the model does not know, ignored: {quote_names(more)}."] if more else []


class CsvWriter:
    """Appends rows to an open text stream.

    A spreadsheet runs texts that begin with = + - or @ as formulas, so an apostrophe is written
    before them, which it does not show. `raw` writes them as they are.
    """

    def __init__(self, stream: IO[str], separator: str = ",", *, raw: bool = False) -> None:
        self._stream, self._separator, self._header = stream, separator, True
        self._raw = raw
        self.apostrophes = 0
        """The number of cells and names that got an apostrophe."""

    def write(self, copied: pa.Table, predicted: pd.DataFrame) -> None:
        """Add rows; write the names of the columns before the first ones."""
        rows = _side_by_side(copied, predicted)
        if not self._raw:
            rows, count = without_formulas(rows, names=self._header)
            self.apostrophes += count
        rows.to_csv(self._stream, sep=self._separator, index=False, header=self._header)
        self._header = False


class ParquetParts:
    """Appends rows to a Parquet file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: ParquetWriter | None = None

    def write(self, copied: pa.Table, predicted: pd.DataFrame) -> None:
        """Add rows, with the types of the first ones."""
        table = _restore_types(copied, predicted)
        if self._writer is None:
            self._writer = ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()


def _restore_types(copied: pa.Table, predicted: pd.DataFrame) -> pa.Table:
    """Join copied and predicted columns; the copied ones keep types that pandas would change.

    The metadata lets pandas read whole numbers with missing values as such again.
    """
    whole = copied.select([field.name for field in copied.schema if field.type in WITH_GAPS])
    told = pa.Table.from_pandas(_side_by_side(whole, predicted), preserve_index=False)
    made = told.select(list(predicted.columns))
    schema = pa.schema([*copied.schema, *made.schema], metadata=told.schema.metadata)
    return pa.Table.from_arrays([*copied.columns, *made.columns], schema=schema)


def _side_by_side(copied: pa.Table, predicted: pd.DataFrame) -> pd.DataFrame:
    # The metadata about the index of the whole table is wrong for some of its columns.
    kept = copied.replace_schema_metadata(None).to_pandas(types_mapper=WITH_GAPS.get)
    rows: pd.DataFrame = pd.concat([kept, predicted], axis="columns")
    return rows


@contextmanager
def _writer(path: Path, suffix: str, *, raw: bool) -> Iterator[CsvWriter | ParquetParts]:
    if suffix in PARQUET:
        with closing(ParquetParts(path)) as parts:
            yield parts
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            yield CsvWriter(stream, SEPARATORS[suffix], raw=raw)
