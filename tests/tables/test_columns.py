from datetime import time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from foretune.tables.column_inference import ColumnFacts
from foretune.tables.columns import NAMES, ColumnKind, count_kinds
from foretune.tables.schema import Schema, infer_schema
from tests.automl.samples import mixed_frame
from tests.refusals import refuses


def kind(values, **series):
    return infer_schema(pd.DataFrame({"c": pd.Series(values, **series)})).columns[0].kind


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.5, 2.5, None], ColumnKind.NUMBER),
        ([3, 1, 2], ColumnKind.NUMBER),
        (["1", " 2.5", "-3e2"], ColumnKind.NUMBER),
        ([1, 2, 3, 4], ColumnKind.COUNTER),
        ([True, False, True], ColumnKind.BOOLEAN),
        (["Yes", "no", None], ColumnKind.BOOLEAN),
        ([True, None, False], ColumnKind.BOOLEAN),
        (["0", "1", None], ColumnKind.NUMBER),
        (["a", "b", "a"], ColumnKind.CATEGORY),
        (["2020-01-31", "2021-12-01"], ColumnKind.DATE),
        (["31/01/2020", "01/12/2021"], ColumnKind.DATE),
        ([f"name {i}" for i in range(30)], ColumnKind.TEXT),
        ([f"name {i}" for i in range(20)], ColumnKind.CATEGORY),
        ([5, 5, 5], ColumnKind.CONSTANT),
        (["a", "a", "a"], ColumnKind.CONSTANT),
        ([np.inf, 1.0, 1.0], ColumnKind.CONSTANT),
        ([None, None], ColumnKind.EMPTY),
        ([np.nan, np.inf], ColumnKind.EMPTY),
        ([9e307, 1.0, 1.0], ColumnKind.CONSTANT),
        ([1.0, None, 1.0], ColumnKind.CATEGORY),
        ([True, None, True], ColumnKind.CATEGORY),
        (["x", None, "x"], ColumnKind.CATEGORY),
        (["F", "N", "F"], ColumnKind.CATEGORY),
        (["Y", "N", "F"], ColumnKind.CATEGORY),
        (["0", "n", "0"], ColumnKind.CATEGORY),
        (["T", "f", "t"], ColumnKind.BOOLEAN),
        (["y", "No", "yes", "N"], ColumnKind.BOOLEAN),
        ([np.nan, 9e307], ColumnKind.EMPTY),
        ([f"{10**40 + i}" for i in range(30)], ColumnKind.TEXT),
    ],
)
def test_kinds(values, expected):
    assert kind(values) is expected


@pytest.mark.parametrize(
    ("fitted", "new"),
    [
        (["x", None, "x"], ["x", "X ", None]),
        ([7.0, 7.0, None], [7, 8, None]),
        ([1000.0, None, 1000.0], ["1e3", "1000.0", None]),
        ([0.5, None, 0.5], [".5", "0.50", None]),
        (np.array([0.1, np.nan, 0.1], dtype=np.float32), [0.1, np.float32(0.1), None]),
        ([True, None, True], ["TRUE", True, None]),
        (pd.to_datetime(["2024-01-01", None, "2024-01-01"]), ["2024-01-01", "1.1.2024", None]),
    ],
)
def test_a_value_or_none_is_there_or_not_however_it_is_written(fitted, new):
    """A box that was ticked or not."""
    frame = pd.DataFrame({"box": fitted})
    schema = infer_schema(frame)
    there = frame["box"].notna().to_numpy()
    np.testing.assert_array_equal(schema.encode(frame)[:, 0], np.where(there, 0.0, np.nan))
    again = schema.encode(pd.DataFrame({"box": new}))
    np.testing.assert_array_equal(again, [[0.0], [0.0], [np.nan]])


