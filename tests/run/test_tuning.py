import math
import multiprocessing
import random
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pytest

from foretune.errors import ForetuneWarning
from foretune.experience import Direction, Metric, Status
from foretune.methods.contracts import Target
from foretune.run.budget import Budget, LoopTimes
from foretune.run.inline import InlineExecutor
from foretune.run.study import MemoryStudy, StoreAwayError
from foretune.run.tuning_loop import tune
from foretune.run.watch import Watch
from foretune.search.optimizer import Optimizer
from foretune.search.registry import method
from foretune.space import Space
from foretune.stores.studies import open_study
from tests.refusals import refuses, warns
from tests.run.jobs import InterruptedOnce

SPACE = Space.of({"x": (0.0, 1.0), "y": (0.0, 1.0)})
ERROR = Metric("error")


def optimizer(name="random", space=SPACE, seed=0, kind=Optimizer):
    chosen = method(name)
    return kind(Target(space), chosen, chosen.learn(None, seed=seed), seed=seed)


def memory(space=SPACE, metrics=(ERROR,)):
    return open_study(None, "study", space=space, metrics=metrics)


def bowl(config):
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2


def interrupted_at(n):
    """The bowl, with Ctrl-C during the call number n."""
    calls = []

    def function(config):
        calls.append(config)
        if len(calls) == n:
            raise KeyboardInterrupt
        return bowl(config)

    return function


class Heard(Watch):
    def __init__(self):
        self.began_, self.ended_ = [], []

    def trial_began(self, trial):
        self.began_.append(trial.number)

    def trial_ended(self, trial):
        self.ended_.append((trial.number, trial.values.get("error")))


def test_it_ends_with_exactly_the_trials_asked_for():
    study, watch = memory(), Heard()
    assert tune(study, optimizer(), InlineExecutor(bowl), Budget(5), watch=watch) == "trials"
    trials = study.trials()
    assert [trial.values["error"] for trial in trials] == [bowl(t.config) for t in trials]
    assert watch.began_ == [0, 1, 2, 3, 4]
    assert watch.ended_ == [(t.number, t.values["error"]) for t in trials]
    again = Heard()
    assert tune(study, optimizer(), InlineExecutor(bowl), Budget(7), watch=again) == "trials"
    assert again.began_ == [5, 6]
    assert again.ended_[:5] == watch.ended_
    assert len(again.ended_) == 7
    assert study.trials()[:5] == trials


@pytest.mark.parametrize("name", ["random", "gp"])
@pytest.mark.parametrize("stored", [False, True], ids=["memory", "sqlite"])
def test_an_interrupted_study_goes_on_as_if_it_had_never_stopped(name, stored, url):
    whole = memory()
    tune(whole, optimizer(name), InlineExecutor(bowl), Budget(9))
    with open_study(url if stored else None, "study", space=SPACE, metrics=[ERROR]) as study:
        with pytest.raises(KeyboardInterrupt):
            tune(study, optimizer(name), InlineExecutor(interrupted_at(7)), Budget(9))
        assert [trial.status for trial in study.trials()] == [*[Status.DONE] * 6, Status.RUNNING]
        tune(study, optimizer(name), InlineExecutor(bowl), Budget(9))
        parts = study.trials()
    assert [trial.config for trial in parts] == [trial.config for trial in whole.trials()]
    assert [trial.values for trial in parts] == [trial.values for trial in whole.trials()]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (math.nan, "the result 'error' must be a finite number, but got nan"),
        (math.inf, "the result 'error' must be a finite number, but got inf"),
        ("0.5", "the result 'error' must be a finite number, but got '0.5'"),
        (None, "the result 'error' must be a finite number, but got None"),
        (True, "the result 'error' must be a finite number, but got True"),
        ({"loss": 1.0}, "the result must hold 'error', but it holds loss: name another metric"),
        ({"error": 1.0, "notes": {"x": object}}, "the notes of a result must be JSON values"),
    ],
)
def test_results_that_cannot_be_used_are_failures_with_their_reason(result, reason):
    study, asked = memory(), optimizer()
    tune(study, asked, InlineExecutor(lambda _: result), Budget(2))
    assert [trial.status for trial in study.trials()] == [Status.FAILED] * 2
    assert study.trials()[0].reason.startswith(reason)
    assert not asked.told.is_success.any()


