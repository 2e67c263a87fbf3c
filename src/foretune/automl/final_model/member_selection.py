"""Which trials a model is made of: the best alone, or with others that do best together with it."""

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
"""Of their predictions, which are held in memory at once."""
MOST_SECONDS_TO_JOIN = 120.0
"""What joins the best trial in a blend must be expected to learn from all rows in this time."""
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
    """How a model may blend several trials."""

    most: int
    """How many of them."""
    predictions: Path
    """The folder of their out-of-fold predictions."""


def select_members(
    plan: FitPlan, best: Sequence[Trial], blending: BlendOptions | None, *, rows: int
) -> tuple[tuple[ChosenMember, ...], float | None, str]:
    """Which trials the model is made of, the best first, what they score together, a remark."""
    alone = (ChosenMember(best[0], 1.0),)
    if blending is None or len(best) == 1:
        return alone, None, ""
    folds = [held for _, held in plan.protocol.splits(plan.table)]
    shape = (sum(map(len, folds)), max(1, len(plan.table.classes)))
    joining = [best[0], *_trials_within_time(best[1:], plan, rows=rows)]
    candidates = [
        (trial, predicted)
        for trial in joining[: _most_candidates(blending.most, shape)]
        if (predicted := load_predictions(blending.predictions, trial.config, shape)) is not None
    ]
    # Without the best trial, a blend of the others may be worse than that one.
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


def _most_candidates(members: int, shape: tuple[int, int]) -> int:
    """Among how many trials a blend is chosen: fewer, where predictions of this shape are large."""
    room = MOST_BYTES_OF_CANDIDATES // (shape[0] * shape[1] * prediction_dtype(shape[1]).itemsize)
    return min(CANDIDATES_A_MEMBER * members, max(room, members))


def _trials_within_time(trials: Sequence[Trial], plan: FitPlan, *, rows: int) -> list[Trial]:
    """Those that are expected to learn from all rows soon; all of them, if trials had all rows."""
    if rows <= len(plan.table):
        return list(trials)
    pace = FitTimeModel.of(plan, rows=rows)
    # A trial of an unknown time may join.
    return [trial for trial in trials if not pace.seconds(trial) > MOST_SECONDS_TO_JOIN]
