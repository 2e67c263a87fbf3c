"""Past evaluations as a table of comparable losses: a row a task, a column a configuration."""

import math
from dataclasses import dataclass

import numpy as np

from foretune.arrays import Bools, Floats, Ints
from foretune.errors import MethodError
from foretune.experience import Direction, Experience, TaskRecords
from foretune.learning import given
from foretune.numerics.greedy import Losses
from foretune.numerics.normalise import NORMALISATIONS
from foretune.numerics.objectives import scalarise
from foretune.space import Encoded

LEAST_SHARE = 0.5
"""A configuration is shared when at least this share of the tasks has tried it."""


def least_tasks(tasks: int) -> int:
    """How many of so many tasks must have tried a configuration that is shared.

    Of two tasks it is both: what one of them alone has tried is shared with nobody.
    """
    return max(math.ceil(LEAST_SHARE * tasks), min(2, tasks))


@dataclass(frozen=True, slots=True)
class LossTable:
    """The losses of D tasks and N configurations, brought to one unit."""

    tasks: tuple[str, ...]
    configs: Encoded
    losses: Losses
    """(D, N), NaN where nothing is recorded."""
    normalisation: str

    @property
    def shares(self) -> Floats:
        """(N,), the share of the tasks that has tried each configuration."""
        shares: Floats = (~np.isnan(self.losses)).mean(axis=0)
        return shares

    @property
    def is_shared(self) -> bool:
        """Whether most evaluations are of shared configurations."""
        shares = self.shares
        return bool(shares[self._are_shared].sum() >= 0.5 * shares.sum())

    def shared(self) -> "LossTable":
        """Only the shared configurations."""
        return self.take(np.flatnonzero(self._are_shared))

    @property
    def _are_shared(self) -> Bools:
        """(N,), whether enough tasks have tried each configuration."""
        tried = np.count_nonzero(~np.isnan(self.losses), axis=0)
        return np.asarray(tried >= least_tasks(len(self.tasks)))

    def some_tasks(self, most: int, *, seed: int) -> "LossTable":
        """At most so many tasks, drawn at random, and the configurations that they have tried."""
        if len(self.tasks) <= most:
            return self
        rows = np.sort(np.random.default_rng(seed).choice(len(self.tasks), most, replace=False))
        losses = self.losses[rows]
        columns = np.flatnonzero(~np.isnan(losses).all(axis=0))
        tasks = tuple(self.tasks[row] for row in rows)
        configs = self.configs.take(columns)
        return LossTable(tasks, configs, losses[:, columns], self.normalisation)

    def take(self, columns: Ints) -> "LossTable":
        """Only these configurations."""
        losses = self.losses if len(columns) == len(self.configs) else self.losses[:, columns]
        return LossTable(self.tasks, self.configs.take(columns), losses, self.normalisation)


def loss_table(experience: Experience | None, normalisation: str | None = None) -> LossTable:
    """The table of an experience, without tasks and configurations that have no success.

    Part of an experience has the configurations of all of it: those that its tasks have not tried
    are no candidates, least of all those of a task that was held out.

    normalisation: one of `NORMALISATIONS`; if not given, RED where every metric is an error, and
    ranks where one is not.
    """
    experience = given(experience)
    shift = _shift_to_errors(experience)
    if normalisation is None:
        lowest = np.nanmin(experience.losses + shift, initial=np.inf)
        normalisation = "red" if lowest >= 0.0 else "rank"
    tasks = [name for name in experience.tasks if experience.task(name).succeeded.any()]
    if not tasks:
        raise MethodError(
            "a portfolio needs a past task with a successful evaluation, but none of the "
            f"{len(experience.tasks)} tasks has one: give other experience"
        )
    losses = np.full((len(tasks), len(experience.configs)), np.nan, dtype=np.float32)
    for row, name in zip(losses, tasks, strict=True):
        _fill(row, experience.task(name), shift, normalisation)
    table = LossTable(tuple(tasks), experience.configs, losses, normalisation)
    return table.take(np.flatnonzero(~np.isnan(losses).all(axis=0)))


def _shift_to_errors(experience: Experience) -> Floats:
    """(number of metrics,): 1 turns a negated score between 0 and 1 into an error."""
    shifts = np.zeros(len(experience.metrics))
    for column, metric in enumerate(experience.metrics):
        losses = experience.losses[:, column]
        low, high = np.nanmin(losses, initial=np.inf), np.nanmax(losses, initial=-np.inf)
        if metric.direction is Direction.MAX and low >= -1.0 and high <= 0.0:
            shifts[column] = 1.0
    return shifts


def _fill(row: Losses, records: TaskRecords, shift: Floats, normalisation: str) -> None:
    """Write a task's losses into its row (N,).

    Of repeated measurements the last of the highest fidelity counts. Only what is recorded is
    normalised: where tasks share nothing, nearly all of a row is empty.
    """
    done = np.flatnonzero(records.counted)
    last = dict(zip(records.config_index[done].tolist(), done.tolist(), strict=True))
    columns = np.array(sorted(last))
    losses = records.losses[[last[column] for column in columns.tolist()]] + shift
    row[columns] = scalarise(losses, NORMALISATIONS[normalisation])
