from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.tables.columns import ColumnKind
from foretune.tables.dates import (
    CLOCKS,
    DAYS,
    FORMATS,
    PARTS,
    date_format,
    date_parts,
    read_dates,
)
from foretune.tables.schema import infer_schema


def parts_of(texts, written):
    return date_parts(read_dates(pd.Series(texts), written), PARTS).tolist()


def test_parts_by_hand():
    """In PARTS' order: days since 1970, month, weekday (Monday is 0), hour, the two days."""
    assert parts_of(["1970-01-01 06:00"], "ISO8601") == [[0.25, 1, 3, 6, 1, 1]]
    # A leap year: the last of February is the 60th day, the last of December the 366th.
    assert parts_of(["29.02.1972", "31.12.1972"], "%d.%m.%Y") == [
        [789, 2, 1, 0, 29, 60],
        [1095, 12, 6, 0, 31, 366],
    ]
    assert parts_of(["12/31/2015 11:00 PM"], "%m/%d/%Y %I:%M %p") == [
        [16800 + 23 / 24, 12, 3, 23, 31, 365]
    ]
    assert np.isnan(parts_of(["soon"], "ISO8601")).all()


NEW_YEARS_EVE = datetime(2015, 12, 31)
WRITTEN = {
    "8/23/1990 0:00:00": ("%m/%d/%Y %H:%M:%S", datetime(1990, 8, 23)),
    "12/31/2015 14:05": ("%m/%d/%Y %H:%M", datetime(2015, 12, 31, 14, 5)),
    "31/12/2015 14:05": ("%d/%m/%Y %H:%M", datetime(2015, 12, 31, 14, 5)),
    "31.12.2015 14:05": ("%d.%m.%Y %H:%M", datetime(2015, 12, 31, 14, 5)),
    "31-12-2015 14:05:09": ("%d-%m-%Y %H:%M:%S", datetime(2015, 12, 31, 14, 5, 9)),
    "12/31/2015 12:05:09 AM": ("%m/%d/%Y %I:%M:%S %p", datetime(2015, 12, 31, 0, 5, 9)),
    "12/31/2015 2:05pm": ("%m/%d/%Y %I:%M%p", datetime(2015, 12, 31, 14, 5)),
    "12/31/2015, 2:05:09 PM": ("%m/%d/%Y, %I:%M:%S %p", datetime(2015, 12, 31, 14, 5, 9)),
    "2015-12-31 02:05 PM": ("%Y-%m-%d %I:%M %p", datetime(2015, 12, 31, 14, 5)),
    "31-Dec-2015": ("%d-%b-%Y", NEW_YEARS_EVE),
    "31-DEC-2015 14:05": ("%d-%b-%Y %H:%M", datetime(2015, 12, 31, 14, 5)),
    "Dec 31, 2015": ("%b %d, %Y", NEW_YEARS_EVE),
    "December 31, 2015": ("%b %d, %Y", NEW_YEARS_EVE),
    "Dec 31 2015": ("%b %d %Y", NEW_YEARS_EVE),
    "31 December 2015": ("%d %b %Y", NEW_YEARS_EVE),
    "12/31/15": ("%m/%d/%y", NEW_YEARS_EVE),
    "12/31/15 14:05": ("%m/%d/%y %H:%M", datetime(2015, 12, 31, 14, 5)),
    "31/12/99": ("%d/%m/%y", datetime(1999, 12, 31)),
    "99/12/31": ("%y/%m/%d", datetime(1999, 12, 31)),
    "31.12.15": ("%d.%m.%y", NEW_YEARS_EVE),
    "31-Dec-15": ("%d-%b-%y", NEW_YEARS_EVE),
}


