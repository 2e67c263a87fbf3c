"""From trials to a model: the best configuration, or a blend of the best, fitted to all rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune.arrays import Floats
from foretune.automl.models.blend import blend
from foretune.automl.models.members import Member, refit
from foretune.automl.models.model import Model
from foretune.automl.models.scores import Predictions, scorer
from foretune.automl.plan import Plan
from foretune.automl.search import predictions_path, ranked
from foretune.automl.tables.datasets import Table
from foretune.automl.tables.schema import named_by_text
from foretune.automl.tables.targets import Task, codes_of, target_numbers, target_of
from foretune.automl.tables.weighting import Weighting
from foretune.automl.tables.written_numbers import table_mark
from foretune.errors import UsageError
from foretune.experience import Status
from foretune.experience.naming import listed
from foretune.progress import SILENT, Progress, tracked
from foretune.run.study import StudyTrial

OUT_OF_LIMITS = ("out of memory", "the worker process was killed")
"""How the reasons of failed trials begin that more memory may save."""
CANDIDATES_A_MEMBER = 5
"""A blend of K members is chosen among the best 5 K trials."""
MOST_SECONDS_TO_JOIN = 120.0
"""What joins the best trial in a blend must be expected to learn from all rows in this time."""
NOT_KEPT = (
    "One pipeline and no blend: the predictions of the best trial were not kept here, because it "
    "was run by an earlier release, with --ensemble 1, or by another machine."
)
NOT_USABLE = (
    "One pipeline and no blend: the predictions of the best trial are damaged or not finite."
)
GROWTH = {"svm": 2.0, "svc": 2.0}
"""The power of the number of rows by which the time of an estimator grows, where it is not 1."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A trial that is part of the model."""

    trial: StudyTrial
    weight: float


@dataclass(frozen=True, slots=True)
class Blending:
    """How a model may blend several trials."""

    most: int
    """How many of them."""
    predictions: Path
    """The folder of their out-of-fold predictions."""


@dataclass(frozen=True)
class Conclusion:
    """What the trials come to."""

    best: StudyTrial
    members: tuple[Chosen, ...]
    model: Model
    blended: float | None = None
    """What the blend scores on out-of-fold predictions; None where it is one pipeline."""
    remark: str = ""
    """What a blend lacks, or why there is none where one was to be expected."""
    interrupted: bool = False
    """Whether Ctrl-C ended the fitting of the model, which then lacks members."""


def concluded(
    plan: Plan,
    table: Table,
    trials: Sequence[StudyTrial],
    *,
    target: str,
    blending: Blending | None = None,
    about: Mapping[str, Any] | None = None,
    spent: bool = False,
    progress: Progress = SILENT,
) -> Conclusion:
    """The model of the best trial, or of those that do best together.

    table: all rows. blending: None for the best alone. spent: whether the trials are kept and the
    same call would add none.
    """
    best = ranked(trials, plan)
    if not best:
        reasons = sorted({trial.reason for trial in trials if trial.reason})
        raise UsageError(
            f"a model needs a trial that succeeded, but none of {len(trials)} did "
            f"({'; '.join(reasons[:3]) or 'none has ended'}): {_remedy(trials)}"
            f"{_beside(spent)}"
        )
    members, blended, remark = _members(plan, best, blending, rows=len(table))
    fitted, failed = _fitted(members, table, plan.protocol.seed, progress)
    if failed:
        lost = [chosen.trial.number for chosen, _ in failed]
        members = tuple(chosen for chosen in members if chosen.trial.number not in lost)
        blended, remark = None, _left_out(failed)
    interrupted = any(isinstance(error, KeyboardInterrupt) for _, error in failed)
    model = Model.of(
        table,
        fitted,
        target=target,
        metric=plan.metric.name,
        about=about,
        shares=plan.shares,
    )
    return Conclusion(best[0], members, model, blended, remark, interrupted)


def _remedy(trials: Sequence[StudyTrial]) -> str:
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


def _members(
    plan: Plan, best: Sequence[StudyTrial], blending: Blending | None, *, rows: int
) -> tuple[tuple[Chosen, ...], float | None, str]:
    """Which trials the model is made of, the best first, what they score together, a remark."""
    alone = (Chosen(best[0], 1.0),)
    if blending is None or len(best) == 1:
        return alone, None, ""
    folds = [held for _, held in plan.protocol.splits(plan.table)]
    shape = (sum(map(len, folds)), max(1, len(plan.table.classes)))
    joining = [best[0], *(trial for trial in best[1:] if _is_quick(trial, plan, rows=rows))]
    candidates = [
        (trial, predicted)
        for trial in joining[: CANDIDATES_A_MEMBER * blending.most]
        if (predicted := _predictions(blending.predictions, trial, shape)) is not None
    ]
    # Without the best trial, a blend of the others may be worse than that one.
    if not candidates or candidates[0][0] is not best[0]:
        kept = predictions_path(blending.predictions, best[0].config).exists()
        return alone, None, NOT_USABLE if kept else NOT_KEPT
    if len(candidates) == 1:
        return alone, None, ""
    scored = plan.table.rows(np.concatenate(folds))
    found = blend(
        np.stack([predicted for _, predicted in candidates]),
        scored.y,
        plan.metric.name,
        plan.table.task,
        most=blending.most,
        folds=[len(held) for held in folds],
        counting=scored.weights,
    )
    members = tuple(
        Chosen(trial, float(weight))
        for (trial, _), weight in zip(candidates, found.weights, strict=True)
        if weight > 0
    )
    return members, found.score if len(members) > 1 else None, ""


