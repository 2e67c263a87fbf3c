from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from foretune.errors import MethodError, UsageError
from foretune.experience import Status
from foretune.methods.zero_shot.build import BUILDERS, Recipe
from foretune.methods.zero_shot.builder import Caps, spend_budget
from foretune.methods.zero_shot.jobs import look_up_jobs
from foretune.methods.zero_shot.obo import CandidateSearch, LossBelief, task_features
from foretune.methods.zero_shot.panel import panel_of
from foretune.methods.zero_shot.surrogate import SurrogateBuilder, complete_losses, random_forest
from foretune.methods.zero_shot.table import loss_table
from foretune.numerics.greedy import find_aggregate, greedy, mean, meta_loss
from foretune.numerics.normalise import NORMALISATIONS
from tests.methods.zero_shot.examples import (
    bowls,
    built,
    candidates,
    experience_of,
    jobs_of,
    unshared_experience,
)
from tests.refusals import refuses

NAN = np.nan


@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_finds_complementary_configurations(name):
    configs = candidates(40)
    losses = bowls(configs, tasks=12)
    jobs = jobs_of(losses, configs, budget=150)
    picks = built(name, jobs, 3, seed=0)
    assert jobs.used <= 150
    assert len(set(picks.chosen.tolist())) == 3
    assert (np.diff(picks.losses) <= 0.0).all()
    drawn = np.random.default_rng(0).permutation(len(configs))
    random_losses = [meta_loss(losses, drawn[i : i + 3]) for i in range(0, len(configs) - 2, 3)]
    assert meta_loss(losses, picks.chosen) < np.median(random_losses)


@pytest.mark.parametrize("name", ["obo", "mf"])
def test_adaptive_builders_beat_naive_at_equal_budget(name):
    configs = candidates(40)
    found = {}
    for builder in ("naive", name):
        runs = []
        for seed in range(2):
            losses = bowls(configs, tasks=16, seed=seed)
            jobs = jobs_of(losses, configs, budget=120)
            runs.append(meta_loss(losses, built(builder, jobs, 3, seed=seed).chosen))
        found[builder] = np.mean(runs)
    assert found[name] < found["naive"]


@pytest.mark.parametrize("name", BUILDERS)
def test_builders_survive_failed_jobs_and_other_aggregates(name):
    configs = candidates(30)
    losses = bowls(configs, tasks=10)
    losses[::3, ::4] = NAN
    losses[5] = NAN
    picks = built(name, jobs_of(losses, configs, budget=120), 2, find_aggregate("p90"), seed=1)
    assert len(picks.chosen) == 2
    assert np.isfinite(picks.losses).all()


@pytest.mark.parametrize("name", BUILDERS)
def test_the_seed_decides(name):
    configs = candidates(20)
    losses = bowls(configs, tasks=6)
    first, second = (built(name, jobs_of(losses, configs, budget=30), 3, seed=7) for _ in range(2))
    assert first.chosen.tolist() == second.chosen.tolist()


@pytest.mark.parametrize("name", ["naive", "mf"])
def test_without_a_model_tasks_must_share_configurations(name):
    jobs = look_up_jobs(loss_table(unshared_experience()))
    with refuses("no-common-configs", field="builder", value=name, kind=MethodError):
        built(name, jobs, 2, seed=0)


@pytest.mark.parametrize("name", ["naive", "mf"])
def test_without_a_model_two_tasks_must_share_configurations_too(name):
    jobs = look_up_jobs(loss_table(unshared_experience(tasks=2, each=5)))
    with refuses("no-common-configs", field="builder", value=name, kind=MethodError):
        built(name, jobs, 2, seed=0)


@pytest.mark.parametrize(
    ("wish", "rule"),
    [
        ({"builder": "best"}, "unknown-builder"),
        ({"normalisation": "zscore"}, "unknown-normalisation"),
    ],
)
def test_a_recipe_names_what_there_is(wish, rule):
    [(field, value)] = wish.items()
    with refuses(rule, field=field, value=value, kind=UsageError):
        Recipe(**wish)


