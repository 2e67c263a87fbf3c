"""Experience carried over to a space that has changed since.

Spaces change from one search to the next: a range is moved, a hyperparameter or an algorithm comes
or goes. `narrowing` keeps what is exactly the same in both spaces; here a run counts as long as
nothing that is known about it contradicts the new space:

- A value that the new space does not have leaves the run out.
- A hyperparameter that is not searched any more is forgotten.
- What is not known of a run gets the value that is assumed for it, or else one that says as little
  as possible (`fill`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from foretune.arrays import Bools, Floats
from foretune.errors import ExperienceError
from foretune.experience.model import Experience
from foretune.experience.naming import listed, suggestion
from foretune.experience.narrowing import in_other_space, moved
from foretune.space import Encoded, Space
from foretune.space.parameters import Kind, Parameter

ROUNDING = 1e-9
"""How far beyond a bound, relative to the range, a value may lie and still count as the bound."""

MOST_NAMED = 5
"""Messages name no more hyperparameters than this."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What an experience says about another space, and what was lost on the way."""

    experience: Experience
    runs: int
    """How many there were before."""
    tasks: int
    """Of how many tasks."""
    outside: Mapping[str, int]
    """How many runs have a value of a hyperparameter that the space does not have."""
    unknown: tuple[str, ...]
    """What is searched now, and no run says anything of."""
    gone: tuple[str, ...]
    """What past runs have chosen, and nobody searches any more."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost, left open or forgotten."""
        return len(self.experience) == self.runs and not self.unknown and not self.gone

    def told(self) -> str:
        """What happened, in a sentence."""
        kept, tasks = len(self.experience), len(self.experience.tasks)
        parts = [
            f"past runs are of another space: {kept:,} of {self.runs:,} (of {tasks:,} of "
            f"{self.tasks:,} tasks) are used"
        ]
        if self.outside:
            parts.append(_lie_outside(self.outside))
        if self.unknown:
            parts.append(f"they say nothing of {listed(self.unknown)}")
        if self.gone:
            parts.append(f"what they chose for {listed(self.gone)} is not looked at")
        return "; ".join(parts)


def carried_over(
    experience: Experience, space: Space, *, assumed: Mapping[str, Any] | None = None
) -> Carried:
    """What the runs of `experience` say about `space`.

    assumed: the values that past runs had of hyperparameters they did not record.
    """
    runs, tasks = len(experience), len(experience.tasks)
    given = assumed_numbers(space, assumed or {})
    if experience.space == space:
        return Carried(experience, runs, tasks, {}, (), ())
    recorded = set(experience.space.names)
    searched = [each.name for each in space.parameters if each.kind is not Kind.CONSTANT]
    if not recorded.intersection(searched):
        raise ExperienceError(
            "an experience must share hyperparameters with the space that is searched, but past "
            f"runs have {listed(experience.space.names)} and the space has {listed(searched)}: "
            "name them alike, or leave the experience out"
        )
    values, contradicted = _translated(experience.configs, space, given)
    outside = _runs_outside(experience, space, contradicted)
    rows = np.flatnonzero(~contradicted.any(axis=1) & ~space.rules.forbidden(values))
    known = in_other_space(experience, space.from_values(values[rows]), rows)
    if known is None:
        raise ExperienceError(
            f"an experience must hold runs that lie in the space that is searched, but none of "
            f"{runs:,} does: {_lie_outside(outside) or 'they are forbidden there'}; widen it, or "
            "leave the experience out"
        )
    unknown = tuple(name for name in searched if name not in recorded and name not in given)
    chosen = (each.name for each in experience.space.parameters if each.size > 1)
    gone = tuple(name for name in chosen if name not in space.names)
    return Carried(known, runs, tasks, outside, unknown, gone)


def together(parts: Sequence[Carried]) -> Carried:
    """What several experiences say about the same space; tasks of the same name are the same."""
    merged = [part.experience for part in parts]
    while len(merged) > 1:  # in pairs, so that no table is copied once for every other
        pairs = zip(merged[::2], [*merged[1::2], None], strict=False)
        merged = [one if other is None else one.merge(other) for one, other in pairs]
    outside = Counter[str]()
    for part in parts:
        outside.update(part.outside)
    names = dict.fromkeys(name for part in parts for name in part.unknown)
    return Carried(
        merged[0],
        sum(part.runs for part in parts),
        sum(part.tasks for part in parts),
        dict(outside),
        tuple(name for name in names if all(name in part.unknown for part in parts)),
        tuple(dict.fromkeys(name for part in parts for name in part.gone)),
    )


def fill(parameter: Parameter, column: Floats, gaps: Bools, rows: Floats) -> None:
    """Put values that say little where nothing is known.

    They are drawn at random where no run knows any, and for choices; else they are the median.

    rows: what is known of each configuration. A draw follows from that alone: the same
    configuration gets the same value wherever it occurs, and its place says nothing.
    """
    known = column[~np.isnan(column)]
    if parameter.kind is Kind.CATEGORICAL or len(known) == 0:
        column[gaps] = parameter.quantile(_drawn(parameter.name, rows[gaps]))
    else:
        middle = np.median(known)
        column[gaps] = middle if parameter.kind is Kind.FLOAT else np.rint(middle)


