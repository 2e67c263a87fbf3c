"""A penalised linear model in plain NumPy, which needs no other library to learn or to predict.

Importing scikit-learn takes longer than a fit of ten seconds may wait for its first model
(decision 036). Each column of numbers becomes a broken line with three bends, each frequent
category a column of its own. The penalty is the one with the least leave-one-out error, which has a
closed form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints

BENDS = (0.25, 0.5, 0.75)
"""The quantiles of a column at which its line may bend."""
MOST_WITH_BENDS = 200
"""Tables with more columns have straight lines, because they have few rows for each column."""
FARTHEST = 5.0
"""Numbers that are this many spreads away from the median count as this far."""
SPREAD_OF_QUARTILES = 1.349
"""The distance of the quartiles of a normal distribution, in standard deviations."""
MOST_CATEGORIES = 16
"""The most frequent categories of a column have columns of their own."""
LEAST_SHARE = 0.01
"""At least this share of the rows has a category, or no value, that is a column of its own."""
PENALTIES = tuple(float(each) for each in np.logspace(-4.0, 4.0, 17))
"""Penalties of slopes for columns of spread 1, for each row."""
LEAST_EIGENVALUE = 1e-10
"""Directions with less than this share of the largest variance are left out."""
LARGEST_STEEPNESS, HALVINGS = 100.0, 20
"""Scores of classes are at most this many times the numbers that are learnt for them."""
NEARLY_CERTAIN = 0.99
"""A row with a higher leverage decides its own prediction, so what others say of it is unknown."""


@dataclass(frozen=True, eq=False)
class ColumnBasis:
    """Turns d columns into the w columns of which the model is a weighted sum."""

    width: int
    """d, the number of columns that are read."""
    numbers: Ints
    """(m,), which columns hold numbers."""
    centre: Floats
    scale: Floats
    """(m,), the median and the spread of each."""
    bends: Floats
    """(k, m), where the line of each bends, in spreads from the median."""
    gaps: Ints
    """Which of the m numbers have a column that says that the value is missing."""
    coded: Ints
    codes: Floats
    """(c,), columns and codes of the categories that have a column of their own."""

    @classmethod
    def of(cls, x: Floats, categorical: Bools) -> "ColumnBasis":
        """Choose the basis for rows (n, d) to learn from."""
        numbers = np.flatnonzero(~categorical)
        values = np.sort(x[:, numbers], axis=0)  # Missing values come last.
        present = np.count_nonzero(~np.isnan(values), axis=0)
        low, centre, high = (_quantile(values, present, each) for each in BENDS)
        spread = (high - low) / SPREAD_OF_QUARTILES
        usual = np.where(spread > 0.0, spread, _deviation(x[:, numbers], centre))
        scale = np.where((usual > 0.0) & np.isfinite(usual), usual, 1.0)
        has_bends = x.shape[1] <= MOST_WITH_BENDS
        bends = np.stack([low - centre, 0.0 * centre, high - centre]) / scale
        missing = len(x) - present
        seldom = LEAST_SHARE * len(x)
        known_sometimes = (missing > seldom) & (present > seldom)
        gaps = np.flatnonzero(known_sometimes) if has_bends else np.empty(0, dtype=np.int64)
        coded, codes = _frequent_codes(x, np.flatnonzero(categorical))
        kept = bends if has_bends else bends[:0]
        return cls(x.shape[1], numbers, centre, scale, kept, gaps, coded, codes)

    def __call__(self, x: Floats) -> Floats:
        """Return (n, w)."""
        values = (x[:, self.numbers] - self.centre) / self.scale
        missing = np.isnan(values)
        values = np.clip(np.where(missing, 0.0, values), -FARTHEST, FARTHEST)
        bent = [np.maximum(values - bend, 0.0) for bend in self.bends]
        categories = x[:, self.coded] == self.codes
        return np.hstack([values, *bent, missing[:, self.gaps], categories])

    def __len__(self) -> int:
        return len(self.numbers) * (1 + len(self.bends)) + len(self.gaps) + len(self.codes)


def _quantile(values: Floats, present: Ints, share: float) -> Floats:
    """Return a quantile of each sorted column; 0 for a column without values."""
    if not len(values):
        return np.zeros(values.shape[1])
    place = np.round(share * np.maximum(present - 1, 0)).astype(np.int64)
    found: Floats = np.nan_to_num(values[place, np.arange(values.shape[1])])
    return found


def _deviation(x: Floats, centre: Floats) -> Floats:
    """Return the root mean square distance from the median, for columns that hardly differ."""
    with np.errstate(over="ignore"):
        squares = np.nan_to_num((x - centre) ** 2)
        found: Floats = np.sqrt(squares.mean(axis=0))
    return found


def _frequent_codes(x: Floats, columns: Ints) -> tuple[Ints, Floats]:
    """Return the columns and codes of frequent categories, column by column."""
    coded, codes = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for column in columns:
        values = x[:, column]
        known, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
        often = known[order[counts[order] >= LEAST_SHARE * len(x)]]
        coded.append(np.full(len(often), column))
        codes.append(often)
    return np.concatenate(coded), np.concatenate(codes)


@dataclass(frozen=True, eq=False)
class PlainLinearModel:
    """A fitted linear model, with the methods of a pipeline that a member of a model needs."""

    basis: ColumnBasis
    level: Floats
    """(K,): the prediction of a number, or a score for each class."""
    slopes: Floats
    """(w, K)."""
    is_classifier: bool

    @property
    def n_features_in_(self) -> int:
        """The number of columns that it reads, under the name that scikit-learn gives it."""
        return self.basis.width

    def predict(self, x: Floats) -> Floats:
        """Return numbers or codes of classes (n,)."""
        scores = self._scores(x)
        if self.is_classifier:
            codes: Floats = scores.argmax(axis=1).astype(np.float64)
            return codes
        numbers: Floats = scores[:, 0]
        return numbers

    def predict_proba(self, x: Floats) -> Floats:
        """Return probabilities (n, K) of classes."""
        return _softmax(self._scores(x))

    def _scores(self, x: Floats) -> Floats:
        scores: Floats = self.basis(x) @ self.slopes + self.level
        return scores


def constant_model(columns: int, level: Floats, *, is_classifier: bool) -> PlainLinearModel:
    """Return a model that predicts the same for every row."""
    none, nowhere = np.empty(0), np.empty(0, dtype=np.int64)
    basis = ColumnBasis(columns, nowhere, none, none, none[None, :][:0], nowhere, nowhere, none)
    return PlainLinearModel(basis, level, np.empty((0, len(level))), is_classifier)


def fit_plain_linear(
    x: Floats, y: Floats, categorical: Bools, *, classes: int = 0, weights: Floats | None = None
) -> PlainLinearModel:
    """Fit a linear model to rows (n, d).

    Classes are learnt as numbers, 1 where a row has the class and 0 elsewhere. What each row gets
    from a model of the others decides how such numbers become probabilities.

    y: (n,), numbers, or codes 0, 1, ... of `classes` classes.
    categorical: (d,), which columns hold codes.
    weights: (n,), how much rows count.
    """
    basis = ColumnBasis.of(x, categorical)
    w = np.full(len(x), 1.0 / len(x)) if weights is None else weights / weights.sum()
    targets = np.eye(classes)[y.astype(np.int64)] if classes else y[:, None]
    level = w @ targets
    spread = 1.0 if classes else float(np.abs(targets - level).max()) or 1.0
    directions = _Directions.of(basis(x), w)
    found = _fit_ridge(directions, (targets - level) / spread, w)
    slopes = spread * (directions.axes @ found.slopes)
    if classes:
        level = np.log(np.maximum(level, LEAST_SHARE / len(x)))
        slopes *= _steepness(found.by_others, level, targets, w)
    return PlainLinearModel(basis, level - directions.mean @ slopes, slopes, bool(classes))


@dataclass(frozen=True, eq=False)
class _Directions:
    """The principal directions of the basis, in which all penalties have a closed form."""

    rows: Floats
    """(n, r): coordinates, whose weighted squares sum to `variance`."""
    variance: Floats
    """(r,)."""
    mean: Floats
    """(w,)."""
    axes: Floats
    """(w, r)."""

    @classmethod
    def of(cls, basis: Floats, w: Floats) -> "_Directions":
        mean = w @ basis
        centred = basis - mean
        deviation = np.sqrt(w @ centred**2)
        unit = np.where(deviation > 0.0, deviation, 1.0)
        centred /= unit
        root = np.sqrt(w)[:, None]
        if centred.shape[1] <= len(centred):
            weighed = centred * root
            variance, axes = np.linalg.eigh(weighed.T @ weighed)
        else:
            weighed = centred * root
            variance, left = np.linalg.eigh(weighed @ weighed.T)
            axes = weighed.T @ (left / np.sqrt(np.maximum(variance, np.finfo(float).tiny)))
        kept = variance > LEAST_EIGENVALUE * max(1e-300, variance.max(initial=0.0))
        variance, axes = variance[kept], axes[:, kept]
        return cls(centred @ axes, variance, mean, axes / unit[:, None])


@dataclass(frozen=True, eq=False)
class _Ridge:
    """Slopes of the directions, and what models of all other rows predict for each row."""

    error: float
    penalty: float
    slopes: Floats
    """(r, K)."""
    by_others: Floats
    """(n, K)."""


def _fit_ridge(of: _Directions, targets: Floats, w: Floats) -> _Ridge:
    """Fit with the penalty that has the least leave-one-out error."""
    along = of.rows.T @ (targets * w[:, None])
    best = _Ridge(np.inf, PENALTIES[-1], np.zeros_like(along), np.zeros_like(targets))
    for penalty in PENALTIES:
        shrunk = 1.0 / (of.variance + penalty)
        slopes = along * shrunk[:, None]
        leverage = (w * (1.0 + of.rows**2 @ shrunk))[:, None]
        apart = np.maximum(1.0 - leverage, 1.0 - NEARLY_CERTAIN)
        missed = (targets - of.rows @ slopes) / apart
        by_others = np.where(leverage < NEARLY_CERTAIN, targets - missed, 0.0)
        error = float(w @ ((targets - by_others) ** 2).sum(axis=1))
        if error < best.error:
            best = _Ridge(error, penalty, slopes, by_others)
    return best


def _steepness(predicted: Floats, level: Floats, targets: Floats, w: Floats) -> float:
    """Return the factor of the predictions for which the classes of all rows are most probable.

    The loss is convex in the factor, so its slope changes sign once.
    """
    least, most = 0.0, LARGEST_STEEPNESS
    for _ in range(HALVINGS):
        factor = 0.5 * (least + most)
        missed = _softmax(level + factor * predicted) - targets
        if w @ (missed * predicted).sum(axis=1) < 0.0:
            least = factor
        else:
            most = factor
    return 0.5 * (least + most)


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def to_plain(model: PlainLinearModel) -> dict[str, Any]:
    """Return plain values for JSON."""
    basis = model.basis
    arrays = {name: getattr(basis, name).tolist() for name in _ARRAYS}
    fitted = {"level": model.level.tolist(), "slopes": model.slopes.tolist()}
    return {"width": basis.width, **arrays, **fitted, "is_classifier": model.is_classifier}


_ARRAYS = ("numbers", "centre", "scale", "bends", "gaps", "coded", "codes")


def from_plain(given: Mapping[str, Any], *, classes: int) -> PlainLinearModel:
    """Return the model that `to_plain` has described; refuse (ValueError) anything else.

    classes: how many it must predict; 0 if it must predict a number.
    """
    if given.keys() != {"width", *_ARRAYS, "level", "slopes", "is_classifier"}:
        raise ValueError("its parts are not those of a linear model")
    width, is_classifier = given["width"], given["is_classifier"]
    if type(width) is not int or is_classifier is not bool(classes) or width < 0:
        raise ValueError("it does not say how many columns it reads")
    arrays = {name: np.array(given[name], dtype=np.float64) for name in _ARRAYS}
    m, c = len(arrays["numbers"]), len(arrays["codes"])
    arrays["bends"] = arrays["bends"].reshape(-1, m) if m else np.empty((0, 0))
    shapes = {"numbers": (m,), "centre": (m,), "scale": (m,), "coded": (c,), "codes": (c,)}
    if any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise ValueError("its parts have different lengths")
    basis = ColumnBasis(
        width=width,
        numbers=_places(arrays["numbers"], width),
        centre=arrays["centre"],
        scale=arrays["scale"],
        bends=arrays["bends"],
        gaps=_places(arrays["gaps"], m),
        coded=_places(arrays["coded"], width),
        codes=arrays["codes"],
    )
    level = np.array(given["level"], dtype=np.float64)
    slopes = np.array(given["slopes"], dtype=np.float64).reshape(len(basis), max(1, classes))
    numbers = (level, slopes, *arrays.values())
    if level.shape != slopes.shape[1:]:
        raise ValueError("its slopes do not fit its classes")
    if not all(np.isfinite(each).all() for each in numbers) or (basis.scale <= 0.0).any():
        raise ValueError("its numbers are not finite")
    return PlainLinearModel(basis, level, slopes, is_classifier)


def _places(given: Floats, below: int) -> Ints:
    """Return whole numbers from 0 to below this one."""
    if given.ndim != 1 or not np.isfinite(given).all():
        raise ValueError("a place is no number")
    places: Ints = given.astype(np.int64)
    if (places != given).any() or (places < 0).any() or (places >= below).any():
        raise ValueError("it reads columns that are not there")
    return places
