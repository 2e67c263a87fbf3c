"""Checks the bytes in which CatBoost stores its trees, before CatBoost reads them.

CatBoost checks the form of its flat buffer, but not that the numbers in it fit each other. This
module accepts only the form that CatBoost writes for the models that Foretune fits: symmetric
trees on numeric columns, with the right number of leaves, and splits at borders that exist.
"""

import json
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from foretune.automl.final_model.damaged_part import DamagedPartError
from foretune.automl.final_model.flatbuffer import FlatTable, root, unpack

MAGIC, FORMAT = b"CBM1", "FlabuffersModel_v1"
CORE, INFO = 1, 2
"""Fields of the buffer: its trees, and CatBoost's texts about them."""
DIMENSION, SPLITS, SIZES, STARTS, FEATURES, LEAVES, WEIGHTS = 0, 1, 2, 3, 5, 8, 9
SCALE, BIAS, BIASES, BINS = 14, 15, 16, 17
"""Fields of the trees."""
OTHER_FIELDS = (4, 6, 7, 10, 11, 12, 13, 18)
"""Categories, counters, asymmetric trees, texts and embeddings: these lists must be empty."""
TREATMENT, POSITION, COLUMN, BORDERS = 0, 1, 2, 3
"""Fields of a column."""
DEEPEST = 16
"""The most splits that CatBoost allows in a tree."""
MOST_BORDERS = 254
MOST_DIMENSIONS = 10_000
MOST_LEVELS = 12
"""The deepest nesting of lists and objects in CatBoost's texts about its trees."""


def check_catboost(content: bytes) -> None:
    """Raise DamagedPartError unless CatBoost writes such bytes for a model of numeric columns."""
    if content[:4] != MAGIC or unpack(content, "<I", 4) != len(content) - 8:
        _refuse("has no whole model")
    buffer = root(content[8:])
    if set(buffer.fields) != {0, CORE, INFO} or buffer.text(0) != FORMAT:
        _refuse("has another format")
    trees = buffer.table(CORE)
    known = {DIMENSION, SPLITS, SIZES, STARTS, FEATURES, LEAVES, WEIGHTS, SCALE, BIAS, BIASES, BINS}
    if not set(trees.fields) <= known | {*OTHER_FIELDS}:
        _refuse("has other parts than trees")
    if any(len(trees.array(field, "u1")) for field in OTHER_FIELDS):
        _refuse("has other columns than numbers, or other trees than symmetric ones")
    _check_trees(trees)
    _check_splits(trees)
    _check_info(buffer, int(trees.scalar(DIMENSION, "<i", 0)))


def _check_trees(trees: FlatTable) -> None:
    dimension = trees.scalar(DIMENSION, "<i", 0)
    sizes = trees.array(SIZES, "<i4").astype(np.int64)
    if not 1 <= dimension <= MOST_DIMENSIONS or not ((sizes >= 0) & (sizes <= DEEPEST)).all():
        _refuse("has a tree of another size")
    starts = np.cumsum([0, *sizes])[:-1]
    if not np.array_equal(trees.array(STARTS, "<i4"), starts):
        _refuse("has a tree at another place")
    if len(trees.array(SPLITS, "<i4")) != sizes.sum():
        _refuse("has another number of splits than it states")
    leaves = int((2**sizes).sum())
    if len(trees.array(LEAVES, "<f8")) != leaves * dimension:
        _refuse("has another number of leaves than it states")
    if len(trees.array(WEIGHTS, "<f8")) not in (0, leaves):
        _refuse("has another number of leaves than it states")
    if len(trees.array(BIASES, "<f8")) not in (0, dimension):
        _refuse("has another number of dimensions than it states")
    numbers = [trees.array(field, "<f8") for field in (LEAVES, WEIGHTS, BIASES)]
    numbers.append(np.array([trees.scalar(SCALE, "<d", 1.0), trees.scalar(BIAS, "<d", 0.0)]))
    if not all(np.isfinite(each).all() for each in numbers):
        _refuse("predicts values that are no numbers")


def _check_splits(trees: FlatTable) -> None:
    """Check that each split is the number of a border, counted over all columns in order."""
    counts = []
    for position, column in enumerate(trees.tables(FEATURES)):
        places = {column.scalar(field, "<i", -1) for field in (POSITION, COLUMN)}
        if places != {position} or not 0 <= column.scalar(TREATMENT, "<b", 0) <= 2:
            _refuse("mixes up its columns")
        borders = column.array(BORDERS, "<f4")
        if not np.isfinite(borders).all() or not (np.diff(borders) > 0).all():
            _refuse("has borders that do not ascend")
        if len(borders) > MOST_BORDERS:
            _refuse("has too many borders")
        counts.append(len(borders))
    splits = trees.array(SPLITS, "<i4")
    if not ((splits >= 0) & (splits < sum(counts))).all():
        _refuse("splits at a border that does not exist")
    if BINS in trees.fields and not np.array_equal(trees.array(BINS, "<u4"), _bins(splits, counts)):
        _refuse("splits at a border that does not exist")


def _bins(splits: NDArray[Any], counts: list[int]) -> NDArray[Any]:
    """Pack each split (n,) as CatBoost does.

    Two bytes hold the column (only columns with borders count), one byte is 0, and one byte holds
    the border, counted from 1.
    """
    used = np.array([count for count in counts if count], dtype=np.int64)
    column = np.repeat(np.arange(len(used)), used)
    border = np.concatenate([np.zeros(0, np.int64), *(np.arange(1, each + 1) for each in used)])
    bins: NDArray[Any] = (column[splits] + (border[splits] << 24)).astype(np.uint32)
    return bins


def _check_info(buffer: FlatTable, dimension: int) -> None:
    """Check CatBoost's texts: their JSON is not deep, and each dimension has a class."""
    about = {each.text(0): each.text(1) for each in buffer.tables(INFO)}
    for name, text in about.items():
        if text[:1] in ("{", "["):
            _check_json(name, text, dimension)
    if dimension > 1 and "class_params" not in about:
        _refuse("has other classes than it states")


def _check_json(name: str, text: str, dimension: int) -> None:
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        _refuse("has a description that is not JSON")
    if _levels(plain) > MOST_LEVELS:
        _refuse("has a description that is nested too deeply")
    if name == "class_params":
        # CatBoost finds classes by these codes; pipelines number their classes 0, 1, ...
        codes = list(range(max(2, dimension)))
        plain = plain if isinstance(plain, dict) else {}
        if any(_codes(plain.get(part)) != codes for part in ("class_names", "class_to_label")):
            _refuse("has other classes than it states")


def _codes(classes: Any) -> list[int] | None:
    are_numbers = isinstance(classes, list) and all(type(each) in (int, float) for each in classes)
    return classes if are_numbers else None


def _levels(value: Any) -> int:
    waiting, deepest = [(1, value)], 1
    while waiting:
        depth, each = waiting.pop()
        deepest = max(deepest, depth)
        inner = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        waiting.extend((depth + 1, part) for part in inner)
    return deepest


def _refuse(what: str) -> NoReturn:
    raise DamagedPartError(f"its booster {what}")
