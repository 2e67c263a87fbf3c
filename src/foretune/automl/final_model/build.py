"""From trials to a model: the best configuration, or a blend of the best, fitted to all rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from foretune.automl.baseline import without_columns
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.final_model.fitting import (
    NO_LIMITS,
    NOT_SOUND,
    Check,
    DroppedMember,
    FitLimits,
    Fitting,
    sort_by_weight,
)
from foretune.automl.final_model.member_selection import BlendOptions, ChosenMember, select_members
from foretune.automl.final_model.model import Model
from foretune.automl.final_model.worker_pool import OUT_OF_LIMITS
from foretune.automl.fit_time_model import SHARE_OF_MODEL, FitTimeModel
from foretune.automl.plan import FitPlan
from foretune.errors import UsageError
from foretune.experience import Status
from foretune.experience.trial import Trial, best_first
from foretune.report.wording import count_text, duration_text
from foretune.tables.table import Table

INTERRUPTED = "Stopped while the model was fitted: it has fewer pipelines than were chosen for it."
NONE_SOUND = (
    "All pipelines of the best trials are worse than a guess on rows they have learnt from."
)
MOST_TRIED = 5
"""Of the best trials, one after the other, until one can be fitted: each may take long, and mostly
all of them fail for one reason."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a model is made of."""

    members: tuple[ChosenMember, ...]
    fitted: Mapping[int, Member]
    """Their pipelines, by the number of the trial."""
    blended: float | None
    remark: str
    lost: Sequence[DroppedMember]
    interrupted: bool
    """Whether Ctrl-C ended their fitting, so that some are missing."""


@dataclass(frozen=True)
class FinalModel:
    """A fitted model, and what it was made of."""

    best: Trial
    """Of those that could be fitted to all rows and saved."""
    stands_in: bool
    """Whether a better trial could not be."""
    members: tuple[ChosenMember, ...]
    model: Model
    blended: float | None = None
    """What the blend scores on out-of-fold predictions; None where it is one pipeline."""
    remark: str = ""
    """What the model lacks, or why it is no blend where one was to be expected."""
    interrupted: bool = False
    """Whether Ctrl-C ended the fitting of the model, which then lacks members."""


def build_model(
    plan: FitPlan,
    table: Table,
    trials: Sequence[Trial],
    *,
    target: str,
    blending: BlendOptions | None = None,
    limits: FitLimits = NO_LIMITS,
    is_spent: bool = False,
) -> FinalModel:
    """Fit the best trial that can be fitted, or the trials that do best together with it.

    table: all rows. blending: None for the best alone. is_spent: whether the trials are kept and
    the same job would add none.
    """
    best = best_first(trials, plan.metric)
    if not best:
        reasons = sorted({trial.reason for trial in trials if trial.reason})
        raise UsageError(
            f"a model needs a trial that succeeded, but none of {len(trials)} did "
            f"({'; '.join(reasons[:3]) or 'none has ended'}): {_remedy(trials)}"
            f"{_beside(is_spent)}",
            rule="no-trial-succeeded",
            value=len(trials),
        )
    pace, left = FitTimeModel.of(plan, rows=len(table)), limits.deadline - limits.now()
    in_time = pace.quick_enough(best, left)
    parts = _parts(plan, in_time, table, blending, limits)
    model = Model.of(
        table,
        [parts.fitted[each.trial.number] for each in parts.members],
        target=target,
        metric=plan.metric.name,
        shares=plan.shares,
    )
    late = "" if in_time[0] is best[0] else _explain_missing_best(best[0], pace, left)
    stopped = INTERRUPTED if parts.interrupted else ""
    return FinalModel(
        parts.members[0].trial,
        parts.members[0].trial is not best[0],
        parts.members,
        model,
        parts.blended,
        " ".join(filter(None, [late, parts.remark, _list_dropped_members(parts.lost), stopped])),
        parts.interrupted,
    )


