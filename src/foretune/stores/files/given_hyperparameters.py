"""The hyperparameters of a table whose space is given."""

from collections.abc import Mapping

from foretune._base.arrays import Bools
from foretune.experience.data_frame import CONFIG
from foretune.space import Parameter, Space
from foretune.stores.files.cell_columns import ColumnCells
from foretune.stores.files.failed_rows import find_whole_rows
from foretune.stores.files.hyperparameter_cells import HyperparameterCells
from foretune.stores.files.json_configs import config_columns
from foretune.stores.files.plain_values import read_back
from foretune.stores.files.row_results import RowResults
from foretune.stores.files.table_files import (
    WORDS,
    FileTable,
)
from foretune.stores.formats import TableColumns


def select_hyperparameters(
    table: FileTable, columns: TableColumns, space: Space, results: RowResults
) -> HyperparameterCells:
    """Return the columns that are hyperparameters of the given space."""
    prefix = columns.config_prefix or ""
    if columns.config_column is not None:
        known, named = config_columns(table, columns.config_column)
        cells = {name: known[name] for name in space.names if name in known}
        told = {name: named[name] for name in cells}
    else:
        words = table.words(_needs_words(space, table), prefix=prefix)
        for name, column in words.items():
            table.columns[name] = table.columns[name].fill(column)
        held = _columns_in(table, space)
        cells = {name: table.columns[column] for name, column in held.items()}
        told = _find_none_words(table, space, held, prefix)
        table.columns.clear()
    whole = find_whole_rows(cells, told, results.is_success, results.tasks)
    if not whole.all():
        cells = {name: column.take(whole) for name, column in cells.items()}
    if columns.config_column is not None:
        # A missing name differs from a name with the value None.
        cells = {name: cells[name].with_none(told[name][whole]) for name in cells}
    else:
        cells = {
            p.name: _as_space_values(p, cells[p.name]) for p in space.parameters if p.name in cells
        }
    return HyperparameterCells(space, cells, whole)


def _needs_words(space: Space, table: FileTable) -> list[str]:
    """Return the columns that are always active and have a choice called None or null.

    If a hyperparameter may be inactive, these words may mean that it is.
    """
    conditional = space.definition.condition_of
    return [
        parameter.name
        for parameter in space.parameters
        if parameter.name in table.columns
        and parameter.name not in conditional
        and any(word in parameter.choices for word in WORDS)
    ]


def _columns_in(table: FileTable, space: Space) -> dict[str, str]:
    """Return the column of each hyperparameter that has one, preferably with the prefix."""
    wanted = {name: f"{CONFIG}{name}" for name in space.names}
    known = table.columns
    held = {name: column if column in known else name for name, column in wanted.items()}
    return {name: column for name, column in held.items() if column in known}


def _find_none_words(
    table: FileTable, space: Space, held: Mapping[str, str], prefix: str
) -> dict[str, Bools]:
    """Return where rows write None for a hyperparameter that has this choice.

    held: the column of each hyperparameter.
    """
    with_none = [p.name for p in space.parameters if None in p.choices and p.name in held]
    words = table.words([held[name] for name in with_none], prefix=prefix)
    return {name: words[held[name]].present for name in with_none if held[name] in words}


def _as_space_values(parameter: Parameter, cells: ColumnCells) -> ColumnCells:
    """Return the cells with choices and numbers of the space in place of the texts for them."""
    if str not in cells.kinds:
        return cells
    if parameter.is_number:
        return cells.map_values(lambda value: read_back(value) if isinstance(value, str) else value)
    read = {str(choice): choice for choice in parameter.choices}
    read |= {choice: choice for choice in parameter.choices if isinstance(choice, str)}
    return cells.map_values(
        lambda value: read.get(value, value) if isinstance(value, str) else value
    )
