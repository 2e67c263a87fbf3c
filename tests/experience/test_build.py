"""Building an experience from columns and matrices."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.errors import ExperienceError
from foretune.experience import Experience, Metric, Status
from tests.refusals import refuses

from .examples import CASH, ERROR, FLAT, NAN, rows_of, small

THREE = FLAT.encode([{"rate": 1e-3, "depth": d} for d in (1, 2, 3)])


def build(**changes: Any) -> Experience:
    """Two legal rows with something changed."""
    given: dict[str, Any] = {
        "space": FLAT,
        "metrics": [ERROR],
        "tasks": ["a", "b"],
        "task_index": [0, 1],
        "configs": THREE,
        "config_index": [0, 1],
        "values": [1.0, 2.0],
    }
    return Experience.build(**(given | changes))


def test_rows_are_sorted_by_task_and_keep_their_order_within() -> None:
    experience = small()
    assert experience.task_index.tolist() == [0, 0, 0, 1, 1]
    assert experience.config_index.tolist() == [0, 1, 2, 2, 0]
    assert experience.seconds.tolist() == [1, 2, 3, 5, 4]
    assert experience.task_index.dtype == experience.config_index.dtype == np.int32
    assert experience.values.dtype == np.float64


def test_many_rows_of_a_task_keep_their_order_too() -> None:
    experience = build(
        task_index=np.arange(99) % 2,
        config_index=np.zeros(99, dtype=int),
        values=np.arange(99.0),
    )
    assert experience.values[:, 0].tolist() == [*range(0, 99, 2), *range(1, 99, 2)]


def test_equal_configurations_are_merged_and_indices_follow() -> None:
    twice = THREE.take([2, 0, 2, 1])
    experience = build(
        configs=twice,
        task_index=[0, 0, 1, 1],
        config_index=[2, 3, 0, 1],
        values=[1.0, 2.0, 3.0, 4.0],
        starts={"a": {"first": [3, 2]}},
    )
    assert [config["depth"] for config in experience.configs.dicts()] == [3, 1, 2]
    assert experience.config_index.tolist() == [0, 2, 0, 1]
    assert experience.starts == {"a": {"first": (2, 0)}}


def test_configurations_without_rows_are_kept() -> None:
    assert len(build().configs) == 3


def test_the_status_follows_the_values_unless_it_is_given() -> None:
    values = [1.0, NAN, np.inf, 2.0]
    rows = {"task_index": [0] * 4, "config_index": [0] * 4, "values": values}
    done, failed, timeout = Status.DONE, Status.FAILED, Status.TIMEOUT
    assert build(**rows).status.tolist() == [done, failed, failed, done]
    given = build(**rows, status=[done, timeout, done, failed])
    assert given.status.tolist() == [done, timeout, failed, failed]
    np.testing.assert_array_equal(given.losses[:, 0], [1.0, NAN, NAN, NAN])


def test_a_constant_metric_and_a_single_row_are_legal() -> None:
    assert len(build(values=[3.0, 3.0])) == 2
    assert len(build(task_index=[0], config_index=[0], values=[3.0], tasks=["a"])) == 1


@pytest.mark.parametrize(
    ("changes", "rule", "field"),
    [
        ({"task_index": [], "config_index": [], "values": []}, "no-evaluations", ""),
        ({"tasks": []}, "no-names", "task"),
        ({"metrics": [], "values": np.empty((2, 0))}, "no-names", "metric"),
        ({"tasks": ["a", "a"]}, "repeated-name", "task"),
        ({"tasks": ["a", ""]}, "not-a-name", "task"),
        ({"tasks": ["a", "caf\udce9"]}, "half-character", "task"),
        ({"task_index": [0, 2]}, "index-outside", "task"),
        ({"task_index": [0.0, 1.0]}, "not-an-index", "task"),
        ({"config_index": [-1, 0]}, "index-outside", "configuration"),
        ({"config_index": [0]}, "wrong-shape", "configuration index"),
        ({"values": [1.0]}, "wrong-shape", "values"),
        ({"values": [NAN, NAN]}, "metric-without-values", "error"),
        (
            {"values": [[1, NAN], [2, NAN]], "metrics": [ERROR, Metric("b")]},
            "metric-without-values",
            "b",
        ),
        ({"values": [1.0, 2.0], "status": [1, 2]}, "metric-without-values", "error"),
        ({"status": [0, 4]}, "unknown-status", "status"),
        ({"status": [0]}, "wrong-shape", "status"),
        ({"seconds": [1.0]}, "wrong-shape", "seconds"),
        ({"fidelity": [1.0]}, "wrong-shape", "fidelity"),
        ({"space": CASH}, "another-space", "configs"),
        ({"starts": {"a": {"first": [3]}}}, "index-outside", "first"),
        ({"starts": {"z": {"first": [0]}}}, "unknown-task", "starts"),
    ],
)
def test_bad_columns_are_refused(changes: dict[str, Any], rule: str, field: str) -> None:
    with refuses(rule, field=field, kind=ExperienceError):
        build(**changes)


def test_later_changes_by_the_caller_change_nothing() -> None:
    given = {
        "task_index": np.zeros(2, dtype=np.int32),
        "config_index": np.zeros(2, dtype=np.int32),
        "values": np.ones(2),
        "status": np.zeros(2, dtype=np.int8),
        "seconds": np.ones(2, dtype=np.float32),
        "fidelity": np.ones(2, dtype=np.float32),
    }
    experience = build(**given)
    before = rows_of(experience)
    for column in given.values():
        column[0] = 2
    assert rows_of(experience) == before


def test_a_matrix_gives_one_row_for_each_entry() -> None:
    matrix = np.array([[1.0, NAN, 3.0], [NAN, NAN, 6.0]], dtype=np.float32)
    failed = np.array([[False, True, True], [False, False, False]])
    seconds = np.arange(6.0).reshape(2, 3)
    experience = Experience.from_matrix(
        FLAT, THREE, ["a", "b"], [ERROR], {"error": matrix}, seconds=seconds, failed=failed
    )
    assert experience.task_index.tolist() == [0, 0, 0, 1]
    assert experience.config_index.tolist() == [0, 1, 2, 2]
    assert experience.status.tolist() == [0, 1, 1, 0]
    assert experience.seconds.tolist() == [0, 1, 2, 5]
    np.testing.assert_array_equal(experience.losses[:, 0], [1, NAN, NAN, 6])
    assert not failed[0, 0]  # the given mask is left alone


def test_matrices_of_several_metrics_share_their_rows() -> None:
    other = Metric("other")
    experience = Experience.from_matrix(
        FLAT,
        THREE,
        ["a"],
        [ERROR, other],
        {"error": np.array([[1.0, NAN, NAN]]), "other": np.array([[5.0, 6.0, NAN]])},
    )
    np.testing.assert_array_equal(experience.values, [[1, 5], [NAN, 6]])
    assert experience.status.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("matrices", "seconds", "rule", "field"),
    [
        ({"error": np.ones((3, 2))}, None, "wrong-shape", "error"),
        ({"eror": np.ones((2, 3))}, None, "matrix-missing", "error"),
        ({"error": np.ones((2, 3))}, np.ones((2, 2)), "wrong-shape", "seconds"),
        ({"error": np.full((2, 3), NAN)}, None, "no-evaluations", ""),
    ],
)
def test_bad_matrices_are_refused(matrices, seconds, rule: str, field: str) -> None:
    with refuses(rule, field=field, kind=ExperienceError):
        Experience.from_matrix(FLAT, THREE, ["a", "b"], [ERROR], matrices, seconds=seconds)


@given(st.integers(0, 2**31), st.floats(0.1, 1.0))
def test_a_matrix_agrees_with_its_entries_given_one_by_one(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((4, 3)) < share, rng.normal(size=(4, 3)), NAN)
    matrix[0, 0] = 1.0
    tasks = list("abcd")
    columns = Experience.from_matrix(FLAT, THREE, tasks, [ERROR], {"error": matrix})
    rows, cols = np.nonzero(~np.isnan(matrix))
    order = rng.permutation(len(rows))
    rows, cols = rows[order], cols[order]
    one_by_one = build(tasks=tasks, task_index=rows, config_index=cols, values=matrix[rows, cols])
    assert sorted(rows_of(columns)) == sorted(rows_of(one_by_one))
