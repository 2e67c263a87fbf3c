"""Builds a scikit-learn pipeline from a configuration of a shipped space.

A pipeline takes the matrix of a `Table`: numbers, codes of categories, words of texts, and NaN for
missing values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune.automl import zero_shot_spaces
from foretune.automl.estimators import zero_shot_models
from foretune.automl.estimators.factory import Params, cash_classifier, estimator
from foretune.errors import SpaceError
from foretune.space.notation import SEPARATOR
from foretune.tables import Table, Task

UNKNOWN_CODE = -1.0
"""The code of a missing category if codes are used as numbers."""
MOST_QUANTILES = 200
NATIVE = ("lightgbm", "mlp", "xgboost")
"""Estimators that learn from missing values and categories themselves. The imputer, the scaler and
the reducer of a configuration have no effect on them. To boosted trees, the encoder `one_hot` means
splits by sets of categories; codes as numbers, or encoded by the target, may be better."""
SELF_ENCODED = ("mlp",)
"""Estimators on which the encoder has no effect either."""
BY_SETS = "one_hot"


def build_pipeline(
    config: Mapping[str, Any],
    categorical: Bools,
    task: Task,
    *,
    seed: int,
    texts: Sequence[Bools] = (),
) -> Any:
    """Build the pipeline of a configuration; it is not fitted.

    categorical: (d,), whether a column of the matrix holds codes. texts: for each text, whether a
    column (d,) is one of its words.
    """
    from sklearn.pipeline import Pipeline

    kinds = _Kinds(categorical, tuple(texts), task, seed)
    if "algorithm" in config:
        algorithm, params = _algorithm_of(config, "algorithm")
        steps = [("columns", _plain_columns(kinds))]
        steps.append(("estimator", cash_classifier(algorithm, params, seed)))
        return Pipeline(steps)
    if zero_shot_spaces.CHOICE in config:
        return _zero_shot_pipeline(config, kinds)
    if "estimator" not in config:
        raise SpaceError(
            "a configuration must be one of a shipped space, with 'algorithm' or 'estimator', "
            f"but got {sorted(config)}: see  foretune spaces",
            rule="config-of-no-shipped-space",
            value=sorted(config),
        )
    algorithm, params = _algorithm_of(config, "estimator")
    if algorithm in NATIVE:
        learner = estimator(algorithm, task, params, seed)
        return Pipeline([*_native_columns(config, kinds), ("estimator", learner)])
    steps = [("columns", _columns(config, kinds))]
    steps += _reducer(*_algorithm_of(config, "reducer"), task, seed)
    steps.append(("estimator", estimator(algorithm, task, params, seed)))
    return Pipeline(steps)


def code_places(config: Mapping[str, Any], table: Table) -> tuple[int, ...]:
    """Return the places of the columns of codes from which the estimator itself learns.

    If there are texts, their columns come last.
    """
    if not _learns_categories(config):
        return ()
    of_texts = np.any([np.zeros_like(table.categorical), *table.schema.texts.values()], axis=0)
    if not of_texts.any():
        return tuple(np.flatnonzero(table.categorical).tolist())
    first = int((~of_texts & ~table.categorical).sum())
    return tuple(range(first, first + int(table.categorical.sum())))


def weight_arguments(pipeline: Any, weights: Floats | None) -> dict[str, Floats]:
    """Return the arguments of `fit` with which the last step of a pipeline weighs rows (n,).

    It is empty if the step takes no weights (`knn`, `lda`, `qda`, and `mlp` before scikit-learn
    1.7). Its scores use the weights, so they show how much worse it is.
    """
    from sklearn.utils.validation import has_fit_parameter

    last = pipeline[-1]
    learns = getattr(last, "regressor", last)
    if weights is None or not has_fit_parameter(learns, "sample_weight"):
        return {}
    return {"estimator__sample_weight": weights}


def _algorithm_of(config: Mapping[str, Any], stage: str) -> tuple[str, Params]:
    """Return the algorithm of a stage, and its hyperparameters by their own names."""
    algorithm = str(config[stage])
    prefix = f"{stage}{SEPARATOR}{algorithm}{SEPARATOR}"
    params = {
        name.removeprefix(prefix): value
        for name, value in config.items()
        if name.startswith(prefix)
    }
    return algorithm, params


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The kinds of the columns of a matrix, each with its own transformer."""

    categorical: Bools
    texts: tuple[Bools, ...]
    task: Task
    seed: int

    def transform(self, numbers: Any, categories: Any, scaler: Any) -> Any:
        """Return a transformer of all columns; a single one if all have one kind, for speed."""
        from sklearn.compose import ColumnTransformer

        plain = ~np.any([self.categorical, *self.texts], axis=0)
        if plain.all() or self.categorical.all():
            return numbers if plain.all() else categories
        blocks = [("numbers", numbers, plain), ("categories", categories, self.categorical)]
        for place, words in enumerate(self.texts):
            blocks.append((f"text {place}", self._text(scaler), words))
        return ColumnTransformer(
            [(name, each, np.flatnonzero(of)) for name, each, of in blocks if of.any()]
        )

    def _text(self, scaler: Any) -> Any:
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline

        from foretune.tables.text_encoder import TextEncoder

        encoder = TextEncoder(self.task is Task.CLASSIFICATION, self.seed)
        return Pipeline([("encoder", encoder), ("scaler", clone(scaler, safe=False))])


