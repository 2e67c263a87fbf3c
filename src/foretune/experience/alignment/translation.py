"""Configurations of one space as configurations of another, as far as they can be.

Values are taken over as they are, or rounded to what the other space has. What is not known gets
the value that is assumed for it, or else one that says as little as possible (`fill`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats, Ints
from foretune._base.names import suggestion
from foretune.errors import ExperienceError, SpaceError
from foretune.experience.alignment.restriction import convert_column
from foretune.space import Encoded, Space
from foretune.space.parameters import Kind, Parameter
from foretune.space.renaming import Choices, Names

ROUNDING = 1e-9
"""How far beyond a bound, relative to the range on its scale, a value may lie and count as it.

From a choice that is a number, how far relative to that.
"""

MOST_REDRAWS = 10
"""So often what is drawn is drawn anew where the combination is forbidden."""


@dataclass(frozen=True, slots=True)
class TranslatedConfigs:
    """Configurations in another space, and what is to be said of each value: all (n, H)."""

    values: Floats
    contradicted: Bools
    """Where they have a value that the space does not have."""
    differs: Bools
    """Where they had another value of what is a setting now."""
    unrecorded: Bools
    """Where nothing is known of what is active now."""

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> "TranslatedConfigs":
        """Nothing is known yet."""
        nowhere = [np.zeros(shape, dtype=bool) for _ in range(3)]
        return cls(np.full(shape, np.nan), *nowhere)

    def replace(self, rows: Ints, other: "TranslatedConfigs") -> None:
        """Put rows of another translation in the place of these."""
        for own, theirs in zip(self._arrays, other._arrays, strict=True):
            own[rows] = theirs[rows]

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.values, self.contradicted, self.differs, self.unrecorded


def rename_configs(configs: Encoded, names: Names, choices: Choices | None = None) -> Encoded:
    """The same configurations, in whose space hyperparameters and choices have other names.

    names: {old: new}. choices: {hyperparameter: {old: new}}.
    """
    try:
        renaming = configs.space.renaming(names, choices)
        space = Space.from_json(renaming.of_json(configs.space.to_json()))
    except SpaceError as error:
        raise ExperienceError(f"names of past runs cannot be changed so: {error}") from error
    # The order of a space follows from its names.
    new = {renaming.names[name]: number for number, name in enumerate(configs.space.names)}
    return space.from_values(configs.values[:, [new[name] for name in space.names]])


def translate_legally(
    configs: Encoded, space: Space, assumed: Mapping[str, float]
) -> TranslatedConfigs:
    """Configurations in `space`; what is drawn for them makes none forbidden if that can be."""
    found = _translate(configs, space, assumed)
    for again in range(1, MOST_REDRAWS + 1):
        forbidden = space.rules.forbidden(found.values) & found.unrecorded.any(axis=1)
        if not forbidden.any():
            break
        found.replace(np.flatnonzero(forbidden), _translate(configs, space, assumed, again=again))
    return found


def _translate(
    configs: Encoded, space: Space, assumed: Mapping[str, float], *, again: int = 0
) -> TranslatedConfigs:
    """Configurations in `space`. What was inactive is not known.

    again: as `fill` takes it.
    """
    columns = {each.name: number for number, each in enumerate(configs.space.parameters)}
    found = TranslatedConfigs.nothing((len(configs), len(space)))
    for number, (parameter, condition) in enumerate(
        zip(space.parameters, space.rules.conditions, strict=True)
    ):
        active = np.full(len(configs), True) if condition is None else condition(found.values)
        column = found.values[:, number]
        if (place := columns.get(parameter.name)) is not None:
            source, given = configs.space.parameters[place], configs.values[:, place]
            known = active & ~np.isnan(given)
            own = _convert_values(source, parameter, given)
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
        column[gaps] = parameter.quantile(_draw_numbers(parameter.name, rows[gaps], again))
    else:
        middle = np.median(known)
        column[gaps] = middle if parameter.kind is Kind.FLOAT else np.rint(middle)


def _draw_numbers(name: str, rows: Floats, again: int) -> Floats:
    """(n,) numbers of [0, 1] that are as good as random, each by the name and its row."""
    begun = blake2b(name.encode(), digest_size=8, salt=bytes([again]))
    digests = []
    for row in rows:
        digest = begun.copy()
        digest.update(row.tobytes())
        digests.append(digest.digest())
    numbers: Floats = np.frombuffer(b"".join(digests), dtype="<u8") / 2.0**64
    return numbers


def _is_setting_now(source: Parameter, to: Parameter) -> bool:
    """Whether it has a single value now, and whatever it was still tells good from bad."""
    return to.size == 1 and (source.size == 1 or _numbers_of(source) is not None)


def _convert_values(source: Parameter, to: Parameter, column: Floats) -> Floats:
    """A column of the one hyperparameter as numbers of the other, NaN where it has none.

    Numbers are rounded to what the other has, as long as they lie within its range; choices that
    have no order are the same up to rounding only.
    """
    numbers = _numbers_of(source)
    if numbers is None:
        return convert_column(source, to, column)
    values = column
    if not source.is_number:
        known = ~np.isnan(column)
        values = column.copy()
        values[known] = numbers[column[known].astype(np.int64)]
    if to.is_number or to.kind is Kind.ORDINAL:
        return _nearest(to, values, log=source.log or to.log)
    return _alike(to, values, convert_column(source, to, column))


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


def encode_assumptions(space: Space, assumed: Mapping[str, Any]) -> dict[str, float]:
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
                f"space, {parameters[name].allowed_text}, but got {value!r}: widen the space, or "
                "assume "
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
