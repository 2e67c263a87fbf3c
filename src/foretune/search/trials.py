"""The trials of an optimiser: those that were told, and the suggestions that are pending."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.errors import UsageError
from foretune.methods.contracts import Observations
from foretune.search.suggestions import Suggestion, Told
from foretune.space import Encoded, Space
from foretune.space.rows import row_hashes

SMALLEST_BUFFER = 16
"""The number of rows of the first buffer."""


class GrowingRows:
    """A growing list of rows of numbers."""

    def __init__(self, shape: tuple[int, ...] = (), dtype: type = np.float64) -> None:
        self._buffer: NDArray[Any] = np.empty((0, *shape), dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def extend(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        size = self._size + len(rows)
        if size > len(self._buffer):
            self._grow(size)
        self._buffer[self._size : size] = rows
        self._size = size

    def first(self, n: int) -> NDArray[Any]:
        """Return the first n rows, read-only."""
        rows = self._buffer[:n]
        rows.flags.writeable = False
        return rows

    def _grow(self, size: int) -> None:
        room = max(size, 2 * len(self._buffer), SMALLEST_BUFFER)
        larger = np.empty((room, *self._buffer.shape[1:]), self._buffer.dtype)
        larger[: self._size] = self._buffer[: self._size]
        self._buffer = larger


class GrowingConfigs:
    """A growing list of configurations of one space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._values = GrowingRows((len(space.parameters),))
        self._x = GrowingRows((space.width,))
        self._hashes = GrowingRows((), np.uint64)

    def __len__(self) -> int:
        return len(self._values)

    def extend(self, configs: Encoded) -> None:
        """Add configurations at the end."""
        self._values.extend(configs.values)

    def batch(self) -> Encoded:
        """Return all configurations so far as a batch, which never changes."""
        return _GrownBatch(self, self.rows(len(self)))

    def rows(self, n: int) -> Floats:
        """Return (n, H), the values of the first n."""
        return self._values.first(n)

    def unit_rows(self, n: int) -> Floats:
        """Return (n, W), the first n in the unit cube; only new ones are computed."""
        done = len(self._x)
        if done < n:
            new = Encoded.of_rows(self.space, self.rows(n)[done:])
            self._x.extend(new.x)
        return self._x.first(n)

    def row_hashes(self, n: int) -> NDArray[np.uint64]:
        """Return (n,), the hashes of the first n; only new ones are computed."""
        done = len(self._hashes)
        if done < n:
            self._hashes.extend(row_hashes(self.rows(n)[done:]))
        return self._hashes.first(n)


class _GrownBatch(Encoded):
    """The first rows of growing configurations."""

    def __init__(self, source: GrowingConfigs, values: Floats) -> None:
        object.__setattr__(self, "space", source.space)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_source", source)

    @cached_property
    def x(self) -> Floats:
        source: GrowingConfigs = self.__dict__["_source"]
        return source.unit_rows(len(self))

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        source: GrowingConfigs = self.__dict__["_source"]
        return source.row_hashes(len(self))


class ToldTrials:
    """The told configurations and their losses, in order.

    Adding one costs the same for any number of earlier ones.
    """

    def __init__(self, space: Space, objectives: int) -> None:
        self._configs = GrowingConfigs(space)
        self._losses = GrowingRows((objectives,))

    def add(self, configs: Encoded, losses: Floats) -> None:
        """Add trials at the end; losses: (n, objectives)."""
        self._configs.extend(configs)
        self._losses.extend(losses)

    def observations(self) -> Observations:
        """Return all trials so far. Adding more does not change what was returned."""
        n = len(self._configs)
        losses = np.asarray(self._losses.first(n), dtype=float)
        return Observations(self._configs.batch(), losses, np.zeros(n, dtype=bool))


