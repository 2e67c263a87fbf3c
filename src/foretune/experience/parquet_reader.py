"""Reading an experience from a Parquet file, one row group at a time, trusting nothing in it."""

import base64
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune._base.progress import SILENT, Progress
from foretune.errors import DamagedError, ExperienceError, ForetuneError
from foretune.experience.build import EvaluationColumns, from_columns
from foretune.experience.checks import Notes
from foretune.experience.config_rows import ConfigTable, read_numbers
from foretune.experience.curves import CurveColumns, build_curves
from foretune.experience.data import METRIC_PREFIX, AnyExperience, MetaFeatures
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
from foretune.experience.trial import Direction, Metric
from foretune.space import Space
from foretune.space.row_codes import encode_values

LARGEST_CONFIGS_READ = 1 << 30
"""Bytes of the largest table of configurations that is read from a footer."""
SUFFIX, FIRST_BYTES = ".parquet", b"PAR1"
"""The suffix of a Parquet file, and the bytes that every one begins with."""

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
"""The errors that damaged bytes raise in the libraries that decode them."""


class _NotReadableError(ExperienceError):
    """A file that is missing, or that is whole but not for this reader."""


def read_experience(
    kind: type[AnyExperience],
    path: Path,
    progress: Progress = SILENT,
    *,
    limits: FileLimits = LIMITS,
) -> AnyExperience:
    """Read the experience at `path` as an object of the class `kind`."""
    progress.start("opening the experience", None)
    try:
        _check_file(path)
        # The file is opened once, so another process may replace it meanwhile.
        with (
            pa.OSFile(os.fsencode(path)) as opened,
            pq.ParquetFile(opened, thrift_string_size_limit=LARGEST_TEXT) as file,
        ):
            header, raw_configs = _read_header(file, path, limits)
            reader = _Reader(opened, file.metadata, header, limits)
            return reader.experience(kind, raw_configs, progress)
    except _NotReadableError:
        raise
    except PermissionError as error:
        raise ExperienceError(
            f"an experience file must be readable, but '{path}' is not: change its permissions",
            rule="path-not-readable",
            field="path",
            value=path,
        ) from error
    except CORRUPT as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DamagedError(
            f"an experience file must be whole, but '{path}' cannot be decoded "
            f"({reason}): make it again or fetch it anew",
            rule=getattr(error, "rule", "") or "damaged-file",
            field=getattr(error, "field", ""),
            value=getattr(error, "value", path),
        ) from error
    finally:
        progress.stop()


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise _NotReadableError(
            f"an experience is one file, but '{path}' is a folder: name the file in it",
            rule="path-is-folder",
            field="path",
            value=path,
        )
    if not path.exists():
        raise _NotReadableError(
            f"an experience is read from a file, but there is no '{path}': check the path, or "
            "make it with 'foretune import'",
            rule="file-not-found",
            field="path",
            value=path,
        )
    # A file with the name of a Parquet file was probably one before it was damaged.
    if path.suffix.lower() not in ("", SUFFIX) and not _begins_as_parquet(path):
        raise _NotReadableError(
            f"an experience file is a Parquet file, but '{path}' is none: "
            "turn a table into an experience with 'foretune import table'",
            rule="not-a-parquet-file",
            field="path",
            value=path,
        )


def _begins_as_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(FIRST_BYTES)) == FIRST_BYTES


def _read_header(
    file: pq.ParquetFile, path: Path, limits: FileLimits
) -> tuple[dict[str, Any], bytes]:
    """Return the checked header, and the bytes of the configurations in the footer."""
    metadata = file.metadata.metadata or {}
    if HEADER_KEY not in metadata:
        raise _NotReadableError(
            f"an experience file carries its search space, but the Parquet file '{path}' has none: "
            "turn a table into an experience with 'foretune import table'",
            rule="no-space-in-file",
            field="path",
            value=path,
        )
    text = metadata[HEADER_KEY]
    header: dict[str, Any] = json.loads(text)
    if header["format"] != FORMAT:
        raise _NotReadableError(
            f"an experience file has the format '{FORMAT}', but '{path}' has "
            f"'{header['format']}': name another file",
            rule="unknown-format",
            field="format",
            value=header["format"],
        )
    if header["version"] not in (VERSION, VERSION_IN_ROWS, VERSION_WITH_CURVES):
        raise _NotReadableError(
            f"this foretune reads experience files of versions 1 to {VERSION_WITH_CURVES}, "
            f"but '{path}' has version {header['version']}: update foretune",
            rule="newer-version",
            field="version",
            value=header["version"],
        )
    size = 8 * math.prod(_shape_in_footer(header))
    if not 0 <= size <= LARGEST_CONFIGS_READ:
        raise DamagedError(
            "the table of configurations is too large",
            rule="too-many-configs",
            field="configs",
            value=header["configs"],
        )
    packed = base64.b64decode(metadata[CONFIGS_KEY], validate=True)
    check_inflation(size, len(packed), limits)
    raw = pa.decompress(packed, decompressed_size=size, codec="zstd", asbytes=True)
    if metadata[CHECKSUM_KEY] != checksum(text, raw):
        raise DamagedError("the checksum does not fit the content", rule="wrong-checksum")
    return header, raw


def _shape_in_footer(header: Mapping[str, Any]) -> tuple[int, int]:
    """Return the shape of the table of configurations in the footer."""
    n, width = header["configs"]
    return (len(header["configs_apart"]) if _has_configs_in_rows(header) else n), width


def _has_configs_in_rows(header: Mapping[str, Any]) -> bool:
    return header["version"] == VERSION_IN_ROWS or (
        header["version"] == VERSION_WITH_CURVES and "configs_apart" in header
    )


