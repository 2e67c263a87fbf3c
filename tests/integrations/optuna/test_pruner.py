"""The pruner in Optuna studies, against decisions worked out by hand."""

import math
import pickle
from collections.abc import Sequence

import optuna
import pytest
from optuna.trial import TrialState

from foretune.integrations.optuna import ForetunePruner, ForetuneSampler
from foretune.methods.stopping import AsyncHalving, MedianStopping, StepRange
from foretune.stores.optuna.past_studies import past_studies
from tests.refusals import refuses

optuna.logging.set_verbosity(optuna.logging.WARNING)


def run_trial(study: optuna.Study, curve: Sequence[float], first: int = 1, ask: int = 1) -> int:
    """Run a trial that reports a curve; return its last step. It asks at every `ask`-th step."""
    trial = study.ask()
    for step, value in enumerate(curve, first):
        trial.report(value, step)
        if step % ask == 0 and step < len(curve) + first - 1 and trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return step
    study.tell(trial, curve[-1])
    return step


def flat(loss: float, steps: int = 9) -> list[float]:
    return [loss] * steps


def test_asha_keeps_the_best_third_of_each_level_and_at_least_one():
    study = optuna.create_study(pruner=ForetunePruner("asha", last_step=9))
    # At step 1: the best so far go on; of six trials the best two do. At step 3 likewise.
    reached = [run_trial(study, flat(loss)) for loss in (0.5, 0.6, 0.4, 0.7, 0.8, 0.45, 0.1)]
    assert reached == [9, 1, 9, 1, 1, 3, 9]
    states = [trial.state for trial in study.trials]
    assert [state is TrialState.COMPLETE for state in states] == [each == 9 for each in reached]


def test_more_is_better_where_a_study_maximises():
    pruner = ForetunePruner("asha", last_step=9)
    study = optuna.create_study(direction="maximize", pruner=pruner)
    assert [run_trial(study, flat(value)) for value in (0.5, 0.4, 0.6)] == [9, 1, 9]


def test_a_level_counts_if_the_trial_asks_only_later():
    study = optuna.create_study(pruner=ForetunePruner("asha", last_step=9))
    reached = [run_trial(study, flat(loss), ask=2) for loss in (0.5, 0.6)]
    assert reached == [9, 2]


def test_a_diverged_trial_is_pruned_even_if_it_is_the_first():
    study = optuna.create_study(pruner=ForetunePruner("asha", last_step=9))
    assert run_trial(study, flat(math.nan)) == 1
    assert run_trial(study, flat(0.5)) == 9


def test_steps_may_begin_at_0():
    study = optuna.create_study(pruner=ForetunePruner("asha", last_step=9))
    assert [run_trial(study, flat(loss), first=0) for loss in (0.5, 0.6)] == [8, 1]


def test_median_stopping_compares_with_the_averages_of_all_others():
    study = optuna.create_study(pruner=ForetunePruner("median", first_step=2))
    falling = [[1.0, 0.8, 0.6], [1.0, 0.6, 0.4], [1.0, 0.9, 0.8], [1.0, 0.7, 0.1]]
    assert [run_trial(study, curve) for curve in falling] == [3, 3, 3, 3]
    # The averages until step 2 are 0.9, 0.8, 0.95 and 0.85; their median is 0.875.
    assert run_trial(study, [1.0, 0.88, 0.0]) == 2
    assert run_trial(study, [1.0, 0.87, 0.0]) == 3


def test_trials_of_hyperband_compete_within_their_kind_of_bracket():
    # Brackets of 3 trials compared at step 1, then of 2 trials that are never compared.
    pruner = ForetunePruner("hyperband", first_step=1, last_step=3)
    study = optuna.create_study(pruner=pruner)
    losses = (0.5, 0.6, 0.7, 0.9, 0.9, 0.55, 0.4, 0.65)
    assert [run_trial(study, flat(loss, 3)) for loss in losses] == [3, 1, 1, 3, 3, 1, 3, 1]


@pytest.mark.parametrize("policy", ["asha", "halving", "hyperband"])
def test_the_last_step_is_learnt_from_the_first_complete_trial(policy):
    study = optuna.create_study(pruner=ForetunePruner(policy))
    reached = [run_trial(study, flat(loss)) for loss in (0.5, 0.6, 0.4)]
    assert reached == [9, 1, 9]
    last = study.ask()
    for step in range(1, 10):
        last.report(0.3 if step < 9 else 0.9, step)
        assert not last.should_prune()  # not at the last step either


def test_none_prunes_nothing():
    study = optuna.create_study(pruner=ForetunePruner("none"))
    assert [run_trial(study, flat(loss)) for loss in (0.1, 0.9)] == [9, 9]


def test_a_policy_may_be_given_ready_made():
    study = optuna.create_study(pruner=ForetunePruner(MedianStopping(StepRange(1, 9), 1)))
    assert [run_trial(study, flat(loss)) for loss in (0.5, 0.6)] == [9, 1]


def test_running_trials_of_other_processes_count(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    pruner = ForetunePruner(AsyncHalving(StepRange(1, 9)))
    ours = optuna.create_study(storage=url, study_name="s", pruner=pruner)
    theirs = optuna.load_study(
        storage=url, study_name="s", pruner=pickle.loads(pickle.dumps(pruner))
    )
    running = theirs.ask()
    running.report(0.5, 1)
    assert not running.should_prune()
    assert run_trial(ours, flat(0.6)) == 1
    assert run_trial(ours, flat(0.4)) == 9
    running.report(0.5, 3)
    assert running.should_prune()
    assert running.should_prune()  # also where the program did not obey at once


def test_a_study_in_the_place_of_another_has_a_race_of_its_own(tmp_path):
    url, pruner = f"sqlite:///{tmp_path / 'study.db'}", ForetunePruner("asha", last_step=9)
    first = optuna.create_study(storage=url, study_name="s", pruner=pruner)
    assert [run_trial(first, flat(loss)) for loss in (0.1, 0.2)] == [9, 1]
    optuna.delete_study(storage=url, study_name="s")
    second = optuna.create_study(storage=url, study_name="s", pruner=pruner)
    assert second._study_id == first._study_id
    assert run_trial(second, flat(0.5)) == 9


def test_mistakes_are_named():
    with refuses("unknown-policy", value="ashe"):
        ForetunePruner("ashe")


def test_pruned_trials_keep_their_curves_as_experience():
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(1, 10):
            trial.report(x / step, step)
            if step < 9 and trial.should_prune():
                raise optuna.TrialPruned
        return x / 9

    study = optuna.create_study(
        sampler=ForetuneSampler("sobol", seed=0), pruner=ForetunePruner("asha", last_step=9)
    )
    study.optimize(objective, n_trials=8)
    ended = {trial.state for trial in study.trials}
    assert ended == {TrialState.COMPLETE, TrialState.PRUNED}
    past = past_studies(study._storage, 1, but=None)
    experience = past.experience_in(past.parts[0].space)
    lengths = sorted(len(trial.intermediate_values) for trial in study.trials)
    assert sorted(experience.curves.lengths) == lengths
