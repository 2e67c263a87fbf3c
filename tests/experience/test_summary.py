"""The summary as plain text."""

import numpy as np

from foretune.experience import summarise

from .examples import NAN, one_metric, small


def _words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_summary_says_what_there_is() -> None:
    text = summarise(small())
    lines = _words(text)
    assert ["Tasks", "2"] in lines
    assert ["Evaluations", "5"] in lines
    assert "16.7% of all pairs" in text  # 5 of 6
    assert ["Failed", "1", "(20.0%)"] in lines
    assert ["iris", "3", "1", "0.1", "0.2", "0.3"] in lines  # by error
    assert ["iris", "3", "1", "0.9", "0.8", "0.7"] in lines  # by accuracy: more is better
    assert ["paper", "1", "0", "1"] in lines
    assert "error (less is better)" in text
    assert "accuracy (more is better)" in text
    assert "Space (flat)" in text
    assert "depth" in text


def test_a_summary_shows_twenty_tasks_and_counts_the_others() -> None:
    experience = one_metric({f"t{i}": [float(i)] for i in range(23)})
    text = summarise(experience)
    assert "t19" in text
    assert "t20" not in text
    assert "... and 3 more" in text


def test_a_task_without_success_is_shown_with_dashes() -> None:
    experience = one_metric({"a": [1.0], "b": [np.inf]})
    assert ["b", "1", "1", "-", "-", "-"] in _words(summarise(experience))


def test_configurations_of_other_tasks_are_not_missing() -> None:
    text = summarise(one_metric({"a": [1.0, NAN], "b": [NAN, 2.0]}).only(["a"]))
    assert "Configurations  1\n" in text
    assert "0.0% of all pairs" in text
