"""Forests: small ones that a search grows at every ask, and large ones of several outputs.

scikit-learn's forests copy and check the settings of every tree, which takes longer than growing a
small tree. Here one estimator grows the same trees from the same seed.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

TREES = 50
"""The number of trees of a `Forest`."""


def grow_trees(
    tree: "DecisionTreeClassifier | DecisionTreeRegressor",
    x: NDArray[np.float32],
    y: NDArray[Any],
    *,
    trees: int,
    seed: int,
) -> list[Any]:
    """Return the bare trees (`tree_`) of a random forest on finite x (n, W) and y (n,).

    `tree` has the settings of each tree.
    """
    from sklearn import config_context

    rng, n = np.random.RandomState(seed), len(x)
    bare = []
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for _ in range(trees):
            tree.random_state = rng.randint(np.iinfo(np.int32).max)
            drawn = np.random.RandomState(tree.random_state).randint(0, n, n, dtype=np.int32)
            times = np.bincount(drawn, minlength=n).astype(np.float64)
            tree.fit(x, y, sample_weight=times, check_input=False)
            bare.append(tree.tree_)
    return bare


@dataclass(frozen=True, slots=True)
class Forest:
    """Extremely randomised trees (Geurts, Ernst and Wehenkel 2006) of several outputs.

    They split at random places, so their mean is smoother than that of other forests. With leaves
    of one row they are exact at the rows that they were grown on.
    """

    trees: tuple[Any, ...]
    """Bare trees skip checks that take longer than the prediction of a few rows."""

    @classmethod
    def grow(cls, x: Floats, y: Floats, *, leaf: int, seed: int) -> Self:
        """Grow trees on y (n, K) at x (n, W), with at least `leaf` rows in each leaf."""
        from sklearn.ensemble import ExtraTreesRegressor

        outputs = y[:, 0] if y.shape[1] == 1 else y  # scikit-learn warns of a single column
        forest = ExtraTreesRegressor(TREES, min_samples_leaf=leaf, random_state=seed)
        forest.fit(x, outputs)
        return cls(tuple(tree.tree_ for tree in forest.estimators_))

    def predict(self, x: Floats) -> Floats:
        """Return (m, K), the predictions at x (m, W)."""
        rows = np.ascontiguousarray(x, dtype=np.float32)
        total = sum(tree.predict(rows) for tree in self.trees)
        mean: Floats = np.reshape(total, (len(rows), -1)) / len(self.trees)
        return mean
