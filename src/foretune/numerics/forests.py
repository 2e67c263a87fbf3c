"""Random forests of a few small trees, as a search grows them at every ask.

scikit-learn's own forests copy and check every tree's settings anew, which takes longer than to
grow a small tree. Here the same trees are grown, from the same seed, by one estimator.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor


def grown(
    tree: "DecisionTreeClassifier | DecisionTreeRegressor",
    x: NDArray[np.float32],
    y: NDArray[Any],
    *,
    trees: int,
    seed: int,
) -> list[Any]:
    """The bare trees (their `tree_`) of a random forest on x (n, W) and y (n,), all finite.

    `tree` has the settings of each.
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
