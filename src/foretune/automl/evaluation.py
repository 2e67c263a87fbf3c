"""Scores a configuration on a table: by cross-validation if rows are few, else on held-out rows."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.automl.estimators.fitted_pipeline import Member, refit
from foretune.automl.folds import cross_validation, hold_out
from foretune.automl.metrics import SCORERS, Predictions, Scorer, by_shares, scorer
from foretune.errors import UsageError
from foretune.tables import RowStructure, RowStructureKind, Splits, Table, Task

FEW_GROUPS = 100
"""With fewer groups of rows than this, a single split is noisy, however many rows there are."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Says how a configuration is scored.

    Tables with fewer than `cross_validated_below` rows are cross-validated with `folds` folds. For
    larger tables, a third of the rows is held out once: the noise of one split is then smaller than
    the differences between configurations. Classes keep their shares in every part. Rows of one
    group stay together. Rows in order are scored by models that learnt from earlier rows.
    """

    metrics: tuple[str, ...]
    """The search optimises the first one."""
    folds: int = 5
    cross_validated_below: int = 2500
    seed: int = 0
    shares: tuple[float, ...] = ()
    """The shares of the classes, if the model chooses classes by them. Metrics are then measured in
    this way as well."""

    def __post_init__(self) -> None:
        if self.folds < 2 or not self.metrics:
            raise UsageError(
                "a protocol needs at least two folds and one metric, but got "
                f"{self.folds} and {len(self.metrics)}: choose them",
                rule="empty-protocol",
            )

    def cross_validates(self, table: Table) -> bool:
        """Return whether the table is too small for a single split."""
        by = table.arrangement
        few_groups = by and by.kind is RowStructureKind.TOGETHER and by.groups < FEW_GROUPS
        return bool(few_groups) or len(table) < self.cross_validated_below

    def describe(self, table: Table) -> str:
        """Return, in words, how trials on this table are scored."""
        return f"{self._scheme_text(table)}{table.weight_note}"

    def _scheme_text(self, table: Table) -> str:
        rows, splits = f"{len(table):,} rows", self.splits(table)
        scored = sum(len(held) for _, held in splits)
        if table.arrangement is not None and table.arrangement.kind is RowStructureKind.IN_ORDER:
            last = f"the last {scored:,} of {rows} by '{table.arrangement.column}'"
            if len(splits) == 1:
                return f"{last}, learning from what comes before"
            return f"{last}, in {len(splits)} parts, learning from all that comes before each"
        together = _grouping_text(table.arrangement)
        if scored == len(table):
            return f"{len(splits)}-fold cross-validation on {rows}{together}"
        share = f"{scored:,} of" if together else "a third of"
        parts = f", in {len(splits)} parts" if len(splits) > 1 else ""
        return f"{share} {rows} held out{parts}{together}"

    def restrict_to(self, table: Table) -> "Protocol":
        """Leave out metrics that no split of a table defines; refuse to leave out the first."""
        targets = [table.y[held] for _, held in self.splits(table)]
        scorers = [scorer(name, table.task) for name in self.metrics]
        kept = [each.metric.name for each in scorers if any(map(each.is_defined, targets))]
        if self.metrics[0] not in kept:
            others = [each for each in SCORERS.values() if each.task is table.task]
            names = [each.metric.name for each in others if not each.compares_targets]
            raise UsageError(
                f"the metric {self.metrics[0]} compares rows of different targets, but all rows "
                f"that are scored together have the same one ({self.describe(table)}): choose "
                f"one of {', '.join(names)}, or add rows with other targets",
                rule="metric-of-equal-targets",
                field="metric",
                value=self.metrics[0],
            )
        return replace(self, metrics=tuple(kept))

    def scorers(self, task: Task) -> dict[str, Scorer]:
        """Return the scorers by name."""
        plain = [scorer(name, task) for name in self.metrics]
        classes = [each for each in plain if self.shares and not each.needs_probabilities]
        measured = [*plain, *(by_shares(each, self.shares) for each in classes)]
        return {each.metric.name: each for each in measured}

    def splits(self, table: Table) -> Splits:
        """Return (rows to learn from, rows to score on), the same for every configuration."""
        if self.cross_validates(table):
            return cross_validation(table, self.folds, self.seed)
        return hold_out(table, self.seed)


@dataclass(frozen=True, slots=True)
class EvaluationScore:
    """The scores of one evaluation."""

    values: dict[str, float]
    """The mean over the folds that define a metric. Metrics that no fold defines are left out.

    Metrics of classes use the most probable class, and with shares also the class that these choose
    (`by_shares`).
    """
    folds: dict[str, tuple[float, ...]]
    seconds: float
    """CPU time of fitting and predicting."""
    rows: Ints | None = None
    """(m,), the rows that were scored, in an order that is the same for every configuration."""
    predictions: Floats | None = None
    """(m, classes) probabilities, or (m, 1) numbers, from models that had not seen the row."""


def evaluate(
    config: Mapping[str, Any],
    table: Table,
    protocol: Protocol,
    *,
    keep_predictions: bool = False,
    fit: Callable[..., Member] = refit,
) -> EvaluationScore:
    """Fit and score a configuration on every split.

    keep_predictions: whether to return the predictions too, for `blend`. fit: fits a pipeline to
    some rows, as `refit` does.
    """
    protocol = protocol.restrict_to(table)
    scorers = protocol.scorers(table.task)
    probabilities = table.task is Task.CLASSIFICATION and (
        keep_predictions or any(each.needs_probabilities for each in scorers.values())
    )
    start = time.process_time()
    folds: dict[str, list[float]] = {name: [] for name in scorers}
    kept: list[tuple[Ints, Floats]] = []
    splits = protocol.splits(table)
    for learn, held in splits:
        member = fit(config, table, seed=protocol.seed, rows=learn)
        given = predict_for_scoring(
            member,
            table.x[held],
            table.y[held],
            classes=len(table.classes),
            probabilities=probabilities,
            weights=None if table.weights is None else table.weights[held],
        )
        for name, each in scorers.items():
            folds[name].append(each.score(given))
        if keep_predictions:
            kept.append((held, given.blendable))
    targets = [table.y[held] for _, held in splits]
    values = {name: each.over_folds(folds[name], targets) for name, each in scorers.items()}
    seconds = time.process_time() - start
    score = EvaluationScore(
        values, {name: tuple(scores) for name, scores in folds.items()}, seconds
    )
    if not kept:
        return score
    rows, predictions = zip(*kept, strict=True)
    return replace(score, rows=np.concatenate(rows), predictions=np.concatenate(predictions))


def predict_for_scoring(
    member: Member,
    x: Floats,
    y: Floats,
    *,
    classes: int,
    probabilities: bool,
    weights: Floats | None = None,
) -> Predictions:
    """Predict rows x whose targets y are known."""
    certain = member.probabilities(x, classes) if probabilities else None
    return Predictions(y, member.predict(x), certain, weights)


def for_scorer(member: Member, scorer: Scorer, held: Table, x: Floats) -> Predictions:
    """Make the predictions that a scorer needs, with x in place of the held-out rows."""
    return predict_for_scoring(
        member,
        x,
        held.y,
        classes=len(held.classes),
        probabilities=scorer.needs_probabilities,
        weights=held.weights,
    )


def _grouping_text(arrangement: RowStructure | None) -> str:
    if arrangement is None:
        return ""
    return f", all of one '{arrangement.column}' together ({arrangement.groups:,} of them)"
