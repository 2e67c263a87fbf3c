"""Tables with very many columns: what the first model and the first trials learn from."""

import numpy as np
import pandas as pd
import pytest

from foretune.automl.estimators.plain_linear import PlainLinearModel
from foretune.automl.first_model import fit_first_model
from foretune.automl.plan import FitOptions, make_plan
from foretune.automl.spaces import load_shipped_space
from foretune.automl.wide_tables import SELECTION, opening_of_wide_table, quick_config
from foretune.space import Space
from foretune.tables.table import Table
from foretune.tables.target import Task


def wide_table(columns: int, task: Task = Task.CLASSIFICATION, rows: int = 240) -> Table:
    """Return numbers of which three columns tell the target."""
    x = np.random.default_rng(0).normal(size=(rows, columns))
    y = x[:, 3] + x[:, columns // 2] - x[:, -1]
    frame = pd.DataFrame(x, columns=[f"c{place}" for place in range(columns)])
    classes = np.where(y > 0.0, "yes", "no")
    frame["y"] = classes if task is Task.CLASSIFICATION else y
    return Table.of(frame, "y", name="wide", task=task)


@pytest.fixture
def space() -> Space:
    return load_shipped_space("pipeline-classification").build(())


@pytest.mark.parametrize("task", list(Task))
def test_the_first_model_of_a_wide_table_beats_a_guess(task: Task) -> None:
    plan = make_plan(wide_table(1_100, task), FitOptions(seconds=60.0))
    made = fit_first_model(plan, target="y", seconds=60.0)
    assert not made.is_baseline


def test_trees_of_a_wide_table_select_columns(space: Space) -> None:
    (config,) = quick_config(space).dicts()
    assert SELECTION.items() <= config.items()


def test_the_first_model_learns_from_a_signal_in_all_columns() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 1_100))
    y = x @ rng.normal(size=1_100) > 0.0
    frame = pd.DataFrame(x, columns=[f"c{place}" for place in range(1_100)])
    table = Table.of(
        frame.assign(y=np.where(y, "yes", "no")), "y", name="wide", task=Task.CLASSIFICATION
    )
    plan = make_plan(table, FitOptions(seconds=60.0))
    made = fit_first_model(plan, target="y", seconds=60.0)
    (member,) = made.model.members
    assert isinstance(member.pipeline, PlainLinearModel)
    assert made.score < made.baseline - 0.05


def test_the_first_model_of_other_tables_keeps_all_columns() -> None:
    plan = make_plan(wide_table(40), FitOptions(seconds=60.0))
    made = fit_first_model(plan, target="y", seconds=60.0)
    assert made.model.members[0].config["reducer"] == "none"


def test_the_first_trials_of_a_wide_table_select_columns_and_differ(space: Space) -> None:
    (config,) = quick_config(space).dicts()
    given = [{**config, "estimator:lightgbm:num_leaves": 31}, {**config}]
    unselected = {name: value for name, value in given[0].items() if "select" not in name}
    start = space.encode([{**unselected, "reducer": "none"}, *given])
    assert opening_of_wide_table(space, start).dicts() == [config, given[0]]
    assert opening_of_wide_table(space, None).dicts() == [config]


def test_configurations_of_a_space_without_selection_stay() -> None:
    cash = load_shipped_space("cash").build(())
    start = cash.sample(5, seed=0)
    assert opening_of_wide_table(cash, start) == start
    assert opening_of_wide_table(cash, None) is None


@pytest.mark.parametrize(
    ("columns", "seconds", "splits"),
    # Five folds of 240 rows and 1,100 columns are 1,320,000 cells; 50,000 a second are allowed.
    [(1_100, 26.0, 1), (1_100, 27.0, 5), (1_100, None, 5), (900, 5.0, 5)],
)
def test_a_wide_table_is_split_once_if_there_is_no_time_for_folds(
    columns: int, seconds: float | None, splits: int
) -> None:
    plan = make_plan(wide_table(columns), FitOptions(seconds=seconds))
    assert len(plan.table) == 240
    assert len(plan.protocol.splits(plan.table)) == splits