@pytest.mark.parametrize(
    ("cells", "arrow", "expected"),
    [
        ([[1], [2], None], pa.list_(pa.int64()), ColumnKind.CATEGORY),
        ([{"a": 1}, {"a": 2}, None], pa.struct([("a", pa.int64())]), ColumnKind.CATEGORY),
        ([Decimal("1.5"), Decimal("2.5"), None], pa.decimal128(10, 2), ColumnKind.NUMBER),
    ],
)
def test_types_of_arrow_with_which_pandas_cannot_compute(cells, arrow, expected):
    frame = pd.DataFrame({"c": pd.Series(cells, dtype=pd.ArrowDtype(arrow))})
    schema = infer_schema(frame)
    assert schema.columns[0].kind is expected
    matrix = schema.encode(frame)
    assert np.isnan(matrix[2, 0])
    assert matrix[1, 0] == matrix[0, 0] + 1.0


def test_codes_with_leading_zeros_are_no_numbers():
    codes = ["01", "02", "A1", "B"]
    schema = infer_schema(pd.DataFrame({"c": codes * 3}))
    new = pd.DataFrame({"c": ["01", "1", "001", "B"]})
    np.testing.assert_array_equal(schema.encode(new)[:, 0], [0.0, np.nan, np.nan, 3.0])


def test_types_of_pandas_are_believed():
    assert kind([1, 2, 1], dtype="category") is ColumnKind.CATEGORY
    assert kind(pd.to_datetime(["2020-01-01", "2020-01-02"])) is ColumnKind.DATE


def test_dates_of_tables_with_types_are_found_in_texts():
    typed = pd.DataFrame({"t": pd.to_datetime(["1970-01-02", "1970-02-01"])})
    schema = infer_schema(typed)
    texts = pd.DataFrame({"t": ["1970-01-02", "1970-02-01 12:00", "soon"]})
    np.testing.assert_array_equal(
        schema.encode(texts), [[1, 1, 4, 0, 2, 2], [31.5, 2, 6, 12, 1, 32], [np.nan] * 6]
    )


def test_the_matrix_by_hand():
    frame = pd.DataFrame(
        {
            "n": [0.5, None, np.inf],
            "k": ["b", "a", None],
            "t": ["1970-01-02", "1970-01-01", "1970-02-01"],
            "f": ["no", "yes", None],
            "c": "same",
        }
    )
    frame.loc[3] = [2.0, "a", "1970-01-04", "yes", "same"]
    schema = infer_schema(frame)
    assert schema.features == (
        "n",
        "k",
        "t (days)",
        "t (month)",
        "t (weekday)",
        "t (hour)",
        "t (day of month)",
        "t (day of year)",
        "f",
    )
    assert schema.categorical.tolist() == [name == "k" for name in schema.features]
    np.testing.assert_array_equal(
        schema.encode(frame),
        [
            [0.5, 1, 1, 1, 4, 0, 2, 2, 0],
            [np.nan, 0, 0, 1, 3, 0, 1, 1, 1],
            [np.nan, np.nan, 31, 2, 6, 0, 1, 32, np.nan],
            [2, 0, 3, 1, 6, 0, 4, 4, 1],
        ],
    )


@pytest.mark.parametrize("written", [float, "{:g}".format, "{:g},5".format])
def test_numbers_that_models_cannot_compute_with_are_missing(written):
    """Forests know none beyond 3e38, and Stata writes a gap as 9e307."""
    schema = infer_schema(pd.DataFrame({"x": [*map(written, range(30)), written(7)]}))
    new = pd.DataFrame({"x": [written(1), 9e307, "-1e31", 1e29]})
    matrix = schema.encode(new)[:, 0]
    assert np.isnan(matrix).tolist() == [False, True, True, False]


