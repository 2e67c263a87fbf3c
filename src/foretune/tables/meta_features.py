"""Numbers that describe a table and show how similar two tables are.

Simple ones are sizes, kinds of columns and missing values. Statistical ones are shapes and
correlations of numbers. Others are entropies of columns and target, and landmarks: the scores of
very cheap models. A large table is described by a sample of its rows and columns, in less than a
second. Every table gets the same names, and every number is finite: one that does not apply is 0.
Experience and priors store the names, and so do the shipped ones. Therefore they never change.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints
from foretune.tables.table import Table
from foretune.tables.target import Task

MOST_ROWS = 2000
MOST_COLUMNS = 100
LANDMARK_ROWS = 500
BINS = 10
"""Numbers are cut into this many equally frequent bins for their entropies."""
LANDMARKS = ("stump", "tree", "nearest", "linear", "bayes")
POINTS = {"min": 0.0, "median": 0.5, "max": 1.0}


@dataclass(frozen=True, slots=True)
class _Data:
    """A sample of a table without missing values."""

    x: Floats
    """(n, d), standardised where a column holds numbers; codes elsewhere."""
    codes: Ints
    """(n, d), codes of categories, and of the bins of numbers."""
    categorical: Bools
    target: Ints
    """(n,), codes of classes, or of the bins of numbers."""
    y: Floats
    """(n,), the codes of classes, or numbers divided by a power of two."""

    @property
    def numbers(self) -> Floats:
        return self.x[:, ~self.categorical]


def meta_features(
    x: Floats, categorical: Bools, y: Floats, *, classification: bool, seed: int = 0
) -> dict[str, float]:
    """Return {name: value} of a table.

    x: (n, d), codes where `categorical` (d,) is True, NaN where a value is missing.
    y: (n,), the numbers of a regression or the codes of classes.
    """
    data = _sample(x, categorical, y, classification, seed)
    described = {
        **_simple(x, categorical, y, classification),
        **_statistical(data),
        **_informational(data),
        **_landmarks(data, classification, seed),
    }
    return {name: _finite(value) for name, value in described.items()}


def _sample(x: Floats, categorical: Bools, y: Floats, classification: bool, seed: int) -> _Data:
    rng = np.random.default_rng(seed)
    rows = _some(len(x), MOST_ROWS, rng)
    columns = _some(x.shape[1], MOST_COLUMNS, rng)
    part, kinds, y = x[np.ix_(rows, columns)], categorical[columns], y[rows]
    filled = np.empty_like(part)
    codes = np.empty(part.shape, dtype=np.int64)
    for j, is_category in enumerate(kinds):
        column = part[:, j] if is_category else _scale(part[:, j])
        missing = np.isnan(column)
        if is_category:
            filled[:, j] = codes[:, j] = np.where(missing, -1.0, column) + 1
        else:
            middle = np.median(column[~missing]) if not missing.all() else 0.0
            full = np.where(missing, middle, column)
            filled[:, j] = _standardise(full)
            codes[:, j] = _bin(full)
    y = y if classification else _scale(y)
    target = np.unique(y, return_inverse=True)[1] if classification else _bin(y)
    return _Data(filled, codes, kinds, target, y)


def _some(n: int, most: int, rng: np.random.Generator) -> Ints:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _bin(values: Floats) -> Ints:
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right").astype(np.int64)


def _simple(x: Floats, categorical: Bools, y: Floats, classification: bool) -> dict[str, float]:
    n, d = x.shape
    missing = np.isnan(x)
    levels = [len(np.unique(column[~np.isnan(column)])) for column in x.T[categorical]]
    shares = np.unique(y, return_counts=True)[1] / n if classification else np.zeros(1)
    return {
        "log_rows": np.log(n),
        "log_columns": np.log(max(d, 1)),
        "log_rows_per_column": np.log(n / max(d, 1)),
        "share_categorical": float(categorical.mean()) if d else 0.0,
        "share_missing": float(missing.mean()) if d else 0.0,
        "share_rows_missing": float(missing.any(axis=1).mean()) if d else 0.0,
        "levels_mean": float(np.mean(levels)) if levels else 0.0,
        "levels_max": float(np.max(levels)) if levels else 0.0,
        "classes": float(len(shares)) if classification else 0.0,
        "class_share_max": float(shares.max()),
        "class_share_min": float(shares.min()),
        # It is a logarithm, like the other counts of rows.
        "rows_per_class": np.log(n * shares.mean()) if classification else 0.0,
    }


def _statistical(data: _Data) -> dict[str, float]:
    numbers = data.numbers
    if numbers.shape[1] == 0:
        numbers = np.zeros((len(data.x), 1))
    skewness = np.mean(numbers**3, axis=0)
    kurtosis = np.mean(numbers**4, axis=0)
    n = len(numbers)
    correlation = np.abs(numbers.T @ numbers / n)[np.triu_indices(numbers.shape[1], k=1)]
    centred = _standardise(data.y)
    with_target = np.abs(numbers.T @ centred / n)
    variances = np.linalg.svd(numbers - numbers.mean(axis=0), compute_uv=False) ** 2
    shares = np.cumsum(variances) / (variances.sum() or 1.0)
    outlying = np.mean(np.abs(numbers) > 3.0, axis=0)
    return {
        **_spread("skewness", skewness),
        **_spread("kurtosis", np.log(kurtosis + 1.0)),
        **_spread("correlation", correlation),
        **_spread("target_correlation", with_target),
        "outlier_share": float(outlying.mean()),
        # Values are standardised: a missing number is its column's mean, a missing category a code.
        "zero_share": float(np.mean(data.x == 0.0)),
        "components_first": float(shares[0]),
        "components_for_95": float(np.searchsorted(shares, 0.95) + 1) / len(shares),
        "target_skewness": float(np.mean(centred**3)),
        "target_kurtosis": float(np.log(np.mean(centred**4) + 1.0)),
    }


def _informational(data: _Data) -> dict[str, float]:
    of_target = _entropy(data.target)
    entropies = np.array([_entropy(column) for column in data.codes.T])
    joint = np.array(
        [_entropy(column * (data.target.max() + 1) + data.target) for column in data.codes.T]
    )
    mutual = np.maximum(entropies + of_target - joint, 0.0)
    best = float(mutual.max()) if len(mutual) else 0.0
    mean = float(mutual.mean()) if len(mutual) else 0.0
    noise = float(entropies.mean()) - mean if len(mutual) else 0.0
    return {
        "target_entropy": of_target,
        "target_entropy_relative": of_target / np.log(max(data.target.max() + 1, 2)),
        **_spread("entropy", entropies),
        **_spread("mutual_information", mutual),
        "equivalent_columns": of_target / mean if mean > 1e-9 else 0.0,
        "noise_to_signal": noise / mean if mean > 1e-9 else 0.0,
        "best_column_information": best / of_target if of_target > 0 else 0.0,
    }


def _landmarks(data: _Data, classification: bool, seed: int) -> dict[str, float]:
    """Return held-out scores of cheap models: R2, or accuracy above the majority's.

    No score is below -1.
    """
    rows = np.random.default_rng(seed).permutation(len(data.x))[: 2 * LANDMARK_ROWS]
    learn, held = rows[::2], rows[1::2]
    y = data.target.astype(np.float64) if classification else _standardise(data.y)
    scores = dict.fromkeys(LANDMARKS, 0.0)
    if len(held) > 0 and data.x.shape[1] > 0 and len(np.unique(y[learn])) > 1:
        for name, model in (_classifiers(seed) if classification else _regressors(seed)).items():
            predicted = model.fit(data.x[learn], y[learn]).predict(data.x[held])
            scores[name] = _better(predicted, y, learn, held, classification)
    return {f"landmark_{name}": score for name, score in scores.items()}


def _better(predicted: Floats, y: Floats, learn: Ints, held: Ints, classification: bool) -> float:
    """Return how much better the model is than the most frequent class, or than the mean."""
    if classification:
        classes, counts = np.unique(y[learn], return_counts=True)
        right = float(np.mean(predicted == y[held]))
        return right - float(np.mean(classes[counts.argmax()] == y[held]))
    error, spread = np.mean((y[held] - predicted) ** 2), np.var(y[held])
    return max(1.0 - float(error / spread), -1.0) if spread > 0 else 0.0


def _classifiers(seed: int) -> dict[str, Any]:
    from sklearn.linear_model import RidgeClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    return {
        "stump": DecisionTreeClassifier(max_depth=1, random_state=seed),
        "tree": DecisionTreeClassifier(random_state=seed),
        "nearest": KNeighborsClassifier(1),
        "linear": RidgeClassifier(),
        "bayes": GaussianNB(var_smoothing=1e-3),
    }


def _regressors(seed: int) -> dict[str, Any]:
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.tree import DecisionTreeRegressor

    return {
        "stump": DecisionTreeRegressor(max_depth=1, random_state=seed),
        "tree": DecisionTreeRegressor(min_samples_leaf=2, random_state=seed),
        "nearest": KNeighborsRegressor(1),
        "linear": Ridge(),
    }


def _scale(values: Floats) -> Floats:
    """Divide numbers by a power of two so that all are below 1 and their squares are finite.

    Nothing is rounded, so the description of a column does not depend on its unit.
    """
    present = np.abs(values[~np.isnan(values)])
    scaled: Floats = np.ldexp(values, -np.frexp(present.max(initial=0.0))[1])
    return scaled


def _standardise(values: Floats) -> Floats:
    spread = values.std()
    centred: Floats = (values - values.mean()) / (spread if spread > 0 else 1.0)
    return centred


def _entropy(codes: Ints) -> float:
    """Return the entropy in nats."""
    shares = np.unique(codes, return_counts=True)[1] / len(codes)
    return float(-np.sum(shares * np.log(shares)))


def _spread(name: str, values: Floats) -> dict[str, float]:
    """Return mean, minimum, median and maximum of a number that each column has."""
    if len(values) == 0:
        values = np.zeros(1)
    found = {f"{name}_{q}": float(np.quantile(values, at)) for q, at in POINTS.items()}
    return {f"{name}_mean": float(values.mean()), **found}


def _finite(value: float) -> float:
    return float(value) if np.isfinite(value) else 0.0


def description(table: Table) -> dict[str, float]:
    """Return the meta-features of a table. The words of its texts do not count."""
    plain = table.without_texts
    classes = plain.task is Task.CLASSIFICATION
    return meta_features(plain.x, plain.categorical, plain.y, classification=classes)
