"""Makes the final model of the pipelines that the trials fitted to their folds.

Nothing learns again. The prediction of a member is the mean of its folds' pipelines, and the blend
is chosen by predictions for rows that those pipelines had not seen.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from foretune._base.arrays import Floats
from foretune._base.progress import SILENT, Progress
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.final_model.bagged_blend import BlendLimits, ScoredRows, bagged_blend
from foretune.automl.final_model.build import FinalModel
from foretune.automl.final_model.fold_models import (
    FoldCosts,
    fold_costs,
    fold_models_path,
    load_fold_models,
    load_incumbent,
    save_incumbent,
)
from foretune.automl.final_model.member_selection import ChosenMember
from foretune.automl.final_model.model import Model
from foretune.automl.out_of_fold import load_predictions, prediction_dtype
from foretune.automl.plan import FitPlan
from foretune.experience.trial import Trial, best_first
from foretune.run import stopping

ACTIVITY = "making the model"
MOST_BYTES_OF_PREDICTIONS = 2**30
"""The most bytes of the predictions of all candidates, which are in memory at once."""
MOST_BYTES = 2**28
"""The most bytes of all members together, without compression."""
MOST_CANDIDATES = 100
FEWEST_TO_HALVE = 12
"""With fewer trials, all of them choose the blend at once."""
LEAST_PREDICT_SECONDS = 0.45
PREDICT_SECONDS_A_ROW = 0.0004
"""Predicting as many rows as a fold has may take these CPU seconds, as trials measured them."""


@dataclass(frozen=True, kw_only=True)
class FoldModelRequest:
    """The parts and the limits of a model that is made of the folds' pipelines."""

    plan: FitPlan
    target: str
    trials: Sequence[Trial]
    most: int
    """The most trials in the blend."""
    folder: Path
    """The folder with the trials' predictions and pipelines."""
    most_bytes: int = MOST_BYTES
    """The most bytes of all members together."""
    deadline: float = math.inf
    """When the model must be ready, by `now`."""
    now: Callable[[], float] = time.monotonic
    progress: Progress = SILENT


@dataclass(frozen=True, slots=True)
class _Candidate:
    trial: Trial
    predictions: Floats
    costs: FoldCosts


def build_from_folds(request: FoldModelRequest) -> FinalModel | None:
    """Blend the trials that do best together; None if the best trial's pipelines are not kept."""
    best = best_first(request.trials, request.plan.metric)
    candidates = _read_candidates(request, best)
    if not candidates or candidates[0].trial is not best[0]:
        return None
    loader = _Loader(request)
    while candidates:
        members, score = _choose(request, candidates)
        loader.load(members)
        if all(each.trial.number in loader.ready for each in members):
            break
        # The weights were chosen for all of them together.
        candidates = [each for each in candidates if loader.may_use(each.trial)]
    else:
        return None
    save_incumbent(request.folder, [(each.trial.config, each.weight) for each in members])
    model = Model.of(
        request.plan.table,
        [replace(loader.ready[each.trial.number], weight=each.weight) for each in members],
        target=request.target,
        metric=request.plan.metric.name,
        shares=request.plan.shares,
    )
    blended = score if len(members) > 1 else None
    return FinalModel(best[0], False, members, model, blended, interrupted=loader.is_interrupted)


