"""Evaluations one by one, and the experience that holds them in columns."""

from collections.abc import Mapping, Sequence

import numpy as np

from foretune.experience.curves import CurveColumns, read_curve, stack_curves
from foretune.experience.data import MetaFeatures, Splits
from foretune.experience.experience import Experience
from foretune.experience.trial import Evaluation, Metric, Status
from foretune.space import Space

NOTHING: Mapping[str, Mapping[str, float]] = {}
NO_SPLITS: Splits = {}


def build_experience(
    space: Space,
    metrics: Sequence[Metric],
    evaluations: Sequence[Evaluation],
    *,
    tasks: Sequence[str] = (),
    meta_features: MetaFeatures = NOTHING,
    splits: Splits = NO_SPLITS,
) -> Experience:
    """Return an experience of these evaluations.

    tasks: the tasks that come first, in this order. The others follow in the order of their first
        evaluation.
    """
    names = list(dict.fromkeys([*tasks, *(each.task for each in evaluations)]))
    places = {name: place for place, name in enumerate(names)}
    return Experience.build(
        space,
        metrics,
        names,
        [places[each.task] for each in evaluations],
        space.encode([each.config for each in evaluations]),
        np.arange(len(evaluations)),
        [[each.values.get(metric.name, np.nan) for metric in metrics] for each in evaluations],
        status=[each.status for each in evaluations],
        seconds=[np.nan if each.seconds is None else each.seconds for each in evaluations],
        meta_features=meta_features,
        splits=splits,
        curves=_stack_curves(evaluations, [metric.name for metric in metrics]),
    )


def _stack_curves(evaluations: Sequence[Evaluation], names: Sequence[str]) -> CurveColumns | None:
    """Return the curves of the metrics; None if there are none."""
    curves = [None if each.curve is None else each.curve.only(names) for each in evaluations]
    return stack_curves(curves, names) if any(curves) else None


def list_evaluations(experience: Experience) -> list[Evaluation]:
    """Return the rows of an experience, without the values that were not measured."""
    configs = experience.configs.dicts()
    names, curves = [metric.name for metric in experience.metrics], experience.curves
    return [
        Evaluation(
            experience.tasks[task],
            configs[config],
            {name: value for name, value in zip(names, values, strict=True) if np.isfinite(value)},
            Status(status),
            seconds,
            curve=None if curves is None else read_curve(curves, row, names),
        )
        for row, (task, config, values, status, seconds) in enumerate(
            zip(
                experience.task_index.tolist(),
                experience.config_index.tolist(),
                experience.values.tolist(),
                experience.status.tolist(),
                experience.seconds.tolist(),
                strict=True,
            )
        )
    ]
