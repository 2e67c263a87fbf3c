"""Pipelines are fitted in worker processes, within limits."""

import math
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, NamedTuple

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
from foretune.run.executor import Limits, Outcome
from foretune.run.executor_choice import ExecutorChoice
from foretune.run.inline import InlineExecutor
from foretune.run.limit_watch import OVER_MEMORY
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.inline_site import InlineSite

from .failing_fit import FailingFit
from .samples import mixed_table


@pytest.fixture(scope="module")
def table() -> Table:
    return mixed_table(Task.CLASSIFICATION)


def test_processes_fit_the_same_pipelines_as_this_one(table: Table, tmp_path: Path) -> None:
    drawn = make_plan(table, FitOptions(only=("knn", "lda"))).space.sample(4, seed=1).dicts()
    configs = [drawn[0], {"estimator": "unheard of"}, *drawn[1:]]
    made = dict(FitWorkers(1, tmp_path).fit_each(configs, table, seed=3))
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


def test_a_pipeline_that_dies_beside_others_is_tried_alone(tmp_path: Path) -> None:
    """A process may die only because of the processes beside it."""
    jobs = [{"name": "dies once", "deaths": 1}, {"name": "works"}]
    made = dict(fit_in_processes(FailingFit(tmp_path), dict(enumerate(jobs)), workers=2))
    assert made == {0: "dies once", 1: "works"}
    tries = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert tries == {"dies once": "xx", "works": "x"}


def test_a_pipeline_that_lacks_memory_beside_others_is_tried_alone(tmp_path: Path) -> None:
    jobs = {0: {"name": "hungry", "hungry": True}, 1: {"name": "works"}}
    made = fit_in_processes(FailingFit(tmp_path), jobs, workers=2, site=InlineSite())
    assert dict(made) == {0: "hungry", 1: "works"}
    assert (tmp_path / "hungry").read_text() == "xx"


def test_a_pipeline_that_fails_alone_is_not_tried_again(tmp_path: Path) -> None:
    jobs = {0: {"name": "hungry", "hungry": True}}
    made = fit_in_processes(FailingFit(tmp_path), jobs, workers=1, site=InlineSite())
    assert dict(made) == {0: "out of memory: MemoryError"}
    assert (tmp_path / "hungry").read_text() == "x"


class CostlyJob(NamedTuple):
    """A job that would take so much."""

    seconds: float = 0.0
    gigabytes: float = 0.0


def do_job(job: CostlyJob) -> CostlyJob:
    return job


class LimitedExecutor(InlineExecutor):
    """Ends jobs that are over its limits, as the watch of the worker processes does."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(do_job)
        self.tried: list[CostlyJob] = []
        self._limits = limits

    def results(self, timeout: float | None = None) -> list[Outcome]:
        return [self._within_limits(each) for each in super().results(timeout)]

    def _within_limits(self, outcome: Outcome) -> Outcome:
        self.tried.append(outcome.result)
        reason = ""
        if outcome.result.seconds > (self._limits.cpu_seconds or math.inf):
            reason = "over its limit of CPU time"
        elif outcome.result.gigabytes * 2**30 > (self._limits.memory_bytes or math.inf):
            reason = f"{OVER_MEMORY} of {self._limits.memory_bytes / 2**30:.2f} GB"
        return replace(outcome, result=None, reason=reason) if reason else outcome


@dataclass(frozen=True)
class LimitedSite(ExecutorChoice):
    """A site of processes with limits, and all of them that were opened."""

    opened: list[LimitedExecutor] = field(default_factory=list)

    def pool(self, function: object, *, workers: int, limits: Limits) -> LimitedExecutor:
        self.opened.append(LimitedExecutor(limits))
        return self.opened[-1]

    @property
    def tried(self) -> list[CostlyJob]:
        return [job for each in self.opened for job in each.tried]


def test_a_pipeline_that_takes_too_much_time_is_not_tried_again() -> None:
    jobs, site = {0: CostlyJob(seconds=9.0), 1: CostlyJob()}, LimitedSite()
    made = dict(fit_in_processes(do_job, jobs, 2, Limits(cpu_seconds=0.3), site=site))
    assert made == {0: "over its limit of CPU time", 1: jobs[1]}
    assert site.tried == [*jobs.values()]


@pytest.mark.parametrize(
    ("free", "limit", "last_limit", "tries"), [(4.0, 0.25, "0.25", 1), (0.4, 9.0, "0.36", 2)]
)
def test_a_pipeline_that_takes_too_much_memory_is_tried_alone_only_if_it_then_has_more(
    free: float, limit: float, last_limit: str, tries: int
) -> None:
    """`free` and `limit` are in gigabytes. One process alone may take nine tenths of `free`."""
    jobs, site = {0: CostlyJob(gigabytes=0.5), 1: CostlyJob()}, LimitedSite()
    limits = Limits(memory_bytes=int(limit * 2**30))
    made = fit_in_processes(do_job, jobs, 2, limits, free=lambda: int(free * 2**30), site=site)
    assert dict(made) == {0: f"{OVER_MEMORY} of {last_limit} GB", 1: jobs[1]}
    assert site.tried.count(jobs[0]) == tries


def test_processes_share_the_free_memory() -> None:
    assert share_memory(Limits(cpu_seconds=7.0), 3, 1000) == Limits(
        cpu_seconds=7.0, memory_bytes=300
    )
    assert share_memory(Limits(memory_bytes=5), 3, 0) == Limits(memory_bytes=1)
    assert share_memory(Limits(memory_bytes=5), 3, None) == Limits(memory_bytes=5)


def test_pipelines_that_are_no_longer_needed_are_not_awaited() -> None:
    made: list[object] = []
    jobs, site = {0: CostlyJob(1.0), 1: CostlyJob(2.0)}, LimitedSite()
    for each in fit_in_processes(do_job, jobs, 2, is_enough=lambda: bool(made), site=site):
        made.append(each)
    assert made == [(0, jobs[0])]
    assert site.tried == [jobs[0]]
