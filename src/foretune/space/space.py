"""The view of a space that every other room works with."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from ConfigSpace import ConfigurationSpace
from numpy.typing import NDArray

from foretune._base.arrays import Floats, Ints
from foretune.errors import SpaceError
from foretune.space import configspace_reader, json_format, neighbours, sampling, union
from foretune.space.conditions import compile_rules
from foretune.space.definition import Definition, Draft
from foretune.space.encoding import Encoded, nearest_values
from foretune.space.notation import from_notation
from foretune.space.parameters import Kind, Parameter, parameter_of
from foretune.space.plugins import space_reader
from foretune.space.renaming import Choices, Names, Renaming
from foretune.space.structure import Structure, read_structure
from foretune.space.table import describe

RECENTLY_READ = 8
"""So many spaces are not read again from their text."""


class Space:
    """What may be tried: an immutable view of a ConfigurationSpace.

        space = Space.of({"lr": (1e-4, 1e-1, "log"), "layers": (1, 5)})
        batch = space.encode([{"lr": 1e-3, "layers": 2}])
        batch.x                  # the unit cube
        space.decode(batch)      # the same dicts again, exactly

    Build one with `Space.of` or `Space.from_json`.
    """

    def __init__(self, json_text: str) -> None:
        self.definition: Definition = json_format.read_space(json_text)
        """Hyperparameters, conditions and forbidden clauses as ConfigSpace's objects."""
        # Written anew, so that what a file leaves to defaults does not make two spaces differ.
        self._json = json_format.write_space(self.definition)
        self.parameters: tuple[Parameter, ...] = _parameters(self.definition)
        """In the order of the columns of `Encoded.values`, parents before children."""
        self.width: int = self.parameters[-1].columns.stop
        """The number of columns of `Encoded.x`."""
        self.rules = compile_rules(self.definition, self.parameters)
        """Conditions and forbidden clauses, evaluated on batches."""
        self._check_defaults()

    @staticmethod
    def of(given: Any, *, stages: Sequence[str] = ()) -> "Space":
        """The space of a ConfigurationSpace, a plain dict, Optuna distributions, or a Space.

        stages: names of categoricals to be read as stages although nothing depends on them.
        """
        if isinstance(given, Space):
            if not stages:
                return given
            given = given.definition
        if isinstance(given, Mapping) and not isinstance(given, ConfigurationSpace):
            given = (space_reader(given) or from_notation)(given)
        if not isinstance(given, ConfigurationSpace | Definition | Draft):
            raise SpaceError(
                "a space must be a ConfigurationSpace, a dict in the short notation, or a dict of "
                f"Optuna distributions, but got {type(given).__name__}: convert it first"
            )
        space = Space(json_format.write_space(given, stages))
        space._check_stages(stages)
        return space

    @staticmethod
    def from_json(text: str) -> "Space":
        """The space of ConfigSpace's JSON."""
        # A damaged file may hold anything; what cannot be looked up is refused by the reader.
        return _recently_read(text) if isinstance(text, str) else Space(text)

    def to_json(self) -> str:
        """ConfigSpace's JSON."""
        return self._json

    def __reduce__(self) -> tuple[Any, ...]:
        return Space, (self._json,)

    @cached_property
    def config_space(self) -> ConfigurationSpace:
        """ConfigSpace's own object: do not change it.

        Foretune does not need it. Making it takes ConfigSpace three times longer for each level of
        nested conditions.
        """
        return json_format.config_space_of(self._json)

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 (hex), equal for equal spaces."""
        return json_format.fingerprint_of(self._json)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        return len(self.parameters)

    def __repr__(self) -> str:
        return f"Space({len(self)} hyperparameters, {self.structure.kind})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the hyperparameters, in order."""
        return tuple(p.name for p in self.parameters)

    @cached_property
    def structure(self) -> Structure:
        """Stages, algorithms and their hyperparameters."""
        return read_structure(self.definition, self.parameters)

    @cached_property
    def column_groups(self) -> Ints:
        """(width,): which columns of `Encoded.x` belong together, as numbers from 0 on.

        The columns of one categorical hyperparameter are one group, all others stand alone.
        """
        owners = [p.name for p in self.parameters for _ in range(p.width)]
        groups = {name: number for number, name in enumerate(dict.fromkeys(owners))}
        return np.array([groups[owner] for owner in owners], dtype=np.int64)

    def describe(self) -> str:
        """A table of the hyperparameters, for people."""
        return describe(self.definition, self.parameters)

    def encode(
        self,
        configs: Sequence[Mapping[str, Any]],
        *,
        fill_defaults: bool = False,
        drop_inactive: bool = False,
    ) -> Encoded:
        """Configurations (dicts or ConfigSpace's own) as a batch; refuses what is not legal.

        fill_defaults: give missing active hyperparameters their default values.
        drop_inactive: forget values given to inactive hyperparameters instead of refusing them.
        """
        values = configspace_reader.read_configs(self.parameters, configs)
        return self._check(values, fill=fill_defaults, drop=drop_inactive)

    def decode(self, encoded: Encoded) -> list[dict[str, Any]]:
        """The configurations of a batch of this space as dicts."""
        if encoded.space != self:
            raise SpaceError(
                "a batch must be decoded by its own space, but this one is of another: "
                "use Encoded.dicts, or Space.adopt first"
            )
        return encoded.dicts()

    def from_columns(
        self,
        columns: Mapping[str, Collection[Any]],
        n: int,
        *,
        fill_defaults: bool = False,
        drop_inactive: bool = False,
    ) -> Encoded:
        """A batch from n values a name (a list, an array, a column of pandas).

        None, NaN and what pandas calls missing mean that it is not given. The other arguments are
        those of `encode`.
        """
        values = configspace_reader.read_columns(self.parameters, columns, n)
        return self._check(values, fill=fill_defaults, drop=drop_inactive)

    def from_values(self, values: Floats) -> Encoded:
        """A batch from exact values (n, H), as in `Encoded.values`; refuses what is not legal."""
        values = self._matrix(values, len(self), "values")
        for column, parameter in enumerate(self.parameters):
            configspace_reader.check_range(parameter, values[:, column])
        return self._check(values, fill=False, drop=False)

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> Encoded:
        """What `Encoded.packed` made arrays of."""
        return self.from_values(np.where(arrays["active"].astype(bool), arrays["values"], np.nan))

    def from_unit(self, x: Floats) -> Encoded:
        """The nearest configurations to points (n, W) of the unit cube, as in `Encoded.x`.

        Numbers are clipped and rounded, the largest of a one-hot wins, and what the conditions
        make inactive is dropped. Every row is kept: one that lands on a forbidden combination is
        refused, for there is no nearest legal configuration without a search.
        """
        x = self._matrix(x, self.width, "x")
        if np.isnan(x).any():
            raise SpaceError("points of the unit cube must be numbers, but got NaN: replace it")
        settled = self.rules.settle(nearest_values(self.parameters, np.clip(x, 0.0, 1.0)))
        configspace_reader.check_forbidden(self.parameters, self.rules, settled)
        return Encoded(self, settled)

    def defaults(self) -> Encoded:
        """The default configuration, a batch of one."""
        return self.encode([{}], fill_defaults=True)

    def sample(self, n: int, *, seed: int, how: Literal["random", "sobol"] = "random") -> Encoded:
        """n legal configurations, uniform on the scales of the hyperparameters."""
        if how == "random":
            draw = sampling.random_draw(len(self), np.random.default_rng(seed))
        elif how == "sobol":
            draw = sampling.sobol_draw(len(self), seed)
        else:
            raise SpaceError(f"sampling must be 'random' or 'sobol', but got {how!r}: use one")
        return Encoded(self, sampling.legal_values(self.parameters, self.rules, n, draw))

    def neighbours(
        self, one: Encoded, *, seed: int, per_parameter: int = 10, sigma: float = 0.1
    ) -> Encoded:
        """Legal configurations that differ from `one` (a batch of one) in one decision each.

        per_parameter: at most so many for each active hyperparameter; sigma: the standard
        deviation of a step of a float, on the unit scale.
        """
        if len(one) != 1:
            raise SpaceError(
                f"neighbours are those of one configuration, but got {len(one)}: take one row"
            )
        near, _ = self.neighbourhoods(one, seed=seed, per_parameter=per_parameter, sigma=sigma)
        return near.take(near.first_occurrences())

    def neighbourhoods(
        self, batch: Encoded, *, seed: int, per_parameter: int = 10, sigma: float = 0.1
    ) -> tuple[Encoded, Ints]:
        """The neighbours of every configuration, and the row of `batch` that each belongs to."""
        rng = np.random.default_rng(seed)
        values, owners = neighbours.neighbour_values(
            self.parameters, self.rules, batch.values, rng, per_parameter, sigma
        )
        return Encoded(self, values), owners

    def union(self, other: "Space") -> "Space":
        """The smallest space that holds both: parameters and choices gained, ranges widened."""
        return Space(union.merge_json(self, other))

    def renamed(self, names: Names, *, choices: Choices | None = None) -> "Space":
        """The same space, in which these hyperparameters have other names, {old: new}, and these
        choices, {hyperparameter: {old: new}}.

        What a choice brings along is called by it: where `svm` becomes `SVC`, `model:svm:C` becomes
        `model:SVC:C`.
        """
        return Space(self.renaming(names, choices).of_json(self._json))

    def renaming(self, names: Names, choices: Choices | None = None) -> Renaming:
        """What everything is called where these have other names."""
        return Renaming.of(self.parameters, names, choices or {})

    def adopt(self, encoded: Encoded) -> Encoded:
        """Configurations of a smaller space in this larger one.

        What is active here and unknown there gets its default.
        """
        if encoded.space == self:
            return Encoded(self, encoded.values)
        return self.encode(encoded.dicts(), fill_defaults=True)

    def _check(self, values: Floats, *, fill: bool, drop: bool) -> Encoded:
        checked = configspace_reader.check_activity(
            self.parameters, self.rules, values, fill=fill, drop=drop
        )
        configspace_reader.check_forbidden(self.parameters, self.rules, checked)
        return Encoded(self, checked)

    def _matrix(self, given: Floats, width: int, what: str) -> Floats:
        matrix = np.asarray(given, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != width:
            raise SpaceError(
                f"{what} must be a matrix with {width} columns, but got the shape "
                f"{matrix.shape}: reshape it"
            )
        return matrix

    def _check_defaults(self) -> None:
        """Refuse a space whose default configuration is not legal, as ConfigSpace does."""
        settled = self.rules.settle(
            np.array([[p.number_of(p.default) for p in self.parameters]], dtype=np.float64)
        )
        here = {
            p.name
            for p, number in zip(self.parameters, settled[0], strict=True)
            if not np.isnan(number)
        }
        doubtful = here ^ self.definition.active_by_default()
        if doubtful:
            raise SpaceError(
                "a space must be one that ConfigSpace accepts, but it cannot tell whether "
                f"'{min(doubtful)}' is active by default, for its parent is not: use another "
                "condition than 'not equal' there"
            )
        try:
            configspace_reader.check_forbidden(self.parameters, self.rules, settled)
        except SpaceError as error:
            raise SpaceError(
                f"forbidden clauses must allow the default configuration, but {error}"
            ) from None

    def _check_stages(self, stages: Sequence[str]) -> None:
        for name in stages:
            kind = next((p.kind for p in self.parameters if p.name == name), None)
            if kind not in (Kind.CATEGORICAL, Kind.CONSTANT):
                raise SpaceError(
                    "a stage must be a categorical or constant hyperparameter of the space, but "
                    f"'{name}' is {kind or 'unknown'}: name another"
                )


def _parameters(definition: Definition) -> tuple[Parameter, ...]:
    parameters: list[Parameter] = []
    for hyperparameter in definition.hyperparameters.values():
        start = parameters[-1].columns.stop if parameters else 0
        parameters.append(parameter_of(hyperparameter, start))
    return tuple(parameters)


@lru_cache(maxsize=RECENTLY_READ)
def _recently_read(text: str) -> Space:
    """Read once: a file of knowledge holds the same text many times, and it takes long."""
    return Space(text)
