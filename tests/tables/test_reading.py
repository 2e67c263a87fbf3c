import json
import os
from datetime import time
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from foretune.errors import UsageError
from foretune.tables import reading
from foretune.tables.columns import ColumnKind
from foretune.tables.formats import reader
from foretune.tables.formats.reader import table_name
from foretune.tables.reading import read_sample, read_table, read_test_table
from foretune.tables.target import LabelKind, Task
from foretune_lab.collect.table_sources import sources
from tests.automl.samples import mixed_frame
from tests.refusals import refuses


def written(tmp_path, frame, name="t.csv", **how):
    frame.to_csv(tmp_path / name, index=False, **how)
    return tmp_path / name


def test_assumptions_are_shown(tmp_path):
    frame = mixed_frame().drop(columns="amount")
    frame.loc[[3, 4], "class"] = None
    frame.loc[5, "class"] = "odd"
    frame.loc[range(10, 15), "class"] = "five"
    frame.loc[6, "gaps"] = -np.inf
    frame.loc[7, "gaps"] = 8.98846567431158e307
    found = read_table(written(tmp_path, frame), "class")
    assert found.notes == [
        "90 rows; columns beside the target: 2 numbers, 1 boolean, 2 categories, 1 date.",
        "'class' is predicted as one of 5 classes (classification), because it does not hold "
        "numbers.",
        "Not used, text that differs in most rows, without words that help: 'note'.",
        "Not used, the numbers of the rows: 'row'.",
        "Not used, the same in every row: 'always'.",
        "Not used, no values: 'never'.",
        "Rows without a target, left out: 2 of 90.",
        "Values that are infinite or beyond 1e+30, read as missing: 2 in 'gaps'.",
        "Classes with fewer than 5 rows are hard to learn: 'odd'.",
    ]
    assert (found.facts.rows, found.facts.columns, found.facts.without_target) == (90, 10, 2)
    assert found.facts.kinds[ColumnKind.NUMBER] == 2
    assert found.table.name == "t"
    assert found.target == "class"


@pytest.mark.parametrize(
    ("values", "asked", "expected"),
    [
        ([1, 2, 3] * 10, None, "3 classes (classification), because it holds only 3 different"),
        ([1, 2, 3] * 10, "regression", "a number (regression), as asked"),
        (np.linspace(0, 1, 30), None, "a number (regression), because it holds 30 different"),
        ([True, False, False] * 10, None, "2 classes (classification), because it does not"),
    ],
)
def test_the_task_and_why(values, asked, expected):
    frame = pd.DataFrame({"x": np.arange(30.0) ** 2, "y": values})
    assert expected in read_table(frame, "y", task=asked).notes[1]


def test_whole_numbers_with_gaps_stay_whole(tmp_path):
    frame = pd.DataFrame({"x": np.arange(40.0) ** 2, "y": [1, 2, None, 3] * 10})
    table = read_table(written(tmp_path, frame), "y", task="classification").table
    assert table.classes == ("1", "2", "3")
    assert table.label_kind is LabelKind.INTEGER


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_encodings(tmp_path, encoding):
    frame = mixed_frame().assign(letter=lambda f: f["letter"] + "ö").drop(columns="amount")
    found = read_table(written(tmp_path, frame, encoding=encoding), "class")
    [column] = [each for each in found.table.schema.columns if each.name == "letter"]
    assert column.categories == ("xö", "yö", "zö")
    said = [note for note in found.notes if "UTF" in note]
    expected = {
        "latin-1": ["The file is not written in UTF-8 and was read as Windows-1252."],
        "utf-16": ["The file was read as UTF-16."],
        "utf-32": ["The file was read as UTF-32."],
    }
    assert said == expected.get(encoding, [])


def test_prices_in_euros_of_a_program_of_windows_are_numbers(tmp_path):
    prices = [f"{3 * i % 41},50 \u20ac" for i in range(60)]
    frame = pd.DataFrame({"price": prices, "y": ["a", "b", "c"] * 20})
    table = read_table(written(tmp_path, frame, sep=";", encoding="cp1252"), "y").table
    np.testing.assert_array_equal(table.x[:, 0], 3 * np.arange(60) % 41 + 0.5)


