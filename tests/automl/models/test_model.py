import io
import json
import pickle
import re
import tracemalloc
import zipfile
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from foretune.automl.estimators.fitted_pipeline import Member, refit
from foretune.automl.final_model.model import Model
from foretune.automl.final_model.model_file import (
    DESCRIPTION,
    ENTRY,
    LARGEST,
    read_header,
    read_model,
    size_in_file,
)
from foretune.automl.spaces import SPACES, load_shipped_space
from foretune.errors import UsageError
from foretune.tables.schema import Schema
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.automl.samples import mixed_frame, mixed_table
from tests.refusals import refuses

pytest.importorskip("skops")

CASES = [(name, algorithm) for name, space in SPACES.items() for algorithm in space.algorithms()]
SMALL = {"n_estimators": 4, "max_iter": 4, "C": 1.0, "units_1": 16, "units_2": 32, "units_3": 8}
"""Enough to have every type in the file."""


def configs(name, algorithm, n):
    """Different ones of an algorithm, made small."""
    for config in (
        load_shipped_space(name).build([algorithm]).sample(n, seed=5, how="sobol").dicts()
    ):
        yield {
            key: min(value, SMALL.get(key.rsplit(":", maxsplit=1)[-1], value))
            if isinstance(value, int | float)
            else value
            for key, value in config.items()
        }


def model_of(config, table, **given):
    settings = {"target": "class", "metric": "accuracy", **given}
    return Model.of(table, [refit(config, table, seed=0)], **settings)


@cache
def binary_table():
    frame = mixed_frame(60).drop(columns=["class", "letter", "town"])
    frame["high"] = frame.pop("amount") > 0
    return Table.of(frame, "high")


@pytest.fixture
def saved(tmp_path):
    table = mixed_table(Task.CLASSIFICATION, n=60)
    [config] = configs("pipeline-classification", "rf", 1)
    path = tmp_path / "m.foretune"
    model_of(config, table).save(path)
    return path


def test_shares_let_a_rare_class_be_found(tmp_path):
    table = binary_table()
    [config] = configs("pipeline-classification", "logistic", 1)
    plain = model_of(config, table, target="high")
    rare = model_of(config, table, target="high", shares=(0.9, 0.1))
    x = table.x
    certain = rare.probabilities(x)
    np.testing.assert_array_equal(certain, plain.probabilities(x))
    # The second class is chosen from a tenth on, where it is at its share.
    np.testing.assert_array_equal(rare.predict_rows(x), rare.labels[(certain[:, 1] > 0.1) * 1])
    assert (rare.predict_rows(x) != plain.predict_rows(x)).any()
    rare.save(tmp_path / "m.foretune")
    again = Model.open(tmp_path / "m.foretune")
    np.testing.assert_array_equal(again.predict_rows(x), rare.predict_rows(x))


@pytest.mark.parametrize("shares", [(0.5,), (1.0, 0.0)])
def test_shares_that_do_not_fit_the_classes_are_refused(tmp_path, shares):
    [config] = configs("pipeline-classification", "logistic", 1)
    model_of(config, binary_table(), target="high", shares=shares).save(tmp_path / "m.foretune")
    with refuses("unusable-model"):
        Model.open(tmp_path / "m.foretune")


@pytest.mark.parametrize(("name", "algorithm"), CASES)
def test_every_algorithm_comes_back_bit_for_bit(tmp_path, name, algorithm):
    task = load_shipped_space(name).task
    tables = [mixed_table(task, n=60)] * 2
    if task is Task.CLASSIFICATION:
        tables[0] = binary_table()
    for config, table in zip(configs(name, algorithm, 2), tables, strict=True):
        model = model_of(config, table)
        model.save(tmp_path / "m.foretune")
        back = Model.open(tmp_path / "m.foretune")
        np.testing.assert_array_equal(back.predict_rows(table.x), model.predict_rows(table.x))
        if task is Task.CLASSIFICATION:
            shares = model.probabilities(table.x)
            np.testing.assert_array_equal(back.probabilities(table.x), shares)
            np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6)


def test_everything_else_comes_back(tmp_path):
    table = mixed_table(Task.CLASSIFICATION, n=60)
    [config] = configs("cash", "gaussian_nb", 1)
    about = {"note": "ä", "numbers": [1, 2.5, None]}
    model = model_of(config, table, target="class", metric="log_loss", about=about)
    model.save(tmp_path / "m.foretune")
    back = Model.open(str(tmp_path / "m.foretune"))
    frame = mixed_frame(20, seed=1)
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(back.predict_proba(frame), model.predict_proba(frame))
    assert (back.schema, back.task, back.target, back.classes) == (
        table.schema,
        Task.CLASSIFICATION,
        "class",
        ("high", "low", "middle"),
    )
    assert (back.metric, back.about, back.members[0].config) == ("log_loss", about, config)
    assert [path.name for path in tmp_path.iterdir()] == ["m.foretune"]


