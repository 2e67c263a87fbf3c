import numpy as np

from foretune.methods.past_data import PastTask
from foretune.methods.pipeline.opening import portfolio


def task(losses: list[float]) -> PastTask:
    z = np.array(losses)
    known = np.flatnonzero(~np.isnan(z))
    return PastTask(known, z[known])


def test_the_portfolio_by_hand() -> None:
    # Ranks (share of better): a is 1st, 1st, 4th; d is 2nd, 2nd, 2nd; c is 4th, 3rd, 1st.
    tasks = [task([1, 3, 4, 2]), task([10, 40, 30, 20]), task([400, 300, 100, 200])]
    # Sums of ranks: a 0 + 0 + 3, b 2 + 3 + 2, c 3 + 2 + 0, d 1 + 1 + 1. a and d tie at 3, and a
    # comes first. With a, d leaves 0 + 0 + 1 and c leaves 0: c is second, d adds nothing more.
    assert portfolio(tasks, k=3).tolist() == [0, 2, 3]


def test_only_pipelines_that_some_task_knows_are_chosen() -> None:
    nan = float("nan")
    tasks = [task([nan, 1, 2, nan]), task([nan, nan, 1, nan])]
    assert sorted(portfolio(tasks, 4).tolist()) == [1, 2]


def test_the_best_of_repeated_evaluations_counts() -> None:
    repeated = PastTask(np.array([0, 1, 0]), np.array([3.0, 2.0, 1.0]))
    assert portfolio([repeated], k=1).tolist() == [0]
