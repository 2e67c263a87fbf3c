import numpy as np
from ConfigSpace import ConfigurationSpace, ForbiddenEqualsClause

from foretune.search.local_search import climb, close_in
from foretune.space import Encoded, Space

SPACE = Space.of(
    {
        "rate": (1e-4, 1.0, "log"),
        "model": {"tree": {"depth": (1, 50)}, "line": {"slope": (-1.0, 1.0)}},
        "colour": ["red", "green", "blue"],
    }
)


def height(configs: Encoded) -> np.ndarray:
    """Highest at rate=0.01, model=tree, depth=20, colour=blue."""
    scores = [
        -abs(np.log10(config["rate"]) + 2)
        - (0.05 * abs(config["model:tree:depth"] - 20) if config["model"] == "tree" else 3.0)
        - (config["colour"] != "blue")
        for config in configs.dicts()
    ]
    return np.array(scores)


def test_climbing_reaches_the_peak_of_a_mixed_conditional_space() -> None:
    starts = SPACE.sample(10, seed=0)
    ends = climb(starts, height, seed=0)
    best = ends.dicts()[int(np.argmax(height(ends)))]
    assert best["model"] == "tree"
    assert best["colour"] == "blue"
    assert abs(best["model:tree:depth"] - 20) <= 1
    assert 0.005 < best["rate"] < 0.02


def test_climbing_never_goes_down_and_keeps_the_order() -> None:
    starts = SPACE.sample(6, seed=3)
    ends = climb(starts, height, seed=1)
    assert len(ends) == 6
    assert (height(ends) >= height(starts)).all()


def test_climbing_repeats_by_seed() -> None:
    starts = SPACE.sample(4, seed=5)
    assert climb(starts, height, seed=2).dicts() == climb(starts, height, seed=2).dicts()


FLAT = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0), "colour": ["red", "green"]})


def test_closing_in_finds_digits_that_climbing_does_not() -> None:
    def bowl(configs: Encoded) -> np.ndarray:
        return -np.square(configs.x[:, :2] - [0.31, 0.57]).sum(axis=1)

    climbed = climb(FLAT.sample(5, seed=0), bowl, seed=0)
    closer = close_in(climbed, bowl, seed=1)
    assert np.median(-bowl(climbed)) > 1e-5
    assert (-bowl(closer) < 1e-6).all()


def test_closing_in_never_goes_down_and_repeats_by_seed() -> None:
    starts = SPACE.sample(6, seed=3)
    ends = close_in(starts, height, seed=1)
    assert (height(ends) >= height(starts)).all()
    assert ends.dicts() == close_in(starts, height, seed=1).dicts()


def test_where_nothing_is_a_number_there_is_nothing_to_close_in() -> None:
    starts = Space.of({"a": ["x", "y"], "b": {"ordinal": [1, 2, 3]}}).sample(2, seed=0)
    never: list[int] = []
    ends = close_in(starts, lambda configs: np.full(len(configs), never[0]), seed=0)
    assert ends.dicts() == starts.dicts()


def test_where_all_neighbours_are_forbidden_nobody_moves() -> None:
    config_space = ConfigurationSpace({"n": (1, 3)})
    only = config_space["n"]
    config_space.add([ForbiddenEqualsClause(only, 1), ForbiddenEqualsClause(only, 3)])
    starts = Space.of(config_space).encode([{"n": 2}])
    assert close_in(starts, lambda configs: configs.values[:, 0], seed=0).dicts() == [{"n": 2}]
