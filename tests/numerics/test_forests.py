import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from foretune.numerics.forests import Forest, grow_trees


@pytest.mark.parametrize("n", [2, 7, 200])
@pytest.mark.parametrize(
    ("forest", "tree", "settings"),
    [
        (RandomForestClassifier, DecisionTreeClassifier, {"max_features": None}),
        (RandomForestRegressor, DecisionTreeRegressor, {}),
        (RandomForestRegressor, DecisionTreeRegressor,
         {"max_features": 5 / 6, "min_samples_split": 3}),
    ],
)  # fmt: skip
def test_trees_are_those_of_scikit_learns_forest(forest, tree, settings, n) -> None:
    rng = np.random.default_rng(n)
    x = rng.random((n, 6), dtype=np.float32)
    y = rng.random(n) if tree is DecisionTreeRegressor else np.arange(n) % 3 == 0
    expected = forest(8, random_state=5, **settings).fit(x, y)
    found = grow_trees(tree(**settings), x, y, trees=8, seed=5)
    new = rng.random((50, 6), dtype=np.float32)
    for mine, theirs in zip(found, expected.estimators_, strict=True):
        np.testing.assert_array_equal(mine.predict(new), theirs.tree_.predict(new))


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("leaf", [1, 4])
def test_a_forest_of_several_outputs_is_scikit_learns(outputs, leaf) -> None:
    rng = np.random.default_rng(0)
    x, y, new = rng.random((40, 5)), rng.standard_normal((40, outputs)), rng.random((30, 5))
    expected = ExtraTreesRegressor(50, min_samples_leaf=leaf, random_state=3)
    expected.fit(x, y.ravel() if outputs == 1 else y)
    found = Forest.grow(x, y, leaf=leaf, seed=3)
    np.testing.assert_allclose(found.predict(new), expected.predict(new).reshape(30, outputs))
    assert np.allclose(found.predict(x), y) == (leaf == 1)
