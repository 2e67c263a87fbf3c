"""Pruning by a model of curves, which has learnt from the other studies in the storage."""

import pickle

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from foretune.integrations.optuna import ForetunePruner

optuna.logging.set_verbosity(optuna.logging.WARNING)
LAST = 9


def curve_of(rate: float, late: float) -> list[float]:
    """A high `late` begins badly and ends well: an early comparison is wrong about it."""
    steps = np.arange(1, LAST + 1) / LAST
    return (0.5 + (rate - 0.3) ** 2 - 0.4 * late * steps + 0.3 * late * (1 - steps)).tolist()


def run_trial(study: optuna.Study, rate: float, late: float) -> int:
    study.enqueue_trial({"rate": rate, "late": late})
    trial = study.ask()
    curve = curve_of(trial.suggest_float("rate", 0, 1), trial.suggest_float("late", 0, 1))
    for step, value in enumerate(curve, 1):
        trial.report(value, step)
        if step < LAST and trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return step
    study.tell(trial, curve[-1])
    return LAST


def fill(storage: optuna.storages.BaseStorage, studies: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(studies):
        nobody = optuna.pruners.NopPruner()
        study = optuna.create_study(storage=storage, study_name=f"past-{number}", pruner=nobody)
        for _ in range(14):
            run_trial(study, *rng.random(2).tolist())


@pytest.fixture(scope="module")
def storage() -> optuna.storages.BaseStorage:
    place = optuna.storages.InMemoryStorage()
    fill(place, 3)
    return place


def test_it_knows_from_past_studies_that_a_bad_begin_may_end_well(storage):
    model = ForetunePruner("model", last_step=LAST)
    study = optuna.create_study(storage=storage, study_name="new", pruner=model)
    assert run_trial(study, 0.3, 0.5) == LAST
    run_trial(study, 0.5, 0.5)
    # At step 1 this one is the worst so far, and at the end the best.
    assert run_trial(study, 0.35, 1.0) == LAST
    assert run_trial(study, 1.0, 0.0) < LAST
    asha = optuna.create_study(pruner=ForetunePruner("asha", last_step=LAST))
    for rate in (0.3, 0.5):
        run_trial(asha, rate, 0.5)
    assert run_trial(asha, 0.35, 1.0) == 1


def test_without_past_studies_the_best_is_kept():
    study = optuna.create_study(pruner=ForetunePruner("model", last_step=LAST))
    rng = np.random.default_rng(3)
    reached = {(a, b): run_trial(study, a, b) for a, b in rng.random((7, 2)).tolist()}
    assert study.best_value <= min(curve_of(*config)[-1] for config in reached) + 0.1


def test_a_copy_in_another_process_decides_the_same(storage):
    pruner = pickle.loads(pickle.dumps(ForetunePruner("model", last_step=LAST)))
    study = optuna.create_study(storage=storage, study_name="copy", pruner=pruner)
    assert run_trial(study, 0.3, 0.5) == LAST