def test_new_rows_are_read_the_same_way_whatever_they_hold():
    frame = mixed_frame()
    schema = infer_schema(frame)
    new = frame.iloc[:3].copy()
    new["letter"] = ["x", "unheard of", None]
    new["number"] = ["1", "word", None]
    shuffled = new[list(reversed(new.columns))].assign(more=1)
    matrix = schema.encode(shuffled)
    letter, number = schema.features.index("letter"), schema.features.index("number")
    np.testing.assert_array_equal(matrix[:, letter], [0, np.nan, np.nan])
    np.testing.assert_array_equal(matrix[:, number], [1, np.nan, np.nan])
    same = [name for name in schema.features if name not in ("letter", "number")]
    columns = [schema.features.index(name) for name in same]
    np.testing.assert_array_equal(matrix[:, columns], schema.encode(frame)[:3][:, columns])


def test_values_that_cannot_be_read_are_counted_by_column():
    frame = pd.DataFrame(
        {"t": ["1970-01-02", "1970-02-01"] * 5, "k": ["a", "b"] * 5, "n": np.arange(10.0) ** 2}
    )
    schema = infer_schema(frame)
    new = pd.DataFrame({"t": ["later", "soon", None], "k": ["a", "b", "c"], "n": [1.0, None, 2.0]})
    assert schema.count_unread(new, schema.encode(new)) == {"t": 2, "k": 1}


def test_plain_values_and_back():
    schema = infer_schema(mixed_frame())
    assert Schema.from_list(schema.to_list()) == schema


def test_dates_of_earlier_schemas_have_the_parts_of_then():
    plain = [
        {"name": "t", "kind": "date", "categories": [], "date_format": "ISO8601", "decimal": ""},
        {"name": "n", "kind": "number", "categories": [], "date_format": "", "decimal": ""},
    ]
    schema = Schema.from_list(plain)
    assert schema.features == ("t (days)", "t (month)", "t (weekday)", "t (hour)", "n")
    frame = pd.DataFrame({"t": ["1970-02-01 12:00", None], "n": [7.0, 8.0]})
    expected = [[31.5, 2, 6, 12, 7], [np.nan, np.nan, np.nan, np.nan, 8]]
    np.testing.assert_array_equal(schema.encode(frame), expected)
    # What tells tables apart is made of these values.
    assert schema.to_list() == [{**each, "categories": ()} for each in plain]


def test_columns_without_dates_say_nothing_of_their_parts():
    """Or else no table that was remembered before would be known again."""
    frame = pd.DataFrame({"n": [0.5, 2.5], "k": ["a", "b"], "t": ["1970-01-01", "1970-01-02"]})
    said = {each["name"]: "date_parts" in each for each in infer_schema(frame).to_list()}
    assert said == {"n": False, "k": False, "t": True}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"date_format": "%Q"}, "schema-date-format"),
        ({"date_parts": ["days", "century"]}, "schema-date-parts"),
    ],
)
def test_dates_that_nobody_has_saved_are_refused(change, rule):
    [plain] = infer_schema(pd.DataFrame({"t": ["1970-01-01", "1970-01-02"]})).to_list()
    with refuses(rule):
        Schema.from_list([plain | change])


def test_mistakes():
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with refuses("repeated-column-names", value=["a"]):
        infer_schema(twice)
    schema = infer_schema(mixed_frame())
    with refuses("missing-features", value=["town"]):
        schema.encode(mixed_frame().drop(columns=["town", "note"]))


def test_codes_and_dates_are_read_as_they_are_written():
    frame = pd.DataFrame(
        {
            "code": ["01", "A1", "TRUE"] * 10,
            "day": ["2020", "2020-05", "2021-06"] * 10,
            "price": ["1.234,5", "0,5", "2,5"] * 10,
            "x": np.arange(30.0) ** 2,
        }
    )
    assert list(infer_schema(frame).raw_columns) == ["code", "day", "price"]


def test_categories_of_tables_with_types_are_found_in_texts():
    typed = pd.DataFrame({"c": pd.Categorical([True, 2, 1.5, 3.0, "x"] * 2)})
    schema = infer_schema(typed)
    assert schema.columns[0].categories == ("1.5", "2", "3", "True", "x")
    new = pd.DataFrame({"c": ["2.0", "03", "1.50", "TRUE", "x", "X", "4", "0_2"]})
    np.testing.assert_array_equal(schema.encode(new)[:, 0], [1, 2, 0, 3, 4, *[np.nan] * 3])


