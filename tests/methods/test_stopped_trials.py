"""Learners of final values leave out trials that were stopped: their values are of early steps."""

from dataclasses import replace

import numpy as np

from foretune.experience import Evaluation, Experience, Metric, Status
from foretune.experience.curves import Curve
from foretune.methods.auto.learn import cheapest_first
from foretune.methods.past_data import past_tasks, successes
from foretune.search import Optimizer
from foretune.space import Space

SPACE = Space.of({"x": (0.0, 1.0)})


def past() -> Experience:
    """Three tasks, best near x = 0.75; at x = 0 all were stopped when they looked perfect."""
    space, metrics = SPACE, [Metric("loss")]
    grid = np.linspace(0.0, 1.0, 9)
    first = Experience.build(
        space, metrics, ["t0"], [0], space.encode([{"x": 0.75}]), [0], [0.0], seconds=[9.0]
    )
    rows = [
        Evaluation(f"t{task}", {"x": x}, {"loss": (x - 0.75) ** 2}, seconds=10 * x + 1)
        for task in range(3)
        for x in grid[1:].tolist()
        if (task, x) != (0, 0.75)
    ]
    stopped = [
        Evaluation(
            f"t{task}",
            {"x": x},
            {"loss": -5.0},
            Status.STOPPED,
            seconds=0.5,
            curve=Curve([1], {"loss": [-5.0]}),
        )
        for task in range(3)
        for x in (0.0, 1.0)
    ]
    return first.append(rows + stopped)


def without_stopped(experience: Experience) -> Experience:
    """The same evaluations of all other trials, in the same table of configurations."""
    kept = np.flatnonzero(experience.status != Status.STOPPED)
    columns = ("task_index", "config_index", "values", "status", "seconds")
    return replace(
        experience, curves=None, **{name: getattr(experience, name)[kept] for name in columns}
    )


def test_past_tasks_have_no_stopped_trials():
    experience = past()
    tasks = past_tasks(experience, lambda losses: losses)
    at_zero = [row for row, config in enumerate(experience.configs.dicts()) if config["x"] == 0.0]
    for task, (rows, losses) in zip(tasks, successes(experience), strict=True):
        assert not set(at_zero) & set(rows.tolist())
        assert losses.min() == 0.0
        assert experience.configs.dicts()[task.best] == {"x": 0.75}


def test_a_portfolio_is_the_same_with_and_without_stopped_trials():
    experience = past()
    first, second = (
        [s.config for s in Optimizer.of(SPACE, each, method="zero-shot", seed=0).ask(3)]
        for each in (experience, without_stopped(experience))
    )
    assert first == second
    assert first[0] == {"x": 0.75}
    assert {"x": 0.0} not in first


def test_the_cost_of_a_configuration_is_that_of_whole_trials():
    """At x = 1 whole trials took 11 seconds, and stopped ones half a second."""
    experience = past()
    first = experience.space.encode([{"x": 1.0}, {"x": 0.75}, {"x": 0.5}])
    order = cheapest_first(first, experience).dicts()
    assert order == [{"x": 0.5}, {"x": 0.75}, {"x": 1.0}]
