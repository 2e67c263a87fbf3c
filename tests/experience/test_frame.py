"""Between an experience and a data frame."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from foretune.errors import ExperienceError
from foretune.experience import Direction, Evaluation, Experience, Metric, Status
from foretune.experience.curves import Curve
from foretune.space import Space
from tests.refusals import refuses

from .examples import CASH, FLAT, NAN, experiences, rows_of, small


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "dataset": ["wine", "iris", "wine"],
            "model": ["svm", "tree", "naive"],
            "model:svm:C": [2.0, NAN, NAN],
            "model:tree:depth": [NAN, 4, NAN],
            "auc": [0.5, 0.75, NAN],
            "outcome": ["done", "Done", "timeout"],
            "note": ["x", "y", "z"],
        }
    )


def read(frame: pd.DataFrame, **changes) -> Experience:
    chosen = {"task": "dataset", "metrics": {"auc": Direction.MAX}} | changes
    return Experience.from_frame(CASH, frame, **chosen)


def test_hyperparameters_in_columns() -> None:
    experience = read(table(), status="outcome")
    assert experience.tasks == ("wine", "iris")
    assert experience.task("wine").configs.dicts() == [
        {"model": "svm", "model:svm:C": 2.0},
        {"model": "naive"},
    ]
    assert experience.task("iris").configs.dicts() == [{"model": "tree", "model:tree:depth": 4}]
    assert experience.task("wine").status.tolist() == [Status.DONE, Status.TIMEOUT]
    np.testing.assert_array_equal(experience.losses[:, 0], [-0.5, NAN, -0.75])


def test_columns_that_pandas_lets_be_missing() -> None:
    nullable = {"model": "string", "model:svm:C": "Float64", "model:tree:depth": "Int64"}
    frame = table().astype(nullable | {"auc": "Float64"})
    assert rows_of(read(frame, status="outcome")) == rows_of(read(table(), status="outcome"))


def test_hyperparameters_as_json() -> None:
    frame = pd.DataFrame(
        {
            "dataset": [7, 7],
            "config": ['{"model": "svm", "model:svm:C": 2.0}', '{"model": "naive"}'],
            "auc": ["0.5", "0.25"],
            "cost": [3, 4],
            "epochs": [10, 20],
        }
    )
    experience = read(frame, config_column="config", seconds="cost", fidelity="epochs")
    assert experience.tasks == ("7",)
    assert experience.configs.dicts() == [{"model": "svm", "model:svm:C": 2.0}, {"model": "naive"}]
    assert experience.values[:, 0].tolist() == [0.5, 0.25]
    assert experience.seconds.tolist() == [3, 4]
    assert experience.fidelity is not None
    assert experience.fidelity.tolist() == [10, 20]


@pytest.mark.parametrize(
    ("changes", "rule", "field"),
    [
        ({"task": "datset"}, "unknown-column", "datset"),
        ({"metrics": {"acu": Direction.MAX}}, "unknown-column", "acu"),
        ({"metrics": {"note": Direction.MAX}}, "not-a-number", "note"),
        ({"metrics": {}}, "no-names", "metric"),
        ({"status": "note"}, "unknown-status", "note"),
        ({"seconds": "time"}, "unknown-column", "time"),
        ({"config_column": "note"}, "not-a-config", "note"),
    ],
)
def test_bad_columns_are_refused(changes, rule: str, field: str) -> None:
    with refuses(rule, field=field, kind=ExperienceError):
        read(table(), **changes)


def test_a_row_without_a_task_is_refused() -> None:
    frame = table()
    frame.loc[1, "dataset"] = None
    with refuses("task-missing", field="dataset"):
        read(frame)


def test_an_empty_table_is_refused() -> None:
    with refuses("no-evaluations"):
        read(table().iloc[:0])


def test_an_active_hyperparameter_must_have_a_value() -> None:
    frame = table()
    frame.loc[0, "model:svm:C"] = NAN
    with refuses("value-missing", field="model:svm:C"):
        read(frame)


def test_a_configuration_outside_the_space_is_refused() -> None:
    frame = table()
    frame.loc[0, "model:svm:C"] = 1e9
    with refuses("illegal-value", field="model:svm:C", value=1e9):
        read(frame)


def test_a_frame_shows_everything() -> None:
    frame = small().to_frame()
    assert frame.columns.tolist() == [
        "task", *(p.name for p in FLAT.parameters), "error", "accuracy", "status", "seconds",
    ]  # fmt: skip
    assert frame["task"].tolist() == ["iris", "iris", "iris", "wine", "wine"]
    assert frame["depth"].tolist() == [1, 2, 3, 3, 1]
    assert frame["status"].tolist() == ["DONE", "FAILED", "DONE", "DONE", "DONE"]
    assert frame["accuracy"].iloc[3] == 0.6


def test_a_hyperparameter_named_like_a_column_gets_a_prefix() -> None:
    space = Space.of({"seconds": (0.0, 1.0)})
    row = space.encode([{"seconds": 0.5}])
    experience = Experience.build(space, small().metrics[:1], ["t"], [0], row, [0], [2.0])
    frame = experience.append([Evaluation("t", {"seconds": 0.25}, {"error": 3.0})]).to_frame()
    assert frame["config:seconds"].tolist() == [0.5, 0.25]
    assert frame["seconds"].isna().all()


def test_columns_that_share_a_name_come_back_whole() -> None:
    space = Space.of({"seconds": (0.0, 1.0), "x": (0.0, 1.0)})
    metrics = [Metric("seconds"), Metric("status"), Metric("task"), Metric("x")]
    row = {"seconds": 0.5, "x": 0.25}
    values = [[1.0, 2.0, 3.0, 4.0]]
    experience = Experience.build(
        space, metrics, ["t"], [0], space.encode([row]), [0], values, seconds=[9.0]
    )
    frame = experience.to_frame()
    assert frame["seconds"].tolist() == [9.0]
    assert frame["metric:seconds"].tolist() == [1.0]
    assert frame["status"].tolist() == ["DONE"]
    back = Experience.from_frame(
        space,
        frame,
        task="task",
        metrics={metric.name: metric.direction for metric in metrics},
        status="status",
        seconds="seconds",
    )
    assert rows_of(back) == rows_of(experience)


def test_status_numbers_may_have_been_read_as_decimal_numbers() -> None:
    frame = table().assign(outcome=[0.0, 1.0, 2.0])
    read_back = read(frame, status="outcome").to_frame()
    assert sorted(read_back["status"]) == ["DONE", "FAILED", "TIMEOUT"]


@settings(max_examples=40)
@given(experiences())
def test_a_frame_holds_all_evaluations(experience: Experience) -> None:
    frame = experience.to_frame()
    back = Experience.from_frame(
        CASH,
        frame,
        task="task",
        metrics={metric.name: metric.direction for metric in experience.metrics},
        status="status",
        seconds="seconds",
        fidelity="fidelity" if "fidelity" in frame else None,
    )
    assert rows_of(back) == rows_of(experience)


def test_metrics_are_given_with_known_directions() -> None:
    assert read(table(), metrics={"auc": "max"}).metrics == (Metric("auc", Direction.MAX),)
    with refuses("not-a-mapping", field="metrics", value=["auc"]):
        read(table(), metrics=["auc"])
    with refuses("unknown-direction", field="auc", value="maximise"):
        read(table(), metrics={"auc": "maximise"})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_read_in_seconds(unit: str) -> None:
    """As `duration` of Optuna's trials_dataframe() has them: inside, their unit differs."""
    took = pd.Series(pd.to_timedelta([90, 0.5, None], unit="s")).astype(f"timedelta64[{unit}]")
    half = 0.5 if unit != "s" else 0.0
    experience = read(table().assign(took=took), metrics={"took": "min"}, seconds="took")
    np.testing.assert_array_equal(experience.task("wine").seconds, [90, NAN])
    np.testing.assert_array_equal(experience.task("iris").seconds, [half])
    np.testing.assert_array_equal(experience.losses[:, 0], [90, NAN, half])