def _read_candidates(request: FoldModelRequest, best: Sequence[Trial]) -> list[_Candidate]:
    """Read the predictions of the trials that may be members, the best first."""
    plan = request.plan
    rows = sum(len(held) for _, held in plan.protocol.splits(plan.table))
    shape = (rows, max(1, len(plan.table.classes)))
    size = shape[0] * shape[1] * prediction_dtype(shape[1]).itemsize
    most = max(1, min(MOST_CANDIDATES, MOST_BYTES_OF_PREDICTIONS // size))
    found: list[_Candidate] = []
    for trial in best:
        costs = fold_costs(request.folder, trial.config)
        if costs is None:
            continue
        predictions = load_predictions(request.folder, trial.config, shape)
        if predictions is not None:
            found.append(_Candidate(trial, predictions, costs))
        if len(found) == most:
            break
    return found


def _choose(
    request: FoldModelRequest, candidates: Sequence[_Candidate]
) -> tuple[tuple[ChosenMember, ...], float]:
    """Choose the members, the one with the largest weight first, and their score together."""
    plan = request.plan
    folds = [held for _, held in plan.protocol.splits(plan.table)]
    scored = plan.table.rows(np.concatenate(folds))
    rows = max(map(len, folds))
    most_seconds = max(LEAST_PREDICT_SECONDS, PREDICT_SECONDS_A_ROW * rows)
    # A member costs time in each prediction and room in the file.
    costs = [
        max(
            each.costs.predict_seconds / most_seconds,
            each.costs.bytes / request.most_bytes,
        )
        for each in candidates
    ]
    rows_scored = ScoredRows(
        scored.y,
        plan.metric.name,
        plan.table.task,
        [len(held) for held in folds],
        scored.weights,
    )
    predictions = [each.predictions for each in candidates]
    limits = BlendLimits(request.most, costs, 1.0)
    weights = _incumbent_weights(request, candidates)
    score = 0.0
    for among in _stages(candidates):
        found = bagged_blend(
            predictions,
            rows_scored,
            limits,
            seed=plan.protocol.seed,
            among=among,
            incumbent=weights,
        )
        weights, score = found.weights, found.score
    assert weights is not None
    chosen = [
        ChosenMember(each.trial, float(weight))
        for each, weight in zip(candidates, weights, strict=True)
        if weight > 0
    ]
    return tuple(sorted(chosen, key=lambda each: -each.weight)), score


def _stages(candidates: Sequence[_Candidate]) -> list[list[int]]:
    """Return the candidates of the first half of the search, and all of them.

    The blend of the first half stays unless more trials make it clearly better, so that chance in
    many trials cannot make it worse.
    """
    numbers = sorted(each.trial.number for each in candidates)
    if len(numbers) < FEWEST_TO_HALVE:
        return [list(range(len(candidates)))]
    half = numbers[len(numbers) // 2]
    early = [place for place, each in enumerate(candidates) if each.trial.number < half]
    return [early, list(range(len(candidates)))]


def _incumbent_weights(
    request: FoldModelRequest, candidates: Sequence[_Candidate]
) -> Floats | None:
    """Return the weights of the model that an earlier fit of these folds has saved.

    None if there is none, or if one of its members is not kept.
    """
    known = load_incumbent(request.folder)
    places = {fold_models_path(request.folder, each.trial.config).stem: place
              for place, each in enumerate(candidates)}  # fmt: skip
    if not known or not known.keys() <= places.keys() or len(known) > request.most:
        return None
    weights = np.zeros(len(candidates))
    for name, weight in known.items():
        weights[places[name]] = weight
    shares: Floats = weights / weights.sum()
    return shares


class _Loader:
    """Reads the pipelines of members, each once."""

    def __init__(self, request: FoldModelRequest) -> None:
        self._request = request
        self.ready: dict[int, Member] = {}
        """The pipelines, by the number of the trial."""
        self._lost: set[int] = set()
        """The trials whose pipelines cannot be read."""
        self.is_interrupted = False
        """Whether Ctrl-C was pressed; then no more are read."""

    def may_use(self, trial: Trial) -> bool:
        """Return whether a trial may still be a member."""
        is_ready = trial.number in self.ready
        return is_ready or (trial.number not in self._lost and not self._is_over)

    def load(self, members: Sequence[ChosenMember]) -> None:
        """Read the pipelines of members until the time is over; one is always read."""
        progress = self._request.progress
        progress.start(ACTIVITY, len(members))
        try:
            with stopping.absorb_requests():
                for each in members:
                    if each.trial.number not in self.ready and self.may_use(each.trial):
                        self._load(each.trial)
                    progress.step()
        except KeyboardInterrupt:
            if not self.ready:
                raise
            self.is_interrupted = True
        finally:
            progress.stop()

    @property
    def _is_over(self) -> bool:
        is_late = self._request.now() > self._request.deadline
        return bool(self.ready) and (is_late or self.is_interrupted)

    def _load(self, trial: Trial) -> None:
        found = load_fold_models(self._request.folder, trial.config)
        if found is None:
            self._lost.add(trial.number)
        else:
            self.ready[trial.number] = found
