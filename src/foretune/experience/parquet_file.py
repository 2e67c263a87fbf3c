"""An experience in one Parquet file; docs/decisions/002-experience-file.md gives the reasons.

The rows of the file are the evaluations. The footer holds, as key-value metadata, a JSON header
(space, metrics, tasks, notes), the table of configurations, and a checksum of both. Evaluations
are written and read one row group at a time. A large table of configurations stands in the rows
instead (version 2): see `config_rows.py`.
"""

import base64
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foretune._base.files import replace_file
from foretune._base.progress import SILENT, Progress
from foretune.errors import DamagedError, ExperienceError, ForetuneError
from foretune.experience.annotations import Notes
from foretune.experience.build import EvaluationColumns, check_metrics_have_values, from_columns
from foretune.experience.config_rows import ConfigRows, ConfigTable, configs_apart
from foretune.experience.experience import (
    METRIC_PREFIX,
    Direction,
    Experience,
    MetaFeatures,
    Metric,
)
from foretune.space import Space
from foretune.space.row_codes import encode_values

FORMAT = "foretune-experience"
VERSION, VERSION_IN_ROWS = 1, 2
"""The second one is for configurations in the rows: older readers know the first alone."""
HEADER_KEY, CONFIGS_KEY, CHECKSUM_KEY = b"foretune", b"foretune.configs", b"foretune.sha256"
ROWS_A_GROUP, SMALLER_GROUP = 1 << 20, 1 << 18
LARGEST_TEXT = 2**31 - 1
"""Bytes of one text in the footer of a Parquet file."""
LARGEST_CONFIGS = 1 << 23
"""Bytes of a table of configurations in the footer, which is read and checked as a whole. Rows take
a third less time to read."""
LARGEST_CONFIGS_READ = 1 << 30
"""Files of version 1 hold tables up to this size."""
SHOWN_AROUND = 10
"""Characters before and after one that cannot be written."""
SUFFIX, FIRST_BYTES = ".parquet", b"PAR1"
"""How a Parquet file is named, and how every one begins."""

PACKED: Mapping[str, Any] = {
    "compression": "zstd",
    "column_encoding": {"config": "DELTA_BINARY_PACKED"},
}
AS_THEY_ARE: Mapping[str, Any] = {"compression": "none"}
"""For rows that would shrink so much that nobody could tell them from a trap."""
MOST_TIMES = 300
"""So many times its own size a file may take in memory."""
SMALL = 2**26
"""Bytes that every file may take in memory."""
BYTES_A_ROW = 21
"""Of an evaluation: task, configuration, one metric, status and seconds."""

CORRUPT = (
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    NotImplementedError,
    ForetuneError,
)
"""What damaged bytes can raise in the libraries that decode them."""


def save(experience: Experience, path: Path, progress: Progress = SILENT) -> None:
    """Write `experience` to `path`, replacing what is there in one step."""
    check_metrics_have_values(experience.metrics, experience.values, experience.status)
    if path.is_dir():
        raise ExperienceError(
            f"an experience is saved as one file, but '{path}' is a folder: add a file name"
        )
    progress.start("saving the experience (rows)", len(experience))
    try:
        compact = experience.compact()
        replace_file(path, lambda temporary: _write_readable(compact, temporary, progress))
    except OSError as error:
        raise ExperienceError(
            f"an experience needs a place that can be written to, but '{path}' gave "
            f"'{error.strerror or error}': choose another path"
        ) from error
    finally:
        progress.stop()


