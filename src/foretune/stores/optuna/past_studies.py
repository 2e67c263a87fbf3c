"""Past studies of differing spaces as one table, and what it says about the space of a new one.

A cell that is empty is not known: the study did not have the hyperparameter, or it was inactive.
In the space of a new study such a cell gets the default value. A trial outside the new space is
left out.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    distribution_to_json,
    json_to_distribution,
)

from foretune._base.arrays import Bools, Floats, Ints
from foretune.experience import Experience, Metric
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.space import Kind, Parameter, Space
from foretune.stores.optuna.distribution_union import SeenDistribution, unite_distributions
from foretune.stores.optuna.study_space import conditional_space
from foretune.stores.optuna.values import UNFIT, inward, representable

KIND, VERSION = "foretune-past-studies", 2
LEAST_OVERLAP = 0.5
"""A past study counts if it had at least this share of the new study's hyperparameters."""
LEAST_SHARE = 0.5
"""A space is usual if at least this share of the past studies had its hyperparameters."""
LEAST_TRIALS = 3
"""A past study counts if at least so many of its trials lie in the new study's space."""
MOST_EXAMPLES = 2_000
"""Conditions are told from at most so many trials."""


@dataclass(frozen=True, slots=True)
class TrialCells:
    """The hyperparameters of all trials, one cell after the other."""

    row: NDArray[np.int64]
    """(C,), the trial of each cell."""
    kind: NDArray[np.int64]
    """(C,), the place of its name and distribution in `kinds`."""
    value: Floats
    """(C,), as Optuna stores it: numbers as they are, choices by index."""
    kinds: tuple[tuple[str, BaseDistribution], ...]


