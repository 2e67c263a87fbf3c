"""Checks the bytes in which XGBoost stores its trees, before XGBoost's parser reads them.

The parser is compiled code and trusts the positions that it reads. This module accepts only the
form that XGBoost writes for the models that Foretune fits: trees with one number in each leaf,
splits by numbers or by sets of categories, and one of three objectives.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from foretune.automl.final_model.damaged_part import DamagedPartError
from foretune.automl.final_model.ubjson import decode

OBJECTIVES = {
    "reg:squarederror": "reg_loss_param",
    "binary:logistic": "reg_loss_param",
    "multi:softprob": "softmax_multiclass_param",
}
"""The name of each objective, and the entry that holds its parameters."""
NUMBERS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")
POSITIONS = ("left_children", "right_children", "parents", "split_indices")
FLAGS = ("default_left", "split_type")
CATEGORY_LISTS = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
MOST_CATEGORIES = 2**24
"""XGBoost's own limit for the codes of categories."""
ROOT = 2**31 - 1
"""The number that XGBoost writes as the parent of the first node."""
MOST_COLUMNS = 2**20
MOST_THREADS = 256
LONGEST = 2**16
"""The most characters of a setting. Newer versions store the state of their random numbers as one
text."""


def check_xgboost(content: bytes) -> None:
    """Raise DamagedPartError unless XGBoost writes such bytes for a model of plain splits."""
    document = decode(content)
    try:
        model, config = document["Model"]["learner"], document["Config"]["learner"]
        _check_model(model)
        _check_settings(document["Config"], config, model)
        _require(set(document) == {"Model", "Config"}, "has other parts than a model")
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DamagedPartError("the bytes of its booster are not whole") from error


def _check_model(learner: Mapping[str, Any]) -> None:
    known = {"attributes", "feature_names", "feature_types", "gradient_booster",
             "learner_model_param", "objective"}  # fmt: skip
    booster, about = learner["gradient_booster"], learner["learner_model_param"]
    _require(set(learner) <= known, "has other parts than a model")
    for name, value in learner["attributes"].items():
        _require(name == "best_iteration" and _whole(value) >= 0, "has other parts than a model")
    _require(set(booster) == {"model", "name"} and booster["name"] == "gbtree", "is of other kind")
    _require(_is_empty(learner.get("feature_names", [])), "names its columns")
    columns, classes = _whole(about["num_feature"]), _whole(about["num_class"])
    kinds = learner.get("feature_types", [])
    _require(_is_empty(kinds) or len(kinds) == columns, "states another number of columns")
    _require(all(kind in ("q", "c") for kind in kinds), "has columns of another kind")
    _require(1 <= columns <= MOST_COLUMNS, "states another number of columns")
    _require(_whole(about.get("num_target", "1")) == 1, "has several targets")
    groups = max(1, classes)
    base = json.loads(about["base_score"])
    scores = base if isinstance(base, list) else [base]
    _require(len(scores) in (1, groups) and all(map(_is_finite, scores)), "begins with no number")
    _check_objective(learner["objective"], classes)
    _check_trees(booster["model"], columns, groups)


def _check_objective(objective: Mapping[str, Any], classes: int) -> None:
    place = OBJECTIVES.get(objective["name"], "")
    _require(place != "" and set(objective) == {"name", place}, "has another objective")
    is_of_classes = place == "softmax_multiclass_param"
    _require((classes >= 2) == is_of_classes, "states other classes")
    if is_of_classes:
        _require(_whole(objective[place]["num_class"]) == classes, "states other classes")


def _check_trees(model: Mapping[str, Any], columns: int, groups: int) -> None:
    known = {"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees"}
    trees, about = model["trees"], model["gbtree_model_param"]
    _require(set(model) <= known and isinstance(trees, list), "has other parts than trees")
    _require(all(map(_is_empty, model.get("cats", {}).values())), "has categories")
    _require(_whole(about["num_trees"]) == len(trees), "has another number of trees than it states")
    _require(_whole(about["num_parallel_tree"]) == 1, "has several trees a round")
    rounds, rest = divmod(len(trees), groups)
    _require(rounds >= 1 and rest == 0, "has another number of trees than it states")
    of_groups = [*range(groups)] * rounds
    _require([int(each) for each in model["tree_info"]] == of_groups, "mixes up its classes")
    ends = [int(each) for each in model.get("iteration_indptr", range(0, len(trees) + 1, groups))]
    _require(ends == [*range(0, len(trees) + 1, groups)], "mixes up its rounds")
    for number, tree in enumerate(trees):
        _require(tree["id"] == number, "mixes up its trees")
        _check_tree(tree, columns)


