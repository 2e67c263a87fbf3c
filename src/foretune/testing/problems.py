"""Small problems of the three kinds of space, with related past tasks and a known optimum."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Target
from foretune.space import Encoded, Space

NOTATIONS: Mapping[str, dict[str, Any]] = {
    "flat": {
        "rate": (1e-4, 1.0, "log"),
        "depth": (1, 12),
        "share": (0.0, 1.0),
        "kind": ["plain", "fancy", "odd"],
    },
    "cash": {
        "model": {
            "svm": {"C": (1e-3, 1e3, "log"), "gamma": (1e-4, 1e1, "log")},
            "forest": {"trees": (10, 500, "log"), "depth": (1, 20)},
            "bayes": {},
        },
    },
    "pipeline": {
        "scaler": {"none": {}, "standard": {}, "quantile": {"quantiles": (10, 1000, "log")}},
        "model": {
            "svm": {"C": (1e-3, 1e3, "log"), "kernel": ["rbf", "poly"]},
            "forest": {"trees": (10, 500, "log"), "share": (0.1, 1.0)},
        },
    },
}
PAST_TASKS = 5
PAST_CONFIGS = 40
POOL = 60


@dataclass(frozen=True)
class Problem:
    """A space, a loss on it, past tasks whose losses are alike, and a recorded pool."""

    space: Space
    experience: Experience
    pool: Encoded

    def losses(self, configs: Encoded) -> Floats:
        """Return (n, 1), the loss of the target task."""
        return _loss(configs, shift=0.0)[:, None]

    def target(self, *, pool: bool = False, described: bool = False) -> Target:
        """Return the task to tune, on the whole space or on the recorded pool.

        described: whether it has the meta-features that past tasks have.
        """
        meta_features = {"shift": 0.0} if described else {}
        return Target(self.space, pool=self.pool if pool else None, meta_features=meta_features)


def _loss(configs: Encoded, shift: float) -> Floats:
    """Return a bowl in the encoded cube; its lowest point moves a little from task to task."""
    centre = 0.3 + 0.3 * np.linspace(0.0, 1.0, configs.x.shape[1]) + shift
    bowl: Floats = np.square(configs.x - centre).sum(axis=1)
    return bowl


@cache
def problem(kind: str, *, past_configs: int = PAST_CONFIGS) -> Problem:
    """Return the problem on a `flat`, `cash` or `pipeline` space.

    past_configs: the number of random configurations that past tasks have evaluated.
    """
    space = Space.of(NOTATIONS[kind])
    configs = _sample(space, past_configs, seed=1)
    shifts = np.linspace(-0.1, 0.1, PAST_TASKS)
    matrix = np.stack([1e3 ** abs(shift) * _loss(configs, float(shift)) for shift in shifts])
    experience = Experience.from_matrix(
        space,
        configs,
        [f"past-{number}" for number in range(PAST_TASKS)],
        [Metric("loss", Direction.MIN)],
        {"loss": matrix},
        meta_features={
            f"past-{number}": {"shift": float(shift)} for number, shift in enumerate(shifts)
        },
    )
    return Problem(space, experience, _sample(space, POOL, seed=2))


def _sample(space: Space, n: int, seed: int) -> Encoded:
    configs = space.sample(n, seed=seed)
    return configs.take(configs.first_occurrences())
