"""Resources of a search by cross-validation: how much of them each iteration gives a candidate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from foretune._base.arrays import Floats
from foretune.errors import UsageError

ROWS = "n_samples"
"""The resource that is the number of rows."""
FOLDS = "n_splits"
"""The resource that is the number of folds to score on."""
LEAST_ROWS = 10
"""The fewest rows for each class, as in scikit-learn for five splits."""


@dataclass(frozen=True)
class Resource:
    """What candidates get more of in each iteration."""

    name: str
    """`n_samples`, `n_splits`, or a hyperparameter of the estimator."""
    amounts: tuple[int, ...]
    """The amount in each iteration, ascending."""
    factor: float
    """One of `factor` candidates goes on to the next iteration."""

    def parameters(self, iteration: int) -> dict[str, int]:
        """Return what an iteration sets on the estimator."""
        return {} if self.name in (ROWS, FOLDS) else {self.name: self.amounts[iteration]}


def plan_resource(
    name: str,
    *,
    least: int | str,
    most: int | str,
    factor: float,
    candidates: int,
    rows: int,
    classes: int,
) -> Resource:
    """Return the resource with its amounts.

    least: an amount, "smallest", or "exhaust": then the last iteration has the most resources.
    most: an amount, or "auto": all rows or folds.
    candidates: the number of candidates in the first iteration.
    rows: of the table that is learnt from; or the number of folds, if these are the resource.
    classes: of that table.
    """
    if not isinstance(factor, int | float) or not factor > 1:
        raise UsageError(
            f"one of `factor` candidates goes on, so it must be above 1, but got {factor!r}: 3 and "
            "4 are usual",
            rule="factor",
            field="factor",
            value=factor,
        )
    highest = _highest(name, most, rows)
    smallest = min(LEAST_ROWS * classes, highest) if name == ROWS else 1
    promotions = _times(candidates, factor)
    if least == "exhaust":
        promotions = min(promotions, _times(highest / smallest, factor))
        amounts = [round(highest / factor**left) for left in range(promotions, -1, -1)]
    else:
        lowest = smallest if least == "smallest" else least
        if not _is_count(lowest) or not 0 < lowest <= highest:
            raise UsageError(
                f"the fewest resources must be 'exhaust', 'smallest', or a whole number from 1 to "
                f"{highest}, but got {least!r}: choose another",
                rule="min-resources",
                field="min_resources",
                value=least,
            )
        promotions = min(promotions, _times(highest / lowest, factor))
        amounts = [int(lowest * factor**done) for done in range(promotions + 1)]
    return Resource(name, tuple(dict.fromkeys(amounts)), factor)


def check_resource(name: Any, estimator: Any, searched: Sequence[str]) -> None:
    """Refuse a resource that cannot be set on the estimator, or that the space holds.

    searched: the hyperparameters of the space, as scikit-learn calls them.
    """
    if name in (ROWS, FOLDS):
        return
    if name not in estimator.get_params():
        raise UsageError(
            f"a resource must be '{ROWS}', '{FOLDS}' or a hyperparameter of the estimator, but got "
            f"{name!r}: choose one of `estimator.get_params()`",
            rule="unknown-resource",
            field="resource",
            value=name,
        )
    if name in searched:
        raise UsageError(
            f"a resource grows during the search, but the space holds '{name}' too: leave it out "
            "of the space",
            rule="resource-in-space",
            field="resource",
            value=name,
        )


def _highest(name: str, most: int | str, rows: int) -> int:
    limited = name in (ROWS, FOLDS)
    if most == "auto" and limited:
        return rows
    if not _is_count(most) or most < 1 or (limited and most > rows):
        limit = f" of at most {rows}, or 'auto'" if limited else ""
        raise UsageError(
            f"the most resources must be a whole number{limit}, but got {most!r} for '{name}': "
            "give max_resources",
            rule="max-resources",
            field="max_resources",
            value=most,
        )
    return int(most)


def _times(ratio: float, factor: float) -> int:
    """Return how often `ratio` can be divided by `factor` before it is below 1."""
    return math.floor(math.log(ratio, factor) + 1e-9)


def _is_count(given: Any) -> TypeGuard[int]:
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


# Splits


class SameSplits:
    """The splits of `cv`, drawn once: candidates of all batches get the same ones."""

    def __init__(self, cv: Any, classifier: bool, seed: int = 0) -> None:
        self._cv, self._classifier, self._seed = cv, classifier, seed
        self.drawn: list[Any] = []
        self._orders: list[NDArray[np.int64]] = []

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Return (rows to learn from, rows to score on) of each split, as at the first call."""
        if not self.drawn:
            splitter = check_cv(self._cv, y, classifier=self._classifier)
            self.drawn = list(splitter.split(X, y, **params))
        return self.drawn

    def split_share(self, share: float, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Return the splits with a share of the rows to learn from.

        Each share includes the rows of all smaller ones. Shares of a classifier have the classes
        in their proportions.
        """
        splits = self.split(X, y, **params)
        if not self._orders:
            rng = np.random.default_rng(self._seed)
            labels = np.asarray(y) if self._classifier and y is not None else None
            self._orders = [_mix(len(train), rng, labels, train) for train, _ in splits]
        pairs = zip(splits, self._orders, strict=True)
        return [
            (np.asarray(train)[np.sort(order[: math.ceil(share * len(order) - 1e-9)])], test)
            for (train, test), order in pairs
        ]


@dataclass(frozen=True)
class ShareOfSplits:
    """Splits with a share of the rows to learn from, as scikit-learn calls them."""

    splits: SameSplits
    share: float

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Return (rows to learn from, rows to score on) of each split."""
        return self.splits.split_share(self.share, X, y, **params)


def _mix(
    n: int, rng: np.random.Generator, labels: NDArray[Any] | None, rows: Any
) -> NDArray[np.int64]:
    """Return an order of `n` rows in which every beginning has the proportions of all."""
    order = rng.permutation(n)
    if labels is None or labels.ndim != 1:
        return order
    places: Floats = np.empty(n)
    mixed = labels[np.asarray(rows)][order]
    for label in np.unique(mixed):
        own = np.flatnonzero(mixed == label)
        places[own] = (np.arange(len(own)) + 0.5) / len(own)
    sorted_: NDArray[np.int64] = order[np.argsort(places, kind="stable")]
    return sorted_
