import datetime
import math

import pytest

from foretune.stores.optuna.database import StudyTables

optuna = pytest.importorskip("optuna")
from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)
SPACE = {
    "rate": FloatDistribution(1e-4, 0.1, log=True),
    "depth": IntDistribution(2, 12, step=2),
    "kind": CategoricalDistribution(("a", None, True, 0.5)),
}
PARAMS = {"rate": 0.01, "depth": 4, "kind": None}
PARTS = ("state", "values", "params", "distributions", "user_attrs", "system_attrs")
PARTS += ("datetime_start", "datetime_complete", "duration")
BEGUN = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)


def made(state, values=None, names=tuple(SPACE), **attributes):
    trial = create_trial(
        state=state,
        values=values,
        params={name: PARAMS[name] for name in names},
        distributions={name: SPACE[name] for name in names},
        **attributes,
    )
    trial.datetime_start = None if state is TrialState.WAITING else BEGUN
    ended = BEGUN + datetime.timedelta(seconds=90.5)
    trial.datetime_complete = ended if state.is_finished() else None
    return trial


TRIALS = [
    made(TrialState.COMPLETE, [1.5, math.inf], user_attrs={"note": "é", "many": [1, {"a": 2}]}),
    made(TrialState.COMPLETE, [-math.inf, 1e-300], system_attrs={"constraints": [0.5]}),
    made(TrialState.PRUNED, names=("depth",)),
    made(TrialState.FAIL, names=()),
    made(TrialState.RUNNING, names=("kind", "rate")),
    made(TrialState.WAITING, names=(), system_attrs={"fixed_params": {"rate": 0.05}}),
]


@pytest.fixture
def storage(tmp_path):
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'studies.db'}")
    # Trials of two studies take turns, so that neither has all ids of a range.
    first, second = (
        optuna.create_study(storage=storage, study_name=name, directions=["minimize"] * 2)
        for name in ("first", "second")
    )
    for trial in TRIALS:
        first.add_trial(trial)
        second.add_trial(made(TrialState.COMPLETE, [7.0, 8.0]))
    return storage


def read(storage, study_id):
    with storage.engine.connect() as connection:
        return StudyTables(connection, (study_id,)).trials()


def test_trials_are_those_that_optuna_reads(storage):
    for study in storage.get_all_studies():
        own = storage.get_all_trials(study._study_id)
        read_ = read(storage, study._study_id)
        assert [trial.number for trial in read_] == [trial.number for trial in own]
        for part in PARTS:
            assert [getattr(trial, part) for trial in read_] == [getattr(o, part) for o in own]
        assert [trial.trial_id for trial in read_] == [trial._trial_id for trial in own]
        # Equality of trials says nothing about the types of what they hold.
        assert [repr(trial.params) for trial in read_] == [repr(trial.params) for trial in own]


def test_a_study_without_trials_has_none(storage):
    study = optuna.create_study(storage=storage, study_name="empty")
    assert read(storage, study._study_id) == ()