def _explain_missing_best(trial: Trial, pace: FitTimeModel, left: float) -> str:
    """That the best trial is no part of the model, and what would make it one."""
    needed, metric = pace.seconds(trial), pace.plan.metric.name
    return (
        f"Trial {trial.number} scored best, {metric} {trial.values[metric]:.4g}, but is expected "
        f"to learn from all rows for {duration_text(needed)}, and {duration_text(max(left, 0.0))} "
        f"were left: give more time, such as {duration_text(needed / SHARE_OF_MODEL)}, for a model "
        "with it."
    )


def _remedy(trials: Sequence[Trial]) -> str:
    """What may help where no trial succeeded."""
    limits = "allow more time or memory a trial"
    failed = [trial for trial in trials if trial.status is Status.FAILED]
    others = [trial for trial in failed if not trial.reason.startswith(OUT_OF_LIMITS)]
    if not others:
        return limits
    mend = "mend what these reasons name in the table, or choose other estimators"
    return mend if len(others) == len(trials) else f"{mend}, or {limits}"


def _beside(spent: bool) -> str:
    """What it takes besides: failed trials that are kept leave no place for others."""
    if not spent:
        return ""
    return (
        "; failed trials count, so raise --trials as well, or begin anew with another --out (or "
        "another --store, where one was given)"
    )


def _parts(
    plan: FitPlan,
    best: Sequence[Trial],
    table: Table,
    blending: BlendOptions | None,
    limits: FitLimits,
) -> _Parts:
    """What the model is made of: the best trial that can be, and those that join it."""
    check = Check(plan, table, without_columns(plan.table, plan.protocol))
    parts = _first_parts(best, blending, check, limits)
    if not parts.fitted and any(why == NOT_SOUND for _, why in parts.lost):
        # Rather a model that is not what it promised to be than none.
        parts = _first_parts(best, blending, replace(check, guess=None), limits)
        parts = replace(parts, remark=f"{parts.remark} {NONE_SOUND}".strip())
    if not parts.fitted:
        reasons = sorted({why for _, why in parts.lost})
        raise UsageError(
            "a model needs a trial that can be fitted to all rows and saved, but none of "
            f"{_of_all(min(MOST_TRIED, len(best)), len(best))} could ({'; '.join(reasons[:3])}): "
            "choose other estimators or fewer rows, or allow more memory",
            rule="no-trial-can-be-fitted",
            value=min(MOST_TRIED, len(best)),
        )
    return parts


def _first_parts(
    best: Sequence[Trial], blending: BlendOptions | None, check: Check, limits: FitLimits
) -> _Parts:
    """Of the first of the best trials that passes; without any fitted where none does."""
    fitting, rows = Fitting(check, limits), len(check.table)
    candidates = best
    for _ in range(min(MOST_TRIED, len(best))):
        members, blended, remark = select_members(check.plan, candidates, blending, rows=rows)
        fitting.fit(members)
        wanted = [each.trial for each in sort_by_weight(members)]
        usable = fitting.usable(best if fitting.interrupted else wanted)
        if usable and (fitting.interrupted or usable[0] is wanted[0]):
            if usable != wanted:
                # The weights were chosen for all of them together.
                ready = [trial for trial in candidates if trial in usable]
                members, blended, remark = select_members(check.plan, ready, blending, rows=rows)
            fitted = {
                each.trial.number: replace(fitting.member(each.trial), weight=each.weight)
                for each in members
            }
            return _Parts(members, fitted, blended, remark, fitting.lost, fitting.interrupted)
        lost = [trial.number for trial, _ in fitting.lost]
        candidates = [trial for trial in candidates if trial.number not in lost]
        if not candidates:
            break
    return _Parts((), {}, None, "", fitting.lost, interrupted=False)


def _of_all(tried: int, trials: int) -> str:
    if tried == trials:
        return count_text(trials, "trial")
    return f"the best {tried} of {count_text(trials, 'trial')}"


def _list_dropped_members(lost: Sequence[DroppedMember]) -> str:
    if not lost:
        return ""
    said = ", ".join(f"trial {trial.number} ({why})" for trial, why in lost)
    return f"Left out of the model: {said}."
