"""Builds a model from trials: the best one, or a blend of several, fitted to all rows."""

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
    MemberFitter,
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
from foretune.tables import Table

INTERRUPTED = "Stopped while the model was fitted: it has fewer pipelines than were chosen for it."
NONE_SOUND = (
    "All pipelines of the best trials are worse than a guess on rows they have learnt from."
)
MOST_TRIED = 5
"""The most trials that are tried, the best first, until one can be fitted. Each may take long, and
usually all fail for the same reason."""


@dataclass(frozen=True, slots=True)
class _ModelParts:
    """The parts of a model."""

    members: tuple[ChosenMember, ...]
    pipelines: Mapping[int, Member]
    """The fitted pipelines, by the number of the trial."""
    blended: float | None
    remark: str
    dropped: Sequence[DroppedMember]
    interrupted: bool
    """Whether Ctrl-C ended the fitting, so that some members are missing."""


@dataclass(frozen=True)
class FinalModel:
    """A fitted model and its parts."""

    best: Trial
    """The best trial that could be fitted to all rows and saved."""
    stands_in: bool
    """Whether a better trial could not be fitted or saved."""
    members: tuple[ChosenMember, ...]
    model: Model
    blended: float | None = None
    """The score of the blend on out-of-fold predictions; None if there is one pipeline."""
    remark: str = ""
    """A sentence on the parts that the model lacks, or on why it is not a blend."""
    interrupted: bool = False
    """Whether Ctrl-C ended the fitting, so that the model lacks members."""


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
    """Fit the best trial that can be fitted, alone or blended with other trials.

    table: all rows. blending: None for the best trial alone. is_spent: whether the trials are
    stored and running the job again would add none.
    """
    best = best_first(trials, plan.metric)
    if not best:
        reasons = sorted({trial.reason for trial in trials if trial.reason})
        raise UsageError(
            f"a model needs a trial that succeeded, but none of {len(trials)} did "
            f"({'; '.join(reasons[:3]) or 'none has ended'}): {_remedy(trials)}"
            f"{_spent_remedy(is_spent)}",
            rule="no-trial-succeeded",
            value=len(trials),
        )
    times, left = FitTimeModel.of(plan, rows=len(table)), limits.deadline - limits.now()
    in_time = times.select_quick(best, left)
    parts = _fit_parts(plan, in_time, table, blending, limits)
    model = Model.of(
        table,
        [parts.pipelines[each.trial.number] for each in parts.members],
        target=target,
        metric=plan.metric.name,
        shares=plan.shares,
    )
    late = "" if in_time[0] is best[0] else _explain_missing_best(best[0], times, left)
    stopped = INTERRUPTED if parts.interrupted else ""
    return FinalModel(
        parts.members[0].trial,
        parts.members[0].trial is not best[0],
        parts.members,
        model,
        parts.blended,
        " ".join(filter(None, [late, parts.remark, _list_dropped_members(parts.dropped), stopped])),
        parts.interrupted,
    )


def _explain_missing_best(trial: Trial, times: FitTimeModel, left: float) -> str:
    """Explain that the best trial is not part of the model, and how it could be."""
    needed, metric = times.seconds(trial), times.plan.metric.name
    return (
        f"Trial {trial.number} scored best, {metric} {trial.values[metric]:.4g}, but is expected "
        f"to learn from all rows for {duration_text(needed)}, and {duration_text(max(left, 0.0))} "
        f"were left: give more time, such as {duration_text(needed / SHARE_OF_MODEL)}, for a model "
        "with it."
    )


def _remedy(trials: Sequence[Trial]) -> str:
    """Return advice for the case that no trial succeeded."""
    limits = "allow more time or memory a trial"
    failed = [trial for trial in trials if trial.status is Status.FAILED]
    others = [trial for trial in failed if not trial.reason.startswith(OUT_OF_LIMITS)]
    if not others:
        return limits
    mend = "correct the table as these reasons say, or choose other estimators"
    return mend if len(others) == len(trials) else f"{mend}, or {limits}"


def _spent_remedy(is_spent: bool) -> str:
    """Return further advice if stored failed trials leave no room for new ones."""
    if not is_spent:
        return ""
    return (
        "; failed trials count, so raise --trials as well, or begin again with another --out (or "
        "another --store, if one was given)"
    )


def _fit_parts(
    plan: FitPlan,
    best: Sequence[Trial],
    table: Table,
    blending: BlendOptions | None,
    limits: FitLimits,
) -> _ModelParts:
    """Fit the best trial that can be fitted, and the trials that join it; raise if none can."""
    check = Check(plan, table, without_columns(plan.table, plan.protocol))
    parts = _try_best_trials(best, blending, check, limits)
    if not parts.pipelines and any(reason == NOT_SOUND for _, reason in parts.dropped):
        # A model that is worse than its trials is better than none.
        parts = _try_best_trials(best, blending, replace(check, guess=None), limits)
        parts = replace(parts, remark=f"{parts.remark} {NONE_SOUND}".strip())
    if not parts.pipelines:
        reasons = sorted({reason for _, reason in parts.dropped})
        raise UsageError(
            "a model needs a trial that can be fitted to all rows and saved, but none of "
            f"{_count_best(min(MOST_TRIED, len(best)), len(best))} could "
            f"({'; '.join(reasons[:3])}): "
            "choose other estimators or fewer rows, or allow more memory",
            rule="no-trial-can-be-fitted",
            value=min(MOST_TRIED, len(best)),
        )
    return parts


def _try_best_trials(
    best: Sequence[Trial], blending: BlendOptions | None, check: Check, limits: FitLimits
) -> _ModelParts:
    """Fit the first of the best trials that passes the check; no pipelines if none does."""
    fitter, rows = MemberFitter(check, limits), len(check.table)
    candidates = best
    for _ in range(min(MOST_TRIED, len(best))):
        members, blended, remark = select_members(check.plan, candidates, blending, rows=rows)
        fitter.fit(members)
        wanted = [each.trial for each in sort_by_weight(members)]
        usable = fitter.select_usable(best if fitter.interrupted else wanted)
        if usable and (fitter.interrupted or usable[0] is wanted[0]):
            if usable != wanted:
                # The weights were chosen for all of them together.
                ready = [trial for trial in candidates if trial in usable]
                members, blended, remark = select_members(check.plan, ready, blending, rows=rows)
            pipelines = {
                each.trial.number: replace(fitter.member(each.trial), weight=each.weight)
                for each in members
            }
            return _ModelParts(
                members, pipelines, blended, remark, fitter.dropped, fitter.interrupted
            )
        dropped = [trial.number for trial, _ in fitter.dropped]
        candidates = [trial for trial in candidates if trial.number not in dropped]
        if not candidates:
            break
    return _ModelParts((), {}, None, "", fitter.dropped, interrupted=False)


def _count_best(number: int, trials: int) -> str:
    if number == trials:
        return count_text(trials, "trial")
    return f"the best {number} of {count_text(trials, 'trial')}"


def _list_dropped_members(dropped: Sequence[DroppedMember]) -> str:
    if not dropped:
        return ""
    text = ", ".join(f"trial {trial.number} ({reason})" for trial, reason in dropped)
    return f"Left out of the model: {text}."
