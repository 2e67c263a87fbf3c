"""Makes the first model: soon and from few rows, in case the search has no result in time."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from foretune._base.time_budget import TimeBudget
from foretune.automl.baseline import baseline_member, describe_guess, guess, without_columns
from foretune.automl.estimators.fitted_pipeline import FitPipeline, Member, refit
from foretune.automl.estimators.plain_linear import fit_plain_linear
from foretune.automl.evaluation import for_scorer
from foretune.automl.final_model.model import Model
from foretune.automl.metrics import SCORERS
from foretune.automl.plan import FitPlan, is_wide
from foretune.errors import UsageError
from foretune.report.wording import count_text
from foretune.tables import Table, Task

if TYPE_CHECKING:
    from foretune.automl.final_model.fit import FinalModel

T = TypeVar("T")
MOST_ROWS = 10_000
MOST_CELLS = 1_000_000
"""The most cells that the first model learns from, so wide tables give it fewer rows."""
MOST_WIDE_CELLS = 3_000_000
"""The limit for a wide table is higher, because the model learns from selected columns only."""
MOST_LINEAR_CELLS = 10_000_000
"""The most cells that a linear model learns from."""
FIRST_LINEAR_ROWS, ROWS_MORE = 1_000, 2
"""A linear model learns from so many rows first, and then from twice as many if there is time. In
a wide table its time grows with the square of the rows."""
LINEAR = {"estimator": "linear model"}
LINEAR_SHARE = 0.4
"""The share of the time of the first model that a linear one may take."""
LEAST_ROWS = 100
SHARE = 0.15
LEAST_SECONDS = 5.0
"""Fitting may take this share of the time, or these seconds if they are more."""
CLEARLY = 0.05
"""The first model replaces another one if it is better by this share of what the other one gains
over the baseline."""
HELD_OUT = 3
"""One row of this many is held out, to score the first model."""


class FirstCandidate(NamedTuple):
    """A fitted pipeline, with its score and that of a guess on the same held-out rows."""

    member: Member
    score: float
    rows: int
    """The number of rows that it learnt from."""
    guess: float


@dataclass(frozen=True)
class FirstModel:
    """A model that is kept until a better one is ready."""

    model: Model
    metric: str
    score: float
    """The score on rows that it has not learnt from."""
    rows: int
    """The number of rows that it has learnt from."""
    baseline: float
    """The score of a model that always predicts the same, on the same rows."""
    is_baseline: bool
    """Whether this model always predicts the same."""
    search_baseline: float | None = None
    """The score of such a model on the rows of the search, if these are others."""

    def is_clearly_better(self, score: float) -> bool:
        """Return whether it gains more over a guess than a model of the search with this score.

        The difference must be more than chance explains. The rows of the search may be others, and
        easier or harder to predict, so each model is compared with a guess for its own rows.
        """
        sign = SCORERS[self.metric].metric.sign
        usual = self.baseline if self.search_baseline is None else self.search_baseline
        gain = sign * (usual - score)
        return sign * (self.baseline - self.score) - gain > CLEARLY * abs(gain)

    def replace_worse(self, made: "FinalModel", metric: str) -> "FinalModel":
        """Put the first model in place of a final one that is clearly worse."""
        if not self.is_clearly_better(made.best.values[metric]):
            return made
        remark = f"{self.summary} is the model, because it is better than the best trial."
        remark = f"{remark} {made.remark}".strip()
        return replace(
            made, model=self.model, members=made.members[:1], blended=None, remark=remark
        )

    @property
    def summary(self) -> str:
        """A sentence for people that describes the model."""
        score = f"{self.metric} {self.score:.4g}"
        if self.is_baseline:
            always = describe_guess(self.metric, self.model.task)
            return f"A baseline model that always predicts {always} ({score})"
        kind = self.model.members[0].config.get("estimator") or "pipeline"
        return f"A first model ({kind}, {count_text(self.rows, 'row')}, {score})"


@dataclass
class FirstModelKeeper:
    """Makes the first model of a fit with a time limit, and keeps it in the model's file.

    It is made in two steps: a linear model at once, and the better one of a linear model and trees
    when the libraries of trees are loaded. If the file holds the model of an earlier fit, that one
    stays for now: it may be better.
    """

    path: Path | None
    """The file of the model; None if models are not saved, and then none is made."""
    clock: TimeBudget
    tell: Callable[[FirstModel, float, Path | None], None] = lambda *_: None
    """The function that is told of each first model, its seconds, and its file if it is saved."""
    fit: FitPipeline = refit
    """The function that fits its pipeline."""
    kept: FirstModel | None = None
    seconds: float = 0.0
    """The seconds from the start of the command until the kept model was ready."""
    is_saved: bool = False

    def begin(self, plan: FitPlan, target: str) -> None:
        """Fit a linear model by this plan and keep it."""
        self._keep(plan, target, plan.table, is_quick=True)

    def make(self, plan: FitPlan, target: str, table: Table) -> None:
        """Fit the better one of a linear model and trees by this plan and keep it.

        table: all rows.
        """
        self._keep(plan, target, table, is_quick=False)

    def _keep(self, plan: FitPlan, target: str, table: Table, *, is_quick: bool) -> None:
        if self.path is None or not self.clock.is_limited:
            return  # No model stands in for the final one.
        limit = max(LEAST_SECONDS, SHARE * self.clock.seconds)
        seconds = min(limit, 0.5 * self.clock.remaining())
        made = fit_first_model(
            plan, target=target, seconds=seconds, table=table, fit=self.fit, is_quick=is_quick
        )
        before = self.kept
        if before is not None and made.is_baseline and not before.is_baseline:
            return  # There was too little time for a better one.
        self.kept = made
        self.seconds = time.monotonic() - self.clock.began
        if self.is_saved or not self.path.exists():
            self.save()
        if before is None or before.summary != made.summary:
            path = self.path if self.is_saved else None
            self.tell(made, self.seconds, path)

    def settle(self, task: str) -> tuple[Model, bool]:
        """Return the model that stays in the file, and whether it is that of an earlier fit.

        The model of an earlier fit of the same table stays; any other one is replaced.
        """
        if self.kept is None or self.path is None:
            raise ValueError("there is no first model")
        if not self.is_saved:
            try:
                if Model.read_header(self.path)["about"].get("task") == task:
                    return Model.open(self.path), True
            except (UsageError, LookupError, AttributeError, OSError):
                pass
            self.save()
        return self.kept.model, False

    def save(self) -> None:
        """Put the first model into the model's file."""
        if self.kept is not None and self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.kept.model.save(self.path)
            self.is_saved = True


