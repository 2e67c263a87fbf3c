"""Tables that other tools have written call the outcomes of trials by words of their own."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from foretune.errors import ForetuneWarning
from foretune.experience import Status
from foretune.stores import TableColumns
from foretune.stores.files import evaluation_table, outcomes
from foretune.stores.files.row_results import find_successes
from tests.refusals import refuses, warns

COLUMNS = TableColumns(task="task", values={"loss": "min"}, status="state")
DOCUMENTED = Path(__file__).parents[2].joinpath("docs/integrations.md").read_text()


def read(path, states, **columns):
    rows = {"x": range(len(states)), "loss": 0.5, "state": states}
    frame = pd.DataFrame({"task": "a", **rows, **columns})
    frame.to_csv(path / "runs.csv", index=False)
    return evaluation_table.read(path / "runs.csv", columns=COLUMNS)


@pytest.mark.parametrize(
    ("states", "meant"),
    [
        (["DONE", "failed", " Timeout", "stopped"], [0, 1, 2, 3]),
        ([0, 1, 2], [0, 1, 2]),
        ([0.0, 1.0, 2.0], [0, 1, 2]),
        (["COMPLETE", "PRUNED", "FAIL"], [0, 3, 1]),
        (["TrialState.COMPLETE", "TrialState.PRUNED", "TrialState.FAIL"], [0, 3, 1]),
        (["FINISHED", "FAILED", "KILLED"], [0, 1, 1]),
        (["TERMINATED", "ERROR"], [0, 1]),
        (["SUCCESS", "CRASHED", "TIMEOUT", "MEMORYOUT"], [0, 1, 2, 1]),
        (["finished", "crashed", "failed", "killed"], [0, 1, 1, 1]),
    ],
)
def test_how_trials_ended_is_read_in_the_words_of_each_tool(tmp_path, states, meant):
    assert read(tmp_path, states).status.tolist() == [Status(each) for each in meant]


@pytest.mark.parametrize(
    "states", [["RUNNING", "WAITING"], ["scheduled", "running"], ["PENDING", "PAUSED"]]
)
def test_rows_that_have_not_ended_are_left_out(tmp_path, states):
    with warns("left-out", field="rows", value=(outcomes.NOT_ENDED, 2, ("a",))) as warned:
        found = read(tmp_path, [states[0], "DONE", states[1]])
    assert [each.filename for each in warned] == [__file__]
    assert found.configs.dicts() == [{"x": 1}]
    with pytest.warns(ForetuneWarning), refuses("nothing-ended", value=2):
        read(tmp_path, states)


def test_words_for_nothing_are_found_in_the_rows_that_have_ended(tmp_path):
    """The file is read again for them, and has more rows."""
    states, weights = ["RUNNING", "DONE", "DONE"], ["None", "b", "None"]
    with pytest.warns(ForetuneWarning) as warned:
        found = read(tmp_path, states, x=1, weight=weights)
    assert found.configs.dicts() == [{"x": 1, "weight": "b"}, {"x": 1, "weight": None}]
    assert len(warned) == 1  # and not that a cell is empty


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        ("COMPLETED", "unknown-outcome"),
        ("4", "unknown-outcome"),
        ("True", "unknown-outcome"),
        (None, "row-without-outcome"),
    ],
)
def test_states_without_a_meaning_are_refused(tmp_path, state, rule):
    with refuses(rule, field="state"):
        read(tmp_path, [state])


def test_the_documented_table_is_the_one_of_the_code():
    kinds = [Status.DONE, Status.FAILED, Status.TIMEOUT, Status.STOPPED, None]
    for tool, words in outcomes.TOOLS.items():
        cells = [", ".join(word for word in words if words[word] is kind) for kind in kinds]
        row = f"| {tool} | {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")
        assert tool == outcomes.OWN or row.upper() in DOCUMENTED.upper()


def test_a_row_has_succeeded_where_a_metric_was_measured_and_no_word_says_otherwise():
    nan = float("nan")
    values = np.array([[1.0, nan], [nan, 2.0], [nan, nan], [1.0, 1.0]])
    assert find_successes(values, None).tolist() == [True, True, False, True]
    status = np.array([0, 0, 0, Status.FAILED], dtype=np.int8)
    assert find_successes(values, status).tolist() == [True, True, False, False]