@pytest.mark.parametrize("name", ["surrogate", "obo"])
def test_with_a_model_they_need_not(name):
    jobs = look_up_jobs(loss_table(unshared_experience()))
    picks = built(name, jobs, 2, seed=0)
    chosen = jobs.candidates.take(picks.chosen)
    assert sorted(config["kind"] for config in chosen.dicts()) == ["left", "right"]


def test_naive_without_a_budget_is_greedy_on_the_whole_table():
    configs = candidates()
    losses = bowls(configs).astype(np.float32)
    jobs = jobs_of(losses, configs)
    picks = built("naive", jobs, 4, seed=0)
    assert picks.chosen.tolist() == greedy(losses, 4).chosen.tolist()
    assert jobs.used == losses.size


def test_naive_evaluates_as_many_as_the_budget_affords():
    configs = candidates()
    jobs = jobs_of(bowls(configs), configs, budget=125)
    built("naive", jobs, 3, seed=0)
    assert jobs.ran.any(axis=0).sum() == 4
    with refuses("budget-of-builder", value=125, kind=UsageError):
        built("naive", jobs_of(bowls(configs), configs, budget=125), 5, seed=0)
    few = candidates(3)
    with refuses("budget-of-builder", value=60, kind=UsageError):
        built("naive", jobs_of(bowls(few), few, budget=60), 5, seed=0)


def test_naive_tries_candidates_at_random():
    configs = candidates()
    tried = []
    for seed in range(3):
        jobs = jobs_of(bowls(configs), configs, budget=120)
        built("naive", jobs, 3, seed=seed)
        tried.append(tuple(np.flatnonzero(jobs.ran.any(axis=0))))
    assert len(set(tried)) == 3


@pytest.mark.parametrize(
    ("tasks", "candidate_count", "budget", "size"),
    [(500, 300, 3000, 75), (60, 300, 3000, 60), (500, 300, 100, 20), (500, 10, 3000, 300)],
)
def test_a_panel_affords_forty_full_trials(tasks, candidate_count, budget, size):
    configs = candidates(candidate_count)
    jobs = jobs_of(np.zeros((tasks, candidate_count)), configs, budget=budget)
    panel = panel_of(jobs, np.random.default_rng(0))
    assert len(panel) == len(set(panel.tolist())) == size


@pytest.mark.parametrize(("budget", "size"), [(None, 50), (150, 30), (151, 31), (60, 20)])
def test_a_panel_holds_as_many_jobs_as_the_budget_also_where_tasks_have_few(budget, size):
    jobs = look_up_jobs(loss_table(unshared_experience(tasks=50, each=5)), budget)
    panel = panel_of(jobs, np.random.default_rng(0))
    assert len(panel) == size
    assert jobs.possible[panel].sum() >= jobs.budget


def test_without_a_budget_obo_uses_every_evaluation_also_where_nothing_is_shared():
    jobs = look_up_jobs(loss_table(unshared_experience(tasks=24, each=3)))
    built("obo", jobs, 2, seed=0)
    assert jobs.used == 24 * 3


def test_surrogate_learns_from_random_candidates_of_each_task():
    """4 tasks share 42 jobs."""
    noted = []

    def zeros(known, losses, others, seed):
        noted.append(len(known))
        return np.zeros(len(others))

    configs = candidates(20)
    jobs = jobs_of(bowls(configs, tasks=4), configs, budget=42)
    chooser = SurrogateBuilder(jobs, 2, mean, seed=0)
    chooser.regression = zeros
    spend_budget(chooser, jobs)
    assert sorted(noted) == [10, 10, 11, 11]
    assert len(np.unique(jobs.ran, axis=0)) == 4


def test_the_forest_of_surrogate_is_scikit_learns_with_its_defaults():
    """Section 7."""
    rng = np.random.default_rng(0)
    known, others = rng.random((30, 3), np.float32), rng.random((9, 3), np.float32)
    losses = rng.random(30)
    expected = RandomForestRegressor(random_state=5).fit(known, losses).predict(others)
    np.testing.assert_allclose(random_forest(known, losses, others, 5), expected)