class Says:
    """A pipeline that always says the same."""

    n_features_in_ = 1

    def __init__(self, shares):
        self.shares = np.array(shares)

    def predict(self, x):
        shares = np.broadcast_to(self.shares, (len(x), *self.shares.shape))
        return shares.argmax(axis=1) if self.shares.ndim else shares

    def predict_proba(self, x):
        return np.broadcast_to(self.shares, (len(x), len(self.shares)))


def test_blends_by_hand():
    frame = mixed_frame(12)
    regression = mixed_table(Task.REGRESSION, n=12)
    members = [Member({}, Says(1.0), weight=1.0), Member({}, Says(4.0), weight=2.0)]
    model = Model.of(regression, members, target="amount", metric="r2")
    assert model.predict(frame).tolist() == [3.0] * 12
    table = mixed_table(Task.CLASSIFICATION, n=12)
    members = [
        Member({}, Says([0.9, 0.1]), known=(0, 2), weight=1.0),
        Member({}, Says([0.2, 0.3, 0.5]), known=(0, 1, 2), weight=3.0),
    ]
    model = Model.of(table, members, target="class", metric="accuracy")
    np.testing.assert_allclose(model.predict_proba(frame)[0], [1.5 / 4, 0.9 / 4, 1.6 / 4])
    assert model.predict(frame).tolist() == ["middle"] * 12


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([10, 2, 1], np.int64),
        ([True, False, True], np.bool_),
        ([0.5, -1.0, 2.0], np.float64),
        (["b", "a", "10"], np.str_),
    ],
)
def test_labels_are_what_they_were(tmp_path, labels, expected):
    x = np.tile([0.0, 5.0, 9.0], 10) + np.linspace(0, 0.1, 30) ** 2
    frame = pd.DataFrame({"x": x, "y": labels * 10})
    table = Table.of(frame, "y", task=Task.CLASSIFICATION)
    assert list(table.label_kind.labels(table.classes)) == sorted(set(labels))
    [config] = configs("cash", "knn", 1)
    config |= {"algorithm:knn:n_neighbors": 3}
    model = model_of(config, table, target="y")
    model.save(tmp_path / "m.foretune")
    predicted = Model.open(tmp_path / "m.foretune").predict(frame)
    assert np.issubdtype(predicted.dtype, expected)
    assert predicted.tolist() == labels * 10


def test_new_tables_may_look_different():
    table = mixed_table(Task.CLASSIFICATION, n=60)
    [config] = configs("pipeline-classification", "extra_trees", 1)
    model = model_of(config, table)
    frame = mixed_frame(60)
    expected = model.predict_proba(frame)
    texts = frame.astype({"number": str, "gaps": object, "member": int})[frame.columns[::-1]]
    np.testing.assert_array_equal(model.predict_proba(texts.assign(more=1)), expected)
    unknown, missing = frame.assign(letter="new"), frame.assign(letter=None)
    np.testing.assert_array_equal(model.predict_proba(unknown), model.predict_proba(missing))
    with refuses("missing-features", value=["number", "letter"]):
        model.predict(frame.drop(columns=["letter", "number"]))
    assert model.predict(frame.iloc[:0]).shape == (0,)


def test_mistakes(tmp_path):
    table = mixed_table(Task.REGRESSION, n=60)
    [config] = configs("pipeline-regression", "elastic_net", 1)
    model = model_of(config, table)
    with refuses("probabilities-of-numbers", field="class"):
        model.predict_proba(mixed_frame())
    with refuses("header-not-json"):
        model_of(config, table, about={"x": float("nan")}).save(tmp_path / "m.foretune")
    for weights in ([], [0.0], [float("nan")]):
        with refuses("member-weight"):
            Model.of(table, [Member({}, None, (), w) for w in weights], target="y", metric="r2")
    assert list(tmp_path.iterdir()) == []


class Runs:
    def __reduce__(self):
        return (print, ("this must never be seen",))


BAD_BYTES = {
    "empty": b"",
    "random": np.random.default_rng(0).bytes(5000),
    "pickle": pickle.dumps({"model": Runs()}),
    "text": b"PK\x03\x04 is how archives begin",
}


