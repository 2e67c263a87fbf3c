"""Plans a fit: decides before the first trial how a table is searched, and says so in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from foretune._base.names import quote_names
from foretune.automl.evaluation import SPLIT_ONCE_FROM, Protocol
from foretune.automl.metrics import check_divisible, scorer
from foretune.automl.spaces import ShippedSpace, load_shipped_space
from foretune.errors import UsageError
from foretune.experience import Metric
from foretune.report.wording import count_text
from foretune.run.budget import Budget
from foretune.run.executor import Limits
from foretune.search.seeds import check_seed
from foretune.tables import RowStructureKind, Table, Task

if TYPE_CHECKING:
    from foretune.space import Space

DEFAULT_TRIALS = 50
DEFAULT_ENSEMBLE = 25
"""The most pipelines in a blend (decision 037)."""
DEFAULT_REFIT_ENSEMBLE = 5
"""The same if the pipelines learn from all rows once more, which takes time (decision 017)."""
DEFAULT_METHOD = "auto"
MOST_SEARCH_ROWS = 30_000
"""The search uses at most this many rows of a table; the final model learns from all rows."""
SEARCH_CELLS_A_SECOND = 50_000
"""The search uses this many cells for each second of its time, so that some trials end in time."""
MOST_SEARCH_CELLS = 6_000_000
"""The most cells of a search with a time limit; each worker process needs several copies."""
LEAST_SEARCH_ROWS = 500
FOLDS_CELLS_A_SECOND = 5_000
FEW_FOLDS_CELLS_A_SECOND = 12_000
"""A table with up to so many cells for each second of the time has all folds, or a few. Otherwise
too few trials would end, and rows are split once."""
UNLIMITED_SECONDS = 120.0
"""The time that counts here if the user gave none."""
FEW_FOLDS = 3
FEW_CLASSES = 3
"""More classes than these make a table count as larger."""
RARE_CLASS = 0.4
"""A class is rare if it has less than this part of an equal share of the rows. A model that never
predicts it would have a good accuracy."""
RARE_POWER = 0.5
"""If a class is rare, probabilities are divided by this power of the classes' shares. With 0, rare
classes are hardly ever chosen. With 1, balanced accuracy is best, but there are many false alarms.
Half-way, both are almost as good."""
USUAL_FOLDS = 5
LEAST_ROWS_A_FOLD = 3
PARTS_IN_ORDER = 3
"""The later half of rows in order is scored in this many parts."""
NEGLIGIBLE_SHARE = 0.02
"""Classes that together have at most this share of the rows do not reduce the number of folds.
Otherwise one misspelt class would leave only half of the rows to learn from."""
LARGEST_TARGET = 1e30
"""The largest target of a regression. Beyond it, libraries of single precision predict the mean or
fail."""
WIDE_COLUMNS = 1_000
"""A matrix with more columns is wide."""
EQUAL_TO_TREES = 1e-7
"""Scikit-learn's trees do not split rows whose targets have a variance near 2e-16."""