def test_results_may_hold_other_numbers_and_notes():
    study = memory()
    result = {"error": 0.5, "size": 3, "name": "n", "notes": {"folds": [1, 2]}}
    tune(study, optimizer(), InlineExecutor(lambda _: result), Budget(1))
    assert study.trials()[0].values == {"error": 0.5, "size": 3.0}
    assert study.trials()[0].notes == {"folds": [1, 2]}


def test_no_notes_may_be_said_as_none():
    study = memory()
    tune(study, optimizer(), InlineExecutor(lambda _: {"error": 0.5, "notes": None}), Budget(1))
    (trial,) = study.trials()
    assert (trial.status, trial.notes) == (Status.DONE, {})


def test_the_optimiser_minimises_whatever_is_maximised():
    metrics = [Metric("score", Direction.MAX), ERROR]
    study, asked = memory(metrics=metrics), optimizer()
    tune(study, asked, InlineExecutor(lambda c: {"score": c["x"], "error": 1}), Budget(4))
    assert asked.told.losses.ravel().tolist() == [-t.config["x"] for t in study.trials()]


def test_a_space_can_be_exhausted():
    space = Space.of({"a": [1, 2, 3]})
    study = memory(space)
    ended = tune(study, optimizer(space=space), InlineExecutor(lambda c: c["a"]), Budget(10))
    assert ended == "exhausted"
    assert sorted(trial.config["a"] for trial in study.trials()) == [1, 2, 3]


class Endless:
    """Workers that never come to an end, on a clock of their own."""

    workers = 2

    def __init__(self):
        self.now, self.jobs = 0.0, []

    def listen(self, listener):
        """Nothing is ever reported."""

    def submit(self, job, start):
        self.jobs.append(job)
        return len(self.jobs) - 1

    def results(self, timeout=None):
        self.now += timeout
        return []

    def monotonic(self):
        return self.now


def test_when_the_time_is_over_running_trials_are_left_to_the_next_run():
    study, executor = memory(), Endless()
    times = LoopTimes(clock=executor.monotonic)
    assert tune(study, optimizer(), executor, Budget(seconds=60.0), times=times) == "time"
    assert executor.now == 60.0
    assert [trial.config for trial in study.abandoned_trials()] == executor.jobs
    tune(study, optimizer(), InlineExecutor(bowl), Budget(2))
    assert [trial.status for trial in study.trials()] == [Status.DONE] * 2


def test_reserved_time_is_left():
    """By the trials: an ended one asks for 20 s, and none has ended but those of before."""
    study, executor = memory(), Endless()
    tune(study, optimizer(), InlineExecutor(bowl), Budget(1))
    times = LoopTimes(clock=executor.monotonic)
    asked = []

    def reserve(trials):
        asked.append([trial.status for trial in trials])
        return 20.0 * asked[-1].count(Status.DONE)

    budget = Budget(seconds=60.0, reserve=reserve)
    assert tune(study, optimizer(), executor, budget, times=times) == "time"
    assert executor.now == 40.0
    assert asked[0] == [Status.DONE]
    assert asked[-1] == [Status.DONE, Status.RUNNING, Status.RUNNING]


class LockWatched(MemoryStudy):
    """Says whether its lock is held."""

    is_locked = False

    @contextmanager
    def lock(self):
        with super().lock():
            self.is_locked = True
            yield
            self.is_locked = False


class Slow(Optimizer):
    """Takes so long to suggest that another process begins the same trial meanwhile."""

    study, reason = None, "random"

    def ask(self, n=1, **options):
        (suggestion,) = super().ask(n, **options)
        if not self.study.is_locked and len(self.study.trials()) < 5:
            self.study.begin(suggestion.config, chosen_by="elsewhere")
        return [replace(suggestion, reason=self.reason)]


