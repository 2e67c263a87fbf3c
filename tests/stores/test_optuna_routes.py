"""One study gives the same experience, whichever way it takes into a search."""

import math

import pytest

from foretune.cli.past_run_alignment import carry_over_past
from foretune.cli.past_runs import open_past_runs
from foretune.experience import Metric, Status
from foretune.stores import import_experience
from foretune.stores.optuna.past_studies import past_studies
from foretune.stores.optuna.space_of_trials import infer_space

optuna = pytest.importorskip("optuna")
from optuna.distributions import CategoricalDistribution, FloatDistribution  # noqa: E402
from optuna.trial import TrialState, create_trial  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)
pytestmark = pytest.mark.filterwarnings("ignore::foretune.errors.ForetuneWarning")

MODEL = CategoricalDistribution(["svm", "tree"])
UNIT = FloatDistribution(0.0, 1.0)
PAST = {"model": MODEL, "C": UNIT, "depth": UNIT, "rate": UNIT}
DONE, FAIL, PRUNED = TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED
TRIALS = [
    ({"model": "svm", "C": 0.25, "rate": 0.1}, 3.0, DONE),
    ({"model": "tree", "depth": 0.75, "rate": 0.2}, 2.0, DONE),
    ({"model": "tree", "depth": 0.5}, 4.0, DONE),  # without a rate, for no reason
    ({"model": "svm", "C": 0.5, "rate": 0.3}, None, FAIL),
    ({"model": "svm", "rate": 0.7}, None, FAIL),  # failed before it had drawn C
    ({"model": "tree", "depth": 0.125, "rate": 0.4}, 9.0, PRUNED),
    ({"model": "svm", "C": 0.75, "rate": 0.9}, 1.0, DONE),
    ({"model": "svm"}, None, TrialState.RUNNING),
]
KEPT = [TRIALS[row] for row in (0, 1, 2, 3, 5, 6)]


def searched(**more):
    """The space that is searched today; `more` was not there in the past."""
    given = {**PAST, **more}
    shown = [{**config, "rate": 0.5, **dict.fromkeys(more, 0.5)} for config, _, _ in KEPT]
    space, unexplained = infer_space(given, shown)
    assert unexplained == []
    return space


@pytest.fixture(params=["database", "journal"])
def source(request, tmp_path):
    if request.param == "database":
        source = f"sqlite:///{tmp_path / 'past.db'}"
        storage = optuna.storages.RDBStorage(source)
    else:
        source = str(tmp_path / "past.log")
        backend = optuna.storages.journal.JournalFileBackend(source)
        storage = optuna.storages.JournalStorage(backend)
    study = optuna.create_study(storage=storage, study_name="past")
    for config, value, state in TRIALS:
        given = {name: PAST[name] for name in config}
        study.add_trial(create_trial(params=config, distributions=given, value=value, state=state))
    return source, storage


def by_import(source, space, missing):
    return import_experience("optuna", source[0], missing=missing).in_space(space, missing=missing)


def by_tune(source, space, missing):
    past = open_past_runs([source[0]], store="new.db", study="new")
    return carry_over_past(past, space, [Metric("value")], [], missing).experience


def by_sampler(source, space, missing):
    past = past_studies(source[1], 1, but=None, missing=missing)
    return past.experience_in(space)


ROUTES = [by_import, by_tune, by_sampler]


def rows(experience):
    records = experience.task("past")
    return [
        (config, None if math.isnan(value) else value, Status(status))
        for config, value, status in zip(
            records.configs.dicts(), records.values[:, 0], records.status, strict=True
        )
    ]


@pytest.mark.parametrize("route", ROUTES)
def test_a_missing_value_is_the_default_on_every_route(source, route):
    found = rows(route(source, searched(new=FloatDistribution(0.0, 4.0)), "default"))
    ok, failed = Status.DONE, Status.FAILED
    assert found == [
        ({"model": "svm", "C": 0.25, "rate": 0.1, "new": 2.0}, 3.0, ok),
        ({"model": "tree", "depth": 0.75, "rate": 0.2, "new": 2.0}, 2.0, ok),
        ({"model": "tree", "depth": 0.5, "rate": 0.5, "new": 2.0}, 4.0, ok),
        ({"model": "svm", "C": 0.5, "rate": 0.3, "new": 2.0}, None, failed),
        ({"model": "tree", "depth": 0.125, "rate": 0.4, "new": 2.0}, 9.0, Status.STOPPED),
        ({"model": "svm", "C": 0.75, "rate": 0.9, "new": 2.0}, 1.0, ok),
    ]


@pytest.mark.parametrize("route", ROUTES)
def test_a_trial_that_lacks_a_value_can_be_left_out_on_every_route(source, route):
    found = rows(route(source, searched(), "drop"))
    assert [value for _, value, _ in found] == [3.0, 2.0, None, 9.0, 1.0]
    assert all("rate" in config for config, _, _ in found)


def test_a_missing_value_is_drawn_alike_on_every_route(source):
    first, *others = (rows(route(source, searched(), "marginalise")) for route in ROUTES)
    assert first[2][0]["rate"] in (0.1, 0.2, 0.3, 0.4, 0.9)
    assert len(first) == 6
    assert others == [first, first]


def test_past_values_of_a_new_hyperparameter_are_drawn_reproducibly(source):
    space = searched(new=FloatDistribution(0.0, 4.0))
    tune, sampler = (rows(route(source, space, "marginalise")) for route in (by_tune, by_sampler))
    assert tune == sampler
    assert len({config["new"] for config, _, _ in tune}) == 6
