"""Pipelines that are fitted in processes of their own."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from foretune.automl import crew
from foretune.automl.crew import Crew
from foretune.automl.models.members import refit
from foretune.automl.plan import Wishes, planned
from foretune.automl.tables.datasets import Table
from foretune.automl.tables.targets import Task

from .samples import mixed_table


@pytest.fixture(scope="module")
def table() -> Table:
    return mixed_table(Task.CLASSIFICATION)


def test_processes_fit_what_this_one_would(table: Table, tmp_path: Path) -> None:
    drawn = planned(table, Wishes(only=("knn", "lda"))).space.sample(4, seed=1).dicts()
    configs = [drawn[0], {"estimator": "unheard of"}, *drawn[1:]]
    made = list(Crew(2, tmp_path).fitted(configs, table, seed=3))
    assert isinstance(made[1], str)
    for config, member in zip(drawn, [made[0], *made[2:]], strict=True):
        here = refit(config, table, seed=3)
        assert member.config == config
        np.testing.assert_array_equal(
            member.probabilities(table.x, 3), here.probabilities(table.x, 3)
        )
    assert list(tmp_path.iterdir()) == []


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
    twice, *others = crew._fitted(Dying(tmp_path), jobs, workers=2)
    assert "SIGKILL" in twice
    assert others == ["well", "once"]
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
    assert list(crew._fitted(Hungry(tmp_path), ["a", "b"], workers=2)) == ["a", "b"]
    assert {path.read_text() for path in tmp_path.iterdir()} == {"xx"}


def test_without_others_there_is_no_second_try(tmp_path: Path) -> None:
    [died] = crew._fitted(Dying(tmp_path), [{"name": "a", "deaths": 1}], workers=1)
    assert "SIGKILL" in died
    assert (tmp_path / "a").read_text() == "x"