@pytest.mark.parametrize(
    ("cells", "new", "codes"),
    [
        (["1.0", "2.0", "A"], ["1", "2", "01", "3"], [0, 1, 0, np.nan]),
        (["1.0", "2.0", "A"], [1, 2], [0, 1]),
        (["1.50", "2.25 ", "A"], [1.5, 2.25], [0, 1]),
        (["FALSE", "TRUE", "maybe"], [True, False], [1, 0]),
        (["FALSE", "TRUE", "maybe"], ["True", "false", "maybe"], [1, 0, 2]),
        (["1.0", "1.00", "A"], ["1", "1.0", "1.00"], [np.nan, 0, 1]),
        (["100000000000000001", "A"], ["100000000000000002"], [np.nan]),
    ],
)
def test_categories_of_texts_are_found_in_tables_with_types(cells, new, codes):
    schema = infer_schema(pd.DataFrame({"c": cells * 10}))
    assert schema.columns[0].kind is ColumnKind.CATEGORY
    np.testing.assert_array_equal(schema.encode(pd.DataFrame({"c": new}))[:, 0], codes)


def test_categories_with_white_space_are_found_without_it_and_the_other_way_round():
    schema = infer_schema(pd.DataFrame({"c": ["A  ", "B", "C"] * 10}))
    matrix = schema.encode(pd.DataFrame({"c": ["A", "A  ", " B ", "C", "D "]}))
    np.testing.assert_array_equal(matrix[:, 0], [0, 0, 1, 2, np.nan])


@pytest.mark.parametrize("value", [time(8, 30), b"a"])
def test_times_and_bytes_are_categories_or_texts(value):
    few = pd.DataFrame({"c": pd.Series([value, type(value)()] * 10, dtype=object)})
    schema = infer_schema(few)
    assert schema.columns[0].kind is ColumnKind.CATEGORY
    matrix = schema.with_marks_of(few).encode(few)
    assert sorted(set(matrix[:, 0])) == [0.0, 1.0]
    many = [time(hour, 7) for hour in range(24)]
    assert kind(many, dtype=object) is ColumnKind.TEXT


def test_categories_that_are_written_differently_stay_apart():
    schema = infer_schema(pd.DataFrame({"c": ["007", "07", "7", "x"] * 5}))
    matrix = schema.encode(pd.DataFrame({"c": ["7", "07", "007", "0007"]}))
    np.testing.assert_array_equal(matrix[:, 0], [2, 1, 0, 2])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([*map(str, range(99)), "unknown"], "unknown"),
        ([*(f"{i},5" for i in range(99)), "unknown"], "unknown"),
        ([*map(str, range(60)), *["unknown", "late"] * 20], "unknown"),
        ([*map(str, range(60)), *["unknown", "late"] * 31], ""),
        ([*map(str, range(60)), *["-", "late"] * 60], "late"),
        ([*(f"{day:02}.12.2020" for day in range(1, 11)), "soon", "late"], "soon"),
        ([*(f"{day}/31/2020 14:05" for day in (1, 3)), "soon", "late"], "soon"),
        (["1", "2", "3", "A"] * 25, ""),
        ([*map(str, range(100))], ""),
        ([*(f"0{i}" for i in range(99)), "unknown"], ""),
        (["a", "b"] * 50, ""),
        ([*range(99), None], ""),
        ([time(hour) for hour in range(24)], ""),
        ([b"01", b"2", b"unknown"], ""),
    ],
)
def test_the_text_that_keeps_a_column_from_being_numbers_or_dates(values, expected):
    assert ColumnFacts(pd.Series(values)).odd_text == expected


