"""The runs that all methods of a comparison share: a full grid of tasks and seeds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from foretune.errors import UsageError
from foretune.numerics import Bools

RUN = ["task", "method", "seed"]
"""The columns that name a run."""


@dataclass(frozen=True, slots=True)
class SharedGrid:
    """The runs that all methods share."""

    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    left_out: int
    """The number of runs of these methods with other tasks and seeds."""

    def select(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of these runs."""
        chosen = rows["method"].isin(self.methods) & rows["task"].isin(self.tasks)
        return rows[chosen & rows["seed"].isin(self.seeds)]


def list_finished_runs(rows: pd.DataFrame) -> set[tuple[str, str, int]]:
    """List the runs in a table of rows, as (task, method, seed)."""
    unique = rows[RUN].drop_duplicates()
    return {(str(task), str(method), int(seed)) for task, method, seed in unique.to_numpy()}


def find_shared_grid(
    rows: pd.DataFrame, suite: str, methods: Iterable[str] | None = None
) -> SharedGrid:
    """Find the tasks and seeds that all methods have; methods in the order they are named."""
    names = tuple(dict.fromkeys(methods if methods is not None else rows["method"].unique()))
    finished = list_finished_runs(rows)
    runs = {name: {(task, seed) for task, of, seed in finished if of == name} for name in names}
    for name in names:
        if not runs[name]:
            raise UsageError(
                f"a method to report must have runs on '{suite}', but '{name}' "
                f"has none: choose among {', '.join(rows['method'].unique())}",
                rule="method-without-runs",
                field="methods",
                value=name,
            )
    tasks, seeds = _common_grid(list(runs.values()))
    if not tasks or not seeds:
        raise UsageError(
            f"methods are compared on tasks and seeds they share, but {', '.join(names)} share "
            f"none on '{suite}': run the missing ones",
            rule="nothing-shared",
            field="methods",
            value=tuple(names),
        )
    left_out = sum(map(len, runs.values())) - len(names) * len(tasks) * len(seeds)
    return SharedGrid(names, tasks, seeds, left_out)


def _common_grid(runs: list[set[tuple[str, int]]]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Find tasks and seeds of a full grid: every method has a run with each seed on each task.

    If not every task has every seed, some of either are dropped so that many runs are kept. If
    several choices keep as many runs, the one with more tasks is taken. Keeping the most of all
    would take too long.
    """
    common = set.intersection(*runs)
    tasks, seeds = sorted({task for task, _ in common}), sorted({seed for _, seed in common})
    has = np.array([[(task, seed) in common for seed in seeds] for task in tasks], dtype=bool)
    if not has.size:
        return (), ()
    grids = [*_full_grids(has), *((rows, columns) for columns, rows in _full_grids(has.T))]
    kept_tasks, kept_seeds = max(
        grids, key=lambda grid: (len(grid[0]) * len(grid[1]), len(grid[0]))
    )
    return tuple(tasks[row] for row in kept_tasks), tuple(seeds[column] for column in kept_seeds)


def _full_grids(has: Bools) -> Iterator[tuple[list[int], list[int]]]:
    """Yield for each number of columns the rows that have them all, and these columns.

    The column that comes next is the one that most of the remaining rows have.
    """
    rows, columns = np.arange(len(has)), list[int]()
    while len(columns) < has.shape[1]:
        counts = has[rows].sum(axis=0)
        counts[columns] = -1
        columns.append(int(np.argmax(counts)))
        rows = rows[has[rows, columns[-1]]]
        yield rows.tolist(), sorted(columns)
