"""Decides when the search of a fit ends, so that there is time for the model."""

from collections.abc import Sequence
from functools import partial

from foretune._base.time_budget import TimeBudget, contention
from foretune.automl.fit_time_model import SHARE_OF_MODEL, FitTimeModel
from foretune.automl.plan import FitOptions, FitPlan
from foretune.experience import Status
from foretune.experience.trial import Trial, best_first
from foretune.run.budget import Budget

LEAST_SECONDS = 0.1
LEAST_RESERVE = 0.1
"""The least share of the time that is left for the model, if a first model stands in for it."""
SHARE_TO_AVERAGE = 0.05
LEAST_SECONDS_TO_AVERAGE = 1.0
"""The time to choose and read the pipelines that trials have fitted, on an idle machine."""

SHARE_OF_TRIAL = 0.25
"""The share of the time that boosting or a network may take in the folds of one trial."""
LEAST_FOLD_SECONDS = 1.0


def fold_seconds(plan: FitPlan, options: FitOptions) -> float | None:
    """Return the most seconds of one fold of a pipeline that learns in steps; None if no limit."""
    if options.seconds is None:
        return None
    folds = len(plan.protocol.splits(plan.table))
    return max(LEAST_FOLD_SECONDS, SHARE_OF_TRIAL * options.seconds / folds)


def search_budget(
    plan: FitPlan,
    options: FitOptions,
    clock: TimeBudget,
    *,
    rows: int,
    workers: int,
    must_end: bool,
    averages: bool = False,
) -> Budget:
    """Return the budget of a search.

    averages: whether the model averages pipelines that trials have fitted. rows: how many the final
    model learns from. workers: how many processes may fit it. must_end: whether the model must be
    ready in time, because another model is used otherwise.
    """
    if options.seconds is None:
        return Budget(options.most_trials)
    left = clock.remaining_for_model() if must_end else clock.remaining()
    left = max(left, LEAST_SECONDS)
    if averages:
        return Budget(options.most_trials, left, partial(_seconds_to_average, clock))
    times, most = FitTimeModel.of(plan, rows=rows), SHARE_OF_MODEL * left

    def model_seconds(trials: Sequence[Trial]) -> float:
        # A pipeline that takes longer is left out when the model is made.
        possible = times.select_quick(best_first(trials, plan.metric), most)
        return min(
            times.model_seconds(possible, members=options.most_refitted, workers=workers), most
        )

    if not must_end:
        return Budget(options.most_trials, left, model_seconds)
    least = LEAST_RESERVE * clock.seconds

    def reserve(trials: Sequence[Trial]) -> float:
        # The model must be ready, and other processes may slow it down.
        if not best_first(trials, plan.metric):
            return 0.0
        return min(max(contention() * model_seconds(trials), least), most)

    return Budget(options.most_trials, left, reserve)


def _seconds_to_average(clock: TimeBudget, trials: Sequence[Trial]) -> float:
    """Return the seconds to make a model of the folds' pipelines; none without a trial."""
    if not any(trial.status is Status.DONE for trial in trials):
        return 0.0
    return contention() * max(LEAST_SECONDS_TO_AVERAGE, SHARE_TO_AVERAGE * clock.seconds)
