"""Writing an experience to a Parquet file, one row group at a time."""

import base64
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foretune._base.files import replace_file
from foretune._base.progress import SILENT, Progress
from foretune.errors import DamagedError, ExperienceError
from foretune.experience.checks import check_metrics_have_values
from foretune.experience.config_rows import ConfigRows, configs_apart
from foretune.experience.curves import CurveColumns
from foretune.experience.data import METRIC_PREFIX, ExperienceData, MetaFeatures
from foretune.experience.parquet_format import (
    CHECKSUM_KEY,
    CONFIGS_KEY,
    CURVE_PREFIX,
    CURVE_SECONDS,
    CURVE_STEPS,
    FORMAT,
    HEADER_KEY,
    LARGEST_TEXT,
    LIMITS,
    VERSION,
    VERSION_IN_ROWS,
    VERSION_WITH_CURVES,
    FileLimits,
    check_inflation,
    check_rows,
    checksum,
)
from foretune.experience.selection import compact

_POINT = pa.field("element", pa.float64(), nullable=False)
_SHORT_POINT = pa.field("element", pa.float32(), nullable=False)
SHOWN_AROUND = 10
"""Characters shown before and after one that cannot be written."""


def write_experience(
    experience: ExperienceData,
    path: Path,
    progress: Progress = SILENT,
    *,
    limits: FileLimits = LIMITS,
) -> None:
    """Write an experience, and replace what is at `path` in one step."""
    check_metrics_have_values(experience.metrics, experience.values, experience.status)
    if path.is_dir():
        raise ExperienceError(
            f"an experience is saved as one file, but '{path}' is a folder: add a file name",
            rule="path-is-folder",
            field="path",
            value=path,
        )
    progress.start("saving the experience (rows)", len(experience))
    try:
        small = compact(experience)
        replace_file(path, lambda temporary: _write_readable(small, temporary, progress, limits))
    except OSError as error:
        raise ExperienceError(
            f"an experience needs a place that can be written to, but '{path}' gave "
            f"'{error.strerror or error}': choose another path",
            rule="path-not-writable",
            field="path",
            value=path,
        ) from error
    finally:
        progress.stop()


def _write_readable(
    experience: ExperienceData, path: Path, progress: Progress, limits: FileLimits
) -> None:
    """Write a file that the reader accepts.

    Rows that repeat each other very often shrink so much that the reader could not tell them from
    a trap. They are written without compression.
    """
    _write(experience, path, progress, limits, pack=True)
    try:
        with (
            pa.OSFile(os.fsencode(path)) as opened,
            pq.ParquetFile(opened, thrift_string_size_limit=LARGEST_TEXT) as file,
        ):
            check_rows(file.metadata, limits)
            check_inflation(experience.configs.values.nbytes, opened.size(), limits)
    except DamagedError:
        _write(experience, path, progress, limits, pack=False)


def _write(
    experience: ExperienceData, path: Path, progress: Progress, limits: FileLimits, *, pack: bool
) -> None:
    fields = _fields(experience)
    in_rows = experience.configs.values.nbytes > limits.configs_in_footer
    metadata = _metadata(experience, in_rows)
    table = ConfigRows(experience) if in_rows else None
    schema = pa.schema([*fields, *(table.fields if table else ())])
    group = limits.rows_a_group_with_configs if in_rows else limits.rows_a_group
    with (
        pa.OSFile(os.fsencode(path), "wb") as sink,
        pq.ParquetWriter(
            sink,
            schema,
            **_compression([field.name for field in fields], pack),
            write_page_checksum=True,
            store_schema=False,
        ) as writer,
    ):
        for start in range(0, len(experience), group):
            rows = slice(start, min(start + group, len(experience)))
            arrays = [*_arrays(experience, rows), *(table.arrays(rows) if table else ())]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            writer.write_batch(batch, row_group_size=group)
            progress.step(len(batch))
        # The schema's own metadata would be written twice.
        writer.add_key_value_metadata(metadata)


def _compression(columns: list[str], pack: bool) -> dict[str, Any]:
    """Return the writer's options. The column `config` ascends, so its differences are small."""
    if not pack:
        return {"compression": "none", "use_dictionary": False}
    return {
        "compression": "zstd",
        "column_encoding": {"config": "DELTA_BINARY_PACKED"},
        "use_dictionary": [name for name in columns if name != "config"],
    }


