"""Selects the trials of a model: the best alone, or the best blended with others."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretune.automl.final_model.greedy_blend import blend
from foretune.automl.fit_time_model import FitTimeModel
from foretune.automl.out_of_fold import load_predictions, prediction_dtype, predictions_path
from foretune.automl.plan import FitPlan
from foretune.experience.trial import Trial

CANDIDATES_A_MEMBER = 5
"""A blend of K members is chosen among the best 5 K trials."""
MOST_BYTES_OF_CANDIDATES = 2**30
"""The most bytes of the predictions of all candidates, which are in memory at once."""
MOST_SECONDS_TO_JOIN = 120.0
"""A trial joins the best one in a blend only if it should learn from all rows in this time."""
NOT_KEPT = (
    "One pipeline and no blend: the predictions of the best trial were not kept here, because it "
    "was run by an earlier release, with --ensemble 1, or by another machine."
)
NOT_USABLE = (
    "One pipeline and no blend: the predictions of the best trial are damaged or not finite."
)


@dataclass(frozen=True, slots=True)
class ChosenMember:
    """A trial that is part of the model."""

    trial: Trial
    weight: float


@dataclass(frozen=True, slots=True)
class BlendOptions:
    """The limits of a blend of several trials."""

    most: int
    """The most trials in the blend."""
    predictions: Path
    """The folder of their out-of-fold predictions."""
    most_bytes: int = MOST_BYTES_OF_CANDIDATES


def select_members(
    plan: FitPlan, best: Sequence[Trial], blending: BlendOptions | None, *, rows: int
) -> tuple[tuple[ChosenMember, ...], float | None, str]:
    """Return the members of the model (the best first), their score together, and a remark."""
    alone = (ChosenMember(best[0], 1.0),)
    if blending is None or len(best) == 1:
        return alone, None, ""
    folds = [held for _, held in plan.protocol.splits(plan.table)]
    shape = (sum(map(len, folds)), max(1, len(plan.table.classes)))
    joining = [best[0], *_trials_within_time(best[1:], plan, rows=rows)]
    candidates = [
        (trial, predicted)
        for trial in joining[: _most_candidates(blending, shape)]
        if (predicted := load_predictions(blending.predictions, trial.config, shape)) is not None
    ]
    # A blend without the best trial may be worse than that trial alone.
    if not candidates or candidates[0][0] is not best[0]:
        kept = predictions_path(blending.predictions, best[0].config).exists()
        return alone, None, NOT_USABLE if kept else NOT_KEPT
    if len(candidates) == 1:
        return alone, None, ""
    scored = plan.table.rows(np.concatenate(folds))
    found = blend(
        [predicted for _, predicted in candidates],
        scored.y,
        plan.metric.name,
        plan.table.task,
        most=blending.most,
        folds=[len(held) for held in folds],
        counting=scored.weights,
    )
    members = tuple(
        ChosenMember(trial, float(weight))
        for (trial, _), weight in zip(candidates, found.weights, strict=True)
        if weight > 0
    )
    return members, found.score if len(members) > 1 else None, ""


def _most_candidates(blending: BlendOptions, shape: tuple[int, int]) -> int:
    """Return how many trials may be candidates; fewer if predictions of this shape are large."""
    room = blending.most_bytes // (shape[0] * shape[1] * prediction_dtype(shape[1]).itemsize)
    return min(CANDIDATES_A_MEMBER * blending.most, max(room, blending.most))


def _trials_within_time(trials: Sequence[Trial], plan: FitPlan, *, rows: int) -> list[Trial]:
    """Return the trials that should learn from all rows soon; all if the trials had all rows."""
    if rows <= len(plan.table):
        return list(trials)
    times = FitTimeModel.of(plan, rows=rows)
    # A trial whose time is unknown may join.
    return [trial for trial in trials if not times.seconds(trial) > MOST_SECONDS_TO_JOIN]