def _check_tree(tree: Mapping[str, Any], columns: int) -> None:
    known = {"id", "tree_param", *NUMBERS, *POSITIONS, *FLAGS, *CATEGORY_LISTS}
    about = {name: _whole(value) for name, value in tree["tree_param"].items()}
    _require(set(tree) == known, "has a tree of another kind")
    sizes = {len(tree[name]) for name in (*NUMBERS, *POSITIONS, *FLAGS)}
    _require(sizes == {about["num_nodes"]}, "has a tree whose lists have other lengths")
    _require(about["num_feature"] == columns, "has a tree for other columns")
    plain = about["num_deleted"] == 0 and about["size_leaf_vector"] in (0, 1)
    _require(plain, "has a tree of another kind")
    for name in (*NUMBERS, *POSITIONS, *FLAGS):
        kind = "f" if name in NUMBERS else "iu"
        _require(tree[name].ndim == 1 and tree[name].dtype.kind in kind, "mixes up its numbers")
        _require(
            kind != "f" or bool(np.isfinite(tree[name]).all()),
            "predicts no finite numbers",
        )
    _require(bool((tree["split_type"] <= 1).all()), "has a split of another kind")
    _check_categories(tree)
    _require(bool((tree["default_left"] <= 1).all()), "has a split of another kind")
    _check_positions(tree, columns)


def _check_categories(tree: Mapping[str, Any]) -> None:
    """Check that each split by a set of categories has its set, one after the other."""
    for name in CATEGORY_LISTS:
        plain = _is_empty(tree[name]) or (tree[name].ndim == 1 and tree[name].dtype.kind in "iu")
        _require(plain, "mixes up its numbers")
    codes, nodes, begins, sizes = (
        np.asarray(tree[name], dtype=np.int64) for name in CATEGORY_LISTS
    )
    by_set = np.flatnonzero(tree["split_type"])
    _require(bool(np.array_equal(nodes, by_set)), "has sets of categories for other splits")
    _require(bool((np.asarray(tree["left_children"])[by_set] != -1).all()), "has a leaf with a set")
    _require(len(begins) == len(sizes) == len(nodes) and bool((sizes >= 1).all()), "lacks a set")
    _require(bool(np.array_equal(begins, np.cumsum(sizes) - sizes)), "mixes up its sets")
    _require(len(codes) == sizes.sum(), "has sets of categories of other sizes")
    _require(bool(((codes >= 0) & (codes < MOST_CATEGORIES)).all()), "has another category")


def _check_positions(tree: Mapping[str, Any], columns: int) -> None:
    left, right, parents, split = (tree[name].astype(np.int64) for name in POSITIONS)
    count = len(left)
    inner = np.flatnonzero(left != -1)
    _require(bool(((left == -1) == (right == -1)).all()), "has a branch to a missing node")
    children = np.concatenate([left[inner], right[inner]])
    own = np.concatenate([inner, inner])
    # Every node except the first is the child of exactly one earlier node.
    _require(bool(np.array_equal(np.sort(children), np.arange(1, count))), "leads nowhere")
    _require(bool((children > own).all()), "has a branch to an earlier node")
    _require(bool((parents[children] == own).all()), "has a tree with a branch to an earlier node")
    _require(int(parents[0]) in (ROOT, -1), "has a tree with a branch to an earlier node")
    _require(bool(((split >= 0) & (split < columns)).all()), "splits a column that does not exist")


def _check_settings(
    whole: Mapping[str, Any], config: Mapping[str, Any], model: Mapping[str, Any]
) -> None:
    """Check the settings beside the trees: the same objective, and few threads.

    Newer versions add settings, so an unknown setting may hold any plain value.
    """
    _require(config["objective"] == model["objective"], "has two objectives")
    about = config.get("learner_model_param", model["learner_model_param"])
    _require(about == model["learner_model_param"], "contradicts itself")
    settings = config["generic_param"]
    _require(settings.get("device", "cpu") == "cpu", "needs another device")
    for name in ("n_jobs", "nthread"):
        _require(0 <= _whole(settings.get(name, "1")) <= MOST_THREADS, "wants too many threads")
    booster = config["gradient_booster"]
    trees = model["gradient_booster"]["model"]["gbtree_model_param"]
    _require(booster["name"] == "gbtree", "is of other kind")
    _require(booster.get("gbtree_model_param", trees) == trees, "contradicts itself")
    for value in _leaves(whole):
        is_number = isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**31
        is_text = isinstance(value, str) and len(value) <= LONGEST and value.isprintable()
        sound = value is None or is_number or is_text
        _require(sound, "has a setting that is no plain number or text")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list | np.ndarray):
        for each in value:
            yield from _leaves(each.item() if isinstance(each, np.generic) else each)
    else:
        yield value


def _is_empty(value: Any) -> bool:
    return hasattr(value, "__len__") and len(value) == 0


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e38


def _whole(text: Any) -> int:
    """Return a whole number, which XGBoost writes as a text."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 9:
        _refuse("has a value that is no whole number")
    return int(text)


def _require(sound: bool, otherwise: str) -> None:
    if not sound:
        _refuse(otherwise)


def _refuse(what: str) -> NoReturn:
    raise DamagedPartError(f"its booster {what}")