def _learns_categories(config: Mapping[str, Any]) -> bool:
    """Return whether the estimator itself learns from categories."""
    name = config.get("estimator")
    return name in SELF_ENCODED or (name in NATIVE and config.get("encoder") == BY_SETS)


def _native_columns(config: Mapping[str, Any], kinds: _Kinds) -> list[tuple[str, Any]]:
    """Return the step that encodes texts, and categories if the estimator does not."""
    from sklearn.preprocessing import StandardScaler

    encoder, params = _algorithm_of(config, "encoder")
    by_target = encoder == "target" and kinds.categorical.any() and not _learns_categories(config)
    if not kinds.texts and not by_target:
        return []
    # Unlike "passthrough", this becomes an object of a type that model files may hold.
    as_is = StandardScaler(with_mean=False, with_std=False)
    categories = _target(params, kinds.task, kinds.seed) if by_target else as_is
    return [("columns", kinds.transform(as_is, categories, "passthrough"))]


def _zero_shot_pipeline(config: Mapping[str, Any], kinds: _Kinds) -> Any:
    """Build a pipeline of the zero-shot paper: plain columns, or in `zaml` chosen steps."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import StandardScaler

    columns = _plain_columns(kinds)
    if "numeric" in config:
        imputer = SimpleImputer(strategy="most_frequent", keep_empty_features=True)
        numbers = zero_shot_models.numeric_step(*_algorithm_of(config, "numeric"), kinds.seed)
        categories = zero_shot_models.categorical_step(str(config["categorical"]))
        columns = kinds.transform(
            make_pipeline(imputer, numbers), make_pipeline(imputer, categories), StandardScaler()
        )
    algorithm, params = _algorithm_of(config, zero_shot_spaces.CHOICE)
    model = zero_shot_models.zero_shot_classifier(algorithm, params, kinds.seed)
    return Pipeline([("columns", columns), ("estimator", model)])


def _plain_columns(kinds: _Kinds) -> Any:
    """Prepare columns as the paper does: impute the most frequent value, and scale."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    def imputer() -> Any:
        return SimpleImputer(strategy="most_frequent", keep_empty_features=True)

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return kinds.transform(
        make_pipeline(imputer(), StandardScaler()),
        make_pipeline(imputer(), encoder),
        StandardScaler(),
    )


def _columns(config: Mapping[str, Any], kinds: _Kinds) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline

    strategy, _ = _algorithm_of(config, "imputer")
    scaler, _ = _algorithm_of(config, "scaler")
    scaled = _SCALERS[scaler](kinds.seed)
    imputer = SimpleImputer(strategy=strategy, keep_empty_features=True)
    numbers = Pipeline([("imputer", imputer), ("scaler", scaled)])
    encoder, params = _algorithm_of(config, "encoder")
    categories = _ENCODERS[encoder](params, kinds.task, kinds.seed)
    return kinds.transform(numbers, categories, scaled)


def _reducer(reducer: str, params: Params, task: Task, seed: int) -> list[tuple[str, Any]]:
    if reducer == "none":
        return []
    if reducer == "pca":
        from sklearn.decomposition import PCA

        return [("reducer", PCA(params["variance"], random_state=seed))]
    from sklearn.feature_selection import SelectPercentile, f_classif, f_regression

    score = f_classif if task is Task.CLASSIFICATION else f_regression
    return [("reducer", SelectPercentile(score, percentile=100 * params["share"]))]


def _no_scaler(seed: int) -> Any:  # noqa: ARG001
    return "passthrough"


def _standard(seed: int) -> Any:  # noqa: ARG001
    from sklearn.preprocessing import StandardScaler

    return StandardScaler()


def _robust(seed: int) -> Any:  # noqa: ARG001
    from sklearn.preprocessing import RobustScaler

    return RobustScaler()


def _quantile(seed: int) -> Any:
    from sklearn.preprocessing import QuantileTransformer

    return QuantileTransformer(
        n_quantiles=MOST_QUANTILES, output_distribution="normal", random_state=seed
    )


def _one_hot(params: Params, task: Task, seed: int) -> Any:  # noqa: ARG001
    from sklearn.preprocessing import OneHotEncoder

    return OneHotEncoder(
        max_categories=params["max_categories"],
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )


def _ordinal(params: Params, task: Task, seed: int) -> Any:  # noqa: ARG001
    from sklearn.impute import SimpleImputer

    return SimpleImputer(strategy="constant", fill_value=UNKNOWN_CODE, keep_empty_features=True)


def _target(params: Params, task: Task, seed: int) -> Any:  # noqa: ARG001
    from sklearn.preprocessing import TargetEncoder

    # With "auto" it would take whole numbers for classes.
    kind = "continuous" if task is Task.REGRESSION else "auto"
    return TargetEncoder(target_type=kind, random_state=seed)


_SCALERS: dict[str, Callable[[int], Any]] = {
    "none": _no_scaler,
    "standard": _standard,
    "robust": _robust,
    "quantile": _quantile,
}
_ENCODERS: dict[str, Callable[[Params, Task, int], Any]] = {
    "one_hot": _one_hot,
    "ordinal": _ordinal,
    "target": _target,
}
