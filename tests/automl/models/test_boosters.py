"""Altered bytes of XGBoost and CatBoost models are refused before their readers see them."""

import io
import json
import os
import zipfile
from random import Random

import numpy as np
import pytest

from foretune.automl.final_model.booster_catboost import check_catboost
from foretune.automl.final_model.booster_xgboost import check_xgboost
from foretune.automl.final_model.boosters import check_boosters
from foretune.automl.final_model.damaged_part import DamagedPartError
from foretune.automl.final_model.flatbuffer import root
from foretune.automl.final_model.model_file import (
    UnknownFormatError,
    read_model,
    size_in_file,
    write_model,
)
from foretune.automl.final_model.ubjson import decode
from tests.hostile.mutations import spoilt_binary

MUTATIONS = 150
COLUMNS = 5
KINDS = ("regression", "binary", "multiclass")
LIBRARIES = {"xgboost": check_xgboost, "catboost": check_catboost}


def fitted(library, kind, **settings):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, COLUMNS))
    x[::9, 1] = np.nan
    y = {"regression": np.sin(x[:, 0]) * x[:, 2], "binary": (x[:, 0] > 0).astype(int)}.get(
        kind, np.arange(150) % 3
    )
    package = pytest.importorskip(library)
    names = {"xgboost": ("XGBRegressor", "XGBClassifier")}
    regressor, classifier = names.get(library, ("CatBoostRegressor", "CatBoostClassifier"))
    threads = {"xgboost": {"n_jobs": 1}}.get(
        library, {"thread_count": 1, "verbose": False, "allow_writing_files": False}
    )
    make = getattr(package, regressor if kind == "regression" else classifier)
    return make(n_estimators=5, max_depth=3, **threads, **settings).fit(x, y)


def bytes_of(model):
    if hasattr(model, "get_booster"):
        return bytes(model.get_booster().__getstate__()["handle"])
    return model._serialize_model()


def predict(library, kind, content):
    """Load the bytes as reading a model file does, and predict with them."""
    rows = np.zeros((3, COLUMNS))
    if library == "xgboost":
        import xgboost

        booster = xgboost.Booster.__new__(xgboost.Booster)
        booster.__setstate__({"handle": bytearray(content)})
        booster.predict(xgboost.DMatrix(rows, nthread=1))
        return
    import catboost

    name = "CatBoostRegressor" if kind == "regression" else "CatBoostClassifier"
    model = getattr(catboost, name)()
    model.__setstate__({"__model": content})
    model.predict(rows, thread_count=1)


def survives(*given):
    """Whether a child that loads and predicts ends as it should; errors are no harm."""
    child = os.fork()
    if child == 0:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            predict(*given)
        except Exception:
            os._exit(0)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_texts_of_the_library_are_accepted(library, kind):
    LIBRARIES[library](bytes_of(fitted(library, kind)))


def test_a_model_without_splits_is_taken():
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(np.zeros((40, 2)), np.zeros(40))
    check_xgboost(bytes_of(model))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"num_featureSL\x00\x00\x00\x00\x00\x00\x00\x015", b"9"),
        (b"num_treesSL\x00\x00\x00\x00\x00\x00\x00\x015", b"9"),
        (b"num_nodesSL\x00\x00\x00\x00\x00\x00\x00\x01", b"1"),
        (b"nthreadSL\x00\x00\x00\x00\x00\x00\x00\x011", b"x"),
        (b"reg_loss_param", b"k"),
        (b"left_children[$l#L\x00", b"\x7f"),
        (b"split_indices[$l#L\x00\x00\x00\x00\x00\x00\x00", b"\x01"),
    ],
)
def test_xgboost_that_leads_out_of_its_lists_is_refused(old, new):
    content = bytes_of(fitted("xgboost", "binary"))
    assert old in content
    spoilt = content.replace(old, old[:-1] + new, 1)
    with pytest.raises(DamagedPartError):
        check_xgboost(spoilt)


@pytest.mark.parametrize(
    ("name", "value"),
    [("left_children", 0), ("right_children", 2**20), ("split_indices", COLUMNS), ("parents", 3)],
)
def test_xgboost_positions_are_checked_one_by_one(name, value):
    content = bytes_of(fitted("xgboost", "regression"))
    [tree, *_] = decode(content)["Model"]["learner"]["gradient_booster"]["model"]["trees"]
    assert tree["left_children"][0] == 1
    place = content.index(name.encode() + b"[$l#L") + len(name) + 5 + 8
    # The second number, of a node that has children or is a leaf.
    spoilt = content[: place + 4] + value.to_bytes(4, "big") + content[place + 8 :]
    with pytest.raises(DamagedPartError):
        check_xgboost(spoilt)


def with_categories():
    xgboost = pytest.importorskip("xgboost")
    x = np.random.default_rng(0).normal(size=(300, 2))
    x[:, 1] = np.arange(300) % 12
    y = (np.arange(300) % 12 % 3 == 0).astype(int)
    model = xgboost.XGBClassifier(
        n_estimators=3,
        max_depth=2,
        feature_types=["q", "c"],
        enable_categorical=True,
        max_cat_to_onehot=1,
        n_jobs=1,
    )
    return bytes_of(model.fit(x, y))


def test_xgboost_with_sets_of_categories_is_taken():
    content = with_categories()
    [tree, *_] = decode(content)["Model"]["learner"]["gradient_booster"]["model"]["trees"]
    assert tree["split_type"].any()
    check_xgboost(content)


