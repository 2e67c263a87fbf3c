"""Tuners that decide about every few steps, with a model that has fixed preferences."""

import math

import numpy as np
import pytest

from foretune.methods import Decision
from foretune.numerics import Floats, Ints
from foretune.search import Told
from foretune.space import Space
from foretune_lab.baselines.step_tuner import SeenCurves, StepTuner, unit_losses
from tests.refusals import refuses

POOL = Space.of({"x": (0.0, 1.0)}).from_columns({"x": [0.0, 0.5, 1.0]}, 3)

SEED = 1
"""Of a first trial that is not the last member of the pool."""


class HighestFirst:
    """Prefers the last member of the pool that it may choose."""

    def score(self, seen: SeenCurves, candidates: Ints) -> Floats:
        self.seen = seen
        return candidates.astype(float)


@pytest.fixture
def tuner() -> StepTuner:
    return StepTuner(POOL, (2.0, 4.0), HighestFirst(), seed=SEED)


def test_a_trial_pauses_at_each_level_and_goes_on_if_the_model_likes_it_best(
    tuner: StepTuner,
) -> None:
    [first] = tuner.ask()
    assert first.resumed_from is None
    assert first.pool_index != 2
    assert tuner.tell_step(first.id, 1.0, 0.9).decision is Decision.CONTINUE
    assert tuner.tell_step(first.id, 2.0, 0.8).decision is Decision.PAUSE
    [second] = tuner.ask()
    assert second.pool_index == 2
    tuner.tell_step(2, 2.0, 0.5)
    [again] = tuner.ask()
    assert (again.id, again.resumed_from) == (2, 2.0)
    assert tuner.tell_step(2, 3.0, 0.4).decision is Decision.CONTINUE


def test_running_and_ended_trials_are_no_candidates(tuner: StepTuner) -> None:
    [first] = tuner.ask()
    tuner.tell_step(first.id, 2.0, 0.8)
    asked = [tuner.ask()[0].id for _ in range(3)]
    assert sorted(asked) == [0, 1, 2]
    with refuses("enough-untried-configs", value=3):
        tuner.ask()
    tuner.tell([Told(0.1, id=asked[1])])
    with refuses("enough-untried-configs"):
        tuner.ask()


def test_a_trial_that_diverges_stops(tuner: StepTuner) -> None:
    [first] = tuner.ask()
    assert tuner.tell_step(first.id, 1.0, math.nan).decision is Decision.STOP


def test_losses_are_scaled_and_outliers_cut() -> None:
    """The median is 0.3 and the best 0.1, so that losses above 0.3 + 5 * 0.2 are cut."""
    scaled = unit_losses({7: [0.3, 0.1], 3: [50.0]})
    assert scaled[7] == pytest.approx([0.2 / 1.2, 0.0])
    assert scaled[3] == [1.0]
    assert unit_losses({0: [0.5, 0.5]}) == {0: [0.0, 0.0]}


def test_what_models_read() -> None:
    seen = SeenCurves(POOL.x, 3, {2: [0.5, 0.4], 0: [0.3]})
    assert (seen.best, seen.best_at(0), seen.best_at(1), seen.best_at(2)) == (0.3, 0.3, 0.4, 0.3)
    members, levels, losses = seen.points()
    assert (members.tolist(), levels.tolist()) == ([2, 2, 0], [0, 1, 0])
    assert losses.tolist() == [0.5, 0.4, 0.3]
    assert seen.next_levels(np.array([0, 1, 2])).tolist() == [1, 0, 2]
    rows = seen.pad_losses(np.array([2, 2, 1]), np.array([2, 1, 0]))
    assert rows.tolist() == [[0.5, 0.4, 0], [0.5, 0, 0], [0, 0, 0]]
