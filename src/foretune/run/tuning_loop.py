"""The one loop that tunes: trials from an optimiser, evaluated by an executor, kept in a study."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from foretune.errors import ExhaustedError, ForetuneWarning, UsageError
from foretune.experience import Status
from foretune.experience.trial import Trial
from foretune.methods.stopping.policies import learn_steps
from foretune.methods.stopping.policy import StoppingPolicy
from foretune.run import stopping
from foretune.run.background_learning import BackgroundLearning
from foretune.run.budget import USUAL_TIMES, Budget, Ending, LoopTimes, TimeLeft
from foretune.run.executor import Executor
from foretune.run.study import StoreAwayError, Study
from foretune.run.study_follower import StudyFollower
from foretune.run.trial_folders import TrialFolders
from foretune.run.trial_turns import Turns
from foretune.run.watch import SILENT_WATCH, Watch
from foretune.search.optimizer import Optimizer
from foretune.search.suggestions import Suggestion

MOST_ABANDONED = 5
"""A trial during which so many processes died is not tried again: it may be what kills them."""

DRAWN = ("random", "sobol", "per-algorithm")
"""Reasons of suggestions that cost next to nothing."""

Done = TypeVar("Done")


def tune(
    study: Study,
    optimizer: Optimizer,
    executor: Executor[dict[str, Any], Any],
    budget: Budget,
    *,
    stop: StoppingPolicy | str | None = None,
    folders: TrialFolders | Path | None = None,
    watch: Watch = SILENT_WATCH,
    times: LoopTimes = USUAL_TIMES,
) -> Ending:
    """Run trials until the budget is used up, and say what ended it.

    The optimiser must be new: it is told all that the study holds. Its objectives are the study's
    metrics, in order, or the first ones of them. What the executor's function returns is a number
    or a mapping, see `check_result`. Ctrl-C, and every other exception, leaves all finished
    trials and all reports stored, and those that were running to be run again.

    stop: which trials end early, by what they report: "asha", "hyperband", "halving", "median",
        or a policy. The first metric decides. Default: the policy of the optimiser. If no trial
        would be complete in the end, the one that came farthest is completed.
    folders: where trials keep their checkpoints. Default: beside the study; a temporary folder if
        the study is in memory.
    """
    _check_new(optimizer)
    _check_objectives(optimizer, study)
    if stop is not None:
        if isinstance(stop, str):
            stop = learn_steps(stop, trials=budget.trials)
        optimizer.use_policy(stop)
    with stopping.absorb_requests(), _place_folders(study, optimizer, folders) as placed:
        tuning = _Tuning(study, optimizer, executor, budget, placed, watch, times)
        try:
            return tuning.run()
        finally:
            tuning.let_go()


@contextmanager
def _place_folders(
    study: Study, optimizer: Optimizer, given: TrialFolders | Path | None
) -> Iterator[TrialFolders | None]:
    """Yield the folders of trials; None if no trial of a study in memory can be resumed."""
    place = study.folder if given is None else given
    if place is not None:
        folders = place if isinstance(place, TrialFolders) else TrialFolders(place)
        try:
            yield folders
        finally:
            folders.leave()
    elif optimizer.racing.is_on:
        with TemporaryDirectory(prefix="foretune-trials-") as made:
            yield TrialFolders(Path(made))
    else:
        yield None


def _check_new(optimizer: Optimizer) -> None:
    told, pending = len(optimizer.told), len(optimizer.pending)
    if told or pending:
        raise UsageError(
            f"an optimiser must be new, for it is told all that the study holds, but this one was "
            f"told {told} trials and waits for {pending}: make another one",
            rule="used-optimizer",
            value=(told, pending),
        )


def _check_objectives(optimizer: Optimizer, study: Study) -> None:
    """Refuse objectives that would be told of other metrics than those they are named after.

    A name that no metric of the study has, such as the default "loss", stands for the metric at its
    place.
    """
    objectives = optimizer.target.objectives
    names = tuple(metric.name for metric in study.metrics)
    if len(objectives) > len(names):
        raise UsageError(
            f"an optimiser must have at most as many objectives as the study has metrics, but got "
            f"{len(objectives)} and {len(names)}: add metrics",
            rule="too-many-objectives",
            value=len(objectives),
        )
    if any(o in names and o != name for o, name in zip(objectives, names, strict=False)):
        raise UsageError(
            f"the objectives of an optimiser must be the study's first metrics, in order, but "
            f"{list(objectives)} are others than {list(names)}: put these metrics first",
            rule="other-objectives",
            value=tuple(objectives),
        )


class _Tuning:
    """One run of the loop."""

    def __init__(
        self,
        study: Study,
        optimizer: Optimizer,
        executor: Executor[dict[str, Any], Any],
        budget: Budget,
        folders: TrialFolders | None,
        watch: Watch,
        times: LoopTimes,
    ) -> None:
        self._study, self._optimizer, self._executor = study, optimizer, executor
        self._budget, self._folders, self._times = budget, folders, times
        self._time_left = TimeLeft(budget, times)
        self._learning = BackgroundLearning(optimizer)
        self._follower = StudyFollower(study, optimizer, watch, folders)
        self._turns = Turns(
            study,
            optimizer,
            executor,
            self._follower,
            folders,
            watch,
            self._patiently,
            times.clock,
        )

    def run(self) -> Ending:
        """Keep the workers busy until the budget is used up."""
        self._listen()
        while True:
            stopping.check()  # the exception of a signal may have been lost on its way
            ending = self._patiently(self._look_and_fill, self._recover_and_fill)
            if self._time_left.is_over:
                return "time"
            patience = self._time_left.patience(self._learning.is_running)
            if self._turns:
                for outcome in self._executor.results(patience):
                    self._patiently(partial(self._turns.take_in, outcome))
            elif ending is not None and not self._patiently(self._study.unsure):
                return ending
            else:
                time.sleep(patience)

    def let_go(self) -> None:
        """Leave what is still running to whoever comes next."""
        for number in self._turns.numbers:
            self._study.let_go(number)

    def _listen(self) -> None:
        """Hear what trials report, if they run where that is possible."""
        try:
            self._executor.listen(self._turns.hear)
        except UsageError:
            if self._optimizer.racing.is_on:
                raise

    def _patiently(
        self, action: Callable[[], Done], again: Callable[[], Done] | None = None
    ) -> Done:
        """Repeat an action while the store is away, so that no result is lost.

        again: what to do instead from the second time on.
        """
        until, is_first = self._times.clock() + self._times.away, True
        while True:
            try:
                return action() if is_first or again is None else again()
            except StoreAwayError as error:
                if self._times.clock() > until:
                    raise
                if is_first:
                    warnings.warn(
                        ForetuneWarning(
                            f"{error}; trying again for {self._times.away / 60:.0f} minutes",
                            rule="store-away",
                        ),
                        stacklevel=2,
                    )
            is_first = False
            time.sleep(self._times.look)
            stopping.check()

    def _look_and_fill(self) -> Ending | None:
        """Take in what is new in the study, and keep the workers busy."""
        self._look()
        return self._fill()

    def _recover_and_fill(self) -> Ending | None:
        """Do the same after the store was away: a trial may be stored that no worker has."""
        stored = set(self._follower.ids.values())
        self._optimizer.withdraw([id_ for id_ in self._optimizer.pending if id_ not in stored])
        self._look()
        for number in self._follower.ids.keys() - self._turns.numbers:
            self._study.let_go(number)
        return self._fill()

    def _look(self) -> None:
        """See what is new in the study, and how much time is left by that."""
        self._follower.look()
        self._clear_folders()
        self._time_left.update(self._study.trials)

    def _fill(self) -> Ending | None:
        """Give every idle worker a trial; why there was none for it otherwise."""
        while len(self._turns) < self._executor.workers:
            if self._time_left.is_over:
                return "time"
            again = self._adopt_abandoned_trial() or self._resume()
            if again is not None:
                self._turns.begin(again)
                continue
            if not self._is_full(self._follower.trial_count) and self._learning.must_wait():
                return None
            begun = self._begin()
            if isinstance(begun, Trial):
                self._turns.begin(begun)
            elif (last := self._resume_last()) is not None:
                self._turns.begin(last, runs_to_end=True)
            else:
                return begun
        return None

    # Trials that were left behind

    def _adopt_abandoned_trial(self) -> Trial | None:
        """Take over a trial that nobody runs, if there is one within the budget."""
        unfinished = self._follower.ids.keys() - self._follower.paused.keys()
        if unfinished <= self._turns.numbers:
            return None  # known without a look into the storage: nobody else has begun a trial
        waiting = len(self._study.abandoned_trials())
        if not waiting or self._is_full(self._follower.trial_count - waiting):
            return None
        with self._study.lock():
            for trial in self._study.abandoned_trials():
                adopted = self._adopt(trial)
                if adopted is not None:
                    return adopted
        return None

    def _adopt(self, trial: Trial) -> Trial | None:
        """Take over a trial; None if it ends or waits instead."""
        deaths = self._study.take_over(trial.number)
        if deaths >= MOST_ABANDONED:
            reason = f"{deaths} processes ended while they ran it"
            self._study.end(trial.number, status=Status.FAILED, reason=reason)
            return None
        curve = self._study.curve(trial.number)
        self._follower.learn_one(trial, curve)
        found = replace(trial, curve=curve)
        goes_on = self._turns.decide_again(found)
        self._follower.look()
        return found if goes_on else None

    # Paused trials

    def _resume(self) -> Trial | None:
        """Take up the paused trial that the policy resumes, if there is one."""
        if not self._optimizer.racing.is_on:
            # The policy of an earlier run has paused them, and now every trial runs to its end.
            return next(filter(None, map(self._take_up, list(self._follower.paused))), None)
        while (suggestion := self._optimizer.resume()) is not None:
            found = self._take_up(self._follower.number_of(suggestion.id))
            if found is not None:
                return found
        return None

    def _resume_last(self) -> Trial | None:
        """Take up the trial that came farthest, if the search would end with no complete one."""
        others = self._follower.ids.keys() - self._follower.paused.keys()
        if self._follower.has_done or others or len(self._turns):
            return None
        best = self._follower.farthest()
        return None if best is None else self._take_up(best)

    def _take_up(self, number: int) -> Trial | None:
        """Resume a paused trial; None if another process was faster."""
        paused = self._follower.paused[number]
        with self._study.lock():
            resumed = self._study.resume(number)
            self._follower.look()
        return paused if resumed else None

    def _clear_folders(self) -> None:
        """End the paused trials that are never resumed, and keep checkpoints within their limit."""
        for id_ in self._optimizer.hopeless():
            number = self._follower.number_of(id_)
            paused = self._follower.paused.get(number)
            if paused is None:
                continue
            with self._study.lock():
                if self._study.resume(number):
                    self._turns.end_hopeless(paused)
                self._follower.look()
        if self._folders is not None:
            self._folders.drop_over_limit(self._follower.list_for_removal())

    # New trials

    def _begin(self) -> Trial | Ending:
        """Begin a trial that the optimiser suggests and that no other process has begun."""
        while not self._is_full(self._follower.trial_count):
            suggestion = self._ask()
            if suggestion is None:
                return "exhausted"
            with self._study.lock():
                changes = self._follower.changes()
                new = [trial for trial in changes.trials if not self._follower.knows(trial)]
                if suggestion.reason in DRAWN and self._is_double(suggestion, new):
                    # Another draw is quick, and whoever has the lock cannot be beaten to it.
                    self._optimizer.withdraw([suggestion.id])
                    self._follower.learn(changes)
                    new = []
                    suggestion = self._ask()
                    if suggestion is None:
                        return "exhausted"
                full = self._is_full(self._follower.trial_count + len(new))
                if not full and not self._is_double(suggestion, new):
                    return self._begin_trial(suggestion)
            # Another process was faster: with the last trial, or with this configuration.
            self._optimizer.withdraw([suggestion.id])
            self._follower.learn(changes)
        return "trials"

    def _ask(self) -> Suggestion | None:
        try:
            return self._optimizer.ask(may_resume=False)[0]
        except ExhaustedError:
            return None

    def _begin_trial(self, suggestion: Suggestion) -> Trial:
        number = self._study.begin(suggestion.config, chosen_by=suggestion.reason)
        self._follower.add(number, suggestion.id)
        return Trial(number, suggestion.config, chosen_by=suggestion.reason)

    def _is_double(self, suggestion: Suggestion, new: list[Trial]) -> bool:
        """True if a trial that the optimiser does not know of has the same configuration."""
        if not new:
            return False
        space = self._study.space
        others = space.encode([trial.config for trial in new])
        return bool(space.encode([suggestion.config]).isin(others)[0])

    def _is_full(self, trials: int) -> bool:
        return self._budget.trials is not None and trials >= self._budget.trials
