import csv
import io

import pytest

from foretune_lab.drawing.tables import TextTable, format_cell

TABLE = TextTable(
    "losses",
    "Losses of two methods",
    ("method", "n=5", "note"),
    (("random", 0.123456, "a|b"), ("a long name", float("nan"), "")),
    note="Lower is better.",
)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (0.0, "0.000"),
        (0.5, "0.500"),
        (-9.87654, "-9.877"),
        (12.345, "12.3"),
        (123456.7, "123,456.7"),
        (0.012345, "0.0123"),
        (0.000012345, "1.23e-05"),
        (float("nan"), "-"),
        (float("-inf"), "-∞"),
        (7, "7"),
        ("word", "word"),
    ],
)
def test_cells_for_people(cell, text):
    assert format_cell(cell) == text


def test_fixed_decimals():
    assert format_cell(0.012345, decimals=2) == "0.01"


def test_text_aligns_names_left_and_numbers_right():
    assert TABLE.text().splitlines() == [
        "Losses of two methods",
        "",
        "method         n=5  note",
        "───────────  ─────  ────",
        "random       0.123   a|b",
        "a long name      -",
        "",
        "Lower is better.",
    ]


def test_markdown_escapes_bars():
    assert TABLE.markdown().splitlines() == [
        "### Losses of two methods",
        "",
        "| method | n=5 | note |",
        "| :-- | --: | --: |",
        "| random | 0.123 | a\\|b |",
        "| a long name | - |  |",
        "",
        "Lower is better.",
    ]


def test_csv_keeps_all_digits():
    rows = list(csv.reader(io.StringIO(TABLE.csv())))
    assert rows[0] == ["method", "n=5", "note"]
    assert float(rows[1][1]) == 0.123456