@pytest.mark.parametrize("content", BAD_BYTES.values(), ids=BAD_BYTES)
def test_files_that_are_no_models(tmp_path, content, capsys):
    path = tmp_path / "m.foretune"
    path.write_bytes(content)
    with refuses("not-a-model"):
        Model.open(path)
    assert capsys.readouterr().out == ""


def test_missing_files_and_folders(tmp_path):
    with refuses("not-a-model") as caught:
        Model.open(tmp_path / "no.foretune")
    assert "does not exist" in str(caught.value)
    with refuses("not-a-model") as caught:
        Model.open(tmp_path)
    assert "is a folder" in str(caught.value)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
def test_truncated_and_altered_files(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with refuses("not-a-model"):
        Model.open(saved)
    at = int(share * len(content) * 0.5)
    saved.write_bytes(content[:at] + bytes(40) + content[at + 40 :])
    with refuses("not-a-model"):
        Model.open(saved)


def rewritten(path, changes, more=()):
    """The file with some of its entries changed or added."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for name, change in changes.items():
        entries[name] = change(entries[name])
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in [*entries.items(), *more]:
            archive.writestr(name, data)
    path.write_bytes(content.getvalue())


def header(**changes):
    return lambda text: json.dumps(json.loads(text) | changes).encode()


def about(**changes):
    def change(text):
        told = json.loads(text)
        told["model"] |= changes
        return json.dumps(told).encode()

    return change


def without(*names):
    def change(text):
        told = json.loads(text)
        for name in names:
            del told["model"][name]
        return json.dumps(told).encode()

    return change


def test_models_of_earlier_releases_are_read(saved):
    """They do not say what was added since."""
    expected = Model.open(saved).predict(mixed_frame())
    rewritten(saved, {ENTRY: without("target_decimal", "shares")})
    np.testing.assert_array_equal(Model.open(saved).predict(mixed_frame()), expected)


def test_models_with_the_dates_of_earlier_releases_predict_as_before(tmp_path):
    frame = mixed_frame(60)
    now = mixed_table(Task.CLASSIFICATION, n=60)
    plain = [{n: v for n, v in each.items() if n != "date_parts"} for each in now.schema.to_list()]
    schema = Schema.from_list(plain)
    assert len(schema.features) == len(now.schema.features) - 2
    then = replace(now, schema=schema, x=schema.encode(frame))
    [config] = configs("pipeline-classification", "rf", 1)
    model = model_of(config, then)
    model.save(tmp_path / "m.foretune")
    # Nothing in the file is newer than those releases.
    told = json.loads(zipfile.ZipFile(tmp_path / "m.foretune").read(ENTRY))
    assert told["model"]["columns"] == json.loads(json.dumps(plain))
    back = Model.open(tmp_path / "m.foretune")
    assert back.schema == schema
    np.testing.assert_array_equal(back.predict_proba(frame), model.predict_proba(frame))


MEMBER = {"config": {}, "known": [0, 1, 2], "weight": 1.0}
BAD_HEADERS = {
    "another kind": (header(kind="cake"), "says that it is 'cake'"),
    "a newer version": (header(version=99), "has version 99"),
    "no version": (header(version=None), "has no name of its format"),
    "not JSON": (lambda text: text[:-5], "damaged"),
    "NaN": (lambda text: text.replace(b'"weight": 1.0', b'"weight": NaN'), "damaged"),
    "infinity": (lambda text: text.replace(b'"weight": 1.0', b'"weight": 1e999'), "weights"),
    "deep": (lambda _: b"[" * 100_000, "damaged"),
    "no members": (about(members=[]), "not"),
    "two members": (about(members=[MEMBER, MEMBER]), "not"),
    "a class too many": (about(members=[MEMBER | {"known": [0, 1, 7]}]), "knows the classes"),
    "another task": (about(task="regression"), "another task"),
    "no task": (about(task="cake"), "cake"),
    "fewer columns": (about(columns=[]), "columns"),
    "a strange mark": (about(target_decimal=";"), "mark of fractions"),
    "equal classes": (about(classes=["a", "a", "b"]), "told apart"),
    "a strange date": (
        about(columns=[{"name": "d", "kind": "date", "categories": [], "date_format": "%Q"}]),
        "%Q",
    ),
}


@pytest.mark.parametrize(("change", "said"), BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_the_header_of_a_file_must_fit_its_contents(saved, change, said):
    rewritten(saved, {ENTRY: change})
    with pytest.raises(UsageError) as caught:
        Model.open(saved)
    assert re.search(said, str(caught.value))
    assert "\n" not in str(caught.value)


def replaced(old, new):
    def change(text):
        assert old in text
        return text.replace(old, new)

    return change


FOREST = b'"RandomForestClassifier"'
BAD_DESCRIPTIONS = {
    "a function": (replaced(FOREST, b'"system"'), "system"),
    "another estimator": (replaced(FOREST, b'"VotingClassifier"'), "VotingClassifier"),
    "another loader": (replaced(b'"ObjectNode"', b'"MethodNode"'), "'MethodNode'"),
    "an escape": (replaced(FOREST, b'"\\u001b[2J"'), r"\?\[2J"),
    "an old protocol": (replaced(b'"protocol": 2', b'"protocol": 0'), "no model is"),
    "no file": (replaced(b'.npy"', b'.npz"'), "cannot be read"),
    "a list": (lambda _: b"[]", "no model is"),
}


@pytest.mark.parametrize(("change", "said"), BAD_DESCRIPTIONS.values(), ids=BAD_DESCRIPTIONS)
def test_objects_of_other_kinds_are_refused(saved, change, said):
    rewritten(saved, {DESCRIPTION: change})
    with pytest.raises(UsageError) as caught:
        Model.open(saved)
    assert re.search(said, str(caught.value))
    assert str(caught.value).isprintable()


def test_names_that_lead_elsewhere_and_entries_that_come_twice(saved):
    content = saved.read_bytes()
    for name in ("../../etc/passwd", "/tmp/x.npy", "x/0.npy", "C:\\x.npy", "0.npy.exe"):
        saved.write_bytes(content)
        rewritten(saved, {}, [(name, b"x")])
        with refuses("not-a-model") as caught:
            Model.open(saved)
        assert "entries that no model has" in str(caught.value)
    saved.write_bytes(content)
    with pytest.warns(UserWarning, match="Duplicate name"):
        rewritten(saved, {}, [(ENTRY, b"{}")])
    with refuses("not-a-model") as caught:
        Model.open(saved)
    assert "entries that no model has" in str(caught.value)


def test_a_file_that_is_too_large_when_unpacked_is_refused(saved):
    rewritten(saved, {ENTRY: lambda text: text + b" " * 1_000_000})
    assert saved.stat().st_size < 300_000
    _refuse_size(saved, LARGEST._replace(text=1_000_000), "is larger, when unpacked")
    rewritten(saved, {ENTRY: bytes.rstrip})
    _refuse_size(
        saved, LARGEST._replace(whole=saved.stat().st_size + 1), "is larger, when unpacked"
    )
    _refuse_size(saved, LARGEST._replace(whole=1), "is larger than a model can be")


def _refuse_size(path, largest, value):
    with refuses("not-a-model") as caught:
        read_model(path, largest)
    assert caught.value.value.startswith(value)


@pytest.mark.parametrize("task", list(Task))
def test_a_blend_is_the_mean_by_weight(task):
    table = mixed_table(task)
    space = f"pipeline-{task}"
    members = [
        replace(refit(next(iter(configs(space, name, 1))), table, seed=0), weight=weight)
        for name, weight in (("knn", 2.0), ("rf", 0.5), ("mlp", 1.0))
    ]
    model = Model.of(table, members, target="y", metric="r2")
    if task is Task.REGRESSION:
        each = [member.predict(table.x) for member in members]
        expected = np.average(each, axis=0, weights=[2.0, 0.5, 1.0])
        np.testing.assert_allclose(model.predict_rows(table.x), expected)
        return
    each = [member.probabilities(table.x, len(table.classes)) for member in members]
    certain = np.average(each, axis=0, weights=[2.0, 0.5, 1.0])
    np.testing.assert_allclose(model.probabilities(table.x), certain)
    labels = np.array(table.classes)[certain.argmax(axis=1)]
    assert model.predict_rows(table.x).tolist() == labels.tolist()
    assert model.predict_rows(table.x, certain).tolist() == labels.tolist()


def test_measuring_the_size_of_a_pipeline_takes_its_memory_once():
    parts = [np.zeros(2**17) for _ in range(32)]
    size_in_file(parts)  # imports what it needs
    tracemalloc.start()
    try:
        size_in_file(parts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * sum(part.nbytes for part in parts)


def test_an_archive_of_a_version_to_come_is_refused(saved):
    content = saved.read_bytes()
    place = content.index(b"PK\x01\x02") + 6  # which version of ZIP is needed to unpack
    saved.write_bytes(content[:place] + (65).to_bytes(2, "little") + content[place + 2 :])
    for read in (Model.open, read_header):
        with refuses("not-a-model"):
            read(saved)
