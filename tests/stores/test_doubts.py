"""Columns of a table that are probably no hyperparameters."""

import warnings
from datetime import timedelta

import pytest

from foretune.errors import ForetuneWarning
from foretune.stores.files.column_warnings import warn_of_doubtful_columns


def said(cells, *, by_name=True):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ForetuneWarning)
        warn_of_doubtful_columns(cells, by_name=by_name)
    return [str(each.message) for each in caught]


def test_metadata_of_runs_is_no_hyperparameter():
    cells = {
        "lr": [0.1, 0.2],
        "state": ["finished", "crashed"],
        "train seconds": [3, 4.5],
        "startedAt": ["2026-01-01", "2026-01-02"],
        "val_score": [0.5, 0.6],
        "user, team": ["ann", "bob"],
    }
    [warning] = said(cells)
    assert warning == (
        "'state', 'train seconds', 'startedAt', 'val_score', 'user, team': read as "
        "hyperparameters, but probably none. If so, import again with --status state --seconds "
        "'train seconds' --ignore 'startedAt,val_score,\"user, team\"'"
    )


@pytest.mark.parametrize(
    "name", ["F1", "test-f1", "RMSE", "trial_id", "valAUC", "val_loss", "created"]
)
def test_numbers_that_a_run_gives_are_known_by_their_names(name):
    assert f"--ignore {name}" in said({name: [1, 2.5]})[0].replace("'", "")


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("score_func", ["chi2", "f_classif"]),
        ("model_id", ["svm", "knn"]),
        ("valid", [1, 2]),
        ("precision", [16, 32]),
        ("user_embedding_dim", [8, 64]),
        ("focal_loss_gamma", [0.5, 2.0]),
        ("updates", [10, 20]),
        ("warm_up", ["running", "waiting"]),
        ("seconds_hand", [True, False]),
        ("loss", ["hinge", "error"]),
    ],
)
def test_hyperparameters_are_not_doubted(name, column):
    assert said({name: column}) == []


def test_a_second_column_of_outcomes_is_to_be_ignored():
    outcomes = ["DONE", "FAILED"]
    [warning] = said({"state": outcomes, "stage": outcomes})
    assert warning.endswith("--status state --ignore stage")


@pytest.mark.parametrize(
    "durations",
    [
        ["0 days 00:01:30", "1 day 02:00:00.5"],
        [timedelta(seconds=90), None],
        ["0:01:30", "10:00:00"],
    ],
)
def test_durations_are_run_times(durations):
    [warning] = said({"duration": durations})
    assert warning.endswith("--seconds duration")


def test_the_prefix_of_a_tool_is_told_instead_of_what_to_ignore():
    """As of Optuna's `trials_dataframe()`: whatever else is there is no hyperparameter either."""
    cells = {
        "number": [0, 1],
        "datetime_start": ["2026-01-01", "2026-01-02"],
        "duration": ["0 days 00:01:30", "0 days 00:01:31"],
        "params_lr": [0.1, 0.2],
        "state": ["COMPLETE", "FAIL"],
    }
    [warning] = said(cells)
    assert warning == (
        "'datetime_start', 'duration', 'state': read as hyperparameters, but probably none. If "
        "so, import again with --config-prefix params_ --seconds duration --status state"
    )


def test_no_prefix_is_told_that_doubtful_columns_bear_as_well():
    [warning] = said({"param_score": [0.1, 0.2], "param_depth": [1, 2]})
    assert warning.endswith("--ignore param_score")


def test_names_that_a_prefix_has_chosen_are_not_doubted():
    assert said({"date": ["a", "b"]}, by_name=False) == []
