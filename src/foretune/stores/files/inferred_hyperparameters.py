"""The hyperparameters of a table whose space is inferred."""

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from foretune._base.arrays import Bools
from foretune._base.names import quote_names
from foretune.errors import ExperienceError, ForetuneWarning
from foretune.space import Space
from foretune.stores.files.cell_columns import ColumnCells
from foretune.stores.files.column_warnings import warn_of_doubtful_columns
from foretune.stores.files.condition_inference import find_unexplained_gaps
from foretune.stores.files.failed_rows import drop_failure_columns, find_whole_rows
from foretune.stores.files.hyperparameter_cells import HyperparameterCells, check_not_in_use
from foretune.stores.files.json_configs import config_columns
from foretune.stores.files.plain_values import read_back
from foretune.stores.files.range_inference import looks_like_range
from foretune.stores.files.row_results import RowResults
from foretune.stores.files.space_inference import infer_space
from foretune.stores.files.table_files import (
    FileTable,
    is_parquet,
)
from foretune.stores.formats import TableColumns, check_ignore_names

NO_NUMBERS = (float("inf"), -float("inf"))
UNNAMED = re.compile(r"Unnamed: \d+")
"""The name that pandas gives a column without a name."""


def infer_hyperparameters(
    table: FileTable, columns: TableColumns, source: Path | str, results: RowResults
) -> HyperparameterCells:
    """Return the columns that are hyperparameters, and the space inferred from them."""
    if columns.config_column is not None:
        cells, told = config_columns(table, columns.config_column)
        cells = _drop_ignored(cells, columns.ignored, list(cells))
        told = {name: told[name] for name in cells}
    else:
        cells = _hyperparameter_columns(table, columns, source)
        warn_of_doubtful_columns(cells, by_name=columns.config_prefix is None)
        told = _has_value_or_word(table, cells, columns.config_prefix or "")
    done = results.is_success
    cells = drop_failure_columns(cells, done)
    whole = find_whole_rows(cells, told, done, results.tasks)
    if not whole.all():
        cells = {name: column.take(whole) for name, column in cells.items()}
        told = {name: where[whole] for name, where in told.items() if name in cells}
    told = {name: where for name, where in told.items() if name in cells}
    empty: list[str] = []
    if columns.config_column is None:
        empty = find_unexplained_gaps(cells, told)
        _check_ranges({name: cells[name] for name in empty})
        told |= {name: np.ones(int(whole.sum()), dtype=np.bool_) for name in empty}
    check_not_in_use(cells, columns.in_use)
    space = Space.of(infer_space(cells, Path(source).name.split(".")[0], told=told))
    if empty:
        warnings.warn(
            ForetuneWarning(
                f"{quote_names(empty)}: no other column says when a cell is empty, so None is a "
                "choice; "
                "fill the cells if something else is meant",
                rule="cells-without-value",
                value=tuple(empty),
            ),
            stacklevel=2,
        )
    return HyperparameterCells(space, cells, whole)


def _hyperparameter_columns(
    table: FileTable, columns: TableColumns, source: Path | str
) -> dict[str, ColumnCells]:
    """Remove the columns that are hyperparameters from the table, and return them."""
    names = [name for name in table.names if name not in columns.in_use]
    none = [name for name in names if _is_row_numbers_or_empty(table, name)]
    known = [name for name in names if name not in none]
    read = {name: table.columns.pop(name) for name in known if name in table.columns}
    if not is_parquet(source):
        read = {name: _read_values(column) for name, column in read.items()}
    return _drop_ignored(read, columns.ignored, known)


def _drop_ignored(
    cells: dict[str, ColumnCells], ignored: Sequence[str], known: Sequence[str]
) -> dict[str, ColumnCells]:
    """Drop the columns that are ignored or have no value in any row."""
    check_ignore_names(ignored, known)
    kept = {name: column for name, column in cells.items() if name not in ignored}
    empty = [name for name, column in kept.items() if not column.present.any()]
    if empty:
        warnings.warn(
            ForetuneWarning(
                f"{quote_names(empty)}: there is no value in any row, so it is left out",
                rule="column-without-value",
                value=tuple(empty),
            ),
            stacklevel=4,
        )
    return {name: column for name, column in kept.items() if name not in empty}


def _check_ranges(cells: Mapping[str, ColumnCells]) -> None:
    """Refuse gaps in what looks like a range. A forgotten cell would make its numbers choices."""
    for name, column in cells.items():
        if looks_like_range(column):
            raise ExperienceError(
                f"a range of numbers has no gaps, but '{name}' is empty in "
                f"{np.count_nonzero(~column.present)} of {len(column)} rows: fill the cells (with "
                "None, if it is meant), leave these rows out, or leave it out (--ignore "
                f"'{name}')",
                rule="range-with-gaps",
                field=name,
            )


def _has_value_or_word(
    table: FileTable, cells: Mapping[str, ColumnCells], prefix: str
) -> dict[str, Bools]:
    """Return where there is a value or one of WORDS, for columns whose gaps nothing explains."""
    words = table.words(find_unexplained_gaps(cells, {}), prefix=prefix)
    return {name: cells[name].present | where.present for name, where in words.items()}


def _is_row_numbers_or_empty(table: FileTable, name: str) -> bool:
    """Return whether a column without a name is empty, or holds row numbers of pandas."""
    if not UNNAMED.fullmatch(name) or name not in table.columns:
        return False
    column = table.columns[name]
    if name == table.names[0] and column.kinds == {int} and column.present.all():
        warnings.warn(
            ForetuneWarning(
                "the first column has no name and holds whole numbers. It is taken for row numbers "
                "and left out. Give it a name if it is a hyperparameter",
                rule="row-numbers",
            ),
            stacklevel=2,
        )
        return True
    return not column.present.any()


def _read_values(cells: ColumnCells) -> ColumnCells:
    """Read numbers and truth values that stand beside words in CSV, such as 0.5 beside sqrt.

    They are read only if a program would write them in the same way. So 3.10 and 007 stay texts.
    """
    if str not in cells.kinds:
        return cells
    read = {value: read_back(value) for value in cells.values if isinstance(value, str)}
    others = [value for value in read.values() if not isinstance(value, str)]
    only_numbers = len(others) == len(read) and not any(isinstance(each, bool) for each in others)
    # The file may have a decimal comma, and these a point.
    if not only_numbers:
        clash = len(set(others)) < len(others)  # True equals 1
        if clash or any(str(value) != text or value in NO_NUMBERS for text, value in read.items()):
            return cells
    return cells.map_values(lambda value: read[value] if isinstance(value, str) else value)
