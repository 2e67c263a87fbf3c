"""Texts as a few numbers: a linear model of all words, and the most informative words.

As in scikit-learn's target encoder, rows that are learnt from get predictions by a model of other
rows (cross-fitting). A model's predictions for its own rows are too good, and later models would
rely on them.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import Ridge

from foretune._base.arrays import Floats, Ints

PENALTIES = (0.3, 1.0, 3.0, 10.0, 100.0)
PARTS = 5
MOST_CLASSES = 20
"""Only this many classes, the most frequent ones, have a model, because each is a column."""
CLASSES_TO_CHOOSE_BY = 3
"""The penalty is chosen with the most frequent classes, because each takes time."""
PLAIN_WORDS = 30


class TextEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns words (n, d), 1 where a row has one and NaN without a text, into a few numbers.

    These are predictions of the target by all words, and the most informative words. Rare words
    count more, and the words of a row together have length 1 (TF-IDF).
    """

    def __init__(self, classification: bool = False, seed: int = 0) -> None:
        self.classification = classification
        self.seed = seed

    def fit(self, X: Floats, y: Any) -> "TextEncoder":
        """Learn how rare words are, and what they say about the target."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Floats, y: Any) -> Floats:
        """Do the same, and return predictions for each row by models of other rows."""
        self.n_features_in_ = X.shape[1]
        bags = csr_array(np.nan_to_num(X))
        self.rarity_ = _rarity(bags)
        words = _weigh_bags(bags, self.rarity_)
        targets = _targets(y, self.classification)
        part = np.random.default_rng(self.seed).permutation(len(X)) % min(PARTS, len(X))
        penalty = _best_penalty(words, targets[:, :CLASSES_TO_CHOOSE_BY], part)
        model = Ridge(penalty).fit(words, targets)
        self.slopes_ = np.atleast_2d(model.coef_).T
        self.level_ = np.atleast_1d(model.intercept_)
        return _beside_words(_predict_parts(words, targets, part, penalty), X)

    def transform(self, X: Floats) -> Floats:
        """Return (n, columns) of new rows."""
        words = _weigh_bags(csr_array(np.nan_to_num(X)), self.rarity_)
        return _beside_words(words @ self.slopes_ + self.level_, X)


def _beside_words(predicted: Floats, x: Floats) -> Floats:
    return np.hstack([predicted, np.nan_to_num(x[:, :PLAIN_WORDS])])


def _rarity(bags: csr_array) -> Floats:
    """Return (d,), the inverse document frequency of each word."""
    rows, columns = bags.shape
    rows_with = np.bincount(bags.indices, minlength=columns)
    rarity: Floats = np.log((1 + rows) / (1 + rows_with)) + 1.0
    return rarity


def _weigh_bags(bags: csr_array, rarity: Floats) -> csr_array:
    """Return rows of length 1; rows without words stay empty."""
    weighed = csr_array(bags * rarity[None, :])
    lengths = np.sqrt((weighed * weighed).sum(axis=1))
    return csr_array(weighed / np.where(lengths > 0.0, lengths, 1.0)[:, None])


def _targets(y: Any, classification: bool) -> Floats:
    """Return (n, targets): numbers by their spread, or 1 where a row has a frequent class.

    For two classes, one column says all.
    """
    if not classification:
        spread = y.std()
        numbers: Floats = ((y - y.mean()) / (spread if spread > 0.0 else 1.0))[:, None]
        return numbers
    classes, counts = np.unique(y, return_counts=True)
    common = classes[np.argsort(-counts, kind="stable")][:MOST_CLASSES]
    members: Floats = (y[:, None] == (common if len(classes) > 2 else common[:1])).astype(float)
    return members


def _best_penalty(words: csr_array, targets: Floats, part: Ints) -> float:
    """Choose the penalty by the squared error of predictions for other rows."""
    errors = [
        np.mean((_predict_parts(words, targets, part, penalty) - targets) ** 2)
        for penalty in PENALTIES
    ]
    return PENALTIES[int(np.argmin(errors))]


def _predict_parts(words: csr_array, targets: Floats, part: Ints, penalty: float) -> Floats:
    """Return (n, targets), predictions for each part by a model of the others."""
    predicted = np.empty_like(targets)
    for k in range(part.max() + 1):
        others = part != k
        model = Ridge(penalty).fit(words[others], targets[others])
        predicted[~others] = model.predict(words[~others]).reshape(-1, targets.shape[1])
    return predicted
