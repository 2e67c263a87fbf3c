"""Anytime HyperBand by hand: which candidate goes where, and who decides."""

import numpy as np
import pytest

from foretune.methods.zero_shot.builder import spend_budget
from foretune.methods.zero_shot.jobs import RecordedJobs
from foretune.methods.zero_shot.mf import HyperBand, location_in_turn, rung_sizes, starting_rungs
from foretune.numerics.greedy import mean
from tests.methods.zero_shot.examples import bowls, candidates, jobs_of


def band_of(losses: np.ndarray, k: int, *, seed: int = 0) -> HyperBand:
    """One that tries the candidates one after the other, the tasks in their order."""
    jobs = jobs_of(losses, candidates(losses.shape[1]))
    band = HyperBand(jobs, k, mean, seed=seed)
    band.order = np.arange(len(losses))
    rungs = starting_rungs(band.sizes, losses.shape[1])
    band.newcomers = dict(enumerate(rungs))
    return band


def run_one(band: HyperBand) -> tuple[int, int]:
    job = band.next_job()
    assert job is not None
    band.jobs.run(np.array([job.task]), np.array([job.candidate]))
    return job.task, job.candidate


def test_rungs() -> None:
    assert rung_sizes(1) == [1]
    assert rung_sizes(2) == [1, 2]
    # A power counts where it is at least sqrt(3) = 1.73 times smaller: 5 / 3 is too near.
    assert rung_sizes(5) == [1, 5]
    assert rung_sizes(6) == [1, 3, 6]
    assert rung_sizes(27) == [1, 3, 9, 27]
    assert rung_sizes(100) == [1, 3, 9, 27, 100]
    assert rung_sizes(200) == [1, 3, 9, 27, 81, 200]
    assert rung_sizes(16, eta=4) == [1, 4, 16]


def test_a_run_by_hand() -> None:
    """Nine tasks, rungs of 1, 3 and 9; candidate n loses n / 20 everywhere.

    0, 1 and 2 start below. Now that the lowest rung has spent 3, rung 1 may start a newcomer: 3.
    Then 0, the best of three, goes on.
    """
    band = band_of(np.tile(np.arange(20) / 20, (9, 1)), k=1)
    assert list(band.newcomers.values())[:9] == [0, 0, 0, 1, 0, 0, 0, 1, 0]
    ran = [run_one(band) for _ in range(8)]
    assert ran == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (1, 0), (2, 0)]
    assert band.climb.members == [[0, 1, 2], [3], []]
    assert [run_one(band) for _ in range(3)] == [(0, 4), (0, 5), (0, 6)]
    # Six below, and one of them was promoted: rung 1 has spent 3 of 6, so it starts 7 first.
    assert [run_one(band)[1] for _ in range(3)] == [7, 7, 7]
    band.climb.look()
    # Three are on rung 1, and 0 is the best of them.
    assert band.climb.members == [[0, 1, 2, 4, 5, 6], [3, 0, 7], []]
    assert [run_one(band) for _ in range(6)] == [(task, 0) for task in range(3, 9)]
    assert band.picks().chosen.tolist() == [0]


@pytest.mark.parametrize("tasks", [27, 75])
def test_every_rung_spends_as_much_on_those_that_start_there(tasks: int) -> None:
    """The paper demands it. The largest rung lags behind by at most one of its newcomers."""
    configs = candidates(1200)
    jobs = jobs_of(bowls(configs, tasks=tasks), configs, budget=3000)
    band = HyperBand(jobs, 5, mean, seed=1)
    spend_budget(band, jobs)
    spent = np.array(band.sizes) * band.climb._started
    assert jobs.used == 3000
    assert (spent[0] - spent < np.array(band.sizes)).all()
    assert (spent <= spent[0]).all()
    for rung in range(len(band.sizes) - 1):
        promoted = len(band.climb.members[rung]) - len(band.climb.waiting(rung))
        assert promoted <= len(band.climb.members[rung]) / 3


def test_candidates_are_run_on_the_first_tasks_of_one_random_order() -> None:
    configs = candidates(60)
    orders = []
    for seed in range(3):
        jobs = jobs_of(bowls(configs, tasks=27), configs, budget=150)
        band = HyperBand(jobs, 2, mean, seed=seed)
        spend_budget(band, jobs)
        ran = jobs.ran[band.order]
        assert (np.diff(ran.astype(int), axis=0) <= 0).all()
        orders.append(tuple(band.order))
    assert len(set(orders)) == 3
    assert tuple(range(27)) not in orders


def test_once_all_were_tried_those_that_were_passed_over_go_on() -> None:
    """Two candidates never make a third of a rung; the better one comes first, then the other."""
    band = band_of(np.array([[0.5, 0.1]] * 9), k=1)
    ran = []
    while band.next_job() is not None:
        ran.append(run_one(band)[1])
    assert ran == [0, 1, *[1] * 8, *[0] * 8]