def test_every_byte_can_be_read(tmp_path):
    path = tmp_path / "t.csv"
    rows = b"\n".join(b"\x81%d,%d,%s" % (i % 2, 7 * i % 31, b"ab"[i % 2 :][:1]) for i in range(40))
    path.write_bytes(b"k,x,y\n" + rows)
    found = read_table(path, "y")
    assert found.table.schema.columns[0].categories == ("\x810", "\x811")
    assert "was read as Latin-1" in found.notes[0]


def test_large_tables_are_sampled(tmp_path):
    frame = mixed_frame(3000).drop(columns="amount")
    csv, parquet = written(tmp_path, frame), tmp_path / "t.parquet"
    frame.to_parquet(parquet)
    for path in (csv, parquet):
        found = read_table(path, "class", most_bytes=50_000)
        assert 0 < found.facts.share < 0.6
        assert abs(found.facts.rows / 3000 - found.facts.share) < 0.05
        [note] = [each for each in found.notes if "random" in each]
        assert f"a random {found.facts.share:.1%} of its rows" in note
        again = read_table(path, "class", most_bytes=50_000)
        np.testing.assert_array_equal(found.table.x, again.table.x)
        part, share = read_sample(path, most_bytes=50_000)
        assert (len(part), share) == (found.facts.rows, found.facts.share)
        whole, share = read_sample(path)
        assert (len(whole), share) == (3000, 1.0)


def test_ten_thousand_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 10_000)))
    frame["y"] = [0, 1] * 10
    found = read_table(frame, "y")
    assert found.table.x.shape == (20, 10_000)
    assert any("10,000 columns" in note for note in found.notes)


N = 30
X = np.arange(N) ** 2
BAD = {
    "no such target": ({"x": X, "label": [0, 1] * 15}, "labl", "did you mean 'label'"),
    "one class": ({"x": X, "y": ["a"] * N}, "y", "at least two classes"),
    "no target values": ({"x": X, "y": [None] * N}, "y", "at least 10 rows"),
    "three rows": ({"x": [1, 5, 2], "y": [0, 1, 0]}, "y", "at least 10 rows"),
    "no columns": ({"y": [0, 1] * 15}, "y", "needs a column .* has no other: add"),
    "all missing": ({"x": [None] * N, "y": [0, 1] * 15}, "y", r"not used \(no values: 'x'\): add"),
    "only texts": (
        {"note": [f"note {i}" for i in range(N)], "row": range(N), "y": [0, 1] * 15},
        "y",
        r"not used \(text that differs in most rows, without words that help: 'note'; "
        r"the numbers of the rows: 'row'\): add",
    ),
    "an identifier": ({"x": X, "y": [f"id {i}" for i in range(N)]}, "y", "as an identifier has"),
    "numbers and a text": (
        {"x": X, "y": [*(f"{i},5" for i in range(N - 1)), "free"]},
        "y",
        "another target, or, if it is meant to be a number, correct cells such as 'free' or leave",
    ),
    "texts and a number": ({"x": X, "y": ["5", *map("id {}".format, X[1:])]}, "y", "target$"),
    "durations": (
        {"x": X, "y": pd.to_timedelta(X, unit="s")},
        "y",
        "another target, or convert it to seconds, because durations are predicted as numbers$",
    ),
    "dates": (
        {"x": X, "y": pd.date_range("2024-01-01", periods=N)},
        "y",
        "another target, or convert it to days since some day, because dates are predicted as",
    ),
    "row numbers": ({"x": X, "y": np.arange(N)}, "y", "counts the rows"),
    "infinite class": (
        {"x": X, "y": [1, 2, np.inf] * 10},
        "y",
        "must be finite where they are numbers, but 'y' holds infinite ones: correct",
    ),
    "infinite target": ({"x": X, "y": [np.inf, *np.linspace(0, 1, N - 1)]}, "y", "finite numbers"),
}


@pytest.mark.parametrize(("columns", "target", "said"), BAD.values(), ids=BAD)
def test_tables_that_teach_nothing(tmp_path, columns, target, said):
    path = written(tmp_path, pd.DataFrame(columns))
    with pytest.raises(UsageError, match=said) as caught:
        read_table(path, target)
    assert "\n" not in str(caught.value)