def fit_first_model(
    plan: FitPlan,
    *,
    target: str,
    seconds: float,
    table: Table | None = None,
    fit: FitPipeline = refit,
    is_quick: bool = False,
) -> FirstModel:
    """Fit a quick model to some rows of the plan's table; return a baseline model if it is late.

    If no model is better than the baseline, the result is a baseline model too.

    table: all rows, of which a linear model may use more than the search does.
    is_quick: fit a linear model only, which takes no library but NumPy.
    """
    began = time.monotonic()
    baseline = without_columns(plan.table, plan.protocol)
    linear = _fit_linear(plan, table or plan.table, LINEAR_SHARE * seconds)
    left, trees = seconds - (time.monotonic() - began), None
    if not is_quick:
        trees = call_within(left, lambda: _fit_trees(plan, fit))
    sign = plan.metric.sign
    better = [each for each in (linear, trees) if each and sign * (each.score - each.guess) < 0.0]
    if better:
        found = min(better, key=lambda each: sign * (each.score - each.guess))
        member, score, rows, guessed = found
    else:
        guessed = baseline
        some = _some_rows(plan, MOST_CELLS)
        member, score, rows = baseline_member(some, plan.metric.name), baseline, len(some)
    model = Model.of(
        plan.table, [member], target=target, metric=plan.metric.name, shares=plan.shares
    )
    return FirstModel(model, plan.metric.name, score, rows, guessed, not better, baseline)


