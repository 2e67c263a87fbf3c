"""Fits a configuration to a table, and predicts with it; all pipelines learn here."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.automl.estimators.pipelines import build_pipeline, weight_arguments
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
        codes: Floats = np.array(self.known, dtype=np.float64)[predicted.astype(np.int64)]
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
    config: Mapping[str, Any], table: Table, *, seed: int, rows: Ints | None = None
) -> Member:
    """Fit a configuration to a table, or to some rows of it."""
    from sklearn import config_context

    learnt = table if rows is None else table.rows(rows)
    x, y = learnt.x, learnt.y
    texts = tuple(table.schema.texts.values())
    pipeline = build_pipeline(config, table.categorical, table.task, seed=seed, texts=texts)
    told = weight_arguments(pipeline, learnt.weights)
    # Weights are passed to the last step by name, which fails if metadata routing is on.
    with _quiet(), config_context(enable_metadata_routing=False):
        if table.task is Task.REGRESSION:
            return Member(dict(config), pipeline.fit(x, y, **told))
        # The codes must be 0, 1, ... even if these rows lack some classes.
        known, codes = np.unique(y.astype(np.int64), return_inverse=True)
        # With a single class there is nothing to learn, and several libraries refuse it.
        fitted = pipeline if len(known) == 1 else pipeline.fit(x, codes, **told)
        return Member(dict(config), fitted, tuple(known.tolist()))


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide warnings of libraries, because the score shows how good a configuration is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