@pytest.mark.parametrize(
    ("cells", "new", "said"),
    [
        (["2020-01-31", "2021-12-01"], ["31/12/2020", None], "31/12/2020"),
        (["yes", "no"], ["oui", "non"], "oui"),
        ([True, None, False], ["oui", "non"], "oui"),
        (["2020-01-31", "2021-12-01"], [20200131], 20200131),
    ],
)
def test_a_column_of_which_nothing_can_be_read_is_refused(cells, new, said):
    schema = infer_schema(pd.DataFrame({"c": cells}))
    with refuses("unreadable-column", field="c", value=said):
        schema.check_numbers(pd.DataFrame({"c": new}))
    schema.check_numbers(pd.DataFrame({"c": [*new, cells[0]]}))
    schema.check_numbers(pd.DataFrame({"c": [None, None]}))


def test_booleans_with_gaps_are_read_beside_words():
    schema = infer_schema(pd.DataFrame({"c": [True, None, False] * 5}))
    new = pd.DataFrame({"c": ["True", "False", "unknown", None]})
    schema.check_numbers(new)
    np.testing.assert_array_equal(schema.encode(new)[:, 0], [1, 0, np.nan, np.nan])


SECONDS = [90.0, None, 7200.5, 30.0]
SPANS = [None if seconds is None else timedelta(seconds=seconds) for seconds in SECONDS]


@pytest.mark.parametrize(
    "given",
    [
        *(pd.Series(SPANS, dtype=f"timedelta64[{unit}]") for unit in ("ms", "us", "ns")),
        pd.Series(SPANS, dtype=object),
        pd.Series(SPANS, dtype=pd.ArrowDtype(pa.duration("ms"))),
    ],
    ids=lambda given: str(given.dtype),
)
def test_durations_are_seconds_whatever_their_unit(given):
    schema = infer_schema(pd.DataFrame({"d": given}))
    assert schema.columns[0].kind is ColumnKind.DURATION
    assert Schema.from_list(schema.to_list()) == schema
    expected = [[90.0], [np.nan], [7200.5], [30.0]]
    for new in (given, given.astype("timedelta64[us]"), given.astype(object)):
        frame = pd.DataFrame({"d": new})
        np.testing.assert_array_equal(schema.with_marks_of(frame).encode(frame), expected)


def test_durations_of_tables_with_types_are_found_in_texts():
    schema = infer_schema(pd.DataFrame({"d": pd.to_timedelta([90, 30], unit="s")}))
    cells = ["0 days 00:10:50", "1 days", " 5", "1.5", 7, "soon", b"1 days", [1], None]
    frame = pd.DataFrame({"d": pd.Series(cells, dtype=object)})
    matrix = schema.encode(frame)
    np.testing.assert_array_equal(matrix[:, 0], [650, 86400, *[np.nan] * 7])
    assert schema.count_unread(frame, matrix) == {"d": 6}
    no_dates = pd.DataFrame({"d": pd.to_datetime([None, None])})
    assert np.isnan(schema.encode(no_dates)).all()
    numbers = pd.DataFrame({"d": [1, 2]})
    assert np.isnan(schema.encode(numbers)).all()
    with refuses("unreadable-column", field="d", value=1):
        schema.check_numbers(numbers)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["0 days 00:10:50.250000000", "-1 days +23:59:30", None], [650.25, -30.0, np.nan]),
        (["1 day, 0:00:01", "0:10:00", "-1 day, 23:59:30"], [86401.0, 600.0, -30.0]),
        (["1 days", "12 days", "-2 days"], [86400.0, 1036800.0, -172800.0]),
        (["00:43:09", "100:00:00", "-1:00:00.5"], [2589.0, 360000.0, -3600.5]),
        (["99999 days 23:59:59", "999999:59:59", " 0:00:00"], [8639999999.0, 3599999999.0, 0.0]),
    ],
)
def test_durations_are_found_in_texts(cells, expected):
    frame = pd.DataFrame({"d": cells})
    schema = infer_schema(frame)
    assert schema.columns[0].kind is ColumnKind.DURATION
    np.testing.assert_array_equal(schema.encode(frame)[:, 0], expected)
    typed = pd.DataFrame({"d": pd.to_timedelta(pd.Series(expected), unit="s")})
    np.testing.assert_array_equal(schema.encode(typed)[:, 0], expected)


