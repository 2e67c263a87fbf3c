"""What a fit is going to do with a table, decided before the first trial and said in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from foretune._base.arrays import Ints
from foretune._base.names import quote_names
from foretune.automl.evaluation import Protocol
from foretune.automl.metrics import check_divisible, scorer
from foretune.automl.spaces import ShippedSpace, load_shipped_space
from foretune.automl.wide_tables import is_wide
from foretune.errors import UsageError
from foretune.experience import Metric
from foretune.report.wording import count_text
from foretune.run.executor import Limits
from foretune.run.tuning_loop import Budget
from foretune.search.seeds import check_seed
from foretune.space import Space
from foretune.tables import RowStructureKind, Table, Task

DEFAULT_TRIALS = 50
DEFAULT_ENSEMBLE = 5
"""How many pipelines a model blends at most (decision 017)."""
DEFAULT_METHOD = "auto"
MOST_SEARCH_ROWS = 30_000
"""Of larger tables a part is searched on; the model that is kept learns from all rows."""
SEARCH_CELLS_A_SECOND = 50_000
"""Of the time given: a trial of a wide table takes long, and some trials must end in time."""
MOST_SEARCH_CELLS = 6_000_000
"""Where there is a time: every worker process holds these cells several times over."""
LEAST_SEARCH_ROWS = 500
RARE_CLASS = 0.4
"""A class with less than this part of its fair share of the rows is rare: a model that never
predicts it would look good by accuracy."""
RARE_POWER = 0.5
"""Probabilities are divided by this power of the classes' shares where one is rare. With 0 the most
probable class is chosen and rare ones hardly ever, with 1 what is best by balanced accuracy, at the
cost of many false alarms; half-way, little of either is lost."""
USUAL_FOLDS = 5
LEAST_ROWS_A_FOLD = 3
PARTS_IN_ORDER = 3
"""Of the later half of rows in order: a sixth of the rows each."""
NEGLIGIBLE_SHARE = 0.02
"""Classes that have together at most this share of the rows do not make folds fewer: a single
misspelt class would leave half of the rows to learn from.
"""
LARGEST_TARGET = 1e30
"""Of regressions. Beyond it, libraries of single precision predict the mean, or nothing."""
EQUAL_TO_TREES = 1e-7
"""Scikit-learn's trees do not divide rows whose targets have a variance near 2e-16."""

Sentences: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FitOptions:
    """What the user asks for; None is left to the plan."""

    trials: int | None = None
    """How many; 50 where neither trials nor seconds are given."""
    seconds: float | None = None
    """For the search and the model that comes of it, on the clock."""
    metric: str | None = None
    space: str | None = None
    only: tuple[str, ...] = ()
    method: str = DEFAULT_METHOD
    jobs: int = 1
    ensemble: int = DEFAULT_ENSEMBLE
    """How many pipelines the model blends at most; 1 is the best alone."""
    seed: int = 0
    trial_seconds: float = 120.0
    """For one trial, on the clock."""
    trial_memory: int = 4 * 2**30

    def __post_init__(self) -> None:
        for name in ("jobs", "ensemble"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"{name} must be at least 1, but got {getattr(self, name)}: choose a number",
                    rule="too-small",
                    field=name,
                    value=getattr(self, name),
                )
        check_seed(self.seed)
        Budget(self.trials, self.seconds)  # refuses what is none, before anything is computed

    @property
    def most_trials(self) -> int | None:
        """How many trials end the search; None where time alone does."""
        if self.trials is None and self.seconds is None:
            return DEFAULT_TRIALS
        return self.trials

    @property
    def limits(self) -> Limits:
        """What one trial is held to."""
        return Limits(wall_seconds=self.trial_seconds, memory_bytes=self.trial_memory)


@dataclass(frozen=True, slots=True)
class FitPlan:
    """How a table is going to be searched."""

    shipped: ShippedSpace
    space: Space
    metric: Metric
    protocol: Protocol
    table: Table
    """The rows that trials are scored on."""
    notes: Sentences
    """What was assumed, for people."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Of the classes, where a rare one is to be found: what the model divides probabilities by
        before it chooses one.
        """
        return self.protocol.shares


