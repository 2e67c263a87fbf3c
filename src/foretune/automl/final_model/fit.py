"""The entry point of this folder: fits the final model from the trials of a search.

Modules outside of this folder import only this module, `fold_models` and `model`;
tests/test_house.py checks it.
`fit_final_model` keeps the time: it chooses rows by how long the model should take.
"""

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from foretune._base.progress import SILENT, Progress
from foretune._base.time_budget import TimeBudget, contention
from foretune.automl.estimators.fitted_pipeline import FitPipeline, refit
from foretune.automl.final_model.build import FinalModel, build_model
from foretune.automl.final_model.fitting import FitLimits
from foretune.automl.final_model.fold_build import MOST_BYTES, FoldModelRequest, build_from_folds
from foretune.automl.final_model.member_selection import BlendOptions
from foretune.automl.final_model.worker_pool import FitWorkers
from foretune.automl.fit_time_model import MOST_GROWTH_HERE, SHARE_OF_MODEL, FitTimeModel
from foretune.automl.plan import FitPlan
from foretune.errors import UsageError
from foretune.experience.trial import Trial, best_first
from foretune.tables import Table

__all__ = ["FinalModel", "FinalModelRequest", "fit_final_model"]

SHARE_FOR_SAFETY = 0.25
"""The share of the remaining time that a model of the search's rows may take. It is used if a model
of all rows is not ready in time."""
SHARE_TO_USE = 0.7
"""The share of the remaining time that a model should take if the time limits its rows."""

SHARE_TO_WRITE = 0.03
"""The share of the time in which the pipelines of the folds are written once more."""
LEAST_BYTES, BYTES_A_SECOND = 2**25, 2**20
"""Reading and writing a model takes time, so the pipelines of a short fit have less room."""


@dataclass(frozen=True, kw_only=True)
class FinalModelRequest:
    """The parts and the limits of a final model."""

    plan: FitPlan
    table: Table
    """All rows."""
    target: str
    trials: tuple[Trial, ...]
    ensemble: int = 1
    """The most trials in a blend whose pipelines learn from all rows."""
    averaged: int = 0
    """The most trials in a blend of the pipelines that trials fitted to their folds; 0 if pipelines
    must learn from all rows."""
    predictions: Path | None = None
    """The folder of the trials' out-of-fold predictions; None if there are none to blend."""
    clock: TimeBudget = field(default_factory=TimeBudget)
    must_end: bool = False
    """Whether another model is used if this one is not ready in time."""
    is_spent: bool = False
    """Whether the trials are stored and running the job again would add none."""
    is_saved: bool = False
    """Whether the model must fit into a file."""
    processes: int | None = None
    """The number of processes that fit slow pipelines within limits; None to fit all here."""
    folder: Path = Path()
    """The folder where the processes read the table."""
    memory_bytes: int | None = None
    """The memory limit of a process that fits as many rows as a trial does."""
    progress: Progress = SILENT
    fit: FitPipeline = refit
    """The function that fits a pipeline."""
    contention: float = field(default_factory=contention)
    """The factor by which work takes longer because the machine is busy."""


def fit_final_model(request: FinalModelRequest) -> FinalModel:
    """Make the model of the best trial, or of a blend of the trials that do best together.

    Its pipelines are those of the trials' folds, or they learn from all rows: if that model must be
    ready in time, from as many rows as the time allows. Raises UsageError if no trial succeeded or
    none can be fitted.
    """
    clock, table = request.clock, request.table
    if request.averaged and request.predictions is not None:
        made = _average_folds(request, request.predictions)
        if made is not None:
            return made
    if not request.must_end:
        return _build(request, table, model_deadline(clock))
    safe = _fit_search_rows(request)
    rows = rows_in_time(request)
    sample = table if rows is None else table.sample(rows, seed=request.plan.protocol.seed)
    try:
        model = _build(request, sample, clock.model_end)
    except (UsageError, KeyboardInterrupt) as error:
        if safe is None:
            raise
        stopped = isinstance(error, KeyboardInterrupt)
        return replace(_add_rows_remark(safe, request.plan.table, table), interrupted=stopped)
    return model if rows is None else _add_rows_remark(model, sample, table)


