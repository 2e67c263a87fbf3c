from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from foretune.automl.plan import MOST_SEARCH_ROWS, FitOptions, make_plan
from foretune.errors import UsageError
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.refusals import refuses

from .samples import mixed_table


def table(y: list[object] | np.ndarray, task: Task | None = None) -> Table:
    x = np.random.default_rng(0).normal(size=(len(y), 2))
    return Table.of(pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}), "y", task=task)


def test_classes_are_scored_by_log_loss() -> None:
    plan = make_plan(table(["u", "v"] * 20), FitOptions())
    assert plan.metric.name == plan.protocol.metrics[0] == "log_loss"
    assert plan.shipped.name == "pipeline-classification"
    assert "log_loss" in plan.notes[0]
    assert plan.shares == ()


def test_a_rare_class_is_to_be_found() -> None:
    plan = make_plan(table(["u"] * 95 + ["v"] * 5), FitOptions())
    assert plan.metric.name == "log_loss"
    assert plan.shares == pytest.approx((0.95**0.5, 0.05**0.5))
    assert any("5.0%" in note for note in plan.notes)


def test_one_of_many_classes_is_not_rare_for_that() -> None:
    assert make_plan(table(list("uvwxyz") * 10), FitOptions()).shares == ()


def test_every_fold_has_three_rows_if_there_are_few_numbers() -> None:
    assert (
        make_plan(table(np.linspace(0.0, 1.0, 10), Task.REGRESSION), FitOptions()).protocol.folds
        == 3
    )


def test_who_asks_for_a_metric_gets_the_most_probable_class() -> None:
    plan = make_plan(table(["u"] * 95 + ["v"] * 5), FitOptions(metric="log_loss"))
    assert plan.shares == ()


@pytest.mark.parametrize(
    ("y", "metric"), [(["u", "v"] * 20, "accuracy"), (["u"] * 95 + ["v"] * 5, "balanced_accuracy")]
)
def test_a_space_whose_experience_has_no_probabilities_is_scored_by_what_it_has(y, metric) -> None:
    plan = make_plan(table(y), FitOptions(space="cash"))
    assert plan.metric.name == metric
    assert plan.shares == ()


def test_numbers_are_regressed() -> None:
    plan = make_plan(table(np.linspace(0, 1, 40)), FitOptions())
    assert (plan.metric.name, plan.shipped.name) == ("r2", "pipeline-regression")


def test_the_metric_asked_for_comes_first_and_the_others_are_measured_too() -> None:
    plan = make_plan(table(["u", "v"] * 20), FitOptions(metric="auc"))
    assert plan.protocol.metrics[0] == "auc"
    assert set(plan.protocol.metrics) == {"auc", "accuracy", "balanced_accuracy", "log_loss"}


def test_every_fold_has_a_row_of_the_rarest_class() -> None:
    few = table(["u"] * 37 + ["v"] * 3)
    plan = make_plan(few, FitOptions())
    assert plan.protocol.folds == 3
    for _, held in plan.protocol.splits(plan.table):
        assert set(few.y[held]) == {0.0, 1.0}


def test_large_tables_are_searched_in_part_and_that_is_said() -> None:
    large = table(np.arange(MOST_SEARCH_ROWS + 10) % 2)
    plan = make_plan(large, FitOptions())
    assert len(plan.table) == MOST_SEARCH_ROWS
    assert any("30,000 of 30,010 rows" in note for note in plan.notes)


def test_a_space_for_another_task_is_refused() -> None:
    with refuses("space-of-other-task", value="cash"):
        make_plan(table(np.linspace(0, 1, 40)), FitOptions(space="cash"))


def test_a_metric_for_another_task_is_refused() -> None:
    with refuses("unknown-metric", value="r2"):
        make_plan(table(["u", "v"] * 20), FitOptions(metric="r2"))


def test_undefined_metrics_are_refused_before_the_first_trial() -> None:
    few = table([1.5] + [0.0] * 2999, Task.REGRESSION)
    with refuses("metric-of-equal-targets", value="r2"):
        make_plan(few, FitOptions(refit=True))
    rare = table(["u"] * 2999 + ["v"])
    assert set(make_plan(rare, FitOptions(refit=True)).protocol.metrics) == {
        "log_loss",
        "accuracy",
        "balanced_accuracy",
    }


def test_spaces_are_narrowed() -> None:
    plan = make_plan(table(["u", "v"] * 20), FitOptions(only=("rf", "knn")))
    assert {config["estimator"] for config in plan.space.sample(50, seed=0).dicts()} == {
        "rf",
        "knn",
    }
    with refuses("unknown-estimator", value="forest"):
        make_plan(table(["u", "v"] * 20), FitOptions(only=("forest",)))


@pytest.mark.parametrize(
    ("wishes", "trials"),
    [(FitOptions(), 50), (FitOptions(trials=7), 7), (FitOptions(seconds=9.0), None)],
)
def test_a_search_ends_by_trials_or_by_time(wishes: FitOptions, trials: int | None) -> None:
    assert wishes.most_trials == trials


def test_impossible_wishes_are_refused() -> None:
    with pytest.raises(UsageError, match=r"a seed must be .*, but got 4294967296"):
        FitOptions(seed=2**32)
    with refuses("too-small", field="jobs", value=0):
        FitOptions(jobs=0)


def test_trials_are_scored_as_the_model_chooses() -> None:
    plan = make_plan(table(["u"] * 95 + ["v"] * 5), FitOptions())
    assert plan.protocol.shares == plan.shares == pytest.approx((0.95**0.5, 0.05**0.5))
    assert set(plan.protocol.metrics) == set(plan.shipped.metrics)


