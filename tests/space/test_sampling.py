import warnings

import numpy as np
import pytest
from ConfigSpace import (
    ConfigurationSpace,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanClause,
)
from scipy import stats

from foretune.space import Space
from tests.refusals import refuses
from tests.space.spaces import CASH, EVERY_KIND


@pytest.mark.parametrize("how", ["random", "sobol"])
def test_a_seed_decides_everything(how: str) -> None:
    space = Space.of(CASH)
    assert space.sample(50, seed=3, how=how) == space.sample(50, seed=3, how=how)
    assert space.sample(50, seed=3, how=how) != space.sample(50, seed=4, how=how)


@pytest.mark.parametrize("how", ["random", "sobol"])
@pytest.mark.parametrize("n", [0, 1, 5, 64, 100])
def test_as_many_as_asked_without_warnings(how: str, n: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(Space.of(EVERY_KIND).sample(n, seed=0, how=how)) == n


def test_random_is_uniform_on_every_scale() -> None:
    space = Space.of(EVERY_KIND)
    batch = space.sample(4000, seed=0)
    for name in ("rate", "share"):
        column = batch.codes[:, space.names.index(name)]
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    for name, size in (("depth", 11), ("kernel", 3), ("size", 3)):
        column = batch.values[:, space.names.index(name)]
        counts = np.unique(column, return_counts=True)[1]
        assert len(counts) == size
        assert stats.chisquare(counts).pvalue > 1e-3


def test_sobol_fills_evenly() -> None:
    space = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": ["x", "y"]})
    batch = space.sample(64, seed=5, how="sobol")
    for column in range(2):
        cells = np.floor(batch.values[:, column] * 64)
        assert len(set(cells)) == 64
    assert batch.values[:, 2].sum() == 32


def test_a_sobol_sequence_continues_where_a_shorter_one_ends() -> None:
    config_space = ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)})
    config_space.add(ForbiddenGreaterThanClause(config_space["a"], 0.6))
    space = Space.of(config_space)
    long = space.sample(200, seed=7, how="sobol")
    for n in (1, 5, 33, 130):
        assert space.sample(n, seed=7, how="sobol") == long.take(range(n))


def test_forbidden_combinations_are_never_drawn() -> None:
    config_space = ConfigurationSpace({"a": (0.0, 1.0), "m": ["x", "y"]})
    config_space.add(
        ForbiddenAndConjunction(
            ForbiddenGreaterThanClause(config_space["a"], 0.6),
            ForbiddenEqualsClause(config_space["m"], "y"),
        )
    )
    space = Space.of(config_space)
    for how in ("random", "sobol"):
        batch = space.sample(1000, seed=0, how=how)
        assert not space.rules.forbidden(batch.values).any()
        # y is left with 0.6 of its square, x with all of it
        assert abs(batch.values[:, 1].mean() - 0.6 / 1.6) < 0.05


@pytest.mark.parametrize("how", ["random", "sobol"])
def test_too_rare_is_refused(how: str) -> None:
    config_space = ConfigurationSpace({"a": (0.0, 1.0)})
    config_space["a"].default_value = 0.0
    config_space.add(ForbiddenGreaterThanClause(config_space["a"], 1e-7))
    with refuses("too-much-forbidden", value=0):
        Space.of(config_space).sample(3, seed=0, how=how)


def test_moderately_rare_values_are_drawn() -> None:
    config_space = ConfigurationSpace({"a": (0.0, 1.0)})
    config_space["a"].default_value = 0.0
    config_space.add(ForbiddenGreaterThanClause(config_space["a"], 0.01))
    assert Space.of(config_space).sample(1000, seed=0).values.max() <= 0.01


def test_unknown_way_is_refused() -> None:
    with refuses("unknown-sampling", value="halton"):
        Space.of(CASH).sample(3, seed=0, how="halton")  # type: ignore[arg-type]
