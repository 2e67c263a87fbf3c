"""A configuration fitted to a table: the one place where pipelines learn and predict."""

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
    """A fitted pipeline, and how much it counts among others."""

    config: dict[str, Any]
    pipeline: Any
    """Takes (n, d) matrices; of classes, it knows `known` as 0, 1, ..."""
    known: tuple[int, ...] = ()
    """The codes of the classes it has met, ascending; none for regression. Of a single
    one, the pipeline has learnt nothing."""
    weight: float = 1.0

    def predict(self, x: Floats) -> Floats:
        """(n,), numbers or codes of classes."""
        if len(self.known) == 1:
            return np.full(len(x), float(self.known[0]))
        if not len(x):
            return np.empty(0)  # which scikit-learn refuses
        with _quiet():
            predicted = np.asarray(self.pipeline.predict(x)).ravel()
        if not self.known:
            numbers: Floats = predicted.astype(np.float64)
            return numbers
        codes: Floats = np.array(self.known, dtype=np.float64)[predicted.astype(np.int64)]
        return codes

    def probabilities(self, x: Floats, classes: int) -> Floats:
        """(n, classes); an algorithm that has no probabilities is sure of what it predicts.

        So is one that has met a single class: some libraries give two columns for it.
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
    # Weights are named for the last step, which is refused where a program routes metadata.
    with _quiet(), config_context(enable_metadata_routing=False):
        if table.task is Task.REGRESSION:
            return Member(dict(config), pipeline.fit(x, y, **told))
        # Classes that these rows lack must leave no gap between the codes.
        known, codes = np.unique(y.astype(np.int64), return_inverse=True)
        # Of a single class there is nothing to learn, and several libraries refuse to.
        fitted = pipeline if len(known) == 1 else pipeline.fit(x, codes, **told)
        return Member(dict(config), fitted, tuple(known.tolist()))


@contextmanager
def _quiet() -> Iterator[None]:
    """What a configuration is worth shows in its score, however its library warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
