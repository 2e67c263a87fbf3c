"""Makes a scikit-learn estimator from the hyperparameters of an algorithm.

A library is imported when one of its estimators is made, so a worker loads only what it needs.
Every estimator uses one thread and the given seed.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from foretune.automl.spaces import EXTRAS
from foretune.errors import MissingExtraError
from foretune.tables import Task

Params: TypeAlias = Mapping[str, Any]
Make: TypeAlias = Callable[[Params, int], Any]
"""(hyperparameters, seed) -> an estimator that is not fitted."""


def cash_classifier(algorithm: str, params: Params, seed: int) -> Any:
    """Make a classifier of the space `cash`."""
    return _CASH[algorithm](params, seed)


def estimator(algorithm: str, task: Task, params: Params, seed: int) -> Any:
    """Make an estimator of the pipeline spaces."""
    if task is Task.CLASSIFICATION:
        return _CLASSIFIERS[algorithm](params, seed)
    return _REGRESSORS[algorithm](params, seed)


def _adaboost(params: Params, seed: int) -> Any:
    from sklearn.ensemble import AdaBoostClassifier

    return AdaBoostClassifier(**params, random_state=seed)


def _bagging(params: Params, seed: int) -> Any:
    from sklearn.ensemble import BaggingClassifier

    return BaggingClassifier(**params, random_state=seed)


def _decision_tree(params: Params, seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(**params, random_state=seed)


def _extra_trees(params: Params, seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(**params, random_state=seed)


def _extra_trees_regressor(params: Params, seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(**params, random_state=seed)


def _rf(params: Params, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**params, random_state=seed)


def _rf_regressor(params: Params, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(**params, random_state=seed)


def _naive_bayes(params: Params, seed: int) -> Any:  # noqa: ARG001 - nothing in it is random
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB(var_smoothing=10.0 ** params["log10_var_smoothing"])


def _gradient_boosting(params: Params, seed: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(**params, random_state=seed)


def _knn(params: Params, seed: int) -> Any:  # noqa: ARG001
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(**params)


def _knn_regressor(params: Params, seed: int) -> Any:  # noqa: ARG001
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor(**params)


def _logistic(params: Params, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    weight = "balanced" if params.get("balanced", False) else None
    return LogisticRegression(C=params["C"], class_weight=weight, random_state=seed, max_iter=300)


def _cash_mlp(params: Params, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        hidden_layer_sizes=tuple(params[f"units_{layer}"] for layer in (1, 2, 3)),
        learning_rate_init=params["learning_rate_init"],
        alpha=params["alpha"],
        random_state=seed,
    )


def _mlp(params: Params, seed: int) -> Any:
    from foretune.automl.estimators.network import NetworkClassifier

    return NetworkClassifier(**params, random_state=seed)


def _mlp_regressor(params: Params, seed: int) -> Any:
    from foretune.automl.estimators.network import NetworkRegressor

    return NetworkRegressor(**params, random_state=seed)


def _qda(params: Params, seed: int) -> Any:  # noqa: ARG001
    from foretune.automl.estimators.discriminant import QuadraticDiscriminant

    return QuadraticDiscriminant(reg_param=params["reg_param"])


def _lda(params: Params, seed: int) -> Any:  # noqa: ARG001
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=params["shrinkage"])


def _svc(params: Params, seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC(gamma=params["gamma"], C=params["C"], random_state=seed)


def _make_calibrated_svm(params: Params, seed: int) -> Any:
    from sklearn.calibration import CalibratedClassifierCV

    return CalibratedClassifierCV(_svc(params, seed), ensemble=False, cv=3)


def _svm_regressor(params: Params, seed: int) -> Any:  # noqa: ARG001
    from sklearn.svm import SVR

    return _with_scaled_target(SVR(**params))


def _elastic_net(params: Params, seed: int) -> Any:
    from sklearn.linear_model import ElasticNet

    return _with_scaled_target(ElasticNet(**params, random_state=seed))


def _with_scaled_target(regressor: Any) -> Any:
    """Scale the target, so that penalties and learning rates do not depend on its unit."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(regressor, transformer=StandardScaler())


def _hist_settings(params: Params, seed: int) -> dict[str, Any]:
    kept = {name: value for name, value in params.items() if name != "l2"}
    return {**kept, "l2_regularization": params["l2"], "random_state": seed}