def _average_folds(request: FinalModelRequest, folder: Path) -> FinalModel | None:
    """Make the model of the folds' pipelines; None if those of the best trial are not kept."""
    clock = request.clock
    return build_from_folds(
        FoldModelRequest(
            plan=request.plan,
            target=request.target,
            trials=request.trials,
            most=request.averaged,
            folder=folder,
            most_bytes=int(min(MOST_BYTES, max(LEAST_BYTES, BYTES_A_SECOND * clock.seconds))),
            deadline=_deadline_to_read(clock) if request.must_end else model_deadline(clock),
            progress=request.progress,
        )
    )


def _deadline_to_read(clock: TimeBudget) -> float:
    """Return when the pipelines of the folds should be read, to leave time to write them."""
    return clock.model_end - SHARE_TO_WRITE * clock.seconds


def rows_in_time(request: FinalModelRequest) -> int | None:
    """Return how many rows the best trial can learn from in time.

    None if a trial can learn from all rows in time.
    """
    plan, left = request.plan, request.clock.remaining_for_model()
    times = FitTimeModel.of(plan, rows=len(request.table))
    best = best_first(request.trials, plan.metric)
    expected = [request.contention * times.seconds(trial) for trial in best]
    # An unknown time is NaN, and no comparison with it is true.
    if not best or any(not seconds > left for seconds in expected):
        return None
    share: float = (SHARE_TO_USE * left / expected[0]) ** (1.0 / times.power(best[0]))
    rows = max(int(share * len(request.table)), len(plan.table))
    return rows if rows < len(request.table) else None


def model_deadline(clock: TimeBudget) -> float:
    """Return when the model should be ready, by the monotonic clock.

    A search that ends late still leaves the model its share of the time.
    """
    if not clock.is_limited:
        return math.inf
    return max(clock.end, time.monotonic() + SHARE_OF_MODEL * clock.seconds)


def _build(request: FinalModelRequest, table: Table, deadline: float) -> FinalModel:
    workers = None
    if request.processes is not None:
        workers = FitWorkers(request.processes, request.folder, request.memory_bytes, request.fit)
    blending = None
    if request.predictions is not None and request.ensemble > 1:
        blending = BlendOptions(request.ensemble, request.predictions)
    limits = FitLimits(
        workers,
        request.progress,
        is_saved=request.is_saved,
        deadline=deadline,
        must_end=request.must_end,
        fit=request.fit,
    )
    return build_model(
        request.plan,
        table,
        request.trials,
        target=request.target,
        blending=blending,
        limits=limits,
        is_spent=request.is_spent,
    )


def _fit_search_rows(request: FinalModelRequest) -> FinalModel | None:
    """Fit the best trial to the rows of the search if all rows take much longer; else None."""
    plan, clock = request.plan, request.clock
    best = best_first(request.trials, plan.metric)[:1]
    grown = FitTimeModel.of(plan, rows=len(request.table)).growth > MOST_GROWTH_HERE
    if not best or not grown:
        return None
    seconds = FitTimeModel.of(plan, rows=len(plan.table)).seconds(best[0])
    if not request.contention * seconds <= SHARE_FOR_SAFETY * clock.remaining_for_model():
        return None
    try:
        return _build(replace(request, predictions=None), plan.table, clock.model_end)
    except UsageError:
        return None


def _add_rows_remark(model: FinalModel, sample: Table, table: Table) -> FinalModel:
    """Add the remark that there was no time to learn from all rows."""
    remark = (
        f"The model learns from {len(sample):,} of {len(table):,} rows, because there was no time "
        "for more: give more --time for all of them."
    )
    return replace(model, remark=f"{remark} {model.remark}".strip())
