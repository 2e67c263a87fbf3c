"""Lessons on a real Ray, one of whose workers is killed in the middle."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from foretune.automl.knowledge.bundle import Bundle
from foretune.automl.knowledge.learn_bundle import LearningPlan, learn_bundle
from foretune.automl.knowledge.learning_processes import (
    TIME_IS_OVER,
    LearningJob,
    PriorLearner,
    learn_in_processes,
    save_to_bytes,
)
from foretune.automl.knowledge.relevant_experience import by_metric
from foretune.automl.metrics import SCORERS
from foretune.run.executor_choice import ExecutorChoice
from foretune.run.ray_pool import MOST_RERUNS
from foretune.search import METHODS
from tests.automl.past import SPACE, past
from tests.run.jobs import parent_of_worker
from tests.run.test_ray_pool import began, note_and_wait

pytest.importorskip("ray")
ZERO_SHOT = METHODS["zero-shot"]


@pytest.fixture(scope="module")
def known():
    return past()


@pytest.fixture(scope="module", autouse=True)
def cluster():
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


@dataclass(frozen=True)
class WatchedSite(ExecutorChoice):
    """Ray, where every lesson notes who takes it; that about `slow` waits until it may go on."""

    folder: Path = Path()

    def pool(self, function, *, workers, limits):
        room = WatchedRoom(function, self.folder)
        return super().pool(room, workers=workers, limits=limits)


@dataclass(frozen=True)
class WatchedRoom:
    room: PriorLearner
    folder: Path

    def __call__(self, lesson):
        note_and_wait((self.folder, lesson.view, lesson.view == "slow"))
        return self.room(lesson)


def test_a_killed_worker_costs_time_and_no_lesson(known, tmp_path):
    lessons = [LearningJob(view, "zero-shot") for view in ("slow", "quick", "later")]
    views = {lesson.view: known for lesson in lessons}

    def kill():
        os.kill(began(tmp_path, "slow")[0], signal.SIGKILL)
        began(tmp_path, "later")  # the other worker goes on meanwhile
        (tmp_path / "go").touch()

    killer = Thread(target=kill)
    killer.start()
    site = WatchedSite("ray", folder=tmp_path)
    ended = {each.job: each for each in learn_in_processes(views, lessons, site=site, workers=2)}
    killer.join()
    assert set(ended) == set(lessons)
    want = save_to_bytes(ZERO_SHOT.learn(known, seed=0).save)
    assert all((each.failure, each.prior) == ("", want) for each in ended.values())
    assert [len(began(tmp_path, view)) for view in views] == [2, 1, 1]


def test_a_lesson_that_takes_too_long_is_ended(known, tmp_path):
    lesson = LearningJob("slow", "zero-shot")
    site = WatchedSite("ray", folder=tmp_path)
    [ended] = learn_in_processes({"slow": known}, [lesson], site=site, seconds=3)
    assert (ended.job, ended.failure) == (lesson, TIME_IS_OVER)


@dataclass(frozen=True)
class DeadlySite(ExecutorChoice):
    """Ray, where one method takes the Ray worker down."""

    def pool(self, function, *, workers, limits):
        return super().pool(DeadlyRoom(function), workers=workers, limits=limits)


@dataclass(frozen=True)
class DeadlyRoom:
    room: PriorLearner

    def __call__(self, lesson):
        if lesson.method == "ws-gp":
            os.kill(parent_of_worker(), signal.SIGKILL)
        return self.room(lesson)


def test_failed_lessons_are_named_and_the_others_kept(known, tmp_path):
    views = {"r2": by_metric(known, SCORERS["r2"].metric)}
    plan = LearningPlan(SPACE, ("ws-gp", "zero-shot"), site=DeadlySite("ray"))
    bundle, done = learn_bundle(views, plan, Bundle.open(tmp_path))
    notes = {each.what: each.note for each in done}
    assert notes.pop("ws-gp").startswith(f"lost {MOST_RERUNS + 1} times with its Ray worker")
    assert notes == {"portfolio": "", "zero-shot": ""}
    assert set(Bundle.open(tmp_path).spaces[SPACE].priors) == {"zero-shot"}
    prior = ZERO_SHOT.load(bundle.path(bundle.spaces[SPACE].priors["zero-shot"]["r2"]))
    assert prior.configs.space == known.space
