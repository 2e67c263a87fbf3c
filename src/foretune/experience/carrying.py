"""Experience carried over to a space that has changed since.

Spaces change from one search to the next: a range is moved, a hyperparameter or an algorithm comes
or goes. `narrowing` keeps what is exactly the same in both spaces; here a run counts as long as
nothing that is known about it contradicts the new space:

- A value that the new space does not have leaves the run out.
- A hyperparameter that is not searched any more is forgotten. So are numbers of one that has a
  single value now, and a single value that is another now: what was found with it still tells good
  from bad.
- What is not known of a run gets the value that is assumed for it, or else one that says as little
  as possible (`fill`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune.arrays import Bools, Floats, Ints
from foretune.errors import ExperienceError
from foretune.experience.model import Experience
from foretune.experience.naming import listed, suggestion
from foretune.experience.narrowing import in_other_space, moved
from foretune.space import Encoded, Space
from foretune.space.parameters import Kind, Parameter

ROUNDING = 1e-9
"""How far beyond a bound, relative to the range on its scale, a value may lie and count as it.

From a choice that is a number, how far relative to that.
"""

MOST_REDRAWS = 10
"""So often what is drawn is drawn anew where the combination is forbidden."""

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
    forbidden: int = 0
    """How many runs have values that the space does not have together."""
    other: tuple[str, ...] = ()
    """What has a single value now, and runs that are used had another."""
    in_vain: tuple[str, ...] = ()
    """What was assumed although all runs have recorded it."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost, left open or forgotten."""
        changed = self.unknown or self.gone or self.other
        return len(self.experience) == self.runs and not changed

    def told(self) -> str:
        """What happened, in a sentence."""
        kept, tasks = len(self.experience), len(self.experience.tasks)
        parts = [
            f"past runs are of another space: {kept:,} of {self.runs:,} (of {tasks:,} of "
            f"{self.tasks:,} tasks) are used"
        ]
        parts += _left_out(self.outside, self.forbidden)
        if self.unknown:
            parts.append(f"they say nothing of {listed(self.unknown)}")
        if self.other:
            parts.append(f"they had another value of {listed(self.other)}")
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
        return Carried(experience, runs, tasks, {}, (), (), in_vain=tuple(given))
    recorded = set(experience.space.names)
    searched = [each.name for each in space.parameters if each.size > 1]
    if not recorded.intersection(searched):
        raise ExperienceError(
            "an experience must share hyperparameters with the space that is searched, but past "
            f"runs have {listed(experience.space.names)} and the space has {listed(searched)}: "
            "name them alike, or leave the experience out"
        )
    found = _legally_translated(experience.configs, space, given)
    inside = ~found.contradicted.any(axis=1)
    legal = inside & ~space.rules.forbidden(found.values)
    outside = _runs_outside(experience, space, found.contradicted)
    forbidden = int((inside & ~legal)[experience.config_index].sum())
    rows = np.flatnonzero(legal)
    known = in_other_space(experience, space.from_values(found.values[rows]), rows)
    if known is None:
        raise ExperienceError(
            f"an experience must hold runs that lie in the space that is searched, but none of "
            f"{runs:,} does: {', '.join(_left_out(outside, forbidden))}; widen it, or leave the "
            "experience out"
        )
    _check_success(known)
    chosen = (each.name for each in experience.space.parameters if each.size > 1)
    unrecorded = _anywhere(space, found.unrecorded)
    return Carried(
        known,
        runs,
        tasks,
        outside,
        unknown=tuple(name for name in searched if name not in recorded and name not in given),
        gone=tuple(name for name in chosen if name not in space.names),
        forbidden=forbidden,
        other=_anywhere(space, found.differs[rows]),
        in_vain=tuple(name for name in given if name not in unrecorded),
    )


def _anywhere(space: Space, holds: Bools) -> tuple[str, ...]:
    """The hyperparameters of which something holds in any row of (n, H)."""
    return tuple(space.names[number] for number in np.flatnonzero(holds.any(axis=0)))


def _check_success(experience: Experience) -> None:
    """Refuse runs that tell nothing of a metric: no method learns from failures alone."""
    if not np.isfinite(experience.losses).any(axis=0).all():
        raise ExperienceError(
            "an experience must hold runs that have succeeded in the space that is searched, but "
            f"none of the {len(experience):,} that lie in it has: widen it, or leave the "
            "experience out"
        )