def test_the_surrogate_builder_chooses_among_the_best_of_each_task():
    table = loss_table(unshared_experience(tasks=3, each=6))
    jobs = look_up_jobs(table)
    chooser = SurrogateBuilder(jobs, 9, mean, seed=0, caps=Caps(best_predicted=2))
    picks = spend_budget(chooser, jobs)
    best = np.argsort(table.losses, axis=1)[:, :2]
    assert sorted(picks.chosen.tolist()) == sorted(best.ravel().tolist())


def test_forests_predict_only_what_was_not_evaluated():
    configs = candidates(30)
    losses = bowls(configs, tasks=3)
    jobs = jobs_of(losses, configs)
    evaluated = np.arange(0, 30, 3)
    jobs.run(np.repeat([0, 1], 10), np.tile(evaluated, 2))
    table = complete_losses(jobs, np.arange(30), np.random.default_rng(0))
    np.testing.assert_array_equal(table[:2, evaluated], losses[:2, evaluated].astype(np.float32))
    rest = np.setdiff1d(np.arange(30), evaluated)
    assert (table[:2, rest] != losses[:2, rest].astype(np.float32)).all()
    assert np.corrcoef(table[0, rest], losses[0, rest])[0, 1] > 0.8
    assert np.isnan(table[2]).all()


def test_task_features_are_what_a_task_adds_to_its_candidates():
    known = np.array([[0.2, 0.6, NAN], [0.4, 0.8, NAN], [NAN, NAN, NAN]])
    # Means of candidates, with one loss of the overall mean 0.5 added: 1.1 / 3 and 1.9 / 3.
    expected = [(0.8 - 3.0 / 3) / 3, (1.2 - 3.0 / 3) / 3, 0.0]
    np.testing.assert_allclose(task_features(known)[:, 0], expected)


def expected_improvements(search: CandidateSearch) -> np.ndarray:
    """The acquisition function of section 4, written out: (k, N)."""
    belief, trees = search.belief, search.belief.samples.astype(float)
    gains = np.zeros((search.k, trees.shape[2]))
    for location in range(search.k):
        for candidate in range(trees.shape[2]):
            with_it = np.minimum(trees[:, :, candidate], search.ceilings[location])
            total = (search.ceilings[location + 1] - with_it).sum(axis=1)
            gains[location, candidate] = np.maximum(total, 0.0).mean()
    return gains / np.isnan(belief.known).sum(axis=0)


def test_improvements_are_kept_up_to_date():
    configs = candidates(15)
    losses = bowls(configs, tasks=8)
    jobs = jobs_of(losses, configs)
    tasks, pool = np.arange(8), np.arange(len(configs))
    jobs.run(tasks, tasks)
    search = CandidateSearch(jobs, LossBelief.of(jobs, tasks, pool, seed=0), 3)
    for _ in range(25):
        expected = expected_improvements(search)
        best = np.unravel_index(np.argmax(expected), expected.shape)[1]
        job = search.best_job()
        jobs.run(np.array([job.task]), np.array([job.candidate]))
        search.take_in(*job)
        assert expected[:, job.candidate].max() == pytest.approx(expected[:, best].max(), rel=1e-4)
    known = ~np.isnan(search.belief.known)
    np.testing.assert_allclose(
        search.belief.samples[:, known],
        np.broadcast_to(losses[known], (20, known.sum())),
        rtol=1e-6,
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["accuracy", "error"])
def test_a_table_without_any_success_is_refused(name):
    whole = experience_of(bowls(candidates(5), tasks=2), candidates(5), name=name)
    failed = replace(whole, status=np.full(len(whole.status), Status.FAILED, dtype=np.int8))
    with refuses("no-success", value=2, kind=MethodError):
        loss_table(failed)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_tasks_without_common_configurations_are_normalised_alone(normalisation):
    experience = unshared_experience(tasks=3, each=10)
    table = loss_table(experience, normalisation)
    for row, name in zip(table.losses, table.tasks, strict=True):
        records = experience.task(name)
        expected = np.full(len(experience.configs), np.nan)
        expected[records.config_index] = records.losses[:, 0]
        np.testing.assert_allclose(row, NORMALISATIONS[normalisation](expected), 1e-6)
