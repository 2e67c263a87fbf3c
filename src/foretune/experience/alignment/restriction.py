"""Experience of one space in another: only what both can express exactly.

A user may lack an estimator that the shipped experience knows, or exclude it. Configurations that
the user's space does not have are left out. The others stay the same configurations.
"""

from dataclasses import replace

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.errors import ExperienceError
from foretune.experience.build import unique_configs
from foretune.experience.data import AnyExperience
from foretune.experience.selection import take_rows, take_tasks
from foretune.space import Encoded, Space
from foretune.space.parameters import Kind, Parameter

ILLEGAL = np.nan
"""The number for a value that a hyperparameter cannot have."""


def reencode(configs: Encoded, space: Space, *, drop_unknown: bool = False) -> tuple[Encoded, Ints]:
    """Return the configurations that `space` has, encoded there, and which rows they were.

    A hyperparameter that only `space` knows gets its default. A configuration is left out if
    `space` lacks a value or an active hyperparameter, if its conditions make others active than
    before, or if it forbids the combination.

    drop_unknown: whether to drop an active hyperparameter that `space` lacks, instead of the
    configuration. The choices and the other hyperparameters must still be those of `space`.
    """
    if configs.space == space:
        return Encoded(space, configs.values), np.arange(len(configs))
    known = {parameter.name: column for column, parameter in enumerate(configs.space.parameters)}
    values = np.full((len(configs), len(space)), np.nan)
    legal = np.ones(len(configs), dtype=bool)
    for column, (parameter, condition) in enumerate(
        zip(space.parameters, space.rules.conditions, strict=True)
    ):
        active = np.ones(len(configs), dtype=bool) if condition is None else condition(values)
        if parameter.name not in known:
            values[active, column] = parameter.number_of(parameter.default)
            continue
        source = known[parameter.name]
        numbers = convert_column(
            configs.space.parameters[source], parameter, configs.values[:, source]
        )
        legal &= (configs.active[:, source] == active) & ~(active & np.isnan(numbers))
        values[active, column] = numbers[active]
    gone = [column for name, column in known.items() if name not in space.names]
    if not drop_unknown:
        legal &= ~configs.active[:, gone].any(axis=1)
    legal &= ~space.rules.forbidden(values)
    rows = np.flatnonzero(legal)
    return space.from_values(values[rows]), rows


def restrict_experience(
    experience: AnyExperience, space: Space, *, drop_unknown: bool = False
) -> AnyExperience:
    """Return the evaluations whose configurations `space` has, in that space.

    A task without any of them is left out. drop_unknown: as in `reencode`.
    """
    if experience.space == space:
        return experience
    known = in_other_space(
        experience, *reencode(experience.configs, space, drop_unknown=drop_unknown)
    )
    if known is None:
        raise ExperienceError(
            "experience must hold configurations of the space it is narrowed to, but none of "
            f"{len(experience.configs)} lies in {space!r}: narrow it less"
        )
    return known


def in_other_space(experience: AnyExperience, configs: Encoded, kept: Ints) -> AnyExperience | None:
    """Return the evaluations of some configurations, which are `configs` in another space.

    A task without any of them is left out. None if no evaluation is left.

    kept: which configurations of the experience these were.
    """
    table, there = unique_configs(configs)
    place = np.full(len(experience.configs), -1, dtype=np.int32)
    place[kept] = there
    rows = np.flatnonzero(place[experience.config_index] >= 0)
    if len(rows) == 0:
        return None
    left = take_rows(experience, rows)
    starts = {
        task: {name: tuple(int(place[i]) for i in of if place[i] >= 0) for name, of in all_.items()}
        for task, all_ in experience.starts.items()
    }
    known = replace(
        left,
        space=configs.space,
        configs=table,
        config_index=place[left.config_index],
        starts=starts,
    )
    return take_tasks(known, [experience.tasks[index] for index in np.unique(known.task_index)])


def convert_column(source: Parameter, to: Parameter, column: Floats) -> Floats:
    """Return (n,), a column of one hyperparameter as numbers of the other; NaN if it has none."""
    if not source.is_number:
        table = np.array([*(_number_in(to, choice) for choice in source.choices), np.nan])
        numbers: Floats = table[np.where(np.isnan(column), -1, column).astype(np.int64)]
        return numbers
    if not to.is_number:
        return np.array([_number_in(to, value) for value in column.tolist()])
    with np.errstate(invalid="ignore"):
        fits = (column >= to.low) & (column <= to.high)
        if to.kind is Kind.INT:
            fits &= column == np.rint(column)
    return np.where(fits, column, ILLEGAL)


def _number_in(to: Parameter, value: object) -> float:
    """Return the number that stands for one value of another space; NaN if there is none."""
    if not to.is_number:
        index = to.index_of(value)
        return ILLEGAL if index is None else float(index)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ILLEGAL
    if not to.low <= value <= to.high:  # one of them is a whole number too large for a float
        return ILLEGAL
    whole = to.kind is not Kind.INT or float(value).is_integer()
    return float(value) if whole else ILLEGAL