@pytest.mark.parametrize(
    ("scale", "said"), [(1e300, "reach 1e+300"), (1e-300, "differ by at most 1e-300")]
)
def test_targets_of_extreme_units_are_refused(scale: float, said: str) -> None:
    with refuses("target-scale", value=said):
        make_plan(table(scale * np.linspace(0, 1, 40)), FitOptions())


def test_small_units_are_noted() -> None:
    y = np.linspace(0, 1, 40)
    assert any("other units" in note for note in make_plan(table(1e-9 * y), FitOptions()).notes)
    for other in (y, 1e9 * y):
        assert not any("units" in note for note in make_plan(table(other), FitOptions()).notes)


def test_a_budget_is_refused_before_anything_is_computed() -> None:
    for wrong in ({"seconds": 0}, {"seconds": -3}, {"trials": 0}):
        with refuses("not-positive"):
            FitOptions(**wrong)


def test_shares_of_a_target_that_may_be_zero_are_refused():
    table = mixed_table(Task.REGRESSION)
    zero = replace(table, y=np.where(np.arange(len(table)) < 2, 0.0, np.abs(table.y) + 1.0))
    with refuses("mape-of-zero", value=2):
        make_plan(zero, FitOptions(metric="mape"))
    assert make_plan(replace(zero, y=zero.y + 1.0), FitOptions(metric="mape")).metric.name == "mape"


def test_classes_of_very_few_rows_do_not_make_folds_fewer() -> None:
    def folds(*, odd: int) -> int:
        rows = ["u"] * 99 + ["v"] * (100 - odd) + ["misspelt"] + ["odd"] * odd
        return make_plan(table(rows), FitOptions()).protocol.folds

    assert folds(odd=1) == folds(odd=3) == 5  # 4 of 200 rows are 2%.
    assert folds(odd=4) == 4


def test_a_class_that_makes_folds_fewer_is_named() -> None:
    even = table(["u", "v"] * 20)
    assert any(
        "5-fold cross-validation on 40 rows." in n for n in make_plan(even, FitOptions()).notes
    )
    plan = make_plan(table(["u"] * 37 + ["v"] * 2 + ["odd"]), FitOptions())
    assert any("2-fold" in n and "because the class 'odd' has 1 row." in n for n in plan.notes)


def arranged(y: list[object] | np.ndarray, **roles: np.ndarray) -> Table:
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=len(y)), "y": y, **roles})
    return Table.of(frame, "y", roles=ColumnRoles(**{role: role for role in roles}))


def test_classes_that_no_model_can_foretell_are_named() -> None:
    late = ["u", "v"] * 20 + ["w"] * 20
    [note] = [
        n for n in make_plan(arranged(late, order=np.arange(60)), FitOptions()).notes if "'w'" in n
    ]
    # The last ten rows are scored by models that have seen ten of the class.
    assert note.startswith("10 of 30 scored rows are of a class that no training row has: 'w'.")
    of_one_group = arranged(late, group=np.arange(60) // 20)
    assert any(
        "20 of 60 scored rows" in note for note in make_plan(of_one_group, FitOptions()).notes
    )
    of_one_row = make_plan(table(["u", "v"] * 20 + ["odd"]), FitOptions())
    said = "1 of 41 scored rows is of a class that no training row has: 'odd'. It makes"
    assert any(note.startswith(said) for note in of_one_row.notes)
    known = make_plan(arranged(["u", "v", "w"] * 20, order=np.arange(60)), FitOptions())
    assert not any("scored rows" in note for note in known.notes)


def test_rows_that_the_search_draws_must_differ_in_their_group() -> None:
    rows = MOST_SEARCH_ROWS + 10_000
    # The first row is not among those that are drawn.
    one_row = arranged(np.arange(rows) % 2, order=np.minimum(np.arange(rows), 1))
    with refuses("one-group", value=30_000):
        make_plan(one_row, FitOptions())


def test_arranged_rows_have_as_many_parts_as_there_are_groups() -> None:
    y = np.random.default_rng(1).normal(size=60)
    folds = {
        groups: make_plan(arranged(y, group=np.arange(60) % groups), FitOptions()).protocol.folds
        for groups in (2, 4, 5, 6)
    }
    assert folds == {2: 2, 4: 4, 5: 5, 6: 5}
    assert make_plan(arranged(y, order=np.arange(60)), FitOptions()).protocol.folds == 3


@pytest.mark.parametrize(
    ("rows", "seconds", "splits", "averages"),
    # Two columns: 5,000 rows are 10,000 cells.
    [
        (1_000, 0.5, 5, True),
        (5_000, None, 5, True),
        (5_000, 3.0, 5, True),
        (5_000, 1.0, 3, True),
        (5_000, 0.5, 1, False),
    ],
)
def test_a_large_table_has_as_many_folds_as_there_is_time_for(
    rows: int, seconds: float | None, splits: int, averages: bool
) -> None:
    plan = make_plan(table(np.arange(rows) % 97 * 1.0), FitOptions(seconds=seconds))
    assert len(plan.table) == rows
    assert len(plan.protocol.splits(plan.table)) == splits
    assert plan.averages_folds == averages


def test_folds_are_not_averaged_if_they_lack_rows_or_are_to_be_fitted_again() -> None:
    y = np.arange(60) % 7 * 1.0
    assert make_plan(arranged(y, group=np.arange(60) % 6), FitOptions()).averages_folds
    assert not make_plan(arranged(y, order=np.arange(60)), FitOptions()).averages_folds
    assert not make_plan(arranged(y), FitOptions(refit=True)).averages_folds
