"""Finds pipelines that are equivalent on one table, so that no trial only repeats a score."""

from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune.automl.estimators.pipelines import NATIVE, SELF_ENCODED
from foretune.space import Encoded
from foretune.space.structure import Stage
from foretune.tables import Table

TREES = ("rf", "extra_trees", "lightgbm", "xgboost", "catboost", "hist_boosting")
"""Estimators for which only the order of a column's numbers matters."""

_IDLE_FOR = (({"imputer", "scaler", "reducer"}, NATIVE), ({"encoder"}, SELF_ENCODED))
"""Stages that have no effect on some estimators."""


@dataclass(frozen=True, slots=True)
class PipelineEquivalence:
    """Translates pipelines into a form in which equivalent pipelines are equal."""

    idle: frozenset[str]
    """The stages that do nothing on this table, whatever is chosen."""

    @classmethod
    def on(cls, table: Table) -> "PipelineEquivalence":
        """Find the stages that do nothing: an encoder without categories, and so on."""
        texts = table.schema.texts.values()
        numbers = table.x[:, ~np.any([table.categorical, *texts], axis=0)]
        does_nothing = {
            "encoder": not table.categorical.any(),
            "imputer": bool(np.isfinite(numbers).all()),
            "scaler": numbers.shape[1] == 0 and not texts,
        }
        return cls(frozenset(stage for stage, nothing in does_nothing.items() if nothing))

    def __call__(self, configs: Encoded) -> Encoded:
        """Return the pipelines, with the same choice wherever the choice has no effect."""
        stages = {stage.name: stage for stage in configs.space.structure.stages}
        values = configs.values.copy()
        for name in sorted(self.idle & stages.keys()):
            _make_plain(values, np.ones(len(configs), dtype=bool), stages[name])
        if {"scaler", "reducer", "estimator"} <= stages.keys():
            _make_plain(values, _on_trees_alone(configs, stages), stages["scaler"])
        if "estimator" in stages:
            for idle, names in _IDLE_FOR:
                rows = _uses(configs, stages["estimator"], names)
                for name in sorted(stages.keys() & idle):
                    _make_plain(values, rows, stages[name])
        return configs.space.from_values(values)


def _on_trees_alone(configs: Encoded, stages: dict[str, Stage]) -> Bools:
    """Return for each pipeline (n,) whether its trees get the columns directly from the scaler."""
    trees = _uses(configs, stages["estimator"], TREES)
    return trees & _uses(configs, stages["reducer"], ("none",))


def _uses(configs: Encoded, stage: Stage, names: tuple[str, ...]) -> Bools:
    place = next(i for i, s in enumerate(configs.space.structure.stages) if s is stage)
    wanted = [i for i, algorithm in enumerate(stage.algorithms) if algorithm.name in names]
    found: Bools = np.isin(configs.space.structure.algorithm_of(configs.values)[:, place], wanted)
    return found


def _make_plain(values: Floats, rows: Bools, stage: Stage) -> None:
    """Choose, in these rows, the stage's first algorithm that has no hyperparameters."""
    plain = next((i for i, each in enumerate(stage.algorithms) if not each.parameters), None)
    if plain is None or stage.choice is None:
        return
    changed = np.flatnonzero(rows)
    for algorithm in stage.algorithms:
        values[np.ix_(changed, np.array(algorithm.parameters, dtype=np.int64))] = np.nan
    values[changed, stage.choice] = plain
