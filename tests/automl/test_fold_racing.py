"""Trials that are clearly worse after their first folds are stopped."""

import numpy as np
import pytest

from foretune.automl.fold_racing import FEWEST_OTHERS, FoldRacing, worse_than_median
from foretune.automl.plan import FitOptions, make_plan
from foretune.automl.trial_evaluator import InMemoryEvaluator
from foretune.experience import Status
from foretune.methods.stopping.policy import Decision
from foretune.methods.stopping.race import Race
from foretune.tables.target import Task

from .samples import mixed_table

FOLDS = 5
EFFECTS = np.array([0.3, -0.2, 0.1, 0.0, -0.2])
"""What each fold adds to the loss of every trial."""


def test_the_numbers_by_hand() -> None:
    """The best is 1.0 and the median 1.2; differences from the best spread by 0.1 (one of three).

    The spreads of the other two are 0.1 and 0.0, whose median is 0.05. A trial that loses 0.5 in
    its first fold is 0.5 - 2 * 0.05 - 0.2 = 0.2 worse.
    """
    others = np.array([[1.0, 1.0, 1.0], [1.1, 1.2, 1.3], [1.3, 1.3, 1.3]])
    assert worse_than_median(np.array([1.5]), others) == pytest.approx(0.2)
    two = worse_than_median(np.array([1.5, 1.3]), others)
    assert two == pytest.approx(0.4 - 0.1 / np.sqrt(2.0) - 0.2)
    assert worse_than_median(np.array([1.25]), others) < 0.0


def _race(losses: np.ndarray, status: Status = Status.DONE) -> Race:
    race = Race()
    for trial, each in enumerate(losses):
        race.start(trial)
        for step, loss in enumerate(each, start=1):
            race.report(trial, step, float(loss))
        race.move(trial, status)
    return race


def _decide(race: Race, *losses: float) -> Decision:
    race.start(99)
    for step, loss in enumerate(losses, start=1):
        race.report(99, step, loss)
    return FoldRacing(FOLDS).decide(race, 99).decision


@pytest.fixture
def complete() -> np.ndarray:
    rng = np.random.default_rng(0)
    means = np.linspace(1.0, 1.2, FEWEST_OTHERS)
    return means[:, None] + EFFECTS + 0.01 * rng.normal(size=(FEWEST_OTHERS, FOLDS))


def test_a_clearly_worse_trial_is_stopped_and_a_good_one_goes_on(complete: np.ndarray) -> None:
    # The first fold is hard for all trials, so a high loss there says nothing.
    assert _decide(_race(complete), 1.0 + EFFECTS[0]) is Decision.CONTINUE
    assert _decide(_race(complete), 1.5 + EFFECTS[0]) is Decision.STOP
    assert _decide(_race(complete), 1.3 + EFFECTS[0], 1.3 + EFFECTS[1]) is Decision.STOP
    assert _decide(_race(complete), *(1.5 + EFFECTS)) is Decision.CONTINUE  # It is complete.
    assert _decide(_race(complete), np.inf) is Decision.STOP


def test_few_or_stopped_trials_stop_nobody(complete: np.ndarray) -> None:
    assert _decide(_race(complete[1:]), 9.0) is Decision.CONTINUE
    assert _decide(_race(complete, Status.STOPPED), 9.0) is Decision.CONTINUE
    assert _decide(_race(complete[:, :2]), 9.0) is Decision.CONTINUE


class Trial:
    """A trial that is to stop after some folds."""

    def __init__(self, folds: int) -> None:
        self._folds, self.reports = folds, []

    def report(self, step: float, value: float) -> None:
        self.reports.append((step, value))

    def should_stop(self) -> bool:
        return len(self.reports) >= self._folds


@pytest.mark.parametrize("folds", [1, 3, 9])
def test_a_trial_reports_its_folds_and_a_stopped_one_keeps_nothing(tmp_path, folds: int) -> None:
    plan = make_plan(mixed_table(Task.CLASSIFICATION), FitOptions(only=("knn",)))
    evaluator = InMemoryEvaluator(plan.table, plan.protocol, tmp_path, keeps_models=True)
    trial = Trial(folds)
    found = evaluator(plan.space.defaults().dicts()[0], trial)
    assert [step for step, _ in trial.reports] == list(range(1, min(folds, FOLDS) + 1))
    assert found["log_loss"] == pytest.approx(np.mean([value for _, value in trial.reports]))
    assert len(list(tmp_path.iterdir())) == (2 if folds > FOLDS else 0)
