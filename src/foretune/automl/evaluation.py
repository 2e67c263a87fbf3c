"""Scores a configuration on a table: by cross-validation if rows are few, else on held-out rows."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.automl.estimators.fitted_pipeline import Member, refit
from foretune.automl.estimators.stepped import best_common_step
from foretune.automl.folds import cross_validation, hold_out
from foretune.automl.metrics import SCORERS, Predictions, Scorer, by_shares, scorer
from foretune.errors import UsageError
from foretune.tables import RowStructure, RowStructureKind, Splits, Table, Task

FEW_GROUPS = 100
"""With fewer groups of rows than this, a single split is noisy, however many rows there are."""


SPLIT_ONCE_FROM = 2500
"""Tables with so many rows are split once, unless a plan says that there is time for folds."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Says how a configuration is scored.

    Tables with fewer than `cross_validated_below` rows are cross-validated with `folds` folds. For
    larger tables, a third of the rows is held out once. Classes keep their shares in every part.
    Rows of one group stay together. Rows in order are scored by models that learnt from earlier
    rows.
    """

    metrics: tuple[str, ...]
    """The search optimises the first one."""
    folds: int = 5
    cross_validated_below: int = SPLIT_ONCE_FROM
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

    def scores_all_rows(self, table: Table) -> bool:
        """Return whether each row is scored once, by a pipeline that learnt from most others."""
        by = table.arrangement
        in_order = by is not None and by.kind is RowStructureKind.IN_ORDER
        scored = sum(len(held) for _, held in self.splits(table))
        return not in_order and scored == len(table)

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
    members: tuple[Member, ...] = ()
    """The pipelines of the folds, if the predictions were to be kept."""
    predict_seconds: float = 0.0
    """The CPU seconds in which each fold's pipeline predicted the rows of its fold, together."""


def evaluate(
    config: Mapping[str, Any],
    table: Table,
    protocol: Protocol,
    *,
    keep_predictions: bool = False,
    fit: Callable[..., Member] = refit,
) -> EvaluationScore:
    """Fit and score a configuration on every split.

    keep_predictions: whether to return the predictions and the pipelines too, for `blend`; the
    pipelines of the folds may then be the model. fit: fits a pipeline to some rows, as `refit`.
    """
    evaluation = FoldEvaluation(config, table, protocol, is_kept=keep_predictions, fit=fit)
    for place in range(len(evaluation.splits)):
        evaluation.run_fold(place)
    return evaluation.score()


class FoldEvaluation:
    """The evaluation of one configuration, which runs one fold after the other."""

    def __init__(
        self,
        config: Mapping[str, Any],
        table: Table,
        protocol: Protocol,
        *,
        is_kept: bool,
        fit: Callable[..., Member] = refit,
    ) -> None:
        protocol = protocol.restrict_to(table)
        self._config, self._table, self._protocol, self._fit = config, table, protocol, fit
        self._is_kept = is_kept
        self._scorers = protocol.scorers(table.task)
        self._needs_probabilities = table.task is Task.CLASSIFICATION and (
            is_kept or any(each.needs_probabilities for each in self._scorers.values())
        )
        self.splits = protocol.splits(table)
        self._members: list[Member] = []
        self._given: list[Predictions] = []
        self._began = time.process_time()
        self._predict_seconds = 0.0
        """The CPU seconds in which the pipelines so far predicted their rows."""

    def run_fold(self, place: int) -> dict[str, float]:
        """Fit the pipeline of the next fold, and return its scores."""
        learn, held = self.splits[place]
        # If the pipelines are the model, the rows that score them may also end their learning.
        judges = {"validation": held} if self._is_kept else {}
        member = self._fit(
            self._config, self._table, seed=self._protocol.seed, rows=learn, **judges
        )
        given = self._predict(member, held)
        self._given.append(given)
        if self._is_kept:
            self._members.append(member)
        return {name: each.score(given) for name, each in self._scorers.items()}

    def _predict(self, member: Member, held: Ints) -> Predictions:
        """Predict the rows of a fold."""
        began = time.process_time()
        given = predict_for_scoring(
            member,
            self._table.x[held],
            self._table.y[held],
            classes=len(self._table.classes),
            probabilities=self._needs_probabilities,
            weights=None if self._table.weights is None else self._table.weights[held],
        )
        self._predict_seconds += time.process_time() - began
        return given

    def _use_common_steps(self) -> None:
        """Let all folds predict with the same number of steps, so that none flatters itself."""
        curves = [each.curve for each in self._members]
        if not curves or not all(curves):
            return
        steps = best_common_step(curves)
        self._members = [each.truncate(steps) for each in self._members]
        self._predict_seconds = 0.0
        self._given = [
            self._predict(member, held)
            for member, (_, held) in zip(self._members, self.splits, strict=False)
        ]

    def score(self) -> EvaluationScore:
        """Return the scores of the folds that have run."""
        self._use_common_steps()
        held = [rows for _, rows in self.splits[: len(self._given)]]
        targets = [self._table.y[rows] for rows in held]
        folds = {
            name: tuple(each.score(given) for given in self._given)
            for name, each in self._scorers.items()
        }
        values = {n: each.over_folds(folds[n], targets) for n, each in self._scorers.items()}
        score = EvaluationScore(values, folds, time.process_time() - self._began)
        if not self._is_kept:
            return score
        return replace(
            score,
            rows=np.concatenate(held),
            predictions=np.concatenate([given.blendable for given in self._given]),
            members=tuple(self._members),
            predict_seconds=self._predict_seconds,
        )


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
    if not probabilities:
        return Predictions(y, member.predict(x), None, weights)
    certain = member.probabilities(x, classes)
    # The most probable class is what pipelines predict, and predicting twice takes time.
    return Predictions(y, certain.argmax(axis=1).astype(np.float64), certain, weights)


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