@pytest.mark.parametrize(("text", "expected"), WRITTEN.items(), ids=WRITTEN)
def test_formats(text, expected):
    written, moment = expected
    texts = pd.Series([text, text])
    assert date_format(texts) == written
    assert read_dates(texts, written).tolist() == [moment] * 2


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # As with dates that have no clock, the day comes first unless a value says otherwise.
        (["1/2/2015 0:00", "3/4/2015 0:00"], "%d/%m/%Y %H:%M"),
        (["1/2/2015 0:00", "3/14/2015 0:00"], "%m/%d/%Y %H:%M"),
        (["1/2/2015 0:00", "3/14/2015 0:00", "14/3/2015 0:00"], ""),
        # A year of two digits could stand elsewhere in all of them.
        (["01/02/15", "03/04/15"], ""),
        (["31/01/15", "30/01/15"], ""),
        (["01/02/15", "03/14/15"], "%m/%d/%y"),
        # Or in another century: 1920 to 2010, or 1969 to 2068?
        ([f"01/31/{year:02}" for year in range(0, 100, 10)], ""),
        ([f"01/31/{year:02}" for year in (70, 80, 90, 0, 10)], "%m/%d/%y"),
        # One way in all of a column.
        (["31-Dec-2015", "31 Dec 2015"], ""),
        (["12/31/2015 14:05", "12/31/2015"], ""),
        (["12/31/2015 14:05", "12/31/2015 2:05 PM"], ""),
        (["12/31/2015 13:05 PM", "12/31/2015 2:05 PM"], ""),
        (["31 Dec 2015", "1 Sept 2015", "2 may 2015"], "%d %b %Y"),
    ],
)
def test_what_the_values_leave_open(texts, expected):
    assert date_format(pd.Series(texts)) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ["1.2.3", "1.2.4"],
        ["10.12.16", "10.13.17"],
        ["1.12.0", "2.0.15"],
        ["1/2/3", "4/5/6"],
        ["1-2-3", "10-12-16"],
        ["12 31 2015", "11 30 2015"],
        ["31/Dec/2015", "30/Dec/2015"],
        ["Mary 3, 2015", "May 3, 2015"],
        ["March of 2015", "May of 2015"],
        ["31 Dec 2015 or so", "30 Dec 2015 or so"],
        ["10:05", "11:05"],
        ["30 Feb 2015", "31 Feb 2015"],
        ["now", "today"],
    ],
)
def test_texts_that_are_no_dates(texts):
    assert date_format(pd.Series(texts)) == ""
    assert infer_schema(pd.DataFrame({"c": texts})).columns[0].kind is ColumnKind.CATEGORY


def test_a_month_is_read_by_its_short_and_its_long_name():
    """A column that has only seen May does not say which of them it has."""
    schema = infer_schema(pd.DataFrame({"t": ["1 May 1970", "2 May 1970"]}))
    new = pd.DataFrame({"t": ["1 January 1970", "2 Jan 1970", "3 01 1970", None]})
    np.testing.assert_array_equal(schema.encode(new)[:, 0], [0, 1, np.nan, np.nan])


def test_dates_with_types_are_read_whatever_texts_were_written():
    schema = infer_schema(pd.DataFrame({"t": ["1-Jan-1970", "2-Jan-1970"]}))
    typed = pd.DataFrame({"t": pd.to_datetime(["1970-01-02", "1970-02-01"])})
    np.testing.assert_array_equal(schema.encode(typed)[:, 0], [1, 31])
    np.testing.assert_array_equal(schema.encode(typed.astype(object))[:, 0], [1, 31])
    np.testing.assert_array_equal(schema.encode(pd.DataFrame({"t": [1, 2]}))[:, 0], [np.nan] * 2)


MINUTES = st.integers(0, 60 * 24 * 365 * 60).map(
    lambda m: datetime(1980, 1, 1) + timedelta(minutes=m)
)


@settings(max_examples=40)
@given(st.lists(MINUTES, min_size=1, max_size=20), st.sampled_from(DAYS), st.sampled_from(CLOCKS))
def test_dates_that_were_written_are_read_back(moments, day, clock):
    written = day + clock
    # Beside a day that is no month, which tells the two apart.
    moments = [*moments, datetime(2015, 12, 31, 14, 5)]
    texts = pd.Series([moment.strftime(written) for moment in moments])
    found = date_format(texts)
    assert found in FORMATS
    expected = moments if clock else [each.replace(hour=0, minute=0) for each in moments]
    assert read_dates(texts, found).tolist() == expected


@pytest.mark.parametrize("way", ["", "%d/%m/%Y", "%d %b %Y"])
def test_clock_times_are_in_no_table(way):
    """Of a flat that is free now, pandas makes the time at which it reads the table."""
    assert read_dates(pd.Series(["now", "today", " today "]), way).isna().all()


@pytest.mark.parametrize(
    "versions", [["1.3.10", "1.4.12", "2.9.15"], ["1.3.10", "1.4.12", "2.0.15"]]
)
def test_versions_are_no_dates(versions):
    [column] = infer_schema(pd.DataFrame({"version": versions * 10})).columns
    assert column.kind is ColumnKind.CATEGORY