Sentences: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FitOptions:
    """The options of a fit; the plan decides those that are None."""

    trials: int | None = None
    """The most trials; 50 if neither trials nor seconds are given."""
    seconds: float | None = None
    """The time of the search and the final model, on the clock."""
    metric: str | None = None
    space: str | None = None
    only: tuple[str, ...] = ()
    method: str = DEFAULT_METHOD
    jobs: int = 1
    ensemble: int | None = None
    """The most pipelines in the model; 1 is the best alone. The default depends on `refit`."""
    refit: bool = False
    """Whether the pipelines of the model learn from all rows once more.

    Otherwise the model averages the pipelines that the trials fitted to their folds.
    """
    seed: int = 0
    trial_seconds: float = 120.0
    """The time of one trial, on the clock."""
    trial_memory: int = 4 * 2**30

    def __post_init__(self) -> None:
        for name in ("jobs", "ensemble"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(
                    f"{name} must be at least 1, but got {getattr(self, name)}: choose a number",
                    rule="too-small",
                    field=name,
                    value=getattr(self, name),
                )
        check_seed(self.seed)
        Budget(self.trials, self.seconds)  # This refuses a wrong budget before any work is done.

    @property
    def most_members(self) -> int:
        """The most pipelines in a model of the folds' pipelines."""
        return self.ensemble or DEFAULT_ENSEMBLE

    @property
    def most_refitted(self) -> int:
        """The most pipelines in a model whose pipelines learn from all rows once more."""
        return self.ensemble or DEFAULT_REFIT_ENSEMBLE

    @property
    def most_trials(self) -> int | None:
        """The number of trials that ends the search; None if only the time does."""
        if self.trials is None and self.seconds is None:
            return DEFAULT_TRIALS
        return self.trials

    @property
    def limits(self) -> Limits:
        """The limits of one trial."""
        return Limits(wall_seconds=self.trial_seconds, memory_bytes=self.trial_memory)


@dataclass(frozen=True)
class FitPlan:
    """The decisions about the search of a table."""

    shipped: ShippedSpace
    only: tuple[str, ...]
    """The estimators that the search may use; all if empty."""
    metric: Metric
    protocol: Protocol
    table: Table
    """The rows that trials are scored on."""
    notes: Sentences
    """The assumptions, as sentences."""
    averages_folds: bool = False
    """Whether the model averages the pipelines that trials fit to their folds. They have then seen
    all rows of the table together."""

    @cached_property
    def space(self) -> "Space":
        """The space of the search, which is built when it is first needed."""
        return self.shipped.build(self.only)

    @property
    def shares(self) -> tuple[float, ...]:
        """The numbers that probabilities are divided by if a class is rare; otherwise empty."""
        return self.protocol.shares


def make_plan(table: Table, options: FitOptions) -> FitPlan:
    """Make the plan for a table."""
    space = _choose_space(table, options.space)
    space.check(options.only)
    aim = _choose_aim(table, options.metric, space.metrics)
    metric = scorer(aim.metric, table.task).metric
    part = _draw_search_rows(table, options)
    protocol = Protocol(
        (metric.name, *(name for name in space.metrics if name != aim.metric)),
        seed=options.seed,
        shares=tuple(share**RARE_POWER for share in aim.rare),
        **_splitting(part, options),
    ).restrict_to(part)
    notes = [
        f"Optimising {aim.metric}, {aim.why}.",
        f"Trials are scored by {protocol.describe(part)}{_explain_few_folds(protocol, part)}.",
        *_new_class_notes(protocol, part),
        *_scale_notes(table),
    ]
    check_divisible(aim.metric, table.y)
    notes += [*_part_notes(table, part), *_rare_notes(table, aim.rare)]
    if not options.only:
        notes += _missing_notes(space)
    averages = not options.refit and len(part) == len(table) and protocol.scores_all_rows(part)
    only = tuple(options.only)
    return FitPlan(space, only, metric, protocol, part, tuple(notes), averages)


def _choose_space(table: Table, name: str | None) -> ShippedSpace:
    """Return the requested space if it fits the target; the space of pipelines by default."""
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
    """The aim of a search."""

    metric: str
    why: str
    rare: tuple[float, ...]
    """The shares of the classes if one is rare and should be found."""


def _choose_aim(table: Table, metric: str | None, metrics: Sequence[str]) -> _Aim:
    """Return the requested metric, or one that suits the target."""
    if metric is not None:
        return _Aim(metric, "as asked for", ())
    chosen, why = _default_metric(table, metrics)
    return _Aim(chosen, why, _rare_shares(table) if chosen == "log_loss" else ())


def _part_notes(table: Table, part: Table) -> list[str]:
    if len(part) == len(table):
        return []
    return [f"The search uses {len(part):,} of {len(table):,} rows; the model learns from all."]


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


def is_wide(columns: int) -> bool:
    """Return whether a matrix with this many columns is wide."""
    return columns > WIDE_COLUMNS


def most_search_rows(columns: int, seconds: float | None) -> int:
    """Return how many rows the search may use, for a matrix with this many columns."""
    if seconds is None:
        return MOST_SEARCH_ROWS
    cells = min(MOST_SEARCH_CELLS, SEARCH_CELLS_A_SECOND * seconds)
    return min(MOST_SEARCH_ROWS, max(LEAST_SEARCH_ROWS, int(cells / max(1, columns))))


def usual_search_rows(table: Table) -> int:
    """Return how many rows the search uses if there is enough time."""
    return min(MOST_SEARCH_ROWS, len(table))


def _draw_search_rows(table: Table, options: FitOptions) -> Table:
    """Draw the rows that the search uses."""
    most = most_search_rows(table.x.shape[1], options.seconds)
    part = table.sample(most, seed=options.seed)
    if part.arrangement is not None and part.arrangement.groups < 2:
        raise UsageError(
            f"rows that are scored by '{part.arrangement.column}' must differ in it, but it is "
            f"the same in all of the {len(part):,} of {len(table):,} rows that the search draws: "
            "choose another column",
            rule="one-group",
            field=part.arrangement.column,
            value=len(part),
        )
    return part


def _splitting(table: Table, options: FitOptions) -> dict[str, int]:
    """Return the arguments of a protocol that say in how many parts a table is scored.

    Large tables have fewer folds. If even a few take too long, rows are split once.
    """
    columns, folds = table.x.shape[1], _count_folds(table)
    if options.seconds is not None and is_wide(columns):
        cells = USUAL_FOLDS * len(table) * columns
        is_long = cells > SEARCH_CELLS_A_SECOND * options.seconds
        return {"folds": folds} | ({"cross_validated_below": 0} if is_long else {})
    if options.refit or len(table) < SPLIT_ONCE_FROM:
        return {"folds": folds}
    # Boosting fits trees for each class.
    work = len(table) * columns * max(1.0, len(table.classes) / FEW_CLASSES)
    seconds = UNLIMITED_SECONDS if options.seconds is None else options.seconds
    if work > FEW_FOLDS_CELLS_A_SECOND * seconds:
        return {"folds": folds}
    few = work > FOLDS_CELLS_A_SECOND * seconds
    return {
        "folds": min(FEW_FOLDS, folds) if few else folds,
        "cross_validated_below": len(table) + 1,
    }


def _new_class_notes(protocol: Protocol, table: Table) -> list[str]:
    """Name classes of scored rows that no row to learn from has, so no model can predict them."""
    if table.task is not Task.CLASSIFICATION:
        return []
    splits = [(table.y[learn], table.y[held]) for learn, held in protocol.splits(table)]
    new = np.concatenate([held[~np.isin(held, learnt)] for learnt, held in splits])
    if not len(new):
        return []
    names = [table.classes[int(code)] for code in np.unique(new)]
    are, they_make = ("is", "It makes") if len(new) == 1 else ("are", "They make")
    return [
        f"{len(new):,} of {sum(len(held) for _, held in splits):,} scored rows {are} of "
        f"{'a class' if len(names) == 1 else 'classes'} that no training row has: "
        f"{quote_names(names)}. {they_make} every score worse."
    ]


def _scale_notes(table: Table) -> list[str]:
    """Warn if the unit of a target is too small; refuse targets that many pipelines cannot use."""
    if table.task is not Task.REGRESSION:
        return []
    largest, half = float(np.abs(table.y).max()), float(table.y.max() / 2 - table.y.min() / 2)
    if largest > LARGEST_TARGET or 0.0 < half < 1.0 / LARGEST_TARGET:
        what = f"reach {largest:.3g}" if largest > 1.0 else f"differ by at most {2 * half:.3g}"
        raise UsageError(
            f"the numbers of a target must be below {LARGEST_TARGET:g} and differ by more than "
            f"{1.0 / LARGEST_TARGET:g}, because their squares are computed, but they {what}: give "
            "them in other units",
            rule="target-scale",
            value=what,
        )
    if half == 0.0 or table.y.std() >= EQUAL_TO_TREES:
        return []
    return [
        f"The target's numbers differ by {2 * half:.3g} at most, which forests treat as equal: "
        "give them in other units for a better model."
    ]


def _default_metric(table: Table, metrics: Sequence[str]) -> tuple[str, str]:
    """Choose one of the metrics of the space's experience, and say why."""
    if table.task is Task.REGRESSION:
        return "r2", "the usual one for numbers"
    if "log_loss" in metrics:
        return "log_loss", "which sees how sure a model is, not only whether it is right"
    rare = _rare_shares(table)
    if rare:
        few = f"{min(rare):.1%} of the rows{table.weight_note}"
        return "balanced_accuracy", f"because the rarest class has {few}"
    return "accuracy", "the usual one for classes"


def _rare_shares(table: Table) -> tuple[float, ...]:
    """Return the shares of the classes by row weights if a class is rare; otherwise nothing."""
    counts = np.bincount(table.y.astype(np.int64), table.weights, minlength=len(table.classes))
    shares = counts / counts.sum()
    return tuple(shares.tolist()) if shares.min() * len(shares) < RARE_CLASS else ()


def _count_folds(table: Table) -> int:
    """Return five, or fewer (at least two) if a class has too few rows for a row in each fold."""
    if table.arrangement is not None:
        in_order = table.arrangement.kind is RowStructureKind.IN_ORDER
        return PARTS_IN_ORDER if in_order else min(USUAL_FOLDS, table.arrangement.groups)
    if table.task is Task.REGRESSION:
        return max(2, min(USUAL_FOLDS, len(table) // LEAST_ROWS_A_FOLD))
    return max(2, min(USUAL_FOLDS, _rarest_class(table)[1]))


def _rarest_class(table: Table) -> tuple[str, int]:
    """Return the rarest class that is not negligible, and its number of rows."""
    rows = np.bincount(table.y.astype(np.int64), minlength=len(table.classes))
    order = np.argsort(rows, kind="stable")
    negligible = np.cumsum(rows[order]) <= NEGLIGIBLE_SHARE * len(table)
    code = int(order[np.argmin(negligible)])
    return table.classes[code], int(rows[code])


def _explain_few_folds(protocol: Protocol, table: Table) -> str:
    """Name the class that makes the folds fewer than usual; the user may leave its rows out."""
    is_usual = protocol.folds in (FEW_FOLDS, USUAL_FOLDS) or table.arrangement is not None
    if table.task is Task.REGRESSION or is_usual or not protocol.cross_validates(table):
        return ""
    name, rows = _rarest_class(table)
    return f", because the class '{name}' has {count_text(rows, 'row')}"
