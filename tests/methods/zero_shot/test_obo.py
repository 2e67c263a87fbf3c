import numpy as np
import pytest

from foretune.methods.zero_shot.builder import spend_budget
from foretune.methods.zero_shot.obo import (
    CandidateSearch,
    LossBelief,
    OfflineBayes,
    pick_expected,
    scored_candidates,
)
from foretune.numerics.forests import grow_trees
from foretune.numerics.greedy import find_aggregate, greedy, mean
from tests.methods.zero_shot.examples import bowls, built, candidates, jobs_of

NAN = np.nan


def nothing_known() -> LossBelief:
    """Two trees that predict 1, 2, 3 on three tasks, for two candidates."""
    samples = np.tile(np.array([1.0, 2.0, 3.0], np.float32)[None, :, None], (2, 1, 2))
    samples[1] += 0.5
    known = np.full((3, 2), NAN)
    return LossBelief(np.arange(3), np.arange(2), known, samples, samples[0].copy())


def test_a_loss_moves_what_is_expected_of_its_candidate_alone() -> None:
    """A miss of 4 beside three predictions that count as right: the others rise by 1."""
    belief = nothing_known()
    belief.learn(0, 1, 5.0)
    np.testing.assert_allclose(belief.samples[:, :, 1], [[5.0, 3.0, 4.0], [5.0, 3.5, 4.5]])
    np.testing.assert_allclose(belief.samples[:, :, 0], [[1.0, 2.0, 3.0], [1.5, 2.5, 3.5]])


def test_misses_are_averaged_and_not_added_up() -> None:
    """Misses of 4 and of -2: the mean of them and three of 0 is 0.4."""
    belief = nothing_known()
    belief.learn(0, 1, 5.0)
    belief.learn(1, 1, 0.0)
    np.testing.assert_allclose(belief.samples[:, :, 1], [[5.0, 0.0, 3.4], [5.0, 0.0, 3.9]])


def test_a_belief_keeps_what_is_known_and_predicts_the_rest() -> None:
    configs = candidates(20)
    losses = bowls(configs, tasks=6)
    jobs = jobs_of(losses, configs)
    jobs.run(np.repeat(np.arange(6), 10), np.tile(np.arange(10), 6))
    belief = LossBelief.of(jobs, np.array([4, 1]), np.array([2, 15, 7]), seed=0)
    np.testing.assert_allclose(belief.known[:, [0, 2]], losses[np.ix_([4, 1], [2, 7])], rtol=1e-6)
    assert np.isnan(belief.known[:, 1]).all()
    for tree in belief.samples:
        np.testing.assert_allclose(tree[:, [0, 2]], belief.known[:, [0, 2]], rtol=1e-6)
    np.testing.assert_allclose(belief.samples[:, :, 1].mean(axis=0), belief.predicted[:, 1])


def search_on(belief: LossBelief, losses: np.ndarray, k: int) -> CandidateSearch:
    jobs = jobs_of(losses, candidates(losses.shape[1]))
    jobs.run(*np.nonzero(~np.isnan(belief.known)))
    return CandidateSearch(jobs, belief, k)


def test_missing_jobs_count_as_worst_in_a_portfolio() -> None:
    known = np.array([[0.2, 0.9, NAN], [0.8, NAN, NAN], [0.5, 0.1, NAN]])
    samples = np.zeros((2, 3, 3), np.float32)
    belief = LossBelief(np.arange(3), np.arange(3), known, samples, samples[0])
    search = search_on(belief, np.nan_to_num(known), k=3)
    # The first candidate sums to 1.5, the second to 1.9; together they reach 0.2, 0.8, 0.1.
    np.testing.assert_allclose(
        search.ceilings, [[0.9, 0.9, 0.9], [0.2, 0.8, 0.5], [0.2, 0.8, 0.1], [0.2, 0.8, 0.1]]
    )