@dataclass(frozen=True)
class PastTrials:
    """N successful trials of past studies."""

    tasks: tuple[str, ...]
    task_index: NDArray[np.int32]
    """(N,), ascending."""
    losses: Floats
    """(N, objectives), minimised."""
    columns: tuple[tuple[str, BaseDistribution], ...]
    """Names (one that was a number here and a choice there has two columns) and distributions."""
    values: Floats
    """(N, columns), numbers as they are, choices by index, NaN where nothing is known."""
    recorded: Experience | None = field(default=None, compare=False)
    """The experience that the table was made from, if it was one."""

    @classmethod
    def of_cells(
        cls, tasks: Sequence[str], task_index: NDArray[np.int32], losses: Floats, cells: TrialCells
    ) -> "PastTrials":
        """The table of trials whose hyperparameters come as `cells`."""
        columns = _columns(cells.kinds)
        place = {_column_key(*column): number for number, column in enumerate(columns)}
        values = np.full((len(losses), len(columns)), np.nan)
        order = np.argsort(cells.kind, kind="stable")
        ends = np.searchsorted(cells.kind[order], np.arange(len(cells.kinds) + 1))
        for number, (name, distribution) in enumerate(cells.kinds):
            column = place[_column_key(name, distribution)]
            own = order[ends[number] : ends[number + 1]]
            moved = _renumber_choices(distribution, columns[column][1], cells.value[own])
            values[cells.row[own], column] = moved
        return cls(tuple(tasks), task_index, losses, columns, values)

    @classmethod
    def of_experience(cls, experience: Experience) -> "PastTrials":
        """The same table from an experience, whose space has a name for everything."""
        counted = [experience.task(name).is_full_fidelity for name in experience.tasks]
        done = np.flatnonzero(np.concatenate(counted))
        rows = experience.configs.values[experience.config_index[done]]
        columns, values = [], []
        for number, parameter in enumerate(experience.space.parameters):
            distribution, table = _as_distribution(parameter)
            columns.append((parameter.name, distribution))
            values.append(_map_by_table(table, rows[:, number]))
        return cls(
            experience.tasks,
            experience.task_index[done],
            experience.losses[done],
            tuple(columns),
            np.column_stack(values),
            experience,
        )

    @cached_property
    def usual_space(self) -> Space | None:
        """Where a new study will search if it is like half of the past; None if they differ."""
        if self.recorded is not None:
            return self.recorded.space
        known = _by_task(~np.isnan(self.values), self.task_index, len(self.tasks))
        usual, studies = Counter(map(tuple, known.tolist())).most_common(1)[0]
        if studies < LEAST_SHARE * len(self.tasks):
            return None
        chosen = {self.columns[i][0]: i for i in np.flatnonzero(usual).tolist()}
        distributions = representable({name: self.columns[i][1] for name, i in chosen.items()})
        if not distributions:
            return None
        alike = np.flatnonzero((known == usual).all(axis=1)[self.task_index])
        spread = np.linspace(0, len(alike) - 1, min(len(alike), MOST_EXAMPLES)).astype(int)
        examples = [self._example(int(row), chosen) for row in alike[np.unique(spread)]]
        return conditional_space(distributions, examples)

    @cached_property
    def typical_best(self) -> dict[str, Any]:
        """For each hyperparameter what was best in past studies: the median, or the commonest."""
        standing = np.sum([_ranks(column) for column in self.losses.T], axis=0)
        order = np.lexsort((standing, self.task_index))
        best = order[np.flatnonzero(np.diff(self.task_index[order], prepend=-1))]
        typical, studies = {}, Counter[str]()
        for column, (name, distribution) in enumerate(self.columns):
            values = self.values[best, column]
            values = values[~np.isnan(values)]
            if len(values) > studies[name]:
                numbers, counts = np.unique(values, return_counts=True)
                is_choice = isinstance(distribution, CategoricalDistribution)
                middle = numbers[counts.argmax()] if is_choice else np.median(values)
                typical[name] = distribution.to_external_repr(float(middle))
                studies[name] = len(values)
        return typical

    def experience_in(self, space: Space) -> Experience | None:
        """What the past says about configurations of `space`; None where it says nothing."""
        if self.recorded is not None and self.recorded.space == space:
            return self.recorded
        values, fits = self._in_space(space)
        known = _by_task(~np.isnan(values), self.task_index, len(self.tasks))
        overlaps = known.mean(axis=1) >= LEAST_OVERLAP
        values = self._without_gaps(space, values)
        fits &= overlaps[self.task_index] & ~space.rules.forbidden(values)
        fits &= np.bincount(self.task_index[fits], minlength=len(self.tasks))[self.task_index] >= (
            LEAST_TRIALS
        )
        rows = np.flatnonzero(fits)
        if len(rows) == 0:
            return None
        kept, task_index = np.unique(self.task_index[rows], return_inverse=True)
        return Experience.build(
            space,
            [Metric(f"loss_{number}") for number in range(self.losses.shape[1])],
            [self.tasks[task] for task in kept],
            task_index,
            space.from_values(values[rows]),
            np.arange(len(rows)),
            self.losses[rows],
        )

    def digest(self) -> str:
        """A sha256 (hex) of all that is in it."""
        arrays = [self.task_index, self.losses, self.values]
        described = self._describe()
        if (kept := self.recorded) is not None:
            # In its own space a prior learns from the experience itself, which holds more: how
            # tasks are described, what failed, how long it took.
            described |= {"meta_features": kept.meta_features, "starts": kept.starts}
            arrays += [kept.configs.values, kept.task_index, kept.config_index, kept.values]
            arrays += [kept.status, kept.seconds]
            arrays += [] if kept.fidelity is None else [kept.fidelity]
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        known = ~np.isnan(self.values)
        arrays: dict[str, NDArray[Any]] = {
            "task_index": self.task_index,
            "losses": self.losses,
            "known": known,
            "values": np.where(known, self.values, 0.0),
        }
        save_artifact(path, kind=KIND, version=VERSION, meta=self._describe(), arrays=arrays)

    @classmethod
    def load(cls, path: Path) -> "PastTrials":
        """Read what `save` wrote."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        columns = tuple((name, json_to_distribution(text)) for name, text in meta["columns"])
        values = np.where(arrays["known"], arrays["values"], np.nan)
        return cls(tuple(meta["tasks"]), arrays["task_index"], arrays["losses"], columns, values)

    def _describe(self) -> dict[str, Any]:
        columns = [[name, distribution_to_json(given)] for name, given in self.columns]
        return {"tasks": list(self.tasks), "columns": columns}

    def _in_space(self, space: Space) -> tuple[Floats, Bools]:
        """The table in the columns of `space`, and (N,) whether a trial lies in it."""
        values = np.full((len(self.losses), len(space)), np.nan)
        fits = np.ones(len(self.losses), dtype=bool)
        for number, parameter in enumerate(space.parameters):
            for column, (name, distribution) in enumerate(self.columns):
                if name == parameter.name:
                    here = np.flatnonzero(~np.isnan(self.values[:, column]))
                    given = self.values[here, column]
                    values[here, number] = translate_values(distribution, parameter, given)
                    fits[here] &= ~np.isnan(values[here, number])
        return values, fits

    def _without_gaps(self, space: Space, values: Floats) -> Floats:
        """Unknown cells get a value that says little, and what is then inactive gets none."""
        filled = values.copy()
        for parameter, column in zip(space.parameters, filled.T, strict=True):
            column[np.isnan(column)] = parameter.number_of(parameter.default)
        return space.rules.settle(filled)

    def _example(self, row: int, chosen: Mapping[str, int]) -> dict[str, Any]:
        """One trial as a dict, with the names and columns of `chosen`."""
        return {
            name: self.columns[column][1].to_external_repr(self.values[row, column])
            for name, column in chosen.items()
            if not np.isnan(self.values[row, column])
        }


def translate_values(
    distribution: BaseDistribution, parameter: Parameter, values: Floats
) -> Floats:
    """Stored values (n,) as numbers of the parameter; NaN where it has no such value."""
    distinct, inverse = np.unique(values, return_inverse=True)
    found = (inward(parameter, distribution.to_external_repr(value)) for value in distinct.tolist())
    numbers = [np.nan if value is UNFIT else parameter.number_of(value) for value in found]
    return np.array(numbers)[inverse.reshape(-1)]


def _columns(
    kinds: Sequence[tuple[str, BaseDistribution]],
) -> tuple[tuple[str, BaseDistribution], ...]:
    """Each name once for numbers and once for choices, with the union of its distributions."""
    grouped: dict[tuple[str, bool], list[BaseDistribution]] = {}
    for name, distribution in kinds:
        grouped.setdefault(_column_key(name, distribution), []).append(distribution)
    return tuple(
        (name, unite_distributions(SeenDistribution("", name, one) for one in group)[name])
        for (name, _), group in grouped.items()
    )


def _column_key(name: str, distribution: BaseDistribution) -> tuple[str, bool]:
    return name, isinstance(distribution, CategoricalDistribution)


def _renumber_choices(given: BaseDistribution, column: BaseDistribution, values: Floats) -> Floats:
    """Stored values in the column's own numbering of choices."""
    if not isinstance(given, CategoricalDistribution):
        return values
    table = np.array([column.to_internal_repr(choice) for choice in given.choices], dtype=float)
    return _map_by_table(table, values)


def _map_by_table(table: Floats | None, values: Floats) -> Floats:
    if table is None:
        return values
    found = np.full(len(values), np.nan)
    here = ~np.isnan(values)
    found[here] = table[values[here].astype(np.int64)]
    return found


def _as_distribution(parameter: Parameter) -> tuple[BaseDistribution, Floats | None]:
    """A distribution that holds all values, and what index becomes which stored value."""
    if parameter.is_number:
        return FloatDistribution(parameter.low, parameter.high), None
    if parameter.kind is Kind.ORDINAL and all(type(c) in (int, float) for c in parameter.choices):
        grid = np.array(parameter.choices, dtype=float)
        return FloatDistribution(float(grid.min()), float(grid.max())), grid
    return CategoricalDistribution(parameter.choices), None


def _by_task(known: Bools, task_index: NDArray[np.int32], tasks: int) -> Bools:
    """(tasks, columns), whether any trial of a task knows a column."""
    found = np.zeros((tasks, known.shape[1]), dtype=bool)
    np.logical_or.at(found, task_index, known)
    return found


def _ranks(losses: Floats) -> Ints:
    return np.argsort(np.argsort(losses, kind="stable"), kind="stable")
