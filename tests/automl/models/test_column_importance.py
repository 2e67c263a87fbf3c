from itertools import count

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import permutation_importance
from sklearn.metrics import r2_score

from foretune.automl.column_importance import FEWEST_ROWS, ColumnImportance, column_worth
from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.evaluation import Protocol, for_scorer
from foretune.automl.spaces import load_shipped_space
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.table import Table


def linear(task="regression"):
    space = load_shipped_space(f"pipeline-{task}").build(
        ["elastic_net" if task == "regression" else "lda"]
    )
    return next(
        config
        for config in space.sample(200, seed=0).dicts()
        if config["reducer"] == "none" and config["scaler"] != "none"
        and config.get("estimator:elastic_net:alpha", 0.0) < 0.01
    )  # fmt: skip


def a_table(n=400, seed=0, **roles):
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    frame = pd.DataFrame(
        {"noise": rng.normal(size=n), "strong": rng.normal(size=n), "day": day, "same": 1.0}
    )
    frame["weak"] = rng.normal(size=n)
    frame["y"] = 3.0 * frame["strong"] + 0.7 * frame["weak"] + 0.1 * rng.normal(size=n)
    return Table.of(frame, "y", roles=ColumnRoles(**roles))


def test_columns_that_determine_the_target_count():
    found = column_worth(linear(), a_table(), Protocol(("r2",)))
    assert [each.column for each in found[:2]] == ["strong", "weak"]
    assert {each.column for each in found} == {"strong", "weak", "noise", "day"}
    assert [each.column for each in found if each.is_sure] == ["strong", "weak"]
    # Without the column, R² would lose twice the share of the variance that it explains.
    assert found[0].lost == pytest.approx(2 * 9.0 / 9.5, rel=0.15)


def test_it_is_what_scikit_learn_finds():
    table, protocol = a_table(), Protocol(("r2",))
    found = {each.column: each.lost for each in column_worth(linear(), table, protocol)}
    learn, held = protocol.splits(table)[-1]
    member = refit(linear(), table, seed=0, rows=learn)

    def score(_, x, y):
        return r2_score(y, member.predict(x))

    other = permutation_importance(
        member.pipeline, table.x[held], table.y[held], scoring=score, n_repeats=30, random_state=0
    )
    by_name = dict(zip(table.schema.features, other.importances_mean, strict=True))
    for name in ("strong", "weak", "noise"):
        assert found[name] == pytest.approx(by_name[name], rel=0.2, abs=0.02)


def test_a_loss_that_falls_with_quality_counts_as_well():
    table = a_table()
    by_error = column_worth(linear(), table, Protocol(("rmse",)))
    assert [each.column for each in by_error if each.is_sure] == ["strong", "weak"]
    classes = Table.of(
        pd.DataFrame({"a": table.x[:, 1], "b": table.x[:, 0], "y": table.y > 0}), "y"
    )
    found = column_worth(linear("classification"), classes, Protocol(("log_loss",)))
    assert [each.column for each in found if each.is_sure] == ["a"]


def test_the_columns_of_a_date_are_shuffled_together():
    n = 400
    day = (
        pd.date_range("2024-01-01", periods=n, freq="D").to_series().sample(frac=1, random_state=0)
    )
    y = day.dt.day_of_year.to_numpy() + 0.1 * np.random.default_rng(0).normal(size=n)
    frame = pd.DataFrame({"day": day.to_numpy(), "noise": np.random.default_rng(1).random(n)})
    found = column_worth(linear(), Table.of(frame.assign(y=y), "y"), Protocol(("r2",)))
    assert [each.column for each in found] == ["day", "noise"]
    assert found[0].lost > 1.0


class Asked:
    """Predicts rows for a scorer, and keeps the tables that it was asked about."""

    def __init__(self):
        self.tables = []

    def __call__(self, member, scorer, held, x):
        self.tables.append(held)
        return for_scorer(member, scorer, held, x)


def test_only_rows_are_asked_about_that_the_pipeline_has_not_learnt_from():
    table, asked, protocol = a_table(order="day"), Asked(), Protocol(("r2",), folds=3)
    column_worth(linear(), table, protocol, predict=asked)
    _, held = protocol.splits(table)[-1]
    assert asked.tables
    assert all(set(rows.y) <= set(table.y[held]) for rows in asked.tables)


def test_slow_pipelines_are_asked_about_fewer_rows_or_not_at_all():
    """The first prediction, of all rows that are held out, takes a second.

    The time is for five shuffles of each column, so 40 of 80 rows cost 2.5 s for each column.
    """
    table, protocol = a_table(), Protocol(("r2",))
    columns, held = len(table.schema.places), len(protocol.splits(table)[-1][1])
    for rows, expected in ((40.5, {40}), (FEWEST_ROWS - 0.5, set())):
        asked, seconds = Asked(), count()
        found = column_worth(
            linear(),
            table,
            protocol,
            seconds=5 * columns * rows / held,
            predict=asked,
            now=lambda seconds=seconds: float(next(seconds)),
        )
        assert {len(each) for each in asked.tables[1:]} == expected
        assert bool(found) == bool(expected)


def test_chance_is_not_sure():
    assert ColumnImportance("a", 0.3, 0.1).is_sure
    assert not ColumnImportance("a", 0.19, 0.1).is_sure
    assert not ColumnImportance("a", -0.3, 0.1).is_sure