def test_a_job_that_cannot_be_run_counts_as_what_is_expected_of_it() -> None:
    known = np.array([[0.2, 0.9], [NAN, 0.8]])
    samples = np.zeros((2, 2, 2), np.float32)
    samples[:, 1, 0] = [0.3, 0.5]
    belief = LossBelief(np.arange(2), np.arange(2), known, samples, samples[0])
    jobs = jobs_of(np.nan_to_num(known), candidates(2))
    jobs.possible[1, 0] = False
    jobs.run(*np.nonzero(~np.isnan(known)))
    np.testing.assert_allclose(CandidateSearch(jobs, belief, 1).ceilings, [[0.9, 0.9], [0.2, 0.4]])


def test_the_next_task_is_where_the_candidate_should_help_most() -> None:
    known = np.array([[0.5, NAN], [0.5, NAN], [0.5, NAN]])
    samples = np.zeros((2, 3, 2), np.float32)
    # By one tree worse than what is reached, by the other better: only that counts.
    samples[:, :, 1] = [[0.45, 0.9, 0.4], [0.45, 0.1, 0.4]]
    samples[:, :, 0] = 0.5
    belief = LossBelief(np.arange(3), np.arange(2), known, samples, samples[0])
    search = search_on(belief, np.full((3, 2), 0.5), k=2)
    assert search._best_task(1, 1) == 1
    search.open[1, 1] = False
    assert search._best_task(1, 1) == 2


def test_the_sums_of_all_candidates_follow_what_is_reached() -> None:
    """After a job that changes the portfolio, they are what one would get from scratch."""
    losses = np.array([[0.5, 0.1, 0.8], [0.5, 0.95, 0.2]])
    known = np.array([[0.5, NAN, NAN], [0.5, NAN, NAN]])
    samples = np.array([[[0.5, 0.2, 0.7], [0.5, 0.6, 0.4]]] * 2, np.float32)
    samples[1] += 0.1
    belief = LossBelief(np.arange(2), np.arange(3), known, samples, samples.mean(axis=0))
    search = search_on(belief, losses, k=2)
    for job in ((0, 1), (1, 2), (1, 1)):
        search.jobs.run(*np.array([job]).T)
        search.take_in(*job)
        after = np.minimum(belief.samples[:, None], search.ceilings[None, :-1, :, None])
        np.testing.assert_allclose(search.sums, after.sum(axis=2), rtol=1e-6)
        np.testing.assert_allclose(
            search.ceilings, CandidateSearch(search.jobs, belief, 2).ceilings
        )
    # The worst of all is now 0.95; 0 comes first (1.0 in all) and 1 helps it most (0.6).
    expected = [[0.95, 0.95], [0.5, 0.5], [0.1, 0.5]]
    np.testing.assert_allclose(search.ceilings, expected, rtol=1e-6)


def test_picks_go_by_the_mean_of_all_samples_and_by_the_aggregate() -> None:
    """One of three tasks is very bad for 4, which is best by the median and worst by the mean."""
    means = np.array([[0.2, 0.4, 0.3], [0.2, 0.3, 0.3], [2.0, 0.2, 0.3]])
    apart = np.array([[-0.2, 0.2, 0.1]] * 3)
    samples = np.stack([means + apart, means - apart]).astype(np.float32)
    belief = LossBelief(
        np.arange(3), np.array([4, 7, 2]), np.full((3, 3), NAN), samples, samples[0]
    )
    for name, chosen, loss in (("mean", 7, 0.3), ("median", 4, 0.2)):
        picks = pick_expected(belief, 1, find_aggregate(name))
        assert picks.chosen.tolist() == [chosen]
        assert picks.losses == pytest.approx([loss])
    assert pick_expected(belief, 3, mean).chosen.tolist() == [7, 4, 2]


def test_no_step_is_left_after_every_job() -> None:
    known = np.array([[0.2, 0.9], [0.8, 0.4]])
    samples = np.tile(known.astype(np.float32), (2, 1, 1))
    search = search_on(
        LossBelief(np.arange(2), np.arange(2), known, samples, samples[0]), known, k=1
    )
    assert search.best_job() is None
    assert search.jobs.used == 4


