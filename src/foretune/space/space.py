"""`Space` and `Encoded`: what may be tried, and a batch of configurations in it.

The two types refer to each other, so they share this module. They say what can be done, and the
modules below them do it with plain hyperparameters and matrices.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from ConfigSpace import ConfigurationSpace
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Bools, Floats, Ints
from foretune.errors import SpaceError
from foretune.space import configspace_reader, json_format, neighbours, sampling, unit_cube
from foretune.space.conditions import compile_rules
from foretune.space.definition import Definition, Draft
from foretune.space.limits import check_defaults, check_matrix, check_stages
from foretune.space.notation import from_notation, space_reader
from foretune.space.parameters import Parameter, read_parameters
from foretune.space.renaming import Choices, Names, Renaming
from foretune.space.rows import clean_values, find_rows, freeze, row_hashes, row_keys, unique_rows
from foretune.space.structure import Structure, read_structure
from foretune.space.table import describe
from foretune.space.union import merge_definitions

SPACES_KEPT = 8
"""The number of spaces that are kept, so that the same text is not read again."""


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
        # Written again, so that defaults left out of a file do not make two spaces differ.
        self._json = json_format.write_space(self.definition)
        self.parameters: tuple[Parameter, ...] = read_parameters(self.definition)
        """In the order of the columns of `Encoded.values`, parents before children."""
        self.width: int = self.parameters[-1].columns.stop
        """The number of columns of `Encoded.x`."""
        self.rules = compile_rules(self.definition, self.parameters)
        """Conditions and forbidden clauses, evaluated on batches."""
        check_defaults(self.definition, self.parameters, self.rules)

    @staticmethod
    def of(given: Any, *, stages: Sequence[str] = ()) -> "Space":
        """Read a ConfigurationSpace, a plain dict, Optuna distributions, or a Space.

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
                f"Optuna distributions, but got {type(given).__name__}: convert it first",
                rule="not-a-space",
                value=given,
            )
        space = Space(json_format.write_space(given, stages))
        check_stages(space.parameters, stages)
        return space

    @staticmethod
    def from_json(text: str) -> "Space":
        """Read ConfigSpace's JSON."""
        # A damaged file may hold something unhashable here, which the reader refuses.
        return _read_json(text) if isinstance(text, str) else Space(text)

    def to_json(self) -> str:
        """Return ConfigSpace's JSON."""
        return self._json

    def __reduce__(self) -> tuple[Any, ...]:
        return Space, (self._json,)

    @cached_property
    def config_space(self) -> ConfigurationSpace:
        """ConfigSpace's own object: do not change it.

        Foretune does not need it. ConfigSpace takes three times longer to make it for each level
        of nested conditions.
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
        """(width,): the number of the hyperparameter that each column of `Encoded.x` belongs to.

        Numbers count from 0 and skip constants, which have no column.
        """
        widths = [p.width for p in self.parameters if p.width]
        return np.repeat(np.arange(len(widths), dtype=np.int64), widths)

    def describe(self) -> str:
        """Return a table of the hyperparameters, for people."""
        return describe(self.definition, self.parameters)

    def encode(
        self,
        configs: Sequence[Mapping[str, Any]],
        *,
        fill_defaults: bool = False,
        drop_inactive: bool = False,
    ) -> "Encoded":
        """Encode configurations (dicts or ConfigSpace's own); refuse any that is not legal.

        fill_defaults: give missing active hyperparameters their default values.
        drop_inactive: forget values given to inactive hyperparameters instead of refusing them.
        """
        values = configspace_reader.read_configs(self.parameters, configs)
        return self._check(values, fill=fill_defaults, drop=drop_inactive)

    def decode(self, encoded: "Encoded") -> list[dict[str, Any]]:
        """Return the configurations of a batch of this space as dicts."""
        if encoded.space != self:
            raise SpaceError(
                "a batch must be decoded by its own space, but this one is of another: "
                "use Encoded.dicts, or Space.adopt first",
                rule="another-space",
            )
        return encoded.dicts()

    def from_columns(
        self,
        columns: Mapping[str, Collection[Any]],
        n: int,
        *,
        fill_defaults: bool = False,
        drop_inactive: bool = False,
    ) -> "Encoded":
        """Encode n configurations from a list, an array or a pandas column for each name.

        None, NaN and missing values of pandas mean that no value is given. The other arguments
        are those of `encode`.
        """
        values = configspace_reader.read_columns(self.parameters, columns, n)
        return self._check(values, fill=fill_defaults, drop=drop_inactive)

    def from_values(self, values: Floats) -> "Encoded":
        """Encode exact values (n, H), as in `Encoded.values`; refuse what is not legal."""
        values = check_matrix(values, len(self), "values")
        for column, parameter in enumerate(self.parameters):
            configspace_reader.check_range(parameter, values[:, column])
        return self._check(values, fill=False, drop=False)

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> "Encoded":
        """Encode the arrays that `Encoded.pack` returned."""
        return self.from_values(np.where(arrays["active"].astype(bool), arrays["values"], np.nan))

    def from_unit(self, x: Floats) -> "Encoded":
        """Return the configurations nearest to points (n, W) of the unit cube, as in `Encoded.x`.

        Numbers are clipped and rounded, the largest of a one-hot wins, and inactive values are
        dropped. A point that lands on a forbidden combination is refused, because the nearest
        legal configuration could only be found by a search.
        """
        x = check_matrix(x, self.width, "x")
        settled = self.rules.settle(unit_cube.nearest_values(self.parameters, x))
        configspace_reader.check_forbidden(self.parameters, self.rules, settled)
        return Encoded(self, settled)

    def defaults(self) -> "Encoded":
        """Return the default configuration, a batch of one."""
        return self.encode([{}], fill_defaults=True)

    def sample(self, n: int, *, seed: int, how: Literal["random", "sobol"] = "random") -> "Encoded":
        """Draw n legal configurations, uniform on the scales of the hyperparameters."""
        draw = sampling.unit_draw(how, len(self), seed)
        return Encoded(self, sampling.legal_values(self.parameters, self.rules, n, draw))

    def neighbours(
        self, one: "Encoded", *, seed: int, per_parameter: int = 10, sigma: float = 0.1
    ) -> "Encoded":
        """Return legal configurations that differ from `one` (a batch of one) in one decision.

        per_parameter: the most neighbours for each active hyperparameter; sigma: the standard
        deviation of a step of a float, on the unit scale.
        """
        if len(one) != 1:
            raise SpaceError(
                f"neighbours are those of one configuration, but got {len(one)}: take one row",
                rule="not-one-configuration",
                field="one",
                value=len(one),
            )
        near, _ = self.neighbourhoods(one, seed=seed, per_parameter=per_parameter, sigma=sigma)
        return near.take(near.first_occurrences())

    def neighbourhoods(
        self, batch: "Encoded", *, seed: int, per_parameter: int = 10, sigma: float = 0.1
    ) -> "tuple[Encoded, Ints]":
        """Return the neighbours of every configuration, and the row that each belongs to."""
        rng = np.random.default_rng(seed)
        values, owners = neighbours.neighbour_values(
            self.parameters, self.rules, batch.values, rng, per_parameter, sigma
        )
        return Encoded(self, values), owners

    def union(self, other: "Space") -> "Space":
        """Return the smallest space that holds both: names and choices of both, wider ranges."""
        return Space(merge_definitions(self.definition, other.definition))

    def renamed(self, names: Names, *, choices: Choices | None = None) -> "Space":
        """Give hyperparameters other names, {old: new}, and choices, {hyperparameter: {old: new}}.

        Hyperparameters of a choice are renamed with it: where `svm` becomes `SVC`, `model:svm:C`
        becomes `model:SVC:C`.
        """
        return Space(self.renaming(names, choices).of_json(self._json))

    def renaming(self, names: Names, choices: Choices | None = None) -> Renaming:
        """Return the new name of everything in the space; the arguments are those of `renamed`."""
        return Renaming.of(self.parameters, names, choices or {})

    def adopt(self, encoded: "Encoded") -> "Encoded":
        """Return the configurations of a smaller space in this larger one.

        A hyperparameter that is active only in the larger space gets its default.
        """
        if encoded.space == self:
            return Encoded(self, encoded.values)
        return self.encode(encoded.dicts(), fill_defaults=True)

    def _check(self, values: Floats, *, fill: bool, drop: bool) -> "Encoded":
        checked = configspace_reader.check_activity(
            self.parameters, self.rules, values, fill=fill, drop=drop
        )
        configspace_reader.check_forbidden(self.parameters, self.rules, checked)
        return Encoded(self, checked)


@lru_cache(maxsize=SPACES_KEPT)
def _read_json(text: str) -> Space:
    """Read a text once: a file of knowledge holds the same text many times."""
    return Space(text)


@dataclass(frozen=True, eq=False)
class Encoded:
    """n configurations of one space; immutable.

    A `Space` makes it (`encode`, `sample`, ...), and guarantees that every row is legal.
    """

    space: Space
    values: Floats
    """(n, H), exact: numbers as they are, choices by index, NaN where inactive."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", freeze(clean_values(self.values)))

    @staticmethod
    def of_rows(space: Space, values: Floats) -> "Encoded":
        """Encode rows of other batches of the space, whose bit patterns are clean already.

        values: (n, H), in the memory order of rows. It must never change.
        """
        encoded = object.__new__(Encoded)
        object.__setattr__(encoded, "space", space)
        object.__setattr__(encoded, "values", freeze(values))
        return encoded

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoded, (self.space, self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.dicts())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encoded):
            return NotImplemented
        return self.space == other.space and np.array_equal(
            self.values, other.values, equal_nan=True
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def active(self) -> Bools:
        """(n, H), True where a hyperparameter is active."""
        return freeze(~np.isnan(self.values))

    @cached_property
    def x(self) -> Floats:
        """(n, W), the unit cube: logs honoured, categoricals one-hot, ordinals by rank.

        An inactive number is 0.5, an inactive categorical all zeros.
        """
        return freeze(unit_cube.unit_points(self.space.parameters, self.values))

    @cached_property
    def codes(self) -> Floats:
        """(n, H), one column for each hyperparameter in [0, 1], and -1 where inactive."""
        return freeze(unit_cube.unit_codes(self.space.parameters, self.values))

    def take(self, index: ArrayLike) -> "Encoded":
        """Return the rows at `index`: integers (or one), or a mask."""
        rows = np.atleast_1d(index)
        return Encoded.of_rows(self.space, self.values[rows if len(rows) else []])

    @staticmethod
    def concat(batches: Sequence["Encoded"]) -> "Encoded":
        """Return all rows of several batches, which must be of one space."""
        if not batches:
            raise SpaceError(
                "concat needs at least one batch, but got none: pass one or more",
                rule="no-batches",
                field="batches",
            )
        space = batches[0].space
        if any(batch.space is not space and batch.space != space for batch in batches):
            raise SpaceError(
                "only batches of one space can be joined, but these are of different ones: "
                "re-express them with Space.adopt first",
                rule="another-space",
            )
        return Encoded.of_rows(space, np.concatenate([batch.values for batch in batches]))

    def dicts(self) -> list[dict[str, Any]]:
        """Return the configurations as dicts that hold only what is active."""
        return unit_cube.to_dicts(self.space.parameters, self.values)

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return arrays without NaN, as files of arrays need them; `Space.unpack` reads them."""
        return {"values": np.nan_to_num(self.values), "active": self.active}

    def keys(self) -> NDArray[np.void]:
        """Return (n,) sortable byte strings, equal exactly where the configurations are equal."""
        return row_keys(self.values)

    def unique(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the first row of each configuration, and (n,) which of these each row is."""
        return unique_rows(self.values)

    def isin(self, other: "Encoded") -> Bools:
        """Return (n,), True where a configuration also occurs in `other`."""
        return find_rows(self.values, self.hashes, other.values, other.hashes)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """(n,), equal for equal configurations, and hardly ever for others."""
        return freeze(row_hashes(self.values))

    def first_occurrences(self) -> NDArray[np.intp]:
        """Return the ascending indices of the rows that repeat no earlier row."""
        _, first = np.unique(self.keys(), return_index=True)
        return np.sort(first)