@pytest.mark.parametrize(
    ("locations", "turns"),
    [(1, [0, 0, 0, 0]), (2, [0, 1, 0, 0, 1]), (3, [0, 1, 2, 0, 0, 1, 0, 2, 0, 1])],
)
def test_locations_take_turns_as_1_to_a_half_to_a_third(locations: int, turns: list[int]) -> None:
    assert [location_in_turn(turn, locations) for turn in range(len(turns))] == turns
    many = np.bincount([location_in_turn(turn, locations) for turn in range(110)])
    shares = 1 / np.arange(1, locations + 1)
    np.testing.assert_allclose(many / 110, shares / shares.sum(), atol=0.02)


def test_a_location_promotes_what_complements_the_picks_before_it() -> None:
    """Algorithm 2 by hand, rungs of 1 and of 3 tasks; 0, 1 and 2 were tried on all of them."""
    losses = np.array(
        [[0.1, 0.6, 0.5, 0.2, 0.4], [0.9, 0.2, 0.8, 0.9, 0.9], [0.1, 0.9, 0.2, 0.9, 0.9]]
    )
    band = band_of(losses, k=3)
    band.jobs.run(np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3))
    band.climb.members[-1] = [0, 1, 2]
    np.testing.assert_allclose(band._best_before(0), [0.6, 0.9, 0.9])  # the worst seen
    np.testing.assert_allclose(band._best_before(1), losses[:, 0])
    np.testing.assert_allclose(band._best_before(2), [0.1, 0.2, 0.1])
    # Alone 3 is better on the first task; beside 0 neither of them helps, and the first goes on.
    band.jobs.run(np.zeros(2, dtype=int), np.array([3, 4]))
    assert band._best_of([4, 3], 0, band._best_before(0)) == 3
    assert band._best_of([4, 3], 0, band._best_before(1)) == 4


def test_a_portfolio_is_chosen_where_there_is_a_choice() -> None:
    """One got to the top and two stayed below; for a portfolio of one, eta are a choice."""
    losses = np.array([[0.5, 0.1, 0.3], [0.5, 0.1, 0.3], [0.5, 0.1, 0.3]])
    band = band_of(losses, k=1)
    band.jobs.run(np.array([0, 1, 2, 0, 0]), np.array([0, 0, 0, 1, 2]))
    assert band.picks().chosen.tolist() == [1]
    whole = band_of(losses, k=1)
    whole.jobs.run(*map(np.ravel, np.indices((3, 3))))
    picks = whole.picks()
    assert picks.chosen.tolist() == [1]
    np.testing.assert_allclose(picks.losses, [0.1])


def test_a_tried_candidate_is_not_started_again_after_a_kill() -> None:
    """A band that finds the jobs of another one goes on exactly where that one was."""
    configs = candidates(80)
    losses = bowls(configs, tasks=9)

    def begin(jobs: RecordedJobs) -> HyperBand:
        return HyperBand(jobs, 3, mean, seed=4)

    alone = jobs_of(losses, configs)
    band = begin(alone)
    for _ in range(120):
        run_one(band)
    killed = jobs_of(losses, configs)
    first = begin(killed)
    for count in range(120):
        if count % 7 == 0:
            first = begin(killed)
        run_one(first)
    # Goals of candidates on their way are found again, so at most the order of jobs differs.
    assert killed.used == alone.used == 120
    assert (np.diff(killed.ran[first.order].astype(int), axis=0) <= 0).all()
    np.testing.assert_array_equal(first.climb._started, begin_again(begin(killed)).climb._started)


def begin_again(band: HyperBand) -> HyperBand:
    band.climb.look()
    return band


def test_many_workers_are_always_busy() -> None:
    """Nobody waits for others: each of 8 workers gets a job of its own at any time."""
    configs = candidates(300)
    losses = bowls(configs, tasks=20)
    jobs = jobs_of(losses, configs, budget=400)
    band = HyperBand(jobs, 3, mean, seed=0)
    running: list[tuple[int, int]] = []
    rng = np.random.default_rng(0)
    while jobs.remaining:
        while len(running) < 8 and jobs.remaining:
            job = band.next_job()
            assert job is not None
            jobs.begin(*job)
            running.append(tuple(job))
        assert len(set(running)) == len(running)
        task, candidate = running.pop(int(rng.integers(len(running))))
        jobs.finish(np.array([task]), np.array([candidate]), losses[[task], [candidate]])
    assert jobs.used + len(running) == 400


def test_the_second_promotion_of_a_rung_is_decided_by_the_second_location() -> None:
    """Rungs of 1 and 3 tasks; 0 was tried on all. Alone 1 is better, beside 0 it is 2."""
    losses = np.array([[0.2, 0.3, 0.1, 0.9], [0.9, 0.9, 0.9, 0.9], [0.9, 0.9, 0.9, 0.9]])
    band = band_of(losses, k=2)
    band.climb.members = [[0, 1, 2, 3], [0]]
    band.climb.heights = {0: 1, 1: 0, 2: 0, 3: 0}
    band.jobs.run(np.array([0, 0, 0, 0, 1, 2]), np.array([0, 1, 2, 3, 0, 0]))
    asked = []
    band._best_before = lambda location: asked.append(location) or band._worst()  # type: ignore[method-assign]
    assert band._promote(0)
    # One of the rung was promoted before, and two locations are explored: the second decides.
    assert asked == [1]
