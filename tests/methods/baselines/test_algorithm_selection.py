import numpy as np
import pytest

from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Target
from foretune.search import Optimizer, Told, method
from foretune.space import Space
from foretune.space.algorithms import Algorithms
from foretune_lab.baselines.algorithm_selection import AlgorithmRegion

SPACE = Space.of({"model": {"a": {"x": (0.0, 1.0)}, "b": {"y": (0.0, 1.0)}}})
CONFIGS = SPACE.sample(40, seed=0)


def past(tasks: int = 40) -> Experience:
    """Where `size` is large algorithm b wins, else a; both are best at 0.3."""
    sizes = np.linspace(0.0, 1.0, tasks)
    which = CONFIGS.values[:, 0]
    number = np.where(which == 0, CONFIGS.x[:, 2], CONFIGS.x[:, 3])
    wrong = (which[None, :] == 1) != (sizes[:, None] > 0.35)
    loss = np.abs(number - 0.3)[None, :] + wrong
    names = [f"task {n}" for n in range(tasks)]
    return Experience.from_matrix(
        SPACE,
        CONFIGS,
        names,
        [Metric("loss", Direction.MIN)],
        {"loss": loss},
        meta_features={n: {"size": float(s)} for n, s in zip(names, sizes, strict=True)},
    )


@pytest.mark.parametrize(("size", "best"), [(0.1, "a"), (0.9, "b")])
def test_as_ml_tunes_the_algorithm_that_suits_the_meta_features(size: float, best: str) -> None:
    chosen = method("as-ml")
    target = Target(SPACE, meta_features={"size": size})
    optimizer = Optimizer(target, chosen, chosen.learn(past(), seed=0), seed=0)
    for number in range(7):
        suggestion = optimizer.ask()[0]
        assert suggestion.config["model"] == best
        optimizer.tell([Told((float(number),), id=suggestion.id)])


@pytest.mark.parametrize(("size", "best"), [(0.1, "a"), (0.9, "b")])
def test_ahs_ml_tries_the_pairs_that_suit_the_meta_features(size: float, best: str) -> None:
    chosen = method("ahs-ml")
    target = Target(SPACE, meta_features={"size": size}, pool=CONFIGS)
    optimizer = Optimizer(target, chosen, chosen.learn(past(), seed=0), seed=0)
    suggestions = optimizer.ask(4)
    assert [s.config["model"] for s in suggestions] == [best] * 4
    numbers = [next(v for k, v in s.config.items() if k != "model") for s in suggestions]
    assert np.abs(np.array(numbers) - 0.3).max() < 0.3


def test_a_region_holds_one_algorithm() -> None:
    algorithms = Algorithms.of(SPACE)
    region = AlgorithmRegion(SPACE, algorithms, 1)
    drawn = region.sample(20, seed=0)
    assert len(drawn) == 20
    assert region.contains(drawn).all()
    assert region.contains(CONFIGS).tolist() == (CONFIGS.values[:, 0] == 1).tolist()