def test_moments_are_no_numbers() -> None:
    frame = table().assign(began=pd.Timestamp("2024-05-01"))
    with refuses("not-a-number", field="began"):
        read(frame, seconds="began")


def test_a_space_in_the_short_notation() -> None:
    notation = {"lr": (0.001, 0.1, "log")}
    frame = pd.DataFrame({"dataset": ["wine"], "lr": [0.01], "auc": [0.5]})
    experience = Experience.from_frame(notation, frame, task="dataset", metrics={"auc": "max"})
    assert experience.space == Space.of(notation)


@pytest.mark.parametrize("twice", ["auc", "model", "dataset"])
def test_columns_of_the_same_name_are_refused(twice: str) -> None:
    frame = pd.concat([table(), table()[[twice]]], axis=1)
    with refuses("repeated-column", field=twice):
        read(frame)


def test_other_things_than_frames_are_refused() -> None:
    with refuses("not-a-frame"):
        read([{"dataset": "wine"}])


# Learning curves


def with_curves() -> Experience:
    """Metrics of the names of columns, a curve without seconds, and rows without a curve."""
    space = Space.of({"lr": (0.0, 1.0)})
    metrics = (Metric("seconds"), Metric("acc", Direction.MAX))
    curve = Curve([1, 5], {"seconds": [4.0, NAN], "acc": [0.5, 0.75]}, [2.0, 8.0])
    first = {"seconds": 3.0, "acc": 0.25}
    row = space.encode([{"lr": 0.5}])
    built = Experience.build(space, metrics, ["t"], [0], row, [0], [list(first.values())])
    return built.append(
        [
            Evaluation("t", {"lr": 0.25}, {"seconds": 4.0, "acc": 0.75}, curve=curve),
            Evaluation(
                "s",
                {"lr": 0.75},
                {"seconds": 1.0, "acc": 0.5},
                Status.STOPPED,
                curve=Curve([2], {"acc": [0.5]}),
            ),
        ]
    )


