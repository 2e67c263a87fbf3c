"""The sampler in studies of every kind."""

import pickle
import warnings
from datetime import datetime, timedelta

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace, ForbiddenEqualsClause

from foretune._base.progress import SILENT
from foretune.errors import ExperienceError, ForetuneWarning, MethodError
from foretune.integrations.optuna import ForetuneSampler, study_search
from foretune.integrations.optuna.sampler_knowledge import usual_method
from foretune.methods.auto.learn import PORTFOLIO_TRIALS, AutoLearner
from foretune.methods.contracts import Observations, Surrogate, Target
from foretune.search import Method, Optimizer, method
from foretune.search.seeds import derive_seed
from foretune.space import Space
from tests.integrations.optuna.examples import SPACE, relatives
from tests.methods.doubles import PartLearner, PartPrior
from tests.refusals import refuses, warns

optuna.logging.set_verbosity(optuna.logging.WARNING)
optuna.logging.disable_propagation()


def bowl(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    depth = trial.suggest_int("depth", 1, 9)
    return (x - 0.3) ** 2 + (np.log10(lr) + 2) ** 2 / 4 + (depth - 5) ** 2 / 16


def params(study: optuna.Study) -> list[dict[str, object]]:
    return [trial.params for trial in study.trials]


def in_memory(sampler: optuna.samplers.BaseSampler, **options: object) -> optuna.Study:
    return optuna.create_study(sampler=sampler, **options)  # type: ignore[arg-type]


def test_suggestions_are_better_than_random_ones_and_reproducible():
    studies = [in_memory(ForetuneSampler("gp", seed=1)) for _ in range(2)]
    for study in studies:
        study.optimize(bowl, n_trials=18)
    assert params(studies[0]) == params(studies[1])
    late = [trial.value for trial in studies[0].trials[10:]]
    assert np.median(late) < 0.1  # a random one is at 0.6


def test_a_study_goes_on_in_another_process_as_if_it_had_never_stopped(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    whole = in_memory(ForetuneSampler("gp", seed=2))
    whole.optimize(bowl, n_trials=9)
    begun = in_memory(ForetuneSampler("gp", seed=2), storage=url, study_name="s")
    begun.optimize(bowl, n_trials=6)
    resumed = optuna.load_study(study_name="s", storage=url, sampler=ForetuneSampler("gp", seed=2))
    resumed.optimize(bowl, n_trials=3)
    assert params(resumed) == params(whole)


def test_maximising_is_minimising_the_negative():
    down, up = in_memory(ForetuneSampler("gp", seed=0)), None
    up = in_memory(ForetuneSampler("gp", seed=0), direction="maximize")
    down.optimize(bowl, n_trials=8)
    up.optimize(lambda trial: -bowl(trial), n_trials=8)
    assert params(down) == params(up)


def conditional(trial: optuna.Trial) -> float:
    kind = trial.suggest_categorical("kind", ["tree", "linear"])
    if kind == "tree":
        return 1.0 + abs(trial.suggest_int("depth", 1, 20) - 7) / 20
    return trial.suggest_float("l2", 1e-6, 1.0, log=True)


def test_conditional_parameters_are_planned_with_their_parent():
    sampler = ForetuneSampler("gp", seed=0)
    study = in_memory(sampler)
    study.optimize(conditional, n_trials=16)
    space = next(iter(sampler._searches.values()))._optimizer.target.space
    assert {(c.child.name, c.parent.name, c.value) for c in space.config_space.conditions} == {
        ("depth", "kind", "tree"),
        ("l2", "kind", "linear"),
    }
    assert [trial.params["kind"] for trial in study.trials[8:]].count("linear") >= 6
    assert study.best_value < 1e-3


def test_a_parameter_that_was_never_seen_is_drawn_at_random():
    study = in_memory(ForetuneSampler("gp", seed=0))
    study.optimize(bowl, n_trials=6)
    study.optimize(lambda t: bowl(t) + t.suggest_float("new", 5.0, 6.0), n_trials=2)
    assert 5.0 <= study.trials[6].params["new"] != study.trials[7].params["new"]


def test_a_given_space_is_used_from_the_first_trial_on():
    space = {"x": (-1.0, 1.0), "lr": (1e-4, 1.0, "log"), "depth": (1, 9)}
    study = in_memory(ForetuneSampler("sobol", space=space, seed=3))
    study.optimize(bowl, n_trials=4)
    expected = Space.of(space).sample(4, seed=3, how="sobol").dicts()
    assert params(study) == expected


def asks_for_x_only(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", 0.0, 1.0)


def asks_for_what_the_model_has(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("model", ["svm", "rf"]) == "svm":
        return np.log10(trial.suggest_float("C", 1e-3, 1e3, log=True)) ** 2
    return trial.suggest_int("depth", 1, 16) / 10


def asks_for_a_coarse_grid(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", 0.0, 1.0, step=0.25) + trial.suggest_float("y", 0.0, 1.0)


def asks_for_another_range(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", 5.0, 6.0) + trial.suggest_float("y", 0.0, 1.0)


SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
FLAT = {"model": ["svm", "rf"], "C": (1e-3, 1e3, "log"), "depth": (1, 16)}


@pytest.mark.parametrize(
    ("space", "objective", "name"),
    [
        (SQUARE, asks_for_x_only, "x"),
        (FLAT, asks_for_what_the_model_has, "model"),
        (SQUARE, asks_for_a_coarse_grid, "y"),
        (SQUARE, asks_for_another_range, "y"),
    ],
)
def test_a_program_that_does_not_take_the_start_as_it_is_gets_past_it(space, objective, name):
    study = in_memory(ForetuneSampler(space=space, seed=0))
    study.optimize(objective, n_trials=4)
    assert len({trial.params[name] for trial in study.trials}) > 1


def test_a_step_too_fine_for_a_list_is_searched_all_the_same():
    def fine(trial: optuna.Trial) -> float:
        return abs(trial.suggest_int("n", 0, 10**9, step=20) / 1e9 - 0.3)

    study = in_memory(ForetuneSampler("gp", seed=0))
    study.optimize(fine, n_trials=15)
    assert study.best_value < 0.01
    assert all(trial.params["n"] % 20 == 0 for trial in study.trials)


def test_a_trial_that_failed_before_it_asked_for_all_is_not_suggested_again():
    def fails(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0.0, 1.0)
        raise RuntimeError

    study = in_memory(ForetuneSampler(space=SQUARE, seed=0))
    study.optimize(fails, n_trials=3, catch=RuntimeError)
    assert len({trial.params["x"] for trial in study.trials}) == 3


def test_enqueued_trials_count_as_suggested_in_other_processes(tmp_path):
    def sampler():
        return ForetuneSampler(space=FLAT, seed=2)

    whole = in_memory(sampler())
    whole.optimize(asks_for_what_the_model_has, n_trials=9)
    url = f"sqlite:///{tmp_path / 'study.db'}"
    for trials in (4, 5):
        part = in_memory(sampler(), storage=url, study_name="s", load_if_exists=True)
        part.optimize(asks_for_what_the_model_has, n_trials=trials)
    assert params(part) == params(whole)


def test_a_trial_that_takes_its_suggestion_leaves_no_note():
    space = {"x": (-1.0, 1.0), "lr": (1e-4, 1.0, "log"), "depth": (1, 9)}
    study = in_memory(ForetuneSampler(space=space, seed=0))
    study.optimize(bowl, n_trials=2)
    assert all(study_search.SUGGESTED not in trial.system_attrs for trial in study.trials)


def test_a_name_outside_of_the_given_space_is_warned_of_once():
    nested = {"model": {"svm": {"C": (1e-3, 1e3, "log")}, "rf": {}}}
    study = in_memory(ForetuneSampler("random", space=nested, seed=0))

    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("C", 1e-3, 1e3, log=True) + trial.suggest_float("lr", 0.0, 1.0)

    with pytest.warns(ForetuneWarning) as warned:
        study.optimize(objective, n_trials=3)
    ours = [str(one.message) for one in warned if one.category is ForetuneWarning]
    assert len(ours) == 2
    assert "'C'" in ours[0]
    assert 'ask for "model:svm:C"' in ours[0]
    assert "'lr'" in ours[1]
    assert "add it" in ours[1]


def test_names_of_the_given_space_that_a_choice_brings_along_are_answered_from_it():
    nested = {"model": {"svm": {"C": (1e-3, 1e3, "log")}, "rf": {}}}
    study = in_memory(ForetuneSampler("random", space=nested, seed=0))

    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("model", ["svm", "rf"]) == "rf":
            return 1.0
        return trial.suggest_float("model:svm:C", 1e-3, 1e3, log=True)

    with warnings.catch_warnings():
        warnings.simplefilter("error", ForetuneWarning)
        study.optimize(objective, n_trials=4)
    assert any("model:svm:C" in trial.params for trial in study.trials)


def test_completed_values_use_other_random_numbers_than_the_optimiser():
    completions = {study_search.completion_seed(5, number) for number in range(60)}
    optimiser = {derive_seed(5, told, pending) for told in range(60) for pending in range(9)}
    assert len(completions) == 60
    assert not completions & optimiser


def test_enqueued_values_are_taken_and_the_rest_is_chosen_to_suit_them():
    study = in_memory(ForetuneSampler("gp", seed=0))
    study.optimize(bowl, n_trials=12)
    study.enqueue_trial({"x": 0.2})
    study.enqueue_trial({"x": 0.5, "lr": 0.1, "depth": 2})
    study.optimize(bowl, n_trials=2)
    assert study.trials[12].params["x"] == 0.2
    assert study.trials[12].value < 0.1  # a random one is at 0.5
    assert study.trials[13].params == {"x": 0.5, "lr": 0.1, "depth": 2}


def test_an_enqueued_value_that_the_space_forbids_is_taken_all_the_same():
    space = ConfigurationSpace({"a": ["x", "y"], "b": ["u", "v"]})
    space.add(ForbiddenEqualsClause(space["a"], "y"))
    study = in_memory(ForetuneSampler("random", space=space, seed=0))
    study.enqueue_trial({"a": "y"})

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("a", ["x", "y"])
        return float(trial.suggest_categorical("b", ["u", "v"]) == "u")

    study.optimize(objective, n_trials=2)
    assert [trial.params["a"] for trial in study.trials] == ["y", "x"]


def test_a_partially_fixed_sampler_optimises_the_rest():
    study = in_memory(ForetuneSampler("gp", seed=0))
    study.optimize(bowl, n_trials=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.sampler = optuna.samplers.PartialFixedSampler({"depth": 9}, study.sampler)
    study.optimize(bowl, n_trials=4)
    assert [trial.params["depth"] for trial in study.trials[10:]] == [9] * 4
    assert min(trial.value for trial in study.trials[10:]) < 1.1  # 1 is the best with depth 9


def test_running_trials_are_kept_away_from():
    study = in_memory(ForetuneSampler("gp", seed=0))
    study.optimize(bowl, n_trials=8)
    batch = [study.ask() for _ in range(4)]
    for trial in batch:
        bowl(trial)
    assert len({tuple(trial.params.values()) for trial in batch}) == 4


class Recorder(PartLearner, PartPrior, Surrogate):
    """A method whose surrogate writes down what it is given."""

    def __init__(self) -> None:
        self.seen: list[Observations] = []

    def method(self) -> Method:
        return Method("recorder", "", lambda: self, design=method("gp").design)  # type: ignore

    def learn(self, experience, *, seed, progress):
        return self

    def surrogate(self, target: Target) -> "Recorder":
        self.inner = method("gp").learn(None, seed=0).surrogate(target)
        return self

    def condition(self, seen: Observations, *, seed: int):
        self.seen.append(seen)
        return self.inner.condition(seen, seed=seed)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setitem(
        __import__("foretune.search.registry", fromlist=["METHODS"]).METHODS,
        "recorder",
        recorder.method(),
    )
    return recorder


def test_pruned_failed_and_infeasible_trials_are_told_as_what_they_are(recorder):
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number == 3:
            raise optuna.TrialPruned
        if trial.number == 4:
            raise ValueError("broken")
        return x

    def violation(trial: optuna.trial.FrozenTrial) -> list[float]:
        return [1.0 if trial.number == 5 else -1.0]

    study = in_memory(ForetuneSampler("recorder", seed=0, constraints_func=violation))
    study.optimize(objective, n_trials=8, catch=(ValueError,))
    losses = recorder.seen[-1].losses[:, 0]
    x = [trial.params["x"] for trial in study.trials]
    expected = [*x[:3], max(x[:3]), np.nan, np.nan, x[6]]
    np.testing.assert_allclose(losses, expected)


def test_trials_pruned_before_any_has_ended_are_not_suggested_again(recorder):
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number < 4:
            raise optuna.TrialPruned
        return x

    study = in_memory(ForetuneSampler("recorder", seed=0))
    study.optimize(objective, n_trials=4)
    assert len({trial.params["x"] for trial in study.trials}) == 4
    study.optimize(objective, n_trials=5)
    x = [trial.params["x"] for trial in study.trials]
    # As bad as the first that has ended: nothing else is known of them.
    np.testing.assert_allclose(recorder.seen[-1].losses[:, 0], [x[4]] * 5 + x[5:8])
    assert recorder.seen[-1].configs.dicts() == [{"x": x[i]} for i in (4, 0, 1, 2, 3, 5, 6, 7)]


def test_trials_of_an_ordinal_that_falls_are_learnt_from(recorder):
    falling = [64, 32, 16]

    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0.0, 1.0) + trial.suggest_categorical("batch", falling)

    space = {"x": (0.0, 1.0), "batch": {"ordinal": falling}}
    study = in_memory(ForetuneSampler("recorder", space=space, seed=0))
    study.optimize(objective, n_trials=8)
    assert recorder.seen[-1].configs.dicts() == params(study)[:-1]


def test_constraints_set_in_the_trial_count_too(recorder):
    study = in_memory(ForetuneSampler("recorder", seed=0))
    for number in range(6):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)
        study._storage.set_trial_system_attr(trial._trial_id, "constraints:size", number - 1.0)
        study.tell(trial, 1.0)
    bowl_like = study.ask()
    bowl_like.suggest_float("x", 0.0, 1.0)
    np.testing.assert_array_equal(recorder.seen[-1].losses[:, 0], [1, 1, *[np.nan] * 4])


def test_running_trials_of_other_processes_are_believed(recorder):
    storage = optuna.storages.InMemoryStorage()
    ours = in_memory(ForetuneSampler("recorder", seed=0), storage=storage, study_name="s")
    ours.optimize(bowl, n_trials=6)
    other = optuna.load_study(study_name="s", storage=storage, sampler=ForetuneSampler("random"))
    running = other.ask()
    bowl(running)
    bowl(ours.ask())
    seen = recorder.seen[-1]
    assert seen.believed.tolist() == [False] * 6 + [True]
    assert seen.configs.dicts()[-1] == pytest.approx(running.params)


def test_several_objectives():
    study = in_memory(ForetuneSampler(seed=0), directions=["minimize", "maximize"])
    study.optimize(lambda t: (bowl(t), t.params["x"]), n_trials=8)
    assert len(study.best_trials) >= 1


def test_threads_share_one_sampler():
    study = in_memory(ForetuneSampler("gp", seed=0))
    study.optimize(bowl, n_trials=12, n_jobs=3)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 12


def end_elsewhere(study: optuna.Study, when: datetime) -> None:
    """A trial of another process, whose clock says `when`."""
    distributions = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
    trial = optuna.trial.create_trial(params={"x": 0.5}, distributions=distributions, value=0.5)
    trial.datetime_start = trial.datetime_complete = when
    study.add_trial(trial)


def test_a_running_trial_keeps_its_plan_when_another_end_is_dated_back():
    sampler = ForetuneSampler("random", space={"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    study, now = in_memory(sampler), datetime.now()
    end_elsewhere(study, now)
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    [begun] = sampler._searches.values()
    planned = begun.plans[trial.number]
    end_elsewhere(study, now - timedelta(seconds=5))
    trial.suggest_float("y", 0.0, 1.0)
    assert trial.params == planned
    assert [*sampler._searches.values()] != [begun]


def test_a_study_in_the_place_of_another_has_plans_of_its_own(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    sampler = ForetuneSampler("random", seed=0)
    first = in_memory(sampler, storage=url, study_name="s")
    first.optimize(bowl, n_trials=4)
    optuna.delete_study(study_name="s", storage=url)
    second = in_memory(sampler, storage=url, study_name="s")
    assert second._study_id == first._study_id
    alone = in_memory(ForetuneSampler("random", seed=0))
    for study in (second, alone):
        study.optimize(conditional, n_trials=6)
    assert params(second) == params(alone)


def test_a_copy_in_another_process_suggests_the_same_until_it_is_reseeded():
    study = in_memory(ForetuneSampler("gp", seed=4))
    study.optimize(bowl, n_trials=7)
    copy = pickle.loads(pickle.dumps(study.sampler))
    trial = study.ask()
    frozen = study._storage.get_trial(trial._trial_id)
    space = copy.infer_relative_search_space(study, frozen)
    planned = study.sampler.sample_relative(study, frozen, space)
    assert copy.sample_relative(study, frozen, space) == planned
    copy = pickle.loads(pickle.dumps(study.sampler))
    copy.reseed_rng()
    assert copy.sample_relative(study, frozen, space) != planned


def test_a_pruner_that_filters_trials_does_not_hide_them(recorder):
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = in_memory(ForetuneSampler("recorder", seed=0), pruner=pruner)
    study.optimize(bowl, n_trials=8)
    assert len(recorder.seen[-1]) == 7


# Experience


def wells(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    return (x - 0.8) ** 2 + 1e-3 * y


def test_experience_opens_the_search_whatever_the_study_calls_better(tmp_path):
    path = tmp_path / "past.parquet"
    relatives(6, SPACE).save(path)
    for given in (relatives(6, SPACE), path, str(path)):
        study = in_memory(ForetuneSampler("ws-gp", experience=given, seed=0))
        study.optimize(wells, n_trials=2)
        assert all(abs(trial.params["x"] - 0.8) < 0.15 for trial in study.trials)


def test_a_prior_that_was_learnt_before(tmp_path):
    prior = method("ws-gp").learn(relatives(6, SPACE), seed=0)
    prior.save(tmp_path / "prior")
    found = []
    for given in (prior, tmp_path / "prior"):
        study = in_memory(ForetuneSampler("ws-gp", prior=given, space=SPACE, seed=0))
        study.optimize(wells, n_trials=3)
        found.append(params(study))
    assert found[0] == found[1]
    optimizer = Optimizer(Target(SPACE, ("loss_0",)), method("ws-gp"), prior, seed=0)
    assert found[0][0] == pytest.approx(optimizer.ask()[0].config)


def test_a_saved_prior_of_auto_says_its_own_space(tmp_path):
    learner = AutoLearner(
        # Needs seconds less than what is usual.
        taught={name: method(name).learner for name in ("adaptive-portfolio", "rgpe")},
        from_nothing={"gcp": method("gcp").learner},
        lister="adaptive-portfolio",
    )
    past = relatives(3, SPACE)
    prior = learner.learn(past, seed=0, progress=SILENT)
    prior.save(tmp_path / "prior")
    study = in_memory(ForetuneSampler("auto", prior=tmp_path / "prior", seed=0))
    study.optimize(wells, n_trials=4)
    opening = prior.opening(Target(past.space)).dicts()
    assert len(opening) == PORTFOLIO_TRIALS
    assert params(study)[:PORTFOLIO_TRIALS] == [pytest.approx(config) for config in opening]


def test_a_prior_of_auto_from_nothing_needs_a_space():
    prior = method("auto").learn(None, seed=0)
    study = in_memory(ForetuneSampler("auto", prior=prior, seed=0))
    with refuses("prior-without-space", field="space"):
        study.optimize(wells, n_trials=1)


def past_storage(url: str, studies: int = 5) -> None:
    storage = optuna.storages.RDBStorage(url)
    for number in range(studies):
        study = optuna.create_study(
            storage=storage,
            study_name=f"past-{number}",
            direction="maximize",
            sampler=optuna.samplers.RandomSampler(seed=number),
        )
        study.optimize(lambda trial: -wells(trial), n_trials=6)


def test_past_studies_of_a_storage_are_experience(tmp_path):
    url = f"sqlite:///{tmp_path / 'past.db'}"
    past_storage(url)
    elsewhere = in_memory(ForetuneSampler.from_storage(url, "zero-shot", seed=0))
    beside = in_memory(ForetuneSampler("zero-shot", seed=0), storage=url, study_name="new")
    for study in (elsewhere, beside):
        study.optimize(wells, n_trials=3)
    assert params(elsewhere) == params(beside)
    assert abs(elsewhere.trials[0].params["x"] - 0.8) < 0.25
    kept = (tmp_path / "cache").rglob("*.safetensors")
    assert sorted(path.parent.name for path in kept) == ["priors"]


def test_it_is_said_if_nothing_is_learnt_from_studies_that_were_given(tmp_path):
    url = f"sqlite:///{tmp_path / 'past.db'}"
    past_storage(url, 2)
    elsewhere = in_memory(ForetuneSampler.from_storage(url, seed=0))
    with warns("nothing-learnt"):
        elsewhere.optimize(wells, n_trials=2)
    beside = in_memory(ForetuneSampler(seed=0), storage=url, study_name="new")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ForetuneWarning)
        beside.optimize(wells, n_trials=2)


def test_without_jax_past_studies_are_learnt_from_by_other_means():
    assert usual_method(lambda package: None).name == "factors"
    assert usual_method(lambda package: package).name == "gcp-prior"


def test_a_storage_without_past_studies_is_no_obstacle(tmp_path):
    url = f"sqlite:///{tmp_path / 'fresh.db'}"
    usual = in_memory(ForetuneSampler(seed=0), storage=url)
    named = in_memory(ForetuneSampler("auto", seed=0))
    for study in (usual, named):
        study.optimize(bowl, n_trials=3)
    assert params(usual) == params(named)
    sampler = ForetuneSampler("ws-gp", experience=relatives(2, Space.of({"z": (0.0, 1.0)})))
    with refuses("no-past-study-fits", value="ws-gp"):
        in_memory(sampler).optimize(bowl, n_trials=2)


@pytest.mark.parametrize("seed", ["a", -1, 2**32, 0.5, True])
def test_a_wrong_seed_is_refused_before_any_trial(seed):
    with refuses("not-a-seed", value=seed):
        ForetuneSampler(seed=seed)


def test_a_method_that_needs_past_studies_is_refused_before_a_trial_has_run():
    ran = []
    study = in_memory(ForetuneSampler("ws-gp", seed=0))
    with refuses("no-past-studies", value="ws-gp", kind=MethodError):
        study.optimize(lambda trial: ran.append(bowl(trial)) or 0.0, n_trials=2)
    assert not ran
    with refuses("no-past-studies", value="ws-gp"):
        ForetuneSampler("ws-gp", past_studies=False)


def test_a_seed_may_be_a_number_of_numpy():
    studies = [in_memory(ForetuneSampler("gp", seed=seed)) for seed in (3, np.int64(3))]
    for study in studies:
        study.optimize(bowl, n_trials=2)
    assert params(studies[0]) == params(studies[1])


def test_mistakes_are_named(tmp_path):
    with refuses("unknown-method", value="gcpp"):
        ForetuneSampler("gcpp")
    with refuses("experience-or-prior"):
        ForetuneSampler(experience=relatives(2, SPACE), prior=method("gp").learn(None, seed=0))
    with refuses("not-an-experience", value=5):
        ForetuneSampler(experience=5)
    with refuses("not-a-prior", value=5):
        ForetuneSampler("gp", prior=5)
    with pytest.raises(ExperienceError):
        ForetuneSampler.from_storage(f"sqlite:///{tmp_path / 'absent.db'}")
    assert not (tmp_path / "absent.db").exists()
    study = in_memory(
        ForetuneSampler("ws-gp", experience=relatives(2, SPACE)), directions=["minimize"] * 2
    )
    with refuses("other-number-of-objectives", value=1):
        study.optimize(lambda trial: (wells(trial), 0.0), n_trials=1)
