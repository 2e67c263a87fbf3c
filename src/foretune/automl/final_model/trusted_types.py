"""Checks the content of a model file: the types of its objects, and the indices in them.

Every object in a file must have a type in `TYPES`, so reading a model runs no code of the file.
Some types hold indices that compiled code uses without a check, so they are checked here.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from foretune.automl.estimators.discriminant import QuadraticDiscriminant
from foretune.automl.estimators.fold_average import FoldAverage
from foretune.automl.estimators.network import NetworkClassifier, NetworkRegressor
from foretune.automl.final_model.damaged_part import DamagedPartError
from foretune.automl.final_model.packed_forest import PackedForest
from foretune.tables.text_encoder import TextEncoder

TYPES = frozenset(
    {
        "builtins.bytearray",
        "builtins.bytes",
        "builtins.dict",
        "builtins.float",
        "builtins.int",
        "builtins.list",
        "builtins.slice",
        "builtins.str",
        "builtins.tuple",
        "catboost.core.CatBoostClassifier",
        "catboost.core.CatBoostRegressor",
        "collections.OrderedDict",
        "collections.defaultdict",
        f"{FoldAverage.__module__}.{FoldAverage.__name__}",
        f"{PackedForest.__module__}.{PackedForest.__name__}",
        f"{NetworkClassifier.__module__}.{NetworkClassifier.__name__}",
        f"{NetworkRegressor.__module__}.{NetworkRegressor.__name__}",
        f"{QuadraticDiscriminant.__module__}.{QuadraticDiscriminant.__name__}",
        f"{TextEncoder.__module__}.{TextEncoder.__name__}",
        "lightgbm.basic.Booster",
        "lightgbm.sklearn.LGBMClassifier",
        "lightgbm.sklearn.LGBMRegressor",
        "numpy.bool",
        "numpy.bool_",
        "numpy.dtype",
        "numpy.float32",
        "numpy.float64",
        "numpy.int32",
        "numpy.int64",
        "numpy.ndarray",
        "numpy.random._generator.Generator",
        "numpy.random.mtrand.RandomState",
        "numpy.uint64",
        "sklearn._loss._loss.CyHalfBinomialLoss",
        "sklearn._loss._loss.CyHalfMultinomialLoss",
        "sklearn._loss._loss.CyHalfSquaredError",
        "sklearn._loss.link.HalfLogitLink",
        "sklearn._loss.link.IdentityLink",
        "sklearn._loss.link.Interval",
        "sklearn._loss.link.LogitLink",
        "sklearn._loss.link.MultinomialLogit",
        "sklearn._loss.loss.HalfBinomialLoss",
        "sklearn._loss.loss.HalfMultinomialLoss",
        "sklearn._loss.loss.HalfSquaredError",
        "sklearn.calibration.CalibratedClassifierCV",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.compose._column_transformer.ColumnTransformer",
        "sklearn.compose._target.TransformedTargetRegressor",
        "sklearn.decomposition._pca.PCA",
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "sklearn.dummy.DummyClassifier",
        "sklearn.ensemble._bagging.BaggingClassifier",
        "sklearn.ensemble._forest.ExtraTreesClassifier",
        "sklearn.ensemble._forest.ExtraTreesRegressor",
        "sklearn.ensemble._forest.RandomForestClassifier",
        "sklearn.ensemble._forest.RandomForestRegressor",
        "sklearn.ensemble._gb.GradientBoostingClassifier",
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingRegressor",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.ensemble._weight_boosting.AdaBoostClassifier",
        "sklearn.feature_selection._univariate_selection.SelectPercentile",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.feature_selection._univariate_selection.f_regression",
        "sklearn.impute._base.SimpleImputer",
        "sklearn.linear_model._coordinate_descent.ElasticNet",
        "sklearn.linear_model._logistic.LogisticRegression",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._dist_metrics.ManhattanDistance64",
        "sklearn.naive_bayes.GaussianNB",
        "sklearn.neighbors._classification.KNeighborsClassifier",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neighbors._regression.KNeighborsRegressor",
        "sklearn.neural_network._multilayer_perceptron.MLPClassifier",
        "sklearn.neural_network._multilayer_perceptron.MLPRegressor",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.QuantileTransformer",
        "sklearn.preprocessing._data.RobustScaler",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.preprocessing._encoders.OneHotEncoder",
        "sklearn.preprocessing._label.LabelBinarizer",
        "sklearn.preprocessing._label.LabelEncoder",
        "sklearn.preprocessing._target_encoder.TargetEncoder",
        "sklearn.svm._classes.SVC",
        "sklearn.svm._classes.SVR",
        "sklearn.tree._classes.DecisionTreeClassifier",
        "sklearn.tree._classes.DecisionTreeRegressor",
        "sklearn.tree._classes.ExtraTreeClassifier",
        "sklearn.tree._classes.ExtraTreeRegressor",
        "sklearn.tree._tree.Tree",
        "xgboost.core.Booster",
        "xgboost.sklearn.XGBClassifier",
        "xgboost.sklearn.XGBRegressor",
    }
)
"""Full names of types. A test compares them with those of every algorithm in the shipped spaces."""

LOADERS = frozenset(
    f"{kind}Node"
    for kind in (
        "Bytearray",
        "Bytes",
        "DType",
        "DefaultDict",
        "Dict",
        "Function",
        "Json",
        "List",
        "Loss",
        "NdArray",
        "Object",
        "RandomGenerator",
        "RandomState",
        "Slice",
        "Tree",
        "Tuple",
        "Type",
    )
)
"""The kinds of nodes from which skops may make objects."""


def strangers(description: Any) -> list[str]:
    """Return the sorted names in a description that are not in `TYPES` or `LOADERS`.

    Everything that looks like an object counts, wherever it is.
    """
    found: set[str] = set()
    waiting = [description]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, dict):
            waiting.extend(each.values())
            if "__class__" in each:
                found |= {f"{each.get('__module__')}.{each['__class__']}"} - TYPES
                found |= {str(each.get("__loader__"))} - LOADERS
    return sorted(found)


def check_indices(pipelines: list[Any]) -> None:
    """Raise DamagedPartError for indices outside of their arrays, and rebuild search trees."""
    for each in _objects(pipelines):
        fitted, check = _CHECKS.get(type(each).__name__, ("", None))
        if check is not None and hasattr(each, fitted):
            check(each)


def _objects(roots: list[Any]) -> Iterator[Any]:
    """Yield every object that can be reached, once."""
    seen: set[int] = set()
    waiting: list[Any] = [roots]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, str | bytes | int | float | type(None)):
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
        elif isinstance(each, np.ndarray):
            waiting.extend(each.ravel().tolist() if each.dtype == object else ())
        else:
            waiting.extend(getattr(each, "__dict__", {}).values())


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise DamagedPartError(f"its {what} points outside of its arrays", part=what)


def _check_tree(decision: Any) -> None:
    """Check a decision tree: children come after their parents, and columns exist."""
    tree = decision.tree_
    inner = tree.children_left != -1
    own = np.arange(tree.node_count)[inner]
    children = np.stack([tree.children_left[inner], tree.children_right[inner]])
    columns = tree.feature[inner]
    _require(bool(((children > own) & (children < tree.node_count)).all()), "decision tree")
    _require(bool(((columns >= 0) & (columns < decision.n_features_in_)).all()), "decision tree")
    _require(tree.n_features == decision.n_features_in_, "decision tree")


def _check_ensemble(ensemble: Any) -> None:
    """Check that all members of an ensemble have its number of columns; nothing else checks it."""
    members = np.asarray(ensemble.estimators_, dtype=object).ravel()
    widths = [ensemble.n_features_in_] * len(members)
    if hasattr(ensemble, "estimators_features_"):
        widths = [len(columns) for columns in ensemble.estimators_features_]
    fits = [each.n_features_in_ == wide for each, wide in zip(members, widths, strict=True)]
    _require(all(fits), "ensemble")


def _check_average(average: Any) -> None:
    """Check that the pipelines of an average are for its columns and know some of its classes."""
    _require(len(average.pipelines) == len(average.places) > 0, "average")
    for each, places in zip(average.pipelines, average.places, strict=True):
        known = sorted(set(places) & set(range(average.classes)))
        _require(places == known and bool(places) == (average.classes > 0), "average")
        columns = getattr(each, "n_features_in_", average.n_features_in_)
        _require(columns == average.n_features_in_, "average")


def _check_boosting(boosting: Any) -> None:
    """Check the trees of HistGradientBoosting."""
    for predictor in (tree for trees in boosting._predictors for tree in trees):
        nodes = predictor.nodes
        inner = nodes["is_leaf"] == 0
        own = np.arange(len(nodes))[inner]
        children = np.stack([nodes["left"][inner], nodes["right"][inner]]).astype(np.int64)
        columns = nodes["feature_idx"][inner]
        _require(bool(((children > own) & (children < len(nodes))).all()), "boosted tree")
        _require(bool(((columns >= 0) & (columns < boosting.n_features_in_)).all()), "boosted tree")
        _require(len(nodes) > 0 and not nodes["is_categorical"].any(), "boosted tree")


def _check_vectors(machine: Any) -> None:
    """Check that a support vector machine has a coefficient for each vector and pair of classes."""
    vectors = len(machine.support_vectors_)
    classes = len(machine.classes_) if hasattr(machine, "classes_") else 2
    # A regression has one group of vectors; libsvm does not set the second number.
    groups = machine._n_support if hasattr(machine, "classes_") else machine._n_support[:1]
    what = "support vector machine"
    _require(machine._dual_coef_.shape == (classes - 1, vectors), what)
    _require(machine._intercept_.shape == (classes * (classes - 1) // 2,), what)
    _require(bool((groups >= 0).all()) and groups.sum() == vectors == len(machine.support_), what)


def _rebuild_neighbours(neighbours: Any) -> None:
    """Rebuild the search tree from the rows, so that the one in the file is not used."""
    from sklearn.neighbors import KDTree

    if neighbours._tree is not None:
        neighbours._tree = KDTree(
            neighbours._fit_X, neighbours.leaf_size, metric=neighbours.effective_metric_
        )


_CHECKS: dict[str, tuple[str, Callable[[Any], None]]] = {
    **dict.fromkeys(
        (
            "DecisionTreeClassifier",
            "DecisionTreeRegressor",
            "ExtraTreeClassifier",
            "ExtraTreeRegressor",
        ),
        ("tree_", _check_tree),
    ),
    **dict.fromkeys(
        (
            "AdaBoostClassifier",
            "BaggingClassifier",
            "ExtraTreesClassifier",
            "ExtraTreesRegressor",
            "GradientBoostingClassifier",
            "RandomForestClassifier",
            "RandomForestRegressor",
        ),
        ("estimators_", _check_ensemble),
    ),
    "FoldAverage": ("pipelines", _check_average),
    "HistGradientBoostingClassifier": ("_predictors", _check_boosting),
    "HistGradientBoostingRegressor": ("_predictors", _check_boosting),
    "KNeighborsClassifier": ("_tree", _rebuild_neighbours),
    "KNeighborsRegressor": ("_tree", _rebuild_neighbours),
    "SVC": ("support_vectors_", _check_vectors),
    "SVR": ("support_vectors_", _check_vectors),
}
"""For each type: the attribute that a fitted object has, and the check of such an object."""
