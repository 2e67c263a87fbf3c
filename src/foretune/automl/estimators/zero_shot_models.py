"""The models of the zero-shot paper's spaces, from the hyperparameters of `zero_shot_spaces`."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

from foretune.errors import MissingExtraError

Params: TypeAlias = Mapping[str, Any]
EXTRAS = {"lightgbm": "automl", "xgboost": "boosters", "catboost": "boosters"}
EPOCHS = 100


def zero_shot_classifier(algorithm: str, params: Params, seed: int) -> Any:
    """Make a classifier that is not fitted. It uses one thread."""
    return _MODELS[algorithm](params, seed)


def numeric_step(name: str, params: Params, seed: int) -> Any:
    """Make the preprocessor of numbers."""
    from sklearn import preprocessing

    if name == "quantile":
        count = params["n_quantiles"]
        return preprocessing.QuantileTransformer(n_quantiles=count, random_state=seed)
    if name == "kbins":
        # Bins of equal width need no quantiles, of which a column may have fewer.
        kind = "onehot-dense" if params["encode"] == "onehot" else "ordinal"
        bins = params["n_bins"]
        return preprocessing.KBinsDiscretizer(bins, encode=kind, strategy="uniform")
    return preprocessing.StandardScaler() if name == "standard" else preprocessing.MinMaxScaler()


def categorical_step(name: str) -> Any:
    """Make the encoder of categories."""
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    if name == "onehot":
        return OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)


def _xgboost(params: Params, seed: int) -> Any:
    return _package("xgboost").XGBClassifier(**params, n_jobs=1, random_state=seed)


def _lightgbm(params: Params, seed: int) -> Any:
    # The package samples rows only with a frequency, and `goss` samples in its own way.
    frequency = 0 if params["boosting_type"] == "goss" else 1
    return _package("lightgbm").LGBMClassifier(
        **params,
        subsample_freq=frequency,
        n_jobs=1,
        random_state=seed,
        deterministic=True,
        verbosity=-1,
    )


def _catboost(params: Params, seed: int) -> Any:
    return _package("catboost").CatBoostClassifier(
        **params, thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False
    )


def _mlp(params: Params, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        hidden_layer_sizes=layer_sizes(params["max_units"], params["num_layers"]),
        batch_size=params["batch_size"],
        learning_rate_init=params["lr"],
        alpha=params["weight_decay"],
        momentum=params["momentum"],
        solver="sgd",
        max_iter=EPOCHS,
        random_state=seed,
    )


def layer_sizes(units: int, layers: int) -> tuple[int, ...]:
    """Return the units of each layer: each has half as many as the one before, and at least 4."""
    return tuple(max(units // 2**layer, 4) for layer in range(layers))


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(name, EXTRAS[name], f"the model '{name}'") from error


_MODELS: dict[str, Callable[[Params, int], Any]] = {
    "catboost": _catboost,
    "lightgbm": _lightgbm,
    "mlp": _mlp,
    "xgboost": _xgboost,
}
