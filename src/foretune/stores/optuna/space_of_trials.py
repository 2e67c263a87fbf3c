"""The space of trials, from their distributions and from the hyperparameters that they lack."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from foretune.space import Space
from foretune.stores.files.cell_columns import ColumnCells
from foretune.stores.files.condition_inference import add_conditions, explain_missing
from foretune.stores.optuna.distributions import from_distributions

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


def infer_space(
    distributions: "Mapping[str, BaseDistribution]", trials: Sequence[Mapping[str, Any]]
) -> tuple[Space, list[str]]:
    """Return the space of the distributions, with the conditions that the trials show.

    The second part names the hyperparameters that some trials lack and no condition explains.

    trials: the values that each trial has drawn, by name.
    """
    from optuna.distributions import FloatDistribution

    draft = from_distributions(distributions, rounded_later=True)
    nothing = ColumnCells.gaps(len(trials))
    cells = {  # a range of floats decides nothing about others
        name: nothing if isinstance(each, FloatDistribution) else [t.get(name) for t in trials]
        for name, each in distributions.items()
    }
    present = {
        name: np.array([name in trial for trial in trials], dtype=bool) for name in distributions
    }
    activities = explain_missing(cells, present)
    add_conditions(draft, activities)
    unexplained = [
        name for name, here in present.items() if name not in activities and not here.all()
    ]
    return Space.of(draft), unexplained