def read(path: Path, progress: Progress = SILENT) -> Experience:
    """The experience that `save` has written to `path`."""
    progress.start("opening the experience", None)
    try:
        _check_file(path)
        # Opened once: whoever replaces the file meanwhile leaves this one as it is.
        with (
            pa.OSFile(os.fsencode(path)) as opened,
            pq.ParquetFile(opened, thrift_string_size_limit=LARGEST_TEXT) as file,
        ):
            header, raw_configs = _header(file, path)
            return _decode_experience(opened, file.metadata, header, raw_configs, progress)
    except _NotReadableError:
        raise
    except PermissionError as error:
        raise ExperienceError(
            f"an experience file must be readable, but '{path}' is not: change its permissions"
        ) from error
    except CORRUPT as error:
        raise DamagedError(
            f"an experience file must be whole, but '{path}' cannot be decoded "
            f"({_first_line(error)}): make it again or fetch it anew"
        ) from error
    finally:
        progress.stop()


# Writing


def _schema(experience: Experience) -> pa.Schema:
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
    return pa.schema(fields)


def _metadata(experience: Experience) -> dict[bytes, bytes]:
    table = experience.configs.values
    in_rows = table.nbytes > LARGEST_CONFIGS
    apart = configs_apart(experience) if in_rows else []
    raw = _column_bytes(table[apart] if in_rows else table)
    header = {
        "format": FORMAT,
        "version": VERSION_IN_ROWS if in_rows else VERSION,
        "space": json.loads(experience.space.to_json()),
        "metrics": [{"name": m.name, "direction": m.direction} for m in experience.metrics],
        "tasks": experience.tasks,
        "configs": experience.configs.values.shape,
        "meta_features": _without_nan(experience.meta_features),
        "splits": experience.splits,
        "starts": experience.starts,
        **({"configs_apart": apart} if in_rows else {}),
    }
    text = _text(header)
    return {
        HEADER_KEY: text,
        CONFIGS_KEY: base64.b64encode(pa.compress(raw, codec="zstd", asbytes=True)),
        CHECKSUM_KEY: _checksum(text, raw),
    }