def test_the_requested_task_is_used():
    frame = pd.DataFrame({"x": X, "y": np.arange(N)})
    assert read_table(frame, "y", task="regression").table.task is Task.REGRESSION
    with refuses("classes-must-repeat", field="y", value=N):
        read_table(frame, "y", task="classification")
    with refuses("classes-must-repeat", field="y", value=N):
        read_table(frame.assign(y=[f"{i:03}" for i in range(N)]), "y", task="classification")
    with refuses("unknown-task", value="ranking"):
        read_table(frame, "y", task="ranking")


BAD_FILES = {
    "t.csv": (b"", "is empty"),
    "blank.csv": (b"\n\n  \n", "is empty"),
    "twice.csv": (b"a,b,a,y\n1,2,3,4\n", "has 'a' more than once"),
    "wide.csv": (b"a,y\n1,2,3\n4,5,6\n", "more values than its first line has names"),
    "ragged.csv": (b"a,y\n1,2\n4,5,6\n", "cannot be read as one"),
    "t.xlsx": (b"PK\x03\x04", "is an Excel workbook"),
    "renamed.csv": (b"PK\x03\x04 and more", "is an Excel workbook or a zip archive"),
    "packed.csv": (b"\x1f\x8b\x08", "is a compressed file"),
    "t.json": (json.dumps([{"a": 1}]).encode(), "is a JSON file"),
    "json.csv": (json.dumps({"a": [1]}).encode(), "looks like JSON"),
    "binary.csv": (bytes(range(256)), "holds bytes that no text has"),
    "sixteen.csv": ("a,b\n1,2\n".encode("utf-16-le"), "holds bytes that no text has"),
    "t.parquet": (b"PAR1 no", "cannot be read as one"),
    "u.csv": (b"PAR1", "is a Parquet file of another name"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_are_no_tables(tmp_path, name):
    content, said = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=said) as caught:
        read_table(tmp_path / name, "y")
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_paths_that_lead_nowhere(tmp_path):
    with refuses("table-file", value=str(tmp_path / "no.csv")):
        read_table(tmp_path / "no.csv", "y")
    with refuses("table-file", value=str(tmp_path)):
        read_table(tmp_path, "y")


def of_classes(tmp_path, classes, name="t.csv"):
    frame = pd.DataFrame({"x": np.arange(len(classes)) ** 2, "y": classes})
    return written(tmp_path, frame, name)


@pytest.mark.parametrize(
    "classes", [("01", "02", "03"), ("007", "07", "7"), ("01", "02", "")], ids=str
)
def test_classes_keep_their_leading_zeros(tmp_path, classes):
    found = read_table(of_classes(tmp_path, classes * 10), "y")
    assert found.table.classes == tuple(filter(None, classes))
    assert found.table.label_kind is LabelKind.TEXT
    assert found.raw_columns == {"y": found.table.classes}


def test_a_target_may_be_called_self(tmp_path):
    rows = "".join(f"{place % 7},{place % 2:03d}\n" for place in range(20))
    (tmp_path / "t.csv").write_text(f"x,self\n{rows}")
    assert read_table(tmp_path / "t.csv", "self").table.classes == ("000", "001")


def test_a_sample_keeps_leading_zeros_beside_its_own_rows(tmp_path):
    path = of_classes(tmp_path, ["01", "02"] * 200)
    table = read_table(path, "y", most_bytes=1500).table
    assert table.classes == ("01", "02")
    assert 20 < len(table) < 390
    np.testing.assert_array_equal(table.y, np.sqrt(table.x[:, 0]) % 2)


@pytest.mark.parametrize("task", [None, "regression"])
def test_numbers_may_have_leading_zeros(tmp_path, task):
    path = of_classes(tmp_path, [f"{i**2:04}" for i in range(40)])
    table = read_table(path, "y", task=task).table
    assert table.task is Task.REGRESSION
    np.testing.assert_array_equal(table.y, np.arange(40) ** 2)


def test_plain_numbers_as_classes_stay_numbers(tmp_path):
    found = read_table(of_classes(tmp_path, ["0", "1", "10"] * 10), "y")
    assert found.table.label_kind is LabelKind.INTEGER
    assert found.raw_columns == {}


def test_texts_that_were_taken_for_a_missing_target_are_named(tmp_path):
    path = of_classes(tmp_path, ["None", "Mild", "Severe", "NA", "Mild", ""] * 10)
    assert (
        "Rows without a target, left out: 30 of 60 ('NA', 'None' read as missing; if that is a "
        "class, rename it)."
    ) in read_table(path, "y").notes


def test_times_and_numbers_of_a_database_are_read(tmp_path):
    hours = [time(hour) for hour in range(20)] * 2
    prices = [Decimal(cents) / 100 for cents in range(40)]
    path = tmp_path / "t.parquet"
    pd.DataFrame({"at": hours, "raw": [b"a", b"b"] * 20, "price": prices}).to_parquet(path)
    found = read_table(path, "price")
    assert found.notes[:2] == [
        "40 rows; columns beside the target: 2 categories.",
        "'price' is predicted as a number (regression), because it holds 40 different numbers.",
    ]


@pytest.mark.skipif(os.name == "nt", reason="names of files are texts there")
def test_a_name_that_is_no_text_becomes_one(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv"))
    try:
        mixed_frame().to_csv(path, index=False)
    except OSError:
        pytest.skip("the disk allows only texts")
    assert read_table(path, "class").table.name == "caf\ufffd"
    [source] = sources(str(tmp_path), Task.CLASSIFICATION, target="class")
    assert source.name == source.load().name == "caf\ufffd"


def test_a_name_may_have_characters_that_the_system_does_not_know(monkeypatch):
    path = Path("tr äin?.csv")
    assert table_name(path) == "tr äin?"

    def ascii_only(name):
        return str(name).encode("ascii") if "\udcc3" not in str(name) else "tr äin".encode()

    monkeypatch.setattr(os, "fsencode", ascii_only)
    assert table_name(Path("tr \udcc3\udca4in.csv")) == "tr _in"


def odd_cells(tmp_path, *odd):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60), "y": ["a", "b"] * 30})
    frame = frame.astype({"x": object})
    frame.loc[range(7, 7 + len(odd)), "x"] = odd
    return read_table(written(tmp_path, frame), "y").notes


