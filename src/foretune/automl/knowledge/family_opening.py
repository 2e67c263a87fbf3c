"""Opens a search with one configuration of each family of estimators, the cheapest first.

Families make different errors, so a blend gains most from the first trial of each. Their settings
are those that suited similar past datasets, or plain ones where the past says nothing.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from foretune.automl.knowledge.default_configs import BOOSTED, CHOICE, default_config
from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.plan import FitPlan
from foretune.space import Encoded, Space

QUICKEST_FIRST = (
    "logistic",
    "elastic_net",
    "lightgbm",
    "lda",
    "knn",
    "extra_trees",
    "mlp",
    "rf",
    "xgboost",
    "svm",
    "catboost",
)
"""The families that open a search, in the order in which they do without experience."""
FEW_ALWAYS_FIRST = ("logistic", "elastic_net", "lightgbm")
"""The families that open a search whatever their seconds were on smaller tables."""
MOST_ROWS: Mapping[str, int] = {"svm": 8_000, "knn": 20_000}
"""With more rows these families are too slow to compete."""


def families_of(plan: FitPlan) -> tuple[str, ...]:
    """Return the families that compete on the table of a plan."""
    names = plan.shipped.families(plan.space)
    quick = [name for name in names if len(plan.table) <= MOST_ROWS.get(name, len(plan.table))]
    return tuple(quick or names)


def open_families(
    plan: FitPlan, knowledge: FitKnowledge | None, features: Mapping[str, float]
) -> Encoded | None:
    """Return one configuration of each family, the cheapest first; None if one family competes.

    features: the meta-features of the table.
    """
    names = [name for name in QUICKEST_FIRST if name in families_of(plan)]
    if len(names) < 2:
        return None
    known: dict[str, tuple[dict[str, Any], float]] = {}
    if knowledge is not None and knowledge.experience is not None:
        known = knowledge.recommend_each_algorithm(plan.shipped.choice, features)
    configs = {name: _config(plan, name, known) for name in names}
    seconds = {name: known[name][1] if name in known else math.nan for name in names}
    return plan.space.encode([configs[name] for name in _sort(names, seconds)])


def _config(
    plan: FitPlan, name: str, known: Mapping[str, tuple[dict[str, Any], float]]
) -> dict[str, Any]:
    """Return the configuration with which a family begins."""
    plain = default_config(plan.space) if name in BOOSTED else None
    if plain is not None and plain.dicts()[0][CHOICE] == name:
        # Past datasets are small, and early stopping suits any number of rows.
        return plain.dicts()[0]
    if name in known:
        return known[name][0]
    return dict(_defaults(plan, name))


def _defaults(plan: FitPlan, name: str) -> dict[str, Any]:
    """Return the default configuration of one family."""
    alone: Space = plan.shipped.build((name,))
    return alone.defaults().dicts()[0]


def _sort(names: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return the names by their seconds; those that are always first, or unknown, keep their place.

    Without the seconds of any, the order does not change.
    """

    def rank(name: str) -> tuple[int, float]:
        if name in FEW_ALWAYS_FIRST:
            return 0, float(FEW_ALWAYS_FIRST.index(name))
        took = seconds[name]
        return (1, took) if math.isfinite(took) else (2, float(QUICKEST_FIRST.index(name)))

    return sorted(names, key=rank)
