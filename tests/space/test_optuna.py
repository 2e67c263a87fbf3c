import sys

import pytest

from foretune.errors import SpaceError
from foretune.space import Kind, Space
from tests.refusals import refuses

distributions = pytest.importorskip("optuna.distributions")


def test_every_distribution() -> None:
    space = Space.of(
        {
            "f": distributions.FloatDistribution(0.0, 2.0),
            "fl": distributions.FloatDistribution(1e-4, 1.0, log=True),
            "fs": distributions.FloatDistribution(0.1, 0.5, step=0.1),
            "i": distributions.IntDistribution(1, 9),
            "il": distributions.IntDistribution(1, 100, log=True),
            "is": distributions.IntDistribution(2, 8, step=3),
            "c": distributions.CategoricalDistribution(("a", None, 1)),
        }
    )
    seen = {p.name: (p.kind, p.log, p.choices or (p.low, p.high)) for p in space.parameters}
    assert seen == {
        "f": (Kind.FLOAT, False, (0.0, 2.0)),
        "fl": (Kind.FLOAT, True, (1e-4, 1.0)),
        "fs": (Kind.ORDINAL, False, (0.1, 0.2, 0.3, 0.4, 0.5)),
        "i": (Kind.INT, False, (1, 9)),
        "il": (Kind.INT, True, (1, 100)),
        "is": (Kind.ORDINAL, False, (2, 5, 8)),
        "c": (Kind.CATEGORICAL, False, ("a", None, 1)),
    }


def test_samples_are_contained_in_the_distributions() -> None:
    given = {
        "a": distributions.FloatDistribution(0.05, 0.95, step=0.15),
        "b": distributions.IntDistribution(3, 19, step=4),
        "c": distributions.CategoricalDistribution((True, False)),
    }
    for config in Space.of(given).sample(50, seed=0).dicts():
        for name, distribution in given.items():
            inner = distribution.to_internal_repr(config[name])
            assert distribution._contains(inner)


def test_single_points_are_constants() -> None:
    space = Space.of(
        {
            "f": distributions.FloatDistribution(1.5, 1.5),
            "i": distributions.IntDistribution(2, 2, step=3),
        }
    )
    assert {p.kind for p in space.parameters} == {Kind.CONSTANT}
    assert space.sample(1, seed=0).dicts() == [{"f": 1.5, "i": 2}]


def test_a_grid_too_fine_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"at most 10000 points, but 'x' has 10000001"):
        Space.of({"x": distributions.FloatDistribution(0.0, 1.0, step=1e-7)})
    with pytest.raises(SpaceError, match=r"at most 10000 points, but 'x' has 100001"):
        Space.of({"x": distributions.IntDistribution(0, 200_000, step=2)})
    with pytest.raises(SpaceError, match=r"at most 10000 points"):
        Space.of({"x": distributions.IntDistribution(0, 10**40, step=2)})


def test_bounds_that_rounding_destroys_are_refused() -> None:
    with refuses("rounded-range", field="x", value=(1e-14, 1e-2)):
        Space.of({"x": distributions.FloatDistribution(1e-14, 1e-2, log=True)})
    with refuses("integer-too-large", field="x", value=(0, 2**70)):
        Space.of({"x": distributions.IntDistribution(0, 2**70)})


def test_an_unknown_distribution_is_refused() -> None:
    odd = type("Odd", (distributions.BaseDistribution,), {})
    odd.__abstractmethods__ = frozenset()
    with pytest.raises(SpaceError, match=r"'x' is a Odd: replace it"):
        Space.of({"x": odd()})


def test_optuna_is_not_needed_for_other_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "optuna.distributions")
    assert len(Space.of({"a": (0, 1)})) == 1
    assert "optuna.distributions" not in sys.modules
