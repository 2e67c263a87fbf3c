"""The learning curves of a table: lists in the cells of a row, or one row for each step."""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints
from foretune._base.names import quote_names
from foretune.errors import ExperienceError, ForetuneWarning
from foretune.experience.build import EvaluationColumns
from foretune.experience.curves import CurveColumns, build_curves, group_points
from foretune.stores.files.list_columns import ListColumn, check_same_lengths
from foretune.stores.files.table_files import FileTable
from foretune.stores.formats import TableColumns


def check_list_columns(table: FileTable, columns: TableColumns) -> None:
    """Refuse lists where numbers are needed, and say which other lists are left out.

    The columns of metrics, steps and seconds may hold lists. If a metric has numbers, the steps
    and the seconds have numbers as well.
    """
    curves = [name for name in columns.values if name in table.lists]
    for name in filter(None, (columns.step, columns.seconds)):
        if name in table.lists and not curves:
            raise ExperienceError(
                f"a metric must hold lists if '{name}' does, but "
                f"{quote_names(list(columns.values))} holds one number a row: name a metric with "
                "lists, or a column with one number a row",
                rule="list-beside-numbers",
                field=name,
            )
    if curves and columns.step is not None and columns.step not in table.lists:
        raise ExperienceError(
            f"the steps must be lists if a metric is, but '{columns.step}' holds one number a row "
            f"and {quote_names(curves)} lists: name a column with lists, or leave out --step for "
            "the steps 1, 2, 3 and so on",
            rule="number-beside-lists",
            field=columns.step,
        )
    _check_other_lists(table, columns, bool(curves))


def _check_other_lists(table: FileTable, columns: TableColumns, has_curves: bool) -> None:
    named = (columns.task, columns.config_column, columns.status, columns.fidelity)
    for name in table.other_lists:
        if name in named or not has_curves:
            raise ExperienceError(
                f"only metrics, steps and seconds may be lists, but column '{name}' holds lists: "
                f"name it as a metric (--value '{name}:min') if it is a learning curve, or leave "
                f"it out (--ignore '{name}')",
                rule="list-column",
                field=name,
            )
    if table.other_lists:
        warnings.warn(
            ForetuneWarning(
                f"{quote_names(list(table.other_lists))}: other lists beside the learning curves "
                "are left out; name them as metrics if they are meant",
                rule="lists-left-out",
                value=tuple(table.other_lists),
            ),
            stacklevel=3,
        )


def curves_of_lists(table: FileTable, columns: TableColumns) -> CurveColumns | None:
    """Return the curves of a table with list columns; None if no metric has lists.

    Without a column of steps, the steps of a row are 1, 2, 3 and so on.
    """
    curves = [name for name in columns.values if name in table.lists]
    if not curves:
        return None
    first = table.lists[curves[0]]
    named = (*curves, *filter(None, (columns.step, columns.seconds)))
    check_same_lengths(
        curves[0], {name: table.lists[name] for name in named if name in table.lists}
    )
    values = np.full((len(first.numbers), len(columns.values)), np.nan)
    for place, name in enumerate(columns.values):
        if name in table.lists:
            values[:, place] = table.lists[name].numbers
    begins = np.repeat(first.offsets[:-1], first.lengths)
    steps: Floats = np.arange(1.0, len(begins) + 1) - begins
    if columns.step is not None:
        steps = table.lists[columns.step].numbers
    seconds = table.lists.get(columns.seconds or "")
    return build_curves(first.lengths, steps, values, None if seconds is None else seconds.numbers)


