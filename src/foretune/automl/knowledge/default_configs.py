"""What one would try first without any experience: boosted trees as their libraries have them.

Past datasets are a guide to tables like them. Where a table has more rows than nearly all of them,
what suited them may be far too small for it, and a search that begins there stays near it for long.
One trial of what is customary tells.
"""

from collections.abc import Mapping
from typing import Any

from foretune.experience import Experience
from foretune.space import Encoded, Space

ROWS = "log_rows"
"""The meta-feature that says how large a table is."""
FEW = 5
"""A table is beyond experience where fewer past datasets than these have as many rows."""
STEPS = {"imputer": "median", "encoder": "ordinal", "scaler": "none", "reducer": "none"}
"""Trees need no more."""
CHOICE = "estimator"
BOOSTED: Mapping[str, Mapping[str, Any]] = {
    "lightgbm": {
        "n_estimators": 100,
        "learning_rate": 0.1,
        "num_leaves": 31,
        "min_child_samples": 20,
        "colsample": 1.0,
        "subsample": 1.0,
        "l2": 0.001,
    },
    "hist_boosting": {
        "max_iter": 100,
        "learning_rate": 0.1,
        "max_leaf_nodes": 31,
        "min_samples_leaf": 20,
        "l2": 0.001,
    },
}
"""The defaults of the libraries; l2 is the least of the space, for theirs is 0."""


def is_beyond(experience: Experience, features: Mapping[str, float]) -> bool:
    """Whether a table of these meta-features is larger than nearly all past datasets."""
    if ROWS not in features:
        return False
    known = [of[ROWS] for of in experience.meta_features.values() if ROWS in of]
    return sum(rows >= features[ROWS] for rows in known) < FEW


def customary(space: Space) -> Encoded | None:
    """The pipeline of a space (one row) that is customary; None where it has no such one."""
    for name, values in BOOSTED.items():
        config = {**STEPS, CHOICE: name}
        config |= {f"{CHOICE}:{name}:{key}": value for key, value in values.items()}
        if config.keys() <= set(space.names):
            return space.encode([config])
    return None
