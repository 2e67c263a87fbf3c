"""Random forests in the manner of SMAC.

The predictions of the trees count as samples of the loss. Inactive hyperparameters have the value
-1, so conditional spaces need no filling.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations, Posterior, Prediction, Surrogate
from foretune.methods.random.stateless import StatelessLearner
from foretune.numerics.forests import grow_trees
from foretune.numerics.objectives import scalarise
from foretune.numerics.transforms import standardise
from foretune.space import Encoded

TREES = 100
FEATURES_PER_SPLIT = 5 / 6
LEAST_STD = 1e-3
"""The least spread, because trees that agree are not certain."""


@dataclass(frozen=True, slots=True)
class ForestPosterior(Posterior):
    """A fitted forest, read tree by tree."""

    trees: list[Any]
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and spread of the trees' predictions."""
        each = self._by_tree(x)
        return Prediction(each.mean(axis=0), np.maximum(each.std(axis=0), LEAST_STD))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Return the predictions of `n` random trees."""
        drawn = np.random.default_rng(seed).integers(len(self.trees), size=n)
        return self._by_tree(x)[drawn]

    def _by_tree(self, x: Encoded) -> Floats:
        codes = x.codes.astype(np.float32)
        return np.stack([tree.predict(codes)[:, 0] for tree in self.trees])


@dataclass(frozen=True, slots=True)
class ForestSurrogate(Surrogate):
    """Grows a new forest after every trial."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the forest after all successful and believed trials."""
        from sklearn.tree import DecisionTreeRegressor

        good = seen.successes()
        y = scalarise(good.losses, standardise)
        tree = DecisionTreeRegressor(
            max_features=FEATURES_PER_SPLIT, min_samples_split=3, min_samples_leaf=3
        )
        trees = grow_trees(tree, good.configs.codes.astype(np.float32), y, trees=TREES, seed=seed)
        return ForestPosterior(trees, float(y.min()))


def forest() -> StatelessLearner:
    """Return the learner of random-forest search."""
    return StatelessLearner("rf", lambda _: ForestSurrogate())
