"""Configurations of one space as configurations of another.

Values are taken over as they are, or rounded to the values of the other space. A `MissingPolicy`
says what stands where a value is missing.
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
from foretune.experience.alignment.missing_policy import MissingPolicy
from foretune.experience.alignment.restriction import convert_column
from foretune.space import Encoded, Space
from foretune.space.parameters import Kind, Parameter
from foretune.space.renaming import Choices, Names

ROUNDING = 1e-9
"""A number beyond a bound counts as the bound if it is no further away than this share of the
range, measured on the scale of the hyperparameter. A number counts as a choice if it is no further
away than this share of the choice.
"""

MOST_REDRAWS = 10
"""How often random values are drawn again if the combination is forbidden."""


@dataclass(frozen=True, slots=True)
class TranslatedConfigs:
    """Configurations in another space, and what is known about each value: all arrays (n, H)."""

    values: Floats
    """NaN where inactive, and where a value is missing under the policy `drop`."""
    contradicted: Bools
    """True where a configuration has a value that the space does not have."""
    differs: Bools
    """True where a configuration had another value of a hyperparameter that is a constant now."""
    unrecorded: Bools
    """True where nothing is known about a hyperparameter that is active now."""

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> "TranslatedConfigs":
        """Nothing is known yet."""
        nowhere = [np.zeros(shape, dtype=bool) for _ in range(3)]
        return cls(np.full(shape, np.nan), *nowhere)

    def replace(self, rows: Ints, other: "TranslatedConfigs") -> None:
        """Copy these rows from another translation."""
        for own, theirs in zip(self._arrays, other._arrays, strict=True):
            own[rows] = theirs[rows]

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.values, self.contradicted, self.differs, self.unrecorded


def rename_configs(configs: Encoded, names: Names, choices: Choices | None = None) -> Encoded:
    """Return the same configurations with other names of hyperparameters and choices.

    names: {old: new}. choices: {hyperparameter: {old: new}}.
    """
    try:
        renaming = configs.space.renaming(names, choices)
        space = Space.from_json(renaming.of_json(configs.space.to_json()))
    except SpaceError as error:
        raise ExperienceError(
            f"names of past runs cannot be changed so: {error}", rule="bad-renaming"
        ) from error
    # The order of a space follows from its names.
    new = {renaming.names[name]: number for number, name in enumerate(configs.space.names)}
    return Encoded(space, configs.values[:, [new[name] for name in space.names]])


def translate_legally(
    configs: Encoded, space: Space, assumed: Mapping[str, float], missing: MissingPolicy
) -> TranslatedConfigs:
    """Translate configurations, and draw again where random values are forbidden together."""
    found = _translate(configs, space, assumed, missing)
    if missing is not MissingPolicy.MARGINALISE:
        return found
    for again in range(1, MOST_REDRAWS + 1):
        forbidden = space.rules.forbidden(found.values) & found.unrecorded.any(axis=1)
        if not forbidden.any():
            break
        redrawn = _translate(configs, space, assumed, missing, again=again)
        found.replace(np.flatnonzero(forbidden), redrawn)
    return found


def _translate(
    configs: Encoded,
    space: Space,
    assumed: Mapping[str, float],
    missing: MissingPolicy,
    *,
    again: int = 0,
) -> TranslatedConfigs:
    """Translate configurations. A hyperparameter that was inactive has no known value.

    again: how often random values were drawn before.
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
            if _is_constant_now(source, parameter):
                found.differs[:, number] = known & np.isnan(own)
                own[:] = parameter.low
            column[known] = own[known]
            found.contradicted[:, number] = known & np.isnan(column)
        gaps = active & np.isnan(column)
        found.unrecorded[:, number] = gaps & ~found.contradicted[:, number]
        if parameter.name in assumed:
            column[gaps] = assumed[parameter.name]
        elif missing is MissingPolicy.MARGINALISE:
            column[gaps] = draw_values(parameter, column, configs.values[gaps], again=again)
        elif missing is MissingPolicy.DEFAULT or parameter.size == 1:
            column[gaps] = parameter.number_of(parameter.default)
    return found


