"""What a log and a terminal hear of trials."""

import time
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from rich.progress import Progress

from foretune.cli import display
from foretune.cli.display import Bar, BestSoFar, Lines
from foretune.experience import Direction, Metric, Status
from foretune.experience.trial import Trial

LOSS = Metric("loss", Direction.MIN)


def trial(number, loss=None, **config):
    status = Status.RUNNING if loss is None else Status.DONE
    return Trial(number, config, status, {} if loss is None else {"loss": loss}, 1.0)


def test_a_log_hears_of_the_first_trial_and_counts_those_that_ended(capsys):
    lines = Lines(BestSoFar([LOSS]), 3)
    for number, loss in enumerate([2.0, 3.0, 1.0]):
        lines.trial_began(trial(number, estimator="rf"))
        lines.trial_ended(trial(number, loss, estimator="rf"))
    assert capsys.readouterr().err.splitlines() == [
        "trial 0 began: rf",
        "1 of 3 trials: best loss 2 (rf)",
        "3 of 3 trials: best loss 1 (rf)",
    ]


def test_a_configuration_without_a_name_has_no_parentheses(capsys):
    lines = Lines(BestSoFar([LOSS]), None)
    lines.trial_began(trial(4, x=0.5))
    lines.trial_ended(trial(4, 2.0, x=0.5))
    assert capsys.readouterr().err.splitlines() == ["trial 4 began", "1 trial: best loss 2"]


def test_after_earlier_trials_the_first_new_one_needs_no_line(capsys):
    lines = Lines(BestSoFar([LOSS]), 3)
    lines.trial_ended(trial(0, 2.0))
    lines.trial_began(trial(1))
    assert capsys.readouterr().err.splitlines() == ["1 of 3 trials: best loss 2"]


def test_trials_that_ended_before_count_and_are_told_in_one_line(capsys):
    lines = Lines(BestSoFar([LOSS]), 4)
    for number, loss in enumerate([2.0, 1.0]):
        lines.trial_ended(trial(number, loss))
    lines.trial_began(trial(2))
    lines.trial_ended(trial(2, 3.0))
    lines.trial_began(trial(3))
    lines.trial_ended(trial(3, 2.0))
    assert capsys.readouterr().err.splitlines() == [
        "2 of 4 trials: best loss 1",
        "4 of 4 trials: best loss 1",
    ]


@pytest.fixture
def console():
    return Console(file=StringIO(), width=200)


def test_a_bar_counts_trials_that_ended(console):
    with display.display([LOSS], 3, None, console=console) as bar:
        assert isinstance(bar, Bar)
        for number in range(2):
            bar.trial_began(trial(number, estimator="rf"))
            bar.trial_ended(trial(number, 2.0, estimator="rf"))
        progress: Progress = bar._bar
        text = "".join(str(line) for line in _rendered(progress))
    assert "2 of 3 trials" in text
    assert "best loss 2 (rf)" in text


@pytest.mark.parametrize("name", ["rf[val]", "[/x]", "[red]"])
def test_a_bar_shows_brackets_in_names_as_they_are(console, name):
    with display.display([LOSS], 3, None, console=console) as bar:
        bar.trial_began(trial(0, estimator=name))
        assert name in _rendered(bar._bar)
        bar.trial_ended(trial(0, 2.0, estimator=name))
        assert f"best loss 2 ({name})" in _rendered(bar._bar)


def test_a_bar_begins_with_what_had_ended_before(console):
    with display.display([LOSS], 9, None, console=console) as bar:
        for number in range(5):
            bar.trial_ended(trial(number, 2.0))
        bar.trial_began(trial(5))
        bar.trial_ended(trial(5, 3.0))
        [task] = bar._bar.tasks
    assert task.completed == 6
    assert task.fields["far"] == "6 of 9 trials"
    assert task.fields["best"] == "best loss 2"
    assert task.speed is None


def _rendered(progress):
    out = StringIO()
    Console(file=out, width=200).print(progress.get_renderable())
    return out.getvalue()


def test_with_several_metrics_those_that_nothing_beats_count():
    score = BestSoFar([LOSS, Metric("gain", Direction.MAX)])
    ended = [(3.0, 1.0), (2.0, 1.0), (4.0, 5.0), (2.0, 1.0), (9.0, 0.0), (1.0, 9.0)]
    better = [
        score.take(Trial(n, {}, Status.DONE, {"loss": loss, "gain": gain}, 1.0))
        for n, (loss, gain) in enumerate(ended)
    ]
    assert better == [True, True, True, False, False, True]
    assert [trial.number for trial in score.unbeaten] == [5]
    assert str(score) == "1 unbeaten in loss and gain"


def test_trials_that_failed_count_and_are_never_the_best(capsys):
    failed = Trial(0, {}, Status.FAILED, {}, 1.0, "too large")
    score = BestSoFar([LOSS])
    assert str(score) == "the first trials are running"
    assert not score.take(failed)
    assert (score.ended, score.failed, score.unbeaten) == (1, 1, [])
    assert str(score) == "1 failed"
    lines = Lines(BestSoFar([LOSS]), 2)
    for number in range(2):
        lines.trial_began(trial(number))
        lines.trial_ended(replace(failed, number=number))
    assert capsys.readouterr().err.splitlines() == ["trial 0 began", "2 of 2 trials: 2 failed"]


def test_a_log_is_not_silent_while_a_trial_takes_long(capsys, monkeypatch):
    monkeypatch.setattr("foretune._base.progress.SLOW_SECONDS", 0.2)
    with display.display([LOSS], 3, None) as lines:
        lines.trial_began(trial(0))
        time.sleep(1.0)
        lines.trial_ended(trial(0, 2.0))
    time.sleep(0.5)
    first, *beats, last = capsys.readouterr().err.splitlines()
    assert (first, last) == ("trial 0 began", "1 of 3 trials: best loss 2")
    assert 2 <= len(beats) <= 5
    assert all("0 of 3 trials" in line for line in beats)
