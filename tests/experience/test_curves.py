"""CurveColumns in columns: what goes in comes out, row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.errors import ExperienceError
from foretune.experience.curves import (
    Curve,
    CurveColumns,
    build_curves,
    group_points,
    read_curve,
    stack_curves,
)
from tests.refusals import refuses

METRICS = ("loss", "size")
numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@st.composite
def curves(draw: st.DrawFn) -> Curve | None:
    steps = sorted(draw(st.sets(st.integers(1, 50), max_size=6)))
    if not steps and draw(st.booleans()):
        return None
    column = st.lists(numbers, min_size=len(steps), max_size=len(steps))
    values = {name: draw(column) for name in METRICS}
    return Curve([float(step) for step in steps], values, draw(column) if steps else None)


def same(first: Curve | None, second: Curve | None) -> bool:
    if first is None or second is None or not len(first) or not len(second):
        return not first and not second
    return (
        list(first.steps) == list(second.steps)
        and {name: list(of) for name, of in first.values.items()}
        == {name: list(of) for name, of in second.values.items()}
        and first.seconds == second.seconds
    )


@given(st.lists(curves(), max_size=6))
def test_each_row_keeps_its_curve(rows: list[Curve | None]) -> None:
    table = stack_curves(rows, METRICS)
    assert len(table) == len(rows)
    assert all(same(read_curve(table, i, METRICS), row) for i, row in enumerate(rows))


@given(st.lists(curves(), min_size=1, max_size=6), st.data())
def test_rows_are_taken_and_joined_with_their_points(
    rows: list[Curve | None], data: st.DataObject
) -> None:
    table = stack_curves(rows, METRICS)
    picked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    taken = table.take(np.array(picked, dtype=np.int64))
    joined = CurveColumns.concat([taken, table])
    for place, row in enumerate([*picked, *range(len(rows))]):
        assert same(read_curve(joined, place, METRICS), rows[row])


def test_last_steps_and_lengths() -> None:
    table = build_curves([3, 0, 1], [1, 2, 8, 4], [0.9, 0.5, 0.1, 0.7])
    assert np.array_equal(table.lengths, [3, 0, 1])
    assert np.array_equal(table.last_steps, [8, np.nan, 4], equal_nan=True)


def test_points_in_any_order_become_curves() -> None:
    rows, steps = np.array([1, 0, 1, 0]), np.array([2.0, 5.0, 1.0, 3.0])
    order, lengths = group_points(rows, steps, 3)
    assert order.tolist() == [3, 1, 2, 0]
    assert lengths.tolist() == [2, 2, 0]


def test_nobody_can_change_them() -> None:
    table = build_curves([1], [1], [0.5])
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 1


@pytest.mark.parametrize("steps", [[1, 1], [2, 1], [-1, 2], [1, np.inf], [np.nan, 1]])
def test_steps_ascend(steps: list[float]) -> None:
    with refuses("curve-steps", field="1", kind=ExperienceError):
        build_curves([1, 2], [7, *steps], [0.0, 0.0, 0.0])


def test_a_curve_may_begin_below_where_the_one_before_ended() -> None:
    assert len(build_curves([2, 2], [1, 9, 1, 2], [0, 0, 0, 0])) == 2


def test_seconds_of_another_length_are_refused_though_their_sum_is_right() -> None:
    for lengths in [(3, 1), (1, 3)]:
        rows = [Curve([1, 2], {"loss": [0.1, 0.2]}, [1.0] * length) for length in lengths]
        with refuses("curve-length", field="seconds", value=lengths[0]):
            stack_curves(rows, METRICS)


def test_columns_of_other_lengths_and_unknown_metrics_are_refused() -> None:
    with refuses("curve-length", field="values", value=1):
        build_curves([2], [1, 2], [0.5])
    with refuses("curve-length", field="loss", value=1):
        stack_curves([Curve([1, 2], {"loss": [0.1]})], METRICS)
    with refuses("unknown-metric", field="accuracy"):
        stack_curves([Curve([1], {"accuracy": [0.1]})], METRICS)
