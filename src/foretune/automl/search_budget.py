"""When the search of a fit ends, so that there is time for the model."""

from collections.abc import Callable, Sequence

from foretune._base.time_budget import TimeBudget, contention
from foretune.automl.fit_time_model import SHARE_OF_MODEL, FitTimeModel
from foretune.automl.plan import FitOptions, FitPlan
from foretune.experience.trial import Trial, best_first
from foretune.run.tuning_loop import Budget

LEAST_SECONDS = 0.1
LEAST_RESERVE = 0.1
"""The least share of the time that is left for the model, if a first model stands in for it."""


def search_budget(
    plan: FitPlan,
    options: FitOptions,
    clock: TimeBudget,
    *,
    rows: int,
    workers: int,
    must_end: bool,
) -> Budget:
    """Return when the search of a job ends.

    rows: all that the final model learns from. workers: how many processes may fit it.
    must_end: whether the model has to be ready in time, because another one stands in for it.
    """
    if options.seconds is None:
        return Budget(options.most_trials)
    left = clock.remaining_for_model() if must_end else clock.remaining()
    left = max(left, LEAST_SECONDS)
    times, most = FitTimeModel.of(plan, rows=rows), SHARE_OF_MODEL * left

    def expected(trials: Sequence[Trial]) -> float:
        # A pipeline that takes longer is left out when the model is made.
        possible = times.quick_enough(best_first(trials, plan.metric), most)
        return min(times.of_model(possible, members=options.ensemble, workers=workers), most)

    if not must_end:
        return Budget(options.most_trials, left, expected)
    least = LEAST_RESERVE * clock.seconds
    return Budget(options.most_trials, left, _careful(expected, plan, least, most))


def _careful(
    expected: Callable[[Sequence[Trial]], float], plan: FitPlan, least: float, most: float
) -> Callable[[Sequence[Trial]], float]:
    """Return the time for a model that must be ready: other processes may slow it down."""

    def reserve(trials: Sequence[Trial]) -> float:
        if not best_first(trials, plan.metric):
            return 0.0
        return min(max(contention() * expected(trials), least), most)

    return reserve
