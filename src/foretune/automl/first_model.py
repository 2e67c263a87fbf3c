"""Makes the first model: soon and from few rows, in case the search has no result in time."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from foretune._base.time_budget import TimeBudget
from foretune.automl.baseline import baseline_member, describe_guess, without_columns
from foretune.automl.estimators.fitted_pipeline import FitPipeline, Member, refit
from foretune.automl.evaluation import for_scorer
from foretune.automl.final_model.fit import FinalModel
from foretune.automl.final_model.model import Model
from foretune.automl.knowledge.default_configs import default_config
from foretune.automl.metrics import SCORERS
from foretune.automl.plan import FitPlan
from foretune.automl.wide_tables import is_wide, linear_config, quick_config
from foretune.errors import UsageError
from foretune.report.wording import count_text
from foretune.tables import Table

T = TypeVar("T")
Fitted: TypeAlias = tuple[Member, float, int]
"""A pipeline, its score on held-out rows, and the number of rows it learnt from."""

MOST_ROWS = 10_000
MOST_CELLS = 1_000_000
"""The most cells that the first model learns from, so wide tables give it fewer rows."""
MOST_WIDE_CELLS = 3_000_000
"""The limit for a wide table is higher, because the model learns from selected columns only."""
MOST_LINEAR_CELLS = 6_000_000
"""The most cells that a linear model of a wide table learns from."""
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
    """The score of a model that always predicts the same."""
    is_baseline: bool
    """Whether this model always predicts the same."""

    def is_clearly_better(self, score: float) -> bool:
        """Return whether its score is better than another one by more than chance explains."""
        sign = SCORERS[self.metric].metric.sign
        return sign * (score - self.score) > CLEARLY * abs(self.baseline - score)

    def replace_worse(self, made: FinalModel, metric: str) -> FinalModel:
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
        return f"A first model, {kind} fitted to {count_text(self.rows, 'row')} ({score})"


@dataclass
class FirstModelKeeper:
    """Makes the first model of a fit with a time limit, once, and keeps it in the model's file.

    If the file holds the model of an earlier fit, that one stays for now: it may be better.
    """

    path: Path
    clock: TimeBudget
    fit: FitPipeline = refit
    """The function that fits its pipeline."""
    kept: FirstModel | None = None
    seconds: float = 0.0
    """The seconds from the start of the command until it was ready."""
    is_saved: bool = False

    def make(self, plan: FitPlan, target: str) -> FirstModel:
        """Fit the first model by this plan and save it, unless there is one already."""
        if self.kept is None:
            seconds = min(
                max(LEAST_SECONDS, SHARE * self.clock.seconds), 0.5 * self.clock.remaining()
            )
            self.kept = fit_first_model(plan, target=target, seconds=seconds, fit=self.fit)
            if not self.path.exists():
                self.save()
            self.seconds = time.monotonic() - self.clock.began
        return self.kept

    def settle(self, task: str) -> tuple[Model, bool]:
        """Return the model that stays in the file, and whether it is that of an earlier fit.

        The model of an earlier fit of the same table stays; any other one is replaced.
        """
        if self.kept is None:
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
        if self.kept is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.kept.model.save(self.path)
            self.is_saved = True


def fit_first_model(
    plan: FitPlan, *, target: str, seconds: float, fit: FitPipeline = refit
) -> FirstModel:
    """Fit a quick model to some rows of the plan's table; return a baseline model if it is late.

    If the pipeline fails or is worse than the baseline, the result is a baseline model too.
    """
    began = time.monotonic()
    table = _some_rows(plan.table, plan.protocol.seed)
    baseline = without_columns(plan.table, plan.protocol)
    linear = _fit_linear(plan, LINEAR_SHARE * seconds, fit)
    left = seconds - (time.monotonic() - began)
    trees = call_within(left, lambda: _fit(plan, table, _config(plan), fit))
    sign = plan.metric.sign
    better = [each for each in (linear, trees) if each and sign * (each[1] - baseline) < 0.0]
    if better:
        member, score, rows = min(better, key=lambda each: sign * each[1])
        is_baseline = False
    else:
        member, score, rows = baseline_member(table, plan.metric.name), baseline, len(table)
        is_baseline = True
    model = Model.of(
        plan.table, [member], target=target, metric=plan.metric.name, shares=plan.shares
    )
    return FirstModel(model, plan.metric.name, score, rows, baseline, is_baseline)


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


def _fit_linear(plan: FitPlan, seconds: float, fit: FitPipeline) -> Fitted | None:
    """Fit a linear model of all columns of a wide table, which takes less than a second.

    Return None if the table is not wide, the space has no such model, or it takes too long.
    """
    features = plan.table.x.shape[1]
    config = linear_config(plan.space) if is_wide(features) else None
    if config is None:
        return None
    table = plan.table.sample(MOST_LINEAR_CELLS // features, seed=plan.protocol.seed)
    return call_within(seconds, lambda: _fit(plan, table, config.dicts()[0], fit))


def _fit(plan: FitPlan, table: Table, config: Mapping[str, Any], fit: FitPipeline) -> Fitted:
    """Fit a pipeline; return it, its score on held-out rows, and how many rows it learnt from."""
    learn, held = _parts(table)
    member = fit(config, table.rows(learn), seed=plan.protocol.seed)
    scorer = plan.protocol.scorers(table.task)[plan.metric.name]
    scored = table.rows(held)
    return member, scorer.score(for_scorer(member, scorer, scored, scored.x)), len(learn)


def _parts(table: Table) -> tuple[Any, Any]:
    """Return the rows to learn from and the rows to score. Both have every class, if possible."""
    order = np.argsort(table.y, kind="stable")
    held = np.zeros(len(table), dtype=np.bool_)
    held[order[1::HELD_OUT]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _config(plan: FitPlan) -> Mapping[str, Any]:
    """Return boosted trees with few settings, or the space's defaults if it has no such trees."""
    wide = is_wide(plan.table.x.shape[1])
    found = quick_config(plan.space) if wide else default_config(plan.space)
    return (plan.space.defaults() if found is None else found).dicts()[0]


def _some_rows(table: Table, seed: int) -> Table:
    features = max(1, table.x.shape[1])
    cells = MOST_WIDE_CELLS if is_wide(features) else MOST_CELLS
    most = max(LEAST_ROWS, min(MOST_ROWS, cells // features))
    return table.sample(most, seed=seed)