def test_a_column_that_some_values_keep_from_being_numbers_is_named(tmp_path):
    notes = odd_cells(tmp_path, "late", "soon")
    assert any("Not read as numbers" in note and "'x' (such as 'late')" in note for note in notes)


def test_texts_taken_as_missing_beside_numbers_are_named(tmp_path):
    assert odd_cells(tmp_path, "late", ".", "late", "unknown")[2:] == [
        "Read as missing beside numbers or dates: '.', 'late', 'unknown' in 'x'. If it "
        "stands for a value, write the value instead."
    ]


def test_parts_of_a_large_file_are_of_one_kind(tmp_path, monkeypatch):
    small_parts = partial(reader.read_parts, part_bytes=400)
    monkeypatch.setattr(reading, "read_parts", small_parts)
    codes = ["01", "02"] * 100 + ["TRUE", "A1"] * 100
    frame = pd.DataFrame({"c": codes, "x": np.arange(400) ** 2, "y": ["u", "v"] * 200})
    path = written(tmp_path, frame)
    table = read_table(path, "y", most_bytes=3000).table
    assert table.schema.columns[0].categories == ("01", "02", "A1", "TRUE")
    assert set(read_sample(path, most_bytes=3000)[0]["c"]) == {"01", "02", "A1", "TRUE"}


@pytest.mark.parametrize("row", ["1{}.5", "1{},5", "1{}.5 \u20ac"])
def test_numbers_that_are_too_large_are_named_even_if_they_are_texts(tmp_path, row):
    texts = [row.format("0" * 31), *(row.format(place) for place in range(38)), "."]
    frame = pd.DataFrame({"x": texts, "z": X.tolist() + [3] * 10, "y": ["a", "b"] * 20})
    notes = read_table(written(tmp_path, frame, sep=";"), "y").notes
    assert "Values that are infinite or beyond 1e+30, read as missing: 1 in 'x'." in notes


def test_a_typed_tables_none_is_a_value_in_an_untyped_table(tmp_path):
    degrees, countries = ["None", "Mild", "Severe"] * 30, ["DE", "NA"] * 45
    frame = pd.DataFrame({"x": np.arange(90) ** 2, "country": countries, "y": degrees})
    frame.to_parquet(tmp_path / "train.parquet")
    training = read_table(tmp_path / "train.parquet", "y")
    test, _ = read_test_table(written(tmp_path, frame), training)
    assert test["y"].tolist() == degrees
    np.testing.assert_array_equal(training.table.schema.encode(test), training.table.x)
