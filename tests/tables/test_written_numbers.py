"""Numbers as people write them."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.final_model.model import Model
from foretune.automl.fit_data import FitData
from foretune.automl.job import FitFolder
from foretune.automl.model_scores import rows_with_target, scores_on
from foretune.automl.plan import FitOptions
from foretune.automl.prediction_file import PredictionOptions, predict_file
from foretune.automl.preflight import check_ready
from foretune.automl.spaces import load_shipped_space
from foretune.tables import number_formats
from foretune.tables.cells import read_numbers
from foretune.tables.columns import ColumnKind
from foretune.tables.number_formats import decimal_mark, table_mark
from foretune.tables.reading import read_sample, read_table, read_test_table
from foretune.tables.schema import Schema, infer_schema
from foretune.tables.table import Table
from foretune.tables.target import Task, new_target_numbers
from tests.refusals import refuses


@pytest.mark.parametrize(
    ("texts", "mark", "numbers"),
    [
        (["5,12", "-7,3", "8"], ",", [5.12, -7.3, 8.0]),
        (["1.234,5", "950", "1.000.000"], ",", [1234.5, 950.0, 1e6]),
        (["1,234.5", "950", "1,000,000"], ".", [1234.5, 950.0, 1e6]),
        (["0,125", "1,250"], ",", [0.125, 1.25]),
        (["1,250", "2,500"], ".", [1250.0, 2500.0]),
        (["$1,200.00", "-$5", "$-7"], ".", [1200.0, -5.0, -7.0]),
        (["3,50 €", "1.200,00 €"], ",", [3.5, 1200.0]),
        (["95%", "7.5 %"], ".", [95.0, 7.5]),
        (["1\u202f234,5", "\u22122"], ",", [1234.5, -2.0]),
        (["1'234.5", "12"], ".", [1234.5, 12.0]),
        (["1,5e3", "2"], ",", [1500.0, 2.0]),
        (["(1,234.50)", "12", "( 3 )"], ".", [-1234.5, 12.0, -3.0]),
        (["$(1,200.00)", "($5)", "$ 7", "-$8", "$ ( 9.5 )"], ".", [-1200.0, -5.0, 7.0, -8.0, -9.5]),
        (["(1.200,5 €)", "(3) €", "4 €"], ",", [-1200.5, -3.0, 4.0]),
        (["(12%)", "7 %"], ".", [-12.0, 7.0]),
        (["1.234,50 EUR", "EUR 7", "5 €", "-2 EUR", "-EUR 3"], ",", [1234.5, 7.0, 5.0, -2.0, -3.0]),
        (["USD 1,234.50", "(7.5 USD)"], ".", [1234.5, -7.5]),
        (["($1,200)", "($5)"], ".", [-1200.0, -5.0]),
        (["1.234,56-", "100,00", "7,50 -"], ",", [-1234.56, 100.0, -7.5]),
        (["1.234,50- €", "€ 2,00-", "3 €"], ",", [-1234.5, -2.0, 3.0]),
        (["CHF 1'200.50", "Fr. 80", "(5 CHF)", "-CHF 3"], ".", [1200.5, 80.0, -5.0, -3.0]),
        (["R$ 1.234,50", "R$7", "-R$ 2", "3 BRL"], ",", [1234.5, 7.0, -2.0, 3.0]),
        (["1 500,50 kr", "kr 7", "kr. 8", "9 kr."], ",", [1500.5, 7.0, 8.0, 9.0]),
        (["US$5", "$6", "7.5 USD"], ".", [5.0, 6.0, 7.5]),
        (["12,50 zł", "PLN 3"], ",", [12.5, 3.0]),
        (["₹12,34,567.50", "₹1,23,456", "INR 5,000"], ".", [1234567.5, 123456.0, 5000.0]),
    ],
)
def test_what_is_a_number(texts, mark, numbers):
    column = pd.Series(texts)
    assert decimal_mark(column) == mark
    assert read_numbers(column, mark).tolist() == numbers


@pytest.mark.parametrize(
    "texts",
    [
        ["5,12", "many"],
        ["$5", "€5"],
        ["12,34,56", "1,2"],
        ["1.2.2025", "2.2.2025"],
        ["1,234.5", "1.234,5"],
        ["12:30", "9:15"],
        ["5 kg", "6 kg"],
        ["%", "$"],
        ["(5", "6)"],
        ["(-5)", "6"],
        ["((5))", "6"],
        ["(5) (6)", "7"],
        ["5 EUR", "6 USD"],
        ["EUROPE", "USD"],
        ["EUR5", "EUR6"],
        ["USD1001", "USD1002"],
        ["5EUR", "6EUR"],
        ["1,23,4567", "5"],
        ["1.23.456", "5"],
        ["(1,2)", "( 3,4 )", "(10,20)"],
        ["(030)", "(089)"],
        ["1,5-", "2,5-"],
        ["2-", "3", "1"],
        ["1.5-2.5", "3.5"],
        ["5 SEK", "6 NOK"],
        ["5 kr", "6 EUR"],
        ["CHF5", "CHF6"],
        ["Ft", "kr"],
        ["(1)", "(2)"],
    ],
)
def test_texts_without_a_decimal_mark(texts):
    assert decimal_mark(pd.Series(texts)) == ""


def test_pairs_do_not_say_how_numbers_are_written():
    frame = pd.DataFrame({"pair": ["(1,2)", "(3,4)"], "length": ["1,234", "5,678"]})
    assert table_mark(frame)() == ""
    pair, length = infer_schema(frame).columns
    assert pair.kind is ColumnKind.CATEGORY
    assert length.decimal == "."


@pytest.mark.parametrize("new", [["(7,8)", "(9,0)"], ["7,8-", "9,0-"]])
def test_new_numbers_may_all_be_below_zero(new):
    fit = pd.DataFrame({"profit": ["(1,2)", "3,4", "5,6"]})
    new = pd.DataFrame({"profit": new})
    schema = infer_schema(fit).with_marks_of(new)
    assert schema.encode(new)[:, 0].tolist() == [-7.8, -9.0]
    assert new_target_numbers(new["profit"], "profit", table_mark(new)).tolist() == [-7.8, -9.0]


def test_long_texts_are_known_to_be_no_numbers_by_the_first_ones(monkeypatch):
    looked_at = []
    as_arrow = number_formats._as_arrow

    def counting(values):
        looked_at.append(len(values))
        return as_arrow(values)

    monkeypatch.setattr(number_formats, "_as_arrow", counting)
    assert decimal_mark(pd.Series([f"{i} (of many)" for i in range(1000)])) == ""
    assert looked_at == [number_formats.LOOKED_AT]
    assert decimal_mark(pd.Series([*map(str, range(1000)), "many"])) == ""


def test_values_of_another_kind_are_missing():
    column = pd.Series(["1.234,5", None, "unknown", "12", [1, 2], 3.5])
    expected = [1234.5, np.nan, np.nan, 12.0, np.nan, 3.5]
    np.testing.assert_array_equal(read_numbers(column, ","), expected)
    np.testing.assert_array_equal(
        read_numbers(pd.Series([1.5, np.inf, np.nan]), ","), [1.5, np.nan, np.nan]
    )


@given(
    st.lists(st.integers(-(10**12), 10**12), min_size=1),
    st.sampled_from([(".", ","), (",", ".")]),
)
def test_thousands_and_cents_come_back(cents, marks):
    decimal, thousands = marks
    texts = [
        f"{cent / 100:,.2f}".translate(str.maketrans({".": decimal, ",": thousands}))
        for cent in cents
    ]
    column = pd.Series(texts)
    assert decimal_mark(column) == decimal
    np.testing.assert_array_equal(read_numbers(column, decimal), [cent / 100 for cent in cents])


SPACE, CURRENCY = "[ \u00a0\u202f]?", "[$€£¥₹₩₽₺₪฿]?"
NUMBER = re.compile(
    f"(?P<sign>[+\u2212-]?){SPACE}(?P<before>{CURRENCY}){SPACE}(?P<later_sign>[\u2212-]?)"
    r"(?P<whole>[1-9]\d{0,2}(?P<between>[.'\u2019 \u00a0\u202f])\d{3}(?:(?P=between)\d{3})*|\d+)"
    r"(?:,(?P<fraction>\d+))?(?P<power>(?:[eE][+-]?\d+)?)"
    f"{SPACE}(?P<after>%|{CURRENCY})"
)
"""A number with a decimal comma: what the search through whole columns must come to."""
BEHIND = re.compile(
    r"(?P<size>[^+\u2212-]*\d[.,][^+\u2212-]*\d)"
    f"{SPACE}[\u2212-](?P<unit>{SPACE}(?:%|{CURRENCY}))"
)
"""The same with the minus behind it."""
ALONE = re.compile(r"\s*[\d.,'\u2019\s]+[\u2212-]\s*")


def plain(text):
    """Digits of another script, which Arrow does not know as such, are those that it knows."""
    text = text.strip().replace("\u0663", "3")
    found = BEHIND.fullmatch(text)
    return f"-{found['size']}{found['unit']}" if found else text


def number_of(text):
    found = NUMBER.fullmatch(plain(text))
    if found is None:
        return np.nan
    size = float(re.sub(r"\D", "", found["whole"]) + f".{found['fraction'] or 0}{found['power']}")
    negative = {found["sign"], found["later_sign"]} & {"-", "\u2212"}
    return (-size if negative else size) if np.isfinite(size) else np.nan


def has_one_unit(texts):
    units = [found["before"] + found["after"] for found in map(NUMBER.fullmatch, texts) if found]
    return len(units) == len(texts) and len({*units}) == 1


PIECES = (
    *("0", "1", "12", "000", "234", "\u0663", ",", ",5", ".", ".234", "'", "'234", "\u2019234"),
    *(
        " ",
        " 234",
        "\u00a0",
        "\u202f234",
        "$",
        "€",
        " %",
        "-",
        ",5-",
        "\u2212",
        "+",
        "e",
        "E3",
        "e-2",
        "e999",
    ),
    *("\t", "\x1c", "\u2003", "x", "\U00011f51", "\x00", "\n"),
)


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), min_size=1, max_size=9))
@settings(max_examples=80)
def test_any_text_is_read_as_if_it_were_alone(texts):
    expected = [number_of(text) for text in texts]
    one_unit = has_one_unit([*map(plain, texts)]) and not all(map(ALONE.fullmatch, texts))
    for column in (pd.Series(texts), pd.Series(texts, dtype=object)):
        np.testing.assert_array_equal(read_numbers(column, ","), expected)
        assert (decimal_mark(column, lambda: ",") == ",") == one_unit


def test_half_a_character_is_no_number():
    assert decimal_mark(pd.Series(["1,5", "\ud800"], dtype=object)) == ""


def test_a_schema_remembers_how_numbers_are_written():
    schema = infer_schema(pd.DataFrame({"price": ["1.234,5", "950", "7,25"]}))
    assert schema.columns[0].kind is ColumnKind.NUMBER
    assert schema.raw_columns == {"price": ()}
    again = Schema.from_list(schema.to_list())
    assert again == schema
    new = pd.DataFrame({"price": ["1.000", "2,5", None, 3.0]})
    np.testing.assert_array_equal(again.encode(new)[:, 0], [1000.0, 2.5, np.nan, 3.0])


def test_schemas_of_earlier_models_are_read():
    described = infer_schema(pd.DataFrame({"a": [1.0, 2.5]})).to_list()
    del described[0]["decimal"]
    assert Schema.from_list(described).columns[0].decimal == ""
    with refuses("schema-mark"):
        Schema.from_list([{**described[0], "decimal": ";"}])


def european(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.uniform(1, 3000, rows)
    texts = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in size]
    return pd.DataFrame({"size": texts, "price": [text + " €" for text in texts]})


def test_a_target_with_decimal_commas_is_a_number(tmp_path):
    file = tmp_path / "sales.csv"
    european(40).to_csv(file, sep=";", index=False)
    training = read_table(file, "price")
    assert training.table.task is Task.REGRESSION
    np.testing.assert_array_equal(training.table.y, training.table.x[:, 0])
    assert any("decimal comma: 'size'" in note for note in training.notes)


def test_classes_stay_as_they_are_written():
    frame = pd.DataFrame({"a": np.arange(40.0) ** 2, "rate": ["10%", "20%"] * 20})
    assert read_table(frame, "rate").table.classes == ("10%", "20%")
    asked = read_table(frame, "rate", task="regression").table
    assert set(asked.y.tolist()) == {10.0, 20.0}
    assert Table.of(frame, "rate").task is Task.CLASSIFICATION


def test_new_rows_are_read_as_the_table_of_the_fit_was(tmp_path):
    """1.000 alone would be one for pandas, and is a thousand where fractions have commas."""
    table = Table.of(european(60), "price")
    [config] = (
        load_shipped_space("pipeline-regression").build(["elastic_net"]).sample(1, seed=0).dicts()
    )
    model = Model.of(table, [refit(config, table, seed=0)], target="price", metric="r2")
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("size\n1.000\n2.000\n")
    predict_file(model, new, out, PredictionOptions())
    expected = model.predict(pd.DataFrame({"size": [1000.0, 2000.0]}))
    np.testing.assert_allclose(pd.read_csv(out)["price"], expected)
    new.write_text("other\n1\n")
    with refuses("missing-features", value=["size"]):
        predict_file(model, new, out, PredictionOptions())


LENGTHS = np.random.default_rng(1).uniform(1, 50, 60).round(2)
"""With three digits after the mark, 12,340 may be a number of thousands."""


def lengths(mark, digits):
    return [f"{value:.{digits}f}".replace(".", mark) for value in LENGTHS]


def doubtful(**columns):
    return pd.DataFrame({"x": lengths(",", 3), **columns})


@pytest.mark.parametrize(
    ("columns", "times"),
    [
        ({"z": lengths(",", 2)}, 1),
        ({"z": lengths(".", 2)}, 1000),
        ({"z": LENGTHS + 0.01234}, 1000),
        ({"z": lengths(",", 2), "w": LENGTHS + 0.01234}, 1000),
        ({"z": lengths(",", 2), "w": LENGTHS.round(), "v": lengths(" ", 2)}, 1),
        ({"z": lengths(",", 3)}, 1000),
    ],
)
def test_other_columns_decide_about_a_doubtful_one(columns, times):
    """As features and as the target; where the others differ or say nothing, it is thousands."""
    schema = infer_schema(doubtful(**columns))
    np.testing.assert_allclose(schema.encode(doubtful(**columns))[:, 0], LENGTHS * times)
    training = read_table(doubtful(**columns), "x")
    np.testing.assert_allclose(training.table.y, LENGTHS * times)
    [note] = [note for note in training.notes if "Read as numbers" in note and "'x'" in note]
    assert ("decimal comma" if times == 1 else "separated thousands") in note


def test_a_target_decides_for_the_other_columns():
    table = Table.of(doubtful(y=lengths(",", 2)), "y")
    np.testing.assert_allclose(table.x[:, 0], LENGTHS)
    assert table.target_decimal == ","


def test_a_target_with_commas_is_not_said_to_have_points(tmp_path):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"x": lengths(",", 2), "y": lengths(",", 2)})
    frame.to_csv(path, sep=";", index=False)
    assert not any("decimal point" in note for note in read_table(path, "y").notes)


def lengths_file(path, mark):
    frame = pd.DataFrame({"x": lengths(mark, 3), "w": lengths(mark, 1), "y": lengths(mark, 2)})
    frame.to_csv(path, sep=";", index=False)
    return path


def model_of(training):
    [config] = (
        load_shipped_space("pipeline-regression").build(["elastic_net"]).sample(1, seed=0).dicts()
    )
    member = refit(config, training.table, seed=0)
    return Model.of(training.table, [member], target=training.target, metric="r2")


@pytest.mark.parametrize(("fitted", "new"), [(",", "."), (".", ","), (",", ","), (".", ".")])
def test_a_new_file_may_have_the_other_mark(tmp_path, fitted, new):
    model = model_of(read_table(lengths_file(tmp_path / "t.csv", fitted), "y"))
    data, out = lengths_file(tmp_path / "new.csv", new), tmp_path / "out.csv"
    notes = predict_file(model, data, out, PredictionOptions())
    numbers = pd.DataFrame({"x": LENGTHS, "w": list(map(float, lengths(".", 1)))})
    np.testing.assert_allclose(pd.read_csv(out)["y"], model.predict(numbers))
    assert any("another decimal mark" in note for note in notes) == (fitted != new)


@pytest.mark.parametrize(("fitted", "new"), [(",", "."), (".", ","), (",", ",")])
def test_a_test_table_may_have_the_other_mark(tmp_path, fitted, new):
    training = read_table(lengths_file(tmp_path / "t.csv", fitted), "y")
    test, _ = read_test_table(lengths_file(tmp_path / "test.csv", new), training)
    check_ready(FitOptions(), FitFolder(tmp_path), FitData(training.table, "y", test))
    model = model_of(training)
    plain = pd.DataFrame({"x": LENGTHS, "w": LENGTHS.round(1), "y": LENGTHS})
    expected = scores_on(model, plain, ["r2"])["r2"]
    assert scores_on(model, test, ["r2"])["r2"] == pytest.approx(expected, abs=1e-3)


def test_a_test_table_that_leaves_a_doubt_is_read_as_the_table_of_the_fit():
    table = Table.of(doubtful(y=lengths(",", 2)), "y")
    frame = pd.DataFrame({"x": lengths(",", 3), "y": lengths(",", 3)})
    _, y = rows_with_target(frame, "y", table.task, (), decimal=table.target_decimal)
    np.testing.assert_allclose(y, LENGTHS)


def test_parts_of_a_new_file_agree(tmp_path):
    """The second part alone could be thousands."""
    model = model_of(read_table(pd.DataFrame({"x": lengths(",", 2), "y": LENGTHS}), "y"))
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("x\n" + "\n".join(["2.5"] * 10 + ["2.500"] * 30))
    predict_file(model, new, out, PredictionOptions(part_bytes=40))
    np.testing.assert_allclose(pd.read_csv(out)["y"], model.predict(pd.DataFrame({"x": [2.5]}))[0])


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["999", "1,234", "850"], [999, 1234, 850]),
        (["1,234", "2,345"], [1234, 2345]),
        (["999", "1 234"], [999, 1234]),
        (["$5", "$1,234"], [5, 1234]),
        (["5 %", "7 %"], [5, 7]),
        (["5", "cold"], [5, np.nan]),
        (["1,5", "2,5", "1.5"], [1.5, 2.5, np.nan]),
        (["1.5", "2.5", "1,5"], [1.5, 2.5, np.nan]),
        (["1,5", "2,5", "0.5", "1.5", "2.5", "3.5"], [np.nan, np.nan, 0.5, 1.5, 2.5, 3.5]),
    ],
)
@pytest.mark.parametrize("fitted", [[*range(100, 2000, 7)], LENGTHS.tolist()])
def test_a_model_of_plain_numbers_reads_what_a_fit_reads(fitted, cells, numbers):
    """Of different marks, it is the one that reads the most cells."""
    schema = infer_schema(pd.DataFrame({"x": fitted}))
    new = pd.DataFrame({"x": cells})
    np.testing.assert_array_equal(schema.with_marks_of(new).encode(new)[:, 0], numbers)


def test_numbers_that_came_plain_and_have_thousands_apart_are_said(tmp_path):
    model = model_of(read_table(pd.DataFrame({"x": LENGTHS, "y": LENGTHS}), "y"))
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    pd.DataFrame({"x": ["12,340", "7", "7 kg"]}).to_csv(new, index=False)
    _, apart, unread = predict_file(model, new, out, PredictionOptions())
    assert apart == (
        "Read as numbers with separated thousands, unlike in the table of the fit: 'x'."
    )
    assert unread.startswith("Values that cannot be read, or that")
    expected = model.predict(pd.DataFrame({"x": [12340.0, 7.0, np.nan]}))
    np.testing.assert_allclose(pd.read_csv(out)["y"], expected)
    pd.DataFrame({"x": ["12.34", "7", "cold"]}).to_csv(new, index=False)
    assert len(predict_file(model, new, out, PredictionOptions())) == 2


def test_units_without_a_sign_are_told_apart_and_named(tmp_path):
    francs = [f"CHF {value}" for value in LENGTHS]
    model = model_of(read_table(pd.DataFrame({"x": francs, "y": LENGTHS}), "y"))
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("x\n7.25 kr\n8.5 kr\n")
    assert predict_file(model, new, out, PredictionOptions())[1:] == [
        "Read as numbers, although the table of the fit has another unit: 'x' (CHF there, kr "
        "here). Convert them to that unit."
    ]
    new.write_text("x\nFr. 7.25\n8.5 CHF\n")
    assert predict_file(model, new, out, PredictionOptions())[1:] == []


def test_several_units_in_a_column_are_said(tmp_path):
    """Those of all parts of a file count; a fit would not have read them as numbers."""
    prices = [f"${value}" for value in LENGTHS]
    model = model_of(read_table(pd.DataFrame({"x": prices, "w": prices, "y": LENGTHS}), "y"))
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("x,w\n$7.25,$7.25\n5 €,8\n3 %,\n")
    assert predict_file(model, new, out, PredictionOptions(part_bytes=1))[1:] == [
        "Read as numbers, although their units differ: 'x' ($ % €). Convert them to the unit of "
        "the table of the fit."
    ]


SALES = np.random.default_rng(2).integers(1001, 9999, 60)
BY_THOUSANDS = [f"{sold:,}".replace(",", ".") for sold in SALES]


@pytest.mark.parametrize("first", [["1.101,5"], [], ["17"]], ids=["itself", "others", "whole"])
@pytest.mark.parametrize("rows_a_part", [4, 1000])
def test_all_numbers_of_a_file_with_decimal_commas_have_them(tmp_path, first, rows_a_part):
    """A part in which points divide thousands would arrive as fractions."""
    model = model_of(read_table(pd.DataFrame({"x": SALES, "k": LENGTHS, "y": SALES}), "y"))
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    cells = first + BY_THOUSANDS[len(first) :]
    pd.DataFrame({"x": cells, "k": ["0,5"] * 60}).to_csv(new, sep=";", index=False)
    notes = predict_file(
        model, new, out, PredictionOptions(keep=("k",), part_bytes=rows_a_part * 10)
    )
    known = [float(text.replace(".", "").replace(",", ".")) for text in cells]
    expected = model.predict(pd.DataFrame({"x": known, "k": 0.5}))
    np.testing.assert_allclose(pd.read_csv(out)["y"], expected)
    assert pd.read_csv(out)["k"].tolist() == ["0,5"] * 60
    assert notes[1:] == ["Read with another decimal mark than the table of the fit: 'x', 'k'."]


POINTS = (
    "Read with a decimal point, although others have a comma: 'x'. If the points separate "
    "thousands, remove them from the file."
)


def test_points_beside_commas_are_read_as_at_the_fit_and_said(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    frame = pd.DataFrame({"x": BY_THOUSANDS, "n": [3, 5] * 30, "k": ["0,5", "1,5", "2,5"] * 20})
    frame.assign(y=[f"{sold},5" for sold in SALES]).to_csv(path, sep=";", index=False)
    training = read_table(path, "y")
    assert POINTS in training.notes
    model = model_of(training)
    frame.assign(n=["3,5", "5"] * 30).to_csv(path, sep=";", index=False)
    assert POINTS in predict_file(model, path, out, PredictionOptions())
    numbers = frame.assign(x=SALES / 1000, n=[3.5, 5.0] * 30, k=[0.5, 1.5, 2.5] * 20)
    np.testing.assert_allclose(pd.read_csv(out)["y"], model.predict(numbers))


def test_a_column_that_begins_with_commas_has_them_throughout(tmp_path):
    fitted = pd.DataFrame({"x": SALES, "k": lengths(",", 2), "y": SALES})
    model = model_of(read_table(fitted, "y"))
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("x;k\n1.101,5;0,5\n" + "9.621;0,5\n" * 40)
    predict_file(model, new, out, PredictionOptions(part_bytes=100))
    expected = model.predict(pd.DataFrame({"x": [1101.5] + [9621.0] * 40, "k": 0.5}))
    np.testing.assert_allclose(pd.read_csv(out)["y"], expected)


def test_commas_that_come_late_are_said(tmp_path):
    model = model_of(read_table(pd.DataFrame({"x": SALES, "k": LENGTHS, "y": SALES}), "y"))
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    frame = pd.DataFrame({"x": BY_THOUSANDS, "k": ["5"] * 55 + ["0,5"] * 5})
    frame.to_csv(new, sep=";", index=False)
    assert POINTS in predict_file(model, new, out, PredictionOptions(part_bytes=100))


def test_numbers_of_programs_are_read_beside_words():
    schema = infer_schema(pd.DataFrame({"x": LENGTHS}))
    new = pd.DataFrame({"x": [".5", "0.25", "7.", "word"]})
    np.testing.assert_array_equal(
        schema.with_marks_of(new).encode(new)[:, 0], [0.5, 0.25, 7.0, np.nan]
    )


@pytest.mark.parametrize("x", [LENGTHS, lengths(",", 2)], ids=["plain", "written"])
def test_numbers_of_a_database_need_no_mark(x):
    schema = infer_schema(pd.DataFrame({"x": x}))
    new = pd.DataFrame({"x": [Decimal("12.340"), Decimal("7.25")], "z": ["0,5", "1,5"]})
    np.testing.assert_array_equal(schema.with_marks_of(new).encode(new)[:, 0], [12.34, 7.25])


@pytest.mark.parametrize("cells", [["cold", "warm"], ["12 kg", "13 kg"]])
def test_a_column_without_any_number_is_refused(tmp_path, cells):
    training = read_table(pd.DataFrame({"x": LENGTHS, "w": LENGTHS**2, "y": LENGTHS}), "y")
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    pd.DataFrame({"x": [*cells, None], "w": [1, 2, None]}).to_csv(new, index=False)
    with refuses("unreadable-column", field="x", value=cells[0]):
        predict_file(model_of(training), new, out, PredictionOptions())
    assert not out.exists()
    test = read_sample(new)[0].assign(y=LENGTHS[:3])
    with refuses("unreadable-column", field="x"):
        check_ready(FitOptions(), FitFolder(tmp_path), FitData(training.table, "y", test))


def test_a_column_with_some_numbers_or_none_at_all_is_read(tmp_path):
    training = read_table(pd.DataFrame({"x": LENGTHS, "w": LENGTHS**2, "y": LENGTHS}), "y")
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("x,w\ncold,\n2.5,\n")
    notes = predict_file(model_of(training), new, out, PredictionOptions())
    assert any("taken as missing, in: 'x (1)'" in note for note in notes)
    assert len(pd.read_csv(out)) == 2


def notes_of(tmp_path, **columns):
    frame = pd.DataFrame({"label": ["a", "b"] * 10, **columns})
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False, sep=";")
    return [note for note in read_table(path, "label").notes if "decimal point" in note]


def test_points_that_may_divide_thousands_are_said(tmp_path):
    sizes = [f"{number},5" for number in range(20)]
    sold = [f"{number + 1}.023" for number in range(19)] + ["999"]
    rates = [f"0.{number + 10}" for number in range(20)]

    [note] = notes_of(tmp_path, size=sizes, sold=sold, rate=rates)

    assert note == (
        "Read with a decimal point, although others have a comma: 'sold'. If the points separate "
        "thousands, remove them from the file."
    )
    assert notes_of(tmp_path, sold=sold) == []
    assert notes_of(tmp_path, size=sizes, rate=rates) == []
