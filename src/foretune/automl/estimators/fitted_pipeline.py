"""Fits a configuration to a table, and predicts with it; all pipelines learn here."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.automl.estimators.stepped import (
    ESTIMATOR,
    LearningRows,
    StepLimits,
    configured_steps,
)
from foretune.errors import UsageError
from foretune.tables import Table, Task


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted pipeline, and its weight in a blend."""

    config: dict[str, Any]
    pipeline: Any
    """The pipeline takes (n, d) matrices; its classes 0, 1, ... are those in `known`."""
    known: tuple[int, ...] = ()
    """The codes of the classes that it has seen, ascending; empty for regression. If there is only
    one, the pipeline is not fitted."""
    weight: float = 1.0
    steps: int | None = None
    """How many steps the estimator predicts with; None if it does not learn in steps."""
    curve: tuple[float, ...] = ()
    """The loss on the validation rows after each step; empty without such rows or steps."""

    def truncate(self, steps: int) -> "Member":
        """Return a member that predicts with the first steps; itself if it has no steps."""
        if self.steps is None:
            return self
        from sklearn.pipeline import Pipeline

        from foretune.automl.estimators.stepped_fit import trainer_of

        *before, (name, estimator) = self.pipeline.steps
        trainer = trainer_of(estimator)
        if trainer is None:
            return self
        short = trainer.truncate(estimator, min(steps, trainer.count_steps(estimator)))
        pipeline = Pipeline([*before, (name, short)])
        return replace(self, pipeline=pipeline, steps=trainer.count_steps(short))

    def predict(self, x: Floats) -> Floats:
        """Return numbers or codes of classes (n,)."""
        if len(self.known) == 1:
            return np.full(len(x), float(self.known[0]))
        if not len(x):
            return np.empty(0)  # scikit-learn refuses an empty table
        with _quiet():
            predicted = np.asarray(self.pipeline.predict(x)).ravel()
        if not self.known:
            numbers: Floats = predicted.astype(np.float64)
            return numbers
        places = predicted.astype(np.int64)
        if places.min() < 0 or places.max() >= len(self.known):
            # Only an altered model file says so.
            raise UsageError(
                "a pipeline must predict the classes that it has learnt, but one predicts others: "
                "fit the model again",
                rule="unknown-class-predicted",
            )
        codes: Floats = np.array(self.known, dtype=np.float64)[places]
        return codes

    def probabilities(self, x: Floats, classes: int) -> Floats:
        """Return probabilities (n, classes).

        If the algorithm gives none, or has seen only one class, its prediction has probability 1.
        """
        shares = np.zeros((len(x), classes))
        if hasattr(self.pipeline, "predict_proba") and len(x) and len(self.known) > 1:
            with _quiet():
                shares[:, list(self.known)] = self.pipeline.predict_proba(x)
        else:
            shares[np.arange(len(x)), self.predict(x).astype(np.int64)] = 1.0
        return shares


class FitPipeline(Protocol):
    """Fits a configuration to all rows of a table, as `refit` does."""

    def __call__(self, config: Mapping[str, Any], table: Table, *, seed: int) -> Member:
        """Return the fitted pipeline."""


def refit(
    config: Mapping[str, Any],
    table: Table,
    *,
    seed: int,
    rows: Ints | None = None,
    validation: Ints | None = None,
    steps: int | None = None,
    seconds: float | None = None,
) -> Member:
    """Fit a configuration to a table, or to some rows of it.

    rows: the rows to learn from; all except those of `validation` if None. validation: rows that
    judge the steps of an estimator that learns in steps. steps: a fixed number of steps instead.
    With neither, some of the rows find the number, and the pipeline then learns from all of them.
    seconds: when an estimator that learns in steps ends, if it is not finished before.
    """
    # A model that needs no scikit-learn is fitted and opened without importing it.
    from sklearn import config_context

    from foretune.automl.estimators.pipelines import (
        build_pipeline,
        code_places,
        weight_arguments,
    )
    from foretune.automl.estimators.stepped_fit import fit_in_steps, trainer_of

    if rows is None and validation is not None:
        rows = np.setdiff1d(np.arange(len(table)), validation)
    learnt = table if rows is None else table.rows(rows)
    pipeline = build_pipeline(
        config,
        table.categorical,
        table.task,
        seed=seed,
        texts=tuple(table.schema.texts.values()),
    )
    y: Any = learnt.y
    known: tuple[int, ...] = ()
    if table.task is Task.CLASSIFICATION:
        # The codes must be 0, 1, ... even if these rows lack some classes.
        classes, y = np.unique(learnt.y.astype(np.int64), return_inverse=True)
        known = tuple(classes.tolist())
    # With a single class there is nothing to learn, and several libraries refuse it.
    if len(known) == 1:
        return Member(dict(config), pipeline, known)
    # Weights are passed to the last step by name, which fails if metadata routing is on.
    with _quiet(), config_context(enable_metadata_routing=False):
        # In other spaces, such as `cash`, the number of steps is a hyperparameter.
        if ESTIMATOR not in config or trainer_of(pipeline[-1]) is None:
            told = weight_arguments(pipeline, learnt.weights)
            return Member(dict(config), pipeline.fit(learnt.x, y, **told), known)
        learning = LearningRows(learnt.x, y, learnt.weights, code_places(config, table))
        judging = None if validation is None else _judging(table.rows(validation), known)
        if judging is None and steps is None:
            steps = configured_steps(config)
        limits = StepLimits(judging, steps, seconds)
        fit = fit_in_steps(pipeline, learning, limits, seed=seed)
        return Member(dict(config), pipeline, known, steps=fit.steps, curve=fit.curve)


def _judging(held: Table, known: tuple[int, ...]) -> LearningRows | None:
    """Return rows that can judge steps: those of the classes that are learnt."""
    if held.task is Task.REGRESSION:
        return LearningRows(held.x, held.y, held.weights) if len(held) else None
    seen = held.rows(np.flatnonzero(np.isin(held.y, known)))
    codes = np.searchsorted(np.array(known), seen.y.astype(np.int64))
    return LearningRows(seen.x, codes, seen.weights) if len(seen) else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide warnings of libraries, because the score shows how good a configuration is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