class Pending:
    """The pending suggestions. No id is used twice.

    A call either succeeds, or raises an error and changes nothing.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._configs: dict[int, Encoded] = {}
        self._next_id = 0

    def __len__(self) -> int:
        return len(self._configs)

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, Real) and id_ in self._configs

    @property
    def configs(self) -> list[Encoded]:
        """The configurations as batches of one, in the order they were suggested."""
        return list(self._configs.values())

    @property
    def ids(self) -> list[int]:
        """The ids, in the same order as `configs`."""
        return list(self._configs)

    def encoded(self) -> Mapping[int, Encoded]:
        """Return the configurations by id, as batches of one."""
        return self._configs

    def dicts(self) -> dict[int, dict[str, Any]]:
        """Return the configurations by id."""
        if not self._configs:
            return {}
        return dict(zip(self._configs, Encoded.concat(self.configs).dicts(), strict=True))

    def config(self, id_: int) -> dict[str, Any]:
        """Return the configuration of one suggestion."""
        return self._configs[id_].dicts()[0]

    def add(self, config: Encoded) -> int:
        """Add a configuration, and return its id."""
        id_ = self._next_id
        self._configs[id_] = config
        self._next_id += 1
        return id_

    def assume(self, suggestions: Sequence[Suggestion]) -> None:
        """Add suggestions that were made elsewhere, under the ids that they have."""
        configs = self._space.encode([suggestion.config for suggestion in suggestions])
        pending = dict(self._configs)
        for row, suggestion in enumerate(suggestions):
            config = configs.take([row])
            _check_same(suggestion.id, config, pending.get(suggestion.id))
            pending[suggestion.id] = config
        self._configs = pending
        self._next_id = max([self._next_id, *(suggestion.id + 1 for suggestion in suggestions)])

    def withdraw(self, ids: Iterable[int]) -> None:
        """Forget suggestions that nobody will tell about."""
        unwanted = list(ids)
        unknown = [id_ for id_ in unwanted if id_ not in self]
        if unknown:
            raise UsageError(
                f"only pending suggestions can be withdrawn, but got {sorted(unknown, key=repr)} "
                f"(pending: {self._open_ids()}): leave out those that were told already",
                rule="withdraw-pending",
                field="ids",
                value=unknown,
            )
        for id_ in set(unwanted):
            del self._configs[id_]

    def configs_of(self, outcomes: Sequence[Told]) -> Encoded:
        """Return the configuration of each outcome: that of its id, or the one it names."""
        self._check_told_once(outcomes)
        # One call reads all configurations, because single calls are slow.
        told = [row for row, outcome in enumerate(outcomes) if outcome.config is not None]
        given = self._space.encode([o.config for o in outcomes if o.config is not None])
        values = np.empty((len(outcomes), given.values.shape[1]))
        values[told] = given.values
        place = dict(zip(told, range(len(told)), strict=True))
        for row, outcome in enumerate(outcomes):
            if outcome.id is not None:
                suggested = self._configs[outcome.id]
                if row in place:
                    _check_config_unchanged(outcome.id, suggested, given.take([place[row]]))
                values[row] = suggested.values[0]
            elif row not in place:
                raise UsageError(
                    "an outcome needs an id or a configuration, but got neither: give one",
                    rule="outcome-names-trial",
                    field="id",
                )
        return Encoded.of_rows(self._space, values)

    def settle(self, outcomes: Sequence[Told], configs: Encoded) -> None:
        """Forget the suggestion of each outcome, found by id or by configuration."""
        settled = {outcome.id for outcome in outcomes if outcome.id is not None}
        elsewhere = [row for row, outcome in enumerate(outcomes) if outcome.id is None]
        if elsewhere and len(settled) < len(self):
            settled |= self._waiting_for(configs.take(elsewhere), besides=settled)
        self.withdraw(settled)

    def _waiting_for(self, configs: Encoded, *, besides: set[int]) -> set[int]:
        """Return the oldest suggestion for each of these configurations."""
        waiting: dict[bytes, list[int]] = {}
        for id_, config in self._configs.items():
            if id_ not in besides:
                waiting.setdefault(_key(config), []).append(id_)
        keys = configs.keys().tolist()
        return {waiting[key].pop(0) for key in keys if waiting.get(key)}

    def _check_told_once(self, outcomes: Sequence[Told]) -> None:
        ids = [outcome.id for outcome in outcomes if outcome.id is not None]
        for id_ in ids:
            if id_ not in self:
                raise UsageError(
                    f"an outcome's id must be one of the pending suggestions, but got {id_!r} "
                    f"(pending: {self._open_ids()}): tell each suggestion once, or give the "
                    "configuration instead of the id",
                    rule="outcome-of-pending",
                    field="id",
                    value=id_,
                )
        for id_, times in Counter(ids).items():
            if times > 1:
                raise UsageError(
                    f"an outcome's id must come once, but got {id_!r} {times} times: tell each "
                    "suggestion once, and further outcomes of its configuration without an id",
                    rule="outcome-once",
                    field="id",
                    value=id_,
                )

    def _open_ids(self) -> list[int] | str:
        return sorted(self._configs) or "none"


def _check_config_unchanged(id_: int, suggested: Encoded, told: Encoded) -> None:
    """Refuse an outcome whose configuration is not the one of its id."""
    if _key(told) != _key(suggested):
        raise UsageError(
            f"an outcome with an id must be of what was suggested, but {id_} is "
            f"{suggested.dicts()[0]} and the configuration is {told.dicts()[0]}: give one of them; "
            "if another configuration was tried, withdraw the suggestion",
            rule="outcome-of-suggested-config",
            field="config",
            value=told.dicts()[0],
        )


def _check_same(id_: int, config: Encoded, pending: Encoded | None) -> None:
    """Refuse an id that stands for another configuration, because its outcome would be lost."""
    if pending is not None and _key(config) != _key(pending):
        raise UsageError(
            "a suggestion that is taken must have an id of its own, but got "
            f"{id_} for {config.dicts()[0]}, and {pending.dicts()[0]} is pending under it: give "
            "it another id, such as a negative one",
            rule="unique-id",
            field="id",
            value=id_,
        )


def _key(config: Encoded) -> bytes:
    """Return a key that equal configurations share, for a batch of one."""
    return config.keys().tobytes()