def _predictions(folder: Path, trial: StudyTrial, shape: tuple[int, int]) -> Floats | None:
    """A trial's out-of-fold predictions, where they are there, whole and finite."""
    try:
        read = np.load(predictions_path(folder, trial.config), allow_pickle=False)
        predicted: Floats = read.astype(np.float64)
    except (OSError, ValueError, EOFError):
        return None
    return predicted if predicted.shape == shape and np.isfinite(predicted).all() else None


def _is_quick(trial: StudyTrial, plan: Plan, *, rows: int) -> bool:
    """Whether a trial may join a blend, by the time that it took on the rows of the search."""
    power = GROWTH.get(str(trial.config.get(plan.shipped.choice)), 1.0)
    more = rows / len(plan.table)
    return more <= 1.0 or not trial.seconds * more**power > MOST_SECONDS_TO_JOIN


def _fitted(
    members: Sequence[Chosen], table: Table, seed: int, progress: Progress
) -> tuple[list[Member], list[tuple[Chosen, BaseException]]]:
    """The members that could learn from all rows, and why others could not.

    Trials have limits of time and memory, and may have seen fewer rows. The first is the best; the
    model needs that one, so its failure is passed on. Ctrl-C leaves out those that are not fitted.
    """
    fitted: list[Member] = []
    failed: list[tuple[Chosen, BaseException]] = []
    for chosen in tracked(members, progress, "fitting the model", len(members)):
        try:
            member = refit(chosen.trial.config, table, seed=seed)
            fitted.append(replace(member, weight=chosen.weight))
        except KeyboardInterrupt as stop:
            if not fitted:
                raise
            failed += [(other, stop) for other in members[len(fitted) + len(failed) :]]
            break
        except Exception as error:
            if not fitted:
                raise
            failed.append((chosen, error))
    return fitted, failed


def _left_out(failed: Sequence[tuple[Chosen, BaseException]]) -> str:
    said = [f"trial {chosen.trial.number} ({type(error).__name__})" for chosen, error in failed]
    return f"Left out of the blend, because fitting to all rows did not end: {', '.join(said)}."


def score_on(model: Model, frame: pd.DataFrame) -> float:
    """How the model does on a table with a known target, by its own metric."""
    return scores_on(model, frame, [model.metric])[model.metric]


def scores_on(
    model: Model,
    frame: pd.DataFrame,
    metrics: Iterable[str],
    *,
    weighting: Weighting | None = None,
) -> dict[str, float]:
    """How the model does on a table with a known target; rows without one are left out.

    weighting: how much rows counted in the table of the fit.
    """
    known, y = known_rows(
        frame,
        model.target,
        model.task,
        model.classes,
        decimal=model.target_decimal,
        weighting=weighting,
    )
    all_of_them = np.ones(len(known), dtype=np.bool_)
    counts = None if weighting is None else weighting.of_test(known, all_of_them)
    if model.task is Task.REGRESSION:
        given = Predictions(y, model.predict(known), weights=counts)
    else:
        certain = model.predict_proba(known)
        given = Predictions(y, model.chosen(certain), certain, counts)
    return {name: scorer(name, model.task).score(given) for name in metrics}


def known_rows(
    frame: pd.DataFrame,
    target: str,
    task: Task,
    classes: Sequence[str],
    *,
    decimal: str = "",
    weighting: Weighting | None = None,
) -> tuple[pd.DataFrame, Floats]:
    """The rows of a test table whose target is known, and the target as numbers or codes.

    decimal: the target's mark of fractions in the table of the fit, for where this one says none.
    weighting: how much rows counted there; here, those of weight 0 are left out.
    """
    frame = named_by_text(frame)
    needs = {target: "to predict"}
    if weighting is not None:
        needs[weighting.column] = "of weights"
    for needed, what in needs.items():
        if needed not in frame.columns:
            raise UsageError(
                f"a test table must have the column {what}, but it has no '{needed}': add it, or "
                "leave the test table out"
            )
    present = frame[target].notna().to_numpy(copy=True)
    if weighting is not None and present.any():
        present[present] = weighting.of_test(frame, present) > 0.0
    known = frame[present].reset_index(drop=True)
    if known.empty:
        raise UsageError(
            f"a test table needs rows with a known '{target}', but it has none: add them"
        )
    column, _ = target_of(known[target], task, table_mark(frame, decimal))
    if task is Task.REGRESSION:
        return known, target_numbers(column, target)
    codes, new = codes_of(column, classes)
    if new:
        raise UsageError(
            f"a test table must have the classes of the table of the fit, but '{target}' has "
            f"{listed(new)} besides: leave those rows out"
        )
    return known, codes
