"""Past evaluations as a table of comparable losses: rows are tasks, columns configurations."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints
from foretune.errors import MethodError
from foretune.experience import Direction, Experience, TaskRecords
from foretune.methods.past_data import draw_by_name, require_experience
from foretune.numerics.greedy import Losses
from foretune.numerics.normalise import NORMALISATIONS
from foretune.numerics.objectives import scalarise
from foretune.space import Encoded

LEAST_SHARE = 0.5
"""A configuration is shared if at least this share of the tasks has tried it."""


def least_tasks(tasks: int) -> int:
    """Return how many of these tasks must have tried a shared configuration.

    Of two tasks it is both, because one task shares nothing.
    """
    return max(math.ceil(LEAST_SHARE * tasks), min(2, tasks))


@dataclass(frozen=True, slots=True)
class LossEntries:
    """The recorded losses of a table, each once, ascending by task and by configuration."""

    tasks: Ints
    """(E,), rows of the table."""
    columns: Ints
    """(E,)"""
    losses: Losses
    """(E,)"""

    def where(self, kept: Bools) -> "LossEntries":
        """Return the entries that `kept` (E,) marks."""
        return LossEntries(self.tasks[kept], self.columns[kept], self.losses[kept])


@dataclass(frozen=True)
class LossTable:
    """The losses of D tasks and N configurations, brought to one unit.

    Only recorded losses are stored. A thousand tasks that share no configuration have a thousand
    times more cells than evaluations, so `losses` is for tables of few tasks.
    """

    tasks: tuple[str, ...]
    configs: Encoded
    entries: LossEntries
    normalisation: str

    @cached_property
    def losses(self) -> Losses:
        """(D, N), NaN where nothing is recorded."""
        table = np.full((len(self.tasks), len(self.configs)), np.nan, dtype=np.float32)
        table[self.entries.tasks, self.entries.columns] = self.entries.losses
        return table

    @cached_property
    def _tasks_by_config(self) -> Ints:
        """(N,), the number of tasks that have tried each configuration."""
        return np.bincount(self.entries.columns, minlength=len(self.configs))

    @property
    def shares(self) -> Floats:
        """(N,), the share of the tasks that has tried each configuration."""
        shares: Floats = self._tasks_by_config / len(self.tasks)
        return shares

    @property
    def has_common_configs(self) -> bool:
        """Whether most evaluations are of shared configurations."""
        shares = self.shares
        return bool(shares[self._is_common].sum() >= 0.5 * shares.sum())

    def select_common(self) -> "LossTable":
        """Return the table of the shared configurations."""
        return self.take(np.flatnonzero(self._is_common))

    @property
    def _is_common(self) -> Bools:
        """(N,), whether enough tasks have tried each configuration."""
        return np.asarray(self._tasks_by_config >= least_tasks(len(self.tasks)))

    def some_tasks(self, most: int, *, seed: int) -> "LossTable":
        """Return at most `most` tasks, and the configurations that they have tried.

        The draw depends on the names of the tasks and on the seed. One more task changes it by one
        task at most, so little must be learnt again.
        """
        if len(self.tasks) <= most:
            return self
        return self.take_tasks(draw_by_name(self.tasks, most, seed))

    def take_tasks(self, rows: Ints) -> "LossTable":
        """Return the table of these tasks, and the configurations that they have tried."""
        places = np.full(len(self.tasks), -1)
        places[rows] = np.arange(len(rows))
        entries = self.entries.where(places[self.entries.tasks] >= 0)
        few = replace(
            self,
            tasks=tuple(self.tasks[row] for row in rows.tolist()),
            entries=replace(entries, tasks=places[entries.tasks]),
        )
        return few.take(np.unique(entries.columns))

    def take(self, columns: Ints) -> "LossTable":
        """Return the table of these configurations."""
        if len(columns) == len(self.configs):
            return self
        places = np.full(len(self.configs), -1)
        places[columns] = np.arange(len(columns))
        entries = self.entries.where(places[self.entries.columns] >= 0)
        return replace(
            self,
            configs=self.configs.take(columns),
            entries=replace(entries, columns=places[entries.columns]),
        )


def loss_table(experience: Experience | None, normalisation: str | None = None) -> LossTable:
    """Return the table of an experience, without tasks and configurations that have no success.

    A part of an experience has the configurations of all of it. Those that its tasks have not tried
    are no candidates, for example those of a task that was held out.

    normalisation: one of `NORMALISATIONS`. Default: RED if every metric is an error, else ranks.
    """
    experience = require_experience(experience)
    shift = _shift_to_errors(experience)
    if normalisation is None:
        lowest = np.nanmin(experience.losses + shift, initial=np.inf)
        normalisation = "red" if lowest >= 0.0 else "rank"
    tasks = [name for name in experience.tasks if experience.task(name).is_success.any()]
    if not tasks:
        raise MethodError(
            "a portfolio needs a past task with a successful evaluation, but none of the "
            f"{len(experience.tasks)} tasks has one: give other experience",
            rule="no-success",
            field="experience",
            value=len(experience.tasks),
        )
    parts = [_entries(experience.task(name), shift, normalisation) for name in tasks]
    losses = np.concatenate([of_task for _, of_task in parts])
    entries = LossEntries(
        np.repeat(np.arange(len(tasks)), [len(columns) for columns, _ in parts]),
        np.concatenate([columns for columns, _ in parts]),
        losses,
    ).where(~np.isnan(losses))
    table = LossTable(tuple(tasks), experience.configs, entries, normalisation)
    return table.take(np.unique(entries.columns))


def shares_configurations(experience: Experience) -> bool:
    """Return `has_common_configs` of the experience's table, without making the table."""
    rows = np.isfinite(experience.losses).all(axis=1)
    tasks, columns = experience.task_index[rows], experience.config_index[rows]
    least = least_tasks(int(np.count_nonzero(np.bincount(tasks))))
    if not len(columns) or np.bincount(columns).max() < least:
        return False
    width = len(experience.configs)
    # Sorting takes a tenth of the time that `np.unique` takes for a million numbers.
    ordered = np.sort(tasks.astype(np.int64) * width + columns)
    once = ordered[np.diff(ordered, prepend=-1) > 0]
    tried = np.bincount(once % width)
    return bool(tried[tried >= least].sum() >= 0.5 * tried.sum())


def _shift_to_errors(experience: Experience) -> Floats:
    """Return (number of metrics,): 1 turns a negated score between 0 and 1 into an error."""
    shifts = np.zeros(len(experience.metrics))
    for column, metric in enumerate(experience.metrics):
        losses = experience.losses[:, column]
        low, high = np.nanmin(losses, initial=np.inf), np.nanmax(losses, initial=-np.inf)
        if metric.direction is Direction.MAX and low >= -1.0 and high <= 0.0:
            shifts[column] = 1.0
    return shifts


def _entries(records: TaskRecords, shift: Floats, normalisation: str) -> tuple[Ints, Losses]:
    """Return the columns (n,) that a task has tried, ascending, and their losses.

    If a measurement was repeated, the last one at the highest fidelity counts.
    """
    done = np.flatnonzero(records.is_full_fidelity)[::-1]
    columns, last = np.unique(records.config_index[done].astype(np.int64), return_index=True)
    losses = records.losses[done[last]] + shift
    unit = scalarise(losses, NORMALISATIONS[normalisation])
    return columns, unit.astype(np.float32)
