"""The default configuration: boosted trees with the defaults of their library.

Past datasets are a guide to tables like them. If a table has more rows than nearly all of them,
the configurations that suited them may be far too small for it, and a search that starts there
stays near them for long. One trial of the default configuration shows this.
"""

from collections.abc import Mapping
from typing import Any

from foretune.automl.estimators.pipelines import NATIVE
from foretune.space import Encoded, Space

STEPS = {"imputer": "median", "encoder": "ordinal", "scaler": "none", "reducer": "none"}
"""The other steps of the pipeline; trees need no more."""
CHOICE = "estimator"
BOOSTED: Mapping[str, Mapping[str, Any]] = {
    "lightgbm": {
        "learning_rate": 0.1,
        "num_leaves": 31,
        "min_child_samples": 20,
        "colsample": 1.0,
        "subsample": 1.0,
        "l2": 0.001,
    },
    "hist_boosting": {
        "learning_rate": 0.1,
        "max_leaf_nodes": 31,
        "min_samples_leaf": 20,
        "l2": 0.001,
    },
}
"""The defaults of the libraries; their l2 is 0, so it is the smallest l2 of the space here. With
early stopping, half their learning rate was no better and took twice the time (decision 038)."""
BY_SETS = {"encoder": "one_hot", "encoder:one_hot:max_categories": 20}
"""The encoder with which LightGBM splits by sets of categories."""


def default_config(space: Space) -> Encoded | None:
    """Return the default configuration of a space (one row); None if the space has none."""
    for name, values in BOOSTED.items():
        config = {**STEPS, **(BY_SETS if name in NATIVE else {}), CHOICE: name}
        config |= {f"{CHOICE}:{name}:{key}": value for key, value in values.items()}
        if config.keys() <= set(space.names):
            return space.encode([config])
    return None
