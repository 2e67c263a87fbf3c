"""The search spaces that ship; each can be narrowed to some estimators.

`cash` is Table 1 of the paper on a shared latent space for algorithm selection: twelve classifiers
of scikit-learn and their hyperparameters, on the scales of its Table 5. The `pipeline` spaces
choose an algorithm at each of five steps. They leave out estimators whose packages are not
installed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from foretune._base.names import suggestion
from foretune.automl import zero_shot_spaces
from foretune.automl.worker_libraries import OPTIONAL
from foretune.errors import MissingExtraError, UsageError
from foretune.tables import Task

if TYPE_CHECKING:
    from foretune.space import Space

Notation: TypeAlias = Mapping[str, Any]
SHARE = (1e-3, 1.0, "log")
COUNT = (1, 50)
LEAST = (2, 512, "log")

CASH: dict[str, Notation] = {
    "adaboost": {"learning_rate": (1e-3, 1.0, "log"), "n_estimators": COUNT},
    "bagging": {"max_features": SHARE, "n_estimators": COUNT, "max_samples": SHARE},
    "decision_tree": {
        "max_features": SHARE,
        "max_depth": COUNT,
        "min_samples_leaf": LEAST,
        "min_samples_split": LEAST,
    },
    "extra_trees": {
        "max_features": SHARE,
        "n_estimators": COUNT,
        "max_depth": COUNT,
        "min_samples_leaf": LEAST,
        "min_samples_split": LEAST,
    },
    # The space has the exponent, because ConfigSpace would round the lower bound of 1e-15.
    "gaussian_nb": {"log10_var_smoothing": (-15.0, 0.0)},
    "gradient_boosting": {
        "learning_rate": (1e-3, 1.0, "log"),
        "n_estimators": COUNT,
        "max_features": SHARE,
        "max_depth": COUNT,
        "min_samples_split": LEAST,
    },
    "knn": {"n_neighbors": COUNT, "p": (1, 2), "weights": ["uniform", "distance"]},
    "logistic": {"C": (1e-3, 1e3, "log")},
    "mlp": {
        "learning_rate_init": (1e-5, 1e-1, "log"),
        "alpha": (1e-2, 1e2, "log"),
        "units_1": (16, 128, "log"),
        "units_2": (32, 256, "log"),
        "units_3": (8, 64, "log"),
    },
    "qda": {"reg_param": (1e-5, 1.0, "log")},
    "rf": {
        "max_features": SHARE,
        "n_estimators": COUNT,
        "max_depth": COUNT,
        "min_samples_leaf": LEAST,
        "min_samples_split": LEAST,
    },
    "svc": {"gamma": (1e-8, 1e4, "log"), "C": (1e-3, 1e3, "log")},
}

PREPARATION: dict[str, Notation] = {
    "imputer": {"mean": {}, "median": {}, "most_frequent": {}},
    "encoder": {"one_hot": {"max_categories": (5, 50, "log")}, "ordinal": {}, "target": {}},
    "scaler": {"none": {}, "standard": {}, "robust": {}, "quantile": {}},
    "reducer": {
        "none": {},
        "pca": {"variance": (0.7, 0.999)},
        "select": {"share": (0.1, 0.9)},
    },
}
_FOREST: Notation = {
    "n_estimators": (50, 300, "log"),
    "max_features": (0.1, 1.0),
    "min_samples_leaf": (1, 20, "log"),
}
# Boosted trees find the number of rounds by early stopping.
_BOOSTED: Notation = {
    "learning_rate": (0.01, 0.3, "log"),
    "colsample": (0.4, 1.0),
    "subsample": (0.5, 1.0),
    "l2": (1e-3, 1e2, "log"),
}
_NEIGHBOURS: Notation = {
    "n_neighbors": (1, 50, "log"),
    "p": (1, 2),
    "weights": ["uniform", "distance"],
}
_NETWORK: Notation = {
    "learning_rate_init": (3e-3, 3e-2, "log"),
    "alpha": (1e-3, 3.0, "log"),
    "layers": (1, 3),
    "units": (32, 128, "log"),
}
_BOTH: dict[str, Notation] = {
    "lightgbm": {
        **_BOOSTED,
        "num_leaves": (4, 128, "log"),
        "min_child_samples": (2, 60, "log"),
    },
    "xgboost": {**_BOOSTED, "max_depth": (2, 10), "min_child_weight": (1e-2, 20.0, "log")},
    "catboost": {
        "learning_rate": (0.01, 0.3, "log"),
        "depth": (2, 9),
        "l2": (1e-1, 1e2, "log"),
    },
    "hist_boosting": {
        "learning_rate": (0.01, 0.3, "log"),
        "max_leaf_nodes": (4, 128, "log"),
        "min_samples_leaf": (2, 60, "log"),
        "l2": (1e-3, 1e2, "log"),
    },
    "rf": _FOREST,
    "extra_trees": _FOREST,
    "knn": _NEIGHBOURS,
    "mlp": _NETWORK,
}
CLASSIFIERS: dict[str, Notation] = {
    **_BOTH,
    "logistic": {"C": (1e-4, 1e3, "log"), "balanced": [False, True]},
    "svm": {"C": (1e-2, 1e3, "log"), "gamma": (1e-4, 1e1, "log")},
    "lda": {"shrinkage": (1e-3, 1.0, "log")},
    "naive_bayes": {"log10_var_smoothing": (-12.0, 0.0)},
}
REGRESSORS: dict[str, Notation] = {
    **_BOTH,
    "elastic_net": {"alpha": (1e-5, 1e1, "log"), "l1_ratio": (0.01, 1.0)},
    "svm": {"C": (1e-2, 1e3, "log"), "gamma": (1e-4, 1e1, "log"), "epsilon": (1e-3, 0.5, "log")},
}
EXTRAS = {"lightgbm": "automl", "xgboost": "boosters", "catboost": "boosters"}
"""The extra of Foretune that installs each of these packages."""


@dataclass(frozen=True, slots=True)
class ShippedSpace:
    """A search space with a name: its task, its metrics and its parts."""

    name: str
    summary: str
    task: Task
    metrics: tuple[str, ...]
    """The metrics that are measured by default."""
    choice: str
    """The hyperparameter that chooses the estimator."""
    algorithms: Callable[[], Mapping[str, Notation]]
    stages: Mapping[str, Notation]
    """The steps before the estimator."""

    def __reduce__(self) -> tuple[Any, ...]:
        return load_shipped_space, (self.name,)

    def build(self, only: Sequence[str] = ()) -> "Space":
        """Build the space, with only some estimators if `only` is not empty."""
        from foretune.space import Space  # takes a second, and a first model needs no space

        self.check(only)
        chosen = {name: of for name, of in self.algorithms().items() if not only or name in only}
        return Space.of({**self.stages, self.choice: chosen}, stages=(*self.stages, self.choice))

    def families(self, space: "Space") -> tuple[str, ...]:
        """Return the estimators among which a part of this space chooses."""
        chosen = next(each for each in space.parameters if each.name == self.choice)
        return tuple(str(name) for name in self.algorithms() if name in chosen.choices)

    def missing(self) -> list[str]:
        """Return the estimators whose packages are not installed."""
        wanted = {"pipeline-classification": CLASSIFIERS, "pipeline-regression": REGRESSORS}
        return [name for name in wanted.get(self.name, {}) if name not in self.algorithms()]

    def check(self, only: Sequence[str]) -> None:
        """Refuse estimators that the space does not have."""
        known = self.algorithms()
        for name in only:
            if name in self.missing():
                raise MissingExtraError(name, EXTRAS[name], f"the estimator '{name}'")
            if name not in known:
                raise UsageError(
                    f"the space '{self.name}' can be narrowed to {', '.join(known)}, but not to "
                    f"'{name}': {suggestion(name, list(known))}",
                    rule="unknown-estimator",
                    field="only",
                    value=name,
                )


def select_installed(
    algorithms: Mapping[str, Notation], find: Callable[[str], object] = find_spec
) -> dict[str, Notation]:
    """Return the algorithms whose packages are installed; `find` returns None for other ones."""
    return {
        name: of
        for name, of in algorithms.items()
        if name not in OPTIONAL or find(name) is not None
    }


SPACES: dict[str, ShippedSpace] = {
    space.name: space
    for space in (
        ShippedSpace(
            "cash",
            "twelve classifiers of scikit-learn, one to five hyperparameters each",
            Task.CLASSIFICATION,
            ("accuracy", "balanced_accuracy"),
            "algorithm",
            lambda: CASH,
            {},
        ),
        ShippedSpace(
            "pipeline-classification",
            "imputer, encoder, scaler, reducer and a classifier",
            Task.CLASSIFICATION,
            ("accuracy", "balanced_accuracy", "auc", "log_loss"),
            "estimator",
            lambda: select_installed(CLASSIFIERS),
            PREPARATION,
        ),
        ShippedSpace(
            "pipeline-regression",
            "imputer, encoder, scaler, reducer and a regressor",
            Task.REGRESSION,
            ("r2", "rmse"),
            "estimator",
            lambda: select_installed(REGRESSORS),
            PREPARATION,
        ),
    )
}


ZERO_SHOT: dict[str, ShippedSpace] = {
    name: ShippedSpace(
        name,
        zero_shot_spaces.SUMMARIES[name],
        Task.CLASSIFICATION,
        ("accuracy", "balanced_accuracy"),
        zero_shot_spaces.CHOICE,
        partial(dict, models),
        zero_shot_spaces.STAGES if name == "zaml" else {},
    )
    for name, models in zero_shot_spaces.ZERO_SHOT.items()
}
"""The spaces of portfolios. Their packages need not be installed."""


def load_shipped_space(name: str) -> ShippedSpace:
    """Return the shipped space with this name."""
    known = SPACES | ZERO_SHOT
    found = known.get(name)
    if found is None:
        raise UsageError(
            f"a shipped space must be one of {', '.join(known)}, but got '{name}': "
            f"{suggestion(name, list(known))}",
            rule="unknown-space",
            field="space",
            value=name,
        )
    return found