def test_curves_go_to_a_frame_and_back() -> None:
    past = with_curves()
    frame = past.to_frame()
    assert frame["curve:step"].tolist() == [None, [1.0, 5.0], [2.0]]
    assert frame["curve:acc"].tolist() == [None, [0.5, 0.75], [0.5]]
    assert frame["curve:metric:seconds"].iloc[1][0] == 4.0
    assert frame["curve:seconds"].iloc[1] == [2.0, 8.0]
    again = Experience.from_frame(
        past.space,
        frame,
        task="task",
        metrics={metric.name: metric.direction for metric in past.metrics},
        status="status",
        seconds="seconds",
        curves="curve:",
    )
    assert again.status.tolist() == [Status.DONE, Status.DONE, Status.STOPPED]
    assert past.curves is not None
    assert again.curves is not None
    for name in ("offsets", "steps", "values", "seconds"):
        np.testing.assert_array_equal(getattr(again.curves, name), getattr(past.curves, name))


def test_a_frame_without_curves_has_no_columns_for_them() -> None:
    assert not [name for name in small().to_frame() if name.startswith("curve:")]


@pytest.mark.parametrize(
    ("changes", "rule", "field"),
    [
        ({"c:step": [[1, 2], [1], [1]]}, "curve-length", "c:step"),
        ({"c:auc": [[0.5], [0.5], 0.5]}, "not-a-list", "c:auc"),
        ({"c:auc": [[0.5], ["a"], [0.5]]}, "not-a-list", "c:auc"),
        ({"c:auc": [[[0.5]], [0.5], [0.5]]}, "not-a-list", "c:auc"),
        ({"c:step": [[-1], [1], None]}, "curve-steps", "0"),
    ],
)
def test_curves_that_do_not_fit_are_refused(changes, rule: str, field: str) -> None:
    frame = table().assign(**({"c:auc": [[0.5], [0.5], None]} | changes))
    with refuses(rule, field=field, kind=ExperienceError):
        read(frame, curves="c:")
    with refuses("unknown-column", field="curves", value="d:"):
        read(frame, curves="d:")


def test_steps_are_counted_if_a_frame_does_not_name_them() -> None:
    frame = table().assign(**{"c:auc": [(0.5, 0.75), np.array([0.25]), NAN]})
    curves = read(frame, curves="c:").curves
    assert curves is not None
    # Tasks are wine, iris, wine: rows are sorted by task.
    assert curves.lengths.tolist() == [2, 0, 1]
    assert curves.steps.tolist() == [1, 2, 1]
