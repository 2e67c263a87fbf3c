import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import permutation_importance
from sklearn.metrics import r2_score

from foretune.automl import column_importance
from foretune.automl.column_importance import ColumnImportance, column_worth
from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.evaluation import Protocol
from foretune.automl.metrics import SCORERS
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


def test_what_the_target_follows_from_counts():
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


def test_what_a_date_has_become_changes_places_together():
    n = 400
    day = (
        pd.date_range("2024-01-01", periods=n, freq="D").to_series().sample(frac=1, random_state=0)
    )
    y = day.dt.day_of_year.to_numpy() + 0.1 * np.random.default_rng(0).normal(size=n)
    frame = pd.DataFrame({"day": day.to_numpy(), "noise": np.random.default_rng(1).random(n)})
    found = column_worth(linear(), Table.of(frame.assign(y=y), "y"), Protocol(("r2",)))
    assert [each.column for each in found] == ["day", "noise"]
    assert found[0].lost > 1.0


def test_only_rows_are_asked_about_that_the_pipeline_has_not_learnt_from(monkeypatch):
    table, asked = a_table(order="day"), []
    whole = column_importance.for_scorer

    def watched(member, scorer, held, x):
        asked.append(set(held.y))
        return whole(member, scorer, held, x)

    monkeypatch.setattr(column_importance, "for_scorer", watched)
    protocol = Protocol(("r2",), folds=3)
    column_worth(linear(), table, protocol)
    _, held = protocol.splits(table)[-1]
    assert all(rows <= set(table.y[held]) for rows in asked)


def test_slow_pipelines_are_asked_about_fewer_rows_or_not_at_all(monkeypatch):
    asked = []
    whole = column_importance.for_scorer

    def watched(member, scorer, held, x):
        asked.append(len(held))
        return whole(member, scorer, held, x)

    monkeypatch.setattr(column_importance, "for_scorer", watched)
    monkeypatch.setattr(column_importance, "_affordable", lambda *_: 40)
    assert column_worth(linear(), a_table(), Protocol(("r2",)))
    assert set(asked) == {40}
    monkeypatch.setattr(
        column_importance, "_affordable", lambda *_: column_importance.FEWEST_ROWS - 1
    )
    assert column_worth(linear(), a_table(), Protocol(("r2",))) == []


def test_more_time_is_for_more_rows():
    table, scorer = a_table(), SCORERS["r2"]
    member = refit(linear(), table, seed=0)
    little = column_importance._affordable(member, scorer, table, 1e-9)
    assert little < len(table) < column_importance._affordable(member, scorer, table, 10.0)


def test_all_shuffles_share_the_time(monkeypatch):
    """Each of the table's columns changes places five times."""
    asked, table = [], a_table()
    monkeypatch.setattr(
        column_importance, "_affordable", lambda *given: asked.append(given[-1]) or 0
    )
    assert column_worth(linear(), table, Protocol(("r2",)), seconds=3.0) == []
    assert asked == [3.0 / (5 * len(table.schema.places))]


def test_chance_is_not_sure():
    assert ColumnImportance("a", 0.3, 0.1).is_sure
    assert not ColumnImportance("a", 0.19, 0.1).is_sure
    assert not ColumnImportance("a", -0.3, 0.1).is_sure