def _fields(experience: ExperienceData) -> list[pa.Field]:
    fields = [
        pa.field("task", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("config", pa.int32(), nullable=False),
        *(
            pa.field(METRIC_PREFIX + metric.name, pa.float64(), nullable=False)
            for metric in experience.metrics
        ),
        pa.field("status", pa.int8(), nullable=False),
        pa.field("seconds", pa.float32(), nullable=False),
    ]
    if experience.fidelity is not None:
        fields.append(pa.field("fidelity", pa.float32(), nullable=False))
    if experience.curves is not None:
        numbers, short = pa.list_(_POINT), pa.list_(_SHORT_POINT)
        names = [CURVE_STEPS, *(CURVE_PREFIX + metric.name for metric in experience.metrics)]
        fields += [pa.field(name, numbers, nullable=False) for name in names]
        fields.append(pa.field(CURVE_SECONDS, short, nullable=False))
    return fields


def _arrays(experience: ExperienceData, rows: slice) -> list[pa.Array]:
    names = pa.array(experience.tasks, type=pa.string())
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(experience.task_index[rows]), names),
        pa.array(experience.config_index[rows]),
        *(pa.array(column) for column in experience.values[rows].T),
        pa.array(experience.status[rows]),
        pa.array(experience.seconds[rows]),
    ]
    if experience.fidelity is not None:
        arrays.append(pa.array(experience.fidelity[rows]))
    if experience.curves is not None:
        arrays += _curve_arrays(experience.curves, rows)
    return arrays


def _curve_arrays(curves: CurveColumns, rows: slice) -> list[pa.Array]:
    """Return steps, the values of each metric, and seconds, as one list a row."""
    offsets = curves.offsets[rows.start : rows.stop + 1]
    points = slice(int(offsets[0]), int(offsets[-1]))
    begins = pa.array((offsets - offsets[0]).astype(np.int32))
    columns: list[tuple[NDArray[Any], pa.Field]] = [(curves.steps[points], _POINT)]
    columns += [(column, _POINT) for column in curves.values[points].T]
    columns.append((curves.seconds[points], _SHORT_POINT))
    return [
        pa.ListArray.from_arrays(begins, pa.array(np.ascontiguousarray(of)), type=pa.list_(kind))
        for of, kind in columns
    ]


def _metadata(experience: ExperienceData, in_rows: bool) -> dict[bytes, bytes]:
    table = experience.configs.values
    apart = configs_apart(experience) if in_rows else []
    raw = _column_bytes(table[apart] if in_rows else table)
    header = {
        "format": FORMAT,
        "version": _version(experience, in_rows),
        "space": json.loads(experience.space.to_json()),
        "metrics": [{"name": m.name, "direction": m.direction} for m in experience.metrics],
        "tasks": experience.tasks,
        "configs": table.shape,
        "meta_features": _without_nan(experience.meta_features),
        "splits": experience.splits,
        "starts": experience.starts,
        **({"configs_apart": apart} if in_rows else {}),
    }
    text = _header_text(header)
    return {
        HEADER_KEY: text,
        CONFIGS_KEY: base64.b64encode(pa.compress(raw, codec="zstd", asbytes=True)),
        CHECKSUM_KEY: checksum(text, raw),
    }


def _version(experience: ExperienceData, in_rows: bool) -> int:
    """Return the lowest version that can express the file, so that older releases can read it."""
    if experience.curves is not None:
        return VERSION_WITH_CURVES
    return VERSION_IN_ROWS if in_rows else VERSION


def _header_text(header: Mapping[str, Any]) -> bytes:
    # Only the space may hold infinity, as in ConfigSpace's JSON. Everything else is finite.
    text = json.dumps(header, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        around = text[max(0, error.start - SHOWN_AROUND) : error.end + SHOWN_AROUND]
        raise ExperienceError(
            "an experience is saved with names and choices that are texts of whole characters, "
            f"but got {around!r}: rename it",
            rule="half-character",
            value=around,
        ) from error


def _column_bytes(values: NDArray[np.float64]) -> bytes:
    """Return column after column, which compresses far better than row after row."""
    return values.astype("<f8", copy=False).tobytes(order="F")


def _without_nan(features: MetaFeatures) -> dict[str, dict[str, float | None]]:
    """Replace NaN, which JSON does not have, by null."""
    return {
        task: {name: None if math.isnan(value) else value for name, value in of.items()}
        for task, of in features.items()
    }
