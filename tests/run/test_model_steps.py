"""Studies in which the model of curves decides which trial goes on."""

import numpy as np
import pytest

from foretune.experience import Status
from foretune.methods.contracts import Target
from foretune.methods.stopping.model_steps import ModelSteps
from foretune.run import Budget, InlineExecutor, tune
from foretune.run.trial_folders import TrialFolders
from foretune.search import Optimizer, method
from tests.run.test_early_stopping import LAST, Training, curve_of, expected, opened
from tests.run.test_tuning import SPACE, bowl, memory

TRIALS = 6


def optimizer() -> Optimizer:
    chosen = method("freeze-thaw")
    target, policy = Target(SPACE, ("error",)), ModelSteps(1, LAST, trials=TRIALS)
    return Optimizer(target, chosen, chosen.learn(None, seed=0), seed=1, policy=policy)


def play(study, training, trials, folders=None):
    return tune(study, optimizer(), InlineExecutor(training), Budget(trials), folders=folders)


def test_trials_go_on_with_reasons_and_one_is_complete():
    study, training = memory(), Training()
    assert play(study, training, TRIALS) == "trials"
    trials = study.trials()
    assert len(training.taken) == len(set(training.taken))  # no step twice
    assert any(trial.status is Status.DONE for trial in trials)
    complete = [trial.values["error"] for trial in trials if trial.status is Status.DONE]
    # The end of a trial is 1 / LAST above its bowl. A complete one is in the better half.
    assert min(complete) <= np.median([bowl(trial.config) + 1 / LAST for trial in trials])
    for trial in trials:
        assert curve_of(trial) == expected(trial.config, trial.last_step)
        if trial.status is Status.PAUSED:
            assert trial.last_step in (1.0, 2.0, 4.0, 8.0)
            assert "predicted to end at" in trial.reason


@pytest.mark.parametrize("at", [4, 13])
def test_an_interrupted_search_decides_as_if_it_had_never_stopped(at, tmp_path):
    whole = memory()
    play(whole, Training(), TRIALS)
    folders = TrialFolders(tmp_path / "folders")
    with opened("sqlite", tmp_path) as study:
        with pytest.raises(KeyboardInterrupt):
            play(study, Training(interrupt_at=at), TRIALS, folders)
        play(study, Training(), TRIALS, folders)
        parts = study.trials()
    for one, other in zip(parts, whole.trials(), strict=True):
        assert (one.config, one.status, curve_of(one)) == (
            other.config, other.status, curve_of(other)
        )  # fmt: skip
