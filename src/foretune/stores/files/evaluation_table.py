"""A table of evaluations: CSV or Parquet, with one row for each evaluation or for each step."""

from pathlib import Path

from foretune._base.freed_memory import return_freed_memory
from foretune._base.names import quote_names
from foretune._base.progress import SILENT, Progress, report_every_second
from foretune.errors import ExperienceError
from foretune.experience import Experience, Metric
from foretune.experience.build import from_columns
from foretune.experience.checks import Notes
from foretune.experience.data_frame import CONFIG
from foretune.space import Space
from foretune.space.row_codes import Configs, encode_columns
from foretune.space.text_format import parse_space
from foretune.stores.files.archive import existing
from foretune.stores.files.cell_columns import as_list
from foretune.stores.files.given_hyperparameters import select_hyperparameters
from foretune.stores.files.hyperparameter_cells import HyperparameterCells, check_not_in_use
from foretune.stores.files.inferred_hyperparameters import infer_hyperparameters
from foretune.stores.files.row_results import read_results
from foretune.stores.files.table_curves import check_list_columns
from foretune.stores.files.table_files import (
    FileTable,
    need_columns,
    read_columns,
)
from foretune.stores.formats import TableColumns, direction_of


def read(source: Path | str, *, columns: TableColumns, progress: Progress = SILENT) -> Experience:
    """Read the evaluations in the rows of a CSV (also packed) or Parquet file.

    Rows that have not ended are left out. Rows that failed without all of their hyperparameters
    are left out, too. If `columns` names neither a space nor a column of configurations, every
    column without another meaning is a hyperparameter. An empty cell, and in CSV the words None
    and null, is a gap if the space or another column explains it. If nothing explains it, it is
    the choice None.

    Learning curves are lists in the cells of a metric, or one row for each step if `columns.step`
    holds numbers.

    The file is read a part at a time. A row costs memory for its numbers; texts are held once.
    """
    _check_columns(columns)
    space = None
    if columns.space is not None:
        space = parse_space(existing(columns.space).read_text(encoding="utf-8", errors="replace"))
    table = _read(source, columns, space, progress)
    return_freed_memory()
    with report_every_second(progress, "looking at the columns"):
        table, results = read_results(table, columns)
        if space is None:
            given = infer_hyperparameters(table, columns, source, results)
        else:
            given = select_hyperparameters(table, columns, space, results)
        del table
        results = results.take(given.rows)
    space = given.space
    configs = _encode(given, columns, progress)
    del given
    tasks = results.tasks
    found = results.to_columns(configs.index)
    metrics = [Metric(column, direction_of(column, way)) for column, way in columns.values.items()]
    with report_every_second(progress, "putting the evaluations in order"):
        if results.step_rows is not None:
            found = results.step_rows.join(found)
        return from_columns(
            Experience,
            space,
            metrics,
            as_list(tasks.values),
            configs.table,
            found,
            Notes({}, {}, {}),
        )


def _encode(given: HyperparameterCells, columns: TableColumns, progress: Progress) -> Configs:
    return_freed_memory()
    n = int(given.rows.sum())
    has_space = columns.space is not None
    progress.start("encoding configurations", n)
    try:
        return encode_columns(
            given.space,
            given.cells,
            n,
            drop_inactive=has_space,
            empty_is_none=not has_space or columns.config_column is None,
            step=progress.step,
        )
    finally:
        progress.stop()


def _read(
    source: Path | str, columns: TableColumns, space: Space | None, progress: Progress
) -> FileTable:
    """Read the columns that are needed, and take the prefix from the names of hyperparameters."""
    assert columns.task is not None
    named = columns.in_use
    numbers = [*columns.values, *filter(None, (columns.step, columns.seconds))]
    prefix = columns.config_prefix or ""
    only = None if space is None else {*space.names, *(CONFIG + name for name in space.names)}

    def is_needed(name: str) -> bool:
        if name in named:
            return True
        if columns.config_column is not None or not name.startswith(prefix):
            return False
        bare = name.removeprefix(prefix)
        return bare not in columns.ignored if only is None else bare in only

    table = read_columns(source, progress, texts=[columns.task], numbers=numbers, wanted=is_needed)
    need_columns(table.names, named, source)
    check_list_columns(table, columns)
    return _without_prefix(table, named, prefix) if prefix else table


def _without_prefix(table: FileTable, named: list[str], prefix: str) -> FileTable:
    """Keep the named columns and those that begin with `prefix`, and take the prefix from these."""
    found = [name for name in table.names if name.startswith(prefix)]
    found = [name for name in found if name not in (*named, prefix)]
    if not found:
        raise ExperienceError(
            f"the columns of hyperparameters must begin with the given prefix, '{prefix}', but the "
            f"columns are {quote_names([name for name in table.names if name not in named])}: give "
            "another prefix, or none",
            rule="no-column-with-prefix",
            field="config_prefix",
            value=prefix,
        )
    called = {name: name.removeprefix(prefix) for name in found}
    check_not_in_use(called.values(), named)
    return table.rename_columns({name: called.get(name, name) for name in (*named, *found)})


def _check_columns(columns: TableColumns) -> None:
    """Refuse columns without a task or a metric, and a column that is named for two things."""
    if columns.task is None or not columns.values:
        raise ExperienceError(
            "a table needs a column that names the task and at least one metric, but "
            f"{'no task' if columns.task is None else 'no value'} column was named: name both, "
            "such as  --task dataset --value error:min",
            rule="no-task-or-value-column",
        )
    for metric, way in columns.values.items():
        direction_of(metric, way)
    named = [
        ("the task", columns.task),
        *(("a metric", column) for column in columns.values),
        ("the configuration", columns.config_column),
        ("the outcome", columns.status),
        ("the run time", columns.seconds),
        ("the step", columns.step),
        ("the fidelity", columns.fidelity),
        *(("to be ignored", column) for column in columns.ignored),
    ]
    meanings: dict[str, str] = {}
    for meaning, column in named:
        if column in meanings:
            raise ExperienceError(
                f"a column has one meaning, but '{column}' was named as {meanings[column]} and as "
                f"{meaning}: name another, or copy the column under another name",
                rule="column-of-two-meanings",
                field=column,
                value=(meanings[column], meaning),
            )
        if column is not None:
            meanings[column] = meaning
