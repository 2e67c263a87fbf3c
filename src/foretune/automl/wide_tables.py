"""Makes searches of tables with very many columns quick: pipelines first select columns.

Boosted trees look at every column in every leaf. On 2,000 rows and 3,000 columns of numbers they
took 59 s of processor time. They took 5 s with a tenth of the columns, those that each tell most
about the target. The log loss on new rows was the same (decision 024).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from foretune.automl.knowledge.default_configs import CHOICE, default_config
from foretune.space import Encoded, Space
from foretune.space.notation import SEPARATOR

REDUCER = "reducer"
SELECTION = {REDUCER: "select", f"{REDUCER}{SEPARATOR}select{SEPARATOR}share": 0.1}
"""The smallest selection of the shipped spaces."""
SMALL_TREES: Mapping[str, Mapping[str, float]] = {
    "lightgbm": {"num_leaves": 8, "colsample": 0.4},
    "hist_boosting": {"max_leaf_nodes": 8},
}
"""Wide tables have few rows for each column: small trees are quicker and overfit less."""


def select_columns(configs: Encoded) -> Encoded:
    """Return the configurations with a selection of columns, each once.

    Configurations of a space that selects no columns stay as they are.
    """
    if not SELECTION.keys() <= set(configs.space.names):
        return configs
    chosen = configs.space.encode([_with_selection(config) for config in configs.dicts()])
    _, first = np.unique(chosen.keys(), return_index=True)
    return chosen.take(np.sort(first))


def quick_config(space: Space) -> Encoded | None:
    """Return small boosted trees on selected columns; None if the space has no boosted trees."""
    found = default_config(space)
    if found is None:
        return None
    config = found.dicts()[0]
    estimator = config[CHOICE]
    for name, value in SMALL_TREES[estimator].items():
        config[f"{CHOICE}{SEPARATOR}{estimator}{SEPARATOR}{name}"] = value
    return select_columns(space.encode([config]))


def opening_of_wide_table(space: Space, start: Encoded | None) -> Encoded | None:
    """Return the first trials on a wide table: a quick pipeline, then `start` on few columns."""
    quick = quick_config(space)
    if start is None:
        return quick
    if quick is None or start.space != space:
        return select_columns(start)
    return select_columns(Encoded.concat([quick, start]))


def _with_selection(config: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"{REDUCER}{SEPARATOR}"
    kept = {name: value for name, value in config.items() if not name.startswith(prefix)}
    return {**kept, **SELECTION}
