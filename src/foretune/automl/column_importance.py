"""Measures the importance of each column by permutation, on rows that were not learnt from.

Breiman, "Random forests" (Machine Learning 45, 2001): shuffle the values of a column among the
rows, and see how much worse the pipeline scores. All columns that come from one date or text are
shuffled together.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from foretune._base.arrays import Floats
from foretune._base.progress import SILENT, Progress
from foretune.automl.estimators.fitted_pipeline import Member, refit
from foretune.automl.evaluation import Protocol, for_scorer
from foretune.automl.metrics import Predictions, Scorer
from foretune.tables import Table

SHUFFLES = 5
MOST_ROWS = 1000
FEWEST_ROWS = 30
"""The importance is not measured with fewer rows, because it would be unreliable."""
MOST_SECONDS = 10.0
PredictRows: TypeAlias = Callable[[Member, Scorer, Table, Floats], Predictions]


@dataclass(frozen=True, slots=True)
class ColumnImportance:
    """The loss of a pipeline without a column, measured by shuffles."""

    column: str
    lost: float
    """The loss of the first metric, as a mean over shuffles; positive if the score gets worse."""
    spread: float
    """The standard deviation over shuffles."""

    @property
    def is_sure(self) -> bool:
        """Whether the loss is larger than chance explains.

        If a column carries no information, its unshuffled values are like one more shuffle.
        """
        return self.lost > 2.0 * self.spread


def column_worth(
    config: Mapping[str, Any],
    table: Table,
    protocol: Protocol,
    *,
    seconds: float = MOST_SECONDS,
    progress: Progress = SILENT,
    predict: PredictRows = for_scorer,
    now: Callable[[], float] = time.monotonic,
) -> list[ColumnImportance]:
    """Return the importance of each column, the highest first; nothing if it takes too long.

    seconds: the time for all predictions, by the clock `now`. A slow pipeline predicts fewer rows.
    predict: predicts rows with x in place of their values.
    """
    learn, held = protocol.splits(table)[-1]
    rng = np.random.default_rng(protocol.seed)
    scorer = protocol.scorers(table.task)[protocol.metrics[0]]
    columns = table.schema.places
    progress.start("seeing which columns count", 1 + len(columns))
    try:
        member = refit(config, table, seed=protocol.seed, rows=learn)
        progress.step()
        held = rng.permutation(held)[:MOST_ROWS]
        once = seconds / (SHUFFLES * len(columns))
        ask = partial(predict, member, scorer)
        rows = table.rows(held[: _affordable(ask, table.rows(held), once, now)])
        if len(rows) < FEWEST_ROWS or not scorer.is_defined(rows.y):
            return []

        def loss(x: Floats) -> float:
            return scorer.metric.sign * scorer.score(ask(rows, x))

        x, whole, found = rows.x, loss(rows.x), []
        for name, places in columns.items():
            lost = [loss(_shuffle_columns(x, places, rng)) - whole for _ in range(SHUFFLES)]
            found.append(ColumnImportance(name, float(np.mean(lost)), float(np.std(lost, ddof=1))))
            progress.step()
    finally:
        progress.stop()
    return sorted(found, key=lambda worth: -worth.lost)


def _shuffle_columns(x: Floats, places: slice, rng: np.random.Generator) -> Floats:
    """Return the rows (n, d) with the values of some columns shuffled."""
    shuffled = x.copy()
    shuffled[:, places] = x[rng.permutation(len(x)), places]
    return shuffled


def _affordable(
    ask: Callable[[Table, Floats], Predictions],
    held: Table,
    seconds: float,
    now: Callable[[], float],
) -> int:
    """Return how many rows can be predicted in this time, from the time of the held-out rows."""
    began = now()
    ask(held, held.x)
    return int(len(held) * seconds / max(now() - began, 1e-6))
