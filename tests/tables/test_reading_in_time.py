"""A table of which only a part is read, because there is little time."""

import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from foretune._base.time_budget import TimeBudget
from foretune.tables.reading import TrainingTable, read_table
from foretune.tables.timed_reading import SampleSizes, read_table_in_time

ROWS = 30_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3)).round(5)
    frame = pd.DataFrame(x, columns=list("abc")).assign(y=np.where(x[:, 0] > 0, "yes", "no"))
    made = tmp_path_factory.mktemp("tables") / "large.csv"
    frame.to_csv(made, index=False)
    return made


read_in_time = partial(read_table_in_time, sizes=SampleSizes(10_000, 50_000))


def _clock(left: float) -> TimeBudget:
    return TimeBudget(1000.0, time.monotonic() - (950.0 - left))


def test_all_rows_are_read_if_there_is_time(path: Path) -> None:
    seen: list[TrainingTable] = []
    found = read_in_time(path, "y", _clock(900.0), seen.append)
    usual = read_table(path, "y")
    np.testing.assert_array_equal(found.table.x, usual.table.x)
    assert found.notes == usual.notes
    assert [each.table.name for each in seen] == ["large"]
    assert 500 < len(seen[0].table) < ROWS / 5


def test_some_rows_are_read_and_that_is_said_if_there_is_little_time(path: Path) -> None:
    seen: list[TrainingTable] = []
    found = read_in_time(path, "y", _clock(0.0), seen.append)
    assert len(found.table) == len(seen[0].table) < ROWS / 5
    assert found.table.name == "large"
    assert "large.csv" in found.notes[0]
    share = float(found.notes[0].split("about ")[1].split("%")[0]) / 100
    assert share == pytest.approx(len(found.table) / ROWS, rel=0.1)


def test_without_a_time_nothing_is_sampled(path: Path) -> None:
    seen: list[TrainingTable] = []
    found = read_in_time(path, "y", TimeBudget(), seen.append)
    assert (len(found.table), seen) == (ROWS, [])


def test_a_sample_of_one_class_is_no_reason_to_refuse_a_table(path: Path, tmp_path: Path) -> None:
    """The rare class is in one place of the file, which the sample does not reach."""
    frame = pd.read_csv(path).assign(y="no")
    frame.loc[1000:1010, "y"] = "yes"
    frame.to_csv(tmp_path / "rare.csv", index=False)
    seen: list[TrainingTable] = []
    found = read_in_time(tmp_path / "rare.csv", "y", _clock(900.0), seen.append)
    assert (found.table.classes, len(found.table)) == (("no", "yes"), ROWS)


def test_the_first_sample_of_a_wide_table_has_enough_rows_to_learn_from(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 100)).round(5)
    frame = pd.DataFrame(x).assign(y=np.where(x[:, 0] > 0, "yes", "no"))
    frame.to_csv(tmp_path / "wide.csv", index=False)
    seen: list[TrainingTable] = []
    read_in_time(tmp_path / "wide.csv", "y", _clock(900.0), seen.append)
    assert 800 < len(seen[0].table) < 1600
