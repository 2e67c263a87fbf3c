"""The page of a long search shows a part of its trials, and says so."""

from typing import Any

import numpy as np
import pytest

from foretune.report.story import Story
from foretune.report.thinning import MOST_DRAWN
from tests.report.stories import FLAT, some_trials, told
from tests.report.test_page import decoded, read

TRIALS = MOST_DRAWN + 2_000


def long_story(n: int = TRIALS, **more: Any) -> Story:
    trials = some_trials(FLAT, n)
    return told(FLAT, trials=trials, expected_random=np.linspace(0.5, 1.0, n), **more)


def test_the_best_and_all_improvements_are_drawn() -> None:
    story = long_story()
    data = read(story).data
    scores = np.array([trial.values["score"] for trial in story.trials])
    improved = [row for row in range(len(scores)) if scores[row] > max(scores[:row], default=0)]
    assert set(improved) <= set(data["places"])
    assert set(np.argsort(-scores)[:50]) <= set(data["places"])
    assert MOST_DRAWN <= len(data["places"]) <= MOST_DRAWN + 200
    assert data["total"] == len(scores)
    assert data["places"][data["best"]] == int(scores.argmax())


def test_each_drawn_trial_keeps_its_own_values() -> None:
    story = long_story()
    data = read(story).data
    drawn = [story.trials[place] for place in data["places"]]
    assert data["metrics"][0]["values"] == [trial.values["score"] for trial in drawn]
    assert decoded(data, 1) == [trial.config["layers"] for trial in drawn]


def test_members_of_the_model_are_drawn() -> None:
    worst = min(long_story().trials, key=lambda trial: trial.values["score"]).number
    data = read(long_story(ensemble=[(1.0, worst)])).data
    assert worst in data["places"]


def test_the_page_says_that_it_shows_a_part() -> None:
    assert f"of {TRIALS:,} trials: the best" in read(long_story()).text
    assert "and a random sample" not in read(long_story(30)).text


def test_the_curve_of_random_search_keeps_its_shape() -> None:
    data = read(long_story()).data
    places = data["randomPlaces"]
    assert (places[0], places[-1]) == (0, TRIALS - 1)
    expected = np.linspace(0.5, 1.0, TRIALS)[places]
    assert data["random"] == pytest.approx(expected, rel=1e-5)
