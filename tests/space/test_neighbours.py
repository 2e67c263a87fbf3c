import numpy as np
import pytest
from scipy import stats

from foretune.space import Encoded, Space
from tests.refusals import refuses
from tests.space.spaces import CASH, EVERY_KIND


def near(space: Space, config: dict, **options: float) -> Encoded:
    return space.neighbours(space.encode([config]), **{"seed": 0, **options})  # type: ignore[arg-type]


def test_one_decision_differs() -> None:
    space = Space.of(EVERY_KIND)
    one = space.sample(1, seed=0)
    batch = space.neighbours(one, seed=1)
    differing = (batch.values != one.values).sum(axis=1)
    assert set(differing.tolist()) == {1}


def test_floats_take_gaussian_steps_on_their_scale() -> None:
    space = Space.of({"rate": (1e-4, 1.0, "log")})
    batch = near(space, {"rate": 1e-2}, per_parameter=2000, sigma=0.1)
    assert len(batch) == 2000
    assert stats.kstest(batch.x[:, 0], stats.norm(0.5, 0.1).cdf).pvalue > 1e-3


def test_log_counts_take_gaussian_steps_on_their_scale() -> None:
    batch = near(Space.of({"n": (1, 10**8, "log")}), {"n": 10**4}, per_parameter=2000, sigma=0.1)
    assert len(batch) > 1900  # some steps round to the same integer
    assert stats.kstest(batch.x[:, 0], stats.norm(0.5, 0.1).cdf).pvalue > 1e-3


def test_steps_outside_are_redrawn() -> None:
    space = Space.of({"share": (0.0, 1.0)})
    batch = near(space, {"share": 0.0}, per_parameter=2000, sigma=0.2)
    assert len(batch) == 2000
    assert batch.values.min() > 0
    assert stats.kstest(batch.values[:, 0], stats.halfnorm(scale=0.2).cdf).pvalue > 1e-3


def test_even_an_absurd_sigma_stays_inside() -> None:
    batch = near(Space.of({"share": (0.0, 1.0)}), {"share": 0.5}, sigma=1e9)
    assert len(batch) == 10
    assert ((batch.values >= 0) & (batch.values <= 1)).all()


@pytest.mark.parametrize(
    ("bounds", "value", "expected"),
    [
        ((1, 5), 3, {2, 4}),  # Z = max(1, floor(5 / 10)) = 1
        ((1, 5), 1, {2}),
        ((0, 29), 10, {7, 8, 9, 11, 12, 13}),  # Z = 3
        ((0, 29), 29, {26, 27, 28}),
    ],
)
def test_counts_move_by_at_most_a_tenth(bounds: tuple, value: int, expected: set) -> None:
    batch = near(Space.of({"n": bounds}), {"n": value}, per_parameter=200)
    assert {config["n"] for config in batch.dicts()} == expected


def test_ranks_move_likewise() -> None:
    space = Space.of({"size": {"ordinal": ["xs", "s", "m", "l"]}})
    batch = near(space, {"size": "s"}, per_parameter=50)
    assert {config["size"] for config in batch.dicts()} == {"xs", "m"}


@pytest.mark.parametrize("value", [1, 2, 3])
def test_log_counts_always_move(value: int) -> None:
    batch = near(Space.of({"n": (1, 3, "log")}), {"n": value}, sigma=1e-6)
    moved = {config["n"] for config in batch.dicts()}
    assert moved == {1: {2}, 2: {1, 3}, 3: {2}}[value]


def test_categories_change_to_all_others_or_some() -> None:
    space = Space.of({"c": list("abcdef")})
    assert {c["c"] for c in near(space, {"c": "b"}).dicts()} == set("acdef")
    assert len(near(space, {"c": "b"}, per_parameter=2)) == 2


def test_a_new_algorithm_gets_random_hyperparameters() -> None:
    space = Space.of(CASH)
    one = space.encode([{"model": "svm", "model:svm:C": 1.0, "budget": 0.5}])
    drawn = set()
    for seed in range(20):
        for config in space.neighbours(one, seed=seed).dicts():
            if config["model"] == "forest":
                assert config["budget"] == 0.5
                drawn.add(config["model:forest:trees"])
    assert len(drawn) > 10


def test_a_seed_decides_everything() -> None:
    space = Space.of(CASH)
    one = space.sample(1, seed=0)
    assert space.neighbours(one, seed=2) == space.neighbours(one, seed=2)
    assert space.neighbours(one, seed=2) != space.neighbours(one, seed=3)


def test_constants_and_single_choices_have_no_neighbours() -> None:
    space = Space.of({"a": 1, "b": ["only"], "o": {"ordinal": ["only"]}})
    assert len(space.neighbours(space.sample(1, seed=0), seed=0)) == 0


def test_only_one_configuration_has_a_neighbourhood() -> None:
    space = Space.of(CASH)
    with refuses("not-one-configuration", value=2):
        space.neighbours(space.sample(2, seed=0), seed=0)
    assert np.isfinite(space.neighbours(space.sample(1, seed=0), seed=0).x).all()


def test_neighbourhoods_of_many_belong_to_their_own_rows() -> None:
    space = Space.of(EVERY_KIND)
    origins = space.sample(5, seed=0)
    around, owners = space.neighbourhoods(origins, seed=1)
    differing = (around.values != origins.values[owners]).sum(axis=1)
    assert set(differing.tolist()) == {1}
    assert set(owners.tolist()) == set(range(5))


def test_nothing_has_no_neighbourhood() -> None:
    space = Space.of(CASH)
    around, owners = space.neighbourhoods(space.sample(3, seed=0).take([]), seed=0)
    assert len(around) == len(owners) == 0