def _hist_boosting(params: Params, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(**_hist_settings(params, seed))


def _hist_boosting_regressor(params: Params, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(**_hist_settings(params, seed))


def _rounds(params: Params) -> dict[str, int]:
    """Return the number of rounds that a configuration of an earlier version fixes."""
    return {name: params[name] for name in ("n_estimators", "max_iter") if name in params}


def _lightgbm_settings(params: Params, seed: int) -> dict[str, Any]:
    return {
        **_rounds(params),
        "learning_rate": params["learning_rate"],
        "num_leaves": params["num_leaves"],
        "min_child_samples": params["min_child_samples"],
        "colsample_bytree": params["colsample"],
        "subsample": params["subsample"],
        "subsample_freq": 1,
        "reg_lambda": params["l2"],
        # The default of 100 rows keeps small tables from splitting by categories at all.
        "min_data_per_group": 10,
        "n_jobs": 1,
        "random_state": seed,
        "deterministic": True,
        "verbosity": -1,
    }


def _lightgbm(params: Params, seed: int) -> Any:
    return _package("lightgbm").LGBMClassifier(**_lightgbm_settings(params, seed))


def _lightgbm_regressor(params: Params, seed: int) -> Any:
    return _package("lightgbm").LGBMRegressor(**_lightgbm_settings(params, seed))


def _xgboost_settings(params: Params, seed: int) -> dict[str, Any]:
    return {
        **_rounds(params),
        "learning_rate": params["learning_rate"],
        "max_depth": params["max_depth"],
        "min_child_weight": params["min_child_weight"],
        "colsample_bytree": params["colsample"],
        "subsample": params["subsample"],
        "reg_lambda": params["l2"],
        "n_jobs": 1,
        "random_state": seed,
    }


def _xgboost(params: Params, seed: int) -> Any:
    return _package("xgboost").XGBClassifier(**_xgboost_settings(params, seed))


def _xgboost_regressor(params: Params, seed: int) -> Any:
    return _package("xgboost").XGBRegressor(**_xgboost_settings(params, seed))


def _catboost_settings(params: Params, seed: int) -> dict[str, Any]:
    return {
        **_rounds(params),
        "learning_rate": params["learning_rate"],
        "depth": params["depth"],
        "l2_leaf_reg": params["l2"],
        "thread_count": 1,
        "random_seed": seed,
        "verbose": False,
        "allow_writing_files": False,
    }


def _catboost(params: Params, seed: int) -> Any:
    return _package("catboost").CatBoostClassifier(**_catboost_settings(params, seed))


def _catboost_regressor(params: Params, seed: int) -> Any:
    return _package("catboost").CatBoostRegressor(**_catboost_settings(params, seed))


def _package(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(name, EXTRAS[name], f"the estimator '{name}'") from error


_CASH: dict[str, Make] = {
    "adaboost": _adaboost,
    "bagging": _bagging,
    "decision_tree": _decision_tree,
    "extra_trees": _extra_trees,
    "gaussian_nb": _naive_bayes,
    "gradient_boosting": _gradient_boosting,
    "knn": _knn,
    "logistic": _logistic,
    "mlp": _cash_mlp,
    "qda": _qda,
    "rf": _rf,
    "svc": _svc,
}
_CLASSIFIERS: dict[str, Make] = {
    "catboost": _catboost,
    "extra_trees": _extra_trees,
    "hist_boosting": _hist_boosting,
    "knn": _knn,
    "lda": _lda,
    "lightgbm": _lightgbm,
    "logistic": _logistic,
    "mlp": _mlp,
    "naive_bayes": _naive_bayes,
    "rf": _rf,
    "svm": _make_calibrated_svm,
    "xgboost": _xgboost,
}
_REGRESSORS: dict[str, Make] = {
    "catboost": _catboost_regressor,
    "elastic_net": _elastic_net,
    "extra_trees": _extra_trees_regressor,
    "hist_boosting": _hist_boosting_regressor,
    "knn": _knn_regressor,
    "lightgbm": _lightgbm_regressor,
    "mlp": _mlp_regressor,
    "rf": _rf_regressor,
    "svm": _svm_regressor,
    "xgboost": _xgboost_regressor,
}
