"""Whatever a data frame holds: a schema, a matrix of finite numbers and gaps, or one sentence."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.errors import UsageError
from foretune.tables.schema import Schema, infer_schema
from foretune.tables.table import Table
from foretune.tables.target import Task

ROWS = 12
TEXTS = st.one_of(
    st.text(max_size=4),
    st.sampled_from(["1", "2.5", "nan", "inf", "true", "No", "2020-01-01", "31.12.1999", "", "?"]),
)
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXTS,
    st.dates(),
    st.lists(st.integers(), max_size=2),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.just(pd.Timestamp("2020-02-29 12:00", tz="Europe/Paris")),
)


def of(cells):
    return st.lists(cells, min_size=ROWS, max_size=ROWS)


COLUMNS = st.one_of(
    of(CELLS).map(lambda values: pd.Series(values, dtype=object)),
    of(st.floats()).map(pd.Series),
    of(st.floats(width=32)).map(lambda values: pd.Series(values, dtype=np.float32)),
    of(st.integers(-(2**63), 2**63 - 1)).map(pd.Series),
    of(st.integers(0, 2**64 - 1)).map(lambda values: pd.Series(values, dtype=np.uint64)),
    of(st.one_of(st.none(), st.integers(-5, 5))).map(lambda v: pd.Series(v, dtype="Int64")),
    of(st.one_of(st.none(), st.booleans())).map(lambda v: pd.Series(v, dtype="boolean")),
    of(st.one_of(st.none(), TEXTS)).map(lambda v: pd.Series(v, dtype="str")),
    of(st.one_of(st.none(), TEXTS)).map(lambda v: pd.Series(v, dtype="category")),
    of(st.floats(-2, 2)).map(lambda v: pd.Series(np.round(v), dtype="category")),
    of(st.one_of(st.none(), st.datetimes())).map(lambda v: pd.Series(pd.to_datetime(v))),
    of(st.one_of(st.none(), st.integers(0, 10**6))).map(
        lambda v: pd.Series(pd.to_timedelta(v, unit="s"))
    ),
    of(st.one_of(st.none(), st.integers(0, 10**4))).map(
        lambda v: pd.Series([None if n is None else pd.Period(ordinal=n, freq="D") for n in v])
    ),
)
FRAMES = st.lists(COLUMNS, min_size=1, max_size=3).map(
    lambda columns: pd.DataFrame(dict(enumerate(columns)))
)


@settings(max_examples=25)
@given(frame=FRAMES)
def test_every_frame_has_a_schema_and_a_matrix(frame):
    before = frame.copy(deep=True)
    schema = infer_schema(frame)
    matrix = schema.encode(frame)
    assert matrix.shape == (ROWS, len(schema.features)) == (ROWS, len(schema.categorical))
    assert not np.isinf(matrix).any()
    codes = matrix[:, schema.categorical]
    sizes = [len(column.categories) for column in schema.columns if column.categories]
    assert np.nanmax(codes - np.array(sizes), initial=-1.0) < 0
    pd.testing.assert_frame_equal(frame, before)
    # The same columns, whatever stands in the rows, in another order, as a saved schema reads them.
    again = Schema.from_list(json.loads(json.dumps(schema.to_list())))
    assert again == schema
    part = again.encode(frame.iloc[::-1, ::-1])
    np.testing.assert_array_equal(part, matrix[::-1])


@pytest.mark.parametrize("values", [[False, 0, "a"], [0, False, "a"], ["a", True, 1, 1.0]])
def test_truths_and_numbers_in_one_column_stay_apart(values):
    frame = pd.DataFrame({"x": pd.Series(values * 4, dtype=object)})
    schema = infer_schema(frame)
    assert len(schema.columns[0].categories) == 3
    np.testing.assert_array_equal(schema.encode(frame.iloc[::-1]), schema.encode(frame)[::-1])


@settings(max_examples=25)
@given(frame=FRAMES, other=FRAMES)
def test_any_other_rows_can_be_read(frame, other):
    schema = infer_schema(frame)
    new = pd.DataFrame({name: other.iloc[:, name % other.shape[1]] for name in frame.columns})
    matrix = schema.encode(new)
    assert matrix.shape == (ROWS, len(schema.features))
    assert not np.isinf(matrix).any()
    unread = schema.count_unread(new.set_axis([str(name) for name in new.columns], axis=1), matrix)
    assert all(0 < count <= ROWS for count in unread.values())


@settings(max_examples=25)
@given(frame=FRAMES, target=COLUMNS, task=st.sampled_from([None, *Task]))
def test_every_table_can_be_learnt_from_or_is_refused(frame, target, task):
    try:
        table = Table.of(frame.assign(target=target), "target", task=task)
    except UsageError:
        return
    assert np.isfinite(table.y).all()
    assert len(table.x) == len(table.y) == target.notna().sum()
    if table.task is Task.CLASSIFICATION:
        labels = table.label_kind.labels(table.classes)
        assert len(labels) == len(table.classes) >= 2
        assert set(table.y) == set(range(len(labels)))
        decoded = [table.classes[int(code)] for code in table.y]
        assert decoded == [str(value) for value in target[target.notna()]]
