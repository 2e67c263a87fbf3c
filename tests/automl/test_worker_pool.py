"""Pipelines are fitted in worker processes, within limits."""

import shutil
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from foretune._base.files import try_lock
from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.final_model.worker_pool import (
    FitWorkers,
    fit_in_processes,
    open_worker_folder,
    share_memory,
)
from foretune.automl.plan import FitOptions, make_plan
from foretune.run.executor import Limits
from foretune.tables.table import Table
from foretune.tables.target import Task

from .costly_fits import CostlyFit, FailingFit
from .samples import mixed_table


@pytest.fixture(scope="module")
def table() -> Table:
    return mixed_table(Task.CLASSIFICATION)


def test_processes_fit_the_same_pipelines_as_this_one(table: Table, tmp_path: Path) -> None:
    drawn = make_plan(table, FitOptions(only=("knn", "lda"))).space.sample(4, seed=1).dicts()
    configs = [drawn[0], {"estimator": "unheard of"}, *drawn[1:]]
    made = dict(FitWorkers(2, tmp_path).fit_each(configs, table, seed=3))
    assert isinstance(made[1], str)
    for config, place in zip(drawn, (0, 2, 3, 4), strict=True):
        member = made[place]
        here = refit(config, table, seed=3)
        assert member.config == config
        np.testing.assert_array_equal(
            member.probabilities(table.x, 3), here.probabilities(table.x, 3)
        )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_a_killed_command_is_removed_and_one_in_use_is_not(tmp_path: Path) -> None:
    _make_abandoned_folder(tmp_path)
    with open_worker_folder(tmp_path) as first, open_worker_folder(tmp_path) as second:
        assert {*tmp_path.iterdir()} == {first, second}
    assert list(tmp_path.iterdir()) == []


def test_two_commands_may_remove_the_same_folder(tmp_path: Path) -> None:
    """The other command was quicker; this one still gets its folder."""
    abandoned = _make_abandoned_folder(tmp_path)

    def lock_late(path: Path) -> IO[bytes] | None:
        shutil.rmtree(abandoned)
        return try_lock(path)

    with open_worker_folder(tmp_path, lock_late) as made:
        assert [*tmp_path.iterdir()] == [made]


def _make_abandoned_folder(folder: Path) -> Path:
    abandoned = folder / "fitting-abandoned"
    abandoned.mkdir()
    (abandoned / "alive").touch()
    (abandoned / "table.npz").write_bytes(b"many rows")
    return abandoned


def test_a_pipeline_that_fails_beside_others_is_tried_alone(tmp_path: Path) -> None:
    """A process may die, or lack memory, only because of the processes beside it."""
    jobs = [
        {"name": "dies twice", "deaths": 2},
        {"name": "works"},
        {"name": "dies once", "deaths": 1},
        {"name": "hungry", "hungry": True},
    ]
    made = dict(fit_in_processes(FailingFit(tmp_path), dict(enumerate(jobs)), workers=2))
    assert "SIGKILL" in made[0]
    assert (made[1], made[2], made[3]) == ("works", "dies once", "hungry")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "dies twice": "xx",
        "works": "x",
        "dies once": "xx",
        "hungry": "xx",
    }


def test_a_pipeline_that_fails_alone_is_not_tried_again(tmp_path: Path) -> None:
    jobs = {0: {"name": "a", "deaths": 1}}
    [(_, reason)] = fit_in_processes(FailingFit(tmp_path), jobs, workers=1)
    assert "SIGKILL" in reason
    assert (tmp_path / "a").read_text() == "x"


def test_a_pipeline_that_takes_too_much_time_is_stopped_and_not_tried_again(tmp_path: Path) -> None:
    jobs, limits = {0: "time", 1: "nothing"}, Limits(cpu_seconds=0.3)
    made = fit_in_processes(CostlyFit(tmp_path), jobs, 2, limits)
    assert dict(made) == {0: "over its limit of 0.3 s of CPU time", 1: "nothing"}
    assert (tmp_path / "time").read_text() == "x"


@pytest.mark.parametrize(
    ("free", "limit", "megabytes", "tries"), [(4.0, 0.25, 256, "x"), (0.4, 9.0, 369, "xx")]
)
def test_a_pipeline_that_takes_too_much_memory_is_tried_alone_only_if_it_then_has_more(
    tmp_path: Path, free: float, limit: float, megabytes: int, tries: str
) -> None:
    """`free` and `limit` are in gigabytes. One process alone may take nine tenths of `free`."""
    jobs, limits = {0: "memory", 1: "nothing"}, Limits(memory_bytes=int(limit * 2**30))
    made = fit_in_processes(CostlyFit(tmp_path), jobs, 2, limits, free=lambda: int(free * 2**30))
    assert dict(made) == {
        0: f"out of memory: over its limit of {megabytes} MB",
        1: "nothing",
    }
    assert (tmp_path / "memory").read_text() == tries


def test_processes_share_the_free_memory() -> None:
    assert share_memory(Limits(cpu_seconds=7.0), 3, 1000) == Limits(
        cpu_seconds=7.0, memory_bytes=300
    )
    assert share_memory(Limits(memory_bytes=5), 3, 0) == Limits(memory_bytes=1)
    assert share_memory(Limits(memory_bytes=5), 3, None) == Limits(memory_bytes=5)


def test_pipelines_that_are_no_longer_needed_are_not_awaited(tmp_path: Path) -> None:
    made: list[object] = []
    jobs = {0: "time", 1: "nothing"}
    for each in fit_in_processes(CostlyFit(tmp_path), jobs, 2, is_enough=lambda: bool(made)):
        made.append(each)
    assert made == [(1, "nothing")]
