"""Checks the text of LightGBM's trees before LightGBM parses it.

The parser is compiled code that trusts its input: a wrong length or index ends the process, or
reads foreign memory. So the text must have exactly the form that LightGBM writes for the models of
Foretune, which have no linear leaves.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

HEADER = frozenset(
    ("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx",
     "objective", "feature_names", "feature_infos", "tree_sizes")
)  # fmt: skip
OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
OF_SPLITS = (
    "split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child",
    "internal_value", "internal_weight", "internal_count",
)  # fmt: skip
OF_CATEGORIES = ("cat_boundaries", "cat_threshold")
"""For splits by sets of categories: where each set begins, and its bits, in words of 32."""
OF_TREE = ("num_leaves", "num_cat", "is_linear", "shrinkage")
WHOLE = frozenset(
    (
        *OF_CATEGORIES,
        "leaf_count",
        "split_feature",
        "decision_type",
        "left_child",
        "right_child",
        "internal_count",
    )
)
OBJECTIVES = re.compile(r"regression|lambdarank|binary sigmoid:1|multiclass num_class:(\d{1,6})")
_WHOLE = re.compile(r"-?\d{1,15}")
_NUMBER = re.compile(r"-?(\d{1,40}(\.\d{0,40})?(e[-+]?\d{1,3})?|inf)", re.IGNORECASE)
_END = re.compile(
    r"end of trees\n\nfeature_importances:\n([^\s=]+=\d+\n)*"
    r"\nparameters:\n(\[\w+: [\w.,:+\-/ ]*\]\n)+\nend of parameters\n"
    r"(\npandas_categorical:[^\n\0]*\n?)?"
)
"""The text after the trees. LightGBM splits each parameter at its colon without a check."""
MOST_LEAVES = 2**17
CATEGORICAL = 1
"""The bit of a decision type whose threshold is the number of a set."""
MOST_WORDS = 2**20
"""The most words of 32 categories that the sets of a tree may have."""


def check_text(text: str) -> None:
    """Raise ValueError for a text that LightGBM does not write for a model of plain splits."""
    content = text.encode()
    head, end, rest = content.partition(b"\n\n")
    header = _header(head.decode(errors="replace"))
    if not end or not header.keys() >= HEADER:
        _refuse("has no whole header")
    columns, trees = _check_header(header)
    for number, size in enumerate(trees):
        block, rest = rest[:size], rest[size:]
        if size < 1 or len(block) < size:
            _refuse("has other sizes than it says")
        _check_tree(number, block.decode(errors="replace"), columns)
    if not _END.fullmatch(rest.decode(errors="replace")):
        _refuse("has another end than LightGBM writes")


def _header(head: str) -> dict[str, str]:
    first, *lines = head.split("\n")
    pairs = [line.partition("=") for line in lines]
    if first != "tree" or any(name not in HEADER or not mark for name, mark, _ in pairs):
        _refuse("has an unknown header")
    header = {name: value for name, _, value in pairs}
    if len(header) < len(pairs):
        _refuse("says something twice")
    return header


def _check_header(header: Mapping[str, str]) -> tuple[int, list[int]]:
    """Return the number of columns, and the size of each tree."""
    classes, a_round = _whole(header["num_class"]), _whole(header["num_tree_per_iteration"])
    columns = _whole(header["max_feature_idx"]) + 1
    sizes = _all(header["tree_sizes"], _whole)
    objective = OBJECTIVES.fullmatch(header["objective"])
    if objective is None or classes != a_round or classes != int(objective[1] or 1):
        _refuse("has an unknown objective")
    _whole(header["label_index"])
    named, told = header["feature_names"].split(" "), header["feature_infos"].split(" ")
    if columns < 1 or len(named) != columns or len(told) != columns or "" in named + told:
        _refuse("has another number of columns than it states")
    if not sizes or len(sizes) % a_round or not re.fullmatch(r"v\d", header["version"]):
        _refuse("has another number of trees than it states")
    return columns, sizes


def _check_tree(number: int, block: str, columns: int) -> None:
    first, *lines = block.rstrip("\n").split("\n")
    pairs = [line.partition("=") for line in lines]
    tree = {name: value for name, _, value in pairs}
    if first != f"Tree={number}" or len(tree) < len(pairs) or not tree.keys() >= {*OF_TREE}:
        _refuse("has a tree that is not whole")
    if (
        not tree.keys() <= {*OF_TREE, *OF_LEAVES, *OF_SPLITS, *OF_CATEGORIES}
        or "leaf_value" not in tree
    ):
        _refuse("has a tree of another kind")
    leaves = _whole(tree["num_leaves"])
    if not 1 <= leaves <= MOST_LEAVES or tree["is_linear"] != "0":
        _refuse("has a tree of another kind")
    _number(tree["shrinkage"])
    arrays = {name: _array(tree, name) for name in (*OF_LEAVES, *OF_SPLITS) if name in tree}
    if leaves == 1:
        # A constant: LightGBM writes empty lists of splits.
        if any(len(numbers) > 1 for numbers in arrays.values()) or len(arrays["leaf_value"]) != 1:
            _refuse("has a tree whose lists have other lengths")
        return
    for name, numbers in arrays.items():
        if len(numbers) != (leaves if name in OF_LEAVES else leaves - 1):
            _refuse("has a tree whose lists have other lengths")
    _check_splits(arrays, leaves, columns)
    _check_categories(tree, arrays)


def _check_splits(arrays: Mapping[str, Sequence[float]], leaves: int, columns: int) -> None:
    if not arrays.keys() >= {*OF_SPLITS, *OF_LEAVES}:
        _refuse("has a tree that is not whole")
    if not all(0 <= column < columns for column in arrays["split_feature"]):
        _refuse("has a split on a column that is not there")
    if not all(0 <= kind <= 11 for kind in arrays["decision_type"]):
        _refuse("has a split of another kind")
    children = sorted([*arrays["left_child"], *arrays["right_child"]])
    # Each leaf, and each split except the first, is the child of exactly one earlier split.
    if children != [*range(-leaves, 0), *range(1, leaves - 1)]:
        _refuse("has a tree with a branch to a missing node")
    for name in ("left_child", "right_child"):
        if any(0 <= child <= own for own, child in enumerate(arrays[name])):
            _refuse("has a tree with a branch to an earlier node")
    if not all(math.isfinite(value) for value in arrays["leaf_value"]):
        _refuse("predicts values that are no numbers")


def _check_categories(tree: Mapping[str, str], arrays: Mapping[str, Sequence[float]]) -> None:
    """Check that sets lie one after the other, and that splits by a set name one that exists."""
    sets = _whole(tree["num_cat"])
    kinds = zip(arrays["decision_type"], arrays["threshold"], strict=True)
    named = [number for kind, number in kinds if int(kind) & CATEGORICAL]
    if not sets:
        if named or any(name in tree for name in OF_CATEGORIES):
            _refuse("has a split of another kind")
        return
    if not all(name in tree for name in OF_CATEGORIES):
        _refuse("has a tree that is not whole")
    begins, words = (_array(tree, name) for name in OF_CATEGORIES)
    if len(begins) != sets + 1 or begins[0] != 0 or begins[-1] != len(words):
        _refuse("has sets of categories of other sizes")
    if len(words) > MOST_WORDS or any(a >= b for a, b in pairwise(begins)):
        _refuse("has sets of categories of other sizes")
    if not all(0 <= word < 2**32 for word in words):
        _refuse("has something else than a set of categories")
    if not all(number in range(sets) for number in named):
        _refuse("has a split by a set that is not there")


def _array(tree: Mapping[str, str], name: str) -> list[float]:
    return _all(tree[name], _whole if name in WHOLE else _number)


def _all(text: str, read: Callable[[str], Any]) -> list[Any]:
    return [read(part) for part in text.split(" ")] if text else []


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        _refuse("has a value that is no whole number")
    return int(text)


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        _refuse("has something else than a number")
    return float(text)


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"the text of its booster {what}")
