"""The first model, which is there before any trial."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretune._base.time_budget import TimeBudget
from foretune.automl.baseline import baseline_member
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.estimators.plain_linear import PlainLinearModel
from foretune.automl.final_model.model import Model
from foretune.automl.first_model import FirstModel, FirstModelKeeper, call_within, fit_first_model
from foretune.automl.plan import LEAST_SEARCH_ROWS, FitOptions, FitPlan, make_plan, most_search_rows
from foretune.tables.table import Table
from foretune.tables.target import Task

from .samples import mixed_frame, mixed_table, noise_frame


def failing_fit(*_: object, **__: object) -> Member:
    raise ValueError("trees may find something in noise by chance")


@pytest.fixture(params=list(Task))
def plan(request: pytest.FixtureRequest) -> FitPlan:
    return make_plan(mixed_table(request.param, 300), FitOptions())


def target_of(plan: FitPlan) -> str:
    return "class" if plan.table.task is Task.CLASSIFICATION else "amount"


def test_it_is_better_than_the_baseline_and_can_be_opened(plan: FitPlan, tmp_path: Path) -> None:
    made = fit_first_model(plan, target=target_of(plan), seconds=60.0)
    sign = plan.metric.sign
    assert sign * made.score < sign * made.baseline
    assert (made.is_baseline, made.rows) == (False, 200)
    made.model.save(tmp_path / "m")
    new = mixed_frame(50, seed=3)
    np.testing.assert_array_equal(Model.open(tmp_path / "m").predict(new), made.model.predict(new))


def test_a_pipeline_that_hangs_leaves_a_linear_model_in_time(plan: FitPlan) -> None:
    never = threading.Event()

    def hang(*_: object, **__: object) -> Member:
        never.wait(60.0)
        raise TimeoutError

    began = time.monotonic()
    made = fit_first_model(plan, target=target_of(plan), seconds=3.0, fit=hang)
    assert time.monotonic() - began < 30.0
    assert isinstance(made.model.members[0].pipeline, PlainLinearModel)
    assert not made.is_baseline
    never.set()


@pytest.mark.parametrize("task", list(Task))
def test_columns_that_tell_nothing_give_a_baseline(task: Task) -> None:
    plan = make_plan(Table.of(noise_frame(task), "y", task=task), FitOptions())
    made = fit_first_model(plan, target="y", seconds=60.0, fit=failing_fit)
    assert made.is_baseline
    assert made.score == made.baseline
    assert len({str(each) for each in made.model.predict(noise_frame(task, 20))}) == 1


@pytest.mark.parametrize("metric", ["r2", "mae"])
def test_a_baseline_predicts_the_best_single_number(metric: str, tmp_path: Path) -> None:
    """The mean for squares, the median for absolute errors, also after saving."""
    table = mixed_table(Task.REGRESSION)
    expected = table.y.mean() if metric == "r2" else np.median(table.y)
    member = baseline_member(table, metric)
    Model.of(table, [member], target="amount", metric=metric).save(tmp_path / "m")
    predicted = Model.open(tmp_path / "m").predict(mixed_frame(20, seed=5))
    np.testing.assert_allclose(predicted, expected)


def test_a_baseline_predicts_the_shares_of_the_classes(tmp_path: Path) -> None:
    table = mixed_table(Task.CLASSIFICATION)
    member = baseline_member(table, "log_loss")
    Model.of(table, [member], target="class", metric="log_loss").save(tmp_path / "m")
    shares = Model.open(tmp_path / "m").predict_proba(mixed_frame(20, seed=5))
    expected = np.bincount(table.y.astype(int)) / len(table)
    np.testing.assert_allclose(shares, np.tile(expected, (20, 1)))


def test_the_model_of_an_earlier_fit_stays_until_it_is_replaced(tmp_path: Path) -> None:
    plan = make_plan(mixed_table(Task.CLASSIFICATION), FitOptions())
    path = tmp_path / "folder" / "model.foretune"
    FirstModelKeeper(path, TimeBudget(60.0)).make(plan, "class", plan.table)
    before = path.read_bytes()
    later = FirstModelKeeper(path, TimeBudget(60.0))
    later.make(plan, "class", plan.table)
    assert (path.read_bytes(), later.is_saved) == (before, False)
    assert later.kept is not None
    assert later.settle("another table") == (later.kept.model, False)
    assert later.is_saved


def test_the_model_of_an_earlier_fit_of_the_same_table_is_not_replaced(tmp_path: Path) -> None:
    plan = make_plan(mixed_table(Task.CLASSIFICATION), FitOptions())
    earlier = fit_first_model(plan, target="class", seconds=60.0).model
    path = tmp_path / "model.foretune"
    replace(earlier, about={"task": "this table"}).save(path)
    keeper = FirstModelKeeper(path, TimeBudget(60.0))
    keeper.make(plan, "class", plan.table)
    model, is_earlier = keeper.settle("this table")
    assert is_earlier
    assert model.about == {"task": "this table"}


def test_a_linear_model_is_saved_at_once_and_no_guess_replaces_it(tmp_path: Path) -> None:
    plan = make_plan(mixed_table(Task.CLASSIFICATION), FitOptions())
    path = tmp_path / "model.foretune"
    told: list[FirstModel] = []
    clock = TimeBudget(60.0)
    keeper = FirstModelKeeper(path, clock, lambda made, *_: told.append(made), failing_fit)
    keeper.begin(plan, "class")
    assert isinstance(Model.open(path).members[0].pipeline, PlainLinearModel)
    noise = Table.of(noise_frame(Task.CLASSIFICATION), "y")
    keeper.make(make_plan(noise, FitOptions()), "y", noise)
    assert [made.is_baseline for made in told] == [False]
    assert keeper.kept is told[0]


def test_no_first_model_is_made_without_a_time_or_without_a_file(tmp_path: Path) -> None:
    plan = make_plan(mixed_table(Task.CLASSIFICATION), FitOptions())
    for keeper in (
        FirstModelKeeper(None, TimeBudget(60.0)),
        FirstModelKeeper(tmp_path / "m", TimeBudget()),
    ):
        keeper.begin(plan, "class")
        keeper.make(plan, "class", plan.table)
        assert (keeper.kept, [*tmp_path.iterdir()]) == (None, [])


def test_failing_and_slow_functions_return_nothing() -> None:
    assert call_within(10.0, lambda: 3) == 3
    assert call_within(10.0, lambda: 1 // 0) is None
    assert call_within(0.05, lambda: time.sleep(5.0)) is None


@pytest.mark.parametrize(
    ("score", "is_better"), [(0.5, False), (0.61, False), (0.62, True), (0.7, True)]
)
def test_it_must_be_better_by_more_than_chance(score: float, is_better: bool) -> None:
    """A log loss of 0.6 against 0.62, where 0.9 is the baseline: 0.02 of a gain of 0.28."""
    plan = make_plan(mixed_table(Task.CLASSIFICATION), FitOptions())
    made = fit_first_model(plan, target="class", seconds=60.0)
    first = FirstModel(made.model, "log_loss", 0.6, 10, 0.9, is_baseline=False)
    assert first.is_clearly_better(score) is is_better


def test_trials_have_fewer_rows_where_columns_are_many_and_time_is_short() -> None:
    assert most_search_rows(30, None) == 30_000
    assert most_search_rows(30, 600.0) == 30_000
    assert most_search_rows(3000, 60.0) == 1000
    assert most_search_rows(5000, 600.0) == 1200
    assert most_search_rows(5000, 10.0) == LEAST_SEARCH_ROWS
