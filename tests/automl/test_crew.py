"""Pipelines that are fitted in processes of their own."""

import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.final_model import worker_pool
from foretune.automl.final_model.worker_pool import FitWorkers
from foretune.automl.plan import FitOptions, make_plan
from foretune.run.executor import Limits
from foretune.tables.table import Table
from foretune.tables.target import Task

from .samples import mixed_table


@pytest.fixture(scope="module")
def table() -> Table:
    return mixed_table(Task.CLASSIFICATION)


def test_processes_fit_what_this_one_would(table: Table, tmp_path: Path) -> None:
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


def test_what_a_killed_crew_left_is_removed_and_what_another_one_needs_is_not(
    tmp_path: Path,
) -> None:
    left = tmp_path / "fitting-left"
    left.mkdir()
    (left / "alive").touch()
    (left / "table.npz").write_bytes(b"many rows")
    with worker_pool._workplace(tmp_path) as first, worker_pool._workplace(tmp_path) as second:
        assert {*tmp_path.iterdir()} == {first, second}
    assert list(tmp_path.iterdir()) == []


def test_two_crews_may_remove_what_a_killed_one_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one was quicker: else this one would do without its processes and their limits."""
    left = tmp_path / "fitting-left"
    left.mkdir()
    (left / "alive").touch()
    real = worker_pool.try_lock

    def held(path: Path) -> object:
        shutil.rmtree(left)
        return real(path)

    monkeypatch.setattr(worker_pool, "try_lock", held)
    with worker_pool._workplace(tmp_path) as made:
        assert [*tmp_path.iterdir()] == [made]


@dataclass(frozen=True)
class Dying:
    """Dies where it is told to, unless it is tried again."""

    folder: Path

    def __call__(self, job: dict[str, object]) -> str:
        tries = self.folder / str(job["name"])
        before = tries.read_text() if tries.exists() else ""
        tries.write_text(before + "x")
        if len(before) < job["deaths"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return str(job["name"])


def test_a_process_that_dies_beside_others_is_tried_alone(tmp_path: Path) -> None:
    jobs = [
        {"name": "twice", "deaths": 2},
        {"name": "well", "deaths": 0},
        {"name": "once", "deaths": 1},
    ]
    made = dict(worker_pool._fit_in_processes(Dying(tmp_path), dict(enumerate(jobs)), workers=2))
    assert "SIGKILL" in made[0]
    assert (made[1], made[2]) == ("well", "once")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "twice": "xx",
        "well": "x",
        "once": "xx",
    }


@dataclass(frozen=True)
class Hungry:
    """Has too little memory beside others."""

    folder: Path

    def __call__(self, job: str) -> str:
        tries = self.folder / job
        tries.write_text((tries.read_text() if tries.exists() else "") + "x")
        if tries.read_text() == "x":
            raise MemoryError
        return job


def test_what_had_too_little_memory_beside_others_is_tried_alone(tmp_path: Path) -> None:
    made = worker_pool._fit_in_processes(Hungry(tmp_path), {0: "a", 1: "b"}, workers=2)
    assert dict(made) == {0: "a", 1: "b"}
    assert {path.read_text() for path in tmp_path.iterdir()} == {"xx"}


def test_without_others_there_is_no_second_try(tmp_path: Path) -> None:
    [(_, died)] = worker_pool._fit_in_processes(
        Dying(tmp_path), {0: {"name": "a", "deaths": 1}}, workers=1
    )
    assert "SIGKILL" in died
    assert (tmp_path / "a").read_text() == "x"


def taking(job: str) -> str:
    """Takes much of what it is told to, or little."""
    if job == "time":
        while True:
            pass
    elif job == "memory":
        food = np.ones(2**26)  # half a gigabyte
        time.sleep(60.0)
        return str(food.sum())
    return job


def test_what_takes_more_time_than_it_may_is_ended(tmp_path: Path) -> None:
    """And not tried again: alone it would take as long."""
    made = worker_pool._fit_in_processes(
        taking, {0: "time", 1: "nothing"}, 2, Limits(cpu_seconds=0.3)
    )
    assert dict(made) == {0: "over its limit of 0.3 s of CPU time", 1: "nothing"}


@pytest.mark.parametrize(("free", "limit", "said"), [(4.0, 0.25, "256"), (0.4, 9.0, "369")])
def test_what_takes_more_memory_than_it_may_or_than_there_is_is_ended(
    free: float, limit: float, said: str
) -> None:
    """In gigabytes. Alone, it may take nine tenths of what is free."""
    jobs, limits = {0: "memory", 1: "nothing"}, Limits(memory_bytes=int(limit * 2**30))
    made = worker_pool._fit_in_processes(taking, jobs, 2, limits, free=lambda: int(free * 2**30))
    assert dict(made) == {
        0: f"out of memory: over its limit of {said} MB",
        1: "nothing",
    }


@dataclass(frozen=True)
class Counting:
    """Takes what it is told to, and keeps count."""

    folder: Path

    def __call__(self, job: str) -> str:
        with (self.folder / job).open("a") as stream:
            stream.write("x")
        return taking(job)


@pytest.mark.parametrize(("free", "tries"), [(4.0, "x"), (0.4, "xx"), (None, "x")])
def test_what_takes_more_memory_than_it_may_is_tried_alone_only_if_it_then_has_more(
    tmp_path: Path, free: float | None, tries: str
) -> None:
    left = None if free is None else int(free * 2**30)
    jobs, limits = {0: "memory", 1: "nothing"}, Limits(memory_bytes=2**28)
    made = worker_pool._fit_in_processes(Counting(tmp_path), jobs, 2, limits, free=lambda: left)
    assert "out of memory" in dict(made)[0]
    assert (tmp_path / "memory").read_text() == tries


def test_what_is_free_is_shared_by_those_who_fit_at_once() -> None:
    within = worker_pool._within_free
    assert within(Limits(cpu_seconds=7.0), 3, 1000) == Limits(cpu_seconds=7.0, memory_bytes=300)
    assert within(Limits(memory_bytes=5), 3, 0) == Limits(memory_bytes=1)
    assert within(Limits(memory_bytes=5), 3, None) == Limits(memory_bytes=5)


def test_nobody_waits_for_what_is_no_longer_wanted() -> None:
    made: list[object] = []
    for each in worker_pool._fit_in_processes(
        taking, {0: "time", 1: "nothing"}, 2, is_enough=lambda: bool(made)
    ):
        made.append(each)
    assert made == [(1, "nothing")]
