import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from foretune.automl.final_model.damaged_part import DamagedPartError
from foretune.automl.final_model.trusted_types import check_indices, strangers

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] + X[:, 1] ** 2 > 0.3).astype(int)


def with_nodes(tree, **changes):
    state = tree.tree_.__getstate__()
    nodes = state["nodes"].copy()
    for name, value in changes.items():
        nodes[name][0] = value
    tree.tree_.__setstate__(state | {"nodes": nodes})


@pytest.mark.parametrize(
    "changes",
    [
        {"feature": 10**6},
        {"feature": -5},
        {"left_child": 10**6},
        {"right_child": -7},
        {"left_child": 0},
    ],
)
def test_decision_trees(changes):
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    check_indices([forest])
    with_nodes(forest.estimators_[1], **changes)
    with pytest.raises(DamagedPartError) as damaged:
        check_indices([{"in": [forest]}])
    assert damaged.value.part == "decision tree"


def test_ensembles_of_trees_for_other_tables():
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    wide = DecisionTreeClassifier().fit(np.hstack([X, X]), Y)
    forest.estimators_[0] = wide
    with pytest.raises(DamagedPartError) as damaged:
        check_indices([forest])
    assert damaged.value.part == "ensemble"
    wide.n_features_in_ = 3
    with pytest.raises(DamagedPartError) as damaged:
        check_indices([forest])
    assert damaged.value.part == "decision tree"


@pytest.mark.parametrize(
    "change", [{"left": 10**6}, {"right": 0}, {"feature_idx": 99}, {"is_categorical": 1}]
)
def test_boosted_trees(change):
    boosting = HistGradientBoostingClassifier(max_iter=2).fit(X, Y)
    check_indices([boosting])
    for name, value in change.items():
        boosting._predictors[1][0].nodes[name][0] = value
    with pytest.raises(DamagedPartError) as damaged:
        check_indices([boosting])
    assert damaged.value.part == "boosted tree"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("_dual_coef_", lambda array: array[:, :-1]),
        ("_intercept_", lambda array: array[:0]),
        ("support_", lambda array: array[:-1]),
        ("_n_support", lambda array: array + 5),
    ],
)
def test_support_vector_machines(name, change):
    for machine in (SVC().fit(X, Y), SVC().fit(X, Y + (X[:, 2] > 1)), SVR().fit(X, X[:, 0])):
        check_indices([machine])
        setattr(machine, name, change(getattr(machine, name)))
        with pytest.raises(DamagedPartError) as damaged:
            check_indices([machine])
        assert damaged.value.part == "support vector machine"


def test_search_trees_are_not_taken_from_the_file():
    neighbours = KNeighborsClassifier(3).fit(X, Y)
    before, expected = neighbours._tree, neighbours.predict(X)
    check_indices([neighbours])
    assert neighbours._tree is not before
    np.testing.assert_array_equal(neighbours.predict(X), expected)


def test_unfitted_parts_stay_unchanged():
    check_indices([DecisionTreeClassifier(), SVC(), KNeighborsClassifier(), "text", None, 1.5])


def test_strangers_are_found_wherever_they_are():
    known = {"__class__": "Pipeline", "__module__": "sklearn.pipeline", "__loader__": "ObjectNode"}
    assert strangers(known) == []
    hidden = known | {"content": [{"deep": {"__class__": "system", "__module__": "os"}}]}
    assert strangers(hidden) == ["None", "os.system"]
    assert strangers([known | {"__loader__": "PartialNode"}]) == ["PartialNode"]