def _text(header: Mapping[str, Any]) -> bytes:
    # A space may offer infinity, as ConfigSpace's JSON does; all else here is finite.
    text = json.dumps(header, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        around = text[max(0, error.start - SHOWN_AROUND) : error.end + SHOWN_AROUND]
        raise ExperienceError(
            "an experience is saved with names and choices that are texts of whole characters, "
            f"but got {around!r}: rename it"
        ) from error


def _column_bytes(values: NDArray[np.float64]) -> bytes:
    """Column after column, which compresses far better than row after row."""
    return values.astype("<f8", copy=False).tobytes(order="F")


def _checksum(header: bytes, raw_configs: bytes) -> bytes:
    return hashlib.sha256(header + b"\0" + raw_configs).hexdigest().encode()


def _write_readable(experience: Experience, path: Path, progress: Progress) -> None:
    """Write a file that `read` takes, also where rows repeat each other so often that it shrinks
    to less than one in `MOST_TIMES`.
    """
    metadata = _metadata(experience)
    _write(experience, metadata, path, PACKED, progress)
    try:
        with (
            pa.OSFile(os.fsencode(path)) as opened,
            pq.ParquetFile(opened, thrift_string_size_limit=LARGEST_TEXT) as file,
        ):
            _check_rows(file.metadata)
            _check_inflation(experience.configs.values.nbytes, opened.size())
            return
    except ValueError:
        pass
    _write(experience, metadata, path, AS_THEY_ARE, progress)


def _write(
    experience: Experience,
    metadata: dict[bytes, bytes],
    path: Path,
    how: Mapping[str, Any],
    progress: Progress,
) -> None:
    schema = _schema(experience)
    coded = [field.name for field in schema if field.name != "config"]
    if how is AS_THEY_ARE:
        how = {**how, "use_dictionary": False}
    else:
        how = {**how, "use_dictionary": coded}
    in_rows = experience.configs.values.nbytes > LARGEST_CONFIGS
    table = ConfigRows(experience) if in_rows else None
    if table is not None:
        schema = pa.schema([*schema, *table.fields])
    group = ROWS_A_GROUP if table is None else SMALLER_GROUP
    with (
        pa.OSFile(os.fsencode(path), "wb") as sink,
        pq.ParquetWriter(
            sink,
            schema,
            **how,
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
        # Not as metadata of the schema, which Parquet would hold twice.
        writer.add_key_value_metadata(metadata)


def _arrays(experience: Experience, rows: slice) -> list[pa.Array]:
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
    return arrays


# Reading


class _NotReadableError(ExperienceError):
    """A file that is not there, or that is whole but not for this reader."""


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise _NotReadableError(
            f"an experience is one file, but '{path}' is a folder: name the file in it"
        )
    if not path.exists():
        raise _NotReadableError(
            f"an experience is read from a file, but there is no '{path}': check the path, or "
            "make it with 'foretune import'"
        )
    # Only where the name says something else, too: otherwise the file was one and is damaged.
    if path.suffix.lower() not in ("", SUFFIX) and not _begins_as_parquet(path):
        raise _NotReadableError(
            f"an experience file is a Parquet file, but '{path}' is none: "
            "turn a table into an experience with 'foretune import table'"
        )


def _begins_as_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(FIRST_BYTES)) == FIRST_BYTES


def _header(file: pq.ParquetFile, path: Path) -> tuple[dict[str, Any], bytes]:
    """The checked header and the raw bytes of the configurations' table."""
    metadata = file.metadata.metadata or {}
    if HEADER_KEY not in metadata:
        raise _NotReadableError(
            f"an experience file carries its search space, but the Parquet file '{path}' has none: "
            "turn a table into an experience with 'foretune import table'"
        )
    text = metadata[HEADER_KEY]
    header = json.loads(text)
    if header["format"] != FORMAT:
        raise _NotReadableError(
            f"an experience file has the format '{FORMAT}', but '{path}' has "
            f"'{header['format']}': name another file"
        )
    if header["version"] not in (VERSION, VERSION_IN_ROWS):
        raise _NotReadableError(
            f"this foretune reads experience files of versions {VERSION} and {VERSION_IN_ROWS}, "
            f"but '{path}' has version {header['version']}: update foretune"
        )
    size = 8 * math.prod(_shape_in_footer(header))
    if not 0 <= size <= LARGEST_CONFIGS_READ:
        raise ValueError("the table of configurations is too large")
    packed = base64.b64decode(metadata[CONFIGS_KEY], validate=True)
    _check_inflation(size, len(packed))
    raw = pa.decompress(packed, decompressed_size=size, codec="zstd", asbytes=True)
    if metadata[CHECKSUM_KEY] != _checksum(text, raw):
        raise ValueError("the checksum does not fit the content")
    return header, raw


def _check_inflation(unpacked: int, packed: int) -> None:
    """Refuse what would become very large out of little."""
    if unpacked > max(SMALL, MOST_TIMES * packed):
        raise ValueError(f"it would take more than {MOST_TIMES:,} times its size in memory")


def _shape_in_footer(header: Mapping[str, Any]) -> tuple[int, int]:
    """The shape of the table of configurations in the footer."""
    n, width = header["configs"]
    return (n if header["version"] == VERSION else len(header["configs_apart"])), width


def _decode_experience(
    opened: pa.NativeFile,
    metadata: pq.FileMetaData,
    header: dict[str, Any],
    raw_configs: bytes,
    progress: Progress,
) -> Experience:
    space = Space.from_json(json.dumps(header["space"]))
    metrics = [Metric(m["name"], Direction(m["direction"])) for m in header["metrics"]]
    in_footer = np.frombuffer(raw_configs, dtype="<f8").reshape(_shape_in_footer(header), order="F")
    notes = Notes(_with_nan(header["meta_features"]), header["splits"], header["starts"])
    with pq.ParquetFile(
        opened,
        metadata=metadata,
        read_dictionary=["task"],
        pre_buffer=False,
        page_checksum_verification=True,
    ) as file:
        table = None
        if header["version"] == VERSION_IN_ROWS:
            _check_claim(header, file.metadata.num_rows)
            _check_inflation(8 * math.prod(header["configs"]), opened.size())
            table = ConfigTable.of(header["configs"], space.names)
            table.put(header["configs_apart"], in_footer)
        columns = _columns(file, header["tasks"], metrics, table, progress)
    if table is None:
        configs = space.from_values(in_footer)
    else:
        configs = encode_values(space, table.whole())
        del table
    return from_columns(space, metrics, header["tasks"], configs, columns, notes)


def _check_claim(header: Mapping[str, Any], rows: int) -> None:
    """Refuse a table for which the file has too few rows, before memory is taken for it."""
    n, apart = header["configs"][0], len(header["configs_apart"])
    if not apart <= n <= rows + apart:
        raise ValueError(f"{n} configurations in {rows} rows")


def _check_rows(metadata: pq.FileMetaData) -> None:
    """Refuse few bytes that would become very many rows."""
    groups = [metadata.row_group(each) for each in range(metadata.num_row_groups)]
    packed = sum(g.column(i).total_compressed_size for g in groups for i in range(g.num_columns))
    # Equal values in a row take nothing in a file, whatever its pages are said to hold.
    unpacked = sum(group.total_byte_size for group in groups)
    _check_inflation(max(metadata.num_rows * BYTES_A_ROW, unpacked), packed)


def _columns(
    file: pq.ParquetFile,
    tasks: list[str],
    metrics: list[Metric],
    table: ConfigTable | None,
    progress: Progress,
) -> EvaluationColumns:
    n = file.metadata.num_rows
    names = set(file.schema_arrow.names)
    _check_rows(file.metadata)
    task_index, config_index = np.empty(n, np.int32), np.empty(n, np.int32)
    values, status = np.empty((n, len(metrics))), np.empty(n, np.int8)
    seconds = np.empty(n, np.float32)
    fidelity = np.empty(n, np.float32) if "fidelity" in names else None
    positions = {name: position for position, name in enumerate(tasks)}
    end = 0
    for batch in _batches(file):
        rows = slice(end, end := end + len(batch))
        task_index[rows] = _task_index(batch.column("task"), positions)
        config_index[rows] = _numbers(batch.column("config"))
        for column, metric in enumerate(metrics):
            values[rows, column] = _numbers(batch.column(METRIC_PREFIX + metric.name))
        status[rows] = _numbers(batch.column("status"))
        seconds[rows] = _numbers(batch.column("seconds"))
        if fidelity is not None:
            fidelity[rows] = _numbers(batch.column("fidelity"))
        if table is not None:
            table.add(batch, config_index[rows])
        progress.step(len(batch))
    if end != n:
        raise ValueError(f"{end} rows instead of {n}")
    return EvaluationColumns(task_index, config_index, values, status, seconds, fidelity)


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    for group in range(file.num_row_groups):
        yield from file.read_row_group(group, use_threads=True).to_batches()


def _task_index(column: pa.DictionaryArray, positions: Mapping[str, int]) -> NDArray[np.int32]:
    known = np.array([positions[name] for name in column.dictionary.to_pylist()], dtype=np.int32)
    index: NDArray[np.int32] = known[_numbers(column.indices)]
    return index


def _numbers(column: pa.Array) -> NDArray[Any]:
    """The numbers of a column without missing ones. `np.asarray` would import pandas."""
    if column.null_count:
        raise ValueError("a number is missing")
    dtype = np.dtype(column.type.to_pandas_dtype())
    numbers = np.frombuffer(column.buffers()[1], dtype)
    return numbers[column.offset : column.offset + len(column)]


def _without_nan(features: MetaFeatures) -> dict[str, dict[str, float | None]]:
    """JSON has no NaN: an unknown meta-feature is null there."""
    return {
        task: {name: None if math.isnan(value) else value for name, value in of.items()}
        for task, of in features.items()
    }


def _with_nan(features: Mapping[str, Mapping[str, float | None]]) -> MetaFeatures:
    return {
        task: {name: math.nan if value is None else value for name, value in of.items()}
        for task, of in features.items()
    }


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
