"""The grids on which the paper on a shared latent space pre-trains (its Table 5).

The published table has no row for SVC: its grid here has the ranges of Table 1.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from foretune.numerics import Ints

Grid = Mapping[str, Sequence[Any]]
"""{hyperparameter: its values}"""


def _powers(base: float, low: float, high: float, n: int) -> list[float]:
    return [float(base**exponent) for exponent in np.linspace(low, high, n)]


def _doublings(low: int, high: int, n: int) -> list[int]:
    return [2**exponent for exponent in np.linspace(low, high, n, dtype=int).tolist()]


def _counts(n: int) -> list[int]:
    return [int(count) for count in np.linspace(1, 50, n, dtype=int)]


_FOREST: Grid = {
    "max_features": _powers(10, -3, 0, 5),
    "n_estimators": _counts(10),
    "max_depth": _counts(5),
    "min_samples_leaf": _doublings(1, 9, 5),
    "min_samples_split": _doublings(1, 9, 5),
}
CASH_GRIDS: dict[str, Grid] = {
    "adaboost": {"learning_rate": _powers(10, -3, 0, 10), "n_estimators": _counts(10)},
    "bagging": {
        "max_features": _powers(10, -3, 0, 5),
        "n_estimators": _counts(10),
        "max_samples": _powers(10, -3, 0, 7),
    },
    "decision_tree": {
        "max_features": _powers(10, -3, 0, 10),
        "max_depth": _counts(10),
        "min_samples_leaf": _doublings(1, 9, 9),
        "min_samples_split": _doublings(1, 9, 9),
    },
    "extra_trees": _FOREST,
    "gaussian_nb": {"log10_var_smoothing": np.linspace(-15, 0, 50).tolist()},
    "gradient_boosting": {
        "learning_rate": _powers(10, -3, 0, 7),
        "n_estimators": _counts(10),
        "max_features": _powers(10, -3, 0, 5),
        "max_depth": _counts(5),
        "min_samples_split": _doublings(1, 9, 5),
    },
    "knn": {"n_neighbors": _counts(50), "p": [1, 2], "weights": ["uniform", "distance"]},
    "logistic": {"C": _powers(10, -3, 3, 50)},
    "mlp": {
        "learning_rate_init": _powers(10, -5, -1, 9),
        "alpha": _powers(10, -2, 2, 9),
        "units_1": _doublings(4, 7, 4),
        "units_2": _doublings(5, 8, 4),
        "units_3": _doublings(3, 6, 4),
    },
    "qda": {"reg_param": _powers(10, -5, 0, 50)},
    "rf": _FOREST,
    "svc": {"gamma": _powers(10, -8, 4, 25), "C": _powers(10, -3, 3, 13)},
}


def size(grid: Grid) -> int:
    """Return the number of points of a grid."""
    return math.prod(len(values) for values in grid.values())


def points(grid: Grid, n: int, *, seed: int) -> list[dict[str, Any]]:
    """Return the first `n` points of a grid in a random order, or all if there are fewer."""
    order: Ints = np.random.default_rng(seed).permutation(size(grid))
    shape = [len(values) for values in grid.values()]
    chosen = (np.unravel_index(index, shape) for index in islice(order.tolist(), n))
    return [
        {name: values[int(at)] for (name, values), at in zip(grid.items(), index, strict=True)}
        for index in chosen
    ]