@pytest.mark.parametrize(
    "cells",
    [
        ["10:50", "11:20"],
        ["00:10:50", "soon"],
        ["00:10:50", "5"],
        ["00:61:00", "00:10:00"],
        ["1 days 00:10", "2 days"],
        ["1 week", "2 days"],
        ["1000000 days", "1 days"],
        ["\u0663 days", "1 days"],
        [time(10), time(11)],
    ],
)
def test_texts_that_only_look_like_durations_stay_categories(cells):
    assert kind(cells) is ColumnKind.CATEGORY


def test_models_of_earlier_releases_count_the_unit_of_durations():
    plain = {"name": "d", "kind": "number", "categories": [], "date_format": "", "decimal": ""}
    schema = Schema.from_list([plain])
    spans = pd.Series([timedelta(seconds=90), None], dtype="timedelta64[s]")
    np.testing.assert_array_equal(schema.encode(pd.DataFrame({"d": spans})), [[90], [np.nan]])


@pytest.mark.parametrize(
    "times",
    [
        pd.date_range("2024-01-01", periods=3),
        pd.period_range("2024-01", periods=3, freq="M"),
        pd.Series([time(10), time(11), time(12)]),
        pd.Series([1j, 2j, 3j]),
    ],
)
def test_texts_are_not_counted_as_numbers(times):
    """pandas would count the microseconds since 1970, or forget the imaginary part."""
    schema = infer_schema(pd.DataFrame({"x": [1.5, 2.5, 0.5]}))
    assert np.isnan(schema.encode(pd.DataFrame({"x": times}))).all()


@pytest.mark.parametrize("frequency", ["M", "D", "h"])
def test_periods_are_dates_by_their_beginning(frequency):
    days = pd.Series(pd.PeriodIndex(["1970-01-01", "1970-02-01", None], freq=frequency))
    frame = pd.DataFrame({"t": days})
    schema = infer_schema(frame)
    assert schema.columns[0].kind is ColumnKind.DATE
    expected = [[0, 1, 3, 0, 1, 1], [31, 2, 6, 0, 1, 32], [np.nan] * 6]
    np.testing.assert_array_equal(schema.encode(frame), expected)
    dates = pd.DataFrame({"t": days.dt.to_timestamp()})
    np.testing.assert_array_equal(schema.encode(dates), expected)


def test_numbered_columns_are_counted_too():
    schema = infer_schema(pd.DataFrame({0: ["a", "b"] * 5}))
    new = pd.DataFrame({0: ["a", "c"]})
    assert schema.count_unread(new, schema.encode(new)) == {"0": 1}


def test_kinds_are_counted_for_people():
    counts = {ColumnKind.WORDS: 1, ColumnKind.NUMBER: 1200, ColumnKind.TEXT: 2, ColumnKind.DATE: 0}
    assert count_kinds(counts) == "1,200 numbers, 1 text, 2 unused texts"
    assert NAMES.keys() == set(ColumnKind)


def test_categories_of_pandas_that_differ_in_most_rows_are_texts():
    towns = pd.Series([f"town {i % 4}" for i in range(100)], dtype="category")
    names = pd.Series([f"{'Mr' if i % 2 else 'Miss'} number {i}" for i in range(100)])
    numbers = pd.Series(np.arange(100)[::-1], dtype="category")
    frame = pd.DataFrame({"town": towns, "name": names.astype("category"), "number": numbers})
    kinds = [column.kind for column in infer_schema(frame).columns]
    assert kinds == [ColumnKind.CATEGORY, ColumnKind.WORDS, ColumnKind.TEXT]
    plain = infer_schema(frame).encode(frame.astype(object))
    np.testing.assert_array_equal(infer_schema(frame).encode(frame), plain)
