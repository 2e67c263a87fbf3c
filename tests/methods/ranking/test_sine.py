"""The paper's motivating example (section 4.1): sin((x + pi) / 2 + beta) on 201 points."""

from dataclasses import replace

import numpy as np
import pytest

from foretune._base.progress import SILENT
from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Prior, Target
from foretune.search import METHODS, Design, Method, Optimizer, Told
from foretune.space import Space

SPACE = Space.of({"x": (-10.0, 10.0)})
X = np.linspace(-10.0, 10.0, 201)
POOL = SPACE.from_columns({"x": X}, len(X))
AN_OPTIMUM = 0.01
"""Of a range of 2."""


def sine(beta: float) -> np.ndarray:
    return np.sin((X + np.pi) / 2 + beta)


def after_three_random(name: str) -> Method:
    return replace(METHODS[name], design=Design("random", 3))


def best_after(observations: int, chosen: Method, prior: Prior, y: np.ndarray, seed: int) -> float:
    """How far the best of so many observations is above the optimum."""
    nothing = POOL.take([])  # not even what the prior would open with
    optimizer = Optimizer(Target(SPACE, pool=POOL), chosen, prior, seed=seed, start=nothing)
    found = []
    for _ in range(observations):
        suggestion = optimizer.ask()[0]
        found.append(y[suggestion.pool_index])
        optimizer.tell([Told((float(found[-1]),), id=suggestion.id)])
    return min(found) - y.min()


@pytest.mark.parametrize("seed", range(3))
def test_without_meta_learning_the_optimum_takes_8_observations(seed: int) -> None:
    chosen = after_three_random("dre-ri")
    prior = chosen.learn(None, seed=seed)
    assert best_after(8, chosen, prior, sine(0.0), seed) < AN_OPTIMUM


@pytest.fixture(scope="module")
def meta_learnt() -> Prior:
    """What five shifted sines teach."""
    betas = range(11, 16)
    past = Experience.from_matrix(
        SPACE,
        POOL,
        [f"beta {beta}" for beta in betas],
        [Metric("loss", Direction.MIN)],
        {"loss": np.stack([sine(beta) for beta in betas])},
    )
    return METHODS["dre"].learn(past, seed=0, progress=SILENT)


@pytest.mark.parametrize("seed", range(3))
def test_meta_learnt_it_takes_one_or_two_steps(meta_learnt: Prior, seed: int) -> None:
    chosen = after_three_random("dre")
    assert best_after(5, chosen, meta_learnt, sine(8.0), seed) < AN_OPTIMUM
