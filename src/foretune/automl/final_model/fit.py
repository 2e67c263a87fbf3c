"""The way into this room: from the trials of a search to the final model.

`fit_final_model` is all that other rooms call here, beside `model.Model`. It keeps the time: what
the model learns from is chosen by how long it is expected to take.
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
from foretune.automl.final_model.member_selection import BlendOptions
from foretune.automl.final_model.worker_pool import FitWorkers
from foretune.automl.fit_time_model import MOST_GROWTH_HERE, SHARE_OF_MODEL, FitTimeModel
from foretune.automl.plan import FitPlan
from foretune.errors import UsageError
from foretune.experience.trial import Trial, best_first
from foretune.tables.table import Table

__all__ = ["FinalModel", "FinalModelRequest", "fit_final_model"]

SHARE_FOR_SAFETY = 0.25
"""The share of the time left that a model of the search's rows may take, which is used if a model
of all rows is not ready in time."""
SHARE_TO_USE = 0.7
"""The share of the time left that a model should take, if its rows are chosen by the time."""


@dataclass(frozen=True, kw_only=True)
class FinalModelRequest:
    """What a final model is made of, and what it may take."""

    plan: FitPlan
    table: Table
    """All rows."""
    target: str
    trials: tuple[Trial, ...]
    ensemble: int = 1
    """How many trials may be blended at most."""
    predictions: Path | None = None
    """The folder of the trials' out-of-fold predictions; None if there are none to blend."""
    clock: TimeBudget = field(default_factory=TimeBudget)
    must_end: bool = False
    """Whether another model stands in for one that is not ready in time."""
    is_spent: bool = False
    """Whether the trials are kept and the same job would add none."""
    is_saved: bool = False
    """Whether the model has to fit into a file."""
    processes: int | None = None
    """How many processes fit slow pipelines within limits; None to fit all of them here."""
    folder: Path = Path()
    """Where the table lies meanwhile."""
    memory_bytes: int | None = None
    """The limit of a process that fits as many rows as a trial does."""
    progress: Progress = SILENT
    fit: FitPipeline = refit
    """How a pipeline is fitted."""
    contention: float = field(default_factory=contention)
    """How many times longer work takes now, because the machine is busy."""


def fit_final_model(request: FinalModelRequest) -> FinalModel:
    """Fit the best trial to all rows, or a blend of trials that do best together.

    If the model must be ready in time, it learns from as many rows as there is time for. Raises
    UsageError if no trial succeeded or none can be fitted.
    """
    clock, table = request.clock, request.table
    if not request.must_end:
        return _build(request, table, model_deadline(clock))
    safe = _fit_search_rows(request)
    rows = rows_in_time(request)
    learnt = table if rows is None else table.sample(rows, seed=request.plan.protocol.seed)
    try:
        made = _build(request, learnt, clock.model_end)
    except (UsageError, KeyboardInterrupt) as error:
        if safe is None:
            raise
        stopped = isinstance(error, KeyboardInterrupt)
        return replace(_of_fewer_rows(safe, request.plan.table, table), interrupted=stopped)
    return made if rows is None else _of_fewer_rows(made, learnt, table)


def rows_in_time(request: FinalModelRequest) -> int | None:
    """Return how many rows the best trial can learn from in time; None if a trial can from all."""
    plan, left = request.plan, request.clock.remaining_for_model()
    times = FitTimeModel.of(plan, rows=len(request.table))
    best = best_first(request.trials, plan.metric)
    expected = [request.contention * times.seconds(trial) for trial in best]
    # The time of a trial may be unknown, which is not a number.
    if not best or any(not seconds > left for seconds in expected):
        return None
    share: float = (SHARE_TO_USE * left / expected[0]) ** (1.0 / times.power(best[0]))
    rows = max(int(share * len(request.table)), len(plan.table))
    return rows if rows < len(request.table) else None


def model_deadline(clock: TimeBudget) -> float:
    """Return when the model should be ready, by the monotonic clock.

    It has at least the share of the time that the search leaves to it at the latest.
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
    """Fit the best trial to the rows of the search, if all rows take much longer."""
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


def _of_fewer_rows(made: FinalModel, learnt: Table, table: Table) -> FinalModel:
    """Add the remark that there was no time to learn from all rows."""
    remark = (
        f"The model learns from {len(learnt):,} of {len(table):,} rows, because there was no time "
        "for more: give more --time for all of them."
    )
    return replace(made, remark=f"{remark} {made.remark}".strip())
