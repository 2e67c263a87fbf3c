"""What each column is worth to a pipeline: permutation importance on rows it has not learnt from.

Breiman, "Random forests" (Machine Learning 45, 2001): where the values of a column change places
among the rows, what the pipeline knew by that column is lost, and its score with it. What a date or
a text has become changes places together.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune._base.progress import SILENT, Progress
from foretune.automl.estimators.fitted_pipeline import Member, refit
from foretune.automl.evaluation import Protocol, for_scorer
from foretune.automl.metrics import Scorer
from foretune.tables import Table

SHUFFLES = 5
MOST_ROWS = 1000
FEWEST_ROWS = 30
"""Fewer would tell little."""
MOST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ColumnImportance:
    """What the score of a pipeline loses without a column."""

    column: str
    lost: float
    """Of the first metric, on average over shuffles; positive where the score gets worse."""
    spread: float
    """The standard deviation over shuffles."""

    @property
    def is_sure(self) -> bool:
        """Whether chance alone would hardly lose as much.

        To a column that tells nothing, the rows as they are are one more shuffle.
        """
        return self.lost > 2.0 * self.spread


def column_worth(
    config: Mapping[str, Any],
    table: Table,
    protocol: Protocol,
    *,
    seconds: float = MOST_SECONDS,
    progress: Progress = SILENT,
) -> list[ColumnImportance]:
    """What each column is worth, the most first; nothing where that would take too long.

    seconds: for all predictions; slow pipelines of wide tables are asked about fewer rows.
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
        rows = table.rows(held[: _affordable(member, scorer, table.rows(held), once)])
        if len(rows) < FEWEST_ROWS or not scorer.is_defined(rows.y):
            return []
        loss = partial(_loss, member, scorer, rows)
        x, whole, found = rows.x, loss(rows.x), []
        for name, places in columns.items():
            lost = [loss(_shuffle_columns(x, places, rng)) - whole for _ in range(SHUFFLES)]
            found.append(ColumnImportance(name, float(np.mean(lost)), float(np.std(lost, ddof=1))))
            progress.step()
    finally:
        progress.stop()
    return sorted(found, key=lambda worth: -worth.lost)


def _shuffle_columns(x: Floats, places: slice, rng: np.random.Generator) -> Floats:
    """The rows (n, d), of which the values of some columns have changed places."""
    shuffled = x.copy()
    shuffled[:, places] = x[rng.permutation(len(x)), places]
    return shuffled


def _affordable(member: Member, scorer: Scorer, held: Table, seconds: float) -> int:
    """How many rows can be predicted in this time, going by what the held ones take."""
    began = time.monotonic()
    for_scorer(member, scorer, held, held.x)
    return int(len(held) * seconds / max(time.monotonic() - began, 1e-6))


def _loss(member: Member, scorer: Scorer, held: Table, x: Floats) -> float:
    """What the pipeline would lose if the held rows were x."""
    return scorer.metric.sign * scorer.score(for_scorer(member, scorer, held, x))
