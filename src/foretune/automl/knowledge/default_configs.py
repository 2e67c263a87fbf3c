"""The default configuration: boosted trees with the defaults of their library.

Past datasets are a guide to tables like them. If a table has more rows than nearly all of them,
the configurations that suited them may be far too small for it, and a search that starts there
stays near them for long. One trial of the default configuration shows this.
"""

from collections.abc import Mapping
from typing import Any

from foretune.space import Encoded, Space

STEPS = {"imputer": "median", "encoder": "ordinal", "scaler": "none", "reducer": "none"}
"""The other steps of the pipeline; trees need no more."""
CHOICE = "estimator"
BOOSTED: Mapping[str, Mapping[str, Any]] = {
    "lightgbm": {
        "learning_rate": 0.05,
        "num_leaves": 31,
        "min_child_samples": 20,
        "colsample": 1.0,
        "subsample": 1.0,
        "l2": 0.001,
    },
    "hist_boosting": {
        "learning_rate": 0.05,
        "max_leaf_nodes": 31,
        "min_samples_leaf": 20,
        "l2": 0.001,
    },
}
"""The defaults of the libraries, except for two. Their learning rate is 0.1; with early stopping a
smaller one is better. Their l2 is 0, so it is the smallest l2 of the space here."""


def default_config(space: Space) -> Encoded | None:
    """Return the default configuration of a space (one row); None if the space has none."""
    for name, values in BOOSTED.items():
        config = {**STEPS, CHOICE: name}
        config |= {f"{CHOICE}:{name}:{key}": value for key, value in values.items()}
        if config.keys() <= set(space.names):
            return space.encode([config])
    return None
