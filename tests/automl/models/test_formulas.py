"""Formulas of strangers do not reach a spreadsheet; numbers and other texts stay as they are."""

import io

import pandas as pd
import pyarrow as pa
import pytest

from foretune.automl.formulas import is_formula
from foretune.automl.prediction_file import CsvWriter

FORMULAS = ("=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", "+A1", "-A1", "\t=1", "\r=1", " =1", "-2+3")
PLAIN = ("-5", "+1.5", "-1e-3", "-.5", "-1,234.5", "-5 %", "a=b", "x@y.org", "", "a-b", "'=1")


@pytest.mark.parametrize("text", FORMULAS)
def test_texts_that_a_spreadsheet_may_run_are_formulas(text):
    assert is_formula(text)


@pytest.mark.parametrize("text", PLAIN)
def test_numbers_and_other_texts_are_none(text):
    assert not is_formula(text)


def written(raw):
    stream = io.StringIO()
    writer = CsvWriter(stream, raw=raw)
    kept = pa.table({"id": ["a", "=1+1", "-5"], "=name": [-1, 2, None]})
    writer.write(kept, pd.DataFrame({"class": ["@x", "b", "b"], "class=@x": [-0.5, 0.2, 0.1]}))
    writer.write(kept, pd.DataFrame({"class": ["b", "b", "b"], "class=@x": [0.5, 0.2, 0.1]}))
    stream.seek(0)
    return stream.getvalue(), writer.apostrophes


def test_formulas_get_an_apostrophe_and_are_counted():
    text, count = written(raw=False)
    rows = text.splitlines()
    assert rows[0] == "id,'=name,class,class=@x"
    assert rows[1:4] == ["a,-1,'@x,-0.5", "'=1+1,2,b,0.2", "-5,,b,0.1"]
    assert rows[5] == "'=1+1,2,b,0.2"
    assert count == 4


def test_raw_texts_are_as_they_were():
    text, count = written(raw=True)
    assert text.splitlines()[:3] == ["id,=name,class,class=@x", "a,-1,@x,-0.5", "=1+1,2,b,0.2"]
    assert count == 0
