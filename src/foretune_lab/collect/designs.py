"""The configurations that are evaluated on every dataset: one shared list, algorithm by algorithm.

All datasets get the same list, so that methods which need common configurations can use the table.
A longer list begins with the shorter one.
"""

from collections.abc import Sequence
from itertools import chain, zip_longest
from zlib import crc32

from foretune.automl import ShippedSpace
from foretune.errors import UsageError
from foretune.search import derive_seed
from foretune.space import SEPARATOR, Encoded, Space
from foretune_lab.collect.grids import CASH_GRIDS, points


def draw_shared_configs(
    shipped: ShippedSpace, n: int, *, seed: int, only: Sequence[str] = (), even: bool = True
) -> Encoded:
    """Draw `n` different configurations of a shipped space.

    even: take as many of each algorithm, in turns. Otherwise draw a Sobol sequence over the whole
    space. In turns, `cash` takes random points of the paper's grids, and other spaces take the
    default of each algorithm, then a Sobol sequence. A Sobol sequence also follows a grid that is
    used up.
    """
    if n < 1:
        raise UsageError(
            f"at least one configuration must be evaluated, but got {n}: ask for more",
            rule="no-evaluations",
            field="evaluations",
            value=n,
        )
    space = shipped.build(only)
    if not even:
        return _different(space.sample(2 * n, seed=seed, how="sobol")).take(range(n))
    names = only or list(shipped.algorithms())
    each = -(-n // len(names))
    columns = [_of_algorithm(shipped, space, name, each, seed) for name in names]
    start = [sum(len(column) for column in columns[:k]) for k in range(len(columns))]
    rounds = zip_longest(
        *(range(first, first + len(column)) for first, column in zip(start, columns, strict=True))
    )
    turns = [index for index in chain.from_iterable(rounds) if index is not None]
    return Encoded.concat(columns).take(turns[:n])


def _of_algorithm(shipped: ShippedSpace, space: Space, name: str, n: int, seed: int) -> Encoded:
    """Return up to `n` different configurations with this algorithm."""
    seed = derive_seed(seed, crc32(name.encode()))
    narrow = shipped.build([name])
    if shipped.name == "cash":
        prefix = f"{shipped.choice}{SEPARATOR}{name}{SEPARATOR}"
        first = narrow.encode(
            [
                {shipped.choice: name, **{prefix + key: value for key, value in point.items()}}
                for point in points(CASH_GRIDS[name], n, seed=seed)
            ]
        )
    else:
        first = narrow.defaults()
    # Whole numbers and categories repeat, so more are drawn than needed.
    more = narrow.sample(2 * n, seed=seed, how="sobol")
    found = _different(Encoded.concat([first, more]))
    return space.adopt(found.take(range(min(n, len(found)))))


def _different(configs: Encoded) -> Encoded:
    return configs.take(configs.first_occurrences())