def together(parts: Sequence[Carried]) -> Carried:
    """What several experiences say about the same space; tasks of the same name are the same."""
    # A search has no use for splits, and those of several files may contradict each other.
    merged = [replace(part.experience, splits={}) for part in parts]
    while len(merged) > 1:  # in pairs, so that no table is copied once for every other
        pairs = zip(merged[::2], [*merged[1::2], None], strict=False)
        merged = [one if other is None else one.merge(other) for one, other in pairs]
    outside = Counter[str]()
    for part in parts:
        outside.update(part.outside)
    return Carried(
        merged[0],
        sum(part.runs for part in parts),
        sum(part.tasks for part in parts),
        dict(outside),
        unknown=_in_all([part.unknown for part in parts]),
        gone=_in_any([part.gone for part in parts]),
        forbidden=sum(part.forbidden for part in parts),
        other=_in_any([part.other for part in parts]),
        in_vain=_in_all([part.in_vain for part in parts]),
    )


def _in_any(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _in_all(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(name for name in _in_any(names) if all(name in part for part in names))


def fill(
    parameter: Parameter, column: Floats, gaps: Bools, rows: Floats, *, again: int = 0
) -> None:
    """Put values that say little where nothing is known.

    They are drawn at random where no run knows any, and for choices; else they are the median.

    rows: what is known of each configuration. A draw follows from that alone: the same
    configuration gets the same value wherever it occurs, and its place says nothing.
    again: how often it was drawn before.
    """
    known = column[~np.isnan(column)]
    if parameter.kind is Kind.CATEGORICAL or len(known) == 0:
        column[gaps] = parameter.quantile(_drawn(parameter.name, rows[gaps], again))
    else:
        middle = np.median(known)
        column[gaps] = middle if parameter.kind is Kind.FLOAT else np.rint(middle)


def _drawn(name: str, rows: Floats, again: int) -> Floats:
    """(n,) numbers of [0, 1] that are as good as random, each by the name and its row."""
    begun = blake2b(name.encode(), digest_size=8, salt=bytes([again]))
    digests = []
    for row in rows + 0.0:  # -0.0 is no other number
        digest = begun.copy()
        digest.update(row.tobytes())
        digests.append(digest.digest())
    numbers: Floats = np.frombuffer(b"".join(digests), dtype="<u8") / 2.0**64
    return numbers


@dataclass(frozen=True, slots=True)
class _Translated:
    """Configurations in another space, and what is to be said of each value: all (n, H)."""

    values: Floats
    contradicted: Bools
    """Where they have a value that the space does not have."""
    differs: Bools
    """Where they had another value of what is a setting now."""
    unrecorded: Bools
    """Where nothing is known of what is active now."""

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> "_Translated":
        """Nothing is known yet."""
        nowhere = [np.zeros(shape, dtype=bool) for _ in range(3)]
        return cls(np.full(shape, np.nan), *nowhere)

    def replace(self, rows: Ints, other: "_Translated") -> None:
        """Put rows of another translation in the place of these."""
        for own, theirs in zip(self._arrays, other._arrays, strict=True):
            own[rows] = theirs[rows]

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.values, self.contradicted, self.differs, self.unrecorded


def _legally_translated(
    configs: Encoded, space: Space, assumed: Mapping[str, float]
) -> _Translated:
    """Configurations in `space`; what is drawn for them makes none forbidden if that can be."""
    found = _translated(configs, space, assumed)
    for again in range(1, MOST_REDRAWS + 1):
        forbidden = space.rules.forbidden(found.values) & found.unrecorded.any(axis=1)
        if not forbidden.any():
            break
        found.replace(np.flatnonzero(forbidden), _translated(configs, space, assumed, again=again))
    return found


def _translated(
    configs: Encoded, space: Space, assumed: Mapping[str, float], *, again: int = 0
) -> _Translated:
    """Configurations in `space`. What was inactive is not known.

    again: as `fill` takes it.
    """
    columns = {each.name: number for number, each in enumerate(configs.space.parameters)}
    found = _Translated.nothing((len(configs), len(space)))
    for number, (parameter, condition) in enumerate(
        zip(space.parameters, space.rules.conditions, strict=True)
    ):
        active = np.full(len(configs), True) if condition is None else condition(found.values)
        column = found.values[:, number]
        if (place := columns.get(parameter.name)) is not None:
            source, given = configs.space.parameters[place], configs.values[:, place]
            known = active & ~np.isnan(given)
            own = _taken_over(source, parameter, given)
            if _is_setting_now(source, parameter):
                found.differs[:, number] = known & np.isnan(own)
                own[:] = parameter.low
            column[known] = own[known]
            found.contradicted[:, number] = known & np.isnan(column)
        gaps = active & np.isnan(column)
        found.unrecorded[:, number] = gaps & ~found.contradicted[:, number]
        if parameter.name in assumed:
            column[gaps] = assumed[parameter.name]
        else:
            fill(parameter, column, gaps, configs.values, again=again)
    return found


def _is_setting_now(source: Parameter, to: Parameter) -> bool:
    """Whether it has a single value now, and whatever it was still tells good from bad."""
    return to.size == 1 and (source.size == 1 or _numbers_of(source) is not None)


def _taken_over(source: Parameter, to: Parameter, column: Floats) -> Floats:
    """A column of the one hyperparameter as numbers of the other, NaN where it has none.

    Numbers are rounded to what the other has, as long as they lie within its range; choices that
    have no order are the same up to rounding only.
    """
    numbers = _numbers_of(source)
    if numbers is None:
        return moved(source, to, column)
    values = column
    if not source.is_number:
        known = ~np.isnan(column)
        values = column.copy()
        values[known] = numbers[column[known].astype(np.int64)]
    if to.is_number or to.kind is Kind.ORDINAL:
        return _nearest(to, values, log=source.log or to.log)
    return _alike(to, values, moved(source, to, column))


def _nearest(to: Parameter, numbers: Floats, *, log: bool) -> Floats:
    """The nearest values of a hyperparameter; NaN beyond its range, or where it has no numbers.

    log: whether to measure on a log scale, if it has one.
    """
    own = _numbers_of(to)
    if own is None:
        return np.full(len(numbers), np.nan)
    on_scale = np.log if log and own.min() > 0 else np.positive
    low, high = own.min(), own.max()
    with np.errstate(invalid="ignore", divide="ignore"):
        at = on_scale(numbers)
        slack = ROUNDING * (on_scale(high) - on_scale(low))
        within = (at >= on_scale(low) - slack) & (at <= on_scale(high) + slack)
    near: Floats = np.clip(np.where(within, numbers, low), low, high)
    if to.kind is Kind.INT:
        near = np.rint(near)
    elif to.kind is Kind.ORDINAL:
        near = np.abs(on_scale(near)[:, None] - on_scale(own)).argmin(axis=1).astype(float)
    return np.where(within, near, np.nan)


def _alike(to: Parameter, numbers: Floats, exact: Floats) -> Floats:
    """The choices that numbers are but for rounding, such as 0.1 + 0.2 and 0.3.

    exact: those that they are exactly, NaN where none is.
    """
    own = np.array([_float_of(choice) for choice in to.choices])
    places = np.flatnonzero(np.isfinite(own))
    if len(places) == 0:
        return exact
    nearest = places[np.abs(numbers[:, None] - own[places]).argmin(axis=1)]
    near = np.abs(numbers - own[nearest]) <= ROUNDING * np.abs(own[nearest])
    return np.where(near & np.isnan(exact), nearest, exact)


def _numbers_of(parameter: Parameter) -> Floats | None:
    """The bounds, or the choices where all are numbers; else None."""
    if parameter.is_number:
        return np.array([parameter.low, parameter.high])
    numbers = np.array([_float_of(choice) for choice in parameter.choices])
    return numbers if np.isfinite(numbers).all() else None


def _float_of(choice: Any) -> float:
    """A number; NaN for what is none, and for whole numbers beyond any float."""
    if type(choice) not in (int, float):
        return np.nan
    try:
        return float(choice)
    except OverflowError:
        return np.nan


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
    if isinstance(value, np.generic):
        value = value.item()
    if not parameter.is_number:
        index = parameter.index_of(value)
        return np.nan if index is None else float(index)
    return float(_nearest(parameter, np.array([_float_of(value)]), log=parameter.log)[0])


def _runs_outside(experience: Experience, space: Space, contradicted: Bools) -> dict[str, int]:
    runs = contradicted[experience.config_index].sum(axis=0)
    return {name: int(n) for name, n in zip(space.names, runs, strict=True) if n}


def _left_out(outside: Mapping[str, int], forbidden: int) -> list[str]:
    """How many runs the values of which hyperparameters leave out, the most first."""
    order = sorted(outside, key=lambda name: -outside[name])[:MOST_NAMED]
    said = [", ".join(f"{outside[name]:,} lie outside of '{name}'" for name in order)]
    return [*filter(None, said), *([f"{forbidden:,} are forbidden there"] if forbidden else [])]
