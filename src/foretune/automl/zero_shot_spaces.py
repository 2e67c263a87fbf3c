"""The search spaces of the zero-shot paper (its Table 5): four classifiers, and pipelines of them.

Ranges that exclude the configurations of the paper's own Tables 6 to 10 must have lost a digit, and
are wide enough for these here. scikit-learn's networks have no dropout, so `mlp` leaves it out.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

Notation: TypeAlias = Mapping[str, Any]

TINY = 2.0**-20
XGBOOST: Notation = {
    "n_estimators": (4, 512, "log"),
    "learning_rate": (1e-6, 1.0, "log"),
    "gamma": (TINY, 64.0, "log"),
    "min_child_weight": (1, 32, "log"),
    "max_depth": (2, 32, "log"),
    "reg_lambda": (TINY, 1.0, "log"),
    "reg_alpha": (TINY, 1.0, "log"),
    "subsample": (0.5, 1.0),
    "colsample_bytree": (0.3, 1.0),
}
LIGHTGBM: Notation = {
    "boosting_type": ["gbdt", "dart", "goss"],
    "subsample": (0.5, 1.0),
    "num_leaves": (30, 150),
    "learning_rate": (0.01, 0.1, "log"),
    "subsample_for_bin": (20_000, 300_000),
    "min_child_samples": (20, 500),
    "reg_alpha": (0.0, 1.0),
    "reg_lambda": (0.0, 1.0),
    "colsample_bytree": (0.6, 1.0),
}
CATBOOST: Notation = {
    "iterations": (10, 1_000),
    "depth": (1, 8),
    "learning_rate": (0.01, 1.0, "log"),
    "random_strength": (1e-9, 10.0, "log"),
    "bagging_temperature": (0.0, 1.0),
    "border_count": (1, 255),
    "l2_leaf_reg": (2, 30),
}
MLP: Notation = {
    "batch_size": (2**4, 2**9, "log"),
    "lr": (1e-4, 1e-1, "log"),
    "weight_decay": (1e-5, 1e-1, "log"),
    "max_units": (2**6, 2**10, "log"),
    "momentum": (0.1, 0.99),
    "num_layers": (1, 5),
}
ZERO_SHOT: dict[str, dict[str, Notation]] = {
    "xgboost": {"xgboost": XGBOOST},
    "lightgbm": {"lightgbm": LIGHTGBM},
    "catboost": {"catboost": CATBOOST},
    "mlp": {"mlp": MLP},
    "zaml": {"mlp": MLP, "xgboost": XGBOOST, "lightgbm": LIGHTGBM},
}
"""{name of the space: its models}"""
CHOICE = "model"
"""The hyperparameter that chooses the model."""
STAGES: dict[str, Notation] = {
    "categorical": {"ordinal": {}, "onehot": {}},
    "numeric": {
        "quantile": {"n_quantiles": (10, 1_000, "log")},
        "kbins": {"n_bins": (2**4, 2**8, "log"), "encode": ["onehot", "ordinal"]},
        "standard": {},
        "minmax": {},
    },
}
"""The steps before the model in `zaml`."""
SUMMARIES = {
    "xgboost": "XGBoost's classifier (zero-shot paper, Table 5)",
    "lightgbm": "LightGBM's classifier (zero-shot paper, Table 5)",
    "catboost": "CatBoost's classifier (zero-shot paper, Table 5)",
    "mlp": "a neural network (zero-shot paper, Table 5)",
    "zaml": "preprocessing and one of three classifiers (zero-shot paper, Table 5)",
}
