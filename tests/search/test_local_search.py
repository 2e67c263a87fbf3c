import numpy as np

from foretune.search.local_search import climb
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


def test_nobody_leaves_a_place_for_one_that_is_no_better() -> None:
    starts = SPACE.sample(6, seed=3)
    assert climb(starts, lambda x: np.zeros(len(x)), seed=0) == starts


def test_neighbours_are_drawn_along_each_hyperparameter() -> None:
    looked: list[int] = []

    def level(x: Encoded) -> np.ndarray:
        looked.append(len(x))
        return np.zeros(len(x))

    start = SPACE.encode([{"rate": 0.1, "model": "tree", "model:tree:depth": 9, "colour": "red"}])
    climb(start, level, seed=0, per_parameter=1)
    climb(start, level, seed=0, per_parameter=3)
    # The model has one other choice, and colours have two.
    assert looked == [1, 4, 1, 3 + 1 + 3 + 2]


def test_climbing_repeats_by_seed() -> None:
    starts = SPACE.sample(4, seed=5)
    assert climb(starts, height, seed=2).dicts() == climb(starts, height, seed=2).dicts()


def test_climbers_that_are_halved_reach_the_top_with_fewer_looks() -> None:
    """The lower ones stop early, and the best end is as good."""
    starts = SPACE.sample(16, seed=0)
    looks = {True: 0, False: 0}
    ends = {}
    for halve in (True, False):

        def counted(x: Encoded, halve: bool = halve) -> np.ndarray:
            looks[halve] += len(x)
            return height(x)

        ends[halve] = climb(starts, counted, seed=0, halve=halve)
    assert looks[True] < 0.8 * looks[False]
    assert height(ends[True]).max() >= height(ends[False]).max() - 0.01
    assert (height(ends[True]) >= height(starts)).all()
