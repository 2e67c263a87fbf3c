"""Legal configurations drawn at random or along a scrambled Sobol sequence."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from scipy.stats import qmc

from foretune._base.arrays import Floats
from foretune.errors import SpaceError
from foretune.space.conditions import Rules
from foretune.space.parameters import Parameter

RAREST = 1e-4
"""Sampling gives up if a smaller share of the draws is legal."""
SMALLEST_BATCH = 64
LARGEST_BATCH = 2**14

UnitDraw: TypeAlias = Callable[[int], Floats]
"""A function that returns (m, H) new points of the unit cube, at least the requested number."""


def unit_draw(how: str, n_parameters: int, seed: int) -> UnitDraw:
    """Return the source of points: `"random"` or `"sobol"`."""
    if how == "random":
        rng = np.random.default_rng(seed)
        return lambda m: rng.random((m, n_parameters))
    if how == "sobol":
        return _sobol_draw(n_parameters, seed)
    raise SpaceError(
        f"sampling must be 'random' or 'sobol', but got {how!r}: use one",
        rule="unknown-sampling",
        field="how",
        value=how,
    )


def _sobol_draw(n_parameters: int, seed: int) -> UnitDraw:
    """Return the points of one scrambled Sobol sequence, one dimension for each hyperparameter."""
    engine = qmc.Sobol(n_parameters, scramble=True, rng=np.random.default_rng(seed))

    def draw(m: int) -> Floats:
        # The sequence is balanced only in blocks of powers of two that continue each other.
        so_far = engine.num_generated
        target = 1 << max(m + so_far - 1, 0).bit_length()
        points: Floats = engine.random(target - so_far)
        return points

    return draw


def legal_values(parameters: Sequence[Parameter], rules: Rules, n: int, draw: UnitDraw) -> Floats:
    """Return (n, H) settled values of the first n legal draws."""
    found: list[Floats] = [np.empty((0, len(parameters)))]
    kept = tried = 0
    while kept < n:
        values = rules.settle(full_values(parameters, draw(_batch(n, kept, tried))))
        legal = values[~rules.forbidden(values)]
        found.append(legal)
        kept += len(legal)
        tried += len(values)
        if kept < n and tried >= 2 / RAREST and kept < RAREST * tried:
            raise SpaceError(
                "forbidden clauses must leave at least 1 in 10,000 combinations legal, but only "
                f"{kept} of {tried} draws were: narrow the ranges instead of forbidding so much",
                rule="too-much-forbidden",
                value=kept,
            )
    return np.concatenate(found)[:n]


def full_values(parameters: Sequence[Parameter], unit: Floats) -> Floats:
    """Return (m, H) values for uniform points (m, H), as if all hyperparameters were active."""
    return np.column_stack([p.quantile(unit[:, i]) for i, p in enumerate(parameters)])


def _batch(n: int, kept: int, tried: int) -> int:
    """Estimate the number of draws that the missing rows need."""
    if tried == 0:
        return n
    share = max(kept, 1) / tried
    return int(np.clip(1.2 * (n - kept) / share, SMALLEST_BATCH, LARGEST_BATCH))