@pytest.mark.parametrize("is_drawn", [True, False])
def test_a_trial_that_another_process_begins_is_not_begun_again(is_drawn):
    study, asked = LockWatched("study", SPACE, [ERROR]), optimizer(kind=Slow)
    asked.study, asked.reason = study, "random" if is_drawn else "expected improvement"
    assert tune(study, asked, InlineExecutor(bowl), Budget(6)) == "trials"
    trials = study.trials()
    ours = [trial.status is Status.DONE for trial in trials]
    assert ours == ([False, True] * 3 if is_drawn else [False] * 5 + [True])
    assert len(SPACE.encode([t.config for t in trials]).first_occurrences()) == 6
    theirs = [trial.config for trial in trials if not trial.is_over]
    assert sorted(asked.pending.values(), key=repr) == sorted(theirs, key=repr)


def test_running_trials_of_others_are_believed_and_their_ends_are_told():
    study, asked, watch = memory(), optimizer(), Heard()
    theirs = study.begin({"x": 0.5, "y": 0.5}, chosen_by="elsewhere")

    def function(config):
        if len(study.trials()) == 3:
            study.end(theirs, status=Status.DONE, values={"error": 7.0})
        return bowl(config)

    tune(study, asked, InlineExecutor(function), Budget(4), watch=watch)
    assert 7.0 in asked.told.losses
    assert not asked.pending
    assert watch.began_ == [1, 2, 3]
    assert (theirs, 7.0) in watch.ended_


def test_two_trials_of_one_configuration_are_both_told():
    study, asked = memory(), optimizer()
    twin = {"x": 0.5, "y": 0.5}
    first = study.begin(twin, chosen_by="elsewhere")

    def function(config):
        if len(study.trials()) == 2:  # begun and ended between two looks
            study.end(study.begin(twin, chosen_by=""), status=Status.DONE, values={"error": 7.0})
        elif first in study._running:
            study.end(first, status=Status.DONE, values={"error": 8.0})
        return bowl(config)

    tune(study, asked, InlineExecutor(function), Budget(5))
    assert len(asked.told) == len(study.trials()) == 5
    assert {7.0, 8.0} <= set(asked.told.losses.ravel())
    assert not asked.pending


@pytest.fixture
def stored(url):
    with open_study(url, "study", space=SPACE, metrics=[ERROR]) as study:
        yield study


def four_times_abandoned(study):
    """A running trial during which four processes have died."""
    number = study.begin({"x": 0.5, "y": 0.5}, chosen_by="random")
    study._storage.set_trial_user_attr(study._held[number], "abandoned", 4)
    return number


def test_a_trial_that_outlives_its_processes_again_and_again_is_given_up(stored):
    four_times_abandoned(stored)
    stored._held.clear()  # the fifth
    tune(stored, optimizer(), InlineExecutor(bowl), Budget(2))
    given_up, done = stored.trials()
    assert (given_up.status, done.status) == (Status.FAILED, Status.DONE)
    assert given_up.reason == "5 processes ended while they ran it"


def test_releasing_a_trial_is_no_death(stored):
    stored.let_go(four_times_abandoned(stored))
    tune(stored, optimizer(), InlineExecutor(bowl), Budget(1))
    assert [trial.status for trial in stored.trials()] == [Status.DONE]


@pytest.mark.parametrize("write", ["set_trial_user_attr", "set_trial_state_values"])
def test_ctrl_c_while_a_trial_is_stored_leaves_it_to_the_next_run(stored, write):
    stored._storage = InterruptedOnce(stored._storage, write)
    with pytest.raises(KeyboardInterrupt):
        tune(stored, optimizer(), InlineExecutor(bowl), Budget(1))
    assert [trial.number for trial in stored.abandoned_trials()] == [0]
    tune(stored, optimizer(), InlineExecutor(bowl), Budget(1))
    assert [trial.status for trial in stored.trials()] == [Status.DONE]
    assert "abandoned" not in stored.trials()[0].notes