def make_plan(table: Table, options: FitOptions) -> FitPlan:
    """The plan for a table."""
    space = _fitting_space(table, options.space)
    aim = _aim(table, options.metric, space.metrics)
    metric = scorer(aim.metric, table.task).metric
    searched = _scoring_rows(table, options)
    protocol = Protocol(
        (metric.name, *(name for name in space.metrics if name != aim.metric)),
        folds=_folds(searched),
        seed=options.seed,
        shares=tuple(share**RARE_POWER for share in aim.rare),
        **_splitting(searched, options),
    ).restrict_to(searched)
    notes = [
        f"Optimising {aim.metric}, {aim.why}.",
        f"Trials are scored by {protocol.describe(searched)}{_why_few_folds(protocol, searched)}.",
        *_unmet_notes(protocol, searched),
        *_scale_notes(table),
    ]
    check_divisible(aim.metric, table.y)
    notes += [*_part_notes(table, searched), *_rare_notes(table, aim.rare)]
    built = space.build(options.only)
    if not options.only:
        notes += _missing_notes(space)
    return FitPlan(space, built, metric, protocol, searched, tuple(notes))


def _fitting_space(table: Table, name: str | None) -> ShippedSpace:
    """The one asked for, if it is for such targets; else the one for pipelines."""
    space = load_shipped_space(name or f"pipeline-{table.task}")
    if space.task is not table.task:
        raise UsageError(
            f"the space '{space.name}' is for {space.task}, but the target asks for {table.task}: "
            f"leave the space out or choose one for {table.task};  foretune fit  also takes "
            f"--task {space.task}",
            rule="space-of-other-task",
            field="space",
            value=space.name,
        )
    return space


@dataclass(frozen=True, slots=True)
class _Aim:
    """What is optimised."""

    metric: str
    why: str
    rare: tuple[float, ...]
    """The classes' shares, where a rare one is to be found."""


def _aim(table: Table, metric: str | None, offered: Sequence[str]) -> _Aim:
    """What was asked for; else what suits the target."""
    if metric is not None:
        return _Aim(metric, "as asked for", ())
    chosen, why = _default_metric(table, offered)
    return _Aim(chosen, why, _rare_shares(table) if chosen == "log_loss" else ())


def _part_notes(table: Table, searched: Table) -> list[str]:
    if len(searched) == len(table):
        return []
    return [f"The search uses {len(searched):,} of {len(table):,} rows; the model learns from all."]


def _rare_notes(table: Table, rare: tuple[float, ...]) -> list[str]:
    if not rare:
        return []
    return [
        f"The rarest class has {min(rare):.1%} of the rows{table.weight_note}: probabilities are "
        "divided by the root of the classes' shares before one is chosen, so that rare ones "
        "are found. With --metric log_loss the most probable one is chosen."
    ]


def _missing_notes(space: ShippedSpace) -> list[str]:
    left_out = space.missing()
    return [f"Without {quote_names(left_out)}: not installed."] if left_out else []


def most_search_rows(columns: int, seconds: float | None) -> int:
    """How many rows trials may be scored on, of a matrix with so many columns."""
    if seconds is None:
        return MOST_SEARCH_ROWS
    cells = min(MOST_SEARCH_CELLS, SEARCH_CELLS_A_SECOND * seconds)
    return min(MOST_SEARCH_ROWS, max(LEAST_SEARCH_ROWS, int(cells / max(1, columns))))


def usual_search_rows(table: Table) -> int:
    """How many rows trials are scored on where there is enough time."""
    return min(MOST_SEARCH_ROWS, len(table))


def _scoring_rows(table: Table, options: FitOptions) -> Table:
    """The rows that trials are scored on."""
    most = most_search_rows(table.x.shape[1], options.seconds)
    drawn = table.sample(most, seed=options.seed)
    if drawn.arrangement is not None and drawn.arrangement.groups < 2:
        raise UsageError(
            f"rows that are scored by '{drawn.arrangement.column}' must differ in it, but it is "
            f"the same in all of the {len(drawn):,} of {len(table):,} rows that the search draws: "
            "choose another column",
            rule="one-group",
            field=drawn.arrangement.column,
            value=len(drawn),
        )
    return drawn


def _splitting(table: Table, options: FitOptions) -> dict[str, int]:
    """Return arguments of a protocol: a wide table is split once if all folds take too long."""
    columns = table.x.shape[1]
    if options.seconds is None or not is_wide(columns):
        return {}
    cells = USUAL_FOLDS * len(table) * columns
    return {"cross_validated_below": 0} if cells > SEARCH_CELLS_A_SECOND * options.seconds else {}


