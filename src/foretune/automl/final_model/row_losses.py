"""Losses of many possible blends at once, for metrics that are sums over rows.

The greedy choice of a blend asks for the loss of thousands of means of predictions. For these
metrics a prediction matters through one number in each row (the probability of the true class, or
the error), and the number of a mean is the mean of the numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats
from foretune.automl.metrics import LEAST_PROBABILITY, differ, divisors

MOST_NUMBERS = 4_000_000
"""The most numbers for which losses are computed at once, to save memory."""


@dataclass(frozen=True, slots=True)
class RowLosses:
    """The losses of blends of some models."""

    numbers: Floats
    """(models, n): what each model's prediction of a row comes to."""
    starts: tuple[int, ...]
    """The first row of each fold that counts."""
    weights: Floats
    """(n,): the weight of a row's loss within its fold; 0 in folds that do not count."""
    of_rows: Callable[[Floats], Floats]
    """Turns numbers into losses of rows."""
    of_folds: Callable[[Floats], Floats]
    """Turns the sum of a fold into its loss."""
    perfect: float
    """The number of a perfect prediction."""

    @classmethod
    def of(
        cls,
        predictions: Sequence[Floats],
        y: Floats,
        metric: str,
        folds: Sequence[int],
        counting: Floats | None,
    ) -> "RowLosses | None":
        """Return the losses by a metric; None if it is no sum over rows.

        The arguments are those of `greedy_blend.blend`.
        """
        if metric not in _OF_ROWS:
            return None
        starts = np.cumsum([0, *folds[:-1]])
        weights = np.ones(len(y)) if counting is None else counting.astype(np.float64)
        parts = [slice(start, start + size) for start, size in zip(starts, folds, strict=True)]
        scaled = np.concatenate([_scale_weights(metric, y[part], weights[part]) for part in parts])
        if metric == "log_loss":
            rows, codes = np.arange(len(y)), y.astype(np.int64)
            numbers = np.stack([each[rows, codes].astype(np.float64) for each in predictions])
        else:
            numbers = np.stack([each[:, 0] - y for each in predictions])
        if metric == "mape":
            numbers /= divisors(y)
        of_folds = np.sqrt if metric == "rmse" else _same
        perfect = 1.0 if metric == "log_loss" else 0.0
        return cls(numbers, tuple(starts.tolist()), scaled, _OF_ROWS[metric], of_folds, perfect)

    def losses(self, numbers: Floats, weights: Floats | None = None) -> Floats:
        """Return the losses (k,) of blends with these numbers (k, n).

        weights: replaces the weights of the rows.
        """
        weights = self.weights if weights is None else weights
        sums = np.add.reduceat(self.of_rows(numbers) * weights, self.starts, axis=1)
        counted = np.add.reduceat(self.weights, self.starts) > 0.0
        found: Floats = np.mean(self.of_folds(sums[:, counted]), axis=1)
        found[~np.isfinite(found)] = np.inf
        return found

    def after_adding(self, total: Floats, count: float, weights: Floats | None = None) -> Floats:
        """Return the losses (models,) of a sum (n,) of so many numbers with each model added."""
        size = max(1, MOST_NUMBERS // max(1, len(total)))
        parts = [
            self.losses((total + self.numbers[start : start + size]) / (count + 1), weights)
            for start in range(0, len(self.numbers), size)
        ]
        return np.concatenate(parts)

    def row_losses(self, shares: Floats) -> Floats:
        """Return each row's part (n,) of the loss of a blend with these shares (models,).

        The mean of the parts is the loss, except of `rmse`, whose parts are those of its square.
        """
        folds = int((np.add.reduceat(self.weights, self.starts) > 0.0).sum())
        losses = self.of_rows(shares @ self.numbers) * self.weights
        parts: Floats = losses * (len(losses) / max(1, folds))
        return parts


def _scale_weights(metric: str, y: Floats, weights: Floats) -> Floats:
    """Return the weights of the rows of one fold, so that their sum of losses is its loss."""
    if metric == "r2" and not differ(y):
        return np.zeros(len(y))
    whole = weights
    if metric == "r2":
        whole = weights * (y - np.average(y, weights=weights)) ** 2
    scaled: Floats = weights / whole.sum()
    return scaled


def _log(numbers: Floats) -> Floats:
    return -np.log(np.maximum(numbers, LEAST_PROBABILITY))


def _same(sums: Floats) -> Floats:
    return sums


_OF_ROWS: dict[str, Callable[[Floats], Floats]] = {
    "log_loss": _log,
    "mae": np.abs,
    "mape": np.abs,
    "r2": np.square,
    "rmse": np.square,
}
"""The metrics that are sums over rows; the loss of `r2` is 1 less than its negative here."""