def test_ctrl_c_just_after_a_trial_is_stored_keeps_it():
    class Interrupted(MemoryStudy):
        def end(self, number, **outcome):
            super().end(number, **outcome)
            raise KeyboardInterrupt

    study = Interrupted("study", SPACE, [ERROR])
    with pytest.raises(KeyboardInterrupt):
        tune(study, optimizer(), InlineExecutor(bowl), Budget(1))
    assert [trial.status for trial in study.trials()] == [Status.DONE]


def tune_with_others(url):
    with open_study(url, "study", space=SPACE, metrics=[ERROR]) as study:
        tune(study, optimizer(), InlineExecutor(bowl), Budget(12))


def test_processes_share_the_budget_of_a_study(url):
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=tune_with_others, args=(url,)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    with open_study(url, "study", space=SPACE, metrics=[ERROR]) as study:
        trials = study.trials()
    assert [trial.number for trial in trials] == list(range(12))
    assert {trial.status for trial in trials} == {Status.DONE}
    assert len(SPACE.encode([trial.config for trial in trials]).first_occurrences()) == 12


def test_budgets_and_objectives_that_do_not_fit_are_refused():
    with refuses("not-positive", field="trials", value=0):
        Budget(trials=0)
    two = Optimizer(
        Target(SPACE, ("a", "b")), method("random"), method("random").learn(None, seed=0)
    )
    with refuses("too-many-objectives", value=2):
        tune(memory(), two, InlineExecutor(bowl), Budget(1))


@pytest.mark.parametrize("objectives", [("size",), ("error", "mass"), ("size", "error")])
def test_objectives_named_after_other_metrics_are_refused(objectives):
    study = memory(metrics=[ERROR, Metric("size"), Metric("mass")])
    asked = Optimizer.of(SPACE, method="random", objectives=objectives)
    with refuses("other-objectives", value=objectives):
        tune(study, asked, InlineExecutor(bowl), Budget(1))
    assert not study.trials()


def test_an_optimiser_that_is_not_new_is_refused():
    study, asked = memory(), optimizer()
    tune(study, asked, InlineExecutor(bowl), Budget(2))
    with refuses("used-optimizer", value=(2, 0)):
        tune(study, asked, InlineExecutor(bowl), Budget(3))
    waiting = optimizer()
    waiting.ask()
    with refuses("used-optimizer", value=(0, 1)):
        tune(study, waiting, InlineExecutor(bowl), Budget(3))
    assert len(study.trials()) == 2


# A store that goes away and comes back


class Away(MemoryStudy):
    """A study whose server goes away at the moments of a list, before or after it has stored."""

    def __init__(self, moments):
        super().__init__("study", SPACE, [ERROR])
        self.moments, self.calls = moments, 0

    def _may_go_away(self):
        self.calls += 1
        if self.calls in self.moments:
            raise StoreAwayError("the store must be within reach")

    def begin(self, config, *, chosen_by):
        self._may_go_away()
        number = super().begin(config, chosen_by=chosen_by)
        self._may_go_away()
        return number

    def end(self, number, **outcome):
        self._may_go_away()
        if number in self._running:
            super().end(number, **outcome)
        self._may_go_away()

    def changes(self, seen):
        self._may_go_away()
        return super().changes(seen)


@pytest.mark.parametrize("seed", range(20))
def test_a_store_that_goes_away_and_comes_back_loses_and_doubles_nothing(seed):
    draw = random.Random(seed)
    study = Away({draw.randint(1, 60) for _ in range(12)})
    calls = Counter()

    def counted(config):
        calls[config["x"]] += 1
        return bowl(config)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForetuneWarning)
        ended = tune(
            study, optimizer(), InlineExecutor(counted), Budget(10), times=LoopTimes(look=0.0)
        )
    assert ended == "trials"
    study.moments = set()
    found = study.trials()
    assert [trial.values["error"] for trial in found] == [bowl(trial.config) for trial in found]
    assert calls == Counter(trial.config["x"] for trial in found)
    assert len(calls) == 10


def test_a_store_that_stays_away_ends_the_run():
    times = LoopTimes(look=0.0, away=0.1)
    study = Away(range(5, 10**9))
    with warns("store-away"), pytest.raises(StoreAwayError):
        tune(study, optimizer(), InlineExecutor(bowl), Budget(10), times=times)
