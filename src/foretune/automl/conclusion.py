"""From trials to a model: the best configuration, or a blend of the best, fitted to all rows."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from foretune.arrays import Floats
from foretune.automl.crew import Crew
from foretune.automl.models.blend import blend
from foretune.automl.models.members import Member, refit
from foretune.automl.models.model import Model
from foretune.automl.models.model_file import Room, TooLargeError
from foretune.automl.models.scores import Predictions, scorer
from foretune.automl.pace import Pace, is_worth_a_crew
from foretune.automl.plan import Plan
from foretune.automl.search import kept_as, predictions_path, ranked
from foretune.automl.tables.datasets import Table
from foretune.automl.tables.schema import as_table
from foretune.automl.tables.targets import Task, codes_of, target_numbers, target_of
from foretune.automl.tables.weighting import Weighting
from foretune.automl.tables.written_numbers import table_mark
from foretune.errors import UsageError
from foretune.experience import Status
from foretune.experience.naming import listed
from foretune.progress import SILENT, Progress, tracked
from foretune.report.wording import counted
from foretune.run.study import StudyTrial

OUT_OF_LIMITS = ("out of memory", "the worker process was killed")
"""How the reasons of failed trials begin that more memory may save."""
CANDIDATES_A_MEMBER = 5
"""A blend of K members is chosen among the best 5 K trials."""
MOST_BYTES_OF_CANDIDATES = 2**30
"""Of their predictions, which are held in memory at once."""
MOST_SECONDS_TO_JOIN = 120.0
"""What joins the best trial in a blend must be expected to learn from all rows in this time."""
FITTING = "fitting the model"
NOT_KEPT = (
    "One pipeline and no blend: the predictions of the best trial were not kept here, because it "
    "was run by an earlier release, with --ensemble 1, or by another machine."
)
NOT_USABLE = (
    "One pipeline and no blend: the predictions of the best trial are damaged or not finite."
)
INTERRUPTED = "Stopped while the model was fitted: it has fewer pipelines than were chosen for it."
MOST_TRIED = 5
"""Of the best trials, one after the other, until one can be fitted: each may take long, and mostly
all of them fail for one reason."""
MOST_LETTERS = 200
"""Of what an error says of itself."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A trial that is part of the model."""

    trial: StudyTrial
    weight: float


Lost: TypeAlias = tuple[StudyTrial, str]
"""A trial that can be no part of the model, and why; an error itself would keep its pipeline."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a model is made of."""

    members: tuple[Chosen, ...]
    fitted: Mapping[int, Member]
    """Their pipelines, by the number of the trial."""
    blended: float | None
    remark: str
    lost: Sequence[Lost]
    interrupted: bool
    """Whether Ctrl-C ended their fitting, so that some are missing."""


@dataclass(frozen=True, slots=True)
class Blending:
    """How a model may blend several trials."""

    most: int
    """How many of them."""
    predictions: Path
    """The folder of their out-of-fold predictions."""


@dataclass(frozen=True, slots=True)
class Means:
    """With what a model is made."""

    room: Room | None = None
    """Of the file that it has to fit into; None for no file."""
    crew: Crew | None = None
    """What fits slow pipelines; None to fit them here."""
    progress: Progress = SILENT


NO_MEANS = Means()


@dataclass(frozen=True)
class Conclusion:
    """What the trials come to."""

    best: StudyTrial
    """Of those that could be fitted to all rows and saved."""
    stands_in: bool
    """Whether a better trial could not be."""
    members: tuple[Chosen, ...]
    model: Model
    blended: float | None = None
    """What the blend scores on out-of-fold predictions; None where it is one pipeline."""
    remark: str = ""
    """What the model lacks, or why it is no blend where one was to be expected."""
    interrupted: bool = False
    """Whether Ctrl-C ended the fitting of the model, which then lacks members."""


