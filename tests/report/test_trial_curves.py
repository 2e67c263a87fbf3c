"""The learning curves of a report, and the band of past trials behind them."""

import json
import math

import numpy as np
import pytest

from foretune.experience import Direction, Evaluation, Experience, Metric, Status
from foretune.experience.curves import Curve
from foretune.experience.evaluation_rows import build_experience
from foretune.experience.trial import Trial
from foretune.report.importance import importance
from foretune.report.page import page
from foretune.report.payload import columns_of, payload
from foretune.report.story import Story
from foretune.report.trial_curves import MOST_A_CURVE, MOST_POINTS, draw_curves, summarise_past
from foretune.space import Space
from tests.report.stories import SCORE, some_trials, stopped_early, told

SPACE = Space.of({"x": (0.0, 1.0)})
LOSS = Metric("loss")


def past(curves: dict[str, list[tuple[Status, list[float]]]]) -> Experience:
    """An experience of trials that reported these losses at the steps 1, 2, ..."""
    rows = [
        Evaluation(
            task,
            {"x": i / 10},
            {"loss": losses[-1]},
            status,
            curve=Curve(list(range(1, len(losses) + 1)), {"loss": losses}),
        )
        for task, trials in curves.items()
        for i, (status, losses) in enumerate(trials)
    ]
    return build_experience(SPACE, [LOSS], rows)


def read_payload(story: Story) -> dict:
    columns = columns_of(story)
    found = importance(columns.configs, columns.losses[columns.drawn, 0], seed=0)
    return json.loads(payload(story, columns, found))


def test_the_band_is_that_of_complete_past_trials() -> None:
    done = [[9.0 - i - step for step in range(3)] for i in range(5)]
    known = past(
        {
            "a": [*((Status.DONE, losses) for losses in done), (Status.STOPPED, [99.0, 99.0])],
            "b": [(Status.DONE, [4.0, 3.0])],
        }
    )
    band = summarise_past(known, LOSS)
    assert band is not None
    assert (band.trials, band.tasks, list(band.steps)) == (6, 2, [1.0, 2.0, 3.0])
    at_first = [losses[0] for losses in done] + [4.0]
    assert band.middle[0] == pytest.approx(np.median(at_first))
    assert band.low[0] == pytest.approx(np.quantile(at_first, 0.1))
    # Task b has no third step.
    assert band.high[2] == pytest.approx(np.quantile([losses[2] for losses in done], 0.9))


def test_there_is_no_band_without_past_curves_of_the_metric() -> None:
    plain = build_experience(SPACE, [LOSS], [Evaluation("a", {"x": 0.5}, {"loss": 1.0})])
    assert summarise_past(None, LOSS) is None
    assert summarise_past(plain, LOSS) is None
    assert summarise_past(past({"a": [(Status.DONE, [1.0, 2.0])]}), SCORE) is None
    done, stopped = (Status.DONE, [1.0]), (Status.STOPPED, [1.0, 2.0])
    both = past({"a": [done, stopped]})
    lengths = both.curves.lengths
    assert sorted(lengths) == [1, 2]
    assert summarise_past(both, LOSS).trials == 1


@pytest.mark.parametrize(("trials", "points"), [(1, 10_000), (2_000, 50)])
def test_long_and_many_curves_keep_their_ends_and_few_points(trials: int, points: int) -> None:
    steps = list(range(1, points + 1))
    given = [
        Trial(t.number, t.config, t.status, t.values, curve=Curve(steps, {"score": steps}))
        for t in some_trials(SPACE, trials)
    ]
    curves = draw_curves(given, SCORE)
    assert curves is not None
    assert len(curves.steps) <= MOST_POINTS
    assert max(curves.lengths) <= MOST_A_CURVE
    ends = np.cumsum(curves.lengths)
    assert set(curves.steps[ends - 1]) == {points}
    assert set(curves.steps[ends - curves.lengths]) == {1}


def test_the_page_tells_stopped_paused_and_running_trials_apart() -> None:
    story = stopped_early(20)
    running = Trial(20, story.trials[0].config, Status.RUNNING)
    found = read_payload(told(story.space, trials=[*story.trials, running], best=story.best))
    assert found["status"] == "0333355555" * 2 + "4"
    assert sum(found["curves"]["lengths"]) == len(found["curves"]["steps"])
    assert found["curves"]["lengths"][20] == 0
    assert found["curves"]["past"] is None


def test_a_diverged_report_is_a_gap() -> None:
    curve = Curve([1, 2, 3], {"score": [0.5, math.nan, math.inf]})
    trials = [Trial(0, {"x": 0.5}, Status.DONE, {"score": 0.5}, curve=curve)]
    story = Story("t", SPACE, [Metric("score", Direction.MAX)], trials, best=0)
    assert read_payload(story)["curves"]["values"] == [0.5, None, None]


def test_the_page_has_curves_only_if_trials_reported() -> None:
    assert 'id="learning-plot"' in page(stopped_early(20))
    assert 'id="learning-plot"' not in page(told())
