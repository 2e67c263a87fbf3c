"""A column of whole configurations, written as JSON or as Python prints a dict."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from foretune._base.arrays import Bools
from foretune._base.names import check_writable
from foretune.errors import ExperienceError
from foretune.stores.files.cell_columns import ColumnCells, is_missing, smallest
from foretune.stores.files.column_builder import ColumnBuilder
from foretune.stores.files.plain_values import as_choice
from foretune.stores.files.python_literals import read_literal
from foretune.stores.files.table_files import FileTable

CONFIGS_AT_ONCE = 1 << 14


def config_columns(table: FileTable, name: str) -> tuple[dict[str, ColumnCells], dict[str, Bools]]:
    """Return a column for each hyperparameter, and (n,) each, where a configuration names it.

    A cell is empty if the configuration has None or does not name the hyperparameter. Each
    different configuration is read once.
    """
    column = table.columns.pop(name).encode()
    assert column.codes is not None
    if not column.present.all():
        gap = int(np.argmin(column.present))
        _refuse(None, table.row(gap), name)
    builders: dict[str, ColumnBuilder] = {}
    named: dict[str, list[Bools]] = {}
    read = 0
    for configs in _read(column, table, name):
        new = dict.fromkeys(key for config in configs for key in config if key not in builders)
        for key in new:
            check_writable("hyperparameter", key)
            builders[key], named[key] = ColumnBuilder(), [np.zeros(read, dtype=np.bool_)]
            builders[key].add_list([None] * read)
        for key, builder in builders.items():
            builder.add_list([_value_in(config, key) for config in configs])
            named[key].append(np.array([key in config for config in configs], dtype=np.bool_))
        read += len(configs)
    cells = {key: _spread(builders.pop(key).finish(whole=False), column) for key in list(builders)}
    return cells, {key: np.concatenate(parts)[column.codes] for key, parts in named.items()}


def _read(column: ColumnCells, table: FileTable, name: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the different configurations, some at a time."""
    assert column.codes is not None
    for start in range(0, len(column.values), CONFIGS_AT_ONCE):
        configs = []
        for position, cell in enumerate(column.values[start : start + CONFIGS_AT_ONCE], start):
            config = _config(cell)
            if config is None:
                _refuse(cell, table.row(int(np.argmax(column.codes == position))), name)
            configs.append({str(key): value for key, value in (config or {}).items()})
        yield configs


def _spread(cells: ColumnCells, column: ColumnCells) -> ColumnCells:
    """Return the cells of all rows, given those of the different configurations in `column`."""
    own = cells.encode()
    assert own.codes is not None
    assert column.codes is not None
    return ColumnCells(own.values, smallest(own.codes[column.codes], len(own.values)))


def _value_in(config: Mapping[str, Any], key: str) -> Any:
    value = config.get(key)
    return None if is_missing(value) else as_choice(value)


def _config(cell: Any) -> dict[Any, Any] | None:
    """Read a JSON object, or a dict as Parquet or scikit-learn's `params` have it; else None."""
    config = cell
    for parse in (json.loads, read_literal) if isinstance(cell, str) else ():
        with suppress(TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
            config = parse(cell)
            break
    return config if isinstance(config, dict) else None


def _refuse(cell: Any, row: int, column: str) -> None:
    shown = float("nan") if cell is None else cell
    raise ExperienceError(
        f"the column '{column}' must hold JSON objects, but row {row} holds {shown!r}: write "
        'configurations as {"name": value}',
        rule="not-json-object",
        field=column,
        value=row,
    )
