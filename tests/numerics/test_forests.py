import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from foretune.numerics.forests import grown


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
    found = grown(tree(**settings), x, y, trees=8, seed=5)
    new = rng.random((50, 6), dtype=np.float32)
    for mine, theirs in zip(found, expected.estimators_, strict=True):
        np.testing.assert_array_equal(mine.predict(new), theirs.tree_.predict(new))