class _Reader:
    """Reads the rows of one open file whose header has been checked."""

    def __init__(
        self,
        opened: pa.NativeFile,
        metadata: pq.FileMetaData,
        header: Mapping[str, Any],
        limits: FileLimits,
    ) -> None:
        self._opened, self._metadata, self._header = opened, metadata, header
        self._limits = limits
        self._space = Space.from_json(json.dumps(header["space"]))
        self._metrics = [Metric(m["name"], Direction(m["direction"])) for m in header["metrics"]]

    def experience(
        self, kind: type[AnyExperience], raw_configs: bytes, progress: Progress
    ) -> AnyExperience:
        """Read the rows and put everything together."""
        header = self._header
        in_footer = np.frombuffer(raw_configs, dtype="<f8")
        in_footer = in_footer.reshape(_shape_in_footer(header), order="F")
        notes = Notes(_with_nan(header["meta_features"]), header["splits"], header["starts"])
        table = self._empty_table(in_footer) if _has_configs_in_rows(header) else None
        with pq.ParquetFile(
            self._opened,
            metadata=self._metadata,
            read_dictionary=["task"],
            pre_buffer=False,
            page_checksum_verification=True,
        ) as file:
            columns = self._columns(file, table, progress)
        if table is None:
            configs = self._space.from_values(in_footer)
        else:
            configs = encode_values(self._space, table.whole())
            del table
        tasks = header["tasks"]
        return from_columns(kind, self._space, self._metrics, tasks, configs, columns, notes)

    def _empty_table(self, in_footer: Floats) -> ConfigTable:
        """Make room for the configurations in the rows, if the file is large enough for them."""
        n, apart = self._header["configs"][0], len(self._header["configs_apart"])
        rows = self._metadata.num_rows
        if not apart <= n <= rows + apart:
            raise DamagedError(
                f"{n} configurations in {rows} rows",
                rule="too-many-configs",
                field="configs",
                value=self._header["configs"],
            )
        check_inflation(8 * math.prod(self._header["configs"]), self._opened.size(), self._limits)
        table = ConfigTable.of(self._header["configs"], self._space.names)
        table.put(self._header["configs_apart"], in_footer)
        return table

    def _columns(
        self, file: pq.ParquetFile, table: ConfigTable | None, progress: Progress
    ) -> EvaluationColumns:
        check_rows(self._metadata, self._limits)
        n = self._metadata.num_rows
        task_index, config_index = np.empty(n, np.int32), np.empty(n, np.int32)
        values, status = np.empty((n, len(self._metrics))), np.empty(n, np.int8)
        seconds = np.empty(n, np.float32)
        has_fidelity = "fidelity" in file.schema_arrow.names
        fidelity = np.empty(n, np.float32) if has_fidelity else None
        positions = {name: position for position, name in enumerate(self._header["tasks"])}
        has_curves = self._header["version"] == VERSION_WITH_CURVES
        curves = _CurveParts(self._metrics) if has_curves else None
        end = 0
        for batch in _batches(file):
            rows = slice(end, end := end + len(batch))
            task_index[rows] = _task_index(batch.column("task"), positions)
            config_index[rows] = read_numbers(batch.column("config"))
            for column, metric in enumerate(self._metrics):
                values[rows, column] = read_numbers(batch.column(METRIC_PREFIX + metric.name))
            status[rows] = read_numbers(batch.column("status"))
            seconds[rows] = read_numbers(batch.column("seconds"))
            if fidelity is not None:
                fidelity[rows] = read_numbers(batch.column("fidelity"))
            if curves is not None:
                curves.add(batch)
            if table is not None:
                table.add(batch, config_index[rows])
            progress.step(len(batch))
        if end != n:
            raise DamagedError(f"{end} rows instead of {n}", rule="rows-missing", value=end)
        return EvaluationColumns(
            task_index,
            config_index,
            values,
            status,
            seconds,
            fidelity,
            None if curves is None else curves.whole(),
        )


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    for group in range(file.num_row_groups):
        yield from file.read_row_group(group, use_threads=True).to_batches()


class _CurveParts:
    """The curves of one row group after the other."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        self._parts: list[CurveColumns] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Read the curves of a batch of rows."""
        lengths, steps = _lists(batch.column(CURVE_STEPS))
        columns = [(CURVE_PREFIX + metric.name) for metric in self._metrics]
        values = []
        for name in [*columns, CURVE_SECONDS]:
            own_lengths, numbers = _lists(batch.column(name))
            if not np.array_equal(own_lengths, lengths):
                raise DamagedError("curves of unequal lengths", rule="curve-length", field=name)
            values.append(numbers)
        self._parts.append(build_curves(lengths, steps, np.column_stack(values[:-1]), values[-1]))

    def whole(self) -> CurveColumns:
        """Return the curves of all rows."""
        return CurveColumns.concat(self._parts)


def _lists(column: pa.ListArray) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the number of entries of each list, and the entries of all."""
    if column.null_count:
        raise DamagedError("a curve is missing", rule="number-missing")
    lengths = read_numbers(column.value_lengths()).astype(np.int64)
    return lengths, read_numbers(column.flatten())


def _task_index(column: pa.DictionaryArray, positions: Mapping[str, int]) -> NDArray[np.int32]:
    known = np.array([positions[name] for name in column.dictionary.to_pylist()], dtype=np.int32)
    index: NDArray[np.int32] = known[read_numbers(column.indices)]
    return index


def _with_nan(features: Mapping[str, Mapping[str, float | None]]) -> MetaFeatures:
    return {
        task: {name: math.nan if value is None else value for name, value in of.items()}
        for task, of in features.items()
    }