def concluded(
    plan: Plan,
    table: Table,
    trials: Sequence[StudyTrial],
    *,
    target: str,
    blending: Blending | None = None,
    means: Means = NO_MEANS,
    spent: bool = False,
) -> Conclusion:
    """The model of the best trial that can be fitted, or of those that do best together with it.

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
    parts = _parts(plan, best, table, blending, means)
    model = Model.of(
        table,
        [parts.fitted[each.trial.number] for each in parts.members],
        target=target,
        metric=plan.metric.name,
        shares=plan.shares,
    )
    stopped = INTERRUPTED if parts.interrupted else ""
    return Conclusion(
        parts.members[0].trial,
        parts.members[0].trial is not best[0],
        parts.members,
        model,
        parts.blended,
        " ".join(filter(None, [parts.remark, _left_out(parts.lost), stopped])),
        parts.interrupted,
    )


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
    joining = [best[0], *_soon_fitted(best[1:], plan, rows=rows)]
    candidates = [
        (trial, predicted)
        for trial in joining[: _most_candidates(blending.most, shape)]
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
        [predicted for _, predicted in candidates],
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


def _most_candidates(members: int, shape: tuple[int, int]) -> int:
    """Among how many trials a blend is chosen: fewer, where predictions of this shape are large."""
    room = MOST_BYTES_OF_CANDIDATES // (shape[0] * shape[1] * kept_as(shape[1]).itemsize)
    return min(CANDIDATES_A_MEMBER * members, max(room, members))


def _predictions(folder: Path, trial: StudyTrial, shape: tuple[int, int]) -> Floats | None:
    """A trial's out-of-fold predictions, where they are there, whole and finite."""
    try:
        # Probabilities stay in single precision: they may be large, and sums of them are double.
        predicted: Floats = np.load(predictions_path(folder, trial.config), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    whole = predicted.shape == shape and predicted.dtype.kind == "f"
    return predicted if whole and np.isfinite(predicted).all() else None


def _soon_fitted(trials: Sequence[StudyTrial], plan: Plan, *, rows: int) -> list[StudyTrial]:
    """Those that are expected to learn from all rows soon; all of them, if trials had all rows."""
    if rows <= len(plan.table):
        return list(trials)
    pace = Pace.of(plan, rows=rows)
    # A trial of an unknown time may join.
    return [trial for trial in trials if not pace.seconds(trial) > MOST_SECONDS_TO_JOIN]


def _parts(
    plan: Plan,
    best: Sequence[StudyTrial],
    table: Table,
    blending: Blending | None,
    means: Means,
) -> _Parts:
    """What the model is made of: the best trial that can be, and those that join it."""
    lost: list[Lost] = []
    tried = best[:MOST_TRIED]
    for place in range(len(tried)):
        members, blended, remark = _members(plan, best[place:], blending, rows=len(table))
        fitted, failed, interrupted = _fitted(members, plan, table, means)
        lost += failed
        if fitted:
            kept = tuple(each for each in members if each.trial.number in fitted)
            together = blended if len(kept) == len(members) else None
            return _Parts(kept, fitted, together, remark, lost, interrupted)
    reasons = sorted({why for _, why in lost})
    raise UsageError(
        "a model needs a trial that can be fitted to all rows and saved, but none of "
        f"{_of_all(len(tried), len(best))} could ({'; '.join(reasons[:3])}): choose other "
        "estimators, fewer rows, or a machine with more memory"
    )


def _of_all(tried: int, trials: int) -> str:
    if tried == trials:
        return counted(trials, "trial")
    return f"the best {tried} of {counted(trials, 'trial')}"


def _fitted(
    members: Sequence[Chosen], plan: Plan, table: Table, means: Means
) -> tuple[dict[int, Member], list[Lost], bool]:
    """The members that could learn from all rows, by the number of their trial, and those that
    could not; whether Ctrl-C left out the rest.

    Trials have limits of time and memory, and may have seen fewer rows. The first is the best:
    without that one, none is fitted. Then those that count most.
    """
    fitted: dict[int, Member] = {}
    lost: list[Lost] = []
    ordered = [members[0], *sorted(members[1:], key=lambda each: -each.weight)]
    with closing(_pipelines(ordered, plan, table, means.crew)) as made:
        together = zip(ordered, made, strict=True)
        try:
            for chosen, member in tracked(together, means.progress, FITTING, len(ordered)):
                usable = _with_room(member, means.room)
                if isinstance(usable, str):
                    lost.append((chosen.trial, usable))
                else:
                    fitted[chosen.trial.number] = replace(usable, weight=chosen.weight)
                if not fitted:
                    break
        except KeyboardInterrupt:
            if not fitted:
                raise
            return fitted, lost, True
    return fitted, lost, False


def _pipelines(
    members: Sequence[Chosen], plan: Plan, table: Table, crew: Crew | None
) -> Generator[Member | str]:
    """The pipeline of each member, fitted to all rows, or why there is none."""
    seed, configs = plan.protocol.seed, [chosen.trial.config for chosen in members]
    pace = Pace.of(plan, rows=len(table))
    if crew is not None and is_worth_a_crew(pace.seconds(each.trial) for each in members):
        yield from crew.fitted(configs, table, seed=seed)
        return
    for config in configs:
        try:
            yield refit(config, table, seed=seed)
        except Exception as error:
            yield _why(error)


def _with_room(made: Member | str, room: Room | None) -> Member | str:
    """The same, or why a model file cannot hold it."""
    if room is not None and not isinstance(made, str):
        try:
            room.take(made.pipeline)
        except Exception as error:
            return _why(error)
    return made


def _why(error: Exception) -> str:
    said = " ".join(str(error).split())[:MOST_LETTERS]
    if isinstance(error, TooLargeError):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _left_out(lost: Sequence[Lost]) -> str:
    if not lost:
        return ""
    said = ", ".join(f"trial {trial.number} ({why})" for trial, why in lost)
    return f"Left out of the model, because they could not be fitted to all rows or saved: {said}."


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
    frame = as_table(frame)
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
