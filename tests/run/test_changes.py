"""Following a study: what is read since the last look is all that there is, and no more."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from foretune.experience import Metric, Status
from foretune.experience.trial import Trial
from foretune.run.study import Study
from foretune.run.trial_log import TrialLog
from foretune.space import Space
from foretune.stores.optuna.study import OptunaStudy
from foretune.stores.studies import open_study

SPACE = Space.of({"x": (0.0, 1.0), "kind": ["a", "b"]})


def opened(url: str | None) -> Study:
    return open_study(url, "followed", space=SPACE, metrics=[Metric("loss")])


class Follower:
    """Knows a study by its changes alone."""

    def __init__(self, study: Study) -> None:
        self.study, self.seen, self.read = study, 0, 0
        self.trials: dict[int, Trial] = {}

    def look(self) -> None:
        changes = self.study.changes(self.seen)
        self.seen = changes.seen
        self.read += len(changes.trials)
        self.trials |= {trial.number: trial for trial in changes.trials}

    def shown(self) -> list[str]:
        return [repr(self.trials[number]) for number in sorted(self.trials)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("in_memory", [True, False])
def test_changes_together_are_all_trials(
    request: pytest.FixtureRequest, seed: int, in_memory: bool
) -> None:
    """Two that work on one study, in an order drawn by chance, each looks now and then."""
    url = None if in_memory else request.getfixturevalue("url")
    rng = np.random.default_rng(seed)
    with opened(url) as one, one if in_memory else opened(url) as other:
        studies = [one, other]
        followers = [Follower(one), Follower(other)]
        running: list[tuple[Study, int]] = []
        configs = SPACE.sample(24, seed=seed).dicts()
        for config in configs:
            study = studies[rng.integers(2)]
            if running and rng.random() < 0.6:
                owner, number = running.pop(int(rng.integers(len(running))))
                done = rng.random() < 0.7
                values = {"loss": float(rng.random())} if done else {}
                owner.end(number, status=Status.DONE if done else Status.FAILED, values=values)
            else:
                running.append((study, study.begin(config, chosen_by="random")))
            if running and rng.random() < 0.2:
                owner, number = running.pop()
                owner.let_go(number)
                study.take_over(number)
                running.append((study, number))
            if rng.random() < 0.4:
                followers[rng.integers(2)].look()
        for study, follower in zip(studies, followers, strict=True):
            follower.look()
            assert follower.shown() == [repr(trial) for trial in study.trials()]
        with one if in_memory else opened(url) as fresh:
            assert [repr(t) for t in fresh.trials()] == followers[0].shown()


@contextmanager
def counted(study: Study) -> Iterator[dict[str, int]]:
    """Queries and rows that a study's database is asked for meanwhile."""
    from sqlalchemy import event

    assert isinstance(study, OptunaStudy)
    found = {"queries": 0}

    def note(*_: object) -> None:
        found["queries"] += 1

    engine = study._database.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_a_look_costs_as_much_as_there_is_news(url: str) -> None:
    """Queries and trials of a look do not grow with the study."""
    with opened(url) as study, opened(url) as other:
        follower, costs = Follower(other), []
        for number, config in enumerate(SPACE.sample(20, seed=0).dicts()):
            study.end(
                study.begin(config, chosen_by="random"), status=Status.DONE, values={"loss": 0.0}
            )
            before = follower.read
            with counted(other) as found:
                follower.look()
            costs.append((found["queries"], follower.read - before))
            with counted(other) as found:
                follower.look()  # no news
            assert found["queries"] <= 3
            assert follower.read - before == 1, number
    assert len(set(costs)) == 1


def test_a_log_says_what_has_changed_since() -> None:
    log = TrialLog()
    trials = [Trial(n, {}, Status.RUNNING, {}, 0.0) for n in range(3)]
    for trial in (trials[2], trials[0]):
        log.put(trial)
    first = log.changes(0)
    assert [trial.number for trial in first.trials] == [0, 2]
    assert log.changes(first.seen).trials == []
    ended = Trial(2, {}, Status.FAILED, {}, 0.0)
    log.put(trials[1])
    log.put(ended)
    assert log.changes(first.seen).trials == [trials[1], ended]
    assert log.trials() == [trials[0], trials[1], ended]
