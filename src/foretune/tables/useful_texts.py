"""Which texts help: a cheap model of the table is compared with and without each text.

Most titles and names tell a model nothing, or mislead it. Sentences are often the best part of a
table.
"""

import math
import time
from collections.abc import Iterable, Mapping

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints
from foretune._base.progress import SILENT, Progress, track
from foretune.tables.column_inference import SEEING_WHICH_HELP
from foretune.tables.row_structure import (
    FIRST_SCORED,
    RowStructure,
    RowStructureKind,
    Splits,
    split_later_rows,
)
from foretune.tables.text_encoder import TextEncoder

MOST_OTHERS = 100
"""The other columns that the model uses: those that follow the target most closely."""
LEAST_GAIN = 0.02
"""The loss must fall by this share, and by more than its standard error."""
MOST_ROWS = 2000
MOST_CLASSES = 10
FOLDS = 3
TREES = 100
"""The number of trees, of all classes together."""
MOST_ROUNDS = 30
MODEL = {"learning_rate": 0.2, "max_leaf_nodes": 15, "random_state": 0}
SMALLEST_LEAF = 5
LARGEST_LEAF = 20
"""scikit-learn's own minimum of rows in a leaf. With it, fewer than 40 rows are never divided."""
SMALLEST_PROBABILITY = 1e-6


def select_useful_texts(
    x: Floats,
    y: Floats,
    texts: Mapping[str, Bools],
    *,
    classification: bool,
    arrangement: RowStructure | None = None,
    progress: Progress = SILENT,
    until: float = math.inf,
) -> dict[str, bool]:
    """Return for each text whether it helps.

    x: (n, d).
    y: (n,), numbers or codes of classes.
    texts: which columns of x, (d,), are the words of a text. If there are no other columns, every
        text helps.
    arrangement: the structure of the rows, which folds must respect as in the search. Words of one
        patient, or of one month, say nothing about others.
    """
    others = ~np.any(list(texts.values()), axis=0)
    if not others.any():
        return dict.fromkeys(texts, True)
    rows = _some_rows(y, classification)
    plain, y = _fill_empty(x[np.ix_(rows, others)]), y[rows]
    if not classification:
        y = y / (np.abs(y).max() or 1.0)  # Squares of large numbers would be infinite.
    plain = plain[:, _closest(plain, y, classification)]
    helps = dict.fromkeys(texts, False)
    if time.monotonic() >= until:
        return helps
    folds = _folds(y, None if arrangement is None else arrangement.rows(rows))
    without = _losses(plain, None, y, classification, folds)
    for name, of in track(texts.items(), progress, SEEING_WHICH_HELP, len(texts)):
        if time.monotonic() >= until:
            break
        losses = _losses(plain, x[np.ix_(rows, of)], y, classification, folds)
        helps[name] = _is_gain(without, losses)
    return helps


def _some_rows(y: Floats, classification: bool) -> Ints:
    """Return some rows of the most frequent classes, in a random order."""
    order = np.random.default_rng(0).permutation(len(y))
    if classification:
        classes, counts = np.unique(y, return_counts=True)
        common = classes[np.argsort(-counts, kind="stable")[:MOST_CLASSES]]
        order = order[np.isin(y[order], common)]
    return order[:MOST_ROWS]


def _closest(x: Floats, y: Floats, classification: bool) -> Ints:
    """Choose the columns whose ranks are correlated most with the target, or with a class of it."""
    if x.shape[1] <= MOST_OTHERS:
        return np.arange(x.shape[1])
    ranks = np.argsort(np.argsort(x, axis=0, kind="stable"), axis=0) / len(x) - 0.5
    targets = y[:, None] == np.unique(y) if classification else y[:, None]
    centred = targets - targets.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    follows = np.abs(ranks.T @ (centred / np.where(spread > 0.0, spread, 1.0))).max(axis=1)
    return np.sort(np.argsort(-follows, kind="stable")[:MOST_OTHERS])


def _fill_empty(x: Floats) -> Floats:
    """Fill gaps with a number below all others, because a column may be empty in a fold."""
    filled: Floats = np.where(np.isnan(x), np.nanmin(x, axis=0, initial=0.0) - 1.0, x)
    return filled


def _is_gain(without: Floats, with_words: Floats) -> bool:
    """Return whether a loss falls enough. Both are losses of the same rows."""
    gains = without - with_words
    error = gains.std() / np.sqrt(len(gains))
    return bool(gains.mean() > max(LEAST_GAIN * without.mean(), error))


def _folds(y: Floats, by: RowStructure | None) -> Splits:
    """Return folds that respect the structure of the rows; simple folds if that leaves none."""
    from sklearn.model_selection import GroupKFold, KFold

    arranged: Iterable[tuple[Ints, Ints]] = []
    if by is not None and by.groups > 1:
        if by.kind is RowStructureKind.IN_ORDER:
            arranged = split_later_rows(by.values, first=FIRST_SCORED, parts=FOLDS)
        else:
            arranged = GroupKFold(min(FOLDS, by.groups)).split(y, groups=by.values)
    usable = [(known, held) for known, held in arranged if np.ptp(y[known]) > 0.0]
    return usable or list(KFold(FOLDS).split(y))


def _losses(
    x: Floats,
    words: Floats | None,
    y: Floats,
    classification: bool,
    folds: Splits,
) -> Floats:
    """Return the loss of each scored row by a model of others: logarithmic, or squared."""
    of = _log_loss if classification else _squared_loss
    losses = []
    for known, held in folds:
        learnt, new = x[known], x[held]
        if words is not None:
            encoder = TextEncoder(classification)
            learnt = np.hstack([learnt, encoder.fit_transform(words[known], y[known])])
            new = np.hstack([new, encoder.transform(words[held])])
        losses.append(of(learnt, y[known], new, y[held]))
    return np.concatenate(losses)


def _leaf(rows: int) -> int:
    """Return the fewest rows of a leaf."""
    return min(LARGEST_LEAF, max(SMALLEST_LEAF, rows // 8))


def _squared_loss(x: Floats, y: Floats, new: Floats, right: Floats) -> Floats:
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        max_iter=MOST_ROUNDS, min_samples_leaf=_leaf(len(y)), **MODEL
    ).fit(x, y)
    losses: Floats = (model.predict(new) - right) ** 2
    return losses


def _log_loss(x: Floats, y: Floats, new: Floats, right: Floats) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier

    classes = np.unique(y)
    likely = np.zeros((len(new), len(classes)))
    if len(classes) > 1:
        rounds = min(TREES // len(classes), MOST_ROUNDS)
        model = HistGradientBoostingClassifier(
            max_iter=rounds, min_samples_leaf=_leaf(len(y)), **MODEL
        ).fit(x, y)
        likely = model.predict_proba(new)
    found = (likely * (classes == right[:, None])).sum(axis=1)
    losses: Floats = -np.log(np.maximum(found, SMALLEST_PROBABILITY))
    return losses