def draw_values(parameter: Parameter, recorded: Floats, rows: Floats, *, again: int = 0) -> Floats:
    """Return (n,) random values: of those that are recorded, or of the range if none is.

    recorded: what other configurations have, with NaN where nothing is known.
    rows: (n, columns), all that is known about each configuration. It is the seed of the draw: the
        same configuration gets the same value wherever it occurs.
    again: how often values were drawn before.
    """
    numbers = _draw_numbers(parameter.name, rows, again)
    known = recorded[~np.isnan(recorded)]
    if len(known) == 0:
        return parameter.quantile(numbers)
    places = np.minimum((numbers * len(known)).astype(np.int64), len(known) - 1)
    drawn: Floats = np.sort(known)[places]
    return drawn


def _draw_numbers(name: str, rows: Floats, again: int) -> Floats:
    """Return (n,) numbers from 0 to 1 that follow from the name and from each row."""
    begun = blake2b(name.encode(), digest_size=8, salt=bytes([again]))
    digests = []
    for row in rows:
        digest = begun.copy()
        digest.update(row.tobytes())
        digests.append(digest.digest())
    numbers: Floats = np.frombuffer(b"".join(digests), dtype="<u8") / 2.0**64
    return numbers


def _is_constant_now(source: Parameter, to: Parameter) -> bool:
    """Return whether it is a constant now and runs with other values still tell good from bad."""
    return to.size == 1 and (source.size == 1 or _numbers_of(source) is not None)


def _convert_values(source: Parameter, to: Parameter, column: Floats) -> Floats:
    """Return a column of one hyperparameter as numbers of another; NaN if it has no such value.

    Numbers within the range are rounded to the values that the other one has. Choices without an
    order must be equal, except for rounding.
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
    return _equal_choices(to, values, convert_column(source, to, column))


def _nearest(to: Parameter, numbers: Floats, *, log: bool) -> Floats:
    """Return the nearest values of a hyperparameter; NaN outside its range or if it has no numbers.

    log: measure distances on a log scale if all its values are positive.
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


def _equal_choices(to: Parameter, numbers: Floats, exact: Floats) -> Floats:
    """Return the choices that equal the numbers except for rounding, as 0.1 + 0.2 equals 0.3.

    exact: the choices that equal them exactly; NaN where there is none.
    """
    own = np.array([_float_of(choice) for choice in to.choices])
    places = np.flatnonzero(np.isfinite(own))
    if len(places) == 0:
        return exact
    nearest = places[np.abs(numbers[:, None] - own[places]).argmin(axis=1)]
    near = np.abs(numbers - own[nearest]) <= ROUNDING * np.abs(own[nearest])
    return np.where(near & np.isnan(exact), nearest, exact)


def _numbers_of(parameter: Parameter) -> Floats | None:
    """Return the bounds, or the choices if all of them are numbers; otherwise None."""
    if parameter.is_number:
        return np.array([parameter.low, parameter.high])
    numbers = np.array([_float_of(choice) for choice in parameter.choices])
    return numbers if np.isfinite(numbers).all() else None


def _float_of(choice: Any) -> float:
    """Return a number; NaN for anything else, and for a whole number that no float can hold."""
    if type(choice) not in (int, float):
        return np.nan
    try:
        return float(choice)
    except OverflowError:
        return np.nan


def encode_assumptions(space: Space, assumed: Mapping[str, Any]) -> dict[str, float]:
    """Return the assumed values as numbers of the space."""
    parameters = {each.name: each for each in space.parameters}
    found = {}
    for name, value in assumed.items():
        if name not in parameters:
            raise ExperienceError(
                "an assumed value must belong to a hyperparameter of the space that is searched, "
                f"but got '{name}': {suggestion(name, space.names)}",
                rule="unknown-hyperparameter",
                field=name,
                value=value,
            )
        number = number_in(parameters[name], value)
        if np.isnan(number):
            raise ExperienceError(
                f"the value that is assumed for '{name}' must be one of the space, "
                f"{parameters[name].allowed_text}, but got {value!r}: widen the space, or assume "
                "another value",
                rule="assumed-value-outside",
                field=name,
                value=value,
            )
        found[name] = number
    return found


def number_in(parameter: Parameter, value: Any) -> float:
    """Return the number of a value; NaN if the hyperparameter has no such value."""
    if isinstance(value, np.generic):
        value = value.item()
    if not parameter.is_number:
        index = parameter.index_of(value)
        return np.nan if index is None else float(index)
    return float(_nearest(parameter, np.array([_float_of(value)]), log=parameter.log)[0])
