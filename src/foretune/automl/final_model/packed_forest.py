"""Packs the trees of a forest into a few arrays, because a file of a thousand trees is slow.

A model file describes each object in JSON, which takes about two milliseconds for each tree to
write and again to read. All trees of a forest have the same form, so their nodes are one array.
"""

import copy
from typing import Any

import numpy as np

from foretune.automl.final_model.damaged_part import DamagedPartError

COLUMNS = {
    "left_child": np.int32,
    "right_child": np.int32,
    "feature": np.int32,
    "threshold": np.float64,
    "missing_go_to_left": np.uint8,
}
"""What a prediction needs of a node. Counts of rows and impurities are left out, which are most of
the bytes."""
FORESTS = (
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
)
TREES = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
)
OWN = ("random_state", "tree_")
"""The attributes in which the trees of a forest differ."""


class PackedForest:
    """A forest whose trees lie one after the other in arrays."""

    def __init__(self, forest: Any) -> None:
        """Pack a fitted forest, whose trees must differ in nothing but their nodes and seeds."""
        trees = forest.estimators_
        parts = [each.tree_.__reduce__() for each in trees]
        states = [state for _, _, state in parts]
        self.forest = copy.copy(forest)
        self.forest.estimators_ = []
        self.tree = copy.copy(trees[0])
        del self.tree.tree_
        self.seeds = np.array([each.random_state for each in trees], dtype=np.int64)
        self.features = int(parts[0][1][0])
        self.classes = np.array(parts[0][1][1], dtype=np.int64)
        self.outputs = int(parts[0][1][2])
        self.counts = np.array([state["node_count"] for state in states], dtype=np.int64)
        self.depths = np.array([state["max_depth"] for state in states], dtype=np.int64)
        nodes = np.concatenate([state["nodes"] for state in states])
        self.columns = {name: nodes[name].astype(dtype) for name, dtype in COLUMNS.items()}
        self.values = np.concatenate([state["values"] for state in states])

    def unpack(self) -> Any:
        """Return the forest with its trees; refuse arrays that do not belong together."""
        is_forest = type(self.forest).__name__ in FORESTS and type(self.tree).__name__ in TREES
        if not is_forest:
            raise DamagedPartError("its forest is of another kind", part="forest")
        counts = self.counts
        sizes = {len(self.seeds), len(counts), len(self.depths)}
        lengths = {len(each) for each in self.columns.values()} | {len(self.values)}
        whole = len(sizes) == 1 and counts.min(initial=1) > 0 and lengths == {counts.sum()}
        if not whole or self.columns.keys() != COLUMNS.keys():
            raise DamagedPartError("its forest states another number of trees", part="forest")
        ends = np.cumsum(counts)
        forest = self.forest
        forest.estimators_ = [
            self._tree(place, slice(end - count, end))
            for place, (count, end) in enumerate(zip(counts.tolist(), ends.tolist(), strict=True))
        ]
        return forest

    def _tree(self, place: int, rows: slice) -> Any:
        from sklearn.tree._tree import NODE_DTYPE, Tree

        nodes = np.zeros(int(self.counts[place]), dtype=NODE_DTYPE)
        for name, column in self.columns.items():
            nodes[name] = column[rows]
        tree = copy.copy(self.tree)
        tree.random_state = int(self.seeds[place])
        tree.tree_ = Tree(self.features, self.classes.astype(np.intp), self.outputs)
        # It checks the types and the shapes of the arrays.
        tree.tree_.__setstate__(
            {
                "max_depth": int(self.depths[place]),
                "node_count": int(self.counts[place]),
                "nodes": nodes,
                "values": np.ascontiguousarray(self.values[rows]),
            }
        )
        return tree


def pack_forests(value: Any) -> Any:
    """Return a list or a fitted pipeline with its forests packed; the argument stays as it is."""
    if isinstance(value, list | tuple):
        return type(value)(pack_forests(each) for each in value)
    if type(value).__name__ in FORESTS and _are_alike(getattr(value, "estimators_", [])):
        return PackedForest(value)
    for name in _HOLDERS.get(type(value).__name__, ()):
        value = copy.copy(value)
        setattr(value, name, pack_forests(getattr(value, name)))
    return value


def unpack_forests(value: Any) -> Any:
    """Return the same with its forests unpacked."""
    if isinstance(value, list | tuple):
        return type(value)(unpack_forests(each) for each in value)
    if isinstance(value, PackedForest):
        return value.unpack()
    for name in _HOLDERS.get(type(value).__name__, ()):
        setattr(value, name, unpack_forests(getattr(value, name)))
    return value


_HOLDERS = {"Pipeline": ("steps",), "FoldAverage": ("pipelines",)}
"""For each type that holds others, the attributes with them."""


def _are_alike(trees: list[Any]) -> bool:
    """Return whether there are trees that differ only in their nodes and seeds."""
    if not trees:
        return False
    first = _select_shared_state(trees[0])
    return all(
        each.keys() == first.keys() and all(_equal(each[name], first[name]) for name in first)
        for each in map(_select_shared_state, trees)
    ) and all(isinstance(each.random_state, int | np.integer) for each in trees)


def _select_shared_state(tree: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(tree).items() if name not in OWN}


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)
