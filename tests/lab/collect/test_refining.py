"""Configurations that past results speak for."""

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, Float

from foretune.experience import Experience, Metric
from foretune.space import Space
from foretune_lab.collect.refinement import propose_refinements

OPTIMA = {"left": 0.2, "right": 0.7}
POINTS = 32


@pytest.fixture(scope="module")
def bowls():
    """Two tasks with known optima, each tried at the same points."""
    space = Space.of(ConfigurationSpace({"a": Float("a", (0.0, 1.0)), "b": Float("b", (0.0, 1.0))}))
    configs = space.sample(POINTS, seed=0, how="sobol")
    values = [np.sum(np.square(configs.x - best), axis=1) for best in OPTIMA.values()]
    return Experience.build(
        space,
        [Metric("error")],
        list(OPTIMA),
        np.repeat([0, 1], POINTS),
        configs,
        np.tile(np.arange(POINTS), 2),
        np.concatenate(values)[:, None],
    )


def test_tasks_propose_in_turn_what_their_own_results_speak_for(bowls):
    found = propose_refinements(bowls, 2, seed=0)
    for config, (task, best) in zip(found.x, OPTIMA.items(), strict=True):
        known = np.sort(bowls.task(task).losses[:, 0])
        assert np.sum(np.square(config - best)) < known[POINTS // 8]


def test_as_many_new_configurations_as_requested(bowls):
    found = propose_refinements(bowls, 5, seed=0)
    assert len(found) == 5
    assert not found.isin(bowls.configs).any()
    assert len(found.first_occurrences()) == 5
    again = propose_refinements(bowls, 5, seed=0)
    assert np.array_equal(found.values, again.values)
