"""Folds as the resource of a search by cross-validation.

scikit-learn scores every candidate on the same number of splits. Here it sees one split at a time,
and the scores of a candidate on its folds are put together again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from foretune.integrations.search_loop import Candidate
from foretune.integrations.search_resource import SameSplits

Outcome: TypeAlias = Mapping[str, Any]
"""What scikit-learn knows of one fit."""
Formatted: TypeAlias = tuple[list[dict[str, Any]], int, list[Outcome], dict[str, list[Any]]]
"""The arguments of scikit-learn's `_format_results`."""


class OneFold:
    """The splits of `cv`, of which scikit-learn sees one at a time."""

    def __init__(self, estimator: Any, cv: Any, X: Any, y: Any, groups: Any) -> None:
        classifier = is_classifier(estimator)
        checked = check_cv(cv, y, classifier=classifier)
        self.count = int(checked.get_n_splits(X, y, groups))
        self._splits = SameSplits(checked, classifier)
        self._current = 0
        self._outcomes: dict[int, list[Outcome]] = {}
        """{id of a suggestion: the outcomes of its folds so far}"""
        self._rows: list[tuple[dict[str, Any], list[Outcome]]] = []
        """The parameters and outcomes of each row of the tables."""
        self._columns: dict[str, list[Any]] = {}

    @property
    def drawn(self) -> list[Any]:
        """All splits, once they are drawn."""
        return self._splits.drawn

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        """Return 1, the number that scikit-learn sees."""
        return 1

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Return the current split."""
        return [self._splits.split(X, y, **params)[self._current]]

    @contextmanager
    def replace_cv(self, search: Any) -> Iterator[None]:
        """Let a search use this as its `cv` meanwhile."""
        given, search.cv = search.cv, self
        try:
            yield
        finally:
            search.cv = given

    def evaluate(
        self,
        batch: Sequence[Candidate],
        folds: int,
        evaluate: Callable[[int], tuple[dict[str, Any], Sequence[Outcome]]],
        columns: Mapping[str, list[Any]],
    ) -> tuple[dict[str, Any], Formatted]:
        """Evaluate a batch on its further folds.

        folds: how many it has then.
        evaluate: fits the batch on one fold; returns the tables, and the outcomes of all fits.
        Returns these tables, and what they must be made of instead.
        """
        tables: dict[str, Any] = {}
        done = len(self._outcomes.get(batch[0].suggestion.id, ()))
        for self._current in range(done, folds):
            tables, fits = evaluate(self._current)
            for candidate, fit in zip(batch, fits[-len(batch) :], strict=True):
                self._outcomes.setdefault(candidate.suggestion.id, []).append(fit)
        for each in batch:
            self._rows.append((each.parameters, list(self._outcomes[each.suggestion.id])))
        for name, column in columns.items():
            self._columns.setdefault(name, []).extend(column)
        return tables, self._formatted()

    def _formatted(self) -> Formatted:
        outcomes = [each for _, own in self._rows for each in _fill(own, self.count)]
        return [parameters for parameters, _ in self._rows], self.count, outcomes, self._columns


def clear_unused_folds(tables: dict[str, Any], splits: int) -> None:
    """Remove from tables what was put in for folds that a candidate was not scored on."""
    used = np.asarray(tables["n_resources"])
    for mean in [name for name in tables if name.startswith(("mean_test_", "mean_train_"))]:
        name = mean.removeprefix("mean_")
        scores = np.column_stack([tables[f"split{fold}_{name}"] for fold in range(splits)])
        scores[np.arange(splits) >= used[:, None]] = np.nan
        for fold in range(splits):
            tables[f"split{fold}_{name}"] = scores[:, fold]
        # A failed fold makes the deviation unknown, as in scikit-learn.
        spread = [np.std(row[:count]) for row, count in zip(scores, used, strict=True)]
        tables[f"std_{name}"] = np.array(spread)


def _fill(outcomes: Sequence[Outcome], splits: int) -> list[Outcome]:
    """Return an outcome for every split: where there is none, the mean of the others."""
    mean = {
        name: _mean([each[name] for each in outcomes])
        if name.endswith(("scores", "_time"))
        else first
        for name, first in outcomes[0].items()
    }
    return [*outcomes, *[mean] * (splits - len(outcomes))]


def _mean(found: Sequence[Any]) -> Any:
    """Return the mean of numbers, or of each number in mappings."""
    if isinstance(found[0], Mapping):
        return {name: np.mean([each[name] for each in found]) for name in found[0]}
    return np.mean(found)