def call_within(seconds: float, function: Callable[[], T]) -> T | None:
    """Return the result of a function, or None if it fails or takes longer.

    A function that takes longer goes on in a thread that ends with the process.
    """
    found: list[T] = []

    def call() -> None:
        # If a quick model fails, the search still finds others.
        try:
            found.append(function())
        except Exception:
            found.clear()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    return found[0] if found else None


def _fit_linear(plan: FitPlan, table: Table, seconds: float) -> FirstCandidate | None:
    """Fit a linear model to as many rows as the time allows, or None if it allows none."""
    began, most = time.monotonic(), _count_rows(table, MOST_LINEAR_CELLS)
    rows, found = min(most, FIRST_LINEAR_ROWS), None
    while True:
        # A thread that takes too long is left alone, and the model of fewer rows is used.
        sample = table.sample(rows, seed=plan.protocol.seed)
        left = seconds - (time.monotonic() - began)
        fitted = call_within(left, partial(_fit, plan, sample, LINEAR, fit_linear))
        found = fitted or found
        took = time.monotonic() - began
        if fitted is None or rows == most or ROWS_MORE**2 * took > seconds - took:
            return found
        rows = min(most, ROWS_MORE * rows)


def fit_linear(config: Mapping[str, Any], table: Table, *, seed: int) -> Member:  # noqa: ARG001
    """Fit a plain linear model to a table, as `refit` fits a pipeline."""
    x, categorical, weights = table.x, table.categorical, table.weights
    if table.task is Task.REGRESSION:
        return Member(dict(config), fit_plain_linear(x, table.y, categorical, weights=weights))
    known, codes = np.unique(table.y.astype(np.int64), return_inverse=True)
    model = fit_plain_linear(
        x, codes.astype(np.float64), categorical, classes=len(known), weights=weights
    )
    return Member(dict(config), model, tuple(known.tolist()))


def _fit_trees(plan: FitPlan, fit: FitPipeline) -> FirstCandidate:
    """Fit boosted trees with few settings, or the space's defaults if it has no such trees."""
    # The libraries of pipelines take seconds to load, and a linear model is saved before.
    from foretune.automl.knowledge.default_configs import default_config
    from foretune.automl.wide_tables import quick_config

    wide = is_wide(plan.table.x.shape[1])
    found = quick_config(plan.space) if wide else default_config(plan.space)
    config = (plan.space.defaults() if found is None else found).dicts()[0]
    return _fit(plan, _some_rows(plan, MOST_WIDE_CELLS if wide else MOST_CELLS), config, fit)


def _fit(
    plan: FitPlan, table: Table, config: Mapping[str, Any], fit: FitPipeline
) -> FirstCandidate:
    """Fit a pipeline, and score it and a guess on held-out rows."""
    learn, held = _parts(table)
    member = fit(config, table.rows(learn), seed=plan.protocol.seed)
    scorer = plan.protocol.scorers(table.task)[plan.metric.name]
    scored = table.rows(held)
    score = scorer.score(for_scorer(member, scorer, scored, scored.x))
    guessed = scorer.score(guess(plan.metric.name, table.rows(learn), scored))
    return FirstCandidate(member, score, len(learn), guessed)


def _parts(table: Table) -> tuple[Any, Any]:
    """Return the rows to learn from and the rows to score. Both have every class, if possible."""
    order = np.argsort(table.y, kind="stable")
    held = np.zeros(len(table), dtype=np.bool_)
    held[order[1::HELD_OUT]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _some_rows(plan: FitPlan, most_cells: int) -> Table:
    """Draw rows of the plan's table that have at most so many cells."""
    return plan.table.sample(_count_rows(plan.table, most_cells), seed=plan.protocol.seed)


def _count_rows(table: Table, most_cells: int) -> int:
    """Return how many rows of a table have at most so many cells."""
    columns = max(1, int(table.x.shape[1]))
    allowed = min(MOST_ROWS, most_cells // columns)
    return min(len(table), max(LEAST_ROWS, allowed))
