import math
import re
from dataclasses import replace

import numpy as np
import pytest

from foretune.experience import Direction, Metric, Status
from foretune.experience.trial import Trial, best_first
from foretune.report.page import page
from foretune.report.story import StorySource
from foretune.run.study_story import MAPPED, StudySummary, expect_random_search, opening, story
from foretune.search.registry import METHODS
from foretune.space import Space

FLAT = Space.of({"x": (0.0, 1.0), "n": (1, 9)})
CHOICE = Space.of({"model": {"svm": {"C": (0.1, 10.0, "log")}, "naive": {}}})
SCORE = Metric("score", Direction.MAX)


def trials(space, n=10, failed=()):
    configs = space.sample(n, seed=0).dicts()
    return [
        Trial(
            number,
            config,
            Status.FAILED if number in failed else Status.DONE,
            {} if number in failed else {"score": number / 10, "size": 3.0},
            2.0,
            "too large" if number in failed else "",
            "start" if number < 2 else "auto",
        )
        for number, config in enumerate(configs)
    ]


def tuned(space=FLAT, **given):
    settings = {"title": "mine", "trials": trials(space), "method": METHODS["auto"]}
    return StudySummary(space=space, **{"metrics": [SCORE], **settings, **given})


def test_the_best_trial_by_the_metrics_direction_is_told():
    told = story(tuned(trials=trials(FLAT, failed=[9])))
    assert told.best == 8
    assert told.best_value == 0.8
    assert dict(told.pipeline[0].settings) == told.best_trial.config
    assert told.metrics == [SCORE]
    assert told.trials[8].values == {"score": 0.8}  # nobody said which way a size is better
    assert (told.trials[9].status, told.trials[9].reason) == (Status.FAILED, "too large")


def test_the_earlier_of_equal_trials_is_best():
    same = [Trial(n, {}, Status.DONE, {"score": 1.0}, 1.0) for n in (4, 2, 3)]
    assert [trial.number for trial in best_first(same, SCORE)] == [2, 3, 4]


def test_the_story_names_the_method_and_its_origin():
    past = StorySource("runs.db", 3, 40, "2 lie outside of 'x'")
    text = page(story(tuned(past=past, relied_on="It went by gcp.", command="foretune tune a<b")))
    assert "The first 2 trials were configurations that suited past tasks" in text
    assert "the model chose the other 8" in text
    assert "It went by gcp." in text
    assert "2 lie outside of " in text
    assert "a&lt;b" in text
    assert "started from nothing" not in text
    alone = page(story(tuned()))
    assert "started from nothing" in alone
    assert "The first 2 trials were spread over the whole space; the model chose the" in alone
    assert "suited past" not in alone


def test_a_study_without_a_success_has_a_story():
    told = story(tuned(trials=trials(FLAT, failed=range(10))))
    assert (told.best, told.pipeline, told.expected_random) == (None, (), None)
    assert "There is no best configuration yet" in page(told)
    assert "mine" in page(story(tuned(trials=[])))


def test_a_choice_among_algorithms_has_a_map():
    told = story(tuned(CHOICE))
    assert len(told.embedding) == MAPPED + 10
    assert {point.algorithm for point in told.embedding} == {"svm", "naive"}
    assert [point.trial for point in told.embedding[MAPPED:]] == list(range(9, -1, -1))
    assert story(tuned()).embedding is None


def test_random_search_is_expected_to_do_worse_than_the_best_and_within_bounds():
    curve = expect_random_search(FLAT, SCORE, trials(FLAT, 10), seed=0, within=(-math.inf, 0.85))
    assert len(curve) == 10
    assert all(np.diff(curve) >= 0)
    assert curve[-1] <= 0.85
    assert expect_random_search(FLAT, SCORE, trials(FLAT, 7), seed=0) is None


def test_random_search_is_expected_to_do_the_same_whichever_way_a_metric_is_better():
    up = trials(FLAT, 10)
    down = [replace(each, values={"score": -each.values["score"]}) for each in up]
    mirrored = expect_random_search(FLAT, Metric("score"), down, seed=0)
    assert expect_random_search(FLAT, SCORE, up, seed=0) == [-value for value in mirrored]
    assert mirrored[-1] < mirrored[0] < 0.0


def test_random_search_is_not_expected_to_beat_the_best_that_was_seen():
    low = [each for each in trials(FLAT, 40) if each.config["x"] < 0.5]
    slope = [replace(each, values={"score": each.config["x"]}) for each in low]
    seen = max(each.values["score"] for each in slope)
    assert max(expect_random_search(FLAT, SCORE, slope, seed=0)) <= seen


def test_with_several_metrics_no_trial_alone_is_best():
    told = story(tuned(metrics=[SCORE, Metric("size")]))
    assert (told.best, told.pipeline, told.objectives) == (None, (), 2)
    assert told.trials[3].values == {"score": 0.3, "size": 3.0}


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (["auto", "auto"], ""),
        (["start", "auto"], "The first trial was a .* suited past days; the model chose .* 1."),
        (
            ["start", "start", "gp"],
            "The first 2 trials .* past days .*; the model chose .* 1.",
        ),
    ],
)
def test_trials_that_were_chosen_beforehand_are_counted(by, said):
    assert re.fullmatch(said, opening(by, "days"))