def _unmet_notes(protocol: Protocol, table: Table) -> list[str]:
    """Classes that no model can foretell: of a single row or group, or of the latest rows."""
    if table.task is not Task.CLASSIFICATION:
        return []
    splits = [(table.y[learn], table.y[held]) for learn, held in protocol.splits(table)]
    unmet = np.concatenate([held[~np.isin(held, learnt)] for learnt, held in splits])
    if not len(unmet):
        return []
    names = [table.classes[int(code)] for code in np.unique(unmet)]
    are, they_make = ("is", "It makes") if len(unmet) == 1 else ("are", "They make")
    return [
        f"{len(unmet):,} of {sum(len(held) for _, held in splits):,} scored rows {are} of "
        f"{'a class' if len(names) == 1 else 'classes'} that no row learnt from has: "
        f"{quote_names(names)}. {they_make} every score worse."
    ]


def _scale_notes(table: Table) -> list[str]:
    """What the unit of a target spoils; refuses one in which half of the pipelines see nothing."""
    if table.task is not Task.REGRESSION:
        return []
    largest, halved = float(np.abs(table.y).max()), float(table.y.max() / 2 - table.y.min() / 2)
    if largest > LARGEST_TARGET or 0.0 < halved < 1.0 / LARGEST_TARGET:
        what = f"reach {largest:.3g}" if largest > 1.0 else f"differ by at most {2 * halved:.3g}"
        raise UsageError(
            f"the numbers of a target must be below {LARGEST_TARGET:g} and differ by more than "
            f"{1.0 / LARGEST_TARGET:g}, because their squares are computed, but they {what}: give "
            "them in other units",
            rule="target-scale",
            value=what,
        )
    if halved == 0.0 or table.y.std() >= EQUAL_TO_TREES:
        return []
    return [
        f"The target's numbers differ by {2 * halved:.3g} at most, which forests take for equal: "
        "give them in other units for a better model."
    ]


def _default_metric(table: Table, offered: Sequence[str]) -> tuple[str, str]:
    """What a space is searched by, and why; `offered` are the metrics its experience has."""
    if table.task is Task.REGRESSION:
        return "r2", "the usual one for numbers"
    if "log_loss" in offered:
        return "log_loss", "which sees how sure a model is, not only whether it is right"
    rare = _rare_shares(table)
    if rare:
        few = f"{min(rare):.1%} of the rows{table.weight_note}"
        return "balanced_accuracy", f"because the rarest class has {few}"
    return "accuracy", "the usual one for classes"


def _rare_shares(table: Table) -> tuple[float, ...]:
    """The classes' shares of the rows, by weight, where one of them is rare; else none."""
    counts = np.bincount(table.y.astype(np.int64), table.weights, minlength=len(table.classes))
    shares = counts / counts.sum()
    return tuple(shares.tolist()) if shares.min() * len(shares) < RARE_CLASS else ()


def _folds(table: Table) -> int:
    """Five, or as many as leave every fold a row of each class that counts, but at least two."""
    if table.arrangement is not None:
        in_order = table.arrangement.kind is RowStructureKind.IN_ORDER
        return PARTS_IN_ORDER if in_order else min(USUAL_FOLDS, table.arrangement.groups)
    if table.task is Task.REGRESSION:
        return max(2, min(USUAL_FOLDS, len(table) // LEAST_ROWS_A_FOLD))
    return max(2, min(USUAL_FOLDS, int(_rows_a_class(table)[_rarest_that_counts(table)])))


def _rarest_that_counts(table: Table) -> int:
    """The code of the rarest class but for those that are negligible together."""
    rows = _rows_a_class(table)
    order = np.argsort(rows, kind="stable")
    negligible = np.cumsum(rows[order]) <= NEGLIGIBLE_SHARE * len(table)
    return int(order[np.argmin(negligible)])


def _rows_a_class(table: Table) -> Ints:
    return np.bincount(table.y.astype(np.int64), minlength=len(table.classes))


def _why_few_folds(protocol: Protocol, table: Table) -> str:
    """Why folds are fewer than usual, where a class is to blame: its rows may be left out."""
    usual = protocol.folds == USUAL_FOLDS or table.arrangement is not None
    if table.task is Task.REGRESSION or usual or not protocol.cross_validates(table):
        return ""
    rows = _rows_a_class(table)
    rarest = _rarest_that_counts(table)
    return (
        f", because the class '{table.classes[rarest]}' has {count_text(int(rows[rarest]), 'row')}"
    )