def shorten_lists(table: FileTable, columns: TableColumns) -> None:
    """End the lists of each row where a metric has its last number."""
    metrics = [name for name in columns.values if name in table.lists]
    others = [name for name in (columns.step, columns.seconds) if name in table.lists]
    if not metrics:
        return
    named = {name: table.lists[name] for name in filter(None, (*metrics, *others))}
    check_same_lengths(metrics[0], named)
    offsets = named[metrics[0]].offsets
    known = np.any([np.isfinite(named[name].numbers) for name in metrics], axis=0)
    places = np.flatnonzero(known)
    rows = np.searchsorted(offsets, places, side="right") - 1
    lengths = np.zeros(len(offsets) - 1, dtype=np.int64)
    np.maximum.at(lengths, rows, places - offsets[rows] + 1)
    row_of = np.repeat(np.arange(len(lengths)), np.diff(offsets))
    kept = np.arange(len(known)) - offsets[row_of] < lengths[row_of]
    for name, column in named.items():
        table.lists[name] = ListColumn.of_lengths(lengths, column.numbers[kept])


@dataclass(frozen=True)
class StepRows:
    """A table with one row for each step. Its evaluations have one curve each."""

    name: str
    """The column of the steps."""
    steps: Floats
    """(n,), the step of each row."""

    def check(self) -> None:
        """Refuse rows without a step."""
        wrong = ~(np.isfinite(self.steps) & (self.steps >= 0))
        if wrong.any():
            step = float(self.steps[wrong][0])
            raise ExperienceError(
                "every row must have a step, a finite number of at least 0, but column "
                f"'{self.name}' has {'no number' if np.isnan(step) else step} in {wrong.sum()} "
                "rows: correct or drop them",
                rule="row-without-step",
                field=self.name,
                value=step,
            )

    def take(self, rows: Bools) -> "StepRows":
        """Return some of the rows."""
        return StepRows(self.name, self.steps[rows])

    def join(self, rows: EvaluationColumns) -> EvaluationColumns:
        """Join the rows of equal task, configuration and status to one evaluation.

        The evaluation has the value, the seconds and the fidelity of its last step.
        """
        status = np.zeros(len(self.steps)) if rows.status is None else np.asarray(rows.status)
        evaluation = _number_groups(
            np.asarray(rows.task_index), np.asarray(rows.config_index), status
        )
        order, lengths = group_points(evaluation, self.steps, int(evaluation.max()) + 1)
        self._check_once(evaluation[order], self.steps[order])
        values = np.asarray(rows.values)
        seconds = None if rows.seconds is None else np.asarray(rows.seconds)[order]
        curves = build_curves(lengths, self.steps[order], values[order], seconds)
        last = order[curves.offsets[1:] - 1]
        if (lengths == 1).all():
            self._warn_of_single_points()
        return replace(
            rows,
            task_index=np.asarray(rows.task_index)[last],
            config_index=np.asarray(rows.config_index)[last],
            values=values[last],
            status=None if rows.status is None else np.asarray(rows.status)[last],
            seconds=None if rows.seconds is None else np.asarray(rows.seconds)[last],
            fidelity=None if rows.fidelity is None else np.asarray(rows.fidelity)[last],
            curves=curves,
        )

    def _check_once(self, evaluation: Ints, steps: Floats) -> None:
        again = (evaluation[1:] == evaluation[:-1]) & (steps[1:] == steps[:-1])
        if again.any():
            step = float(steps[1:][again][0])
            raise ExperienceError(
                f"each step of a trial must have one row, but step {step:g} in column "
                f"'{self.name}' comes again {np.count_nonzero(again)} times for the same task and "
                "hyperparameters: drop the repeated rows, or average the trials that were repeated",
                rule="repeated-step",
                field=self.name,
                value=step,
            )

    def _warn_of_single_points(self) -> None:
        warnings.warn(
            ForetuneWarning(
                "no two rows have the same task and hyperparameters, so each learning curve has "
                "one step; leave out the columns that change from step to step (--ignore A,B)",
                rule="curves-of-one-step",
                field=self.name,
            ),
            stacklevel=4,
        )


def _number_groups(*keys: Ints | Floats) -> Ints:
    """Number the rows of equal keys, in the order in which each group comes first."""
    numbers = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        _, part = np.unique(key, return_inverse=True)
        # Each number stays below the number of rows, so a product of two fits into 64 bits.
        _, numbers = np.unique(numbers * (int(part.max()) + 1) + part, return_inverse=True)
    _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    found: Ints = rank[place]
    return found