def _drawn(name: str, rows: Floats) -> Floats:
    """(n,) numbers of [0, 1] that are as good as random, each by the name and its row."""
    begun = blake2b(name.encode(), digest_size=8)
    digests = []
    for row in rows + 0.0:  # -0.0 is no other number
        digest = begun.copy()
        digest.update(row.tobytes())
        digests.append(digest.digest())
    numbers: Floats = np.frombuffer(b"".join(digests), dtype="<u8") / 2.0**64
    return numbers


def _translated(
    configs: Encoded, space: Space, assumed: Mapping[str, float]
) -> tuple[Floats, Bools]:
    """Configurations (n, H) in `space`, and (n, H) where they have values that it does not have.

    What was inactive is not known.
    """
    columns = {each.name: number for number, each in enumerate(configs.space.parameters)}
    values = np.full((len(configs), len(space)), np.nan)
    contradicted = np.zeros(values.shape, dtype=bool)
    for number, (parameter, condition) in enumerate(
        zip(space.parameters, space.rules.conditions, strict=True)
    ):
        active = np.ones(len(configs), dtype=bool) if condition is None else condition(values)
        column = values[:, number]
        if (source := columns.get(parameter.name)) is not None:
            given = configs.values[:, source]
            found = _taken_over(configs.space.parameters[source], parameter, given)
            column[active] = found[active]
            contradicted[:, number] = active & ~np.isnan(given) & np.isnan(found)
        gaps = active & np.isnan(column)
        if parameter.name in assumed:
            column[gaps] = assumed[parameter.name]
        else:
            fill(parameter, column, gaps, configs.values)
    return values, contradicted


def _taken_over(source: Parameter, to: Parameter, column: Floats) -> Floats:
    """A column of the one hyperparameter as numbers of the other, NaN where it has none.

    Numbers are rounded to what the other has, as long as they lie within its range.
    """
    if to.kind is Kind.CONSTANT and (source.is_number or source.size == 1):
        # A setting that is another one now: what was found with it still tells good from bad.
        return np.where(np.isnan(column), np.nan, 0.0)
    numbers = _numbers_of(source)
    if numbers is None or to.kind in (Kind.CATEGORICAL, Kind.CONSTANT):
        return moved(source, to, column)
    if not source.is_number:
        known = ~np.isnan(column)
        column = column.copy()
        column[known] = numbers[column[known].astype(np.int64)]
    return _nearest(to, column)


def _nearest(to: Parameter, numbers: Floats) -> Floats:
    """The nearest values of a hyperparameter; NaN beyond its range, or where it has no numbers."""
    own = _numbers_of(to)
    if own is None:
        return np.full(len(numbers), np.nan)
    low, high = own.min(), own.max()
    slack = ROUNDING * (high - low)
    with np.errstate(invalid="ignore"):
        within = (numbers >= low - slack) & (numbers <= high + slack)
    near = np.clip(np.where(within, numbers, low), low, high)
    if to.kind is Kind.INT:
        near = np.rint(near)
    elif to.kind is Kind.ORDINAL:
        near = np.abs(near[:, None] - own).argmin(axis=1).astype(float)
    return np.where(within, near, np.nan)


def _numbers_of(parameter: Parameter) -> Floats | None:
    """The bounds, or the choices where all are numbers; else None."""
    if parameter.is_number:
        return np.array([parameter.low, parameter.high])
    if all(type(choice) in (int, float) for choice in parameter.choices):
        return np.array(parameter.choices, dtype=float)
    return None


def assumed_numbers(space: Space, assumed: Mapping[str, Any]) -> dict[str, float]:
    """What is assumed, as the numbers that stand for it in the space."""
    parameters = {each.name: each for each in space.parameters}
    found = {}
    for name, value in assumed.items():
        if name not in parameters:
            raise ExperienceError(
                "what is assumed of past runs must be a hyperparameter of the space that is "
                f"searched, but got '{name}': {suggestion(name, space.names)}"
            )
        number = number_in(parameters[name], value)
        if np.isnan(number):
            raise ExperienceError(
                f"the value that past runs are assumed to have had of '{name}' must be one of the "
                f"space, {parameters[name].allowed}, but got {value!r}: widen the space, or assume "
                "another"
            )
        found[name] = number
    return found


def number_in(parameter: Parameter, value: Any) -> float:
    """The number that stands for a value; NaN where the hyperparameter has no such value."""
    if not parameter.is_number:
        index = parameter.index_of(value)
        return np.nan if index is None else float(index)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return np.nan
    try:
        number = float(value)
    except OverflowError:
        return np.nan  # a whole number beyond any range
    return float(_nearest(parameter, np.array([number]))[0])


def _runs_outside(experience: Experience, space: Space, contradicted: Bools) -> dict[str, int]:
    runs = contradicted[experience.config_index].sum(axis=0)
    return {name: int(n) for name, n in zip(space.names, runs, strict=True) if n}


def _lie_outside(outside: Mapping[str, int]) -> str:
    """How many runs the values of which hyperparameters leave out, the most first."""
    order = sorted(outside, key=lambda name: -outside[name])[:MOST_NAMED]
    return ", ".join(f"{outside[name]:,} lie outside of '{name}'" for name in order)
