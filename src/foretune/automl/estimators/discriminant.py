"""Implements quadratic discriminant analysis that accepts every table.

scikit-learn's own class refuses classes with fewer rows than columns, for every `reg_param`;
earlier versions only warned. If it accepts the data, this class predicts the same.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from foretune._base.arrays import Floats


class QuadraticDiscriminant(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One normal distribution for each class, with covariance (1 - reg_param) S + reg_param I."""

    def __init__(self, reg_param: float = 0.0) -> None:
        self.reg_param = reg_param

    def fit(self, X: Floats, y: Any) -> "QuadraticDiscriminant":
        """Learn means, covariances and shares of the classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.means_: list[Floats] = []
        self.whiteners_: list[Floats] = []
        """A matrix (d, d) for each class; centred rows times it have unit covariance."""
        self.offsets_: list[float] = []
        for code in range(len(self.classes_)):
            rows = X[codes == code]
            centred = rows - rows.mean(axis=0)
            spread = centred.T @ centred / len(rows)
            values, vectors = np.linalg.eigh(
                (1.0 - self.reg_param) * spread + self.reg_param * np.eye(X.shape[1])
            )
            values = np.maximum(values, np.finfo(np.float64).tiny)
            self.means_.append(rows.mean(axis=0))
            self.whiteners_.append(vectors / np.sqrt(values))
            self.offsets_.append(np.log(len(rows) / len(X)) - 0.5 * np.log(values).sum())
        return self

    def decision_function(self, X: Floats) -> Floats:
        """Return the log (n, classes) of each class's density times its share, plus a constant."""
        columns = [
            offset - 0.5 * np.sum(((X - mean) @ whitener) ** 2, axis=1)
            for mean, whitener, offset in zip(
                self.means_, self.whiteners_, self.offsets_, strict=True
            )
        ]
        return np.column_stack(columns)

    def predict(self, X: Floats) -> Any:
        """Return the most probable classes."""
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def predict_proba(self, X: Floats) -> Floats:
        """Return probabilities (n, classes)."""
        scores = self.decision_function(X)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Floats = weights / weights.sum(axis=1, keepdims=True)
        return shares
