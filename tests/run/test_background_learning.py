"""A search that learns while its first trials run."""

import threading
from collections.abc import Callable
from typing import NoReturn

import pytest

from foretune.experience import Metric
from foretune.methods.contracts import Prior, Target
from foretune.run.background_learning import BackgroundLearning
from foretune.run.executor import Limits
from foretune.run.pool import ProcessPool
from foretune.run.tuning_loop import Budget, tune
from foretune.run.watch import Watch
from foretune.search.early_opening import EarlyPrior
from foretune.search.optimizer import Optimizer
from foretune.search.registry import METHODS
from foretune.space import Space
from foretune.stores.studies import open_study

SPACE = Space.of({"x": (0.0, 1.0)})
GP = METHODS["gp"]


def optimizer_that(learn: Callable[[], Prior]) -> Optimizer:
    """Opens with two configurations, and calls `learn` for the rest."""
    first = SPACE.encode([{"x": 0.25}, {"x": 0.75}])
    return Optimizer(Target(SPACE), GP, EarlyPrior(first, learn))


def wait_for(learning: BackgroundLearning) -> None:
    while learning.must_wait():
        pass


def loss(config: dict[str, float]) -> float:
    return (config["x"] - 0.4) ** 2


def test_nothing_is_learnt_before_it_is_needed() -> None:
    optimizer = optimizer_that(lambda: pytest.fail("learnt"))
    learning = BackgroundLearning(optimizer)
    assert not learning.must_wait()
    optimizer.ask()
    assert not learning.must_wait()
    assert not learning.is_running


def test_errors_are_raised() -> None:
    def fail() -> NoReturn:
        raise ZeroDivisionError

    optimizer = optimizer_that(fail)
    optimizer.ask(2)
    learning = BackgroundLearning(optimizer)
    with pytest.raises(ZeroDivisionError):
        wait_for(learning)


def test_results_are_stored_while_the_optimiser_learns() -> None:
    """Learning goes on until the results of the first two trials are in the study."""
    ended, both_ended = [], threading.Event()

    class Stored(Watch):
        def trial_ended(self, trial) -> None:
            ended.append(trial)
            if len(ended) == 2:
                both_ended.set()

    def learn() -> Prior:
        assert both_ended.wait(60.0)
        return GP.learn(None, seed=0)

    opened = open_study(None, "study", space=SPACE, metrics=(Metric("loss"),))
    pool = ProcessPool(loss, workers=3, limits=Limits())
    with opened as study, pool:
        ending = tune(study, optimizer_that(learn), pool, Budget(trials=3), watch=Stored())
        assert ending == "trials"
        assert [trial.config["x"] for trial in study.trials()][:2] == [0.25, 0.75]
        assert len(study.trials()) == 3
