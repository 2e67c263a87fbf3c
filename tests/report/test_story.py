import pytest

from foretune.experience import Metric
from foretune.report.story import Step, Story, steps_of
from tests.refusals import refuses
from tests.report.stories import FLAT, SCORE, STAGED, some_trials, told


def test_steps_hold_what_was_chosen_and_its_settings():
    config = {"scaler": "none", "model": "tree", "model:tree:depth": 4}
    assert steps_of(STAGED, config, order=("scaler", "model")) == (
        Step("scaler", "none", {}),
        Step("model", "tree", {"depth": 4}),
    )


def test_steps_without_a_given_order_come_last():
    config = {"scaler": "standard", "model": "line", "model:line:slope": 0.5}
    names = [step.name for step in steps_of(STAGED, config, order=("scaler",))]
    assert names == ["scaler", "model"]


def test_a_flat_configuration_is_one_step_without_a_choice():
    config = {"rate": 0.1, "layers": 2, "kind": "relu"}
    (step,) = steps_of(FLAT, config)
    assert (step.algorithm, step.settings) == ("", config)


def test_best_value_is_of_the_first_metric():
    story = told(n=5)
    assert story.best_value == max(trial.values["score"] for trial in story.trials)


def test_no_best_trial_has_no_value():
    assert told(n=3, best=None, pipeline=()).best_value is None


def test_the_best_must_be_a_trial():
    with refuses("report-best", value=99):
        told(n=3, best=99)


@pytest.mark.parametrize(("metrics", "objectives"), [([], 1), ([SCORE], 2), ([SCORE], 0)])
def test_objectives_must_be_metrics(metrics: list[Metric], objectives: int):
    with refuses("report-objectives"):
        Story("t", FLAT, metrics, some_trials(FLAT, 2), objectives)