@pytest.mark.parametrize(
    ("name", "width", "value"),
    [
        ("categories", 4, 2**30),
        ("categories_nodes", 4, 1),
        ("categories_segments", 8, 5),
        ("categories_sizes", 8, 99),
    ],
)
def test_sets_of_categories_that_lead_out_of_their_lists_are_refused(name, width, value):
    content = with_categories()
    key = name.encode() + (b"[$l#L" if width == 4 else b"[$L#L")
    place = content.index(key) + len(key) + 8
    spoilt = content[:place] + value.to_bytes(width, "big") + content[place + width :]
    with pytest.raises(DamagedPartError):
        check_xgboost(spoilt)


@pytest.mark.parametrize(
    ("field", "position", "value"),
    [(1, 0, 10_000), (1, 0, -1), (2, 0, 40), (2, 1, 2), (3, 1, 0), (17, 0, 77)],
)
def test_catboost_that_leads_out_of_its_lists_is_refused(field, position, value):
    content = bytes_of(fitted("catboost", "binary"))
    trees = root(content[8:]).table(1)
    place = 8 + trees._target(field) + 4 + 4 * position
    spoilt = content[:place] + value.to_bytes(4, "little", signed=True) + content[place + 4 :]
    assert spoilt != content
    with pytest.raises(DamagedPartError):
        check_catboost(spoilt)


@pytest.mark.parametrize("field", [1, 2, 3, 8, 9, 16, 17])
def test_catboost_with_a_list_of_another_length_is_refused(field):
    content = bytes_of(fitted("catboost", "multiclass"))
    place = 8 + root(content[8:]).table(1)._target(field)
    count = int.from_bytes(content[place : place + 4], "little")
    for other in (count - 1, 2**31):
        spoilt = content[:place] + other.to_bytes(4, "little") + content[place + 4 :]
        with pytest.raises(DamagedPartError):
            check_catboost(spoilt)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"class_to_label":[0,1,2]', b'"class_to_label":[0,9,2]'),  # ends the process
        (b'"class_names":[0,1,2]', b'"class_names":[7,1,2]'),
        (b'"class_to_label":[0,1,2]', b'"class_to_label":[0,1  ]'),
        (b'{"classes_count"', b'[[[[lasses_count"'),
    ],
)
def test_catboost_with_other_classes_is_refused(old, new):
    content = bytes_of(fitted("catboost", "multiclass"))
    assert old in content
    changed = content.replace(old, new)
    with pytest.raises(DamagedPartError):
        check_catboost(changed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_altered_bytes_that_are_taken_do_no_harm(library, kind):
    whole, refused = bytes_of(fitted(library, kind)), 0
    for seed in range(MUTATIONS):
        content = spoilt_binary(Random(f"{library}:{kind}:{seed}"), whole)
        try:
            LIBRARIES[library](content)
        except ValueError:
            refused += 1
            continue
        assert survives(library, kind, content), seed
    assert refused > MUTATIONS / 4


@pytest.mark.parametrize("level", ["handle", "state", "booster"])
def test_unchecked_bytes_cannot_replace_checked_ones(level):
    skops = pytest.importorskip("skops.io")
    model = fitted("xgboost", "binary")
    stream = io.BytesIO()
    skops.dump([model], stream)
    with zipfile.ZipFile(stream) as archive:
        description = json.loads(archive.read("schema.json"))
        check_boosters(description, archive.read)
        booster = description["content"][0]["content"]["content"]["_Booster"]
        nodes = {"booster": booster, "state": booster["content"]}
        nodes["handle"] = nodes["state"]["content"]["handle"]
        # skops makes objects of one number once, of whichever comes first.
        earlier = {**nodes[level], "__class__": "dict", "__module__": "builtins"}
        description["content"].insert(0, earlier)
        with pytest.raises(DamagedPartError):
            check_boosters(description, archive.read)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_written_files_can_be_read(tmp_path, library, kind):
    pytest.importorskip("skops")
    model, path = fitted(library, kind), tmp_path / "m.foretune"
    write_model(path, {}, [model])
    _, [read] = read_model(path)
    rows = np.zeros((3, COLUMNS))
    np.testing.assert_array_equal(read.predict(rows), model.predict(rows))


def text_of_ubjson(text):
    return b"L" + len(text).to_bytes(8, "big") + text


def with_setting(content, name, value):
    """The bytes with one more setting beside those of the objective's learner."""
    place = b"generic_param{"
    assert content.count(place) == 1
    return content.replace(place, place + text_of_ubjson(name) + value)


@pytest.mark.parametrize(
    "value", [b"S" + text_of_ubjson(b"0 1 1812433255 " * 500), b"Z", b"T", b"l\x00\x00\x00\x07"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_xgboost_may_have_settings_that_are_new(kind, value):
    """Newer versions keep the state of their random numbers, a text of 6,000 characters."""
    changed = with_setting(bytes_of(fitted("xgboost", kind)), b"new_setting", value)
    check_xgboost(changed)
    assert survives("xgboost", kind, changed)


def test_new_settings_of_xgboost_must_be_plain():
    changed = with_setting(
        bytes_of(fitted("xgboost", "binary")), b"new_setting", b"S" + text_of_ubjson(b"\x1b[2J")
    )
    with pytest.raises(DamagedPartError):
        check_xgboost(changed)


def test_a_model_that_could_not_be_opened_is_not_written(tmp_path):
    pytest.importorskip("skops")
    # Of a kind that Foretune does not fit, and reading refuses.
    model, path = fitted("xgboost", "binary", num_parallel_tree=2), tmp_path / "m.foretune"
    with pytest.raises(UnknownFormatError):
        write_model(path, {}, [model])
    with pytest.raises(UnknownFormatError):
        size_in_file(model)  # by which a fit leaves a pipeline out
    assert not list(tmp_path.iterdir())
