"""The space of trials, from their distributions and from what they lack."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from foretune.space import Space
from foretune.stores.files.space_inference import add_conditions, explain_missing
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
    draft = from_distributions(distributions, rounded_later=True)
    cells = {name: [trial.get(name) for trial in trials] for name in distributions}
    present = {
        name: np.array([name in trial for trial in trials], dtype=bool) for name in distributions
    }
    activities = explain_missing(cells, present)
    add_conditions(draft, activities)
    unexplained = [
        name for name, here in present.items() if name not in activities and not here.all()
    ]
    return Space.of(draft), unexplained