def test_every_task_begins_with_a_job_that_is_possible() -> None:
    configs = candidates(10)
    jobs = jobs_of(bowls(configs, tasks=5), configs, budget=4)
    jobs.possible[:, 3:] = False
    chooser = OfflineBayes(jobs, 2, mean, seed=0)
    chooser.tasks = np.array([2, 0, 1, 4, 3])
    jobs.run(np.array([2]), np.array([0]))
    for _ in range(3):
        jobs.run(*np.array([chooser._first_job()]).T)
    assert jobs.ran.sum(axis=1).tolist() == [1, 1, 1, 0, 1]
    assert not jobs.ran[:, 3:].any()


def test_a_large_pool_holds_what_was_begun_and_as_many_others_as_fit() -> None:
    configs = candidates(50)
    jobs = jobs_of(bowls(configs, tasks=3), configs)
    begun = np.array([41, 7, 30])
    jobs.run(np.array([0, 1, 1]), begun)
    pool = scored_candidates(jobs, np.arange(3), np.random.default_rng(0), most=20)
    assert len(pool) == len(set(pool.tolist())) == 20
    assert pool[:3].tolist() == [7, 30, 41]
    jobs.run(np.zeros(30, dtype=int), np.arange(30))
    assert len(scored_candidates(jobs, np.arange(3), np.random.default_rng(0), most=20)) == 32 + 10
    assert scored_candidates(jobs, np.array([2]), np.random.default_rng(0), most=20).max() < 50


def test_every_forest_is_grown_by_chance_of_its_own() -> None:
    seeds = []

    def record_seed(*args, seed: int, **options):
        seeds.append(seed)
        return grow_trees(*args, seed=seed, **options)

    configs = candidates(6)
    for seed in (0, 1):
        jobs = jobs_of(bowls(configs, tasks=3), configs, budget=8)
        chooser = OfflineBayes(jobs, 2, mean, seed=seed)
        chooser.grow = record_seed
        spend_budget(chooser, jobs)
    assert len(set(seeds)) == len(seeds) > 4


def test_with_every_job_run_the_portfolio_is_the_greedy_one() -> None:
    configs = candidates(6)
    losses = bowls(configs, tasks=4).astype(np.float32)
    jobs = jobs_of(losses, configs)
    picks = built("obo", jobs, 2)
    best = greedy(losses, 2)
    assert jobs.remaining == 0
    assert picks.chosen.tolist() == best.chosen.tolist()
    np.testing.assert_allclose(picks.losses, best.losses, rtol=1e-5)


def test_a_job_that_runs_counts_as_expected_and_need_not_be_paid_again() -> None:
    known = np.array([[0.5, NAN], [0.5, NAN]])
    samples = np.zeros((2, 2, 2), np.float32)
    samples[:, :, 0], samples[:, :, 1] = 0.5, 0.2
    belief = LossBelief(np.arange(2), np.arange(2), known, samples, samples[0])
    search = search_on(belief, np.full((2, 2), 0.5), k=1)
    np.testing.assert_allclose(search.ceilings[1], [0.5, 0.5])
    search.jobs.begin(0, 1)
    search.note_pending()
    assert search.open[:, 1].tolist() == [False, True]
    # One task as expected and one as the worst: the sum is 0.7, less than the 1.0 of the other.
    np.testing.assert_allclose(search.ceilings[1], [0.2, 0.5])
    assert search.best_job() == (1, 1)
    search.jobs.withdraw(0, 1)
    search.note_pending()
    np.testing.assert_allclose(search.ceilings[1], [0.5, 0.5])


def test_workers_of_obo_get_different_jobs() -> None:
    configs = candidates(20)
    losses = bowls(configs, tasks=6)
    jobs = jobs_of(losses, configs)
    chooser = OfflineBayes(jobs, 2, mean, seed=0)
    for _ in range(10):
        jobs.run(*np.array([chooser.next_job()]).T)
    asked = []
    for _ in range(12):
        job = chooser.next_job()
        assert job is not None
        jobs.begin(*job)
        asked.append(job)
    assert len(set(asked)) == 12
